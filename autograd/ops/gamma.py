"""The logarithm of the gamma function and its derivatives."""

from __future__ import annotations

import math

import numpy as np

from ..blocks import in_pieces
from ..op import Op, public, register, unary
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.launch import Unary
from .rounding import floating, half_in_single
from .select import where

# Stirling's series: B_2k / (2k (2k - 1)) of 1/z^(2k - 1), and that of its derivative, -B_2k / (2k) of 1/z^2k.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_SLOPE = tuple(-(2 * k + 1) * c for k, c in enumerate(_STIRLING))
_FAR = 10  # from here on the series above are exact to 1e-16


def _right(x: np.ndarray) -> np.ndarray:
    """log(gamma(x)) of x >= 0.5: the recurrence up to 10, Stirling's series from there."""
    z, product = x.copy(), np.ones_like(x)
    for _ in range(_FAR):
        low = z < _FAR
        product = np.where(low, product * z, product)
        z = z + low
    r = 1 / z
    series = r * np.polynomial.polynomial.polyval(r * r, _STIRLING)
    return (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + series - np.log(product)


@in_pieces
def _lgamma(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    left = wide < 0.5
    y = _right(np.where(left, 1 - wide, wide))
    part = np.abs(wide - np.rint(wide))  # sin(pi x) from here: pi x would have lost the digits
    y = np.where(left, math.log(math.pi) - np.log(np.sin(math.pi * part)) - y, y)
    return np.where(np.isinf(wide), np.inf, y).astype(x.dtype)


@register
class Lgamma(Op):
    """y = log|gamma(x)|
    dx = dy * digamma(x)
    """

    numpy = staticmethod(_lgamma)
    wgpu = Unary("lgamma")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * digamma(x)


@half_in_single
def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma: NaN at the negative integers, -inf at 0.

    z = x + 10: log z - 1/(2z) - sum of c_k / z^2k - sum of 1/(x + k) over k < 10; left of 0.5 by reflection.
    """
    x = floating(x, "digamma")
    left = x < 0.5
    a = where(left, 1 - x, x)
    shift = a.reciprocal()
    for k in range(1, _FAR):
        shift = shift + (a + k).reciprocal()
    z = a + _FAR
    r = z.reciprocal()
    u = r * r
    series = u * _SLOPE[-1]
    for c in reversed(_SLOPE[:-1]):
        series = (series + c) * u
    y = z.log() - r * 0.5 + series - shift
    turn = (x - x.round()) * math.pi
    pole = turn == 0
    at_pole = where(x == 0, -1 / x, float("nan"))  # ∓inf at ±0
    return where(left & pole, at_pole, y - where(left, math.pi / turn.masked_fill(pole, 1).tan(), 0.0))


public(unary(Lgamma))
public(digamma)
