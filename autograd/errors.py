"""What a public function says when it is given something that is no tensor."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .tensor import Tensor


class LinAlgError(np.linalg.LinAlgError, RuntimeError):
    """A matrix that cannot be factorised: singular, or not positive definite. A ValueError as NumPy's, a RuntimeError as
    PyTorch's."""


def saying_what_came(function: Callable, name: str) -> Callable:
    """`function` as ag.<name>: an AttributeError or a nameless TypeError because of what came becomes a TypeError that says so.

    Nothing is looked at before something went wrong. Then arguments by PyTorch's words (`input=`, `other=`, …) are put
    where they belong.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            ordered = _ordered(function, args, kwargs) if kwargs and type(error) is TypeError else None
            if ordered is not None:
                return call(*ordered[0], **ordered[1])
            said = _said(name, error, [*args, *kwargs.values()])
            if said is None:
                raise
            raise TypeError(said) from error

    call.__module__, call.__qualname__ = "autograd", name  # where pickle finds it
    return call


# PyTorch's words for arguments that have other names here: after how many others it comes, at least.
_PLACES = {
    "input": 0, "self": 0, "tensors": 0, "dividend": 0, "other": 1, "mat1": 1, "mat2": 1, "vec": 1, "vec2": 1, "exponent": 1,
    "tensor": 1, "tensor1": 1, "tensor2": 2, "divisor": 1, "split_size_or_sections": 1, "indices_or_sections": 1, "shape": 1,
    "dims": 1, "size": 1, "repeats": 1, "weights": 1,
}  # fmt: skip


def _ordered(function: Callable, args: tuple, kwargs: dict) -> tuple[list, dict] | None:
    """(args, kwargs) with PyTorch's words in their places; None where nothing is to be moved or it still would not fit."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = {name for name, parameter in inspect.signature(function).parameters.items() if parameter.kind in named}
    foreign = sorted((_PLACES[word], word) for word in kwargs if word not in known and word in _PLACES)
    moved, left = list(args), dict(kwargs)
    for place, word in foreign:
        if place > len(moved):
            return None
        moved.append(left.pop(word))
    try:
        inspect.signature(function).bind(*moved, **left)
    except TypeError:
        return None
    return (moved, left) if foreign else None


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
