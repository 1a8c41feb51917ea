"""What the losses share."""

from __future__ import annotations

from ...tensor import Tensor


def check_reduction(reduction: str, op: str) -> None:
    """ValueError unless "none", "mean" or "sum"."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'[{op}] reduction is "none", "mean" or "sum"; got {reduction!r}')


def reduced(loss: Tensor, reduction: str) -> Tensor:
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def same_shape(input: Tensor, target: Tensor, op: str) -> None:
    if input.shape != target.shape:
        raise ValueError(
            f"[{op}] input and target must have one shape (they are not broadcast); got {input.shape} and {target.shape}. "
            "reshape or expand one of them"
        )
