"""What several families share: reductions of losses, checks, sizes given once for all dimensions."""

from __future__ import annotations

import operator
from typing import Any

from ...tensor import Tensor


def check_reduction(reduction: str, op: str) -> None:
    """ValueError unless "none", "mean" or "sum"."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'[{op}] reduction is "none", "mean" or "sum"; got {reduction!r}')


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss itself, its mean or its sum."""
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def same_shape(input: Tensor, target: Tensor, op: str) -> None:
    """ValueError for unequal shapes: a loss of tensors that broadcast is nearly always a mistake."""
    if input.shape != target.shape:
        raise ValueError(
            f"[{op}] input and target must have one shape (they are not broadcast); got {input.shape} and {target.shape}. "
            "reshape or expand one of them"
        )


def spread(value: Any, n: int, name: str, op: str) -> tuple[int, ...]:
    """A whole number for all of n dimensions, or one for each, as a tuple."""
    try:
        values = (operator.index(value),) * n if hasattr(value, "__index__") else tuple(operator.index(v) for v in value)
    except TypeError:
        raise TypeError(f"[{op}] {name} is a whole number or one for each dimension; got {value!r}") from None
    if len(values) == 1:
        values *= n
    if len(values) != n:
        raise ValueError(f"[{op}] {name} is a whole number or {n} of them; got {value!r}")
    return values
