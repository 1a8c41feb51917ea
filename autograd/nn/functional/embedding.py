"""Tables looked up by integers."""

from __future__ import annotations

import numpy as np

from ... import create, dtypes
from ...grad_mode import no_grad
from ...op import public
from ...ops.index import checked_index, take_rows
from ...ops.select import where
from ...tensor import Tensor
from .distance import p_norm


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """The rows of weight [n, d] that input (integers of any shape) names -> [*input, d].

    Rows taken at padding_idx send no gradient back. max_norm: rows that are longer (in the norm of norm_type) are
    first shortened, in place. scale_grad_by_freq divides a row's gradient by how often input names it.
    IndexError for an index outside 0 … n-1; ValueError for sparse=True, which there is none of.
    """
    _check_table(weight, "embedding", sparse)
    index = checked_index(input, weight.shape[0], "embedding")
    if max_norm is not None:
        _shorten(weight, index, max_norm, norm_type)
    rows = take_rows(weight, index)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, index, weight.shape[0])
    if padding_idx is None or not weight.requires_grad:
        return rows
    padding = check_padding(padding_idx, weight.shape[0])
    return where((input == padding).unsqueeze(-1), rows.detach(), rows)


def _check_table(weight: Tensor, op: str, sparse: bool) -> None:
    if weight.ndim != 2:
        raise ValueError(f"[{op}] the weight is a matrix [n, d]; got shape {weight.shape}")
    if sparse:
        raise ValueError(f"[{op}] gradients are dense here; got sparse=True")


def _shorten(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are named and longer than max_norm down to it, in place."""
    with no_grad():
        table = weight.detach()
        length = p_norm(table, norm_type, keepdim=True)
        named = create.ones(index.numel(), device=weight.device)
        used = create.zeros(weight.shape[0], device=weight.device).index_add(0, index.reshape(-1), named)
        scale = where((length > max_norm) & (used > 0).unsqueeze(1), max_norm / (length + 1e-7), 1.0)
        weight.copy_(table * scale)


def _by_frequency(rows: Tensor, index: Tensor, n: int) -> Tensor:
    """The same rows, whose gradient is divided by how often each is named."""
    flat, one = index.reshape(-1), create.ones(index.numel(), dtype=rows.dtype, device=rows.device)
    count = create.zeros(n, dtype=rows.dtype, device=rows.device).index_add(0, flat, one)
    share = count.index_select(0, flat).reciprocal().reshape(*index.shape, 1)
    return rows * share + rows.detach() * (1 - share)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:  # fmt: skip
    """The sum, mean or maximum of the rows of weight [n, d] that each bag names -> [bags, d]; of an empty bag, 0.

    input: [bags, size], or a vector with the bags' starts in `offsets` (and, with include_last_offset, the end).
    per_sample_weights, of input's shape, multiply rows (mode="sum"). Rows at padding_idx do not belong to a bag.
    """
    op = "embedding_bag"
    if weight.dtype.rank == 1 and input.dtype.is_floating_point:  # PyTorch's old order
        input, weight = weight, input
    _check_table(weight, op, sparse)
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f'[{op}] mode is "sum", "mean" or "max"; got {mode!r}')
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        rule = f'per_sample_weights have the shape of input {input.shape} and go with mode="sum"'
        raise ValueError(f"[{op}] {rule}; got {per_sample_weights.shape} and mode={mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError(f'[{op}] scale_grad_by_freq does not go with mode="max"')
    starts, bag = _bags(input, offsets, include_last_offset, op)
    index = checked_index(input.reshape(-1), weight.shape[0], op)
    if max_norm is not None:
        _shorten(weight, index, max_norm, norm_type)
    kept = None
    if padding_idx is not None:
        kept = index != check_padding(padding_idx, weight.shape[0])
        there = kept.detach().cpu().numpy()
        index = index.index_select(0, create.place(np.flatnonzero(there), index.device))
        bag = bag[there]
    if mode == "max":
        return _largest(weight, index, bag, len(starts))
    rows = take_rows(weight, index)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, index, weight.shape[0])
    if per_sample_weights is not None:
        factors = per_sample_weights.reshape(-1)
        factors = factors if kept is None else factors.index_select(0, create.place(np.flatnonzero(there), index.device))
        rows = rows * factors.unsqueeze(1)
    if input.ndim == 2 and kept is None:  # bags of one size
        total = rows.reshape(*input.shape, weight.shape[1]).sum(1)
    else:
        total = weight.new_zeros(len(starts), weight.shape[1]).index_add(0, create.place(bag, weight.device), rows)
    if mode == "sum":
        return total
    sizes = dtypes.converted(np.maximum(np.bincount(bag, minlength=len(starts)), 1), weight.dtype.numpy)
    return total / create.place(sizes[:, None], weight.device)


def _bags(input: Tensor, offsets: Tensor | None, include_last: bool, op: str) -> tuple[np.ndarray, np.ndarray]:
    """Where the bags start, and the bag of each element of the flattened input."""
    count = input.numel()
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(f"[{op}] a matrix of bags takes no offsets")
        starts = np.arange(input.shape[0]) * input.shape[1]
        return starts, np.repeat(np.arange(input.shape[0]), input.shape[1])
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        got = None if offsets is None else offsets.shape
        raise ValueError(f"[{op}] expects input [bags, size], or a vector and a vector of offsets; got {input.shape} and {got}")
    starts = offsets.detach().cpu().numpy().astype(np.int64)
    ends = starts[1:] if include_last else np.append(starts[1:], count)
    starts = starts[: len(ends)]
    if len(starts) and (starts[0] != 0 or (ends < starts).any() or ends[-1] > count):
        raise ValueError(f"[{op}] offsets start with 0, never fall and stay within {count} elements; got {starts.tolist()}")
    return starts, np.repeat(np.arange(len(starts)), ends - starts)


def _largest(weight: Tensor, index: Tensor, bag: np.ndarray, bags: int) -> Tensor:
    """The largest element of each column over each bag: bags of one size, filled up with -inf."""
    sizes = np.bincount(bag, minlength=bags)
    longest = int(sizes.max(initial=0))
    if not longest:
        return weight.new_zeros(bags, weight.shape[1])
    within = np.arange(len(bag)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.zeros((bags, longest), np.int64)
    there = np.zeros((bags, longest, 1), bool)
    place[bag, within], there[bag, within] = np.arange(len(bag)), True
    rows = take_rows(take_rows(weight, index), create.place(place, weight.device))
    y = rows.masked_fill(create.place(~there, weight.device), float("-inf")).max(1)[0]
    return y.masked_fill(create.place((sizes == 0)[:, None], weight.device), 0)


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


public(embedding_bag, method=False)
