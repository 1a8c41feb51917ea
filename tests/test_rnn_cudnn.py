"""cudnn_rnn_backprop and the call that its reserve_space comes from; sizes, lengths and dtypes at the edges."""

import itertools

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises
from test_rnn import MODES, cudnn_inputs, drawn

import autograd as ag
from autograd import rnn


def backprop(inputs, lengths, outputs, attributes, **changed):
    seeds = [
        None if y.ndim == 0 else drawn(*y.shape, seed=9 + i, grad=False, device=y.device.type) for i, y in enumerate(outputs[:3])
    ]
    args = {"given": outputs[:3], "reserve": outputs[3], **changed}
    return seeds, rnn.cudnn_rnn_backprop(*inputs, lengths, *args["given"], *seeds, args["reserve"], **attributes)


@pytest.mark.parametrize(
    ("mode", "direction", "time_major"), [*itertools.product(MODES, ("unidirectional", "bidirectional"), (True, False))]
)
def test_backprop_is_the_tapes_gradient(mode, direction, time_major, device):
    inputs, attributes = cudnn_inputs(
        mode, 2, time_major=time_major, direction=direction, device=device, num_proj=1 if mode == "lstm" else 0
    )
    attributes |= {"time_major": time_major, "dropout": 0.5, "seed": 3}
    for lengths in (None, [0, 2]):
        outputs = rnn.cudnn_rnn(*inputs, lengths, **attributes)
        seeds, found = backprop(inputs, lengths, outputs, attributes)
        pairs = [(y, dy) for y, dy in zip(outputs, seeds) if dy is not None]
        wanted = iter(ag.grad(sum((y * dy).sum() for y, dy in pairs), [t for t in inputs if t is not None]))
        for t, got in zip(inputs, found):
            if t is None:
                assert got.shape == ()
            else:
                assert_close(got, array(next(wanted)), 1e-5 if device == "wgpu" else 1e-12)


def test_a_reserve_space_belongs_to_one_call(device):
    inputs, attributes = cudnn_inputs("lstm", 2, device=device)
    outputs = rnn.cudnn_rnn(*inputs, **attributes)
    text = "reserve_space is not that of the cudnn_rnn call with these inputs, attributes and outputs"
    for i in range(4):  # other values of one input
        other = [t * 1.5 if i == k else t for k, t in enumerate(inputs)]
        assert_raises(ValueError, text, lambda other=other: backprop(other, None, outputs, attributes))
        foreign = rnn.cudnn_rnn(*other, **attributes)
        assert_raises(ValueError, text, lambda foreign=foreign: backprop(inputs, None, outputs, attributes, reserve=foreign[3]))
    for i in range(3):
        other = [y + 1 if i == k else y for k, y in enumerate(outputs[:3])]
        assert_raises(ValueError, text, lambda other=other: backprop(inputs, None, outputs, attributes, given=other))
    assert_raises(ValueError, text, lambda: backprop(inputs, [3, 3], outputs, attributes))
    assert_raises(ValueError, text, lambda: backprop(inputs, None, outputs, attributes, reserve=outputs[3].clone()))
    _, found = backprop([t.detach().clone() for t in inputs], None, outputs, attributes)  # equal values are the same call
    assert_close(found[3], array(backprop(inputs, None, outputs, attributes)[1][3]), 1e-5 if device == "wgpu" else 1e-12)
    with ag.no_grad():
        inputs[3].mul_(2)
    assert_raises(ValueError, text, lambda: backprop(inputs, None, outputs, attributes))


@pytest.mark.parametrize("mode", MODES)
def test_no_rows_and_no_steps(mode, device):
    inputs, attributes = cudnn_inputs(mode, 2, batch=0, direction="bidirectional", device=device)
    for lengths in (None, [], np.zeros(0, np.int32)):
        outputs = rnn.cudnn_rnn(*inputs, lengths, **attributes)
        assert outputs[0].shape == (3, 0, 4)
        _, found = backprop(inputs, lengths, outputs, attributes)
        assert found[3].shape == inputs[3].shape and not array(found[3]).any()
    inputs, attributes = cudnn_inputs(mode, 1, steps=0, device=device)
    y, hn, *_ = rnn.cudnn_rnn(*inputs, **attributes)
    assert y.shape == (0, 2, 2) and (array(hn) == array(inputs[1])).all()


