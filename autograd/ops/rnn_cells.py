"""The recurrent cells on NumPy, one step at a time. The loops over time: rnn_numpy.py; the gradients: rnn_reverse.py.

A class computes `step(slots, g, h, y)`: from the input products g [G, B, H] and the state h the new state into y,
keeping in `slots`, a step's part of `saved` [.., T, B, H], what backward needs. `hold(slots, rows)` makes the step of
these rows the identity. Sigmoid's gates come first in g and in the weights, both negated (rnn_numpy.signed).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from .rnn_numpy import by_step, empty, right_factor
from .rnn_reverse import GruBeforeReverse, GruReverse, LstmReverse, RnnReverse


class _Forward:
    """What the cells keep: `saved` [parts, T, B, H], or room for one step that is used again when nothing is saved."""

    gates = parts = sigmoids = 0
    order: list = []  # the weights' gates as they are computed here, those of sigmoid first
    apart = False  # whether the recurrent bias of the last gate is not simply added to the input bias

    def __init__(self, w_hh: ndarray, apart: ndarray | None, c0: Any, w_hr: Any, sizes: tuple, save: bool, dtype: Any):
        steps, batch, units = sizes
        self.w = right_factor(self, w_hh, units, batch)
        self.bias, self.save = apart, save
        self.saved = empty((self.parts, steps if save else 1, batch, units), dtype)
        self.room = empty((self.gates, batch, units), dtype)
        self.into = self.room.reshape(1, -1) if batch == 1 else self.room  # as the product with w has it
        self.sums, self.views = self.room[: self.sigmoids], list(self.room)
        self.one = np.array(1, dtype)  # of x's dtype: converting a number is half of what a call on few elements costs

    def products(self, h: ndarray) -> ndarray:
        """h times the recurrent weights of all gates, into room [G, B, H]."""
        np.matmul(h, self.w, self.into)
        return self.room

    def sigmoid(self, *out: ndarray) -> None:
        """1 / (1 + exp(a)) of the negated sums of sigmoid's gates in room; where exp overflows, that is 0."""
        sums = self.sums
        np.exp(sums, sums)
        np.add(sums, self.one, sums)
        for gate, y in zip(self.views, out, strict=False):
            np.reciprocal(gate, y)

    def slots(self, start: int, stop: int) -> list:
        """For each step of a block its parts of `saved`."""
        if not self.parts:
            return [()] * (stop - start)
        return by_step(*self.saved[:, start:stop]) if self.save else by_step(*self.saved) * (stop - start)

    def hold(self, slots: tuple, rows: ndarray) -> None:
        """z = 1 and all else 0: finite, whatever the masked input held, and no gradient passes a gate."""
        for part in slots:
            part[rows] = 0
        slots[1][rows] = 1

    def results(self, dtype: Any) -> tuple:
        """The op's outputs after y and hn."""
        return (self.saved if self.save else self.saved[:, :0],)


class Gru(_Forward):
    """h' = n + z (h - n), n = tanh(g_n + r (R_n h + b_n)): the reset gate acts on the product. Saved: r, z, q, n."""

    gates, parts, sigmoids, order, apart = 3, 4, 2, [0, 1, 2], True
    reverse = GruReverse

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """q = R_n h + b_n is kept; the gates r and z are one block."""
        r, z, q, n = slots
        self.products(h)
        if self.bias is None:
            q[...] = self.views[2]
        else:
            np.add(self.views[2], self.bias, q)
        np.add(self.sums, g[:2], self.sums)
        self.sigmoid(r, z)
        np.multiply(r, q, n)
        np.add(n, g[2], n)
        np.tanh(n, n)
        np.subtract(h, n, y)
        np.multiply(y, z, y)
        np.add(y, n, y)


class GruBefore(_Forward):
    """h' = n + z (h - n), n = tanh(g_n + R_n (r h)): the reset gate acts on the state. Saved: r, z, n."""

    gates, parts, sigmoids, order = 3, 3, 2, [0, 1, 2]
    reverse = GruBeforeReverse

    def __init__(self, *args: Any):
        super().__init__(*args)
        columns = self.w.ndim == 2  # of one row
        two = 2 * self.room.shape[2]
        self.w_rz, self.w_n = (self.w[:, :two], self.w[:, two:]) if columns else (self.w[:2], self.w[2])
        self.into_rz = self.into[:, :two] if columns else self.sums

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """Two products: the second needs r."""
        r, z, n = slots
        np.matmul(h, self.w_rz, self.into_rz)
        np.add(self.sums, g[:2], self.sums)
        self.sigmoid(r, z)
        np.multiply(r, h, y)
        np.matmul(y, self.w_n, n)
        np.add(n, g[2], n)
        np.tanh(n, n)
        np.subtract(h, n, y)
        np.multiply(y, z, y)
        np.add(y, n, y)


class Rnn(_Forward):
    """h' = tanh(g + R h), or max(0, g + R h). Nothing is saved: y tells the derivative."""

    gates, parts, order = 1, 0, [0]
    reverse = RnnReverse

    def __init__(self, *args: Any, relu: bool = False):
        super().__init__(*args)
        self.w, self.relu = self.w.reshape(self.w.shape[-2:]), relu

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """The new state in place of the product."""
        np.matmul(h, self.w, y)
        np.add(y, g[0], y)
        if self.relu:
            np.maximum(y, 0, out=y)
        else:
            np.tanh(y, y)

    def hold(self, slots: tuple, rows: ndarray) -> None:
        """y itself is all there is."""

    def results(self, dtype: Any) -> tuple:
        """Nothing after y and hn."""
        return ()


class Lstm(_Forward):
    """c' = f c + i g, h' = o tanh(c') [times W_hr^T]. Saved: i, f, g, o, c', tanh(c')."""

    gates, parts, sigmoids, order = 4, 6, 3, [0, 1, 3, 2]
    reverse = LstmReverse

    def __init__(self, w_hh: ndarray, apart: Any, c0: ndarray, w_hr: ndarray | None, sizes: tuple, save: bool, dtype: Any):
        super().__init__(w_hh, apart, c0, w_hr, sizes, save, dtype)
        self.c, self.held = c0, c0
        self.w_hr = None if w_hr is None else w_hr.T
        self.part = empty(sizes[1:], dtype)

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """i, f and o are one block until each has its slot."""
        i, f, new, o, c, squashed = slots
        u, part = self.products(h), self.part
        np.add(u, g, u)
        self.sigmoid(i, f, o)
        np.tanh(self.views[3], new)
        np.multiply(i, new, part)
        self.held = self.c if self.save else self.c.copy()  # c may be the one slot there is
        np.multiply(f, self.c, c)
        np.add(c, part, c)
        np.tanh(c, squashed)
        if self.w_hr is None:
            np.multiply(o, squashed, y)
        else:
            np.multiply(o, squashed, part)
            np.matmul(part, self.w_hr, y)
        self.c = c

    def hold(self, slots: tuple, rows: ndarray) -> None:
        """f = 1 and all else 0: the cell state stays, and so does its gradient."""
        held = self.held[rows]
        super().hold(slots, rows)
        slots[4][rows] = held

    def results(self, dtype: Any) -> tuple:
        """(cn, saved)."""
        return self.c.astype(dtype), *super().results(dtype)
