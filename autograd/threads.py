"""Large work on the CPU in several threads: NumPy lets go of the interpreter while it calculates.

Only elementwise functions that cost more than the memory they move are split (blocks.py), and no sum runs across a
split: every result has the same bits for any number of threads. Products of matrices are threaded by BLAS itself
(OPENBLAS_NUM_THREADS). Chains of short calls (a recurrent step, a block of attention, an optimizer's step) were measured
and lose: two threads that call NumPy every ten microseconds wait for the interpreter longer than they calculate.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from .grad_mode import state

GRAIN = 1 << 10  # elements: parts begin at multiples of it


def _available() -> int:
    """What OMP_NUM_THREADS says, else the cores that this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Pool:
    """Threads that wait for parts of the work, made when first needed. One caller has them at a time."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue = SimpleQueue()
        self.ends: SimpleQueue = SimpleQueue()
        self.busy = threading.Lock()
        self.workers = 0

    def grow(self, workers: int) -> None:
        """Have at least so many threads. They end with the process: they hold nothing that must be put away."""
        while self.workers < workers:
            threading.Thread(target=_serve, args=(self.tasks, self.ends), name="autograd", daemon=True).start()
            self.workers += 1

    def run(self, function: Callable, parts: list[tuple[int, int]]) -> None:
        """function(*part) for all parts, the first in this thread; returns when all have ended, whatever happens."""
        self.grow(len(parts) - 1)
        for part in parts[1:]:
            self.tasks.put((function, part))
        waiting, error = len(parts) - 1, None
        try:
            function(*parts[0])
        except BaseException as mine:
            error = mine
        while waiting:
            try:
                other = self.ends.get()
            except KeyboardInterrupt as interrupt:  # the arrays are still being written
                error = error or interrupt
                continue
            waiting -= 1
            error = error or other
        if error is not None:
            raise error


def _serve(tasks: SimpleQueue, ends: SimpleQueue) -> None:
    while True:
        function, part = tasks.get()
        try:
            state.run(function, *part)
        except BaseException as error:  # it is raised where the work was asked for
            ends.put(error)
        else:
            ends.put(None)
        del function, part  # arrays must not live until the next task


_pool = _Pool()
_count = _available()


def _forget() -> None:
    """After a fork the threads are gone, and a lock may be held for ever."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def set_num_threads(n: int) -> None:
    """Use so many threads for large operations on the CPU. ValueError for less than 1, TypeError for no whole number.

    The default is OMP_NUM_THREADS, or the number of cores that this process may use. It changes no result.
    """
    global _count
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"[set_num_threads] expects a whole number; got {type(n).__name__}")
    if n < 1:
        raise ValueError(f"[set_num_threads] expects a positive number; got {n}")
    _count = n


def get_num_threads() -> int:
    """How many threads large operations on the CPU use."""
    return _count


def split(function: Callable[[int, int], None], size: int, grain: int = GRAIN) -> None:
    """function(start, stop) on parts of range(size) that begin at multiples of grain, each in a thread.

    It is called inside grad_mode.state.run, and so is every part. An exception in any part is raised when all have ended.
    Within another split, or while a thread of the user's has the workers, everything runs here.
    """
    grains = -(-size // grain)
    n = min(_count, grains)
    pool = _pool
    if n < 2 or not pool.busy.acquire(blocking=False):
        function(0, size)
        return
    try:
        pool.run(function, [(grains * i // n * grain, min(grains * (i + 1) // n * grain, size)) for i in range(n)])
    finally:
        pool.busy.release()
