"""Activations as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Activation(Module):
    """An elementwise function with named options; `shown` are those that repr() shows."""

    function: Callable
    shown: tuple[str, ...] = ()

    def __init__(self, **options: Any):
        super().__init__()
        self._options = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        """The function of x."""
        return type(self).function(input, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown)


class _InPlace(_Activation):
    """An activation that may change x; repr() says so only then."""

    def extra_repr(self) -> str:
        """The options."""
        parts = [super().extra_repr(), "inplace=True" if self.inplace else ""]
        return ", ".join(part for part in parts if part)


class Tanh(_Activation):
    """tanh(x)"""

    function = staticmethod(F.tanh)

    def __init__(self) -> None:
        super().__init__()


class Sigmoid(_Activation):
    """1 / (1 + exp(-x))"""

    function = staticmethod(F.sigmoid)

    def __init__(self) -> None:
        super().__init__()


class ReLU(_InPlace):
    """max(x, 0); inplace changes x."""

    function = staticmethod(F.relu)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class GELU(_Activation):
    """x * Phi(x); approximate: "none" or "tanh"."""

    function = staticmethod(F.gelu)
    shown = ("approximate",)

    def __init__(self, approximate: str = "none"):
        super().__init__(approximate=approximate)


class SiLU(_InPlace):
    """x * sigmoid(x)"""

    function = staticmethod(F.silu)

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta; x where beta * x > threshold."""

    function = staticmethod(F.softplus)
    shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__(beta=beta, threshold=threshold)


class LeakyReLU(_InPlace):
    """x where x > 0, else negative_slope * x."""

    function = staticmethod(F.leaky_relu)
    shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class Softmax(_Activation):
    """exp(x) / sum(exp(x)) along `dim`; without one a warning, and PyTorch's choice (see functional.softmax)."""

    function = staticmethod(F.softmax)
    shown = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class LogSoftmax(_Activation):
    """log(softmax(x)) along `dim`; without one a warning, and PyTorch's choice (see functional.softmax)."""

    function = staticmethod(F.log_softmax)
    shown = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__(dim=dim)


class LogSigmoid(_Activation):
    """log(1 / (1 + exp(-x)))"""

    function = staticmethod(F.logsigmoid)

    def __init__(self) -> None:
        super().__init__()
