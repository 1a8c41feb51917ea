"""The launcher of argsort, and the sort of (key, position) that the scatter kernels share: every row at once."""

from struct import Struct

import numpy as np

from .elementwise import TYPE_LIBS, WORKGROUP, Cast, pack_tail
from .layout import coalesce, workgroups
from .pieces import rows, too_large
from .softmax import rows_first

HEAD = Struct("<8I")
cast = Cast()


def sorted_pairs(x, axis, descending=False, types=None):
    """[rows, padded length, 2]: (key, position) of every element of x along an axis, each row in order.

    By a bitonic sort: log2(n) (log2(n) + 1) / 2 dispatches for rows of n, whatever their number. types: what to read x as.
    """
    gpu, length = x.gpu, x.shape[axis]
    padded = 1 << (length - 1).bit_length()
    pairs = gpu.empty((x.size // length, padded, 2), np.int32)
    fill_keys(x, axis, descending, pairs, types or gpu.alias_types(x.dtype))
    kernel, half = gpu.kernel("argsort"), pairs.size // 4
    groups = workgroups(-(-half // WORKGROUP))
    run = 2
    while run <= padded:
        gap = run // 2
        while gap:
            gpu.run(kernel, (pairs,), (half, gap, run, padded), groups)
            gap //= 2
        run *= 2
    return pairs


def fill_keys(x, axis, descending, pairs, types):
    """Queue the dispatch that fills `pairs`."""
    gpu, (rows, padded, _) = x.gpu, pairs.shape
    shape, strides, step = rows_first(x, axis)
    sizes, walk = coalesce(shape, strides)
    libs = (*TYPE_LIBS[types["T"]], "params", f"key_{types['T']}")
    kernel = gpu.kernel("sort_keys", libs, **types)
    head = HEAD.pack(x.offset, 0, 0, x.shape[axis], step & 0xFFFFFFFF, 0, 0, 0)
    tail = pack_tail(rows * padded, sizes, (walk,), (padded, int(descending)))
    gpu.run(kernel, (x, pairs), head + tail, workgroups(-(-rows * padded // WORKGROUP)))


class Argsort:
    """`Argsort("argsort")(x, axis, descending)`: int64 positions of a stable sort; NaN is largest."""

    def __init__(self, name):
        self.name = name

    def __call__(self, x, axis, descending):
        if not x.size:
            return x.gpu.empty(x.shape, np.int64)
        length = x.shape[axis]
        pairs = x.size // length * 2 << (length - 1).bit_length()
        if too_large((x,), pairs):
            return rows(self, (x,), axis, descending, count=pairs)
        return self.positions(sorted_pairs(x, axis, descending), x.shape, axis)

    def positions(self, pairs, shape, axis):
        """The second halves of the pairs, laid out as x is."""
        last = (*shape[:axis], *shape[axis + 1 :], shape[axis])
        strides = [2]
        step = 2 * pairs.shape[1]
        for size in reversed(last[:-1]):
            strides.insert(0, step)
            step *= size
        along = strides.pop()
        strides.insert(axis, along)
        return cast(pairs.view(shape, strides, 1), np.int64)
