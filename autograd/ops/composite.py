"""Functions made of the primitives."""

from __future__ import annotations

import math
import operator
from typing import Any

from .. import create, shapes
from ..op import public
from ..tensor import Tensor


def square(x: Tensor) -> Tensor:
    """x * x"""
    return x * x


def exp2(x: Tensor) -> Tensor:
    """2 ^ x"""
    return (x * math.log(2)).exp()


def log2(x: Tensor) -> Tensor:
    """The logarithm to base 2."""
    return x.log() * (1 / math.log(2))


def log10(x: Tensor) -> Tensor:
    """The logarithm to base 10."""
    return x.log() * (1 / math.log(10))


def reciprocal(x: Tensor) -> Tensor:
    """1 / x"""
    return 1 / x


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x)"""
    return 1 / x.sqrt()


def ceil(x: Tensor) -> Tensor:
    """The smallest whole number not below x."""
    return -(-x).floor() if x.dtype.is_floating_point else x.clone()


def trunc(x: Tensor) -> Tensor:
    """x without its fraction."""
    return x.ceil().where(x < 0, x.floor()) if x.dtype.is_floating_point else x.clone()


def logical_not(x: Tensor) -> Tensor:
    """Whether x is zero."""
    return x == 0


def _logical(name: str, combine: Any, text: str) -> Any:
    """A function of whether its operands are not zero."""

    def function(x: Tensor, other: Tensor) -> Tensor:
        if not (isinstance(x, Tensor) and isinstance(other, Tensor)):
            kinds = f"{type(x).__name__} and {type(other).__name__}"
            raise TypeError(f"[{name}] expected two tensors; got {kinds}. Compare with `x != 0` instead?")
        shapes.broadcast([x.shape, other.shape], name)
        return combine(x != 0, other != 0)

    function.__name__, function.__doc__ = name, text
    return function


logical_and = _logical("logical_and", operator.and_, "Whether both are not zero.")
logical_or = _logical("logical_or", operator.or_, "Whether one of them is not zero.")
logical_xor = _logical("logical_xor", operator.xor, "Whether exactly one of them is not zero.")


def isnan(x: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return x != x


def isinf(x: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return x.abs() == float("inf")


def isfinite(x: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return x.abs() < float("inf") if x.dtype.is_floating_point else x == x


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)"""
    return x * x.sigmoid()


def allclose(a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |a - b| <= atol + rtol * |b| everywhere."""
    close = ((a - b).abs() <= b.abs() * rtol + atol) | (a == b)
    if equal_nan:
        close = close | (a.isnan() & b.isnan())
    return bool(close.all())


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether both have one shape and the same elements."""
    return a.shape == b.shape and bool((a == b).all())


def new_zeros(x: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the given size in x's dtype and on its device."""
    return create.zeros(*size, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def new_ones(x: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the given size in x's dtype and on its device."""
    return create.ones(*size, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def new_full(x: Tensor, size: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`fill_value` in the given size, in x's dtype and on its device."""
    return create.full(size, fill_value, dtype or x.dtype, device or x.device)


def new_tensor(x: Tensor, data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of `data` in x's dtype and on its device."""
    return create.tensor(data, dtype or x.dtype, device or x.device)


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """x with zeros above the diagonal (shifted to the right by `diagonal`)."""
    return x.masked_fill(_offset(x, "tril") > diagonal, 0)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """x with zeros below the diagonal (shifted to the right by `diagonal`)."""
    return x.masked_fill(_offset(x, "triu") < diagonal, 0)


def _offset(x: Tensor, op: str) -> Tensor:
    """Column minus row of every element of the last two dimensions."""
    if x.ndim < 2:
        raise ValueError(f"[{op}] expects at least 2 dimensions; got shape {x.shape}")
    return create.arange(x.shape[-1], device=x.device) - create.arange(x.shape[-2], device=x.device).unsqueeze(1)


def is_tensor(x: object) -> bool:
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


for _function in (log2, reciprocal, rsqrt, ceil, trunc, logical_not, logical_and, logical_or, logical_xor, isnan):
    public(_function)
for _function in (square, exp2, log10, isinf, isfinite, silu, allclose, equal, new_zeros, new_ones, new_full, new_tensor,
                  tril, triu, create.zeros_like, create.ones_like, create.full_like):  # fmt: skip
    public(_function)
public(is_tensor, method=False)
