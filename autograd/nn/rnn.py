"""The gated recurrent unit as modules: PyTorch's formula, weight names and shapes."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import create
from ..ops.rnn import gru, gru_cell
from ..ops.views import cat, stack
from ..tensor import Tensor
from . import functional as F
from . import init
from .layers import new_parameter
from .module import Module


def _uniform(module: Module, hidden_size: int) -> None:
    """All parameters uniform on ±1 / sqrt(hidden_size)."""
    bound = 1 / math.sqrt(hidden_size)
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


def _sizes(op: str, input_size: int, hidden_size: int) -> None:
    if input_size < 1 or hidden_size < 1:
        raise ValueError(f"[{op}] sizes must be positive; got input_size={input_size}, hidden_size={hidden_size}")


def _weights(module: Module, suffix: str, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: Any) -> None:
    """Enter weight_ih [3H, I], weight_hh [3H, H] and bias_ih, bias_hh [3H], gates in the order r, z, n."""
    rows = 3 * hidden_size
    for name, *shape in ("weight_ih", rows, input_size), ("weight_hh", rows, hidden_size), ("bias_ih", rows), ("bias_hh", rows):
        made = new_parameter(*shape, device=device, dtype=dtype) if bias or len(shape) == 2 else None
        module.register_parameter(name + suffix, made)


class GRU(Module):
    """Layers of gated recurrent units over a sequence.

        r = sigmoid(W_r x + b_r + R_r h + c_r)        z = sigmoid(W_z x + b_z + R_z h + c_z)
        n = tanh(W_n x + b_n + r * (R_n h + c_n))     h' = (1 - z) * n + z * h

    gru(x, h0=zeros) -> (y, hn), with D = 2 when bidirectional, else 1: x [T, B, I] (batch_first: [B, T, I]; or
    unbatched [T, I]), h0 and hn [layers * D, B, H], y [T, B, D * H], laid out as x is. Layer k reads layer k-1's y,
    in training with dropout between them. ValueError for other shapes.

    Parameters weight_ih_l0 [3H, I], weight_hh_l0 [3H, H], bias_ih_l0, bias_hh_l0 [3H], then those of _l0_reverse, _l1, …
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        _sizes("GRU", input_size, hidden_size)
        F.check_probability(dropout, "GRU")
        if num_layers < 1:
            raise ValueError(f"[GRU] num_layers must be positive; got {num_layers}")
        if dropout and num_layers == 1:
            warnings.warn("[GRU] dropout acts between layers: with num_layers=1 it does nothing", stacklevel=2)
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self._suffixes = [f"_l{k}{way}" for k in range(num_layers) for way in ("", "_reverse")[: 1 + bidirectional]]
        for i, suffix in enumerate(self._suffixes):
            size = input_size if i <= bidirectional else hidden_size * (1 + bidirectional)
            _weights(self, suffix, size, hidden_size, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew, all uniform on ±1 / sqrt(hidden_size)."""
        _uniform(self, self.hidden_size)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(y, hn); see the class."""
        batched = self._check_input(input)
        time_first = not batched or not self.batch_first
        x = input if time_first else input.transpose(0, 1)
        if not batched:
            x = x.unsqueeze(1)
            hx = hx.unsqueeze(1) if hx is not None and hx.ndim == 2 else hx
        y, hn = self._run(x, self._states(hx, x))
        if not batched:
            return y.squeeze(1), hn.squeeze(1)
        return (y if time_first else y.transpose(0, 1)), hn

    def _check_input(self, x: Tensor) -> bool:
        """Whether x has a batch dimension; ValueError for a shape that is none of the three."""
        layout = "[B, T, I]" if self.batch_first else "[T, B, I]"
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(f"[GRU] the input must be {layout} or [T, I] with I = {self.input_size}; got {x.shape}")
        return x.ndim == 3

    def _states(self, hx: Tensor | None, x: Tensor) -> list[Tensor]:
        """The first state of every layer and direction, each [B, H]."""
        count, batch = len(self._suffixes), x.shape[1]
        if hx is None:
            zeros = create.zeros(batch, self.hidden_size, dtype=x.dtype, device=x.device)
            return [zeros] * count
        wanted = (count, batch, self.hidden_size)
        if hx.shape != wanted:
            raise ValueError(f"[GRU] h0 must be [layers * directions, B, H] = {wanted} for this input; got {hx.shape}")
        return [hx.squeeze(0)] if count == 1 else list(hx.unbind(0))

    def _run(self, x: Tensor, states: list[Tensor]) -> tuple[Tensor, Tensor]:
        """All layers over x [T, B, I]: (y [T, B, D * H], hn [layers * D, B, H])."""
        directions, last = 1 + self.bidirectional, []
        for k in range(self.num_layers):
            if k and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for i in range(k * directions, (k + 1) * directions):
                w_ih, w_hh, b_ih, b_hh = self._layer(self._suffixes[i])
                y, hn = gru(x, states[i], w_ih, w_hh, b_ih, b_hh, reverse=i % directions == 1)
                outputs.append(y)
                last.append(hn)
            x = outputs[0] if directions == 1 else cat(outputs, -1)
        return x, last[0].unsqueeze(0) if len(last) == 1 else stack(last)

    def _layer(self, suffix: str) -> list:
        return [getattr(self, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        options = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        changed = [f", {name}={getattr(self, name)}" for name, usual in options.items() if getattr(self, name) != usual]
        return f"{self.input_size}, {self.hidden_size}" + "".join(changed)


class GRUCell(Module):
    """One step of a GRU (see there): cell(x, h=zeros) -> h', x [B, I] or [I], h and h' [B, H] or [H].

    Parameters weight_ih [3H, I], weight_hh [3H, H], bias_ih, bias_hh [3H]. ValueError for other shapes.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        _sizes("GRUCell", input_size, hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        _weights(self, "", input_size, hidden_size, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew, all uniform on ±1 / sqrt(hidden_size)."""
        _uniform(self, self.hidden_size)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """h'; see the class."""
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ValueError(f"[GRUCell] the input must be [B, I] or [I] with I = {self.input_size}; got {input.shape}")
        wanted = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            hx = create.zeros(*wanted, dtype=input.dtype, device=input.device)
        if hx.shape != wanted:
            raise ValueError(f"[GRUCell] h must have shape {wanted} for this input; got {hx.shape}")
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if input.ndim == 1:
            return gru_cell(input.unsqueeze(0), hx.unsqueeze(0), *weights).squeeze(0)
        return gru_cell(input, hx, *weights)

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
