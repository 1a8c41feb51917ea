"""BigDL's recurrent cells: what bigdl.Recurrent runs over a sequence. The core is ops/rnn.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import create, nn
from ..nn import functional as F
from ..nn import init
from ..nn.layers import new_parameter
from ..ops.matmul import linear
from ..ops.rnn import check_checkpoint, layer, live_steps
from ..ops.rnn_composite import activation as activation_of
from ..ops.rnn_composite import on_device
from ..ops.select import where
from ..ops.views import cat, stack
from ..tensor import Tensor
from .module import Module
from .regularizer import L1L2Regularizer


class Cell(Module):
    """Base of cells. By itself a cell is one step on a table: (x [B, I], h [B, H]) -> (h', h')."""

    hidden_size: int

    def run(self, x: Tensor, hidden: Tensor, *, reverse: bool = False, mask: np.ndarray | None = None) -> tuple[Tensor, Tensor]:
        """(y [T, B, H], the last hidden state) of x [T, B, I]: what a subclass writes.

        reverse: from the last step to the first. mask [T, B]: where False a row outputs 0 and keeps its state.
        """
        raise NotImplementedError(f"[bigdl.Cell] {type(self).__name__} has no run()")

    def hid_resize(self, hidden: Tensor | None, batch: int, step_shape: tuple | None = None) -> Tensor:
        """A hidden state for a batch: `hidden` itself if it is [batch, H], else zeros [batch, H] of its kind.

        None: zeros of the parameters' dtype and device. step_shape: the shape of one step's input, which must then be
        (input_size,); ValueError for another.
        """
        raise NotImplementedError(f"[bigdl.Cell] {type(self).__name__} has no hid_resize()")

    def compute(self, input: Any) -> tuple[Tensor, Tensor]:
        """One step; see the class."""
        op = type(self).__name__
        if not isinstance(input, tuple | list) or len(input) != 2 or not all(isinstance(t, Tensor) for t in input):
            raise TypeError(f"[{op}] a cell takes the table (x [B, I], h [B, H]). For a sequence: Recurrent().add({op}(…))")
        x, h = input
        if x.ndim != 2:
            raise ValueError(f"[{op}] x must be [B, I]; got {x.shape}. For a sequence: Recurrent().add({op}(…))")
        _, new = self.run(x.unsqueeze(0), h)
        return new, new


def _activation(given: Any, usual: str, kind: type, op: str) -> Any:
    """None and BigDL's usual layer as the name that the fused core knows; other names, functions and layers as they are."""
    if given is None or type(given) is kind:
        return usual
    activation_of(given, op)
    return given


