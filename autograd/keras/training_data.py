"""What fit, evaluate and predict take their batches from: arrays, generators, and anything that can be iterated over."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import create, random
from ..tensor import Tensor
from .tree import leaves, mapped


def as_arrays(data: Any) -> Any:
    """Lists of numbers and what NumPy understands (pandas, …) as arrays; tensors and arrays as they are, at any depth."""
    if data is None or isinstance(data, Tensor | np.ndarray):
        return data
    if isinstance(data, dict):
        return {k: as_arrays(v) for k, v in data.items()}
    if isinstance(data, list | tuple) and any(isinstance(x, np.ndarray | Tensor | dict) or hasattr(x, "__array__") for x in data):
        return type(data)(as_arrays(x) for x in data)
    array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        given = f"{type(data).__name__} with dtype {array.dtype}"
        raise TypeError(f"[fit] data are arrays or tensors of numbers, lists or dicts of them, or batches; got {given}")
    return array


def is_arrays(x: Any) -> bool:
    """Whether x is data to cut into batches, rather than something that gives batches."""
    if isinstance(x, Tensor | np.ndarray | list | tuple | dict) or hasattr(x, "__array__"):
        return True
    if hasattr(x, "__iter__") or hasattr(x, "__next__") or hasattr(x, "__getitem__"):
        return False
    raise TypeError(f"[fit] x is arrays, tensors, lists or dicts of them, a generator or a loader; got {type(x).__name__}")


def unpack(batch: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of a batch: x, (x,), (x, y) or (x, y, sample_weight)."""
    if not isinstance(batch, tuple | list):
        return batch, None, None
    if not 1 <= len(batch) <= 3:
        raise ValueError(f"[fit] a batch is x, (x, y) or (x, y, sample_weight); got {len(batch)} parts")
    return (*batch, None, None)[:3]


def split(x: Any, y: Any, weight: Any, share: float) -> tuple[tuple, tuple]:
    """The first samples for training, and the last `share` of them for validation, in the order in which they came."""
    if not 0 < share < 1:
        raise ValueError(f"[fit] validation_split is between 0 and 1; got {share}")
    data = tuple(as_arrays(d) for d in (x, y, weight))
    count = _count(data)
    at = math.floor(count * (1 - share))
    if at in (0, count):
        raise ValueError(f"[fit] validation_split={share} of {count} samples leaves one part empty")
    cut: Callable = lambda part: mapped(lambda a: None if a is None else a[part], data)
    return cut(slice(0, at)), cut(slice(at, count))


def _count(data: Any) -> int:
    sizes = {int(a.shape[0]) if a.shape else -1 for a in leaves(data) if a is not None}
    if not sizes:
        raise ValueError("[fit] got no data: give x")
    if len(sizes) > 1 or -1 in sizes:
        shapes = [a.shape for a in leaves(data) if a is not None]
        raise ValueError(f"[fit] x, y and sample_weight hold the same number of samples; got shapes {shapes}")
    return sizes.pop()


def class_weights(y: Any, weights: dict) -> np.ndarray:
    """The weight of each sample's class; 1 for classes that are not in `weights`. One-hot rows count as their class."""
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.ndim > 1:
        labels = labels[..., 0] if labels.shape[-1] == 1 else labels.argmax(-1)
    found = np.ones(labels.shape[0])
    whole = np.rint(labels).astype(np.int64)
    for i in range(len(found)):
        found[i] = weights.get(int(whole[i]), 1.0)
    return found


