"""Launchers of softmax and log_softmax over one axis, and their fused backwards."""

from .elementwise import TYPE_LIBS, WORKGROUP, pack_head, pack_tail
from .layout import coalesce, workgroups


def rows_first(array, axis):
    """(shape, strides) of the rows, and the stride along them."""
    shape = array.shape[:axis] + array.shape[axis + 1 :]
    strides = array.strides[:axis] + array.strides[axis + 1 :]
    return shape, strides, array.strides[axis]


def queue_rows(name, main, arrays, axis):
    """One dispatch with a row an invocation; the last array is written."""
    gpu, out = arrays[-1].gpu, arrays[-1]
    if not out.size:
        return out
    parts = [rows_first(a, axis) for a in arrays]
    length = out.shape[axis]
    sizes, *walks = coalesce(parts[0][0], *(strides for _, strides, _ in parts))
    offsets = [a.offset for a in arrays] + [0] * (3 - len(arrays)) + [length]
    steps = [step for _, _, step in parts] + [0] * (4 - len(arrays))
    rows = out.size // length
    params = pack_head("u32", offsets, steps) + pack_tail(rows, sizes, walks)
    libs = (*TYPE_LIBS["f32"], "params", main)
    kernel = gpu.kernel(name, libs, **gpu.alias_types(out.dtype))
    gpu.run(kernel, arrays, params, workgroups(-(-rows // WORKGROUP)))
    return out


class Softmax:
    """`Softmax("softmax" | "log_softmax")(x, axis)`, any strides, one dispatch."""

    def __init__(self, name):
        self.name = name

    def __call__(self, x, axis):
        y = x.gpu.empty(x.shape, x.dtype)
        return queue_rows(self.name, "softmax", (x, y), axis)


class SoftmaxBackward:
    """`SoftmaxBackward("softmax_backward" | "log_softmax_backward")(y, dy, axis)`: dx."""

    def __init__(self, name):
        self.name = name

    def __call__(self, y, dy, axis):
        dx = y.gpu.empty(y.shape, y.dtype)
        return queue_rows(self.name, "softmax_backward", (y, dy, dx), axis)
