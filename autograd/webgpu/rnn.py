"""Launchers of the recurrent kernels: a workgroup runs whole sequences for four batch rows, in one dispatch."""

from __future__ import annotations

from typing import Any


def fits(cell: str, units: int, width: int) -> bool:
    """Whether a kernel holds the state of a step."""
    return False


class Forward:
    """The forward launcher of a cell."""

    def __init__(self, cell: str):
        self.cell = cell

    def __call__(self, *inputs: Any, **attrs: Any) -> tuple:
        raise NotImplementedError(self.cell)


class Backward(Forward):
    """The backward launcher of a cell."""
