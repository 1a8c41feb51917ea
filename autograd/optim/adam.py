"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..tensor import Tensor
from ..webgpu import launch
from .optimizer import Optimizer, device_update, host_update, new_state, on_host, require

_launch = launch.Adam()


class Adam(Optimizer):
    """p = p - lr * m' / (sqrt(v') + eps), with g' = g + weight_decay * p,

        m = beta1 * m + (1 - beta1) * g'       m' = m / (1 - beta1^t)
        v = beta2 * v + (1 - beta2) * g'^2     v' = v / (1 - beta2^t)

    amsgrad uses the largest v so far; maximize goes up the gradient.
    """

    decoupled = False  # whether weight decay acts on p itself instead of on g

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False):  # fmt: skip
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, {**options, "maximize": maximize})

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        require(self, group, "eps", 0)
        require(self, group, "betas", 0, 1)
        if len(group["betas"]) != 2:
            raise ValueError(f"[{type(self).__name__}] betas are two numbers; got {group['betas']}")

    def update_group(self, ready: list[tuple[Tensor, Tensor, dict]], group: dict) -> None:
        """On the GPU two parameters a dispatch; else one after the other."""
        together: dict[int, list] = {}
        for p, g, state in ready:
            if on_host(p) or group["amsgrad"] or p.dtype is not dtypes.float32:
                self.update(p, g, state, group)
            else:
                m, v = self._moments(p, state, group)
                together.setdefault(state["step"], []).append((p.data, g.data, m.data, v.data))
                p.version[0] += 1
        for t, sets in together.items():
            _launch.together(sets, **self._numbers(t, group))

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change one parameter, given its gradient."""
        moments = self._moments(p, state, group)
        options = self._numbers(state["step"], group)
        if on_host(p):
            _host(p, g, moments, **options)
        elif group["amsgrad"]:
            _composite(p, g, *moments, **options)
        else:
            device_update(_launch, p, g, *moments, **options)

    def _moments(self, p: Tensor, state: dict, group: dict) -> list[Tensor]:
        """p's state, made at its first step, one step on."""
        names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        if not state:
            state.update({"step": 0, **{name: new_state(p) for name in names}})
        state["step"] += 1
        return [state[name] for name in names]

    def _numbers(self, t: int, group: dict) -> dict:
        """What the formula needs at step t."""
        beta1, beta2 = group["betas"]
        return {"lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "weight_decay": group["weight_decay"],
                "decoupled": self.decoupled, "bias1": 1 - beta1**t, "bias2": 1 - beta2**t}  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled weight decay: p = p * (1 - lr * weight_decay) before the step, g' = g."""

    decoupled = True

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


def _host(p: Tensor, g: Tensor, moments: list, *, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
          decoupled: bool, bias1: float, bias2: float) -> None:  # fmt: skip
    def change(p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, *rest: np.ndarray) -> None:
        scratch = rest[-1]
        if weight_decay and decoupled:
            p *= 1 - lr * weight_decay
        elif weight_decay:
            g = g + p * weight_decay
        np.multiply(g, 1 - beta1, out=scratch)
        m *= beta1
        m += scratch
        np.multiply(g, g, out=scratch)
        scratch *= 1 - beta2
        v *= beta2
        v += scratch
        if len(rest) > 1:
            v = np.maximum(rest[0], v, out=rest[0])
        np.sqrt(v, out=scratch)
        scratch *= 1 / math.sqrt(bias2)
        scratch += eps
        np.divide(m, scratch, out=scratch)
        scratch *= lr / bias1
        p -= scratch

    host_update(change, p, g, *moments)


def _composite(p: Tensor, g: Tensor, m: Tensor, v: Tensor, top: Tensor, *, lr: float, beta1: float, beta2: float, eps: float,
               weight_decay: float, decoupled: bool, bias1: float, bias2: float) -> None:  # fmt: skip
    """The same in Tensor operations: amsgrad on the GPU, which has no kernel."""
    g = g.to(m.dtype)
    if weight_decay and decoupled:
        p.mul_(1 - lr * weight_decay)
    elif weight_decay:
        g = g + p * weight_decay
    m.mul_(beta1).add_(g * (1 - beta1))
    v.mul_(beta2).add_(g * g * (1 - beta2))
    top.copy_(top.maximum(v))
    p.sub_((m / (top.sqrt() * (1 / math.sqrt(bias2)) + eps) * (lr / bias1)).to(p.dtype))
