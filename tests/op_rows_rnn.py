"""Rows for the recurrent ops, in the form of tests/op_cases.py; tests/op_table.py takes them in."""

import numpy as np
from op_cases import Case, Row, sigmoid

import autograd as ag
from autograd.op import REGISTRY, apply

GATES = {"gru": 3, "gru_before": 3, "lstm": 4, "rnn": 1}


def linear(x, w, b):
    return np.einsum("bi,ki->bk", x, w) + b


def gru_step(x, h, w, u, b, v, before):
    """h' and the gates r, z, n, of one step in NumPy's words."""
    n = h.shape[1]
    g, q = linear(x, w, b), linear(h, u, v)
    r, z = sigmoid(g[:, :n] + q[:, :n]), sigmoid(g[:, n : 2 * n] + q[:, n : 2 * n])
    inside = linear(r * h, u[2 * n :], v[2 * n :]) if before else r * q[:, 2 * n :]
    new = np.tanh(g[:, 2 * n :] + inside)
    return (1 - z) * new + z * h, (r, z, q[:, 2 * n :], new)


def lstm_step(x, h, c, w, u, b, v, projection=None):
    i, f, g, o = np.split(linear(x, w, b) + linear(h, u, v), 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h if projection is None else np.einsum("bh,ph->bp", h, projection)), c


def sequence(cell, relu=False, reverse=False, mask=None):
    """The reference of a whole sequence: y and hn (and cn), flat."""

    def reference(x, h, w, u, b=0.0, v=0.0, c=None, projection=None):
        n = u.shape[0] // GATES[cell]
        b, v = (np.zeros(len(u)) + a for a in (b, v))
        y = np.zeros((len(x), *h.shape))
        for t in range(len(x))[:: -1 if reverse else 1]:
            if cell == "lstm":
                new, new_c = lstm_step(x[t], h, c, w, u, b, v, projection)
            elif cell == "rnn":
                total = linear(x[t], w, b) + linear(h, u, v)
                new, new_c = (total * (total > 0) if relu else np.tanh(total)), np.zeros((len(h), n))
            else:
                new, new_c = gru_step(x[t], h, w, u, b, v, cell == "gru_before")[0], np.zeros((len(h), n))
            live = np.ones(len(h), bool) if mask is None else mask[t]
            h = np.where(live[:, None], new, h)
            c = new_c if c is None else np.where(live[:, None], new_c, c)
            y[t] = h
        return np.concatenate([y.ravel(), h.ravel(), *([c.ravel()] if cell == "lstm" else [])])

    return reference


def called(name, **attrs):
    """The op on some of its eight inputs, the others None: its outputs that are not internal, flat."""

    def call(*inputs):
        attributes = {"mask": None, "reverse": False, **attrs}
        if name != "rnn_segment":
            attributes["save"] = True
        outputs = apply(REGISTRY[name], *inputs, *[None] * (8 - len(inputs)), **attributes)
        return ag.cat([y.flatten() for y in outputs[: 3 if name == "lstm" or attrs.get("cell") == "lstm" else 2]])

    return call


def kept(saved, c0=None):
    """saved [parts, T, B, H] as its device keeps it: on the CPU [T, parts, H, B], the LSTM's i, f, o, g, c, tanh(c') and
    one step more."""
    if saved.device.type != "cpu":
        return saved
    if c0 is not None:
        i, f, g, o, c, squashed = saved
        saved = ag.stack([i, f, o, g, ag.cat([c0.unsqueeze(0), c])[:-1], squashed], 0)
        saved = ag.cat([saved, saved[:, :1]], 1)
    return saved.permute(1, 0, 3, 2).contiguous()


