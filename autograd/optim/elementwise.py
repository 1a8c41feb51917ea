"""Elementwise: the base of optimizers whose update treats every element alike, written once for both devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ..aliasing import write
from ..ops import select
from ..tensor import Tensor, rewrap
from .optimizer import Optimizer, host_updates, on_host, require, state_dtype


class Elementwise(Optimizer):
    """Base of elementwise optimizers. A subclass writes slots(), numbers() and formula().

    On the CPU formula() runs in place on blocks of the arrays, small parameters joined; on the GPU on Tensors, whose
    elementwise operations become one kernel a parameter.
    """

    formula: Callable

    def slots(self, group: dict) -> dict[str, float]:
        """The names of the tensors kept beside a parameter, with their values at the start."""
        raise NotImplementedError(f"[{type(self).__name__}] has no slots()")

    def numbers(self, group: dict, state: dict) -> dict[str, Any]:
        """What formula() needs besides the tensors, at step state["step"]."""
        raise NotImplementedError(f"[{type(self).__name__}] has no numbers()")

    def start(self, group: dict) -> dict[str, Any]:
        """The plain numbers kept beside a parameter, at the start."""
        return {"step": 0}

    def update_group(self, ready: list[tuple[Tensor, Tensor, dict]], group: dict) -> None:
        """Change the parameters of a group."""
        slots = self.slots(group)
        together: dict[tuple, list] = {}
        for p, g, state in ready:
            if not state:
                state.update(self.start(group))
            for name, value in slots.items():
                if name not in state:
                    state[name] = p.detach().full_like(value, dtype=state_dtype(p))
            state["step"] += 1
            numbers = self.numbers(group, state)
            row = (p, g, *(state[name] for name in slots))
            if on_host(p):
                together.setdefault(tuple(numbers.items()), []).append(row)
            else:
                _on_device(self.formula, numbers, *row)
        for items, rows in together.items():
            host_updates(self._bound(dict(items)), rows)

    def _bound(self, numbers: dict) -> Callable:
        """formula() with its numbers, as host_updates calls it: with a scratch array at the end, which it leaves alone."""
        formula = self.formula
        return lambda *arrays: formula(*arrays[:-1], **numbers)


def _on_device(formula: Callable, numbers: dict, p: Tensor, g: Tensor, *state: Tensor) -> None:
    wide = state_dtype(p)
    if p.dtype is wide:
        formula(p, g.to(wide), *state, **numbers)
        return
    target = p.detach().to(wide)
    formula(target, g.to(wide), *state, **numbers)
    write(p, rewrap(target.array, target.version).to(p.dtype).array, "step")


def check_betas(optimizer: Optimizer, group: dict) -> None:
    """Raise unless "betas" are two numbers in [0, 1) and "eps" is not negative."""
    require(optimizer, group, "eps", 0)
    require(optimizer, group, "betas", 0, 1)
    if len(group["betas"]) != 2:
        raise ValueError(f"[{type(optimizer).__name__}] betas are two numbers; got {group['betas']}")


def single(number: float) -> float:
    """A number as PyTorch keeps those of its optimizers' states: rounded to float32."""
    return float(np.float32(number))


# -- what formulas are written in: each takes an array or a Tensor -----------------------------------------


def sqrt(x: Any) -> Any:
    """The square root."""
    return np.sqrt(x) if x.__class__ is ndarray else x.sqrt()


def maximum(a: Any, b: Any) -> Any:
    """The larger of two."""
    return np.maximum(a, b) if a.__class__ is ndarray else a.maximum(b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where condition, else b; at least one of them is no number."""
    if condition.__class__ is not ndarray:
        return select.where(condition, a, b)
    kind = a.dtype if a.__class__ is ndarray else b.dtype
    return np.where(condition, np.asarray(a, kind), np.asarray(b, kind))


def put(x: Any, value: Any, fresh: bool = True) -> None:
    """x = value, in place. fresh: value is used nowhere else, so that on the GPU its memory may become x's."""
    if x.__class__ is ndarray:
        x[...] = value
    else:
        write(x, value.array, "step", fresh)


def decayed(p: Any, g: Any, weight_decay: float) -> Any:
    """g + weight_decay * p, in new memory, or g itself."""
    return g + p * weight_decay if weight_decay else g


def average(mean: Any, x: Any, beta: float) -> Any:
    """mean = beta * mean + (1 - beta) * x, in place."""
    mean *= beta
    mean += x * (1 - beta)
    return mean
