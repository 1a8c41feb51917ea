"""The cross entropy of class predictions, row by row, without a matrix of log-probabilities.

    y = log(sum over c of exp(x_c)) - (1 - s) x_t - s mean(x),  dx = (softmax(x) - (1 - s) [c = t] - s / C) dy

x [R, C], targets t [R] of whole numbers in 0 … C - 1, label smoothing s -> y [R]. What is kept for the gradient is each
row's maximum and the logarithm of its sum of exponentials less that maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Op, apply, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import cross_entropy as kernels


def _forward(x: np.ndarray, t: np.ndarray, smoothing: float) -> tuple:
    top = np.maximum.reduce(x, 1)
    d = x - top[:, None]
    level = np.log(np.add.reduce(np.exp(d), 1))
    y = level - (1 - smoothing) * d[np.arange(len(x)), t]
    if smoothing:
        y -= smoothing * (np.add.reduce(d, 1) / x.shape[1])
    stats = np.empty((len(x), 2), x.dtype)
    stats[:, 0], stats[:, 1] = top, level
    return y.astype(x.dtype, copy=False), stats


def _backward(dy: np.ndarray, x: np.ndarray, t: np.ndarray, stats: np.ndarray, smoothing: float) -> np.ndarray:
    dx = x - stats[:, :1]
    dx -= stats[:, 1:]
    np.exp(dx, out=dx)
    if smoothing:
        dx -= smoothing / x.shape[1]
    dx[np.arange(len(x)), t] -= 1 - smoothing
    dx *= dy[:, None]
    return dx


@register
class CrossEntropy(Op):
    """y = log(sum(exp(x))) - (1 - s) x[t] - s mean(x) of rows, and the maximum and level of each
    dx = (softmax(x) - (1 - s) onehot(t) - s / C) * dy
    """

    numpy = staticmethod(_forward)
    wgpu = kernels.CrossEntropy()
    saves = ((0,), (0,))
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dy: Tensor, dstats: Any) -> tuple:
        (x, t), s = ctx.saved_inputs(), ctx.attrs["smoothing"]
        wanted = x.detach().zeros_like().scatter(1, t.unsqueeze(1), 1 - s) + s / x.shape[1]
        return (x.softmax(1) - wanted) * dy.unsqueeze(1), None

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor, dstats: Any) -> tuple:
        (x, t), stats = ctx.saved_inputs(), ctx.saved_outputs()[1]
        return apply(CrossEntropyBackward, dy, x, t, stats, **ctx.attrs), None


class CrossEntropyBackward(Op):
    """The gradient of CrossEntropy as a kernel: the same numbers as its formula, without a graph."""

    name = "cross_entropy_backward"
    numpy = staticmethod(_backward)
    wgpu = kernels.CrossEntropyBackward()
    differentiable = False


def of_rows(x: Tensor, t: Tensor, smoothing: float) -> Tensor:
    """y for x [R, C] or [C] and checked targets [R] or []."""
    if x.ndim == 2:
        return apply(CrossEntropy, x, t, smoothing=float(smoothing))[0]
    shape = t.shape
    return apply(CrossEntropy, x.reshape(-1, x.shape[-1]), t.reshape(-1), smoothing=float(smoothing))[0].reshape(*shape)
