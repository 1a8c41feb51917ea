"""What compile() was given, resolved against what the model and the data look like: a loss and metrics for each output."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ..tensor import Tensor
from . import losses, metrics
from .losses import Loss, LossFunctionWrapper
from .metrics_base import Mean, MeanMetricWrapper, Metric
from .naming import snake_case
from .tree import by_key, leaves


def _called(thing: Any) -> str:
    """The name of a loss or metric: its own, a function's, or its class's in snake_case."""
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None)
    return name if isinstance(name, str) else snake_case(type(thing).__name__)


def _kind(y_true: Tensor, y_pred: Tensor) -> str:
    """"binary", "sparse_categorical" or "categorical", by the shapes, as Keras decides what "accuracy" means."""
    if y_pred.shape[-1] == 1:
        return "binary"
    return "sparse_categorical" if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1 else "categorical"


def check_loss(identifier: Any) -> None:
    """Raise for what is no loss, in lists and dicts too: compile() refuses it, not the first batch."""
    for each in leaves(identifier):
        if isinstance(each, str) and each.lower() in ("crossentropy", "ce"):
            continue
        losses.get(each)


def check_metrics(identifier: Any, name: str) -> None:
    """Raise for what are no metrics."""
    if identifier is not None and not isinstance(identifier, list | tuple | dict):
        raise ValueError(f"[compile] {name} is a list, or a list or dict of lists for several outputs; got {identifier!r}")
    for each in leaves(identifier):
        if not (isinstance(each, str) and each.lower() in ("accuracy", "acc", "crossentropy", "ce")):
            metrics.get(each)


def _loss(identifier: Any, y_true: Tensor, y_pred: Tensor) -> Loss | None:
    if identifier is None:
        return None
    if isinstance(identifier, str) and identifier.lower() in ("crossentropy", "ce"):
        found: Any = losses.get(f"{_kind(y_true, y_pred)}_crossentropy")
    else:
        found = losses.get(identifier)
    if isinstance(found, Loss):
        return found
    return LossFunctionWrapper(found, name=identifier if isinstance(identifier, str) else _called(found))


def _metric(identifier: Any, y_true: Tensor, y_pred: Tensor) -> Metric:
    name = identifier.lower() if isinstance(identifier, str) else ""
    if name in ("accuracy", "acc"):
        found: Any = metrics.get(f"{_kind(y_true, y_pred)}_accuracy")
    elif name in ("crossentropy", "ce"):
        found = metrics.get(f"{_kind(y_true, y_pred)}_crossentropy")
    else:
        found = metrics.get(identifier)
    if not isinstance(found, Metric):
        found = MeanMetricWrapper(found, _called(found))
    if isinstance(identifier, str):
        found.name = identifier
    return found


def _each(value: Any, names: list[str], what: str) -> list:
    """One entry an output: of a dict by names, of a list in order; a single one for a single output."""
    count = len(names)
    if isinstance(value, dict):
        unknown = [k for k in value if k not in names]
        if unknown:
            raise ValueError(f"[compile] {what} has no output {unknown}; there are {names}")
        return [value.get(name) for name in names]
    if isinstance(value, list | tuple) and len(value) == count:
        return list(value)
    if isinstance(value, list | tuple):
        raise ValueError(f"[compile] {what}: one for each of the outputs {names}; got {len(value)}")
    return [value] * count


class Compiled:
    """The losses and metrics of all outputs. They are made at the first batch, when shapes are known."""

    def __init__(self, loss: Any, loss_weights: Any, metric: Any, weighted: Any, output_names: list[str]):
        self.loss, self.loss_weights, self.metric, self.weighted = loss, loss_weights, metric, weighted
        self.output_names = output_names
        self.total = Mean("loss")
        self._built = False

    def _build(self, y_true: list, y_pred: list, names: list[str]) -> None:
        many = len(y_pred) > 1
        rows = zip(_each(self.loss, names, "loss"), y_true, y_pred)
        self.losses = [None if i is None else _loss(i, t, p) for i, t, p in rows]
        weights = _each(self.loss_weights, names, "loss_weights")
        self.factors = [1.0 if w is None else float(w) for w in weights]
        active = [i for i, loss in enumerate(self.losses) if loss is not None]
        if isinstance(self.loss, dict):  # evaluate() gives them in its order
            active.sort(key=lambda i: list(self.loss).index(names[i]))
        self.trackers = {i: Mean(f"{names[i]}_loss") for i in active} if len(active) > 1 else {}
        self.plain, self.weighed = (
            self._metrics(given, what, y_true, y_pred, names, many)
            for given, what in ((self.metric, "metrics"), (self.weighted, "weighted_metrics"))
        )
        self._built = True

    def _metrics(self, given: Any, what: str, y_true: list, y_pred: list, names: list[str], many: bool) -> list:
        """(name in the logs, metric, number of the output)."""
        if not given:
            return []
        if not many and isinstance(given, dict):
            given = given.get(names[0])
        each = _each(given, names, what) if many else [given]
        found = []
        for i, (entry, t, p) in enumerate(zip(each, y_true, y_pred)):
            for identifier in leaves(entry):
                if identifier is not None:
                    if t is None:
                        raise ValueError(f"[fit] output {names[i]!r} has {what}, and y has no entry for it")
                    metric = _metric(identifier, t, p)
                    found.append((f"{names[i]}_{metric.name}" if many else metric.name, metric, i))
        return found

    def flat(self, y_true: Any, y_pred: Any, weight: Any) -> tuple[list, list, list, list[str]]:
        """Targets, outputs and weights as lists in the order of the outputs, and the outputs' names."""
        preds = list(leaves(by_key(y_pred)))
        names = sorted(y_pred) if isinstance(y_pred, dict) else self.output_names
        if len(names) != len(preds):
            names = [f"output_{i + 1}" for i in range(len(preds))]
        if len(preds) == 1:
            return [next(iter(leaves(y_true)))], preds, [None if weight is None else next(iter(leaves(weight)))], names
        needed = [n for n, loss in zip(names, _each(self.loss, names, "loss")) if loss is not None]
        targets = _like(y_true, names, "y", needed)
        weights = _like(weight, names, "sample_weight") if isinstance(weight, list | tuple | dict) else [weight] * len(preds)
        return targets, preds, weights, names

    def compute_loss(self, y_true: Any, y_pred: Any, weight: Any) -> Tensor | None:
        """The weighted sum of the outputs' losses; None when there is no loss."""
        if self.loss is None:
            return None
        targets, preds, weights, names = self.flat(y_true, y_pred, weight)
        if not self._built:
            self._build(targets, preds, names)
        total: Any = None
        for i, loss in enumerate(self.losses):
            if loss is None:
                continue
            value = loss(targets[i], preds[i], weights[i])
            if value.ndim:
                raise ValueError(f"[fit] the loss {loss.name!r} gives {value.shape} values; its reduction must give one number")
            if self.trackers:
                self.trackers[i].update_state(value, preds[i].shape[0])
            value = value * self.factors[i] if self.factors[i] != 1 else value
            total = value if total is None else total + value
        return total

    def update_metrics(self, y_true: Any, y_pred: Any, weight: Any) -> None:
        """Take a batch into the metrics; only weighted_metrics see the sample weights."""
        if not self.metric and not self.weighted:
            return
        targets, preds, weights, names = self.flat(y_true, y_pred, weight)
        if not self._built:
            self._build(targets, preds, names)
        for _, metric, i in self.plain:
            metric.update_state(targets[i], preds[i])
        for _, metric, i in self.weighed:
            metric.update_state(targets[i], preds[i], sample_weight=weights[i])

    def named(self) -> list[tuple[str, Metric]]:
        """(name in the logs, metric): the loss, the metrics, the losses of several outputs."""
        found: list[tuple[str, Metric]] = [("loss", self.total)]
        if self._built:
            names: dict[str, int] = {}
            rows = [(n, m, False) for n, m, _ in self.plain] + [(n, m, True) for n, m, _ in self.weighed]
            for name, metric, weighed in rows:
                if weighed and name in names:  # Keras puts the word between the output's name and the metric's
                    name = f"{name.removesuffix(metric.name)}weighted_{metric.name}"
                names[name] = names.get(name, -1) + 1
                found.append((f"{name}_{names[name]}" if names[name] else name, metric))
            found += [(tracker.name, tracker) for tracker in self.trackers.values()]
        return found

    def reset(self) -> None:
        """Forget all batches."""
        for _, metric in self.named():
            metric.reset_state()


def _like(value: Any, names: list[str], what: str, needed: list[str] | None = None) -> list:
    """The entry of each output; None where a dict has none, unless it is needed."""
    if isinstance(value, dict):
        missing = [n for n in needed or () if n not in value]
        if missing:
            raise ValueError(f"[fit] {what} has no entries {missing}; it has {list(value)}")
        return [value.get(n) for n in names]
    found = list(leaves(value))
    if len(found) != len(names):
        raise ValueError(f"[fit] {what} has an entry for each output, {names}; got {len(found)}")
    return found


@functools.cache
def takes_training(function: Any) -> bool:
    """Whether a user's function has the argument."""
    return "training" in inspect.signature(function).parameters
