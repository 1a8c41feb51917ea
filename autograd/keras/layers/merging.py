"""Layers that make one tensor of a list of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import create
from ...ops.select import where
from ...ops.views import cat
from ...tensor import Tensor
from ..tree import is_shape
from .base import ArgumentsLayer, axis_in
from .normalization import unit


def _check_list(shapes: Any, layer: str, count: int | None = None) -> None:
    wanted = "at least 1 input" if count is None else f"exactly {count} inputs"
    if is_shape(shapes) or not shapes or (count is not None and len(shapes) != count):
        raise ValueError(f"[{layer}] is called on a list of {wanted}; got shapes {shapes}")


def _over(mask: Tensor, x: Tensor) -> Tensor:
    """A mask [N, T] in a shape that broadcasts to x."""
    return mask.reshape(*mask.shape, *(1,) * (x.ndim - mask.ndim))


class Merge(ArgumentsLayer):
    """Base of what combines inputs element by element: subclasses write merge(xs, masks).

    Sizes broadcast as in NumPy; where ranks differ, dimensions of 1 are put after the batch's. The output has a mask
    when every input has one: a step counts where it counts in any of them.
    """

    supports_masking = True
    count: int | None = None

    def __init__(self, **kwargs: Any):
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """Nothing but checks."""
        self.compute_output_shape(input_shape)

    def call(self, inputs: Any, mask: Any = None) -> Tensor:
        """merge() of inputs of one rank."""
        _check_list([x.shape for x in inputs] if isinstance(inputs, list | tuple) else inputs.shape, self.name, self.count)
        rank = max(x.ndim for x in inputs)
        xs = [x.reshape(x.shape[0], *(1,) * (rank - x.ndim), *x.shape[1:]) for x in inputs]
        return self.merge(xs, [None] * len(xs) if mask is None else list(mask))

    def merge(self, xs: list[Tensor], masks: list) -> Tensor:
        """The inputs as one."""
        raise NotImplementedError(f"[{type(self).__name__}] has no merge()")

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """See the class."""
        if mask is None or any(m is None for m in mask):
            return None
        found = mask[0]
        for m in mask[1:]:
            found = found | m
        return found

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """ValueError where sizes do not fit."""
        _check_list(input_shape, type(self).__name__, self.count)
        batches = {s[0] for s in input_shape} - {None}
        if len(batches) > 1:
            raise ValueError(f"[{type(self).__name__}] inputs have one batch size; got shapes {input_shape}")
        rank = max(len(s) for s in input_shape)
        rows = [(1,) * (rank - len(s)) + tuple(s[1:]) for s in input_shape]
        sizes = [self._common({row[i] for row in rows}, input_shape) for i in range(rank - 1)]
        return (batches.pop() if batches else None, *sizes)

    def _common(self, sizes: set, shapes: Any) -> Any:
        known = sizes - {1, None}
        if len(known) > 1:
            raise ValueError(f"[{type(self).__name__}] sizes must be equal or 1; got shapes {shapes}")
        return None if None in sizes else known.pop() if known else 1


class Add(Merge):
    """The sum of the inputs."""

    def merge(self, xs: list[Tensor], masks: list) -> Tensor:
        """x0 + x1 + …"""
        y = xs[0]
        for x in xs[1:]:
            y = y + x
        return y


class Subtract(Merge):
    """The first of two inputs minus the second."""

    count = 2

    def merge(self, xs: list[Tensor], masks: list) -> Tensor:
        """x0 - x1."""
        return xs[0] - xs[1]


class Average(Add):
    """The mean of the inputs."""

    def merge(self, xs: list[Tensor], masks: list) -> Tensor:
        """(x0 + x1 + …) / n."""
        return super().merge(xs, masks) / len(xs)


class Multiply(Merge):
    """The product of the inputs; a masked step of one of them counts as 1. Where all are masked, the output is 0."""

    def merge(self, xs: list[Tensor], masks: list) -> Tensor:
        """x0 * x1 * …"""
        y: Any = None
        for x, mask in zip(xs, masks, strict=True):
            x = x if mask is None else where(_over(mask, x), x, 1.0)
            y = x if y is None else y * x
        found = self.compute_mask(xs, masks)
        return y if found is None else where(_over(found, y), y, 0.0)


class _Extreme(Merge):
    """Masked steps of an input take no part."""

    def merge(self, xs: list[Tensor], masks: list) -> Tensor:
        """The largest, or the smallest, of what is not masked."""
        y, seen = xs[0], masks[0]
        for x, mask in zip(xs[1:], masks[1:], strict=True):
            x = x if mask is None else where(_over(mask, x), x, y)
            y = y if seen is None else where(_over(seen, y), y, x)
            seen = None if seen is None or mask is None else seen | mask
            y = self.pick(y, x)
        return y

    def pick(self, a: Tensor, b: Tensor) -> Tensor:
        """One of two."""
        raise NotImplementedError(f"[{type(self).__name__}] has no pick()")


class Maximum(_Extreme):
    """The largest of the inputs, element by element; equals share the gradient."""

    def pick(self, a: Tensor, b: Tensor) -> Tensor:
        """The larger."""
        return a.maximum(b)


class Minimum(_Extreme):
    """The smallest of the inputs, element by element; equals share the gradient."""

    def pick(self, a: Tensor, b: Tensor) -> Tensor:
        """The smaller."""
        return a.minimum(b)


class Concatenate(ArgumentsLayer):
    """The inputs behind each other along an axis. The mask likewise; an input without one counts as seen everywhere.

    Along another axis than the steps', a step counts where it counts in any input.
    """

    supports_masking = True

    def __init__(self, axis: int = -1, **kwargs: Any):
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """Nothing but checks."""
        self.compute_output_shape(input_shape)

    def call(self, inputs: Any) -> Tensor:
        """See the class."""
        _check_list([x.shape for x in inputs] if isinstance(inputs, list | tuple) else inputs.shape, "Concatenate")
        return cat(list(inputs), self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """See the class."""
        if mask is None or all(m is None for m in mask):
            return None
        like = next(m for m in mask if m is not None)
        full = []
        for x, m in zip(inputs, mask, strict=True):
            seen = create.ones(*x.shape, dtype="bool", device=like.device) if m is None else _over(m, x).expand(*x.shape)
            full.append(seen)
        return cat(full, self.axis).any(-1)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """ValueError where other sizes than the axis' differ."""
        _check_list(input_shape, "Concatenate")
        axis = axis_in(self.axis, input_shape[0], "Concatenate")
        found = list(input_shape[0])
        for shape in input_shape[1:]:
            pairs = list(zip(found, shape, strict=False))
            if len(shape) != len(found) or any(a != b and None not in (a, b) for i, (a, b) in enumerate(pairs) if i != axis):
                raise ValueError(f"[Concatenate] inputs differ along axis {self.axis} only; got shapes {input_shape}")
            found = [b if a is None else a for a, b in pairs]
        sizes = [shape[axis] for shape in input_shape]
        found[axis] = None if None in sizes else sum(sizes)
        return tuple(found)


