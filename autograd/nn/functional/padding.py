"""Padding: with a value, or with the input's own elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import create
from ...op import public
from ...ops.views import pad as constant
from ...tensor import Tensor

_MODES = ("constant", "reflect", "replicate", "circular")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """input with elements around it: (before, after) pairs from the last dimension backwards; negative sizes cut.

    mode: "constant" (`value`, 0), "reflect" (mirrored at the border element), "replicate" (the border element),
    "circular" (from the other end). Those of the input's own elements pad the last 1 to 3 dimensions.
    """
    if mode not in _MODES:
        raise ValueError(f"[pad] mode is one of {', '.join(_MODES)}; got {mode!r}")
    if mode == "constant":
        return constant(input, tuple(pad), value=value)
    if value is not None and value != 0:
        raise ValueError(f"[pad] a value goes with mode='constant'; got mode={mode!r} and value={value}")
    pairs = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad) - 1, 2)]
    n = len(pairs)
    if len(pad) % 2 or not 1 <= n <= 3 or input.ndim not in (n + 1, n + 2):
        raise ValueError(
            f"[pad] mode={mode!r} takes (before, after) pairs for all of [N, C, ...] or [C, ...] but N and C; "
            f"got {tuple(pad)} for shape {input.shape}"
        )
    x = input
    for axis, (before, after) in zip(range(input.ndim - 1, -1, -1), pairs, strict=False):
        if before or after:
            made = max(x.shape[axis] + before + after, 0)
            create.check_room((*x.shape[:axis], made, *x.shape[axis + 1 :]), x.dtype, x.device)  # before a table of that size
            table = _positions(input.shape[axis], before, after, mode)
            x = x.index_select(axis, create.place(table, x.device))
    return x


def _positions(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """Where each element of the padded axis comes from."""
    limit = {"reflect": size - 1, "circular": size, "replicate": max(before, after)}[mode]
    if not size or max(before, after) > limit or size + before + after < 1:
        most = f"at most {limit} each"
        raise ValueError(f"[pad] mode={mode!r} cannot add {before} and {after} to a dimension of size {size}; {most}")
    at = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(at, 0, size - 1)
    if mode == "circular":  # what is cut off does not come back on the other side
        kept = np.arange(max(-before, 0), size - max(-after, 0))
        return kept[np.arange(-max(before, 0), len(kept) + max(after, 0)) % len(kept)]
    return size - 1 - np.abs(size - 1 - np.abs(at))


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """input with `value` around it, or less of it where sizes are negative."""
    return constant(input, tuple(pad), value=value)


public(constant_pad_nd, method=False)
