"""Launchers that read and add by index: gather, scatter_add and what they carry."""

from struct import Struct

import numpy as np

from .elementwise import TYPE_LIBS, WORKGROUP, Binary, Ternary, pack_tail
from .layout import (
    LONGEST_LOOP,
    MAX_RANK,
    Plans,
    coalesce,
    dim_words,
    element_count,
    workgroups,
)
from .movement import copy, copy_into, narrow
from .packed import widened
from .pieces import gathered, once, pairs_of, scattered, too_large
from .reduce import Fold
from .shaders import WGSL_TYPES
from .sort import sorted_pairs

SMALL = 4096
SORT_ABOVE = 1 << 23
OFFSETS = Struct("<4I")
SCALARS = bytes(16)

smallest = Fold("min")
largest = Fold("max")
higher, ge, where = Binary("maximum"), Binary("ge", out="bool"), Ternary("where")
gather_plans = Plans()


def index_bounds(index):
    """(lowest, highest) of a non-empty integer Array; remembered until it is written to."""
    storage = index.storage
    key = (index.shape, index.strides, index.offset)
    known = storage.bounds
    if known is None:
        known = storage.bounds = {}
    if key not in known:
        known[key] = read_bounds(index)
    return known[key]


def read_bounds(index):
    """The bounds by way of a download, of the whole where that is cheap."""
    gpu, index = index.gpu, once(index)
    if index.size <= SMALL:
        values = gpu.download(index)
        return int(values.min()), int(values.max())
    axes = tuple(range(index.ndim))
    low, high = smallest(index, axes), largest(index, axes)
    return int(gpu.download(low)[()]), int(gpu.download(high)[()])


