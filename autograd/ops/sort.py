"""Sorting and searching: one primitive, argsort; the rest reads elements in its order."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .. import create, dtypes, shapes
from ..op import Op, apply, public, register
from ..tensor import Tensor, wrap
from ..webgpu import launch
from .reduce import Pair
from .rounding import tensors
from .select import where
from .views import cat


def _argsort(x: np.ndarray, axis: int, descending: bool, first: int | None = None) -> np.ndarray:
    if first is not None:
        return np.moveaxis(_first(np.moveaxis(x, axis, -1), first, descending), -1, axis)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    # Backwards on the reversed: equal elements keep their order, and NaN, the largest, comes first.
    order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - order


def _first(x: np.ndarray, k: int, descending: bool) -> np.ndarray:
    """The first k positions of each row's order: only what is at least as far in front as the k-th is sorted."""
    n = x.shape[-1]
    at = n - k if descending else k - 1
    if not 0 < k < n:
        return _argsort(x, -1, descending)[..., :k]
    parts = np.partition(x, at, -1)
    last = parts[..., at : at + 1]
    if x.dtype.kind == "f" and np.isnan(parts[..., at:] if descending else last).any():
        return _argsort(x, -1, descending)[..., :k]  # NaN compares with nothing
    kept = x >= last if descending else x <= last
    if np.count_nonzero(kept) > kept.size // n * k:  # of those equal to the k-th, the front ones
        ties = x == last
        room = k - (kept & ~ties).sum(-1, keepdims=True)
        kept &= ~ties | (ties.cumsum(-1) <= room)
    positions = np.flatnonzero(kept).reshape(*x.shape[:-1], k) % n
    order = _argsort(np.take_along_axis(x, positions, -1), -1, descending)
    return np.take_along_axis(positions, order, -1)


@register
class Argsort(Op):
    """y = the positions of the elements along an axis, in order; equal ones stay in theirs, NaN is the largest
    no gradient
    """

    numpy = staticmethod(_argsort)
    wgpu = launch.Argsort("argsort")
    differentiable = False


def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that sort x along `dim`. Always stable; NaN counts as the largest."""
    tensors("argsort", x)
    axis = shapes.axis_of(dim, x.ndim, "argsort")
    if not x.ndim:
        return x.zeros_like(dtype=dtypes.int64)
    return apply(Argsort, x.detach(), axis=axis, descending=bool(descending))


def front(x: Tensor, k: int, axis: int, descending: bool = False) -> Tensor:
    """The first k of argsort; on the CPU without sorting the rest."""
    if x.array.__class__ is np.ndarray and x.ndim:
        return apply(Argsort, x.detach(), axis=axis, descending=bool(descending), first=k)
    order = argsort(x, axis, descending)
    return order.narrow(axis, 0, k) if x.ndim else order


def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = False) -> Pair:
    """(values, indices) of x in order along `dim`. Always stable; NaN counts as the largest."""
    indices = argsort(x, dim, descending)
    return Pair((x.gather(dim, indices) if x.ndim else x.clone(), indices))


def msort(x: Tensor) -> Tensor:
    """x in ascending order along its first dimension."""
    return sort(x, 0)[0]


def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    """(values, indices) of the k largest (or smallest) along `dim`, in order."""
    tensors("topk", x)
    axis = shapes.axis_of(dim, x.ndim, "topk")
    size = x.shape[axis] if x.ndim else 1
    if not 0 <= k <= size:
        raise ValueError(f"[topk] k must lie in [0, {size}], the size along dim {axis}; got {k}")
    indices = front(x, k, axis, descending=largest)
    if not x.ndim:
        return Pair((x.clone(), indices)) if k else Pair((x.reshape(1)[:0], indices.reshape(1)[:0]))
    return Pair((x.gather(axis, indices), indices))


def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """(values, indices) of the k-th smallest along `dim`, counted from 1; NaN counts as the largest."""
    tensors("kthvalue", x)
    axis = shapes.axis_of(dim, x.ndim, "kthvalue")
    size = x.shape[axis] if x.ndim else 1
    if not 1 <= k <= size:
        raise ValueError(f"[kthvalue] k must lie in [1, {size}], the size along dim {axis}; got {k}")
    if not x.ndim:
        return Pair((x.clone(), argsort(x)))
    return picked(x, axis, front(x, k, axis).narrow(axis, k - 1, 1), keepdim)


def picked(x: Tensor, axis: int, indices: Tensor, keepdim: bool) -> Pair:
    """(values, indices) of one element of every row."""
    values = x.gather(axis, indices)
    return Pair((values, indices) if keepdim else (values.squeeze(axis), indices.squeeze(axis)))


def argwhere(x: Tensor) -> Tensor:
    """The positions of non-zero elements, a row each; see nonzero."""
    return x.nonzero()


def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` positions of non-zero elements, a row each; rows of fill_value where there are fewer."""
    tensors("nonzero_static", x)
    if size < 0:
        raise ValueError(f"[nonzero_static] size must not be negative; got {size}")
    rows = x.nonzero()[:size]
    return cat([rows, rows.new_full((size - rows.shape[0], x.ndim), fill_value)]) if rows.shape[0] < size else rows


