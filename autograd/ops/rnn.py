"""The gated recurrent unit over a whole sequence: fused forward and backward, and a composite twin.

The formula is cuDNN's and PyTorch's (Cho et al. 2014 with the reset gate applied after the product), gates in the
order r, z, n:

    r = sigmoid(g_r + h R_r^T + b_r)        g = x W^T + b_W, one product for all steps
    z = sigmoid(g_z + h R_z^T + b_z)
    n = tanh(g_n + r * (h R_n^T + b_n))
    h' = n + z * (h - n)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Op, apply, register
from ..tape import Node, grad
from ..tensor import Tensor
from ..webgpu import rnn as kernels
from .matmul import linear
from .views import flip, stack


def _wide(arrays: tuple) -> tuple:
    """float16 operands as float32: NumPy has no fast float16 product."""
    return tuple(a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in arrays)


def _forward(g: np.ndarray, h0: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(y, gates): the states of all steps, and what backward needs: r, z, n and q = h R_n^T + b_n."""
    dtype = g.dtype
    g, h0, w, b = _wide((g, h0, w, b))
    steps, batch, units = len(g), *h0.shape
    y = np.empty((steps, batch, units), g.dtype)
    gates = np.empty((4, steps, batch, units), g.dtype)
    product = np.empty((batch, 3 * units), g.dtype)
    turned, h = w.T, h0
    for t in range(steps):
        r, z, n, q = gates[:, t]
        np.matmul(h, turned, out=product)
        if b is not None:
            product += b
        q[...] = product[:, 2 * units :]
        product[:, : 2 * units] += g[t, :, : 2 * units]
        _sigmoid_into(product[:, :units], r)
        _sigmoid_into(product[:, units : 2 * units], z)
        np.multiply(r, q, out=n)
        n += g[t, :, 2 * units :]
        np.tanh(n, out=n)
        np.subtract(h, n, out=y[t])
        y[t] *= z
        y[t] += n
        h = y[t]
    return y.astype(dtype, copy=False), gates.astype(dtype, copy=False)


def _sigmoid_into(x: np.ndarray, y: np.ndarray) -> None:
    np.multiply(x, 0.5, out=y)
    np.tanh(y, out=y)
    y *= 0.5
    y += 0.5


def _backward(dy: np.ndarray, y: np.ndarray, gates: np.ndarray, h0: np.ndarray, w: np.ndarray) -> tuple:
    """(dg, du, dh0): gradients of the input products, of the recurrent products, and of the first state."""
    dtype = dy.dtype
    dy, y, gates, h0, w = _wide((dy, y, gates, h0, w))
    steps, batch, units = y.shape
    dg = np.empty((steps, batch, 3 * units), y.dtype)
    du = np.empty((steps, batch, 3 * units), y.dtype)
    dh = np.zeros((batch, units), y.dtype)
    for t in reversed(range(steps)):
        r, z, n, q = gates[:, t]
        previous = y[t - 1] if t else h0
        dh = dh + dy[t]
        dr, dz, dn = (dg[t, :, k * units : (k + 1) * units] for k in range(3))
        np.multiply(dh * (1 - z), 1 - n * n, out=dn)
        np.multiply(dh * (previous - n), z * (1 - z), out=dz)
        np.multiply(dn * q, r * (1 - r), out=dr)
        du[t, :, : 2 * units] = dg[t, :, : 2 * units]
        np.multiply(dn, r, out=du[t, :, 2 * units :])
        dh *= z
        dh += du[t] @ w
    return tuple(a.astype(dtype, copy=False) for a in (dg, du, dh))


@register
class GruBackward(Op):
    """dn' = dh (1-z) (1-n^2); dz' = dh (h-n) z (1-z); dr' = dn' q r (1-r); dh = dh z + (dr', dz', dn' r) R
    no gradient: create_graph goes through the composite
    """

    numpy = staticmethod(_backward)
    wgpu = kernels.GruBackward()
    outputs = 3
    differentiable = False