def test_lengths_of_any_whole_kind(device):
    inputs, attributes = cudnn_inputs("gru", device=device)
    want = array(rnn.cudnn_rnn(*inputs, [1, 3], **attributes)[0])
    for lengths in ((1, 3), np.array([1, 3], np.uint8), ag.tensor([1, 3]), ag.tensor(np.array([1, 3], np.int32), device=device)):
        assert (array(rnn.cudnn_rnn(*inputs, lengths, **attributes)[0]) == want).all()
    assert_raises(ValueError, "lengths must be 2 whole numbers", lambda: rnn.cudnn_rnn(*inputs, [1.0, 3.0], **attributes))


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16])
def test_dropout_keeps_short_types(dtype, device):
    inputs, attributes = cudnn_inputs("lstm", 2, device=device)
    inputs = [t.detach().to(dtype) for t in inputs]
    outputs = rnn.cudnn_rnn(*inputs, dropout=0.5, seed=1, **attributes)
    assert all(t.dtype is dtype for t in outputs[:3])
    grads = [t.ones_like() for t in outputs[:3]]
    found = rnn.cudnn_rnn_backprop(*inputs, None, *outputs[:3], *grads, outputs[3], dropout=0.5, seed=1, **attributes)
    assert all(t.dtype is dtype for t in found)


def test_kinds_that_are_refused():
    inputs, attributes = cudnn_inputs("lstm")
    run = lambda *given, **options: rnn.cudnn_rnn(*given, **attributes, **options)
    assert_raises(TypeError, "[cudnn_rnn] params must be a Tensor; got list", lambda: run(*inputs[:3], [1.0]))
    assert_raises(TypeError, "[cudnn_rnn] seed is a whole number; got 1.5", lambda: run(*inputs, seed=1.5))
    y, hn, cn, reserve = run(*inputs)
    grads = y.ones_like().to(ag.float16), hn.ones_like(), cn.ones_like()
    assert_raises(
        TypeError,
        "[cudnn_rnn_backprop] output_backprop must have output's dtype",
        lambda: rnn.cudnn_rnn_backprop(*inputs, None, y, hn, cn, *grads, reserve, **attributes),
    )
    weights, biases = rnn.cudnn_rnn_params_to_canonical(1, 2, 3, inputs[3])
    assert_raises(TypeError, "weights[0] must be a Tensor; got ndarray",
                  lambda: rnn.cudnn_rnn_canonical_to_params(1, 2, 3, [array(w) for w in weights], biases))  # fmt: skip
    whole = [ag.ones(t.shape, dtype=ag.int64) for t in inputs]
    text = "must be a Tensor of a floating dtype; got"
    assert_raises(TypeError, f"[cudnn_rnn] input {text} autograd.int64", lambda: rnn.cudnn_rnn(*whole, **attributes))
    assert_raises(
        TypeError,
        f"[cudnn_rnn] input_h {text} ndarray",
        lambda: rnn.cudnn_rnn(inputs[0], array(inputs[1]), *inputs[2:], **attributes),
    )
    assert_raises(
        TypeError,
        f"[gru_block_cell] x {text} autograd.int64",
        lambda: rnn.gru_block_cell(*(ag.ones(s, dtype=ag.int64) for s in ((2, 3), (2, 2), (5, 4), (5, 2), (4,), (2,)))),
    )
    assert_raises(
        TypeError,
        f"[gru_step] x_t {text} autograd.int64",
        lambda: rnn.gru_step(
            *(ag.ones(s, dtype=ag.int64) for s in ((2, 3), (2, 2), (3, 4), (2, 4), (4,), (3, 2), (2, 2), (2,))), 2
        ),
    )
    assert_raises(
        ValueError,
        "[gru_step] x_t must be [N, I]",
        lambda: rnn.gru_step(ag.ones(3), *(ag.ones(s) for s in ((2, 2), (3, 4), (2, 4), (4,), (3, 2), (2, 2), (2,))), 2),
    )
    for size in (3.5, True):
        assert_raises(TypeError, "input_size is a whole number", lambda size=size: rnn.cudnn_rnn_params_size(1, 2, size))


def test_steps_want_one_device(wgpu):
    shapes = [(2, 3), (2, 2), (5, 4), (5, 2), (4,), (2,)]
    steps = [(2, 3), (2, 2), (3, 4), (2, 4), (4,), (3, 2), (2, 2), (2,)]
    place = lambda shapes, there: [ag.ones(s, device="wgpu" if i == there else "cpu") for i, s in enumerate(shapes)]
    text = "all tensors must be on one device; got"
    calls = {
        f"[gru_block_cell] {text} x on cpu and b_c on wgpu": lambda: rnn.gru_block_cell(*place(shapes, 5)),
        f"[gru_block_cell_grad] {text} x on cpu and b_c on wgpu": lambda: rnn.gru_block_cell_grad(
            *place(shapes + [(2, 2)] * 4, 5)
        ),
        f"[gru_step] {text} x_t on cpu and b_n on wgpu": lambda: rnn.gru_step(*place(steps, 7), 2),
    }
    for words, call in calls.items():
        assert_raises(RuntimeError, words, call)
    assert_raises(TypeError, "[gru_step] units is a whole number; got 2.0", lambda: rnn.gru_step(*place(steps, None), 2.0))
