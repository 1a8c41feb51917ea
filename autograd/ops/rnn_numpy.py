"""Recurrent layers over whole sequences on NumPy: the loops over time that all cells share. The cells: rnn_cells.py.

Memory is laid out gate by gate, [gates, T, B, H]: the gates of one step are few contiguous blocks, which is what
NumPy's elementwise loops are fast at (a strided row costs them 0.1 µs, a contiguous element 0.2 ns). Time is walked in
blocks that stay in the second-level cache: a block's input products, gradient factors and weight gradients are each one
call, and only what is inherently sequential runs step by step. Every result is written where it belongs (`out`), and a step's
operands are whole pieces of memory: on few elements a call that broadcasts or strides costs three that do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

LINE, ALIGNED = 64, 1 << 10  # bytes of a cache line; elements from which an array begins on one
ROWS, SMALL = 16, 10**6  # OpenBLAS multiplies matrices where they lie up to this many multiplications
BLOCK = 1 << 15  # elements [k, B, H] of a block of k steps: 128 KiB in float32
STEPS = 8  # but so many steps at least: weight gradients add up products over a block, and short ones move more than they add
ORDER = ("x", "h0", "w_ih", "w_hh", "b_ih", "b_hh", "c0", "w_hr")  # of an op's inputs, and of backward's results


def sigmoid_of(x: ndarray, y: ndarray) -> None:
    """y = 1 / (1 + exp(-x)), changing x; exp's overflow to infinity gives 0."""
    np.negative(x, x)
    np.exp(x, x)
    x += 1
    np.reciprocal(x, y)


def widened(*arrays: ndarray | None) -> list:
    """float16 operands as float32: NumPy has no fast float16 product."""
    return [a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in arrays]


