"""Layers around a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tensor import Tensor
from ..layer import Layer
from .base import ArgumentsLayer


class Wrapper(ArgumentsLayer):
    """Base of layers that hold one layer, `layer`, whose weights are theirs."""

    supports_masking = True

    def __init__(self, layer: Layer, **kwargs: Any):
        if not isinstance(layer, Layer):
            raise ValueError(f"[{type(self).__name__}] wraps a Keras layer; got {type(layer).__name__}")
        super().__init__(locals(), **kwargs)

    def get_config(self) -> dict:
        """The constructor's arguments, the layer as its class' name and config."""
        from ..saving import serialize_layer  # it imports the layers

        return {**super().get_config(), "layer": serialize_layer(self.layer)}

    @classmethod
    def from_config(cls, config: dict, custom_objects: Mapping | None = None) -> Any:
        """The layer of a config."""
        from ..saving import deserialize_layer

        return cls(**{**config, "layer": deserialize_layer(config["layer"], custom_objects)})


class TimeDistributed(Wrapper):
    """The same layer for every step of x [N, T, ...] -> [N, T, ...].

    The steps are laid side by side in one batch of N * T, so that a BatchNormalization inside sees them all at once.
    A mask goes on, and to the inner layer, each step's part.
    """

    def _inner(self, shape: Any) -> tuple:
        if len(shape) < 3:
            raise ValueError(f"[TimeDistributed] inputs have at least 3 dimensions, [N, T, ...]; got shape {tuple(shape)}")
        return shape[0], *shape[2:]

    def build(self, input_shape: Any) -> None:
        """The inner layer, for one step's shape."""
        inner = self._inner(input_shape)
        if not self.layer.built:
            self.layer.build(inner)

    def call(self, inputs: Tensor, training: bool = False, mask: Tensor | None = None) -> Tensor:
        """See the class."""
        x = inputs.reshape(-1, *inputs.shape[2:])
        if mask is not None:
            if mask.shape[:2] != inputs.shape[:2]:
                raise ValueError(f"[{self.name}] the mask starts with [N, T] of the input; got {mask.shape} for {inputs.shape}")
            x._keras_mask = mask.reshape(-1, *mask.shape[2:])
        y = self.layer(x, training=training)
        return y.reshape(*inputs.shape[:2], *y.shape[1:])

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """The inner layer's with the steps after the batch."""
        batch, *rest = self.layer.compute_output_shape(self._inner(input_shape))
        return (batch, input_shape[1], *rest)
