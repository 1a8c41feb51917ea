"""Who gets which samples: every batch is shared out over the ranks, none is dropped, none is given twice."""

from __future__ import annotations

from collections.abc import Iterator, Sized

import numpy as np

from ..data.sampler import Sampler
from .backend import backend


class ShardedSampler(Sampler):
    """This rank's share of every global batch of batch_size samples: what DataLoader(batch_sampler=...) takes.

    for (x, y), total in zip(loader, sampler.totals): with model.sync(len(x), total): ... Every rank gets as many batches.
    Shares differ by one sample at most, the first ranks' are the larger ones; a share may be empty where a batch has fewer
    samples than there are ranks, and the last batch is as short as it comes.
    shuffle: in an order that seed and set_epoch(epoch) alone decide, the same on all ranks. rank, size: the group's.
    """

    def __init__(self, data_source: Sized, batch_size: int, shuffle: bool = True, seed: int = 0, rank: int | None = None,
                 size: int | None = None):  # fmt: skip
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"[ShardedSampler] batch_size must be a positive integer; got {batch_size}")
        self.data_source, self.batch_size, self.shuffle, self.seed, self.epoch = data_source, batch_size, shuffle, seed, 0
        self.rank = backend().rank if rank is None else rank
        self.size = backend().size if size is None else size
        if not 0 <= self.rank < self.size:
            raise ValueError(f"[ShardedSampler] rank is from 0 to size - 1; got rank {self.rank} of {self.size}")

    def set_epoch(self, epoch: int) -> None:
        """Which round comes next: each has an order of its own."""
        self.epoch = epoch

    @property
    def totals(self) -> list[int]:
        """The size of every global batch."""
        size = len(self.data_source)
        return [min(self.batch_size, size - start) for start in range(0, size, self.batch_size)]

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self.data_source))
        if self.shuffle:
            order = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, self.epoch]))).permutation(order)
        start = 0
        for total in self.totals:
            first, last = (start + share(total, self.size, r) for r in (self.rank, self.rank + 1))
            yield order[first:last].tolist()
            start += total

    def __len__(self) -> int:
        return -(-len(self.data_source) // self.batch_size)


def share(total: int, size: int, rank: int) -> int:
    """Where the share of `rank` begins in a batch of `total` samples: shares of total / size, the first ones rounded up."""
    return rank * (total // size) + min(rank, total % size)