class Dot(ArgumentsLayer):
    """The sums over products along an axis of each of two inputs: axes is one number for both, or two; not the batch's.

    [N, a…, d, b…] and [N, e…, d, f…] -> [N, a…, b…, e…, f…], and [N, 1] for two vectors. normalize: of vectors with
    norm 1, which gives cosines. It has no mask.
    """

    def __init__(self, axes: int | Sequence[int], normalize: bool = False, **kwargs: Any):
        if not isinstance(axes, int):
            if not isinstance(axes, list | tuple) or len(axes) != 2 or not all(isinstance(a, int) for a in axes):
                raise TypeError(f"[Dot] axes is a whole number or two of them; got {axes!r}")
            axes = list(axes)
        super().__init__(locals(), **kwargs)

    def _axes(self, shapes: Any) -> tuple[int, int]:
        _check_list(shapes, "Dot", 2)
        given = [self.axes, self.axes] if isinstance(self.axes, int) else self.axes
        a, b = (axis_in(axis, shape, "Dot") for axis, shape in zip(given, shapes, strict=True))
        if 0 in (a, b):
            raise ValueError(f"[Dot] axes cannot be the batch's; got {self.axes}")
        if None not in (shapes[0][a], shapes[1][b]) and shapes[0][a] != shapes[1][b]:
            raise ValueError(f"[Dot] sizes along axes {self.axes} must be equal; got shapes {shapes}")
        return a, b

    def build(self, input_shape: Any) -> None:
        """Nothing but checks."""
        self._axes(input_shape)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        """See the class."""
        a, b = self._axes([x.shape for x in inputs])
        x, y = (unit(t, [axis]) if self.normalize else t for t, axis in zip(inputs, (a, b), strict=True))
        x, y = x.movedim(a, -1), y.movedim(b, -1)
        left, right = x.shape[1:-1], y.shape[1:-1]
        x, y = (t.reshape(t.shape[0], math.prod(t.shape[1:-1]), t.shape[-1]) for t in (x, y))
        rows = x @ y.mT
        return rows.reshape(x.shape[0], *((*left, *right) or (1,)))

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """See the class."""
        a, b = self._axes(input_shape)
        first, second = list(input_shape[0]), list(input_shape[1])
        del first[a], second[b]
        sizes = first + second[1:]
        return tuple(sizes if len(sizes) > 1 else [*sizes, 1])


def _function(kind: type) -> Any:
    """The layer as a function of its inputs: Keras' lower-case names."""

    def apply(inputs: Sequence, **kwargs: Any) -> Any:
        return kind(**kwargs)(list(inputs))

    apply.__name__ = apply.__qualname__ = kind.__name__.lower()
    apply.__doc__ = f"{kind.__name__}(**kwargs)(inputs)."
    return apply


add, subtract, multiply, average = (_function(kind) for kind in (Add, Subtract, Multiply, Average))
maximum, minimum, concatenate = (_function(kind) for kind in (Maximum, Minimum, Concatenate))


def dot(inputs: Sequence, axes: int | Sequence[int], **kwargs: Any) -> Any:
    """Dot(axes, **kwargs)(inputs)."""
    return Dot(axes, **kwargs)(list(inputs))