def empty(shape: tuple, dtype: Any) -> ndarray:
    """np.empty, beginning on a cache line: NumPy's own begins 16 bytes behind one, where a wide load needs two lines."""
    if math.prod(shape) < ALIGNED:
        return np.empty(shape, dtype)
    count = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(count + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    return memory[start : start + count].view(dtype).reshape(shape)


def block_of(memory: ndarray, *shape: int) -> ndarray:
    """The first elements of a flat array, in a shape."""
    return memory[: math.prod(shape)].reshape(shape)


def by_gate(w: ndarray, units: int) -> ndarray:
    """[G * H, N] as [G, H, N], a view."""
    return w.reshape(-1, units, w.shape[-1])


def by_step(*arrays: ndarray) -> list:
    """The k tuples of […] of arrays [k, …], views: to index each in turn takes twice as long."""
    return list(zip(*arrays, strict=True))


def in_order(gates: list) -> bool:
    """Whether these are 0, 1, 2, …"""
    return gates == sorted(gates)


def plus(total: ndarray | None, part: ndarray) -> ndarray:
    """total += part, where the first part is the total."""
    return part if total is None else np.add(total, part, total)


def signed(cell: Any, a: ndarray, out: ndarray) -> ndarray:
    """[G, …] in the cell's order of gates, negated for sigmoids: they are 1 / (1 + exp(a)) of such a sum a."""
    for k, gate in enumerate(cell.order):
        np.multiply(a[gate], -1 if k < cell.sigmoids else 1, out[k])
    return out


def right_factor(cell: Any, w: ndarray, units: int, batch: int) -> ndarray:
    """Weights [G * H, N] as [G, N, H], signed: what rows are multiplied with; of one row, as one matrix [N, G * H].

    BLAS multiplies small matrices that lie in order where they lie, twice as fast; a vector it likes as well in the
    weights' own order.
    """
    gates = by_gate(w, units)
    if batch == 1:
        return signed(cell, gates, np.empty_like(gates)).reshape(w.shape).T
    gates = gates.transpose(0, 2, 1)
    return signed(cell, gates, empty(gates.shape, w.dtype))


def lie_well(rows: int, inner: int, columns: int) -> bool:
    """Whether BLAS multiplies [rows, inner] @ [inner, columns] where they lie: about as fast in one thread as, packed,
    the rows of many steps in two."""
    return rows >= ROWS and rows * inner * columns <= SMALL


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
    """W x[t] + b for a block of steps, signed, [k, G, B, H], in memory that is used again for the next block."""

    def __init__(self, cell: Any, x: ndarray, w: ndarray | None, bias: ndarray | None, units: int, size: int):
        self.x, (_, batch, width) = x, x.shape
        self.bias = None if bias is None else signed(cell, bias, np.empty_like(bias))
        self.w = None if w is None else right_factor(cell, w, units, batch)
        ones = np.ones((cell.gates, 1, 1), x.dtype)
        self.signs = signed(cell, ones, ones.copy())
        # A step's gates are one piece of memory unless BLAS is much faster with the rows of many steps together.
        self.apart = batch == 1 or w is None or lie_well(batch, width, units)
        shape = (size, cell.gates, batch, units)
        self.memory = empty(shape, x.dtype) if self.apart else empty((cell.gates, size, batch, units), x.dtype).swapaxes(0, 1)

    def of(self, start: int, stop: int) -> ndarray:
        """The products of the steps start … stop - 1."""
        x = self.x[start:stop]
        k, batch, width = x.shape
        g = self.memory[:k]
        if self.w is None:  # the input itself enters every gate
            np.multiply(x[:, None], self.signs, g)
        elif batch == 1:
            np.matmul(x.reshape(k, width), self.w, g.reshape(k, -1))
        elif self.apart:
            np.matmul(x[:, None], self.w, g)
        else:
            gates = g.swapaxes(0, 1)
            np.matmul(x.reshape(k * batch, width), self.w, gates.reshape(len(gates), k * batch, gates.shape[-1]))
        if self.bias is not None:
            g += self.bias
        return g


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
    y = empty((steps, batch, width), x.dtype)
    walk = Walk(steps, batch, units, reverse)
    bias, apart = merged_bias(b_ih, b_hh, units, cell.apart)
    run = cell(w_hh, apart, c0, w_hr, (steps, batch, units), save, x.dtype, **options)
    inputs = Inputs(cell, x, w_ih, bias, units, walk.size)
    dead = dead_rows(mask, steps)
    h = h0
    for start, stop in walk.blocks():
        g = inputs.of(start, stop)
        steps_of = zip(range(start, stop), run.slots(start, stop), g, y[start:stop], strict=True)
        for t, slots, gates, new in reversed(list(steps_of)) if reverse else steps_of:
            run.step(slots, gates, h, new)
            if dead[t] is not None:
                new[dead[t]] = h[dead[t]]
                run.hold(slots, dead[t])
            h = new
    return (y.astype(dtype, copy=False), h.astype(dtype), *run.results(dtype))


class Products:
    """Gradients that are sums over time of products, added up block by block: dx, dW, db."""

    def __init__(self, cell: Any, needs: tuple, x: ndarray, w_ih: ndarray | None, units: int, size: int):
        self.cell, self.needs, self.units, self.x, self.w_ih = cell, needs, units, x, w_ih
        self.dx = np.empty(x.shape, x.dtype) if needs[0] else None
        self.dw_ih = self.dw_hh = self.sums = None
        self.rows = empty((cell.grads * size * x.shape[1] * units,), x.dtype)
        self.ones = np.ones(size * x.shape[1], x.dtype)

    def add(self, start: int, stop: int, d: ndarray, before: ndarray) -> None:
        """The share of one block: d [grads, k, B, H], and the states before its steps [k, B, P]."""
        k, batch, width = self.x[start:stop].shape
        d = self._side_by_side(d)
        x = self.x[start:stop].reshape(k * batch, width)
        inner = d[:, -self.cell.gates * self.units :]
        if self.dx is not None:
            dx = self.dx[start:stop].reshape(k * batch, width)
            if self.w_ih is None:
                np.add.reduce(inner.reshape(k * batch, self.cell.gates, self.units), 1, out=dx)
            else:
                np.matmul(inner, self.w_ih, dx)
        if self.needs[2] and self.w_ih is not None:
            self.dw_ih = plus(self.dw_ih, np.matmul(inner.T, x))
        if self.needs[3]:
            rows = before.reshape(k * batch, before.shape[2])
            self.dw_hh = plus(self.dw_hh, self.cell.weight_gradient(d, rows, start, stop))
        if self.needs[4] or self.needs[5]:
            self.sums = plus(self.sums, np.matmul(self.ones[: k * batch], d))

    def _side_by_side(self, d: ndarray) -> ndarray:
        """[k B, grads H]: one matrix of all gates, with which BLAS gains more than the copy costs."""
        grads, k, batch, units = d.shape
        d = d.transpose(1, 2, 0, 3)
        if batch != 1:  # of one row it is one already
            rows = block_of(self.rows, *d.shape)
            rows[...] = d
            d = rows
        return d.reshape(k * batch, grads * units)

    def results(self) -> tuple:
        """(dx, dw_ih, dw_hh, db_ih, db_hh), gates in the weights' own order; None for what is not needed."""
        dw_hh, db_ih, db_hh = self.dw_hh, None, None
        back = list(np.argsort(self.cell.hidden_gates))
        if dw_hh is not None and not in_order(back):
            dw_hh = by_gate(dw_hh, self.units)[back].reshape(dw_hh.shape)
        if self.sums is not None:
            gates = self.cell.gates
            sums = self.sums.reshape(-1, self.units)
            db_ih = sums[-gates:].flatten() if self.needs[4] else None
            db_hh = sums[back].flatten() if self.needs[5] else None
        return self.dx, self.dw_ih, dw_hh, db_ih, db_hh


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
    products = Products(run, needs, x, w_ih, units, walk.size)
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
