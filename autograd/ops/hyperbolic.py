"""Inverse hyperbolic functions and sums of exponentials, made of the primitives."""

from __future__ import annotations

import math
from typing import Any

from ..op import public
from ..tensor import Tensor
from .rounding import floating, half_in_single, mirrored, pair, tensors
from .select import where

_LARGE = 1e8  # above it 1 + x^2 is x^2, also where float32 could not hold the square


@half_in_single
def acosh(x: Tensor) -> Tensor:
    """log(x + sqrt(x^2 - 1)), accurate near 1; NaN below 1."""
    x = floating(x, "acosh")
    large = x > _LARGE
    t = x.masked_fill(large, 1) - 1
    return where(large, x.masked_fill(~large, 1).log() + math.log(2), (t + t.sqrt() * (t + 2).sqrt()).log1p())


@half_in_single
def asinh(x: Tensor) -> Tensor:
    """log(x + sqrt(x^2 + 1)), odd, accurate near 0."""
    x = floating(x, "asinh")
    a = mirrored(x)
    large = a > _LARGE
    s = a.masked_fill(large, 1)
    near = (s + s * s / (1 + (s * s + 1).sqrt())).log1p()
    y = where(large, a.masked_fill(~large, 1).log() + math.log(2), near)
    return where(x < 0, -y, y)


@half_in_single
def atanh(x: Tensor) -> Tensor:
    """log((1 + x) / (1 - x)) / 2"""
    x = floating(x, "atanh")
    return (x.log1p() - (-x).log1p()) * 0.5


@half_in_single
def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0; near 0 its Taylor series, so that its derivatives hold there too."""
    u = floating(x, "sinc") * math.pi
    near = u.abs() < 0.02
    v, w = u.masked_fill(near, 1), u.masked_fill(~near, 0)
    z = w * w
    return where(near, 1 - z / 6 * (1 - z / 20 * (1 - z / 42)), v.sin() / v)


def logaddexp(x: Tensor, other: Tensor) -> Tensor:
    """log(exp(x) + exp(other)) without overflow; the gradient where both are -inf is 0, as that of logsumexp."""
    tensors("logaddexp", x, other)
    x, other = pair(x, other, "logaddexp")
    first = x >= other
    high, low = where(first, x, other), where(first, other, x)
    high = high.masked_fill(high == float("-inf"), float("-inf"))
    gap = (low - high).masked_fill(high.abs() == float("inf"), float("-inf"))
    return where(x.isnan() | other.isnan(), x + other, high + gap.softplus())


def logaddexp2(x: Tensor, other: Tensor) -> Tensor:
    """log2(2^x + 2^other) without overflow."""
    tensors("logaddexp2", x, other)
    x, other = pair(x, other, "logaddexp2")
    return logaddexp(x * math.log(2), other * math.log(2)) * (1 / math.log(2))


def hypot(x: Tensor, other: Tensor) -> Tensor:
    """sqrt(x^2 + other^2); squares neither overflow nor vanish. The gradient at 0 is 0."""
    tensors("hypot", x, other)
    x, other = pair(x, other, "hypot")
    scale = x.detach().abs().maximum(other.detach().abs())
    scale = scale.masked_fill((scale == 0) | (scale.abs() == float("inf")), 1)
    a, b = x / scale, other / scale
    total = a * a + b * b
    zero = total == 0
    return total.masked_fill(zero, 1).sqrt().masked_fill(zero, 0) * scale


def xlogy(x: Any, other: Any) -> Tensor:
    """x * log(other), 0 where x = 0 (unless other is NaN)."""
    return _times_log(*pair(x, other, "xlogy"), lambda v: v.log(), 1)


def xlog1py(x: Any, other: Any) -> Tensor:
    """x * log(1 + other), 0 where x = 0 (unless other is NaN)."""
    return _times_log(*pair(x, other, "xlog1py"), lambda v: v.log1p(), 0)


def _times_log(x: Tensor, other: Tensor, log: Any, neutral: float) -> Tensor:
    # Where 0 meets an infinite or undefined logarithm, that of `neutral`, 0, takes its place: the gradients are 0 too.
    undefined = (x == 0) & ~(log(other.detach()).abs() < float("inf")) & ~other.isnan()
    return x * log(where(undefined, float(neutral), other))


@half_in_single
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x held in [eps, 1 - eps] where eps is given."""
    x = floating(x, "logit")
    if eps is not None:
        x = x.clamp(eps, 1 - eps)
    return x.log() - (-x).log1p()


for _function in (acosh, asinh, atanh, sinc, logaddexp, logaddexp2, hypot, xlogy, logit):
    public(_function)
for _name in ("acosh", "asinh", "atanh"):
    public(globals()[_name], f"arc{_name[1:]}")
