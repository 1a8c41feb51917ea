"""Layers without parameters that are a function with options: pooling, resampling, rearranging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import functional as F
from .functional.common import spread
from .module import Module


class _Function(Module):
    """A function of x with options; `shown` are those that repr() shows, by name."""

    function: Callable
    shown: tuple[str, ...] = ()

    def __init__(self, **options: Any):
        super().__init__()
        self._options = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Any:
        """The function of x."""
        return type(self).function(input, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.shown)


# -- pooling --------------------------------------------------------------------------------------------


class _MaxPool(_Function):
    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
                 ceil_mode: bool = False):  # fmt: skip
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation,
                         return_indices=return_indices, ceil_mode=ceil_mode)  # fmt: skip


class MaxPool1d(_MaxPool):
    """F.max_pool1d: the largest element of each window."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """F.max_pool2d: the largest element of each window."""

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """F.max_pool3d: the largest element of each window."""

    function = staticmethod(F.max_pool3d)


class _MaxUnpool(_Function):
    dims = 0
    shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        op, n = type(self).__name__, self.dims
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size=spread(kernel_size, n, "kernel_size", op), stride=spread(stride, n, "stride", op),
                         padding=spread(padding, n, "padding", op))  # fmt: skip

    def forward(self, input: Tensor, indices: Any = None, output_size: Any = None) -> Tensor:
        """x at the indices that max pooling gave, 0 elsewhere, in output_size where several sizes fit."""
        return type(self).function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """F.max_unpool1d: each maximum back to where it came from."""

    function = staticmethod(F.max_unpool1d)
    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """F.max_unpool2d: each maximum back to where it came from."""

    function = staticmethod(F.max_unpool2d)
    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """F.max_unpool3d: each maximum back to where it came from."""

    function = staticmethod(F.max_unpool3d)
    dims = 3


class AvgPool1d(_Function):
    """F.avg_pool1d: the mean of each window."""

    function = staticmethod(F.avg_pool1d)
    shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True):  # fmt: skip
        kernel = spread(kernel_size, 1, "kernel_size", "AvgPool1d")
        step = kernel if stride is None else spread(stride, 1, "stride", "AvgPool1d")
        around = spread(padding, 1, "padding", "AvgPool1d")
        super().__init__(kernel_size=kernel, stride=step, padding=around, ceil_mode=ceil_mode,
                         count_include_pad=count_include_pad)  # fmt: skip


class _AvgPool(_Function):
    shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None):  # fmt: skip
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode,
                         count_include_pad=count_include_pad, divisor_override=divisor_override)  # fmt: skip


class AvgPool2d(_AvgPool):
    """F.avg_pool2d: the mean of each window."""

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """F.avg_pool3d: the mean of each window."""

    function = staticmethod(F.avg_pool3d)


class _LPPool(_Function):
    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)


class LPPool1d(_LPPool):
    """F.lp_pool1d: (sum of x^p)^(1/p) of each window."""

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """F.lp_pool2d: (sum of x^p)^(1/p) of each window."""

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """F.lp_pool3d: (sum of x^p)^(1/p) of each window."""

    function = staticmethod(F.lp_pool3d)


class _AdaptiveAvgPool(_Function):
    shown = ("output_size",)

    def __init__(self, output_size: Any):
        super().__init__(output_size=output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """F.adaptive_avg_pool1d: means of output_size parts."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """F.adaptive_avg_pool2d: means of output_size parts."""

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """F.adaptive_avg_pool3d: means of output_size parts."""

    function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_Function):
    shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__(output_size=output_size, return_indices=return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """F.adaptive_max_pool1d: the largest elements of output_size parts."""

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """F.adaptive_max_pool2d: the largest elements of output_size parts."""

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """F.adaptive_max_pool3d: the largest elements of output_size parts."""

    function = staticmethod(F.adaptive_max_pool3d)


# -- resampling and rearranging -------------------------------------------------------------------------


class Upsample(_Function):
    """F.interpolate to `size` or by scale_factor."""

    function = staticmethod(F.interpolate)

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None):  # fmt: skip
        factor: Any = tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else scale_factor
        factor = float(factor) if isinstance(factor, int) else factor
        super().__init__(size=size, scale_factor=factor, mode=mode, align_corners=align_corners,
                         recompute_scale_factor=recompute_scale_factor)  # fmt: skip

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """F.interpolate with mode="nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """F.interpolate with mode="bilinear" and align_corners=True."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(_Function):
    """F.pixel_shuffle: [..., C * r * r, H, W] -> [..., C, H * r, W * r]."""

    function = staticmethod(F.pixel_shuffle)
    shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int):
        super().__init__(upscale_factor=upscale_factor)


class PixelUnshuffle(_Function):
    """F.pixel_unshuffle: [..., C, H * r, W * r] -> [..., C * r * r, H, W]."""

    function = staticmethod(F.pixel_unshuffle)
    shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int):
        super().__init__(downscale_factor=downscale_factor)


class ChannelShuffle(_Function):
    """F.channel_shuffle: channels dealt out over groups."""

    function = staticmethod(F.channel_shuffle)
    shown = ("groups",)

    def __init__(self, groups: int):
        super().__init__(groups=groups)


class Unfold(_Function):
    """F.unfold: the windows of [N, C, H, W] as columns."""

    function = staticmethod(F.unfold)
    shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class Fold(_Function):
    """F.fold: columns added up where their windows lie."""

    function = staticmethod(F.fold)
    shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
