"""Metrics of counts: true and false positives and negatives at thresholds, and what is computed from them. Keras 3's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import create, dtypes
from ..ops.select import where
from ..tensor import Tensor
from .losses_functions import EPSILON, tensor_like
from .metrics_base import Metric, wide
from .reductions import as_weight, divide_no_nan, same_rank
from .room import take

_NEVER = -1e10  # a prediction below every threshold


def _checked(name: str, thresholds: Any, default: float) -> list[float]:
    if thresholds is None:
        return [default]
    found = [float(t) for t in thresholds] if isinstance(thresholds, Sequence | np.ndarray) else [float(thresholds)]
    if not found or not all(0 <= t <= 1 for t in found):
        raise ValueError(f"[{name}] thresholds are numbers in [0, 1]; got {thresholds}")
    return found


class _Counts(Metric):
    """Counts at thresholds of what was predicted (y_pred > threshold) and what is true, times the samples' weights."""

    kinds: tuple[str, ...] = ()  # of "true_positives", "false_positives", "true_negatives", "false_negatives"

    def __init__(self, thresholds: list[float], top_k: int | None, class_id: int | None, name: str | None, dtype: Any):
        super().__init__(dtype, name)
        self._at, self.top_k, self.class_id = thresholds, top_k, class_id
        for kind in self.kinds:
            setattr(self, kind, self.add_variable((len(thresholds),), name=kind))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        y, p, w = _flat(y_true, y_pred, sample_weight, self.top_k, self.class_id, type(self).__name__)
        at = as_weight(np.asarray(self._at), p)
        positive = (p.unsqueeze(0) > at.unsqueeze(1)).to(p.dtype)
        self.add(positive @ (y * w), positive @ ((1.0 - y) * w), (y * w).sum(), ((1.0 - y) * w).sum())

    def add(self, tp: Tensor, fp: Tensor, trues: Tensor, falses: Tensor) -> None:
        """Add a batch's counts: true and false positives at each threshold, and the weights of all that are true and false."""
        counts = {"true_positives": tp, "false_positives": fp, "true_negatives": falses - fp, "false_negatives": trues - tp}
        for kind in self.kinds:
            getattr(self, kind).assign_add(counts[kind])


def _flat(y_true: Any, y_pred: Any, weight: Any, top_k: int | None, class_id: int | None, name: str) -> tuple:
    """Labels (0 or 1), predictions and weights, each as one vector."""
    p = wide(tensor_like(y_pred))
    p = p if p.dtype.is_floating_point else p.to(dtypes.get_default_dtype())
    p, y = same_rank(p, tensor_like(y_true, p))
    if y.shape != p.shape:
        raise ValueError(f"[{name}] y_true has the shape of y_pred, {p.shape}; got {y.shape}. One-hot labels?")
    w = p.new_ones(()) if weight is None else as_weight(weight, p)
    if w.ndim:
        w = w.reshape(w.shape + (1,) * (p.ndim - w.ndim))
    w = w.expand(p.shape)
    if top_k is not None:
        least = p.topk(top_k, -1)[0].amin(-1, keepdim=True)
        p = where(p >= least, p, p.full_like(_NEVER))
    if class_id is not None:
        if p.ndim < 2:
            raise ValueError(f"[{name}] class_id needs y_pred of 2 dimensions; got {p.shape}")
        y, p, w = (t[..., class_id] for t in (y, p, w))
    return (y != 0).to(p.dtype).reshape(-1), p.reshape(-1), w.reshape(-1)


class _Ratio(_Counts):
    """A quotient of counts at one threshold or several."""

    over: str
    true_positives: Any

    def __init__(self, thresholds: Any = None, top_k: int | None = None, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):  # fmt: skip
        self.thresholds = thresholds
        default = 0.5 if top_k is None else _NEVER
        super().__init__(_checked(type(self).__name__, thresholds, default), top_k, class_id, name, dtype)

    def result(self) -> Tensor:
        """The value so far: one number, or one a threshold."""
        tp = self.true_positives.value
        found = divide_no_nan(tp, tp + getattr(self, self.over).value)
        return found[0] if len(self._at) == 1 else found

    def get_config(self) -> dict:
        """The options."""
        return {**super().get_config(), "thresholds": self.thresholds, "top_k": self.top_k, "class_id": self.class_id}


