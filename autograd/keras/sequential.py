"""Sequential: one layer after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import dtypes
from ..nn.module import Module
from . import graph, graph_config
from .layer import Layer, unique_name
from .model import Model
from .naming import snake_case


class Sequential(Model):
    """Layers, each called on what the one before gave. Keras' layers, models and any nn.Module.

    It begins with an Input or InputLayer, or its first layer's input_shape=, and is built at once; or it is built by its
    first call, or build(input_shape). Modules from outside Keras get the name of their class.
    """

    def __init__(self, layers: Iterable[Any] | None = None, *, trainable: bool = True, name: str | None = None):
        super().__init__(name=name, trainable=trainable)
        self.__dict__["_first"] = None  # the InputLayer
        self.__dict__["_told"] = None  # what comes out of each layer, where a configuration says it
        self.built = False
        for layer in layers or ():
            self._append(layer)
        self._rebuild()

    @property
    def layers(self) -> list:
        """The layers, without the input."""
        return list(self._modules.values())

    def _filled(self, layers: Iterable[Any], told: tuple[tuple, list] | None) -> Sequential:
        """Put layers in; told: the input's shape, and (shape, dtype) of each layer's output for it."""
        for layer in layers:
            self._append(layer)
        self.__dict__["_told"] = told
        self._rebuild()
        return self

    def add(self, layer: Any) -> None:
        """Put a layer at the end."""
        self.__dict__["_told"] = None
        self._append(layer)
        self._rebuild()

    def pop(self) -> Any:
        """Take the last layer away; it is returned. ValueError when there is none."""
        if not self._modules:
            raise ValueError(f"[{self.name}] has no layers to pop")
        self.__dict__["_told"] = None
        _, layer = self._modules.popitem()
        self._rebuild()
        return layer

    def _append(self, layer: Any) -> None:
        if isinstance(layer, graph.SymbolicTensor):
            layer = layer.node.layer if layer.node is not None else layer
        if isinstance(layer, graph.InputLayer):
            if self._modules or self._first is not None:
                raise ValueError(f"[{self.name}] an Input stands first, and alone; there are {len(self._modules)} layers")
            self.__dict__["_first"] = layer
            return
        if not isinstance(layer, Module):
            hint = " A class? Make an object of it." if isinstance(layer, type) else ""
            raise TypeError(f"[{self.name}] layers are Keras layers or nn.Modules; got {type(layer).__name__}.{hint}")
        if any(layer is other for other in self._modules.values()):
            raise ValueError(f"[{self.name}] a layer stands in it once; got {layer!r} twice")
        shape = getattr(layer, "batch_input_shape", None)
        if not self._modules and self._first is None and shape is not None:
            self.__dict__["_first"] = graph.InputLayer(batch_shape=shape)
        self._enter(layer, None if isinstance(layer, Layer) else unique_name(snake_case(type(layer).__name__)))

    def _rebuild(self) -> None:
        """Make the graph anew, where the shape of the input is known."""
        self._function = None
        self.__dict__["built"] = False
        if self._first is not None and self._modules:
            self._connect(self._first.output)

    def _connect(self, x: graph.SymbolicTensor, strict: bool = True) -> None:
        start, layers = x, self.layers
        shape, specs = self.__dict__.get("_told") or (None, [])
        told = specs if shape == x.shape and len(specs) == len(layers) else [None] * len(layers)
        for layer, spec in zip(layers, told):
            with graph.told(spec):
                x = layer(x) if isinstance(layer, Layer) else graph.record(layer, (x,), {})
        self._function = graph.Graph(start, x, strict)
        self.__dict__["built"] = True

    def build(self, input_shape: Any = None) -> None:
        """Build all layers for inputs of this shape, batch first. ValueError without layers."""
        if not self._modules:
            raise ValueError(f"[{self.name}] has no layers yet: add() some")
        if input_shape is None:
            raise ValueError(f"[{self.name}] build() needs the shape of the input, batch first")
        if self._function is None:
            kind = self.__dict__.get("_seen_dtype")
            shape = (None, *tuple(input_shape)[1:])
            self._connect(graph.InputLayer(batch_shape=shape, dtype=kind).output, strict=False)

    def _prepare(self, inputs: Any) -> None:
        if self._function is None and not isinstance(inputs, graph.SymbolicTensor):
            kind = getattr(inputs, "dtype", None)  # whole numbers stay so, for an Embedding
            self.__dict__["_seen_dtype"] = dtypes.of_array(inputs) if isinstance(inputs, np.ndarray) else kind
        super()._prepare(inputs)

    def call(self, inputs: Any) -> Any:
        """The last layer's output."""
        if self._function is None:
            raise ValueError(f"[{self.name}] has no layers yet: add() some")
        return self._function.run(inputs)

    def get_config(self) -> dict:
        """The layers and the input."""
        return graph_config.sequential_config(self)

    @classmethod
    def from_config(cls, config: dict) -> Any:
        """The model that get_config() describes."""
        return graph_config.sequential_model(cls, config)
