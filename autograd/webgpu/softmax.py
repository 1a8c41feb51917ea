"""Launchers of softmax and log_softmax over one axis, and their fused backwards."""

from struct import Struct

from .elementwise import TYPE_LIBS, Binary, Unary, pack_head, pack_tail
from .layout import Plans, coalesce, workgroups
from .pieces import rows, too_large
from .reduce import Fold
from .rows import LONGEST_ROW, lanes_of, row_lib

OFFSETS = Struct("<4I")

sub, mul, div = Binary("sub"), Binary("mul"), Binary("div")
exp, log = Unary("exp"), Unary("log")
highest, total = Fold("max"), Fold("sum")


def long_softmax(name, x, axis):
    """Rows too long for one workgroup: the same in five dispatches or more."""
    x = sub(x, highest(x, (axis,), True))
    e = exp(x)
    row_sum = total(e, (axis,), True)
    return div(e, row_sum) if name == "softmax" else sub(x, log(row_sum))


def long_backward(name, y, dy, axis):
    """The gradient for such rows."""
    if name == "softmax_backward":
        return mul(y, sub(dy, total(mul(dy, y), (axis,), True)))
    return sub(dy, mul(exp(y), total(dy, (axis,), True)))


def rows_first(array, axis):
    """(shape, strides) of the rows, and the stride along them."""
    shape = array.shape[:axis] + array.shape[axis + 1 :]
    strides = array.strides[:axis] + array.strides[axis + 1 :]
    return shape, strides, array.strides[axis]


class Rows:
    """Base of the launchers below: a row an invocation or a workgroup; the last array is written."""

    main = ""

    def __init__(self, name):
        self.name = name
        self.plans = Plans()

    def run(self, arrays, axis):
        """Queue one dispatch over the rows along `axis`."""
        out = arrays[-1]
        if not out.size:
            return out
        key = (*[a.strides for a in arrays], out.shape, arrays[0].dtype, axis, out.gpu)
        plan = self.plans.get(key) or self.plans.keep(key, self.plan(arrays, axis))
        kernel, length, rest, groups = plan
        offsets = [a.offset for a in arrays] + [0] * (3 - len(arrays)) + [length]
        out.gpu.run(kernel, arrays, OFFSETS.pack(*offsets) + rest, groups)
        return out

    def plan(self, arrays, axis):
        """(kernel, row length, parameters after the offsets, workgroups)."""
        out = arrays[-1]
        parts = [rows_first(a, axis) for a in arrays]
        sizes, *walks = coalesce(parts[0][0], *(strides for _, strides, _ in parts))
        steps = [step for _, _, step in parts] + [0] * (4 - len(arrays))
        rows = out.size // out.shape[axis]
        head = pack_head("u32", (0, 0, 0, 0), steps)
        rest = (head + pack_tail(rows, sizes, walks))[OFFSETS.size :]
        step = max(abs(s) for s in steps)
        lib, constants, share = row_lib(lanes_of(out.gpu, out.shape[axis], step=step))
        libs = (*TYPE_LIBS["f32"], "params", self.main, lib)
        kernel = out.gpu.kernel(self.name, libs, constants, **out.gpu.alias_types(arrays[0].dtype))
        return kernel, out.shape[axis], rest, workgroups(-(-rows // share))


class Softmax(Rows):
    """`Softmax("softmax" | "log_softmax")(x, axis)`, any strides, one dispatch."""

    main = "softmax"

    def __call__(self, x, axis):
        if x.shape[axis] > LONGEST_ROW:
            return long_softmax(self.name, x, axis)
        if too_large((x,), x.size):
            return rows(self, (x,), axis, otherwise=lambda: long_softmax(self.name, x, axis))
        gpu = x.gpu
        return gpu.rounded(self.run((x, gpu.empty(x.shape, gpu.written(x.dtype))), axis), x.dtype)


class SoftmaxBackward(Rows):
    """`SoftmaxBackward("softmax_backward" | "log_softmax_backward")(y, dy, axis)`: dx."""

    main = "softmax_backward"

    def __call__(self, y, dy, axis):
        if y.shape[axis] > LONGEST_ROW:
            return long_backward(self.name, y, dy, axis)
        if too_large((y, dy), y.size):
            return rows(self, (y, dy), axis, otherwise=lambda: long_backward(self.name, y, dy, axis))
        gpu = y.gpu
        return gpu.rounded(self.run((y, dy, gpu.empty(y.shape, gpu.written(y.dtype))), axis), y.dtype)
