"""What every way of communicating has to offer, the one process that needs none, and which of them is in use.

A Backend moves NumPy arrays between ranks; all else (tensors, gradients, modules, samplers) is written once, on top of
it. A new one subclasses Backend, sets rank, size and name, and writes _all_reduce, _broadcast, _all_gather and _barrier.
The base class gives them their public names, keeps one order for what runs behind the program's back and what it waits
for, and counts. Every rank must call the same operations in the same order, with arrays of one shape and dtype: what is waited
for at once is compared first, by claims; what is started goes by a plan that agree() compared before.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import numpy as np

from .. import dtypes

OPERATIONS = ("all_reduce", "broadcast", "all_gather", "barrier")
WORDS = 16  # of a claim
_KINDS = {kind.numpy: i for i, kind in enumerate(dtypes.ALL)}


class Request:
    """An operation under way. wait(): return when it is done, or raise what went wrong with it."""

    def __init__(self, future: Future | None = None):
        self._future = future

    def wait(self) -> None:
        """Until it is done."""
        if self._future is not None:
            self._future.result()


class Backend:
    """Rank `rank` of `size` ranks. Arrays are C-contiguous NumPy arrays of numbers or bools, changed in place.

    stats: calls, bytes (of the arrays handed over) and seconds (spent inside operations, waiting included).
    """

    name = ""
    rank = 0
    size = 1
    local_rank = 0

    def __init__(self) -> None:
        self.stats: dict[str, Any] = {"calls": 0, "bytes": 0, "seconds": 0.0}
        self._thread: ThreadPoolExecutor | None = None
        self._last: Future | None = None  # of what was started last; all before it is done when it is
        self._lock = threading.Lock()  # of stats: two threads count

    # -- what a subclass writes: no checks, called by one thread at a time ---------------------------

    def _all_reduce(self, array: np.ndarray) -> None:
        raise NotImplementedError

    def _broadcast(self, array: np.ndarray, src: int) -> None:
        raise NotImplementedError

    def _all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        raise NotImplementedError

    def _barrier(self) -> None:
        raise NotImplementedError

    def abort(self, error: BaseException) -> NoReturn:
        """End all ranks because of an error on this one, which is raised or shown here."""
        raise error

    def finish(self) -> None:
        """Let go of what the backend holds, after all that was started is done."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None

    # -- what is called -------------------------------------------------------------------------------

    def all_reduce(self, array: np.ndarray) -> None:
        """array = its sum over all ranks, the same bits on every rank."""
        self._now(self._all_reduce, array)

    def broadcast(self, array: np.ndarray, src: int) -> None:
        """array = rank src's."""
        self._now(self._broadcast, array, src)

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        """The arrays of all ranks, by rank: copies."""
        return self._now(self._all_gather, array)

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self._now(self._barrier)

    def start_all_reduce(self, array: np.ndarray) -> Request:
        """all_reduce behind the program's back: leave the array alone until wait() returned. They run in order."""
        return self.start(partial(self._timed, self._all_reduce, array))

    def start(self, work: Callable[[], None]) -> Request:
        """work() behind the program's back, after all that was started before: operations of the subclass, as _all_reduce."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "all-reduce")
        self._last = self._thread.submit(work)
        return Request(self._last)

    def _now(self, operation: Callable, *args: Any) -> Any:
        """Run an operation in this thread, after all that was started."""
        last, self._last = self._last, None
        if last is not None:
            last.exception()  # only waits: whoever holds its request raises it
        return self._timed(operation, *args)

    def _timed(self, operation: Callable, *args: Any) -> Any:
        started = time.perf_counter()
        result = operation(*args)
        with self._lock:
            self.stats["calls"] += 1
            self.stats["bytes"] += sum(a.nbytes for a in args if isinstance(a, np.ndarray))
            self.stats["seconds"] += time.perf_counter() - started
        return result


# -- what ranks have to agree on ------------------------------------------------------------------------


def claim(operation: str, array: np.ndarray | None = None, src: int = 0) -> np.ndarray:
    """What a rank is about to do, as WORDS numbers: the operation, src, bytes, dtype, the count of sizes, and the first sizes."""
    words = np.zeros(WORDS, np.int64)
    words[0] = OPERATIONS.index(operation)
    if array is not None:
        sizes = array.shape[: WORDS - 5]
        words[1:5] = src, array.nbytes, _KINDS.get(array.dtype, -1 - array.dtype.num), array.ndim
        words[5 : 5 + len(sizes)] = sizes
    return words


def check_claims(claims: np.ndarray) -> None:
    """RuntimeError, the same on every rank, that tells what each does, unless the claims [ranks, WORDS] are all one."""
    if (claims != claims[0]).any():
        told = _by_ranks([_told(row) for row in claims.tolist()])
        raise RuntimeError(f"[distributed] the ranks do different things: {told}. All call the same operations in one order")


def _told(words: list[int]) -> str:
    operation, src, nbytes, kind, ndim, *sizes = words
    name = OPERATIONS[operation]
    if name == "barrier":
        return name
    dtype = dtypes.ALL[kind].name if kind >= 0 else f"dtype number {-1 - kind}"
    shape = f"({', '.join(map(str, sizes[:ndim]))}{', …' * (ndim > len(sizes))}{',' * (ndim == 1)})"
    return f"{name} of {dtype} {shape}, {nbytes} bytes" + (f", from rank {src}" if name == "broadcast" else "")


def _by_ranks(texts: list[str]) -> str:
    """rank 0: this; ranks 1, 2: that."""
    ranks: dict[str, list[int]] = {}
    for r, text in enumerate(texts):
        ranks.setdefault(text, []).append(r)
    return "; ".join(f"rank{'s' * (len(r) > 1)} {', '.join(map(str, r))}: {text}" for text, r in ranks.items())


def exchange(group: Backend, plain: Any) -> list:
    """Every rank's plain data (what JSON can say), by rank."""
    raw = np.frombuffer(json.dumps(plain).encode(), np.uint8)
    sizes = [int(a[0]) for a in group.all_gather(np.array([raw.size], np.int64))]
    padded = np.zeros(max(sizes), np.uint8)
    padded[: raw.size] = raw
    return [json.loads(a[:n].tobytes()) for a, n in zip(group.all_gather(padded), sizes)]


