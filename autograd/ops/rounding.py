"""Elementwise functions of signs, fractions, exponents and bits, made of the primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from .. import dtypes, shapes
from ..op import apply, promoted, public
from ..tensor import Tensor
from .select import where
from .unary import Round
from .views import broadcast_tensors


def floating(x: Tensor, op: str = "") -> Tensor:
    """x, or x in the default dtype where it holds integers or booleans."""
    tensors(op, x)
    return x if x.dtype.is_floating_point else x.to(dtypes.get_default_dtype())


def tensors(op: str, *given: Any) -> None:
    """TypeError unless all are tensors: some functions take no numbers."""
    for x in given:
        if not isinstance(x, Tensor):
            raise TypeError(f"[{op}] expected a Tensor; got {type(x).__name__}. ag.tensor(...) makes one")


def half_in_single(function: Callable) -> Callable:
    """Decorator of a function of one tensor: 16 bits are computed in float32 and rounded once."""

    @wraps(function)
    def wider(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if isinstance(x, Tensor) and x.dtype.is_floating_point and x.dtype.itemsize == 2:
            return function(x.to(dtypes.float32), *args, **kwargs).to(x.dtype)
        return function(x, *args, **kwargs)

    return wider


def no_bools(x: Tensor, op: str) -> Tensor:
    """x; TypeError where it is a tensor of booleans."""
    if x.dtype is dtypes.bool_:
        raise TypeError(f"[{op}] numbers expected; got {x.dtype}. Convert with .long() or .float() first")
    return x


def pair(a: Any, b: Any, op: str, floats: bool = True) -> tuple[Tensor, Tensor]:
    """Two operands of one dtype (with `floats`: floating point), both tensors."""
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise TypeError(f"[{op}] at least one operand must be a Tensor; got two numbers")
    a, b = promoted(a, b)
    shapes.broadcast([x.shape for x in (a, b) if isinstance(x, Tensor)], op)
    like = a if isinstance(a, Tensor) else b
    a, b = (x if isinstance(x, Tensor) else like.new_full((), x, dtype=like.dtype) for x in (a, b))
    return (floating(a, op), floating(b, op)) if floats else (a, b)


def _limits(x: Tensor) -> Any:
    return dtypes.limits(x.dtype)


def _negative(x: Tensor) -> Tensor:
    """Whether the sign is a minus, that of -0.0 too."""
    return (x < 0) | ((x == 0) & (1 / x < 0)) if x.dtype.is_floating_point else x < 0


def mirrored(x: Tensor) -> Tensor:
    """|x| with the slope 1 at 0: for odd and even functions whose formula knows one side only."""
    return where(x < 0, -x, x)


def positive(x: Tensor) -> Tensor:
    """x itself; booleans are refused."""
    return no_bools(x, "positive")


def conj_physical(x: Tensor) -> Tensor:
    """x: there are no complex tensors here."""
    return x


def clamp_max(x: Tensor, max: Any) -> Tensor:
    """min(x, max), NaN kept; the gradient at the bound is 1."""
    tensors("clamp_max", x)
    return x.clamp(max=max)


def clamp_min(x: Tensor, min: Any) -> Tensor:
    """max(x, min), NaN kept; the gradient at the bound is 1."""
    tensors("clamp_min", x)
    return x.clamp(min=min)


def signbit(x: Tensor) -> Tensor:
    """Whether the sign is a minus, that of -0.0 too (NaN counts as positive)."""
    return _negative(x) if x.dtype is not dtypes.bool_ else x.zeros_like()


def copysign(x: Any, other: Any) -> Tensor:
    """|x| with the sign of `other`, floating point; the gradient at x = 0 is 0."""
    tensors("copysign", x)
    x, other = pair(x, other, "copysign")
    size = x.abs()
    return where(_negative(other), -size, size)


def frac(x: Tensor) -> Tensor:
    """x - trunc(x)"""
    if not x.dtype.is_floating_point:
        raise TypeError(f"[frac] expects floating point; got {x.dtype}")
    return x - x.trunc()


def fmax(x: Any, other: Any) -> Tensor:
    """The larger of the two, a number where one is NaN; a tie's gradient goes to the first."""
    tensors("fmax", x, other)
    x, other = pair(x, other, "fmax", floats=False)
    return where((x >= other) | other.isnan(), x, other)


def fmin(x: Any, other: Any) -> Tensor:
    """The smaller of the two, a number where one is NaN; a tie's gradient goes to the first."""
    tensors("fmin", x, other)
    x, other = pair(x, other, "fmin", floats=False)
    return where((x <= other) | other.isnan(), x, other)


