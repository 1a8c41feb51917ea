"""From samples to a batch, and from a batch to a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import create, dtypes
from ..device import Device
from ..ops.views import stack
from ..tensor import Tensor


def default_collate(batch: Sequence) -> Any:
    """Samples joined along a new first dimension.

    Tensors and arrays are stacked, numbers become a tensor (float64, int64, bool), strings stay a list; tuples and lists
    are joined part by part into a list, dictionaries key by key. ValueError for sequences of unequal lengths,
    TypeError for anything else.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, str | bytes):  # NumPy's own too
        return list(batch)
    if isinstance(first, np.ndarray | np.generic):
        return create.from_numpy(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, bool | int | float):
        kind = dtypes.float64 if any(isinstance(x, float) for x in batch) else None
        return create.tensor(list(batch), dtype=kind, device="cpu")
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        sizes = {len(sample) for sample in batch}
        if len(sizes) != 1:
            raise ValueError(f"[default_collate] samples of one batch have the same number of parts; got {sorted(sizes)}")
        parts = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError(
        f"[default_collate] batches are made of tensors, arrays, numbers, strings, dicts and sequences; got "
        f"{type(first).__name__}. Give a collate_fn"
    )


def default_convert(sample: Any) -> Any:
    """Arrays in a sample as tensors, all else as it is: what a loader without batches does."""
    if isinstance(sample, np.ndarray | np.generic) and np.asarray(sample).dtype.kind not in "SUO":
        return create.from_numpy(np.asarray(sample))
    return _mapped(sample, default_convert)


def upload(batch: Any, device: Device) -> Any:
    """The tensors of a batch on a device. float64, which a GPU has not, becomes float32 there."""
    if isinstance(batch, Tensor):
        narrow = device.type != "cpu" and batch.dtype is dtypes.float64
        return batch.to(dtypes.float32).to(device) if narrow else batch.to(device)
    return _mapped(batch, lambda part: upload(part, device))


def _mapped(value: Any, function: Callable) -> Any:
    """`function` of every part of a dictionary or sequence; other things as they are."""
    if isinstance(value, Mapping):
        return _like(value, {key: function(part) for key, part in value.items()})
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return value
    parts = [function(part) for part in value]
    if hasattr(value, "_fields"):
        return type(value)(*parts)
    return type(value)(parts) if isinstance(value, list | tuple) else parts  # type: ignore[call-arg]


def _like(mapping: Mapping, entries: dict) -> Any:
    """The entries in the mapping's own class, where that takes them."""
    try:
        return type(mapping)(entries)  # type: ignore[call-arg]
    except TypeError:
        return entries
