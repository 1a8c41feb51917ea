"""Datasets: what can be asked for its samples by number, or iterated over."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..random import Generator, drawing_from, randperm
from ..tensor import Tensor, wrap


class Dataset:
    """Base of datasets with a length: a subclass writes __getitem__(i) and __len__().

    gather(indices), where a dataset has it, gives at once what default_collate would make of those samples.
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"[Dataset] {type(self).__name__} has no __getitem__()")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of datasets that are streams: a subclass writes __iter__().

    With several workers each iterates over a copy of its own: share out the samples by get_worker_info().
    """

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"[IterableDataset] {type(self).__name__} has no __iter__()")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Sample i is (t[i] for each tensor). ValueError unless all have the same first size."""

    def __init__(self, *tensors: Tensor):
        sizes = [t.shape[0] if t.ndim else None for t in tensors]
        if not tensors or None in sizes or len(set(sizes)) != 1:
            raise ValueError(f"[TensorDataset] tensors share their first size; got shapes {[t.shape for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple:
        return tuple(t[index] for t in self.tensors)

    def gather(self, indices: Sequence[int]) -> list:
        """The samples of these numbers as one batch."""
        rows = np.asarray(indices, dtype=np.int64)
        return [wrap(t.array[rows]) if t.array.__class__ is np.ndarray and not t.requires_grad else t[wrap(rows).to(t.device)]
                for t in self.tensors]  # fmt: skip

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset):
    """Datasets side by side: sample i is (d[i] for each dataset), or {name: d[i]} when they are given by name.

    ValueError for none or for both kinds, and unless all have one length.
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if bool(args) == bool(kwargs):
            raise ValueError("[StackDataset] give datasets either in order or by name, at least one")
        self.datasets: Any = args or kwargs
        self._parts = list(args or kwargs.values())
        sizes = [len(d) for d in self._parts]  # type: ignore[arg-type]
        if len(set(sizes)) > 1:
            raise ValueError(f"[StackDataset] datasets must have one length; got {sizes}")

    def __getitem__(self, index: Any) -> Any:
        sample = [d[index] for d in self._parts]
        return dict(zip(self.datasets, sample, strict=True)) if isinstance(self.datasets, dict) else tuple(sample)

    def __len__(self) -> int:
        return len(self._parts[0])  # type: ignore[arg-type]


class Subset(Dataset):
    """The samples of `dataset` at these indices, in this order."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices
        if hasattr(dataset, "gather"):
            self.gather = self._gather

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return [self.dataset[self.indices[i]] for i in index]
        return self.dataset[self.indices[index]]

    def _gather(self, indices: Sequence[int]) -> Any:
        return self.dataset.gather([self.indices[i] for i in indices])  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other. ValueError for none, TypeError for a stream."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("[ConcatDataset] got no datasets")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise TypeError("[ConcatDataset] an IterableDataset has no length; use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"[ConcatDataset] index {index} is out of range for {len(self)} samples")
        which = bisect.bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator:
        for dataset in self.datasets:
            yield from dataset  # type: ignore[misc]

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)  # type: ignore[arg-type,misc]


def random_split(dataset: Dataset, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Subsets of these lengths that share no sample, drawn from the common stream or from `generator`.

    lengths that add up to 1 are shares: rounded down, what is left given to the first ones, one each.
    ValueError when the lengths do not add up to the dataset's.
    """
    size = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9 and any(not isinstance(n, int) for n in lengths):
        if any(not 0 <= share <= 1 for share in lengths):
            raise ValueError(f"[random_split] shares are in [0, 1]; got {list(lengths)}")
        whole = [math.floor(size * share) for share in lengths]
        left = size - sum(whole)
        lengths = [n + left // len(whole) + (i < left % len(whole)) for i, n in enumerate(whole)]
    if any(n < 0 or n != int(n) for n in lengths):
        raise ValueError(f"[random_split] lengths are whole numbers from 0 on, or shares that add up to 1; got {list(lengths)}")
    if sum(lengths) != size:
        raise ValueError(f"[random_split] lengths must add up to {size}, or to 1; got {list(lengths)}")
    with drawing_from(generator):
        order = randperm(size, device="cpu").tolist()
    ends = list(itertools.accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for end, n in zip(ends, lengths, strict=True)]
