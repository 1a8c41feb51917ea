"""Views of device arrays: arithmetic on shape, strides and offset; nothing runs on the GPU, except where a copy must."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .buffers import Array
from .fuse import constant
from .launch import Copy
from .layout import element_count

_copy = Copy()


def permute(x: Array, order: tuple[int, ...]) -> Array:
    """x with its dimensions in another order."""
    return x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.offset)


def expand(x: Array, shape: tuple[int, ...]) -> Array:
    """x broadcast to `shape` with strides of 0."""
    pad = len(shape) - len(x.shape)
    strides = [0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)]
    return x.view(shape, (0,) * pad + tuple(strides), x.offset)


def spread(x: Array, shape: tuple[int, ...]) -> Array:
    """x of one element seen in `shape`, for reading only: a constant stays one and costs no memory."""
    if x.pending is not None and x.pending.launcher is None:
        return constant(shape, x.pending.args[0], x.dtype, x.gpu)
    return x.view(shape, (0,) * len(shape), x.offset)


def slice_(x: Array, index: tuple[Any, ...]) -> Array:
    """x[index] for integers, slices and None."""
    shape, strides, offset, axis = [], [], x.offset, 0
    for i in index:
        if i is None:
            shape.append(1)
            strides.append(0)
            continue
        n, stride = x.shape[axis], x.strides[axis]
        axis += 1
        if isinstance(i, slice):
            start, stop, step = i.indices(n)
            count = len(range(start, stop, step))
            offset += start * stride if count else 0
            shape.append(count)
            strides.append(stride * step)
        else:
            offset += (i + n if i < 0 else i) * stride
    return x.view((*shape, *x.shape[axis:]), (*strides, *x.strides[axis:]), offset)


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """x in another shape: a view where the strides allow one, else a copy."""
    strides = _strides_without_copy(x.shape, x.strides, shape)
    if strides is None:
        x = _copy(x)
        strides = contiguous_strides(shape)
    return x.view(shape, strides, x.offset)


def place(x: Array, shape: tuple[int, ...], index: tuple[Any, ...], value: float) -> Array:
    """An array full of `value` with x at `index`: a view of x where that is all of it."""
    if x.size == element_count(shape) and not any(isinstance(i, slice) and i.step not in (None, 1) for i in index):
        return reshape(x, shape)
    y = x.gpu.full(shape, value, x.dtype)
    x.gpu.copy_into(slice_(y, index), x)
    return y


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a dense array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _strides_without_copy(old: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that show (old, strides) in the shape `new`, or None: runs of both shapes that hold equally many
    elements are matched, and within an old run each stride must be the next one times the next size."""
    if 0 in new:
        return contiguous_strides(new)
    dims = [(n, s) for n, s in zip(old, strides, strict=True) if n != 1]
    result: list[int] = []
    i = j = 0
    while i < len(dims) or j < len(new):
        have, want, first = 1, 1, (i, j)
        while have != want or (i, j) == first:
            if have < want or (have == want and i < len(dims) and want == 1):
                have, i = have * dims[i][0], i + 1
            elif j < len(new):
                want, j = want * new[j], j + 1
            else:
                return None
        run = dims[first[0] : i]
        if any(a[1] != b[0] * b[1] for a, b in pairwise(run)):
            return None
        step = run[-1][1] if run else 1
        part = []
        for n in reversed(new[first[1] : j]):
            part.append(step)
            step *= n
        result.extend(reversed(part))
    return tuple(result)
