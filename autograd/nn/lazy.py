"""Layers that learn the size of their input from the first one they see. PyTorch's names."""

from __future__ import annotations

from typing import Any

from ..interrupts import held
from ..tensor import Tensor
from .convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _Conv,
    _ConvTranspose,
)  # fmt: skip
from .layers import Linear
from .module import Module
from .normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _BatchNorm,
    _InstanceNorm,
)  # fmt: skip
from .parameter import UninitializedBuffer, UninitializedParameter


class _Lazy(Module):
    """Until forward is first called the weight has 0 input channels; then the object becomes one of `becomes`, for good.

    The parameters stay the same objects, so an optimizer may be made before. A state_dict of the finished layer loads
    into a lazy one, which takes its weight's shape from there.
    """

    becomes: type[Module]
    unknown = 1  # which size of the weight is the input's channels
    weight: Any

    def reset_parameters(self) -> None:
        """Draw the starting values anew, once the sizes are known."""
        if self.weight.shape[self.unknown]:
            super().reset_parameters()  # type: ignore[misc]

    def _wait(self) -> None:
        """Mark the weight, which has a size of 0, as one to be made later."""
        self.weight = UninitializedParameter(self.weight.detach())

    def _make(self, channels: int) -> None:
        """The weight for so many input channels, unless one was loaded; then the class is the plain one."""
        new = isinstance(self.weight, UninitializedParameter)
        with held:  # Ctrl-C must not leave a plain layer of zeros
            if new:
                sizes = list(self.weight.shape)
                sizes[self.unknown] = channels
                self.weight.materialize(tuple(sizes))
            self.__class__ = self.becomes  # type: ignore[assignment]
            if new:
                self.reset_parameters()


class LazyLinear(_Lazy, Linear):
    """A Linear whose in_features is the last size of the first input."""

    becomes = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        Linear.__init__(self, 0, out_features, bias, device, dtype)
        self._wait()

    def forward(self, input: Tensor) -> Tensor:
        """x @ weight^T + bias, after the parameters are made."""
        if not input.ndim:
            raise ValueError("[LazyLinear] expects at least one dimension; got a 0-d tensor")
        self._make(input.shape[-1])
        self.in_features = self.weight.shape[1]
        return self.forward(input)


class _LazyConv(_Lazy, _Conv):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):  # fmt: skip
        _Conv.__init__(self, 0, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self._wait()

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of x, after the parameters are made."""
        op, n, groups = type(self).__name__, self.dims, self.groups
        if input.ndim not in (n + 1, n + 2):
            raise ValueError(f"[{op}] expects [N, C, *{n} sizes] or [C, *{n} sizes]; got {input.shape}")
        channels = input.shape[-n - 1]
        if channels % groups or not channels:
            raise ValueError(f"[{op}] input channels must be positive and divide into groups={groups}; got {input.shape}")
        self._make(channels // groups)
        self.in_channels = self.weight.shape[1] * groups
        return self.forward(input)


class LazyConv1d(_LazyConv):
    """A Conv1d whose in_channels is that of the first input [N, C, L] or [C, L]."""

    dims, becomes = 1, Conv1d


class LazyConv2d(_LazyConv):
    """A Conv2d whose in_channels is that of the first input [N, C, H, W] or [C, H, W]."""

    dims, becomes = 2, Conv2d


class LazyConv3d(_LazyConv):
    """A Conv3d whose in_channels is that of the first input [N, C, D, H, W] or [C, D, H, W]."""

    dims, becomes = 3, Conv3d


class _LazyConvTranspose(_Lazy, _ConvTranspose):
    unknown = 0

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):  # fmt: skip
        _ConvTranspose.__init__(self, 0, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
                                padding_mode, device, dtype)  # fmt: skip
        self._wait()

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution of x, after the parameters are made."""
        op, n = type(self).__name__, self.dims
        if input.ndim not in (n + 1, n + 2) or not input.shape[-n - 1] or input.shape[-n - 1] % self.groups:
            sizes = f"[N, C, *{n} sizes] or [C, *{n} sizes], C a multiple of groups={self.groups}"
            raise ValueError(f"[{op}] expects {sizes}; got {input.shape}")
        self._make(input.shape[-n - 1])
        self.in_channels = self.weight.shape[0]
        return self.forward(input, output_size)


class LazyConvTranspose1d(_LazyConvTranspose):
    """A ConvTranspose1d whose in_channels is that of the first input [N, C, L] or [C, L]."""

    dims, becomes = 1, ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose):
    """A ConvTranspose2d whose in_channels is that of the first input [N, C, H, W] or [C, H, W]."""

    dims, becomes = 2, ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose):
    """A ConvTranspose3d whose in_channels is that of the first input [N, C, D, H, W] or [C, D, H, W]."""

    dims, becomes = 3, ConvTranspose3d


