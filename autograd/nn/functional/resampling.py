"""Resampling to another size: each axis in turn, by its own small matrix of weights or by a table of positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import create, dtypes
from ...ops.matmul import matmul
from ...tensor import Tensor
from .common import spread

_DIMENSIONS = {"linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,)}
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area")


def along(x: Tensor, weights: np.ndarray, axis: int) -> Tensor:
    """x with one axis multiplied by a matrix of weights [new size, size]."""
    matrix = create.place(dtypes.converted(weights.T, x.dtype.numpy), x.device)
    if axis == x.ndim - 1:
        return matmul(x, matrix)
    order = [i for i in range(x.ndim) if i != axis] + [axis]
    back = sorted(range(x.ndim), key=order.__getitem__)
    return matmul(x.permute(*order), matrix).permute(*back).contiguous()


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:  # fmt: skip
    """input [N, C, ...] resampled to `size`, or to floor(its sizes * scale_factor).

    mode: "nearest", "nearest-exact" (centres rounded, not floored), "linear" (3-D input), "bilinear" and "bicubic"
    (4-D), "trilinear" (5-D), "area" (means of parts). align_corners maps the outermost centres onto each other.
    A given scale_factor is used for the positions, unless recompute_scale_factor asks for the ratio of sizes.
    """
    op, n = "interpolate", input.ndim - 2
    _check(input, mode, align_corners, antialias)
    sizes, scales = _sizes(input, size, scale_factor, op)
    create.check_room((*input.shape[:2], *sizes), input.dtype, input.device)  # before tables of that size
    if scale_factor is None and recompute_scale_factor:
        raise ValueError(f"[{op}] recompute_scale_factor needs scale_factor; got size={size}")
    if recompute_scale_factor:
        scales = (None,) * n
    if mode == "area":
        from . import pooling

        pool = (pooling.adaptive_avg_pool1d, pooling.adaptive_avg_pool2d, pooling.adaptive_avg_pool3d)[n - 1]
        return pool(input, sizes)
    x = input
    for axis, (out, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        x = _resample(x, axis, out, scale, mode, bool(align_corners))
    return x


def _check(x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    op = "interpolate"
    if mode not in _MODES:
        raise ValueError(f"[{op}] mode is one of {', '.join(_MODES)}; got {mode!r}")
    if x.ndim not in (3, 4, 5) or x.ndim - 2 not in _DIMENSIONS.get(mode, (1, 2, 3)):
        raise ValueError(f"[{op}] mode={mode!r} does not go with an input of {x.ndim} dimensions; got {x.shape}")
    if align_corners is not None and mode not in _DIMENSIONS:
        raise ValueError(f"[{op}] align_corners goes with the linear and cubic modes; got mode={mode!r}")
    if antialias:
        raise NotImplementedError(f"[{op}] antialias=True is not here; blur the input before making it smaller")
    if not x.dtype.is_floating_point and mode not in ("nearest", "nearest-exact"):
        raise TypeError(f"[{op}] mode={mode!r} expects floating point; got {x.dtype}. Convert with .float() first")
    if 0 in x.shape[1:]:
        raise ValueError(f"[{op}] only the batch may be empty; got {x.shape}")


def _sizes(x: Tensor, size: Any, scale_factor: Any, op: str) -> tuple[tuple, tuple]:
    """The output's sizes and the scales asked for (None each where sizes were given)."""
    n = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(f"[{op}] give size or scale_factor, and not both; got {size} and {scale_factor}")
    if size is not None:
        sizes, scales = spread(size, n, "size", op), (None,) * n
    else:
        scales = tuple(scale_factor) if isinstance(scale_factor, list | tuple) else (scale_factor,) * n
        if len(scales) != n:
            raise ValueError(f"[{op}] scale_factor is a number or {n} of them; got {scale_factor}")
        sizes = tuple(math.floor(length * float(s)) for length, s in zip(x.shape[2:], scales, strict=True))
    if any(s < 1 for s in sizes):
        raise ValueError(f"[{op}] output sizes must be positive; got {sizes}")
    return sizes, scales


def _resample(x: Tensor, axis: int, out: int, scale: float | None, mode: str, align: bool) -> Tensor:
    size = x.shape[axis]
    if size == out and scale in (None, 1):
        return x
    step = 1 / float(scale) if scale is not None and scale > 0 else size / out
    if mode.startswith("nearest"):
        half = 0.5 if mode == "nearest-exact" else 0.0
        # In the precision that PyTorch computes positions in: x.5 falls to the same side.
        kind = np.float32
        at = np.floor((np.arange(out, dtype=kind) + kind(half)) * kind(step)).astype(np.int64)
        return x.index_select(axis, create.place(np.clip(at, 0, size - 1), x.device))
    if align:
        at = np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        at = (np.arange(out) + 0.5) * step - 0.5
    return along(x, _cubic(at, size) if mode == "bicubic" else _linear(at, size), axis)


def _linear(at: np.ndarray, size: int) -> np.ndarray:
    """Weights [len(at), size] of the two neighbours of each position, which is held inside."""
    at = np.clip(at, 0, size - 1)
    low = np.minimum(at.astype(np.int64), size - 1)
    return _weights(len(at), size, ((low, 1 - (at - low)), (np.minimum(low + 1, size - 1), at - low)))


def _cubic(at: np.ndarray, size: int) -> np.ndarray:
    """Weights [len(at), size] of the four neighbours; neighbours beyond the border are the border's elements."""
    low = np.floor(at).astype(np.int64)
    taps = zip(range(-1, 3), cubic_weights(at - low), strict=True)
    return _weights(len(at), size, [(np.clip(low + k, 0, size - 1), w) for k, w in taps])


def _weights(count: int, size: int, taps: Any) -> np.ndarray:
    rows = np.zeros((count, size))
    for position, weight in taps:
        np.add.at(rows, (np.arange(count), position), weight)
    return rows


def cubic_weights(t: Any) -> list:
    """Keys' cubic convolution (a = -0.75) of the neighbours at -1, 0, 1, 2 for a fraction t in [0, 1); arrays or tensors."""
    a = -0.75

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """interpolate, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode="nearest"."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode="bilinear" and align_corners=True."""
    return interpolate(input, size, scale_factor, "bilinear", True)
