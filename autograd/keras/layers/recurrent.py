"""Keras' GRU, LSTM and SimpleRNN on the recurrent core (autograd/ops/rnn.py), and RNN, which runs any cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.rnn import layer
from ...ops.rnn_composite import on_device
from ...ops.select import where
from ...ops.views import stack
from ...tensor import Tensor
from .. import regularizers
from ..layer import Layer
from ..naming import snake_case
from ..tree import leaves, mapped
from .recurrent_base import Recurrent
from .recurrent_cells import CELL_OPTIONS, Cell, GRUCell, LSTMCell, SimpleRNNCell
from .stacked_cells import StackedRNNCells, cell_config, saving


class RNN(Recurrent):
    """A cell over a sequence, step by step. Calling, states, masks and options: Recurrent.

    cell: an object with state_size (a number, or a list of them), cell(x [B, I], states) -> (y, states) with lists of
    states, and output_size if it is not the first state's width; or a list of such (StackedRNNCells). A Layer or an
    nn.Module is a submodule and is trained; of a plain object, call(x, states) is used.

    unroll changes nothing: steps are always run one by one here.
    """

    def __init__(self, cell: Any, *, unroll: bool = False, **kwargs: Any):
        if isinstance(cell, list | tuple):
            cell = StackedRNNCells(cell)
        if not hasattr(cell, "state_size") or not (callable(cell) or hasattr(cell, "call")):
            raise ValueError(
                "Argument `cell` should have a `call` method and a `state_size` attribute (or be a list of such cells); "
                f"got cell={cell!r}"
            )
        super().__init__(**kwargs)
        self.cell, self.unroll = cell, bool(unroll)
        if self.checkpoint is not None and self.stepwise:
            hint = "a cell of your own, recurrent_dropout, and dropout with implementation=1 run step by step"
            raise ValueError(f"[{self.name}] checkpoint={self.checkpoint} needs the sequence in one operation; {hint}")

    @property
    def stepwise(self) -> bool:
        """Whether training runs the cell step by step."""
        return True

    @property
    def state_size(self) -> Any:
        """The cell's."""
        return self.cell.state_size

    @property
    def output_size(self) -> int:
        """The cell's, or the first state's."""
        return getattr(self.cell, "output_size", None) or self.sizes[0]

    def build_weights(self, batch: int | None, width: int) -> None:
        """Build the cell, if it is one of Keras'."""
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((batch, width))

    def cast_dtype(self) -> Any:
        """That of a Keras cell's weights."""
        return self.dtype if isinstance(self.cell, Layer) and self.weights else None

    def zero_states(self, x: Tensor) -> list[Tensor]:
        """What the cell's get_initial_state gives, else zeros."""
        if hasattr(self.cell, "get_initial_state") and not isinstance(self.cell, Cell):
            return self._checked(list(leaves(self.cell.get_initial_state(batch_size=x.shape[1]))), x)
        return super().zero_states(x)

    def steps(self, x: Tensor, states: list[Tensor], mask: np.ndarray | None) -> tuple[Tensor, Tensor, list[Tensor]]:
        """See Recurrent."""
        if not len(x):
            raise ValueError(f"[{self.name}] at least one step; got inputs with none")
        for name in ("reset_dropout_mask", "reset_recurrent_dropout_mask"):
            getattr(self.cell, name, lambda: None)()
        if mask is not None:  # what no number is would go on into gradients, as NaN times 0
            x = where(x.isfinite() | on_device(mask[..., None], x), x, 0.0)
        structure = self.state_size
        run = self.cell if callable(self.cell) else self.cell.call
        inputs, outputs = x.unbind(0), []
        order = range(len(inputs) - 1, -1, -1) if self.go_backwards else range(len(inputs))
        for t in order:
            flat = iter(states)
            nested = mapped(lambda _, flat=flat: next(flat), structure)
            y, new = run(inputs[t], nested if isinstance(nested, list | tuple) else [nested])
            after = list(leaves(new))
            if len(after) != len(states):
                raise ValueError(f"[{self.name}] the cell must give {len(states)} states; got {len(after)}")
            if mask is not None and not mask[t].all():
                held = outputs[-1] if outputs and not self.zero_output_for_mask else y.zeros_like()
                y = _kept(mask[t], y, held)
                after = [_kept(mask[t], a, s) for a, s in zip(after, states, strict=True)]
            states = after
            outputs.append(y)
        return stack(outputs) if self.return_sequences else outputs[-1], outputs[-1], states

    def get_config(self) -> dict:
        """The constructor's arguments as plain data, the cell as {"class_name", "config"}."""
        return {**super().get_config(), "unroll": self.unroll, "cell": cell_config(self.cell)}

    @classmethod
    def from_config(cls, config: dict, custom_objects: dict | None = None) -> Any:
        """The layer of a config; custom_objects holds the class of a cell of one's own."""
        return cls(**{**config, "cell": saving().deserialize_layer(config["cell"], custom_objects)})


def _kept(live: np.ndarray, new: Tensor, old: Tensor) -> Tensor:
    """new in the live rows, old in the others."""
    return where(on_device(live.reshape(-1, *(1,) * (new.ndim - 1)), new), new, old)