def agree(group: Backend, rule: str, rows: list[str]) -> None:
    """ValueError, the same on every rank, with the first row that differs and what it is on which ranks, unless all have the
    same rows. rule: the message's beginning."""
    digest = np.frombuffer(hashlib.sha256("\n".join(rows).encode()).digest(), np.uint8).copy()
    found = group.all_gather(digest)
    other = [r for r, d in enumerate(found) if (d != found[0]).any()]
    if not other:
        return
    told = exchange(group, rows)
    longest = max(map(len, told))
    columns = ([theirs[i] if i < len(theirs) else "nothing more" for theirs in told] for i in range(longest))
    first = next(column for column in columns if len(set(column)) > 1)
    raise ValueError(f"{rule}; those of ranks {other} differ from rank 0's: {_by_ranks(first)}")


class Local(Backend):
    """One process alone: rank 0 of 1."""

    name = "local"

    def _all_reduce(self, array: np.ndarray) -> None:
        pass

    def _broadcast(self, array: np.ndarray, src: int) -> None:
        pass

    def _all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        return [array.copy()]

    def _barrier(self) -> None:
        pass

    def start_all_reduce(self, array: np.ndarray) -> Request:
        """Nothing to wait for."""
        return Request()


_alone = Local()
_used: Backend | None = None


def backend() -> Backend:
    """The one in use. Before init(), and after finish(), a process is alone: rank 0 of 1."""
    return _alone if _used is None else _used


def use(chosen: Backend | None) -> None:
    """Make `chosen` the one in use; None: alone again."""
    global _used
    _used = chosen


def is_initialized() -> bool:
    """Whether this process belongs to a group, by init() or because spawn() started it."""
    return _used is not None


def init(backend: str = "local", **options: Any) -> None:
    """Join the other processes of the program.

    "local": alone, rank 0 of 1. "process": what spawn() started; there it is done already, and init() only checks it.
    "mpi": the processes that mpiexec started (needs mpi4py). Options are the backend's own.
    Without init() a program is alone. RuntimeError when another backend is in use, or "process" outside of spawn().
    """
    if _used is not None:
        if _used.name == backend and not options:
            return
        raise RuntimeError(f"[init] {_used.name!r} is in use already; got {backend!r} {options or ''}. finish() comes first")
    if backend == "mpi":
        from .mpi import MPI

        use(MPI(**options))
    elif backend == "process":
        raise RuntimeError('[init] the "process" backend needs processes: start them with distributed.spawn(function, size)')
    elif backend == "local":
        if options:
            raise TypeError(f'[init] the "local" backend has no options; got {sorted(options)}')
        use(Local())
    else:
        raise ValueError(f'[init] the backends are "local", "process" and "mpi"; got {backend!r}')


def finish() -> None:
    """Leave the group: all that was started is done first. Without init() nothing happens."""
    if _used is not None:
        _used.finish()
        use(None)


def rank() -> int:
    """This process' number, from 0 on."""
    return backend().rank


def local_rank() -> int:
    """This process' number among those of its machine, from 0 on, which may choose its device: f"wgpu:{local_rank()}"."""
    return backend().local_rank


def size() -> int:
    """How many processes there are."""
    return backend().size


def barrier() -> None:
    """Wait until every process is here."""
    backend().barrier()


def stats() -> dict:
    """What was communicated since the start: {"calls", "bytes", "seconds"}, the last with waiting for other ranks."""
    return dict(backend().stats)
