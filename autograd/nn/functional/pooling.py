"""Pooling over one, two and three dimensions: the mean, the power mean or the largest element of each window."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import create, dtypes
from ...op import public
from ...ops.views import pad as constant_pad
from ...ops.window import max_pool, windows
from ...tensor import Tensor
from .common import spread
from .resampling import along


class _Geometry:
    """The windows of one call, checked: sizes of the input, kernel, stride, padding, dilation and how many there are."""

    def __init__(self, op: str, n: int, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool):
        if x.ndim not in (n + 1, n + 2) or 0 in x.shape[-n - 1 :]:
            raise ValueError(f"[{op}] expects [N, C, *{n} sizes] or [C, *{n} sizes], only N may be 0; got {x.shape}")
        self.sizes = x.shape[-n:]
        self.kernel = spread(kernel, n, "kernel_size", op)
        self.stride = self.kernel if stride is None or stride == () else spread(stride, n, "stride", op)
        self.padding, self.dilation = spread(padding, n, "padding", op), spread(dilation, n, "dilation", op)
        for name, values in (("kernel_size", self.kernel), ("stride", self.stride), ("dilation", self.dilation)):
            if any(v < 1 for v in values):
                raise ValueError(f"[{op}] {name} must be positive; got {values}")
        spans = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        if any(p < 0 or 2 * p > span for p, span in zip(self.padding, spans, strict=True)):
            raise ValueError(f"[{op}] padding must be in [0, half of the window {tuple(spans)}]; got {self.padding}")
        rows = zip(self.sizes, spans, self.stride, self.padding, strict=True)
        self.count = tuple(_count(*row, ceil_mode) for row in rows)
        if any(c < 1 for c in self.count):
            raise ValueError(f"[{op}] windows {tuple(spans)} are larger than the padded input {self.sizes}")
        # How far the last window reaches beyond the padding in front and the input.
        self.reach = tuple((c - 1) * s + span for c, s, span in zip(self.count, self.stride, spans, strict=True))

    def pads(self) -> list[int]:
        """(before, after) of each dimension from the last backwards, so that every window lies inside."""
        rows = zip(self.padding, self.reach, self.sizes, strict=True)
        return [v for p, reach, size in reversed(list(rows)) for v in (p, max(reach - p - size, 0))]


def _count(size: int, span: int, stride: int, padding: int, ceil_mode: bool) -> int:
    room = size + 2 * padding - span
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    # With ceil_mode a window may hang over the end, but none may start behind the input and its front padding.
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def _filled(x: Tensor, pads: list[int], value: float) -> Tensor:
    return constant_pad(x, pads, value=value) if any(pads) else x


# -- the mean -------------------------------------------------------------------------------------------


def _avg_pool(op: str, n: int, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: int | None) -> Tensor:  # fmt: skip
    if divisor_override == 0:
        raise ValueError(f"[{op}] divisor_override must not be 0")
    g = _Geometry(op, n, x, kernel, stride, padding, 1, ceil_mode)
    seen = windows(_filled(x, g.pads(), 0), g.count, g.kernel, g.stride, (1,) * n)
    total = seen.sum(tuple(range(-n, 0)))
    if divisor_override is not None:
        return total / divisor_override
    divisors = np.ones((1,) * n)
    whole = True
    for axis in range(n):
        elements = _elements(g, axis, count_include_pad)
        whole = whole and bool((elements == g.kernel[axis]).all())
        divisors = divisors * elements.reshape([-1 if i == axis else 1 for i in range(n)])
    if whole:
        return total / float(np.prod(g.kernel))
    return total / create.place(dtypes.converted(divisors, x.dtype.numpy), x.device)


def _elements(g: _Geometry, axis: int, padding_too: bool) -> np.ndarray:
    """How many elements each window has along an axis; what ceil_mode adds behind the padding never counts."""
    size, padding = g.sizes[axis], g.padding[axis]
    start = np.arange(g.count[axis]) * g.stride[axis] - padding
    end = np.minimum(start + g.kernel[axis], size + padding)
    return end - start if padding_too else np.minimum(end, size) - np.maximum(start, 0)


def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """The mean of each window of input [N, C, L] or [C, L]; the stride is kernel_size unless given.

    ceil_mode lets the last window hang over the end. count_include_pad: padding counts as zeros, or not at all.
    """
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
    """As avg_pool1d over [N, C, H, W] or [C, H, W]; divisor_override replaces the number of elements."""
    return _avg_pool("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
    """As avg_pool1d over [N, C, D, H, W] or [C, D, H, W]; divisor_override replaces the number of elements."""
    return _avg_pool("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(op: str, n: int, x: Tensor, p: float, kernel: Any, stride: Any, ceil_mode: bool) -> Tensor:
    g = _Geometry(op, n, x, kernel, stride, 0, 1, ceil_mode)
    if p != int(p):  # where the power has no value the gradient is NaN, as in PyTorch, even where no window looks
        x = x * create.ones_like(x).masked_fill(x < 0, float("nan"))
    seen = windows(_filled(x**p, g.pads(), 0), g.count, g.kernel, g.stride, (1,) * n)
    total = seen.sum(tuple(range(-n, 0)))
    return (total.sign() * total.abs().relu()) ** (1 / p)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p over each window)^(1/p), over [N, C, L] or [C, L]."""
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """As lp_pool1d over [N, C, H, W] or [C, H, W]."""
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """As lp_pool1d over [N, C, D, H, W] or [C, D, H, W]."""
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


# -- the largest element --------------------------------------------------------------------------------


