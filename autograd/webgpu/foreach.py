"""Kernels over many arrays at once: the gradients of a model are clipped in a handful of dispatches."""

from functools import cache
from struct import Struct

from .large import stretches
from .layout import pack_words, workgroups
from .movement import copy, copy_into
from .packed import BFLOAT16, FLOAT16, FLOAT32, PACKED, accessors, elements_of, libs_of, sides

ARRAYS = 7  # of one dispatch: with one more buffer they are the eight that WebGPU grants
SHARE = 256  # elements an invocation walks
MOST = 4096  # invocations of a dispatch
JOINED = 256  # parts that an invocation joins
LIMIT = Struct("<If")


def fits(arrays):
    """Whether all are dense arrays of float32 or 16 bits."""
    return all(a.dtype in (FLOAT32, FLOAT16, BFLOAT16) and a.is_contiguous() for a in arrays)


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
    """The table of what is read: elements, first element."""
    return [word for a in group for word in (a.size, a.offset, 0, 0)]


def spans_written(group):
    """The same of what is written: by fours where elements share words, and how many elements those are."""
    units = [4 if a.dtype in a.gpu.packed else 1 for a in group]
    return [word for a, unit in zip(group, units) for word in (-(-a.size // unit), a.offset // unit, a.size, 0)]


def visits(k, body):
    """WGSL that visits the elements of array k, `count` apart; body names one's place `at`."""
    return f"  for (var i = me; i < p.spans[{k}].x; i += p.count) {{ let at = p.spans[{k}].y + i; {body} }}\n"


@cache
def measuring(elements):
    """WGSL of a dispatch of length_parts.wgsl over arrays of these elements."""
    text = "@group(0) @binding(1) var<storage, read_write> y: array<vec2<f32>>;\n"
    text += "".join(accessors(f"x{k}", k + 2, "read", element, 1) for k, element in enumerate(elements))
    loops = "".join(visits(k, f"part = enter(part, load_x{k}(at));") for k in range(len(elements)))
    return text + f"fn walk(me: u32) -> vec2<f32> {{\n  var part = vec2<f32>();\n{loops}  return part;\n}}\n"


@cache
def scaling(elements):
    """WGSL of a dispatch of scale_all.wgsl over arrays of these elements."""
    text, loops = sides(4), ""
    for k, element in enumerate(elements):
        shared = element in PACKED
        text += accessors(f"x{k}", k + 2, "read_write", element, 4 if shared else 1)
        live = f"inside(i, p.spans[{k}].z)" if shared else "true"
        loops += visits(k, f"store_x{k}(at, load_x{k}(at) * factor, {live});")
    return text + f"fn walk(me: u32, factor: f32) {{\n{loops}}}\n"


def scale(arrays, factor):
    """Multiply arrays in place by the second number of an Array; those whose words another may own by way of copies."""
    gpu = factor.gpu
    work = [copy(a) if a.dtype in gpu.packed and a.offset % 4 else a for a in arrays]
    for group, count in split(work, written=True):
        elements = elements_of(group)
        kernel = gpu.kernel("scale_all", libs_of(elements), scaling(elements))
        words = pack_words([count, 1, 0, 0, *spans_written(group)])
        gpu.run(kernel, (factor, *group), words, workgroups(-(-count // 64)))
    for a, scaled in zip(arrays, work, strict=True):
        a.storage.bounds = None
        if scaled is not a:
            copy_into(a, scaled)


def clip(arrays, limit):
    """Scale dense arrays of float32 or 16 bits in place by min(1, limit / (norm + 1e-6)); an Array of (norm, factor)."""
    gpu = arrays[0].gpu
    for a in arrays:
        gpu.settle(a.storage)
    arrays = [piece for a in arrays for (piece,) in stretches([a])]
    groups = split(arrays)
    total = sum(count for _, count in groups)
    parts, result = gpu.empty((total, 2), FLOAT32), gpu.empty((2,), FLOAT32)
    first = 0
    for group, count in groups:
        elements = elements_of(group)
        kernel = gpu.kernel("length_parts", ("math", *libs_of(elements)), measuring(elements))
        gpu.run(kernel, (parts, *group), [count, first, 0, 0, *spans(group)], workgroups(-(-count // 64)))
        first += count
    while total > JOINED:
        joined = gpu.empty((-(-total // JOINED), 2), FLOAT32)
        gpu.run(gpu.kernel("length_join", ("math",)), (parts, joined), [total], workgroups(-(-joined.shape[0] // 64)))
        parts, total = joined, joined.shape[0]
    gpu.run(gpu.kernel("length", ("math", "f32"), T="f32"), (parts, result), LIMIT.pack(total, limit), 1)
    scale(arrays, result)
    return result
