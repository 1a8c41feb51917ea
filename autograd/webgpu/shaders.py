"""WGSL text: where it lies, how a module is put together, whose line an error is on."""

import re
from functools import cache
from pathlib import Path

import numpy as np

from .packed import BFLOAT16, reading

SLOT_BYTES = 256
BINDING = re.compile(
    r"@group\(0\)\s*@binding\((\d+)\)\s*var<\s*(uniform|storage)\s*(?:,\s*(\w+)\s*)?>"
)
PLACE = re.compile(r"wgsl:(\d+):(\d+)")

# dtype -> (type in the kernel, type in memory). What an adapter packs instead of float16: Gpu.types.
WGSL_TYPES = {
    np.dtype(np.float32): ("f32", "f32"),
    np.dtype(np.float16): ("f32", "f16"),
    BFLOAT16: ("f32", "bfloat2"),
    np.dtype(np.int32): ("i32", "i32"),
    np.dtype(np.int64): ("i32", "i32"),
    np.dtype(np.bool_): ("u32", "u32"),
    np.dtype(np.uint8): ("u32", "u32"),
}


@cache
def folder():
    """The installed package's wgsl/, or the checkout's."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "wgsl", package.parent / "wgsl"):
        if (place / "lib").is_dir():
            return place
    raise RuntimeError(
        f"[wgpu] no shaders: neither {package / 'wgsl'} nor {package.parent / 'wgsl'} is "
        "there. Install the package again."
    )


@cache
def read(name):
    """The text of wgsl/<name>.wgsl."""
    path = folder() / f"{name}.wgsl"
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RuntimeError(f"[wgpu] there is no shader {path}") from None


class Source:
    """A module: the op's own text first, so that its line numbers are the file's own.

    `packed`: pairs of E or F and the lib that reads it, where it is two elements a word.
    """

    def __init__(self, name, libs=(), extra="", packed=()):
        self.name, self.packed = name, packed
        self.parts = [(f"{name}.wgsl", read(name))]
        if extra:
            self.parts.append((f"declarations for {name}.wgsl", extra))
        self.parts += [(f"lib/{lib}.wgsl", read(f"lib/{lib}")) for lib in libs]
        if packed:
            self.parts = [(label, reading(text, dict(packed))) for label, text in self.parts]
            self.parts += [(f"lib/{lib}.wgsl", read(f"lib/{lib}")) for lib in sorted({lib for _, lib in packed})]

    @classmethod
    def of_text(cls, name, text):
        """A module that begins with generated text instead of a file."""
        source = cls.__new__(cls)
        source.name, source.packed, source.parts = name, (), [(name, text)]
        return source

    def text(self):
        """What the compiler gets."""
        body = "".join(text if text.endswith("\n") else text + "\n" for _, text in self.parts)
        # On the first line, not above it: the file's line numbers must not move.
        return ("enable f16; " if re.search(r"\bf16\b", body) else "") + body

    def blame(self, message):
        """Rewrite a compiler message so that it names the file and its own line."""
        found = PLACE.search(message)
        if found is None:
            return f"{self.name}.wgsl: {message}"
        line = int(found.group(1))
        for label, text in self.parts:
            count = len(text.splitlines())
            if line <= count:
                return f"{label}, line {line}: {message}"
            line -= count
        return f"{self.name}.wgsl: {message}"


def access(text):
    """How a module uses its bindings, in order: 'u' uniform, 'r' read, 'w' read and write."""
    found = {}
    for number, space, mode in BINDING.findall(text):
        kind = "u" if space == "uniform" else ("w" if mode == "read_write" else "r")
        found[int(number)] = kind
    pattern = "".join(found[number] for number in sorted(found))
    if sorted(found) != list(range(len(found))) or not pattern.startswith("u"):
        raise RuntimeError(
            "[wgpu] a kernel binds its parameters (uniform) at 0 and its buffers at 1, 2, ...; "
            f"found {dict(sorted(found.items()))}"
        )
    return pattern
