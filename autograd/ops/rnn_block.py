"""TensorFlow's GRU block cell and its gradient, and ggmlR's steps: one step each, in Tensor operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grad_mode import no_grad
from ..op import Op, apply, register
from ..tape import Node
from ..tensor import Tensor, wrap
from .rnn_composite import activation, check_floats, check_whole
from .rnn_numpy import widened
from .views import cat


def _check_rules(op: str, rules: list) -> None:
    """rules: (name, tensor, dimension, wanted, what it is) or (name, tensor, rank), in the order they are checked."""
    for name, t, *rule in rules:
        if len(rule) == 1:
            if t.ndim != rule[0]:
                raise ValueError(f"[{op}] rank of {name} must be {rule[0]}; got {t.ndim}, shape {t.shape}")
            continue
        dim, wanted, meaning = rule
        if t.shape[dim] != wanted():
            raise ValueError(f"[{op}] {name}.dims({dim}) must be {meaning} = {wanted()}; got {t.shape[dim]}, shape {t.shape}")


def _check_alike(op: str, name: str, x: Tensor, others: dict) -> None:
    """x's dtype and device for all."""
    for other, t in others.items():
        if t.dtype is not x.dtype:
            raise TypeError(f"[{op}] {other} must have {name}'s dtype {x.dtype}; got {t.dtype}")
        if t.device != x.device:
            found = f"{name} on {x.device} and {other} on {t.device}"
            raise RuntimeError(f"[{op}] all tensors must be on one device; got {found}. Move them with .to(device)")


def _check_block(op: str, x: Tensor, h: Tensor, w_ru: Tensor, w_c: Tensor, b_ru: Tensor, b_c: Tensor, **others: Tensor) -> None:
    """TensorFlow's rules, in its order, one floating dtype and one device."""
    check_floats(op, x=x, h_prev=h, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c, **others)
    batch, both, cell = (lambda: x.shape[0]), (lambda: x.shape[1] + h.shape[1]), (lambda: h.shape[1])
    rules: list = [
        ("x", x, 2),
        ("h_prev", h, 2),
        ("h_prev", h, 0, batch, "batch_size"),
        ("w_ru", w_ru, 2),
        ("w_ru", w_ru, 0, both, "input_size + cell_size"),
        ("w_ru", w_ru, 1, lambda: 2 * h.shape[1], "cell_size * 2"),
        ("w_c", w_c, 2),
        ("w_c", w_c, 0, both, "input_size + cell_size"),
        ("w_c", w_c, 1, cell, "cell_size"),
        ("b_ru", b_ru, 1),
        ("b_ru", b_ru, 0, lambda: 2 * h.shape[1], "cell_size * 2"),
        ("b_c", b_c, 1),
        ("b_c", b_c, 0, cell, "cell_size"),
    ]
    for name, t in others.items():
        rules += [(name, t, 2), (name, t, 0, batch, "batch_size"), (name, t, 1, cell, "cell_size")]
    _check_rules(op, rules)
    _check_alike(op, "x", x, {"h_prev": h, "w_ru": w_ru, "w_c": w_c, "b_ru": b_ru, "b_c": b_c, **others})


def _formula(x: Tensor, h: Tensor, w_ru: Tensor, w_c: Tensor, b_ru: Tensor, b_c: Tensor) -> tuple:
    r, u = (cat([x, h], 1) @ w_ru + b_ru).sigmoid().chunk(2, 1)
    c = (cat([x, r * h], 1) @ w_c + b_c).tanh()
    return r, u, c, u * (h - c) + c


def _gradient(x: Tensor, h: Tensor, w_ru: Tensor, w_c: Tensor, r: Tensor, u: Tensor, c: Tensor, d_h: Tensor | None,
              d_r: Tensor | None = None, d_u: Tensor | None = None, d_c: Tensor | None = None) -> tuple:  # fmt: skip
    """(d_x, d_h_prev, d_c_bar, d_r_bar_u_bar), with gradients that arrive at r, u and c themselves, if any."""
    zero = h.zeros_like()
    dh = zero if d_h is None else d_h
    at_c = dh * (1 - u) if d_c is None else dh * (1 - u) + d_c
    at_u = dh * (h - c) if d_u is None else dh * (h - c) + d_u
    d_c_bar = at_c * (1 - c * c)
    into_c = d_c_bar @ w_c.mT
    inputs = x.shape[1]
    d_x2, d_hr = into_c[:, :inputs], into_c[:, inputs:]
    at_r = d_hr * h if d_r is None else d_hr * h + d_r
    d_ru_bar = cat([at_r * r * (1 - r), at_u * u * (1 - u)], 1)
    into_ru = d_ru_bar @ w_ru.mT
    return into_ru[:, :inputs] + d_x2, into_ru[:, inputs:] + d_hr * r + dh * u, d_c_bar, d_ru_bar


