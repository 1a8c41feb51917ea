"""keras.utils: small things around training."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random
from .layer import reset_names
from .metrics_base import reset_names as reset_metric_names
from .saving import custom_object_scope, register_keras_serializable


def to_categorical(x: Any, num_classes: int | None = None) -> np.ndarray:
    """Class numbers as one-hot rows; num_classes: the largest number plus one. ValueError for numbers outside."""
    labels = np.asarray(x, dtype=np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    count = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    if labels.size and not (0 <= labels.min() and labels.max() < count):
        raise ValueError(f"[to_categorical] class numbers must be in [0, {count}); got {labels.min()} to {labels.max()}")
    return np.eye(count)[labels]


def set_random_seed(seed: int) -> None:
    """Seed everything that is drawn at random: ag.manual_seed."""
    random.manual_seed(seed)


def clear_session() -> None:
    """Number the names of layers and metrics from the start again."""
    reset_names()
    reset_metric_names()


__all__ = ["clear_session", "custom_object_scope", "register_keras_serializable", "set_random_seed", "to_categorical"]
