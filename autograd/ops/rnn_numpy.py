"""Recurrent layers over whole sequences on NumPy: the loops over time that all cells share. The cells: rnn_cells.py.

Memory is laid out gate by gate, [gates, T, B, H]: the gates of one step are few contiguous blocks, which is what
NumPy's elementwise loops are fast at (a strided row costs them 0.1 µs, a contiguous element 0.2 ns). Time is walked in
blocks that stay in the second-level cache: a block's input products, gradient factors and weight gradients are each one
call, and only what is inherently sequential runs step by step. Every result is written where it belongs (`out=`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

BLOCK = 1 << 15  # elements [k, B, H] of a block of k steps: 128 KiB in float32
STEPS = 8  # but so many steps at least: weight gradients add up products over a block, and short ones move more than they add
ORDER = ("x", "h0", "w_ih", "w_hh", "b_ih", "b_hh", "c0", "w_hr")  # of an op's inputs, and of backward's results


def sigmoid_of(x: ndarray, y: ndarray, one: Any = 1) -> None:
    """y = 1 / (1 + exp(-x)), changing x; exp is NumPy's fastest function, and its overflow to infinity gives 0.

    one: 1 as an array of x's dtype, which saves NumPy the conversion: half of what a call on few elements costs.
    """
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += one
    np.reciprocal(x, out=y)


def widened(*arrays: ndarray | None) -> list:
    """float16 operands as float32: NumPy has no fast float16 product."""
    return [a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in arrays]


def block_of(memory: ndarray, *shape: int) -> ndarray:
    """The first elements of a flat array, in a shape."""
    return memory[: math.prod(shape)].reshape(shape)


def by_gate(w: ndarray, units: int) -> ndarray:
    """[G * H, N] as [G, H, N], a view."""
    return w.reshape(-1, units, w.shape[-1])


class Walk:
    """The order of time: blocks of steps as (start, stop), forwards or backwards in memory."""

    def __init__(self, steps: int, batch: int, units: int, reverse: bool):
        self.steps, self.reverse = steps, reverse
        self.size = max(min(max(BLOCK // max(batch * units, 1), STEPS), steps), 1)

    def blocks(self, back: bool = False) -> Iterator[tuple[int, int]]:
        """The blocks as they are computed, or (`back`) in the opposite order."""
        starts = range(0, self.steps, self.size)
        for start in starts if self.reverse == back else reversed(starts):
            yield start, min(start + self.size, self.steps)

    def within(self, start: int, stop: int, back: bool = False) -> range:
        """The steps of a block in the same order."""
        return range(start, stop) if self.reverse == back else range(stop - 1, start - 1, -1)

    @property
    def last(self) -> int:
        """The step that is computed last."""
        return 0 if self.reverse else self.steps - 1


def dead_rows(mask: ndarray | None, steps: int) -> list:
    """For every step the rows that keep their state there (mask[t, b] is False), or None."""
    if mask is None:
        return [None] * steps
    full: ndarray = mask.all(1)  # type: ignore[assignment]
    return [None if full[t] else np.flatnonzero(~mask[t]) for t in range(steps)]


class Inputs:
    """g[:, t] = W x[t] + b for a block of steps, [G, k, B, H], in memory that is used again for the next block."""

    def __init__(self, x: ndarray, w: ndarray | None, bias: ndarray | None, gates: int, units: int, size: int):
        self.x, self.bias, self.units = x, bias, units
        self.w = None if w is None else by_gate(w, units).transpose(0, 2, 1)
        self.memory = np.empty((gates, size * x.shape[1], units), x.dtype)

    def of(self, start: int, stop: int) -> ndarray:
        """The products of the steps start … stop - 1."""
        x = self.x[start:stop]
        k, batch, width = x.shape
        rows = x.reshape(k * batch, width)
        g = self.memory[:, : k * batch]
        if self.w is None:  # the input itself enters every gate
            g[...] = rows
        else:
            np.matmul(rows, self.w, out=g)
        if self.bias is not None:
            g += self.bias
        return g.reshape(len(g), k, batch, self.units)


def merged_bias(b_ih: ndarray | None, b_hh: ndarray | None, units: int, apart: bool = False) -> tuple:
    """(bias of the input products [G, 1, H], bias of the last gate's recurrent product [H]).

    The two biases of a gate act as their sum, except where (`apart`) the reset gate acts on the last gate's product.
    """
    if b_hh is None:
        return (None if b_ih is None else b_ih.reshape(-1, 1, units)), None
    last = b_hh[-units:] if apart else None
    both = b_hh.copy()
    if apart:
        both[-units:] = 0
    if b_ih is not None:
        both += b_ih
    return both.reshape(-1, 1, units), last


def forward(cell: Any, x: ndarray, h0: ndarray, w_ih: ndarray | None, w_hh: ndarray, b_ih: ndarray | None,
            b_hh: ndarray | None, c0: ndarray | None = None, w_hr: ndarray | None = None, *, mask: ndarray | None = None,
            reverse: bool = False, save: bool = True, **options: Any) -> tuple:  # fmt: skip
    """(y [T, B, P], hn [B, P], and what the cell adds: cn, saved); see `layer` in rnn.py.

    Without `save` nothing is kept for backward, and memory does not grow with T beyond y.
    """
    dtype = x.dtype
    x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr = widened(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
    steps, (batch, width), units = len(x), h0.shape, w_hh.shape[0] // cell.gates
    y = np.empty((steps, batch, width), x.dtype)
    walk = Walk(steps, batch, units, reverse)
    bias, apart = merged_bias(b_ih, b_hh, units, cell.apart)
    run = cell(w_hh, apart, c0, w_hr, (steps, batch, units), save, x.dtype, **options)
    inputs = Inputs(x, w_ih, bias, cell.gates, units, walk.size)
    dead = dead_rows(mask, steps)
    h = h0
    for start, stop in walk.blocks():
        g = inputs.of(start, stop)
        for t in walk.within(start, stop):
            run.step(t, g[:, t - start], h, y[t])
            if dead[t] is not None:
                y[t, dead[t]] = h[dead[t]]
                run.hold(t, dead[t])
            h = y[t]
    return (y.astype(dtype, copy=False), h.astype(dtype), *run.results(dtype))


class Products:
    """Gradients that are sums over time of products, added up block by block: dx, dW, db."""

    def __init__(self, cell: Any, needs: tuple, x: ndarray, w_ih: ndarray | None, w_hh: ndarray, units: int, size: int):
        self.cell, self.needs, self.units, self.x = cell, needs, units, x
        count, batch, dtype = cell.gates, x.shape[1], x.dtype
        self.dx = np.empty(x.shape, dtype) if needs[0] else None
        self.w_ih = None
        if needs[0] and w_ih is not None:
            self.w_ih = by_gate(w_ih, units)[cell.input_gates]
            self.parts = np.empty((count, size * batch, w_ih.shape[1]), dtype)
        self.dw_ih = np.zeros((count, units, x.shape[2]), dtype) if needs[2] and w_ih is not None else None
        self.dw_hh = np.zeros((count, units, w_hh.shape[1]), dtype) if needs[3] else None
        self.sums = np.zeros((cell.grads, units), dtype) if needs[4] or needs[5] else None
        self.ones = np.ones(size * batch, dtype)

    def add(self, start: int, stop: int, d: ndarray, before: ndarray) -> None:
        """The share of one block: d [grads, k, B, H], and the states before its steps [k, B, P]."""
        d = d.reshape(len(d), -1, self.units)
        x = self.x[start:stop].reshape(d.shape[1], self.x.shape[2])
        inner = d[: self.cell.gates]
        if self.dx is not None:
            self._input_gradient(inner, self.dx[start:stop].reshape(x.shape))
        if self.dw_ih is not None:
            self.dw_ih += np.matmul(inner.transpose(0, 2, 1), x)
        if self.dw_hh is not None:
            self.cell.weight_gradient(self.dw_hh, d, before.reshape(d.shape[1], before.shape[2]), start, stop)
        if self.sums is not None:
            self.sums += np.matmul(self.ones[: d.shape[1]], d)

    def _input_gradient(self, d: ndarray, dx: ndarray) -> None:
        if self.w_ih is not None:
            d = np.matmul(d, self.w_ih, out=self.parts[:, : d.shape[1]])
        np.add.reduce(d, 0, out=dx)

    def results(self) -> tuple:
        """(dx, dw_ih, dw_hh, db_ih, db_hh), gates in the weights' own order; None for what is not needed."""
        back = np.argsort(self.cell.input_gates)
        flat = lambda a: None if a is None else a.reshape(-1, a.shape[-1])
        dw_ih = None if self.dw_ih is None else flat(self.dw_ih[back])
        db_ih = db_hh = None
        if self.sums is not None:
            db_ih = self.sums[: self.cell.gates][back].reshape(-1) if self.needs[4] else None
            db_hh = self.sums[-self.cell.gates :].flatten() if self.needs[5] else None
        return self.dx, dw_ih, flat(self.dw_hh), db_ih, db_hh


def states_before(y: ndarray, h0: ndarray, start: int, stop: int, walk: Walk, memory: ndarray) -> ndarray:
    """[k, B, P]: the state that each step of a block began with; a view of y, or in `memory` next to h0."""
    if walk.reverse:
        if stop < walk.steps:
            return y[start + 1 : stop + 1]
        memory[: stop - start - 1] = y[start + 1 : stop]
        memory[stop - start - 1] = h0
    else:
        if start:
            return y[start - 1 : stop - 1]
        memory[0] = h0
        memory[1 : stop - start] = y[: stop - 1]
    return memory[: stop - start]


def backward(cell: Any, dy: ndarray | None, dhn: ndarray | None, dcn: ndarray | None, inputs: tuple, y: ndarray,
             saved: ndarray | None, needs: tuple, mask: ndarray | None = None, reverse: bool = False,
             **options: Any) -> tuple:  # fmt: skip
    """The gradients of forward's inputs in ORDER, None for those that `needs` does not ask for."""
    dtype = y.dtype
    x, h0, w_ih, w_hh, c0, w_hr, y, dy, dhn, dcn = widened(*inputs, y, dy, dhn, dcn)
    (steps, batch, width), units = y.shape, w_hh.shape[0] // cell.gates
    walk = Walk(steps, batch, units, reverse)
    run = cell.reverse(w_hh, c0, w_hr, saved, walk, needs, dcn, **options)
    products = Products(run, needs, x, w_ih, w_hh, units, walk.size)
    memory = np.empty((walk.size, batch, width), y.dtype)
    dead = dead_rows(mask, steps)
    dh = np.zeros((batch, width), y.dtype) if dhn is None else dhn.copy()
    for start, stop in walk.blocks(back=True):
        before = states_before(y, h0, start, stop, walk, memory)
        d = run.begin(start, stop, before, y)
        for t in walk.within(start, stop, back=True):
            if dy is not None:
                dh += dy[t]
            if dead[t] is None:
                run.step(t - start, dh)
            else:
                kept = dh[dead[t]]
                dh[dead[t]] = 0
                run.step(t - start, dh)
                dh[dead[t]] += kept
        products.add(start, stop, d, before)
        run.end(start, stop)
    dx, dw_ih, dw_hh, db_ih, db_hh = products.results()
    dc0, dw_hr = run.results()
    found = (dx, dh if needs[1] else None, dw_ih, dw_hh, db_ih, db_hh, dc0, dw_hr)
    return tuple(None if a is None else a.astype(dtype, copy=False) for a in found)