def _on_host(*arrays: np.ndarray) -> tuple:
    """The formula on NumPy arrays."""
    dtype = arrays[0].dtype
    x, h, w_ru, w_c, b_ru, b_c = widened(*arrays)
    both = np.concatenate([x, h], 1) @ w_ru
    both += b_ru
    np.negative(both, both)
    np.exp(both, both)  # where it overflows, the sigmoid is 0
    both += 1
    np.divide(1, both, both)  # np.reciprocal takes twice as long
    r, u = np.split(both, 2, 1)
    c = np.concatenate([x, r * h], 1) @ w_c
    c += b_c
    np.tanh(c, out=c)
    return tuple(a.astype(dtype) for a in (r, u, c, u * (h - c) + c))


def _on_gpu(*arrays: Any) -> tuple:
    """The formula in Tensor operations: two products, and elementwise kernels made for it."""
    with no_grad():
        return tuple(y.contiguous().array for y in _formula(*map(wrap, arrays)))


@register
class GruBlockCell(Op):
    """r, u = sigmoid([x, h] w_ru + b_ru), c = tanh([x, r h] w_c + b_c), h' = u h + (1-u) c
    dx, dh, dw_ru, dw_c, db_ru, db_c: see gru_block_cell_grad in autograd/rnn.py
    """

    numpy = staticmethod(_on_host)
    wgpu = staticmethod(_on_gpu)
    saves = ((0, 1, 2, 3, 4, 5),) * 4 + ((), ())
    keeps = True
    outputs = 4

    @staticmethod
    def backward(ctx: Node, d_r: Any, d_u: Any, d_c: Any, d_h: Any) -> tuple:
        x, h, w_ru, w_c, *_ = ctx.saved_inputs()
        r, u, c, _ = ctx.saved_outputs()
        d_x, d_h_prev, d_c_bar, d_ru_bar = _gradient(x, h, w_ru, w_c, r, u, c, d_h, d_r, d_u, d_c)
        d_w_ru = cat([x, h], 1).mT @ d_ru_bar if ctx.needs(2) else None
        d_w_c = cat([x, r * h], 1).mT @ d_c_bar if ctx.needs(3) else None
        return d_x, d_h_prev, d_w_ru, d_w_c, d_ru_bar.sum(0), d_c_bar.sum(0)


def gru_block_cell(x: Tensor, h_prev: Tensor, w_ru: Tensor, w_c: Tensor, b_ru: Tensor, b_c: Tensor) -> tuple:
    """One step of TensorFlow's GRUBlockCell: (r, u, c, h), each [B, C].

        [r_bar u_bar] = [x, h_prev] w_ru + b_ru       r = sigmoid(r_bar)    u = sigmoid(u_bar)
        c_bar = [x, r * h_prev] w_c + b_c             c = tanh(c_bar)       h = u * h_prev + (1 - u) * c

    x [B, I], h_prev [B, C], w_ru [I+C, 2C] (rows: x then h; columns: reset then update), w_c [I+C, C], b_ru [2C] =
    [b_r, b_u], b_c [C]; any float dtype (the op itself has float32 only). Gradients that arrive at r, u, c are honoured.
    ValueError for shapes, with TensorFlow's rules in its order; TypeError for mixed dtypes, or none that floats. B = 0 works.
    Source: tensorflow/core/kernels/rnn/gru_ops.
    """
    _check_block("gru_block_cell", x, h_prev, w_ru, w_c, b_ru, b_c)
    return apply(GruBlockCell, x, h_prev, w_ru, w_c, b_ru, b_c)


def gru_block_cell_grad(x: Tensor, h_prev: Tensor, w_ru: Tensor, w_c: Tensor, b_ru: Tensor, b_c: Tensor, r: Tensor,
                        u: Tensor, c: Tensor, d_h: Tensor) -> tuple:  # fmt: skip
    """GRUBlockCellGrad: (d_x, d_h_prev, d_c_bar, d_r_bar_u_bar), for any r, u, c; b_ru and b_c only have their shapes checked.

        d_c_bar = d_h * (1 - u) * (1 - c * c)            d_u_bar = d_h * (h_prev - c) * u * (1 - u)
        [d_x2  d_hr] = d_c_bar w_c^T                     d_r_bar = d_hr * h_prev * r * (1 - r)
        d_r_bar_u_bar = [d_r_bar  d_u_bar]               [d_x1  d_h1] = d_r_bar_u_bar w_ru^T
        d_x = d_x1 + d_x2                                d_h_prev = d_h1 + d_hr * r + d_h * u

    and outside, from these: d_w_ru = [x, h_prev]^T d_r_bar_u_bar, d_w_c = [x, r * h_prev]^T d_c_bar, biases their sums.
    The page that documents the op differs, and is wrong: it multiplies d_u_bar by w_r_x and w_r_h instead of w_u_x and
    w_u_h; ends d_h_prev in "+ u" instead of d_h * u; exchanges the names d_w_ru and d_w_c; leaves d_r_bar out; writes h
    where h_prev is meant; sets w_c's parts side by side instead of one above the other; and gives x and h biases of
    their own. Errors: as gru_block_cell.
    """
    _check_block("gru_block_cell_grad", x, h_prev, w_ru, w_c, b_ru, b_c, r=r, u=u, c=c, d_h=d_h)
    return _gradient(x, h_prev, w_ru, w_c, r, u, c, d_h)


