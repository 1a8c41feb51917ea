"""Choosing between values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, shapes
from ..blocks import blocked, chosen
from ..op import Op, apply, promoted, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch


def _where(condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
    arrays = [x for x in (a, b) if x.__class__ is np.ndarray and x.ndim]
    shape = condition.shape
    if condition.size < 4096 or not arrays or any(x.shape != shape or x.dtype != arrays[0].dtype for x in arrays):
        return np.where(condition, a, b)
    return blocked(chosen, arrays[0].dtype, shape, condition, a, b)


@register
class Where(Op):
    """y = a where condition, else b
    da = dy where condition, else 0; db = 0 where condition, else dy
    """

    numpy = staticmethod(_where)
    wgpu = launch.Ternary("where")
    saves = ((1, 2), (), ())

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        condition = ctx.saved_inputs()[0]
        da = apply(Where, condition, dy, 0.0) if ctx.needs(1) else None
        return None, da, apply(Where, condition, 0.0, dy) if ctx.needs(2) else None


def where(condition: Tensor, a: Any = None, b: Any = None) -> Any:
    """a where condition, else b, all broadcast together; where(condition) is condition.nonzero(as_tuple=True)."""
    if a is None and b is None:
        return condition.nonzero(as_tuple=True)
    if not isinstance(condition, Tensor) or condition.dtype is not dtypes.bool_:
        got = condition.dtype if isinstance(condition, Tensor) else type(condition).__name__
        raise TypeError(f"[where] the condition must be a bool tensor; got {got}. Compare, as in x > 0")
    a, b = promoted(a, b)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        d = dtypes.promote([(dtypes.scalar_dtype(a), 0), (dtypes.scalar_dtype(b), 0)])
        a = condition.full_like(a, dtype=d)
    shapes.broadcast([x.shape for x in (condition, a, b) if isinstance(x, Tensor)], "where")
    return apply(Where, condition, a, b)


def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where mask (a bool tensor that broadcasts to x's shape), else x."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(f"[masked_fill] the value is a number or a 0-d tensor; got shape {value.shape}")
        value = value.to(x.dtype)
    elif isinstance(value, complex) or (not x.dtype.is_floating_point and isinstance(value, float)):
        raise TypeError(f"[masked_fill] {value} does not fit into {x.dtype}")
    if not isinstance(mask, Tensor) or mask.dtype is not dtypes.bool_:
        raise TypeError(f"[masked_fill] the mask must be a bool tensor; got {getattr(mask, 'dtype', type(mask).__name__)}")
    shapes.broadcast((x.shape, mask.shape), "masked_fill")
    kind = (bool, int, float)[x.dtype.rank]
    return apply(Where, mask, value if isinstance(value, Tensor) else kind(value), x)


def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """x held between min and max (numbers or tensors); the gradient at a bound is 1. NaN stays, and a NaN bound gives NaN."""
    if min is None and max is None:
        raise ValueError("[clamp] give min, max or both")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        x = x if min is None else where(_beyond(x < min, min), min, x)
        return x if max is None else where(_beyond(x > max, max), max, x)
    d = dtypes.promote([(x.dtype, 2), *((dtypes.scalar_dtype(v), 0) for v in (min, max) if v is not None)])
    x = x.to(d)
    kind = (bool, int, float)[d.rank]
    x = x if min is None else apply(Where, _beyond(x < min, min), kind(min), x)
    return x if max is None else apply(Where, _beyond(x > max, max), kind(max), x)


def _beyond(outside: Tensor, bound: Any) -> Tensor:
    """Where the bound replaces x: outside, and where it is NaN, which no comparison finds."""
    if isinstance(bound, Tensor):
        return outside | bound.isnan() if bound.dtype.is_floating_point else outside
    return outside if bound == bound else outside.ones_like()


public(where, method=False)
Tensor.where = lambda x, condition, other: where(condition, x, other)  # type: ignore[attr-defined]
public(masked_fill)
public(clamp)
public(clamp, "clip")
