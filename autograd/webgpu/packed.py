"""16-bit floating point where WGSL has no type for it: two elements a word, computed in float32.

float16 is stored so on adapters without `shader-f16`, bfloat16 on all. Elementwise kernels write
whole words: an invocation makes four elements (fused_kernel.py). Every other kernel reads the
pairs in place, by the rewriting below, and writes float32; the cast that packs the result waits,
like any elementwise op, and becomes part of the next kernel. Steps of optimizers and clipping, which
write in place, have accessors of their own.
"""

import re
from functools import cache, wraps

import numpy as np

from ..dtypes import bfloat16

FLOAT32 = np.dtype(np.float32)
FLOAT16 = np.dtype(np.float16)
BFLOAT16 = bfloat16.numpy
# Each names a file of wgsl/lib, whose functions begin with its name.
PACKED = ("half2", "bfloat2")
READ = re.compile(r"var<storage, read> (\w+): array<(vec4<)?([EF])>?>;")


def aliases(types):
    """(WGSL text that declares these types, which of E and F are packed and the lib that reads each)."""
    text = "".join(f"alias {alias} = {'f32' if kind in PACKED else kind};\n" for alias, kind in types.items())
    return text, tuple((alias, types[alias]) for alias in "EF" if types.get(alias) in PACKED)


def reading(text, packed):
    """A part of a module whose read-only `array<E>` or `array<F>` are packed: their loads become calls.

    packed: the lib that reads each of the two that is.
    """
    loads = []

    def declare(found):
        name, wide, element = found[1], found[2], packed.get(found[3])
        if element is None:
            return found[0]
        text, result = ("vec2<u32>", "vec4<f32>") if wide else ("u32", "f32")
        value = f"{element}_four({name}[i])" if wide else f"{element}_one({name}[i / 2u], i)"
        loads.append((name, f"fn load_{name}(i: u32) -> {result} {{ return {value}; }}\n"))
        return f"var<storage, read> {name}: array<{text}>;"

    text = READ.sub(declare, text)
    for name, _ in loads:
        text = calling(text, name)
    return text + "".join(function for _, function in loads)


def calling(text, name):
    """`name[index]` as `load_name(index)`, wherever it stands."""
    made, place = [], 0
    for found in re.finditer(rf"\b{name}\[", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        made += [text[place : found.start()], f"load_{name}(", text[found.end() : end - 1], ")"]
        place = end
    return "".join(made) + text[place:]


@cache
def accessors(name, binding, access, element, unit=4):
    """WGSL that declares an array of float32 or 16 bits, with load_<name> and store_<name>: `unit` (4 or 1) elements of float32.

    store writes those of `inside` and keeps the bits of the others, which may be another array's; a packed array is stored
    by fours, for its words to have one writer. Loads of one element may lie anywhere.
    """
    four = unit == 4
    value, flags = ("vec4<f32>", "vec4<bool>") if four else ("f32", "bool")
    if element in PACKED:
        memory = "vec2<u32>" if four else "u32"
        load = f"{element}_four({name}[i])" if four else f"{element}_one({name}[i / 2u], i)"
        store = f"{name}[i] = kept_words({name}[i], {element}_words(v), inside);"
    else:
        memory = f"vec4<{element}>" if four else element
        load = f"{value}({name}[i])"
        store = f"{name}[i] = select({name}[i], {memory}(v), inside);"
    text = f"@group(0) @binding({binding}) var<storage, {access}> {name}: array<{memory}>;\n"
    text += f"fn load_{name}(i: u32) -> {value} {{ return {load}; }}\n"
    if access == "read_write":
        text += f"fn store_{name}(i: u32, v: {value}, inside: {flags}) {{ {store} }}\n"
    return text


@cache
def sides(unit):
    """WGSL of V, what the accessors of `unit` elements pass, and of inside(i, count): which lie before the end."""
    if unit == 1:
        return "alias V = f32;\nfn inside(i: u32, count: u32) -> bool { return i < count; }\n"
    return (
        "alias V = vec4<f32>;\nfn inside(i: u32, count: u32) -> vec4<bool> "
        "{ return vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(count); }\n"
    )


def elements_of(arrays):
    """What each array's elements are in memory."""
    return tuple([a.gpu.types[a.dtype][1] for a in arrays])


def libs_of(elements):
    """The files of wgsl/lib that accessors of these elements call."""
    found = sorted({element for element in elements if element in PACKED})
    return (*found, "kept_words") if found else ()


def is_packed(x):
    """Whether x is an Array whose elements share words on its device."""
    gpu = getattr(x, "gpu", None)
    return gpu is not None and x.dtype in gpu.packed


def widened(call):
    """Decorator of a launcher: packed operands go in as float32, float32 results come out packed."""

    @wraps(call)
    def launch(self, *inputs, **attrs):
        dtype = next((x.dtype for x in inputs if is_packed(x)), None)
        if dtype is None:
            return call(self, *inputs, **attrs)
        out = call(self, *[x.gpu.cast(x, FLOAT32) if is_packed(x) else x for x in inputs], **attrs)
        if isinstance(out, tuple):
            return tuple([y.gpu.rounded(y, dtype) if y.dtype == FLOAT32 else y for y in out])
        return out.gpu.rounded(out, dtype) if out.dtype == FLOAT32 else out

    return launch


def float32_outputs(gpu, kernel, arrays):
    """For a launcher that gives a kernel packed arrays to write: float32 twins of these, and what to copy back.

    The twins hold what was there before, which a kernel may read or leave.
    """
    kept, twins = list(arrays), []
    for i, (array, access) in enumerate(zip(arrays, kernel.layout.access[1:])):
        if access == "w" and array.dtype in gpu.packed:
            size = array.storage.buffer.size // 2
            whole = array if array.is_contiguous() and not array.offset else array.view((size,), (1,), 0)
            kept[i] = gpu.cast(whole, FLOAT32)
            twins.append((whole, kept[i]))
    return kept, twins
