"""Where weights must stay, by Keras' names: w <- constraint(w) right after each optimizer step.

n is the norm of w over `axis` (a number or several), 0 by default: of every column of a Dense kernel. eps = 1e-7.
"""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import naming

EPSILON = 1e-7


class Constraint(naming.Configured):
    """Base: subclasses write __call__(w), a Tensor like w."""

    axis: Any = 0

    def __call__(self, w: Tensor) -> Tensor:
        raise NotImplementedError(f"[constraints] {type(self).__name__} has no __call__()")

    def norm(self, w: Tensor) -> Tensor:
        """n, with size one where it was summed."""
        axis = tuple(self.axis) if isinstance(self.axis, list | tuple) else self.axis
        return (w * w).sum(axis, keepdim=True).sqrt()


class NonNeg(Constraint):
    """w (w >= 0)"""

    def __call__(self, w: Tensor) -> Tensor:
        return w * (w >= 0).to(w.dtype)


class MaxNorm(Constraint):
    """w clip(n, 0, max_value) / (eps + n)"""

    def __init__(self, max_value: float = 2, axis: Any = 0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Tensor) -> Tensor:
        n = self.norm(w)
        return w * (n.clamp(0, self.max_value) / (n + EPSILON))


class UnitNorm(Constraint):
    """w / (eps + n)"""

    def __init__(self, axis: Any = 0):
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        return w / (self.norm(w) + EPSILON)


class MinMaxNorm(Constraint):
    """w (rate clip(n, min_value, max_value) + (1 - rate) n) / (eps + n)"""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0):
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Tensor) -> Tensor:
        n = self.norm(w)
        wanted = n.clamp(self.min_value, self.max_value) * self.rate + n * (1 - self.rate)
        return w * (wanted / (n + EPSILON))


non_neg, max_norm, unit_norm, min_max_norm = NonNeg, MaxNorm, UnitNorm, MinMaxNorm
TABLE: dict[str, Any] = {"non_neg": NonNeg, "max_norm": MaxNorm, "unit_norm": UnitNorm, "min_max_norm": MinMaxNorm}
get, serialize, deserialize = naming.family(TABLE, "constraint")
