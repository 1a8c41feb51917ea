"""The table that Model.summary() prints: Keras' columns."""

from __future__ import annotations

import math
from typing import Any

from ..nn.module import Module
from .graph import InputLayer, SymbolicTensor
from .tree import leaves, shapes


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.2f} {unit}"
        count /= 1024
    return ""


def _weights(module: Module) -> list:
    own = getattr(module, "weights", None)
    return list(own) if own is not None else [*Module.parameters(module), *module.buffers()]


def _count(weights: list) -> int:
    return sum(math.prod(w.shape) for w in weights)


def model_table(model: Any, line_length: int | None, expand_nested: bool, show_trainable: bool) -> str:
    """See Model.summary."""
    if not model.built:
        raise ValueError(f"[summary] {model.name} is not built yet: call it, fit() it, or build(input_shape)")
    heads = ["Layer (type)", "Output Shape", "Param #"]
    branched = model._function is not None and _is_branched(model)
    heads += ["Connected to"] * branched + ["Trainable"] * show_trainable
    rows = [_row(model, layer, name, 0, branched, show_trainable) for name, layer in _parts(model)]
    if expand_nested:
        rows = [r for name, layer in _parts(model) for r in _expanded(model, layer, name, 0, branched, show_trainable)]
    widths = [max(len(r[c]) for r in [heads, *rows]) for c in range(len(heads))]
    if line_length is not None:
        widths[0] = max(widths[0], line_length - sum(widths[1:]) - 3 * (len(heads) - 1))

    def line(cells: list[str]) -> str:
        return " │ ".join(c.rjust(w) if i == 2 else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths))).rstrip()

    rule = "─┼─".join("─" * w for w in widths)
    own = _weights(model)
    trained = [w for w in own if w.requires_grad]
    fixed = [w for w in own if not w.requires_grad]
    lines = [f'Model: "{model.name}"', line(heads), rule, *map(line, rows), rule]
    for title, found in (("Total", own), ("Trainable", trained), ("Non-trainable", fixed)):
        lines.append(f" {title} params: {_count(found):,} ({_size(sum(w.nbytes for w in found))})")
    if getattr(model, "optimizer", None) is not None and model.optimizer.variables:
        state = model.optimizer.variables
        lines.append(f" Optimizer params: {_count(state):,} ({_size(sum(w.nbytes for w in state))})")
    return "\n".join(lines)


def _parts(model: Any) -> list[tuple[str, Module]]:
    names = {id(m): name for name, m in model._modules.items()}
    rows = model.layers if model._function is None or hasattr(model, "_first") else model._function.layers  # with operators
    return [(getattr(layer, "name", names.get(id(layer), type(layer).__name__.lower())), layer) for layer in rows]


def _expanded(model: Any, layer: Any, name: str, depth: int, branched: bool, trainable: bool) -> list[list[str]]:
    rows = [_row(model, layer, name, depth, branched, trainable)]
    if hasattr(layer, "_function"):
        for inner, part in _parts(layer):
            rows += _expanded(layer, part, inner, depth + 1, branched, trainable)
    return rows


def _row(model: Any, layer: Any, name: str, depth: int, branched: bool, trainable: bool) -> list[str]:
    nodes = [n for n in model._function.nodes if n.layer is layer] if model._function is not None else []
    found = [_shape(n.outputs) for n in nodes] or [_shape(layer.output) if isinstance(layer, InputLayer) else "?"]
    row = ["  " * depth + f"{name} ({type(layer).__name__})", ", ".join(dict.fromkeys(found)), f"{_count(_weights(layer)):,}"]
    if branched:
        row.append(", ".join(x.name for n in nodes for x in n.inputs) or "-")
    if trainable:
        own = _weights(layer)
        kinds = {w.requires_grad for w in own}
        row.append("-" if not kinds else "Y/N" if len(kinds) == 2 else "Y" if True in kinds else "N")
    return row


def _shape(outputs: Any) -> str:
    found = shapes(outputs)
    return str(found) if isinstance(outputs, SymbolicTensor) else ", ".join(map(str, leaves_of(found)))


def leaves_of(found: Any) -> list:
    """The shapes in nested lists and dicts of shapes."""
    if isinstance(found, tuple) and all(n is None or isinstance(n, int) for n in found):
        return [found]
    return [s for part in (found.values() if isinstance(found, dict) else found) for s in leaves_of(part)]


def _is_branched(model: Any) -> bool:
    """Whether the model is more than one line of layers."""
    nodes = model._function.nodes
    return len(model._function.flat_inputs) > 1 or any(len(n.inputs) != 1 for n in nodes) or (
        len({id(x) for n in nodes for x in n.inputs}) < sum(len(list(leaves(n.inputs))) for n in nodes)
    )
