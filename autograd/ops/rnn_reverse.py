"""The gradients of the recurrent cells on NumPy. The cells: rnn_cells.py; the loops over time: rnn_numpy.py.

A class computes for a block of steps (`begin`) every factor that does not depend on the gradient, all steps at once,
then `step(i, dh)`: the gradients of the gates into d[i], and dh [H, B] made that of the state before, in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..blocks import empty
from .rnn_numpy import Walk, by_step, columns, in_order, matrices, over_steps, plus


class _Reverse:
    """d [k, grads, H, B]: the gradients of a block, of the gates in `order`. The first `gates` of them are those of the
    recurrent products, the last `gates` those of the input products."""

    gates = factors = 0
    ahead = 0  # parts that lie before d in its memory
    order: list = []

    def __init__(self, w_hh: ndarray, w_hr: Any, saved: ndarray, walk: Walk, needs: tuple, dcn: Any):
        self.saved, self.walk, self.dtype = saved, walk, w_hh.dtype
        hidden = in_order(w_hh, self.order[: self.gates], walk.units)
        self.w = columns(hidden) if walk.is_long else hidden.T
        self.memory, self.scratch = self.room(self.ahead + len(self.order)), self.room(self.factors)
        self.product = empty((w_hh.shape[1], walk.batch), w_hh.dtype)
        self.one = np.array(1, w_hh.dtype)

    def room(self, parts: int) -> ndarray:
        """Memory for so many parts of a block: [k, parts, H, B]."""
        return self.walk.room(parts, self.dtype)

    def weight_gradient(self, d: ndarray, before: ndarray, start: int, stop: int) -> ndarray:
        """d h^T over a block, d [grads H, k B] and h [k B, P]: [G H, P] in the order of d."""
        return over_steps(d[: self.gates * self.walk.units], before)

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

    gates, factors = 3, 4
    order = [2, 0, 1, 2]  # d holds q, r, z, n: both windows of three are contiguous

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dh in dz' and dn', and of dn' in dr'."""
        k = stop - start
        d, factors = self.memory[:k], self.scratch[:k].swapaxes(0, 1)
        r, z, q, n = self.saved[start:stop].swapaxes(0, 1)
        gru_factors(factors, before.transpose(0, 2, 1), r, z, n, q)
        hidden = matrices(d[:, :3])
        self.rows = by_step(*factors[:3], r, z, *d.swapaxes(0, 1), hidden)
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """Four products into d, one matrix product back."""
        of_r, of_z, of_n, r, z, dq, dr, dz, dn, hidden = self.rows[i]
        np.multiply(dh, of_z, dz)
        np.multiply(dh, of_n, dn)
        np.multiply(dn, of_r, dr)
        np.multiply(dn, r, dq)
        np.multiply(dh, z, dh)
        np.dot(self.w, hidden, self.product)
        np.add(dh, self.product, dh)


class GruBeforeReverse(_Reverse):
    """dn', dz' as for gru; d(rh) = dn' R_n; dr' = d(rh) h r (1-r); dh = dh z + d(rh) r + (dr', dz') R_rz."""

    gates, factors = 3, 4
    order = [0, 1, 2]

    def __init__(self, *args: Any):
        super().__init__(*args)
        two = 2 * self.walk.units
        self.w_rz, self.w_n = self.w[:, :two], self.w[:, two:]

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dh in dz' and dn', and of d(rh) in dr'."""
        k, before = stop - start, before.transpose(0, 2, 1)
        d, factors = self.memory[:k], self.scratch[:k].swapaxes(0, 1)
        r, z, n = self.saved[start:stop].swapaxes(0, 1)
        gru_factors(factors, before, r, z, n, before)
        hidden = matrices(d[:, :2])
        self.rows = by_step(*factors[:3], r, z, *d.swapaxes(0, 1), hidden)
        return d

    def step(self, i: int, dh: ndarray) -> None:
        """First back through R_n, then through R_r and R_z."""
        of_r, of_z, of_n, r, z, dr, dz, dn, hidden = self.rows[i]
        product = self.product
        np.multiply(dh, of_z, dz)
        np.multiply(dh, of_n, dn)
        np.matmul(self.w_n, dn, product)
        np.multiply(product, of_r, dr)
        np.multiply(product, r, product)
        np.multiply(dh, z, dh)
        np.add(dh, product, dh)
        np.matmul(self.w_rz, hidden, product)
        np.add(dh, product, dh)

    def weight_gradient(self, d: ndarray, before: ndarray, start: int, stop: int) -> ndarray:
        """r and z met the state h, n met r h."""
        gates, two = np.empty((len(d), self.walk.units), d.dtype), 2 * self.walk.units
        over_steps(d[:two], before, gates[:two])
        r = self.saved[start:stop, 0].transpose(0, 2, 1)
        over_steps(d[two:], np.multiply(before.reshape(r.shape), r, order="C").reshape(before.shape), gates[two:])
        return gates