# -- searching ------------------------------------------------------------------------------------------


def searchsorted(sorted_sequence: Tensor, values: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:  # fmt: skip
    """Where `values` would have to stand in the sorted rows (along the last dimension), left of equals or `right`.

    The rows' leading sizes are those of `values`, or it is one row for all. A binary search of all at once.
    """
    tensors("searchsorted", sorted_sequence)
    right = _to_the_right(right, side)
    row = sorted_sequence.detach()
    if not isinstance(values, Tensor):
        values = row.new_tensor(values, dtype=dtypes.scalar_dtype(values))
    values = values.detach()
    _check_rows(row, values, sorter)
    if sorter is not None:
        row = row.gather(-1, sorter.to(dtypes.int64))
    found = _search(row, values, right)
    return found.to(dtypes.int32) if out_int32 else found


def _to_the_right(right: bool, side: str | None) -> bool:
    if side not in (None, "left", "right"):
        raise ValueError(f'[searchsorted] side is "left" or "right"; got {side!r}')
    if side == "left" and right:
        raise ValueError('[searchsorted] side="left" contradicts right=True. Give one of them')
    return right or side == "right"


def _check_rows(row: Tensor, values: Tensor, sorter: Tensor | None) -> None:
    if not row.ndim:
        raise ValueError("[searchsorted] the sorted sequence needs a dimension; got a 0-d tensor")
    if row.ndim > 1 and row.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"[searchsorted] the sizes before the last must agree; got {row.shape} and {values.shape}")
    if row.dtype is not values.dtype and values.ndim:
        raise TypeError(f"[searchsorted] both must have one dtype; got {row.dtype} and {values.dtype}")
    if sorter is not None and (sorter.shape != row.shape or sorter.dtype.rank != 1):
        raise ValueError(f"[searchsorted] the sorter holds integers, of shape {row.shape}; got {sorter.dtype} {sorter.shape}")


def _search(row: Tensor, values: Tensor, right: bool) -> Tensor:
    """Binary search: the answer lies in [low, low + size], and every pass halves that."""
    d = dtypes.promote([(row.dtype, 2), (values.dtype, 2)])
    row, values = row.to(d), values.to(d)
    low = values.zeros_like(dtype=dtypes.int64)
    n = row.shape[-1]
    if not n or not values.numel():
        return low
    # NumPy searches one row at a time: in the only one, or when each is asked often.
    if row.array.__class__ is np.ndarray and d is not dtypes.bfloat16 and (row.ndim == 1 or values.shape[-1] > 8):
        return _search_rows(row.array, values.array, "right" if right else "left")
    size = 1 << n.bit_length()
    while size > 1:
        size //= 2
        probe = low + size
        at = probe.clamp(1, n) - 1
        seen = row.gather(-1, at) if row.ndim > 1 else row[at]
        if right:
            before = (seen <= values) | values.isnan()
        else:
            before = (seen < values) | (values.isnan() & ~seen.isnan())
        low = where(before & (probe <= n), probe, low)
    return low


