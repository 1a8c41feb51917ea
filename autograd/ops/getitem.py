"""x[index] and x[index] = value: PyTorch's indexing, led back to views, rows and masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import dtypes, shapes
from ..aliasing import assign
from ..create import place
from ..op import apply, public
from ..tensor import Tensor, rewrap
from .index import IndexAdd, checked_index, take_rows, untouched
from .movement import Slice
from .scatter import Scatter
from .select import where


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]: integers, slices, None and ... give views; integer and bool tensors, arrays and lists give copies."""
    basic, advanced = _parse(x, index)
    y = apply(Slice, x, index=basic) if basic else x
    return _take(y, advanced) if advanced else y


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value, history included."""
    if isinstance(index, Tensor) and index.dtype is dtypes.bool_ and index.shape == x.shape and not _sized(value):
        fill(x, where(index, value, rewrap_for_write(x)), "setitem")
        return
    basic, advanced = _parse(x, index)
    target = apply(Slice, x, index=basic) if basic else x
    if not advanced:
        fill(target, value, "setitem")
        return
    fill(target, _put(rewrap_for_write(target), advanced, value), "setitem")


def _sized(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0 or isinstance(value, list | tuple)


def rewrap_for_write(x: Tensor) -> Tensor:
    """x as it is now, for the computation of what it will be: x itself is about to point to the result."""
    old = rewrap(x.array, x.version)
    old.node, old._requires_grad = x.node, x._requires_grad
    return old if x.node is not None or not x._requires_grad else x


def _uploaded(value: Any, x: Tensor) -> Tensor:
    """Numbers and arrays as a tensor of x's dtype beside x: cast before they are uploaded, since a GPU has no float64."""
    return place(dtypes.converted(np.asarray(value), x.dtype.numpy), x.device)


def fill(x: Tensor, value: Any, name: str) -> Tensor:
    """x[...] = value, broadcast and cast to x's shape and dtype."""
    if not isinstance(value, Tensor):
        value = _uploaded(value, x) if _sized(value) else x.full_like(value)
    if value.device != x.device:
        if value.ndim:
            raise RuntimeError(f"[{name}] value and tensor must be on one device; got {value.device} and {x.device}")
        value = value.to(x.device)
    if not shapes.expandable(value.shape, x.shape):
        trimmed = value.shape[max(value.ndim - x.ndim, 0) :]
        if shapes.numel(value.shape) != shapes.numel(trimmed) or not shapes.expandable(trimmed, x.shape):
            raise ValueError(f"[{name}] the value must broadcast to what is written; got {value.shape} for {x.shape}")
        value = value.reshape(*trimmed)
    return assign(x, value.to(x.dtype).expand(*x.shape), name)


def _parse(x: Tensor, index: Any) -> tuple[tuple, dict[int, Tensor]]:
    """Split an index into a basic one and {dimension of the basic result: integer tensor}."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_as_index(i, x) for i in items]
    used = sum(i.ndim if _is_mask(i) else 1 for i in items if i is not None and i is not Ellipsis and not isinstance(i, bool))
    if used > x.ndim:
        raise IndexError(f"[getitem] too many indices for shape {x.shape}: {used}")
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError("[getitem] an index has at most one ...")
    if Ellipsis not in [i for i in items if not isinstance(i, Tensor)]:
        items.append(Ellipsis)
    at = next(k for k, i in enumerate(items) if i is Ellipsis)
    items[at : at + 1] = [slice(None)] * (x.ndim - used)
    basic: list[Any] = []
    advanced: dict[int, Tensor] = {}
    axis = out = 0
    for i in items:
        if i is None:
            basic.append(None)
            out += 1
            continue
        if isinstance(i, bool):  # a mask of no dimension: a new one, of size 1 or 0
            advanced[out] = place(np.zeros(int(i), np.int64), x.device)
            basic.append(None)
            out += 1
            continue
        if isinstance(i, Tensor):
            for part in _positions(i, x.shape, axis):
                advanced[out] = part
                basic.append(slice(None))
                axis, out = axis + 1, out + 1
            continue
        if isinstance(i, int):
            _in_range(i, axis, x.shape)
        else:
            out += 1
        basic.append(i)
        axis += 1
    while basic and basic[-1] == slice(None):
        basic.pop()
    return tuple(basic), advanced


def _in_range(i: int, axis: int, shape: tuple) -> None:
    n = shape[axis]
    if not -n <= i < n:
        raise IndexError(f"[getitem] index {i} is out of range for dimension {axis} of shape {shape}")


def _is_mask(i: Any) -> bool:
    return isinstance(i, Tensor) and i.dtype is dtypes.bool_


def _as_index(i: Any, x: Tensor) -> Any:
    """One element of an index: None, ..., a bool, an int, a slice, or a tensor on x's device."""
    if i is None or i is Ellipsis:
        return i
    if isinstance(i, slice):
        parts = [None if p is None else operator.index(p) for p in (i.start, i.stop, i.step)]
        return slice(*parts)
    if isinstance(i, Tensor | np.ndarray):
        if i.dtype in (dtypes.uint8, np.uint8):
            raise TypeError("[getitem] uint8 indices are a mask to PyTorch, numbers to NumPy; say which: .bool() or .long()")
        i = i if i.ndim else i.item()
    if isinstance(i, bool | np.bool_):
        return bool(i)
    if isinstance(i, list | tuple | range | np.ndarray):
        array = np.asarray(i) if len(i) else np.zeros(0, np.int64)
        if array.dtype.kind not in "biu":
            raise TypeError(f"[getitem] indices are integers or booleans; got {array.dtype}")
        return place(array if array.dtype == bool else array.astype(np.int64), x.device)
    if isinstance(i, Tensor):
        if i.dtype.is_floating_point:
            raise TypeError(f"[getitem] indices are integers or booleans; got {i.dtype}")
        return i if i.device == x.device or i.device.type != "cpu" else i.to(x.device)
    try:
        return operator.index(i)
    except TypeError:
        raise TypeError(f"[getitem] indices are integers, slices, None, ..., tensors and lists; got {type(i).__name__}") from None