class Precision(_Ratio):
    """tp / (tp + fp): how many of the samples called positive are. thresholds (0.5), top_k: only the k most probable count,
    class_id: only this class counts."""

    kinds, over = ("true_positives", "false_positives"), "false_positives"


class Recall(_Ratio):
    """tp / (tp + fn): how many of the positive samples are called so. Options as for Precision."""

    kinds, over = ("true_positives", "false_negatives"), "false_negatives"


class _Count(_Counts):
    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None):
        self.thresholds = thresholds
        super().__init__(_checked(type(self).__name__, thresholds, 0.5), None, None, name, dtype)

    def result(self) -> Tensor:
        """The count so far: one number, or one a threshold."""
        found = self._states[0].value
        return found[0] if len(self._at) == 1 else found

    def get_config(self) -> dict:
        """The options."""
        return {**super().get_config(), "thresholds": self.thresholds}


class TruePositives(_Count):
    """The weight of samples that are positive and called so."""

    kinds = ("true_positives",)


class FalsePositives(_Count):
    """The weight of samples that are negative and called positive."""

    kinds = ("false_positives",)


class TrueNegatives(_Count):
    """The weight of samples that are negative and called so."""

    kinds = ("true_negatives",)


class FalseNegatives(_Count):
    """The weight of samples that are positive and called negative."""

    kinds = ("false_negatives",)


_ALL = ("true_positives", "false_positives", "true_negatives", "false_negatives")


class _Best(_Counts):
    """The best of one ratio among the thresholds at which another is no lower than a bound."""

    kinds = _ALL
    bound_name: str

    def __init__(self, value: float, num_thresholds: int = 200, class_id: int | None = None, name: str | None = None,
                 dtype: Any = None):  # fmt: skip
        if not 0 <= value <= 1 or num_thresholds < 1:
            raise ValueError(f"[{type(self).__name__}] a bound in [0, 1], and thresholds; got {value} and {num_thresholds}")
        take((num_thresholds,), "thresholds of a metric")
        self.value, self.num_thresholds = value, num_thresholds
        at = [0.5] if num_thresholds == 1 else [i / (num_thresholds - 1) for i in range(num_thresholds)]
        super().__init__(at, None, class_id, name, dtype)

    def ratios(self, tp: Tensor, fp: Tensor, tn: Tensor, fn: Tensor) -> tuple[Tensor, Tensor]:
        """(what must reach the bound, what is wanted) at each threshold."""
        raise NotImplementedError

    def result(self) -> Tensor:
        """The value so far."""
        bounded, wanted = self.ratios(*(getattr(self, kind).value for kind in _ALL))
        return where(bounded >= self.value, wanted, wanted.zeros_like()).max()

    def get_config(self) -> dict:
        """The options."""
        own = {self.bound_name: self.value, "num_thresholds": self.num_thresholds, "class_id": self.class_id}
        return {**super().get_config(), **own}


def _best(title: str, bound: str, doc: str, ratios: Callable) -> type[_Best]:
    def __init__(self: _Best, *args: Any, **kwargs: Any) -> None:
        if bound in kwargs:
            kwargs["value"] = kwargs.pop(bound)
        _Best.__init__(self, *args, **kwargs)

    body = {"__init__": __init__, "bound_name": bound, "ratios": ratios, "__doc__": doc, "__module__": __name__}
    return type(title, (_Best,), body)


SensitivityAtSpecificity = _best(
    "SensitivityAtSpecificity", "specificity", "The best tp / (tp + fn) where tn / (tn + fp) >= specificity.",
    lambda self, tp, fp, tn, fn: (divide_no_nan(tn, tn + fp), divide_no_nan(tp, tp + fn)),
)  # fmt: skip
SpecificityAtSensitivity = _best(
    "SpecificityAtSensitivity", "sensitivity", "The best tn / (tn + fp) where tp / (tp + fn) >= sensitivity.",
    lambda self, tp, fp, tn, fn: (divide_no_nan(tp, tp + fn), divide_no_nan(tn, tn + fp)),
)  # fmt: skip
PrecisionAtRecall = _best(
    "PrecisionAtRecall", "recall", "The best tp / (tp + fp) where tp / (tp + fn) >= recall.",
    lambda self, tp, fp, tn, fn: (divide_no_nan(tp, tp + fn), divide_no_nan(tp, tp + fp)),
)  # fmt: skip
RecallAtPrecision = _best(
    "RecallAtPrecision", "precision", "The best tp / (tp + fn) where tp / (tp + fp) >= precision.",
    lambda self, tp, fp, tn, fn: (divide_no_nan(tp, tp + fp), divide_no_nan(tp, tp + fn)),
)  # fmt: skip


