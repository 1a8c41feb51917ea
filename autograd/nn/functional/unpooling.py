"""Max pooling undone: each maximum goes back to where it came from, zeros stand everywhere else."""

from __future__ import annotations

from typing import Any

from ...op import apply
from ...ops.index import checked_index
from ...ops.scatter import Scatter
from ...shapes import numel
from ...tensor import Tensor
from .common import spread


def _max_unpool(op: str, n: int, x: Tensor, indices: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any) -> Tensor:
    if x.ndim not in (n + 1, n + 2) or 0 in x.shape[-n - 1 :]:
        raise ValueError(f"[{op}] expects [N, C, *{n} sizes] or [C, *{n} sizes], only N may be 0; got {x.shape}")
    if not isinstance(indices, Tensor) or indices.shape != x.shape:
        got = getattr(indices, "shape", type(indices).__name__)
        raise ValueError(f"[{op}] indices are what max_pool{n}d(return_indices=True) gives, in x's shape {x.shape}; got {got}")
    sizes = _sizes(op, n, x, kernel, stride, padding, output_size)
    lead = x.shape[:-n]
    plane = (numel(lead), numel(x.shape[-n:]))
    y = x.new_zeros(plane[0], numel(sizes))
    try:
        places = checked_index(indices.reshape(plane), y.shape[1], op)
    except IndexError as error:
        raise IndexError(f"{error}. Give the size before pooling as output_size?") from None
    if x.numel():
        y = apply(Scatter, y, places, x.reshape(plane), axis=1)
    return y.reshape(*lead, *sizes)


def _sizes(op: str, n: int, x: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any) -> tuple[int, ...]:
    """Those that pooling with these options makes x's sizes of: less than a stride more or less than the exact ones."""
    kernel = spread(kernel, n, "kernel_size", op)
    stride = kernel if stride is None else spread(stride, n, "stride", op)
    rows = zip(x.shape[-n:], kernel, stride, spread(padding, n, "padding", op), strict=True)
    exact = tuple((size - 1) * s + k - 2 * p for size, k, s, p in rows)
    if output_size is None:
        wanted = exact
    else:
        given = tuple(output_size)
        wanted = spread(given[2:] if len(given) == n + 2 else given, n, "output_size", op)
    near = all(abs(w - e) < s for w, e, s in zip(wanted, exact, stride, strict=True))
    if min(wanted) < 1 or (output_size is not None and not near):
        raise ValueError(f"[{op}] output sizes must be positive and differ from {exact} by less than {stride}; got {wanted}")
    return wanted


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:  # fmt: skip
    """A partial inverse of max_pool1d(..., return_indices=True): input [N, C, L] or [C, L] at its indices, 0 elsewhere.

    output_size: the size before pooling, alone or with N and C, where several fit; (L - 1) * stride + kernel_size -
    2 * padding unless given. Where windows overlapped, the last writer wins, and gets the gradient (PyTorch gives it to
    every writer). ValueError for sizes that do not fit, IndexError for an index outside the plane.
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:  # fmt: skip
    """As max_unpool1d over [N, C, H, W] or [C, H, W]."""
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:  # fmt: skip
    """As max_unpool1d over [N, C, D, H, W] or [C, D, H, W]."""
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
