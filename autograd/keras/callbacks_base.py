"""Callback: what is told of every step of training; CallbackList, which tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .tree import leaves


class Callback:
    """Base of callbacks: overwrite the hooks you need. self.model is the model, self.params what fit() was asked for.

    Order in fit(): on_train_begin; each epoch on_epoch_begin, each batch on_train_batch_begin and on_train_batch_end; with
    validation data on_test_begin, on_test_batch_begin, on_test_batch_end, on_test_end; then on_epoch_end; at the end
    on_train_end. Hooks that end something get its logs, {name: float}. self.model.stop_training = True ends training
    after the batch.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict = {}

    def set_model(self, model: Any) -> None:
        """Get to know the model."""
        self.model = model

    def set_params(self, params: dict) -> None:
        """Get to know epochs, steps and verbose."""
        self.params = params

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Before an epoch, counted from 0."""

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """After an epoch and its validation."""

    def on_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        """The same as on_train_batch_begin."""

    def on_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """The same as on_train_batch_end."""

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        """Before a batch of training, counted from 0 in each epoch."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After a batch of training; logs are the epoch's so far."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        """Before a batch of evaluate() or of validation."""

    def on_test_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After a batch of evaluate() or of validation."""

    def on_predict_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        """Before a batch of predict()."""

    def on_predict_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After a batch of predict(); logs["outputs"] are its outputs."""

    def on_train_begin(self, logs: dict | None = None) -> None:
        """At the start of fit()."""

    def on_train_end(self, logs: dict | None = None) -> None:
        """At the end of fit()."""

    def on_test_begin(self, logs: dict | None = None) -> None:
        """At the start of evaluate() or of validation."""

    def on_test_end(self, logs: dict | None = None) -> None:
        """At the end of evaluate() or of validation."""

    def on_predict_begin(self, logs: dict | None = None) -> None:
        """At the start of predict()."""

    def on_predict_end(self, logs: dict | None = None) -> None:
        """At the end of predict()."""


_HOOKS = [name for name in vars(Callback) if name.startswith("on_") and name not in ("on_batch_begin", "on_batch_end")]


class LambdaCallback(Callback):
    """A callback made of functions: LambdaCallback(on_epoch_end=lambda epoch, logs: …). TypeError for unknown hooks."""

    def __init__(self, **hooks: Callable):
        super().__init__()
        for name, function in hooks.items():
            if name not in _HOOKS:
                raise TypeError(f"[LambdaCallback] there is no hook {name!r}; there are {', '.join(_HOOKS)}")
            if function is not None:
                setattr(self, name, function)


def _overwritten(callback: Callback, name: str) -> bool:
    """Whether the callback does something in a hook."""
    names = [name, name.replace("train_batch", "batch")]
    return any(n in callback.__dict__ or getattr(type(callback), n, None) is not getattr(Callback, n, None) for n in names)


class CallbackList:
    """Callbacks that are told everything in their order. Logs of a batch may be a function: it is called when one wants them."""

    def __init__(self, callbacks: Any = None, model: Any = None, **params: Any):
        self.callbacks: list[Callback] = [c for c in leaves(callbacks) if c is not None] if callbacks is not None else []
        for c in self.callbacks:
            if isinstance(c, type) or not all(hasattr(c, name) for name in ("set_model", "set_params", "on_epoch_end")):
                hint = " A class? Make an object of it." if isinstance(c, type) else ""
                raise TypeError(f"[callbacks] expected Callback objects; got {c!r}.{hint}")
        self._wanting: dict[str, list[Callback]] = {}
        self.set_params(params)
        self.set_model(model)

    def append(self, callback: Callback) -> None:
        """Put one at the end."""
        self.callbacks.append(callback)
        self._wanting.clear()

    def set_model(self, model: Any) -> None:
        """Tell all of the model."""
        self.model = model
        for callback in self.callbacks:
            callback.set_model(model)

    def set_params(self, params: dict) -> None:
        """Tell all of the parameters."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def __iter__(self) -> Iterable[Callback]:  # type: ignore[override]
        return iter(self.callbacks)

    def tell(self, hook: str, *args: Any) -> None:
        """Call a hook of all."""
        for callback in self.callbacks:
            getattr(callback, hook)(*args)

    def tell_batch(self, hook: str, batch: int, logs: Any = None) -> None:
        """Call a batch's hook of those that have written it. logs: a dict, or a function that gives one."""
        wanting = self._wanting.get(hook)
        if wanting is None:
            wanting = self._wanting[hook] = [c for c in self.callbacks if _overwritten(c, hook)]
        for callback in wanting:
            skip = getattr(callback, "skip_batch", None)
            if skip is not None and skip(hook, batch):
                continue
            if callable(logs):
                logs = logs()
            getattr(callback, hook)(batch, logs)


def _method(name: str) -> Callable:
    if "batch" in name:
        return lambda self, batch, logs=None: self.tell_batch(name, batch, logs)
    if "epoch" in name:
        return lambda self, epoch, logs=None: self.tell(name, epoch, logs)
    return lambda self, logs=None: self.tell(name, logs)


for _name in _HOOKS:
    setattr(CallbackList, _name, _method(_name))
