"""Learning rates as functions of the step: keras.optimizers.schedules. schedule(step) is the rate at a step, counted from 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import naming


class LearningRateSchedule(naming.Configured):
    """Base of schedules: a subclass writes __call__(step)."""

    def __call__(self, step: int) -> float:
        raise NotImplementedError(f"[{type(self).__name__}] has no __call__()")


def _positive(schedule: Any, name: str) -> None:
    if not getattr(schedule, name) > 0:
        raise ValueError(f"[{type(schedule).__name__}] {name} must be positive; got {getattr(schedule, name)}")


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate * decay_rate^(step / decay_steps); staircase: of whole multiples of decay_steps."""

    def __init__(self, initial_learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False,
                 name: str = "ExponentialDecay"):  # fmt: skip
        self.initial_learning_rate, self.decay_steps, self.decay_rate = initial_learning_rate, decay_steps, decay_rate
        self.staircase, self.name = staircase, name
        _positive(self, "decay_steps")

    def __call__(self, step: int) -> float:
        share = step / self.decay_steps
        return self.initial_learning_rate * self.decay_rate ** (math.floor(share) if self.staircase else share)


class InverseTimeDecay(LearningRateSchedule):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps); staircase: of whole multiples of decay_steps."""

    def __init__(self, initial_learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False,
                 name: str = "InverseTimeDecay"):  # fmt: skip
        self.initial_learning_rate, self.decay_steps, self.decay_rate = initial_learning_rate, decay_steps, decay_rate
        self.staircase, self.name = staircase, name
        _positive(self, "decay_steps")

    def __call__(self, step: int) -> float:
        share = step / self.decay_steps
        return self.initial_learning_rate / (1 + self.decay_rate * (math.floor(share) if self.staircase else share))


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to and with step boundaries[i], the last value after them."""

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], name: str = "PiecewiseConstant"):
        if len(boundaries) != len(values) - 1:
            raise ValueError(f"[PiecewiseConstantDecay] one more value than boundaries; got {len(values)} and {len(boundaries)}")
        self.boundaries, self.values, self.name = list(boundaries), list(values), name

    def __call__(self, step: int) -> float:
        return self.values[sum(step > b for b in self.boundaries)]


class PolynomialDecay(LearningRateSchedule):
    """(initial - end) (1 - step / decay_steps)^power + end until decay_steps, then end; cycle: over ever longer rounds."""

    def __init__(self, initial_learning_rate: float, decay_steps: int, end_learning_rate: float = 0.0001, power: float = 1.0,
                 cycle: bool = False, name: str = "PolynomialDecay"):  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power, self.cycle, self.name = end_learning_rate, power, cycle, name
        _positive(self, "decay_steps")

    def __call__(self, step: int) -> float:
        rounds = max(1, math.ceil(step / self.decay_steps)) if self.cycle else 1
        share = min(step / (self.decay_steps * rounds), 1)
        return (self.initial_learning_rate - self.end_learning_rate) * (1 - share) ** self.power + self.end_learning_rate


class CosineDecay(LearningRateSchedule):
    """Half a cosine from the initial rate to alpha times it in decay_steps.

    With warmup_target a line to that in warmup_steps comes first, and the cosine starts there.
    Loshchilov, Hutter: SGDR (arXiv 1608.03983).
    """

    def __init__(self, initial_learning_rate: float, decay_steps: int, alpha: float = 0.0, name: str = "CosineDecay",
                 warmup_target: float | None = None, warmup_steps: int = 0):  # fmt: skip
        self.initial_learning_rate, self.decay_steps, self.alpha, self.name = initial_learning_rate, decay_steps, alpha, name
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps
        _positive(self, "decay_steps")

    def __call__(self, step: int) -> float:
        start = self.initial_learning_rate
        if self.warmup_target is not None:
            if step < self.warmup_steps:
                return start + (self.warmup_target - start) * step / self.warmup_steps
            start, step = self.warmup_target, step - self.warmup_steps
        share = min(step, self.decay_steps) / self.decay_steps
        return start * ((1 - self.alpha) * 0.5 * (1 + math.cos(math.pi * share)) + self.alpha)


class CosineDecayRestarts(LearningRateSchedule):
    """CosineDecay that starts again: rounds are t_mul times as long, and start m_mul times as high, as the one before."""

    def __init__(self, initial_learning_rate: float, first_decay_steps: int, t_mul: float = 2.0, m_mul: float = 1.0,
                 alpha: float = 0.0, name: str = "SGDRDecay"):  # fmt: skip
        self.initial_learning_rate, self.first_decay_steps = initial_learning_rate, first_decay_steps
        self.t_mul, self.m_mul, self.alpha, self.name = t_mul, m_mul, alpha, name
        _positive(self, "first_decay_steps")

    def __call__(self, step: int) -> float:
        share = step / self.first_decay_steps
        if self.t_mul == 1:
            rounds = math.floor(share)
            share -= rounds
        else:
            rounds = math.floor(math.log(1 - share * (1 - self.t_mul)) / math.log(self.t_mul))
            share = (share - (1 - self.t_mul**rounds) / (1 - self.t_mul)) / self.t_mul**rounds
        cosine = 0.5 * self.m_mul**rounds * (1 + math.cos(math.pi * share))
        return self.initial_learning_rate * ((1 - self.alpha) * cosine + self.alpha)


TABLE: dict[str, Any] = {
    c.__name__: c
    for c in (ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay, PolynomialDecay, CosineDecay, CosineDecayRestarts)
}


def serialize(schedule: Any) -> Any:
    """{"class_name", "config"}, from which deserialize makes it again."""
    return naming.serialize(schedule, {})


def deserialize(config: Any, custom_objects: dict | None = None) -> Any:
    """The schedule of a config."""
    return naming.deserialize(config, TABLE, "learning rate schedule", custom_objects)
