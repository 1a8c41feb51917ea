"""Losses of real-valued predictions."""

from __future__ import annotations

import math
from typing import Any

from ...op import public
from ...shapes import broadcast
from ...tensor import Tensor
from .common import check_reduction, reduced, same_shape


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)^2, reduced. ValueError for unequal shapes, which PyTorch would broadcast."""
    same_shape(input, target, "mse_loss")
    check_reduction(reduction, "mse_loss")
    d = input - target
    return reduced(d * d, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|, reduced. ValueError for unequal shapes."""
    same_shape(input, target, "l1_loss")
    check_reduction(reduction, "l1_loss")
    return reduced((input - target).abs(), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, of d = input - target, reduced."""
    op = "smooth_l1_loss"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    if beta < 0:
        raise ValueError(f"[{op}] beta must not be negative; got {beta}")
    d = input - target
    return reduced(d.abs() if beta == 0 else _bent(d, beta) / beta, reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """d^2 / 2 where |d| <= delta, else delta * (|d| - delta / 2), of d = input - target, times weight, reduced.

    With a weight the mean divides by the sum of the weights.
    """
    op = "huber_loss"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    if delta <= 0:
        raise ValueError(f"[{op}] delta must be positive; got {delta}")
    loss = _bent(input - target, delta)
    if weight is None:
        return reduced(loss, reduction)
    same_shape(input, weight, op)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


def _bent(d: Tensor, bound: float) -> Tensor:
    """d^2 / 2 where |d| <= bound, from there the lines that continue it.

    Nothing beyond is squared, since the gradient at inf would be NaN; no |d|, whose second derivative at 0 is 0.
    """
    near = d.clamp(-bound, bound)
    return near * (d - near * 0.5)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """(log(v) + (input - target)^2 / v) / 2 with v = max(var, eps), + log(2 pi) / 2 with `full`, reduced.

    var: of input's shape, with one of its sizes 1 or without the last, or one number. Input and target may broadcast.
    """
    op = "gaussian_nll_loss"
    check_reduction(reduction, op)
    broadcast((input.shape, target.shape), op)
    v: Tensor = var if isinstance(var, Tensor) else input.full_like(float(var))
    if isinstance(var, Tensor) and var.shape != input.shape and var.ndim:
        if input.shape[:-1] == var.shape:
            v = var.unsqueeze(-1)
        elif input.ndim != var.ndim or [b for a, b in zip(input.shape, var.shape, strict=True) if a != b] != [1]:
            raise ValueError(f"[{op}] var has input's shape {input.shape}, with one size 1, or without the last; got {var.shape}")
    if bool((v.detach() < 0).any()):
        raise ValueError(f"[{op}] var must not be negative")
    v = v + (v.detach().clamp(min=eps) - v.detach())  # the bound changes the value alone, as in PyTorch
    loss = (v.log() + (input - target) ** 2 / v) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """exp(x) - t * x (or, without log_input, x - t * log(x + eps)), reduced.

    `full` adds Stirling's t * log(t) - t + log(2 pi t) / 2 where t > 1.
    """
    op = "poisson_nll_loss"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        small = target <= 1
        t = target.masked_fill(small, 1)
        stirling = t * t.log() - t + (t * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(small, 0)
    return reduced(loss, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """t * (log(t) - input), 0 where t is 0; with log_target exp(t) * (t - input). input holds log-probabilities.

    reduction: as of the other losses, or "batchmean": the sum divided by the first size.
    """
    op = "kl_div"
    same_shape(input, target, op)
    if reduction != "batchmean":
        check_reduction(reduction, op)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        nothing = target == 0
        loss = (target * target.masked_fill(nothing, 1).log()).masked_fill(nothing, 0) - target * input
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return reduced(loss, reduction)


for _function in (kl_div, poisson_nll_loss):
    public(_function, method=False)
