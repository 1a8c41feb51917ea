"""Saving models: one file with their configuration as data, their weights, compile()'s arguments and the optimizer's state.

The file is written by ag.save: a safetensors file, written whole or not at all. Loading makes only classes that Keras'
tables here, register_keras_serializable() or custom_objects know by name: nothing in a file can run code.
"""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import checkpoint
from ..device import as_device
from ..grad_mode import no_grad
from ..nn.module import Module
from ..tensor import Tensor
from . import graph, losses, metrics, naming, optimizers
from .layer import Layer
from .room import loading, trials

_VERSION = 1
_registered: dict[type, str] = {}


# -- names of classes -----------------------------------------------------------------------------------


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable:
    """A decorator: the class (with get_config) or function can be saved and loaded, under the name "package>Name"."""

    def enter(thing: Any) -> Any:
        key = f"{package}>{name or thing.__name__}"
        if inspect.isclass(thing) and not hasattr(thing, "get_config"):
            raise ValueError(f"[register_keras_serializable] {thing.__name__} needs get_config()")
        naming.CUSTOM[key] = thing
        _registered[thing] = key
        return thing

    return enter


@contextmanager
def custom_object_scope(objects: Mapping[str, Any] | None) -> Iterator[None]:
    """Inside, these names are known wherever Keras looks one up."""
    before = dict(naming.CUSTOM)
    naming.CUSTOM.update(objects or {})
    try:
        yield
    finally:
        naming.CUSTOM.clear()
        naming.CUSTOM.update(before)


def _classes() -> dict[str, type]:
    """Every layer and model by its class's name."""
    from . import layers, model, sequential  # they import this module

    found = {k: v for k, v in vars(layers).items() if inspect.isclass(v) and issubclass(v, Layer)}
    own = (graph.InputLayer, graph.Operation, sequential.Sequential, model.Model)
    return {**found, **{c.__name__: c for c in own}, "Functional": model.Model}


def serialize_layer(layer: Any) -> dict:
    """{"class_name", "config"} of a layer or model. TypeError for a module that is none."""
    if not isinstance(layer, Layer):
        hint = "save_weights() saves its weights; or wrap it in a Layer with get_config()."
        raise TypeError(f"[save] {type(layer).__name__} is not a Keras layer, so it has no config. {hint}")
    return {"class_name": _registered.get(type(layer), type(layer).__name__), "config": layer.get_config()}


def deserialize_layer(config: Mapping, custom_objects: Mapping | None = None) -> Any:
    """The layer or model of serialize_layer's dict. ValueError for a class that nobody knows."""
    with custom_object_scope(custom_objects):
        name = config.get("class_name") if isinstance(config, Mapping) else None
        if not isinstance(name, str) or not isinstance(config.get("config"), Mapping):
            raise ValueError(f'[load] a layer is a dict with "class_name" and "config"; got {str(config)[:80]}')
        kind = naming.CUSTOM.get(name) or _classes().get(name)
        if kind is None:
            hint = "Give it in custom_objects, or register_keras_serializable() it."
            raise ValueError(f"[load] there is no layer class {name!r}. {hint}")
        return make(kind, config["config"])


def make(kind: Any, config: Mapping) -> Any:
    """kind.from_config(config), with the known custom objects where it takes them. ValueError as naming.made_of."""
    takes = "custom_objects" in inspect.signature(kind.from_config).parameters
    return naming.made_of(kind, config, {"custom_objects": naming.CUSTOM} if takes else {})


# -- configurations -------------------------------------------------------------------------------------


def to_json(model: Any, **kwargs: Any) -> str:
    """Model.to_json."""
    return json.dumps({"build_shape": model._build_shape, **serialize_layer(model)}, **kwargs)


def model_from_json(text: str, custom_objects: Mapping | None = None) -> Any:
    """The model, with new weights, that to_json() describes."""
    return deserialize_layer(json.loads(text), custom_objects)


def clone_model(model: Any) -> Any:
    """A model of the same configuration with weights of its own, new ones."""
    return make(type(model), model.get_config())


# -- what compile() was given ---------------------------------------------------------------------------


