"""BigDL's regularizers: they add to a weight's gradient, not to the loss."""

from __future__ import annotations

from typing import Any

from ..function import Function
from ..tensor import Tensor


class _Regularized(Function):
    """The weight itself; its gradient is dy + l1 sign(w) + l2 w."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, l1: float, l2: float) -> Tensor:
        ctx.save_for_backward(w)
        ctx.l1, ctx.l2 = l1, l2
        return w.view_as(w)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple:
        (w,) = ctx.saved_tensors
        if ctx.l1:
            dy = dy + ctx.l1 * w.sign()
        if ctx.l2:
            dy = dy + ctx.l2 * w
        return dy, None, None


class L1L2Regularizer:
    """Adds l1 * sign(w) + l2 * w to the gradient of a weight w (not 2 * l2 * w), once for each pass over a sequence.

    It acts wherever the gradient is computed: acc_grad_parameters, backward, or the tape's own loss.backward(). No loss
    shows it. l2 alone equals SGD's weight_decay. Source: BigDL's Regularizer. ValueError for a negative factor.
    """

    def __init__(self, l1: float, l2: float):
        for name, value in (("l1", l1), ("l2", l2)):
            if not value >= 0:
                raise ValueError(f"[{type(self).__name__}] {name} must not be negative; got {value}")
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, w: Tensor) -> Tensor:
        """w, with the rule for its gradient."""
        return _Regularized.apply(w, self.l1, self.l2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(l1={self.l1}, l2={self.l2})"


class L1Regularizer(L1L2Regularizer):
    """Adds l1 * sign(w): L1L2Regularizer(l1, 0)."""

    def __init__(self, l1: float):
        super().__init__(l1, 0)


class L2Regularizer(L1L2Regularizer):
    """Adds l2 * w: L1L2Regularizer(0, l2)."""

    def __init__(self, l2: float):
        super().__init__(0, l2)
