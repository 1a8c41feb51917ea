"""Launchers that move elements and fill memory: full, copy_into, cat, pad."""

from struct import Struct

import numpy as np

from ..dtypes import converted
from . import fuse
from .buffers import STORED, Array
from .elementwise import (
    LANES,
    TYPE_LIBS,
    WORKGROUP,
    Cast,
    Copy,
    declare_operand,
    declare_output,
    declare_scalar,
    pack_head,
    pack_tail,
    scalar_word,
)
from .layout import Plans, broadcast_strides, coalesce, element_count, workgroups
from .packed import BFLOAT16
from .shaders import WGSL_TYPES

copy, cast = Copy(), Cast()
into_plans = Plans()
WORD, FLOAT = Struct("<I"), Struct("<f")


def word_of(value, dtype):
    """A number as the 32-bit word that memory repeats."""
    if dtype == np.float16:
        with np.errstate(over="ignore"):
            half = int(np.float16(value).view(np.uint16))
        return half << 16 | half
    if dtype == BFLOAT16:
        half = int(converted(np.asarray(value, np.float32), dtype)["bfloat16"])
        return half << 16 | half
    if dtype == np.float32:
        return WORD.unpack(FLOAT.pack(scalar_word(value, "f32")))[0]
    if dtype == np.bool_:
        return int(bool(value))
    if dtype == np.uint8:
        return int(value) & 255
    if not -(2**31) <= value < 2**31:
        raise OverflowError(
            f"[wgpu] int64 is stored in 32 bits on the GPU and {value} does not fit; "
            "keep this tensor on the CPU."
        )
    return int(value) & 0xFFFFFFFF


def full(shape, value, dtype, gpu):
    """An Array of this shape with every element equal to `value`; it may wait as a constant."""
    shape, dtype = tuple(shape), np.dtype(dtype)
    if fuse.ENABLED and element_count(shape):
        gpu.check(shape, dtype)
        word_of(value, dtype)  # refuses what does not fit
        return fuse.constant(shape, value, dtype, gpu)
    return fill(shape, value, dtype, gpu)