def _packed(value: Any, serialize: Callable) -> Any:
    """Names, functions and objects, in lists and dicts, as data."""
    if isinstance(value, list | tuple):
        return {"list": [_packed(v, serialize) for v in value]}
    if isinstance(value, dict) and "class_name" not in value:
        return {"dict": {k: _packed(v, serialize) for k, v in value.items()}}
    if value is None or isinstance(value, str | int | float):
        return value
    found = serialize(value)
    if callable(found):
        found = {"class_name": "function", "config": _registered.get(found, found.__name__)}
    elif isinstance(found, dict) and type(value) in _registered:
        found = {**found, "class_name": _registered[type(value)]}
    return {"object": found}


def _unpacked(value: Any, deserialize: Callable) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "object":
        return deserialize(inner)
    if kind == "dict":
        return {k: _unpacked(v, deserialize) for k, v in inner.items()}
    return [_unpacked(v, deserialize) for v in inner]


_SERIALIZERS: dict[str, tuple[Callable, Callable]] = {
    "loss": (losses.serialize, losses.deserialize),
    "metrics": (metrics.serialize, metrics.deserialize),
    "weighted_metrics": (metrics.serialize, metrics.deserialize),
    "loss_weights": (lambda v: v, lambda v: v),
}


def _compile_data(model: Any) -> dict:
    config = {k: _packed(v, _SERIALIZERS[k][0]) if k in _SERIALIZERS else v for k, v in model._compile_config.items()}
    optimizer = model.optimizer
    name = _registered.get(type(optimizer), type(optimizer).__name__)
    state = optimizer.state_dict() if optimizer.built else model._pending_state
    return {"config": config, "optimizer": {"class_name": name, "config": optimizer.get_config()}, "state": state}


def _compile(model: Any, data: dict) -> None:
    if not {"config", "optimizer", "state"} <= set(data):
        raise ValueError(f"[load_model] what compile() was given is damaged: there is {list(data)}")
    try:
        config = {k: _unpacked(v, _SERIALIZERS[k][1]) if k in _SERIALIZERS else v for k, v in data["config"].items()}
        model.compile(optimizer=optimizers.deserialize(data["optimizer"]), **config)
    except ValueError as error:
        raise ValueError(f"{error}. load_model() learns names by custom_objects=, or leaves them out by compile=False") from None
    model._pending_state = data["state"]
    if data["state"] is not None and model.trainable_weights:
        model._build_optimizer()


# -- files ----------------------------------------------------------------------------------------------


def _may_write(path: Any, overwrite: bool) -> str:
    path = os.fspath(path)
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"[save] {path} is there already, and overwrite is False")
    return path


def save_model(model: Any, filepath: Any, overwrite: bool = True, include_optimizer: bool = True) -> None:
    """Write a model to one file: see Model.save. Whatever goes wrong, what was at the path stays as it was.

    TypeError for what cannot be saved: a class without get_config, a function that is not registered in a configuration.
    """
    path = _may_write(filepath, overwrite)
    data = {"keras": _VERSION, "model": serialize_layer(model), "build_shape": model._build_shape, "built": model.built}
    data["compile"] = _compile_data(model) if include_optimizer and model.compiled else None
    checkpoint.save({**data, "weights": model.state_dict()}, path)


