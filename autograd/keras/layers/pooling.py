"""Pooling over windows, with TensorFlow's padding, and over everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import create, dtypes
from ...nn import functional as F
from ...ops.select import where
from ...tensor import Tensor
from ..layer import InputSpec
from .base import ArgumentsLayer, checked_format, choice, from_first, joined, numbers, sizes_of, to_first
from .convolution import padded, same_padding, window_count


class _Pooling(ArgumentsLayer):
    """The windows of x; padding="same" gives ceil(size / stride) of them, and what is added never counts."""

    rank = 1

    def __init__(self, arguments: dict, **kwargs: Any):
        name = type(self).__name__
        given = dict(arguments)
        given["pool_size"] = numbers(given["pool_size"], self.rank, "pool_size", name)
        strides = given["strides"]
        given["strides"] = given["pool_size"] if strides is None else numbers(strides, self.rank, "strides", name)
        given["padding"] = choice(given["padding"], ("valid", "same"), "padding", name)
        given["data_format"] = checked_format(given["data_format"], name)
        super().__init__(given, **kwargs)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        """The pooled windows."""
        self.compute_output_shape(inputs.shape)
        x = to_first(inputs, self.data_format)
        pairs = [(0, 0)] * self.rank
        if self.padding == "same":
            pairs = [same_padding(*row) for row in zip(x.shape[2:], self.pool_size, self.strides, strict=True)]
        return from_first(self.pool(x, pairs), self.data_format)

    def pool(self, x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
        """x [N, C, ...], to be padded by `pairs`."""
        raise NotImplementedError(f"[{type(self).__name__}] has no pool()")

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """ValueError where a window is larger than the input."""
        sizes, channels = sizes_of(input_shape, self.data_format)
        found = [window_count(*row, self.padding) for row in zip(sizes, self.pool_size, self.strides, strict=True)]
        if any(n is not None and n < 1 for n in found):
            raise ValueError(f"[{type(self).__name__}] windows of {self.pool_size} are larger than {tuple(input_shape)}")
        return joined(input_shape[0], found, channels, self.data_format)


class _MaxPooling(_Pooling):
    def pool(self, x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
        """The largest element of each window."""
        operation: Callable = (F.max_pool1d, F.max_pool2d)[self.rank - 1]
        return operation(padded(x, pairs, float("-inf")), self.pool_size, self.strides)


class _AveragePooling(_Pooling):
    def pool(self, x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
        """The mean of the input's elements in each window."""
        operation: Callable = (F.avg_pool1d, F.avg_pool2d)[self.rank - 1]
        y = operation(padded(x, pairs), self.pool_size, self.strides)
        if not any(n for pair in pairs for n in pair):
            return y
        share = np.ones((1,) * self.rank)
        for axis, (before, _) in enumerate(pairs):
            start = np.arange(y.shape[2 + axis]) * self.strides[axis] - before
            end = np.minimum(start + self.pool_size[axis], x.shape[2 + axis])
            inside = (end - np.maximum(start, 0)) / self.pool_size[axis]
            share = share / inside.reshape([-1 if i == axis else 1 for i in range(self.rank)])
        return y * create.place(dtypes.converted(share, x.dtype.numpy), x.device)


class MaxPooling1D(_MaxPooling):
    """The largest element of each window of x [N, T, C] ([N, C, T] for channels_first); strides: pool_size by default."""

    def __init__(self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", data_format: str | None = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class MaxPooling2D(_MaxPooling):
    """The largest element of each window of x [N, H, W, C] ([N, C, H, W] for channels_first)."""

    rank = 2

    def __init__(self, pool_size: Any = (2, 2), strides: Any = None, padding: str = "valid", data_format: str | None = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class AveragePooling1D(_AveragePooling):
    """The mean of each window of x [N, T, C] ([N, C, T] for channels_first); strides: pool_size by default."""

    def __init__(self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", data_format: str | None = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class AveragePooling2D(_AveragePooling):
    """The mean of each window of x [N, H, W, C] ([N, C, H, W] for channels_first)."""

    rank = 2

    def __init__(self, pool_size: Any = (2, 2), strides: Any = None, padding: str = "valid", data_format: str | None = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class _GlobalPooling(ArgumentsLayer):
    """Over all places of a channel: [N, ..., C] -> [N, C], with keepdims [N, 1, …, C]."""

    rank = 1

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any):
        data_format = checked_format(data_format, type(self).__name__)
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def axes(self) -> tuple[int, ...]:
        """Those between the batch and the channels."""
        first = 1 if self.data_format == "channels_last" else 2
        return tuple(range(first, first + self.rank))

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None: there are no steps any more."""

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """See the class."""
        kept = {axis: 1 if self.keepdims else 0 for axis in self.axes()}
        return tuple(kept.get(axis, n) for axis, n in enumerate(input_shape) if kept.get(axis, 1))


class GlobalMaxPooling1D(_GlobalPooling):
    """The largest element of each channel of x [N, T, C] ([N, C, T] for channels_first)."""

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return inputs.amax(self.axes(), keepdim=self.keepdims)


class GlobalMaxPooling2D(GlobalMaxPooling1D):
    """The largest element of each channel of x [N, H, W, C] ([N, C, H, W] for channels_first)."""

    rank = 2


class GlobalAveragePooling1D(_GlobalPooling):
    """The mean of each channel of x [N, T, C] ([N, C, T] for channels_first) over the steps that the mask leaves.

    A sample whose steps are all masked gives NaN, as in Keras.
    """

    supports_masking = True

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """See the class."""
        (axis,) = self.axes()
        if mask is None:
            return inputs.mean(axis, keepdim=self.keepdims)
        seen = mask.to(dtypes.bool_).unsqueeze(3 - axis)
        total = where(seen, inputs, 0.0).sum(axis, keepdim=self.keepdims)
        return total / seen.to(inputs.dtype).sum(axis, keepdim=self.keepdims)


class GlobalAveragePooling2D(_GlobalPooling):
    """The mean of each channel of x [N, H, W, C] ([N, C, H, W] for channels_first)."""

    rank = 2

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return inputs.mean(self.axes(), keepdim=self.keepdims)
