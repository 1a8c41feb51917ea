"""How losses and metrics weigh and add up values: masks, sample weights, reductions. Keras 3's rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import create
from ..ops.select import where
from ..tensor import Tensor

REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "mean_with_sample_weight", "none", None)


def mask_of(value: Any) -> Tensor | None:
    """The mask that a layer left on its output: True where there is something."""
    return getattr(value, "_keras_mask", None)


def joined_mask(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Both masks at once."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def same_rank(a: Tensor, b: Tensor, expand: bool = True) -> tuple[Tensor, Tensor]:
    """Add or drop one last axis of size 1, where one of the two has it and the other has not.

    A vector is expanded (unless not `expand`), anything else of more dimensions is squeezed.
    """
    if a.ndim == b.ndim + 1 and a.shape[-1] == 1:
        return (a, b.unsqueeze(-1)) if b.ndim == 1 and expand else (a.squeeze(-1), b)
    if b.ndim == a.ndim + 1 and b.shape[-1] == 1:
        return (a.unsqueeze(-1), b) if a.ndim == 1 and expand else (a, b.squeeze(-1))
    return a, b


def divide_no_nan(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where b is 0; neither the value nor the gradient becomes NaN."""
    empty = b == 0
    return where(empty, a.zeros_like(), a / where(empty, b.ones_like(), b))


def as_weight(weight: Any, like: Tensor) -> Tensor:
    """A weight or mask as a Tensor beside `like`."""
    t = weight if isinstance(weight, Tensor) else create.as_tensor(np.asarray(weight))
    return t.to(like.device, like.dtype)


def with_mask(weight: Tensor | None, mask: Any, like: Tensor, average: bool) -> Tensor | None:
    """The sample weights times the mask. average: scaled so that an average over all places is one over those that count."""
    if mask is None:
        return weight
    m = as_weight(mask, like)
    if average:
        m = m * divide_no_nan(m.new_full((), float(math.prod(m.shape))), m.sum())
    if weight is None:
        return m
    m, weight = same_rank(m, weight)
    return weight * spread(m, weight.ndim) if m.ndim <= weight.ndim else spread(weight, m.ndim) * m


def spread(weight: Tensor, ndim: int) -> Tensor:
    """The weight with axes of size 1 at the end, up to ndim dimensions."""
    return weight.reshape(weight.shape + (1,) * (ndim - weight.ndim)) if weight.ndim < ndim else weight


def reduce_weighted(values: Tensor, sample_weight: Any, mask: Any, reduction: str | None) -> Tensor:
    """One number of the losses of all samples, as `reduction` says.

    ValueError when the weights do not fit the values.
    """
    weight = None if sample_weight is None else as_weight(sample_weight, values)
    weight = with_mask(weight, mask, values, reduction in ("mean", "sum_over_batch_size"))
    if weight is not None:
        values, weight = same_rank(values, weight)
        fits = values.ndim >= weight.ndim and all(w in (1, v) for w, v in zip(weight.shape, values.shape))
        if not fits:
            raise ValueError(f"[loss] sample weights have the shape of the losses, {values.shape}, or of their first axes; "
                             f"got {weight.shape}")  # fmt: skip
        values = values * spread(weight, values.ndim)
    if reduction in ("none", None) or values.shape in ((), (0,)):
        return values
    total = values.sum()
    if reduction == "sum":
        return total
    if reduction == "mean_with_sample_weight" and weight is not None:
        return divide_no_nan(total, weight.sum())
    return total * (1.0 / max(math.prod(values.shape), 1))
