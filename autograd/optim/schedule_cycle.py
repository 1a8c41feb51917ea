"""Schedules that rise and fall: cycles, one cycle, cosines with restarts. PyTorch's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .optimizer import Optimizer
from .schedule import LRScheduler, for_group


def _each(values: Any, optimizer: Optimizer, name: str) -> list[float]:
    """A number for every group, from one number or from one a group."""
    groups = len(optimizer.param_groups)
    found = list(values) if isinstance(values, list | tuple) else [values] * groups
    if len(found) != groups:
        raise ValueError(f"[{name}] expected {groups} numbers, one a group; got {len(found)}")
    return found


def _momentum_key(optimizer: Optimizer, name: str) -> str:
    """Where a group's momentum stands."""
    for key in ("betas", "momentum"):
        if key in optimizer.defaults:
            return key
    raise ValueError(f"[{name}] {type(optimizer).__name__} has no momentum to cycle; use cycle_momentum=False")


def _set_momentum(group: dict, key: str, value: float) -> None:
    group[key] = (value, *group["betas"][1:]) if key == "betas" else value


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr in step_size_up steps, down again in step_size_down, over and over.

        lr = base_lr + (max_lr - base_lr) * height * scale

    height goes 0 → 1 → 0 within a cycle. scale: 1 ("triangular"), 2^(1 - cycle) ("triangular2"), gamma^step
    ("exp_range"), or scale_fn of the cycle, or of the step with scale_mode="iterations". With cycle_momentum the
    momentum goes the other way, from max_momentum to base_momentum. Smith: Cyclical Learning Rates (arXiv 1506.01186).
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
                 step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
                 base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9,
                 last_epoch: int = -1):  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(f"[CyclicLR] mode is triangular, triangular2 or exp_range; got {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"[CyclicLR] scale_mode is cycle or iterations; got {scale_mode!r}")
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.max_lrs, low = _each(max_lr, optimizer, "CyclicLR"), _each(base_lr, optimizer, "CyclicLR")
        self.momentum_key = _momentum_key(optimizer, "CyclicLR") if cycle_momentum else None
        self.base_momentums, self.max_momentums = (_each(m, optimizer, "CyclicLR") for m in (base_momentum, max_momentum))
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, low, strict=True):
                group["lr"] = rate
        super().__init__(optimizer, last_epoch)
        self.base_lrs = low

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch; sets the momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle)
        if self.momentum_key:
            low, high = (for_group(self, m, group, "momentum") for m in (self.base_momentums, self.max_momentums))
            _set_momentum(group, self.momentum_key, high - (high - low) * height)
        return base + (for_group(self, self.max_lrs, group, "max_lr") - base) * height

    def _scale(self, cycle: int) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "exp_range":
            return self.gamma**self.last_epoch
        return 0.5 ** (cycle - 1) if self.mode == "triangular2" else 1.0


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to max_lr, then down to that start / final_div_factor, in total_steps steps.

    The rise takes pct_start of the steps; three_phase: the fall goes back to the start at the same pace first, then to
    the end. anneal_strategy: "cos" or "linear". With cycle_momentum the momentum goes the other way, from max_momentum
    to base_momentum and back. total_steps, or epochs and steps_per_epoch. ValueError for a step past the last.
    Smith, Topin: Super-Convergence (arXiv 1708.07120).
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
                 max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False, last_epoch: int = -1):  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("[OneCycleLR] give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0 <= pct_start <= 1:
            raise ValueError(f"[OneCycleLR] needs steps, and pct_start in [0, 1]; got {total_steps} and {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"[OneCycleLR] anneal_strategy is cos or linear; got {anneal_strategy!r}")
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        rise = float(pct_start * total_steps) - 1
        self.phases: list[list] = [[rise, "initial_lr", "max_lr", "max_momentum", "base_momentum"]]
        if three_phase:
            self.phases.append([2 * rise, "max_lr", "initial_lr", "base_momentum", "max_momentum"])
            self.phases.append([total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"])
        else:
            self.phases.append([total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"])
        self.momentum_key = _momentum_key(optimizer, "OneCycleLR") if cycle_momentum else None
        if last_epoch == -1:
            columns = (_each(v, optimizer, "OneCycleLR") for v in (max_lr, base_momentum, max_momentum))
            for group, top, low, high in zip(optimizer.param_groups, *columns, strict=True):
                start = top / div_factor
                group.update({"initial_lr": start, "max_lr": top, "min_lr": start / final_div_factor})
                if cycle_momentum:
                    group.update({"base_momentum": low, "max_momentum": high})
        super().__init__(optimizer, last_epoch)

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch; sets the momentum."""
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(f"[OneCycleLR] step {now} of {self.total_steps}: the cycle is over")
        if "max_lr" not in group:
            raise ValueError("[OneCycleLR] there is no max_lr for a group that was added: make a new schedule")
        i = next(i for i, phase in enumerate(self.phases) if now <= phase[0] or i + 1 == len(self.phases))
        end, first, last, heavy, light = self.phases[i]
        begin = self.phases[i - 1][0] if i else 0.0
        part = (now - begin) / (end - begin) if end != begin else 1.0
        if self.momentum_key:
            _set_momentum(group, self.momentum_key, self._between(group[heavy], group[light], part))
        return self._between(group[first], group[last], part)

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2 * (math.cos(math.pi * part) + 1)


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to eta_min along half a cosine in T_max epochs, then back up.

    lr = eta_min + (initial - eta_min) * (1 + cos(pi * epoch / T_max)) / 2
    Loshchilov, Hutter: SGDR (arXiv 1608.03983), without its restarts.
    """

    present = True

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

class CosineAnnealingWarmRestarts(LRScheduler):
    """From the initial rate to eta_min along half a cosine in T_0 epochs, again in T_0 * T_mult, and so on.

    step(epoch) with a fraction goes there: epoch + batch / batches. Loshchilov, Hutter: SGDR (arXiv 1608.03983).
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if value < 1 or not isinstance(value, int):
                raise ValueError(f"[CosineAnnealingWarmRestarts] {name} must be a positive integer; got {value}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i, self.T_cur = T_0, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction."""
        if epoch is None:
            super().step()
            return
        if epoch < 0:
            raise ValueError(f"[CosineAnnealingWarmRestarts] epoch must not be negative; got {epoch}")
        self.T_i, self.T_cur = self.T_0, epoch - 1
        self.last_epoch = math.floor(epoch) - 1
        self._advance()

    def restart(self) -> None:
        """Go to epoch 0."""
        self.step(0)

    def _advance(self) -> None:
        self.T_cur += 1
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        super()._advance()

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.T_cur of self.T_i."""
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
