"""Rearranging: flips, rolls, repeats, joints and splits, all made of the views and copies of movement.py."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import create, dtypes, shapes
from ..op import apply, public
from ..tensor import Tensor
from .movement import Slice
from .views import cat, clone, expand, flip, narrow, permute, reshape, split, transpose, unsqueeze, view

# -- order ----------------------------------------------------------------------------------------------


def fliplr(x: Tensor) -> Tensor:
    """x with its columns in reverse order."""
    return flip(_at_least(x, 2, "fliplr"), 1)


def flipud(x: Tensor) -> Tensor:
    """x with its rows in reverse order."""
    return flip(_at_least(x, 1, "flipud"), 0)


def _at_least(x: Tensor, ndim: int, op: str) -> Tensor:
    if x.ndim < ndim:
        raise ValueError(f"[{op}] expects at least {ndim} dimensions; got shape {x.shape}")
    return x


def rot90(x: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """x turned by 90 degrees k times, from the first of `dims` towards the second."""
    if len(dims) != 2 or x.ndim < 2:
        raise ValueError(f"[rot90] expects two dims and at least 2 dimensions; got dims={tuple(dims)} for shape {x.shape}")
    i, j = (shapes.axis_of(d, x.ndim, "rot90") for d in dims)
    if i == j:
        raise ValueError(f"[rot90] the two dims must differ; got {tuple(dims)}")
    turns = k % 4
    if turns == 0:
        return clone(x)
    if turns == 2:
        return flip(x, i, j)
    return transpose(flip(x, j), i, j) if turns == 1 else flip(transpose(x, i, j), j)


def roll(x: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """x moved along `dims` by `shifts`, what leaves at one end coming in at the other; flattened first without dims."""
    steps = (shifts,) if isinstance(shifts, int | Tensor) else tuple(shifts)
    axes = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not axes and len(steps) == 1:
        return reshape(roll(reshape(x, -1), steps, 0), x.shape)
    if not x.ndim:
        raise IndexError(f"[roll] a 0-d tensor has no dimension {dims}; leave dims out")
    if len(steps) != len(axes) or not steps:
        raise ValueError(f"[roll] as many shifts as dims; got shifts={shifts} and dims={dims}")
    y = x
    for step, dim in zip(steps, axes, strict=True):
        i = shapes.axis_of(dim, x.ndim, "roll")
        n = x.shape[i] if x.ndim else 1
        cut = operator.index(-step) % n if n else 0
        if cut:
            y = cat([narrow(y, i, cut, n - cut), narrow(y, i, 0, cut)], i)
    return clone(y) if y is x else y


def movedim(x: Tensor, source: Any, destination: Any) -> Tensor:
    """x with the dimensions `source` at the places `destination`, the others in order between them, a view."""
    left, right = ((d,) if isinstance(d, int) else tuple(d) for d in (source, destination))
    sources, places = (tuple(shapes.axis_of(d, x.ndim, "movedim") for d in dims) for dims in (left, right))
    if len(sources) != len(places) or len(set(sources)) != len(sources) or len(set(places)) != len(places):
        raise ValueError(f"[movedim] distinct dimensions, as many from as to; got {source} and {destination}")
    order = [d for d in range(x.ndim) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return permute(x, order)


# -- repeating ------------------------------------------------------------------------------------------


def repeat(x: Tensor, *args: Any, repeats: Any = ()) -> Tensor:
    """x side by side, repeats[i] times along dimension i; leading dimensions are added where there are more repeats."""
    counts = shapes.shape_args(args or (tuple(repeats),), "repeat")
    if len(counts) < x.ndim or any(n < 0 for n in counts):
        raise ValueError(f"[repeat] one non-negative count for each dimension, or more; got {counts} for shape {x.shape}")
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    if all(n == 1 for n in counts):
        return clone(reshape(x, shape))
    apart = [n for size in shape for n in (1, size)]
    wide = [n for pair in zip(counts, shape, strict=True) for n in pair]
    total = tuple(n * size for n, size in zip(counts, shape, strict=True))
    return reshape(expand(reshape(x, apart), wide), total)


def tile(x: Tensor, *args: Any, dims: Any = ()) -> Tensor:
    """repeat(), with missing leading counts taken as 1."""
    counts = shapes.shape_args(args or (tuple(dims),), "tile")
    return repeat(x, (1,) * (x.ndim - len(counts)) + counts)


def repeat_interleave(x: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element of x (each slice along `dim`) `repeats` times in a row; repeats is a number or one for each.

    With repeats alone (an integer vector) the result is the positions: [2, 1] -> [0, 0, 1].
    """
    if repeats is None:
        x, repeats = create.arange(x.numel(), device=x.device), x
    if dim is None:
        x, dim = reshape(x, -1), 0
    i = shapes.axis_of(dim, x.ndim, "repeat_interleave")
    x = x if x.ndim else reshape(x, 1)
    counts = repeats._host() if isinstance(repeats, Tensor) else np.asarray(repeats)
    n = x.shape[i]
    if counts.dtype.kind != "i" or counts.ndim > 1 or (counts.size != 1 and counts.size != n) or (counts < 0).any():
        raise ValueError(f"[repeat_interleave] repeats is a whole number or {n} of them, none negative; got {counts.tolist()}")
    total = int(counts.sum()) * (n if counts.size == 1 and n != 1 else 1)
    if output_size is not None and output_size != total:
        raise ValueError(f"[repeat_interleave] output_size must be {total}; got {output_size}")
    if counts.size == 1:
        count = int(counts.reshape(()))
        wide = expand(unsqueeze(x, i + 1), (*x.shape[: i + 1], count, *x.shape[i + 1 :]))
        return reshape(wide, (*x.shape[:i], n * count, *x.shape[i + 1 :]))
    rows = create.place(np.repeat(np.arange(n), counts), x.device)
    return x.index_select(i, rows)


