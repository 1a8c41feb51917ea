"""Adafactor: Adam's second moment kept as a row and a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..tensor import Tensor
from .optimizer import Optimizer, require, state_dtype

_EPS = {dtypes.float64: 2.0**-52, dtypes.float32: 2.0**-23, dtypes.float16: 2.0**-10, dtypes.bfloat16: 2.0**-7}


class Adafactor(Optimizer):
    """p = p - a * u / max(1, rms(u) / d), after p = p * (1 - lr * weight_decay), with

        a = max(eps2, rms(p)) * min(lr, 1 / sqrt(t))      b = t^beta2_decay      u = g / sqrt(max(v, eps1^2))
        R = R + b * (mean of g^2 along the last dimension - R)      C likewise along the last but one
        v = R C / max(mean of R along the last but one, eps1); for vectors v = v + b * (g^2 - v)

    eps = (eps1, eps2); eps1 None: the dtype's. Nothing is read back from a GPU.
    Shazeer, Stern: Adafactor (arXiv 1804.04235), in the form PyTorch gives it.
    """

    def __init__(self, params: Any, lr: float = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
                 d: float = 1.0, weight_decay: float = 0.0, *, maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": tuple(eps), "d": d, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        require(self, group, "d", 1)
        if group["beta2_decay"] > 0:
            raise ValueError(f"[Adafactor] beta2_decay must not be positive; got {group['beta2_decay']}")
        if len(group["eps"]) != 2 or any(e is not None and e < 0 for e in group["eps"]) or group["eps"][1] is None:
            raise ValueError(f"[Adafactor] eps are two numbers from 0 on, the first may be None; got {group['eps']}")

    def slot_shape(self, p: Tensor, key: str) -> tuple:
        """The shape of the tensor that is kept for p under this name."""
        if key == "row_var":
            return (*p.shape[:-1], 1)
        return (*p.shape[:-2], 1, p.shape[-1]) if key == "col_var" else p.shape

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change one parameter, given its gradient."""
        wide = state_dtype(p)
        names = ("row_var", "col_var") if p.ndim > 1 else ("variance",)
        if not state:
            state["step"] = 0
            state.update({name: p.detach().new_zeros(self.slot_shape(p, name), dtype=wide) for name in names})
        state["step"] += 1
        t, lr, (eps1, eps2) = state["step"], group["lr"], group["eps"]
        eps1 = _EPS[p.dtype] if eps1 is None else eps1
        g, value = g.to(wide), p.detach().to(wide)
        size = _rms(value).maximum(eps2) * min(lr, t**-0.5)
        if group["weight_decay"]:
            value = value * (1 - lr * group["weight_decay"])
        u = g / _variance(g * g, state, t ** group["beta2_decay"], eps1).maximum(eps1 * eps1).sqrt()
        step = u * (size / (_rms(u) / group["d"]).maximum(1.0))
        p.copy_((value - step).to(p.dtype))


def _variance(squares: Tensor, state: dict, weight: float, eps: float) -> Tensor:
    """The running estimate of the squares, brought up to date."""
    if "variance" in state:
        v = state["variance"]
        v.add_((squares - v) * weight)
        return v
    row, column = state["row_var"], state["col_var"]
    row.add_((squares.mean(-1, keepdim=True) - row) * weight)
    column.add_((squares.mean(-2, keepdim=True) - column) * weight)
    return row * column / row.mean(-2, keepdim=True).maximum(eps)


def _rms(x: Tensor) -> Tensor:
    """The root of the mean of the squares, a 0-d tensor; 0 for no elements."""
    return (x * x).sum().sqrt() * (1 / np.sqrt(max(x.numel(), 1)))
