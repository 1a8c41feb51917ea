"""Operations between ranks on tensors. A tensor on a GPU goes over the host; what was moved counts in stats()."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from .. import dtypes
from ..aliasing import write
from ..create import place
from ..grad_mode import state
from ..tensor import Tensor
from .backend import backend

_MOST = {"max": np.maximum, "min": np.minimum}
_OPS = ("sum", "mean", *_MOST)


def all_reduce(t: Tensor, op: str = "sum") -> Tensor:
    """t = the sum over all ranks ("mean", "max", "min"), in place and the same bits on every rank; returns t.

    Not recorded: gradients do not go through it. 16-bit types are summed in float32.
    ValueError for another op, TypeError for the mean of integers or bools.
    """
    values = _values(t, "all_reduce")
    if op not in _OPS:
        raise ValueError(f"[all_reduce] op is one of {', '.join(_OPS)}; got {op!r}")
    if op == "mean" and not t.dtype.is_floating_point:
        raise TypeError(f"[all_reduce] the mean is for floating point; got {t.dtype}")
    group = backend()
    if op in _MOST:
        values = reduce(_MOST[op], group.all_gather(values))
    else:
        group.all_reduce(values)
        if op == "mean":
            values /= group.size
    return _put(t, values, "all_reduce")


def broadcast(t: Tensor, src: int = 0) -> Tensor:
    """t = rank src's t, in place on every rank; returns t. ValueError for a rank that there is not."""
    group = backend()
    if not 0 <= src < group.size:
        raise ValueError(f"[broadcast] src is a rank from 0 to {group.size - 1}; got {src}")
    values = _values(t, "broadcast")
    group.broadcast(values, src)
    return t if group.rank == src else _put(t, values, "broadcast")


def all_gather(t: Tensor) -> list[Tensor]:
    """Every rank's t, by rank, as new tensors on t's device. All have one shape and dtype."""
    found = backend().all_gather(_values(t, "all_gather"))
    return [place(dtypes.converted(a, t.dtype.numpy, copy=False), t.device) for a in found]


def _values(t: Any, name: str) -> np.ndarray:
    """A copy of t's values as NumPy can add them; 16-bit floats as float32."""
    if not isinstance(t, Tensor):
        raise TypeError(f"[{name}] expected a Tensor; got {type(t).__name__}")
    if t.node is not None and state.enabled and name != "all_gather":
        raise RuntimeError(f"[{name}] changes its tensor without a record, which would lose its history; pass t.detach()")
    kind = np.dtype(np.float32) if t.dtype in dtypes.SHORT else t.dtype.numpy
    return np.asarray(dtypes.converted(t._host(), kind))  # of a 0-d bfloat16 NumPy makes a scalar


def _put(t: Tensor, values: np.ndarray, name: str) -> Tensor:
    write(t, place(dtypes.converted(np.asarray(values), t.dtype.numpy, copy=False), t.device).array, name)
    return t
