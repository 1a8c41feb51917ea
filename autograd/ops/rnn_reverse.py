"""The gradients of the recurrent cells on NumPy. The cells: rnn_cells.py; the loops over time: rnn_numpy.py.

A class computes for a block of steps (`begin`) every factor that does not depend on the gradient, all steps at once,
then `step(i, dh)`: the gradients of the gates into d[:, i], and dh made that of the state before, in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from .rnn_numpy import Walk, block_of, by_gate, by_step, empty, in_order


class _Reverse:
    """d [grads, k, B, H]: the gradients of a block. The last `gates` of them are those of the input products, in the
    weights' order; the first `gates` those of the recurrent products, in the order `hidden_gates`."""

    gates = grads = factors = 0
    hidden_gates: list = []

    def __init__(self, w_hh: ndarray, c0: Any, w_hr: Any, saved: ndarray, walk: Walk, needs: tuple, dcn: Any):
        units = w_hh.shape[0] // self.gates
        self.units, self.saved, self.walk, self.batch = units, saved, walk, 0
        one = saved is not None and saved.shape[2] == 1
        self.w = by_gate(w_hh, units)
        if not (one and in_order(self.hidden_gates)):  # BLAS multiplies a matrix faster that begins on a cache line
            w, self.w = self.w, empty(self.w.shape, w_hh.dtype)
            self.w[...] = w[self.hidden_gates]
        self.whole = self.w.reshape(w_hh.shape) if one else None  # of one row all gates are one vector

    def room(self, count: int, batch: int) -> ndarray:
        """Flat memory for `count` parts of a block."""
        return empty((count * self.walk.size * batch * self.units,), self.w.dtype)

    def prepare(self, k: int, before: ndarray) -> tuple[ndarray, ndarray]:
        """(d, factors) for a block of k steps."""
        if not self.batch:
            self.batch = before.shape[1]
            self.memory, self.scratch = self.room(self.grads, self.batch), self.room(self.factors, self.batch)
            self.parts = empty((self.gates, self.batch, before.shape[2]), self.w.dtype)
        shape = k, self.batch, self.units
        if self.whole is None:
            d = block_of(self.memory, self.grads, *shape)
        else:  # a step's gates are one vector
            d = block_of(self.memory, k, self.grads, *shape[1:]).swapaxes(0, 1)
        return d, block_of(self.scratch, self.factors, *shape)

    def weight_gradient(self, d: ndarray, before: ndarray, start: int, stop: int) -> ndarray:
        """d^T h over a block, d [k B, grads H] and h [k B, P]: [G H, P] in the order of hidden_gates."""
        return np.matmul(d[:, : self.gates * self.units].T, before)

    def add_products(self, d: ndarray, dh: ndarray) -> None:
        """dh += the gates' gradients times the first of the recurrent weights."""
        if self.whole is not None:
            dh += np.matmul(d.reshape(1, -1), self.whole[: d.size])
            return
        for part in np.matmul(d, self.w[: len(d)], self.parts[: len(d)]):
            np.add(dh, part, dh)

    def end(self, start: int, stop: int) -> None:
        """What is left to do for a block when all its steps are done."""

    def results(self) -> tuple:
        """(dc0, dw_hr)."""
        return None, None


def gru_factors(factors: ndarray, before: ndarray, r: ndarray, z: ndarray, n: ndarray, inner: ndarray) -> None:
    """r (1-r) inner of what r multiplies in dr', (h-n) z (1-z) and (1-z)(1-n^2) of dh in dz' and dn'; the last is room."""
    of_r, of_z, of_n, open_ = factors
    np.subtract(1, z, open_)
    np.multiply(n, n, of_n)
    np.subtract(1, of_n, of_n)
    of_n *= open_
    open_ *= z
    np.subtract(before, n, of_z)
    of_z *= open_
    np.subtract(1, r, of_r)
    of_r *= r
    of_r *= inner


class GruReverse(_Reverse):
    """dn' = dh (1-z)(1-n^2); dz' = dh (h-n) z (1-z); dr' = dn' q r (1-r); dq = dn' r; dh = dh z + (dq, dr', dz') R."""

    gates, grads, factors = 3, 4, 4
    hidden_gates = [2, 0, 1]  # d holds q, r, z, n: both windows of three are contiguous

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dh in dz' and dn', and of dn' in dr'."""
        d, factors = self.prepare(stop - start, before)
        r, z, q, n = self.saved[:, start:stop]
        gru_factors(factors, before, r, z, n, q)
        self.rows = by_step(*factors[:3], r, z, *d, d[:3].swapaxes(0, 1))
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """Four products into d, three matrix products back."""
        of_r, of_z, of_n, r, z, dq, dr, dz, dn, hidden = self.rows[i]
        np.multiply(dh, of_z, dz)
        np.multiply(dh, of_n, dn)
        np.multiply(dn, of_r, dr)
        np.multiply(dn, r, dq)
        np.multiply(dh, z, dh)
        self.add_products(hidden, dh)


class GruBeforeReverse(_Reverse):
    """dn', dz' as for gru; d(rh) = dn' R_n; dr' = d(rh) h r (1-r); dh = dh z + d(rh) r + (dr', dz') R_rz."""

    gates, grads, factors = 3, 3, 4
    hidden_gates = [0, 1, 2]

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dh in dz' and dn', and of d(rh) in dr'."""
        d, factors = self.prepare(stop - start, before)
        r, z, n = self.saved[:, start:stop]
        gru_factors(factors, before, r, z, n, before)
        self.rows = by_step(*factors[:3], r, z, *d, d[:2].swapaxes(0, 1))
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """First back through R_n, then through R_r and R_z."""
        of_r, of_z, of_n, r, z, dr, dz, dn, hidden = self.rows[i]
        reset = self.parts[2]
        np.multiply(dh, of_z, dz)
        np.multiply(dh, of_n, dn)
        np.matmul(dn, self.w[2], reset)
        np.multiply(reset, of_r, dr)
        np.multiply(reset, r, reset)
        np.multiply(dh, z, dh)
        np.add(dh, reset, dh)
        self.add_products(hidden, dh)

    def weight_gradient(self, d: ndarray, before: ndarray, start: int, stop: int) -> ndarray:
        """r and z met the state h, n met r h."""
        gates, two = np.empty((3 * self.units, self.units), d.dtype), 2 * self.units
        np.matmul(d[:, :two].T, before, gates[:two])
        np.matmul(d[:, two:].T, before * self.saved[0, start:stop].reshape(before.shape), gates[two:])
        return gates