class GRU(Cell):
    """Gated recurrent units, the reset gate on the state (Cho et al. 2014), as BigDL has them:

        r = σ(x W_r^T + b_r + h U_r^T)    z = σ(x W_z^T + b_z + h U_z^T)
        ĥ = tanh(x W_h^T + b_h + (r h) U_h^T)    h' = (1 - z) ĥ + z h

    Recurrent().add(GRU(I, H)): [B, T, I] -> [B, T, H]. Parameters weight [3H, I] and bias [3H] (r, z, h), h2g [2H, H]
    (r, z), u_h [H, H], for every p: the layout "bigdl" of rnn.convert, whose result set_weights() takes. They start
    uniform on ±1 / sqrt(fan-in).

    p: six dropout masks (scale 1 / (1 - p)), of x for r, z and ĥ, of h for r and z, of r h for ĥ, drawn for each sample
    at each forward and the same at all steps (Gal and Ghahramani 2016); the h that z mixes in is never dropped. None in
    evaluation mode. activation, inner_activation: None (tanh, sigmoid), a name, a function or an nn.Module.
    w_regularizer: of weight, b_regularizer: of bias, u_regularizer: of h2g and u_h (BigDL with p ≠ 0 gives h2g the
    w_regularizer). checkpoint=k, which BigDL has not: keep every k-th state only and compute the steps between again in
    backward, with the same gradients; without dropout, and with tanh and sigmoid. ValueError for sizes, p or names out of
    range, and for a checkpoint that does not go.
    """

    def __init__(self, input_size: int, output_size: int, p: float = 0.0, activation: Any = None, inner_activation: Any = None,
                 w_regularizer: L1L2Regularizer | None = None, u_regularizer: L1L2Regularizer | None = None,
                 b_regularizer: L1L2Regularizer | None = None, *, checkpoint: int | None = None, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__()
        if input_size < 1 or output_size < 1:
            raise ValueError(f"[GRU] sizes must be positive; got input_size={input_size}, output_size={output_size}")
        F.check_probability(p, "GRU")
        self.input_size, self.output_size, self.hidden_size, self.p = input_size, output_size, output_size, float(p)
        self.activation = _activation(activation, "tanh", nn.Tanh, "GRU")
        self.inner_activation = _activation(inner_activation, "sigmoid", nn.Sigmoid, "GRU")
        for name, value in (("w", w_regularizer), ("u", u_regularizer), ("b", b_regularizer)):
            if value is not None and not callable(value):
                raise TypeError(f"[GRU] {name}_regularizer is a regularizer or None; got {type(value).__name__}")
        check_checkpoint("GRU", checkpoint)
        if checkpoint is not None and (p or (self.activation, self.inner_activation) != ("tanh", "sigmoid")):
            hint = f"got p={p}, {self.activation!r} and {self.inner_activation!r}"
            raise ValueError(f"[GRU] checkpoint={checkpoint} is for p=0, tanh and sigmoid, the fused path; {hint}")
        self.checkpoint = checkpoint
        self.w_regularizer, self.u_regularizer, self.b_regularizer = w_regularizer, u_regularizer, b_regularizer
        h, place = output_size, {"device": device, "dtype": dtype}
        self.weight, self.bias = new_parameter(3 * h, input_size, **place), new_parameter(3 * h, **place)
        self.h2g, self.u_h = new_parameter(2 * h, h, **place), new_parameter(h, h, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew."""
        for p, fan_in in (self.weight, self.input_size), (self.bias, self.input_size), (self.h2g, 0), (self.u_h, 0):
            bound = 1 / math.sqrt(fan_in or self.hidden_size)
            init.uniform_(p, -bound, bound)

    def hid_resize(self, hidden: Tensor | None, batch: int, step_shape: tuple | None = None) -> Tensor:
        """See Cell."""
        if step_shape is not None and tuple(step_shape) != (self.input_size,):
            raise ValueError(f"[hid_resize] a step's shape is ({self.input_size},) here; got {tuple(step_shape)}")
        wanted, like = (batch, self.hidden_size), self.weight if hidden is None else hidden
        if hidden is not None and hidden.shape == wanted:
            return hidden
        return create.zeros(*wanted, dtype=like.dtype, device=like.device)

    def run(self, x: Tensor, hidden: Tensor, *, reverse: bool = False, mask: np.ndarray | None = None) -> tuple[Tensor, Tensor]:
        """See Cell. The fused core; step by step with dropout."""
        w, b, h2g, u_h = (
            p if regularizer is None else regularizer(p)
            for p, regularizer in (
                (self.weight, self.w_regularizer), (self.bias, self.b_regularizer),
                (self.h2g, self.u_regularizer), (self.u_h, self.u_regularizer),
            )
        )  # fmt: skip
        u = cat([h2g, u_h])
        if self.p and self.is_training() and len(x):
            act, gate = (activation_of(f, "GRU") for f in (self.activation, self.inner_activation))
            return self._dropped(x, hidden, w, b, u, act, gate, reverse, live_steps("GRU", None, mask, *x.shape[:2]))
        options: dict = {"activation": self.activation, "gate_activation": self.inner_activation, "op": "GRU"}
        options |= {"reverse": reverse, "mask": mask, "checkpoint": self.checkpoint}
        return layer("gru_before", x, hidden, w, u, b, **options)[:2]

    def _dropped(self, x: Tensor, h: Tensor, w: Tensor, b: Tensor, u: Tensor, act: Callable, gate: Callable,
                 reverse: bool, live: np.ndarray | None) -> tuple[Tensor, Tensor]:  # fmt: skip
        """run() with six masks, each for all steps."""
        of_x, of_h = (
            [F.dropout(create.ones(x.shape[1], size, dtype=x.dtype, device=x.device), self.p) for _ in range(3)]
            for size in (self.input_size, self.hidden_size)
        )
        products = [linear(x * m, w_g, b_g) for m, w_g, b_g in zip(of_x, w.chunk(3), b.chunk(3), strict=True)]
        u_r, u_z, u_h = u.chunk(3)
        shown = None if live is None else on_device(live[..., None], x)
        states = [h] * len(x)
        for t in reversed(range(len(x))) if reverse else range(len(x)):
            x_r, x_z, x_h = (g[t] for g in products)
            r, z = gate(x_r + linear(h * of_h[0], u_r)), gate(x_z + linear(h * of_h[1], u_z))
            n = act(x_h + linear(r * h * of_h[2], u_h))
            new = n + z * (h - n)
            h = states[t] = new if shown is None else where(shown[t], new, h)
        y = stack(states)
        return (y if shown is None else where(shown, y, 0.0)), h

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        names = ("activation", "inner_activation", "w_regularizer", "u_regularizer", "b_regularizer")
        usual = {"activation": "tanh", "inner_activation": "sigmoid"}
        changed = [f", p={self.p}"] if self.p else []
        changed += [] if self.checkpoint is None else [f", checkpoint={self.checkpoint}"]
        changed += [f", {n}={getattr(self, n)}" for n in names if n not in self._modules and getattr(self, n) != usual.get(n)]
        return f"{self.input_size}, {self.output_size}" + "".join(changed)
