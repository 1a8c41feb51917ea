"""The launcher of argsort: every row along an axis at once, by a bitonic sort of (key, position)."""

from struct import Struct

import numpy as np

from .elementwise import TYPE_LIBS, WORKGROUP, Cast, pack_tail
from .layout import coalesce, workgroups
from .softmax import rows_first

HEAD = Struct("<8I")
cast = Cast()


class Argsort:
    """`Argsort("argsort")(x, axis, descending)`: int64 positions of a stable sort; NaN is largest.

    log2(n) (log2(n) + 1) / 2 dispatches for rows of n, whatever their number.
    """

    def __init__(self, name):
        self.name = name

    def __call__(self, x, axis, descending):
        gpu, length = x.gpu, x.shape[axis]
        if not x.size:
            return gpu.empty(x.shape, np.int64)
        padded = 1 << (length - 1).bit_length()
        pairs = gpu.empty((x.size // length, padded, 2), np.int32)
        self.keys(x, axis, descending, pairs)
        kernel, half = gpu.kernel(self.name), pairs.size // 4
        groups = workgroups(-(-half // WORKGROUP))
        run = 2
        while run <= padded:
            gap = run // 2
            while gap:
                gpu.run(kernel, (pairs,), (half, gap, run, padded), groups)
                gap //= 2
            run *= 2
        return self.positions(pairs, x.shape, axis)

    def keys(self, x, axis, descending, pairs):
        """Queue the dispatch that fills `pairs`."""
        gpu, (rows, padded, _) = x.gpu, pairs.shape
        shape, strides, step = rows_first(x, axis)
        sizes, walk = coalesce(shape, strides)
        types = gpu.alias_types(x.dtype)
        libs = (*TYPE_LIBS[types["T"]], "params", f"key_{types['T']}")
        kernel = gpu.kernel("sort_keys", libs, **types)
        head = HEAD.pack(x.offset, 0, 0, x.shape[axis], step & 0xFFFFFFFF, 0, 0, 0)
        tail = pack_tail(rows * padded, sizes, (walk,), (padded, int(descending)))
        gpu.run(kernel, (x, pairs), head + tail, workgroups(-(-rows * padded // WORKGROUP)))

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