def _positions(i: Tensor, shape: tuple, axis: int) -> list[Tensor]:
    """An index tensor as one non-negative integer tensor for each dimension that it covers."""
    if i.dtype is not dtypes.bool_:
        return [checked_index(i.long(), shape[axis], "getitem", wrap=True)]
    covered = shape[axis : axis + i.ndim]
    if i.shape != covered:
        raise IndexError(f"[getitem] a mask has the shape of what it covers; got {i.shape} for {covered} of {shape}")
    return list(i.nonzero(as_tuple=True))


def _take(x: Tensor, advanced: dict[int, Tensor]) -> Tensor:
    """x at integer tensors for some of its dimensions: their result goes where they stand, or first when apart."""
    rows, flat, order = _rows(x, advanced)
    y = take_rows(rows, flat)
    rest = [x.shape[k] for k in order[len(advanced) :]]
    y = y.reshape(*flat.shape, *rest)
    axes = list(advanced)
    if axes[-1] - axes[0] + 1 == len(axes) and axes[0] > 0:
        lead = flat.ndim
        back = [*range(lead, lead + axes[0]), *range(lead), *range(lead + axes[0], y.ndim)]
        y = y.permute(*back)
    return y


def _rows(x: Tensor, advanced: dict[int, Tensor]) -> tuple[Tensor, Tensor, list[int]]:
    """x as a matrix whose rows the flat index names: (rows, flat index, order of x's dimensions)."""
    axes = list(advanced)
    shapes.broadcast([i.shape for i in advanced.values()], "getitem")
    flat: Any = 0
    for k in axes:
        flat = advanced[k] + flat * x.shape[k]
    order = axes + [k for k in range(x.ndim) if k not in advanced]
    indexed = shapes.numel(x.shape[k] for k in axes)
    rest = shapes.numel(x.shape[k] for k in order[len(axes) :])
    moved = x if order == list(range(x.ndim)) else x.permute(*order)
    return moved.reshape(indexed, rest), flat, order


def _put(x: Tensor, advanced: dict[int, Tensor], value: Any, accumulate: bool = False) -> Tensor:
    """x with `value` written at, or added to, integer tensors' places; of repeated ones the last wins, or all add up."""
    rows, flat, order = _rows(x, advanced)
    if not isinstance(value, Tensor):
        value = _uploaded(value, x)
    axes = list(advanced)
    rest = [x.shape[k] for k in order[len(axes) :]]
    lead = flat.ndim
    inside = axes[-1] - axes[0] + 1 == len(axes) and axes[0] > 0  # the result's dimensions stand where the tensors stood
    at = axes[0] if inside else 0
    shape_taken = (*rest[:at], *flat.shape, *rest[at:])
    if not shapes.expandable(value.shape, shape_taken):
        raise ValueError(f"[setitem] the value must broadcast to what is written; got {value.shape} for {shape_taken}")
    value = value.to(x.dtype).expand(*shape_taken)
    if inside:
        value = value.permute(*range(at, at + lead), *range(at), *range(at + lead, value.ndim))
    value = value.reshape(flat.numel(), rows.shape[1])
    if not value.numel():
        return untouched(x, value)
    if accumulate:
        y = apply(IndexAdd, rows, flat.reshape(-1), value, axis=0)
    else:
        y = apply(Scatter, rows, flat.reshape(-1, 1).expand(*value.shape), value, axis=0)
    y = y.reshape(*(x.shape[k] for k in order))
    return y.permute(*shapes.inverse_permutation(tuple(order)))


def index_put(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with `values` written at x[indices], or added there; None in indices is a whole dimension."""
    if not all(i is None or isinstance(i, Tensor) for i in indices):
        raise TypeError(f"[index_put] indices are tensors and None; got {', '.join(type(i).__name__ for i in indices)}")
    index = tuple(slice(None) if i is None else i for i in indices)
    if not isinstance(values, Tensor) or values.dtype is not x.dtype:
        got = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"[index_put] values must be a tensor of {x.dtype}; got {got}")
    if not any(isinstance(i, Tensor) for i in index):
        raise TypeError("[index_put] expects at least one index tensor")
    _, advanced = _parse(x, tuple(i.reshape(1) if isinstance(i, Tensor) and not i.ndim else i for i in index))
    return _put(x, advanced, values, accumulate)


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of x where mask, a vector; both broadcast together."""
    if not isinstance(mask, Tensor) or mask.dtype is not dtypes.bool_:
        raise TypeError(f"[masked_select] the mask must be a bool tensor; got {getattr(mask, 'dtype', type(mask).__name__)}")
    shape = shapes.broadcast((x.shape, mask.shape), "masked_select") or (1,)
    return getitem(x.expand(*shape), mask.expand(*shape))


public(index_put)
public(masked_select)
Tensor.__getitem__ = getitem  # type: ignore[attr-defined]
Tensor.__setitem__ = setitem  # type: ignore[attr-defined]
