"""The gradients of the recurrent cells on NumPy. The cells: rnn_cells.py; the loops over time: rnn_numpy.py.

A class computes for a block of steps (`begin`) every factor that does not depend on the gradient, all steps at once,
then `step(i, dh)`: the gradients of the gates into d[:, i], and dh made that of the state before, in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from .rnn_numpy import Walk, block_of, by_gate


class _Reverse:
    """d [grads, k, B, H]: the gradients of a block. The first `gates` of them are those of the input products, in the
    order `input_gates`; the last `gates` those of the recurrent products, in the weights' order."""

    gates = grads = factors = 0
    input_gates: list = []

    def __init__(self, w_hh: ndarray, c0: Any, w_hr: Any, saved: ndarray, walk: Walk, needs: tuple, dcn: Any):
        units = w_hh.shape[0] // self.gates
        self.units, self.saved, self.walk, self.batch = units, saved, walk, 0
        self.w = by_gate(w_hh, units)
        self.whole = w_hh if saved is not None and saved.shape[2] == 1 else None  # of one row, as in _Forward

    def room(self, count: int, batch: int) -> ndarray:
        """Flat memory for `count` parts of a block."""
        return np.empty(count * self.walk.size * batch * self.units, self.w.dtype)

    def prepare(self, k: int, before: ndarray) -> tuple[ndarray, ndarray]:
        """(d, factors) for a block of k steps."""
        if not self.batch:
            self.batch = before.shape[1]
            self.memory, self.scratch = self.room(self.grads, self.batch), self.room(self.factors, self.batch)
            self.parts = np.empty((self.gates, self.batch, before.shape[2]), self.w.dtype)
        shape = k, self.batch, self.units
        self.d = block_of(self.memory, self.grads, *shape)
        return self.d, block_of(self.scratch, self.factors, *shape)

    def weight_gradient(self, total: ndarray, d: ndarray, before: ndarray, start: int, stop: int) -> None:
        """total [G, H, P] += d^T h, over a block."""
        total += np.matmul(d[-self.gates :].transpose(0, 2, 1), before)

    def add_products(self, d: ndarray, dh: ndarray) -> None:
        """dh += the gates' gradients times their recurrent weights."""
        if self.whole is not None:
            dh += np.matmul(d.reshape(1, -1), self.whole[: d.size])  # d of a step is copied: one small vector
            return
        for part in np.matmul(d, self.w[: len(d)], out=self.parts[: len(d)]):
            dh += part

    def end(self, start: int, stop: int) -> None:
        """What is left to do for a block when all its steps are done."""

    def results(self) -> tuple:
        """(dc0, dw_hr)."""
        return None, None


def gru_factors(rows: Any, before: ndarray, r: ndarray, z: ndarray, n: ndarray, inner: ndarray) -> tuple:
    """(1-z)(1-n^2), r(1-r) inner and (h-n) z(1-z), computed in rows: of dh in dn' and dz', of what r multiplies in dr'."""
    of_n, of_r, of_z, open_ = rows
    np.subtract(1, z, out=open_)
    np.multiply(n, n, out=of_n)
    np.subtract(1, of_n, out=of_n)
    of_n *= open_
    open_ *= z
    np.subtract(before, n, out=of_z)
    of_z *= open_
    np.subtract(1, r, out=of_r)
    of_r *= r
    of_r *= inner
    return of_n, of_r, of_z



class GruReverse(_Reverse):
    """dn' = dh (1-z)(1-n^2); dz' = dh (h-n) z (1-z); dr' = dn' q r (1-r); dq = dn' r; dh = dh z + (dr', dz', dq) R."""

    gates, grads, factors = 3, 4, 4
    input_gates = [2, 0, 1]  # d holds n, r, z, q: both windows of three are contiguous

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dh in dn' and dz', and of dn' in dr'."""
        d, rows = self.prepare(stop - start, before)
        r, z, q, n = self.saved[:, start:stop]
        self.rows = *gru_factors(rows, before, r, z, n, q), r, z
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """Four products into d, three matrix products back."""
        of_n, of_r, of_z, r, z = self.rows
        d = self.d[:, i]
        dn, dr, dz, dq = d
        np.multiply(dh, of_n[i], out=dn)
        np.multiply(dh, of_z[i], out=dz)
        np.multiply(dn, of_r[i], out=dr)
        np.multiply(dn, r[i], out=dq)
        dh *= z[i]
        self.add_products(d[1:], dh)


class GruBeforeReverse(_Reverse):
    """dn', dz' as for gru; d(rh) = dn' R_n; dr' = d(rh) h r (1-r); dh = dh z + d(rh) r + (dr', dz') R_rz."""

    gates, grads, factors = 3, 3, 4
    input_gates = [0, 1, 2]

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dh in dn' and dz', and of d(rh) in dr'."""
        d, rows = self.prepare(stop - start, before)
        r, z, n = self.saved[:, start:stop]
        self.rows = *gru_factors(rows, before, r, z, n, before), r, z
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """First back through R_n, then through R_r and R_z."""
        of_n, of_r, of_z, r, z = self.rows
        d, reset = self.d[:, i], self.parts[2]
        dr, dz, dn = d
        np.multiply(dh, of_n[i], out=dn)
        np.multiply(dh, of_z[i], out=dz)
        np.matmul(dn, self.w[2], out=reset)
        np.multiply(reset, of_r[i], out=dr)
        reset *= r[i]
        dh *= z[i]
        dh += reset
        self.add_products(d[:2], dh)

    def weight_gradient(self, total: ndarray, d: ndarray, before: ndarray, start: int, stop: int) -> None:
        """r and z met the state h, n met r h."""
        total[:2] += np.matmul(d[:2].transpose(0, 2, 1), before)
        total[2] += np.matmul(d[2].T, before * self.saved[0, start:stop].reshape(before.shape))


