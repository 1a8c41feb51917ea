"""Recurrent layers step by step in Tensor operations: differentiable any number of times, with any activation.

The twin of the fused ops in rnn.py: tests compare the two, create_graph=True differentiates this one, and gate or cell
activations for which there is no fused formula run here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ..create import from_numpy
from ..tensor import Tensor
from .matmul import linear
from .select import where
from .views import stack

GATES = {"gru": 3, "gru_before": 3, "lstm": 4, "rnn": 1}


def _clipped(slope: float) -> Callable:
    return lambda x: (x * slope + 0.5).clamp(0.0, 1.0)


ACTIVATIONS: dict[str, Callable] = {
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "relu": lambda x: x.relu(),
    "linear": lambda x: x,
    "hard_sigmoid": _clipped(0.2),  # Keras 2: clip(0.2 x + 0.5, 0, 1)
    "hardsigmoid": _clipped(1 / 6),  # PyTorch and ggml: clip(x / 6 + 0.5, 0, 1)
    "hardswish": lambda x: x * (x * (1 / 6) + 0.5).clamp(0.0, 1.0),
    "silu": lambda x: x * x.sigmoid(),
    "softplus": lambda x: x.softplus(),
    "softsign": lambda x: x / (1 + x.abs()),
    "exponential": lambda x: x.exp(),
    "softmax": lambda x: x.softmax(-1),
    "gelu": lambda x: 0.5 * x * (1 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh()),  # ggml's, with tanh
}


def activation(name: str | Callable, op: str) -> Callable:
    """The function of a name, or the function itself. ValueError for an unknown name."""
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise ValueError(f"[{op}] unknown activation {name!r}; there are {', '.join(ACTIVATIONS)}, or pass a function")
    return ACTIVATIONS[name]


def check_floats(op: str, **named: Any) -> None:
    """TypeError for what is no Tensor of a floating dtype; None is left out."""
    for name, t in named.items():
        if t is not None and not (isinstance(t, Tensor) and t.is_floating_point()):
            got = t.dtype if isinstance(t, Tensor) else type(t).__name__
            raise TypeError(f"[{op}] {name} must be a Tensor of a floating dtype; got {got}")


def check_whole(op: str, name: str, value: Any) -> None:
    """TypeError for what is no whole number; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"[{op}] {name} is a whole number; got {value!r}")


def on_device(values: ndarray, like: Tensor) -> Tensor:
    """Constants where `like` is."""
    return from_numpy(np.ascontiguousarray(values)).to(like.device)


def step(cell: str, g: Tensor, h: Tensor, c: Tensor | None, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None,
         act: Callable, gate: Callable) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """(h', c') from the input products g [B, G H] of one step; formulas in rnn.py."""
    units = g.shape[-1] // GATES[cell]
    if cell == "gru_before":
        both = gate(g[:, : 2 * units] + linear(h, w_hh[: 2 * units], None if b_hh is None else b_hh[: 2 * units]))
        r, z = both.chunk(2, -1)
        n = act(g[:, 2 * units :] + linear(r * h, w_hh[2 * units :], None if b_hh is None else b_hh[2 * units :]))
        return n + z * (h - n), None
    u = linear(h, w_hh, b_hh)
    if cell == "rnn":
        return act(g + u), None
    if cell == "gru":
        (gr, gz, gn), (ur, uz, un) = g.chunk(3, -1), u.chunk(3, -1)
        r, z = gate(gr + ur), gate(gz + uz)
        n = act(gn + r * un)
        return n + z * (h - n), None
    i, f, n, o = (g + u).chunk(4, -1)
    c = gate(f) * c + gate(i) * act(n)
    h = gate(o) * act(c)
    return (h if w_hr is None else linear(h, w_hr)), c


def composite(cell: str, x: Tensor, h0: Tensor, w_ih: Tensor | None, w_hh: Tensor, b_ih: Tensor | None,
              b_hh: Tensor | None, c0: Tensor | None, w_hr: Tensor | None, *, mask: ndarray | None = None,
              reverse: bool = False, act: Callable = ACTIVATIONS["tanh"],
              gate: Callable = ACTIVATIONS["sigmoid"]) -> tuple:  # fmt: skip
    """(y [T, B, P], hn, cn or None): what `layer` in rnn.py computes, with at least one step."""
    count = GATES[cell]
    if w_ih is None:
        x = x.repeat(1, 1, count) if count > 1 else x
        g = x if b_ih is None else x + b_ih
    else:
        g = linear(x, w_ih, b_ih)
    h, c, states = h0, c0, [h0] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        h_new, c_new = step(cell, g[t], h, c, w_hh, b_hh, w_hr, act, gate)
        if mask is not None and not mask[t].all():
            live = on_device(mask[t][:, None], x)
            h_new = where(live, h_new, h)
            c_new = None if c_new is None else where(live, c_new, c)
        h, c = h_new, c_new
        states[t] = h
    return stack(states), h, c