class RnnReverse(_Reverse):
    """d = dh (1 - y^2), or dh where y > 0; dh = d R."""

    gates = grads = factors = 1
    hidden_gates = [0]

    def __init__(self, *args: Any, relu: bool = False):
        super().__init__(*args)
        self.relu = relu

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The slope of the activation."""
        d, (self.slope,) = self.prepare(stop - start, before)
        if self.relu:
            np.greater(y[start:stop], 0, out=self.slope)
        else:
            np.multiply(y[start:stop], y[start:stop], out=self.slope)
            np.subtract(1, self.slope, out=self.slope)
        self.d = d
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """One product of each kind."""
        d = self.d[0, i]
        np.multiply(dh, self.slope[i], d)
        np.matmul(d, self.w[0], dh)


class LstmReverse(_Reverse):
    """do' = dh tanh(c') o (1-o); dc += dh o (1-tanh(c')^2); di', df', dg' = dc (g i (1-i), c f (1-f), i (1-g^2));
    dc = dc f; dh = (di', df', dg', do') R."""

    gates, grads, factors = 4, 4, 5
    hidden_gates = [0, 1, 2, 3]

    def __init__(self, w_hh: ndarray, c0: ndarray, w_hr: ndarray | None, saved: ndarray, walk: Walk, needs: tuple,
                 dcn: ndarray | None):  # fmt: skip
        super().__init__(w_hh, c0, w_hr, saved, walk, needs, dcn)
        self.c0, self.w_hr, self.needs = c0, w_hr, needs
        self.dc, self.dm = empty(c0.shape, c0.dtype), empty(c0.shape, c0.dtype)
        self.dc[...] = 0 if dcn is None else dcn
        self.dw_hr = np.zeros(w_hr.shape, w_hr.dtype) if w_hr is not None and needs[7] else None

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dc in di', df', dg', of dh in do' and in dc."""
        d, factors = self.prepare(stop - start, before)
        of_i, of_f, of_g, of_o, of_c = factors
        i, f, g, o, _, squashed = self.saved[:, start:stop]
        both = factors[:2]
        np.subtract(1, self.saved[:2, start:stop], both)
        both *= self.saved[:2, start:stop]
        of_i *= g
        self._times_cell_before(of_f, start, stop)
        np.multiply(g, g, of_g)
        np.subtract(1, of_g, of_g)
        of_g *= i
        np.subtract(1, o, of_o)
        of_o *= o
        of_o *= squashed
        np.multiply(squashed, squashed, of_c)
        np.subtract(1, of_c, of_c)
        of_c *= o
        self.rows = by_step(*factors, f, *d, d.swapaxes(0, 1))
        if self.dw_hr is not None:
            self.outer = np.empty((stop - start, *before.shape[1:]), d.dtype)
        return d

    def _times_cell_before(self, a: ndarray, start: int, stop: int) -> None:
        """a [k, B, H] times the cell state that each step began with."""
        c, steps = self.saved[4], self.walk.steps
        if self.walk.reverse:
            inner = min(stop, steps - 1) - start
            a[:inner] *= c[start + 1 : start + 1 + inner]
            a[inner:] *= self.c0
        else:
            first = int(start == 0)
            a[:first] *= self.c0
            a[first:] *= c[start + first - 1 : stop - 1]

    def step(self, i: int, dh: ndarray) -> None:
        """Of calls on few elements, several on one piece of memory each are faster than one that broadcasts."""
        of_i, of_f, of_g, of_o, of_c, f, di, df, dg, do, d = self.rows[i]
        dc, dm = self.dc, dh
        if self.w_hr is not None:
            if self.dw_hr is not None:
                self.outer[i] = dh
            dm = np.matmul(dh, self.w_hr)
        np.multiply(dm, of_o, do)
        np.multiply(dm, of_c, self.dm)
        np.add(dc, self.dm, dc)
        np.multiply(dc, of_i, di)
        np.multiply(dc, of_f, df)
        np.multiply(dc, of_g, dg)
        np.multiply(dc, f, dc)
        if self.whole is None:
            first, second, third, fourth = np.matmul(d, self.w, self.parts)
            np.add(first, second, dh)  # np.add.reduce does the same additions more slowly
            np.add(dh, third, dh)
            np.add(dh, fourth, dh)
        else:
            np.matmul(d.reshape(1, -1), self.whole, dh)

    def end(self, start: int, stop: int) -> None:
        """dW_hr += dh^T (o tanh(c'))."""
        if self.dw_hr is not None:
            before_projection = self.saved[3, start:stop] * self.saved[5, start:stop]
            self.dw_hr += self.outer.reshape(-1, self.outer.shape[2]).T @ before_projection.reshape(-1, self.units)

    def results(self) -> tuple:
        """(dc0, dw_hr)."""
        return (self.dc if self.needs[6] else None), self.dw_hr
