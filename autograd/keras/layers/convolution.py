"""Convolutions and their transposes over one and two dimensions, with TensorFlow's padding.

padding="same" gives ceil(size / stride) places; of an odd number of zeros the larger part comes after. "causal"
(one dimension) puts all of them before. Kernels have Keras' shapes, [*kernel_size, channels in, channels out].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nn import functional as F
from ...tensor import Tensor
from ..layer import InputSpec
from .base import ArgumentsLayer, checked_format, choice, from_first, joined, known, numbers, sizes_of, to_first, whole

LORA = {"lora_rank": None, "lora_alpha": None}


def span(kernel: int, dilation: int) -> int:
    """How far a kernel with holes reaches."""
    return (kernel - 1) * dilation + 1


def same_padding(size: int, reach: int, stride: int) -> tuple[int, int]:
    """(before, after) so that there are ceil(size / stride) windows."""
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def window_count(size: Any, reach: int, stride: int, padding: str) -> Any:
    """How many windows there are along an axis; None for None."""
    if size is None:
        return None
    return (size - reach) // stride + 1 if padding == "valid" else -(-size // stride)


def padded(x: Tensor, pairs: list[tuple[int, int]], value: float = 0.0) -> Tensor:
    """x with (before, after) elements along its last dimensions; negative numbers cut."""
    flat = [n for pair in reversed(pairs) for n in pair]
    return F.pad(x, flat, value=value) if any(flat) else x


def padding_pairs(shape: tuple, kernel: tuple, strides: tuple, dilation: tuple, padding: str) -> list[tuple[int, int]]:
    """(before, after) of each of the sizes `shape`."""
    if padding == "valid":
        return [(0, 0)] * len(shape)
    reach = [span(k, d) for k, d in zip(kernel, dilation, strict=True)]
    if padding == "causal":
        return [(r - 1, 0) for r in reach]
    return [same_padding(*row) for row in zip(shape, reach, strides, strict=True)]


class Convolution(ArgumentsLayer):
    """Base of all of them: arguments, weights, bias and activation. Subclasses write convolve(x) for x [N, C, ...]."""

    rank = 1
    paddings: tuple[str, ...] = ("valid", "same")

    def __init__(self, arguments: dict, **kwargs: Any):
        name = type(self).__name__
        given = dict(arguments)
        for key in ("kernel_size", "strides", "dilation_rate"):
            given[key] = numbers(given[key], self.rank, key, name)
        given["padding"] = choice(given["padding"], self.paddings, "padding", name)
        given["data_format"] = checked_format(given["data_format"], name)
        super().__init__(given, **kwargs)
        for key in ("filters", "groups", "depth_multiplier"):
            if key in given:
                whole(given[key], key, name)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def build_for(self, input_shape: Any) -> int:
        """The number of input channels, which later inputs must have too."""
        axis = -1 if self.data_format == "channels_last" else 1
        channels = known(input_shape[axis], axis, input_shape, type(self).__name__)
        self.compute_output_shape(input_shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def add_bias(self, size: int) -> None:
        """The bias, if there is to be one."""
        self.bias = None
        if self.use_bias:
            self.own_weight("bias", (size,))

    def call(self, inputs: Tensor) -> Tensor:
        """activation(convolution + bias)."""
        return self.activation(from_first(self.convolve(to_first(inputs, self.data_format)), self.data_format))

    def convolve(self, x: Tensor) -> Tensor:
        """The convolution of [N, C, ...], bias and all."""
        raise NotImplementedError(f"[{type(self).__name__}] has no convolve()")

    def channels_out(self, channels: Any) -> Any:
        """The number of output channels."""
        return self.filters

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """ValueError where a window is larger than the input."""
        sizes, channels = sizes_of(input_shape, self.data_format)
        reach = [span(k, d) for k, d in zip(self.kernel_size, self.dilation_rate, strict=True)]
        found = [window_count(*row, self.padding) for row in zip(sizes, reach, self.strides, strict=True)]
        if any(n is not None and n < 1 for n in found):
            raise ValueError(f"[{type(self).__name__}] windows of {tuple(reach)} are larger than the input {tuple(input_shape)}")
        return joined(input_shape[0], found, self.channels_out(channels), self.data_format)

    def _run_kernel(self, x: Tensor, kernel: Tensor, bias: Tensor | None, groups: int) -> Tensor:
        """x [N, C, ...] with a kernel [out, in / groups, ...]."""
        pairs = padding_pairs(x.shape[2:], self.kernel_size, self.strides, self.dilation_rate, self.padding)
        operation: Callable = (F.conv1d, F.conv2d)[self.rank - 1]
        return operation(padded(x, pairs), kernel, bias, self.strides, 0, self.dilation_rate, groups)


def _check_steps(layer: Convolution) -> None:
    if max(layer.strides) > 1 and max(layer.dilation_rate) > 1:
        raise ValueError(
            f"[{type(layer).__name__}] strides and dilation_rate cannot both be above 1; "
            f"got {layer.strides} and {layer.dilation_rate}"
        )


class _Conv(Convolution):
    """kernel [*kernel_size, channels / groups, filters], bias [filters]."""

    missing = LORA

    def __init__(self, arguments: dict, **kwargs: Any):
        super().__init__(arguments, **kwargs)
        _check_steps(self)
        if self.filters % self.groups:
            raise ValueError(f"[{type(self).__name__}] filters must divide into groups; got {self.filters} and {self.groups}")

    def build(self, input_shape: Any) -> None:
        """kernel and bias."""
        channels = self.build_for(input_shape)
        if channels % self.groups:
            raise ValueError(f"[{type(self).__name__}] {channels} channels do not divide into {self.groups} groups")
        self.own_weight("kernel", (*self.kernel_size, channels // self.groups, self.filters))
        self.add_bias(self.filters)

    def convolve(self, x: Tensor) -> Tensor:
        """See the class."""
        n = self.rank
        return self._run_kernel(x, self.kernel.permute(n + 1, n, *range(n)), self.bias, self.groups)


class Conv1D(_Conv):
    """y[n, i, o] = activation(bias[o] + sum over k, c of x[n, i * stride + k * dilation, c] * kernel[k, c, o]).

    x [N, T, C] ([N, C, T] for channels_first) -> [N, T', filters]; padding: valid, same or causal.
    """

    paddings = ("valid", "same", "causal")

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, groups: int = 1, activation: Any = None,
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class Conv2D(_Conv):
    """Conv1D over two dimensions: x [N, H, W, C] ([N, C, H, W] for channels_first) -> [N, H', W', filters]."""

    rank = 2

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = (1, 1), groups: int = 1, activation: Any = None,
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class _ConvTranspose(Convolution):
    """kernel [*kernel_size, filters, channels], bias [filters]."""

    def __init__(self, arguments: dict, **kwargs: Any):
        extra = arguments["output_padding"]
        extra = None if extra is None else numbers(extra, self.rank, "output_padding", type(self).__name__, 0)
        super().__init__({**arguments, "output_padding": extra}, **kwargs)
        _check_steps(self)
        if extra is not None and any(e >= s for e, s in zip(extra, self.strides, strict=True)):
            raise ValueError(f"[{type(self).__name__}] output_padding must be below strides; got {extra} and {self.strides}")

    def build(self, input_shape: Any) -> None:
        """kernel and bias."""
        channels = self.build_for(input_shape)
        self.own_weight("kernel", (*self.kernel_size, self.filters, channels))
        self.add_bias(self.filters)

    def convolve(self, x: Tensor) -> Tensor:
        """The transpose without padding, cut and filled up to the size that is wanted; then the bias."""
        n = self.rank
        operation: Callable = (F.conv_transpose1d, F.conv_transpose2d)[n - 1]
        whole = operation(x, self.kernel.permute(n + 1, n, *range(n)), None, self.strides, 0, 0, 1, self.dilation_rate)
        pairs = []
        for axis, (size, got) in enumerate(zip(x.shape[2:], whole.shape[2:], strict=True)):
            wanted, cut = self._size(size, axis), self._cut(axis)
            pairs.append((-cut, wanted - (got - cut)))
        y = padded(whole, pairs)
        return y if self.bias is None else y + self.bias.reshape(-1, *(1,) * n)

    def _size(self, size: Any, axis: int) -> Any:
        """The output's size; the smallest that a convolution with this padding would have made `size` windows of."""
        stride, reach = self.strides[axis], span(self.kernel_size[axis], self.dilation_rate[axis])
        if size is None:
            return None
        if self.output_padding is None:
            return size * stride if self.padding == "same" else (size - 1) * stride + max(reach, stride)
        whole = (size - 1) * stride + reach + self.output_padding[axis]
        return whole - 2 * (reach // 2) if self.padding == "same" else whole

    def _cut(self, axis: int) -> int:
        """How much of the front falls away: what "same" padding put before."""
        if self.padding == "valid":
            return 0
        stride, reach = self.strides[axis], span(self.kernel_size[axis], self.dilation_rate[axis])
        extra = stride + reach - 2 if self.output_padding is None else reach + reach % 2 - 2 + self.output_padding[axis]
        return max(reach - 1 - (extra + 1) // 2, 0)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """See _size."""
        sizes, _ = sizes_of(input_shape, self.data_format)
        return joined(input_shape[0], [self._size(s, i) for i, s in enumerate(sizes)], self.filters, self.data_format)


class Conv1DTranspose(_ConvTranspose):
    """The transpose of Conv1D: x [N, T, C] -> [N, T', filters].

    T' = T stride for padding="same", (T - 1) stride + max(reach, stride) for "valid", reach = (kernel - 1) dilation + 1.
    With output_padding: (T - 1) stride + reach - 2 pad + output_padding, pad = reach // 2 for "same" and 0 for "valid".
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid", output_padding: Any = None,
                 data_format: str | None = None, dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
                 bias_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class Conv2DTranspose(_ConvTranspose):
    """Conv1DTranspose over two dimensions: x [N, H, W, C] -> [N, H', W', filters]."""

    rank = 2

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
                 output_padding: Any = None, data_format: str | None = None, dilation_rate: Any = (1, 1),
                 activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 bias_initializer: Any = "zeros", kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)
