"""Launchers of the recurrent kernels: a workgroup runs whole sequences for four batch rows, in one dispatch.

Where the state of a step is too large for a workgroup's memory, one dispatch runs one phase of one step: at most two
a step, forward and backward. The kernels read and write the layer's own dtype, and compute in float32; so are the
state between steps, what enters the gates, what backward is left and the gates' gradients. Where a binding cannot
show a whole sequence, it is cut into boxes of rows and steps, each a shorter sequence that hands on its state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .buffers import Array
from .elementwise import Binary
from .large import part, raw, spread
from .layout import LONGEST_LOOP, element_count
from .movement import Cat, copy, copy_into
from .pieces import in_words, refuse, room
from .rnn_products import GATES, dense, gradients, input_products, joined, state_before, state_weights

ROWS = 4
MEMORY = 16384 // 16  # what WebGPU grants a workgroup, in vec4
SAVED = {"gru": 4, "gru_before": 3, "lstm": 6, "rnn": 0}
LARGEST = 256  # invocations of a workgroup
MOST_PASSES = 1 << 20  # of an invocation's loops a dispatch: a second of a slow GPU, whose driver may end what takes longer
_BACK = ("recurrent_backward", "recurrent_read", "recurrent_state")
LIBS = {"gru": _BACK, "gru_before": _BACK, "lstm": _BACK[:2], "rnn": _BACK[:1]}
FLOAT32 = np.dtype(np.float32)
_cat, _add = Cat(), Binary("add")


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

    @property
    def elements(self) -> int:
        """Of the result."""
        return self.steps * self.batch * self.width

    def of(self, span: tuple, rows: tuple) -> _Sizes:
        """The sizes of a box."""
        return _Sizes(self.cell, (span[1], rows[1], self.width), self.units, self.projected, self.back)

    def run(self, name: str, arrays: tuple, words: list, dtype: Any, pairs: bool = False) -> None:
        """As many dispatches as the state and software Vulkan's limit on loops ask for; one, on a GPU with room."""
        gpu, most = arrays[0].gpu, max(self.units, self.width)
        size = min(LARGEST, -(-most // 32) * 32)
        declared: dict = {"SIZE": size, "UNITS": self.units, "WIDTH": self.width, "D_WIDTH": self.d_width}
        declared["EXCHANGE"] = self.exchange if self.persistent else 1
        text = "".join(f"const {key} = {value}u;\n" for key, value in declared.items())
        for key, value in (("PERSISTENT", self.persistent), ("PROJECTED", self.projected)):
            text += f"const {key} = {str(value).lower()};\n"
        element = gpu.types[dtype][1]
        if pairs:
            text += f"fn pair(a: f32, b: f32) -> u32 {{ return {element}_bits(a) | ({element}_bits(b) << 16u); }}\n"
        types = {"E": element, "O": gpu.types[gpu.written(dtype)][1]}
        kernel = gpu.kernel(name, self._libs(pairs), text, **types)
        groups, columns = -(-self.batch // ROWS), -(-most // size)
        for begin, end, phase in self._pieces(gpu, columns):
            head = [self.steps, self.batch, self.units, self.width, begin, end, phase]
            gpu.run(kernel, arrays, [*head, *words], groups if self.persistent else (groups, columns))

    def _libs(self, pairs: bool) -> tuple:
        """The files of wgsl/lib that the kernel is made of."""
        if self.back:
            return LIBS[self.cell]
        libs = ("recurrent", "recurrent_forward", "recurrent_y_pairs" if pairs else "recurrent_y")
        return (*libs, "recurrent_saved") if SAVED[self.cell] else libs

    @property
    def d_width(self) -> int:
        """Of a row of d: the gates' gradients and what else the cell's backward kernel says, those of a projection."""
        return {"gru": 5, "gru_before": 5, "lstm": 4, "rnn": 1}[self.cell] * self.units + self.projected * self.width

    def pairs(self, packed: bool) -> bool:
        """Whether the kernel writes two elements a word: where no other workgroup or step owns half of one."""
        return packed and self.persistent and not self.batch * self.width % 2

    def boxes(self, name: str, gpu: Any) -> tuple[list, list]:
        """(rows, steps) as (start, length) each, such that what a kernel sees of the rows at these steps can be bound."""
        most = room(gpu)
        widest = max(self.units * max(GATES[self.cell], SAVED[self.cell]), self.width, self.d_width * self.back)
        weights = self.units * (GATES[self.cell] + self.projected), self.width
        if weights[0] * weights[1] > most:
            refuse(name, weights, weights[0] * weights[1], gpu)
        if widest > most:
            refuse(name, (1, 1, self.width), widest, gpu)
        rows = min(self.batch, most // widest)
        rows -= rows % ROWS if ROWS < rows < self.batch else 0
        steps = min(self.steps, most // (widest * rows))
        return _cuts(self.batch, rows), _cuts(self.steps, steps)

    def _pieces(self, gpu: Any, own: int) -> list:
        """(begin, end, phase) of the dispatches, in order."""
        if not self.persistent:
            if not self.back:
                return [(s, s + 1, phase) for s in range(self.steps) for phase in range(self.phases)]
            rest = [(s, s + 1, phase) for s in reversed(range(self.steps)) for phase in range(1, self.phases)]
            return [(self.steps - 1, self.steps, 0), *rest]  # the last phase of a step is also phase 0 of the step before
        over_units, over_width = -(-self.units // 4) + 1, -(-self.width // 4) + 1  # four at a time
        walks = GATES[self.cell] * over_units + self.projected * over_width if self.back else over_units + over_width
        passes = own * (walks + 10) + 8  # of all loops, a step
        piece = max((3 * LONGEST_LOOP if gpu.info["type"] == "CPU" else MOST_PASSES) // passes, 1)
        whole = [(s, min(s + piece, self.steps), 0) for s in range(0, self.steps, piece)]
        return whole[::-1] if self.back else whole


def _cuts(n: int, length: int) -> list:
    return [(start, min(length, n - start)) for start in range(0, n, length)]


def _mask(mask: np.ndarray | None, gpu: Any) -> Array | None:
    return None if mask is None else gpu.upload(np.ascontiguousarray(mask, dtype=np.int32))


def _masked(mask: np.ndarray | None, span: tuple, rows: tuple) -> np.ndarray | None:
    """A mask's part in a box."""
    return None if mask is None else mask[span[0] : sum(span), rows[0] : sum(rows)]


def _offsets(*arrays: Array | None) -> list:
    return [0 if a is None else a.offset for a in arrays]


def _fresh(x: Array, *shape: int) -> Array:
    """x in float32, repeated to a shape, in memory that a kernel may write."""
    x = spread(x, shape)
    return copy(x) if x.dtype == FLOAT32 else x.gpu.cast(x, FLOAT32)


def _cut(x: Array | None, *box: tuple) -> Array | None:
    """A box of x's first dimensions, dense, as a kernel can bind it; each is (start, length)."""
    if x is None:
        return None
    whole = (*box, *[(0, n) for n in x.shape[len(box) :]])
    constant = x.pending is not None and x.pending.launcher is None
    return part(x, whole) if constant else dense(raw(x, whole))


def _at(x: Array, place: int, rows: tuple) -> Array:
    """x[place, rows]."""
    found: Any = _cut(x, (place, 1), rows)
    return found.view(found.shape[1:], found.strides[1:], found.offset)


def _side_by_side(arrays: list) -> Any:
    """The results of some rows each, as one."""
    return arrays[0] if len(arrays) == 1 else _cat(*arrays, axis=0)


class Forward:
    """`Forward(name)(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr) -> (y, hn, [cn], [saved])`: ops/rnn.py."""

    def __init__(self, name: str):
        self.name = self.cell = name

    def __call__(self, x: Array, h0: Array, w_ih: Any, w_hh: Array, b_ih: Any, b_hh: Any, c0: Any, w_hr: Any, *,
                 mask: Any = None, reverse: bool = False, save: bool = True, relu: bool = False) -> tuple:  # fmt: skip
        gpu, dtype, units = x.gpu, x.dtype, w_hh.shape[0] // GATES[self.cell]
        sizes = _Sizes(self.cell, (x.shape[0], *h0.shape), units, w_hr is not None, False)
        if not sizes.elements:
            y, h, c = gpu.empty((x.shape[0], *h0.shape), dtype), copy(h0), None if c0 is None else copy(c0)
            saved = gpu.empty((SAVED[self.cell], x.shape[0] if save else 0, h0.shape[0], units), FLOAT32)
        else:
            rows, spans = sizes.boxes(self.name, gpu)
            given = (w_ih, state_weights(w_hh, w_hr, units), b_ih, b_hh)
            flags = {"reverse": reverse, "save": save, "relu": relu}
            if len(rows) == len(spans) == 1:
                y, h, c, saved = self._box(sizes, x, h0, c0, given, mask, **flags)
            else:
                y, h, c, saved = self._boxes(sizes, (rows, spans), x, h0, c0, given, mask, **flags)
        out = [gpu.rounded(a, dtype) for a in (y, h, c) if a is not None]
        return (*out, saved) if SAVED[self.cell] else tuple(out)

    def _box(self, sizes: _Sizes, x: Array, h0: Array, c0: Any, given: tuple, mask: Any, *, reverse: bool, save: bool,
             relu: bool) -> tuple:  # fmt: skip
        """(y, the last h and c in float32, saved) of what one binding can show."""
        gpu, (w_ih, w, b_ih, b_hh), parts = x.gpu, given, SAVED[self.cell]
        steps, batch, width = sizes.steps, sizes.batch, sizes.width
        pairs = sizes.pairs(x.dtype in gpu.packed)
        y = gpu.empty((steps, batch, width), x.dtype if pairs else gpu.written(x.dtype))
        saved = gpu.empty((parts, steps if save else 1, batch, sizes.units), FLOAT32)
        g = input_products(x, w_ih, b_ih, GATES[self.cell])
        h, c = _fresh(h0, 2, batch, width), None if c0 is None else _fresh(c0, *c0.shape)
        b, live = None if b_hh is None else dense(b_hh), _mask(mask, gpu)
        arrays = [g, w, w if b is None else b, w if live is None else live, h, in_words(y) if pairs else y]
        arrays += [a for a in (saved if parts else None, c) if a is not None]
        words = [int(reverse), int(mask is not None), int(b is not None), int(save), int(relu), *_offsets(g, w, b)]
        sizes.run(self.name, tuple(arrays), words, x.dtype, pairs)
        last = h.view(h.shape[1:], h.strides[1:], h.offset + (steps & 1) * h.strides[0])
        return y, last, c, saved if save else gpu.empty((parts, 0, batch, sizes.units), FLOAT32)

    def _boxes(self, sizes: _Sizes, cuts: tuple, x: Array, h0: Array, c0: Any, given: tuple, mask: Any, *, reverse: bool,
               save: bool, relu: bool) -> tuple:  # fmt: skip
        """The same of more than that: a box after the other, in the order of time."""
        gpu, (rows, spans) = x.gpu, cuts
        y = gpu.empty((sizes.steps, sizes.batch, sizes.width), x.dtype)
        shape = (SAVED[self.cell], sizes.steps if save else 0, sizes.batch, sizes.units)
        if 4 * element_count(shape) > gpu.pool.max_bytes:
            raise ValueError(
                f"[{self.name}] what it keeps for backward, {4 * element_count(shape):,} bytes of shape {shape}, is more than a "
                f"buffer of this adapter holds, {gpu.pool.max_bytes:,}. Pass checkpoint=k, or fewer rows or steps."
            )
        saved = gpu.empty(shape, FLOAT32)
        ends = []
        for some in rows:
            h, c = _cut(h0, some), _cut(c0, some)
            for span in reversed(spans) if reverse else spans:
                parts: tuple = (_cut(x, span, some), h, c, given, _masked(mask, span, some))
                part_y, h, c, kept = self._box(sizes.of(span, some), *parts, reverse=reverse, save=save, relu=relu)
                copy_into(raw(y, (span, some, (0, sizes.width))), part_y)
                if kept.size:
                    copy_into(raw(saved, ((0, saved.shape[0]), span, some, (0, sizes.units))), kept)
            ends.append((h, c))
        h, c = (_side_by_side(list(each)) if each[0] is not None else None for each in zip(*ends, strict=True))
        return y, h, c, saved


class Backward:
    """`Backward(name)(dy, dhn, dcn, x, h0, w_ih, w_hh, c0, w_hr, y, saved) -> the gradients of the eight inputs`."""

    def __init__(self, name: str):
        self.name, self.cell = name, name.removesuffix("_backward")

    def __call__(self, dy: Any, dhn: Any, dcn: Any, x: Array, h0: Array, w_ih: Any, w_hh: Array, c0: Any, w_hr: Any, y: Array,
                 saved: Any, *, needs: tuple, mask: Any = None, reverse: bool = False, relu: bool = False) -> tuple:  # fmt: skip
        gpu, dtype, units = y.gpu, y.dtype, w_hh.shape[0] // GATES[self.cell]
        sizes = _Sizes(self.cell, y.shape, units, w_hr is not None, True)
        rows, spans = sizes.boxes(self.name, gpu) if sizes.elements else ([], [])
        w = dense(w_hh) if w_hr is None else joined(dense(w_hh), dense(w_hr))
        back = (dhn if dhn is not None else gpu.full(h0.shape, 0, FLOAT32), dcn)
        if c0 is not None and dcn is None:
            back = (back[0], gpu.full(c0.shape, 0, FLOAT32))
        saved = None if saved is None else gpu.rounded(saved, FLOAT32)
        weights = {"w": w, "w_ih": w_ih, "needs": needs, "reverse": reverse, "relu": relu}
        if max(len(rows), len(spans)) <= 1:
            found, dh, dc = self._box(sizes, dy, *back, x, h0, c0, y, saved, mask, dtype, **weights)
        else:
            found, dh, dc = self._boxes(sizes, (rows, spans), dy, *back, x, h0, c0, y, saved, mask, **weights)
        found[1], found[6] = dh if needs[1] else None, dc if needs[6] else None
        return tuple(None if a is None else gpu.rounded(a, dtype) for a in found)

    def _box(self, sizes: _Sizes, dy: Any, dhn: Array, dcn: Any, x: Any, h0: Array, c0: Any, y: Array, saved: Any, mask: Any,
             dtype: Any, *, w: Array, w_ih: Any, needs: tuple, reverse: bool, relu: bool) -> tuple:  # fmt: skip
        """(the gradients of the products in `dtype`, dh and dc in float32) of what one binding can show."""
        gpu, width = y.gpu, sizes.d_width
        dh, dc = _fresh(dhn, *dhn.shape), None if c0 is None else _fresh(dcn, *dcn.shape)
        d = gpu.empty((sizes.steps, sizes.batch, width), FLOAT32)
        if d.size:
            live = _mask(mask, gpu)
            given, y, saved = (None if a is None else dense(a) for a in (dy, y, saved))
            start = dense(gpu.rounded(c0, FLOAT32) if self.cell == "lstm" else h0)
            own = {"rnn": (y, live), "lstm": (saved, start, live, dc)}.get(self.cell, (saved, start, y))
            arrays = (w if given is None else given, w, d, dh, *(w if a is None else a for a in own))
            words = [int(reverse), int(mask is not None), int(relu), int(given is not None), *_offsets(given, y, saved, start, w)]
            sizes.run(self.name, arrays, words, y.dtype)
        before = state_before(y, h0, reverse) if needs[3] and self.cell in ("lstm", "rnn") else None
        rows = d.view((sizes.steps * sizes.batch, width), (width, 1), 0)
        return gradients(self.cell, rows, x, before, w_ih, saved, needs, sizes.units, dtype), dh, dc

    def _boxes(self, sizes: _Sizes, cuts: tuple, dy: Any, dhn: Array, dcn: Any, x: Array, h0: Array, c0: Any, y: Array,
               saved: Any, mask: Any, *, reverse: bool, needs: tuple, **weights: Any) -> tuple:  # fmt: skip
        """The same of more than that: a box after the other, against the order of time; what they add up to in float32."""
        total: list = [None] * 8
        dx = y.gpu.empty(x.shape, y.dtype) if needs[0] else None
        ends = []
        for some in cuts[0]:
            dh, dc = _cut(dhn, some), _cut(dcn, some)
            for span in cuts[1] if reverse else reversed(cuts[1]):
                first = sum(span) == sizes.steps if reverse else not span[0]  # of all steps
                place = sum(span) if reverse else span[0] - 1
                h = _cut(h0, some) if first else _at(y, place, some)
                c = _cut(c0, some)
                if c is not None and not first:
                    c = _at(saved.view(saved.shape[1:], saved.strides[1:], saved.offset + 4 * saved.strides[0]), place, some)
                kept = None if saved is None else _cut(saved, (0, saved.shape[0]), span, some)
                parts: tuple = (_cut(dy, span, some), dh, dc, _cut(x, span, some), h, c, _cut(y, span, some), kept)
                parts += (_masked(mask, span, some), FLOAT32)
                found, dh, dc = self._box(sizes.of(span, some), *parts, needs=needs, reverse=reverse, **weights)
                if dx is not None:
                    copy_into(raw(dx, (span, some, (0, x.shape[2]))), found[0])
                total = [b if a is None else _add(a, b) for a, b in zip(total, [None, *found[1:]], strict=True)]
            ends.append((dh, dc))
        dh, dc = (_side_by_side(list(each)) if each[0] is not None else None for each in zip(*ends, strict=True))
        return [dx, *total[1:]], dh, dc