class FusedRNN(RNN):
    """Base of GRU, LSTM and SimpleRNN: the cell's arguments and RNN's in one constructor, in Keras' order; the sequence
    runs on the core, in one operation.

    With recurrent_dropout, or dropout and implementation=1, training runs the cell step by step. use_cudnn ("auto", True,
    False) and unroll change nothing: there is one implementation for all cases, and it needs no cuDNN.
    """

    kind: Any = Cell

    def __init__(self, units: int, *args: Any, use_cudnn: Any = "auto", **kwargs: Any):
        if use_cudnn not in ("auto", True, False):
            raise ValueError(f'[{type(self).__name__}] use_cudnn is "auto", True or False; got {use_cudnn!r}')
        own = {name: kwargs.pop(name) for name in CELL_OPTIONS if name in kwargs}
        own |= {"name": f"{snake_case(type(self).__name__)}_cell", "dtype": kwargs.get("dtype")}
        cell = self.kind(units, *args, **own, trainable=kwargs.get("trainable", True))
        super().__init__(cell, **kwargs)
        self.use_cudnn = use_cudnn

    @property
    def stepwise(self) -> bool:
        """See RNN."""
        return bool(self.cell.recurrent_dropout or (self.cell.dropout and self.cell.apart))

    def steps(self, x: Tensor, states: list[Tensor], mask: np.ndarray | None) -> tuple[Tensor, Tensor, list[Tensor]]:
        """See Recurrent."""
        cell = self.cell
        if self.training and self.stepwise:
            return super().steps(x, states, mask)
        if self.training and cell.dropout and len(x):
            cell.reset_dropout_mask()
            x = x * cell.get_dropout_mask(x[0])[0]
        return core_steps(self, cell.cell, x, states, mask, cell.core())

    def get_config(self) -> dict:
        """The constructor's arguments as plain data."""
        config = Recurrent.get_config(self)
        config |= {"unroll": self.unroll, **self.cell.cell_config()}
        config["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        return config if self.use_cudnn == "auto" else {**config, "use_cudnn": self.use_cudnn}

    @classmethod
    def from_config(cls, config: dict, custom_objects: dict | None = None) -> Any:
        """The layer of a config."""
        return cls(**config)


def core_steps(owner: Recurrent, cell: str, x: Tensor, states: list[Tensor], mask: np.ndarray | None, weights: dict) -> tuple:
    """All steps on the core: what Recurrent.steps gives."""
    h, *c = states
    padding = "zero" if owner.zero_output_for_mask else "repeat"
    y, *ends = layer(cell, x, h, c0=c[0] if c else None, mask=mask, padding=padding, reverse=owner.go_backwards,
                     checkpoint=owner.checkpoint, op=owner.name, **weights)  # fmt: skip
    new = [s for s in ends if s is not None]
    if mask is None or not len(x):
        last = new[0]
    else:
        last = y[0] if owner.go_backwards else y[-1]
    if owner.return_sequences and owner.go_backwards:
        y = y.flip(0)
    return y, last, new


def _of_cell(name: str) -> property:
    return property(lambda self: getattr(self.cell, name), doc="The cell's.")


for _name in ("units", *CELL_OPTIONS):
    setattr(FusedRNN, _name, _of_cell(_name))


class GRU(FusedRNN):
    """Gated recurrent units (Cho et al. 2014), Keras' layout.

        z, r = recurrent_activation(x K + b + h R + c)        h' = z h + (1 - z) n
        n = activation(x K_n + b_n + r (h R_n + c_n))         with reset_after (Keras 2 and 3, cuDNN, PyTorch)
        n = activation(x K_n + b_n + (r h) R_n)               without (Keras 1, TensorFlow's block cell, BigDL)

    GRU(units, activation="tanh", recurrent_activation="sigmoid", use_bias=True, …): arguments of GRUCell (initializers,
    regularizers, constraints, dropout, recurrent_dropout, implementation, seed, reset_after) and of Recurrent
    (return_sequences, return_state, go_backwards, stateful, time_major, zero_output_for_mask, checkpoint), which has the call.

    Weights kernel [I, 3U], recurrent_kernel [U, 3U], bias [2, 3U] ([3U] without reset_after); columns z, r, h.
    """

    kind = GRUCell


class LSTM(FusedRNN):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000), Keras' layout.

        i, f, o = recurrent_activation(x K + h R + b)    c' = f c + i activation(x K_c + h R_c + b_c)
        h' = o activation(c')

    LSTM(units, activation="tanh", recurrent_activation="sigmoid", use_bias=True, …): arguments of LSTMCell (as GRU's, with
    unit_forget_bias instead of reset_after) and of Recurrent, which has the call. Two states: h and c.

    Weights kernel [I, 4U], recurrent_kernel [U, 4U], bias [4U]; columns i, f, c, o.
    """

    kind = LSTMCell


class SimpleRNN(FusedRNN):
    """h' = activation(x kernel + h recurrent_kernel + bias).

    SimpleRNN(units, activation="tanh", use_bias=True, …): arguments of SimpleRNNCell (as GRU's, without gates) and of
    Recurrent, which has the call. Weights kernel [I, U], recurrent_kernel [U, U], bias [U].
    """

    kind = SimpleRNNCell
