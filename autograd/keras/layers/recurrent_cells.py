"""Keras' recurrent cells: weights in Keras' layout, one step, and dropout. Whole sequences: recurrent.py.

Gates stand in columns, z, r, h in a GRU and i, f, c, o in an LSTM; `core()` turns the weights into the rows that
autograd/ops/rnn.py computes with, in recorded operations, so that gradients arrive in Keras' layout.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np

from ... import create
from ...function import Function
from ...ops.rnn import cell_step
from ...ops.views import cat
from ...random import Generator, drawing_from, rand
from ...tensor import Tensor, wrap
from .. import activations, constraints, initializers, regularizers
from ..layer import Layer
from ..tree import leaves

PARTS = ("kernel", "recurrent", "bias")
WEIGHT_OPTIONS = [f"{part}_{family}" for family in ("initializer", "regularizer", "constraint") for part in PARTS]
# what the layers around cells hand on to them
CELL_OPTIONS = [*WEIGHT_OPTIONS, "activation", "recurrent_activation", "use_bias", "dropout", "recurrent_dropout", "seed",
                "implementation", "reset_after", "unit_forget_bias"]  # fmt: skip


def parts_of(t: Tensor, count: int, dim: int) -> list[Tensor]:
    """t in `count` equal parts along dim, of size 0 too."""
    return list(t.split([t.shape[dim] // count] * count, dim))


@functools.cache
def _swapped(device: Any) -> Tensor:
    return create.tensor([1, 0, 2], device=device)


class SwapGates(Function):
    """The first two of three blocks along a dimension change places: one operation each way, not one for each block."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        ctx.dim = dim
        shape = x.shape
        blocks = (*shape[:dim], 3, shape[dim] // 3, *shape[dim + 1 :])
        if isinstance(x.array, np.ndarray):  # small weights would feel three operations
            return wrap(np.take(x.array.reshape(blocks), (1, 0, 2), dim).reshape(shape))
        return x.reshape(*blocks).index_select(dim, _swapped(x.device)).reshape(*shape)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple:
        return SwapGates.apply(dy, ctx.dim), None


def rows(columns: Tensor, gates: int) -> Tensor:
    """Columns [N, G U] as rows [G U, N] (a vector stays one); a GRU's z, r, h in the core's order r, z, n."""
    if gates == 3:
        columns = SwapGates.apply(columns, columns.ndim - 1)
    return columns.transpose(0, 1) if columns.ndim == 2 else columns


def core_name(activation: Any) -> Any:
    """The name under which the core has a fused formula; other functions are themselves."""
    names = {activations.tanh: "tanh", activations.sigmoid: "sigmoid", activations.relu: "relu"}
    return names.get(activation, activation)


class WeightOptions:
    """The nine arguments about kernel, recurrent kernel and bias, which cells and CuDNN layers share."""

    def take_options(self, options: dict) -> None:
        """Resolve names and keep the objects as attributes: kernel_initializer, recurrent_regularizer, …"""
        defaults = {"kernel_initializer": "glorot_uniform", "recurrent_initializer": "orthogonal", "bias_initializer": "zeros"}
        for family, module in ("initializer", initializers), ("regularizer", regularizers), ("constraint", constraints):
            for part in PARTS:
                name = f"{part}_{family}"
                setattr(self, name, module.get(options.get(name, defaults.get(name))))

    def option_config(self, family: str) -> dict:
        """The config of one family."""
        module: Any = {"initializer": initializers, "regularizer": regularizers, "constraint": constraints}[family]
        return {f"{part}_{family}": module.serialize(getattr(self, f"{part}_{family}")) for part in PARTS}

    def make_weight(self: Any, part: str, shape: tuple, initializer: Any = None) -> None:
        """add_weight with the options of a part."""
        name = "recurrent_kernel" if part == "recurrent" else part
        start, regularizer, constraint = (getattr(self, f"{part}_{f}") for f in ("initializer", "regularizer", "constraint"))
        self.add_weight(name, shape, initializer or start, regularizer=regularizer, constraint=constraint)


class Cell(Layer, WeightOptions):
    """Base of SimpleRNNCell, GRUCell and LSTMCell: cell(x [B, I], states) -> (y [B, U], states).

    kernel [I, G U], recurrent_kernel [U, G U] and bias, with initializers, regularizers and constraints for each. dropout
    acts on x, recurrent_dropout on the state that enters the products, in training: inverted, drawn once for all steps of
    a sequence (until reset_dropout_mask, reset_recurrent_dropout_mask), one mask for all gates (implementation=2) or one
    a gate (implementation=1, which recurrent_dropout forces in GRU and LSTM, as in Keras). seed: a stream of its own.
    """

    cell = ""
    gates = 1
    count = 1  # of states

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True, *, dropout: float = 0.0,
                 recurrent_dropout: float = 0.0, seed: int | None = None, **kwargs: Any):  # fmt: skip
        if isinstance(units, bool) or not isinstance(units, int | np.integer) or units <= 0:
            raise ValueError(f"Received an invalid value for argument `units`, expected a positive integer, got {units}.")
        for name, p in ("dropout", dropout), ("recurrent_dropout", recurrent_dropout):
            if not 0 <= p < 1:
                raise ValueError(f"[{type(self).__name__}] {name} must lie in [0, 1); got {p}")
        options = {k: kwargs.pop(k) for k in WEIGHT_OPTIONS if k in kwargs}
        super().__init__(**kwargs)
        self.units, self.activation, self.use_bias = int(units), activations.get(activation), bool(use_bias)
        self.dropout, self.recurrent_dropout, self.seed = float(dropout), float(recurrent_dropout), seed
        self.take_options(options)
        self._generator = None if seed is None else Generator().manual_seed(seed)
        self._masks: dict[str, list[Tensor]] = {}

    @property
    def state_size(self) -> Any:
        """U, or [U, U]."""
        return self.units if self.count == 1 else [self.units] * self.count

    @property
    def output_size(self) -> int:
        """U."""
        return self.units

    # -- weights ------------------------------------------------------------------------------------

    def bias_shape(self) -> tuple:
        """The bias's shape."""
        return (self.gates * self.units,)

    def bias_start(self) -> Any:
        """The bias's initializer."""
        return self.bias_initializer  # type: ignore[attr-defined]

    def build(self, input_shape: Any) -> None:
        """kernel, recurrent_kernel and bias for inputs [B, I]."""
        columns = self.gates * self.units
        self.make_weight("kernel", (input_shape[-1], columns))
        self.make_weight("recurrent", (self.units, columns))
        if self.use_bias:
            self.make_weight("bias", self.bias_shape(), self.bias_start())
        else:
            self.register_parameter("bias", None)

    def core(self) -> dict[str, Any]:
        """The core's arguments: weights as rows, and the activation."""
        g = self.gates
        b = rows(self.bias, g) if self.bias is not None and self.bias.ndim == 1 else None
        found = {"w_ih": rows(self.kernel, g), "w_hh": rows(self.recurrent_kernel, g), "b_ih": b, "b_hh": None}
        return {**found, "activation": core_name(self.activation)}

    # -- one step -----------------------------------------------------------------------------------

    def call(self, inputs: Tensor, states: Any) -> tuple[Tensor, list[Tensor]]:
        """See the class."""
        h, *c = list(leaves(states))
        if self.training and (self.dropout or self.recurrent_dropout):
            new = self.dropped_step(inputs, h, *c)
        else:
            new = [
                s for s in cell_step(self.cell, inputs, h, c=c[0] if c else None, op=self.name, **self.core()) if s is not None
            ]
        return new[0], new

    def dropped_step(self, x: Tensor, h: Tensor, *c: Tensor) -> list[Tensor]:
        """The step with dropout, in Keras' layout: [h'] or [h', c']."""
        raise NotImplementedError(f"[{type(self).__name__}] has no dropped_step()")

    def get_initial_state(self, batch_size: int) -> list[Tensor]:
        """Zeros for a batch, where the weights are."""
        where = next((p.device for p in self.parameters()), None)
        return [create.zeros(batch_size, self.units, dtype=self.dtype, device=where) for _ in range(self.count)]

    # -- dropout ------------------------------------------------------------------------------------

    @property
    def apart(self) -> bool:
        """Whether every gate has a dropout mask of its own."""
        return getattr(self, "implementation", 2) == 1

    def _mask(self, kind: str, like: Tensor, p: float) -> list[Tensor] | None:
        """The masks of a sequence, one a gate; None without dropout."""
        if not (p and self.training):
            return None
        found = self._masks.get(kind)
        if found is None or (found[0].shape, found[0].dtype, found[0].device) != (like.shape, like.dtype, like.device):
            with contextlib.nullcontext() if self._generator is None else drawing_from(self._generator):
                drawn = [rand(like.shape, dtype="float32", device="cpu").numpy() for _ in range(self.gates if self.apart else 1)]
            kept = [np.where(u >= p, 1 / (1 - p), 0.0) for u in drawn]
            found = self._masks[kind] = [create.tensor(k, dtype=like.dtype, device=like.device) for k in kept]
            if not self.apart:
                found *= self.gates
        return found

    def get_dropout_mask(self, x: Tensor) -> list[Tensor] | None:
        """The masks for inputs like x [B, I], one a gate (one Tensor several times with implementation=2)."""
        return self._mask("x", x, self.dropout)

    def get_recurrent_dropout_mask(self, h: Tensor) -> list[Tensor] | None:
        """The masks for states like h [B, U]."""
        return self._mask("h", h, self.recurrent_dropout)

    def reset_dropout_mask(self) -> None:
        """Draw new masks for the inputs at the next step."""
        self._masks.pop("x", None)

    def reset_recurrent_dropout_mask(self) -> None:
        """Draw new masks for the states at the next step."""
        self._masks.pop("h", None)

    # -- config -------------------------------------------------------------------------------------

    own: tuple = ()  # names of arguments that only this kind of cell has

    def cell_config(self) -> dict:
        """What the layer around the cell has in its config too."""
        found = {"units": self.units, "activation": activations.serialize(self.activation)}
        if hasattr(self, "recurrent_activation"):
            found["recurrent_activation"] = activations.serialize(self.recurrent_activation)
        found |= {"use_bias": self.use_bias, **self.option_config("initializer"), **self.option_config("regularizer")}
        found |= {**self.option_config("constraint"), "dropout": self.dropout, "recurrent_dropout": self.recurrent_dropout}
        if self.seed is not None:
            found["seed"] = self.seed
        return found | {name: getattr(self, name) for name in self.own}

    def get_config(self) -> dict:
        """The constructor's arguments as plain data."""
        return {**super().get_config(), **self.cell_config()}


