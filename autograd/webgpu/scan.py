"""Launchers of scans along one axis: linear recurrences and running maxima.

A row is cut into parts that run at once: first what each part does to the value that comes
in, then the same scan over the parts, then every part from the value that reaches it.
"""

from struct import Struct

import numpy as np

from .elementwise import TYPE_LIBS, WORKGROUP, Binary, pack_tail
from .layout import coalesce, workgroups
from .movement import Cat, full, word_of
from .packed import widened
from .pieces import along, halved, rows, too_large
from .shaders import WGSL_TYPES
from .softmax import rows_first

HEAD = Struct("<8I")
FLOAT32 = np.dtype(np.float32)
SHORT, PART = 256, 64
add, mul, higher, cat = Binary("add"), Binary("mul"), Binary("maximum"), Cat()


class Scan:
    """`scan(a, b, axis)`: y[t] = step(y[t - 1], a[t], b[t]), as wgsl/<name>.wgsl says."""

    def __init__(self, name):
        self.name = name

    def of_large(self, a, b, axis):
        """The scan where a kernel does not see all of it: of some rows at a time, or of halves of rows."""
        given = (a, b)[: self.takes]
        first = b if a is None else a
        if first.dtype == np.float16:
            out = self(*[x if x is None else x.gpu.cast(x, FLOAT32) for x in given], axis)
            return out.gpu.rounded(out, first.dtype)
        return rows(self, given, axis, otherwise=lambda: self.of_long(*[halved(x, axis) for x in given], axis))

    def run(self, a, b, axis, start):
        """Queue the scan from `start`, the bits of the value before the first element."""
        gpu, y = a.gpu, a.gpu.empty(a.shape, a.dtype)
        if not y.size:
            return y
        length = a.shape[axis]
        part = length if length <= SHORT else PART if length <= PART * PART else 4 * PART
        parts = -(-length // part)
        carry = b
        if parts > 1:
            kept = FLOAT32 if a.dtype == np.float16 else a.dtype
            totals = [gpu.empty((y.size // length, parts), kept) for _ in "ab"]
            self.dispatch("scan_parts", (a, b), totals, axis, start, part, parts)
            carry = self.run(*totals, 1, start)
        self.dispatch("scan", (a, b, y), (carry,), axis, start, part, parts)
        return y

    def dispatch(self, main, walked, others, axis, start, part, parts):
        """One dispatch over the parts: `walked` by strides, `others` with one element a part."""
        first = walked[0]
        rows = [rows_first(x, axis) for x in walked]
        sizes, *walks = coalesce(rows[0][0], *(strides for _, strides, _ in rows))
        offsets = [x.offset for x in walked] + [0] * (3 - len(walked))
        steps = [step & 0xFFFFFFFF for _, _, step in rows] + [0] * (3 - len(walked))
        length = first.shape[axis]
        count = first.size // length * parts
        head = HEAD.pack(*offsets, length, *steps, start)
        kind, element = WGSL_TYPES[first.dtype]
        libs = (*TYPE_LIBS[kind], "params", main)
        kernel = first.gpu.kernel(self.name, libs, T=kind, E=element, C=kind)
        buffers = (*walked[:2], *others, *walked[2:])
        tail = pack_tail(count, sizes, walks, (part, parts))
        first.gpu.run(kernel, buffers, head + tail, workgroups(-(-count // WORKGROUP)))


class LinearScan(Scan):
    """`LinearScan("linear_scan")(a, b, axis)`: y[t] = a[t] y[t - 1] + b[t].

    Without a the factors are 1; without b the terms are 0 and the value before the first is 1.
    """

    takes = 2

    @widened
    def __call__(self, a, b, axis):
        given = b if a is None else a
        if too_large((a, b), given.size):
            return self.of_large(a, b, axis)
        fixed = full((1,), int(a is None), given.dtype, given.gpu)
        fixed = fixed.view(given.shape, (0,) * given.ndim, 0)
        start = word_of(1, computed(given.dtype)) if b is None else 0
        return self.run(fixed if a is None else a, fixed if b is None else b, axis, start)


    def of_long(self, a, b, axis):
        """Halves of a and of b, one after the other."""
        y, z = self(a[0], b[0], axis), self(a[1], b[1], axis)
        last = along(y, axis, y.shape[axis] - 1, 1)
        if b[1] is None:
            return cat(y, mul(z, last), axis=axis)
        return cat(y, add(z, last if a[1] is None else mul(self(a[1], None, axis), last)), axis=axis)


class RunningMax(Scan):
    """`RunningMax("running_max")(x, axis)`: y[t] = max(x[0], ..., x[t])."""

    takes = 1

    def of_long(self, x, axis):
        """Halves of x, one after the other."""
        y, z = self(x[0], axis), self(x[1], axis)
        return cat(y, higher(z, along(y, axis, y.shape[axis] - 1, 1)), axis=axis)

    @widened
    def __call__(self, x, axis):
        if too_large((x,), x.size):
            return self.of_large(x, None, axis)
        lowest = -np.inf if x.dtype.kind == "f" else -(2**31) if x.dtype.kind == "i" else 0
        return self.run(x, x, axis, word_of(lowest, computed(x.dtype)))


def computed(dtype):
    """The dtype whose bits the kernel computes with."""
    return FLOAT32 if dtype.kind == "f" else dtype
