"""Reductions over some or all dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, shapes
from ..grad_mode import state
from ..op import Op, apply, public, record_one, register
from ..tape import Node
from ..tensor import Tensor, wrap
from ..webgpu import launch, views
from .movement import Expand


def _spread(dy: Tensor, shape: tuple, axes: tuple, keepdims: bool) -> Tensor:
    """A reduction's gradient or result, seen in the input's shape."""
    if not keepdims and axes and len(axes) < len(shape):
        dy = dy.reshape(shapes.reduced_shape(shape, axes, True))
    return apply(Expand, dy, shape=shape) if dy.shape != shape else dy


_ALL_AXES = [tuple(range(n)) for n in range(65)]  # NumPy has at most 64 dimensions
_HALF = np.dtype(np.float16)
_add_all: Any = np.add.reduce


def _sum(x: np.ndarray, axes: tuple, keepdims: bool, dtype: np.dtype) -> np.ndarray:
    # NumPy sums float16 in float16: 4,096 ones are then 2,048. The wide sum is rounded once.
    axis = None if len(axes) == x.ndim else axes
    if dtype is _HALF:
        return np.add.reduce(x, axis, np.float32, None, keepdims).astype(dtype)  # type: ignore[call-overload]
    return np.add.reduce(x, axis, dtype, None, keepdims)  # type: ignore[call-overload]


@register
class Sum(Op):
    """y = the sum of x over dimensions
    dx = dy, repeated over them
    """

    numpy = staticmethod(_sum)
    wgpu = launch.Reduce("sum")

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return _spread(dy, ctx.edges[0].shape, ctx.attrs["axes"], ctx.attrs["keepdims"])

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> Tensor:
        data = dy.array
        if data.size != 1:
            return Sum.backward(ctx, dy)
        # Every loss ends in this: no bookkeeping of views.
        spread = Expand.numpy if data.__class__ is np.ndarray else views.spread
        return wrap(spread(data, ctx.edges[0].shape))


class _Extreme(Op):
    """y = the largest or smallest; equal ones share its gradient evenly."""

    saves = ((0,),)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,), (y,), (axes, keepdims) = ctx.saved_inputs(), ctx.saved_outputs(), ctx.attrs.values()
        hit = (x == _spread(y, x.shape, axes, keepdims)).to(dy.dtype)
        count = hit.sum(axes, keepdim=True) if axes else hit
        return _spread(dy, x.shape, axes, keepdims) * (hit / count)


def _extreme(reduce: Any) -> Any:
    def numpy(x: np.ndarray, axes: tuple, keepdims: bool) -> np.ndarray:
        return reduce(x, axis=axes, keepdims=keepdims)

    return staticmethod(numpy)


@register
class Amax(_Extreme):
    """y = the largest element over dimensions, NaN kept
    dx = dy where x = y, shared evenly among equals
    """

    numpy = _extreme(np.max)
    wgpu = launch.Reduce("max")


@register
class Amin(_Extreme):
    """y = the smallest element over dimensions, NaN kept
    dx = dy where x = y, shared evenly among equals
    """

    numpy = _extreme(np.min)
    wgpu = launch.Reduce("min")


class _Test(Op):
    differentiable = False


@register
class Any_(_Test):
    """y = whether any element over dimensions is not zero
    no gradient
    """

    name = "any"
    numpy = _extreme(np.any)
    wgpu = launch.Reduce("any")


def _first(find: Any) -> Any:
    def numpy(x: np.ndarray, axis: int | None) -> np.ndarray:
        return np.asarray(find(x, axis), dtype=np.int64)

    return staticmethod(numpy)


@register
class Argmax(_Test):
    """y = the index of the first largest element
    no gradient
    """

    numpy = _first(np.argmax)
    wgpu = launch.Reduce("argmax")


@register
class Argmin(_Test):
    """y = the index of the first smallest element
    no gradient
    """

    numpy = _first(np.argmin)
    wgpu = launch.Reduce("argmin")


# -- public ---------------------------------------------------------------------------------------------


def sum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
        keepdims: bool | None = None) -> Tensor:  # fmt: skip
    """The sum over `dim` (an int, several, or None: all). Integers and booleans add up in int64."""
    if dim is None and dtype is None and axis is None:
        data = x.array
        if data.dtype.kind == "f":
            keep = keepdim if keepdims is None else keepdims
            attrs = {"axes": _ALL_AXES[len(data.shape)], "keepdims": keep, "dtype": data.dtype}
            if data.__class__ is not np.ndarray or data.dtype is _HALF:
                return apply(Sum, x, **attrs)
            # The short path: every loss ends here.
            y = wrap(state.run(_add_all, data, None, None, None, keep))
            if x._requires_grad and state.enabled:
                record_one(Sum, x, y, attrs)
            return y
    d = dtypes.as_dtype(dtype) if dtype is not None else x.dtype if x.dtype.is_floating_point else dtypes.int64
    if dtype is not None and d is not x.dtype and d.is_floating_point:
        x = x.to(d) if x.dtype not in dtypes.SHORT else x
    axes = _axes(x, dim, axis, "sum")
    return apply(Sum, x, axes=axes, keepdims=_keep(keepdim, keepdims), dtype=d.numpy)


def _axes(x: Tensor, dim: Any, axis: Any, op: str) -> tuple:
    if dim is not None and axis is not None:
        raise TypeError(f"[{op}] give dim or axis, not both")
    return shapes.axes_of(dim if axis is None else axis, len(x.array.shape), op)


def _keep(keepdim: bool, keepdims: bool | None) -> bool:
    return keepdim if keepdims is None else keepdims


def _float_input(x: Tensor, dtype: Any, op: str) -> Tensor:
    if dtype is not None:
        return x.to(dtype)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[{op}] expects floating point; got {x.dtype}. Convert with .float() first")
    return x


def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
         keepdims: bool | None = None) -> Tensor:  # fmt: skip
    """sum(x) / n over `dim`; NaN over nothing. Floating point only, as PyTorch."""
    if dtype is not None and not dtypes.as_dtype(dtype).is_floating_point:
        raise TypeError(f"[mean] the result is floating point; got dtype={dtype}")
    x = _float_input(x, dtype, "mean")
    axes = _axes(x, dim, axis, "mean")
    n = shapes.numel(x.shape[i] for i in axes)
    wide = dtypes.float32 if x.dtype in dtypes.SHORT else x.dtype  # the sum may exceed 65,504, the mean not
    total = apply(Sum, x, axes=axes, keepdims=_keep(keepdim, keepdims), dtype=wide.numpy)
    return (total / n if n else total * float("nan")).to(x.dtype)


def var(x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None,
        axis: Any = None, keepdims: bool | None = None) -> Tensor:  # fmt: skip
    """sum((x - mean)^2) / (n - correction); correction is 1 (unbiased) unless given. At n <= correction it is a division by 0."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    x = _float_input(x, None, "var")
    axes = _axes(x, dim, axis, "var")
    n = shapes.numel(x.shape[i] for i in axes)
    free = n - (correction if correction is not None else 1 if unbiased else 0)
    wide = x.to(dtypes.float32) if x.dtype in dtypes.SHORT else x  # a square may exceed 65,504, the result not
    centred = wide - mean(wide, axes, keepdim=True) if axes else wide - wide
    squares = apply(Sum, centred * centred, axes=axes, keepdims=_keep(keepdim, keepdims), dtype=wide.dtype.numpy)
    return (squares / (free if free > 0 else 0)).to(x.dtype)


