"""Kernels of the user's own: WGSL text that is checked, compiled once and launched with tensors."""

from __future__ import annotations

import re
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from ..grad_mode import state
from .buffers import FLOAT16, Array, Window
from .shaders import Source, access

if TYPE_CHECKING:
    from ..tensor import Tensor

BUFFER = re.compile(r"@group\(0\)\s*@binding\((\d+)\)\s*var<\s*storage\s*(?:,\s*\w+\s*)?>\s*(\w+)\s*:\s*([^;]+);")
UNIFORM = re.compile(r"@group\(0\)\s*@binding\(0\)\s*var<\s*uniform\s*>\s*\w+\s*:\s*(\w+)\s*;")
ELEMENT = re.compile(r"array<\s*(?:vec([24])\s*<\s*(\w+)\s*>|vec([24])([fiuh])|(\w+))\s*>$")
GROUP = re.compile(r"@workgroup_size\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?(?:,\s*(\d+)\s*)?,?\s*\)")
SHORT = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}
# What an element may be in WGSL, and the dtypes of tensors that are stored so.
STORED_AS = {"f32": ("float32",), "f16": ("float16",), "i32": ("int32", "int64"), "u32": ("bool", "uint8")}
FORMATS = {"f32": "<f", "i32": "<i", "u32": "<I"}
MOST_GROUPS = 65535  # a dimension
NO_PARAMETERS = "@group(0) @binding(0) var<uniform> no_parameters: vec4<u32>;\n"


