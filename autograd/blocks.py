"""Elementwise work on large NumPy arrays: passes over pieces that stay in the cache, and costly functions in threads.

All this runs inside grad_mode.state.run, as an op's NumPy function does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy import ndarray

from . import malloc, threads  # noqa: F401  (malloc asks glibc to keep freed memory)

BLOCK = 1 << 17  # elements of a piece
PIECE = 1 << 14  # the same where a function makes dozens of passes: its temporary arrays too stay in the cache
LINE, ALIGNED = 64, 1 << 12  # bytes of a cache line; elements from which an array begins on one
SHARED = 1 << 18  # elements from which threads share a costly function: below, waking them costs more


def empty(shape: tuple, dtype: Any) -> ndarray:
    """np.empty, beginning on a cache line: NumPy's own begins 16 bytes behind one, where a wide load needs two lines."""
    if math.prod(shape) < ALIGNED:
        return np.empty(shape, dtype)
    count = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(count + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    return memory[start : start + count].view(dtype).reshape(shape)


def _line(x: Any, shape: tuple) -> Any:
    """An operand as a vector of all elements, or as one number where all are the same element; None where it is neither."""
    if x.__class__ is not ndarray or not x.ndim:
        return x
    if x.shape == shape and x.flags.c_contiguous:
        return x.reshape(-1)
    return x[(0,) * x.ndim] if x.size and not any(x.strides) else None


def _pieces(lines: list, start: int, stop: int) -> list:
    return [x[start:stop] if x.__class__ is ndarray and x.ndim else x for x in lines]


def blocked(function: Callable, dtype: Any, shape: tuple, *operands: Any, size: int = BLOCK) -> ndarray:
    """A new array of this dtype and shape, into which function(*pieces of operands, piece of it) writes.

    Operands are arrays that broadcast to the shape, and numbers. Where they do not lie in memory in order, the whole is
    one piece. size: elements of a piece.
    """
    out = np.empty(shape, dtype)
    lines = [_line(x, shape) for x in operands]
    if out.size <= size or any(x is None for x in lines):
        function(*operands, out)
        return out
    flat = out.reshape(-1)
    for i in range(0, out.size, size):
        function(*_pieces(lines, i, i + size), flat[i : i + size])
    return out


def in_pieces(function: Callable[[ndarray], ndarray]) -> Callable[[ndarray], ndarray]:
    """Decorator of an elementwise function of one array, of its dtype, that makes dozens of passes over it."""

    def part(x: ndarray, out: ndarray) -> None:
        out[...] = function(x)

    @wraps(function)
    def pieced(x: ndarray) -> ndarray:
        return function(x) if x.size <= PIECE else blocked(part, x.dtype, x.shape, np.ascontiguousarray(x), size=PIECE)

    return pieced


def mapped(function: Callable, *operands: Any) -> ndarray:
    """function(*operands), an elementwise one that costs more than its memory does, in threads.

    Threads take long pieces: each time a NumPy call ends they compete for the interpreter, which costs tens of
    microseconds.
    """
    shape = operands[0].shape
    lines = [_line(x, shape) for x in operands]
    if any(x is None for x in lines):
        return function(*operands)
    out = np.empty(shape, function(*_pieces(lines, 0, 1)).dtype)
    flat = out.reshape(-1)

    def part(start: int, stop: int) -> None:
        pieces = _pieces(lines, start, stop)
        if isinstance(function, np.ufunc):
            function(*pieces, flat[start:stop])
        else:
            flat[start:stop] = function(*pieces)

    threads.split(part, out.size)
    return out


def chosen(condition: ndarray, a: Any, b: Any, out: ndarray) -> None:
    """out = a where condition, else b, by their bits; a and b are arrays of out's dtype or numbers.

    np.where takes a branch for every element, and a processor guesses half of them wrong where there is no pattern.
    """
    whole = np.dtype(f"i{out.itemsize}")
    bits = out.view(whole)
    p, q = (np.asarray(x, out.dtype).view(whole) for x in (a, b))
    if not q.ndim and not q:
        bits[...] = np.negative(condition.view(np.int8))  # all ones where it is true
        bits &= p
    elif not p.ndim and not p:
        bits[...] = condition.view(np.int8) - np.int8(1)  # all ones where it is false
        bits &= q
    else:
        mask = np.negative(condition.view(np.int8)).astype(whole)
        np.bitwise_xor(p, q, out=bits)
        bits &= mask
        bits ^= q
