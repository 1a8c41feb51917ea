"""Losses as modules; see the functions of the same names in nn.functional."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Loss(Module):
    """A loss with a reduction: "none", "mean" or "sum"."""

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        F.check_reduction(reduction, type(self).__name__)
        self.reduction = reduction


class MSELoss(_Loss):
    """(input - target)^2, reduced; unequal shapes are refused."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.mse_loss(input, target)."""
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """|input - target|, reduced; unequal shapes are refused."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.l1_loss(input, target)."""
        return F.l1_loss(input, target, self.reduction)


class _WeightedLoss(_Loss):
    """A loss with weights, which move with the module and stand in its state_dict."""

    def __init__(self, reduction: str, **weights: Any):
        super().__init__(reduction)
        for name, tensor in weights.items():
            self.register_buffer(name, tensor)


class CrossEntropyLoss(_WeightedLoss):
    """-log_softmax(input)[target], reduced: input [N, C, ...] logits, target classes [N, ...] or probabilities."""

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0):  # fmt: skip
        super().__init__(reduction, weight=weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.cross_entropy(input, target)."""
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(_WeightedLoss):
    """-input[target], reduced: input [N, C, ...] log-probabilities, target classes [N, ...]."""

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(reduction, weight=weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.nll_loss(input, target)."""
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross-entropy of sigmoid(input) against target in [0, 1], reduced."""

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None):
        super().__init__(reduction, weight=weight, pos_weight=pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.binary_cross_entropy_with_logits(input, target)."""
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)
