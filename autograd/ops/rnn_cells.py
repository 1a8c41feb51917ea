"""The recurrent cells on NumPy, one step at a time. The loops over time: rnn_numpy.py; the gradients: rnn_reverse.py.

A class computes `step(slots, g, h, y)`: from the input products g [G, H, B] and the state h [H, B] the new state into y,
keeping in `slots`, a step's parts of `saved` [T, parts, H, B], what backward needs. `hold(slots, rows)` corrects them
for rows that keep their state. Sigmoid's gates lie side by side in g and in the weights, negated (rnn_numpy.signed).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..blocks import empty
from .rnn_numpy import Walk, by_gate, by_step, few, signed
from .rnn_reverse import GruBeforeReverse, GruReverse, LstmReverse, RnnReverse


class _Forward:
    """What the cells keep: `saved` [T, parts, H, B], or room for one step that is used again when nothing is saved."""

    gates = parts = 0
    more = 0  # steps of `saved` beyond the sequence's
    order: list = []  # the weights' gates as they are computed here
    sigmoids = range(0)  # which of these have a sigmoid
    apart = False  # whether the recurrent bias of the last gate is not simply added to the input bias

    def __init__(self, w_hh: ndarray, apart: ndarray | None, c0: Any, w_hr: Any, walk: Walk, save: bool):
        units, batch, dtype = walk.units, walk.batch, w_hh.dtype
        self.w, self.plain = w_hh, empty((self.gates, units, batch), dtype) if few(w_hh, walk) else None
        if self.plain is None and self.sigmoids:
            self.w = signed(self, by_gate(w_hh, units), empty((self.gates, units, w_hh.shape[1]), dtype)).reshape(w_hh.shape)
        # as many columns as the batch has rows: a call that broadcasts costs three that do not
        self.bias = None if apart is None else np.repeat(apart[:, None], batch, 1)
        self.walk, self.save = walk, save
        self.saved = empty(((walk.steps if save else 1) + self.more, self.parts, units, batch), dtype)
        self.room = empty((self.gates, units, batch), dtype)
        self.into = self.room.reshape(self.gates * units, batch)  # as the product with w has it
        self.sums, self.views = self.room[self.sigmoids.start : self.sigmoids.stop], list(self.room)
        self.one = np.array(1, dtype)  # of x's dtype: converting a number is half of what a call on few elements costs

    def products(self, h: ndarray) -> None:
        """W h of all gates, in order and signed, into room."""
        if self.plain is None:
            np.dot(self.w, h, self.into)
        else:
            np.dot(self.w, h, self.plain.reshape(self.into.shape))
            signed(self, self.plain, self.room)

    def sigmoid(self, out: ndarray) -> None:
        """1 / (1 + exp(a)) of the negated sums a of sigmoid's gates in room; where exp overflows, that is 0."""
        sums, one = self.sums, self.one
        np.exp(sums, sums)
        np.add(sums, one, sums)
        np.divide(one, sums, out)  # np.reciprocal takes twice as long

    def slots(self, start: int, stop: int) -> list:
        """For each step of a block its parts of `saved`: all of them, those of sigmoid, each by itself."""
        if not self.save:
            return self.slots_of(self.saved) * (stop - start)
        return self.slots_of(self.saved[start:stop])

    def slots_of(self, s: ndarray) -> list:
        """For each step of s [k, parts, H, B]."""
        return by_step(s, s[:, : len(self.sigmoids)], *s.swapaxes(0, 1))

    def hold(self, slots: tuple, rows: ndarray) -> None:
        """h' is all the state there is, and the loops see to it and to its gradient."""

    def results(self, dtype: Any) -> tuple:
        """The op's outputs after y and hn."""
        return (self.saved if self.save else self.saved[:0],)


class Gru(_Forward):
    """h' = n + z (h - n), n = tanh(g_n + r (R_n h + b_n)): the reset gate acts on the product. Saved: r, z, q, n."""

    gates, parts, order, sigmoids, apart = 3, 4, [0, 1, 2], range(2), True
    reverse = GruReverse

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """q = R_n h + b_n is kept; the gates r and z are one block."""
        _, gates, r, z, q, n = slots
        self.products(h)
        if self.bias is None:
            q[...] = self.views[2]
        else:
            np.add(self.views[2], self.bias, q)
        np.add(self.sums, g[:2], self.sums)
        self.sigmoid(gates)
        np.multiply(r, q, n)
        np.add(n, g[2], n)
        np.tanh(n, n)
        np.subtract(h, n, y)
        np.multiply(y, z, y)
        np.add(y, n, y)


