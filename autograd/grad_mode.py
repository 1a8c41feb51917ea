"""Gradient mode: whether operations are recorded. One flag a thread, restored on every way out."""

from __future__ import annotations

import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np


class _State(threading.local):
    """This thread's flag, and `run(f, *args)`: call f with NumPy's floating point warnings off.

    Infinities and NaNs are values here, as in PyTorch. Running inside a Context of our own keeps the
    user's np.seterr as it is and costs a tenth of a microsecond, np.errstate two.
    """

    enabled = True
    autocast: Any = None  # the cast.Policy of the autocast region this thread is in
    arrivals: Any = None  # the hooks.Arrivals that wait for leaves' gradients during backward

    def __init__(self) -> None:
        quiet = contextvars.copy_context()
        quiet.run(np.seterr, all="ignore")
        self.run = quiet.run


state = _State()


class _Mode:
    """A context manager, usable as a decorator, that sets the flag. One object may be entered again while inside."""

    def __init__(self, enabled: bool):
        self._enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(state.enabled)
        state.enabled = self._enabled

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        state.enabled = self._before.pop()

    def __call__(self, function: Callable) -> Callable:
        enabled = self._enabled
        if inspect.isgeneratorfunction(function):
            return _generating(function, enabled)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with _Mode(enabled):
                return function(*args, **kwargs)

        return inside


def _generating(function: Callable, enabled: bool) -> Callable:
    """A generator function whose body runs in the mode: set whenever it goes on, and back whenever it hands something out."""

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        steps = function(*args, **kwargs)
        step, given = steps.send, None
        while True:
            try:
                with _Mode(enabled):
                    value = step(given)
            except StopIteration as end:
                return end.value
            try:
                step, given = steps.send, (yield value)
            except GeneratorExit:
                with _Mode(enabled):
                    steps.close()
                raise
            except BaseException as error:
                step, given = steps.throw, error

    return inside


class no_grad(_Mode):
    """Record nothing inside: `with ag.no_grad():`, `@ag.no_grad()` or `@ag.no_grad`."""

    def __new__(cls, function: Callable | None = None) -> Any:
        return super().__new__(cls) if function is None else _Mode(False)(function)

    def __init__(self) -> None:
        super().__init__(False)


class inference_mode(_Mode):
    """no_grad, under PyTorch's other name: `with ag.inference_mode():` or as a decorator; mode=False records again.

    What is computed inside may be used anywhere afterwards.
    """

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if not callable(mode) else _Mode(False)(mode)

    def __init__(self, mode: Any = True) -> None:
        super().__init__(not mode)


class enable_grad(_Mode):
    """Record inside, also within no_grad: `with ag.enable_grad():` or as a decorator."""

    def __new__(cls, function: Callable | None = None) -> Any:
        return super().__new__(cls) if function is None else _Mode(True)(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_Mode):
    """Set the flag to `mode` at once; as a context manager or a decorator, for that extent only."""

    def __init__(self, mode: bool):
        super().__init__(bool(mode))
        self._outer = state.enabled
        state.enabled = self._enabled

    def __enter__(self) -> None:
        self._before.append(self._outer)
        state.enabled = self._enabled

    def __call__(self, function: Callable) -> Callable:
        state.enabled = self._outer  # as a decorator it must not change the mode where it is written
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Whether this thread records operations."""
    return state.enabled
