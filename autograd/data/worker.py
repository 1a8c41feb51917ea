"""What loads batches: at once, in threads, or in processes."""

from __future__ import annotations

import pickle
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from itertools import islice
from multiprocessing import get_context
from typing import Any, NamedTuple

from ..random import drawing_apart
from .collate import default_collate
from .dataset import IterableDataset

END = "the end of a stream"  # a string: it must stay itself on the way from a process


class WorkerInfo(NamedTuple):
    """Which worker this is: its number, how many there are, the seed of its draws, its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here(threading.local):
    """The worker that runs in this thread, or in this process."""

    info: WorkerInfo | None = None
    worker: Worker | None = None


_here = _Here()


def get_worker_info() -> WorkerInfo | None:
    """Of the worker that this code runs in; None outside of one."""
    return _here.info


class Fetcher:
    """Makes a batch of what a sampler says: a list of indices, one index, or for a stream how many samples."""

    def __init__(self, dataset: Any, collate: Callable, batched: bool, drop_last: bool):
        self.dataset, self.collate, self.batched, self.drop_last = dataset, collate, batched, drop_last
        self.stream = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def fetch(self, wanted: Any) -> Any:
        """The next batch, or END."""
        if self.stream is not None:
            return self._next(wanted)
        if not self.batched:
            return self.collate(self.dataset[wanted])
        if self.collate is default_collate and hasattr(self.dataset, "gather"):
            return self.dataset.gather(wanted)
        if hasattr(self.dataset, "__getitems__"):
            return self.collate(self.dataset.__getitems__(wanted))
        return self.collate([self.dataset[i] for i in wanted])

    def _next(self, wanted: Any) -> Any:
        samples = list(islice(self.stream, wanted if self.batched else 1))  # type: ignore[arg-type]
        if not samples or (self.batched and self.drop_last and len(samples) < wanted):
            return END
        return self.collate(samples if self.batched else samples[0])


class Worker:
    """One worker: in a thread or process of its own it makes every num_workers-th batch.

    What a batch draws depends on the seed and on its number alone: not on how many workers there are, nor on time.
    """

    def __init__(self, info: WorkerInfo, init: Callable | None, recipe: tuple):
        self.info, self.init, self.recipe = info, init, recipe
        self.fetcher: Fetcher | None = None

    def fetch(self, number: int, wanted: Any) -> Any:
        """Batch `number`."""
        _here.info = self.info
        with drawing_apart(self.info.seed - self.info.id, number):
            if self.fetcher is None:
                if self.init is not None:
                    self.init(self.info.id)
                self.fetcher = Fetcher(*self.recipe)
            return self.fetcher.fetch(wanted)


def _enter(worker: Worker) -> None:
    _arrived.append(worker)


def _fetch(number: int, wanted: Any) -> Any:
    try:
        return _arrived[0].fetch(number, wanted)
    except Exception as error:
        if _travels(error):
            raise
        trace = "".join(traceback.format_exception(error))
        raise RuntimeError(f"[DataLoader] a worker raised {type(error).__name__}, which does not pickle:\n{trace}") from None


def _travels(error: Exception) -> bool:
    """Whether it arrives from a process; one whose class wants more than its message does not, and would break the pool."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does
        return False
    return True


_arrived: list[Worker] = []  # in a worker process: its worker


class Crew:
    """Workers with their queues. Batches come back in order; an exception comes in its batch's turn.

    processes: the start method of processes ("spawn", "forkserver", "fork"), or None for threads.
    finish: called with each batch in a thread, before it is needed: the upload to a device.
    """

    def __init__(self, workers: list[Worker], processes: Any, finish: Callable | None):
        self.stream = isinstance(workers[0].info.dataset, IterableDataset)
        self.finish = finish
        self.pools: list[Any] = []
        self.calls: list[Callable] = []
        self.last: ThreadPoolExecutor | None = None
        for w in workers:
            if processes is None:
                self.pools.append(ThreadPoolExecutor(1, "data-worker"))
                self.calls.append(w.fetch)
            else:
                context = get_context(processes) if isinstance(processes, str) else processes
                self.pools.append(ProcessPoolExecutor(1, context, initializer=_enter, initargs=(w,)))
                self.calls.append(_fetch)
        if finish is not None:
            self.last = ThreadPoolExecutor(1, "data-upload")

    def run(self, plan: Iterable, ahead: int, timeout: float | None) -> Iterator:
        """The batches of a plan, at most `ahead` of them under way for each worker."""
        waiting: deque[tuple[int, Future]] = deque()
        active = list(range(len(self.pools)))
        numbered = enumerate(plan)
        patient = True
        turn = 0
        try:
            while True:
                while active and len(waiting) < ahead * len(self.pools):
                    try:
                        number, wanted = next(numbered)
                    except StopIteration:
                        active = []
                        break
                    who = active[turn % len(active)]
                    turn += 1
                    waiting.append((who, self._submit(who, number, wanted)))
                if not waiting:
                    return
                who, future = waiting.popleft()
                try:
                    batch = future.result(timeout)
                except Late:
                    if future.done():  # the dataset's own
                        raise
                    patient = False
                    raise RuntimeError(f"[DataLoader] no batch came within {timeout} s (timeout)") from None
                if isinstance(batch, str) and batch == END:
                    active = [w for w in active if w != who]
                    continue
                yield batch
        finally:
            self.close(patient)

    def _submit(self, who: int, number: int, wanted: Any) -> Future:
        future = self.pools[who].submit(self.calls[who], number, wanted)
        if self.last is None:
            return future
        finish: Any = self.finish

        def done() -> Any:
            batch = future.result()
            return batch if isinstance(batch, str) else finish(batch)

        return self.last.submit(done)

    def close(self, patient: bool) -> None:
        """End the workers: what is under way is finished, what waits is dropped."""
        for pool in (*self.pools, *([self.last] if self.last else [])):
            pool.shutdown(wait=False, cancel_futures=True)
        if patient:
            for pool in (*self.pools, *([self.last] if self.last else [])):
                pool.shutdown(wait=True)
