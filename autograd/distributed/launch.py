"""spawn(): start the ranks of one machine as processes, watch over them, and bring home what they return or raise."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

from . import backend
from .process import Link, Process, RankLost

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")
_GRACE = 2.0  # seconds that ranks have to end by themselves after one failed, and again after they were asked to
_environment = threading.Lock()
_to_parent: Any = None  # in a worker: where report() sends


def spawn(function: Callable, size: int, args: tuple = (), *, timeout: float = 300.0, threads: int = 1,
          listen: Callable | None = None) -> list:  # fmt: skip
    """Run function(*args) in `size` new processes that form a group; what each returned, by rank.

    Inside, rank(), size() and all operations are ready. The processes are fresh ones: function and args are pickled, so
    function stands at the top of a module, and a script starts spawn() under `if __name__ == "__main__":`. Each computes
    with `threads` BLAS threads. timeout: seconds that a rank waits for the others in one operation. listen(message) is
    called here with what a rank passes to report().

    RuntimeError with the traceback of the rank that raised first, or that says how one ended. The others are ended then,
    within seconds, wherever they are. Ctrl-C ends all. TypeError for a function or arguments that cannot be pickled.
    """
    for name, value, kind in (("size", size, int), ("threads", threads, int), ("timeout", timeout, int | float)):
        if not isinstance(value, kind) or isinstance(value, bool) or not value > 0:
            raise ValueError(f"[spawn] {name} is a positive number{' of processes' * (name == 'size')}; got {value!r}")
    check_picklable("spawn", "function", function)
    if not isinstance(args, tuple | list):
        raise TypeError(f"[spawn] args is a tuple of what the function is called with; got {type(args).__name__}")
    for i, a in enumerate(args):
        check_picklable("spawn", f"args[{i}]", a)
    context = get_context("spawn")  # a fork would share the GPU's and the BLAS's state
    link = Link(context, size, timeout)
    crew = _Crew(link, listen)
    try:
        with _threads_in_children(threads):
            for r in range(size):
                crew.start(context, r, function, args)
        return crew.watch()
    finally:
        crew.end()
        link.remove()


def report(message: Any) -> None:
    """In a process that spawn() started: hand `message` to the listen= of its parent. RuntimeError elsewhere."""
    if _to_parent is None:
        raise RuntimeError("[report] only a process that spawn() started has somebody to report to")
    _to_parent.send(("note", message))


def check_picklable(where: str, name: str, value: Any) -> None:
    """TypeError that says what to do, for what cannot be sent to another process."""
    inner = value
    while isinstance(inner, partial):
        inner = inner.func
    where_from = getattr(inner if hasattr(inner, "__qualname__") else type(inner), "__module__", None)
    if where_from == "__main__" and getattr(sys.modules["__main__"], "__spec__", None) is None and not _script():
        raise TypeError(
            f"[{where}] {name} was written in a notebook, at a prompt or with -c, where new processes cannot find it. Write it "
            "in a file beside, and import it"
        )
    try:
        ForkingPickler.dumps(value)
    except RuntimeError as error:
        if "inheritance" not in str(error):  # locks and events are sent while a process starts, and only then
            raise
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"[{where}] {name} is sent to other processes and cannot be pickled: {error}. Lambdas and functions inside "
            "functions cannot: write it at the top of a module (functools.partial adds arguments)"
        ) from error


def _script() -> bool:
    """Whether the program is a file, which new processes can import."""
    return os.path.isfile(getattr(sys.modules["__main__"], "__file__", None) or "")


@contextmanager
def _threads_in_children(count: int) -> Iterator[None]:
    """Inside, new processes find so many BLAS threads in their environment, which NumPy reads when it is imported."""
    with _environment:
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, str(count)))
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class _Crew:
    """The workers of one spawn(), seen from the parent."""

    def __init__(self, link: Link, listen: Callable | None):
        self.link, self.listen = link, listen
        self.workers: list[Any] = []
        self.pipes: list[Any] = []
        self.results: dict[int, Any] = {}
        self.failures: list[tuple[int, bool, str, BaseException | None]] = []  # (rank, by another's fault, text, error)

    def start(self, context: Any, rank: int, function: Callable, args: tuple) -> None:
        """Start one worker."""
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(self.link, rank, function, args, there), name=f"rank-{rank}", daemon=False)
        self.pipes.append(here)
        try:
            worker.start()
        finally:
            there.close()
        self.workers.append(worker)

    def watch(self) -> list:
        """Until all have returned; RuntimeError once one has failed."""
        while len(self.results) < len(self.workers) and not self.failures:
            self._hear(None)
        if self.failures:
            self.link.fail()
            deadline = time.monotonic() + _GRACE
            while len(self.results) + len(self.failures) < len(self.workers) and time.monotonic() < deadline:
                self._hear(deadline - time.monotonic())
            self._raise()
        for worker in self.workers:
            worker.join(_GRACE)
        return [self.results[r] for r in range(len(self.workers))]

    def _hear(self, patience: float | None) -> None:
        """Take what has come from workers that are not done, and note those that ended without a word."""
        failed = {f[0] for f in self.failures}
        open_ = [r for r in range(len(self.workers)) if r not in self.results and r not in failed]
        awaited = [self.pipes[r] for r in open_] + [self.workers[r].sentinel for r in open_]
        ready = connection.wait(awaited, None if patience is None else max(patience, 0.0))
        for r in open_:
            if self.pipes[r] in ready or self.workers[r].sentinel in ready:
                self._take(r)

    def _take(self, r: int) -> None:
        try:
            if not self.pipes[r].poll():  # it ended, and nothing it said is left
                raise EOFError
            kind, *told = self.pipes[r].recv()
        except EOFError:
            self.workers[r].join(_GRACE)
            self.failures.append((r, False, _ending(self.workers[r].exitcode), None))
            return
        if kind == "note" and self.listen is not None:
            self.listen(told[0])
        elif kind == "returned":
            self.results[r] = told[0]
        elif kind == "raised":
            self.failures.append((r, *told))

    def _raise(self) -> NoReturn:
        """The first failure that was a rank's own."""
        rank, _, text, error = sorted(self.failures, key=lambda f: f[1])[0]
        raise RuntimeError(f"[spawn] rank {rank} of {len(self.workers)} {text}") from error

    def end(self) -> None:
        """End whoever is left: politely, then not."""
        alive = [w for w in self.workers if w.is_alive()]
        for worker in alive:
            worker.terminate()
        deadline = time.monotonic() + _GRACE
        for worker in alive:
            worker.join(max(deadline - time.monotonic(), 0.0))
            if worker.is_alive():
                worker.kill()
        for worker in self.workers:
            worker.join()
            worker.close()
        for pipe in self.pipes:
            pipe.close()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"was ended by {name}" + ". Is the shared memory (/dev/shm) full?" * (name == "SIGBUS")
    hint = ". Its own words are above" if code else " before its function returned"
    return f"ended with exit code {code}{hint}"


# -- in the worker ----------------------------------------------------------------------------------


def _work(link: Link, rank: int, function: Callable, args: tuple, pipe: Any) -> None:
    """What a worker process runs."""
    global _to_parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends its workers
    threading.Thread(target=_leave_with_parent, daemon=True, name="parent-watch").start()
    _to_parent = pipe
    group = Process(link, rank)
    backend.use(group)
    try:
        result = function(*args)
        pipe.send(("returned", result))
    except BaseException as error:
        _tell(pipe, error)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # what a thread of ours waits for may never come: nothing is joined on the way out
    if backend._used is not None:
        backend.finish()


def _tell(pipe: Any, error: BaseException) -> None:
    """Send the parent an error with its traceback; as text alone where it cannot be pickled."""
    text = "raised:\n" + "".join(traceback.format_exception(error))
    by_other = isinstance(error, RankLost)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does when it is pickled
        pipe.send(("raised", by_other, text, None))
    else:
        pipe.send(("raised", by_other, text, error))


def _leave_with_parent() -> None:
    """End this process when its parent is gone, however that ended."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
