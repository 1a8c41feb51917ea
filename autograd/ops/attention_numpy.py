"""Scaled dot-product attention on NumPy arrays, in blocks whose scores stay in cache; formulas in attention.py.

A block is as many whole heads as fit, or a part of one head's rows: its scores, all columns of them, are computed,
used and thrown away. NumPy has no cheaper way to call BLAS for one head than for a block of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

BLOCK = 1 << 18  # scores of a block: 1 MiB of float32


def _mixed(x: Any) -> Any:
    """A 32-bit finalizer: every bit of x (uint32, overwritten) moves about half of the bits of the result.

    Source of shifts and factors: Austin Appleby, MurmurHash3, public domain.
    """
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return x


def kept(shape: tuple, seed: int, p: float, rows: slice = slice(None), heads: ndarray | None = None) -> ndarray:
    """Which scores [..., L, S] dropout keeps: a function of the seed and the place, so nothing need be stored.

    shape: the whole scores'; rows: those that are wanted; heads: the numbers of the heads that are wanted, any shape.
    """
    *batch, length, columns = shape
    heads = np.arange(math.prod(batch), dtype=np.uint32).reshape(batch) if heads is None else heads
    line = np.arange(length, dtype=np.uint32)[rows]
    line = _mixed(heads[..., None].astype(np.uint32) * np.uint32(length) + line ^ np.uint32(seed))
    bits = _mixed(line[..., None] + np.arange(columns, dtype=np.uint32) * np.uint32(0x9E3779B9))
    return bits >= threshold(p)


def threshold(p: float) -> np.uint32:
    """A number that evenly spread 32 bits are below with probability p."""
    return np.uint32(min(round(p * 2**32), 2**32 - 1))


def _blocks(shape: tuple) -> Iterator[tuple[tuple, slice]]:
    """(index of the leading dimensions, rows) of each block of scores [..., L, S]."""
    *batch, length, columns = shape
    outer, size = len(batch), length * columns
    while outer and size * batch[outer - 1] <= BLOCK:
        outer -= 1
        size *= batch[outer]
    step = length if outer < len(batch) or size <= BLOCK else max(BLOCK // max(columns, 1), 1)
    for index in np.ndindex(*batch[:outer]):
        for start in range(0, length, max(step, 1)):
            yield index, slice(start, start + step)


class _Scores:
    """Computes the scores of a block again and again: in the forward pass, then in the backward one."""

    def __init__(self, q: ndarray, k: ndarray, mask: ndarray | None, scale: float, causal: bool, p: float, seed: int):
        self.q = q * q.dtype.type(scale)  # a pass over q, not over every score
        self.kt, self.causal = k.swapaxes(-1, -2), causal
        self.shape = (*q.shape[:-1], k.shape[-2])
        self.mask = None if mask is None else np.broadcast_to(mask, self.shape)
        self.p, self.seed = p, seed
        self.heads = np.arange(math.prod(q.shape[:-2])).reshape(q.shape[:-2]) if p else None

    def at(self, index: tuple, rows: slice) -> ndarray:
        """scale q k^T + mask: -inf where nothing may be seen."""
        s = np.matmul(self.q[index][..., rows, :], self.kt[index])
        if self.mask is not None:
            mask = self.mask[index][..., rows, :]
            if mask.dtype == bool:
                np.copyto(s, -np.inf, where=~mask)
            else:
                s += mask
        if self.causal:
            numbers = np.arange(self.shape[-2])[rows, None]
            np.copyto(s, -np.inf, where=np.arange(self.shape[-1]) > numbers)
        return s

    def factors(self, index: tuple, rows: slice) -> ndarray:
        """What dropout multiplies the probabilities by."""
        keep = kept(self.shape, self.seed, self.p, rows, self.heads[index])  # type: ignore[index]
        return keep * self.q.dtype.type(1 / (1 - self.p) if self.p < 1 else 0)


def _wide(x: ndarray) -> ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def forward(q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None, scale: float, causal: bool, p: float,
            seed: int) -> tuple[ndarray, ndarray]:  # fmt: skip
    """(y, lse): see attention.py. y lies in memory as q does, which makes joining the heads again a view."""
    dtype = q.dtype
    q, k, v = _wide(q), _wide(k), _wide(v)
    y = np.empty_like(q, shape=(*q.shape[:-1], v.shape[-1]))
    lse = np.empty(q.shape[:-1], q.dtype)
    scores = _Scores(q, k, mask, scale, causal, p, seed)
    for index, rows in _blocks(scores.shape):
        e = scores.at(index, rows)
        top = e.max(-1, keepdims=True, initial=-np.inf)
        np.copyto(top, 0, where=top == -np.inf)  # a row that sees nothing: exp(-inf - 0) = 0
        e -= top
        np.exp(e, out=e)
        total = e.sum(-1, keepdims=True)
        empty = total == 0
        np.copyto(total, np.inf, where=empty)  # its probabilities are then 0 in both passes: exp(-inf - inf)
        if p:
            e *= scores.factors(index, rows)
        part = np.matmul(e, v[index])
        part /= total
        y[index][..., rows, :] = part
        lse[index][..., rows] = (np.log(total) + top)[..., 0]
    return y.astype(dtype, copy=False), lse


def backward(dy: ndarray, q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None, y: ndarray, lse: ndarray, scale: float,
             causal: bool, p: float, seed: int) -> tuple[ndarray, ndarray, ndarray]:  # fmt: skip
    """(dq, dk, dv), each in memory as what it is the gradient of."""
    dtype = q.dtype
    dy, q, k, v, y = _wide(dy), _wide(q), _wide(k), _wide(v), _wide(y)
    dq, dk, dv = np.empty_like(q), np.zeros_like(k), np.zeros_like(v)
    delta = np.einsum("...e,...e->...", dy, y)[..., None]
    scores = _Scores(q, k, mask, scale, causal, p, seed)
    vt = v.swapaxes(-1, -2)
    for index, rows in _blocks(scores.shape):
        at = (*index, ..., rows, slice(None))
        prob = scores.at(index, rows)
        prob -= lse[index][..., rows, None]
        np.exp(prob, out=prob)
        dp = np.matmul(dy[at], vt[index])
        if p:
            factors = scores.factors(index, rows)
            dp *= factors
            dv[index] += np.matmul((prob * factors).swapaxes(-1, -2), dy[at])
        else:
            dv[index] += np.matmul(prob.swapaxes(-1, -2), dy[at])
        dp -= delta[at]
        dp *= prob  # 0 where nothing is seen, whatever dp holds
        dq[at] = np.matmul(dp, k[index])
        dk[index] += np.matmul(dp.swapaxes(-1, -2), scores.q[at])
    dq *= q.dtype.type(scale)
    return tuple(g.astype(dtype, copy=False) for g in (dq, dk, dv))  # type: ignore[return-value]
