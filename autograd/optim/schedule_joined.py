"""Schedules made of schedules, and the one that watches a metric. PyTorch's numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from .optimizer import Optimizer
from .schedule import LRScheduler, for_group
from .schedule_cycle import _each


class ChainedScheduler(LRScheduler):
    """All the given schedules at once: each step() steps every one, so that their factors multiply."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        self.schedulers = _checked("ChainedScheduler", schedulers, optimizer)
        self.optimizer = self.schedulers[0].optimizer
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Go to the next epoch of each."""
        for schedule in self.schedulers:
            schedule.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict:
        """The states of all: plain data."""
        return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self.schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken."""
        _load_parts(self, state_dict)


class SequentialLR(LRScheduler):
    """One schedule after the other: milestones are the epochs at which the next one starts at its own epoch 0."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1):  # fmt: skip
        self.schedulers = _checked("SequentialLR", schedulers, optimizer)
        if any(isinstance(schedule, ReduceLROnPlateau) for schedule in self.schedulers):
            raise ValueError("[SequentialLR] ReduceLROnPlateau needs a metric at each step and cannot be one of a sequence")
        if len(milestones) != len(self.schedulers) - 1:
            raise ValueError(
                f"[SequentialLR] milestones stand between schedules: {len(self.schedulers) - 1} for "
                f"{len(self.schedulers)} schedules; got {len(milestones)}"
            )
        self.optimizer, self._milestones, self.last_epoch = optimizer, list(milestones), last_epoch + 1
        for group in optimizer.param_groups:  # undo what the schedules did when they were made
            group["lr"] = group["initial_lr"]
        for schedule in self.schedulers:
            _take_back(schedule)
        first = self.schedulers[bisect_right(self._milestones, 0)]  # a milestone at 0: a warm-up of no epochs
        _advance(first)
        self._last_lr = first.get_last_lr()

    def _advance(self) -> None:
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        schedule = self.schedulers[index]
        if index and self._milestones[index - 1] == self.last_epoch:
            _restart(schedule)
        else:
            _advance(schedule)
        self._last_lr = schedule.get_last_lr()

    def restart(self) -> None:
        """Go to epoch 0, as one of an outer sequence."""
        self.last_epoch = 0
        first = self.schedulers[bisect_right(self._milestones, 0)]
        _restart(first)
        self._last_lr = first.get_last_lr()

    def state_dict(self) -> dict:
        """The states of all: plain data."""
        return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self.schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken."""
        _load_parts(self, state_dict)


def _advance(schedule: LRScheduler) -> None:
    """One epoch on, without the warning for a first step."""
    for part in schedule.schedulers if isinstance(schedule, ChainedScheduler) else (schedule,):
        part._advance()
    schedule._last_lr = [group["lr"] for group in schedule.optimizer.param_groups]


def _restart(schedule: LRScheduler) -> None:
    for part in schedule.schedulers if isinstance(schedule, ChainedScheduler) else (schedule,):
        part.restart()
    schedule._last_lr = [group["lr"] for group in schedule.optimizer.param_groups]


def _take_back(schedule: LRScheduler) -> None:
    """Before the first epoch again."""
    if isinstance(schedule, ChainedScheduler | SequentialLR):
        for part in schedule.schedulers:
            _take_back(part)
    if not isinstance(schedule, ChainedScheduler):
        schedule.last_epoch -= 1
    if hasattr(schedule, "T_cur"):
        schedule.T_cur -= 1


def _checked(name: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> list[LRScheduler]:
    found = list(schedulers)
    if not found:
        raise ValueError(f"[{name}] got no schedules")
    for schedule in found:
        if not isinstance(schedule, LRScheduler):
            raise TypeError(f"[{name}] expected schedules; got {type(schedule).__name__}")
        if schedule.optimizer is not (optimizer or found[0].optimizer):
            raise ValueError(f"[{name}] all schedules must act on the same optimizer")
    return found


def _load_parts(schedule: Any, state_dict: dict) -> None:
    name, parts = type(schedule).__name__, state_dict.get("_schedulers", ())
    if len(parts) != len(schedule.schedulers):
        raise ValueError(f"[{name}.load_state_dict] expected {len(schedule.schedulers)} schedules; got {len(parts)}")
    LRScheduler.load_state_dict(schedule, {k: list(v) if k == "_schedulers" else v for k, v in state_dict.items()})
    del schedule.__dict__["_schedulers"]
    for part, state in zip(schedule.schedulers, parts, strict=True):
        part.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """lr * factor once step(metric) has seen no improvement in more than `patience` epochs.

    mode: "min" or "max". An improvement is better than the best times 1 - threshold ("max": 1 + threshold), which suits
    positive metrics as it does in PyTorch, or with threshold_mode "abs" than the best by threshold. After a reduction
    `cooldown` epochs do not count. min_lr, one number or one a group; a change smaller than eps is left out.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8):  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[ReduceLROnPlateau] expected an Optimizer; got {type(optimizer).__name__}")
        if factor >= 1:
            raise ValueError(f"[ReduceLROnPlateau] factor must be below 1; got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            given = f"{mode!r}, {threshold_mode!r}"
            raise ValueError(f"[ReduceLROnPlateau] mode is min or max, threshold_mode rel or abs; got {given}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs, self.last_epoch = _each(min_lr, optimizer, "ReduceLROnPlateau"), 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Go to the next epoch, whose metric (a number, or a tensor of one element) this is."""
        value = float(metrics)
        self.last_epoch += 1
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group["lr"] * self.factor, for_group(self, self.min_lrs, group, "min_lr"))
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def is_better(self, value: float) -> bool:
        """Whether a metric improves on the best so far."""
        sign = 1 if self.mode == "max" else -1
        if math.isinf(self.best):
            return sign * value > sign * self.best
        step = sign * self.threshold
        bound = self.best * (1 + step) if self.threshold_mode == "rel" else self.best + step
        return sign * value > sign * bound
