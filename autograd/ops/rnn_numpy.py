"""Recurrent layers over whole sequences on NumPy: the loops over time that all cells share. The cells: rnn_cells.py.

States are columns, [H, B], and the gates of a step one matrix [G H, B]: one product with the weights as they are, that
BLAS shares between threads, and every gate a whole piece of memory, which is what NumPy's elementwise loops are fast at
(a strided row costs them 0.1 µs, a contiguous element 0.2 ns). Time is walked in blocks that stay in the second-level
cache: a block's input products, gradient factors and weight gradients are one call each, and only what is inherently
sequential runs step by step. Every result is written where it belongs (`out`), and what a cell keeps of a step lies in
such an order that one call takes several parts at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from ..blocks import empty

BLOCK = 1 << 16  # elements [k, H, B] of a block of k steps: 256 KiB in float32
STEPS = 16  # but so many steps at least: weight gradients add up products over a block, and short ones move more than they add
CALLS = 1 << 12  # what a handful of calls costs, in elements copied
LONG = 1 << 10  # columns in all, from which it pays to lay the weights out for the way back


def widened(*arrays: ndarray | None) -> list:
    """float16 operands as float32: NumPy has no fast float16 product."""
    return [a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in arrays]


def by_gate(w: ndarray, units: int) -> ndarray:
    """[G * H, …] as [G, H, …], a view."""
    return w.reshape(len(w) // units, units, *w.shape[1:])  # -1 is unknown where another size is 0


def in_order(w: ndarray, order: Any, units: int) -> ndarray:
    """[G * H, …] with its gates in another order; w itself where that is its own."""
    return w if list(order) == list(range(len(order))) else by_gate(w, units)[order].reshape(w.shape)


def matrices(a: ndarray) -> ndarray:
    """[k, G, H, B] as [k, G H, B], a view."""
    k, gates, units, batch = a.shape
    return a.reshape(k, gates * units, batch)


def by_step(*arrays: ndarray) -> list:
    """The k tuples of […] of arrays [k, …], views: to index each in turn takes twice as long."""
    return list(zip(*arrays, strict=True))


def columns(rows: ndarray) -> ndarray:
    """[B, H] as [H, B], in memory of its own that lies in order."""
    out = empty(rows.shape[::-1], rows.dtype)
    out[...] = rows.T
    return out


def over_steps(d: ndarray, rows: ndarray, out: ndarray | None = None) -> ndarray:
    """d [G H, k B] @ rows [k B, N]: a gradient of weights. NumPy's products of a single column and row do without BLAS."""
    return np.multiply(d, rows, out) if len(rows) == 1 else np.matmul(d, rows, out)


def plus(total: ndarray | None, part: ndarray) -> ndarray:
    """total += part, where the first part is the total."""
    return part if total is None else np.add(total, part, total)


def signed(cell: Any, a: ndarray, out: ndarray) -> ndarray:
    """[G, …] in the cell's order of gates, negated for sigmoids: they are 1 / (1 + exp(a)) of such a sum a."""
    for k, gate in enumerate(cell.order):
        if k in cell.sigmoids:
            np.negative(a[gate], out[k])
        else:
            out[k] = a[gate]
    return out


def few(w: ndarray, walk: Walk) -> bool:
    """Whether it costs less to put the products of all steps in order and sign them than to do so with the weights w."""
    return walk.steps * (CALLS + len(w) * walk.batch) < w.size