class SimpleRNNCell(Cell):
    """y = h' = activation(x kernel + h recurrent_kernel + bias). Arguments and dropout: Cell."""

    cell = "rnn"

    def dropped_step(self, x: Tensor, h: Tensor, *c: Tensor) -> list[Tensor]:
        """See Cell."""
        for_x, for_h = self.get_dropout_mask(x), self.get_recurrent_dropout_mask(h)
        x, h = (t if m is None else t * m[0] for t, m in ((x, for_x), (h, for_h)))
        total = x @ self.kernel + h @ self.recurrent_kernel
        return [self.activation(total if self.bias is None else total + self.bias)]


class _Gated(Cell):
    """What GRUCell and LSTMCell share: gate activation and implementation."""

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", use_bias: bool = True, *,
                 implementation: int = 2, **kwargs: Any):  # fmt: skip
        super().__init__(units, activation, use_bias, **kwargs)
        if implementation not in (1, 2):
            raise ValueError(f"[{type(self).__name__}] implementation is 1 or 2; got {implementation!r}")
        self.recurrent_activation = activations.get(recurrent_activation)
        self.implementation = 1 if self.recurrent_dropout else implementation

    def core(self) -> dict[str, Any]:
        """See Cell."""
        return {**super().core(), "gate_activation": core_name(self.recurrent_activation)}

    def _split(self, t: Tensor, weights: Tensor, masks: list[Tensor] | None) -> list[Tensor]:
        if masks is None:
            return parts_of(t @ weights, self.gates, -1)
        return [(t * m) @ w for m, w in zip(masks, parts_of(weights, self.gates, 1), strict=True)]


