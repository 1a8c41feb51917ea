"""Arithmetic on shapes, axes and indices: pure functions that know nothing of tensors or devices."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from math import prod

Shape = tuple[int, ...]


def numel(shape: Iterable[int]) -> int:
    """The number of elements of a shape."""
    return prod(shape)


def axis_of(axis: int, ndim: int, op: str) -> int:
    """`axis` as a number in [0, ndim); IndexError when out of range (a 0-d tensor accepts 0 and -1)."""
    axis = operator.index(axis)
    n = max(ndim, 1)
    if not -n <= axis < n:
        raise IndexError(f"[{op}] dim must be in [{-n}, {n - 1}] for a tensor of {ndim} dimensions; got {axis}")
    return axis % n


def axes_of(axes: int | Iterable[int] | None, ndim: int, op: str) -> Shape:
    """`axes` as a sorted tuple of distinct numbers in [0, ndim). None and () mean all of them."""
    if axes is None:
        return tuple(range(ndim))
    if isinstance(axes, int):
        return (axis_of(axes, ndim, op),) if ndim else _scalar_axis(axes, op)
    found = tuple(axis_of(a, ndim, op) for a in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"[{op}] a dimension may appear once; got dim={tuple(axes)}")
    if not found:
        return tuple(range(ndim))
    return tuple(sorted(found)) if ndim else ()


def _scalar_axis(axis: int, op: str) -> Shape:
    axis_of(axis, 0, op)
    return ()


def shape_args(args: tuple, op: str) -> Shape:
    """A shape given as f(2, 3), f((2, 3)) or f([2, 3])."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0]) if isinstance(args[0], Iterable) else args
    try:
        return tuple([operator.index(a) for a in args])
    except TypeError:
        raise TypeError(f"[{op}] a shape is made of whole numbers; got {args}") from None


def resolve_reshape(old: Shape, new: Shape, op: str) -> Shape:
    """`new` with its -1 filled in; ValueError when the number of elements does not fit."""
    total = prod(old)
    if new.count(-1) > 1 or any(n < -1 for n in new):
        raise ValueError(f"[{op}] a shape has at most one -1 and no other negative size; got {new}")
    if -1 in new:
        rest = prod(n for n in new if n != -1)
        if rest == 0 or total % rest:
            raise ValueError(f"[{op}] cannot spread {total} elements of {old} over {new}")
        return tuple(total // rest if n == -1 else n for n in new)
    if prod(new) != total:
        raise ValueError(f"[{op}] the number of elements must stay; got {old} ({total}) -> {new} ({prod(new)})")
    return new


def broadcast(shapes: Iterable[Shape], op: str) -> Shape:
    """The shape that all `shapes` broadcast to, by NumPy's rule; ValueError naming them when there is none."""
    shapes = list(shapes)
    out: list[int] = []
    for i in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {s[-i] for s in shapes if len(s) >= i} - {1}
        if len(sizes) > 1:
            text = " and ".join(map(str, shapes))
            raise ValueError(f"[{op}] sizes must be equal or 1, counted from the last dimension; got {text}")
        out.append(sizes.pop() if sizes else 1)
    return tuple(reversed(out))


def expandable(shape: Shape, target: Shape) -> bool:
    """Whether `shape` broadcasts to exactly `target`."""
    pad = len(target) - len(shape)
    return pad >= 0 and all(s in (1, t) for s, t in zip(shape, target[pad:], strict=True))


def reduced_axes(shape: Shape, target: Shape) -> Shape:
    """The axes of `shape` to sum over to undo a broadcast from `target`, leading ones first."""
    pad = len(shape) - len(target)
    stretched = (pad + i for i, t in enumerate(target) if t == 1 and shape[pad + i] != 1)
    return (*range(pad), *stretched)


def reduced_shape(shape: Shape, axes: Shape, keepdim: bool) -> Shape:
    """The shape left after a reduction over `axes` (sorted, non-negative)."""
    if keepdim:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def inverse_permutation(order: Shape) -> Shape:
    """p such that permuting by `order` and then by p changes nothing."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
