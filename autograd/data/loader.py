"""DataLoader: batches of a dataset, in order or shuffled, loaded ahead of use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from ..device import as_device
from ..random import Generator, drawing_from, randint
from .collate import default_collate, default_convert, upload
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .worker import END, Crew, Fetcher, Worker, WorkerInfo

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset")


class DataLoader:
    """Iterates over batches of a dataset; each iteration is a new round, and several may run at once.

    batch_size: None gives single samples; shuffle: in random order, by ag.manual_seed or `generator`; drop_last: no last
    batch that is shorter; collate_fn: from a list of samples to a batch.
    num_workers: 0 loads when asked; else so many threads, which prefetch prefetch_factor (2) batches each, or processes
    where multiprocessing_context says how to start them ("spawn"); worker_init_fn(number) is called first in each. What
    workers draw at random depends on the seed alone, not on their number. An exception arrives in its batch's turn, as it
    was raised. A round that is left early ends its workers. timeout: seconds to wait for a batch, then RuntimeError; 0 waits on.
    device: where batches go, with workers ahead of use; float64 becomes float32 on a GPU.
    pin_memory, persistent_workers: PyTorch's ways to more speed, which change no batch; there are none here.
    ValueError for options that exclude each other.
    """

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable | None = None,
                 batch_sampler: Iterable | None = None, num_workers: int = 0, collate_fn: Callable | None = None,
                 drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, device: Any = None, pin_memory: bool = False,
                 persistent_workers: bool = False):  # fmt: skip
        if not isinstance(num_workers, int) or num_workers < 0 or timeout < 0:
            raise ValueError(f"[DataLoader] num_workers and timeout must not be negative; got {num_workers} and {timeout}")
        if not num_workers and (prefetch_factor, multiprocessing_context, timeout) != (None, None, 0):
            raise ValueError("[DataLoader] prefetch_factor, multiprocessing_context and timeout need num_workers")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f"[DataLoader] prefetch_factor must be positive; got {prefetch_factor}")
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        self.generator, self.prefetch_factor = generator, prefetch_factor or 2
        self.device = None if device is None else as_device(device)
        self._order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_made" in self.__dict__:
            raise ValueError(f"[DataLoader] {name} cannot be changed, the order of batches is made from it; make a new loader")
        super().__setattr__(name, value)

    def _order(self, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
        stream = isinstance(self.dataset, IterableDataset)
        if stream and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("[DataLoader] a stream has its own order: no shuffle, sampler or batch_sampler")
        if sampler is not None and shuffle:
            raise ValueError("[DataLoader] sampler and shuffle exclude each other")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("[DataLoader] batch_sampler excludes batch_size, shuffle, sampler and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("[DataLoader] batch_size=None has no batches to drop")
        self.batch_size, self.drop_last = batch_size, drop_last
        self._batched = batch_size is not None or batch_sampler is not None
        if sampler is None and not stream:
            sampler = RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)
        self.sampler: Any = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(() if stream else sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator:
        recipe = (self.dataset, self.collate_fn, self._batched, self.drop_last)
        if isinstance(self.dataset, IterableDataset):
            plan: Iterable = repeat(self.batch_size)
        else:
            plan = self.batch_sampler if self._batched else self.sampler
        with drawing_from(self.generator):  # without workers too, so that their number does not change the order
            seed = int(randint(2**31 - 1, (), device="cpu"))
        return self._ahead(plan, recipe, seed) if self.num_workers else self._at_once(plan, Fetcher(*recipe))

    def _at_once(self, plan: Iterable, fetcher: Fetcher) -> Iterator:
        for wanted in plan:
            batch = fetcher.fetch(wanted)
            if isinstance(batch, str) and batch == END:
                return
            yield batch if self.device is None else upload(batch, self.device)

    def _ahead(self, plan: Iterable, recipe: tuple, seed: int) -> Iterator:
        infos = [WorkerInfo(i, self.num_workers, seed + i, self.dataset) for i in range(self.num_workers)]
        workers = [Worker(info, self.worker_init_fn, recipe) for info in infos]
        device = self.device
        finish = None if device is None else lambda batch: upload(batch, device)
        crew = Crew(workers, self.multiprocessing_context, finish)
        return crew.run(plan, self.prefetch_factor, self.timeout or None)

    def __len__(self) -> int:
        """How many batches a round has. TypeError for a stream without a length."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self.batch_sampler if self._batched else self.sampler)  # type: ignore[arg-type]
        if not hasattr(self.dataset, "__len__"):
            raise TypeError(f"[DataLoader] {type(self.dataset).__name__} is a stream without __len__()")
        size, batch = len(self.dataset), self.batch_size or 1
        return size // batch if self.drop_last else -(-size // batch)
