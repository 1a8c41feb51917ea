"""Elementwise functions of two tensors, with broadcasting and PyTorch's dtype promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..cast import listed
from ..op import Op, binary, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.launch import Binary
from .unary import used


@register
class Add(Op):
    """y = a + b
    da = dy; db = dy
    """

    numpy = staticmethod(np.add)
    wgpu = Binary("add")

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        return dy, dy


@register
class Sub(Op):
    """y = a - b
    da = dy; db = -dy
    """

    numpy = staticmethod(np.subtract)
    wgpu = Binary("sub")

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        return dy, -dy if ctx.needs(1) else None


@register
class Mul(Op):
    """y = a * b
    da = dy * b; db = dy * a
    """

    numpy = staticmethod(np.multiply)
    wgpu = Binary("mul")
    saves = ((1,), (0,))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        return None if b is None else dy * b, None if a is None else dy * a


@register
class Div(Op):
    """y = a / b
    da = dy / b; db = -dy * y / b
    """

    numpy = staticmethod(np.divide)
    wgpu = Binary("div")
    saves = ((1,), (0, 1))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        da = dy / b
        if not isinstance(b, Tensor):
            return da, None
        da = used(dy, da)
        return da, used(dy, -da * (a / b)) if ctx.needs(1) else None


def _power(a: Any, b: Any) -> Any:
    """np.power, which refuses integers to negative powers; here they round to zero, as on a GPU."""
    try:
        return np.power(a, b)
    except ValueError:
        whole = np.power(a, np.maximum(b, 0))
        return np.where(np.less(b, 0), np.where(np.abs(a) == 1, np.power(a, np.bitwise_and(b, 1)), 0), whole).astype(whole.dtype)


@register
class Pow(Op):
    """y = a ^ b
    da = dy * b * a^(b-1), 0 where b = 0; db = dy * y * log(a), 0 where a = 0 <= b
    """

    numpy = staticmethod(_power)
    wgpu = Binary("pow")
    saves = ((0, 1), (0, 1))
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        da = db = None
        if ctx.needs(0):
            da = _pow_base_gradient(dy, a, b)
        if ctx.needs(1):
            (y,) = ctx.saved_outputs()
            log_a = a.log() if isinstance(a, Tensor) else dy.full_like(a).log()
            flat = (b >= 0) & (a == 0) if isinstance(a, Tensor) or a == 0 else None
            db = dy * (y * log_a)
            db = db if flat is None else db.masked_fill(flat, 0)
        return da, db


def _pow_base_gradient(dy: Tensor, a: Any, b: Any) -> Tensor:
    if not isinstance(b, Tensor):
        if b == 0:
            return dy.zeros_like()
        return dy * (a * 2) if b == 2 else used(dy, dy * (a ** (b - 1) * b))
    return used(dy, dy * (b * a ** (b - 1)).masked_fill(b == 0, 0))


class _Extreme(Op):
    """The larger or smaller of two; a tie's gradient is halved."""

    saves = ((0, 1), (0, 1))
    loses: Callable

    @classmethod
    def backward(cls, ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        share = (dy * 0.5).where(a == b, dy)
        da = share.masked_fill(cls.loses(a, b), 0) if ctx.needs(0) else None
        return da, share.masked_fill(cls.loses(b, a), 0) if ctx.needs(1) else None


@register
class Maximum(_Extreme):
    """y = max(a, b), NaN kept
    da = dy where a > b, dy / 2 where a = b; db likewise
    """

    numpy = staticmethod(np.maximum)
    wgpu = Binary("maximum")
    loses = staticmethod(lambda a, b: a < b)


@register
class Minimum(_Extreme):
    """y = min(a, b), NaN kept
    da = dy where a < b, dy / 2 where a = b; db likewise
    """

    numpy = staticmethod(np.minimum)
    wgpu = Binary("minimum")
    loses = staticmethod(lambda a, b: a > b)


@register
class Atan2(Op):
    """y = the angle of the point (b, a)
    da = dy * b / (a^2 + b^2); db = -dy * a / (a^2 + b^2), 0 where both are 0
    """

    numpy = staticmethod(np.arctan2)
    wgpu = Binary("atan2")
    saves = ((0, 1), (0, 1))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        square = a * a + b * b
        scaled = dy / square.masked_fill(square == 0, float("inf"))
        return used(dy, scaled * b), used(dy, -scaled * a)


@register
class Remainder(Op):
    """y = a - b * floor(a / b), of the sign of b
    da = dy; db = -dy * floor(a / b)
    """

    numpy = staticmethod(np.remainder)
    wgpu = Binary("remainder")
    saves = ((1,), (1,))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        return dy, -dy * (a / b).floor() if ctx.needs(1) else None


@register
class FloorDivide(Op):
    """y = floor(a / b)
    da = 0; db = 0
    """

    numpy = staticmethod(np.floor_divide)
    wgpu = Binary("floor_divide")

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        return dy.zeros_like(), dy.zeros_like()


def _comparison(name: str, numpy: Callable, text: str) -> Callable:
    """An op that compares and so has no gradient."""
    doc = f"y = {text}\nno gradient\n"
    body = {"__doc__": doc, "numpy": staticmethod(numpy), "wgpu": Binary(name, out="bool"), "differentiable": False}
    return public(binary(register(type(name.title().replace("_", ""), (Op,), body)), _beyond_bytes), name)


def _beyond_bytes(op: type[Op], a: Any, b: Any) -> tuple:
    """A uint8 beside a number that it does not hold is compared as int32; a short float with the nearest that it holds."""
    for x, other in ((a, b), (b, a)):
        if isinstance(other, float) and getattr(x, "dtype", None) in dtypes.SHORT:
            number = dtypes.nearest(other, x.dtype)
            return (x, number) if x is a else (number, x)
    if isinstance(b, int) and not 0 <= b < 256 and getattr(a, "dtype", None) is dtypes.uint8:
        return a.to(dtypes.int32), b
    if isinstance(a, int) and not 0 <= a < 256 and getattr(b, "dtype", None) is dtypes.uint8:
        return a, b.to(dtypes.int32)
    return a, b


eq = _comparison("eq", np.equal, "a == b")
ne = _comparison("ne", np.not_equal, "a != b")
lt = _comparison("lt", np.less, "a < b")
le = _comparison("le", np.less_equal, "a <= b")
gt = _comparison("gt", np.greater, "a > b")
ge = _comparison("ge", np.greater_equal, "a >= b")


def _bitwise(name: str, numpy: Callable, sign: str) -> Callable:
    """A bitwise op, of integers and booleans."""
    body = {"__doc__": f"y = a {sign} b\nno gradient\n", "numpy": staticmethod(numpy), "wgpu": Binary(name)}
    op = register(type(name.title().replace("_", ""), (Op,), {**body, "differentiable": False}))
    return public(binary(op, _whole_numbers, floats=False), name)


def _whole_numbers(op: type[Op], a: Any, b: Any) -> tuple:
    for x in (a, b):
        if isinstance(x, float) or (isinstance(x, Tensor) and x.dtype.is_floating_point):
            kind = x.dtype if isinstance(x, Tensor) else "a float"
            raise TypeError(f"[{op.name}] works on integers and booleans; got {kind}")
    return a, b


bitwise_and = _bitwise("bitwise_and", np.bitwise_and, "&")
bitwise_or = _bitwise("bitwise_or", np.bitwise_or, "|")
bitwise_xor = _bitwise("bitwise_xor", np.bitwise_xor, "^")


def _floating(op: type[Op], a: Any, b: Any) -> tuple:
    """True division and angles of integers are floating point."""
    if dtypes.result_type(a, b).is_floating_point:
        return a, b
    d = dtypes.get_default_dtype()
    return tuple(x.to(d) if isinstance(x, Tensor) else float(x) for x in (a, b))


def _no_bools(op: type[Op], a: Any, b: Any) -> tuple:
    if dtypes.result_type(a, b) is dtypes.bool_:
        raise TypeError(f"[{op.name}] booleans cannot be subtracted; use ^ or logical_not")
    return a, b


def _numbers(op: type[Op], a: Any, b: Any) -> dtypes.DType:
    """The dtype of a result, which is not bool."""
    d = dtypes.result_type(a, b)
    if d is dtypes.bool_:
        raise TypeError(f"[{op.name}] is a function of numbers; got booleans. Convert with .int() first")
    return d


def _no_zero_divisor(op: type[Op], a: Any, b: Any) -> tuple:
    if not _numbers(op, a, b).is_floating_point:
        zero = not b if not isinstance(b, Tensor) else (b.device.type == "cpu" and not b.array.all())
        if zero:
            raise ZeroDivisionError(f"[{op.name}] an integer cannot be divided by zero")
    return a, b


def _real_power(op: type[Op], a: Any, b: Any) -> tuple:
    if not _numbers(op, a, b).is_floating_point and not isinstance(b, Tensor) and b < 0:
        raise ValueError("[pow] integers to negative integer powers are not integers; convert to floating point first")
    return a, b


def tensors_only(function: Callable, both: bool) -> Callable:
    """ag.<name> as PyTorch has it, which refuses a number in front (both: at all); the Tensor method takes numbers."""

    def strict(input: Tensor, other: Any) -> Tensor:
        if not isinstance(input, Tensor) or (both and not isinstance(other, Tensor)):
            got = f"{type(input).__name__} and {type(other).__name__}"
            raise TypeError(f"[{function.__name__}] expects {'two tensors' if both else 'a Tensor first'}; got {got}")
        return function(input, other)

    strict.__name__, strict.__doc__ = function.__name__, function.__doc__
    return public(strict, method=False)


_add, _sub, mul = binary(Add), binary(Sub, _no_bools), public(binary(Mul))
_div, _pow = binary(Div, _floating), binary(Pow, _real_power)
for _op, _check in ((Maximum, None), (Minimum, None), (Atan2, _floating)):
    tensors_only(public(binary(_op, _check)), both=True)
for _function in (eq, ne, lt, le, gt, ge):
    tensors_only(_function, both=False)
remainder, floor_divide = public(binary(Remainder, _no_zero_divisor)), public(binary(FloorDivide, _no_zero_divisor))


def add(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """y = a + alpha * b"""
    return _add(input, other) if alpha == 1 else _add(input, other * alpha)


def sub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """y = a - alpha * b"""
    return _sub(input, other) if alpha == 1 else _sub(input, other * alpha)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """y = a / b; rounded with rounding_mode "floor" or "trunc"."""
    if rounding_mode is None:
        return _div(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        whole = not dtypes.result_type(input, other).is_floating_point
        y = _div(input, other).trunc()
        return y.to(dtypes.result_type(input, other)) if whole else y
    raise ValueError(f'[div] rounding_mode is None, "floor" or "trunc"; got {rounding_mode!r}')


def pow(input: Any, exponent: Any) -> Tensor:
    """y = a ^ b"""
    return _pow(input, exponent)


for _function, _names in ((add, ("add",)), (pow, ("pow",)), (sub, ("sub", "subtract")), (div, ("div", "divide", "true_divide"))):
    for _name in _names:
        public(_function, _name)
public(mul, "multiply")


def _swapped(function: Callable) -> Callable:
    return lambda a, b: function(b, a)


def operator(function: Callable) -> Callable:
    """The form of a binary function that answers NotImplemented to what it does not know."""
    return function.operator  # type: ignore[attr-defined]


for _name, _function in {
    "add": _add, "sub": _sub, "mul": mul, "truediv": _div, "pow": _pow, "floordiv": floor_divide, "mod": remainder,
    "and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor,
}.items():  # fmt: skip
    _operator = listed(operator(_function), _name)
    setattr(Tensor, f"__{_name}__", _operator)
    setattr(Tensor, f"__r{_name}__", listed(_swapped(_operator), f"r{_name}"))
for _name, _function in {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}.items():
    setattr(Tensor, f"__{_name}__", operator(_function))
