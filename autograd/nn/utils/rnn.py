"""Sequences of different lengths as one tensor: padded, or packed step by step without padding, as PyTorch does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...create import from_numpy, full
from ...ops.views import cat, stack
from ...tensor import Tensor


class PackedSequence(NamedTuple):
    """Sequences without padding: `data` [sum of lengths, *] holds step 0 of all of them, then step 1 of those that have
    one, …, longest sequence first; `batch_sizes` [longest] int64 on the CPU says how many each step has. `sorted_indices`
    and `unsorted_indices` [B] lead from the user's order to that and back; None when they are one."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """data in another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        moved = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *moved)

    @property
    def batch_first(self) -> bool:
        """Steps come first, always."""
        return False


def _counts(lengths: Any, op: str) -> np.ndarray:
    """lengths as positive whole numbers on the host."""
    n = np.asarray(lengths.cpu() if isinstance(lengths, Tensor) else lengths)
    if n.ndim != 1 or n.dtype.kind not in "iu" or not n.size:
        raise ValueError(f"[{op}] lengths are a vector of at least one whole number; got {n.dtype} {n.shape}")
    if n.min() < 1:
        raise ValueError(f"[{op}] every sequence needs at least one step; got lengths {n.tolist()}")
    return n.astype(np.int64)


def _index(values: np.ndarray, like: Tensor) -> Tensor:
    return from_numpy(np.ascontiguousarray(values, np.int64)).to(like.device)


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """[T, B, *] (batch_first: [B, T, *]) with `lengths` [B] -> PackedSequence; what lies behind a length is left out.

    enforce_sorted: the lengths must fall already; False sorts the sequences and remembers the order.
    ValueError for lengths below 1, above T, of the wrong count, or not sorted when they must be.
    """
    x = input.transpose(0, 1) if batch_first else input
    n = _counts(lengths, "pack_padded_sequence")
    if len(n) != x.shape[1] or n.max() > len(x):
        raise ValueError(
            f"[pack_padded_sequence] expected {x.shape[1]} lengths of at most {len(x)} for {input.shape}; got {n.tolist()}"
        )
    order = np.argsort(-n, kind="stable")
    changed = bool((order != np.arange(len(n))).any())
    if enforce_sorted and (np.diff(n) > 0).any():
        raise ValueError(f"[pack_padded_sequence] lengths must fall; got {n.tolist()}. Pass enforce_sorted=False")
    if not enforce_sorted and changed:
        x = x.index_select(1, _index(order, x))
        n = n[order]
    sizes = (np.arange(n.max())[:, None] < n).sum(1)
    rows = np.concatenate([t * x.shape[1] + np.arange(size) for t, size in enumerate(sizes)])
    data = x.reshape(len(x) * x.shape[1], *x.shape[2:]).index_select(0, _index(rows, x))
    if enforce_sorted:
        return PackedSequence(data, from_numpy(sizes))
    return PackedSequence(data, from_numpy(sizes), _index(order, x), _index(np.argsort(order), x))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Undo pack_padded_sequence: ([T, B, *] with padding_value behind each length, lengths [B] int64 on the CPU).

    T is the longest length, or total_length, which may not be shorter (ValueError).
    """
    data, sizes = sequence.data, sequence.batch_sizes.numpy()
    steps, batch = len(sizes), int(sizes[0])
    total = steps if total_length is None else total_length
    if total < steps:
        raise ValueError(f"[pad_packed_sequence] total_length must be at least the longest length {steps}; got {total}")
    rows = np.full((total, batch), len(data), np.int64)  # one behind the last: the padding
    for t, (start, size) in enumerate(zip(np.cumsum(sizes) - sizes, sizes, strict=True)):
        rows[t, :size] = start + np.arange(size)
    lengths = (np.arange(batch) < sizes[:, None]).sum(0)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices.cpu().numpy()
        rows, lengths = rows[:, back], lengths[back]
    if (rows == len(data)).any():
        data = cat([data, full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)])
    y = data.index_select(0, _index(rows.reshape(-1), data)).reshape(total, batch, *data.shape[1:])
    return (y.transpose(0, 1) if batch_first else y), from_numpy(lengths)


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:  # fmt: skip
    """Sequences [T_i, *] -> [longest, B, *] (batch_first: [B, longest, *]), filled up with padding_value."""
    if padding_side not in ("right", "left"):
        raise ValueError(f"[pad_sequence] padding_side is 'right' or 'left'; got {padding_side!r}")
    given = list(sequences)
    if not given or any(s.ndim == 0 or s.shape[1:] != given[0].shape[1:] for s in given):
        named = ", ".join(str(s.shape) for s in given)
        raise ValueError(f"[pad_sequence] expected tensors [T_i, *] that agree behind T_i; got {named or 'nothing'}")
    longest, parts = max(len(s) for s in given), []
    for s in given:
        if len(s) < longest:
            fill = full((longest - len(s), *s.shape[1:]), padding_value, dtype=s.dtype, device=s.device)
            s = cat([s, fill] if padding_side == "right" else [fill, s])
        parts.append(s)
    return stack(parts, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Undo pad_sequence: the first lengths[b] steps of every sequence b."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[b, :n] for b, n in enumerate(_counts(lengths, "unpad_sequence").tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences [T_i, *] -> PackedSequence; longest first unless enforce_sorted=False."""
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo pack_sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences)
    return unpad_sequence(padded, lengths)