# -- shape ----------------------------------------------------------------------------------------------


def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """x with one dimension split into several, whose sizes multiply to it; one may be -1."""
    i = shapes.axis_of(dim, x.ndim, "unflatten")
    if not len(sizes) or not x.ndim:
        raise ValueError(f"[unflatten] needs a dimension and sizes for it; got {tuple(sizes)} for shape {x.shape}")
    inner = shapes.resolve_reshape((x.shape[i],), shapes.shape_args((sizes,), "unflatten"), "unflatten")
    return reshape(x, (*x.shape[:i], *inner, *x.shape[i + 1 :]))


def ravel(x: Tensor) -> Tensor:
    """x as a vector."""
    return reshape(x, -1)


def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """x in other's shape."""
    return reshape(x, other.shape)


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """x in other's shape, never a copy."""
    return view(x, other.shape)


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """x expanded to other's shape."""
    return expand(x, other.shape)


def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """x summed to `size`, a shape that broadcasts to x's."""
    shape = shapes.shape_args(size, "sum_to_size")
    if not shapes.expandable(shape, x.shape):
        raise ValueError(f"[sum_to_size] the size must broadcast to the tensor's; got {shape} for {x.shape}")
    return x.sum_to(shape)


def broadcast_shapes(*sizes: Any) -> tuple:
    """The shape that all of these (shapes, or whole numbers for vectors) broadcast to."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in sizes]
    if any(n < 0 for shape in given for n in shape):
        raise ValueError(f"[broadcast_shapes] sizes must not be negative; got {given}")
    return shapes.broadcast(given, "broadcast_shapes")


def _each_or_one(function: Callable, doc: str, name: str) -> Callable:
    def many(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
            tensors = tuple(tensors[0])
            return tuple([function(x) for x in tensors])
        return function(tensors[0]) if len(tensors) == 1 else tuple([function(x) for x in tensors])

    many.__name__, many.__doc__ = name, f"{doc} Several tensors give a tuple."
    return many


def _two_dimensional(x: Tensor) -> Tensor:
    return reshape(x, (1, -1) if x.ndim else (1, 1)) if x.ndim < 2 else x


def _three_dimensional(x: Tensor) -> Tensor:
    return x if x.ndim > 2 else unsqueeze(x, 2) if x.ndim == 2 else reshape(x, (1, x.numel(), 1))


atleast_1d = _each_or_one(lambda x: x if x.ndim else reshape(x, 1), "A number as a vector, the rest as it is.", "atleast_1d")
atleast_2d = _each_or_one(_two_dimensional, "A number or vector as a matrix of one row, the rest as it is.", "atleast_2d")
atleast_3d = _each_or_one(_three_dimensional, "A vector (1, n, 1), a matrix (m, n, 1), the rest as it is.", "atleast_3d")


# -- joints and splits ----------------------------------------------------------------------------------


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along 0."""
    parts = _several(tensors, atleast_1d, "hstack")
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors below one another, vectors as rows."""
    return cat(_several(tensors, atleast_2d, "vstack"), 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors behind one another, along dimension 2."""
    return cat(_several(tensors, atleast_3d, "dstack"), 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side, vectors as columns."""
    return cat(_several(tensors, lambda x: x if x.ndim > 1 else reshape(x, (x.numel(), 1)), "column_stack"), 1)


def _several(tensors: Sequence[Tensor], function: Callable, op: str) -> list[Tensor]:
    if not len(tensors):
        raise ValueError(f"[{op}] expects at least one tensor")
    return [function(x) for x in tensors]


def tensor_split(x: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None,
                 sections: Any = None) -> tuple:  # fmt: skip
    """x in `sections` parts along `dim`, as equal as can be, or cut before each of `indices`; views."""
    where = next((w for w in (indices_or_sections, indices, sections) if w is not None), None)
    _at_least(x, 1, "tensor_split")
    i = shapes.axis_of(dim, x.ndim, "tensor_split")
    if isinstance(where, Tensor):
        if where.dtype is not dtypes.int64 or where.ndim > 1:
            raise ValueError(f"[tensor_split] sections or indices are int64, 0-D or 1-D; got {where.dtype} {where.shape}")
        where = where.tolist()
    n = x.shape[i]
    if isinstance(where, int):
        if where < 1:
            raise ValueError(f"[tensor_split] sections must be positive; got {where}")
        cuts = [k * (n // where) + min(k, n % where) for k in range(where + 1)]
    else:
        cuts = [0, *[operator.index(k) for k in where], n]  # type: ignore[union-attr]
    return tuple(apply(Slice, x, index=(*(slice(None),) * i, slice(a, b))) for a, b in itertools.pairwise(cuts))


def _split_along(name: str, least: int, axis: int) -> Callable:
    def parts(x: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> tuple:
        where = next((w for w in (indices_or_sections, indices, sections) if w is not None), None)
        i = 0 if _at_least(x, least, name).ndim == 1 else axis
        if isinstance(where, str | float | None):
            raise TypeError(f"[{name}] give sections (a whole number) or indices (several); got {where!r}")
        if isinstance(where, int) and (where < 1 or x.shape[i] % where):
            raise ValueError(f"[{name}] dimension {i} of shape {x.shape} must split evenly; got {where} sections")
        return tensor_split(x, where, i)

    parts.__name__, parts.__doc__ = name, f"tensor_split along dimension {axis}, in parts of equal size."
    return parts


hsplit, vsplit, dsplit = _split_along("hsplit", 1, 1), _split_along("vsplit", 2, 0), _split_along("dsplit", 3, 2)


def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple:
    """x in parts of the given sizes along `dim`, views."""
    if any(n < 0 for n in split_sizes):
        raise ValueError(f"[split_with_sizes] sizes must not be negative; got {tuple(split_sizes)}")
    return split(x, list(split_sizes), dim)


def select(x: Tensor, dim: int, index: int) -> Tensor:
    """The slice of x at `index` along `dim`, a view without that dimension."""
    i = shapes.axis_of(dim, _at_least(x, 1, "select").ndim, "select")
    k, n = operator.index(index), x.shape[i]
    if not -n <= k < n:
        raise IndexError(f"[select] index {k} is out of range for dimension {i} of shape {x.shape}")
    return apply(Slice, x, index=(*(slice(None),) * i, k))


for _function in (fliplr, flipud, rot90, roll, movedim, repeat, tile, repeat_interleave, unflatten, ravel, reshape_as, view_as,
                  expand_as, sum_to_size, atleast_1d, atleast_2d, atleast_3d, tensor_split, hsplit, vsplit, dsplit,
                  split_with_sizes, select):  # fmt: skip
    public(_function)
for _function in (broadcast_shapes, hstack, vstack, dstack, column_stack):
    public(_function, method=False)
public(movedim, "moveaxis")
public(vstack, "row_stack", method=False)
