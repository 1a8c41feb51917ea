"""Layers that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...nn import functional as F
from ...tensor import Tensor
from ..layer import InputSpec
from .base import ArgumentsLayer, checked_format, choice, from_first, joined, numbers, sizes_of, to_first, whole
from .convolution import padded


class Flatten(ArgumentsLayer):
    """[N, ...] -> [N, all the rest]; channels_first [N, C, ...] is first turned to [N, ..., C]."""

    def __init__(self, data_format: str | None = None, **kwargs: Any):
        data_format = checked_format(data_format, "Flatten")
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        x = inputs
        if self.data_format == "channels_first" and x.ndim > 2:
            x = x.permute(0, *range(2, x.ndim), 1)
        return x.reshape(x.shape[0], math.prod(x.shape[1:]))

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """One size beside the batch's."""
        return input_shape[0], None if None in input_shape[1:] else math.prod(input_shape[1:])


class Reshape(ArgumentsLayer):
    """[N, ...] -> [N, *target_shape]; one -1 in it is what is left."""

    def __init__(self, target_shape: Sequence[int], **kwargs: Any):
        target_shape = tuple(target_shape)
        super().__init__(locals(), **kwargs)
        if target_shape.count(-1) > 1 or any(n < 1 and n != -1 for n in target_shape):
            raise ValueError(f"[Reshape] target_shape holds positive sizes and at most one -1; got {target_shape}")

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return inputs.reshape(*self.compute_output_shape(inputs.shape))

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """ValueError where the numbers of elements differ."""
        given, target = tuple(input_shape[1:]), self.target_shape
        fixed = math.prod(n for n in target if n != -1)
        if None in given:
            return input_shape[0], *(None if n == -1 else n for n in target)
        total = math.prod(given)
        if total % fixed if -1 in target else total != fixed:
            raise ValueError(f"[Reshape] target_shape {target} does not hold the {total} elements of {given}")
        return input_shape[0], *(total // fixed if n == -1 else n for n in target)


class Permute(ArgumentsLayer):
    """The dimensions after the batch's in another order; dims counts from 1."""

    def __init__(self, dims: Sequence[int], **kwargs: Any):
        dims = tuple(dims)
        super().__init__(locals(), **kwargs)
        if sorted(dims) != list(range(1, len(dims) + 1)):
            raise ValueError(f"[Permute] dims holds 1 … {len(dims)}, each once; got {dims}")
        self.input_spec = InputSpec(ndim=len(dims) + 1)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return inputs.permute(0, *self.dims)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """The sizes in their new order."""
        return input_shape[0], *(input_shape[d] for d in self.dims)


class RepeatVector(ArgumentsLayer):
    """[N, d] -> [N, n, d], n times the same."""

    def __init__(self, n: int, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        whole(n, "n", "RepeatVector")
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return inputs.unsqueeze(1).expand(inputs.shape[0], self.n, inputs.shape[1])

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """n between the batch and the vector."""
        return input_shape[0], self.n, input_shape[1]


class _Border(ArgumentsLayer):
    """What adds or takes elements around [N, ..., C]: `border` holds (before, after) of each dimension between."""

    rank = 1

    def border(self) -> Sequence[tuple[int, int]]:
        """(before, after), negative where elements are taken."""
        raise NotImplementedError(f"[{type(self).__name__}] has no border()")

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        self.compute_output_shape(inputs.shape)
        return from_first(padded(to_first(inputs, self.data_format), list(self.border())), self.data_format)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """ValueError where nothing would be left."""
        sizes, channels = sizes_of(input_shape, self.data_format)
        found = [None if n is None else n + sum(pair) for n, pair in zip(sizes, self.border(), strict=True)]
        if any(n is not None and n < 1 for n in found):
            raise ValueError(f"[{type(self).__name__}] nothing is left of {tuple(input_shape)} with {list(self.border())}")
        return joined(input_shape[0], found, channels, self.data_format)


def _pairs(value: Any, name: str, layer: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """((before, after), (before, after)) from a number, from two, or from two pairs."""
    rows = (value, value) if isinstance(value, int) else tuple(value) if isinstance(value, list | tuple) else ()
    if len(rows) != 2:
        raise ValueError(f"[{layer}] {name} is a whole number, two of them or two pairs; got {value!r}")
    first, second = (numbers(row, 2, name, layer, 0) for row in rows)
    return (first[0], first[1]), (second[0], second[1])


class ZeroPadding1D(_Border):
    """x [N, T, C] with zeros around the steps: padding is a number, or (before, after)."""

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any):
        padding, data_format = numbers(padding, 2, "padding", "ZeroPadding1D", 0), checked_format(data_format, "ZeroPadding1D")
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=3)

    def border(self) -> Sequence[tuple[int, int]]:
        """(before, after)."""
        return (self.padding,)


class ZeroPadding2D(_Border):
    """x [N, H, W, C] with zeros around: padding is a number, (height, width), or ((top, bottom), (left, right))."""

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any):
        padding, data_format = _pairs(padding, "padding", "ZeroPadding2D"), checked_format(data_format, "ZeroPadding2D")
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=4)

    def border(self) -> Sequence[tuple[int, int]]:
        """(before, after) of height and width."""
        return self.padding


class Cropping1D(_Border):
    """x [N, T, C] without its first and last steps: cropping is a number, or (before, after)."""

    data_format = "channels_last"

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any):
        cropping = numbers(cropping, 2, "cropping", "Cropping1D", 0)
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=3)

    def border(self) -> Sequence[tuple[int, int]]:
        """(before, after), negative."""
        return ((-self.cropping[0], -self.cropping[1]),)


class Cropping2D(_Border):
    """x [N, H, W, C] without its border: cropping is a number, (height, width), or ((top, bottom), (left, right))."""

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any):
        cropping, data_format = _pairs(cropping, "cropping", "Cropping2D"), checked_format(data_format, "Cropping2D")
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=4)

    def border(self) -> Sequence[tuple[int, int]]:
        """(before, after) of height and width, negative."""
        return [(-before, -after) for before, after in self.cropping]


class UpSampling1D(ArgumentsLayer):
    """x [N, T, C] with every step `size` times."""

    def __init__(self, size: int = 2, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        whole(size, "size", "UpSampling1D")
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return inputs.repeat_interleave(self.size, 1)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """size times the steps."""
        n, steps, channels = input_shape
        return n, None if steps is None else steps * self.size, channels


class UpSampling2D(ArgumentsLayer):
    """x [N, H, W, C] with size = (rows, columns) times the height and width.

    interpolation: "nearest" repeats, "bilinear" weighs the two nearest centres along each axis.
    """

    def __init__(self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest", **kwargs: Any):
        size, data_format = numbers(size, 2, "size", "UpSampling2D"), checked_format(data_format, "UpSampling2D")
        interpolation = choice(interpolation, ("nearest", "bilinear"), "interpolation", "UpSampling2D")
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=4)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        x = to_first(inputs, self.data_format)
        if self.interpolation == "nearest":
            y = x.repeat_interleave(self.size[0], 2).repeat_interleave(self.size[1], 3)
        else:
            sizes = [n * k for n, k in zip(x.shape[2:], self.size, strict=True)]
            y = F.interpolate(x, sizes, mode="bilinear", align_corners=False)
        return from_first(y, self.data_format)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """size times the height and width."""
        sizes, channels = sizes_of(input_shape, self.data_format)
        found = [None if n is None else n * k for n, k in zip(sizes, self.size, strict=True)]
        return joined(input_shape[0], found, channels, self.data_format)