class GRUCell(_Gated):
    """h' = z h + (1 - z) n, with z, r = recurrent_activation(x K + h R + b) and n = activation(x K_h + b + r (h R_h + c))
    with reset_after (bias [2, 3U]), or activation(x K_h + b + (r h) R_h) without (bias [3U]). Arguments: Cell.
    """

    gates = 3
    own = ("implementation", "reset_after")

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", use_bias: bool = True, *,
                 reset_after: bool = True, **kwargs: Any):  # fmt: skip
        super().__init__(units, activation, recurrent_activation, use_bias, **kwargs)
        self.reset_after = bool(reset_after)

    @property
    def cell(self) -> str:  # type: ignore[override]
        """The core's name."""
        return "gru" if self.reset_after else "gru_before"

    def bias_shape(self) -> tuple:
        """See Cell."""
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def core(self) -> dict[str, Any]:
        """See Cell."""
        found = super().core()
        if self.bias is not None and self.reset_after:
            found["b_ih"], found["b_hh"] = SwapGates.apply(self.bias, 1).unbind(0)
        return found

    def dropped_step(self, x: Tensor, h: Tensor, *c: Tensor) -> list[Tensor]:
        """See Cell."""
        for_h = self.get_recurrent_dropout_mask(h)
        both: list = [None, None]
        if self.bias is not None:
            both = [parts_of(t, 3, -1) for t in self.bias.unbind(0)] if self.reset_after else [parts_of(self.bias, 3, -1), None]

        def add(t: Tensor, b: Any, i: int) -> Tensor:
            return t if b is None else t + b[i]

        gz, gr, gn = (add(t, both[0], i) for i, t in enumerate(self._split(x, self.kernel, self.get_dropout_mask(x))))
        r_z, r_r, r_n = parts_of(self.recurrent_kernel, 3, 1)
        masked = [h if for_h is None else h * m for m in for_h or (None,) * 3]
        z = self.recurrent_activation(gz + add(masked[0] @ r_z, both[1], 0))
        r = self.recurrent_activation(gr + add(masked[1] @ r_r, both[1], 1))
        inner = r * add(masked[2] @ r_n, both[1], 2) if self.reset_after else (r * masked[2]) @ r_n
        n = self.activation(gn + inner)
        return [n + z * (h - n)]


