"""BigDL's Recurrent and BiRecurrent: a cell over the steps of a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import nn
from ..tensor import Tensor
from .cell import Cell
from .containers import CAddTable
from .module import Module


class Recurrent(Module):
    """A cell over a sequence: Recurrent().add(GRU(I, H)), [B, T, I] -> [B, T, H], from a hidden state of zeros.

    mask_zero: a step whose input is all zeros outputs 0 and keeps the state. The gradient goes back through all steps,
    and to a hidden state that was set, if it requires grad. ValueError for other shapes.
    """

    cell: Cell | None

    def __init__(self, mask_zero: bool = False):
        super().__init__()
        self.mask_zero = mask_zero
        self.register_module("cell", None)
        self._first: Tensor | None = None
        self._hidden: Tensor | None = None

    def add(self, cell: Cell) -> Recurrent:
        """Set the cell; returns self. TypeError for another module; ValueError for a second cell."""
        if not isinstance(cell, Cell):
            raise TypeError(f"[Recurrent] add() takes a cell, such as bigdl.GRU; got {type(cell).__name__}")
        if self.cell is not None:
            raise ValueError("[Recurrent] has its cell; one more layer is one more Recurrent in a Sequential")
        self.cell = cell
        return self

    def _cell(self) -> Cell:
        if self.cell is None:
            raise RuntimeError("[Recurrent] has no cell; add(bigdl.GRU(input_size, output_size)) first")
        return self.cell

    def compute(self, input: Tensor) -> Tensor:
        """The outputs of all steps."""
        return self.over(input)

    def over(self, input: Tensor, reverse: bool = False) -> Tensor:
        """compute(), or the same from the last step to the first."""
        cell = self._cell()
        if not isinstance(input, Tensor):
            raise TypeError(f"[Recurrent] takes a Tensor [B, T, I]; got {type(input).__name__}")
        if input.ndim != 3:
            raise ValueError(f"[Recurrent] the input must be [B, T, I]; got {input.shape}")
        first, batch = self._first, input.shape[0]
        if first is None:
            first = cell.hid_resize(None, batch, input.shape[2:])
        elif first.shape[0] != batch:
            raise ValueError(f"[Recurrent] the hidden state was set for a batch of {first.shape[0]}; got an input of {batch}")
        mask = np.asarray((input.detach() != 0).any(-1).cpu()).T if self.mask_zero else None
        y, hidden = cell.run(input.transpose(0, 1), first, reverse=reverse, mask=mask)
        self.__dict__["_hidden"] = hidden.detach()
        return y.transpose(0, 1)

    def set_hidden_state(self, hidden: Tensor | None) -> Recurrent:
        """Start from `hidden` [B, H] in every forward from now on; None: from zeros again. Returns self."""
        if hidden is not None and (hidden.ndim != 2 or hidden.shape[1] != self._cell().hidden_size):
            raise ValueError(f"[set_hidden_state] the hidden state must be [B, {self._cell().hidden_size}]; got {hidden.shape}")
        self.__dict__["_first"] = hidden
        return self

    def get_hidden_state(self) -> Tensor:
        """The hidden state [B, H] after the last step of the last forward. RuntimeError before the first."""
        if self._hidden is None:
            raise RuntimeError("[get_hidden_state] needs a forward() before it")
        return self._hidden

    def hid_resize(self, hidden: Tensor | None, batch: int, step_shape: tuple | None = None) -> Tensor:
        """The cell's hid_resize."""
        return self._cell().hid_resize(hidden, batch, step_shape)

    def set_weights(self, weights: Any) -> Recurrent:
        """Copy arrays into the cell's parameters; a dict goes by the cell's names. Returns self."""
        self._cell().set_weights(weights)
        return self

    def _forget(self) -> None:
        super()._forget()
        self.__dict__["_hidden"] = None

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return "mask_zero=True" if self.mask_zero else ""


class BiRecurrent(Module):
    """Two Recurrents over one sequence, from both ends: BiRecurrent().add(GRU(I, H)), [B, T, I] -> [B, T, H].

    The second one starts with a copy of the cell, which then has parameters of its own. merge: the module that makes one
    tensor of the table (forward, backward), both in the input's order of time; None adds them, JoinTable(2, 2) puts
    them side by side, [B, T, 2H]. is_split_input: the cells read one half of the features each.
    """

    def __init__(self, merge: nn.Module | None = None, is_split_input: bool = False):
        super().__init__()
        if merge is not None and not isinstance(merge, nn.Module):
            raise TypeError(f"[BiRecurrent] merge is a module that takes a table; got {type(merge).__name__}")
        self.is_split_input = is_split_input
        self.layer, self.rev_layer = Recurrent(), Recurrent()
        self.merge = CAddTable() if merge is None else merge

    def add(self, cell: Cell) -> BiRecurrent:
        """Set the cell, and a copy of it for the other direction, named …_reverse. Returns self."""
        self.layer.add(cell)
        self.rev_layer.add(cell.clone_module().set_name(cell.get_name() + "_reverse"))
        return self

    def compute(self, input: Tensor) -> Any:
        """What merge makes of both directions."""
        halves = [input, input]
        if self.is_split_input:
            if input.shape[-1] % 2:
                raise ValueError(f"[BiRecurrent] is_split_input needs an even number of features; got {input.shape}")
            halves = input.chunk(2, -1)
        return self.merge((self.layer(halves[0]), self.rev_layer.over(halves[1], reverse=True)))

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return "is_split_input=True" if self.is_split_input else ""
