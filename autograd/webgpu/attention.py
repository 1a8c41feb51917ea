"""Launchers of the attention kernels: a query or a key an invocation, nothing of the scores' size kept."""

from __future__ import annotations

from struct import Struct

import numpy as np

from .buffers import Array
from .elementwise import Binary
from .layout import LONGEST_LOOP, broadcast_strides, coalesce, contiguous_strides, element_count, workgroups
from .movement import Cat, Pad, copy, narrow
from .packed import FLOAT32
from .reduce import Fold

HEAD = Struct("<4If3If3I")
WIDEST = 256  # numbers of a row: an invocation holds several rows in registers
BOOL = np.dtype(np.bool_)

mul, total, pad, cat = Binary("mul"), Fold("sum"), Pad(), Cat()


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


def heads(batch: tuple, arrays: list, mask: Array | None) -> tuple[list, list, list]:
    """(arrays, copied where they must be, sizes, strides of each and of the mask): the leading dimensions as two."""
    extra = [] if mask is None else [broadcast_strides(mask.shape[:-2], mask.strides[:-2], batch)]
    for attempt in (arrays, [copy(a) for a in arrays]):
        sizes, *walks = coalesce(batch, *[a.strides[:-2] for a in attempt], *extra)
        short = 2 - len(sizes)
        if short >= 0:
            return attempt, [1] * short + sizes, [[0] * short + w for w in walks]
    raise ValueError(
        f"[attention] kernels walk two dimensions of heads, and this mask over {batch} needs more; expand and copy it"
    )


class Attention:
    """Base: prepares the operands, and queues the kernels."""

    def __init__(self, name: str):
        self.name = name

    def prepare(self, arrays: list, mask: Array | None, scale: float, causal: bool, p: float, seed: int) -> tuple:
        """(run, arrays): the operands q, k, v[, dy] in fours, and a function (kernel's name, rows, arrays) that queues."""
        gpu, batch = arrays[0].gpu, arrays[0].shape[:-2]
        if mask is not None and mask.dtype not in (BOOL, FLOAT32):
            mask = gpu.cast(mask, FLOAT32)
        length, columns = arrays[0].shape[-2], arrays[1].shape[-2]
        arrays, sizes, walks = heads(batch, [in_fours(a) for a in arrays], mask)
        words = [0] * 8
        if mask is not None:
            steps = [0 if n == 1 else s for n, s in zip(mask.shape[-2:], mask.strides[-2:])]
            words = [*walks[-1], *steps, mask.offset, 0, 0, 0]
        for a, walk in zip(arrays, walks):
            words += [a.offset // 4, walk[0] // 4, walk[1] // 4, a.strides[-2] // 4]
        tail = np.array(words, np.int64).astype(np.uint32).tobytes()
        libs = ("math", "f32", "attention", f"attention_{'plain' if mask is None else 'bool' if mask.dtype == BOOL else 'float'}")
        binding = "" if mask is None else "@group(0) @binding({}) var<storage, read> mask: array<{}>;\n"
        kind = "u32" if mask is not None and mask.dtype == BOOL else "f32"
        consts = f"const E4 = {arrays[0].shape[-1] // 4}u;\nconst V4 = {arrays[2].shape[-1] // 4}u;\n"
        consts += f"const DROPS = {'true' if p else 'false'};\n"
        limit, factor = min(round(p * 2**32), 2**32 - 1), 1 / (1 - p) if p < 1 else 0.0

        def run(name: str, rows: int, operands: list) -> None:
            kernel = gpu.kernel(name, libs, consts + binding.format(len(operands) + 1, kind), T="f32")
            head = HEAD.pack(sizes[1], length, columns, rows, scale, int(causal), seed, limit, factor, 0, 0, 0)
            gpu.run(kernel, operands if mask is None else [*operands, mask], head + tail, workgroups(-(-rows // 64)))

        return run, arrays


class Forward(Attention):
    """`Forward("attention")(q, k, v, mask, …)`: (y, lse)."""

    def __call__(self, q: Array, k: Array, v: Array, mask: Array | None, **attrs) -> tuple[Array, Array]:
        gpu, batch, wide = q.gpu, q.shape[:-1], v.shape[-1]
        run, arrays = self.prepare([q, k, v], mask, **attrs)
        y = gpu.empty((*batch, -(-wide // 4) * 4), FLOAT32)
        lse = gpu.empty(batch, FLOAT32)
        run(self.name, element_count(batch), [*arrays, y, lse])
        return gpu.rounded(narrow(y, y.ndim - 1, 0, wide), q.dtype), lse


class Backward(Attention):
    """`Backward("attention_backward")(dy, q, k, v, mask, y, lse, …)`: (dq, dk, dv)."""

    def __call__(self, dy: Array, q: Array, k: Array, v: Array, mask: Array | None, y: Array, lse: Array, **attrs) -> tuple:
        gpu, last = q.gpu, q.ndim - 1
        run, arrays = self.prepare([q, k, v, dy], mask, **attrs)
        delta = total(mul(*[a if a.dtype == FLOAT32 else gpu.cast(a, FLOAT32) for a in (dy, y)]), (last,), True)
        shape = (*lse.shape, 1)
        stats = cat(lse.view(shape, contiguous_strides(shape), lse.offset), delta, axis=last)
        wide, deep = arrays[0].shape[-1], arrays[2].shape[-1]
        dq = gpu.empty((*q.shape[:-1], wide), FLOAT32)
        dkv = gpu.empty((*k.shape[:-1], wide + deep), FLOAT32)
        run(self.name, element_count(q.shape[:-1]), [*arrays, stats, dq])
        run("attention_backward_keys", element_count(k.shape[:-1]), [*arrays, stats, dkv])
        parts = (dq, 0, q), (dkv, 0, k), (dkv, wide, v)
        return tuple(gpu.rounded(narrow(g, last, start, x.shape[-1]), x.dtype) for g, start, x in parts)
