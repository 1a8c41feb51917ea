"""Bidirectional: a recurrent layer in both directions of time."""

from __future__ import annotations

from typing import Any

from ...ops.views import cat
from ...tensor import Tensor
from ..layer import InputSpec, Layer
from .recurrent import RNN, FusedRNN
from .recurrent_base import Recurrent, first
from .stacked_cells import fresh, saving

MERGES = ("concat", "sum", "mul", "ave", None)


def again(layer: Recurrent, **changes: Any) -> Any:
    """A new layer with the configuration of another, changed."""
    if not isinstance(layer, RNN) or isinstance(layer, FusedRNN):
        return type(layer).from_config({**layer.get_config(), **changes})
    return type(layer)(fresh(layer.cell), unroll=layer.unroll, **{**Recurrent.get_config(layer), **changes})


class Bidirectional(Layer):
    """A recurrent layer forwards and a twin of it backwards; outputs of both together.

    layer: its configuration is used twice (its checkpoint too), not its weights. merge_mode: how two outputs become one:
    "concat" (along features, forward first), "sum", "mul", "ave", or None (both are returned). backward_layer: another
    layer for the way back, which must have go_backwards. With return_sequences the backward outputs are turned, so that
    step t of both belongs to input t, and masked steps give zeros in both. Returned states: the forward ones, then the
    backward ones; initial_state and reset_states take them so too.

    Calling: as Recurrent. ValueError for another merge_mode, and for layers whose options do not fit together; TypeError
    for a layer that is not recurrent.
    """

    supports_masking = True

    def __init__(self, layer: Any, merge_mode: str | None = "concat", backward_layer: Any = None, **kwargs: Any):
        for each in (layer, *(() if backward_layer is None else (backward_layer,))):
            if not isinstance(each, Recurrent):
                raise TypeError(f"[Bidirectional] the layers are recurrent ones; got {type(each).__name__}")
        if merge_mode not in MERGES:
            raise ValueError(f'[Bidirectional] merge_mode is "concat", "sum", "mul", "ave" or None; got {merge_mode!r}')
        super().__init__(**kwargs)
        if self.batch_input_shape is None:
            self.batch_input_shape = layer.batch_input_shape
        self.merge_mode, self._own_backward = merge_mode, backward_layer is not None
        self.forward_layer = again(layer, name=f"forward_{layer.name}")
        way = not layer.go_backwards
        source = layer if backward_layer is None else backward_layer
        if backward_layer is not None and backward_layer.go_backwards is not way:
            raise ValueError("[Bidirectional] layer and backward_layer must run in opposite directions: see go_backwards")
        self.backward_layer = again(source, name=f"backward_{source.name}", go_backwards=way)
        for option in ("return_sequences", "return_state", "stateful", "time_major"):
            if getattr(self.forward_layer, option) != getattr(self.backward_layer, option):
                raise ValueError(f"[Bidirectional] layer and backward_layer must have the same {option}")
            setattr(self, option, getattr(layer, option))
        for each in (self.forward_layer, self.backward_layer):
            each.zero_output_for_mask = self.return_sequences
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Any) -> None:
        """Build both layers."""
        for layer in (self.forward_layer, self.backward_layer):
            layer.build(first(input_shape))

    def call(self, inputs: Any, mask: Any = None, initial_state: Any = None) -> Any:
        """See the class."""
        x, *given = inputs if isinstance(inputs, list | tuple) else [inputs]
        given = given or initial_state
        half = len(self.forward_layer.sizes)
        if given is not None and len(given) != half + len(self.backward_layer.sizes):
            raise ValueError(
                f"An `initial_state` was passed that is not compatible with `cell.state_size`. Received {len(given)} states; "
                f"however the two directions have {[*self.forward_layer.sizes, *self.backward_layer.sizes]}"
            )
        mask = first(mask)
        ends = (None, None) if given is None else (list(given[:half]), list(given[half:]))
        y, *states = self._listed(self.forward_layer(x, mask=mask, initial_state=ends[0]))
        back, *others = self._listed(self.backward_layer(x, mask=mask, initial_state=ends[1]))
        if self.return_sequences:
            back = back.flip(0 if self.time_major else 1)
        merged = self._merged(y, back)
        return [*self._listed(merged), *states, *others] if self.return_state else merged

    @staticmethod
    def _listed(outputs: Any) -> list:
        return outputs if isinstance(outputs, list) else [outputs]

    def _merged(self, y: Tensor, back: Tensor) -> Any:
        if self.merge_mode is None:
            return [y, back]
        if self.merge_mode == "concat":
            return cat([y, back], -1)
        if self.merge_mode == "mul":
            return y * back
        return y + back if self.merge_mode == "sum" else (y + back) / 2

    @property
    def states(self) -> list:
        """The stored states of both layers."""
        return [*self.forward_layer.states, *self.backward_layer.states]

    def reset_states(self, states: Any = None) -> None:
        """Recurrent.reset_states for both layers, with one list of states, the forward ones first."""
        half = len(self.forward_layer.sizes)
        if states is not None and len(states) != half + len(self.backward_layer.sizes):
            raise ValueError(f"Layer {self.name} expects {len(self.states)} states, but it received {len(states)} state values.")
        self.forward_layer.reset_states(None if states is None else list(states[:half]))
        self.backward_layer.reset_states(None if states is None else list(states[half:]))

    reset_state = reset_states

    def compute_output_shape(self, input_shape: Any) -> Any:
        """As the layer's, twice as wide with "concat"; a list with states, or with two outputs."""
        shape, *states = self._shapes(self.forward_layer, input_shape)
        other, *others = self._shapes(self.backward_layer, input_shape)
        if self.merge_mode == "concat":
            shape = (*shape[:-1], shape[-1] + other[-1])
        merged = [shape, other] if self.merge_mode is None else shape
        return [*(merged if self.merge_mode is None else [merged]), *states, *others] if self.return_state else merged

    def _shapes(self, layer: Recurrent, input_shape: Any) -> list:
        found = layer.compute_output_shape(input_shape)
        return found if isinstance(found, list) else [found]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the inputs, for outputs that are sequences; None for states."""
        kept = first(mask) if self.return_sequences else None
        outputs = [kept, kept] if self.merge_mode is None else [kept]
        states = [None] * len(self.states) if self.return_state else []
        return outputs[0] if len(outputs) + len(states) == 1 else [*outputs, *states]

    def get_config(self) -> dict:
        """The constructor's arguments as plain data, layers as {"class_name", "config"}."""
        config = {**super().get_config(), "layer": _config_of(self.forward_layer, "forward_"), "merge_mode": self.merge_mode}
        return {**config, "backward_layer": _config_of(self.backward_layer, "backward_")} if self._own_backward else config

    @classmethod
    def from_config(cls, config: dict, custom_objects: dict | None = None) -> Any:
        """The wrapper of a config; custom_objects holds classes of layers and cells of one's own."""
        made = {k: saving().deserialize_layer(config[k], custom_objects) for k in ("layer", "backward_layer") if k in config}
        return cls(**{**config, **made})


def _config_of(layer: Recurrent, prefix: str) -> dict:
    entry = saving().serialize_layer(layer)
    config = {k: v for k, v in entry["config"].items() if k != "zero_output_for_mask"}  # the wrapper's doing
    return {**entry, "config": {**config, "name": config["name"].removeprefix(prefix)}}
