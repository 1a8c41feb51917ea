"""Launchers that read and add by index: gather, scatter_add and what they carry."""

import numpy as np

from .elementwise import WORKGROUP, pack_head, pack_tail
from .layout import broadcast_strides, coalesce, dim_words, workgroups
from .movement import copy
from .reduce import Fold
from .shaders import WGSL_TYPES

SMALL = 4096

smallest = Fold("min")
largest = Fold("max")


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
    y = gpu.empty(shape, x.dtype)
    if y.size:
        sizes, *walks = coalesce(shape, index_strides, x_strides)
        head = pack_head("u32", (index.offset, x.offset, 0, 0), (0, 0, 0, 0))
        params = head + pack_tail(y.size, sizes, walks, (step & 0xFFFFFFFF, 0))
        kernel = gpu.kernel("gather", ("params",), E=WGSL_TYPES[x.dtype][1])
        gpu.run(kernel, (index, x, y), params, workgroups(-(-y.size // WORKGROUP)))
    return y


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
        along = [0] * x.ndim
        along[axis] = index.strides[0]
        return queue_gather(x, index, shape, along, walk, x.strides[axis])


class Take:
    """`Take()(x, index)`: elements of a 1-D x by an index of any shape."""

    def __call__(self, x, index):
        nowhere = (0,) * index.ndim
        return queue_gather(x, index, index.shape, index.strides, nowhere, x.strides[0])


class ScatterAdd:
    """`ScatterAdd()(x, index, src, axis)`: torch.scatter_add, repeatable to the bit."""

    def __call__(self, x, index, src, axis):
        if not index.size:
            return copy(x)
        gpu = x.gpu
        y = gpu.empty(x.shape, x.dtype)
        if not y.size:
            return y
        walks = [
            [0 if d == axis and a is not x else s for d, s in enumerate(a.strides)]
            for a in (x, index, src)
        ]
        words = [x.offset, index.offset, src.offset, 0]
        words += [y.size, x.ndim, axis, index.shape[axis]]
        words += [index.strides[axis], src.strides[axis], 0, 0]
        words += list(index.shape) + [0] * (8 - x.ndim)
        words += dim_words(x.shape, *walks)
        gpu.run(self.kernel(gpu, x.dtype), (x, index, src, y), words, self.groups(y.size))
        return y

    def groups(self, size):
        """Workgroups for one invocation an element."""
        return workgroups(-(-size // WORKGROUP))

    def kernel(self, gpu, dtype):
        """The kernel for this dtype; uint8 wraps."""
        kind, element = WGSL_TYPES[dtype]
        value = "v & 255u" if dtype == np.uint8 else f"{element}(v)"
        narrow = f"fn narrow(v: T) -> S {{ return {value}; }}\n"
        return gpu.kernel("scatter_add", (), narrow, T=kind, E=element, S=element)


scatter_add = ScatterAdd()


class IndexAdd:
    """`IndexAdd()(x, index, src, axis)`: x with src's rows added where a 1-D index says."""

    def __call__(self, x, index, src, axis):
        along = [0] * x.ndim
        along[axis] = index.strides[0]
        return scatter_add(x, index.view(src.shape, along, index.offset), src, axis)


class PutAdd:
    """`PutAdd()(x, index, src)`: a 1-D x with src's elements added at a flat index."""

    def __call__(self, x, index, src):
        walk = broadcast_strides(src.shape, src.strides, index.shape)
        src = src.view(index.shape, walk, src.offset)
        return scatter_add(x, flat(index), flat(src), 0)


def flat(a):
    """A 1-D view, of a copy where the strides do not merge."""
    sizes, strides = coalesce(a.shape, a.strides)
    if len(sizes) > 1:
        a = copy(a)
        strides = [1]
    return a.view((a.size,), strides or [1], a.offset)
