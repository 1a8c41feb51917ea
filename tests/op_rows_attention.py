"""Rows for attention, in the form of tests/op_cases.py; tests/op_table.py takes them in."""

import math

import numpy as np
from op_cases import Case, Row, on

import autograd as ag
from autograd.op import REGISTRY, apply

SHAPES = (((2, 3, 4), (2, 5, 4), (2, 5, 3)), ((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 5)), ((1, 1), (1, 1), (1, 1)))
SEEN = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])
ADDED = np.where(SEEN, np.arange(15.0).reshape(3, 5) / 8 - 1, -np.inf).astype(np.float32)


def weights(q, k, scale, mask, causal):
    """The weights of every row, in Python numbers; zeros for a row that sees nothing."""
    s = np.einsum("...le,...se->...ls", q, k) * scale + mask
    w = np.zeros(s.shape)
    for at in np.ndindex(s.shape[:-1]):
        row = [v for j, v in enumerate(s[at].tolist()) if not causal or j <= at[-1]]
        row = [math.exp(v - max(row)) if v > -math.inf else 0.0 for v in row]
        w[at][: len(row)] = [v / (math.fsum(row) or 1) for v in row]
    return w


def attention(q, k, v, scale=0.5, mask=0.0, causal=False):
    return np.einsum("...ls,...sv->...lv", weights(q, k, scale, mask, causal), v)


def attention_backward(q, k, v, dy, scale=0.5, mask=0.0, causal=False):
    p = weights(q, k, scale, mask, causal)
    dp = np.einsum("...lv,...sv->...ls", dy, v)
    ds = p * (dp - np.einsum("...ls,...ls->...l", dp, p)[..., None]) * scale
    parts = np.einsum("...ls,...se->...le", ds, k), np.einsum("...ls,...le->...se", ds, q), np.einsum("...ls,...lv->...sv", p, dy)
    return np.concatenate([g.reshape(-1) for g in parts])


def call(name="attention", mask=None, causal=False, p=0.0):
    options = {"scale": 0.5, "causal": causal, "p": p, "seed": 7}

    def forward(q, k, v, *dy):
        m = None if mask is None else on(q, mask) if mask.dtype == bool else on(q, mask).to(q.dtype)
        y, lse = apply(REGISTRY["attention"], q, k, v, m, **options)
        if name == "attention":
            return y
        grads = apply(REGISTRY[name], *dy, q, k, v, m, y, lse, **options)
        return ag.cat([g.reshape(-1) for g in grads])

    return forward


ROWS = {
    "attention": Row(
        (
            Case(call(), attention, SHAPES),
            Case(call(causal=True), lambda *x: attention(*x, causal=True), SHAPES),
            Case(call(mask=SEEN), lambda *x: attention(*x, mask=np.where(SEEN, 0, -np.inf)), SHAPES[:1]),
            Case(call(mask=ADDED, causal=True), lambda *x: attention(*x, mask=ADDED, causal=True), SHAPES[:1]),
            Case(call(p=1.0), lambda q, k, v: np.zeros((*q.shape[:-1], v.shape[-1])), SHAPES[:1]),
        ),
        tolerance={"cpu": 1e-5, "wgpu": 1e-5},
    ),
    "attention_backward": Row(
        (
            Case(call("attention_backward"), attention_backward, (((2, 3, 4), (2, 5, 4), (2, 5, 3), (2, 3, 3)),)),
            Case(call("attention_backward", SEEN, True), lambda *x: attention_backward(*x, mask=np.where(SEEN, 0, -np.inf), causal=True), (((2, 3, 4), (2, 5, 4), (2, 5, 3), (2, 3, 3)),)),
        ),
        gradient=False, dtypes=("float32", "float64"), tolerance={"cpu": 1e-5, "wgpu": 1e-5},
    ),
}
