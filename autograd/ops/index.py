"""Selecting elements by position: x[...], gather, index_select and their transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import create, dtypes, shapes
from ..op import HOST_OPS, Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch
from ..webgpu.host import OnHost
from .movement import Place


@register
class Gather(Op):
    """y[i, j] = x[index[i, j], j], along the given axis
    dx = zeros with each dy[i, j] added at index[i, j], j
    """

    numpy = staticmethod(lambda x, index, axis: np.take_along_axis(_crop(x, index.shape, axis), index, axis))
    wgpu = launch.Gather()
    saves = ((), (0,))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        index = ctx.saved_inputs()[1]
        zeros = dy.new_zeros(ctx.edges[0].shape)
        return apply(ScatterAdd, zeros, index, dy, axis=ctx.attrs["axis"]), None


def _crop(x: np.ndarray, shape: tuple, axis: int) -> np.ndarray:
    """x cut to the index's sizes except along axis: gather leaves the rest out."""
    return x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(shape))]


def _scatter_add(x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int) -> np.ndarray:
    y = _sum_of(x)
    places = list(np.indices(index.shape, sparse=True))
    places[axis] = index.astype(np.int64, copy=False)
    flat: Any = 0
    for place, stride in zip(places, y.strides, strict=True):
        flat = flat + place * (stride // y.itemsize)
    np.add.at(y.reshape(-1), flat.reshape(-1), src[tuple(slice(n) for n in index.shape)].reshape(-1))
    return y.astype(x.dtype, copy=False)


def _sum_of(x: np.ndarray) -> np.ndarray:
    """A contiguous copy to add up in: 4,096 ones added up in float16 are 2,048, so in float32 then."""
    return np.array(x, np.float32 if x.dtype == np.float16 else x.dtype, order="C")


@register
class ScatterAdd(Op):
    """y = x with each src[i, j] added at [index[i, j], j], along the given axis
    dx = dy; dsrc = dy gathered at the index
    """

    numpy = staticmethod(_scatter_add)
    wgpu = launch.ScatterAdd()
    saves = ((), (2,), ())

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        index = ctx.saved_inputs()[1]
        dsrc = None
        if ctx.needs(2):
            dsrc = apply(Gather, dy, index, axis=ctx.attrs["axis"])
            shape = ctx.edges[2].shape
            if dsrc.shape != shape:
                dsrc = apply(Place, dsrc, shape=shape, index=tuple(slice(n) for n in dsrc.shape), value=0)
        return dy, None, dsrc


@register
class IndexSelect(Op):
    """y = the rows of x (its slices along an axis) that index names
    dx = zeros with each row of dy added where it came from
    """

    numpy = staticmethod(lambda x, index, axis: np.take(x, index, axis))
    wgpu = launch.IndexSelect()
    saves = ((), (0,))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        index = ctx.saved_inputs()[1]
        zeros = dy.new_zeros(ctx.edges[0].shape)
        return apply(IndexAdd, zeros, index, dy, axis=ctx.attrs["axis"]), None


def _index_add(x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int) -> np.ndarray:
    y = _sum_of(x)
    if y.ndim == 1 and x.dtype.kind == "f":  # bincount adds faster still than add.at
        y += np.bincount(index, src, len(y)).astype(y.dtype)
        return y.astype(x.dtype, copy=False)
    # add.at is fast at flat positions, and in parts whose positions stay in the cache.
    outer, inner = shapes.numel(y.shape[:axis]), shapes.numel(y.shape[axis + 1 :])
    index, sources = index.astype(np.int64, copy=False), src.reshape(outer, len(index), inner)
    corner = np.arange(outer)[:, None, None] * (y.shape[axis] * inner) + np.arange(inner)
    count = max(1, 32768 // max(1, outer * inner))
    for start in range(0, len(index), count):
        places = corner + index[start : start + count, None] * inner
        np.add.at(y.reshape(-1), places.reshape(-1), sources[:, start : start + count].reshape(-1))
    return y.astype(x.dtype, copy=False)


@register
class IndexAdd(Op):
    """y = x with each row of src added to the row that index names
    dx = dy; dsrc = the rows of dy that index names
    """

    numpy = staticmethod(_index_add)
    wgpu = launch.IndexAdd()
    saves = ((), (2,), ())

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        index = ctx.saved_inputs()[1]
        return dy, None, apply(IndexSelect, dy, index, axis=ctx.attrs["axis"]) if ctx.needs(2) else None


@register
class Nonzero(Op):
    """y = the positions of the elements that are not zero, one a row
    no gradient
    """

    numpy = staticmethod(lambda x: np.argwhere(x).astype(np.int64))
    wgpu = OnHost("nonzero", lambda x: np.argwhere(x).astype(np.int64))
    differentiable = False


HOST_OPS["nonzero"] = "the result's size depends on the values"


# -- public ---------------------------------------------------------------------------------------------


def checked_index(index: Any, size: int, op: str, wrap: bool = False) -> Tensor:
    """An integer tensor whose values lie in [0, size), or in [-size, size) with `wrap`, then made non-negative.

    IndexError naming the value that does not; TypeError for an index that is not of integers.
    """
    if not isinstance(index, Tensor) or index.dtype.rank != 1:
        got = index.dtype if isinstance(index, Tensor) else type(index).__name__
        raise TypeError(f"[{op}] an index is a tensor of int64 or int32; got {got}")
    if index.array.size == 0:
        return index
    low, high = index_bounds(index)
    return within(index, low, high, size, op, wrap)


def index_bounds(index: Tensor) -> tuple[int, int]:
    """The least and the greatest of an integer tensor's elements."""
    data = index.array
    if data.__class__ is not np.ndarray:
        return data.gpu.index_bounds(data)
    return int(np.minimum.reduce(data, None)), int(np.maximum.reduce(data, None))


def within(index: Tensor, low: int, high: int, size: int, op: str, wrap: bool = False) -> Tensor:
    """checked_index of one whose bounds are known."""
    least = -size if wrap else 0
    if low < least or high >= size:
        raise IndexError(f"[{op}] indices must lie in [{least}, {size - 1}]; got {low if low < least else high}")
    return index + (index < 0).to(index.dtype) * size if low < 0 else index


def untouched(x: Tensor, source: Any) -> Tensor:
    """A copy of x, into which nothing of `source` was written: that one's gradient is zeros then, and not missing."""
    if not isinstance(source, Tensor) or not source.requires_grad:
        return x.clone()
    nowhere = create.zeros(0, dtype=dtypes.int64, device=x.device)
    return apply(IndexAdd, x.reshape(-1), nowhere, source.reshape(-1)[:0].to(x.dtype), axis=0).reshape(x.shape)


def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """y[i][j] = x[index[i][j]][j] for dim 0, and likewise for others; index has as many dimensions as x.

    sparse_grad: gradients are always dense; accepted for PyTorch's sake.
    """
    i = shapes.axis_of(dim, x.ndim, "gather")
    if isinstance(index, Tensor) and not index.numel():
        return x.reshape(-1)[:0].reshape(index.shape)
    x = x if x.ndim else x.reshape(1)
    places = index.reshape(1) if isinstance(index, Tensor) and not index.ndim else index
    _fits(x, places, i, "gather")
    return apply(Gather, x, checked_index(places, x.shape[i], "gather"), axis=i).reshape(index.shape)


def _fits(x: Tensor, index: Any, axis: int, op: str) -> None:
    shape = getattr(index, "shape", ())
    if len(shape) != x.ndim or any(n > x.shape[k] for k, n in enumerate(shape) if k != axis):
        rule = f"index must have x's dimensions and at most its sizes except along {axis}"
        raise ValueError(f"[{op}] {rule}; got {shape} for {x.shape}")


def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """x with src[i][j] added at [index[i][j]][j] for dim 0; repeated positions add up, in the same order every time."""
    i = shapes.axis_of(dim, x.ndim, "scatter_add")
    if isinstance(index, Tensor) and not index.numel():
        return untouched(x, src)
    shape = x.shape
    x, index, src = (t.reshape(1) if isinstance(t, Tensor) and not t.ndim else t for t in (x, index, src))
    _fits(x, index, i, "scatter_add")
    fits = src.ndim == index.ndim and all(n <= m for n, m in zip(index.shape, src.shape, strict=True))
    if x.dtype is not src.dtype or not fits:
        got = f"{src.shape} {src.dtype} for {index.shape} {x.dtype}"
        raise ValueError(f"[scatter_add] src must cover index and share x's dtype; got {got}")
    return apply(ScatterAdd, x, checked_index(index, x.shape[i], "scatter_add"), src, axis=i).reshape(shape)


def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of x along `dim` that a vector of integers names."""
    i = shapes.axis_of(dim, x.ndim, "index_select")
    if isinstance(index, Tensor) and (index.ndim > 1 or (not x.ndim and index.numel() != 1)):
        raise ValueError(f"[index_select] the index is a vector (of one, for a 0-d tensor); got shape {index.shape}")
    rows = checked_index(index, x.shape[i] if x.ndim else 1, "index_select")
    y = apply(IndexSelect, x.reshape(x.shape or (1,)), rows.reshape(-1), axis=i)
    return y if x.ndim else y.reshape(())


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """x with the slices of alpha * source added to those that index names; repeated ones add up."""
    i = shapes.axis_of(dim, x.ndim, "index_add")
    if isinstance(index, Tensor) and index.ndim > 1:
        raise ValueError(f"[index_add] the index is a vector; got shape {index.shape}")
    shape = x.shape
    x, source = x.reshape(shape or (1,)), source if shape else source.reshape(source.numel())
    rows = checked_index(index, x.shape[i], "index_add").reshape(-1)
    wanted = (*x.shape[:i], rows.numel(), *x.shape[i + 1 :])
    if (source.shape or (1,)) != wanted or source.dtype is not x.dtype:
        raise ValueError(f"[index_add] source must be {wanted} {x.dtype}; got {source.shape} {source.dtype}")
    source = source.reshape(wanted)
    return apply(IndexAdd, x, rows, source if alpha == 1 else source * alpha, axis=i).reshape(shape)


def nonzero(x: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of non-zero elements: an int64 matrix with a row each, or a tuple with a vector a dimension."""
    if as_tuple and not x.ndim:
        x = x.reshape(1)
    rows = apply(Nonzero, x.detach())
    return tuple(rows[:, k] for k in range(x.ndim)) if as_tuple else rows


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """x[index] for an integer tensor of any shape and the first dimension of x."""
    rows = apply(IndexSelect, x, index.reshape(-1), axis=0)
    return rows.reshape(*index.shape, *x.shape[1:])


public(gather)
public(scatter_add)
public(index_select)
public(index_add)
public(nonzero)
