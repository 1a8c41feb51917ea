"""Writing elements by position, out of place: scatter and what is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import create, dtypes, shapes
from ..op import Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch
from .index import Gather, IndexAdd, ScatterAdd, checked_index, untouched
from .movement import Place
from .select import where


def _aligned(y: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int) -> tuple:
    """(target, its key, values): y's rows for an index that is one vector repeated, else its elements."""
    src = src[tuple(slice(n) for n in index.shape)]
    rest = [d for d in range(y.ndim) if d != axis]
    if index.size and all(index.strides[d] == 0 and index.shape[d] == y.shape[d] for d in rest):
        vector = index[tuple(slice(None) if d == axis else 0 for d in range(y.ndim))]
        return np.moveaxis(y, axis, 0), vector, np.moveaxis(src, axis, 0)
    places = list(np.indices(index.shape, sparse=True))
    places[axis] = np.ascontiguousarray(index)  # negative strides would let NumPy write in another order
    return y, tuple(places), src


def _scatter(x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int) -> np.ndarray:
    y = x.copy()
    target, key, values = _aligned(y, index, src, axis)
    target[key] = values
    return y


@register
class Scatter(Op):
    """y = x with each src[i, j] written at [index[i, j], j], along the given axis; of repeated places the last one wins
    dx = dy, zero where something was written; dsrc = dy gathered at the index, zero for what was overwritten
    """

    numpy = staticmethod(_scatter)
    wgpu = launch.Scatter()
    saves = ((), (0, 2), ())

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        index, axis = ctx.saved_inputs()[1], ctx.attrs["axis"]
        dx = dsrc = None
        if ctx.needs(0):
            dx = apply(Scatter, dy, index, dy.new_zeros(()).expand(*index.shape), axis=axis)
        if ctx.needs(2):
            order = create.arange(index.numel(), device=index.device).reshape(index.shape)
            winner = apply(Gather, apply(Scatter, order.new_zeros(dy.shape), index, order, axis=axis), index, axis=axis)
            dsrc = _placed(where(winner == order, apply(Gather, dy, index, axis=axis), 0.0), ctx.edges[2].shape)
        return dx, None, dsrc


def _placed(dsrc: Tensor, shape: tuple) -> Tensor:
    """Zeros of src's shape with the gradient of the part that the index used."""
    if dsrc.shape == shape:
        return dsrc
    return apply(Place, dsrc, shape=shape, index=tuple(slice(n) for n in dsrc.shape), value=0)


_REDUCE_AT = {"prod": np.multiply.at, "amax": np.maximum.at, "amin": np.minimum.at}


def _scatter_reduce(x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int, reduce: str) -> np.ndarray:
    y = x.astype(np.float32) if x.dtype == np.float16 else x.copy()
    _REDUCE_AT[reduce](*_aligned(y, index, src, axis))
    return y.astype(x.dtype, copy=False)


@register
class ScatterReduce(Op):
    """y = x with each src[i, j] multiplied into, or compared with, what is at [index[i, j], j], along the given axis
    dx, dsrc = dy times the product of the others; of equal extremes each an even share of dy
    """

    numpy = staticmethod(_scatter_reduce)
    wgpu = launch.ScatterReduce()
    saves = ((0, 2), (0, 2), (0, 2))
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        x, index, src = ctx.saved_inputs()
        used = src[tuple(slice(n) for n in index.shape)]
        rule = _product_gradient if ctx.attrs["reduce"] == "prod" else _extreme_gradient
        dx, dsrc = rule(ctx, dy, x, index, used, ctx.attrs["axis"])
        return dx, None, _placed(dsrc, src.shape)


def _extreme_gradient(ctx: Node, dy: Tensor, x: Tensor, index: Tensor, src: Tensor, axis: int) -> tuple:
    (y,) = ctx.saved_outputs()
    y = y.detach()
    mine, theirs = (x == y).to(dy.dtype), (src == apply(Gather, y, index, axis=axis)).to(dy.dtype)
    count = apply(ScatterAdd, mine, index, theirs, axis=axis)
    share = dy / count.masked_fill(count == 0, 1)  # NaN equals nothing: its gradient is 0
    return mine * share, theirs * apply(Gather, share, index, axis=axis)


def _product_gradient(ctx: Node, dy: Tensor, x: Tensor, index: Tensor, src: Tensor, axis: int) -> tuple:
    """The product without a factor is y divided by it, or, where it is the only 0, the product of the rest."""
    zero, x_zero = src == 0, x == 0
    ones, factors = src.masked_fill(zero, 1), x.masked_fill(x_zero, 1)
    rest = apply(ScatterReduce, factors, index, ones, axis=axis, reduce="prod")
    zeros = apply(ScatterAdd, x_zero.to(dy.dtype), index, zero.to(dy.dtype), axis=axis)
    dx = dy * rest / factors * (zeros == x_zero.to(dy.dtype)).to(dy.dtype)
    lone = (apply(Gather, zeros, index, axis=axis) == zero.to(dy.dtype)).to(dy.dtype)
    return dx, apply(Gather, dy * rest, index, axis=axis) / ones * lone


