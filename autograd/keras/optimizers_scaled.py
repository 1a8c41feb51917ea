"""Keras' Adafactor and Lamb, whose steps are in proportion to the size of the parameter. What they share: optimizer_base.py."""

from __future__ import annotations

import math
from typing import Any

from ..ops.select import where
from ..optim.optimizer import state_dtype
from ..tensor import Tensor
from .optimizer_base import Optimizer


class Adafactor(Optimizer):
    """p = p - max(epsilon_2, rms(p)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / clip_threshold) with u = g / sqrt(v),

        b = t^beta_2_decay     s = g^2 + epsilon_1
        R = R + b (mean of s along the last dimension - R)     C likewise along the last but one
        v = R C / (mean of R along the last but one)           of vectors and numbers v = v + b (s - v)

    relative_step changes nothing, as in Keras, where no step is longer than 1 / sqrt(t) either way.
    Shazeer, Stern: Adafactor (arXiv 1804.04235). ValueError for a clip_threshold below 1 and a positive beta_2_decay.
    """

    def __init__(self, learning_rate: Any = 0.001, beta_2_decay: float = -0.8, epsilon_1: float = 1e-30, epsilon_2: float = 1e-3,
                 clip_threshold: float = 1.0, relative_step: bool = True, **common: Any):  # fmt: skip
        if not clip_threshold >= 1 or beta_2_decay > 0:
            raise ValueError("[Adafactor] clip_threshold is a number from 1 on and beta_2_decay is not positive; "
                             f"got {clip_threshold} and {beta_2_decay}")  # fmt: skip
        options = {"beta_2_decay": beta_2_decay, "epsilon_1": epsilon_1, "epsilon_2": epsilon_2}
        options |= {"clip_threshold": clip_threshold, "relative_step": relative_step}
        super().__init__(learning_rate, options, {}, **common)

    def slot_shape(self, p: Tensor, key: str) -> tuple:
        """The shape of the tensor that is kept for p under this name."""
        if key == "row":
            return (*p.shape[:-1], 1)
        return (*p.shape[:-2], 1, p.shape[-1]) if key == "column" else p.shape

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change one parameter, given its gradient."""
        o, t, wide = self.options, self.iterations + 1, state_dtype(p)
        names = ("row", "column") if p.ndim > 1 else ("velocity",)
        if not state:
            state.update({name: p.detach().new_zeros(self.slot_shape(p, name), dtype=wide) for name in names})
        g, value = g.to(wide), p.detach().to(wide)
        squares = g * g + o["epsilon_1"]
        for name, dim in zip(names, (-1, -2) if p.ndim > 1 else (None,), strict=True):
            mean = squares if dim is None else squares.mean(dim, keepdim=True)
            state[name].add_((mean - state[name]) * t ** o["beta_2_decay"])
        v = state["velocity"] if p.ndim < 2 else state["row"] * state["column"] / state["row"].mean(-2, keepdim=True)
        u = g / v.sqrt()
        size = _rms(value).maximum(o["epsilon_2"]) * min(group["lr"], t**-0.5)
        p.copy_((value - u * (size / (_rms(u) / o["clip_threshold"]).maximum(1.0))).to(p.dtype))


class Lamb(Optimizer):
    """p = p - lr |p| / |u| u with u = m' / (sqrt(v') + epsilon), where m' and v' are Adam's averages with their correction.

    |p| is the norm of the whole parameter, after weight_decay. Where |p| or |u| is 0, p = p - lr u.
    You et al.: Large batch optimization (arXiv 1904.00962).
    """

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 **common: Any):  # fmt: skip
        super().__init__(learning_rate, {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}, {}, **common)

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change one parameter, given its gradient."""
        t, wide, names = self.iterations + 1, state_dtype(p), ("momentum", "velocity")
        if not state:
            state.update({name: p.detach().zeros_like(dtype=wide) for name in names})
        g, value = g.to(wide), p.detach().to(wide)
        for name, x, beta in zip(names, (g, g * g), (self.options["beta_1"], self.options["beta_2"]), strict=True):
            state[name].add_((x - state[name]) * (1 - beta))
        bias_1, bias_2 = (1 - self.options[beta] ** t for beta in ("beta_1", "beta_2"))
        u = state["momentum"] / ((state["velocity"].sqrt() / math.sqrt(bias_2) + self.options["epsilon"]) * bias_1)
        of_p, of_u = ((x * x).sum().sqrt() for x in (value, u))
        trust = where((of_p > 0) & (of_u > 0), of_p / of_u, 1.0)
        p.copy_((value - u * (trust * group["lr"])).to(p.dtype))


def _rms(x: Tensor) -> Tensor:
    """The root of the mean of the squares, a 0-d tensor; 0 for no elements."""
    return (x * x).sum().sqrt() * (1 / math.sqrt(max(x.numel(), 1)))
