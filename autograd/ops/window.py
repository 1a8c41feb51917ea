"""Windows that slide over the last dimensions: the view of them, its transpose, and the largest element of each.

Convolutions are a product with the view; transposed convolutions the transpose of a product; pooling a reduction.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from .. import create
from ..op import Op, apply, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch
from .select import Where


def _windows(x: np.ndarray, count: tuple, kernel: tuple, stride: tuple, dilation: tuple) -> np.ndarray:
    lead = x.ndim - len(kernel)
    shape = (*x.shape[:lead], *count, *kernel)
    if not x.size:
        return np.zeros(shape, x.dtype)
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    steps = x.strides[lead:]
    starts = (n * s for n, s in zip(steps, stride, strict=True))
    inner = (n * d for n, d in zip(steps, dilation, strict=True))
    return np.ndarray(shape, x.dtype, x, 0, (*x.strides[:lead], *starts, *inner))


def _parts(kernel: tuple, stride: tuple, dilation: tuple, count: tuple) -> Any:
    """For each place in the window, in order: (the place, the index of what it sees over all windows)."""
    for place in product(*map(range, kernel)):
        spans = (slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in zip(place, dilation, stride, count, strict=True))
        yield place, (..., *spans)


@register
class Windows(Op):
    """y[.., i, k] = x[.., i * stride + k * dilation], a view [.., *count, *kernel] of x [.., *sizes]
    dx = each dy added where it was read
    """

    numpy = staticmethod(_windows)
    wgpu = launch.Windows()
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        _, kernel, stride, dilation = ctx.attrs.values()
        return apply(AddWindows, dy, sizes=ctx.edges[0].shape[-len(kernel) :], stride=stride, dilation=dilation)


def _add_windows(x: np.ndarray, sizes: tuple, stride: tuple, dilation: tuple) -> np.ndarray:
    n = len(sizes)
    lead, count, kernel = x.shape[: x.ndim - 2 * n], x.shape[x.ndim - 2 * n : x.ndim - n], x.shape[x.ndim - n :]
    y = np.zeros((*lead, *sizes), np.float32 if x.dtype == np.float16 else x.dtype)
    if x.size:
        for place, seen in _parts(kernel, stride, dilation, count):
            y[seen] += x[(..., *place)]
    return y.astype(x.dtype, copy=False)


@register
class AddWindows(Op):
    """y[.., j] = the sum of x[.., i, k] over i * stride + k * dilation = j, the transpose of Windows
    dx = the windows of dy
    """

    numpy = staticmethod(_add_windows)
    wgpu = launch.AddWindows()

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        n = len(ctx.attrs["sizes"])
        count, kernel = ctx.edges[0].shape[-2 * n : -n], ctx.edges[0].shape[-n:]
        return windows(dy, count, kernel, ctx.attrs["stride"], ctx.attrs["dilation"])


@lru_cache(maxsize=32)
def _first_inside(count: tuple, kernel: tuple, stride: tuple, dilation: tuple, padding: tuple) -> Any:
    """The first number within each window that is not in the padding in front."""
    flat: Any = np.zeros((), np.int64)
    for c, k, s, d, p in zip(count, kernel, stride, dilation, padding, strict=True):
        within = np.minimum(-(-np.maximum(p - np.arange(c) * s, 0) // d), k - 1)
        flat = flat[..., None] * k + within
    return flat


def _max_pool(x: np.ndarray, count: tuple, kernel: tuple, stride: tuple, dilation: tuple, padding: tuple) -> tuple:
    y: Any = None
    where: Any = None
    for number, (_, seen) in enumerate(_parts(kernel, stride, dilation, count)):
        part = x[seen]
        if y is None:
            y, where = part.copy(), np.zeros(part.shape, np.int64)
            if any(padding):  # it holds the lowest value: it must not win against elements that are as low
                where += _first_inside(count, kernel, stride, dilation, padding)
            continue
        better = ~(part <= y) & (y == y)  # the first NaN stays
        np.copyto(y, part, where=better)
        np.copyto(where, number, where=better)
    return y, where


@register
class MaxPool(Op):
    """y, k = the largest element of each window and its number within the window, the first one of equals
    dx = dy added where the largest was
    """

    numpy = staticmethod(_max_pool)
    wgpu = launch.MaxPool("max_pool")
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dy: Tensor | None, _: Any) -> Tensor | None:
        (_, chosen), (_, kernel, stride, dilation, _) = ctx.saved_outputs(), ctx.attrs.values()
        if dy is None:
            return None
        numbers = create.arange(int(np.prod(kernel)), device=dy.device).reshape(-1, *(1,) * dy.ndim)
        spread = apply(Where, numbers == chosen, dy, 0.0)
        n = len(kernel)
        spread = spread.reshape(*kernel, *dy.shape).permute(*range(n, n + dy.ndim), *range(n))
        return apply(AddWindows, spread, sizes=ctx.edges[0].shape[-n:], stride=stride, dilation=dilation)


def windows(x: Tensor, count: tuple, kernel: tuple, stride: tuple, dilation: tuple) -> Tensor:
    """The view [.., *count, *kernel] of windows over the last dimensions of x; `count` of them along each."""
    return apply(Windows, x, count=tuple(count), kernel=tuple(kernel), stride=tuple(stride), dilation=tuple(dilation))


def add_windows(x: Tensor, sizes: tuple, stride: tuple, dilation: tuple) -> Tensor:
    """The transpose of windows(): x [.., *count, *kernel] added up into [.., *sizes]."""
    return apply(AddWindows, x, sizes=tuple(sizes), stride=tuple(stride), dilation=tuple(dilation))


def max_pool(x: Tensor, count: tuple, kernel: tuple, stride: tuple, dilation: tuple, padding: tuple = ()) -> tuple:
    """(largest element, its int64 number within the window) of each window; `padding` of x in front is never chosen."""
    attrs = {"stride": tuple(stride), "dilation": tuple(dilation), "padding": tuple(padding) or (0,) * len(kernel)}
    return apply(MaxPool, x, count=tuple(count), kernel=tuple(kernel), **attrs)
