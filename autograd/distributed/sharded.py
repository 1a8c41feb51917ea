"""ShardedOptimizer: an optimizer whose state is spread over the ranks, each of which updates its share of the parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..aliasing import write
from ..create import place
from ..dtypes import as_dtype
from ..grad_mode import enable_grad, no_grad
from ..optim import SGD, Adam, Optimizer
from ..optim.elementwise import Elementwise
from ..optim.optimizer import with_plain_rate
from ..tensor import Tensor
from .backend import agree, backend, exchange

# Optimizers with one of these treat each element alike, whatever parameter it is of.
_ELEMENTWISE = (Adam.update_group, SGD.update_group, Elementwise.update_group)


class ShardedOptimizer(Optimizer):
    """optimizer_class(params, **defaults), of whose state each rank keeps about 1 / size. The same numbers.

        model = distributed.DataParallel(Net())
        optimizer = distributed.ShardedOptimizer(model.parameters(), optim.AdamW, lr=0.01)

    step() updates this rank's share of the parameters and gathers those of the others. The gradients must be the same on
    all ranks, as DataParallel's are. Optimizers that treat every element alike (all but Adafactor and Muon) get equal
    stretches of all elements one after the other; Adafactor, Muon and those of users get whole parameters, the largest
    first to whom has fewest. An optimizer whose update_group() mixes parameters does not fit.

    Groups, schedules, clipping and scaling work as on the optimizer itself, whose groups it has. Every rank calls step(),
    add_param_group(), state_dict() and load_state_dict(). On the CPU, and on a GPU with SGD, Adam and AdamW, the numbers are
    the same to the bit; a driver may round the other optimizers' kernels differently when their elements are cut elsewhere.
    ValueError for LBFGS, and where ranks have different parameters or gradients for different ones.
    Rajbhandari et al.: ZeRO (arXiv 1910.02054), its first stage.
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], **defaults: Any):
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise TypeError(f"[ShardedOptimizer] expected a class of optimizers, as optim.AdamW; got {optimizer_class!r}")
        if optimizer_class.step is not Optimizer.step:
            raise ValueError(
                f"[ShardedOptimizer] {optimizer_class.__name__} makes its steps from all parameters together, so that every rank "
                "would need all of its state. Use it as it is"
            )
        self.inner = optimizer_class(params, **defaults)  # its groups and formulas; of state it has none
        self.defaults, self.param_groups = self.inner.defaults, self.inner.param_groups
        self.state = {}  # of this rank's piece of each parameter
        self.steps_taken = 0
        self._group = backend()
        self._in_stretches = optimizer_class.update_group in _ELEMENTWISE
        self._loads = [0] * self._group.size
        self._cuts: dict[Tensor, list[tuple[int, int, int]]] = {}  # parameter: (rank, start, stop) of its pieces
        self._deal(list(self._all()))

    def add_param_group(self, param_group: dict) -> None:
        """Train more parameters, with options of their own: {"params": [...], "lr": 0.1}."""
        self.inner.add_param_group(param_group)
        self._deal(self.param_groups[-1]["params"])

    def step(self, closure: Callable | None = None) -> Any:
        """Update every parameter that has a gradient. closure() computes the loss anew first; its value is returned."""
        loss = None
        closure = self._before_step(closure)
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            moving = [p for p in self._all() if p.grad is not None]
            self._check_agreed(moving)
            pieces: dict[Tensor, Tensor] = {}
            for group in self.param_groups:
                ready = []
                for p in group["params"]:
                    g = None if p.grad is None else self.inner._gradient(p, group)
                    piece = self._piece(p)
                    if g is not None and piece is not None:
                        pieces[p] = piece
                        ready.append((piece, self._part(g, p), self.state.setdefault(p, {})))
                self.inner.update_group(ready, with_plain_rate(group))
            self._gather(moving, pieces)
        self.steps_taken += 1
        self._after_step(closure)
        return loss

    # -- who has what ---------------------------------------------------------------------------------

    def _deal(self, params: list[Tensor]) -> None:
        """Give each rank its pieces of these parameters. ValueError where ranks have other parameters or another optimizer."""
        size, name = self._group.size, type(self.inner).__name__
        rows = [f"{name}, parameter {i} {p.shape} {p.dtype.name}" for i, p in enumerate(params)]
        agree(self._group, "[ShardedOptimizer] all ranks have an optimizer of the same parameters", [name, *rows])
        if self._in_stretches:
            total = sum(p.numel() for p in params)
            edges = [total * r // size for r in range(size + 1)]
            start = 0
            for p in params:
                stop = start + p.numel()
                spans = [(r, max(start, edges[r]) - start, min(stop, edges[r + 1]) - start) for r in range(size)]
                self._cuts[p] = [(r, a, b) for r, a, b in spans if a < b]
                start = stop
        else:
            for p in sorted(params, key=lambda p: -p.numel()):
                r = self._loads.index(min(self._loads))
                self._loads[r] += p.numel()
                self._cuts[p] = [(r, 0, p.numel())]

    def _span(self, p: Tensor) -> tuple[int, int] | None:
        """Where this rank's piece of p begins and ends; None when it has none."""
        return next(((a, b) for r, a, b in self._cuts[p] if r == self._group.rank), None)

    def _piece(self, p: Tensor) -> Tensor | None:
        """This rank's piece of a parameter: of its memory where that can be, which is not required."""
        return None if self._span(p) is None else self._part(p.detach(), p)

    def _part(self, t: Tensor, p: Tensor) -> Tensor:
        """What of t, as large as p, belongs to this rank's piece of p."""
        if not self._in_stretches:
            return t
        a, b = self._span(p)  # type: ignore[misc]
        part = t.reshape(-1)[a:b]
        return part if part.device.type == "cpu" else part.clone()  # the GPU's kernels want memory that starts where they do

    def _check_agreed(self, moving: list[Tensor]) -> None:
        ids = set(map(id, moving))
        here = zlib.crc32(bytes(id(p) in ids for p in self._all()))
        found = [int(a[0]) for a in self._group.all_gather(np.array([here], np.int64))]
        if len(set(found)) > 1:
            others = [r for r, digest in enumerate(found) if digest != here]
            raise ValueError(
                f"[ShardedOptimizer] all ranks have gradients for the same parameters; those of ranks {others} differ from rank "
                f"{self._group.rank}'s. Does DataParallel average them?"
            )

    def _gather(self, moving: list[Tensor], pieces: dict[Tensor, Tensor]) -> None:
        """Give all ranks the updated pieces."""
        sizes = [0] * self._group.size
        for p in moving:
            for r, a, b in self._cuts[p]:
                sizes[r] += (b - a) * p.dtype.itemsize
        mine = [_bytes(pieces[p]._host()) for p in moving if p in pieces]
        padded = np.zeros(max(sizes), np.uint8)
        padded[: sizes[self._group.rank]] = np.concatenate(mine) if mine else 0
        found, read = self._group.all_gather(padded), [0] * self._group.size
        for p in moving:
            whole = np.empty(p.numel(), p.dtype.numpy)
            for r, a, b in self._cuts[p]:
                end = read[r] + (b - a) * whole.itemsize
                whole[a:b] = found[r][read[r] : end].view(whole.dtype)
                read[r] = end
            write(p, place(whole.reshape(p.shape), p.device).array, "step")

    # -- saving ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """On rank 0 what the optimizer itself would give, its tensors on the CPU: for it, or for any number of ranks.

        On the others {}: so no rank holds more than its own and rank 0's. Every rank calls it.
        """
        number = {p: i for i, p in enumerate(self._all())}
        mine = {number[p]: entry for p, entry in self.state.items()}
        told = {i: {k: _told(v) for k, v in entry.items()} for i, entry in mine.items()}
        state: dict[int, dict] = {}
        for r, entries in enumerate(exchange(self._group, told)):
            for i, entry in ((int(i), entry) for i, entry in entries.items()):
                slots = state.setdefault(i, {})
                for key, value in entry.items():
                    if isinstance(value, dict):
                        value = np.empty(value["shape"], as_dtype(value["dtype"]).numpy)
                        if r == self._group.rank:
                            value[...] = mine[i][key]._host()
                        self._group.broadcast(value, r)
                    if self._group.rank == 0:
                        slots.setdefault(key, []).append(value)
        if self._group.rank != 0:
            return {}
        params = list(self._all())
        whole = {i: {k: self._joined(params[i], k, v) for k, v in state[i].items()} for i in sorted(state)}
        groups = [{**g, "params": [number[p] for p in g["params"]]} for g in self.param_groups]
        return {"state": whole, "param_groups": groups}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken, by whatever number of ranks, or by the optimizer itself.

        Every rank passes the whole. ValueError when groups, parameters or shapes differ; nothing is changed then.
        """
        if not state_dict:
            raise ValueError(
                f"[ShardedOptimizer.load_state_dict] rank {self._group.rank} got {{}}; every rank passes the whole state, which "
                "state_dict() has on rank 0. Save it, and load the file on each"
            )
        super().load_state_dict(state_dict)
        self.state = {p: entry for p, entry in self.state.items() if self._span(p) is not None}

    def _loaded(self, p: Tensor, entry: dict) -> dict:
        """This rank's piece of one parameter's saved state."""
        whole = self.inner._loaded(p, entry)
        if self._span(p) is None or not self._in_stretches:
            return whole
        return {k: self._part(v, p).clone() if isinstance(v, Tensor) else v for k, v in whole.items()}

    def _joined(self, p: Tensor, key: str, values: list) -> Any:
        """One entry of p's state, of its pieces in order; numbers are the same in all."""
        if not isinstance(values[0], np.ndarray):
            return values[0]
        shape = self.inner.slot_shape(p, key)
        return place(np.concatenate([v.reshape(-1) for v in values]).reshape(shape), "cpu")


def _told(value: Any) -> Any:
    """A number of the state, or what its tensor is like."""
    return {"shape": list(value.shape), "dtype": value.dtype.name} if isinstance(value, Tensor) else value


def _bytes(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8)