def queue_gather(x, index, shape, index_strides, x_strides, step, length):
    """One dispatch of wgsl/gather.wgsl; `step` is x's stride along the indexed axis, of `length` entries."""
    gpu = x.gpu
    if too_large((x, index), element_count(shape)):
        return gathered(queue_gather, x, index, shape, index_strides, x_strides, step, length)
    y = gpu.empty(shape, gpu.written(x.dtype))
    if y.size:
        key = (shape, index_strides, x_strides, step, x.dtype, gpu)
        plan = gather_plans.get(key)
        if plan is None:
            sizes, *walks = coalesce(shape, index_strides, x_strides)
            rest = SCALARS + pack_tail(y.size, sizes, walks, (step, 0))
            kernel = gpu.kernel("gather", ("params",), E=gpu.types[x.dtype][1])
            groups = workgroups(-(-y.size // WORKGROUP))
            plan = gather_plans.keep(key, (kernel, rest, groups))
        kernel, rest, groups = plan
        head = OFFSETS.pack(index.offset, x.offset, 0, 0)
        gpu.run(kernel, (index, x, y), head + rest, groups)
    return gpu.rounded(y, x.dtype)


class Gather:
    """`Gather()(x, index, axis)`: torch.gather."""

    def __call__(self, x, index, axis):
        walk = (*x.strides[:axis], 0, *x.strides[axis + 1 :])
        return queue_gather(x, index, index.shape, index.strides, walk, x.strides[axis], x.shape[axis])


class IndexSelect:
    """`IndexSelect()(x, index, axis)`: rows of an axis by a 1-D index."""

    def __call__(self, x, index, axis):
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
        walk = (*x.strides[:axis], 0, *x.strides[axis + 1 :])
        along = tuple(index.strides[0] if d == axis else 0 for d in range(x.ndim))
        return queue_gather(x, index, shape, along, walk, x.strides[axis], x.shape[axis])


def adding_kernel(gpu, name, dtype, libs=()):
    """wgsl/<name>.wgsl for this dtype; uint8 wraps."""
    kind, element = WGSL_TYPES[dtype]
    value = "v & 255u" if dtype == np.uint8 else f"{element}(v)"
    narrow = f"fn narrow(v: T) -> S {{ return {value}; }}\n"
    return gpu.kernel(name, libs, narrow, T=kind, E=element, S=element)


def check_rank(x):
    """These kernels walk dimensions one by one."""
    if x.ndim > MAX_RANK:
        raise ValueError(
            f"[scatter_add] at most {MAX_RANK} dimensions on wgpu; got shape {x.shape}. "
            "Merge some with reshape."
        )


def off_axis(strides, axis):
    """The strides with the axis left out."""
    return [0 if d == axis else stride for d, stride in enumerate(strides)]


class ScatterAdd:
    """`ScatterAdd()(x, index, src, axis)`: torch.scatter_add, repeatable to the bit."""

    @widened
    def __call__(self, x, index, src, axis):
        return combine(x, index, src, axis, "scatter_add")


class ScatterReduce:
    """`ScatterReduce()(x, index, src, axis, reduce)`: products and extremes by index."""

    kernels = {"prod": "scatter_prod", "amax": "scatter_amax", "amin": "scatter_amin"}

    @widened
    def __call__(self, x, index, src, axis, reduce):
        return combine(x, index, src, axis, self.kernels[reduce])


def combine(x, index, src, axis, kernel):
    """x joined with src along an index, in as many passes as its length asks for.

    A long index is sorted first: looking through it for every element would be quadratic.
    """
    check_rank(x)
    if not index.size or not x.size:
        return copy(x)
    if too_large((x, index, src), max(x.size, pairs_of(index))):
        return scattered(lambda *arrays: combine(*arrays, kernel), x, index, src, axis)
    one = combine_sorted if x.size * index.shape[axis] >= SORT_ABOVE else combine_part
    for start, count in pieces(index.shape[axis]):
        part = narrow(index, axis, start, count), narrow(src, axis, start, count)
        x = one(x, *part, axis, kernel)
    return x


def combine_part(x, index, src, axis, name):
    """One dispatch; the index is short enough for one invocation to look through."""
    return queue_combine(x, index, index.offset, index.strides, index.shape, src, axis, (name, "scatter"))


def combine_sorted(x, index, src, axis, name):
    """The same by way of (key, position) pairs, a sorted row of them for every row of the index."""
    # A dimension that the index repeats along has one row for all.
    size = [1 if stride == 0 and d != axis else n for d, (n, stride) in enumerate(zip(index.shape, index.strides))]
    index_shape = index.shape
    index = index.view(size, index.strides, index.offset)
    pairs = sorted_pairs(index, axis, types={"T": "u32", "E": "i32"})
    step, strides = pairs.shape[1], [0] * x.ndim
    for d in reversed(range(x.ndim)):
        if d != axis:
            strides[d] = step if size[d] > 1 else 0
            step *= size[d]
    return queue_combine(x, pairs, 0, strides, index_shape, src, axis, (name, "scatter_sorted"))


def queue_combine(x, found, offset, strides, shape, src, axis, names):
    """One dispatch of wgsl/<names[0]>.wgsl over x; `found` is the index, or its sorted pairs."""
    gpu = x.gpu
    y = gpu.empty(x.shape, x.dtype)
    words = [x.offset, offset, src.offset, 0]
    words += [y.size, x.ndim, axis, shape[axis]]
    words += [strides[axis], src.strides[axis], 0, 0]
    words += list(shape) + [0] * (MAX_RANK - x.ndim)
    words += dim_words(x.shape, x.strides, off_axis(strides, axis), off_axis(src.strides, axis))
    kernel = adding_kernel(gpu, names[0], x.dtype, (*TYPE_LIBS[WGSL_TYPES[x.dtype][0]], names[1], "scatter_place"))
    gpu.run(kernel, (x, found, src, y), words, workgroups(-(-y.size // WORKGROUP)))
    return y


class Scatter:
    """`Scatter()(x, index, src, axis)`: torch.scatter; of repeated places the last one wins."""

    @widened
    def __call__(self, x, index, src, axis):
        check_rank(x)
        if not index.size or not x.size:
            return copy(x)
        if too_large((x, index, src), x.size):
            return self.of_large(x, index, src, axis)
        gpu = x.gpu
        last = gpu.full(x.shape, 0, np.dtype(np.int32))
        words = [index.offset, index.size, x.ndim, axis, last.strides[axis], 0, 0, 0]
        words += dim_words(index.shape, index.strides, off_axis(last.strides, axis))
        groups = workgroups(-(-index.size // WORKGROUP))
        gpu.run(gpu.kernel("scatter_last"), (index, last), words, groups)
        y = gpu.empty(x.shape, x.dtype)
        words = [x.offset, src.offset, y.size, x.ndim]
        words += dim_words(x.shape, index.shape, x.strides, src.strides)
        kernel = gpu.kernel("scatter", (), E=WGSL_TYPES[x.dtype][1])
        gpu.run(kernel, (x, src, last, y), words, workgroups(-(-y.size // WORKGROUP)))
        return y

    def of_large(self, x, index, src, axis):
        """The same by way of the last place along the axis that names each element, or -1, and a gather."""
        int32, y = np.dtype(np.int32), copy(x)
        count = x.gpu.upload(np.arange(index.shape[axis], dtype=int32))
        order = count.view(index.shape, [int(d == axis) for d in range(x.ndim)], 0)
        last = combine(x.gpu.full(x.shape, -1, int32), index, order, axis, "scatter_amax")
        sizes = [n if d == axis else m for d, (n, m) in enumerate(zip(x.shape, index.shape))]
        last, inner = (a.view(sizes, a.strides, a.offset) for a in (last, y))
        got = Gather()(src, higher(last, 0), axis)
        copy_into(inner, where(ge(last, 0), got, inner))
        return y


def pieces(length):
    """(start, count) of parts that one invocation may walk: see LONGEST_LOOP."""
    for start in range(0, length, LONGEST_LOOP):
        yield start, min(LONGEST_LOOP, length - start)


class IndexAdd:
    """`IndexAdd()(x, index, src, axis)`: x with src's rows added where a 1-D index says."""

    @widened
    def __call__(self, x, index, src, axis):
        check_rank(x)
        along = [index.strides[0] if d == axis else 0 for d in range(x.ndim)]
        return combine(x, index.view(src.shape, along, index.offset), src, axis, "scatter_add")
