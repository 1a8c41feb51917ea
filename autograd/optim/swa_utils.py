"""Averages of a model's weights over its training, and the schedule that goes with them. PyTorch's names and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..create import tensor
from ..grad_mode import no_grad
from ..interrupts import held
from ..nn.module import Module
from ..tensor import Tensor
from .optimizer import Optimizer
from .schedule import LRScheduler
from .schedule_cycle import _each


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """avg_fn of the exponential moving average: decay * average + (1 - decay) * value. ValueError outside [0, 1]."""
    _check_decay(decay)

    @no_grad()
    def ema(average: Tensor, value: Tensor, count: Any) -> Tensor:
        return average * decay + value * (1 - decay)

    return ema


def get_swa_avg_fn() -> Callable:
    """avg_fn of the equal average: average + (value - average) / (count + 1)."""

    @no_grad()
    def swa(average: Tensor, value: Tensor, count: Any) -> Tensor:
        return average + (value - average) * (1 / (int(count) + 1))

    return swa


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """multi_avg_fn of the exponential moving average: all tensors in place."""
    return _each_in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable:
    """multi_avg_fn of the equal average: all tensors in place."""
    return _each_in_place(get_swa_avg_fn())


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"[get_ema_avg_fn] decay must be in [0, 1]; got {decay}")


def _each_in_place(function: Callable) -> Callable:
    @no_grad()
    def change(averages: list[Tensor], values: list[Tensor], count: Any) -> None:
        for average, value in zip(averages, values, strict=True):
            if average.is_floating_point():
                average.copy_(function(average, value, count))
            else:
                average.copy_(value)

    return change


class AveragedModel(Module):
    """A copy of a model that holds the average of its weights: call update_parameters(model) after each step or epoch.

    avg_fn(average, value, count) gives the new average of one tensor, multi_avg_fn(averages, values, count) changes
    all in place; count is how many values the average has seen. Default: the equal average.
    use_buffers: buffers are averaged too; else they are copied. Izmailov et al.: Averaging Weights Leads to Wider
    Optima (arXiv 1803.05407). ValueError for both functions.
    """

    n_averaged: Tensor

    def __init__(self, model: Module, device: Any = None, avg_fn: Callable | None = None,
                 multi_avg_fn: Callable | None = None, use_buffers: bool = False):  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("[AveragedModel] give avg_fn or multi_avg_fn, not both")
        self.module = deepcopy(model) if device is None else deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0, device="cpu"))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's present weights into the average. Ctrl-C leaves all averages as before, or as after it."""
        with held, no_grad():
            self._take(model)

    def _take(self, model: Module) -> None:
        mine, theirs = _tensors(self.module, self.use_buffers), _tensors(model, self.use_buffers)
        theirs = [value.detach().to(average.device) for average, value in zip(mine, theirs, strict=True)]
        count = int(self.n_averaged)
        if count == 0:
            for average, value in zip(mine, theirs, strict=True):
                average.copy_(value)
        elif self.avg_fn is None:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(mine, theirs, count)
        else:
            for average, value in zip(mine, theirs, strict=True):
                average.copy_(self.avg_fn(average.detach(), value, count))
        if not self.use_buffers:
            for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
                average.copy_(value.detach().to(average.device))
        self.n_averaged.add_(1)


def _tensors(model: Module, buffers: bool) -> list[Tensor]:
    own = (p for _, p in model.named_parameters())
    return list(chain(own, model.buffers())) if buffers else list(own)


@no_grad()
def update_bn(loader: Iterable, model: Module, device: Any = None) -> None:
    """Compute the running statistics of the model's BatchNorm layers anew, as plain averages over the loader's batches.

    A batch that is a list or tuple: its first element is the input.
    """
    momenta = {m: m.momentum for m in model.modules() if hasattr(m, "running_mean") and hasattr(m, "momentum")}
    if not momenta:
        return
    modes = {m: m.training for m in model.modules()}
    model.train()
    try:
        for layer in momenta:
            layer.reset_running_stats()
            layer.momentum = None
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
    finally:
        for layer, momentum in momenta.items():
            layer.momentum = momentum
        for m, mode in modes.items():  # frozen parts too are as they were
            m.training = mode


class SWALR(LRScheduler):
    """From the rate there is to swa_lr in anneal_epochs, along half a cosine ("cos") or a line ("linear"); then constant.

    It may follow, or act beside, another schedule.
    """

    def __init__(self, optimizer: Optimizer, swa_lr: float, anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1):  # fmt: skip
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"[SWALR] anneal_strategy is cos or linear; got {anneal_strategy!r}")
        if anneal_epochs < 0 or not isinstance(anneal_epochs, int):
            raise ValueError(f"[SWALR] anneal_epochs is an integer from 0 on; got {anneal_epochs}")
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        for group, rate in zip(optimizer.param_groups, _each(swa_lr, optimizer, "SWALR"), strict=True):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """How much of the rate is swa_lr's at an epoch."""
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def rate(self, group: dict, base: float) -> float:
        """The rate at self.last_epoch."""
        now = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        goal, before, share = group["swa_lr"], self._share(now - 1), self._share(now)
        start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
        return goal * share + start * (1 - share)
