"""ag.tape(loss): what was recorded, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import dtypes
from .device import CPU, Device
from .tape import FREED, Node, Pick
from .tensor import Tensor


@dataclass(frozen=True)
class Entry:
    """One recorded operation.

    op: its name; inputs: for each, the number of the entry it came from, a leaf's name, or None for what wants no
    gradient; shape, dtype, device: the output's; saved: bytes kept for the gradient (0 once they are freed).
    """

    op: str
    inputs: tuple[int | str | None, ...]
    shape: tuple[int, ...]
    dtype: dtypes.DType
    device: Device
    saved: int


class Tape(list[Entry]):
    """Entries, oldest first; prints as a table. `saved` is the sum of bytes, a tensor kept by several counted once."""

    def __init__(self, entries: list[Entry], saved: int):
        super().__init__(entries)
        self.saved = saved

    def __repr__(self) -> str:
        if not self:
            return "nothing was recorded"
        rows = [("#", "op", "inputs", "shape", "dtype", "device", "saved")]
        for i, e in enumerate(self):
            inputs = ", ".join("-" if x is None else f"#{x}" if isinstance(x, int) else x for x in e.inputs)
            rows.append((str(i), e.op, inputs, str(e.shape), e.dtype.name, str(e.device), f"{e.saved:,} B"))
        widths = [max(len(row[c]) for row in rows) for c in range(7)]
        numeric = (0, 6)
        lines = []
        for row in rows:
            cells = [x.rjust(w) if c in numeric else x.ljust(w) for c, (x, w) in enumerate(zip(row, widths, strict=True))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, f"{len(self)} operations, {self.saved:,} bytes saved"])


def tape(output: Tensor, **names: Tensor) -> Tape:
    """The operations that `output` was computed by, oldest first: a list of entries that prints as a table.

    Leaves are called leaf0, leaf1, … with their shape, or as `names` says: ag.tape(loss, x=x, w=w).
    TypeError for what is not a tensor.
    """
    if not isinstance(output, Tensor):
        raise TypeError(f"[tape] expected a Tensor; got {type(output).__name__}")
    nodes = _nodes(output)
    numbers = {node: i for i, node in enumerate(nodes)}
    called: dict[Any, str] = {x: name for name, x in names.items()}
    entries: list[Entry] = []
    sizes: dict[int, int] = {}
    for node in nodes:
        inputs = tuple(_input(e, numbers, called) for e in node.edges)
        kept = _kept(node)
        sizes.update(kept)
        op = f"{node.op.name}[{node.index}]" if isinstance(node, Pick) else node.op.name
        device = CPU if node.gpu is None else node.gpu.device
        entries.append(Entry(op, inputs, node.shape, dtypes.BY_NUMPY[node.dtype], device, sum(kept.values())))
    return Tape(entries, sum(sizes.values()))


def _nodes(output: Tensor) -> list[Node]:
    """All nodes that `output` depends on, oldest first."""
    found: dict[int, Node] = {}
    stack = [output.node] if output.node is not None else []
    while stack:
        node = stack.pop()
        if node.seq not in found:
            found[node.seq] = node
            stack.extend(e for e in node.edges if isinstance(e, Node))
    return [found[seq] for seq in sorted(found, reverse=True)]  # numbers count down


def _input(edge: Any, numbers: dict, called: dict) -> int | str | None:
    if edge is None:
        return None
    if isinstance(edge, Node):
        return numbers[edge]
    if edge not in called:
        taken = sum(name.startswith("leaf") for name in called.values())
        called[edge] = f"leaf{taken} {edge.shape}"
    return called[edge]


def _kept(node: Node) -> dict[int, int]:
    """The bytes of each array that a node keeps, by identity."""
    if node.saved is FREED:
        return {}
    arrays = [x.array for x in node.saved if isinstance(x, Tensor)] + [data for data, _, _ in node.kept]
    return {id(a): a.size * a.dtype.itemsize for a in arrays}
