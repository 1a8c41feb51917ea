"""Standardised rows, scaled and shifted: layer_norm, rms_norm, and what group_norm and instance_norm begin with.

    y = (x - m) f * weight + bias,  f = 1 / sqrt(mean((x - m)^2) + eps),  m = mean(x), or 0 with centred=False

x [R, D] -> y [R, D], means over D; weight and bias [D] or None. What is kept for the gradient is (m, f) of each row:
with z = (x - m) f and g = dy * weight,

    dx = f (g - mean(g) - z mean(g z)) (without mean(g) where no mean was taken off);  dweight = sum of dy z;  dbias = sum of dy

Source: Ba, Kiros, Hinton 2016 (layer normalisation); Zhang, Sennrich 2019 (RMSNorm).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grad_mode import enable_grad
from ..op import Op, apply, register
from ..tape import Node, grad
from ..tensor import Tensor
from ..webgpu import norm as kernels
from ..webgpu.rows import fits

NEEDED = (0, 1, 2)


def _forward(x: np.ndarray, w: np.ndarray | None, b: np.ndarray | None, eps: float, centred: bool) -> tuple:
    stats = np.zeros((len(x), 2), x.dtype)
    n = x.shape[1]
    if centred:
        np.divide(np.add.reduce(x, 1), n, out=stats[:, 0])
        y = x - stats[:, :1]
    else:
        y = x.copy()
    stats[:, 1] = 1 / np.sqrt(np.einsum("rd,rd->r", y, y) / n + x.dtype.type(eps))
    y *= stats[:, 1:]
    if w is not None:
        y *= w
    if b is not None:
        y += b
    return y, stats


def _backward(dy: np.ndarray, x: np.ndarray, w: np.ndarray | None, stats: np.ndarray, centred: bool, needs: tuple) -> tuple:
    n = x.shape[1]
    z = (x - stats[:, :1]) * stats[:, 1:]
    dw = np.einsum("rd,rd->d", dy, z) if needs[1] else None
    db = np.add.reduce(dy, 0) if needs[2] else None
    if not needs[0]:
        return None, dw, db
    g = dy if w is None else dy * w
    z *= (np.einsum("rd,rd->r", g, z) / n)[:, None]
    dx = g - z
    if centred:
        dx -= (np.add.reduce(g, 1) / n)[:, None]
    dx *= stats[:, 1:]
    return dx, dw, db


@register
class LayerNorm(Op):
    """y = (x - mean) / sqrt(var + eps) * weight + bias of rows, and the mean and factor of each
    dx, dweight, dbias: see the module; through the composite when a graph of them is wanted
    """

    numpy = staticmethod(_forward)
    wgpu = kernels.LayerNorm()
    saves = (NEEDED, NEEDED, ())
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dy: Tensor, dstats: Any) -> tuple:
        x, w, _ = ctx.saved_inputs()
        with enable_grad():
            # New tensors on the old ones: the gradient is to stop here, not to run on into what they were made of.
            aliases: list[Any] = [None if a is None else a.reshape(*a.shape) for a in (x, w)]
            y = composite(aliases[0], aliases[1], None, **ctx.attrs)
        wanted = [a for a, edge in zip(aliases, ctx.edges) if a is not None and edge is not None]
        found = iter(grad(y, wanted, dy, create_graph=True)) if wanted else iter(())
        return (*(None if edge is None else next(found) for edge in ctx.edges[:2]), None if ctx.edges[2] is None else dy.sum(0))

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor, dstats: Any) -> tuple:
        x, w, _ = ctx.saved_inputs()
        stats = ctx.saved_outputs()[1]
        needs = tuple([edge is not None for edge in ctx.edges])
        if x is None:  # nothing but dbias
            return None, None, dy.sum(0)
        return apply(LayerNormBackward, dy, x, w, stats, centred=ctx.attrs["centred"], needs=needs)


class LayerNormBackward(Op):
    """The gradients of LayerNorm as kernels: the same numbers as its formula, without a graph."""

    name = "layer_norm_backward"
    numpy = staticmethod(_backward)
    wgpu = kernels.LayerNormBackward()
    outputs = 3
    differentiable = False


def composite(x: Tensor, w: Tensor | None, b: Tensor | None, eps: float, centred: bool) -> Tensor:
    """y in Tensor operations, over the last dimension, differentiable any number of times."""
    c = x - x.mean(-1, keepdim=True) if centred else x
    y = c * ((c * c).mean(-1, keepdim=True) + eps).rsqrt()
    y = y if w is None else y * w
    return y if b is None else y + b


def standardised(x: Tensor, n: int, weight: Tensor | None, bias: Tensor | None, eps: float, centred: bool = True) -> Tensor:
    """Over the last n dimensions of x, which weight and bias have: by the op where it has a kernel, else the composite."""
    shape = x.shape
    length = int(np.prod(shape[x.ndim - n :]))
    w, b = (p if p is None or p.ndim == 1 else p.reshape(length) for p in (weight, bias))
    plain = all(p is None or p.dtype is x.dtype for p in (w, b))
    if not x.numel() or not plain or (x.device.type != "cpu" and (not fits(length) or x.array.storage.large)):
        return composite(x.reshape(*shape[: x.ndim - n], length), w, b, eps, centred).reshape(*shape)
    return apply(LayerNorm, x.reshape(-1, length), w, b, eps=eps, centred=centred)[0].reshape(*shape)