# -- scatter --------------------------------------------------------------------------------------------


def _checked(x: Tensor, dim: int, index: Tensor, src: Any, op: str) -> tuple[Tensor, int, Tensor, Tensor]:
    """x, axis, index and src of one number of dimensions, after every check; a number is a src of stride 0."""
    i = shapes.axis_of(dim, x.ndim, op)
    if not isinstance(src, Tensor):
        src = x.new_full((), src).expand(*index.shape)
    if x.dtype is not src.dtype:
        raise TypeError(f"[{op}] src must have the tensor's dtype; got {src.dtype} for {x.dtype}")
    given = (x.shape, index.shape, src.shape)
    x, index, src = (t if t.ndim else t.reshape(1) for t in (x, index, src))
    fits = x.ndim == index.ndim == src.ndim and all(
        n <= src.shape[d] and (d == i or n <= x.shape[d]) for d, n in enumerate(index.shape)
    )
    if index.numel() and not fits:
        raise ValueError(
            f"[{op}] index must have the dimensions of x and src, and at most their sizes (x's only off dim {i}); "
            f"got x {given[0]}, index {given[1]}, src {given[2]}"
        )
    return x, i, checked_index(index, x.shape[i], op), src


def scatter(x: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """x with src[i][j] (or one value) written at [index[i][j]][j] for dim 0; repeated places: the last one wins.

    reduce="add" or "multiply" combines with what is there. ValueError for shapes that do not fit, IndexError for places
    outside, TypeError for another dtype.
    """
    source = value if src is None else src
    if source is None:
        raise TypeError("[scatter] give src or value")
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f'[scatter] reduce must be "add" or "multiply"; got {reduce!r}')
    if reduce is not None:
        return _reduced(x, dim, index, source, "sum" if reduce == "add" else "prod", "scatter")
    y, i, places, source = _checked(x, dim, index, source, "scatter")
    if not index.numel():
        return untouched(x, source)
    return apply(Scatter, y, places, source, axis=i).reshape(x.shape)


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """x with all src elements of one place reduced by "sum", "prod", "mean", "amax" or "amin", with what is in x or without."""
    return _reduced(x, dim, index, src, reduce, "scatter_reduce", include_self)


def _reduced(x: Tensor, dim: int, index: Tensor, src: Any, reduce: str, op: str, include_self: bool = True) -> Tensor:
    if reduce not in _REDUCTIONS:
        raise ValueError(f"[{op}] reduce must be one of {', '.join(_REDUCTIONS)}; got {reduce!r}")
    y, i, places, source = _checked(x, dim, index, src, op)
    if not index.numel():
        return untouched(x, source)
    if not include_self:
        neutral = y.new_full((), _neutral(reduce, x)).expand(*places.shape)
        y = apply(Scatter, y, places, neutral, axis=i)
    if reduce in ("sum", "mean"):
        total = apply(ScatterAdd, y, places, source, axis=i)
        return (_mean(total, places, i, include_self) if reduce == "mean" else total).reshape(x.shape)
    return apply(ScatterReduce, y, places, source, axis=i, reduce=reduce).reshape(x.shape)


def _mean(total: Tensor, places: Tensor, axis: int, include_self: bool) -> Tensor:
    start = total.new_full(total.shape, int(include_self))
    count = apply(ScatterAdd, start, places, total.new_full((), 1).expand(*places.shape), axis=axis)
    count = count if include_self else count.masked_fill(count == 0, 1)
    return total / count if total.dtype.is_floating_point else total.floor_divide(count)


def _neutral(reduce: str, x: Tensor) -> Any:
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if x.dtype.is_floating_point:
        return float("-inf" if reduce == "amax" else "inf")
    narrow = x.dtype is dtypes.int64 and x.device.type != "cpu"  # 32 bits on the GPU
    limits = np.iinfo("int32" if narrow else x.array.dtype)
    return limits.min if reduce == "amax" else limits.max


# -- rows -----------------------------------------------------------------------------------------------


def _rows(x: Tensor, dim: int, index: Tensor, op: str, wrap: bool = False) -> tuple[Tensor, int, Tensor, Tensor]:
    """(x with dimensions, axis, index as a vector, the vector seen in the shape of the rows that it names)."""
    i = shapes.axis_of(dim, x.ndim, op)
    x = x if x.ndim else x.reshape(1)
    if index.ndim > 1:
        raise ValueError(f"[{op}] the index is a vector; got shape {index.shape}")
    vector = checked_index(index, x.shape[i], op, wrap).reshape(-1)
    shape = (*x.shape[:i], vector.numel(), *x.shape[i + 1 :])
    return x, i, vector, vector.reshape((1,) * i + (-1,) + (1,) * (x.ndim - i - 1)).expand(*shape)