def load_model(filepath: Any, custom_objects: Mapping | None = None, compile: bool = True, device: Any = None) -> Any:
    """The model that Model.save() wrote: layers, weights, compile()'s arguments, the optimizer's state; fit() goes on exactly.

    (What is drawn at random, the order of samples and dropout, follows ag.manual_seed or ag.set_rng_state.)
    custom_objects: {name: class or function} of what is not Keras' own and not registered. compile: whether to compile it
    as it was. device: where the weights go. ValueError for other files, for unknown names and for weights that do not fit.
    """
    data = checkpoint.load(filepath, device="cpu")
    if not isinstance(data, dict) or "keras" not in data:
        hint = "model.load_weights() reads weights."
        raise ValueError(f"[load_model] {os.fspath(filepath)} was not written by Model.save(). {hint}")
    if data["keras"] != _VERSION:
        raise ValueError(f"[load_model] {os.fspath(filepath)} has format version {data['keras']}; this release reads {_VERSION}")
    missing = [k for k in ("model", "build_shape", "built", "compile", "weights") if k not in data]
    if missing:
        raise ValueError(f"[load_model] {os.fspath(filepath)} is damaged: it lacks {missing}")
    weights = _checked_weights(data["weights"], "load_model", filepath)
    try:
        with custom_object_scope(custom_objects), loading(sum({id(t): t.numel() for t in weights.values()}.values())):
            model = _loaded(data, weights)
            if compile and data["compile"] is not None:
                _compile(model, data["compile"])
    except ValueError:
        raise  # it says what is wrong
    except Exception as error:
        text = f"[load_model] {os.fspath(filepath)} is damaged, or a class of its has changed: {naming.in_words(error)}"
        raise ValueError(text) from error
    return model if device is None else model.to(as_device(device))


def _loaded(data: dict, weights: dict[str, Tensor]) -> Any:
    """The model with its weights."""
    from .model import Model

    model = deserialize_layer(data["model"])
    if not isinstance(model, Model):
        raise ValueError(f"[load_model] the file holds a {type(model).__name__}, which is no model")
    if data["built"] and data["build_shape"] is not None and model._function is None and len(model.weights) < len(weights):
        _build(model, data["build_shape"])
    _put(model, weights)
    return model


def _checked_weights(found: Any, op: str, path: Any) -> dict[str, Tensor]:
    if not isinstance(found, dict) or not all(isinstance(k, str) and isinstance(t, Tensor) for k, t in found.items()):
        raise ValueError(f"[{op}] {os.fspath(path)} holds something else than weights")
    return found


def _build(model: Any, shape: Any) -> None:
    if hasattr(model, "_first"):
        model.build(shape)
    else:
        with no_grad(), trials():
            Layer.compute_output_shape(model, shape)  # runs call(), which builds what is in it


def save_weights(model: Any, filepath: Any, overwrite: bool = True) -> None:
    """See Model.save_weights."""
    path = _may_write(filepath, overwrite)
    if not model.weights:
        raise ValueError(f"[save_weights] {model.name} has no weights yet: call it, or build(input_shape)")
    checkpoint.save(model.state_dict(), path)


def load_weights(model: Any, filepath: Any, skip_mismatch: bool = False) -> None:
    """See Model.load_weights."""
    data = checkpoint.load(filepath, device="cpu")
    found = data.get("weights") if isinstance(data, dict) and "keras" in data else data
    found = _checked_weights(found, "load_weights", filepath)
    if not model.weights:
        raise ValueError(f"[load_weights] {model.name} has no weights yet: call it, or build(input_shape)")
    _put(model, found, skip_mismatch)


def _put(model: Module, found: dict[str, Tensor], skip: bool = False) -> None:
    """Copy weights in, by name; where layers are numbered otherwise, by their place. ValueError that lists what does not fit."""
    own = model.state_dict()
    if set(own) != set(found) and len(own) == len(found):
        found = dict(zip(own, found.values()))
    both = [k for k in own if k in found]
    wrong = [f"{k} has shape {own[k].shape}, the file {found[k].shape}" for k in both if own[k].shape != found[k].shape]
    missing, unexpected = [k for k in own if k not in found], [k for k in found if k not in own]
    if (wrong or missing or unexpected) and not skip:
        named = (("missing", missing), ("unexpected", unexpected))
        parts = wrong + [f"{what}: {', '.join(names)}" for what, names in named if names]
        raise ValueError("[load_weights] the weights do not fit the model:\n  " + "\n  ".join(parts))
    if skip and (wrong or missing or unexpected):
        warnings.warn(f"[load_weights] left out: {'; '.join([*wrong, *missing, *unexpected])}", stacklevel=4)
    fitting = {k: t for k, t in found.items() if k in own and own[k].shape == t.shape}
    model.load_state_dict(fitting, strict=False)


__all__ = [
    "clone_model", "custom_object_scope", "load_model", "model_from_json", "register_keras_serializable", "save_model",
]  # fmt: skip
