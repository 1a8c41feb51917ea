"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from ..webgpu import launch
from .optimizer import Optimizer, host_updates, new_state, on_host, require

_launch = launch.Sgd()


class SGD(Optimizer):
    """p = p - lr * d, with g' = g + weight_decay * p and

        d = g' without momentum; else b = momentum * b + (1 - dampening) * g' (b = g' at first), d = b,
        or with nesterov d = g' + momentum * b.

    maximize goes up the gradient. ValueError for nesterov without momentum or with dampening.
    """

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, *, maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, {**options, "maximize": maximize}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        require(self, group, "momentum", 0)
        if group["nesterov"] and (not group["momentum"] or group["dampening"]):
            raise ValueError("[SGD] nesterov needs momentum, and no dampening")

    def update_group(self, ready: list[tuple[Tensor, Tensor, dict]], group: dict) -> None:
        """On the CPU small parameters together, on the GPU several parameters a dispatch."""
        options = {k: group[k] for k in ("lr", "momentum", "dampening", "weight_decay", "nesterov")}
        on_cpu: dict[bool, list] = {}
        on_gpu: dict[bool, list] = {}
        for p, g, state in ready:
            buffer, first = state.get("momentum_buffer"), False
            if not group["momentum"]:
                buffer = None
            elif buffer is None:
                buffer, first = new_state(p), True
                state["momentum_buffer"] = buffer
            if on_host(p):
                on_cpu.setdefault(first, []).append((p, g) if buffer is None else (p, g, buffer))
            else:
                on_gpu.setdefault(first, []).append((p.array, g.array) if buffer is None else (p.array, g.array, buffer.array))
                p.version[0] += 1
        for first, rows in on_cpu.items():
            host_updates(_host(first, **options), rows)
        for first, sets in on_gpu.items():
            _launch.together(sets, first=first, **options)


def _host(first: bool, *, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool) -> Callable:
    """The step on NumPy arrays, as host_updates calls it."""

    def change(p: np.ndarray, g: np.ndarray, *rest: np.ndarray) -> None:
        scratch = rest[-1]
        if weight_decay:
            np.multiply(p, weight_decay, out=scratch)
            scratch += g
            g = scratch
        if len(rest) == 1:
            np.multiply(g, lr, out=scratch)
            p -= scratch
            return
        b = rest[0]
        if first:
            b[...] = g
        elif dampening:
            b *= momentum
            b += g * (1 - dampening)
        else:
            b *= momentum
            b += g
        if nesterov:
            np.add(g, b * momentum, out=scratch)
            scratch *= lr
        else:
            np.multiply(b, lr, out=scratch)
        p -= scratch

    return change
