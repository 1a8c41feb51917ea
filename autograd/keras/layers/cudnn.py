"""CuDNNGRU and CuDNNLSTM: Keras 2's layers with cuDNN's weights, on the one recurrent core, on every device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...tensor import Tensor
from .. import regularizers
from .recurrent import core_steps
from .recurrent_base import Recurrent
from .recurrent_cells import WEIGHT_OPTIONS, SwapGates, WeightOptions, forget_bias


class CellSizes(NamedTuple):
    """What a CuDNN layer has for a cell."""

    state_size: Any


class CuDNNRecurrent(Recurrent, WeightOptions):
    """Base of the two: tanh and sigmoid, two biases, no dropout, no masks; options of Recurrent.

    Weights as TensorFlow has them: every block [I, U] of kernel is the memory of cuDNN's [U, I] matrix under that shape,
    every block of recurrent_kernel cuDNN's matrix; bias holds the input gates' [G U], then the recurrent ones'. Here the
    layers run on every device, the CPU too. `implementation` is accepted and means nothing, as in Keras. ValueError for
    any mask.
    """

    supports_masking = False
    gates = 0
    core = ""

    def __init__(self, units: int, **kwargs: Any):
        options = {k: kwargs.pop(k) for k in WEIGHT_OPTIONS if k in kwargs}
        kwargs.pop("implementation", None)
        if "zero_output_for_mask" in kwargs:  # there are no masks
            raise TypeError(f"Keyword argument not understood: 'zero_output_for_mask', by {type(self).__name__}")
        super().__init__(**kwargs)
        if isinstance(units, bool) or not isinstance(units, int | np.integer):
            raise ValueError(f"[{type(self).__name__}] units is a whole number; got {units!r}")
        self.units = int(units)
        self.take_options(options)

    @property
    def cell(self) -> Any:
        """A namedtuple with state_size alone."""
        return CellSizes(self.state_size)

    def bias_start(self) -> Any:
        """The bias's initializer."""
        return self.bias_initializer  # type: ignore[attr-defined]

    def build_weights(self, batch: int | None, width: int) -> None:
        """See Recurrent. ValueError for a negative number of units."""
        if self.units < 0:
            raise ValueError(f"Dimension {self.units} must be >= 0; these are the units of {self.name}")
        columns = self.gates * self.units
        self.make_weight("kernel", (width, columns))
        self.make_weight("recurrent", (self.units, columns))
        self.make_weight("bias", (2 * columns,), self.bias_start())

    def call(self, inputs: Any, mask: Any = None, initial_state: Any = None) -> Any:
        """See Recurrent."""
        if mask is not None:
            raise ValueError("Masking is not supported for CuDNN RNNs.")
        return super().call(inputs, None, initial_state)

    def steps(self, x: Tensor, states: list[Tensor], mask: np.ndarray | None) -> tuple[Tensor, Tensor, list[Tensor]]:
        """See Recurrent."""
        if not self.units:  # which Keras lets pass
            return x[..., :0], x[0, :, :0], states
        both = self.bias.reshape(2, -1)
        b, c = (SwapGates.apply(both, 1) if self.gates == 3 else both).unbind(0)
        weights = {"w_ih": self._blocks(self.kernel), "w_hh": self._blocks(self.recurrent_kernel), "b_ih": b, "b_hh": c}
        return core_steps(self, self.core, x, states, mask, weights)

    def _blocks(self, columns: Tensor) -> Tensor:
        """[G U, N]: every block [N, U] of columns as the [U, N] whose memory it is, gates in the core's order."""
        n, units = columns.shape[0], self.units
        blocks = columns.reshape(n, self.gates, units).transpose(0, 1).reshape(self.gates * units, n)
        return SwapGates.apply(blocks, 0) if self.gates == 3 else blocks

    def get_config(self) -> dict:
        """The constructor's arguments as plain data."""
        config = {**super().get_config(), "units": self.units, **self.option_config("initializer")}
        config.pop("zero_output_for_mask", None)  # which Bidirectional sets
        config |= {**self.option_config("regularizer"), **self.option_config("constraint")}
        return {**config, "activity_regularizer": regularizers.serialize(self.activity_regularizer)}


class CuDNNGRU(CuDNNRecurrent):
    """GRU(units) with reset_after, in cuDNN's layout; columns z, r, h. Arguments, call and weights: CuDNNRecurrent."""

    gates = 3
    core = "gru"

    @property
    def state_size(self) -> int:
        """U."""
        return self.units


class CuDNNLSTM(CuDNNRecurrent):
    """LSTM(units) in cuDNN's layout; columns i, f, c, o. Arguments, call and weights: CuDNNRecurrent.

    unit_forget_bias: the forget gate's recurrent bias starts at one.
    """

    gates = 4
    core = "lstm"

    def __init__(self, units: int, *, unit_forget_bias: bool = True, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.unit_forget_bias = bool(unit_forget_bias)

    @property
    def state_size(self) -> list:
        """[U, U]: h and c."""
        return [self.units, self.units]

    def bias_start(self) -> Any:
        """See CuDNNRecurrent."""
        start: Any = super().bias_start()
        return forget_bias(start, self.units, 5, 2) if self.unit_forget_bias else start

    def get_config(self) -> dict:
        """The constructor's arguments as plain data."""
        return {**super().get_config(), "unit_forget_bias": self.unit_forget_bias}
