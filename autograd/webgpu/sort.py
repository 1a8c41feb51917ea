"""The launcher of argsort, and the sort of (key, position) that the scatter kernels share: every row at once."""

from struct import Struct

import numpy as np

from .elementwise import TYPE_LIBS, WORKGROUP, Cast, pack_tail
from .large import window
from .layout import coalesce, workgroups
from .movement import narrow
from .pieces import along, each, over, rows, shown, too_large
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
    sort_runs(pairs, 2, padded)
    return pairs


def sort_runs(pairs, run, last):
    """Sort every `last` of the pairs, of which each run / 2 are in order."""
    gpu, half = pairs.gpu, pairs.size // 4
    kernel, groups = gpu.kernel("argsort"), workgroups(-(-half // WORKGROUP))
    while run <= last:
        gap, mask = run // 2, run - 1
        while gap:
            gpu.run(kernel, (pairs,), (half, gap, mask, 0), groups)
            gap = mask = gap // 2
        run *= 2


def long_pairs(x, descending):
    """sorted_pairs of a vector whose pairs no kernel sees at once: [rows, 2].

    Blocks of half a binding are sorted two by two, neighbours in turns, until the smallest have come all the way: a sorting
    network for numbers sorts blocks too. Source: Knuth, The Art of Computer Programming 3, 5.3.4, odd-even transposition.
    """
    gpu = x.gpu
    block = 1 << (gpu.pool.max_binding // 16).bit_length() - 1
    blocks = -(-x.size // block)
    pairs = gpu.empty((blocks * block, 2), np.int32)
    for i in range(blocks):
        some = shown(along(x, 0, i * block, min(block, x.size - i * block)))
        fill_keys(some, 0, descending, window(narrow(pairs, 0, i * block, block)), gpu.alias_types(x.dtype), i * block)
    for turn in range(blocks):
        for i in range(turn % 2, blocks, 2):
            two = window(narrow(pairs, 0, i * block, min(2, blocks - i) * block))
            sort_runs(two, 2 * block if turn else 2, two.shape[0])
    return pairs


def fill_keys(x, axis, descending, pairs, types, start=0):
    """Queue the dispatch that fills `pairs`, in rows of equal lengths; positions count from `start`."""
    gpu, rows = x.gpu, x.size // x.shape[axis]
    padded = pairs.size // 2 // rows
    shape, strides, step = rows_first(x, axis)
    sizes, walk = coalesce(shape, strides)
    libs = (*TYPE_LIBS[types["T"]], "params", f"key_{types['T']}")
    kernel = gpu.kernel("sort_keys", libs, **types)
    head = HEAD.pack(x.offset, 0, 0, x.shape[axis], step & 0xFFFFFFFF, start, 0, 0)
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
            return rows(self, (x,), axis, descending, count=pairs, otherwise=lambda: self.of_long(x, axis, descending))
        return self.positions(sorted_pairs(x, axis, descending), x.shape, axis)

    def of_long(self, x, axis, descending):
        """The same of rows that no kernel sees: one after the other."""
        if x.size > x.shape[axis]:
            return each(lambda row: self(row, axis, descending), x, axis, x.gpu.empty(x.shape, np.int64))
        pairs = long_pairs(over(x, (x.size,), (x.strides[axis],)), descending)
        return cast(narrow(pairs, 0, 0, x.size).view(x.shape, [2] * x.ndim, 1), np.int64)

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
