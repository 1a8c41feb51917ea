"""How much may be made while a file is being loaded: weights no larger than the file's own, little else, and no trial runs.

What a configuration says is believed only as far as the file itself bears it out: "units": 10**12 is twenty bytes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

OTHERS = 1 << 24  # elements of all that is no weight: states of stateful layers, metrics, zeros to run a user's model on


class _Left(threading.local):
    """Of the load in this thread: elements that may still be made. None: nothing is being loaded."""

    weights: int | None = None
    others: int | None = None
    trials: bool = True


_left = _Left()


@contextmanager
def loading(weights: int) -> Iterator[None]:
    """Inside, what is made has room for so many elements of weights, and OTHERS."""
    before = _left.weights, _left.others, _left.trials
    _left.weights, _left.others, _left.trials = weights, OTHERS, False
    try:
        yield
    finally:
        _left.weights, _left.others, _left.trials = before


@contextmanager
def trials() -> Iterator[None]:
    """Inside, layers may be run to see what comes out: a class of the user's own, on zeros that take() counts."""
    before, _left.trials = _left.trials, True
    try:
        yield
    finally:
        _left.trials = before


def take_weight(shape: Sequence[int], what: str) -> None:
    """Before a weight is made. ValueError when the weights of the file that is being loaded have fewer elements in all."""
    if _left.weights is not None:
        count = math.prod(shape)
        if count > _left.weights:
            raise ValueError(f"[load] {what} has shape {tuple(shape)}, for which the weights in the file are too few")
        _left.weights -= count


def take(shape: Sequence[int], what: str) -> None:
    """Before anything else is made. ValueError where it is more than a file may ask for."""
    if _left.others is not None:
        count = math.prod(shape)
        if count > _left.others:
            raise ValueError(f"[load] {what} of shape {tuple(shape)} is more than a file may ask for: {OTHERS} elements in all")
        _left.others -= count


def is_users(thing: object) -> bool:
    """Whether its class is none of this package's: a file can only name it where the user let it."""
    return type(thing).__module__.partition(".")[0] != __name__.partition(".")[0]


def no_trial(layer: object, name: str) -> None:
    """Before a layer is run to see what comes out. ValueError while a file is being loaded, which says that itself, but for
    classes of the user's own and what they build."""
    if not _left.trials and not is_users(layer):
        raise ValueError(f"[load] {name}: its configuration lacks the shapes of its outputs, or they do not fit")
