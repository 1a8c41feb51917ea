"""Recurrent layers on NumPy: blocks of steps, and every way in which a block's products are computed."""

import itertools

import numpy as np
import pytest
from helpers import array, assert_close

import autograd as ag
from autograd import blocks
from autograd.ops import rnn as core
from autograd.ops import rnn_numpy
from autograd.ops.rnn_composite import composite

KINDS = {"gru": ("gru", {}), "gru_before": ("gru_before", {}), "lstm": ("lstm", {}), "projected": ("lstm", {"project": 2}),
         "tanh": ("rnn", {}), "relu": ("rnn", {"activation": "relu"})}  # fmt: skip


def drawn(*shape, seed):
    values = np.random.default_rng([seed, *shape]).uniform(-0.9, 0.9, shape)
    return ag.tensor(values, requires_grad=True)


def layer_inputs(cell, batch, steps, units=3, project=None, skip=False, bias=True):
    rows, width, inputs = core.GATES[cell] * units, project or units, units if skip else 2
    shapes = [(steps, batch, inputs), (batch, width), None if skip else (rows, inputs), (rows, width)]
    shapes += [(rows,), (rows,)] if bias else [None, None]
    shapes += [(batch, units) if cell == "lstm" else None, (project, units) if project else None]
    return [None if shape is None else drawn(*shape, seed=i) for i, shape in enumerate(shapes)]


def gradients(outputs, inputs):
    total = sum((k + 1) * (y * y).sum() for k, y in enumerate(outputs) if y is not None)
    return ag.grad(total, [x for x in inputs if x is not None])


@pytest.mark.parametrize("few", [False, True], ids=["many", "few"])
@pytest.mark.parametrize("batch", [1, 3, 17])
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"skip": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_any_layout_are_the_composite(kind, options, batch, few, monkeypatch):
    """Eight steps are three blocks, the last of them shorter; the last rows are ragged where the layer runs backwards."""
    for name, value in {"BLOCK": 1, "STEPS": 3, "CALLS": -(1 << 20) if few else 0, "LONG": 1 << 20 if few else 0}.items():
        monkeypatch.setattr(rnn_numpy, name, value)
    monkeypatch.setattr(blocks, "ALIGNED", 0)
    (cell, extra), reverse = KINDS[kind], options.get("reverse", False)
    inputs = layer_inputs(cell, batch, 8, project=extra.get("project"), **{k: v for k, v in options.items() if k != "reverse"})
    lengths = np.arange(batch) % 9 if reverse else None
    act = extra.get("activation", "tanh")
    got = core.layer(cell, *inputs, lengths=lengths, padding="hold", reverse=reverse, activation=act)
    mask = None if lengths is None else np.arange(8)[:, None] < lengths
    want = composite(cell, *inputs, mask=mask, reverse=reverse, act=getattr(ag.Tensor, act))
    for y, expected in zip((*got, *gradients(got, inputs)), (*want, *gradients(want, inputs)), strict=True):
        assert (y is None) == (expected is None)
        if y is not None:
            assert_close(y, array(expected), 1e-12)