class _LazyNorm(Module):
    """A normalisation whose num_features are the channels of the first input; then it is one of `becomes`, for good."""

    becomes: type[Module]
    ndims: tuple[int, ...]

    def _wait(self) -> None:
        for table, kind in ((self._parameters, UninitializedParameter), (self._buffers, UninitializedBuffer)):
            for name, t in table.items():
                if t is not None and t.ndim:
                    table[name] = kind(t.detach())  # type: ignore[index]

    def forward(self, input: Tensor) -> Tensor:
        """x normalised, after the parameters are made."""
        if input.ndim not in self.ndims:
            counts = " or ".join(map(str, self.ndims))
            raise ValueError(f"[{type(self).__name__}] expects {counts} dimensions; got shape {input.shape}")
        entries = [t for t in (*self._parameters.values(), *self._buffers.values()) if t is not None and t.ndim]
        channels = input.shape[0 if input.ndim == self.ndims[0] and isinstance(self, _InstanceNorm) else 1]
        with held:  # Ctrl-C must not leave a plain layer of zeros
            new = [t for t in entries if isinstance(t, UninitializedParameter)]
            for t in new:
                t.materialize((channels,))
            self.num_features = entries[0].shape[0] if entries else channels
            self.__class__ = self.becomes  # type: ignore[assignment]
            if new:
                self.reset_parameters()  # type: ignore[operator]
        return self(input)


class _LazyBatchNorm(_LazyNorm, _BatchNorm):
    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):  # fmt: skip
        _BatchNorm.__init__(self, 0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self._wait()


class _LazyInstanceNorm(_LazyNorm, _InstanceNorm):
    # PyTorch's lazy ones are affine and keep statistics by default, unlike InstanceNorm.
    def __init__(self, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):  # fmt: skip
        _InstanceNorm.__init__(self, 0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self._wait()


class LazyBatchNorm1d(_LazyBatchNorm):
    """A BatchNorm1d of as many features as the first input [N, C] or [N, C, L] has channels."""

    ndims, becomes = (2, 3), BatchNorm1d


class LazyBatchNorm2d(_LazyBatchNorm):
    """A BatchNorm2d of as many features as the first input [N, C, H, W] has channels."""

    ndims, becomes = (4,), BatchNorm2d


class LazyBatchNorm3d(_LazyBatchNorm):
    """A BatchNorm3d of as many features as the first input [N, C, D, H, W] has channels."""

    ndims, becomes = (5,), BatchNorm3d


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """An InstanceNorm1d of as many features as the first input [N, C, L] or [C, L] has channels."""

    ndims, becomes = (2, 3), InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """An InstanceNorm2d of as many features as the first input [N, C, H, W] or [C, H, W] has channels."""

    ndims, becomes = (3, 4), InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """An InstanceNorm3d of as many features as the first input [N, C, D, H, W] or [C, D, H, W] has channels."""

    ndims, becomes = (4, 5), InstanceNorm3d
