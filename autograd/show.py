"""How tensors print: PyTorch's form, with device and grad_fn where they say something."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import dtypes

if TYPE_CHECKING:
    from .tensor import Tensor


class Options(NamedTuple):
    """What set_printoptions sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {"default": Options(), "short": Options(precision=2, edgeitems=2), "full": Options(threshold=math.inf)}
_options = Options()


def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None) -> None:  # fmt: skip
    """How tensors print: digits behind the point; from how many elements on they are shortened, to how many at each end.

    linewidth: in characters. sci_mode: always or never 1.0000e+00, by default where the numbers call for it. What is None
    stays, except sci_mode. profile: "default", "short" or "full" to start from. ValueError for another one.
    """
    global _options
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"[set_printoptions] profile is one of {', '.join(_PROFILES)}; got {profile!r}")
    given: dict[str, Any] = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    base = _options if profile is None else _PROFILES[profile]
    _options = base._replace(sci_mode=sci_mode, **{k: v for k, v in given.items() if v is not None})


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
        shown, separator=", ", prefix=" " * indent, threshold=_options.threshold, edgeitems=_options.edgeitems,  # type: ignore[arg-type]
        max_line_width=_options.linewidth, formatter=_formatter(shown),  # type: ignore[arg-type]
    )  # fmt: skip
    return text


def _formatter(array: np.ndarray) -> dict:
    """One width for all shown numbers: four decimals, whole numbers with a bare point, e-notation for wild ranges."""
    sample = _sample(array)
    if array.dtype.kind == "b":
        longest = 4 if sample.all() else 5
        return {"bool": lambda v: str(bool(v)).rjust(longest if array.ndim else 0)}
    if array.dtype.kind != "f":
        width = max(len(str(v)) for v in sample.ravel().tolist())
        return {"int": lambda v: str(v).rjust(width if array.ndim else 0)}
    finite = np.abs(sample[np.isfinite(sample)].astype(np.float64))
    nonzero = finite[finite > 0]
    whole = nonzero.size == 0 or bool((finite == np.floor(finite)).all())
    wild = _options.sci_mode
    if wild is None:
        low, high = (nonzero.min(), nonzero.max()) if nonzero.size else (1.0, 1.0)
        wild = high >= 1e8 or (not whole and (low < 1e-4 or (high / low > 1000 and high >= 1e5)))
    style = f"{{:.{_options.precision}e}}" if wild else "{:.0f}." if whole else f"{{:.{_options.precision}f}}"

    def one(v: float) -> str:
        return style.format(v) if np.isfinite(v) else str(float(v))

    width = max(len(one(v)) for v in sample.ravel().tolist())
    return {"float": lambda v: one(v).rjust(width if array.ndim else 0)}


def _sample(array: np.ndarray) -> np.ndarray:
    """The elements that will be printed."""
    if array.size <= _options.threshold:
        return array
    edge = _options.edgeitems
    for axis, n in enumerate(array.shape):
        if n > 2 * edge:
            array = np.take(array, [*range(edge), *range(n - edge, n)], axis=axis)
    return array