class RnnReverse(_Reverse):
    """d = dh (1 - y^2), or dh where y > 0; dh = d R."""

    gates = factors = 1
    order = [0]

    def __init__(self, *args: Any, relu: bool = False):
        super().__init__(*args)
        self.relu = relu

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The slope of the activation."""
        k, y = stop - start, y[start:stop].transpose(0, 2, 1)
        slope = self.scratch[:k, 0]
        if self.relu:
            np.greater(y, 0, out=slope)
        else:
            np.multiply(y, y, out=slope)
            np.subtract(1, slope, out=slope)
        self.rows = by_step(slope, self.memory[:k, 0])
        return self.memory[:k]

    def step(self, i: int, dh: ndarray) -> None:
        """One product of each kind."""
        slope, d = self.rows[i]
        np.multiply(dh, slope, d)
        np.dot(self.w, d, dh)


class LstmReverse(_Reverse):
    """do' = dh tanh(c') o (1-o); dc += dh o (1-tanh(c')^2); di', df', dg' = dc (g i (1-i), c f (1-f), i (1-g^2));
    dc = dc f; dh = (di', df', dg', do') R.

    d lies behind the dc of the step before, and the factors so that one call multiplies four copies of dc.
    """

    gates, factors, ahead = 4, 6, 1
    order = [0, 1, 2, 3]

    def __init__(self, w_hh: ndarray, w_hr: ndarray | None, saved: ndarray, walk: Walk, needs: tuple, dcn: ndarray | None):
        super().__init__(w_hh, w_hr, saved, walk, needs, dcn)
        self.w_hr, self.needs = w_hr, needs
        self.dc = np.zeros((walk.units, walk.batch), w_hh.dtype) if dcn is None else columns(dcn)
        self.copies = empty((4, *self.dc.shape), w_hh.dtype)
        self.dm = empty(self.dc.shape, w_hh.dtype)
        self.outer = empty((walk.size, len(w_hr), walk.batch), w_hh.dtype) if w_hr is not None and needs[7] else None
        self.dw_hr: ndarray | None = None

    def begin(self, start: int, stop: int, before: ndarray, y: ndarray) -> ndarray:
        """The factors of dc in dc, di', df', dg'; of dh in do' and in dc."""
        k, back = stop - start, self.walk.reverse
        d, factors, s = self.memory[:k], self.scratch[:k], self.saved[start + back : stop + back]
        for gates, others, of_gates in (s[:, :2], s[:, 3:5], factors[:, 1:3]), (s[:, 2], s[:, 5], factors[:, 4]):
            np.subtract(self.one, gates, of_gates)
            of_gates *= gates
            of_gates *= others  # i and f by g and c, o by tanh(c')
        tanhs, of_tanhs = s[:, 3::2], factors[:, 3::2]
        np.multiply(tanhs, tanhs, of_tanhs)
        np.subtract(self.one, of_tanhs, of_tanhs)
        of_tanhs *= s[:, 0:3:2]  # g and tanh(c') by i and o
        factors[:, 0] = s[:, 1]
        gates = matrices(d[:, 1:])
        self.rows = by_step(factors[:, :4], factors[:, 4], factors[:, 5], d[:, :4], d[:, 0], d[:, 4], gates)
        return d[:, 1:]

    def step(self, i: int, dh: ndarray) -> None:
        """Of calls on few elements, several on one piece of memory each are faster than one that broadcasts."""
        of_dc, of_o, of_c, four, dc, do, d = self.rows[i]
        dm, room = dh, self.dm
        if self.w_hr is not None:
            if self.outer is not None:
                self.outer[i] = dh
            dm = np.dot(self.w_hr.T, dh)
        np.multiply(dm, of_o, do)
        np.multiply(dm, of_c, room)
        np.add(self.dc, room, room)
        np.copyto(self.copies, room)
        np.multiply(self.copies, of_dc, four)
        self.dc = dc  # the next block writes there only after it was read
        np.dot(self.w, d, dh)

    def end(self, start: int, stop: int) -> None:
        """dW_hr += dh (o tanh(c'))^T."""
        if self.outer is not None:
            k, back = stop - start, self.walk.reverse
            s = self.saved[start + back : stop + back]
            states = (s[:, 2] * s[:, 5]).transpose(0, 2, 1).reshape(-1, self.walk.units)
            outer = self.outer[:k].swapaxes(0, 1).reshape(self.outer.shape[1], len(states))
            self.dw_hr = plus(self.dw_hr, over_steps(outer, states))

    def results(self) -> tuple:
        """(dc0, dw_hr)."""
        return (self.dc.T.copy() if self.needs[6] else None), self.dw_hr
