"""Schedules that know the rate's course from the start: steps, lines, powers, half a cosine. PyTorch's numbers.

All but LambdaLR go from the group's present rate to the next, so that several may act on one optimizer.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..interrupts import held
from .optimizer import Optimizer

_NOT_STATE = ("optimizer", "lr_lambdas", "scale_fn", "schedulers")
_PYTORCH_ONLY = ("_step_count", "_get_lr_called_within_step", "_is_initial", "verbose")


class LRScheduler:
    """Base of all schedules: a subclass writes rate(group, base), the rate at self.last_epoch, or PyTorch's get_lr().

    last_epoch: -1 to start; else the epoch to go on from, with "initial_lr" in every group of the optimizer.
    """

    present = False  # whether "lr" is already the next epoch's rate where one goes on: then it stays as it is

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[{type(self).__name__}] expected an Optimizer; got {type(optimizer).__name__}")
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f'[{type(self).__name__}] going on from epoch {last_epoch} needs "initial_lr" in every group')
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        if self.present and last_epoch != -1:
            self.last_epoch += 1
            self._last_lr = [group["lr"] for group in optimizer.param_groups]
        else:
            self._advance()

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch, given the group (its "lr" is the rate before) and its initial rate."""
        raise NotImplementedError(f"[{type(self).__name__}] has no rate()")

    def get_lr(self) -> list[float]:
        """The rates at self.last_epoch, one a group; get_last_lr() says which are in use."""
        return [self.rate(g, base) for g, base in zip(self.optimizer.param_groups, self._bases(), strict=True)]

    def _bases(self) -> list[float]:
        """The initial rates; a group that was added since counts from the rate that it came with."""
        for group in self.optimizer.param_groups[len(self.base_lrs) :]:
            self.base_lrs.append(group.setdefault("initial_lr", group["lr"]))
        return self.base_lrs

    def step(self) -> None:
        """Go to the next epoch."""
        counted = type(self.optimizer).step is Optimizer.step  # a user's own step() counts nothing
        if self.last_epoch == 0 and not (self.optimizer.steps_taken or self.optimizer.steps_skipped) and counted:
            warnings.warn("scheduler.step() before the first optimizer.step() skips the first rate", stacklevel=2)
        self._advance()

    def _advance(self) -> None:
        with held:  # many a rate follows from the one before
            self.last_epoch += 1
            rates = self.get_lr()
            for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
            self._last_lr = rates

    def restart(self) -> None:
        """Go to epoch 0, from the initial rates: where SequentialLR turns to this schedule."""
        for group, base in zip(self.optimizer.param_groups, self._bases(), strict=True):
            group["lr"] = base
        self.last_epoch = -1
        self._advance()

    def get_last_lr(self) -> list[float]:
        """The rates in use, one a group."""
        return list(self._last_lr)

    def state_dict(self) -> dict:
        """Everything but the optimizer and functions: plain data."""
        return {k: v for k, v in self.__dict__.items() if k not in _NOT_STATE}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken. ValueError for another schedule's state."""
        state_dict = {k: v for k, v in state_dict.items() if k not in _PYTORCH_ONLY}
        own, given = set(self.state_dict()), set(state_dict)
        if own != given:
            raise ValueError(f"[{type(self).__name__}.load_state_dict] expected the entries {sorted(own)}; got {sorted(given)}")
        self.__dict__.update(state_dict)


class StepLR(LRScheduler):
    """lr * gamma every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        if step_size < 1:
            raise ValueError(f"[StepLR] step_size must be positive; got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        now = self.last_epoch
        return group["lr"] * self.gamma if now and now % self.step_size == 0 else group["lr"]


class MultiStepLR(LRScheduler):
    """lr * gamma at each milestone (twice where one stands twice)."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        return group["lr"] * self.gamma ** Counter(self.milestones)[self.last_epoch]


class ExponentialLR(LRScheduler):
    """lr * gamma every epoch."""

    present = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        return group["lr"] * self.gamma if self.last_epoch else group["lr"]


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(epoch), one function for all groups or one a group; state_dict leaves them out."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1):
        self.lr_lambdas = _one_a_group(self, optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        return base * self._factor(group)

    def _factor(self, group: dict) -> float:
        return for_group(self, self.lr_lambdas, group, "function")(self.last_epoch)


class MultiplicativeLR(LambdaLR):
    """lr times lr_lambda(epoch) every epoch, one function for all groups or one a group; state_dict leaves them out."""

    present = True

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        return group["lr"] * self._factor(group) if self.last_epoch else group["lr"]

    def restart(self) -> None:
        """Go to epoch 0; as in PyTorch, from the present rate, of which lr_lambda(0) is taken."""
        self.last_epoch = 0
        for group in self.optimizer.param_groups:
            group["lr"] *= self._factor(group)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]


def for_group(schedule: LRScheduler, values: list, group: dict, what: str) -> Any:
    """The group's own of values, one a group; that of all, where they are one, for a group that was added since."""
    groups = schedule.optimizer.param_groups
    position = next(i for i, g in enumerate(groups) if g is group)
    if position < len(values):
        return values[position]
    if any(value != values[0] for value in values):
        name = type(schedule).__name__
        raise ValueError(f"[{name}] there is no {what} for group {position}, which was added: make a new schedule")
    return values[0]


def _one_a_group(schedule: LRScheduler, optimizer: Optimizer, functions: Any) -> list[Callable]:
    groups = len(optimizer.param_groups)
    found = [functions] * groups if callable(functions) else list(functions)
    if len(found) != groups:
        raise ValueError(f"[{type(schedule).__name__}] expected {groups} functions, one a group; got {len(found)}")
    return found


class ConstantLR(LRScheduler):
    """lr times factor until total_iters epochs have passed."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1:
            raise ValueError(f"[ConstantLR] factor must be in [0, 1]; got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        if self.last_epoch == 0:
            return group["lr"] * self.factor
        return group["lr"] * (1 / self.factor) if self.last_epoch == self.total_iters else group["lr"]


class PolynomialLR(LRScheduler):
    """The initial rate times (1 - epoch / total_iters)^power, 0 from total_iters on."""

    present = True

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        now, total = self.last_epoch, self.total_iters
        if now == 0 or now > total:
            return group["lr"]
        return group["lr"] * ((1 - now / total) / (1 - (now - 1) / total)) ** self.power


class LinearLR(LRScheduler):
    """lr times a factor that goes in a line from start_factor to end_factor over total_iters epochs."""

    present = True

    def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
                 last_epoch: int = -1):  # fmt: skip
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"[LinearLR] factors must be in (0, 1] and [0, 1]; got {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        now, total = self.last_epoch, self.total_iters
        if now == 0:
            return group["lr"] * self.start_factor
        if now > total:
            return group["lr"]
        slope = self.end_factor - self.start_factor
        return group["lr"] * (1 + slope / (total * self.start_factor + (now - 1) * slope))