@pytest.mark.parametrize("batch", [1, 16])
def test_a_closing_gate_keeps_its_relative_accuracy(batch):
    """c' = sigmoid(-60) c = 8.7565e-27 c, while sigmoid(-200) is 0 in float32: exp(200) is infinity, which warns nobody."""
    bias = np.repeat(np.float32([-200, -60, 0, 0]), 4)
    zeros = [ag.zeros(*shape) for shape in ((1, batch, 2), (batch, 4), (16, 2), (16, 4))]
    c = core.layer("lstm", *zeros, ag.tensor(bias), None, ag.ones(batch, 4))[2]
    np.testing.assert_allclose(c.numpy(), 8.7565107627e-27, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_is_the_same_whichever_others_are_asked_for(kind):
    cell, extra = KINDS[kind]
    inputs = layer_inputs(cell, 2, 5, project=extra.get("project"))
    run = lambda inputs: core.layer(cell, *inputs, lengths=[3, 5], activation=extra.get("activation", "tanh"))
    places = [i for i, x in enumerate(inputs) if x is not None]
    want = dict(zip(places, gradients(run(inputs), inputs), strict=True))
    for wanted in [[i] for i in places] + [[i for i in places if i != k] for k in places]:
        some = [x if x is None or i in wanted else x.detach() for i, x in enumerate(inputs)]
        got = gradients(run(some), [some[i] for i in wanted])
        for i, g in zip(wanted, got, strict=True):
            assert_close(g, array(want[i]), 1e-14, f"input {i} with {wanted}")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_results_own_their_memory_and_lie_in_order(kind, batch):
    cell, extra = KINDS[kind]
    inputs = layer_inputs(cell, batch, 5, project=extra.get("project"))
    outputs = ag.op.apply(core.FORWARD[cell], *inputs, mask=None, reverse=False, save=True)
    arrays = [y.array for y in (*outputs, *gradients(outputs[:2], inputs[:2]), *core.layer(cell, *inputs)[:2])]
    assert all(a.flags.c_contiguous for a in arrays)
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_what_one_row_holds_reaches_no_other(kind, bad):
    """Neither the states nor the gradients of rows 0 and 2; the weights' gradients are sums over rows."""
    cell, extra = KINDS[kind]
    inputs = layer_inputs(cell, 3, 5, project=extra.get("project"))
    found = []
    for value in 0.5, bad:
        with ag.no_grad():
            inputs[0][2, 1] = value
        y, hn, cn = core.layer(cell, *inputs, activation=extra.get("activation", "tanh"))
        dx, dh0 = ag.grad((y * y).sum() + hn.sum(), inputs[:2])
        found.append([array(t)[:, [0, 2]] for t in (y, dx)] + [array(t)[[0, 2]] for t in (hn, dh0, cn) if t is not None])
    for got, want in zip(*found, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("batch, width, skip", [(0, 2, False), (0, 2, True), (3, 0, False)], ids=["no rows", "no rows, skip", "no inputs"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_and_no_inputs(kind, batch, width, skip, device):
    cell, extra = KINDS[kind]
    inputs = layer_inputs(cell, batch, 4, project=extra.get("project"), skip=skip)
    if not width:
        inputs[0], inputs[2] = inputs[0][..., :0], inputs[2][:, :0]
    inputs = [None if x is None else ag.tensor(array(x).astype("f"), device=device, requires_grad=True) for x in inputs]
    act = extra.get("activation", "tanh")
    got, want = core.layer(cell, *inputs, activation=act), composite(cell, *inputs, act=getattr(ag.Tensor, act))
    for y, expected in zip((*got, *gradients(got, inputs)), (*want, *gradients(want, inputs)), strict=True):
        if y is not None:
            assert_close(y, expected, 1e-5)


@pytest.mark.parametrize("create", [False, True])
def test_what_the_last_cell_state_does_not_depend_on_has_a_gradient_of_zeros(create, device):
    inputs = [x.detach().float().to(device).requires_grad_() for x in layer_inputs("lstm", 2, 1, project=2)]
    cn = core.layer("lstm", *inputs)[2]
    assert not array(ag.grad(cn.sum(), inputs, create_graph=create)[-1]).any()


def test_half_precision_is_computed_in_float32():
    """Each of 64 steps adds a quarter of float16's last place: rounded to float16 after each, the state would stand still."""
    one = lambda *shape: ag.ones(*shape, dtype=ag.float16)
    x, bias = one(64, 3, 1) * 0, one(1) * 2**-12
    hn = core.layer("rnn", x, one(3, 1), one(1, 1), one(1, 1), bias, activation="relu")[1]
    assert hn.dtype is ag.float16
    assert_close(hn, one(3, 1) * (1 + 2**-6), 0)
