"""Launchers of windows that slide over up to three trailing dimensions: the view, its transpose, and max pooling."""

from __future__ import annotations

from .buffers import Array
from .elementwise import TYPE_LIBS, WORKGROUP
from .layout import LONGEST_LOOP, coalesce, element_count, workgroups
from .movement import copy
from .packed import widened
from .pieces import cut, too_large
from .shaders import WGSL_TYPES

MAX_LEAD = 4
MAX_SLIDING = 3


class Windows:
    """`Windows()(x, count, kernel, stride, dilation)`: a view [.., *count, *kernel], nothing runs."""

    def __call__(self, x: Array, count: tuple, kernel: tuple, stride: tuple, dilation: tuple) -> Array:
        lead = x.ndim - len(kernel)
        steps = x.strides[lead:]
        starts = [n * s for n, s in zip(steps, stride)]
        inner = [n * d for n, d in zip(steps, dilation)]
        return x.view((*x.shape[:lead], *count, *kernel), (*x.strides[:lead], *starts, *inner), x.offset)


class _Sliding:
    """What the two kernels share: the parameters of lib/window.wgsl."""

    name = ""

    def run(self, gpu, arrays, geometry, count_of_outputs, head) -> None:
        """Queue one dispatch, an output an invocation."""
        kind, element = WGSL_TYPES[arrays[0].dtype]
        kernel = gpu.kernel(self.name, (*TYPE_LIBS[kind], "window"), T=kind, E=element)
        words = [*head, *(word for row in geometry for word in row)]
        gpu.run(kernel, arrays, words, workgroups(-(-count_of_outputs // WORKGROUP)))


def _three(values, missing):
    """Up to three numbers, the missing ones in front, as a row of four."""
    return [missing] * (MAX_SLIDING - len(values)) + list(values) + [0]


def _lead(shape, strides):
    """The leading dimensions as rows (size, stride, 0, 0), or None when they are too many."""
    sizes, walk = coalesce(shape, strides)
    if len(sizes) > MAX_LEAD:
        return None
    rows = [[n, s, 0, 0] for n, s in zip(sizes, walk)]
    return [[1, 0, 0, 0]] * (MAX_LEAD - len(rows)) + rows


def _check(op, sliding):
    if sliding > MAX_SLIDING:
        raise ValueError(f"[{op}] windows slide over at most {MAX_SLIDING} dimensions on wgpu; got {sliding}")


class AddWindows(_Sliding):
    """`AddWindows()(x, sizes, stride, dilation)`: every element of the result gathers what falls on it."""

    name = "add_windows"

    @widened
    def __call__(self, x: Array, sizes: tuple, stride: tuple, dilation: tuple) -> Array:
        n = len(sizes)
        _check(self.name, n)
        lead = x.ndim - 2 * n
        most = max(x.size, element_count((*x.shape[:lead], *sizes)))
        if x.size and too_large((x,), most):
            return cut(self.name, lambda x: self(x, sizes, stride, dilation), (x,), range(lead), most)
        y = x.gpu.empty((*x.shape[:lead], *sizes), x.dtype)
        if not y.size:
            return y
        if not x.size:
            return x.gpu.full(y.shape, 0, x.dtype)
        rows = _lead(x.shape[:lead], x.strides[:lead])
        if rows is None:
            x = copy(x)
            rows = _lead(x.shape[:lead], x.strides[:lead])
        count, kernel = x.shape[lead : lead + n], x.shape[lead + n :]
        geometry = [_three(sizes, 1), _three(count, 1), _three(kernel, 1), _three(stride, 1), _three(dilation, 1), _three((), 0)]
        geometry += [_three(x.strides[lead : lead + n], 0), _three(x.strides[lead + n :], 0), *rows]
        self.run(x.gpu, (x, y), geometry, y.size, [y.size, x.offset, 0, 0])
        return y


class MaxPool(_Sliding):
    """`MaxPool("max_pool")(x, count, kernel, stride, dilation, padding)`: (largest, its number in the window)."""

    def __init__(self, name: str):
        self.name = name

    @widened
    def __call__(self, x: Array, count: tuple, kernel: tuple, stride: tuple, dilation: tuple, padding: tuple = ()) -> tuple:
        n = len(kernel)
        _check(self.name, n)
        if element_count(kernel) > LONGEST_LOOP:
            raise ValueError(f"[max_pool] a window holds at most {LONGEST_LOOP} elements on wgpu; got {kernel}")
        lead = x.ndim - n
        most = max(x.size, element_count((*x.shape[:lead], *count)))
        if x.size and too_large((x,), most):
            return cut(self.name, lambda x: self(x, count, kernel, stride, dilation, padding), (x,), range(lead), most)
        rows = _lead(x.shape[:lead], x.strides[:lead])
        if rows is None:
            x = copy(x)
            rows = _lead(x.shape[:lead], x.strides[:lead])
        shape = (*x.shape[:lead], *count)
        y, where = x.gpu.empty(shape, x.dtype), x.gpu.empty(shape, "int64")
        if y.size:
            steps = x.strides[lead:]
            starts, inner = [a * s for a, s in zip(steps, stride)], [a * d for a, d in zip(steps, dilation)]
            geometry = [_three(x.shape[lead:], 1), _three(count, 1), _three(kernel, 1), _three(stride, 1)]
            geometry += [_three(dilation, 1), _three(padding, 0), _three(starts, 0), _three(inner, 0), *rows]
            self.run(x.gpu, (x, y, where), geometry, y.size, [y.size, x.offset, 0, 0])
        return y, where