def fmod(x: Any, other: Any) -> Tensor:
    """x - other * trunc(x / other), of the sign of x."""
    tensors("fmod", x)
    x, other = pair(x, other, "fmod", floats=False)
    if x.dtype is dtypes.uint8:
        return x % other
    negative = _negative(x)  # not x < 0: then x = -0.0 would be turned once only, and its gradient be -1
    rest = where(negative, -x, x) % mirrored(other)
    return where(negative, -rest, rest)


def rsub(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """other - alpha * x"""
    tensors("rsub", x)
    return other - (x if alpha == 1 else x * alpha)


def deg2rad(x: Tensor) -> Tensor:
    """x * pi / 180"""
    return floating(x, "deg2rad") * (math.pi / 180)


def rad2deg(x: Tensor) -> Tensor:
    """x * 180 / pi"""
    return floating(x, "rad2deg") * (180 / math.pi)


def round(x: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest number of `decimals` decimals, halves to even; negative decimals round to tens, hundreds, ..."""
    if not x.dtype.is_floating_point:
        if decimals:
            raise TypeError(f"[round] decimals are for floating point; got {x.dtype}")
        return x.clone()
    if not decimals:
        return apply(Round, x)
    scale = 10.0 ** abs(decimals)
    return apply(Round, x * scale) / scale if decimals > 0 else apply(Round, x / scale) * scale


def heaviside(x: Tensor, values: Tensor) -> Tensor:
    """0 where x < 0 (or NaN), `values` where x = 0, 1 above; no gradient. Both of one dtype."""
    tensors("heaviside", x, values)
    if x.dtype is not values.dtype:
        raise TypeError(f"[heaviside] both must have one dtype; got {x.dtype} and {values.dtype}")
    x, values = x.detach(), values.detach()
    return where(x == 0, values, (x > 0).to(x.dtype))


def nan_to_num(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with NaN as `nan` (0) and infinities as `posinf` and `neginf` (the dtype's largest and smallest numbers)."""
    if not x.dtype.is_floating_point:
        return x.clone()
    top = float(_limits(x).max)
    x = x.masked_fill(x.isnan(), nan or 0.0)
    x = x.masked_fill(x == float("inf"), top if posinf is None else posinf)
    return x.masked_fill(x == float("-inf"), -top if neginf is None else neginf)


def isposinf(x: Tensor) -> Tensor:
    """Whether each element is +infinity."""
    return x == float("inf") if x.dtype.is_floating_point else x.zeros_like(dtype=dtypes.bool_)


def isneginf(x: Tensor) -> Tensor:
    """Whether each element is -infinity."""
    return x == float("-inf") if x.dtype.is_floating_point else x.zeros_like(dtype=dtypes.bool_)


def isclose(x: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |x - other| <= atol + rtol * |other|, elementwise; both of one dtype, rtol and atol not negative."""
    tensors("isclose", x, other)
    if x.dtype is not other.dtype:
        raise TypeError(f"[isclose] both must have one dtype; got {x.dtype} and {other.dtype}")
    if rtol < 0 or atol < 0:
        raise ValueError(f"[isclose] rtol and atol must not be negative; got rtol={rtol}, atol={atol}")
    same = x == other
    if x.dtype is dtypes.bool_:
        return same
    a, b = floating(x), floating(other)
    gap = (a - b).abs()
    close = same | ((gap <= b.abs() * rtol + atol) & (gap < float("inf")) & (b.abs() < float("inf")))
    return close | (a.isnan() & b.isnan()) if equal_nan else close


# -- exponents and bits ---------------------------------------------------------------------------------


def frexp(x: Tensor) -> tuple:
    """(mantissa, exponent) with x = mantissa * 2^exponent and 0.5 <= |mantissa| < 1; exponents are int32."""
    tensors("frexp", x)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[frexp] expects floating point; got {x.dtype}")
    size = x.detach().abs()
    plain = (size > 0) & (size < float("inf"))
    size = size.masked_fill(~plain, 0.5)
    e = size.log2().floor() + 1
    m = _scaled(size, -e)
    e = e + (m >= 1).to(x.dtype) - (m < 0.5).to(x.dtype)  # the logarithm may round to the other side of a power
    e = e.masked_fill(~plain, 0)
    return Frexp((_scaled(x, -e), e.to(dtypes.int32)))


class Frexp(tuple):
    """What frexp returns."""

    __slots__ = ()
    mantissa = property(lambda self: self[0])
    exponent = property(lambda self: self[1])


def _scaled(x: Tensor, e: Tensor) -> Tensor:
    """x * 2^e in two steps, because 2^e alone may be out of range. e holds whole numbers."""
    half = (e * 0.5).trunc()
    return x * 2.0**half * 2.0 ** (e - half)


def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """x * 2^other, floating point."""
    tensors("ldexp", x, other)
    x = floating(x, "ldexp")
    return x * 2.0 ** (other if other.dtype.is_floating_point else other.to(x.dtype))


def nextafter(x: Tensor, other: Tensor) -> Tensor:
    """The next number of the dtype from x towards `other`; the gradient to x is dy, 0 where x = other."""
    tensors("nextafter", x, other)
    x, other = pair(x, other.detach(), "nextafter")
    limits, at = _limits(x), x.detach()
    m, e = frexp(at)
    shrinks = (at > 0) != (other > at)  # towards zero: below a power of two the numbers lie twice as close
    e = e.to(x.dtype) - (shrinks & (m.abs() == 0.5)).to(x.dtype)
    step = _scaled(at.ones_like(), (e - limits.nmant - 1).clamp(min=limits.minexp - limits.nmant))
    step = where(at == 0, float(limits.smallest_subnormal), step)
    moved = x + where(other > at, step, -step)
    moved = where((at.abs() == float("inf")) & (at != other), at.sign() * float(limits.max), moved)
    return where(at == other, other, where(at.isnan() | other.isnan(), at + other, moved))


def float_power(x: Any, exponent: Any) -> Tensor:
    """x ^ exponent in float64."""
    if not isinstance(x, Tensor):
        tensors("float_power", exponent)
    x, exponent = (v.to(dtypes.float64) if isinstance(v, Tensor) else float(v) for v in (x, exponent))
    return x**exponent


def _shift_operands(x: Any, other: Any, op: str) -> tuple[Tensor, Tensor]:
    x, other = pair(x, other, op, floats=False)
    if x.dtype.is_floating_point or x.dtype is dtypes.bool_:
        raise TypeError(f"[{op}] works on integers; got {x.dtype}")
    return x, other


def bitwise_left_shift(x: Any, other: Any) -> Tensor:
    """x * 2^other, of integers, wrapping."""
    x, other = _shift_operands(x, other, "bitwise_left_shift")
    return x * 2**other


def bitwise_right_shift(x: Any, other: Any) -> Tensor:
    """floor(x / 2^other), of integers; in two steps, because 2^63 is no int64."""
    x, other = _shift_operands(x, other, "bitwise_right_shift")
    half = other // 2
    return x // 2**half // 2 ** (other - half)


def gcd(x: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, by Euclid's algorithm on all elements at once."""
    tensors("gcd", x, other)
    a, b = _integers(x, other, "gcd")
    while bool((b != 0).any()):
        zero = b == 0
        a, b = where(zero, a, b), where(zero, 0, a % b.masked_fill(zero, 1))
    return a


def lcm(x: Tensor, other: Tensor) -> Tensor:
    """The least common multiple; 0 where one is 0."""
    tensors("lcm", x, other)
    a, b = _integers(x, other, "lcm")
    g = gcd(a, b)
    return (a // g.masked_fill(g == 0, 1) * b).abs()


def _integers(x: Tensor, other: Tensor, op: str) -> tuple[Tensor, Tensor]:
    a, b = pair(x, other, op, floats=False)
    if a.dtype.rank != 1:
        raise TypeError(f"[{op}] works on integers; got {a.dtype}")
    a, b = broadcast_tensors(a, b)
    return (a, b) if a.dtype is dtypes.uint8 else (a.abs(), b.abs())


for _function in (positive, conj_physical, clamp_max, clamp_min, signbit, copysign, frac, fmax, fmin, fmod, deg2rad, rad2deg,
                  heaviside, nan_to_num, isposinf, isneginf, isclose, frexp, ldexp, nextafter, float_power,
                  bitwise_left_shift, bitwise_right_shift, gcd, lcm, round):  # fmt: skip
    public(_function)
public(rsub)
Tensor.__pos__ = positive  # type: ignore[attr-defined, operator]
Tensor.__lshift__ = bitwise_left_shift  # type: ignore[attr-defined, operator]
Tensor.__rshift__ = bitwise_right_shift  # type: ignore[attr-defined, operator]
Tensor.__rlshift__ = lambda other, x: bitwise_left_shift(x, other)  # type: ignore[attr-defined]
Tensor.__rrshift__ = lambda other, x: bitwise_right_shift(x, other)  # type: ignore[attr-defined]