def gradients_of(name):
    """Inputs dy, dhn, x, h0, w, u, y, saved [parts, T, B, H] in (0.1, 0.9) -> dx, dh0, dw, du, db, flat."""

    def call(dy, dhn, x, h0, w, u, y, *saved):
        needs = (True,) * 6 + (False,) * 2
        found = apply(REGISTRY[name], dy, dhn, None, x, h0, w, u, None, None, y, *(map(kept, saved) if saved else (None,)), needs=needs, mask=None, reverse=False)
        return ag.cat([g.flatten() for g in found[:6]])

    def reference(dy, dhn, x, h0, w, u, y, *saved):
        n, dh = h0.shape[1], dhn.copy()
        dx, dw, du, db, dv = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u), 0, 0
        for t in range(len(y) - 1, -1, -1):
            h = y[t - 1] if t else h0
            dh = dh + dy[t]
            inner, outer, dh, met = DERIVED[name](dh, h, y[t], u, n, *(s[:, t] for s in saved))
            dx[t] = np.einsum("bk,ki->bi", inner, w)
            dw += np.einsum("bk,bi->ki", inner, x[t])
            du += np.concatenate([np.einsum("bk,bi->ki", part, m) for part, m in zip(np.split(outer, len(u) // n, 1), met)])
            db, dv = db + inner.sum(0), dv + outer.sum(0)
        return np.concatenate([np.ravel(part) for part in (dx, dh, dw, du, db, dv)])

    return call, reference


def gru_derived(dh, h, y, u, n, saved):
    r, z, q, new = saved
    dn = dh * (1 - z) * (1 - new**2)
    dr, dz = dn * q * r * (1 - r), dh * (h - new) * z * (1 - z)
    outer = np.concatenate([dr, dz, dn * r], 1)
    return np.concatenate([dr, dz, dn], 1), outer, dh * z + np.einsum("bk,kh->bh", outer, u), (h, h, h)


def gru_before_derived(dh, h, y, u, n, saved):
    r, z, new = saved
    dn, dz = dh * (1 - z) * (1 - new**2), dh * (h - new) * z * (1 - z)
    reset = np.einsum("bk,kh->bh", dn, u[2 * n :])
    dr = reset * h * r * (1 - r)
    both = np.concatenate([dr, dz], 1)
    outer = np.concatenate([both, dn], 1)
    return outer, outer, dh * z + reset * r + np.einsum("bk,kh->bh", both, u[: 2 * n]), (h, h, r * h)


def rnn_derived(dh, h, y, u, n):
    d = dh * (1 - y**2)
    return d, d, np.einsum("bk,kh->bh", d, u), (h,)


DERIVED = {"gru_backward": gru_derived, "gru_before_backward": gru_before_derived, "rnn_backward": rnn_derived}


def lstm_gradients(dy, dcn, x, h0, w, u, c0, y, saved):
    needs = (True,) * 7 + (False,)
    found = apply(REGISTRY["lstm_backward"], dy, None, dcn, x, h0, w, u, c0, None, y, kept(saved, c0), needs=needs, mask=None, reverse=False)
    return ag.cat([g.flatten() for g in found[:7]])


def lstm_reference(dy, dcn, x, h0, w, u, c0, y, saved):
    dh, dc, dx, dw, du, db = np.zeros_like(h0), dcn, np.zeros_like(x), np.zeros_like(w), np.zeros_like(u), 0
    for t in range(len(y) - 1, -1, -1):
        (i, f, g, o, _, squashed), h, c = saved[:, t], y[t - 1] if t else h0, saved[4, t - 1] if t else c0
        dh = dh + dy[t]
        dc = dc + dh * o * (1 - squashed**2)
        d = np.concatenate([dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g**2), dh * squashed * o * (1 - o)], 1)
        dx[t], db = np.einsum("bk,ki->bi", d, w), db + d.sum(0)
        dw += np.einsum("bk,bi->ki", d, x[t])
        du += np.einsum("bk,bi->ki", d, h)
        dc, dh = dc * f, np.einsum("bk,kh->bh", d, u)
    return np.concatenate([np.ravel(part) for part in (dx, dh, dw, du, db, db, dc)])


def shapes(gates, steps, batch, inputs, units, biases=True, lstm=False, projected=0):
    """Of x, h0, w_ih, w_hh and, where asked for, of the biases, c0 and w_hr."""
    rows, width = gates * units, projected or units
    found = [(steps, batch, inputs), (batch, width), (rows, inputs), (rows, width)]
    found += [(rows,), (rows,)] if biases else []
    found += [(batch, units)] if lstm else []
    return tuple(found + ([(width, units)] if projected else []))


MASK = np.array([[True, False], [True, True], [False, True]])


def forward_row(cell, **attrs):
    g = GATES[cell]
    lstm = cell == "lstm"
    plain = (shapes(g, 3, 2, 2, 3, lstm=lstm), shapes(g, 1, 1, 1, 1, lstm=lstm))
    cases = [Case(called(cell, **attrs), sequence(cell, **attrs), plain)]
    for options in ({"reverse": True}, {"mask": MASK}, {"mask": MASK, "reverse": True}):
        cases.append(Case(called(cell, **attrs, **options), sequence(cell, **attrs, **options), plain[:1]))
    if lstm:
        cases.append(Case(called(cell), sequence(cell), (shapes(g, 3, 2, 2, 3, lstm=True, projected=2),)))
    else:
        cases.append(Case(called(cell, **attrs), sequence(cell, **attrs), (shapes(g, 2, 3, 2, 2, biases=False),)))
    return Row(tuple(cases))


def backward_row(name, parts):
    g = GATES[name.removesuffix("_backward")]
    call, reference = gradients_of(name)
    every = []
    for steps, batch, inputs, units in ((4, 2, 2, 3), (1, 1, 1, 2)):
        state = (steps, batch, units)
        x, h0, w, u = shapes(g, steps, batch, inputs, units, biases=False)
        every.append((state, h0, x, h0, w, u, state, *([(parts, *state)] if parts else [])))
    return Row((Case(call, reference, tuple(every), ((-1.0, 1.0),) * 7 + ((0.1, 0.9),)),), gradient=False)


def lstm_backward_row():
    every = []
    for steps, batch, inputs, units in ((4, 2, 2, 3), (1, 1, 1, 2)):
        state, h0 = (steps, batch, units), (batch, units)
        x, _, w, u = shapes(4, steps, batch, inputs, units, biases=False)
        every.append((state, h0, x, h0, w, u, h0, state, (6, *state)))
    return Row((Case(lstm_gradients, lstm_reference, tuple(every), ((-1.0, 1.0),) * 8 + ((0.1, 0.9),)),), gradient=False)


def segments():
    """One case a cell."""
    cases = []
    for cell in GATES:
        given = shapes(GATES[cell], 3, 2, 2, 3, lstm=cell == "lstm")
        cases.append(Case(called("rnn_segment", cell=cell), sequence(cell), (given,)))
    return Row(tuple(cases))


def block_cell(x, h, w_ru, w_c, b_ru, b_c):
    """TensorFlow's block cell: r, u, c, h, side by side."""
    both = sigmoid(np.einsum("bi,ij->bj", np.concatenate([x, h], 1), w_ru) + b_ru)
    r, u = np.split(both, 2, 1)
    c = np.tanh(np.einsum("bi,ij->bj", np.concatenate([x, r * h], 1), w_c) + b_c)
    return np.concatenate([r, u, c, u * h + (1 - u) * c], 1)


ROWS = {
    "gru_block_cell": Row(
        (
            Case(
                lambda *x: ag.cat(ag.rnn.gru_block_cell(*x), 1), block_cell,
                (((2, 3), (2, 2), (5, 4), (5, 2), (4,), (2,)), ((1, 1), (1, 1), (2, 2), (2, 1), (2,), (1,))),
            ),
        ),
    ),
    "gru": forward_row("gru"),
    "gru_backward": backward_row("gru_backward", 4),
    "gru_before": forward_row("gru_before"),
    "gru_before_backward": backward_row("gru_before_backward", 3),
    "lstm": forward_row("lstm"),
    "lstm_backward": lstm_backward_row(),
    "rnn": forward_row("rnn"),
    "rnn_backward": backward_row("rnn_backward", 0),
    "rnn_segment": segments(),
}
