"""Kernels over many arrays at once: the gradients of a model are clipped in a handful of dispatches."""

from struct import Struct

import numpy as np

from .large import stretches
from .layout import pack_words, workgroups

ARRAYS = 7  # of one dispatch: with one more buffer they are the eight that WebGPU grants
SHARE = 256  # elements an invocation walks
MOST = 4096  # invocations of a dispatch
JOINED = 256  # parts that an invocation joins
LIMIT = Struct("<If")
F32 = np.dtype(np.float32)


def fits(arrays):
    """Whether all are dense float32 arrays."""
    return all(a.dtype == F32 and a.is_contiguous() for a in arrays)


def split(arrays, written=False):
    """The arrays in groups of one dispatch, each with its number of invocations; written ones share no buffer there."""
    groups, beside = [[]], set()
    for a in arrays:
        ident = a.storage.buffer.id
        if len(groups[-1]) == ARRAYS or (written and ident in beside):
            groups.append([])
            beside.clear()
        groups[-1].append(a)
        beside.add(ident)
    return [(g, min(-(-max(a.size for a in g) // SHARE), MOST)) for g in groups]


def spans(group):
    """The table of sizes and starts."""
    return [word for a in group for word in (a.size, a.offset, 0, 0)]


def loops(group, access, first, body):
    """WGSL that declares the arrays and visits each one's elements, `count` apart."""
    declared = "".join(
        f"@group(0) @binding({first + k}) var<storage, {access}> x{k}: array<f32>;\n" for k in range(len(group))
    )
    visits = "".join(
        f"  for (var i = me; i < p.spans[{k}].x; i += p.count) {{ {body.format(f'x{k}[p.spans[{k}].y + i]')} }}\n"
        for k in range(len(group))
    )
    return declared, visits


def clip(arrays, limit):
    """Scale dense float32 arrays in place by min(1, limit / (norm + 1e-6)); an Array of (norm, factor)."""
    gpu = arrays[0].gpu
    for a in arrays:
        gpu.settle(a.storage)
    arrays = [piece for a in arrays for (piece,) in stretches([a])]
    groups = split(arrays)
    total = sum(count for _, count in groups)
    parts, result = gpu.empty((total, 2), F32), gpu.empty((2,), F32)
    first = 0
    for group, count in groups:
        declared, visits = loops(group, "read", 2, "part = enter(part, {});")
        walk = f"fn walk(me: u32) -> vec2<f32> {{\n  var part = vec2<f32>();\n{visits}  return part;\n}}\n"
        out = "@group(0) @binding(1) var<storage, read_write> y: array<vec2<f32>>;\n"
        kernel = gpu.kernel("length_parts", ("math",), out + declared + walk)
        gpu.run(kernel, (parts, *group), [count, first, 0, 0, *spans(group)], workgroups(-(-count // 64)))
        first += count
    while total > JOINED:
        joined = gpu.empty((-(-total // JOINED), 2), F32)
        gpu.run(gpu.kernel("length_join", ("math",)), (parts, joined), [total], workgroups(-(-joined.shape[0] // 64)))
        parts, total = joined, joined.shape[0]
    gpu.run(gpu.kernel("length", ("math", "f32"), T="f32"), (parts, result), LIMIT.pack(total, limit), 1)
    for group, count in split(arrays, written=True):
        declared, visits = loops(group, "read_write", 2, "{} *= factor;")
        walk = f"fn walk(me: u32, factor: f32) {{\n{visits}}}\n"
        kernel = gpu.kernel("scale_all", (), declared + walk)
        words = pack_words([count, 1, 0, 0, *spans(group)])
        gpu.run(kernel, (result, *group), words, workgroups(-(-count // 64)))
        for a in group:
            a.storage.bounds = None
    return result
