"""Launchers of the recurrent kernels: a workgroup runs whole sequences for four batch rows, in one dispatch.

Where the state of a step is too large for a workgroup's memory, one dispatch runs one phase of one step: at most two
a step, forward and backward. The kernels compute in float32; operands of 16 bits are converted before, results after.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .buffers import Array
from .elementwise import Binary
from .layout import LONGEST_LOOP, contiguous_strides
from .matmul import Matmul, turned
from .movement import Cat, copy, fill, narrow
from .reduce import Fold

ROWS = 4
MEMORY = 16384 // 16  # what WebGPU grants a workgroup, in vec4
GATES = {"gru": 3, "gru_before": 3, "lstm": 4, "rnn": 1}
SAVED = {"gru": 4, "gru_before": 3, "lstm": 6, "rnn": 0}
LARGEST = 256  # invocations of a workgroup
MOST_PASSES = 1 << 20  # of an invocation's loops a dispatch: a second of a slow GPU, whose driver may end what takes longer
_BACK = ("recurrent_backward", "recurrent_read", "recurrent_state")
LIBS = {"gru": _BACK, "gru_before": _BACK, "lstm": _BACK[:2], "rnn": _BACK[:1]}
FLOAT32 = np.dtype(np.float32)
_cat, _matmul, _sum, _add, _mul = Cat(), Matmul(), Fold("sum"), Binary("add"), Binary("mul")


def _dense(x: Array) -> Array:
    return x if x.is_contiguous() else copy(x)


def _floats(x: Array | None) -> Array | None:
    return x if x is None or x.dtype == FLOAT32 else x.gpu.cast(x, FLOAT32)


def _shaped(x: Array, *shape: int) -> Array:
    """A contiguous x in another shape."""
    return x.view(shape, contiguous_strides(shape), x.offset)


def _cube(w: Array, units: int) -> Array:
    """[G * H, N] as [G, H, N], a view."""
    (rows, columns), (down, across) = w.shape, w.strides
    return w.view((rows // units, units, columns), (units * down, down, across), w.offset)


def _turned(w: Array, *order: int) -> Array:
    return w.view(tuple(w.shape[i] for i in order), tuple(w.strides[i] for i in order), w.offset)


def _joined(*arrays: Array) -> Array:
    """Contiguous arrays end to end."""
    return _cat(*[_shaped(a, a.size) for a in arrays], axis=0)


class _Sizes:
    """The sizes of a call, and how its kernel is declared and dispatched."""

    def __init__(self, cell: str, y: tuple, units: int, projected: bool, back: bool):
        self.steps, self.batch, self.width = y
        self.cell, self.units, self.projected, self.back = cell, units, projected, back
        self.exchange = (GATES[cell] if back else 2) * units  # what all invocations of a step see of each other
        if projected and not back:
            self.exchange = units + self.width
        self.persistent = self.exchange <= MEMORY
        self.phases = {"gru_before": 3}.get(cell, 2) if back else {"gru_before": 2}.get(cell, 1)
        self.phases += projected

    def run(self, name: str, gpu: Any, arrays: tuple, words: list) -> None:
        """As many dispatches as the state and software Vulkan's limit on loops ask for; one, on a GPU with room."""
        most = max(self.units, self.width)
        size = min(LARGEST, -(-most // 32) * 32)
        declared: dict = {"SIZE": size, "UNITS": self.units, "WIDTH": self.width, "D_WIDTH": self.d_width}
        declared["EXCHANGE"] = self.exchange if self.persistent else 1
        text = "".join(f"const {key} = {value}u;\n" for key, value in declared.items())
        for key, value in (("PERSISTENT", self.persistent), ("PROJECTED", self.projected)):
            text += f"const {key} = {str(value).lower()};\n"
        kernel = gpu.kernel(name, LIBS[self.cell] if self.back else ("recurrent", "recurrent_forward"), text)
        groups, columns = -(-self.batch // ROWS), -(-most // size)
        for begin, end, phase in self._pieces(gpu, columns):
            head = [self.steps, self.batch, self.units, self.width, begin, end, phase]
            gpu.run(kernel, arrays, [*head, *words], groups if self.persistent else (groups, columns))

    @property
    def d_width(self) -> int:
        """Of a row of d: the gates' gradients and what else the cell's backward kernel says, those of a projection."""
        return {"gru": 5, "gru_before": 5, "lstm": 4, "rnn": 1}[self.cell] * self.units + self.projected * self.width

    def _pieces(self, gpu: Any, own: int) -> list:
        """(begin, end, phase) of the dispatches, in order."""
        if not self.persistent:
            if not self.back:
                return [(s, s + 1, phase) for s in range(self.steps) for phase in range(self.phases)]
            rest = [(s, s + 1, phase) for s in reversed(range(self.steps)) for phase in range(1, self.phases)]
            return [(self.steps - 1, self.steps, 0), *rest]  # the last phase of a step is also phase 0 of the step before
        over_units, over_width = -(-self.units // 4) + 1, -(-self.width // 4) + 1  # four at a time
        walks = GATES[self.cell] * over_units + self.projected * over_width if self.back else over_units + over_width
        passes = own * (walks + 8) + 8  # of all loops, a step
        piece = max((3 * LONGEST_LOOP if gpu.info["type"] == "CPU" else MOST_PASSES) // passes, 1)
        whole = [(s, min(s + piece, self.steps), 0) for s in range(0, self.steps, piece)]
        return whole[::-1] if self.back else whole


def _mask(mask: np.ndarray | None, gpu: Any) -> Array | None:
    return None if mask is None else gpu.upload(np.ascontiguousarray(mask, dtype=np.int32))


def _offset(x: Array | None) -> int:
    return 0 if x is None else x.offset


class Forward:
    """`Forward(name)(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr) -> (y, hn, [cn], [saved])`: ops/rnn.py."""

    def __init__(self, name: str):
        self.name = self.cell = name

    def __call__(self, *inputs: Array | None, mask: np.ndarray | None = None, reverse: bool = False, save: bool = True,
                 relu: bool = False) -> tuple:  # fmt: skip
        dtype, gpu = inputs[0].dtype, inputs[0].gpu  # type: ignore[union-attr]
        x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr = (_floats(a) for a in inputs)
        units, (batch, width) = w_hh.shape[0] // GATES[self.cell], h0.shape  # type: ignore[union-attr]
        sizes = _Sizes(self.cell, (len_of(x), batch, width), units, w_hr is not None, False)
        y = gpu.empty((sizes.steps, batch, width), FLOAT32)
        saved = gpu.empty((max(SAVED[self.cell], 1), sizes.steps if save else 1, batch, units), FLOAT32)
        if y.size:
            g, bias = self._input_products(x, w_ih, b_ih, b_hh)
            weights = self._weights(w_hh, w_hr, sizes)
            live = _mask(mask, gpu)
            h0, c0 = _dense(h0), None if c0 is None else _dense(c0)  # type: ignore[arg-type]
            given = (g, h0, c0, weights, bias, live)
            arrays = (*(weights if a is None else a for a in given), y, saved)
            flags = [int(reverse), int(mask is not None), int(save), int(relu)]
            sizes.run(self.name, gpu, arrays, [*flags, *(_offset(a) for a in given), 0, 0])
        return self._results(y, saved, h0, c0, reverse, save, dtype)  # type: ignore[arg-type]

    def _results(self, y: Array, saved: Array, h0: Array, c0: Array | None, reverse: bool, save: bool, dtype: Any) -> tuple:
        gpu, last = y.gpu, 0 if reverse else y.shape[0] - 1
        hn = copy(_at(y, last)) if y.size else copy(h0)
        out = [gpu.rounded(y, dtype), gpu.rounded(hn, dtype)]
        if self.cell == "lstm":
            part = narrow(saved, 0, 4, 1)
            cn = copy(_at(part.view(part.shape[1:], part.strides[1:], part.offset), last if save else 0)) if y.size else copy(c0)
            out.append(gpu.rounded(cn, dtype))
        return (*out, saved) if self.cell != "rnn" else tuple(out)

    def _input_products(self, x: Any, w_ih: Any, b_ih: Any, b_hh: Any) -> tuple[Array, Array | None]:
        """(g [T, B, G H], the biases that the kernel adds: a GRU's b_hh, part of which acts inside the reset gate)."""
        inner = None
        if self.cell == "gru":
            wide = 3 * x.shape[2] if w_ih is None else w_ih.shape[0]
            inner = fill((wide,), 0, FLOAT32, x.gpu) if b_hh is None else _dense(b_hh)
        elif b_hh is not None:
            b_ih = b_hh if b_ih is None else _add(b_ih, b_hh)
        if w_ih is not None:
            return _dense(_matmul(x, _turned(w_ih, 1, 0), b_ih)), inner
        g = _cat(*[x] * GATES[self.cell], axis=2)
        return (g if b_ih is None else _add(g, b_ih)), inner

    def _weights(self, w_hh: Any, w_hr: Any, sizes: _Sizes) -> Array:
        """[P, G, H]: neighbouring invocations own neighbouring units. A projection's [H, P] behind."""
        w = _dense(_turned(_cube(w_hh, sizes.units), 2, 0, 1))
        return w if w_hr is None else _joined(w, _dense(_turned(w_hr, 1, 0)))


def len_of(x: Any) -> int:
    """The steps of a sequence."""
    return x.shape[0]


def _at(x: Array, step: int) -> Array:
    """x[step], a view."""
    return x.view(x.shape[1:], x.strides[1:], x.offset + step * x.strides[0])


class Backward:
    """`Backward(name)(dy, dhn, dcn, x, h0, w_ih, w_hh, c0, w_hr, y, saved) -> the gradients of the eight inputs`."""

    def __init__(self, name: str):
        self.name, self.cell = name, name.removesuffix("_backward")

    def __call__(self, *inputs: Array | None, needs: tuple, mask: np.ndarray | None = None, reverse: bool = False,
                 relu: bool = False) -> tuple:  # fmt: skip
        dtype, gpu = inputs[9].dtype, inputs[9].gpu  # type: ignore[union-attr]
        dy, dhn, dcn, x, h0, w_ih, w_hh, c0, w_hr, y, saved = (_floats(a) for a in inputs)
        units = w_hh.shape[0] // GATES[self.cell]  # type: ignore[union-attr]
        sizes = _Sizes(self.cell, y.shape, units, w_hr is not None, True)  # type: ignore[union-attr]
        dh = copy(dhn) if dhn is not None else fill(h0.shape, 0, FLOAT32, gpu)  # type: ignore[union-attr]
        dc = None if c0 is None else copy(dcn) if dcn is not None else fill(c0.shape, 0, FLOAT32, gpu)
        d = gpu.empty((sizes.steps, sizes.batch, sizes.d_width), FLOAT32)
        if d.size:
            self._walk(gpu, sizes, dy, y, saved, h0, c0, w_hh, w_hr, mask, (d, dh, dc), reverse, relu)
        before = self._before(y, h0, reverse) if needs[3] and self.cell in ("lstm", "rnn") else None  # type: ignore[arg-type]
        found = self._gradients(d, x, before, w_ih, saved, needs, sizes)
        found[1], found[6] = dh if needs[1] else None, dc if needs[6] else None
        return tuple(None if a is None else gpu.rounded(a, dtype) for a in found)

    def _walk(self, gpu: Any, sizes: _Sizes, dy: Any, y: Any, saved: Any, h0: Any, c0: Any, w_hh: Any, w_hr: Any,
              mask: Any, outputs: tuple, reverse: bool, relu: bool) -> None:  # fmt: skip
        """The kernel over all steps."""
        w = _dense(w_hh) if w_hr is None else _joined(_dense(w_hh), _dense(w_hr))
        dy, y, saved, live = (
            None if dy is None else _dense(dy),
            _dense(y),
            None if saved is None else _dense(saved),
            _mask(mask, gpu),
        )
        d, dh, dc = outputs
        start = _dense(c0 if self.cell == "lstm" else h0)
        second, third, fifth = {"rnn": (y, live, None), "lstm": (saved, start, live)}.get(self.cell, (saved, start, y))
        arrays = [w if a is None else a for a in (dy, second, third, w, fifth)] + [d, dh] + ([dc] if dc is not None else [])
        words = [int(reverse), int(mask is not None), int(relu), int(dy is not None)]
        words += [_offset(a) for a in (dy, y, saved, start, w, live, d, dh, dc)]
        sizes.run(self.name, gpu, tuple(arrays), words)

    def _before(self, y: Array, h0: Array, reverse: bool) -> Array:
        """The state before every step [T, B, P], in y's order of time."""
        first = h0.view((1, *h0.shape), (0, *h0.strides), h0.offset)
        steps = y.shape[0]
        if steps < 2:
            return first
        return _cat(narrow(y, 0, 1, steps - 1), first, axis=0) if reverse else _cat(first, narrow(y, 0, 0, steps - 1), axis=0)

    def _gradients(self, d: Array, x: Any, before: Any, w_ih: Any, saved: Any, needs: tuple, sizes: _Sizes) -> list:
        """dx, dw_ih, dw_hh, db_ih, db_hh, dw_hr: products over all steps and rows."""
        units, rows = sizes.units, sizes.steps * sizes.batch
        d = _shaped(d, rows, sizes.d_width)
        wide = GATES[self.cell] * units
        inner = narrow(d, 1, units, wide) if self.cell == "gru" else narrow(d, 1, 0, wide)
        found: list = [None] * 8
        if needs[0]:
            found[0] = self._input_gradient(inner, w_ih, x.shape, units)
        if needs[2]:
            found[2], found[4] = _matmul.with_sums(_turned(inner, 1, 0), _shaped(_dense(x), rows, x.shape[2]))
        elif needs[4]:
            found[4] = _sum(inner, (0,))
        if self.cell == "gru_before":
            found[3], found[5] = self._of_reset(d, needs, units)
        else:  # GRU's d begins with dq, which belongs behind dr and dz
            turn, outer = 2 * units if self.cell == "gru" else 0, narrow(d, 1, 0, wide)
            if needs[3]:
                before = narrow(d, 1, 4 * units, units) if turn else _shaped(_dense(before), rows, sizes.width)
                found[3], found[5] = _matmul.with_sums(_turned(outer, 1, 0), before, turn)
            elif needs[5]:
                found[5] = turned(_sum(outer, (0,)), turn)
        if needs[7]:
            o, squashed = (narrow(saved, 0, k, 1) for k in (3, 5))
            m = _mul(o, squashed)
            found[7] = _matmul(_turned(narrow(d, 1, 4 * units, sizes.width), 1, 0), _shaped(_dense(m), rows, units))
        return found

    def _input_gradient(self, inner: Array, w_ih: Any, shape: tuple, units: int) -> Array:
        if w_ih is not None:
            return _shaped(_dense(_matmul(inner, w_ih)), *shape)
        parts = inner.view((inner.shape[0], inner.shape[1] // units, units), (inner.strides[0], units, 1), inner.offset)
        return _shaped(_dense(_sum(parts, (1,))), *shape)

    def _of_reset(self, d: Array, needs: tuple, units: int) -> tuple:
        """(dw_hh, db_hh) of gru_before, whose candidate gate is of r h."""
        outer = narrow(d, 1, 0, 3 * units)
        db = _sum(outer, (0,)) if needs[5] else None
        if not needs[3]:
            return None, db
        gates = _matmul(_turned(narrow(d, 1, 0, 2 * units), 1, 0), narrow(d, 1, 3 * units, units))
        candidate = _matmul(_turned(narrow(d, 1, 2 * units, units), 1, 0), narrow(d, 1, 4 * units, units))
        return _cat(gates, candidate, axis=0), db