def _sizes_of(op: str, x: Tensor) -> tuple:
    """(N, I) of x_t."""
    if x.ndim != 2:
        raise ValueError(f"[{op}] x_t must be [N, I]; got {x.shape}")
    return x.shape


def _check_step(op: str, x: Tensor, units: int, shapes: dict) -> None:
    """ggmlR's shapes, one floating dtype and one device."""
    check_floats(op, x_t=x, **{name: t for name, (t, _) in shapes.items()})
    check_whole(op, "units", units)
    if units < 1:
        raise ValueError(f"[{op}] units must be positive; got {units}")
    for name, (t, wanted) in shapes.items():
        if t.shape != wanted:
            raise ValueError(f"[{op}] {name} must have shape {wanted} for x_t {x.shape} and units={units}; got {t.shape}")
    _check_alike(op, "x_t", x, {name: t for name, (t, _) in shapes.items()})


def gru_step(x_t: Tensor, h_t: Tensor, W_zh: Tensor, U_zh: Tensor, b_zh: Tensor, W_n: Tensor, U_n: Tensor, b_n: Tensor,
             units: int, act_cell: Any = "tanh", act_rec: Any = "sigmoid") -> Tensor:  # fmt: skip
    """ggmlR's nn_gru_step: h' [N, U].

        [z r] = act_rec(x W_zh + h U_zh + b_zh)       n = act_cell(x W_n + (r * h) U_n + b_n)
        h' = h + z * (n - h): here z opens towards the candidate, elsewhere towards the old state

    x_t [N, I], h_t [N, U], W_zh [I, 2U], U_zh [U, 2U], b_zh [2U] (columns: z then r), W_n [I, U], U_n [U, U], b_n [U]:
    ggml's tensors with their dimensions as NumPy counts them. Activations: None or "linear", "relu", "sigmoid", "tanh",
    "silu", "gelu", "hardsigmoid", "hardswish", "softmax". ValueError for shapes, TypeError for mixed dtypes.
    Source: ggmlR's layer sources.
    """
    rows, inputs = _sizes_of("gru_step", x_t)
    shapes = {"h_t": (h_t, (rows, units)), "W_zh": (W_zh, (inputs, 2 * units)), "U_zh": (U_zh, (units, 2 * units)),
              "b_zh": (b_zh, (2 * units,)), "W_n": (W_n, (inputs, units)), "U_n": (U_n, (units, units)),
              "b_n": (b_n, (units,))}  # fmt: skip
    _check_step("gru_step", x_t, units, shapes)
    act, gate = (activation("linear" if a is None else a, "gru_step") for a in (act_cell, act_rec))
    raw = x_t @ W_zh + h_t @ U_zh + b_zh
    z, r = gate(raw[:, :units]), gate(raw[:, units:])
    n = act(x_t @ W_n + (r * h_t) @ U_n + b_n)
    return h_t + z * (n - h_t)


def lstm_step(x_t: Tensor, h_t: Tensor, c_t: Tensor, W_gates: Tensor, U_gates: Tensor, b_gates: Tensor, units: int,
              act_cell: Any = "tanh", act_rec: Any = "sigmoid") -> tuple[Tensor, Tensor]:  # fmt: skip
    """ggmlR's nn_lstm_step: (h', c'), each [N, U].

        [i f g o] = x W_gates + h U_gates + b_gates      i, f, o through act_rec, g through act_cell
        c' = f * c + i * g                               h' = o * act_cell(c')

    x_t [N, I], h_t and c_t [N, U], W_gates [I, 4U], U_gates [U, 4U], b_gates [4U]. Activations and errors: see gru_step.
    """
    rows, inputs = _sizes_of("lstm_step", x_t)
    state = rows, units
    shapes = {"h_t": (h_t, state), "c_t": (c_t, state), "W_gates": (W_gates, (inputs, 4 * units)),
              "U_gates": (U_gates, (units, 4 * units)), "b_gates": (b_gates, (4 * units,))}  # fmt: skip
    _check_step("lstm_step", x_t, units, shapes)
    act, gate = (activation("linear" if a is None else a, "lstm_step") for a in (act_cell, act_rec))
    i, f, g, o = (x_t @ W_gates + h_t @ U_gates + b_gates).chunk(4, 1)
    c = gate(f) * c_t + gate(i) * act(g)
    return gate(o) * act(c), c