class LSTMCell(_Gated):
    """c' = f c + i activation(x K_c + h R_c + b), h' = o activation(c'), i, f, o = recurrent_activation(x K + h R + b).

    unit_forget_bias: the forget gate's bias starts at one. Arguments: Cell.
    """

    cell = "lstm"
    gates = 4
    count = 2
    own = ("implementation", "unit_forget_bias")

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", use_bias: bool = True, *,
                 unit_forget_bias: bool = True, **kwargs: Any):  # fmt: skip
        super().__init__(units, activation, recurrent_activation, use_bias, **kwargs)
        self.unit_forget_bias = bool(unit_forget_bias)

    def bias_start(self) -> Any:
        """See Cell."""
        return forget_bias(self.bias_initializer, self.units, 1, 2) if self.unit_forget_bias else self.bias_initializer  # type: ignore[attr-defined]

    def dropped_step(self, x: Tensor, h: Tensor, *c: Tensor) -> list[Tensor]:
        """See Cell."""
        g = self._split(x, self.kernel, self.get_dropout_mask(x))
        u = self._split(h, self.recurrent_kernel, self.get_recurrent_dropout_mask(h))
        b = [0.0] * 4 if self.bias is None else parts_of(self.bias, 4, -1)
        i, f, n, o = (gg + uu + bb for gg, uu, bb in zip(g, u, b, strict=True))
        gate, act = self.recurrent_activation, self.activation
        new = gate(f) * c[0] + gate(i) * act(n)
        return [gate(o) * act(new), new]


def forget_bias(initializer: Any, units: int, before: int, after: int) -> Any:
    """An initializer: `before` gates by another, one gate of ones, `after` gates by the other."""

    def start(shape: tuple, dtype: Any = None) -> Tensor:
        parts = [initializer((before * units,), dtype=dtype), initializers.Ones()((units,), dtype),
                 initializer((after * units,), dtype=dtype)]  # fmt: skip
        return cat([create.as_tensor(p) for p in parts], 0)

    return start
