"""Intersection over union: metrics of how well two maps of classes lie on each other. Keras 3's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import create, dtypes
from ..ops.select import where
from ..tensor import Tensor
from .losses_functions import EPSILON, tensor_like
from .metrics_base import Metric
from .reductions import as_weight


class IoU(Metric):
    """The mean over target_class_ids of tp / (tp + fp + fn), from one confusion matrix of all batches.

    y_true and y_pred are class numbers; with sparse_y_true=False or sparse_y_pred=False they hold a number a class, along
    `axis`. Class numbers outside [0, num_classes), and ignore_class in y_true, do not count; nor do classes that neither
    has. ValueError for target classes out of range.
    """

    def __init__(self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None, dtype: Any = None,
                 ignore_class: int | None = None, sparse_y_true: bool = True, sparse_y_pred: bool = True,
                 axis: int = -1):  # fmt: skip
        super().__init__(dtype, name)
        self._matrix = self.add_variable((num_classes * num_classes,), name="total_confusion_matrix")
        if not all(0 <= i < num_classes for i in target_class_ids):
            given = list(target_class_ids)
            raise ValueError(f"[{type(self).__name__}] target_class_ids must be in [0, {num_classes}); got {given}")
        self.options = {"ignore_class": ignore_class, "sparse_y_true": sparse_y_true, "sparse_y_pred": sparse_y_pred}
        self.options["axis"] = axis
        self.num_classes, self.target_class_ids = num_classes, list(target_class_ids)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        p, n = tensor_like(y_pred), self.num_classes
        y = tensor_like(y_true).to(p.device)
        y = y if self.options["sparse_y_true"] else y.argmax(self.options["axis"])
        p = p if self.options["sparse_y_pred"] else p.argmax(self.options["axis"])
        y, p = y.to(dtypes.int64).reshape(-1), p.to(dtypes.int64).reshape(-1)
        ones = create.ones(p.shape, dtype=self.dtype or dtypes.get_default_dtype(), device=p.device)
        w = ones if sample_weight is None else as_weight(sample_weight, ones).reshape(-1).expand(p.shape)
        counts = (y >= 0) & (y < n) & (p >= 0) & (p < n)
        if self.options["ignore_class"] is not None:
            counts = counts & (y != self.options["ignore_class"])
        place = where(counts, y * n + p, y.zeros_like())
        empty = create.zeros(n * n, dtype=w.dtype, device=w.device)
        self._matrix.assign_add(empty.index_add(0, place, where(counts, w, w.zeros_like())))

    def result(self) -> Tensor:
        """The mean so far."""
        matrix = self._matrix.value.reshape(self.num_classes, self.num_classes)
        both = matrix.diagonal()
        either = matrix.sum(0) + matrix.sum(1) - both
        wanted = create.tensor(self.target_class_ids, device=matrix.device)
        both, either = both.index_select(0, wanted), either.index_select(0, wanted)
        there = either > 1e-9
        found = where(there, both / (either + EPSILON), both.zeros_like())
        return found.sum() / (there.to(found.dtype).sum() + EPSILON)

    def get_config(self) -> dict:
        """The options."""
        own = {"num_classes": self.num_classes, "target_class_ids": self.target_class_ids}
        return {**super().get_config(), **own, **self.options}


class BinaryIoU(IoU):
    """IoU of two classes: y_pred >= threshold is class 1."""

    def __init__(self, target_class_ids: Sequence[int] = (0, 1), threshold: float = 0.5, name: str | None = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in."""
        super().update_state(y_true, tensor_like(y_pred) >= self.threshold, sample_weight)

    def get_config(self) -> dict:
        """The options."""
        return {**Metric.get_config(self), "target_class_ids": self.target_class_ids, "threshold": self.threshold}


class MeanIoU(IoU):
    """IoU of all classes."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None, ignore_class: int | None = None,
                 sparse_y_true: bool = True, sparse_y_pred: bool = True, axis: int = -1):  # fmt: skip
        super().__init__(num_classes, range(num_classes), name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)

    def get_config(self) -> dict:
        """The options."""
        return {k: v for k, v in super().get_config().items() if k != "target_class_ids"}


class OneHotIoU(IoU):
    """IoU of one-hot y_true; y_pred holds a number a class too, unless sparse_y_pred."""

    def __init__(self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None, dtype: Any = None,
                 ignore_class: int | None = None, sparse_y_pred: bool = False, axis: int = -1):  # fmt: skip
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict:
        """The options."""
        return {k: v for k, v in super().get_config().items() if k != "sparse_y_true"}


class OneHotMeanIoU(MeanIoU):
    """MeanIoU of one-hot y_true; y_pred holds a number a class too, unless sparse_y_pred."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None, ignore_class: int | None = None,
                 sparse_y_pred: bool = False, axis: int = -1):  # fmt: skip
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict:
        """The options."""
        return {k: v for k, v in super().get_config().items() if k != "sparse_y_true"}
