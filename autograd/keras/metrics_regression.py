"""F-scores and the coefficient of determination: metrics whose state is one number a class. Keras 3's rules."""

from __future__ import annotations

from typing import Any

from ..ops.select import where
from ..tensor import Tensor
from .losses_functions import EPSILON, tensor_like
from .metrics_base import Metric, wide
from .reductions import as_weight, same_rank


def _two(name: str, y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    p = wide(tensor_like(y_pred))
    y, p = same_rank(tensor_like(y_true, p), p)
    if y.ndim != 2 or y.shape != p.shape:
        raise ValueError(f"[{name}] y_true and y_pred are (samples, outputs); got {y.shape} and {p.shape}")
    return y, p


class FBetaScore(Metric):
    """(1 + beta^2) P R / (beta^2 P + R) with precision P and recall R of each class; y_true is one-hot.

    threshold None: the largest of each row is called positive; else what is above. average: None (one number a class),
    "micro" (all counts together), "macro" (the mean over classes), "weighted" (by how often a class is true).
    """

    def __init__(self, average: str | None = None, beta: float = 1.0, threshold: float | None = None, name: str = "fbeta_score",
                 dtype: Any = None):  # fmt: skip
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"[{type(self).__name__}] average is None, micro, macro or weighted; got {average!r}")
        if beta <= 0 or (threshold is not None and not 0 < threshold <= 1):
            raise ValueError(f"[{type(self).__name__}] beta is positive, threshold in (0, 1]; got {beta} and {threshold}")
        self.average, self.beta, self.threshold = average, float(beta), threshold
        self._tp, self._fp, self._fn, self._weight = (self.add_variable(name=n) for n in ("tp", "fp", "fn", "weights"))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        y, p = _two(type(self).__name__, y_true, y_pred)
        called = (p >= p.amax(-1, keepdim=True)) & (p.abs() > 1e-9) if self.threshold is None else p > self.threshold
        c = called.to(p.dtype)
        w = p.new_ones((1, 1)) if sample_weight is None else as_weight(sample_weight, p).reshape(-1, 1)
        for state, found in ((self._tp, c * y), (self._fp, c * (1.0 - y)), (self._fn, (1.0 - c) * y), (self._weight, y)):
            state.assign_add((found * w).sum() if self.average == "micro" else (found * w).sum(0))

    def result(self) -> Tensor:
        """The score so far."""
        tp = self._tp.value
        precision, recall = tp / (self._fp + tp + EPSILON), tp / (self._fn + tp + EPSILON)
        score = precision * recall / (precision * self.beta**2 + recall + EPSILON) * (1 + self.beta**2)
        if self.average == "weighted":
            weights = self._weight.value
            return (score * (weights / (weights.sum() + EPSILON))).sum()
        return score if self.average is None else score.mean()

    def get_config(self) -> dict:
        """The options."""
        return {**super().get_config(), "average": self.average, "beta": self.beta, "threshold": self.threshold}


class F1Score(FBetaScore):
    """2 P R / (P + R): FBetaScore with beta 1."""

    def __init__(self, average: str | None = None, threshold: float | None = None, name: str = "f1_score", dtype: Any = None):
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict:
        """The options."""
        return {k: v for k, v in super().get_config().items() if k != "beta"}


class R2Score(Metric):
    """1 - sum((y - p)^2) / sum((y - mean(y))^2) of each output.

    class_aggregation: "uniform_average", "variance_weighted_average" or None (one number an output). num_regressors: for
    the adjusted score 1 - (1 - R2)(n - 1) / (n - num_regressors - 1), n the number of values.
    """

    def __init__(self, class_aggregation: str | None = "uniform_average", num_regressors: int = 0, name: str = "r2_score",
                 dtype: Any = None):  # fmt: skip
        super().__init__(dtype, name)
        allowed = (None, "uniform_average", "variance_weighted_average")
        if class_aggregation not in allowed or num_regressors < 0:
            raise ValueError(f"[R2Score] class_aggregation is one of {allowed}, num_regressors not negative; "
                             f"got {class_aggregation!r} and {num_regressors}")  # fmt: skip
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        names = ("squares", "sum", "residual", "count", "samples")
        self._squares, self._sum, self._residual, self._count, self._samples = (self.add_variable(name=n) for n in names)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        y, p = _two("R2Score", y_true, y_pred)
        w = p.new_ones((1, 1)) if sample_weight is None else as_weight(sample_weight, p).reshape(len(p), -1)
        w = w.expand(y.shape)
        self._sum.assign_add((y * w).sum(0))
        self._squares.assign_add((y * y * w).sum(0))
        self._residual.assign_add(((y - p).square() * w).sum(0))
        self._count.assign_add(w.sum(0))
        self._samples.assign_add(w.new_full((), float(y.numel())))

    def result(self) -> Tensor:
        """The score so far. ValueError when there are too few values for num_regressors."""
        total = self._squares - self._sum * (self._sum / self._count)
        score = 1.0 - self._residual.value / total
        score = where(score.isinf(), score.zeros_like(), score)
        if self.class_aggregation == "uniform_average":
            score = score.mean()
        elif self.class_aggregation == "variance_weighted_average":
            score = (total * score).sum() / total.sum()
        if self.num_regressors:
            n = float(self._samples.value)
            if n - self.num_regressors - 1 <= 0:
                given = f"{self.num_regressors} for {n:g}"
                raise ValueError(f"[R2Score] num_regressors is below the number of values less one; got {given}")
            score = 1.0 - (1.0 - score) * ((n - 1) / (n - self.num_regressors - 1))
        return score

    def get_config(self) -> dict:
        """The options."""
        own = {"class_aggregation": self.class_aggregation, "num_regressors": self.num_regressors}
        return {**super().get_config(), **own}
