"""Distances, similarities and products of two sets of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import create, dtypes
from ...op import public
from ...ops.matmul import matmul
from ...shapes import axis_of, broadcast
from ...tensor import Tensor


def p_norm(d: Tensor, p: float, keepdim: bool = False) -> Tensor:
    """(sum |d|^p)^(1/p) along the last dimension, with gradient 0 where it is 0; p = 0 counts what is not 0."""
    if p == 0:
        return (d != 0).to(d.dtype).sum(-1, keepdim) + (d * 0).sum(-1, keepdim)
    a = d.abs()
    if p == math.inf:
        return a.amax(-1, keepdim) if d.shape[-1] else a.sum(-1, keepdim)
    if p == 1:
        return a.sum(-1, keepdim)
    if p == 2:
        powers = d * d  # not of |d|, whose second derivative at 0 is 0
    elif p < 0 or p > 2:
        powers = a**p
    else:
        nothing = a == 0  # powers of 0 have infinite slopes; a 1 takes its place on the way
        powers = (a.masked_fill(nothing, 1) ** p).masked_fill(nothing, 0)
    total = powers.sum(-1, keepdim)
    zero = total == 0
    return (total.masked_fill(zero, 1) ** (1 / p)).masked_fill(zero, 0)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    broadcast((x1.shape, x2.shape), "pairwise_distance")
    return p_norm(x1 - x2 + eps, p, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 · x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim`."""
    shape = broadcast((x1.shape, x2.shape), "cosine_similarity")
    if not (x1.dtype.is_floating_point and x2.dtype.is_floating_point):
        raise TypeError(f"[cosine_similarity] expects floating point; got {x1.dtype} and {x2.dtype}. Convert with .float() first")
    axis = axis_of(dim, len(shape), "cosine_similarity")
    if not shape:
        return cosine_similarity(x1.reshape(1), x2.reshape(1), 0, eps)
    d = dtypes.promote_types(x1.dtype, x2.dtype)
    wide = dtypes.float32 if d in dtypes.SHORT else d  # float16 holds no eps of 1e-8, and no large norm
    a, b = (x.to(wide).expand(*shape) for x in (x1, x2))
    return (_unit(a, axis, eps) * _unit(b, axis, eps)).sum(axis).to(d)


def _unit(x: Tensor, axis: int, eps: float) -> Tensor:
    """x / max(|x|, eps); the bound changes the value alone, the gradient is that of |x|, as in PyTorch."""
    length = x.norm(2, axis, keepdim=True)
    return x / (length + (length.detach().clamp(min=eps) - length.detach()))


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-distances of all pairs of rows i < j of input [N, M], a vector."""
    if input.ndim != 2 or not input.dtype.is_floating_point:
        raise ValueError(f"[pdist] expects a floating point matrix; got {input.dtype} {input.shape}")
    if p < 0:
        raise ValueError(f"[pdist] p must not be negative; got {p}")
    first, second = (create.place(i.astype(np.int64), input.device) for i in np.triu_indices(input.shape[0], 1))
    return p_norm(input.index_select(0, first) - input.index_select(0, second), p)


_COMPUTE_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _COMPUTE_MODES[0]) -> Tensor:
    """The p-distances of the rows of x1 [..., P, M] to those of x2 [..., R, M]: [..., P, R].

    They are computed from differences whatever compute_mode says: products lose half the digits of close rows.
    """
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"[cdist] compute_mode is one of {', '.join(_COMPUTE_MODES)}; got {compute_mode!r}")
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"[cdist] expects [..., P, M] and [..., R, M]; got {x1.shape} and {x2.shape}")
    if p < 0:
        raise ValueError(f"[cdist] p must not be negative; got {p}")
    broadcast((x1.shape[:-2], x2.shape[:-2]), "cdist")
    return p_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[.., o] = sum over i, j of x1[.., i] * weight[o, i, j] * x2[.., j] + bias[o]."""
    op = "bilinear"
    if weight.ndim != 3 or not input1.ndim or input1.shape[:-1] != input2.shape[:-1]:
        got = f"{input1.shape}, {input2.shape} and {weight.shape}"
        raise ValueError(f"[{op}] expects [..., I], [..., J] and weight [O, I, J]; got {got}")
    out, first, second = weight.shape
    if (input1.shape[-1], input2.shape[-1]) != (first, second) or (bias is not None and bias.shape != (out,)):
        got = None if bias is None else bias.shape
        raise ValueError(f"[{op}] weight {weight.shape} does not fit; got {input1.shape}, {input2.shape} and bias {got}")
    left = matmul(input1, weight.permute(1, 0, 2).reshape(first, out * second)).reshape(*input1.shape[:-1], out, second)
    y: Any = (left * input2.unsqueeze(-2)).sum(-1)
    return y if bias is None else y + bias


for _function in (cosine_similarity, pairwise_distance, pdist, cdist, bilinear):
    public(_function, method=False)
