"""Padding as layers."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .functional.common import spread
from .module import Module


class _Pad(Module):
    """F.pad of the last `dims` dimensions; padding: a number for all sides or (before, after) pairs from the last one."""

    dims = 0
    mode = "constant"

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = spread(padding, 2 * self.dims, "padding", type(self).__name__)

    def forward(self, input: Tensor) -> Tensor:
        """x with its padding around."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The padding."""
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """x with `value` around."""
        return F.pad(input, self.padding, value=self.value)

    def extra_repr(self) -> str:
        """The padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A value around the last dimension."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """A value around the last two dimensions."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """A value around the last three dimensions."""

    dims = 3


class ZeroPad1d(_Pad):
    """Zeros around the last dimension."""

    dims = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two dimensions."""

    dims = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three dimensions."""

    dims = 3


class ReflectionPad1d(_Pad):
    """Elements mirrored at the borders of the last dimension."""

    dims = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Elements mirrored at the borders of the last two dimensions."""

    dims = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Elements mirrored at the borders of the last three dimensions."""

    dims = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The border elements repeated around the last dimension."""

    dims = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The border elements repeated around the last two dimensions."""

    dims = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The border elements repeated around the last three dimensions."""

    dims = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """Elements from the other end around the last dimension."""

    dims = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """Elements from the other end around the last two dimensions."""

    dims = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """Elements from the other end around the last three dimensions."""

    dims = 3
    mode = "circular"