class RnnReverse(_Reverse):
    """d = dh (1 - y^2), or dh where y > 0; dh = d R."""

    gates = grads = factors = 1
    input_gates = [0]

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
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """One product of each kind."""
        d = self.d[0, i]
        np.multiply(dh, self.slope[i], out=d)
        np.matmul(d, self.w[0], out=dh)


class LstmReverse(_Reverse):
    """do' = dh tanh(c') o (1-o); dc += dh o (1-tanh(c')^2); di', df', dg' = dc (g i (1-i), c f (1-f), i (1-g^2));
    dc = dc f; dh = (di', df', dg', do') R."""

    gates, grads, factors = 4, 4, 5
    input_gates = [0, 1, 2, 3]

    def __init__(self, w_hh: ndarray, c0: ndarray, w_hr: ndarray | None, saved: ndarray, walk: Walk, needs: tuple,
                 dcn: ndarray | None):  # fmt: skip
        super().__init__(w_hh, c0, w_hr, saved, walk, needs, dcn)
        self.c0, self.w_hr, self.needs = c0, w_hr, needs
        self.dc = np.zeros(c0.shape, c0.dtype) if dcn is None else dcn.copy()
        self.dm = np.empty_like(self.dc)
        self.dw_hr = np.zeros(w_hr.shape, w_hr.dtype) if w_hr is not None and needs[7] else None

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dc in di', df', dg', of dh in do' and in dc."""
        d, factors = self.prepare(stop - start, before)
        of_i, of_f, of_g, of_o, of_c = factors
        i, f, g, o, _, squashed = self.saved[:, start:stop]
        gates = factors[:2]
        np.subtract(1, self.saved[:2, start:stop], out=gates)
        gates *= self.saved[:2, start:stop]
        of_i *= g
        self._times_cell_before(of_f, start, stop)
        np.multiply(g, g, out=of_g)
        np.subtract(1, of_g, out=of_g)
        of_g *= i
        np.subtract(1, o, out=of_o)
        of_o *= o
        of_o *= squashed
        np.multiply(squashed, squashed, out=of_c)
        np.subtract(1, of_c, out=of_c)
        of_c *= o
        self.rows = factors, f
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
        """di', df' and dg' are one product with dc."""
        factors, f = self.rows
        d, dc, dm = self.d[:, i], self.dc, dh
        if self.w_hr is not None:
            if self.dw_hr is not None:
                self.outer[i] = dh
            dm = np.matmul(dh, self.w_hr)
        np.multiply(dm, factors[3, i], out=d[3])
        np.multiply(dm, factors[4, i], out=self.dm)
        dc += self.dm
        np.multiply(dc, factors[:3, i], out=d[:3])
        dc *= f[i]
        if self.whole is None:
            np.add.reduce(np.matmul(d, self.w, out=self.parts), 0, out=dh)
        else:
            np.matmul(d.reshape(1, -1), self.whole, out=dh)

    def end(self, start: int, stop: int) -> None:
        """dW_hr += dh^T (o tanh(c'))."""
        if self.dw_hr is not None:
            before_projection = self.saved[3, start:stop] * self.saved[5, start:stop]
            self.dw_hr += self.outer.reshape(-1, self.outer.shape[2]).T @ before_projection.reshape(-1, self.units)

    def results(self) -> tuple:
        """(dc0, dw_hr)."""
        return (self.dc if self.needs[6] else None), self.dw_hr
