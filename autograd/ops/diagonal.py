"""Diagonals and sliding windows: the views whose strides no slice can say, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import shapes
from ..op import Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from .getitem import fill
from .movement import Place, Slice
from .views import clone, permute, reshape, unsqueeze


def _numpy_diagonal(x: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    y = np.diagonal(x, offset, dim1, dim2)
    if x.flags.writeable:
        y.flags.writeable = True
    return y


def _wgpu_diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    rest = [i for i in range(len(x.shape)) if i not in (dim1, dim2)]
    down, right = x.strides[dim1], x.strides[dim2]
    count = _length(x.shape[dim1], x.shape[dim2], offset)
    first = max(-offset, 0) * down + max(offset, 0) * right if count else 0
    shape, strides = [x.shape[i] for i in rest], [x.strides[i] for i in rest]
    return x.view((*shape, count), (*strides, down + right), x.offset + first)


def _length(rows: int, columns: int, offset: int) -> int:
    return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)


@register
class Diagonal(Op):
    """y[.., i] = x[.., i - min(k, 0), i + max(k, 0), ..], the k-th diagonal over two dimensions, a view
    dx = zeros with dy on that diagonal
    """

    numpy = staticmethod(_numpy_diagonal)
    wgpu = staticmethod(_wgpu_diagonal)
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        shape, (offset, dim1, dim2) = ctx.edges[0].shape, ctx.attrs.values()
        return _put_back(_embed(dy, shape[dim1], shape[dim2], offset), dim1, dim2)


def _embed(x: Tensor, rows: int, columns: int, offset: int) -> Tensor:
    """[..., L] -> [..., rows, columns], zero but for x on a diagonal: a step of columns + 1 through the flat matrix."""
    count, lead = x.shape[-1], x.shape[:-1]
    start = -offset * columns if offset < 0 else offset
    stop = start + (count - 1) * (columns + 1) + 1 if count else start
    index = (*(slice(None),) * len(lead), slice(start, stop, columns + 1))
    flat = apply(Place, x, shape=(*lead, rows * columns), index=index, value=0)
    return reshape(flat, (*lead, rows, columns))


def _put_back(x: Tensor, dim1: int, dim2: int) -> Tensor:
    """x with its last two dimensions moved to dim1 and dim2."""
    order = list(range(x.ndim - 2))
    for dim, source in sorted(((dim1, x.ndim - 2), (dim2, x.ndim - 1))):
        order.insert(dim, source)
    return permute(x, order)


def _owner(x: np.ndarray) -> Any:
    return x if x.base is None else x.base


def _numpy_unfold(x: np.ndarray, axis: int, size: int, step: int) -> np.ndarray:
    shape, strides = _window(x.shape, x.strides, axis, size, step)
    owner = _owner(x)
    if not isinstance(owner, np.ndarray) or not owner.flags.c_contiguous:  # memory that NumPy did not make: a copy
        return np.lib.stride_tricks.as_strided(x, shape, strides).copy()
    start = x.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(shape, x.dtype, owner, start, strides)


def _wgpu_unfold(x: Any, axis: int, size: int, step: int) -> Any:
    return x.view(*_window(x.shape, x.strides, axis, size, step), x.offset)


def _window(shape: tuple, strides: tuple, axis: int, size: int, step: int) -> tuple:
    count = (shape[axis] - size) // step + 1
    return (
        (*shape[:axis], count, *shape[axis + 1 :], size),
        (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis]),
    )


@register
class Unfold(Op):
    """y[.., w, .., k] = x[.., w * step + k, ..], windows along an axis, a view
    dx[i] = the sum of dy[w, k] over all windows with w * step + k = i
    """

    numpy = staticmethod(_numpy_unfold)
    wgpu = staticmethod(_wgpu_unfold)
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        axis, size, step = ctx.attrs.values()
        n, count = ctx.edges[0].shape[axis], dy.shape[axis]
        rest = [i for i in range(dy.ndim - 1) if i != axis]
        dy = permute(dy, [*rest, axis, dy.ndim - 1])
        if count == 0 or size == 0:
            dx = dy.new_zeros((*dy.shape[:-2], n))
        else:
            dx = _overlap_add(dy, n, count, size, step)
        order = list(range(dx.ndim - 1))
        order.insert(axis, dx.ndim - 1)
        return permute(dx, order)


def _overlap_add(dy: Tensor, n: int, count: int, size: int, step: int) -> Tensor:
    """[..., windows, size] -> [..., n]: column k of dy, shifted by k, summed over k.

    The columns become rows of n + 1, dilated by the step; the same memory cut into rows of n shifts row k by k.
    """
    lead = dy.shape[:-2]
    everything = (slice(None),) * len(lead)
    columns = permute(dy, [*range(len(lead)), len(lead) + 1, len(lead)])
    index = (*everything, slice(None), slice(0, (count - 1) * step + 1, step))
    rows = apply(Place, columns, shape=(*lead, size, n + 1), index=index, value=0)
    flat = apply(Slice, reshape(rows, (*lead, size * (n + 1))), index=(*everything, slice(0, size * n)))
    return reshape(flat, (*lead, size, n)).sum(-2)


# -- public ---------------------------------------------------------------------------------------------


def _two_dims(x: Tensor, dim1: int, dim2: int, ndim: int, op: str) -> tuple[int, int]:
    i, j = shapes.axis_of(dim1, ndim, op), shapes.axis_of(dim2, ndim, op)
    if i == j or ndim < 2:
        raise ValueError(f"[{op}] needs two different dimensions; got {dim1} and {dim2} for shape {x.shape}")
    return i, j


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal over two dimensions, as the last dimension of a view; `offset` above (or, negative, below) the main."""
    i, j = _two_dims(x, dim1, dim2, x.ndim, "diagonal")
    return apply(Diagonal, x, offset=offset, dim1=i, dim2=j)


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices: diagonal() with other defaults."""
    return diagonal(A, offset, dim1, dim2)


def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices, over two new dimensions, with the last dimension of x on a diagonal and zeros elsewhere."""
    i, j = _two_dims(x, dim1, dim2, x.ndim + 1, "diag_embed")
    n = x.shape[-1] + abs(offset)
    return _put_back(_embed(x, n, n, offset), i, j)


