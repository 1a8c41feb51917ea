"""Launchers of the attention kernels: a query or a key an invocation, nothing of the scores' size kept."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np

from .buffers import Array
from .layout import LONGEST_LOOP, broadcast_strides, coalesce, element_count, workgroups
from .matmul import MOST_WORK
from .movement import Pad, copy, narrow
from .packed import FLOAT32
from .pieces import cut, too_large

HEAD = Struct("<4If3If3I")
WIDEST = 256  # numbers of a row: an invocation holds several rows in registers
BOOL = np.dtype(np.bool_)

pad = Pad()


def fits(q: Array, k: Array, v: Array) -> bool:
    """Whether an invocation can walk all the rows and hold what it sums."""
    wide, deep = q.shape[-1], v.shape[-1]
    if max(wide, deep) > WIDEST:
        return False
    # Software Vulkan ends an invocation after so many passes of all its loops together.
    passes = max(q.shape[-2], k.shape[-2]) * (3 + wide // 2 + deep // 4)
    return q.gpu.info["type"] != "CPU" or passes <= LONGEST_LOOP


def in_fours(x: Array) -> Array:
    """x in float32, with rows that start at multiples of four and end with zeros up to one."""
    x = x if x.dtype == FLOAT32 else x.gpu.cast(x, FLOAT32)
    if x.shape[-1] % 4:
        return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 4)])
    aligned = not (x.offset % 4 or any(s % 4 for s, n in zip(x.strides[:-1], x.shape[:-1]) if n > 1))
    return x if aligned and x.strides[-1] == 1 else copy(x)


def laid_like(x: Array, wide: int, behind: int = 0) -> Array:
    """Room for [..., L, wide], with dimensions in memory in the order of x's: what x is a view of, its gradient is too.

    behind: so many fours of room more.
    """
    lead, strides, step = x.shape[:-1], [0] * (x.ndim - 1), wide
    for d in sorted(range(len(lead)), key=lambda d: (x.strides[d], -d)):
        strides[d], step = step, step * lead[d]
    whole = x.gpu.empty((step + 4 * behind,), FLOAT32)
    return whole.view((*lead, wide), (*strides, 1), 0)


def walked(batch: tuple, arrays: list, made: list, mask: Array | None) -> tuple[list, list, list]:
    """(arrays and what is made beside them, sizes, strides of each and of the mask): the leading dimensions as two.

    made: (number of the array that one is laid like, width, room behind). Arrays are copied where they must be.
    """
    extra = [] if mask is None else [broadcast_strides(mask.shape[:-2], mask.strides[:-2], batch)]
    for attempt in (list, lambda given: [copy(a) for a in given]):
        given = attempt(arrays)
        given += [laid_like(given[i], wide, behind) for i, wide, behind in made]
        sizes, *walks = coalesce(batch, *[a.strides[:-2] for a in given], *extra)
        short = 2 - len(sizes)
        if short >= 0:
            return given, [1] * short + sizes, [[0] * short + w for w in walks]
    raise ValueError(
        f"[attention] kernels walk two dimensions of heads, and this mask over {batch} needs more; expand and copy it"
    )


class Attention:
    """Base: prepares the operands, and queues a kernel."""

    def __init__(self, name: str):
        self.name = name

    def run(self, name: str, rows: int, arrays: list, made: list, more: tuple, mask: Array | None, *, scale: float, causal: bool,
            p: float, seed: int, begin: int = 0, stats: int = 0, lse: int = 0) -> list:  # fmt: skip
        """Queue a kernel over arrays q, k, v, … and what it makes; the latter is returned. more: (place, array) of others.

        begin: the number of the first head, on which, and on the row, what dropout keeps depends.
        """
        gpu, (length, columns) = arrays[0].gpu, (a.shape[-2] for a in arrays[:2])
        given, sizes, walks = walked(arrays[0].shape[:-2], arrays, made, mask)
        words = [0] * 5 + [begin, 0, 0]
        if mask is not None:
            steps = [0 if n == 1 else s for n, s in zip(mask.shape[-2:], mask.strides[-2:])]
            words[:5] = [*walks[-1], *steps, mask.offset]
        for a, walk in zip(given, walks):
            words += [a.offset // 4, walk[0] // 4, walk[1] // 4, a.strides[-2] // 4]
        tail = np.array(words, np.int64).astype(np.uint32).tobytes()
        kind = "plain" if mask is None else "bool" if mask.dtype == BOOL else "float"
        consts = f"const E4 = {given[0].shape[-1] // 4}u;\nconst V4 = {given[2].shape[-1] // 4}u;\n"
        consts += f"const DROPS = {'true' if p else 'false'};\n"
        limit, factor = min(round(p * 2**32), 2**32 - 1), 1 / (1 - p) if p < 1 else 0.0
        operands = list(given)
        for place, other in more:
            operands.insert(place, other)
        if mask is not None:
            operands.append(mask)
            memory = "u32" if mask.dtype == BOOL else "f32"
            consts += f"@group(0) @binding({len(operands)}) var<storage, read> mask: array<{memory}>;\n"
        kernel = gpu.kernel(name, ("math", "f32", "attention", f"attention_{kind}"), consts, T="f32")
        work = max(length, columns) * (given[0].shape[-1] + given[2].shape[-1])
        piece = max(MOST_WORK // work // 64, 1) * 64
        for first in range(0, rows, piece):
            head = HEAD.pack(sizes[1], length, columns, rows, scale, int(causal), seed, limit, factor, stats, lse, first)
            gpu.run(kernel, operands, head + tail, workgroups(-(-min(piece, rows - first) // 64)))
        return given[len(arrays) :]


def readable(mask: Array | None) -> Array | None:
    """A mask of bool or float32."""
    return mask if mask is None or mask.dtype in (BOOL, FLOAT32) else mask.gpu.cast(mask, FLOAT32)


def largest(q: Array, k: Array, v: Array) -> int:
    """Elements of the largest array that the kernels see, rows filled up to fours and what lies behind dq among them."""
    wide, deep = (-(-a.shape[-1] // 4) * 4 for a in (q, v))
    rows, keys = (element_count(a.shape[:-1]) for a in (q, k))
    return max(rows * (wide + 4), rows * deep, keys * max(wide, deep))


def over_heads(mask: Array | None, q: Array) -> Array | None:
    """A mask seen over all the leading dimensions of q."""
    if mask is None:
        return None
    shape = (*q.shape[:-2], *mask.shape[-2:])
    return mask.view(shape, broadcast_strides(mask.shape, mask.strides, shape), mask.offset)


def cut_by_heads(kernels: Any, arrays: tuple, most: int, attrs: dict):
    """The launcher on some of the heads at a time, in the order of their numbers."""
    done = 0

    def some_heads(*some: Array) -> Any:
        nonlocal done
        first, done = done, done + element_count(some[0].shape[:-2])
        return kernels(*some, begin=first, **attrs)

    return cut(kernels.name, some_heads, arrays, range(arrays[0].ndim - 2), most, in_order=True)


class Forward(Attention):
    """`Forward("attention")(q, k, v, mask, …)`: (y, lse)."""

    def __call__(self, q: Array, k: Array, v: Array, mask: Array | None, **attrs) -> tuple[Array, Array]:
        most = largest(q, k, v)
        if too_large((q, k, v, mask), most):
            return cut_by_heads(self, (q, k, v, over_heads(mask, q)), most, attrs)
        arrays = [in_fours(a) for a in (q, k, v)]
        lse, wide = q.gpu.empty(q.shape[:-1], FLOAT32), v.shape[-1]
        (y,) = self.run(self.name, lse.size, arrays, [(0, arrays[2].shape[-1], 0)], ((4, lse),), readable(mask), **attrs)
        return q.gpu.rounded(narrow(y, y.ndim - 1, 0, wide), q.dtype), lse


class Backward(Attention):
    """`Backward("attention_backward")(dy, q, k, v, mask, y, lse, …)`: (dq, dk, dv)."""

    def __call__(self, dy: Array, q: Array, k: Array, v: Array, mask: Array | None, y: Array, lse: Array, **attrs) -> tuple:
        most = largest(q, k, v)
        if too_large((dy, q, k, v, mask, y), most):
            return cut_by_heads(self, (dy, q, k, v, over_heads(mask, q), y, lse), most, attrs)
        last, mask, lse = q.ndim - 1, readable(mask), lse if lse.is_contiguous() else copy(lse)
        arrays = [in_fours(a) for a in (q, k, v, dy, y)]
        wide, deep = arrays[0].shape[-1], arrays[2].shape[-1]
        rows = lse.size
        attrs = {**attrs, "stats": rows * wide // 4, "lse": lse.offset}
        (dq,) = self.run(self.name, rows, arrays, [(0, wide, rows)], ((5, lse),), mask, **attrs)
        count = element_count(k.shape[:-1])
        dk, dv = self.run("attention_backward_keys", count, arrays[:4], [(1, wide, 0), (2, deep, 0)], ((4, dq),), mask, **attrs)
        return tuple(q.gpu.rounded(narrow(g, last, 0, x.shape[-1]), x.dtype) for g, x in ((dq, q), (dk, k), (dv, v)))
