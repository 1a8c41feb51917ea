"""The processes of one machine: ranks that share a block of memory, and meet by semaphores.

Every operation is one step for each piece of the array: a rank writes its piece into its slot, meets the others, and reads
theirs. There are two sets of slots, used in turns: who has met the others in a step knows that all have done reading the
set of the step before, so one meeting a step is enough. Sums are taken in the order of the ranks, by each rank for itself:
the same additions everywhere, so the same bits.
"""

from __future__ import annotations

import time
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from .. import dtypes
from .backend import WORDS, Backend, check_claims, claim

SLOT = 1 << 20  # bytes of an array that travel in one step
_LINE = 64  # what two processors write stands on two cache lines
_CLAIM = 8 * WORDS  # bytes: two lines
_FAILED = 0  # the first word of the block: a rank failed
_PATIENCE = 0.2  # seconds between two looks at who is still there


class RankLost(RuntimeError):
    """Another rank failed or ended: not this rank's fault."""


class Link:
    """What the parent makes and hands to its workers: the block of memory and the semaphores.

    The block: one line of flags; a line for each rank with the number of steps it has begun and whether it has left; two
    sets of slots, each with a claim: what the rank thinks is being done.
    """

    def __init__(self, context: Any, size: int, timeout: float):
        self.size, self.timeout = size, timeout
        self.semaphores = [(context.Semaphore(0), context.Semaphore(0)) for _ in range(size)]
        self._memory: SharedMemory | None = SharedMemory(create=True, size=self.nbytes())
        self.name = self._memory.name
        _bytes(self._memory)[: _LINE * (1 + size)] = 0

    def nbytes(self) -> int:
        """Of the block."""
        return _LINE * (1 + self.size) + 2 * self.size * (_CLAIM + SLOT)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_memory": None}

    def open(self) -> SharedMemory:
        """The block, in a worker."""
        return SharedMemory(self.name)

    def fail(self) -> None:
        """Tell all ranks that one failed: whoever waits stops waiting."""
        if self._memory is not None:
            _bytes(self._memory)[:8].view(np.int64)[_FAILED] = 1

    def remove(self) -> None:
        """Give the block back to the system."""
        if self._memory is not None:
            self._memory.close()
            self._memory.unlink()
            self._memory = None


class Process(Backend):
    """One rank of those that spawn() started."""

    name = "process"

    def __init__(self, link: Link, rank: int):
        super().__init__()
        self.rank, self.size, self._link = rank, link.size, link
        self.local_rank = rank
        self._memory = link.open()
        whole = _bytes(self._memory)
        lines = whole[: _LINE * (1 + link.size)].view(np.int64).reshape(1 + link.size, -1)
        self._flags, self._begun, self._left = lines[0], lines[1:, 0], lines[1:, 1]
        slots = whole[lines.nbytes : link.nbytes()].reshape(2, link.size, _CLAIM + SLOT)
        self._claims = slots[:, :, :_CLAIM].view(np.int64)  # (set, rank, words)
        self._slots = slots[:, :, _CLAIM:]
        self._steps = 0

    # -- meeting ------------------------------------------------------------------------------------

    def _meet(self) -> None:
        """Wait until every rank has written its slot of this step."""
        turn = self._steps % 2
        self._steps += 1
        self._begun[self.rank] = self._steps
        for r, pair in enumerate(self._link.semaphores):
            if r != self.rank:
                pair[turn].release()
        mine, deadline = self._link.semaphores[self.rank][turn], None
        for _ in range(self.size - 1):
            while not mine.acquire(True, _PATIENCE):
                deadline = deadline or time.monotonic() + self._link.timeout
                self._look(deadline)

    def _look(self, deadline: float) -> None:
        """RankLost, or RuntimeError after the deadline, when waiting is in vain."""
        if self._flags[_FAILED]:
            raise RankLost(f"[distributed] rank {self.rank} stops: another rank failed")
        late = [r for r in range(self.size) if self._begun[r] < self._steps]
        left = [r for r in late if self._left[r]]
        if left:
            raise RankLost(
                f"[distributed] rank {self.rank} waits for rank {left[0]}, which has ended. Do all ranks take as many steps?"
            )
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"[distributed] rank {self.rank} waited {self._link.timeout:g} s for ranks {late}. Do all ranks call the same "
                "operations? spawn(timeout=...) waits longer"
            )

    def _step(self, told: np.ndarray, piece: np.ndarray, writes: bool = True) -> np.ndarray:
        """One step of what is told: hand over a piece; the slots of all ranks, as many bytes of each, as the piece's dtype."""
        turn, count = self._steps % 2, piece.nbytes
        claims, slots = self._claims[turn], self._slots[turn]
        claims[self.rank] = told
        if writes:
            slots[self.rank, :count].view(piece.dtype)[:] = piece
        self._meet()
        check_claims(claims)
        return slots[:, :count].view(piece.dtype)

    # -- the operations -----------------------------------------------------------------------------

    def _all_reduce(self, array: np.ndarray) -> None:
        short, told = array.dtype in _SHORT, claim("all_reduce", array)
        for piece in _pieces(array):
            theirs = self._step(told, piece)
            with np.errstate(all="ignore"):
                if short:  # added up in float32, and rounded once
                    wide = [dtypes.converted(t, np.dtype(np.float32)) for t in theirs]
                    piece[:] = dtypes.converted(sum(wide[1:], wide[0]), array.dtype)
                elif self.size > 1:
                    np.add(theirs[0], theirs[1], out=piece)
                    for other in theirs[2:]:
                        np.add(piece, other, out=piece)

    def _broadcast(self, array: np.ndarray, src: int) -> None:
        told = claim("broadcast", array, src)
        for piece in _pieces(array):
            theirs = self._step(told, piece, self.rank == src)
            if self.rank != src:
                piece[:] = theirs[src]

    def _all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        found, told = [np.empty_like(array) for _ in range(self.size)], claim("all_gather", array)
        for piece, *targets in zip(_pieces(array), *map(_pieces, found)):
            for target, theirs in zip(targets, self._step(told, piece)):
                target[:] = theirs
        return found

    def _barrier(self) -> None:
        self._step(claim("barrier"), _NOTHING)

    def finish(self) -> None:
        """Leave: whoever waits for this rank in a later step is told."""
        super().finish()
        self._left[self.rank] = 1
        del self._flags, self._begun, self._left, self._claims, self._slots
        self._memory.close()


_NOTHING = np.empty(0, np.uint8)
_SHORT = {kind.numpy for kind in dtypes.SHORT}


def _bytes(memory: SharedMemory) -> np.ndarray:
    return np.frombuffer(memory.buf, np.uint8)  # type: ignore[arg-type]


def _pieces(array: np.ndarray) -> list[np.ndarray]:
    """The array as flat pieces that fit into a slot; of nothing one empty piece, for which the ranks meet too."""
    flat, count = array.reshape(-1), SLOT // array.itemsize
    return [flat[start : start + count] for start in range(0, max(flat.size, 1), count)]
