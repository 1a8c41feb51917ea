"""Callbacks by Keras' names."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import Any

from .callbacks_base import Callback, CallbackList, LambdaCallback
from .callbacks_logging import CSVLogger, ProgbarLogger, TensorBoard
from .history import History

_DOWN = ("loss", "error", "mse", "mae", "mape", "msle", "crossentropy", "hinge", "poisson", "kl_divergence", "logcosh", "bce",
         "false_positives", "false_negatives", "learning_rate")  # fmt: skip
_UP = ("accuracy", "acc", "auc", "precision", "recall", "f1_score", "fbeta_score", "r2_score", "cosine_similarity",
       "true_positives", "true_negatives", "specificity", "sensitivity", "iou")  # fmt: skip


class MonitorCallback(Callback):
    """Base of callbacks that watch one of the logs. mode: "min", "max" or "auto" (by the metric's name)."""

    def __init__(self, monitor: str = "val_loss", mode: str = "auto", min_delta: float = 0.0):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"[{type(self).__name__}] mode is auto, min or max; got {mode!r}")
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)
        self.best: float | None = None
        if mode == "auto":
            self._auto()

    def _auto(self) -> None:
        name = self.monitor.removeprefix("val_")
        parts = name.split("_")
        ends = [("_".join(parts[i:]), "_".join(parts[:j])) for i in range(len(parts)) for j in (len(parts),)]
        words = [end for end, _ in ends] + ["_".join(parts[:-1])] * parts[-1].isdigit()
        for word in words:
            if word in _DOWN or word in _UP:
                self.mode = "min" if word in _DOWN else "max"
                return
        raise ValueError(f"[{type(self).__name__}] should {self.monitor!r} be small or large? Give mode='min' or 'max'")

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value improves on another by more than min_delta."""
        if than is None:
            return True
        return value < than - self.min_delta if self.mode == "min" else value > than + self.min_delta

    def current(self, logs: dict | None) -> float | None:
        """The watched value; None, with a warning, when it is not there."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            there = ", ".join(logs or {})
            warnings.warn(f"[{type(self).__name__}] there is no {self.monitor!r} in the logs; there are {there}", stacklevel=4)
        return value


class EarlyStopping(MonitorCallback):
    """Stop when the monitored value has not improved by more than min_delta for `patience` epochs.

    baseline: improvements count only beyond it. restore_best_weights: at the end the weights of the best epoch are put
    back. start_from_epoch: epochs before it do not count. best_epoch and stopped_epoch say what happened.
    """

    def __init__(self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0, verbose: int = 0, mode: str = "auto",
                 baseline: float | None = None, restore_best_weights: bool = False, start_from_epoch: int = 0):  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best_weights: list | None = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Begin anew."""
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best = self.best_weights = None

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Compare."""
        value = self.current(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self.is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self.is_better(value, self.baseline):
                self.wait = 0
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch, self.model.stop_training = epoch, True

    def on_train_end(self, logs: dict | None = None) -> None:
        """Put the best weights back."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                print(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.set_weights(self.best_weights)


class ReduceLROnPlateau(MonitorCallback):
    """learning_rate * factor, no lower than min_lr, after `patience` epochs without improvement; `cooldown` epochs do not count.

    The rate of each epoch is in the logs as learning_rate.
    """

    def __init__(self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0, mode: str = "auto",
                 min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0):  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        if factor >= 1:
            raise ValueError(f"[ReduceLROnPlateau] factor is below 1; got {factor}")
        self.factor, self.patience, self.verbose, self.cooldown, self.min_lr = factor, patience, verbose, cooldown, min_lr
        self.wait = self.cooldown_counter = 0

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Begin anew."""
        self.best, self.wait, self.cooldown_counter = None, 0, 0

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Compare."""
        optimizer = self.model.optimizer
        rate = optimizer.learning_rate
        if logs is not None:
            logs["learning_rate"] = rate
        value = self.current(logs)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_better(value, self.best):
            self.best, self.wait = value, 0
        elif not self.cooldown_counter:
            self.wait += 1
            if self.wait >= self.patience and rate > self.min_lr:
                optimizer.learning_rate = max(rate * self.factor, self.min_lr)
                self.cooldown_counter, self.wait = self.cooldown, 0
                if self.verbose:
                    print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {optimizer.learning_rate}.")


class LearningRateScheduler(Callback):
    """The rate of each epoch: schedule(epoch, rate) or schedule(epoch), asked before it. In the logs as learning_rate."""

    def __init__(self, schedule: Callable, verbose: int = 0):
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Set the rate."""
        try:
            rate = self.schedule(epoch, self.model.optimizer.learning_rate)
        except TypeError:
            rate = self.schedule(epoch)
        if not isinstance(rate, int | float):
            raise ValueError(f"[LearningRateScheduler] the schedule gives a number; got {type(rate).__name__}")
        self.model.optimizer.learning_rate = float(rate)
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Log the rate."""
        if logs is not None:
            logs["learning_rate"] = self.model.optimizer.learning_rate


class ModelCheckpoint(MonitorCallback):
    """Save the model after each epoch, or after every save_freq batches; with save_best_only when the monitored value improved.

    filepath may have fields: "{epoch:02d}-{val_loss:.2f}.keras". save_weights_only: save_weights(), else save().
    initial_value_threshold: the best value at the start.
    """

    def __init__(self, filepath: Any, monitor: str = "val_loss", verbose: int = 0, save_best_only: bool = False,
                 save_weights_only: bool = False, mode: str = "auto", save_freq: Any = "epoch",
                 initial_value_threshold: float | None = None):  # fmt: skip
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ValueError(f'[ModelCheckpoint] save_freq is "epoch" or a number of batches; got {save_freq!r}')
        super().__init__(monitor, mode if save_best_only or mode != "auto" else "min")
        self.filepath, self.verbose, self.save_freq = os.fspath(filepath), verbose, save_freq
        self.save_best_only, self.save_weights_only, self.best = save_best_only, save_weights_only, initial_value_threshold
        self._epoch = self._batches = 0

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Remember the epoch."""
        self._epoch = epoch

    def skip_batch(self, hook: str, batch: int) -> bool:
        """Whether nothing is to be done after this batch: its logs are not read then."""
        if self.save_freq == "epoch":
            return True
        self._batches += 1
        return self._batches % self.save_freq != 0

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Save, when it is time."""
        self._save({"epoch": self._epoch + 1, "batch": batch + 1}, logs or {})

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Save, when it is time."""
        if self.save_freq == "epoch":
            self._save({"epoch": epoch + 1}, logs or {})

    def _save(self, fields: dict, logs: dict) -> None:
        if self.save_best_only:
            value = self.current(logs)
            if value is not None:
                if not self.is_better(value, self.best):
                    if self.verbose:
                        print(f"\nEpoch {self._epoch + 1}: {self.monitor} did not improve from {self.best:.5f}")
                    return
                self.best = value
        try:
            path = self.filepath.format(**{**logs, **fields})
        except KeyError as error:
            names = ", ".join({**logs, **fields})
            raise KeyError(f"[ModelCheckpoint] filepath {self.filepath!r} has the field {error}; there are {names}") from None
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.model.save_weights(path) if self.save_weights_only else self.model.save(path)
        if self.verbose:
            print(f"\nEpoch {self._epoch + 1}: saved model to {path}")


class TerminateOnNaN(Callback):
    """Stop training when the loss is NaN or infinite."""

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Look at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


__all__ = [
    "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "ModelCheckpoint", "MonitorCallback", "ProgbarLogger", "ReduceLROnPlateau", "TensorBoard", "TerminateOnNaN",
]  # fmt: skip
