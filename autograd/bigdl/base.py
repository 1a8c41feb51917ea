"""What a BigDL module has besides computing: a name, a mode, times, prediction, copies."""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Self

from .. import nn
from ..grad_mode import no_grad
from ..ops.views import cat, stack
from ..tensor import Tensor


class Training(int):
    """The training flag that can be called: m.training() is m.train()."""

    module: Base

    def __call__(self) -> Base:
        """Set training mode; returns the module."""
        self.module.train()
        return self.module

    def __repr__(self) -> str:
        return repr(bool(self))


class Base(nn.Module):
    """The part of bigdl.Module that needs no gradients."""

    def __init__(self, kind: str):
        super().__init__()
        self._times = [0, 0]
        self._name = f"{kind}{uuid.uuid4().hex[:8]}"

    def predict(self, data: Tensor | Iterable[Tensor], batch_size: int = 32) -> Tensor:
        """The outputs [N, …] in evaluation mode, batch by batch, without recording; the mode is put back.

        data: a Tensor [N, …], or samples of one shape. ValueError for none; TypeError for an output that is a table.
        """
        if batch_size < 1:
            raise ValueError(f"[predict] batch_size must be positive; got {batch_size}")
        modes = [(m, bool(m.training)) for m in self.modules()]
        self.eval()
        try:
            with no_grad():
                found = [self(batch) for batch in _batches(data, batch_size)]
        finally:
            for module, mode in modes:
                module.training = mode
        if not found:
            raise ValueError("[predict] got no samples")
        if not isinstance(found[0], Tensor):
            raise TypeError(f"[predict] the output must be a Tensor; got {type(found[0]).__name__}")
        return cat(found)

    def predict_class(self, data: Tensor | Iterable[Tensor], batch_size: int = 32) -> Tensor:
        """The place of each sample's largest output, counted from 1: int64 [N]. ValueError unless outputs are [N, C]."""
        found = self.predict(data, batch_size)
        if found.ndim != 2:
            raise ValueError(f"[predict_class] a sample's output must have one dimension; got {found.shape[1:]}")
        return found.argmax(-1) + 1

    def set_name(self, name: str) -> Self:
        """Name the module, for get_parameters_table(). Returns self."""
        self._name = name
        return self

    def get_name(self) -> str:
        """The name: the class's with eight random digits, unless it was set."""
        return self._name

    @property  # type: ignore[override]
    def training(self) -> Training:
        """Whether Dropout, BatchNorm and the like train. Called, m.training(), it sets training mode."""
        flag = Training(self.__dict__["_training"])
        flag.module = self
        return flag

    @training.setter
    def training(self, mode: bool) -> None:
        self.__dict__["_training"] = bool(mode)

    def train(self, mode: bool = True) -> Self:
        """Set training mode, at any depth."""
        super().train(bool(mode) if isinstance(mode, Training) else mode)
        return self

    def evaluate(self) -> Self:
        """eval(): training mode off, at any depth."""
        return self.train(False)

    def is_training(self) -> bool:
        """The training flag."""
        return self.__dict__["_training"]

    def clone_module(self) -> Self:
        """A deep copy: parameters with their gradients, buffers and name, without the caches."""
        twin = copy.deepcopy(self)
        for (_, p), (_, q) in zip(self.named_parameters(), twin.named_parameters(), strict=True):
            q.grad = None if p.grad is None else p.grad.detach().clone()
        return twin

    def check_engine_type(self) -> Self:
        """Returns self if all parameters and buffers are on one device, else RuntimeError with those that there are."""
        found = {str(t.device) for _, t in [*self.named_parameters(), *self.named_buffers()]}
        if len(found) > 1:
            raise RuntimeError(f"[check_engine_type] a module runs on one device; got tensors on {', '.join(sorted(found))}")
        return self

    def get_times(self) -> list[tuple[Base, int, int]]:
        """(module, forward, backward) in nanoseconds on the host, since reset_times(), of this module and those below.

        A backward counts for the module that it is called on: the tape walks through all that is below at once.
        """
        return [(m, m._times[0], m._times[1]) for m in self.modules() if isinstance(m, Base)]

    def reset_times(self) -> None:
        """Start all times anew."""
        for module in self.modules():
            if isinstance(module, Base):
                module._times = [0, 0]

    def reset(self) -> Self:
        """Draw all parameters anew, as at the start. TypeError for a module that has no reset_parameters()."""
        modules = list(self.modules())
        for module in modules:
            if any(p is not None for p in module._parameters.values()) and not hasattr(module, "reset_parameters"):
                raise TypeError(f"[reset] {type(module).__name__} has parameters and no reset_parameters()")
        for module in modules:
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        return self

    def copy_status(self, src: nn.Module) -> Self:
        """Copy what is state but no parameter (running means and variances) from a module of the same structure.

        ValueError when classes, lengths or shapes differ; nothing is changed then.
        """
        mine, theirs = ([(path, type(m)) for path, m in root.named_modules()] for root in (self, src))
        if mine != theirs:
            differ = next(((a, b) for a, b in zip(mine, theirs) if a != b), (len(mine), len(theirs)))
            raise ValueError(f"[copy_status] the modules must have the same structure; first difference: {differ}")
        pairs = [(name, b, dict(src.named_buffers()).get(name)) for name, b in self.named_buffers()]
        for name, b, other in pairs:
            if other is None or other.shape != b.shape:
                got = None if other is None else other.shape
                raise ValueError(f"[copy_status] {name} must have shape {b.shape}; got {got}")
        with no_grad():
            for _, b, other in pairs:
                b.copy_(other.detach().to(b.device, b.dtype))  # type: ignore[union-attr]
        return self

    def __getattr__(self, name: str) -> Any:
        plain = re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)  # updateOutput -> update_output
        return getattr(self, plain) if plain != name and hasattr(type(self), plain) else super().__getattr__(name)


def _batches(data: Any, size: int) -> Iterator[Tensor]:
    """A Tensor's rows, or samples stacked, `size` at a time."""
    if isinstance(data, Tensor):
        yield from (data[i : i + size] for i in range(0, len(data), size))
        return
    samples = iter(data)
    while some := list(islice(samples, size)):
        for sample in some:
            if not isinstance(sample, Tensor):
                raise TypeError(f"[predict] samples are Tensors; got {type(sample).__name__}")
        yield stack(some)
