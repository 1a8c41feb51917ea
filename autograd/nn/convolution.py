"""Convolutions as layers, their transposes, and the windows they are made of."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from . import functional as F
from . import init
from .functional.common import spread
from .layers import new_parameter
from .module import Module

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """weight and bias start uniform on ±1 / sqrt(fan in), the fan in being a filter's number of weights."""

    dims = 0
    transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                 output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any):  # fmt: skip
        super().__init__()
        op, n = type(self).__name__, self.dims
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"[{op}] channels must divide into groups={groups}; got {in_channels} -> {out_channels}")
        allowed = _PADDING_MODES[:1] if self.transposed else _PADDING_MODES
        if padding_mode not in allowed:
            raise ValueError(f"[{op}] padding_mode is one of {', '.join(allowed)}; got {padding_mode!r}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f'[{op}] padding is "same", "valid" or numbers; got {padding!r}')
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride = spread(kernel_size, n, "kernel_size", op), spread(stride, n, "stride", op)
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError(f'[{op}] padding="same" needs a stride of 1; got {self.stride}')
        self.padding: Any = padding if isinstance(padding, str) else spread(padding, n, "padding", op)
        self.dilation, self.output_padding = spread(dilation, n, "dilation", op), spread(output_padding, n, "output_padding", op)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = new_parameter(first, second // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", new_parameter(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.weight.numel() // self.weight.shape[0]
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        n = self.dims
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, default in (("padding", (0,) * n), ("dilation", (1,) * n), ("output_padding", (0,) * n), ("groups", 1)):
            if getattr(self, name) != default:
                shown += f", {name}={getattr(self, name)}"
        shown += "" if self.bias is not None else ", bias=False"
        return shown if self.padding_mode == "zeros" else f"{shown}, padding_mode={self.padding_mode}"


class _Conv(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode,
                         device, dtype)  # fmt: skip

    def _pads(self) -> list[int]:
        """What F.pad takes for this layer's padding."""
        if self.padding == "valid":
            return [0, 0] * self.dims
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [v for t in reversed(total) for v in (t // 2, t - t // 2)]
        return [v for p in reversed(self.padding) for v in (p, p)]

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of x [N, C, ...] or [C, ...]."""
        conv = (F.conv1d, F.conv2d, F.conv3d)[self.dims - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._pads(), self.padding_mode), 0
        return conv(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
                         padding_mode, device, dtype)  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution of x [N, C, ...] or [C, ...]; output_size chooses among the sizes that fit."""
        conv = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.dims - 1]
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return conv(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input: Tensor, output_size: Any) -> tuple:
        """The output_padding that leads to output_size."""
        n = self.dims
        wanted = tuple(output_size)[-n:]
        rows = zip(input.shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in rows]
        extra = tuple(w - low for w, low in zip(wanted, least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            op = type(self).__name__
            raise ValueError(f"[{op}] output_size must be {least} plus less than {self.stride}; got {tuple(output_size)}")
        return extra


class Conv1d(_Conv):
    """F.conv1d with weight [out_channels, in_channels / groups, K] and bias [out_channels]."""

    dims = 1


class Conv2d(_Conv):
    """F.conv2d with weight [out_channels, in_channels / groups, KH, KW] and bias [out_channels]."""

    dims = 2


class Conv3d(_Conv):
    """F.conv3d with weight [out_channels, in_channels / groups, KD, KH, KW] and bias [out_channels]."""

    dims = 3


class ConvTranspose1d(_ConvTranspose):
    """F.conv_transpose1d with weight [in_channels, out_channels / groups, K] and bias [out_channels]."""

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """F.conv_transpose2d with weight [in_channels, out_channels / groups, KH, KW] and bias [out_channels]."""

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """F.conv_transpose3d with weight [in_channels, out_channels / groups, KD, KH, KW] and bias [out_channels]."""

    dims = 3
