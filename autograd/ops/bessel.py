"""Modified Bessel functions of the first kind, of order 0 and 1; the primitives are scaled by exp(-|x|)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..blocks import in_pieces
from ..op import Op, public, register, unary
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.launch import Unary
from .rounding import floating, half_in_single
from .special import chebyshev


def _scaled(x: float, order: int) -> float:
    """exp(-x) I_order(x) of x >= 0: the power series, whose terms are positive, or the asymptotic one far out."""
    if x > 60:
        term = total = 1.0
        for k in range(1, 14):
            term *= -(4 * order * order - (2 * k - 1) ** 2) / (k * 8 * x)
            total += term
        return total / math.sqrt(2 * math.pi * x)
    terms, k = [(x / 2) ** order], 0
    while k < 2 or terms[-1] > 1e-18 * terms[0] or k < x:
        k += 1
        terms.append(terms[-1] * x * x / 4 / (k * (k + order)))
    return math.fsum(terms) * math.exp(-x)


@lru_cache(maxsize=2)
def _fitted(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev coefficients on x in [0, 8] (of the function over x^order), and of sqrt(x) times it in 8/x beyond."""
    near = chebyshev(lambda x: _scaled(x, order) / x**order, 0, 8, 30)
    far = chebyshev(lambda inverse: _scaled(1 / inverse, order) / math.sqrt(inverse), 0, 1 / 8, 24)
    return near, far


def _bessel(order: int) -> staticmethod:
    @in_pieces
    def numpy(x: np.ndarray) -> np.ndarray:
        near, far = _fitted(order)
        value = np.polynomial.chebyshev.chebval
        a = np.abs(x.astype(np.float64))
        low, high = np.minimum(a, 8), np.maximum(a, 8)
        y = np.where(a <= 8, value(low / 4 - 1, near) * low**order, value(16 / high - 1, far) / np.sqrt(high))
        return (np.copysign(y, x) if order else y).astype(x.dtype)

    return staticmethod(numpy)


@register
class I0e(Op):
    """y = exp(-|x|) * I0(x)
    dx = dy * (exp(-|x|) * I1(x) - sign(x) * y)
    """

    name = "i0e"
    numpy = _bessel(0)
    wgpu = Unary("i0e")
    saves = ((0,),)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,), (y,) = ctx.saved_inputs(), ctx.saved_outputs()
        return dy * (i1e(x) - x.sign() * y)


@register
class I1e(Op):
    """y = exp(-|x|) * I1(x)
    dx = dy * (exp(-|x|) * I0(x) - y * (sign(x) + 1 / x)), dy / 2 at 0
    """

    name = "i1e"
    numpy = _bessel(1)
    wgpu = Unary("i1e")
    saves = ((0,),)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,), (y,) = ctx.saved_inputs(), ctx.saved_outputs()
        zero = x == 0
        slope = i0e(x) - y * (x.sign() + 1 / x.masked_fill(zero, 1))
        return dy * slope.masked_fill(zero, 0.5)


i0e, i1e = unary(I0e), unary(I1e)


@half_in_single
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of order 0: exp(|x|) * i0e(x)."""
    x = floating(x, "i0")
    root = (x.abs() * 0.5).exp()  # exp(|x|) is infinite before I0(x) is
    return root * i0e(x) * root


@half_in_single
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of order 1: exp(|x|) * i1e(x)."""
    x = floating(x, "i1")
    root = (x.abs() * 0.5).exp()
    return root * i1e(x) * root


public(i0)