class Walk:
    """The order of time: blocks of steps as (start, stop), forwards or backwards in memory."""

    def __init__(self, steps: int, batch: int, units: int, reverse: bool):
        self.steps, self.batch, self.units, self.reverse = steps, batch, units, reverse
        self.size = max(min(max(BLOCK // max(batch * units, 1), STEPS), steps), 1)
        self.is_long = batch > 1 and steps * batch >= LONG  # a vector BLAS likes as well in the weights' own order

    def blocks(self, back: bool = False) -> Iterator[tuple[int, int]]:
        """The blocks as they are computed, or (`back`) in the opposite order."""
        starts = range(0, self.steps, self.size)
        for start in starts if self.reverse == back else reversed(starts):
            yield start, min(start + self.size, self.steps)

    def within(self, count: int, back: bool = False) -> range:
        """The places of so many steps of a block, in the same order."""
        return range(count) if self.reverse == back else range(count - 1, -1, -1)

    def room(self, parts: int, dtype: Any) -> ndarray:
        """Memory for so many parts of a block: [k, parts, H, B]."""
        return empty((self.size, parts, self.units, self.batch), dtype)


def dead_rows(mask: ndarray | None, start: int, stop: int) -> list:
    """For each step of a block the rows that keep their state there (mask[t, b] is False), or None."""
    if mask is None:
        return [None] * (stop - start)
    live = mask[start:stop]
    full = np.logical_and.reduce(live, 1)
    return [None if full[i] else np.flatnonzero(~live[i]) for i in range(stop - start)]


class Inputs:
    """W x[t] + b for a block of steps, signed, [k, G, H, B], in memory that is used again for the next block.

    Where W is put in order and signed, the bias is one more column of it, for an input that is always 1: the product
    adds it for nothing.
    """

    def __init__(self, cell: Any, x: ndarray, w: ndarray | None, bias: ndarray | None, walk: Walk):
        self.cell, self.x, self.plain, units = cell, x, w, walk.units
        self.memory = walk.room(cell.gates, x.dtype)
        bias = np.zeros((cell.gates, units), x.dtype) if bias is None else bias
        if w is None or few(w, walk):
            self.bias = signed(cell, bias, np.empty_like(bias))[..., None]
            return
        width, self.bias = x.shape[2], None
        self.w = empty((cell.gates, units, width + 1), x.dtype)
        signed(cell, by_gate(w, units), self.w[..., :width])
        signed(cell, bias, self.w[..., width])
        self.w = self.w.reshape(-1, width + 1)
        self.ones = empty((walk.size, width + 1, walk.batch), x.dtype)
        self.ones[:, width] = 1

    def of(self, start: int, stop: int) -> ndarray:
        """The products of the steps start … stop - 1."""
        x = self.x[start:stop].transpose(0, 2, 1)
        k, width, batch = x.shape
        g = self.memory[:k]
        if self.bias is not None:
            if self.plain is None:  # the input itself enters every gate
                products = np.broadcast_to(x[:, None], g.shape)
            else:
                products = np.matmul(self.plain, x).reshape(g.shape)
            signed(self.cell, products.swapaxes(0, 1), g.swapaxes(0, 1))
            g += self.bias
            return g
        inputs = self.ones[:k]
        inputs[:, :width] = x
        if batch == 1:
            np.matmul(inputs[..., 0], self.w.T, matrices(g)[..., 0])
        else:
            np.matmul(self.w, inputs, matrices(g))
        return g


def merged_bias(b_ih: ndarray | None, b_hh: ndarray | None, units: int, apart: bool = False) -> tuple:
    """(bias of the input products [G, H], bias of the last gate's recurrent product [H]).

    The two biases of a gate act as their sum, except where (`apart`) the reset gate acts on the last gate's product.
    """
    if b_hh is None:
        return (None if b_ih is None else b_ih.reshape(-1, units)), None
    last = b_hh[-units:] if apart else None
    both = b_hh.copy()
    if apart:
        both[-units:] = 0
    if b_ih is not None:
        both += b_ih
    return both.reshape(-1, units), last


def forward(cell: Any, x: ndarray, h0: ndarray, w_ih: ndarray | None, w_hh: ndarray, b_ih: ndarray | None,
            b_hh: ndarray | None, c0: ndarray | None = None, w_hr: ndarray | None = None, *, mask: ndarray | None = None,
            reverse: bool = False, save: bool = True, **options: Any) -> tuple:  # fmt: skip
    """(y [T, B, P], hn [B, P], and what the cell adds: cn, saved); see `layer` in rnn.py.

    Without `save` nothing is kept for backward, and memory does not grow with T beyond y.
    """
    dtype = x.dtype
    x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr = widened(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
    steps, (batch, width), units = len(x), h0.shape, w_hh.shape[0] // cell.gates
    y = empty((steps, batch, width), x.dtype)
    walk = Walk(steps, batch, units, reverse)
    bias, apart = merged_bias(b_ih, b_hh, units, cell.apart)
    run = cell(w_hh, apart, c0, w_hr, walk, save, **options)
    inputs = Inputs(cell, x, w_ih, bias, walk)
    memory = None if batch == 1 else empty((walk.size, width, batch), x.dtype)
    h = columns(h0)
    for start, stop in walk.blocks():
        g = inputs.of(start, stop)
        states = y[start:stop].transpose(0, 2, 1) if memory is None else memory[: stop - start]
        steps_of = zip(run.slots(start, stop), g, states, dead_rows(mask, start, stop), strict=True)
        for slots, gates, new, rows in reversed(list(steps_of)) if reverse else steps_of:
            run.step(slots, gates, h, new)
            if rows is not None:
                new[:, rows] = h[:, rows]
                run.hold(slots, rows)
            h = new
        if memory is not None:
            y[start:stop] = states.transpose(0, 2, 1)
    return (y.astype(dtype, copy=False), h.T.astype(dtype, "C"), *run.results(dtype))


class Products:
    """Gradients that are sums over time of products, added up block by block: dx, dW, db."""

    def __init__(self, run: Any, needs: tuple, x: ndarray, w_ih: ndarray | None, walk: Walk):
        self.run, self.needs, self.x, self.w_ih, self.walk = run, needs, x, w_ih, walk
        self.dx = np.empty(x.shape, x.dtype) if needs[0] else None
        self.hidden, self.inner = run.order[: run.gates], run.order[-run.gates :]  # gates, as d has them
        if w_ih is not None and needs[0]:
            self.w_ih = in_order(w_ih, self.inner, walk.units)
        self.dw_ih = self.dw_hh = self.sums = None  # of the inputs with their one, of the states, of gates of the states alone
        self.width = x.shape[2] if needs[2] else 0
        self.rows = empty((len(run.order) * walk.units * walk.size * walk.batch,), x.dtype)
        self.ones = empty((walk.size, walk.batch, self.width + 1), x.dtype)  # inputs, and one that is always 1: its dW is db
        self.ones[..., -1] = 1

    def add(self, start: int, stop: int, d: ndarray, before: ndarray) -> None:
        """The share of one block: d [k, grads, H, B], and the states before its steps [k, B, P]."""
        k, batch, width = self.x[start:stop].shape
        d = self._side_by_side(d)
        inner = d[-self.run.gates * self.walk.units :]
        if self.dx is not None:
            dx = self.dx[start:stop].reshape(k * batch, width)
            if self.w_ih is None:
                dx[...] = np.add.reduce(by_gate(inner, width), 0).T
            else:
                np.matmul(inner.T, self.w_ih, dx)
        if self.needs[2] or self.needs[4] or self.needs[5]:
            inputs = self.ones[:k]
            if self.width:
                inputs[..., :-1] = self.x[start:stop]
            self.dw_ih = plus(self.dw_ih, over_steps(inner, inputs.reshape(k * batch, self.width + 1)))
        if self.needs[3]:
            rows = before.reshape(k * batch, before.shape[2])
            self.dw_hh = plus(self.dw_hh, self.run.weight_gradient(d, rows, start, stop))
        if self.needs[5]:
            self.sums = plus(self.sums, np.add.reduce(d[: len(d) - len(inner)], 1))

    def _side_by_side(self, d: ndarray) -> ndarray:
        """[grads H, k B]: one matrix of all steps, with which BLAS gains more than the copy costs."""
        k, grads, units, batch = d.shape
        if batch == 1:  # of one row it is one already
            return d.reshape(k, grads * units).T
        rows = self.rows[: d.size].reshape(grads, units, k, batch)
        rows[...] = d.transpose(1, 2, 0, 3)
        return rows.reshape(grads * units, k * batch)

    def results(self) -> tuple:
        """(dx, dw_ih, dw_hh, db_ih, db_hh), gates in the weights' own order; None for what is not needed."""
        units, inner, hidden = self.walk.units, np.argsort(self.inner), np.argsort(self.hidden)
        dw_ih = dw_hh = db_ih = db_hh = None
        if self.dw_hh is not None:
            dw_hh = in_order(self.dw_hh, hidden, units)
        if self.dw_ih is not None:
            both = in_order(self.dw_ih, inner, units)
            dw_ih = both[:, :-1].copy() if self.needs[2] else None
            db_ih = both[:, -1].copy() if self.needs[4] else None
            if self.sums is not None:
                db_hh = in_order(np.concatenate([self.sums, self.dw_ih[:, -1]])[: len(hidden) * units], hidden, units)
        return self.dx, dw_ih, dw_hh, db_ih, db_hh


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
    """The gradients of forward's inputs (x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr), None where `needs` is False."""
    dtype = y.dtype
    x, h0, w_ih, w_hh, _, w_hr, y, dy, dhn, dcn = widened(*inputs, y, dy, dhn, dcn)
    (steps, batch, width), units = y.shape, w_hh.shape[0] // cell.gates
    walk = Walk(steps, batch, units, reverse)
    run = cell.reverse(w_hh, w_hr, saved, walk, needs, dcn, **options)
    products = Products(run, needs, x, w_ih, walk)
    memory = np.empty((walk.size, batch, width), y.dtype)
    dh = columns(np.zeros((batch, width), y.dtype) if dhn is None else dhn)
    for start, stop in walk.blocks(back=True):
        before = states_before(y, h0, start, stop, walk, memory)
        d = run.begin(start, stop, before, y)
        above = None if dy is None else dy[start:stop].transpose(0, 2, 1)
        dead = dead_rows(mask, start, stop)
        for i in walk.within(stop - start, back=True):
            if above is not None:
                np.add(dh, above[i], dh)
            if dead[i] is None:
                run.step(i, dh)
            else:
                kept = dh[:, dead[i]]
                dh[:, dead[i]] = 0
                run.step(i, dh)
                dh[:, dead[i]] += kept
        products.add(start, stop, d, before)
        run.end(start, stop)
    dx, dw_ih, dw_hh, db_ih, db_hh = products.results()
    dc0, dw_hr = run.results()
    found = (dx, dh.T.copy() if needs[1] else None, dw_ih, dw_hh, db_ih, db_hh, dc0, dw_hr)
    return tuple(None if a is None else a.astype(dtype, copy=False) for a in found)
