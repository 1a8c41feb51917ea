"""Cumulative functions along one dimension: all are linear recurrences or running maxima."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, shapes
from ..op import Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch
from .movement import Slice
from .reduce import Pair
from .rounding import tensors
from .select import where
from .views import cat


def _linear_scan(a: Any, b: Any, axis: int) -> np.ndarray:
    x = b if a is None else a
    if a is None or b is None:  # NumPy has these two
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        return (np.cumsum if a is None else np.cumprod)(wide, axis, x.dtype if wide is x else None).astype(x.dtype, copy=False)
    kind = np.float32 if x.dtype == np.float16 else x.dtype
    y = np.empty(x.shape, kind)
    factors, terms, values = (np.moveaxis(v, axis, 0) for v in (a, b, y))
    value = np.zeros(values.shape[1:], kind)
    for t in range(len(values)):
        value = values[t] = factors[t] * value + terms[t]
    return y.astype(x.dtype, copy=False)


@register
class LinearScan(Op):
    """y[t] = a[t] * y[t-1] + b[t], along an axis; without a the factors are 1, without b only y[-1] = 1 comes in
    db[t] = dy[t] + a[t+1] * db[t+1]; da[t] = db[t] * y[t-1]
    """

    numpy = staticmethod(_linear_scan)
    wgpu = launch.LinearScan("linear_scan")
    saves = ((0, 1), (0,))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        (a, b), axis = ctx.saved_inputs(), ctx.attrs["axis"]
        later = None if a is None else _shifted(_reversed(a, axis), axis, 0)
        db = _reversed(apply(LinearScan, later, _reversed(dy, axis), axis=axis), axis)
        if not ctx.needs(0):
            return None, db
        y = apply(LinearScan, a, b, axis=axis)  # once more, so that a cumsum keeps nothing
        return db * _shifted(y, axis, int(b is None)), db


def _reversed(x: Tensor, axis: int) -> Tensor:
    return apply(Slice, x, index=(*(slice(None),) * axis, slice(None, None, -1)))


def _shifted(x: Tensor, axis: int, first: float) -> Tensor:
    """x one step later along an axis: `first`, x[0], x[1], ..., without the last."""
    if not x.shape[axis]:
        return x
    start = x.narrow(axis, 0, 1).detach().full_like(first)
    return cat([start, x.narrow(axis, 0, x.shape[axis] - 1)], axis)


@register
class RunningMax(Op):
    """y[t] = max(x[0], ..., x[t]), along an axis, NaN kept
    no gradient
    """

    numpy = staticmethod(lambda x, axis: np.maximum.accumulate(x, axis))
    wgpu = launch.RunningMax("running_max")
    differentiable = False


# -- public ---------------------------------------------------------------------------------------------


def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """y[t] = x[0] + ... + x[t] along `dim`. Integers and booleans add up in int64."""
    x, axis = _summable(x, dim, dtype, "cumsum")
    return _scan(None, x, axis) if x.ndim else x.clone()


def cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """y[t] = x[0] * ... * x[t] along `dim`. Integers and booleans multiply in int64. Gradients hold at zeros."""
    x, axis = _summable(x, dim, dtype, "cumprod")
    return _scan(x, None, axis) if x.ndim else x.clone()


def _scan(a: Any, b: Any, axis: int) -> Tensor:
    given = b if a is None else a
    return apply(LinearScan, a, b, axis=axis) if given.numel() else given.clone()


def _summable(x: Tensor, dim: int, dtype: Any, op: str) -> tuple[Tensor, int]:
    tensors(op, x)
    axis = shapes.axis_of(dim, x.ndim, op)
    if dtype is not None:
        return x.to(dtype), axis
    return x if x.dtype.is_floating_point else x.to(dtypes.int64), axis


def cummax(x: Tensor, dim: int) -> Pair:
    """(values, indices) of the largest so far along `dim`; the last of equals, and NaN once it has come."""
    return _running(x, dim, "cummax", x)


def cummin(x: Tensor, dim: int) -> Pair:
    """(values, indices) of the smallest so far along `dim`; the last of equals, and NaN once it has come."""
    tensors("cummin", x)
    if x.dtype.is_floating_point or x.dtype.itemsize > 1:
        return _running(x, dim, "cummin", -x if x.dtype.is_floating_point else ~x)
    return _running(x, dim, "cummin", -x.to(dtypes.int32))


def _running(x: Tensor, dim: int, op: str, rank: Tensor) -> Pair:
    """Values of x at the largest `rank` so far: where it is reached anew the position counts, elsewhere the last one."""
    tensors(op, x)
    axis = shapes.axis_of(dim, x.ndim, op)
    if not x.ndim:
        return Pair((x.clone(), x.zeros_like(dtype=dtypes.int64)))
    if not x.numel():
        return Pair((x.clone(), x.zeros_like(dtype=dtypes.int64)))
    rank = rank.detach() if rank.dtype is not dtypes.bool_ else rank.to(dtypes.int32)
    reached = (rank >= apply(RunningMax, rank, axis=axis)) | rank.isnan()
    places = x.detach().ones_like(dtype=dtypes.int64).cumsum(axis) - 1
    indices = apply(RunningMax, where(reached, places, 0), axis=axis)
    return Pair((x.gather(axis, indices), indices))


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """y[t] = log(exp(x[0]) + ... + exp(x[t])) along `dim`, without overflow.

    With m the running maximum: s[t] = exp(m[t-1] - m[t]) s[t-1] + exp(x[t] - m[t]), y = m + log(s).
    """
    tensors("logcumsumexp", x)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[logcumsumexp] expects floating point; got {x.dtype}")
    axis = shapes.axis_of(dim, x.ndim, "logcumsumexp")
    if not x.ndim or not x.numel():
        return x.clone()
    m = apply(RunningMax, x.detach(), axis=axis)
    empty = m == float("-inf")
    m = m.masked_fill(m.abs() == float("inf"), 0)
    factor = (_shifted(m, axis, 0) - m).exp().masked_fill(_shifted(empty.to(m.dtype), axis, 1) == 1, 0)
    s = apply(LinearScan, factor, (x - m).exp(), axis=axis)
    none = s == 0
    return s.masked_fill(none, 1).log().masked_fill(none, float("-inf")) + m


def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product along `dim` (of all elements by default). Integers and booleans multiply in int64.

    The last element of a running product: its gradient needs no division, so it holds at zeros.
    """
    x, axis = _summable(x, 0 if dim is None else dim, dtype, "prod")
    if dim is None:
        y = _last(x.reshape(-1), 0)
        return y.reshape((1,) * x.ndim if keepdim else ())
    if not x.ndim:
        return x.clone()
    y = _last(x, axis)
    return y.unsqueeze(axis) if keepdim else y


def _last(x: Tensor, axis: int) -> Tensor:
    if not x.numel():
        return x.sum(axis, dtype=x.dtype) + 1  # of nothing it is 1
    return apply(Slice, _scan(x, None, axis), index=(*(slice(None),) * axis, x.shape[axis] - 1))


for _function in (cumsum, cumprod, cummax, cummin, logcumsumexp, prod):
    public(_function)
