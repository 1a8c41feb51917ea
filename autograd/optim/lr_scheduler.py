"""Learning-rate schedules: step() after each optimizer.step() or epoch. PyTorch's numbers.

All but LambdaLR go from the group's present rate to the next, so that several may act on one optimizer.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """Base of all schedules: a subclass writes rate(group, base), the rate at self.last_epoch.

    last_epoch: -1 to start; else the epoch to go on from, with "initial_lr" in every group of the optimizer.
    """

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
        self._advance()

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch, given the group (its "lr" is the rate before) and its initial rate."""
        raise NotImplementedError(f"[{type(self).__name__}] has no rate()")

    def step(self) -> None:
        """Go to the next epoch."""
        if self.last_epoch == 0 and self.optimizer.steps_taken == 0:
            warnings.warn("scheduler.step() before the first optimizer.step() skips the first rate", stacklevel=2)
        self._advance()

    def _advance(self) -> None:
        self.last_epoch += 1
        rates = [self.rate(g, base) for g, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True)]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = rates

    def get_last_lr(self) -> list[float]:
        """The rates in use, one a group."""
        return list(self._last_lr)

    def state_dict(self) -> dict:
        """Everything but the optimizer and functions: plain data."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken. ValueError for another schedule's state."""
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

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        return group["lr"] * self.gamma if self.last_epoch else group["lr"]


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(epoch), one function for all groups or one a group; state_dict leaves them out."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1):
        groups = len(optimizer.param_groups)
        self.lr_lambdas: Any = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"[LambdaLR] expected {groups} functions, one a group; got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        position = next(i for i, g in enumerate(self.optimizer.param_groups) if g is group)
        return base * self.lr_lambdas[position](self.last_epoch)


class LinearLR(LRScheduler):
    """lr times a factor that goes in a line from start_factor to end_factor over total_iters epochs."""

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


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to eta_min along half a cosine in T_max epochs, then back up.

    lr = eta_min + (initial - eta_min) * (1 + cos(pi * epoch / T_max)) / 2
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        if T_max < 1:
            raise ValueError(f"[CosineAnnealingLR] T_max must be positive; got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        now, period, low = self.last_epoch, self.T_max, self.eta_min
        if now == 0:
            return group["lr"]
        if (now - 1 - period) % (2 * period) == 0:  # up from the bottom, where the ratio below divides by 0
            return group["lr"] + (base - low) * (1 - math.cos(math.pi / period)) / 2
        ratio = (1 + math.cos(math.pi * now / period)) / (1 + math.cos(math.pi * (now - 1) / period))
        return ratio * (group["lr"] - low) + low
