"""Tables looked up by integers, and dropout."""

from __future__ import annotations

from ... import create, dtypes
from ...ops.index import checked_index, take_rows
from ...ops.select import where
from ...random import rand
from ...tensor import Tensor


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); x itself when not training.

    The mask is drawn from the one random stream, so a seed gives the same on both devices.
    """
    check_probability(p, "dropout")
    if not training or p == 0:
        return input
    kept = rand(input.shape, dtype=dtypes.float32, device="cpu").numpy() >= p
    scale = 1 / (1 - p) if p < 1 else 0.0
    mask = create.place(kept.astype(input.dtype.numpy) * input.dtype.numpy.type(scale), input.device)
    return input.mul_(mask) if inplace else input * mask


def check_probability(p: float, op: str) -> None:
    """ValueError unless 0 <= p <= 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"[{op}] p is a probability; got {p}")


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of weight [n, d] that input (integers of any shape) names -> [*input, d].

    Rows taken at padding_idx send no gradient back. IndexError for an index outside 0 … n-1.
    """
    if weight.ndim != 2:
        raise ValueError(f"[embedding] the weight is a matrix [n, d]; got shape {weight.shape}")
    rows = take_rows(weight, checked_index(input, weight.shape[0], "embedding"))
    if padding_idx is None or not weight.requires_grad:
        return rows
    padding = check_padding(padding_idx, weight.shape[0])
    return where((input == padding).unsqueeze(-1), rows.detach(), rows)


def check_padding(index: int, n: int) -> int:
    """padding_idx as a row number; a negative one counts from the end."""
    if not -n <= index < n:
        raise IndexError(f"[embedding] padding_idx must be in [{-n}, {n - 1}]; got {index}")
    return index % n


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 zeros with a one at each index, in a new last dimension of num_classes (-1: the largest index + 1)."""
    if num_classes == -1:
        if not tensor.numel():
            raise ValueError("[one_hot] num_classes cannot be read off an empty tensor; give it")
        num_classes = int(tensor.max().item()) + 1
    if num_classes < 1:
        raise ValueError(f"[one_hot] num_classes must be positive; got {num_classes}")
    index = checked_index(tensor, num_classes, "one_hot")
    return (index.unsqueeze(-1) == create.arange(num_classes, device=tensor.device)).long()