@register
class Gru(Op):
    """h' = n + z (h - n), r, z = sigmoid(g + h R^T + b), n = tanh(g + r (h R^T + b)), for all steps
    dg, dh0, dR, db: see gru_backward; dR = du^T h, one product over all steps
    """

    numpy = staticmethod(_forward)
    wgpu = kernels.Gru()
    saves = ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dy: Tensor, dgates: None) -> tuple:
        inputs = ctx.saved_inputs()
        # Aliases: the gradient is to stop at this op's inputs, not to run on into what they were made of.
        aliases = [None if x is None else x.reshape(*x.shape) for x in inputs]
        y = gru_composite(*aliases)  # type: ignore[arg-type]
        wanted = [a for a, edge in zip(aliases, ctx.edges, strict=True) if edge is not None]
        found = iter(grad(y, wanted, dy, create_graph=True))
        return tuple(None if edge is None else next(found) for edge in ctx.edges)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor, dgates: None) -> tuple:
        (_, h0, w, _), (y, gates) = ctx.saved_inputs(), ctx.saved_outputs()
        dg, du, dh0 = apply(GruBackward, dy, y, gates, h0, w)
        units = h0.shape[1]
        dw = db = None
        if ctx.needs(2):
            dw = du[0].mT @ h0
            if len(y) > 1:
                dw = dw + du[1:].reshape(-1, 3 * units).mT @ y[:-1].reshape(-1, units)
        if ctx.needs(3):
            db = du.sum((0, 1))
        return dg, dh0, dw, db


def gru_composite(g: Tensor, h0: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Tensor:
    """The op `gru` step by step in Tensor operations: its twin in tests, and what create_graph differentiates."""
    h, states = h0, []
    for step in g.unbind(0):
        u = linear(h, w_hh, b_hh)
        (gr, gz, gn), (ur, uz, un) = step.chunk(3, -1), u.chunk(3, -1)
        r, z = (gr + ur).sigmoid(), (gz + uz).sigmoid()
        n = (gn + r * un).tanh()
        h = n + z * (h - n)
        states.append(h)
    return stack(states)


def gru(x: Tensor, h0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
        reverse: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One GRU layer in one direction: x [T, B, I], h0 [B, H] -> (y [T, B, H], last state [B, H]).

    w_ih [3H, I], w_hh [3H, H], b_ih and b_hh [3H] or None; gates in the order r, z, n. The formula is this module's.
    reverse runs from the last step to the first; y stays in x's order. No steps: y is empty and the state is h0.
    """
    _check(x, h0, w_ih, w_hh, b_ih, b_hh)
    if not len(x):
        return x.new_zeros(0, *h0.shape), h0
    g = linear(flip(x, 0) if reverse else x, w_ih, b_ih)
    y = sequence(g, h0, w_hh, b_hh)
    last = y[-1]
    return (flip(y, 0) if reverse else y), last


def sequence(g: Tensor, h0: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Tensor:
    """The recurrent part: fused where a kernel holds the state of a step, else step by step."""
    on_gpu = g.device.type != "cpu"
    if on_gpu and h0.shape[1] > kernels.MAX_UNITS:
        return gru_composite(g, h0, w_hh, b_hh)
    return apply(Gru, g, h0, w_hh, b_hh)[0]


def gru_cell(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
             b_hh: Tensor | None = None) -> Tensor:  # fmt: skip
    """One step: x [B, I], h [B, H] -> h' [B, H]. See gru."""
    return gru(x.unsqueeze(0), h, w_ih, w_hh, b_ih, b_hh)[1]


def _check(x: Tensor, h0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> None:
    """Every shape rule, with the name and both sizes."""
    if x.ndim != 3 or h0.ndim != 2:
        raise ValueError(f"[gru] x must be [T, B, I] and h0 [B, H]; got {x.shape} and {h0.shape}")
    (_, batch, inputs), units = x.shape, h0.shape[1]
    wanted = {
        "h0": (h0, (batch, units)),
        "w_ih": (w_ih, (3 * units, inputs)),
        "w_hh": (w_hh, (3 * units, units)),
        "b_ih": (b_ih, (3 * units,)),
        "b_hh": (b_hh, (3 * units,)),
    }
    for name, (t, shape) in wanted.items():
        if t is not None and t.shape != shape:
            raise ValueError(f"[gru] {name} must have shape {shape} for x {x.shape} and h0 {h0.shape}; got {t.shape}")
        if t is not None and t.dtype is not x.dtype:
            raise TypeError(f"[gru] {name} must have x's dtype {x.dtype}; got {t.dtype}")