def _max_pool(op: str, n: int, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
              return_indices: bool) -> Any:  # fmt: skip
    g = _Geometry(op, n, x, kernel, stride, padding, dilation, ceil_mode)
    y, chosen = max_pool(_filled(x, g.pads(), _lowest(x)), g.count, g.kernel, g.stride, g.dilation, g.padding)
    if not return_indices:
        return y
    starts = [create.arange(c, device=x.device) * s - p for c, s, p in zip(g.count, g.stride, g.padding, strict=True)]
    return y, _positions(chosen, g.kernel, starts, g.dilation, g.sizes)


def _lowest(x: Tensor) -> float:
    narrow = x.device.type != "cpu" and x.dtype is dtypes.int64  # stored in 32 bits
    return float("-inf") if x.dtype.is_floating_point else int(np.iinfo("int32" if narrow else x.dtype.numpy).min)


def _positions(chosen: Tensor, kernel: tuple, starts: list[Tensor], dilation: tuple, sizes: tuple) -> Tensor:
    """Numbers within windows as positions in the flattened input plane."""
    n = len(kernel)
    flat: Any = 0
    inner = int(np.prod(kernel))
    for axis in range(n):
        inner //= kernel[axis]
        within = chosen // inner % kernel[axis] if kernel[axis] > 1 else chosen * 0
        start = starts[axis].reshape(-1, *(1,) * (n - 1 - axis))
        flat = flat * sizes[axis] + within * dilation[axis] + start
    return flat


def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:  # fmt: skip
    """The largest element of each window of input [N, C, L] or [C, L]; the first of equals gets the gradient.

    With return_indices also its position in the plane, int64. Padding never wins.
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:  # fmt: skip
    """As max_pool1d over [N, C, H, W] or [C, H, W]."""
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:  # fmt: skip
    """As max_pool1d over [N, C, D, H, W] or [C, D, H, W]."""
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


# -- to a given size ------------------------------------------------------------------------------------


def _adaptive_sizes(op: str, n: int, x: Tensor, output_size: Any) -> tuple:
    if x.ndim not in (n + 1, n + 2) or 0 in x.shape[-n - 1 :]:
        raise ValueError(f"[{op}] expects [N, C, *{n} sizes] or [C, *{n} sizes], only N may be 0; got {x.shape}")
    given = (output_size,) * n if output_size is None or hasattr(output_size, "__index__") else tuple(output_size)
    if len(given) != n:
        raise ValueError(f"[{op}] output_size is a whole number or {n} of them; got {output_size!r}")
    sizes = tuple(x.shape[i - n] if v is None else int(v) for i, v in enumerate(given))
    if any(v < 0 for v in sizes):
        raise ValueError(f"[{op}] output sizes must not be negative; got {output_size!r}")
    create.check_room((*x.shape[:-n], *sizes), x.dtype, x.device)  # before tables of that size
    return sizes


def _bins(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of `count` nearly equal parts of an axis starts and ends."""
    i = np.arange(count)
    return i * size // max(count, 1), -(-(i + 1) * size // max(count, 1))


def _adaptive_avg(op: str, n: int, x: Tensor, output_size: Any) -> Tensor:
    sizes = _adaptive_sizes(op, n, x, output_size)
    if 0 in sizes:
        return x.new_zeros(*x.shape[:-n], *sizes)
    if all(size % out == 0 for size, out in zip(x.shape[-n:], sizes, strict=True)):
        kernel = tuple(size // out for size, out in zip(x.shape[-n:], sizes, strict=True))
        return windows(x, sizes, kernel, kernel, (1,) * n).mean(tuple(range(-n, 0)))
    for axis, out in enumerate(sizes, x.ndim - n):
        size = x.shape[axis]
        if size != out:
            start, end = _bins(size, out)
            at = np.arange(size)
            inside = (at >= start[:, None]) & (at < end[:, None])
            x = along(x, inside / (end - start)[:, None], axis)
    return x


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size nearly equal, possibly overlapping parts of input [N, C, L] or [C, L]."""
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """As adaptive_avg_pool1d over two dimensions; None keeps a size."""
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """As adaptive_avg_pool1d over three dimensions; None keeps a size."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def _adaptive_max(op: str, n: int, x: Tensor, output_size: Any, return_indices: bool) -> Any:
    sizes = _adaptive_sizes(op, n, x, output_size)
    if 0 in sizes:
        y = x.new_zeros(*x.shape[:-n], *sizes)
        return (y, y.to(dtypes.int64)) if return_indices else y
    plane, kernel, tables = x.shape[-n:], [], []
    for axis, out in enumerate(sizes, x.ndim - n):
        start, end = _bins(x.shape[axis], out)
        longest = int((end - start).max())
        # Parts of unequal lengths are filled up with their last element, which changes neither maximum nor first place.
        tables.append(np.minimum(start[:, None] + np.arange(longest), end[:, None] - 1))
        kernel.append(longest)
        if x.shape[axis] != out * longest:
            x = x.index_select(axis, create.place(tables[-1].reshape(-1), x.device))
    y, chosen = max_pool(x, sizes, tuple(kernel), tuple(kernel), (1,) * n)
    if not return_indices:
        return y
    starts = [create.place(np.ascontiguousarray(table[:, 0]), x.device) for table in tables]
    return y, _positions(chosen, tuple(kernel), starts, (1,) * n, plane)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of output_size nearly equal parts of input [N, C, L] or [C, L], and perhaps their positions."""
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As adaptive_max_pool1d over two dimensions; None keeps a size."""
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As adaptive_max_pool1d over three dimensions; None keeps a size."""
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


for _function in (avg_pool1d, max_pool1d, max_pool2d, max_pool3d, adaptive_avg_pool1d, adaptive_max_pool1d):
    public(_function, method=False)