class AUC(_Counts):
    """The area under the ROC curve (curve="ROC") or the precision-recall curve ("PR"), from counts at thresholds.

    summation_method: "interpolation" (trapezoids; for PR the interpolation of Davis and Goadrich, ICML 2006), "minoring" or
    "majoring" (the lower or the upper corner). from_logits: a sigmoid is applied first. thresholds replaces num_thresholds
    equally spaced ones; one just below 0 and one just above 1 are always there. y_pred is in [0, 1].
    """

    kinds = _ALL

    def __init__(self, num_thresholds: int = 200, curve: str = "ROC", summation_method: str = "interpolation",
                 name: str | None = None, dtype: Any = None, thresholds: Any = None, from_logits: bool = False):  # fmt: skip
        if curve.upper() not in ("ROC", "PR") or summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError("[AUC] curve is ROC or PR, summation_method interpolation, minoring or majoring; "
                             f"got {curve!r} and {summation_method!r}")  # fmt: skip
        if thresholds is None and num_thresholds < 2:
            raise ValueError(f"[AUC] num_thresholds is at least 2; got {num_thresholds}")
        take((num_thresholds,), "thresholds of a metric")
        self.curve, self.summation_method, self.from_logits = curve.upper(), summation_method, from_logits
        self.thresholds = None if thresholds is None else sorted(_checked("AUC", thresholds, 0.5))
        inner = self.thresholds or [i / (num_thresholds - 1) for i in range(1, num_thresholds - 1)]
        self.num_thresholds = len(inner) + 2
        super().__init__([-EPSILON, *inner, 1 + EPSILON], None, None, name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        p = tensor_like(y_pred).detach()
        p = p.sigmoid() if self.from_logits else p
        if self.thresholds is not None:
            super().update_state(y_true, p, sample_weight)
            return
        # Equally spaced: a sample's bucket says above how many thresholds it is; counts are sums over buckets from above.
        y, p, w = _flat(y_true, p, sample_weight, None, None, "AUC")
        n = self.num_thresholds
        bucket = ((p.clamp(0.0, 1.0) * (n - 1)).ceil() - 1).relu().to(dtypes.int64)
        zeros = create.zeros(n, dtype=p.dtype, device=p.device)
        tp, fp = (zeros.index_add(0, bucket, v).flip(0).cumsum(0).flip(0) for v in (y * w, (1.0 - y) * w))
        self.add(tp, fp, (y * w).sum(), ((1.0 - y) * w).sum())

    def result(self) -> Tensor:
        """The area so far."""
        tp, fp, tn, fn = (getattr(self, kind).value for kind in _ALL)
        if self.curve == "PR" and self.summation_method == "interpolation":
            return _pr_area(tp, fp, fn)
        recall = divide_no_nan(tp, tp + fn)
        x, y = (divide_no_nan(fp, fp + tn), recall) if self.curve == "ROC" else (recall, divide_no_nan(tp, tp + fp))
        if self.summation_method == "interpolation":
            height = (y[:-1] + y[1:]) * 0.5
        else:
            height = y[:-1].minimum(y[1:]) if self.summation_method == "minoring" else y[:-1].maximum(y[1:])
        return ((x[:-1] - x[1:]) * height).sum()

    def get_config(self) -> dict:
        """The options."""
        own = {"num_thresholds": self.num_thresholds, "curve": self.curve, "summation_method": self.summation_method}
        return {**super().get_config(), **own, "thresholds": self.thresholds, "from_logits": self.from_logits}


def _pr_area(tp: Tensor, fp: Tensor, fn: Tensor) -> Tensor:
    """The integral of precision over recall, the counts interpolated linearly between thresholds."""
    p = tp + fp
    dtp, dp = tp[:-1] - tp[1:], p[:-1] - p[1:]
    slope = divide_no_nan(dtp, dp.clamp(min=0.0))
    intercept = tp[1:] - slope * p[1:]
    both = (p[:-1] > 0) & (p[1:] > 0)
    ratio = where(both, divide_no_nan(p[:-1], p[1:].clamp(min=0.0)), p[1:].ones_like())
    return divide_no_nan(slope * (dtp + intercept * ratio.log()), (tp[1:] + fn[1:]).clamp(min=0.0)).sum()
