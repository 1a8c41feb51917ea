"""Losses of real-valued predictions."""

from __future__ import annotations

from ...tensor import Tensor
from .common import check_reduction, reduced, same_shape


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)^2, reduced. ValueError for unequal shapes, which PyTorch would broadcast."""
    same_shape(input, target, "mse_loss")
    check_reduction(reduction, "mse_loss")
    d = input - target
    return reduced(d * d, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|, reduced. ValueError for unequal shapes."""
    same_shape(input, target, "l1_loss")
    check_reduction(reduction, "l1_loss")
    return reduced((input - target).abs(), reduction)
