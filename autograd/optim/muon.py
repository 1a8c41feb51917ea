"""Muon: momentum made orthogonal, for the matrices of hidden layers."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from .optimizer import Optimizer, new_state, require, state_dtype

_ADJUST = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """p = p * (1 - lr * weight_decay) - lr * s * O(d), for parameters of two dimensions, with

        b = momentum * b + (1 - momentum) * g      d = momentum * b + (1 - momentum) * g with nesterov, else b
        O: the nearest orthogonal matrix, by ns_steps of X = a X + (b A + c A A) X, A = X X^T, from X = d / norm(d)
        s = sqrt(max(1, rows / columns)), or with adjust_lr_fn="match_rms_adamw" 0.2 * sqrt(max(rows, columns))

    (a, b, c) = ns_coefficients. PyTorch iterates in bfloat16, this in float32: it differs by bfloat16's rounding.
    Jordan et al.: Muon (2024); Liu et al.: Muon is Scalable (arXiv 2502.16982).
    """

    def __init__(self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
                 adjust_lr_fn: str | None = None):  # fmt: skip
        options: dict = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov}
        options |= {"ns_coefficients": tuple(ns_coefficients), "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, options)

    def check(self, group: dict) -> None:
        """Raise for options out of range, and for parameters that are no matrices."""
        super().check(group)
        require(self, group, "momentum", 0)
        if group["adjust_lr_fn"] not in _ADJUST:
            raise ValueError(f"[Muon] adjust_lr_fn is one of {_ADJUST}; got {group['adjust_lr_fn']!r}")
        if len(group["ns_coefficients"]) != 3 or not 0 < group["ns_steps"] < 100:
            raise ValueError("[Muon] ns_coefficients are three numbers, ns_steps below 100")
        for p in group["params"]:
            if p.ndim != 2:
                raise ValueError(f"[Muon] parameters have two dimensions; got {p.shape}. Give the others to AdamW")

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change one parameter, given its gradient."""
        if not state:
            state["momentum_buffer"] = new_state(p)
        wide, keep, lr = state_dtype(p), group["momentum"], group["lr"]
        b = state["momentum_buffer"]
        g = g.to(wide) * (1 - keep)
        b.mul_(keep).add_(g)
        d = b * keep + g if group["nesterov"] else b
        rows, columns = p.shape
        ratio = math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        step = orthogonal(d, group["ns_coefficients"], group["ns_steps"], group["eps"]) * (lr * ratio)
        p.copy_((p.detach().to(wide) * (1 - lr * group["weight_decay"]) - step).to(p.dtype))


def orthogonal(d: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """d with its singular values brought near 1, by Newton-Schulz iterations."""
    a, b, c = coefficients
    tall = d.shape[0] > d.shape[1]
    x = d.T if tall else d
    x = x / (x * x).sum().sqrt().maximum(eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x * a + (gram * b + gram @ gram * c) @ x
    return x.T if tall else x
