"""Softmax and its logarithm along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import shapes
from ..op import Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x  # NumPy sums float16 in float16


def _shifted(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """x minus its largest element, and the exponentials of that: nothing overflows."""
    x = _wide(x)
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    d = x - top
    return d, np.exp(d)


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    _, e = _shifted(x, axis)
    e /= e.sum(axis=axis, keepdims=True)
    return e.astype(x.dtype, copy=False)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    d, e = _shifted(x, axis)
    d -= np.log(e.sum(axis=axis, keepdims=True))
    return d.astype(x.dtype, copy=False)


def _softmax_backward(y: np.ndarray, dy: np.ndarray, axis: int) -> np.ndarray:
    a, b = _wide(y), _wide(dy)
    return (a * (b - (b * a).sum(axis=axis, keepdims=True))).astype(y.dtype, copy=False)


def _log_softmax_backward(y: np.ndarray, dy: np.ndarray, axis: int) -> np.ndarray:
    a, b = _wide(y), _wide(dy)
    return (b - np.exp(a) * b.sum(axis=axis, keepdims=True)).astype(y.dtype, copy=False)


class SoftmaxBackward(Op):
    """Softmax's gradient as one kernel: the same numbers as its formula, without a graph."""

    name = "softmax_backward"
    differentiable = False
    numpy = staticmethod(_softmax_backward)
    wgpu = launch.SoftmaxBackward("softmax_backward")


class LogSoftmaxBackward(Op):
    """LogSoftmax's gradient as one kernel: the same numbers as its formula, without a graph."""

    name = "log_softmax_backward"
    differentiable = False
    numpy = staticmethod(_log_softmax_backward)
    wgpu = launch.SoftmaxBackward("log_softmax_backward")


@register
class Softmax(Op):
    """y = exp(x) / sum(exp(x)) along a dimension
    dx = y * (dy - sum(dy * y))
    """

    numpy = staticmethod(_softmax)
    wgpu = launch.Softmax("softmax")
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,), axis = ctx.saved_outputs(), ctx.attrs["axis"]
        return y * (dy - (dy * y).sum(axis, keepdim=True))

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return apply(SoftmaxBackward, y, dy, axis=ctx.attrs["axis"])


@register
class LogSoftmax(Op):
    """y = x - log(sum(exp(x))) along a dimension
    dx = dy - exp(y) * sum(dy)
    """

    numpy = staticmethod(_log_softmax)
    wgpu = launch.Softmax("log_softmax")
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,), axis = ctx.saved_outputs(), ctx.attrs["axis"]
        return dy - y.exp() * dy.sum(axis, keepdim=True)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return apply(LogSoftmaxBackward, y, dy, axis=ctx.attrs["axis"])


def _along(op: type[Op], x: Tensor, dim: int, dtype: Any) -> Tensor:
    x = x if dtype is None else x.to(dtype)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[{op.name}] expects floating point; got {x.dtype}. Convert with .float() first")
    axis = shapes.axis_of(dim, x.ndim, op.name)
    return apply(op, x, axis=axis) if x.ndim else apply(op, x.reshape(1), axis=0).reshape(())


def softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`. A row of only -inf gives NaN, as in PyTorch."""
    return _along(Softmax, x, dim, dtype)


def log_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along `dim`, exact where softmax would round to 0."""
    return _along(LogSoftmax, x, dim, dtype)


public(softmax)
public(log_softmax)
