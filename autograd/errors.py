"""What a public function says when it is given something that is no tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .tensor import Tensor


def saying_what_came(function: Callable, name: str) -> Callable:
    """`function` as ag.<name>: an AttributeError or a nameless TypeError because of what came becomes a TypeError that says so.

    Nothing is looked at before something went wrong.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            said = _said(name, error, [*args, *kwargs.values()])
            if said is None:
                raise
            raise TypeError(said) from error

    call.__module__, call.__qualname__ = "autograd", name  # where pickle finds it
    return call


def _said(name: str, error: Exception, given: list) -> str | None:
    """What to say instead, or None where the error is about something else, or says it already."""
    if isinstance(error, AttributeError):
        inside = [x for group in given if isinstance(group, list | tuple) for x in group]
        came, kind = any(x is error.obj for x in (*given, *inside)), type(error.obj)
        foreign = came and not issubclass(kind, Tensor) and hasattr(Tensor, error.name or "")
        return f"[{name}] expected a tensor; got {kind.__name__}" if foreign else None
    if type(error) is not TypeError or name in str(error) or str(error).startswith("["):
        return None
    came = bool(given) and not isinstance(given[0], Tensor | list | tuple)
    return f"[{name}] expected a tensor; got {type(given[0]).__name__} ({error})" if came else f"[{name}] {error}"