class GruBefore(_Forward):
    """h' = n + z (h - n), n = tanh(g_n + R_n (r h)): the reset gate acts on the state. Saved: r, z, n."""

    gates, parts, order, sigmoids = 3, 3, [0, 1, 2], range(2)
    reverse = GruBeforeReverse

    def __init__(self, *args: Any):
        super().__init__(*args)
        two = 2 * self.walk.units
        self.w_rz, self.w_n, self.into_rz = self.w[:two], self.w[two:], self.into[:two]

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """Two products: the second needs r."""
        _, gates, r, z, n = slots
        np.dot(self.w_rz, h, self.into_rz)
        if self.plain is not None:
            np.negative(self.sums, self.sums)
        np.add(self.sums, g[:2], self.sums)
        self.sigmoid(gates)
        np.multiply(r, h, y)
        np.dot(self.w_n, y, n)
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
        self.relu = relu

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """The new state in place of the product."""
        np.dot(self.w, h, y)
        np.add(y, g[0], y)
        if self.relu:
            np.maximum(y, 0, out=y)
        else:
            np.tanh(y, y)

    def results(self, dtype: Any) -> tuple:
        """Nothing after y and hn."""
        return ()


class Lstm(_Forward):
    """c' = f c + i g, h' = o tanh(c') [times W_hr^T]. Saved: i, f, o, g, c, tanh(c'), and the last c'.

    In this order one call computes i g and f c, and in backward one call three factors. A step's c' is the next step's
    c, so that `saved` has one step more than the sequence, the first one where time runs backwards.
    """

    gates, parts, more, order, sigmoids = 4, 6, 1, [0, 1, 3, 2], range(3)
    reverse = LstmReverse

    def __init__(self, w_hh: ndarray, apart: Any, c0: ndarray, w_hr: ndarray | None, walk: Walk, save: bool):
        super().__init__(w_hh, apart, c0, w_hr, walk, save)
        self.w_hr = w_hr
        self.pair = empty((2, *self.room.shape[1:]), w_hh.dtype)
        self.of_pair = tuple(self.pair)
        self.first, self.end = (walk.steps, 0) if walk.reverse else (0, walk.steps)
        self.saved[self.end % len(self.saved)] = 0  # but for c' nothing is written there
        self.saved[self.first % len(self.saved), 4] = c0.T

    def slots(self, start: int, stop: int) -> list:
        """For each step its parts: all, i f o, i f, g c, o, g, tanh(c'), and the c' of the step computed after it."""
        back = self.walk.reverse
        if self.save:
            now, after = self.saved[start + back : stop + back], self.saved[start + 1 - back : stop + 1 - back]
            return self.slots_of(now, after)
        both = self.slots_of(self.saved, self.saved[::-1])  # two steps in turns
        return [both[(t + back) % 2] for t in range(start, stop)]

    def slots_of(self, now: ndarray, after: ndarray) -> list:  # type: ignore[override]
        """For each step of `now` [k, parts, H, B], and those computed after them."""
        return by_step(now, now[:, :3], now[:, :2], now[:, 3:5], now[:, 2], now[:, 3], now[:, 5], after[:, 4])

    def step(self, slots: tuple, g: ndarray, h: ndarray, y: ndarray) -> None:
        """The sum of two products is one call for the products, and one for the sum."""
        _, gates, i_f, g_c, o, new, squashed, c = slots
        room, pair, (first, second) = self.room, self.pair, self.of_pair
        self.products(h)
        np.add(room, g, room)
        self.sigmoid(gates)
        np.tanh(self.views[3], new)
        np.multiply(i_f, g_c, pair)
        np.add(first, second, c)
        np.tanh(c, squashed)
        if self.w_hr is None:
            np.multiply(o, squashed, y)
        else:
            np.multiply(o, squashed, first)
            np.dot(self.w_hr, first, y)

    def hold(self, slots: tuple, rows: ndarray) -> None:
        """f = 1 and all else 0: the cell state stays, and so does its gradient."""
        parts, *_, c = slots
        c[:, rows] = parts[4][:, rows]
        parts[..., rows] = 0
        parts[1][:, rows] = 1

    def results(self, dtype: Any) -> tuple:
        """(cn, saved)."""
        cn = self.saved[self.end % len(self.saved), 4].T.astype(dtype, "C")
        return cn, *super().results(dtype)