class Batches:
    """Rounds of batches (x, y, sample_weight); each iteration is one epoch.

    Arrays are cut into batches of batch_size (32), the last one with what is left; shuffle: in the order of one
    ag.randperm(samples) an epoch; "batch": whole batches in random order. A generator goes on from epoch to epoch; other
    iterables start anew.
    steps: so many batches are an epoch; arrays and generators go on where the epoch before ended.
    """

    def __init__(self, x: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int | None = None,
                 steps: int | None = None, shuffle: bool | str = False, class_weight: dict | None = None):  # fmt: skip
        if batch_size is not None and (not isinstance(batch_size, int | np.integer) or batch_size < 1):
            raise ValueError(f"[fit] batch_size is a positive integer; got {batch_size!r}")
        if steps is not None and (not isinstance(steps, int | np.integer) or steps < 1):
            raise ValueError(f"[fit] steps_per_epoch is a positive integer or None; got {steps!r}")
        if shuffle not in (True, False, "batch"):
            raise ValueError(f'[fit] shuffle is True, False or "batch"; got {shuffle!r}')
        if class_weight is not None and sample_weight is not None:
            raise ValueError("[fit] class_weight and sample_weight cannot both be given; multiply them into sample_weight")
        self.steps, self.shuffle, self.class_weight = steps, shuffle, class_weight
        self._going: Iterator | None = None
        self.arrays: Any = None
        if is_arrays(x):
            self.arrays = tuple(as_arrays(d) for d in (x, y, sample_weight))
            self._spread_weight()
            self.samples = _count(self.arrays)
            self.batch_size = batch_size or (math.ceil(self.samples / steps) if steps else 32)
            self.available: int | None = math.ceil(self.samples / self.batch_size)
        else:
            if y is not None or sample_weight is not None or batch_size is not None:
                hint = "y, sample_weight and batch_size are not given beside it"
                raise ValueError(f"[fit] x gives whole batches, (x, y) or (x, y, sample_weight): {hint}")
            self.source = x
            self.endless = hasattr(x, "__next__")
            self.available = len(x) if hasattr(x, "__len__") and not self.endless else None

    def _spread_weight(self) -> None:
        """One array of weights for several outputs goes to each."""
        x, y, w = self.arrays
        if isinstance(y, list | tuple | dict):
            if self.class_weight is not None:
                raise ValueError("[fit] class_weight is for models with one output; use sample_weight, one array an output")
            if w is not None and not isinstance(w, list | tuple | dict):
                self.arrays = (x, y, mapped(lambda _: w, y))

    @property
    def num_batches(self) -> int | None:
        """Batches an epoch; None when it is not known."""
        return self.steps or self.available

    def __iter__(self) -> Iterator[tuple]:
        resume = self.steps is not None or (self.arrays is None and self.endless)
        source = self._going if resume and self._going is not None else self._round()
        self._going = source
        count = 0
        while self.steps is None or count < self.steps:
            try:
                batch = next(source)
            except StopIteration:
                self._going = None
                if self.steps is not None and count < self.steps:
                    if self.arrays is not None and count == 0:
                        source = self._going = self._round()  # the epoch before took the last batch
                        continue
                    warnings.warn(f"[fit] the data ended after {count} of {self.steps} batches of this epoch", stacklevel=3)
                break
            count += 1
            yield self._weighed(batch)
        if not count:
            raise ValueError("[fit] there are no batches (left): one epoch uses a generator up unless steps_per_epoch is given")
        if self.num_batches is None and not (self.arrays is None and self.endless and self._going is not None):
            self.available = count

    def _round(self) -> Iterator:
        if self.arrays is None:
            if self.endless:
                return self.source
            if hasattr(self.source, "__iter__"):
                return iter(self.source)
            return (self.source[i] for i in range(len(self.source)))
        return self._cut()

    def _cut(self) -> Iterator:
        size, order = self.batch_size, None
        starts = np.arange(self.available or 0) * size
        if self.shuffle == "batch":
            starts = starts[np.asarray(random.randperm(len(starts), device="cpu").numpy())]
        elif self.shuffle:
            order = random.randperm(self.samples, device="cpu").numpy()
        for start in starts.tolist():
            part = slice(start, min(start + size, self.samples)) if order is None else order[start : start + size]
            yield mapped(lambda a, part=part: None if a is None else _taken(a, part), self.arrays)

    def _weighed(self, batch: Any) -> tuple[Any, Any, Any]:
        x, y, w = unpack(batch)
        if self.class_weight is not None:
            if w is not None or isinstance(y, list | tuple | dict):
                raise ValueError("[fit] class_weight goes with one output, and without sample weights in the batches")
            w = class_weights(y, self.class_weight)
        return x, y, w


def _taken(a: Any, part: Any) -> Any:
    if isinstance(a, Tensor) and not isinstance(part, slice):
        return a.index_select(0, create.from_numpy(part).to(a.device))
    return a[part]
