"""Samplers: the order in which a loader asks for samples. All draw from the stream that ag.manual_seed starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any

import numpy as np

from .. import random
from ..dtypes import float64
from ..random import Generator, drawing_from
from ..tensor import Tensor


class Sampler:
    """Base of samplers: a subclass writes __iter__(), which gives indices, and __len__() where it is known."""

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"[Sampler] {type(self).__name__} has no __iter__()")


class SequentialSampler(Sampler):
    """0, 1, 2, … to the end of data_source."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All of data_source in random order; num_samples: so many, in rounds of random order, or with replacement."""

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None):  # fmt: skip
        if num_samples is not None and num_samples <= 0:
            raise ValueError(f"[RandomSampler] num_samples must be positive; got {num_samples}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._count = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices one round gives."""
        return len(self.data_source) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        size, wanted = len(self.data_source), self.num_samples
        if not size:
            return
        while wanted > 0:
            with drawing_from(self.generator):
                drawn = random.randint(size, wanted, device="cpu") if self.replacement else random.randperm(size, device="cpu")
            yield from drawn.tolist()[:wanted]
            wanted -= drawn.numel()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """These indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        with drawing_from(self.generator):
            order = random.randperm(len(self.indices), device="cpu").tolist()
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples indices, i with a probability in proportion to weights[i].

    replacement=False: each at most once; drawn by the largest of log(u) / weight (Efraimidis, Spirakis, 2006).
    """

    def __init__(self, weights: Sequence[float] | Tensor, num_samples: int, replacement: bool = True,
                 generator: Generator | None = None):  # fmt: skip
        values = weights.tolist() if isinstance(weights, Tensor) else weights
        self.weights = np.asarray(values, dtype=np.float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator
        if self.weights.ndim != 1 or not (self.weights >= 0).all() or not 0 < self.weights.sum() < np.inf:
            raise ValueError("[WeightedRandomSampler] weights are a vector of numbers from 0 on, not all 0")
        if num_samples <= 0:
            raise ValueError(f"[WeightedRandomSampler] num_samples must be positive; got {num_samples}")
        if not replacement and num_samples > (self.weights > 0).sum():
            raise ValueError(
                f"[WeightedRandomSampler] {num_samples} samples without replacement need as many weights above 0; got "
                f"{(self.weights > 0).sum()}"
            )

    def __iter__(self) -> Iterator[int]:
        count = self.num_samples if self.replacement else len(self.weights)
        with drawing_from(self.generator):
            u = random.rand(count, dtype=float64, device="cpu").numpy()
        if self.replacement:
            steps = np.cumsum(self.weights)
            chosen = np.searchsorted(steps, u * steps[-1], side="right")
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                keys = np.where(self.weights > 0, np.log(u) / self.weights, -np.inf)
            chosen = np.argsort(-keys, kind="stable")[: self.num_samples]
        return iter(chosen.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler; drop_last leaves out a last one that is shorter."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"[BatchSampler] batch_size must be a positive integer; got {batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"[BatchSampler] drop_last is True or False; got {drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)
