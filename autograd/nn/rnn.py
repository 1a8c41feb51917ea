"""Recurrent layers and cells as modules: PyTorch's formulas, weight names and shapes."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import create
from ..ops.rnn import cell_step, check_checkpoint, layer
from ..ops.rnn_composite import GATES
from ..ops.views import cat, stack
from ..tensor import Tensor
from . import functional as F
from . import init
from .layers import new_parameter
from .module import Module
from .utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


def _uniform(module: Module, hidden_size: int) -> None:
    """All parameters uniform on ±1 / sqrt(hidden_size)."""
    bound = 1 / math.sqrt(hidden_size)
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


def _sizes(op: str, input_size: int, hidden_size: int) -> None:
    if input_size < 1 or hidden_size < 1:
        raise ValueError(f"[{op}] sizes must be positive; got input_size={input_size}, hidden_size={hidden_size}")


def _nonlinearity(op: str, name: str) -> str:
    if name not in ("tanh", "relu"):
        raise ValueError(f"[{op}] nonlinearity is 'tanh' or 'relu'; got {name!r}")
    return name


class RNNBase(Module):
    """Layers of a cell over a sequence: what RNN, LSTM and GRU share. It is there to be asked for, not to be made."""

    cell = ""
    nonlinearity = "tanh"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, checkpoint: int | None = None,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        op = type(self).__name__
        if not self.cell:
            raise TypeError(f"[{op}] has no cell of its own; make an RNN, LSTM or GRU")
        _sizes(op, input_size, hidden_size)
        F.check_probability(dropout, op)
        if num_layers < 1:
            raise ValueError(f"[{op}] num_layers must be positive; got {num_layers}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"[{op}] proj_size must lie in 0 … hidden_size - 1; got {proj_size} and {hidden_size}")
        check_checkpoint(op, checkpoint)
        if dropout and num_layers == 1:
            warnings.warn(f"[{op}] dropout acts between layers: with num_layers=1 it does nothing", stacklevel=3)
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.proj_size, self.checkpoint = proj_size, checkpoint
        self._suffixes = [f"_l{k}{way}" for k in range(num_layers) for way in ("", "_reverse")[: 1 + bidirectional]]
        for i, suffix in enumerate(self._suffixes):
            size = input_size if i <= bidirectional else self._width * (1 + bidirectional)
            self._enter_weights(suffix, size, device, dtype)
        self.reset_parameters()

    @property
    def _width(self) -> int:
        """How wide h is: H, or P with a projection."""
        return self.proj_size or self.hidden_size

    def _enter_weights(self, suffix: str, input_size: int, device: Any, dtype: Any) -> None:
        rows = GATES[self.cell] * self.hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, self._width), "bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            made = new_parameter(*shape, device=device, dtype=dtype) if self.bias or len(shape) == 2 else None
            self.register_parameter(name + suffix, made)
        if self.proj_size:
            made = new_parameter(self.proj_size, self.hidden_size, device=device, dtype=dtype)
            self.register_parameter("weight_hr" + suffix, made)

    def reset_parameters(self) -> None:
        """Draw the starting values anew, all uniform on ±1 / sqrt(hidden_size)."""
        _uniform(self, self.hidden_size)

    @property
    def mode(self) -> str:
        """PyTorch's word for the cell: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU"."""
        return f"RNN_{self.nonlinearity}".upper() if self.cell == "rnn" else self.cell.upper()

    def flatten_parameters(self) -> None:
        """PyTorch's request to lay the weights out for cuDNN. Here they are used where they are: nothing to do."""

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple:
        """(y, state); see the class."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        batched = self._check_input(input)
        time_first = not batched or not self.batch_first
        x = input if time_first else input.transpose(0, 1)
        states = self._given(hx)
        if not batched:
            x = x.unsqueeze(1)
            states = [s if s is None else self._widened(s) for s in states]
        y, last = self._run(x, [self._each(s, i, x) for i, s in enumerate(states)], None)
        if not batched:
            return y.squeeze(1), self._state([s.squeeze(1) for s in last])
        return (y if time_first else y.transpose(0, 1)), self._state(last)

    def _widened(self, state: Tensor) -> Tensor:
        """The state of an unbatched input with a batch of one."""
        if state.ndim != 2:
            op = type(self).__name__
            raise ValueError(f"[{op}] an unbatched input takes states [layers * directions, H]; got {state.shape}")
        return state.unsqueeze(1)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple:
        """Sequences of different lengths: (PackedSequence, state), rows of the state in the order that was packed."""
        x, lengths = pad_packed_sequence(input._replace(sorted_indices=None, unsorted_indices=None))
        self._check_input(x, packed=True)
        states = self._given(hx)
        if input.sorted_indices is not None:
            states = [s if s is None else s.index_select(1, input.sorted_indices) for s in states]
        y, last = self._run(x, [self._each(s, i, x) for i, s in enumerate(states)], lengths)
        packed = pack_padded_sequence(y, lengths)
        if input.unsorted_indices is not None:
            last = [s.index_select(1, input.unsorted_indices) for s in last]
        again = PackedSequence(packed.data, packed.batch_sizes, input.sorted_indices, input.unsorted_indices)
        return again, self._state(last)

    def _check_input(self, x: Tensor, packed: bool = False) -> bool:
        """Whether x has a batch dimension; ValueError for a shape that is none of the three."""
        op, layout = type(self).__name__, "[B, T, I]" if self.batch_first and not packed else "[T, B, I]"
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(f"[{op}] the input must be {layout} or [T, I] with I = {self.input_size}; got {x.shape}")
        return x.ndim == 3

    def _given(self, hx: Any) -> list:
        """The states that were passed: [h0], with [h0, c0] for an LSTM."""
        if self.cell != "lstm":
            return [hx]
        if hx is None:
            return [None, None]
        if not isinstance(hx, tuple | list) or len(hx) != 2:
            raise ValueError(f"[LSTM] the state is a pair (h0, c0); got {type(hx).__name__}")
        return list(hx)

    def _state(self, last: list) -> Any:
        return last[0] if self.cell != "lstm" else tuple(last)

    def _each(self, state: Tensor | None, number: int, x: Tensor) -> list[Tensor]:
        """The first state of every layer and direction, each [B, H] (h) or [B, cell size] (c)."""
        op, name = type(self).__name__, "hc"[number]
        width = self.hidden_size if number else self._width
        count, batch = len(self._suffixes), x.shape[1]
        if state is None:
            return [create.zeros(batch, width, dtype=x.dtype, device=x.device)] * count
        wanted = (count, batch, width)
        if state.shape != wanted:
            raise ValueError(
                f"[{op}] {name}0 must be [layers * directions, B, {'H' if width == self.hidden_size else 'P'}] = {wanted} "
                f"for this input; got {state.shape}"
            )
        return [state.squeeze(0)] if count == 1 else list(state.unbind(0))

    def _run(self, x: Tensor, states: list[list[Tensor]], lengths: Any) -> tuple[Tensor, list[Tensor]]:
        """All layers over x [T, B, I]: (y [T, B, D * H], the last states, each [layers * D, B, H])."""
        op, directions = type(self).__name__, 1 + self.bidirectional
        last: list[list[Tensor]] = [[] for _ in states]
        for k in range(self.num_layers):
            if k and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for i in range(k * directions, (k + 1) * directions):
                w_ih, w_hh, b_ih, b_hh, w_hr = self._layer(self._suffixes[i])
                c0 = states[1][i] if len(states) > 1 else None
                y, *ends = layer(
                    self.cell, x, states[0][i], w_ih, w_hh, b_ih, b_hh, c0, w_hr, lengths=lengths, reverse=i % directions == 1,
                    checkpoint=self.checkpoint, activation=self.nonlinearity, op=op,
                )  # fmt: skip
                outputs.append(y)
                for some, end in zip(last, ends, strict=False):
                    some.append(end)
            x = outputs[0] if directions == 1 else cat(outputs, -1)
        return x, [ends[0].unsqueeze(0) if len(ends) == 1 else stack(ends) for ends in last]

    def _layer(self, suffix: str) -> list:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [getattr(self, name + suffix) if name != "weight_hr" or self.proj_size else None for name in names]

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        options: dict = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        options |= {"bidirectional": False, "checkpoint": None}
        changed = [f", {name}={getattr(self, name)}" for name, usual in options.items() if getattr(self, name) != usual]
        return f"{self.input_size}, {self.hidden_size}" + "".join(changed)


class RNN(RNNBase):
    """Layers of plain recurrent units over a sequence: h' = tanh(W x + b + R h + c), or relu.

    rnn(x, h0=zeros) -> (y, hn), with D = 2 when bidirectional, else 1: x [T, B, I] (batch_first: [B, T, I]; or
    unbatched [T, I]; or a PackedSequence), h0 and hn [layers * D, B, H], y [T, B, D * H], laid out as x is. Layer k
    reads layer k-1's y, in training with dropout between them. checkpoint=k keeps every k-th state only and computes
    the rest again in backward. ValueError for other shapes.

    Parameters weight_ih_l0 [H, I], weight_hh_l0 [H, H], bias_ih_l0, bias_hh_l0 [H], then those of _l0_reverse, _l1, …
    """

    cell = "rnn"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, *,
                 checkpoint: int | None = None, device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         checkpoint=checkpoint, device=device, dtype=dtype)  # fmt: skip
        self.nonlinearity = _nonlinearity("RNN", nonlinearity)


class LSTM(RNNBase):
    """Layers of long short-term memory units over a sequence.

        i, f, o = sigmoid(W x + b + R h + c) of each gate     g = tanh(W_g x + b_g + R_g h + c_g)
        c' = f * c + i * g                                    h' = o * tanh(c')

    lstm(x, (h0, c0)=zeros) -> (y, (hn, cn)): shapes as for RNN; c0 and cn [layers * D, B, H]. With proj_size = P > 0,
    h' = W_hr (o * tanh(c')), and h0, hn and every direction of y are P wide.

    Parameters weight_ih_l0 [4H, I], weight_hh_l0 [4H, H or P], bias_ih_l0, bias_hh_l0 [4H], gates in the order
    i, f, g, o; with a projection weight_hr_l0 [P, H]; then those of _l0_reverse, _l1, …
    """

    cell = "lstm"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, *, checkpoint: int | None = None,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         checkpoint, device, dtype)  # fmt: skip


class GRU(RNNBase):
    """Layers of gated recurrent units over a sequence.

        r = sigmoid(W_r x + b_r + R_r h + c_r)        z = sigmoid(W_z x + b_z + R_z h + c_z)
        n = tanh(W_n x + b_n + r * (R_n h + c_n))     h' = (1 - z) * n + z * h

    gru(x, h0=zeros) -> (y, hn): shapes as for RNN.

    Parameters weight_ih_l0 [3H, I], weight_hh_l0 [3H, H], bias_ih_l0, bias_hh_l0 [3H], gates in the order r, z, n;
    then those of _l0_reverse, _l1, …
    """

    cell = "gru"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, *, checkpoint: int | None = None, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         checkpoint=checkpoint, device=device, dtype=dtype)  # fmt: skip


class _Cell(Module):
    """One step of a cell: what RNNCell, LSTMCell and GRUCell share."""

    cell = ""
    nonlinearity = "tanh"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        _sizes(type(self).__name__, input_size, hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = GATES[self.cell] * hidden_size
        for name, shape in {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}.items():
            self.register_parameter(name, new_parameter(*shape, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter(rows, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew, all uniform on ±1 / sqrt(hidden_size)."""
        _uniform(self, self.hidden_size)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The new state; see the class."""
        op = type(self).__name__
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ValueError(f"[{op}] the input must be [B, I] or [I] with I = {self.input_size}; got {input.shape}")
        lstm = self.cell == "lstm"
        if lstm and hx is not None and (not isinstance(hx, tuple | list) or len(hx) != 2):
            raise ValueError(f"[{op}] the state is a pair (h, c); got {type(hx).__name__}")
        states = list(hx) if lstm and hx is not None else [hx] * (1 + lstm)
        wanted = (*input.shape[:-1], self.hidden_size)
        for i, (state, name) in enumerate(zip(states, "hc", strict=False)):
            if state is None:
                states[i] = state = create.zeros(*wanted, dtype=input.dtype, device=input.device)
            if state.shape != wanted:
                raise ValueError(f"[{op}] {name} must have shape {wanted} for this input; got {state.shape}")
        single = input.ndim == 1
        x, h, *c = (t.unsqueeze(0) for t in (input, *states)) if single else (input, *states)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        found = cell_step(self.cell, x, h, *weights, *c, activation=self.nonlinearity, op=op)[: 1 + lstm]
        found = tuple(s.squeeze(0) for s in found) if single else found
        return found if lstm else found[0]

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        shown = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        return shown + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class RNNCell(_Cell):
    """One step of an RNN (see there): cell(x, h=zeros) -> h', x [B, I] or [I], h and h' [B, H] or [H].

    Parameters weight_ih [H, I], weight_hh [H, H], bias_ih, bias_hh [H]. ValueError for other shapes.
    """

    cell = "rnn"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = _nonlinearity("RNNCell", nonlinearity)


class LSTMCell(_Cell):
    """One step of an LSTM (see there): cell(x, (h, c)=zeros) -> (h', c'), x [B, I] or [I], states [B, H] or [H].

    Parameters weight_ih [4H, I], weight_hh [4H, H], bias_ih, bias_hh [4H]. ValueError for other shapes.
    """

    cell = "lstm"


class GRUCell(_Cell):
    """One step of a GRU (see there): cell(x, h=zeros) -> h', x [B, I] or [I], h and h' [B, H] or [H].

    Parameters weight_ih [3H, I], weight_hh [3H, H], bias_ih, bias_hh [3H]. ValueError for other shapes.
    """

    cell = "gru"