def fill(shape, value, dtype, gpu):
    """An Array of this shape with every element equal to `value`, written now."""
    y = gpu.empty(shape, dtype)
    if y.storage.large:
        copy_into(y, value)
    elif y.size:
        words = -(-y.size * STORED[y.dtype].itemsize // 4)
        params = (-(-words // 4), word_of(value, y.dtype))
        gpu.run(gpu.kernel("fill"), (y,), params, workgroups(-(-words // (4 * WORKGROUP))))
    return y


def copy_into(dst, src):
    """Write `src` (an Array or a number, broadcast) into the memory that `dst` views."""
    if not dst.size:
        return
    gpu = dst.gpu
    scalar = not isinstance(src, Array)
    packs = dst.dtype in gpu.packed
    if not scalar and src.dtype != dst.dtype and (packs or src.dtype in gpu.packed):
        src = cast(src, dst.dtype)
    if not scalar and src.storage is dst.storage:
        src = copy(src)
    gpu.settle(dst.storage)
    dst.storage.bounds = None
    if dst.storage.large or (not scalar and src.storage.large):
        from .large import copy_into

        return copy_into(dst, src)
    if packs:
        return halves_into(dst, src)
    offset = 0 if scalar else src.offset
    even = not (offset | dst.offset | dst.size) & 3
    source = None if scalar else (src.shape, src.strides, src.dtype)
    key = (dst.shape, dst.strides, dst.dtype, source, even, gpu)
    plan = into_plans.get(key) or into_plans.keep(key, into_plan(dst, src, even))
    kernel, kind, tail, groups = plan
    head = pack_head(kind, (offset, dst.offset, 0, 0), (src if scalar else 0, 0, 0, 0))
    gpu.run(kernel, (dst,) if scalar else (src, dst), head + tail, groups)


def halves_into(dst, src):
    """copy_into for elements that share words; an Array `src` has the dtype of `dst`."""
    gpu, scalar = dst.gpu, not isinstance(src, Array)
    source = None if scalar else (src.shape, src.strides)
    even = not dst.offset & 1
    key = (dst.shape, dst.strides, dst.dtype, source, even, gpu)
    plan = into_plans.get(key) or into_plans.keep(key, halves_plan(dst, src, even))
    kernel, tail, groups = plan
    word = word_of(src, dst.dtype) & 0xFFFF if scalar else 0
    head = pack_head("u32", (dst.offset, 0 if scalar else src.offset, 0, 0), (word, 0, 0, 0))
    gpu.run(kernel, (dst,) if scalar else (dst, src), head + tail, groups)


def halves_plan(dst, src, even):
    """(kernel, parameters after the head, workgroups): by whole words where no word has another owner."""
    scalar = not isinstance(src, Array)
    walk = (0,) * dst.ndim if scalar else broadcast_strides(src.shape, src.strides, dst.shape)
    sizes, write, read = coalesce(dst.shape, dst.strides, walk)
    n, step = dst.size, 0
    paired = even and write[-1:] == [1] and not sizes[-1] % 2 and not any(s % 2 for s in write[:-1])
    if paired:
        n, step = n // 2, read[-1]
        sizes[-1], write[-1], read[-1] = sizes[-1] // 2, 2, 2 * step
    text = "fn half_at(i: u32) -> u32 { return p.scalar.x; }\n"
    if not scalar:
        text = "@group(0) @binding(2) var<storage, read> a: array<u32>;\n"
        text += "fn half_at(i: u32) -> u32 { return (a[i / 2u] >> (16u * (i & 1u))) & 0xffffu; }\n"
    kernel = dst.gpu.kernel("copy_pairs" if paired else "copy_halves", ("params",), text)
    tail = pack_tail(n, sizes, (write, read), (step & 0xFFFFFFFF, 0))
    return kernel, tail, workgroups(-(-n // WORKGROUP))


def into_plan(dst, src, even):
    """(kernel, its type, parameters after the head, workgroups) of a copy_into."""
    scalar = not isinstance(src, Array)
    walk = (0,) * dst.ndim if scalar else broadcast_strides(src.shape, src.strides, dst.shape)
    sizes, read, write = coalesce(dst.shape, walk, dst.strides)
    wide = even and write in ([], [1]) and (scalar or read in ([], [1]))
    kernel = into_kernel(dst.gpu, None if scalar else src.dtype, dst.dtype, wide)
    kind = WGSL_TYPES[dst.dtype if scalar else src.dtype][0]
    groups = workgroups(-(-dst.size // (WORKGROUP * (4 if wide else 1))))
    return kernel, kind, pack_tail(dst.size, sizes, (read, write)), groups


def into_kernel(gpu, source, target, wide):
    """The kernel that writes through strides; `source` is None for a number."""
    types = gpu.types[target if source is None else source]
    text = f"alias T = {types[0]};\n"
    if source is None:
        text += declare_scalar("a", types[0], LANES[0], wide)
    else:
        text += declare_operand("a", 1, types, "row" if wide else "one")
    out_types = gpu.types[target]
    binding = 1 if source is None else 2
    text += declare_output(binding, out_types, out_types[0], target, wide)
    libs = (*TYPE_LIBS[types[0]], "params", "into4" if wide else "into")
    return gpu.pipelines.get("copy", libs, text)


def narrow(array, axis, start, length):
    """A view of `length` entries of one axis."""
    shape = array.shape[:axis] + (length,) + array.shape[axis + 1 :]
    return array.view(shape, array.strides, array.offset + start * array.strides[axis])


class Cat:
    """`Cat()(*arrays, axis)`: one after another along an axis; up to seven dense ones in one dispatch, others in one each."""

    most = 7  # with the result they are the eight buffers that WebGPU grants

    def __call__(self, *arrays, axis):
        first = arrays[0]
        total = sum(a.shape[axis] for a in arrays)
        shape = first.shape[:axis] + (total,) + first.shape[axis + 1 :]
        y = first.gpu.empty(shape, first.dtype)
        arrays = [a for a in arrays if a.size]
        large = y.storage.large or any(a.storage.large for a in arrays)
        inner = element_count(shape[axis + 1 :])
        odd = y.dtype in y.gpu.packed and any((a.shape[axis] * inner | a.offset) & 1 for a in arrays)
        if 1 < len(arrays) <= self.most and not large and not odd and all(a.is_contiguous() for a in arrays):
            self.together(arrays, y, inner, axis)
            return y
        start = 0
        for a in arrays:
            copy_into(narrow(y, axis, start, a.shape[axis]), a)
            start += a.shape[axis]
        return y

    def together(self, arrays, y, inner, axis):
        """One dispatch over y."""
        gpu, lengths = y.gpu, [a.shape[axis] * inner for a in arrays]
        unit = 1 if any(n % 4 for n in (*lengths, *(a.offset for a in arrays))) else 4
        element = gpu.types[y.dtype][1]
        word = f"vec4<{element}>" if unit == 4 else element
        if y.dtype in gpu.packed:  # by words, whatever two halves stand for
            word, unit = ("vec2<u32>", 4) if unit == 4 else ("u32", 2)
        text, choices = f"alias V = {word};\n", ""
        start, parts = 0, []
        for k, (a, n) in enumerate(zip(arrays, lengths, strict=True)):
            text += f"@group(0) @binding({k + 1}) var<storage, read> x{k}: array<V>;\n"
            value = f"x{k}[p.parts[{k}].z + row * p.parts[{k}].y + c - p.parts[{k}].x]"
            last = k + 1 == len(arrays)
            choices += f"  return {value};\n" if last else f"  if (c < p.parts[{k + 1}].x) {{ return {value}; }}\n"
            parts += [start // unit, n // unit, a.offset // unit, 0]
            start += n
        text += f"@group(0) @binding({len(arrays) + 1}) var<storage, read_write> y: array<V>;\n"
        text += f"fn taken(row: u32, c: u32) -> V {{\n{choices}}}\n"
        n = y.size // unit
        gpu.run(gpu.kernel("cat", (), text), (*arrays, y), [n, start // unit, 0, 0, *parts], workgroups(-(-n // WORKGROUP)))


class Pad:
    """`Pad()(x, pads, value)`: `pads` holds (before, after) per dimension, negative to crop."""

    def __call__(self, x, pads, value=0):
        shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pads))
        y = full(shape, value, x.dtype, x.gpu)
        inner = y
        for axis, (before, after) in enumerate(pads):
            skip, start = max(-before, 0), max(before, 0)
            length = x.shape[axis] - skip - max(-after, 0)
            x = narrow(x, axis, skip, length)
            inner = narrow(inner, axis, start, length)
        copy_into(inner, x)
        return y