def _source(source: Tensor, shape: tuple, x: Tensor, op: str) -> Tensor:
    if source.dtype is not x.dtype:
        raise TypeError(f"[{op}] source must have the tensor's dtype; got {source.dtype} for {x.dtype}")
    if source.shape != shape and (source.numel() != shapes.numel(shape) or (source.ndim and x.ndim)):
        raise ValueError(f"[{op}] source must have the shape {shape}; got {source.shape}")
    return source.reshape(shape)


def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """x with `value`, a number or a 0-d tensor, in the slices along `dim` that index names."""
    y, i, _, places = _rows(x, dim, index, "index_fill", wrap=True)
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"[index_fill] the value is a number or a 0-d tensor; got shape {value.shape}")
    value = value.to(x.dtype) if isinstance(value, Tensor) else x.new_full((), value)
    if not places.numel():
        return untouched(x, value)
    return apply(Scatter, y, places, value.expand(*places.shape), axis=i).reshape(x.shape)


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with the slices of source along `dim` in place of those that index names; the last of repeated ones wins."""
    y, i, _, places = _rows(x, dim, index, "index_copy")
    source = _source(source, places.shape, x, "index_copy")
    return apply(Scatter, y, places, source, axis=i).reshape(x.shape) if places.numel() else untouched(x, source)


def index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """x with the slices of source of one place reduced by "prod", "mean", "amax" or "amin", with what is in x or without."""
    if reduce not in _REDUCTIONS[1:]:
        raise ValueError(f"[index_reduce] reduce must be one of {', '.join(_REDUCTIONS[1:])}; got {reduce!r}")
    y, i, _, places = _rows(x, dim, index, "index_reduce")
    source = _source(source, places.shape, x, "index_reduce")
    return _reduced(y, i, places, source, reduce, "index_reduce", include_self).reshape(x.shape)


# -- flat positions -------------------------------------------------------------------------------------


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """x with the elements of source at the flat positions that index names, or added there."""
    if source.numel() != index.numel():
        raise ValueError(f"[put] as many elements in source as in index; got {source.shape} for {index.shape}")
    if source.dtype is not x.dtype:
        raise TypeError(f"[put] source must have the tensor's dtype; got {source.dtype} for {x.dtype}")
    places = checked_index(index, x.numel(), "put", wrap=True).reshape(-1)
    if not index.numel():
        return untouched(x, source)
    op = IndexAdd if accumulate else Scatter
    return apply(op, x.reshape(-1), places, source.reshape(-1), axis=0).reshape(x.shape)


def take(x: Tensor, index: Tensor) -> Tensor:
    """The elements of x at flat positions, in the index's shape."""
    places = checked_index(index, x.numel(), "take", wrap=True)
    return x.reshape(-1).index_select(0, places.reshape(-1)).reshape(index.shape)


def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather() with x and indices broadcast together except along `dim`; without dim, on flat tensors."""
    if dim is None:
        return take(x, indices.reshape(-1))
    if x.ndim != indices.ndim:
        raise ValueError(f"[take_along_dim] x and indices must have as many dimensions; got {x.shape} and {indices.shape}")
    i = shapes.axis_of(dim, x.ndim, "take_along_dim")
    cut = [(*t.shape[:i], 1, *t.shape[i + 1 :]) for t in (x, indices)]
    common = shapes.broadcast(cut, "take_along_dim")
    x, indices = (t.expand(*common[:i], t.shape[i], *common[i + 1 :]) for t in (x, indices))
    return x.gather(i, checked_index(indices, x.shape[i], "take_along_dim", wrap=True))


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the elements of source, in order, where mask; both broadcast together."""
    if not isinstance(mask, Tensor) or mask.dtype is not dtypes.bool_:
        raise TypeError(f"[masked_scatter] the mask must be a bool tensor; got {getattr(mask, 'dtype', type(mask).__name__)}")
    if source.dtype is not x.dtype:
        raise TypeError(f"[masked_scatter] source must have the tensor's dtype; got {source.dtype} for {x.dtype}")
    shape = shapes.broadcast((x.shape, mask.shape), "masked_scatter")
    places = mask.expand(*shape).reshape(-1).nonzero().reshape(-1)
    if places.numel() > source.numel():
        raise ValueError(f"[masked_scatter] source must have at least {places.numel()} elements; got {source.numel()}")
    y = x.expand(*shape)
    if not places.numel():
        return untouched(y, source)
    values = source.reshape(-1)[: places.numel()]
    return apply(Scatter, y.reshape(-1), places, values, axis=0).reshape(shape)


for _function in (scatter, scatter_reduce, index_fill, index_copy, index_reduce, put, take, take_along_dim, masked_scatter):
    public(_function)
