"""Penalties on weights and outputs, by Keras' names: a function of one Tensor that gives a scalar Tensor."""

from __future__ import annotations

from typing import Any

from .. import create
from ..tensor import Tensor
from . import naming


class Regularizer(naming.Configured):
    """Base: subclasses write __call__(w), a scalar Tensor."""

    def __call__(self, w: Tensor) -> Tensor:
        raise NotImplementedError(f"[regularizers] {type(self).__name__} has no __call__()")


def _factor(name: str, value: Any) -> float:
    value = float(value)
    if not value >= 0 or value == float("inf"):
        raise ValueError(f"[regularizers] {name} must be finite and not negative; got {value}")
    return value


class L1(Regularizer):
    """l1 * sum(|w|)"""

    def __init__(self, l1: float = 0.01):
        self.l1 = _factor("l1", l1)

    def __call__(self, w: Tensor) -> Tensor:
        return w.abs().sum() * self.l1


class L2(Regularizer):
    """l2 * sum(w^2), without the half"""

    def __init__(self, l2: float = 0.01):
        self.l2 = _factor("l2", l2)

    def __call__(self, w: Tensor) -> Tensor:
        return (w * w).sum() * self.l2


class L1L2(Regularizer):
    """l1 * sum(|w|) + l2 * sum(w^2)"""

    def __init__(self, l1: float = 0.0, l2: float = 0.0):
        self.l1, self.l2 = _factor("l1", l1), _factor("l2", l2)

    def __call__(self, w: Tensor) -> Tensor:
        return w.abs().sum() * self.l1 + (w * w).sum() * self.l2


class OrthogonalRegularizer(Regularizer):
    """factor * the mean |cosine| between pairs of rows (or columns, by `mode`) of a matrix.

    ValueError for another mode, and for weights that are not matrices.
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows"):
        if mode not in ("rows", "columns"):
            raise ValueError(f'[OrthogonalRegularizer] mode is "rows" or "columns"; got {mode!r}')
        self.factor, self.mode = _factor("factor", factor), mode

    def __call__(self, w: Tensor) -> Tensor:
        if w.ndim != 2:
            raise ValueError(f"[OrthogonalRegularizer] a matrix has 2 dimensions; got shape {w.shape}")
        w = w if self.mode == "rows" else w.transpose(0, 1)
        w = w / (w * w).sum(1, keepdim=True).clamp(1e-12).sqrt()
        n = w.shape[0]
        apart = (w @ w.transpose(0, 1)) * (1 - create.eye(n, dtype=w.dtype, device=w.device))
        return apart.abs().sum() * (self.factor / max(1, n * (n - 1)))


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
TABLE: dict[str, Any] = {"l1": L1, "l2": L2, "l1_l2": L1L2, "orthogonal_regularizer": OrthogonalRegularizer}
get, serialize, deserialize = naming.family(TABLE, "regularizer")