def std(x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None,
        axis: Any = None, keepdims: bool | None = None) -> Tensor:  # fmt: skip
    """sqrt(var(x)); the gradient where it is 0 is 0."""
    _float_input(x, None, "std")
    _axes(x, None if isinstance(dim, bool) else dim, axis, "std")
    wide = x.to(dtypes.float32) if x.dtype in dtypes.SHORT else x
    v = var(wide, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    flat = v == 0
    return v.masked_fill(flat, 1).sqrt().masked_fill(flat, 0).to(x.dtype)


def amax(x: Tensor, dim: Any = (), keepdim: bool = False, *, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The largest element over `dim` (all by default); equal ones share the gradient."""
    return _extreme_of(Amax, x, dim, axis, _keep(keepdim, keepdims))


def amin(x: Tensor, dim: Any = (), keepdim: bool = False, *, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The smallest element over `dim` (all by default); equal ones share the gradient."""
    return _extreme_of(Amin, x, dim, axis, _keep(keepdim, keepdims))


def _extreme_of(op: type[Op], x: Tensor, dim: Any, axis: Any, keepdims: bool) -> Tensor:
    axes = shapes.axes_of(dim if axis is None else axis, x.ndim, op.name)
    if 0 in [x.shape[i] for i in axes]:
        raise ValueError(f"[{op.name}] nothing to choose from: shape {x.shape} is empty along {axes}")
    return apply(op, x, axes=axes, keepdims=keepdims)


class Pair(tuple):
    """(values, indices), as the reductions along one dimension return."""

    __slots__ = ()
    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])


