"""Metrics that average a function of each sample: accuracies, and the losses as metrics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..tensor import Tensor
from . import losses
from .losses_functions import EPSILON, normalized, tensor_like
from .metrics_base import Mean, MeanMetricWrapper
from .reductions import same_rank


def _agree(a: Tensor, b: Tensor) -> Tensor:
    return (a == b).to(dtypes.get_default_dtype())


def _numbers(y_true: Any, y_pred: Tensor) -> Tensor:
    """Class numbers beside the predictions."""
    return tensor_like(y_true).to(y_pred.device, dtypes.int64)


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """1 where y_true equals y_pred, else 0."""
    p = tensor_like(y_pred)
    return _agree(*same_rank(tensor_like(y_true, p), p))


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """1 where y_true equals (y_pred > threshold), else 0."""
    p = tensor_like(y_pred)
    y, p = same_rank(tensor_like(y_true, p), p)
    return _agree(y, (p > threshold).to(y.dtype))


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """1 where the largest of y_true (one-hot) and of y_pred stand at the same class, else 0."""
    p = tensor_like(y_pred)
    return _agree(tensor_like(y_true).to(p.device).argmax(-1), p.argmax(-1))


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """1 where y_pred is largest at the class number y_true, else 0."""
    p = tensor_like(y_pred)
    y = _numbers(y_true, p)
    if y.ndim == p.ndim and y.shape[-1] == 1:
        y = y.squeeze(-1)
    return _agree(y, p.argmax(-1))


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """1 where fewer than k classes are more probable than the class number y_true, else 0."""
    p = tensor_like(y_pred)
    y = _numbers(y_true, p)
    y = y.squeeze(-1) if y.ndim == p.ndim and y.shape[-1] == 1 else y
    above = (p > p.gather(-1, y.unsqueeze(-1))).to(dtypes.int32).sum(-1)
    return (above < k).to(dtypes.get_default_dtype())


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """1 where fewer than k classes are more probable than the largest of y_true (one-hot), else 0."""
    return sparse_top_k_categorical_accuracy(tensor_like(y_true).argmax(-1), y_pred, k)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """sum(y_true y_pred) of both divided by their norms: 1 for the same direction."""
    p = tensor_like(y_pred)
    y, p = same_rank(tensor_like(y_true, p), p)
    return (normalized(y, axis) * normalized(p, axis)).sum(axis)


def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """mean of (y_true - its mean) / its standard deviation times the same of y_pred, along `axis`."""
    p = tensor_like(y_pred)
    y, p = (t - t.mean(axis, keepdim=True) for t in same_rank(tensor_like(y_true, p), p))
    y, p = (t / t.square().mean(axis, keepdim=True).sqrt() for t in (y, p))
    return (y * p).mean(axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """2 covariance / (both variances + (difference of the means)^2 + 1e-7), along `axis`. Lin (Biometrics 45, 1989)."""
    p = tensor_like(y_pred)
    y, p = same_rank(tensor_like(y_true, p), p)
    a, b = y.mean(axis, keepdim=True), p.mean(axis, keepdim=True)
    spread = (y - a).square().mean(axis, keepdim=True) + (p - b).square().mean(axis, keepdim=True) + (a - b).square()
    return ((y - b) * (p - b) * 2 / (spread + EPSILON)).mean(axis)


def _class(title: str, fn: Callable, name: str | None = None, leave_out: tuple = ()) -> type[MeanMetricWrapper]:
    """A metric class for a function: takes name, dtype and the function's options (by name, as one may stand first)."""
    own = [p for p in inspect.signature(fn).parameters.values() if p.default is not p.empty and p.name not in leave_out]
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    common = [inspect.Parameter(k, keyword, default=v) for k, v in {"name": name or fn.__name__, "dtype": None}.items()]
    first, later = ([p for p in own if (p.name == "k") is yes] for yes in (True, False))
    signature = inspect.Signature([*first, *common, *later])

    def __init__(self: MeanMetricWrapper, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"[{title}] {error}; it takes {', '.join(signature.parameters)}") from None
        bound.apply_defaults()
        MeanMetricWrapper.__init__(self, fn, **bound.arguments)

    def get_config(self: MeanMetricWrapper) -> dict:
        return {**Mean.get_config(self), **self.options}

    body = {"__init__": __init__, "get_config": get_config, "__module__": __name__, "__signature__": signature}
    return type(title, (MeanMetricWrapper,), {**body, "__doc__": f"The average over samples of: {fn.__doc__}"})


Accuracy = _class("Accuracy", accuracy)
BinaryAccuracy = _class("BinaryAccuracy", binary_accuracy)
CategoricalAccuracy = _class("CategoricalAccuracy", categorical_accuracy)
SparseCategoricalAccuracy = _class("SparseCategoricalAccuracy", sparse_categorical_accuracy)
TopKCategoricalAccuracy = _class("TopKCategoricalAccuracy", top_k_categorical_accuracy)
SparseTopKCategoricalAccuracy = _class("SparseTopKCategoricalAccuracy", sparse_top_k_categorical_accuracy)
PearsonCorrelation = _class("PearsonCorrelation", pearson_correlation)
ConcordanceCorrelation = _class("ConcordanceCorrelation", concordance_correlation)
CosineSimilarity = _class("CosineSimilarity", cosine_similarity)
MeanSquaredError = _class("MeanSquaredError", losses.mean_squared_error)
MeanAbsoluteError = _class("MeanAbsoluteError", losses.mean_absolute_error)
MeanAbsolutePercentageError = _class("MeanAbsolutePercentageError", losses.mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _class("MeanSquaredLogarithmicError", losses.mean_squared_logarithmic_error)
LogCoshError = _class("LogCoshError", losses.log_cosh, "logcosh")
KLDivergence = _class("KLDivergence", losses.kl_divergence)
Poisson = _class("Poisson", losses.poisson)
Hinge = _class("Hinge", losses.hinge)
SquaredHinge = _class("SquaredHinge", losses.squared_hinge)
CategoricalHinge = _class("CategoricalHinge", losses.categorical_hinge)
BinaryCrossentropy = _class("BinaryCrossentropy", losses.binary_crossentropy, None, ("axis",))
CategoricalCrossentropy = _class("CategoricalCrossentropy", losses.categorical_crossentropy)
SparseCategoricalCrossentropy = _class("SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy)


class RootMeanSquaredError(Mean):
    """sqrt of the average of (y_true - y_pred)^2."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None):
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        p = tensor_like(y_pred)
        y, p = same_rank(tensor_like(y_true, p), p)
        super().update_state((p - y).square(), sample_weight)

    def result(self) -> Tensor:
        """The value so far."""
        return super().result().sqrt()
