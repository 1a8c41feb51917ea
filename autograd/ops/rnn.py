"""Recurrent layers over whole sequences: fused forward and backward, and a composite twin (rnn_composite.py).

The interface of this core, for everything that is built on it:

    y, hn, cn = layer(cell, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, *, lengths, mask, padding, reverse, checkpoint,
                      activation, gate_activation)

x [T, B, I], h0 [B, H], w_ih [G H, I], w_hh [G H, H], b_ih and b_hh [G H] or None; y [T, B, H] in x's order of time,
hn [B, H] the state after the step that is computed last. cell names the formula, with g = x W_ih^T + b_ih:

    "gru"         gates r, z, n; the reset gate acts on the product (cuDNN, PyTorch, Keras reset_after=True)
                  r, z = σ(g + h R^T + b_hh);  n = tanh(g_n + r (h R_n^T + b_n));  h' = (1 - z) n + z h
    "gru_before"  the same with n = tanh(g_n + (r h) R_n^T + b_n): on the state (TensorFlow's block cell, Keras
                  reset_after=False, BigDL, ggml; Cho et al. 2014)
    "lstm"        gates i, f, g, o; c' = f c + i tanh(g);  h' = o tanh(c'), with w_hr [P, H] times W_hr^T (then h0, y
                  and hn are P wide, and w_hh is [4 H, P]); takes c0 [B, H], gives cn [B, H] (None for the others)
    "rnn"         h' = tanh(g + h R^T + b_hh), or relu

w_ih None: x [T, B, H] itself enters every gate (cuDNN's skip_input). lengths: B whole numbers in 0 … T; or mask [T, B]
of bool, False where a row keeps its state. There y is 0 (padding="zero"), the state (padding="hold"), or the last y
that was computed, 0 before the first (padding="repeat", Keras' rule). Masked inputs have no effect, whatever they hold.
reverse computes from the last step to the first. checkpoint=k keeps every k-th state only and computes the rest again
in backward. activation and gate_activation: names of rnn_composite.ACTIVATIONS, or functions of a Tensor; other than
tanh (relu for "rnn") and sigmoid they run the composite, which takes no checkpoint.

Source of the formulas: PyTorch's and cuDNN's documentation; Appleyard et al. 2016 for computing a layer's input products
of all steps together; Cho et al. 2014; Hochreiter and Schmidhuber 1997, Gers et al. 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..cast import listed
from ..grad_mode import enable_grad, state
from ..op import Op, apply, register
from ..tape import Node, grad
from ..tensor import Tensor
from ..webgpu import rnn as kernels
from . import rnn_cells, rnn_numpy
from .rnn_composite import GATES, activation, check_floats, composite, on_device
from .select import where
from .views import cat

lowered = partial(listed, name="rnn")  # autocast casts what a layer is given

ALL = tuple(range(8))  # every gradient needs every input: x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr


def _aliases(inputs: tuple, edges: tuple) -> list:
    """The gradient is to stop at these, not to run on into what the inputs were made of."""
    return [x if x is None or edge is None else x.reshape(*x.shape) for x, edge in zip(inputs, edges, strict=True)]


def _derive(ctx: Node, run: Callable, grads: tuple, create: bool) -> tuple:
    """The gradients of ctx's inputs through run(*aliases), which computes the op's outputs (without `saved`) again."""
    with enable_grad():
        aliases = _aliases(ctx.saved_inputs(), ctx.edges)
        outputs = run(*aliases)
    wanted = [a for a, edge in zip(aliases, ctx.edges, strict=True) if edge is not None]
    pairs = [(y, dy) for y, dy in zip(outputs, grads, strict=False) if y is not None and dy is not None]
    ys, dys = zip(*pairs, strict=True)
    pairs = list(zip(wanted, grad(ys, wanted, dys, create_graph=create, allow_unused=True), strict=True))
    found = iter([a.zeros_like() if g is None else g for a, g in pairs])  # zeros, as the fused op gives
    return tuple(None if edge is None else next(found) for edge in ctx.edges)


class Recurrent(Op):
    """What the four fused ops share. Inputs x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr; outputs y, hn, [cn], [saved]."""

    saves = (ALL,) * 8
    keeps = True
    cell = ""

    @staticmethod
    def backward(ctx: Node, dy: Tensor | None, dhn: Tensor | None, *others: Any) -> tuple:
        options = {"mask": ctx.attrs["mask"], "reverse": ctx.attrs["reverse"]}
        if ctx.attrs.get("relu"):
            options["act"] = Tensor.relu  # type: ignore[attr-defined]
        run = partial(composite, ctx.op.cell, **options)
        return _derive(ctx, run, (dy, dhn, others[0] if ctx.op.cell == "lstm" else None), True)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor | None, dhn: Tensor | None, *others: Any) -> tuple:
        x, h0, w_ih, w_hh, _, _, c0, w_hr = ctx.saved_inputs()
        y, *rest = ctx.saved_outputs()
        dcn = others[0] if ctx.op.cell == "lstm" else None
        saved = None if ctx.op.cell == "rnn" else rest[-1]
        needs = tuple(edge is not None for edge in ctx.edges)
        attrs = {k: v for k, v in ctx.attrs.items() if k != "save"}
        found = apply(BACKWARD[ctx.op.cell], dy, dhn, dcn, x, h0, w_ih, w_hh, c0, w_hr, y, saved, needs=needs, **attrs)
        return tuple(g if need else None for g, need in zip(found, needs, strict=True))


class RecurrentBackward(Op):
    """What their gradients share: inputs dy, dhn, dcn, x, h0, w_ih, w_hh, c0, w_hr, y, saved; outputs the gradients of
    the eight inputs, None where `needs` is False."""

    outputs = 8
    differentiable = False


def _forward(cell: type, *inputs: Any, **attrs: Any) -> tuple:
    return rnn_numpy.forward(cell, *inputs, **attrs)


def _backward(cell: type, dy: Any, dhn: Any, dcn: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, c0: Any, w_hr: Any, y: Any,
              saved: Any, **attrs: Any) -> tuple:  # fmt: skip
    return rnn_numpy.backward(cell, dy, dhn, dcn, (x, h0, w_ih, w_hh, c0, w_hr), y, saved, **attrs)


@register
class Gru(Recurrent):
    """h' = n + z (h - n), r, z = sigmoid(g + h R^T + b), n = tanh(g + r (h R^T + b)), g = x W^T + b, for all steps
    dx, dh0, dW, dR, db: see gru_backward
    """

    cell = "gru"
    numpy = partial(_forward, rnn_cells.Gru)
    wgpu = kernels.Forward("gru")
    outputs = 3


@register
class GruBackward(RecurrentBackward):
    """dn' = dh (1-z) (1-n^2); dz' = dh (h-n) z (1-z); dr' = dn' q r (1-r); dh = dh z + (dr', dz', dn' r) R
    no gradient: create_graph goes through the composite
    """

    numpy = partial(_backward, rnn_cells.Gru)
    wgpu = kernels.Backward("gru_backward")


@register
class GruBefore(Recurrent):
    """h' = n + z (h - n), r, z = sigmoid(g + h R^T), n = tanh(g + (r h) R^T), g = x W^T + b, for all steps
    dx, dh0, dW, dR, db: see gru_before_backward
    """

    cell = "gru_before"
    numpy = partial(_forward, rnn_cells.GruBefore)
    wgpu = kernels.Forward("gru_before")
    outputs = 3


@register
class GruBeforeBackward(RecurrentBackward):
    """dn', dz' as in gru; dm = dn' R_n, dr' = dm h r (1-r); dh = dh z + dm r + (dr', dz') R_rz
    no gradient: create_graph goes through the composite
    """

    numpy = partial(_backward, rnn_cells.GruBefore)
    wgpu = kernels.Backward("gru_before_backward")


@register
class Lstm(Recurrent):
    """c' = f c + i g, h' = o tanh(c') [W_hr^T], i, f, o = sigmoid(x W^T + h R^T + b), g = tanh(the same), for all steps
    dx, dh0, dW, dR, db, dc0, dW_hr: see lstm_backward
    """

    cell = "lstm"
    numpy = partial(_forward, rnn_cells.Lstm)
    wgpu = kernels.Forward("lstm")
    outputs = 4


@register
class LstmBackward(RecurrentBackward):
    """do' = dh tanh(c') o (1-o); dc += dh o (1-tanh(c')^2); di', df', dg' = dc (g i (1-i), c f (1-f), i (1-g^2))
    no gradient: create_graph goes through the composite
    """

    numpy = partial(_backward, rnn_cells.Lstm)
    wgpu = kernels.Backward("lstm_backward")


@register
class Rnn(Recurrent):
    """h' = tanh(x W^T + h R^T + b), or relu, for all steps
    dx, dh0, dW, dR, db: see rnn_backward
    """

    cell = "rnn"
    numpy = partial(_forward, rnn_cells.Rnn)
    wgpu = kernels.Forward("rnn")
    outputs = 2


@register
class RnnBackward(RecurrentBackward):
    """d = dh (1 - h'^2), or dh where h' > 0; dh = d R
    no gradient: create_graph goes through the composite
    """

    numpy = partial(_backward, rnn_cells.Rnn)
    wgpu = kernels.Backward("rnn_backward")


FORWARD = {"gru": Gru, "gru_before": GruBefore, "lstm": Lstm, "rnn": Rnn}
BACKWARD = {"gru": GruBackward, "gru_before": GruBeforeBackward, "lstm": LstmBackward, "rnn": RnnBackward}


def _segment(name: str, *inputs: Any, cell: str, **attrs: Any) -> tuple:
    """(y, hn, cn) of the fused op, without what it saves; cn is empty where there is none."""
    outputs = getattr(FORWARD[cell], name)(*inputs, save=False, **attrs)
    return outputs[:3] if cell == "lstm" else (*outputs[:2], outputs[1][:0])


def _segment_on_gpu(*inputs: Any, cell: str, **attrs: Any) -> tuple:
    y, hn, *rest = FORWARD[cell].wgpu(*inputs, save=False, **attrs)  # type: ignore[misc]
    return y, hn, rest[0] if cell == "lstm" else hn.gpu.empty((0,), hn.dtype)


@register
class RnnSegment(Op):
    """y, hn, cn of a few steps of any cell, of which nothing is kept but the inputs: checkpoint=k
    dx, dh0, dW, dR, db, dc0, dW_hr: the steps are computed again, by the fused op
    """

    numpy = partial(_segment, "numpy")
    wgpu = staticmethod(_segment_on_gpu)
    saves = (ALL,) * 8
    outputs = 3

    @staticmethod
    def backward(ctx: Node, *grads: Any) -> tuple:
        return _derive(ctx, partial(_fused, **{k: v for k, v in ctx.attrs.items()}), grads, state.enabled)


def _fused(*inputs: Any, cell: str, **attrs: Any) -> tuple:
    """(y, hn, cn or None) of the fused op."""
    save = state.enabled and any(t is not None and t._requires_grad for t in inputs)
    outputs = apply(FORWARD[cell], *inputs, save=save, **attrs)
    return (*outputs[:2], outputs[2] if cell == "lstm" else None)


def _in_segments(k: int, x: Tensor, h: Tensor, *weights: Any, cell: str, mask: Any, reverse: bool, **attrs: Any) -> tuple:
    """The sequence in segments of k steps, each of which keeps its first state only."""
    *weights, c, w_hr = weights
    starts = range(0, len(x), k)
    parts = []
    for start in reversed(starts) if reverse else starts:
        rows = slice(start, start + k)
        inside = None if mask is None else mask[rows]
        y, h, cn = apply(RnnSegment, x[rows], h, *weights, c, w_hr, cell=cell, mask=inside, reverse=reverse, **attrs)
        c = cn if cell == "lstm" else None
        parts.append(y)
    return cat(parts[::-1] if reverse else parts), h, c


@lowered
def layer(cell: str, x: Tensor, h0: Tensor, w_ih: Tensor | None, w_hh: Tensor, b_ih: Tensor | None = None,
          b_hh: Tensor | None = None, c0: Tensor | None = None, w_hr: Tensor | None = None, *, lengths: Any = None,
          mask: Any = None, padding: str = "zero", reverse: bool = False, checkpoint: int | None = None,
          activation: str | Callable = "tanh", gate_activation: str | Callable = "sigmoid", op: str = "") -> tuple:  # fmt: skip
    """One layer in one direction: (y, hn, cn or None). Formulas, shapes and options: this module's docstring.

    No steps: y is empty and the states are the first ones. op is the name in messages. ValueError for shapes that do
    not fit, lengths outside 0 … T or an unknown option; TypeError for mixed dtypes and those that are not floating.
    """
    op = op or cell
    check(op, cell, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
    if padding not in ("zero", "hold", "repeat"):
        raise ValueError(f'[{op}] padding is "zero", "hold" or "repeat"; got {padding!r}')
    if not len(x):
        return x.new_zeros(0, *h0.shape), h0, c0
    live = live_steps(op, lengths, mask, len(x), x.shape[1])
    if live is not None:
        x = where(on_device(live[..., None], x), x, 0.0)
    inputs = (x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
    y, hn, cn = _run(op, cell, inputs, live, reverse, checkpoint, activation, gate_activation)
    if live is not None and padding != "hold":
        shown = live if padding == "zero" else _seen(live, reverse)
        y = where(on_device(shown[..., None], x), y, 0.0)
    return y, hn, cn


def _run(op: str, cell: str, inputs: tuple, live: Any, reverse: bool, checkpoint: int | None, act: Any, gate: Any) -> tuple:
    """The fused op where there is one, else the composite."""
    fused = gate == "sigmoid" or cell == "rnn"
    fused = fused and (act == "tanh" or (cell == "rnn" and act == "relu"))
    check_checkpoint(op, checkpoint)
    if not fused and checkpoint is not None:
        hint = "tanh (relu too for rnn) and sigmoid"
        raise ValueError(f"[{op}] checkpoint={checkpoint} is for the fused activations, {hint}; got {act!r} and {gate!r}")
    if not fused:
        return composite(cell, *inputs, mask=live, reverse=reverse, act=activation(act, op), gate=activation(gate, op))
    attrs: dict = {"cell": cell, "mask": live, "reverse": reverse}
    if cell == "rnn":
        attrs["relu"] = act == "relu"
    return _fused(*inputs, **attrs) if checkpoint is None else _in_segments(checkpoint, *inputs, **attrs)


def check_checkpoint(op: str, k: Any) -> None:
    """ValueError for a checkpoint that is neither a positive number of steps nor None."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise ValueError(f"[{op}] checkpoint must be a positive number of steps, or None; got {k!r}")


def _seen(live: np.ndarray, reverse: bool) -> np.ndarray:
    """Whether a row had a live step by then."""
    return np.logical_or.accumulate(live[::-1])[::-1] if reverse else np.logical_or.accumulate(live)


def live_steps(op: str, lengths: Any, mask: Any, steps: int, batch: int) -> np.ndarray | None:
    """lengths or mask as [T, B] of bool; None when every step of every row is live."""
    if lengths is not None and mask is not None:
        raise ValueError(f"[{op}] lengths and mask exclude each other")
    if lengths is not None:
        n = on_host(lengths)
        if n.shape != (batch,) or n.dtype.kind not in "iu":
            raise ValueError(f"[{op}] lengths must be {batch} whole numbers, one a row; got {n.dtype} {n.shape}")
        if n.size and not (0 <= n.min() and n.max() <= steps):
            raise ValueError(f"[{op}] lengths must lie in 0 … {steps}; got {n.tolist()}")
        mask = np.arange(steps)[:, None] < n
    elif mask is not None:
        mask = np.asarray(mask.cpu() if isinstance(mask, Tensor) else mask).astype(bool)
        if mask.shape != (steps, batch):
            raise ValueError(f"[{op}] mask must have shape {(steps, batch)}; got {mask.shape}")
    return None if mask is None or mask.all() else mask


def on_host(lengths: Any) -> np.ndarray:
    """lengths as an array; an empty list is one of whole numbers."""
    n = np.asarray(lengths.cpu() if isinstance(lengths, Tensor) else lengths)
    return n if n.size else n.astype(np.int64)


def check(op: str, cell: str, x: Tensor, h0: Tensor, w_ih: Any, w_hh: Tensor, b_ih: Any, b_hh: Any, c0: Any, w_hr: Any) -> None:
    """Every shape rule, with the name and both sizes, and one floating dtype."""
    if cell not in GATES:
        raise ValueError(f"[{op}] cell is one of {', '.join(GATES)}; got {cell!r}")
    check_floats(op, x=x, h0=h0, w_ih=w_ih, w_hh=w_hh, b_ih=b_ih, b_hh=b_hh, c0=c0, w_hr=w_hr)
    if x.ndim != 3 or h0.ndim != 2:
        raise ValueError(f"[{op}] x must be [T, B, I] and h0 [B, H]; got {x.shape} and {h0.shape}")
    (_, batch, width), state_width, rows = x.shape, h0.shape[1], w_hh.shape[0]
    units = state_width if w_hr is None else rows // GATES[cell]
    if cell == "lstm" and c0 is None:
        raise ValueError(f"[{op}] an LSTM needs c0 beside h0; got None")
    if cell != "lstm" and not (c0 is None and w_hr is None):
        raise ValueError(f"[{op}] c0 and w_hr are the LSTM's; got them for {cell}")
    if not units or not state_width:
        raise ValueError(f"[{op}] H and P must be positive; got h0 {h0.shape} and w_hh {w_hh.shape}")
    wanted = {
        "h0": (h0, (batch, state_width)),
        "c0": (c0, (batch, units)),
        "w_ih": (w_ih, (GATES[cell] * units, width)),
        "w_hh": (w_hh, (GATES[cell] * units, state_width)),
        "b_ih": (b_ih, (GATES[cell] * units,)),
        "b_hh": (b_hh, (GATES[cell] * units,)),
        "w_hr": (w_hr, (state_width, units)),
    }
    if w_ih is None and width != units:
        raise ValueError(f"[{op}] without w_ih the input enters the gates itself: I must be H = {units}; got x {x.shape}")
    for name, (t, shape) in wanted.items():
        if t is not None and t.shape != shape:
            raise ValueError(f"[{op}] {name} must have shape {shape} for x {x.shape} and h0 {h0.shape}; got {t.shape}")
        if t is not None and t.dtype is not x.dtype:
            raise TypeError(f"[{op}] {name} must have x's dtype {x.dtype}; got {t.dtype}")


# -- names that modules use -----------------------------------------------------------------------------


def gru(x: Tensor, h0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
        reverse: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """layer("gru", …) without cn: (y, hn)."""
    return layer("gru", x, h0, w_ih, w_hh, b_ih, b_hh, reverse=reverse)[:2]


def cell_step(cell: str, x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
              b_hh: Tensor | None = None, c: Tensor | None = None, **options: Any) -> tuple:  # fmt: skip
    """One step: x [B, I], h [B, H] -> (h', c' or None). See layer."""
    return layer(cell, x.unsqueeze(0), h, w_ih, w_hh, b_ih, b_hh, c, **options)[1:]


def gru_cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
             b_hh: Tensor | None = None) -> Tensor:  # fmt: skip
    """One step of "gru": x [B, I], h [B, H] -> h' [B, H]."""
    return cell_step("gru", x, h, w_ih, w_hh, b_ih, b_hh)[0]
