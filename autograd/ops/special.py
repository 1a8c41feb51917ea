"""The error function and its relatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..blocks import in_pieces
from ..op import Op, public, register, unary
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.launch import Unary
from .rounding import floating, half_in_single
from .select import where


def chebyshev(function: Callable[[float], float], low: float, high: float, degree: int) -> np.ndarray:
    """The coefficients of the series that equals a function at the Chebyshev nodes of [low, high], each sum rounded once."""
    n = degree + 1
    angles = [math.pi * (k + 0.5) / n for k in range(n)]
    values = [function((low + high) / 2 + (high - low) / 2 * math.cos(a)) for a in angles]
    sums = [math.fsum(v * math.cos(j * a) for v, a in zip(values, angles, strict=True)) for j in range(n)]
    return np.array([sums[0] / n, *(2 / n * s for s in sums[1:])])


def _far(inverse: float) -> float:
    """erfc(x) * exp(x^2), of 1/x."""
    x = 1 / inverse
    return math.erfc(x) * math.exp(x * x)


@lru_cache(maxsize=1)
def _erf_series() -> tuple[list[float], np.ndarray]:
    """Powers of x^2 for erf(x)/x - 1 up to 1 (Taylor's series), and a Chebyshev series in 1/x for erfc(x)*exp(x^2) on [1, 6]."""
    near = [2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(20)]
    return [near[0] - 1, *near[1:]], chebyshev(_far, 1 / 6, 1, 30)


@lru_cache(maxsize=1)
def _erf_polynomials() -> tuple[list, list]:
    """For float32: of the first series what counts there, and powers of (x - 5/2) for log(erfc(x)) on [1, 4]."""
    far = np.polynomial.Chebyshev(chebyshev(lambda x: math.log(math.erfc(x)), 1, 4, 9), domain=[-1.5, 1.5])
    powers = far.convert(kind=np.polynomial.Polynomial).coef
    return list(map(np.float32, _erf_series()[0][:11])), list(map(np.float32, powers))


def _horner(coefficients: list, x: np.ndarray) -> np.ndarray:
    y = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        y += c
        y *= x
    y += coefficients[0]
    return y


def _erf_single(x: np.ndarray) -> np.ndarray:
    """erf to 2 units in the last place of float32: x + x p(x^2) up to 1, from there 1 - exp(q(x)); 1 from 4."""
    near, far = _erf_polynomials()
    a = np.minimum(np.abs(x), np.float32(4))
    t = np.minimum(a, np.float32(1))
    inner = _horner(near, t * t)
    inner *= t
    inner += t
    t = np.maximum(a, np.float32(1))
    t -= np.float32(2.5)
    outer = np.float32(1) - np.exp(_horner(far, t))
    return np.copysign(np.where(a <= 1, inner, outer), x)


def _erf_double(x: np.ndarray) -> np.ndarray:
    """erf to 4e-16 absolute in float64."""
    near, far = _erf_series()
    a = np.minimum(np.abs(x), 6.0)
    t = np.minimum(a, 1)
    inner = t + t * _horner(near, t * t)
    b = np.maximum(a, 1)
    outer = 1 - np.exp(-b * b) * np.polynomial.chebyshev.chebval((1 / b - 7 / 12) * (12 / 5), far)
    return np.copysign(np.where(a <= 1, inner, outer), x)


@in_pieces
def _erf(x: np.ndarray) -> np.ndarray:
    return _erf_double(x) if x.dtype == np.float64 else _erf_single(x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)


@register
class Erf(Op):
    """y = erf(x)
    dx = dy * 2 / sqrt(pi) * exp(-x^2)
    """

    numpy = staticmethod(_erf)
    wgpu = Unary("erf")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * ((x * x).neg().exp() * (2 / math.sqrt(math.pi)))


@lru_cache(maxsize=1)
def _erfcx_series() -> np.ndarray:
    """Chebyshev coefficients of (1 + x) * erfc(x) * exp(x^2) on x >= 0, in t = (x - 3) / (x + 3)."""
    return chebyshev(_erfcx_node, -1, 1, 50)


def _erfcx_node(t: float) -> float:
    x = 3 * (1 + t) / (1 - t)
    return (1 + x) * _scaled_erfc(x)


def _scaled_erfc(x: float) -> float:
    """erfc(x) * exp(x^2): by math.erfc with the square to twice the digits, far out by the asymptotic series."""
    if x < 8:
        square = x * x
        lost = float(Fraction(x) ** 2 - Fraction(square))
        return math.erfc(x) * math.exp(square) * (1 + lost)
    term = total = 1.0
    for n in range(1, 17):
        term *= -(2 * n - 1) / (2 * x * x)
        total += term
    return total / (x * math.sqrt(math.pi))


@in_pieces
def _erfcx(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    a = np.minimum(np.abs(wide), 1e100)
    y = np.polynomial.chebyshev.chebval((a - 3) / (a + 3), _erfcx_series()) / (1 + a)
    y = np.where(wide < 0, 2 * np.exp(np.minimum(wide, 0) ** 2) - y, y)
    return np.where(np.isnan(wide), wide, np.where(wide == np.inf, 0, y)).astype(x.dtype)


@register
class Erfcx(Op):
    """y = erfc(x) * exp(x^2)
    dx = dy * (2 * x * y - 2 / sqrt(pi))
    """

    numpy = staticmethod(_erfcx)
    wgpu = Unary("erfcx")
    saves = ((0,),)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,), (y,) = ctx.saved_inputs(), ctx.saved_outputs()
        return dy * (x * y * 2 - 2 / math.sqrt(math.pi))


@in_pieces
def _erfinv(x: np.ndarray) -> np.ndarray:
    """An approximation to 2e-3, then two steps of Halley's method: on erf, or on erfc near the ends."""
    wide = x.astype(np.float64)
    a = np.abs(wide)
    log = np.log1p(-a) + np.log1p(a)
    u = 2 / (math.pi * 0.147) + log / 2
    y = np.sqrt(-log / 0.147 / (np.sqrt(u * u - log / 0.147) + u))
    for _ in range(3):
        e = np.exp(y * y)
        f = np.where(a < 0.5, (_erf(y) - a) * e, (1 - a) * e - _erfcx(y))
        d = f * (math.sqrt(math.pi) / 2)
        y = y - d / (1 + y * d)
    return np.copysign(np.where(a == 1, np.inf, y), wide).astype(x.dtype)


@register
class Erfinv(Op):
    """y = the x whose erf is given; infinite at -1 and 1, NaN beyond
    dx = dy * sqrt(pi) / 2 * exp(y^2)
    """

    numpy = staticmethod(_erfinv)
    wgpu = Unary("erfinv")
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy * ((y * y).exp() * (math.sqrt(math.pi) / 2))


erfcx, erfinv = unary(Erfcx), unary(Erfinv)
_NOTHING = 40.0  # erfc is 0 from here on, in float64 too


@half_in_single
def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), to full relative accuracy in the tail: erfcx(x) * exp(-x^2)."""
    x = floating(x, "erfc")
    near = x < 0.5
    tail = x.masked_fill(near, 1).clamp(max=_NOTHING)
    return where(near, 1 - x.erf(), erfcx(tail) * (-tail * tail).exp())


@half_in_single
def ndtr(x: Tensor) -> Tensor:
    """The standard normal distribution function: erfc(-x / sqrt(2)) / 2."""
    return erfc(floating(x, "ndtr") * -math.sqrt(0.5)) * 0.5


@half_in_single
def log_ndtr(x: Tensor) -> Tensor:
    """log(ndtr(x)), also where ndtr(x) is 0."""
    x = floating(x, "log_ndtr")
    low = x < -1
    return where(low, _log_tail(x.masked_fill(~low, -1)), (erfc(x.masked_fill(low, 0) * math.sqrt(0.5)) * -0.5).log1p())


def _log_tail(x: Tensor) -> Tensor:
    """log(ndtr(x)) of x <= 0."""
    return (erfcx(x * -math.sqrt(0.5)) * 0.5).log() - x * x * 0.5


@half_in_single
def ndtri(p: Tensor) -> Tensor:
    """The x whose ndtr is p: -inf at 0, inf at 1, NaN beyond. Below 0.1 by Newton's method on log_ndtr."""
    p = floating(p, "ndtri")
    low = (p > 0) & (p < 0.1)
    tail = p.masked_fill(~low, 0.05).log()
    x = -(tail.detach() * -2).sqrt()  # left of the root, from where Newton's method climbs steadily
    for k in range(6):  # recorded, two steps carry the first three derivatives
        step = (_log_tail(x) - (tail if k > 3 else tail.detach())) * erfcx(x * -math.sqrt(0.5)) * math.sqrt(math.pi / 2)
        x = x - step
    return where(low, x, erfinv(p.masked_fill(low, 0.5) * 2 - 1) * math.sqrt(2))


@half_in_single
def entr(x: Tensor) -> Tensor:
    """-x * log(x): 0 at 0, -inf below."""
    x = floating(x, "entr")
    positive = x > 0
    y = x.masked_fill(~positive, 1)
    y = where(positive, -y * y.log(), 0.0)
    return where(x.isnan(), x, y.masked_fill(x < 0, float("-inf")))


for _function in (unary(Erf), erfc, erfinv):
    public(_function)
