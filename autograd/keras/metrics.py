"""Metrics by Keras' names: update_state(y_true, y_pred, sample_weight), result(), reset_state()."""

from __future__ import annotations

from typing import Any

from . import naming
from .metrics_accuracy import (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    CategoricalHinge,
    ConcordanceCorrelation,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    PearsonCorrelation,
    Poisson,
    RootMeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy,
    SquaredHinge,
    TopKCategoricalAccuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)  # fmt: skip
from .metrics_base import Mean, MeanMetricWrapper, Metric, Sum
from .metrics_confusion import (
    AUC,
    FalseNegatives,
    FalsePositives,
    Precision,
    PrecisionAtRecall,
    Recall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)  # fmt: skip
from .metrics_iou import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from .metrics_regression import F1Score, FBetaScore, R2Score

_CLASSES = (
    Accuracy, BinaryAccuracy, BinaryCrossentropy, CategoricalAccuracy, CategoricalCrossentropy, CategoricalHinge,
    CosineSimilarity, Hinge, KLDivergence, LogCoshError, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError,
    MeanSquaredLogarithmicError, Poisson, RootMeanSquaredError, SparseCategoricalAccuracy, SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy, SquaredHinge, TopKCategoricalAccuracy, AUC, FalseNegatives, FalsePositives, Precision,
    PrecisionAtRecall, Recall, RecallAtPrecision, SensitivityAtSpecificity, SpecificityAtSensitivity, TrueNegatives,
    TruePositives, F1Score, FBetaScore, R2Score, Mean, Sum, MeanMetricWrapper,
    ConcordanceCorrelation, PearsonCorrelation, BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU,
)  # fmt: skip
_SHORT = {
    "mse": MeanSquaredError, "mae": MeanAbsoluteError, "mape": MeanAbsolutePercentageError,
    "msle": MeanSquaredLogarithmicError, "bce": BinaryCrossentropy, "cosine_similarity": CosineSimilarity,
}  # fmt: skip
TABLE: dict[str, Any] = {c.__name__: c for c in _CLASSES} | _SHORT | {k.upper(): c for k, c in _SHORT.items()}
FUNCTIONS = {
    f.__name__: f
    for f in (binary_accuracy, categorical_accuracy, sparse_categorical_accuracy, sparse_top_k_categorical_accuracy,
              top_k_categorical_accuracy)
}  # fmt: skip


def get(identifier: Any) -> Any:
    """The metric of a name, the one of a config, or what is one; None gives None. ValueError: unknown."""
    return deserialize(identifier) if isinstance(identifier, dict) else naming.get(identifier, TABLE, "metric")


def serialize(metric: Any) -> Any:
    """Its name, or {"class_name", "config"} of an object."""
    return naming.serialize(metric, {**TABLE, **FUNCTIONS})


def deserialize(config: Any, custom_objects: dict | None = None) -> Any:
    """The metric of a name or a config."""
    return naming.deserialize(config, TABLE, "metric", custom_objects)


__all__ = [
    *(c.__name__ for c in _CLASSES), *FUNCTIONS, "Metric", "deserialize", "get", "serialize",
]  # fmt: skip
