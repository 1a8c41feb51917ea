"""Rearranging channels and pixels, and sampling at given positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import create, dtypes
from ...op import public
from ...ops.index import take_rows
from ...ops.select import where
from ...ops.views import stack
from ...tensor import Tensor
from .resampling import cubic_weights


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """[..., C * r * r, H, W] -> [..., C, H * r, W * r]: channels become pixels."""
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise ValueError(f"[pixel_shuffle] expects [..., C * {r}^2, H, W]; got {input.shape} and upscale_factor={r}")
    *lead, channels, high, wide = input.shape
    n = len(lead)
    parts = input.reshape(*lead, channels // (r * r), r, r, high, wide)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return parts.permute(*order).reshape(*lead, channels // (r * r), high * r, wide * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """[..., C, H * r, W * r] -> [..., C * r * r, H, W]: pixels become channels."""
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-2] % r or input.shape[-1] % r:
        raise ValueError(f"[pixel_unshuffle] expects [..., C, H * {r}, W * {r}]; got {input.shape} and downscale_factor={r}")
    *lead, channels, high, wide = input.shape
    n = len(lead)
    parts = input.reshape(*lead, channels, high // r, r, wide // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return parts.permute(*order).reshape(*lead, channels * r * r, high // r, wide // r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of input [N, C, ...] dealt out: the first of every group, then the second of every group, …"""
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ValueError(f"[channel_shuffle] expects [N, C, ...] with C divisible by groups={groups}; got {input.shape}")
    samples, channels, *rest = input.shape
    parts = input.reshape(samples, groups, channels // groups, *rest)
    return parts.transpose(1, 2).reshape(*input.shape)


# -- sampling at positions ------------------------------------------------------------------------------

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """input [N, C, (D,) H, W] read at positions grid [N, ..., 2 or 3], whose (x, y(, z)) run from -1 to 1.

    mode: "bilinear" (trilinear in 3-D), "nearest", "bicubic" (2-D only). padding_mode says what lies outside:
    "zeros", the "border", or a "reflection". align_corners: -1 and 1 are the centres of the outermost elements,
    not their edges.
    """
    op, n = "grid_sample", input.ndim - 2
    if mode not in _MODES or padding_mode not in _PADDINGS or (mode == "bicubic" and n != 2):
        raise ValueError(
            f"[{op}] mode is one of {', '.join(_MODES)} (bicubic for 4-D input) and padding_mode one of "
            f"{', '.join(_PADDINGS)}; got {mode!r} and {padding_mode!r} for {input.shape}"
        )
    if n not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != n or grid.shape[0] != input.shape[0]:
        rule = f"expects input [N, C, ...] and grid [N, ..., {max(n, 2)}] of as many dimensions"
        raise ValueError(f"[{op}] {rule}; got {input.shape} and {grid.shape}")
    if 0 in input.shape[1:]:
        raise ValueError(f"[{op}] only the batch may be empty; got {input.shape}")
    if input.dtype is not grid.dtype:
        raise TypeError(f"[{op}] input and grid must have one dtype; got {input.dtype} and {grid.dtype}")
    sizes = input.shape[2:]
    align = bool(align_corners)
    points = grid.reshape(grid.shape[0], -1, n)
    # The grid names x first, the input's dimensions end with it.
    at = [_position(points[..., n - 1 - axis], size, align) for axis, size in enumerate(sizes)]
    taps = [_taps(a, size, mode, padding_mode, align) for a, size in zip(at, sizes, strict=True)]
    y = _sampled(input, taps)
    return y.reshape(*input.shape[:2], *grid.shape[1:-1])


def _position(g: Tensor, size: int, align: bool) -> Tensor:
    """A grid coordinate in elements."""
    return (g + 1) * ((size - 1) / 2) if align else ((g + 1) * size - 1) / 2


def _taps(at: Tensor, size: int, mode: str, padding: str, align: bool) -> tuple[Tensor, Tensor]:
    """The positions and weights of the elements to read along one axis, [taps, N, points] both; outside, the weight is 0."""
    if mode == "bicubic":
        low = at.detach().floor()
        position = stack([_inside(low + k, size, padding, align) for k in range(-1, 3)])
        weight = stack(cubic_weights(at - low))
    elif mode == "nearest":
        position = _inside(at, size, padding, align).detach().round().unsqueeze(0)
        weight = at.unsqueeze(0).masked_fill(position.ones_like().bool(), 1.0)  # a grid that asks has a gradient: 0
    else:
        at = _inside(at, size, padding, align)
        low = at.detach().floor()
        high = at - low
        position, weight = stack([low, low + 1]), stack([1 - high, high])
    fits = (position >= 0) & (position <= size - 1)
    return where(fits, position, 0.0).long(), weight * fits.to(weight.dtype)


def _inside(at: Tensor, size: int, padding: str, align: bool) -> Tensor:
    """Positions moved into the input as the padding mode says; the gradient of those that were clipped is 0."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        at = _reflected(at, 0 if align else -1, 2 * (size - 1) if align else 2 * size - 1)
    outside_low, outside_high = at <= 0, at >= size - 1
    at = at.masked_fill(outside_high, float(size - 1)).masked_fill(outside_low, 0.0)
    return at.masked_fill(at.isnan(), 0.0)


def _reflected(at: Tensor, twice_low: int, twice_high: int) -> Tensor:
    """Positions mirrored at low and high until they lie between."""
    if twice_low == twice_high:
        return at * 0
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    away = (at - low).abs()
    turns = (away.detach() / span).floor()
    rest = away - turns * span
    return where(turns % 2 == 0, rest + low, span - rest + low)


def _sampled(x: Tensor, taps: list) -> Tensor:
    """The weighted sum over all combinations of the axes' taps: [N, C, points]."""
    n, (samples, channels), sizes = len(taps), x.shape[:2], x.shape[2:]
    plane = int(np.prod(sizes))
    # A row an element, its channels side by side: rows are what can be read, and added to, by index quickly.
    rows = x.permute(0, *range(2, n + 2), 1).reshape(samples * plane, channels)
    index: Any = create.arange(samples, device=x.device).unsqueeze(1) * plane
    weight: Any = None
    for axis, (position, part) in enumerate(taps):
        index = index + position * int(np.prod(sizes[axis + 1 :]))
        weight = part if weight is None else weight * part
        if axis < n - 1:
            index, weight = index.unsqueeze(-3), weight.unsqueeze(-3)
    seen = take_rows(rows, index) * weight.unsqueeze(-1)
    return seen.sum(tuple(range(n))).transpose(1, 2).contiguous()


def _sampler(n: int, name: str) -> Any:
    def sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
        if input.ndim != n + 2:
            raise ValueError(f"[{name}] expects an input of {n + 2} dimensions; got {input.shape}")
        return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)

    sampler.__name__ = sampler.__qualname__ = name
    sampler.__doc__ = f"grid_sample of {n} dimensions with numbers for modes: {_MODES} and {_PADDINGS}."
    return sampler


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Positions for grid_sample: theta [N, 2, 3] (or [N, 3, 4]) applied to the grid of an output of `size` [N, C, ...]."""
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1):
        rule = f"expects theta [N, {n}, {n + 1}] for a size of {n + 2} numbers"
        raise ValueError(f"[affine_grid] {rule}; got {theta.shape} and {tuple(size)}")
    axes = []
    for length in reversed(size[2:]):
        line = np.linspace(-1, 1, length) if length > 1 else np.zeros(1)
        axes.append(line if align_corners else line * (length - 1) / length)
    grids = np.meshgrid(*reversed(axes), indexing="ij")
    points = dtypes.converted(np.stack([*reversed(grids), np.ones(size[2:])], -1).reshape(1, -1, n + 1), theta.dtype.numpy)
    base = create.place(points, theta.device).expand(size[0], *points.shape[1:])
    return (base @ theta.mT).reshape(size[0], *size[2:], n)


grid_sampler_2d = public(_sampler(2, "grid_sampler_2d"), method=False)
grid_sampler_3d = public(_sampler(3, "grid_sampler_3d"), method=False)
for _function in (pixel_shuffle, pixel_unshuffle, channel_shuffle):
    public(_function, method=False)