def _search_rows(row: np.ndarray, values: np.ndarray, side: Literal["left", "right"]) -> Tensor:
    if row.ndim == 1:
        return wrap(np.asarray(np.searchsorted(row, values, side), np.int64))
    pairs = zip(row.reshape(-1, row.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    return wrap(np.concatenate([np.searchsorted(r, v, side) for r, v in pairs]).astype(np.int64).reshape(values.shape))


def bucketize(x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval of sorted `boundaries` (a vector) that each element lies in."""
    tensors("bucketize", boundaries)
    if boundaries.ndim != 1:
        raise ValueError(f"[bucketize] boundaries are a vector; got shape {boundaries.shape}")
    if isinstance(x, Tensor):
        d = dtypes.promote([(x.dtype, 2), (boundaries.dtype, 2)])
        x, boundaries = x.to(d), boundaries.to(d)
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of `test_elements` (or, with `invert`, is none)."""
    like = elements if isinstance(elements, Tensor) else test_elements
    tensors("isin", like)
    made = lambda v: v if isinstance(v, Tensor) else like.new_tensor(v, dtype=dtypes.scalar_dtype(v))
    elements, tests = made(elements), made(test_elements)
    d = dtypes.promote([(elements.dtype, 2), (tests.dtype, 2)])
    elements, tests = elements.detach().to(d), tests.detach().to(d).reshape(-1)
    if not tests.numel() or not elements.numel():
        found = elements.zeros_like(dtype=dtypes.bool_)
    else:
        row = sort(tests)[0]
        at = _search(row, elements, right=False).clamp(max=row.numel() - 1)
        found = row[at] == elements
    return ~found if invert else found


# -- distinct elements ----------------------------------------------------------------------------------


def unique(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:  # fmt: skip
    """The distinct elements (slices along `dim`) in order; with them, where each of x's went, and how often it came."""
    tensors("unique", x)
    rows, axis = _rows(x.detach(), dim, "unique")
    order = _lexicographic(rows)
    y, inverse, counts = _runs(rows.index_select(0, order))
    if return_inverse:
        back = inverse.zeros_like().scatter_add(0, order, inverse)
        inverse = back if dim is not None else back.reshape(x.shape)
    return _answer(_unrows(y, x, axis), inverse, counts, return_inverse, return_counts)


def unique_consecutive(x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """x without the elements (slices along `dim`) that equal the one before; see unique."""
    tensors("unique_consecutive", x)
    rows, axis = _rows(x.detach(), dim, "unique_consecutive")
    y, inverse, counts = _runs(rows)
    inverse = inverse if dim is not None else inverse.reshape(x.shape)
    return _answer(_unrows(y, x, axis), inverse, counts, return_inverse, return_counts)


def _rows(x: Tensor, dim: int | None, op: str) -> tuple[Tensor, int | None]:
    """x as a matrix whose rows are to be compared."""
    if dim is None:
        return x.reshape(-1, 1), None
    axis = shapes.axis_of(dim, x.ndim, op)
    if not x.ndim:
        return x.reshape(1, 1), None
    if 0 in x.shape:
        if x.shape[axis] == 0 and x.shape.count(0) == 1:
            raise ValueError(f"[{op}] nothing to compare along dim {axis} of shape {x.shape}")
        raise ValueError(f"[{op}] there are no elements to compare in shape {x.shape}")
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    return x.permute(order).reshape(x.shape[axis], -1), axis


def _unrows(y: Tensor, x: Tensor, axis: int | None) -> Tensor:
    if axis is None:
        return y.reshape(-1)
    rest = tuple(n for i, n in enumerate(x.shape) if i != axis)
    back = [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)]
    return y.reshape(y.shape[0], *rest).permute(back).contiguous()


def _lexicographic(rows: Tensor) -> Tensor:
    """The stable order of the rows: sorted by the last column first, by the first one last."""
    order = create.arange(rows.shape[0], device=rows.device)
    for k in range(rows.shape[1] - 1, -1, -1):
        order = order.index_select(0, argsort(rows.index_select(0, order)[:, k]))
    return order


def _runs(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(the first row of each run of equal ones, the run of each row, the lengths of the runs)."""
    n = rows.shape[0]
    if not n:
        none = rows.new_zeros((0,), dtype=dtypes.int64)
        return rows, none, none
    starts = (rows[1:] != rows[:-1]).any(1) if n > 1 else rows.new_zeros((0,), dtype=dtypes.bool_)
    starts = cat([rows.new_ones((1,), dtype=dtypes.bool_), starts])
    first = starts.nonzero().reshape(-1)
    end = cat([first[1:], first.new_full((1,), n)])
    return rows.index_select(0, first), starts.long().cumsum(0) - 1, end - first


def _answer(y: Tensor, inverse: Tensor, counts: Tensor, with_inverse: bool, with_counts: bool) -> Any:
    if not (with_inverse or with_counts):
        return y
    return (y, *((inverse,) if with_inverse else ()), *((counts,) if with_counts else ()))


for _function in (argsort, sort, msort, topk, kthvalue, unique, unique_consecutive, isin, argwhere, nonzero_static):
    public(_function)
for _function in (searchsorted, bucketize):
    public(_function, method=False)
