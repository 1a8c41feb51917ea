"""Model: layers that are trained together. A Layer, an nn.Module, and what training.py adds: compile, fit, evaluate, predict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn.containers import ModuleDict, ModuleList
from ..nn.module import Module
from . import graph, graph_config, saving
from .layer import Layer
from .model_summary import model_table
from .training import Trainer
from .tree import shapes


class Model(Trainer, Layer):
    """Model(inputs, outputs) of symbolic tensors; or subclass it, make layers in __init__ and write call().

    inputs and outputs are symbolic tensors (from Input() and layers called on them), or lists or dicts of them.
    It is an nn.Module: parameters(), state_dict(), train(), eval(), to() work as for any other, and a loop written by
    hand trains it to the same numbers as fit(). Lists and dicts of layers that are assigned to attributes are found.
    """

    def __init__(self, inputs: Any = None, outputs: Any = None, *, name: str | None = None, trainable: bool = True,
                 dtype: Any = None):  # fmt: skip
        if (inputs is None) != (outputs is None):
            raise ValueError("[Model] give inputs and outputs, or neither in a subclass that writes call()")
        Layer.__init__(self, name=name, trainable=trainable, dtype=dtype)
        Trainer.__init__(self)
        self._function: graph.Graph | None = None
        if inputs is not None:
            self._function = graph.Graph(inputs, outputs)
            for layer in self._function.layers:
                self._enter(layer)
            self.built = True
            if not trainable:
                self.trainable = False

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, list | tuple) and value and all(isinstance(x, Module) for x in value):
            value = ModuleList(value)
        elif isinstance(value, dict) and value and all(isinstance(x, Module) for x in value.values()):
            value = ModuleDict(value)
        super().__setattr__(name, value)

    def _enter(self, layer: Module, name: str | None = None) -> None:
        """Make a layer part of the model, under its name. ValueError when the name is taken."""
        name = name or (layer.name if isinstance(layer, Layer) else type(layer).__name__.lower())
        if "." in name:
            raise ValueError(f"[{self.name}] a layer's name has no dots; got {name!r}")
        if name in self._modules and self._modules[name] is not layer:
            raise ValueError(f"[{self.name}] all layers need different names; there are two called {name!r}. Pass name=")
        self._modules[name] = layer
        if not isinstance(layer, Layer):
            layer.train(self.training)  # PyTorch's modules start in training mode, layers do not

    # -- layers -------------------------------------------------------------------------------------

    @property
    def layers(self) -> list:
        """The layers directly below the model, those in lists and dicts too; not the operators between them."""
        found: list = []
        todo = list(self._modules.values())
        while todo:
            module = todo.pop(0)
            if isinstance(module, ModuleList | ModuleDict):
                todo = [*module._modules.values(), *todo]
            elif module is not None and not isinstance(module, graph.Operation) and not any(module is m for m in found):
                found.append(module)
        return found

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer of a name or number. ValueError when there is none."""
        layers = self.layers
        if (name is None) == (index is None):
            raise ValueError("[get_layer] give a name or an index")
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f"[get_layer] there are {len(layers)} layers; got index {index}")
            return layers[index]
        for key, layer in self._modules.items():
            if name in (key, getattr(layer, "name", None)):
                return layer
        raise ValueError(f"[get_layer] {self.name} has no layer {name!r}; it has {', '.join(_called(x) for x in layers)}")

    def __getattr__(self, name: str) -> Any:
        """inputs, outputs (symbolic tensors in lists), input, output (in their nesting), input_shape, output_shape."""
        if name in _OF_GRAPH and name not in self.__dict__.get("_modules", {}):  # a subclass may use the names itself
            function = self.__dict__.get("_function")
            if function is None:
                raise AttributeError(f"[{self.name}] {name} is known for models of symbolic inputs only")
            return _OF_GRAPH[name](function)
        return super().__getattr__(name)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs: the keys of a dict, else the layers that made them; [] when that is not known."""
        if self._function is None:
            return []
        if isinstance(self._function.outputs, dict):
            return sorted(self._function.outputs)
        return [_called(x.node.layer) for x in self._function.flat_outputs]

    # -- computing ----------------------------------------------------------------------------------

    def call(self, inputs: Any) -> Any:
        """The outputs; a subclass writes its own."""
        if self._function is None:
            raise NotImplementedError(f"[{type(self).__name__}] write call(), or give inputs and outputs")
        return self._function.run(inputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks that the outputs carry stay as they are."""
        return mask

    def _masked(self, inputs: Any, mask: Any, outputs: Any) -> Any:
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs."""
        if self._function is not None and shapes(self._function.inputs) == input_shape:
            return shapes(self._function.outputs)
        return super().compute_output_shape(input_shape)

    def summary(self, line_length: int | None = None, print_fn: Callable | None = None, expand_nested: bool = False,
                show_trainable: bool = False) -> None:  # fmt: skip
        """Print a table: each layer with its kind, the shape of its output and the number of its weights.

        print_fn gets the whole text instead. expand_nested: the layers of models inside too. ValueError before the
        model is built.
        """
        (print_fn or print)(model_table(self, line_length, expand_nested, show_trainable))

    # -- saving -------------------------------------------------------------------------------------

    def get_config(self) -> dict:
        """What from_config makes an equal model of, without weights. A subclass that writes call() gives its own."""
        if self._function is None:
            raise NotImplementedError(
                f"[{type(self).__name__}] write get_config(), which gives __init__'s arguments, so that the model can be saved; "
                "save_weights() needs none"
            )
        return graph_config.graph_config(self)

    @classmethod
    def from_config(cls, config: dict) -> Any:
        """The model that get_config() describes."""
        return graph_config.graph_model(cls, config) if "nodes" in config else cls(**config)

    def save(self, filepath: Any, overwrite: bool = True, include_optimizer: bool = True) -> None:
        """Write layers, weights, what compile() was given and the optimizer's state to one file: see load_model."""
        saving.save_model(self, filepath, overwrite, include_optimizer)

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write the weights alone: a safetensors file with the names of state_dict()."""
        saving.save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False) -> None:
        """Read the weights that save_weights() or save() wrote. skip_mismatch: leave out what does not fit, with a warning.

        ValueError that lists missing, unexpected and wrongly shaped weights; nothing is changed then.
        """
        saving.load_weights(self, filepath, skip_mismatch)

    def to_json(self, **kwargs: Any) -> str:
        """The model's configuration as JSON, for model_from_json."""
        return saving.to_json(self, **kwargs)


_OF_GRAPH: dict[str, Callable] = {
    "inputs": lambda g: g.flat_inputs, "outputs": lambda g: g.flat_outputs, "input": lambda g: g.inputs,
    "output": lambda g: g.outputs, "input_shape": lambda g: shapes(g.inputs), "output_shape": lambda g: shapes(g.outputs),
}  # fmt: skip


def _called(layer: Any) -> str:
    return layer.name if isinstance(layer, Layer) else type(layer).__name__
