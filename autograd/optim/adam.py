"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from ..webgpu import launch
from .elementwise import check_betas
from .optimizer import Optimizer, host_updates, new_state, on_host

_launch = launch.Adam()


class Adam(Optimizer):
    """p = p - lr * m' / (sqrt(v') + eps), with g' = g + weight_decay * p,

        m = beta1 * m + (1 - beta1) * g'       m' = m / (1 - beta1^t)
        v = beta2 * v + (1 - beta2) * g'^2     v' = v / (1 - beta2^t)

    amsgrad uses the largest v so far; maximize goes up the gradient; decoupled_weight_decay makes it AdamW.
    Kingma, Ba: Adam (arXiv 1412.6980); Loshchilov, Hutter: Decoupled Weight Decay (arXiv 1711.05101).
    """

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
                 decoupled_weight_decay: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, {**options, "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        check_betas(self, group)

    def update_group(self, ready: list[tuple[Tensor, Tensor, dict]], group: dict) -> None:
        """On the CPU small parameters together, on the GPU several parameters a dispatch."""
        on_cpu: dict[int, list] = {}
        on_gpu: dict[int, list] = {}
        for p, g, state in ready:
            moments = self._moments(p, state, group)
            if on_host(p):
                on_cpu.setdefault(state["step"], []).append((p, g, *moments))
            elif group["amsgrad"]:
                _composite(p, g, *moments, **self._numbers(state["step"], group))
            else:
                m, v = moments
                on_gpu.setdefault(state["step"], []).append((p.array, g.array, m.array, v.array))
                p.version[0] += 1
        for t, rows in on_cpu.items():
            host_updates(_host(**self._numbers(t, group)), rows)
        for t, sets in on_gpu.items():
            _launch.together(sets, **self._numbers(t, group))

    def _moments(self, p: Tensor, state: dict, group: dict) -> list[Tensor]:
        """p's state, made at its first step, one step on."""
        names = ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        state.setdefault("step", 0)
        for name in names:
            if name not in state:
                state[name] = new_state(p)
        state["step"] += 1
        return [state[name] for name in names]

    def _numbers(self, t: int, group: dict) -> dict:
        """What the formula needs at step t."""
        beta1, beta2 = group["betas"]
        return {"lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "weight_decay": group["weight_decay"],
                "decoupled": group["decoupled_weight_decay"], "bias1": 1 - beta1**t, "bias2": 1 - beta2**t}  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled weight decay: p = p * (1 - lr * weight_decay) before the step, g' = g."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, **how: Any):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True, **how)


def _host(*, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool, bias1: float,
          bias2: float) -> Callable:  # fmt: skip
    """The step on NumPy arrays, as host_updates calls it."""
    unbias = math.sqrt(bias2)  # sqrt(v / bias2) + eps = (sqrt(v) + eps * unbias) / unbias: one pass less
    numbers = (1 - lr * weight_decay, beta1, 1 - beta1, beta2, 1 - beta2, eps * unbias, lr / bias1 * unbias, weight_decay)
    as_arrays: dict[np.dtype, list] = {}  # by dtype: NumPy takes a microsecond for each conversion

    def change(p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, *rest: np.ndarray) -> None:
        if m.dtype not in as_arrays:
            as_arrays[m.dtype] = [np.asarray(x, m.dtype) for x in numbers]
        shrink, keep_m, gain_m, keep_v, gain_v, small, rate, decay = as_arrays[m.dtype]
        scratch = rest[-1]
        if weight_decay and decoupled:
            p *= shrink
        elif weight_decay:
            g = g + p * decay
        np.multiply(g, gain_m, out=scratch)
        m *= keep_m
        m += scratch
        np.multiply(g, g, out=scratch)
        scratch *= gain_v
        v *= keep_v
        v += scratch
        if len(rest) > 1:
            v = np.maximum(rest[0], v, out=rest[0])
        np.sqrt(v, out=scratch)
        scratch += small
        np.divide(m, scratch, out=scratch)
        scratch *= rate
        p -= scratch

    return change


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
