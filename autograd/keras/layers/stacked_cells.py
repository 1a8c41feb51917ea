"""StackedRNNCells: cells one above the other."""

from __future__ import annotations

import copy
from typing import Any

from ...nn.module import Module
from ...tensor import Tensor
from ..layer import Layer
from ..tree import leaves, mapped


class StackedRNNCells(Layer):
    """Cells one above the other as one: each step runs through all of them. states: one entry a cell, as its state_size."""

    def __init__(self, cells: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.cells = list(cells)
        if not self.cells or not all(hasattr(c, "state_size") for c in self.cells):
            raise ValueError(f"[StackedRNNCells] cells are objects with a state_size, at least one; got {cells}")
        for i, cell in enumerate(self.cells):
            if isinstance(cell, Module):
                self.register_module(f"cell_{i}", cell)

    @property
    def state_size(self) -> list:
        """The state_size of every cell."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> int:
        """The last cell's."""
        last = self.cells[-1]
        return getattr(last, "output_size", None) or next(iter(leaves(last.state_size)))

    def build(self, input_shape: Any) -> None:
        """Build cell by cell."""
        shape = tuple(input_shape)
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(shape)
            shape = (*shape[:-1], getattr(cell, "output_size", None) or next(iter(leaves(cell.state_size))))

    def call(self, inputs: Tensor, states: Any) -> tuple[Tensor, list]:
        """(the last cell's output, the states in the same nesting)."""
        flat = iter(list(leaves(states)))
        new = []
        for cell in self.cells:
            own = mapped(lambda _, flat=flat: next(flat), cell.state_size)
            inputs, after = cell(inputs, own if isinstance(own, list | tuple) else [own])
            new.append(after)
        return inputs, new

    def reset_dropout_mask(self) -> None:
        """See Cell."""
        for cell in self.cells:
            if hasattr(cell, "reset_dropout_mask"):
                cell.reset_dropout_mask()

    def reset_recurrent_dropout_mask(self) -> None:
        """See Cell."""
        for cell in self.cells:
            if hasattr(cell, "reset_recurrent_dropout_mask"):
                cell.reset_recurrent_dropout_mask()

    def get_config(self) -> dict:
        """The cells as {"class_name", "config"}."""
        return {**super().get_config(), "cells": [cell_config(cell) for cell in self.cells]}

    @classmethod
    def from_config(cls, config: dict, custom_objects: dict | None = None) -> Any:
        """The stack of a config; custom_objects holds the classes of cells of one's own."""
        cells = [saving().deserialize_layer(c, custom_objects) for c in config["cells"]]
        return cls(**{**config, "cells": cells})


def cell_config(cell: Any) -> dict:
    """{"class_name", "config"} of a cell. TypeError for one without get_config()."""
    if not hasattr(cell, "get_config"):
        raise TypeError(f"[RNN] {type(cell).__name__} has no get_config(), so a layer with it has no config either")
    if isinstance(cell, Layer):
        return saving().serialize_layer(cell)
    return {"class_name": type(cell).__name__, "config": cell.get_config()}


def fresh(cell: Any) -> Any:
    """A new cell with the configuration of another. One without get_config() is copied, weights and all."""
    if isinstance(cell, StackedRNNCells):
        return StackedRNNCells([fresh(c) for c in cell.cells], **Layer.get_config(cell))
    return type(cell).from_config(cell.get_config()) if hasattr(cell, "get_config") else copy.deepcopy(cell)


def saving() -> Any:
    """The module that knows all classes by name, and imports the layers."""
    from .. import saving

    return saving
