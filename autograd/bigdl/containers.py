"""BigDL's containers and the few layers on tables that Recurrent and BiRecurrent are put together with."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..ops.views import cat
from ..tensor import Tensor
from .module import Module


class Sequential(Module):
    """Modules one after the other: Sequential().add(a).add(b). Any nn.Module may be added."""

    def __init__(self) -> None:
        super().__init__()

    def add(self, module: nn.Module) -> Sequential:
        """Put a module at the end; returns self."""
        if not isinstance(module, nn.Module):
            raise TypeError(f"[Sequential] add() takes an nn.Module; got {type(module).__name__}")
        self.register_module(str(len(self._modules)), module)
        return self

    def compute(self, input: Any) -> Any:
        """The last module's output."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __len__(self) -> int:
        return len(self._modules)


def _table(op: str, input: Any) -> list[Tensor]:
    """The tensors of a table that has at least one. TypeError for anything else."""
    if not isinstance(input, tuple | list) or not input or not all(isinstance(t, Tensor) for t in input):
        raise TypeError(f"[{op}] takes a table, a tuple of Tensors; got {type(input).__name__}")
    return list(input)


class CAddTable(Module):
    """The sum of a table's tensors."""

    def compute(self, input: Any) -> Tensor:
        """x1 + x2 + …"""
        first, *others = _table("CAddTable", input)
        for other in others:
            first = first + other
        return first


class JoinTable(Module):
    """A table's tensors joined along `dimension`, counted from 1, or from the end if negative.

    n_input_dims: how many dimensions a sample has; tensors with one more, the batch, are joined one dimension further.
    JoinTable(2, 2) joins features of [T, H] and of [B, T, H]. ValueError for a dimension that there is not.
    """

    def __init__(self, dimension: int, n_input_dims: int = -1):
        super().__init__()
        if not dimension:
            raise ValueError("[JoinTable] dimensions are counted from 1, or from -1; got 0")
        self.dimension, self.n_input_dims = dimension, n_input_dims

    def compute(self, input: Any) -> Tensor:
        """The tensors side by side."""
        tensors = _table("JoinTable", input)
        count = tensors[0].ndim
        dim = self.dimension - 1 if self.dimension > 0 else count + self.dimension
        if self.dimension > 0 and 0 < self.n_input_dims == count - 1:
            dim += 1
        if not 0 <= dim < count:
            raise ValueError(f"[JoinTable] dimension {self.dimension} is none of a tensor of shape {tensors[0].shape}")
        return cat(tensors, dim)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.dimension}, {self.n_input_dims}"


class Select(Module):
    """One entry along a dimension, both counted from 1, or from the end if negative: Select(2, -1) is the last step."""

    def __init__(self, dimension: int, index: int):
        super().__init__()
        if not dimension or not index:
            raise ValueError(f"[Select] dimension and index are counted from 1, or from -1; got {dimension}, {index}")
        self.dimension, self.index = dimension, index

    def compute(self, input: Tensor) -> Tensor:
        """x without that dimension."""
        dim, index = (n - 1 if n > 0 else n for n in (self.dimension, self.index))
        return input.select(dim, index)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.dimension}, {self.index}"
