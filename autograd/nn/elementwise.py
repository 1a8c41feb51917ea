"""More activations as modules: exponential, clipped and shrinking ones, and those with parameters."""

from __future__ import annotations

from typing import Any

from .. import create
from ..tensor import Tensor
from . import functional as F
from .activation import _Activation, _InPlace
from .module import Module
from .parameter import Parameter


class ELU(_InPlace):
    """x where x > 0, else alpha * (exp(x) - 1)."""

    function = staticmethod(F.elu)
    shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(_InPlace):
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""

    function = staticmethod(F.celu)
    shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class SELU(_InPlace):
    """A scaled ELU that keeps mean 0 and variance 1."""

    function = staticmethod(F.selu)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Hardtanh(_InPlace):
    """x held between min_val and max_val."""

    function = staticmethod(F.hardtanh)
    shown = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        if min_val >= max_val:
            raise ValueError(f"[Hardtanh] min_val must be below max_val; got {min_val} and {max_val}")
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class ReLU6(_InPlace):
    """min(max(x, 0), 6)"""

    function = staticmethod(F.relu6)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Hardsigmoid(_Activation):
    """0 below -3, 1 above 3, x / 6 + 1/2 between."""

    function = staticmethod(F.hardsigmoid)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Hardswish(_Activation):
    """x * hardsigmoid(x)"""

    function = staticmethod(F.hardswish)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Mish(_InPlace):
    """x * tanh(log(1 + exp(x)))"""

    function = staticmethod(F.mish)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Softsign(_Activation):
    """x / (1 + |x|)"""

    function = staticmethod(F.softsign)

    def __init__(self) -> None:
        super().__init__()


class Tanhshrink(_Activation):
    """x - tanh(x)"""

    function = staticmethod(F.tanhshrink)

    def __init__(self) -> None:
        super().__init__()


class _Shrink(_Activation):
    def __init__(self, lambd: float = 0.5):
        super().__init__(lambd=lambd)

    def extra_repr(self) -> str:
        """The width."""
        return str(self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, 0 where it is not further away."""

    function = staticmethod(F.softshrink)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0."""

    function = staticmethod(F.hardshrink)


class RReLU(_InPlace):
    """x where x > 0, else a * x: a uniform on [lower, upper) for each element in training, else (lower + upper) / 2."""

    function = staticmethod(F.rrelu)
    shown = ("lower", "upper")

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__(lower=lower, upper=upper, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        """F.rrelu(x), random in training."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Threshold(_InPlace):
    """x where x > threshold, else value."""

    function = staticmethod(F.threshold)
    shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class GLU(_Activation):
    """a * sigmoid(b), where a and b are the halves of x along `dim`."""

    function = staticmethod(F.glu)
    shown = ("dim",)

    def __init__(self, dim: int = -1):
        super().__init__(dim=dim)


class Softmin(_Activation):
    """exp(-x) / sum(exp(-x)) along `dim`; without one a warning, and PyTorch's choice (see functional.softmax)."""

    function = staticmethod(F.softmin)
    shown = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(x, -3)."""
        if input.ndim not in (3, 4):
            raise ValueError(f"[Softmax2d] expects [N, C, H, W] or [C, H, W]; got {input.shape}")
        return F.softmax(input, -3)


class PReLU(Module):
    """x where x > 0, else weight * x, with num_parameters slopes (1, or one a channel) that start at `init`."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(create.full((num_parameters,), float(init), dtype, device))

    def reset_parameters(self) -> None:
        """All slopes as at the start."""
        from .init import constant_

        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """F.prelu(x, weight)."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"
