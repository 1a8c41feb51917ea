"""Recurrent layers on NumPy: blocks of steps, and every way in which a block's products are computed."""

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
