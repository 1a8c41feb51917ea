"""Launchers that read and add by index: gather, scatter_add and what they carry."""

from struct import Struct

import numpy as np

from .elementwise import TYPE_LIBS, WORKGROUP, pack_tail
from .layout import (
    LONGEST_LOOP,
    MAX_RANK,
    Plans,
    broadcast_strides,
    coalesce,
    dim_words,
    workgroups,
)
from .movement import copy, narrow
from .packed import widened
from .reduce import Fold
from .shaders import WGSL_TYPES

SMALL = 4096
SORT_ABOVE = 1 << 23
OFFSETS = Struct("<4I")
SCALARS = bytes(16)

smallest = Fold("min")
largest = Fold("max")
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
    gpu = index.gpu
    if index.size <= SMALL:
        values = gpu.download(index)
        return int(values.min()), int(values.max())
    axes = tuple(range(index.ndim))
    low, high = smallest(index, axes), largest(index, axes)
    return int(gpu.download(low)[()]), int(gpu.download(high)[()])


def queue_gather(x, index, shape, index_strides, x_strides, step):
    """One dispatch of wgsl/gather.wgsl; `step` is x's stride along the indexed axis."""
    gpu = x.gpu
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
        return queue_gather(x, index, index.shape, index.strides, walk, x.strides[axis])


class IndexSelect:
    """`IndexSelect()(x, index, axis)`: rows of an axis by a 1-D index."""

    def __call__(self, x, index, axis):
        shape = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
        walk = (*x.strides[:axis], 0, *x.strides[axis + 1 :])
        along = tuple(index.strides[0] if d == axis else 0 for d in range(x.ndim))
        return queue_gather(x, index, shape, along, walk, x.strides[axis])


class Take:
    """`Take()(x, index)`: elements of a 1-D x by an index of any shape."""

    def __call__(self, x, index):
        nowhere = (0,) * index.ndim
        return queue_gather(x, index, index.shape, index.strides, nowhere, x.strides[0])


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
    """x joined with src along an index, in as many dispatches as its length asks for."""
    check_rank(x)
    if not index.size or not x.size:
        return copy(x)
    for start, count in pieces(index.shape[axis]):
        part = narrow(index, axis, start, count), narrow(src, axis, start, count)
        x = combine_part(x, *part, axis, kernel)
    return x


def combine_part(x, index, src, axis, name):
    """One dispatch; the index is short enough for one invocation to look through."""
    gpu = x.gpu
    y = gpu.empty(x.shape, x.dtype)
    words = [x.offset, index.offset, src.offset, 0]
    words += [y.size, x.ndim, axis, index.shape[axis]]
    words += [index.strides[axis], src.strides[axis], 0, 0]
    words += list(index.shape) + [0] * (MAX_RANK - x.ndim)
    walks = x.strides, off_axis(index.strides, axis), off_axis(src.strides, axis)
    words += dim_words(x.shape, *walks)
    kernel = adding_kernel(gpu, name, x.dtype, (*TYPE_LIBS[WGSL_TYPES[x.dtype][0]], "scatter"))
    gpu.run(kernel, (x, index, src, y), words, workgroups(-(-y.size // WORKGROUP)))
    return y


class Scatter:
    """`Scatter()(x, index, src, axis)`: torch.scatter; of repeated places the last one wins."""

    @widened
    def __call__(self, x, index, src, axis):
        check_rank(x)
        if not index.size or not x.size:
            return copy(x)
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


scatter_add = ScatterAdd()


def sorted_pairs(index):
    """(value, position) of a 1-D index in order, by a bitonic sort; the rest is padding."""
    gpu = index.gpu
    padded = 1 << (index.size - 1).bit_length()
    pairs = gpu.empty((padded, 2), np.int32)
    words = (index.size, padded, index.offset, index.strides[0])
    gpu.run(gpu.kernel("index_pairs"), (index, pairs), words, workgroups(-(-padded // WORKGROUP)))
    kernel, half = gpu.kernel("sort_pairs"), padded // 2
    groups = workgroups(-(-half // WORKGROUP))
    run = 2
    while run <= padded:
        gap = run // 2
        while gap:
            gpu.run(kernel, (pairs,), (half, gap, run), groups)
            gap //= 2
        run *= 2
    return pairs


def pieces(length):
    """(start, count) of parts that one invocation may walk: see LONGEST_LOOP."""
    for start in range(0, length, LONGEST_LOOP):
        yield start, min(LONGEST_LOOP, length - start)


class IndexAdd:
    """`IndexAdd()(x, index, src, axis)`: x with src's rows added where a 1-D index says.

    A long index is sorted first: looking through it for every element would be quadratic.
    """

    @widened
    def __call__(self, x, index, src, axis):
        check_rank(x)
        if x.size * index.size >= SORT_ABOVE:
            for start, count in pieces(index.size):
                part = narrow(index, 0, start, count), narrow(src, axis, start, count)
                x = self.by_sorting(x, *part, axis)
            return x
        along = [index.strides[0] if d == axis else 0 for d in range(x.ndim)]
        return scatter_add(x, index.view(src.shape, along, index.offset), src, axis)

    def by_sorting(self, x, index, src, axis):
        """The same sum by way of sorted (value, position) pairs."""
        gpu = x.gpu
        pairs = sorted_pairs(index)
        y = gpu.empty(x.shape, x.dtype)
        words = [x.offset, src.offset, y.size, x.ndim, axis, index.size, src.strides[axis], 0]
        words += dim_words(x.shape, x.strides, off_axis(src.strides, axis))
        kernel = adding_kernel(gpu, "index_add", x.dtype)
        gpu.run(kernel, (x, pairs, src, y), words, workgroups(-(-y.size // WORKGROUP)))
        return y


index_add = IndexAdd()


class PutAdd:
    """`PutAdd()(x, index, src)`: a 1-D x with src's elements added at a flat index."""

    @widened
    def __call__(self, x, index, src):
        walk = broadcast_strides(src.shape, src.strides, index.shape)
        src = src.view(index.shape, walk, src.offset)
        return index_add(x, flat(index), flat(src), 0)


def flat(a):
    """A 1-D view, of a copy where the strides do not merge."""
    sizes, strides = coalesce(a.shape, a.strides)
    if len(sizes) > 1:
        a = copy(a)
        strides = [1]
    return a.view((a.size,), strides or [1], a.offset)
