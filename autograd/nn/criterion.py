"""More losses as modules; see the functions of the same names in nn.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import functional as F
from .loss import _Loss, _WeightedLoss
from .pairs import PairwiseDistance


class _Criterion(_Loss):
    """A loss function with named options."""

    function: Callable

    def __init__(self, reduction: str = "mean", **options: Any):
        super().__init__(reduction)
        self._options = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *tensors: Tensor, **named: Tensor) -> Tensor:
        """The loss of the inputs and the target, in the function's order or by its names."""
        options = {name: getattr(self, name) for name in self._options}
        return type(self).function(*tensors, **named, reduction=self.reduction, **options)


class SmoothL1Loss(_Criterion):
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, reduced."""

    function = staticmethod(F.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0):
        super().__init__(reduction, beta=beta)


class HuberLoss(_Criterion):
    """d^2 / 2 where |d| <= delta, else delta * (|d| - delta / 2), reduced."""

    function = staticmethod(F.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction, delta=delta)


class GaussianNLLLoss(_Criterion):
    """(log(var) + (input - target)^2 / var) / 2, reduced; forward(input, target, var)."""

    function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction, full=full, eps=eps)


class PoissonNLLLoss(_Criterion):
    """exp(x) - t * x, reduced."""

    function = staticmethod(F.poisson_nll_loss)

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"):
        super().__init__(reduction, log_input=log_input, full=full, eps=eps)

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """F.poisson_nll_loss(log_input, target)."""
        return super().forward(log_input, target)


class KLDivLoss(_Criterion):
    """t * (log(t) - input), reduced, perhaps by "batchmean"; input holds log-probabilities."""

    function = staticmethod(F.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False):
        super().__init__("sum" if reduction == "batchmean" else reduction, log_target=log_target)
        self.reduction = reduction


class SoftMarginLoss(_Criterion):
    """log(1 + exp(-t * x)), reduced."""

    function = staticmethod(F.soft_margin_loss)

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction)


class MultiLabelMarginLoss(_Criterion):
    """sum over labels y and other classes j of max(0, 1 - (x[y] - x[j])) / C, reduced."""

    function = staticmethod(F.multilabel_margin_loss)

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction)


class HingeEmbeddingLoss(_Criterion):
    """x where t is 1, max(0, margin - x) where t is -1, reduced."""

    function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, reduction: str = "mean"):
        super().__init__(reduction, margin=margin)


class MarginRankingLoss(_Criterion):
    """max(0, -t * (x1 - x2) + margin), reduced; forward(x1, x2, t)."""

    function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction, margin=margin)


class CosineEmbeddingLoss(_Criterion):
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where t is -1, reduced; forward(x1, x2, t)."""

    function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction, margin=margin)


class TripletMarginLoss(_Criterion):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced; forward(anchor, positive, negative)."""

    function = staticmethod(F.triplet_margin_loss)

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"):
        if margin <= 0:
            raise ValueError(f"[TripletMarginLoss] margin must be positive; got {margin}")
        super().__init__(reduction, margin=margin, p=p, eps=eps, swap=swap)


class TripletMarginWithDistanceLoss(_Criterion):
    """TripletMarginLoss with a distance of your own."""

    function = staticmethod(F.triplet_margin_with_distance_loss)

    def __init__(self, *, distance_function: Callable | None = None, margin: float = 1.0, swap: bool = False,
                 reduction: str = "mean"):  # fmt: skip
        if margin <= 0:
            raise ValueError(f"[TripletMarginWithDistanceLoss] margin must be positive; got {margin}")
        super().__init__(reduction, distance_function=distance_function or PairwiseDistance(), margin=margin, swap=swap)


class CTCLoss(_Criterion):
    """F.ctc_loss; forward(log_probs, targets, input_lengths, target_lengths)."""

    function = staticmethod(F.ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction, blank=blank, zero_infinity=zero_infinity)


class BCELoss(_WeightedLoss):
    """-[t * log(x) + (1 - t) * log(1 - x)] * weight, reduced, for probabilities x."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction, weight=weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.binary_cross_entropy(input, target)."""
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of the binary cross-entropy of sigmoid(x), reduced."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction, weight=weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.multilabel_soft_margin_loss(input, target)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """sum over other classes j of max(0, margin - x[y] + x[j])^p / C, reduced."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction, weight=weight)
        if p not in (1, 2):
            raise ValueError(f"[MultiMarginLoss] p is 1 or 2; got {p}")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.multi_margin_loss(input, target)."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)
