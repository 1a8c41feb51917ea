"""Operations that change a tensor's memory: each is its out-of-place twin, written back with its history."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from ..aliasing import OF_RECORDED, assign
from ..grad_mode import state
from ..op import public
from ..tensor import Tensor
from . import binary, index, scatter, select, unary
from .getitem import fill, index_put, rewrap_for_write


def in_place(function: Callable, name: str, ufunc: Any = None) -> Callable:
    """The in-place form of function(x, ...): x takes its value and its history and is returned.

    ufunc: NumPy's function of the same values, which writes into x at once when nothing is recorded.
    """

    def changed(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if ufunc is not None and not kwargs and _at_once(x, *args):
            state.run(ufunc, x.array, args[0].array, x.array)
            x.version[0] += 1
            return x
        y = function(rewrap_for_write(x), *args, **kwargs)
        if y is NotImplemented:
            return y
        if y.shape != x.shape:
            raise ValueError(f"[{name}] the result must have the tensor's own shape; got {y.shape} for {x.shape}")
        if y.dtype.rank > x.dtype.rank:
            raise TypeError(f"[{name}] a result of {y.dtype} cannot be stored in {x.dtype}")
        value = y.to(x.dtype)
        del y
        fresh = getrefcount(value) <= 2  # our variable and the argument: nobody else has it
        return assign(x, value, name, fresh)

    changed.__name__, changed.__doc__ = name, f"{function.__doc__ or ''}\nIn place: x is changed and returned."
    return changed


def keeping(function: Callable, others: bool = False) -> Callable:
    """function of a copy of x when it is recorded: its gradient needs what x was. others: only that of the others does."""

    def kept(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if others else (x, *args, *kwargs.values())
        recorded = state.enabled and any([isinstance(t, Tensor) and t._requires_grad for t in given])
        return function(x.clone() if recorded else x, *args, **kwargs)

    kept.__doc__ = function.__doc__
    return kept


def _at_once(x: Tensor, y: Any) -> bool:
    """Whether both are plain CPU arrays of one shape and dtype and nothing is recorded."""
    if not isinstance(y, Tensor) or (state.enabled and (x._requires_grad or y._requires_grad or x.views is OF_RECORDED)):
        return False
    a, b = x.array, y.array
    return (
        a.__class__ is np.ndarray and b.__class__ is np.ndarray
        and a.shape == b.shape and a.dtype is b.dtype and a.flags.c_contiguous and a.flags.writeable
        and a.dtype.kind != "V"
    )  # fmt: skip


def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """x = source, broadcast, cast, and moved from its device."""
    if isinstance(source, Tensor) and source.device != x.device:
        source = source.to(x.device)
    return fill(x, source, "copy_")


def fill_(x: Tensor, value: Any) -> Tensor:
    """x = value everywhere."""
    return fill(x, value, "fill_")


def zero_(x: Tensor) -> Tensor:
    """x = 0 everywhere."""
    return fill(x, 0, "zero_")


def addcmul(x: Tensor, a: Any, b: Any, *, value: float = 1) -> Tensor:
    """x + value * a * b"""
    return x + a * b * value if value != 1 else x + a * b


def addcdiv(x: Tensor, a: Any, b: Any, *, value: float = 1) -> Tensor:
    """x + value * a / b"""
    return x + a / b * value if value != 1 else x + a / b


def lerp(x: Tensor, end: Tensor, weight: Any) -> Tensor:
    """x + weight * (end - x), counted from the nearer of the two: a weight of 1 gives `end` exactly."""
    if isinstance(weight, Tensor):
        near = weight.abs() < 0.5
        return select.where(near, x, end) + (end - x) * (weight - near.logical_not().to(weight.dtype))
    return x + (end - x) * weight if abs(weight) < 0.5 else end + (end - x) * (weight - 1)


for _function in (copy_, fill_, zero_, addcmul, addcdiv, lerp):
    public(_function, method=True)
for _function, _ufunc in ((binary.add, np.add), (binary.sub, np.subtract), (binary.mul, np.multiply), (binary.div, np.divide),
                          (binary.pow, None), (binary.remainder, None), (binary.floor_divide, None), (select.masked_fill, None),
                          (select.clamp, None), (addcmul, None), (addcdiv, None), (lerp, None)):  # fmt: skip
    _name = f"{_function.__name__}_"
    if _function in (binary.mul, binary.div, binary.remainder, lerp):
        _function = keeping(_function, others=True)
    elif _function in (binary.pow, select.clamp):
        _function = keeping(_function)
    setattr(Tensor, _name, in_place(_function, _name, _ufunc))
for _function in (index.scatter_add, index.index_add, scatter.scatter, scatter.index_fill, scatter.index_copy, scatter.put,
                  scatter.masked_scatter, index_put):  # fmt: skip
    _name = f"{_function.__name__}_"
    setattr(Tensor, _name, in_place(_function, _name))
for _function in (scatter.scatter_reduce, scatter.index_reduce):
    _name = f"{_function.__name__}_"
    setattr(Tensor, _name, in_place(keeping(_function), _name))
for _op in (unary.Neg, unary.Exp, unary.Sqrt, unary.Tanh, unary.Sigmoid, unary.Relu, unary.Floor, unary.Round):
    _name = f"{_op.name}_"
    setattr(Tensor, _name, in_place(getattr(Tensor, _op.name), _name))
for _name in ("abs", "log", "rsqrt", "reciprocal", "ceil", "trunc"):
    setattr(Tensor, f"{_name}_", in_place(keeping(getattr(Tensor, _name)), f"{_name}_"))

for _name, _function in {"add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "pow": "pow_", "mod": "remainder_",
                         "floordiv": "floor_divide_"}.items():  # fmt: skip
    setattr(Tensor, f"__i{_name}__", getattr(Tensor, _function))  # type: ignore[call-overload]
for _name in ("and", "or", "xor"):
    _operator = in_place(getattr(Tensor, f"__{_name}__"), f"__i{_name}__")
    setattr(Tensor, f"__i{_name}__", _operator)

