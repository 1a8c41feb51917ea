"""What all of Keras' recurrent layers share: states, masks, the direction of time, and what is returned."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import create
from ...ops.rnn import check_checkpoint, live_steps
from ...tensor import Tensor
from ..layer import InputSpec, Layer
from ..room import take
from ..tree import is_shape, leaves

UNKNOWN_BATCH = (
    "If a RNN is stateful, it needs to know its batch size. Specify the batch size of your input tensors: call the layer, "
    "build it with a full shape, or pass batch_input_shape (in a Sequential model, to the first layer)."
)


def first(tree: Any) -> Any:
    """Of the inputs [x, h0, …], their shapes or masks: x's."""
    return tree[0] if isinstance(tree, list | tuple) and not is_shape(tree) else tree


class Recurrent(Layer):
    """Base of GRU, LSTM, SimpleRNN, RNN and the CuDNN layers: subclasses write `state_size`, `build_weights` and `steps`.

    Calling: layer(x, initial_state=None, mask=None, training=None), x [B, T, I] ([T, B, I] if time_major); or
    layer([x, h0, …]). The first states are, in this order: those in the inputs' list, initial_state, the stored ones of a
    stateful layer, zeros. (Keras 2's GRU let stored states that are not zero win; this is Keras 3's rule.)

    mask [B, T] of bool ([T, B] if time_major): a masked step keeps the state and gives the last output before it, zeros
    before the first; always zeros with zero_output_for_mask. go_backwards: from the last step to the first; outputs stand
    in the order in which they were computed, and the state is that after the earliest input (in time_major layers too,
    where TensorFlow's CuDNNGRU turned the batch around).

    return_sequences: y [B, T, U], else the last one that was computed, [B, U]. return_state: a list [y, state, …].
    stateful: row i of a batch starts where row i of the batch before ended, in inference too; nothing is differentiated
    across batches. activity_regularizer applies to every output, states included, each divided by its first size.

    checkpoint=k, which Keras has not: keep every k-th state only and compute the steps between again in backward, with the
    same gradients. For layers whose sequence is one operation: ValueError for RNN(cell), for recurrent_dropout, for
    dropout with implementation=1, and at the call for activations other than tanh (relu in SimpleRNN) and sigmoid.
    """

    supports_masking = True

    def __init__(self, *, return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
                 stateful: bool = False, time_major: bool = False, zero_output_for_mask: bool = False,
                 checkpoint: int | None = None, **kwargs: Any):  # fmt: skip
        width, length = kwargs.pop("input_dim", None), kwargs.pop("input_length", None)
        if (width, length) != (None, None) and kwargs.get("input_shape") is None:
            kwargs["input_shape"] = (length, width)
        super().__init__(**kwargs)
        self.return_sequences, self.return_state = bool(return_sequences), bool(return_state)
        self.go_backwards, self.stateful, self.time_major = bool(go_backwards), bool(stateful), bool(time_major)
        self.zero_output_for_mask = bool(zero_output_for_mask)
        check_checkpoint(type(self).__name__, checkpoint)
        self.checkpoint = checkpoint
        self.input_spec = InputSpec(ndim=3)

    # -- what subclasses write ----------------------------------------------------------------------

    @property
    def state_size(self) -> Any:
        """The width of every state: a number, or nested lists of them."""
        raise NotImplementedError(f"[Recurrent] {type(self).__name__} has no state_size")

    @property
    def output_size(self) -> int:
        """The width of an output."""
        return self.sizes[0]

    def build_weights(self, batch: int | None, width: int) -> None:
        """Make the weights for inputs [batch, width]."""
        raise NotImplementedError(f"[Recurrent] {type(self).__name__} has no build_weights()")

    def steps(self, x: Tensor, states: list[Tensor], mask: np.ndarray | None) -> tuple[Tensor, Tensor, list[Tensor]]:
        """x [T, B, I] through all steps: (outputs [T, B, U] in the order they were computed, the last one, the states).

        mask [T, B] has False somewhere, if it is not None. Without return_sequences the first is not looked at.
        """
        raise NotImplementedError(f"[Recurrent] {type(self).__name__} has no steps()")

    # -- building and calling -----------------------------------------------------------------------

    @property
    def sizes(self) -> list[int]:
        """The widths of all states in one list."""
        return [int(n) for n in leaves(self.state_size)]

    def build(self, input_shape: Any) -> None:
        """Make the weights, and a stateful layer's states. ValueError if its batch size is not known."""
        shape = tuple(first(input_shape))
        self.input_spec.check(self.name, shape)
        batch, width = shape[1 if self.time_major else 0], shape[2]
        if self.stateful and batch is None:
            raise ValueError(UNKNOWN_BATCH)
        if width is None:
            raise ValueError(f"[{self.name}] the last size of the inputs must be known; got shape {shape}")
        self.build_weights(batch, width)
        kept = batch if self.stateful else None
        wanted = (None, kept, width) if self.time_major else (kept, None, width)
        self.input_spec = InputSpec(ndim=3, shape=wanted)
        if self.stateful and "state_0" not in self._buffers:
            take((batch, sum(self.sizes)), f"state of {self.name}")
            self._store([create.zeros(batch, n, dtype=self.dtype, device=self._home()) for n in self.sizes])

    def _home(self) -> Any:
        return next((p.device for p in self.parameters()), None)

    def call(self, inputs: Any, mask: Any = None, initial_state: Any = None) -> Any:
        """See the class."""
        x, *given = inputs if isinstance(inputs, list | tuple) else [inputs]
        x = x if self.time_major else x.transpose(0, 1)
        states = self._first_states(x, given or initial_state)
        live = self._live(first(mask), x)
        y, last, states = self.steps(x, states, live)
        if self.stateful:
            self._store([s.detach().clone() for s in states])
        if self.return_sequences:
            last = y if self.time_major else y.transpose(0, 1)
        return [last, *states] if self.return_state else last

    def _live(self, mask: Any, x: Tensor) -> np.ndarray | None:
        """The mask as [T, B], None where nothing is masked."""
        if mask is None:
            return None
        mask = np.asarray(mask.detach().cpu().numpy() if isinstance(mask, Tensor) else mask).astype(bool)
        return live_steps(self.name, None, mask if self.time_major else mask.T, len(x), x.shape[1])

    def _first_states(self, x: Tensor, given: Any) -> list[Tensor]:
        if given is not None:
            return self._checked(list(leaves(given)), x)
        if self.stateful:
            return [s.to(x.device, x.dtype) for s in self.states]  # reset_states() may have come before any device was known
        return self.zero_states(x)

    def zero_states(self, x: Tensor) -> list[Tensor]:
        """The first states where nobody gave any, for x [T, B, I]."""
        return [create.zeros(x.shape[1], n, dtype=x.dtype, device=x.device) for n in self.sizes]

    def _checked(self, given: list, x: Tensor) -> list[Tensor]:
        if [tuple(s.shape) for s in given] != [(x.shape[1], n) for n in self.sizes]:
            raise ValueError(
                "An `initial_state` was passed that is not compatible with `cell.state_size`. Received states of shape "
                f"{[tuple(s.shape) for s in given]} for a batch of {x.shape[1]}; however `cell.state_size` is {self.sizes}"
            )
        return given

    # -- states -------------------------------------------------------------------------------------

    @property
    def states(self) -> list:
        """The stored states of a stateful layer, each [B, U]; None for each where there are none."""
        return [self._buffers.get(f"state_{i}") for i in range(len(self.sizes))]

    def _store(self, states: list[Tensor]) -> None:
        for i, s in enumerate(states):
            if f"state_{i}" in self._buffers:
                self._buffers[f"state_{i}"] = s
            else:
                self.register_buffer(f"state_{i}", s, persistent=False)

    def reset_states(self, states: Any = None) -> None:
        """Set the stored states: to zeros, or to an array or Tensor [B, U] (a list of them for several states), which is
        copied and cast. Before the first call too, where the batch size is known from batch_input_shape (Keras ignores
        the values then).

        AttributeError if the layer is not stateful; ValueError if the batch size is not known, and for another number of
        states or another shape.
        """
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        batch = self._batch()
        if batch is None:
            raise ValueError(UNKNOWN_BATCH)
        sizes, where = self.sizes, self._home()
        if states is None:
            self._store([create.zeros(batch, n, dtype=self.dtype, device=where) for n in sizes])
            return
        given = list(leaves(states))
        if len(given) != len(sizes):
            raise ValueError(
                f"Layer {self.name} expects {len(sizes)} states, but it received {len(given)} state values. "
                f"States received: {states}"
            )
        arrays = [np.asarray(s.detach().cpu().numpy() if isinstance(s, Tensor) else s) for s in given]
        real = [np.real(a).astype(np.float64) for a in arrays]  # strings that are no numbers: NumPy's ValueError
        for i, (a, n) in enumerate(zip(real, sizes, strict=True)):
            if a.shape != (batch, n):
                raise ValueError(
                    f"State {i} is incompatible with layer {self.name}: expected shape={(batch, n)} but found shape={a.shape}"
                )
        self._store([create.tensor(a, dtype=self.dtype, device=where) for a in real])

    reset_state = reset_states  # Keras 3's name

    def _batch(self) -> int | None:
        axis = 1 if self.time_major else 0
        shape = self.input_spec.shape if self.built else self.batch_input_shape
        return None if shape is None else shape[axis]

    # -- shapes, masks, config ----------------------------------------------------------------------

    def compute_output_shape(self, input_shape: Any) -> Any:
        """(B, U), or (B, T, U) with return_sequences; a list with those of the states, with return_state."""
        shape = tuple(first(input_shape))
        batch = shape[1 if self.time_major else 0]
        y = (*shape[:2], self.output_size) if self.return_sequences else (batch, self.output_size)
        return [y, *((batch, n) for n in self.sizes)] if self.return_state else y

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the inputs, for outputs that are sequences; None for states."""
        kept = first(mask) if self.return_sequences else None
        return [kept, *(None for _ in self.sizes)] if self.return_state else kept

    def get_config(self) -> dict:
        """The constructor's arguments as plain data."""
        config = {**super().get_config(), "return_sequences": self.return_sequences, "return_state": self.return_state}
        config |= {"go_backwards": self.go_backwards, "stateful": self.stateful, "time_major": self.time_major}
        if self.zero_output_for_mask:
            config["zero_output_for_mask"] = True
        return config if self.checkpoint is None else {**config, "checkpoint": self.checkpoint}
