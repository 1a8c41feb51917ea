"""Layers that learn the size of their input from the first one they see. PyTorch's names."""

from __future__ import annotations

from typing import Any

from ..interrupts import held
from ..tensor import Tensor
from .convolution import Conv1d, Conv2d, Conv3d, _Conv
from .layers import Linear
from .module import Module
from .parameter import UninitializedParameter


class _Lazy(Module):
    """Until forward is first called the weight has 0 input channels; then the object becomes one of `becomes`, for good.

    The parameters stay the same objects, so an optimizer may be made before. A state_dict of the finished layer loads
    into a lazy one, which takes its weight's shape from there.
    """

    becomes: type[Module]
    weight: Any

    def reset_parameters(self) -> None:
        """Draw the starting values anew, once the sizes are known."""
        if self.weight.shape[1]:
            super().reset_parameters()  # type: ignore[misc]

    def _wait(self) -> None:
        """Mark the weight, whose second dimension is 0, as one to be made later."""
        self.weight = UninitializedParameter(self.weight.detach())

    def _make(self, channels: int) -> None:
        """The weight for so many input channels, unless one was loaded; then the class is the plain one."""
        new = isinstance(self.weight, UninitializedParameter)
        with held:  # Ctrl-C must not leave a plain layer of zeros
            if new:
                shape = self.weight.shape
                self.weight.materialize((shape[0], channels, *shape[2:]))
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
