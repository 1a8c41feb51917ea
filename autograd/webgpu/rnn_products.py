"""What a recurrent layer multiplies of all steps at once: what enters the gates, and the gradients of its operands.

Gate gradients are float32 and operands of the layer's dtype: a product reads both, and writes what is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .buffers import Array
from .elementwise import Binary
from .large import spread
from .layout import contiguous_strides
from .matmul import Matmul, turned
from .movement import Cat, copy, narrow
from .pieces import room, shown
from .reduce import Fold

GATES = {"gru": 3, "gru_before": 3, "lstm": 4, "rnn": 1}
FLOAT32 = np.dtype(np.float32)
_cat, _matmul, _sum, _add, _mul = Cat(), Matmul(), Fold("sum"), Binary("add"), Binary("mul")


def dense(x: Any) -> Array:
    """x, or a copy whose elements follow one another, as a kernel can bind it; of what is too large only products see parts."""
    x = shown(x) if x.size <= room(x.gpu) else x
    return x if x.is_contiguous() else copy(x)


def shaped(x: Array, *shape: int) -> Array:
    """A contiguous x in another shape."""
    return x.view(shape, contiguous_strides(shape), x.offset)


def joined(*arrays: Array) -> Array:
    """Contiguous arrays end to end."""
    return _cat(*[shaped(a, a.size) for a in arrays], axis=0)


def _turned(w: Array, *order: int) -> Array:
    return w.view(tuple(w.shape[i] for i in order), tuple(w.strides[i] for i in order), w.offset)


def _product(a: Array, b: Array, bias: Any, dtype: Any) -> Array:
    """a @ b (+ bias) in a dtype."""
    return _matmul.product(a, b, bias, dtype)


def state_weights(w_hh: Array, w_hr: Any, units: int) -> Array:
    """[P, G, H]: neighbouring invocations own neighbouring units. A projection's [H, P] behind."""
    (rows, columns), (down, across) = w_hh.shape, w_hh.strides
    gates = w_hh.view((columns, rows // units, units), (across, units * down, down), w_hh.offset)
    return dense(gates) if w_hr is None else joined(dense(gates), dense(_turned(w_hr, 1, 0)))


def input_products(x: Array, w_ih: Any, b_ih: Any, gates: int) -> Array:
    """What enters the gates [T, B, G H], in float32: x W_ih^T + b_ih. Without W_ih x itself enters each of them."""
    if w_ih is not None:
        return dense(_product(x, _turned(w_ih, 1, 0), b_ih, FLOAT32))
    (steps, batch, units), (step, row, unit) = x.shape, x.strides
    each = x.view((steps, batch, gates, units), (step, row, 0, unit), x.offset)
    g = dense(each.gpu.rounded(each, FLOAT32))
    if b_ih is not None:
        g = _add(g, spread(shaped(dense(x.gpu.rounded(b_ih, FLOAT32)), gates, units), g.shape))
    return shaped(g, steps, batch, gates * units)


def state_before(y: Array, h0: Array, reverse: bool) -> Array:
    """The state before every step [T, B, P], in y's order of time."""
    first = h0.view((1, *h0.shape), (0, *h0.strides), h0.offset)
    steps = y.shape[0]
    if steps < 2:
        return first
    return _cat(narrow(y, 0, 1, steps - 1), first, axis=0) if reverse else _cat(first, narrow(y, 0, 0, steps - 1), axis=0)


def gradients(cell: str, d: Array, x: Any, before: Any, w_ih: Any, saved: Any, needs: tuple, units: int, dtype: Any) -> list:
    """The gradients of the eight inputs that are products over all steps and rows, in `dtype`: all but h0's and c0's.

    d [T B, …] in float32: what the cell's backward kernel wrote. before: the state before every step, where d does not
    hold it.
    """
    rows, wide = d.shape[0], GATES[cell] * units
    inner = narrow(d, 1, units, wide) if cell == "gru" else narrow(d, 1, 0, wide)
    found: list = [None] * 8
    if needs[0]:
        found[0] = _input_gradient(inner, w_ih, x.shape, units, dtype)
    if needs[2]:
        found[2], found[4] = _matmul.with_sums(_turned(inner, 1, 0), shaped(dense(x), rows, x.shape[2]), dtype=dtype)
    elif needs[4]:
        found[4] = d.gpu.rounded(_sum(inner, (0,)), dtype)
    if cell == "gru_before":
        found[3], found[5] = _of_reset(d, needs, units, dtype)
    else:  # GRU's d begins with dq, which belongs behind dr and dz
        turn, outer = 2 * units if cell == "gru" else 0, narrow(d, 1, 0, wide)
        if needs[3]:
            state = narrow(d, 1, 4 * units, units) if turn else shaped(dense(before), rows, before.shape[2])
            found[3], found[5] = _matmul.with_sums(_turned(outer, 1, 0), state, turn, dtype)
        elif needs[5]:
            found[5] = turned(d.gpu.rounded(_sum(outer, (0,)), dtype), turn)
    if needs[7]:
        o, squashed = (narrow(saved, 0, k, 1) for k in (3, 5))
        projected = narrow(d, 1, wide, d.shape[1] - wide)
        found[7] = _product(_turned(projected, 1, 0), shaped(dense(_mul(o, squashed)), rows, units), None, dtype)
    return found


def _input_gradient(inner: Array, w_ih: Any, shape: tuple, units: int, dtype: Any) -> Array:
    if w_ih is not None:
        return shaped(dense(_product(inner, w_ih, None, dtype)), *shape)
    parts = inner.view((inner.shape[0], inner.shape[1] // units, units), (inner.strides[0], units, 1), inner.offset)
    return shaped(dense(inner.gpu.rounded(_sum(parts, (1,)), dtype)), *shape)


def _of_reset(d: Array, needs: tuple, units: int, dtype: Any) -> tuple:
    """(dw_hh, db_hh) of gru_before, whose candidate gate is of r h."""
    db = d.gpu.rounded(_sum(narrow(d, 1, 0, 3 * units), (0,)), dtype) if needs[5] else None
    if not needs[3]:
        return None, db
    work = d.gpu.written(dtype)
    gates = _product(_turned(narrow(d, 1, 0, 2 * units), 1, 0), narrow(d, 1, 3 * units, units), None, work)
    candidate = _product(_turned(narrow(d, 1, 2 * units, units), 1, 0), narrow(d, 1, 4 * units, units), None, work)
    return d.gpu.rounded(_cat(gates, candidate, axis=0), dtype), db