def max(x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """The largest element; with `dim` an int, (values, indices) along it; with a Tensor, the elementwise maximum."""
    return _max_or_min(x, dim if axis is None else axis, keepdim, amax, argmax, "maximum")


def min(x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Any:
    """The smallest element; with `dim` an int, (values, indices) along it; with a Tensor, the elementwise minimum."""
    return _max_or_min(x, dim if axis is None else axis, keepdim, amin, argmin, "minimum")


def _max_or_min(x: Tensor, dim: Any, keepdim: bool, extreme: Any, index_of: Any, elementwise: str) -> Any:
    if not isinstance(x, Tensor):
        raise TypeError(f"[{elementwise[:3]}] expected a tensor; got {type(x).__name__}. Python's own {elementwise[:3]}()?")
    if dim is None:
        return extreme(x)
    if isinstance(dim, Tensor):
        return getattr(x, elementwise)(dim)
    shapes.axis_of(dim, x.ndim, elementwise[:3])
    if not x.ndim:
        return Pair((x.clone(), x.zeros_like(dtype=dtypes.int64)))
    index = index_of(x, dim, keepdim=True)
    values = x.gather(dim, index)  # the gradient goes to the index that is returned
    return Pair((values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim)))


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
    """The int64 index of the first largest element, in the flattened tensor or along `dim`. NaN counts as largest."""
    return _index_of(Argmax, x, dim if axis is None else axis, keepdim)


def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
    """The int64 index of the first smallest element, in the flattened tensor or along `dim`. NaN counts as smallest."""
    return _index_of(Argmin, x, dim if axis is None else axis, keepdim)


def _index_of(op: type[Op], x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if x.array.size == 0 and (dim is None or x.shape[shapes.axis_of(dim, x.ndim, op.name)] == 0):
        raise ValueError(f"[{op.name}] nothing to choose from in shape {x.shape}")
    if dim is None or not x.ndim:
        y = apply(op, x.detach().reshape(-1), axis=0)
        return y.reshape((1,) * x.ndim) if keepdim else y
    i = shapes.axis_of(dim, x.ndim, op.name)
    y = apply(op, x, axis=i)
    return y.unsqueeze(i) if keepdim else y


def any(x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
    """Whether any element over `dim` is not zero."""
    return apply(Any_, x, axes=_axes(x, dim, axis, "any"), keepdims=keepdim)


def all(x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
    """Whether all elements over `dim` are not zero."""
    return apply(Any_, x == 0, axes=_axes(x, dim, axis, "all"), keepdims=keepdim) == 0


def logsumexp(x: Tensor, dim: Any, keepdim: bool = False, *, axis: Any = None) -> Tensor:
    """log(sum(exp(x))) over `dim` without overflow; -inf over nothing but -inf, with gradient 0 there."""
    axes = _axes(x, dim, axis, "logsumexp")
    if not x.ndim:
        return x.clone()
    if 0 in x.shape:
        return x.exp().sum(axes, keepdim=keepdim).log()
    top = amax(x.detach(), axes, keepdim=True)
    top = top.masked_fill(top.abs() == float("inf"), 0)
    total = (x - top).exp().sum(axes, keepdim=True)
    empty = total == 0
    y = total.masked_fill(empty, 1).log().masked_fill(empty, float("-inf")) + top
    return y if keepdim else y.reshape(shapes.reduced_shape(x.shape, axes, False))


for _function in (sum, mean, var, std, amax, amin, max, min, argmax, argmin, any, all, logsumexp):
    public(_function)
