"""How tensors print: PyTorch's form, with device and grad_fn where they say something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import dtypes

if TYPE_CHECKING:
    from .tensor import Tensor

EDGE, THRESHOLD, WIDTH = 3, 1000, 80


def tensor_repr(t: Tensor) -> str:
    """`tensor([1., 2.], device='wgpu:0', grad_fn=<MulBackward>)`; long tensors are shortened as PyTorch does."""
    array = t._values()
    suffix = []
    if array.size == 0 and array.ndim != 1:
        suffix.append(f"size={tuple(array.shape)}")
    if str(t.device) != "cpu":
        suffix.append(f"device='{t.device}'")
    expected = (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_)
    if t.dtype not in expected or (array.size == 0 and t.dtype is not dtypes.get_default_dtype()):
        suffix.append(f"dtype={t.dtype}")
    if t.node is not None:
        suffix.append(f"grad_fn={t.node!r}")
    elif t._requires_grad:
        suffix.append("requires_grad=True")
    head = "Parameter containing:\ntensor(" if type(t).__name__ == "Parameter" else "tensor("
    body = _values(array, len("tensor("))
    return head + ", ".join([body, *suffix]) + ")"


def _values(array: np.ndarray, indent: int) -> str:
    if array.size == 0:
        return "[]"
    shown = array.astype(np.float32) if array.dtype == np.float16 else array
    text = np.array2string(
        shown, separator=", ", prefix=" " * indent, threshold=THRESHOLD, edgeitems=EDGE, max_line_width=WIDTH,
        formatter=_formatter(shown),  # type: ignore[arg-type]
    )  # fmt: skip
    return text


def _formatter(array: np.ndarray) -> dict:
    """One width for all shown numbers: four decimals, whole numbers with a bare point, e-notation for wild ranges."""
    if array.dtype.kind == "b":
        return {"bool": lambda v: str(bool(v)) if array.ndim == 0 else str(bool(v)).rjust(5)}
    sample = _sample(array)
    if array.dtype.kind != "f":
        width = max(len(str(v)) for v in sample.ravel().tolist())
        return {"int": lambda v: str(v).rjust(width if array.ndim else 0)}
    finite = np.abs(sample[np.isfinite(sample)].astype(np.float64))
    nonzero = finite[finite > 0]
    if nonzero.size == 0 or bool((finite == np.floor(finite)).all()):
        style = "{:.4e}" if nonzero.size and nonzero.max() >= 1e8 else "{:.0f}."
    else:
        low, high = nonzero.min(), nonzero.max()
        style = "{:.4e}" if high >= 1e8 or low < 1e-4 or (high / low > 1000 and high >= 1e5) else "{:.4f}"

    def one(v: float) -> str:
        return style.format(v) if np.isfinite(v) else str(float(v))

    width = max(len(one(v)) for v in sample.ravel().tolist())
    return {"float": lambda v: one(v).rjust(width if array.ndim else 0)}


def _sample(array: np.ndarray) -> np.ndarray:
    """The elements that will be printed."""
    if array.size <= THRESHOLD:
        return array
    for axis, n in enumerate(array.shape):
        if n > 2 * EDGE:
            array = np.take(array, [*range(EDGE), *range(n - EDGE, n)], axis=axis)
    return array
