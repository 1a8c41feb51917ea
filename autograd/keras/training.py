"""Trainer: what Model adds to Layer. compile, fit, evaluate, predict, and the same for single batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import create
from ..grad_mode import no_grad
from ..tensor import Tensor
from . import optimizers, training_compile
from .callbacks import CallbackList, History, ProgbarLogger
from .layer_weights import device_of
from .metrics_base import Metric
from .training_compile import Compiled
from .training_data import Batches, class_weights, split
from .tree import leaves, mapped


class Trainer:
    """The training half of Model. A subclass of Model may write its own train_step, test_step, predict_step or compute_loss."""

    stop_training: bool

    def __init__(self) -> None:
        self.optimizer: Any = None
        self.history: Any = None
        self.compiled = False
        self.stop_training = False
        self._compiled: Compiled | None = None
        self._compile_config: dict = {}
        self._pending_state: dict | None = None  # of an optimizer whose model is not built yet

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None, metrics: Any = None,
                weighted_metrics: Any = None, run_eagerly: bool = False, steps_per_execution: int = 1,
                jit_compile: bool | str = "auto") -> None:  # fmt: skip
        """Say how to train.

        optimizer: a name or a keras.optimizers object. loss: a name, a function of (y_true, y_pred), a keras.losses object;
        for several outputs one for all, a list, or a dict by output names; None where layers add their losses.
        loss_weights: a number an output. metrics: names, functions or objects in a list (for several outputs a list or dict
        of lists); "accuracy" and "crossentropy" become the kind that fits the shapes. Only weighted_metrics see sample weights.
        run_eagerly and jit_compile (True, False, "auto") change nothing: every operation is eager here, and elementwise ones
        are fused on the GPU in any case. steps_per_execution: 1.
        ValueError for unknown names, with near ones, and for options out of range.
        """
        if jit_compile not in (True, False, "auto") or run_eagerly not in (True, False):
            given = f"{jit_compile!r} and {run_eagerly!r}"
            raise ValueError(f'[compile] jit_compile is True, False or "auto", run_eagerly True or False; got {given}')
        if steps_per_execution != 1:
            raise ValueError(f"[compile] steps_per_execution is 1: each step is on its own; got {steps_per_execution}")
        training_compile.check_loss(loss)
        training_compile.check_metrics(metrics, "metrics")
        training_compile.check_metrics(weighted_metrics, "weighted_metrics")
        self.optimizer = optimizers.get(optimizer)
        self.loss = loss
        self._compiled = Compiled(loss, loss_weights, metrics, weighted_metrics, getattr(self, "output_names", []))
        self._compile_config = {
            "loss": loss, "loss_weights": loss_weights, "metrics": metrics, "weighted_metrics": weighted_metrics,
            "run_eagerly": run_eagerly, "steps_per_execution": steps_per_execution, "jit_compile": jit_compile,
        }  # fmt: skip
        self.compiled, self.stop_training, self._pending_state = True, False, None

    def _needs_compile(self, name: str) -> Compiled:
        if self._compiled is None:
            raise ValueError(f"[{name}] call compile() first: it says how to train")
        return self._compiled

    # -- one step -----------------------------------------------------------------------------------

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None) -> Tensor:
        """The loss of a batch: compile()'s losses, and what layers and regularizers add."""
        total = self._needs_compile("compute_loss").compute_loss(y, y_pred, sample_weight)
        for extra in self.losses:  # type: ignore[attr-defined]
            extra = extra.sum() if extra.ndim else extra
            total = extra if total is None else total + extra.to(total.device, total.dtype)
        if total is None:
            raise ValueError("[fit] there is no loss: give compile() one, or add_loss() in a layer")
        return total

    def _loss(self, x: Any, y: Any, y_pred: Any, weight: Any, training: bool) -> Tensor:
        extra = {"training": training} if training_compile.takes_training(type(self).compute_loss) else {}
        loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, **extra)
        self._needs_compile("fit").total.update_state(loss.detach(), next(iter(leaves(x))).shape[0])
        return loss

    def train_step(self, data: tuple) -> dict:
        """One step on (x, y, sample_weight): outputs, loss, gradients, optimizer, constraints, metrics. The logs so far."""
        x, y, weight = data
        y_pred = self(x)  # type: ignore[operator]
        loss = self._loss(x, y, y_pred, weight, True)
        trained = self.trainable_weights  # type: ignore[attr-defined]
        if not trained:
            raise ValueError("[fit] the model has no trainable weights")
        for w in trained:
            w.grad = None
        self.optimizer.scale_loss(loss).backward()
        self._build_optimizer()
        self.optimizer.apply([w.grad for w in trained], trained)
        self.apply_constraints()  # type: ignore[attr-defined]
        for w in trained:
            w.grad = None
        return self.compute_metrics(x, y, y_pred, weight)

    def test_step(self, data: tuple) -> dict:
        """Outputs, loss and metrics of (x, y, sample_weight). The logs so far."""
        x, y, weight = data
        y_pred = self(x)  # type: ignore[operator]
        self._loss(x, y, y_pred, weight, False)
        return self.compute_metrics(x, y, y_pred, weight)

    def predict_step(self, data: tuple) -> Any:
        """The outputs of a batch."""
        return self(data[0])  # type: ignore[operator]

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict:
        """Take a batch into the metrics; the logs so far."""
        with no_grad():
            y_pred = mapped(_detached, y_pred)
            self._needs_compile("compute_metrics").update_metrics(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict:
        """The values of all metrics so far, as tensors: {name: value}."""
        found: dict = {}
        for name, metric in self._named_metrics():
            value = metric.result()
            found.update(value if isinstance(value, dict) else {name: value})
        return found

    def _named_metrics(self) -> list[tuple[str, Metric]]:
        compiled = [] if self._compiled is None else self._compiled.named()
        own = [m for layer in self.modules() for m in vars(layer).values() if isinstance(m, Metric)]  # type: ignore[attr-defined]
        return compiled + [(m.name, m) for m in own]

    @property
    def metrics(self) -> list[Metric]:
        """All metrics: the loss first, compile()'s, those that layers keep as attributes."""
        return [metric for _, metric in self._named_metrics()]

    @property
    def metrics_names(self) -> list[str]:
        """Their names in the logs, in Keras' order: those that are called so themselves, then output_metric ones by name."""
        named = self._named_metrics()
        return [n for n, m in named if n == m.name] + sorted(n for n, m in named if n != m.name)

    def reset_metrics(self) -> None:
        """Forget all batches."""
        for metric in self.metrics:
            metric.reset_state()

    def _build_optimizer(self) -> None:
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_weights)  # type: ignore[attr-defined]
        if self._pending_state is not None:
            state, self._pending_state = self._pending_state, None
            self.optimizer.load_state_dict(state)

    def _placed(self, data: Any) -> Any:
        """A batch's arrays as tensors where the model is, floating ones in its dtype."""
        where, kind = device_of(self, ()), self.dtype  # type: ignore[attr-defined, arg-type]

        def place(a: Any) -> Any:
            if a is None:
                return None
            t = a if isinstance(a, Tensor) else create.as_tensor(np.ascontiguousarray(a) if np.ndim(a) else np.asarray(a))
            return t.to(where, kind if t.dtype.is_floating_point else t.dtype)

        return mapped(place, data)

    # -- loops --------------------------------------------------------------------------------------

    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: Any = "auto",
            callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: Any = True,
            class_weight: dict | None = None, sample_weight: Any = None, initial_epoch: int = 0,
            steps_per_epoch: int | None = None, validation_steps: int | None = None,
            validation_batch_size: int | None = None, validation_freq: Any = 1) -> History:  # fmt: skip
        """Train for epochs - initial_epoch epochs; the History with the logs of each.

        x, y, sample_weight: arrays, tensors, or lists or dicts of them for several inputs or outputs; or x alone: a
        generator, a DataLoader or any iterable of (x, y) or (x, y, sample_weight). batch_size: 32; the last batch is as
        short as it comes, and averages count samples. shuffle: the order of ag.randperm(samples) in each epoch.
        verbose: 0 nothing, 1 or "auto" a bar, 2 a line an epoch. validation_split: the last part of the arrays, taken
        before any shuffling, is not trained on. validation_data: (x, y), (x, y, sample_weight) or an iterable.
        validation_freq: every so many epochs, or the numbers (from 1) of the epochs. class_weight: {class number: weight}.
        initial_epoch: the number of the first epoch. steps_per_epoch: batches an epoch; needed for an endless generator.
        """
        self._needs_compile("fit")
        _check_fit(verbose, epochs, initial_epoch)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split(x, y, sample_weight, validation_split)
        data = Batches(x, y, sample_weight, batch_size=batch_size, steps=steps_per_epoch, shuffle=shuffle,
                       class_weight=class_weight)  # fmt: skip
        validation = None
        if validation_data is not None:
            size = validation_batch_size or batch_size
            validation = _validation(validation_data, size, validation_steps)
        tellers = self._callbacks(callbacks, verbose, epochs, data.num_batches, history=True)
        return self._fit(data, validation, tellers, epochs, initial_epoch, validation_freq)

    def _fit(self, data: Batches, validation: Batches | None, tellers: CallbackList, epochs: int, initial_epoch: int,
             validation_freq: Any) -> History:  # fmt: skip
        self.stop_training = False
        logs: dict = {}
        tellers.tell("on_train_begin", None)
        try:
            for epoch in range(initial_epoch, epochs):
                self.reset_metrics()
                tellers.tell("on_epoch_begin", epoch, None)
                found: dict = {}
                self.train()  # type: ignore[attr-defined]
                for batch, part in enumerate(data):
                    tellers.tell_batch("on_train_batch_begin", batch)
                    found = self.train_step(self._placed(part))
                    tellers.tell_batch("on_train_batch_end", batch, lambda found=found: _floats(found))
                    if self.stop_training:
                        break
                self.eval()  # type: ignore[attr-defined]
                logs = _floats(found)
                if validation is not None and _is_due(epoch + 1, validation_freq):
                    logs |= {f"val_{k}": v for k, v in self._evaluate(validation, tellers).items()}
                tellers.tell("on_epoch_end", epoch, logs)
                if self.stop_training:
                    break
        finally:
            self.eval()  # type: ignore[attr-defined]
        self.optimizer.finalize_variable_values(self.trainable_weights)  # type: ignore[attr-defined]
        tellers.tell("on_train_end", logs)
        return self.history

    def _callbacks(self, callbacks: Any, verbose: Any, epochs: int, steps: int | None, history: bool = False) -> CallbackList:
        if isinstance(callbacks, CallbackList):
            tellers = callbacks
        else:
            tellers = CallbackList(callbacks)
        if history and not any(isinstance(c, History) for c in tellers.callbacks):
            tellers.append(History())
        if verbose and not any(isinstance(c, ProgbarLogger) for c in tellers.callbacks):
            tellers.append(ProgbarLogger())
        tellers.set_params({"verbose": verbose, "epochs": epochs, "steps": steps})
        tellers.set_model(self)
        if history:
            self.history = next(c for c in tellers.callbacks if isinstance(c, History))
        return tellers

    def _evaluate(self, data: Batches, tellers: CallbackList) -> dict:
        self.reset_metrics()
        tellers.tell("on_test_begin", None)
        found: dict = {}
        with no_grad():
            for batch, part in enumerate(data):
                tellers.tell_batch("on_test_batch_begin", batch)
                found = self.test_step(self._placed(part))
                tellers.tell_batch("on_test_batch_end", batch, lambda found=found: _floats(found))
        logs = _floats(found)
        tellers.tell("on_test_end", logs)
        return logs

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: Any = "auto",
                 sample_weight: Any = None, steps: int | None = None, callbacks: Any = None,
                 return_dict: bool = False) -> Any:  # fmt: skip
        """The loss and the metrics on data, as fit() takes them: a number, a list in the order of metrics_names, or a dict."""
        self._needs_compile("evaluate")
        _check_fit(verbose)
        data = Batches(x, y, sample_weight, batch_size=batch_size, steps=steps)
        self.eval()  # type: ignore[attr-defined]
        logs = self._evaluate(data, self._callbacks(callbacks, verbose, 1, data.num_batches))
        return logs if return_dict else self._flattened(logs)

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None,
                callbacks: Any = None) -> Any:  # fmt: skip
        """The outputs for x as NumPy arrays, computed batch by batch in inference mode."""
        _check_fit(verbose)
        data = Batches(x, batch_size=batch_size, steps=steps)
        tellers = self._callbacks(callbacks, verbose, 1, data.num_batches)
        self.eval()  # type: ignore[attr-defined]
        tellers.tell("on_predict_begin", None)
        found: list = []
        shape: Any = None
        with no_grad():
            for batch, part in enumerate(data):
                tellers.tell_batch("on_predict_batch_begin", batch)
                shape = mapped(_numpy, self.predict_step(self._placed(part)))
                found.append(list(leaves(shape)))
                tellers.tell_batch("on_predict_batch_end", batch, {"outputs": shape})
        tellers.tell("on_predict_end", None)
        joined = iter([np.concatenate(column) for column in zip(*found)])
        return mapped(lambda _: next(joined), shape)

    # -- single batches -----------------------------------------------------------------------------

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: dict | None = None,
                       return_dict: bool = False) -> Any:  # fmt: skip
        """One step; its loss and metrics, as evaluate() gives them."""
        self._needs_compile("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("[train_on_batch] class_weight and sample_weight cannot both be given")
            sample_weight = class_weights(y, class_weight)
        self.reset_metrics()
        self.train()  # type: ignore[attr-defined]
        try:
            logs = _floats(self.train_step(self._batch(x, y, sample_weight)))
        finally:
            self.eval()  # type: ignore[attr-defined]
        return logs if return_dict else self._flattened(logs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """The loss and metrics of one batch, as evaluate() gives them."""
        self._needs_compile("test_on_batch")
        self.reset_metrics()
        self.eval()  # type: ignore[attr-defined]
        with no_grad():
            logs = _floats(self.test_step(self._batch(x, y, sample_weight)))
        return logs if return_dict else self._flattened(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs of one batch as NumPy arrays."""
        self.eval()  # type: ignore[attr-defined]
        with no_grad():
            return mapped(_numpy, self.predict_step(self._batch(x, None, None)))

    def _batch(self, *parts: Any) -> tuple:
        (whole,) = Batches(*parts, batch_size=2**62)
        return self._placed(whole)

    def _flattened(self, logs: dict) -> Any:
        names = [n for n in self.metrics_names if n in logs]
        found = [logs[n] for n in [*names, *sorted(set(logs) - set(names))]]
        return found[0] if len(found) == 1 else found


def _check_fit(verbose: Any, epochs: int = 1, initial_epoch: int = 0) -> None:
    if verbose not in ("auto", 0, 1, 2):
        raise ValueError(f'[fit] verbose is "auto", 0, 1 or 2; got {verbose!r}')
    if not isinstance(epochs, int) or epochs < 0 or not isinstance(initial_epoch, int) or initial_epoch < 0:
        raise ValueError(f"[fit] epochs and initial_epoch are integers from 0 on; got {epochs!r} and {initial_epoch!r}")


def _validation(data: Any, batch_size: int | None, steps: int | None) -> Batches:
    if isinstance(data, tuple | list):
        if len(data) not in (2, 3):
            hint = "(x, y), (x, y, sample_weight) or an iterable of batches"
            raise ValueError(f"[fit] validation_data is {hint}; got {len(data)} parts")
        return Batches(*data, batch_size=batch_size, steps=steps)
    return Batches(data, steps=steps)


def _is_due(epoch: int, frequency: Any) -> bool:
    if isinstance(frequency, int) and not isinstance(frequency, bool) and frequency > 0:
        return epoch % frequency == 0
    if isinstance(frequency, list | tuple | set):
        return epoch in frequency
    raise ValueError(f"[fit] validation_freq is a positive number of epochs or a list of their numbers; got {frequency!r}")


def _floats(logs: dict) -> dict:
    """The logs as numbers, sorted by name as Keras does; what is not one number stays an array."""
    found = {}
    for name in sorted(logs):
        value = logs[name]
        if isinstance(value, Tensor):
            value = value.item() if value.numel() == 1 else _numpy(value)
        found[name] = value
    return found


def _numpy(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _detached(value: Any) -> Any:
    """The value without its history, with its mask."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return value
    found: Any = value.detach()
    mask = getattr(value, "_keras_mask", None)
    if mask is not None:
        found._keras_mask = mask
    return found