def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """A vector's square matrix, or a copy of a matrix's diagonal."""
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ValueError(f"[diag] expects a vector or a matrix; got shape {x.shape}. Use diagonal or diag_embed")
    return clone(apply(Diagonal, x, offset=diagonal, dim1=0, dim2=1))


def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """The square matrix with all elements of x on a diagonal."""
    return diag_embed(reshape(x, -1), offset)


def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of x with src on the diagonal that diagonal() shows."""
    return scattered(x, src, lambda y: diagonal(y, offset, dim1, dim2), "diagonal_scatter")


def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of x with src in place of x.select(dim, index)."""
    return scattered(x, src, lambda y: y.select(dim, index), "select_scatter")


def slice_scatter(x: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:  # fmt: skip
    """A copy of x with src in place of x[start:end:step] along `dim`."""
    if step < 1:
        raise ValueError(f"[slice_scatter] step must be positive; got {step}")
    index = (*(slice(None),) * shapes.axis_of(dim, x.ndim, "slice_scatter"), slice(start, end, step))
    return scattered(x, src, lambda y: apply(Slice, y, index=index), "slice_scatter")


def scattered(x: Tensor, src: Tensor, view: Any, name: str) -> Tensor:
    """A copy of x with src written into view(copy), which must have src's shape."""
    y = clone(x)
    part = view(y)
    if part.shape != src.shape:
        raise ValueError(f"[{name}] src must have the shape of what it replaces; got {src.shape} for {part.shape}")
    fill(part, src, name)
    return y


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements, `step` apart, along `dimension`, as a view with the window as its last dimension."""
    if not x.ndim:
        x = unsqueeze(x, 0)
        return reshape(apply(Slice, x, index=(slice(0, size),)), (size,)) if size in (0, 1) else unfold(x, 0, size, step)
    i = shapes.axis_of(dimension, x.ndim, "unfold")
    if not 0 <= size <= x.shape[i] or step < 1:
        raise ValueError(f"[unfold] size must lie in [0, {x.shape[i]}], step above 0; got size={size}, step={step} for {x.shape}")
    return apply(Unfold, x, axis=i, size=size, step=step)


for _function in (diagonal, diag_embed, diag, diagflat, diagonal_scatter, select_scatter, slice_scatter):
    public(_function)
Tensor.unfold = unfold  # type: ignore[attr-defined]
