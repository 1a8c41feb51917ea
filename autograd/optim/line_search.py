"""A line search: how far to go in a direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..tensor import Tensor

_DECREASE, _CURVATURE = 1e-4, 0.9
_SHORTEST = 1e-9


class Trial(NamedTuple):
    """A step length, the loss and the gradient there, and the slope along the direction."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def strong_wolfe(go: Callable, start: Trial, t: float, size: float, most: int) -> tuple[Trial, int]:
    """The first length tried that meets the strong Wolfe conditions, and how many were tried:

        loss(t) <= loss(0) + 1e-4 * t * slope(0)        |slope(t)| <= 0.9 * |slope(0)|

    go(t) gives the Trial at t; size: the largest element of the direction; most: how many may be tried.
    Nocedal, Wright: Numerical Optimization (2006), algorithms 3.5 and 3.6, with PyTorch's safeguards.
    """
    before, now, tried = start, go(t), 1
    while tried <= most:
        if _too_high(now, start) or (tried > 2 and now.loss >= before.loss):
            return _zoom(go, start, [before, now], size, tried, most)
        if abs(now.slope) <= -_CURVATURE * start.slope:
            return now, tried
        if now.slope >= 0:
            return _zoom(go, start, [before, now], size, tried, most)
        t = interpolate(before, now, (now.t + 0.01 * (now.t - before.t), now.t * 10))
        before, now = now, go(t)
        tried += 1
    return min(start, now, key=lambda trial: trial.loss), tried


def _too_high(now: Trial, start: Trial) -> bool:
    return now.loss > start.loss + _DECREASE * now.t * start.slope


def _zoom(go: Callable, start: Trial, ends: list[Trial], size: float, tried: int, most: int) -> tuple[Trial, int]:
    """Narrow the bracket, whose better end is `low`, until a length in it will do."""
    low, high = sorted(ends, key=lambda trial: trial.loss)
    stuck = False
    while tried <= most and abs(high.t - low.t) * size >= _SHORTEST:
        left, right = sorted((low.t, high.t))
        t = interpolate(ends[0], ends[1], (left, right))
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin
        if near and (stuck or not left < t < right):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            near = False
        stuck = near
        now = go(t)
        tried += 1
        if _too_high(now, start) or now.loss >= low.loss:
            high = now
            if not low.loss <= high.loss:
                low, high = high, low
        else:
            if abs(now.slope) <= -_CURVATURE * start.slope:
                return now, tried
            if now.slope * (high.t - low.t) >= 0:
                high = low
            low = now
        ends = [low, high]
    return low, tried


def interpolate(a: Trial, b: Trial, bounds: tuple[float, float]) -> float:
    """Where the cubic through both losses and slopes is lowest, within bounds; their middle where it has no minimum."""
    if a.t > b.t:
        a, b = b, a
    gap = b.t - a.t
    if not gap:
        return sum(bounds) / 2
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = bend * bend - a.slope * b.slope
    if not square >= 0:
        return sum(bounds) / 2
    root = math.sqrt(square)
    width = b.slope - a.slope + 2 * root
    if not width:
        return sum(bounds) / 2
    return min(max(b.t - gap * (b.slope + root - bend) / width, bounds[0]), bounds[1])
