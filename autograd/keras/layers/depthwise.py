"""Convolutions of each channel by itself, and those followed by a mixing of the channels."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .convolution import Convolution, F


def _by_channel(kernel: Tensor, rank: int) -> Tensor:
    """[*kernel_size, C, multiplier] as [C * multiplier, 1, *kernel_size]."""
    return kernel.permute(rank, rank + 1, *range(rank)).reshape(-1, 1, *kernel.shape[:rank])


class _Depthwise(Convolution):
    """kernel [*kernel_size, channels, depth_multiplier], bias [channels * depth_multiplier]."""

    def build(self, input_shape: Any) -> None:
        """kernel and bias."""
        channels = self.build_for(input_shape)
        self.own_weight("kernel", (*self.kernel_size, channels, self.depth_multiplier), "depthwise")
        self.add_bias(channels * self.depth_multiplier)

    def channels_out(self, channels: Any) -> Any:
        """channels * depth_multiplier."""
        return None if channels is None else channels * self.depth_multiplier

    def convolve(self, x: Tensor) -> Tensor:
        """See the class."""
        return self._run_kernel(x, _by_channel(self.kernel, self.rank), self.bias, x.shape[1])


class DepthwiseConv1D(_Depthwise):
    """Each channel of x [N, T, C] with depth_multiplier kernels of its own -> [N, T', C * depth_multiplier]."""

    def __init__(self, kernel_size: Any, strides: Any = 1, padding: str = "valid", depth_multiplier: int = 1,
                 data_format: str | None = None, dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
                 depthwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, bias_regularizer: Any = None, depthwise_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class DepthwiseConv2D(_Depthwise):
    """Each channel of x [N, H, W, C] with depth_multiplier kernels of its own -> [N, H', W', C * depth_multiplier]."""

    rank = 2

    def __init__(self, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid", depth_multiplier: int = 1,
                 data_format: str | None = None, dilation_rate: Any = (1, 1), activation: Any = None, use_bias: bool = True,
                 depthwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, bias_regularizer: Any = None, depthwise_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class _Separable(Convolution):
    """depthwise_kernel [*kernel_size, C, depth_multiplier], pointwise_kernel [1, …, C * depth_multiplier, filters], bias."""

    def build(self, input_shape: Any) -> None:
        """Both kernels and the bias."""
        channels = self.build_for(input_shape)
        self.own_weight("depthwise_kernel", (*self.kernel_size, channels, self.depth_multiplier), "depthwise")
        inner = channels * self.depth_multiplier
        self.own_weight("pointwise_kernel", (*(1,) * self.rank, inner, self.filters), "pointwise")
        self.add_bias(self.filters)

    def convolve(self, x: Tensor) -> Tensor:
        """The channels by themselves, then mixed."""
        n = self.rank
        y = self._run_kernel(x, _by_channel(self.depthwise_kernel, n), None, x.shape[1])
        mixing = self.pointwise_kernel.permute(n + 1, n, *range(n))
        return (F.conv1d, F.conv2d)[n - 1](y, mixing, self.bias)


class SeparableConv1D(_Separable):
    """A DepthwiseConv1D, then a Conv1D with a kernel of size 1: x [N, T, C] -> [N, T', filters]."""

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, depth_multiplier: int = 1, activation: Any = None,
                 use_bias: bool = True, depthwise_initializer: Any = "glorot_uniform",
                 pointwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, pointwise_regularizer: Any = None, bias_regularizer: Any = None,
                 depthwise_constraint: Any = None, pointwise_constraint: Any = None, bias_constraint: Any = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)


class SeparableConv2D(_Separable):
    """A DepthwiseConv2D, then a Conv2D with a kernel of size 1: x [N, H, W, C] -> [N, H', W', filters]."""

    rank = 2

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
                 activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = "glorot_uniform",
                 pointwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, pointwise_regularizer: Any = None, bias_regularizer: Any = None,
                 depthwise_constraint: Any = None, pointwise_constraint: Any = None, bias_constraint: Any = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)
