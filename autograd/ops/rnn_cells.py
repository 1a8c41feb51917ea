"""The recurrent cells on NumPy, one step at a time. The loops over time: rnn_numpy.py; the gradients: rnn_reverse.py.

A class computes `step(t, g, h, y)`: from the input products g [G, B, H] and the state h the new state into y,
keeping in `saved` [.., T, B, H] what backward needs. `hold(t, rows)` makes the step of these rows the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from .rnn_numpy import by_gate, sigmoid_of
from .rnn_reverse import GruBeforeReverse, GruReverse, LstmReverse, RnnReverse


class _Forward:
    """What the cells keep: `saved` [parts, T, B, H], or room for one step that is used again when nothing is saved."""

    gates = parts = 0
    apart = False  # whether the recurrent bias of the last gate is not simply added to the input bias

    def __init__(self, w_hh: ndarray, apart: ndarray | None, c0: Any, w_hr: Any, sizes: tuple, save: bool, dtype: Any):
        steps, batch, units = sizes
        self.w = by_gate(w_hh, units).transpose(0, 2, 1)
        # Of one row, all gates are one vector, and so is what they are multiplied with: one product for all.
        self.whole = w_hh.T if batch == 1 else None
        self.bias, self.save = apart, save
        self.saved = np.empty((self.parts, steps if save else 1, batch, units), dtype)
        self.room = np.empty((self.gates, batch, units), dtype)
        self.flat = self.room.reshape(1, -1) if batch == 1 else None
        self.one, self.two = np.array(1, dtype), np.array(2, dtype)

    def products(self, h: ndarray) -> ndarray:
        """h times the recurrent weights of all gates, into room [G, B, H]."""
        if self.whole is None:
            return np.matmul(h, self.w, out=self.room)
        np.matmul(h, self.whole, out=self.flat)
        return self.room

    def at(self, t: int) -> ndarray:
        """The slots of a step."""
        return self.saved[:, t if self.save else 0]

    def hold(self, t: int, rows: ndarray) -> None:
        """z = 1 and all else 0: finite, whatever the masked input held, and no gradient passes a gate."""
        slots = self.at(t)
        slots[:, rows] = 0
        slots[1, rows] = 1

    def results(self, dtype: Any) -> tuple:
        """The op's outputs after y and hn."""
        return (self.saved if self.save else self.saved[:, :0],)


class Gru(_Forward):
    """h' = n + z (h - n), n = tanh(g_n + r (R_n h + b_n)): the reset gate acts on the product. Saved: r, z, q, n."""

    gates, parts, apart = 3, 4, True
    reverse = GruReverse

    def step(self, t: int, g: ndarray, h: ndarray, y: ndarray) -> None:
        """q = R_n h + b_n is kept; the gates r and z are one block."""
        slots = self.at(t)
        r, z, q, n = slots
        u = self.products(h)
        if self.bias is None:
            q[...] = u[2]
        else:
            np.add(u[2], self.bias, out=q)
        both = u[:2]
        both += g[:2]
        sigmoid_of(both, slots[:2], self.one)
        np.multiply(r, q, out=n)
        n += g[2]
        np.tanh(n, out=n)
        np.subtract(h, n, out=y)
        y *= z
        y += n


class GruBefore(_Forward):
    """h' = n + z (h - n), n = tanh(g_n + R_n (r h)): the reset gate acts on the state. Saved: r, z, n."""

    gates, parts = 3, 3
    reverse = GruBeforeReverse

    def step(self, t: int, g: ndarray, h: ndarray, y: ndarray) -> None:
        """Two products: the second needs r."""
        slots = self.at(t)
        both, (r, z, n) = slots[:2], slots
        u = np.matmul(h, self.w[:2], out=self.room[:2])
        u += g[:2]
        sigmoid_of(u, both, self.one)
        np.multiply(r, h, out=y)
        np.matmul(y, self.w[2], out=n)
        n += g[2]
        np.tanh(n, out=n)
        np.subtract(h, n, out=y)
        y *= z
        y += n


class Rnn(_Forward):
    """h' = tanh(g + R h), or max(0, g + R h). Nothing is saved: y tells the derivative."""

    gates, parts = 1, 0
    reverse = RnnReverse

    def __init__(self, *args: Any, relu: bool = False):
        super().__init__(*args)
        self.relu = relu

    def step(self, t: int, g: ndarray, h: ndarray, y: ndarray) -> None:
        """The new state in place of the product."""
        np.matmul(h, self.w[0], out=y)
        y += g[0]
        if self.relu:
            np.maximum(y, 0, out=y)
        else:
            np.tanh(y, out=y)

    def hold(self, t: int, rows: ndarray) -> None:
        """y itself is all there is."""

    def results(self, dtype: Any) -> tuple:
        """Nothing after y and hn."""
        return ()


class Lstm(_Forward):
    """c' = f c + i g, h' = o tanh(c') [times W_hr^T]. Saved: i, f, g, o, c', tanh(c')."""

    gates, parts = 4, 6
    reverse = LstmReverse

    def __init__(self, w_hh: ndarray, apart: Any, c0: ndarray, w_hr: ndarray | None, sizes: tuple, save: bool, dtype: Any):
        super().__init__(w_hh, apart, c0, w_hr, sizes, save, dtype)
        self.c, self.held = c0, c0
        self.w_hr = None if w_hr is None else w_hr.T
        self.part = np.empty(sizes[1:], dtype)

    def step(self, t: int, g: ndarray, h: ndarray, y: ndarray) -> None:
        """One sigmoid for all four: tanh(x) = 2 sigmoid(2 x) - 1."""
        slots = self.at(t)
        i, f, new, o, c, squashed = slots
        u = self.products(h)
        u += g
        u[2] *= self.two
        sigmoid_of(u, slots[:4], self.one)
        new *= self.two
        new -= self.one
        np.multiply(i, new, out=self.part)
        self.held = self.c if self.save else self.c.copy()  # c may be the one slot there is
        np.multiply(f, self.c, out=c)
        c += self.part
        np.tanh(c, out=squashed)
        if self.w_hr is None:
            np.multiply(o, squashed, out=y)
        else:
            np.multiply(o, squashed, out=self.part)
            np.matmul(self.part, self.w_hr, out=y)
        self.c = c

    def hold(self, t: int, rows: ndarray) -> None:
        """f = 1 and all else 0: the cell state stays, and so does its gradient."""
        slots = self.at(t)
        slots[:, rows] = 0
        slots[1, rows] = 1
        slots[4, rows] = self.held[rows]

    def results(self, dtype: Any) -> tuple:
        """(cn, saved)."""
        return self.c.astype(dtype), *super().results(dtype)
