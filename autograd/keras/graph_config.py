"""Configurations of models: their layers, the calls that connect them, and what comes out of each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import dtypes
from . import graph
from .saving import deserialize_layer, serialize_layer
from .tree import leaves


def sequential_config(model: Any) -> dict:
    """Sequential.get_config."""
    entries = [serialize_layer(layer) for layer in model.layers]
    first = None if model._first is None else model._first.get_config()
    seen = model.__dict__.get("_seen_dtype")
    kind = None if seen is None else seen.name
    function = model._function
    outputs = None if function is None else [_encode(x, _spec) for x in (function.inputs, *(n.outputs for n in function.nodes))]
    own = {"name": model.name, "trainable": model._trainable}
    return {**own, "input": first, "input_dtype": kind, "layers": entries, "outputs": outputs}


def sequential_model(cls: type, config: Mapping) -> Any:
    """Sequential.from_config."""
    first = [] if config["input"] is None else [graph.InputLayer.from_config(config["input"])]
    layers = [deserialize_layer(entry) for entry in config["layers"]]
    model = cls(name=config["name"], trainable=config["trainable"])
    if config["input_dtype"] is not None:
        model.__dict__["_seen_dtype"] = dtypes.as_dtype(config["input_dtype"])
    told = [_decode(t, _made_spec) for t in config.get("outputs") or ()]  # of the input, then of each layer
    return model._filled([*first, *layers], (told[0][0], told[1:]) if told else None)


def graph_config(model: Any) -> dict:
    """Model.get_config: its layers, and the calls that connect them, by numbers of layers and tensors."""
    function = model._function
    layers = function.layers
    number = {id(layer): i for i, layer in enumerate(layers)}
    symbols = {id(x): i for i, x in enumerate(function.flat_inputs)}
    encode = lambda value: _encode(value, lambda x: {"tensor": symbols[id(x)]})
    nodes = []
    for node in function.nodes:
        args, kwargs = (encode(v) for v in (list(node.args), node.kwargs))
        nodes.append({"layer": number[id(node.layer)], "args": args, "kwargs": kwargs, "outputs": _encode(node.outputs, _spec)})
        for x in leaves(node.outputs):
            symbols[id(x)] = len(symbols)
    made = [x.node.layer for x in function.flat_inputs]
    starts = [number[id(m)] if isinstance(m, graph.InputLayer) else _virtual(x) for m, x in zip(made, function.flat_inputs)]
    return {
        "name": model.name, "trainable": model._trainable, "layers": [serialize_layer(layer) for layer in layers],
        "starts": starts, "nodes": nodes, "inputs": encode(function.inputs), "outputs": encode(function.outputs),
    }  # fmt: skip


def _virtual(x: Any) -> dict:
    """An input that is another model's inner tensor, as an InputLayer's config."""
    return {"batch_shape": x.shape, "dtype": x.dtype.name, "name": x.name}


def graph_model(cls: type, config: Mapping) -> Any:
    """Model.from_config."""
    layers = [deserialize_layer(entry) for entry in config["layers"]]
    symbols = [layers[s].output if isinstance(s, int) else graph.InputLayer(**s).output for s in config["starts"]]
    decode = lambda value: _decode(value, lambda i: symbols[i])
    for node in config["nodes"]:
        args, kwargs = (decode(node[k]) for k in ("args", "kwargs"))
        layer, told = layers[node["layer"]], node.get("outputs")
        with graph.told(None if told is None else _decode(told, _made_spec)):
            symbols += leaves(layer(*args, **kwargs))
    inputs, outputs = (decode(config[k]) for k in ("inputs", "outputs"))
    return cls(inputs=inputs, outputs=outputs, name=config["name"], trainable=config["trainable"])


def _spec(x: Any) -> dict:
    return {"tensor": [list(x.shape), x.dtype.name]}


def _made_spec(plain: Any) -> tuple:
    """(shape, dtype) of what _spec wrote. ValueError for anything else."""
    if not (isinstance(plain, list | tuple) and len(plain) == 2 and isinstance(plain[0], list | tuple)):
        raise ValueError(f"[load] an output is [shape, dtype]; got {str(plain)[:80]}")
    if any(n is not None and (not isinstance(n, int) or n < 0) for n in plain[0]):
        raise ValueError(f"[load] an output's sizes are integers from 0 on, or None; got {str(plain[0])[:80]}")
    return tuple(plain[0]), dtypes.as_dtype(plain[1])


def _encode(value: Any, leaf: Callable) -> Any:
    if isinstance(value, graph.SymbolicTensor):
        return leaf(value)
    if isinstance(value, dict):
        return {"dict": {k: _encode(v, leaf) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return {"list" if isinstance(value, list) else "tuple": [_encode(v, leaf) for v in value]}
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"[save] a layer was called with a {type(value).__name__}, which a configuration cannot hold")
    return value


def _decode(value: Any, leaf: Callable) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tensor":
        return leaf(inner)
    if kind == "dict":
        return {k: _decode(v, leaf) for k, v in inner.items()}
    items = [_decode(v, leaf) for v in inner]
    return items if kind == "list" else tuple(items)