class Kernel:
    """A WGSL kernel of the user's own; see ag.wgpu.kernel()."""

    def __init__(self, source: str, name: str):
        self.name, self.source = name, source
        plain = re.sub(r"//[^\n]*", "", source)
        if not re.search(r"@compute\b[^{]*\bfn\s+main\b", plain):
            raise ValueError(f"[{name}] a kernel has an entry point `@compute @workgroup_size(64) fn main(...)`")
        self.group = self._workgroup(plain)
        self.fields = self._parameters(plain)
        self._text = source if self.fields else source + "\n" + NO_PARAMETERS
        found = {int(number): (label, kind.strip()) for number, label, kind in BUFFER.findall(plain)}
        if sorted(found) != list(range(1, len(found) + 1)) or not found:
            raise ValueError(f"[{name}] buffers are bound at 1, 2, ... of group 0 without a gap; got {sorted(found)}")
        self.access = access(re.sub(r"//[^\n]*", "", self._text))[1:]
        self.buffers = [(found[i][0], *self._element(*found[i])) for i in sorted(found)]

    def _workgroup(self, text: str) -> tuple[int, ...]:
        found = GROUP.search(text)
        if found is None:
            raise ValueError(f"[{self.name}] @workgroup_size needs whole numbers, e.g. @workgroup_size(64)")
        return tuple(int(n) if n else 1 for n in found.groups())

    def _parameters(self, text: str) -> dict[str, str] | None:
        """The fields of the uniform struct at binding 0 with their types; None where there is none."""
        found = UNIFORM.search(text)
        if found is None:
            return None
        struct = re.search(rf"struct\s+{found.group(1)}\s*\{{([^}}]*)\}}", text)
        fields = dict(re.findall(r"(\w+)\s*:\s*(\w+)", struct.group(1))) if struct else {}
        if not fields or not set(fields.values()) <= set(FORMATS) or len(fields) > 64:
            got = fields or found.group(1)
            raise ValueError(f"[{self.name}] binding 0 is a struct of at most 64 fields, each f32, i32 or u32; got {got}")
        return fields

    def _element(self, label: str, kind: str) -> tuple[str, int]:
        """(type, how many together) of a buffer's elements."""
        found = ELEMENT.match(kind)
        wide, inner, short, letter, single = found.groups() if found else (None,) * 5
        element = inner or SHORT.get(letter or "") or single
        if element not in STORED_AS:
            raise ValueError(
                f"[{self.name}] buffer {label} is array<T>, array<vec2<T>> or array<vec4<T>>, T f32, f16, i32 or u32; got {kind}"
            )
        return element, int(wide or short or 1)

    def __call__(self, *tensors: Tensor, threads: int | tuple[int, ...], **parameters: float) -> Any:
        """Launch it; returns the tensors that it writes (one, or a tuple). See ag.wgpu.kernel()."""
        gpu = self._check(tensors)
        words = self._packed(parameters)
        groups = self._groups(threads)
        arrays = [self._ready(t, i) for i, t in enumerate(tensors)]
        written = [t for t, kind in zip(tensors, self.access, strict=True) if kind == "w"]
        if all(groups):
            for t in written:
                gpu.settle(t.array.storage)
            kernel = gpu.pipelines.cached(("custom", self.name, self._text), lambda: Source.of_text(self.name, self._text))
            parts = [Window(a.storage, a.offset * self._bytes(a), a.size * self._bytes(a)) for a in arrays]
            key = (kernel.layout.id, *(part.id for part in parts))
            gpu.record(kernel, key, parts, words.ljust(256, b"\0"), *groups)
            for t in written:
                t.array.storage.bounds = None
                t.version[0] += 1
        return written[0] if len(written) == 1 else tuple(written)

    def _check(self, tensors: tuple) -> Any:
        """The device of the tensors, which all have to fit the kernel."""
        names = ", ".join(f"{label}: {element}" for label, element, _ in self.buffers)
        if len(tensors) != len(self.buffers):
            raise TypeError(f"[{self.name}] takes {len(self.buffers)} tensors ({names}); got {len(tensors)}")
        for t, (label, element, wide) in zip(tensors, self.buffers, strict=True):
            if not hasattr(t, "requires_grad"):
                raise TypeError(f"[{self.name}] {label} is a Tensor; got {type(t).__name__}")
            if not isinstance(t.array, Array):
                raise RuntimeError(f'[{self.name}] a kernel runs on wgpu, and {label} is on {t.device}. Move it with .to("wgpu")')
            if t.array.gpu is not tensors[0].array.gpu:
                raise RuntimeError(f"[{self.name}] all tensors must be on one device; got {tensors[0].device} and {t.device}")
            if t.dtype.name not in STORED_AS[element] or (t.array.dtype == FLOAT16 and FLOAT16 in t.array.gpu.packed):
                raise TypeError(f"[{self.name}] {label} holds {element}, as {' and '.join(STORED_AS[element])} do; got {t.dtype}")
            if not t.numel() or t.numel() % wide:
                raise ValueError(f"[{self.name}] {label} must have elements, a multiple of {wide}; got shape {t.shape}")
            if t.requires_grad and state.enabled:
                raise RuntimeError(
                    f"[{self.name}] a kernel records no gradient, and {label} requires one. Call it inside ag.Function or no_grad"
                )
        self._check_written(tensors)
        return tensors[0].array.gpu

    def _check_written(self, tensors: tuple) -> None:
        """What is written lies dense, at the start of its memory, and is bound once."""
        storages = [t.array.storage for t in tensors]
        for i, (t, kind) in enumerate(zip(tensors, self.access, strict=True)):
            label = self.buffers[i][0]
            if kind == "w" and (not t.array.is_contiguous() or t.array.offset):
                got = f"strides {t.array.strides}, offset {t.array.offset}"
                raise ValueError(f"[{self.name}] {label} is written, so it is no view of part of a tensor; got {got}")
            if kind == "w" and storages.count(storages[i]) > 1:
                raise ValueError(f"[{self.name}] {label} is written and given twice; clone() the other")

    def _ready(self, t: Tensor, i: int) -> Array:
        """The tensor's elements one after the other, as the kernel reads them."""
        a, label = t.array, self.buffers[i][0]
        if self.access[i] == "r" and (not a.is_contiguous() or a.offset):
            a = a.gpu.copy(a)
        if a.size * self._bytes(a) > a.gpu.pool.max_binding:
            most = a.gpu.pool.max_binding
            raise ValueError(f"[{self.name}] this adapter binds {most:,} bytes at once; {label} has {a.nbytes:,}")
        if a.size * self._bytes(a) % 4:
            raise ValueError(f"[{self.name}] buffers are multiples of 4 bytes; {label} has {a.nbytes}")
        return a

    def _bytes(self, a: Array) -> int:
        return 2 if a.dtype == FLOAT16 else 4

    def _packed(self, given: dict) -> bytes:
        fields = self.fields or {}
        if set(given) != set(fields):
            missing, unknown = sorted(set(fields) - set(given)), sorted(set(given) - set(fields))
            raise TypeError(f"[{self.name}] its parameters are {fields}; missing {missing}, unknown {unknown}")
        parts = []
        for name, kind in fields.items():
            value = given[name]
            if not isinstance(value, int | float | np.number) or (kind != "f32" and value != int(value)):
                raise TypeError(f"[{self.name}] {name} is a number of type {kind}; got {value!r}")
            if kind != "f32" and not (0 if kind == "u32" else -(1 << 31)) <= value < 1 << (32 if kind == "u32" else 31):
                raise ValueError(f"[{self.name}] {name} = {value} does not fit into {kind}")
            parts.append(pack(FORMATS[kind], float(value) if kind == "f32" else int(value)))
        return b"".join(parts)

    def _groups(self, threads: Any) -> tuple[int, int, int]:
        wanted = (threads,) if isinstance(threads, int | np.integer) else tuple(threads)
        if not 1 <= len(wanted) <= 3 or any(not isinstance(n, int | np.integer) or n < 0 for n in wanted):
            raise ValueError(f"[{self.name}] threads are up to three whole numbers, not negative; got {threads!r}")
        counts = [-(-int(n) // size) for n, size in zip((*wanted, 1, 1), self.group, strict=False)]
        if max(counts) > MOST_GROUPS:
            raise ValueError(
                f"[{self.name}] a dimension has at most {MOST_GROUPS:,} workgroups; got {max(counts):,}. Use two dimensions"
            )
        return counts[0], counts[1], counts[2]

    def __repr__(self) -> str:
        bound = ", ".join(f"{label}: {element}" for label, element, _ in self.buffers)
        return f"<Kernel {self.name}({bound})>"
