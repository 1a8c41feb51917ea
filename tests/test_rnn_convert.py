"""rnn.convert, load_torch and load_keras: every pair of systems by the layouts' own formulas, and weights that are refused."""

import itertools

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises
from test_rnn import drawn, keras_weights, same

import autograd as ag
from autograd import nn, rnn
from autograd.keras import layers

INPUTS, UNITS = 2, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gates_of(name, weights):
    """(input products, recurrent products or matrices, u opens towards the old state) of a GRU, written out for each layout."""
    w = list(weights.values()) if isinstance(weights, dict) else weights
    u = UNITS
    if name == "tf_block":
        w_ru, w_c, b_ru, b_c = w
        k, r = np.hstack([w_ru[:INPUTS], w_c[:INPUTS]]), np.hstack([w_ru[INPUTS:], w_c[INPUTS:]])
        return k, r, np.hstack([b_ru, b_c]), None, (0, 1), False
    if name == "bigdl":
        weight, bias, h2g, u_h = w
        return weight.T, np.hstack([h2g.T, u_h.T]), bias, None, (0, 1), False
    if name == "ggml":
        w_zh, u_zh, b_zh, w_n, u_n, b_n = w
        return np.hstack([w_zh, w_n]), np.hstack([u_zh, u_n]), np.hstack([b_zh, b_n]), None, (1, 0), True
    if name == "before":
        return w[0], w[1], w[2], None, (1, 0), False
    if name == "after":
        return w[0], w[1], w[2][0], w[2][1], (1, 0), False
    if name == "torch":
        return w[0].T, w[1].T, w[2], w[3], (0, 1), False
    if name == "cudnn":
        parts = np.split(w[0], np.cumsum([3 * u * INPUTS, 3 * u * u, 3 * u]))
        return parts[0].reshape(3 * u, INPUTS).T, parts[1].reshape(3 * u, u).T, parts[2], parts[3], (0, 1), False
    k = np.hstack([block.reshape(u, INPUTS, order="C").T for block in (np.ascontiguousarray(b) for b in np.split(w[0], 3, 1))])
    return k, np.hstack([b.T for b in np.split(w[1], 3, 1)]), w[2][: 3 * u], w[2][3 * u :], (1, 0), False


def step(name, weights, x, h):
    k, r, b, c, (at_r, at_z), open_to_new = gates_of(name, weights)
    cut = lambda a, i: a[..., i * UNITS : (i + 1) * UNITS]
    g = x @ k + b
    after = c is not None
    q = h @ r + (c if after else 0)
    reset, z = sigmoid(cut(g, at_r) + cut(q, at_r)), sigmoid(cut(g, at_z) + cut(q, at_z))
    n = np.tanh(cut(g, 2) + (reset * cut(q, 2) if after else (reset * h) @ cut(r, 2)))
    return h + z * (n - h) if open_to_new else (1 - z) * n + z * h


BEFORE, AFTER = ("before", "tf_block", "bigdl", "ggml"), ("after", "torch", "cudnn", "cudnn_gru")


def converted(weights, source, target):
    system = lambda name: "keras" if name in ("before", "after") else name
    options = {"reset_after": target == "after"} if target in ("before", "after") else {}
    return rnn.convert(weights, source=system(source), target=system(target), **options)


@pytest.mark.parametrize("diagonal", [False, True])
def test_every_pair_is_the_same_function_or_refused(diagonal):
    x, h = (np.random.default_rng(0).normal(size=s) for s in ((2, INPUTS), (2, UNITS)))
    for start, names in (("before", BEFORE), ("after", AFTER)):
        weights = keras_weights(after=start == "after", units=UNITS, inputs=INPUTS)
        if diagonal:
            weights[1][:, 2 * UNITS :] = np.diag([0.5, -1.0, 2.0])
            if start == "after":
                weights[2][1, 2 * UNITS :] = 0
        for source, target in itertools.product(names, BEFORE + AFTER):
            held = converted(weights, start, source)
            if target in names or diagonal:
                found = converted(held, source, target)
                assert np.abs(step(source, held, x, h) - step(target, found, x, h)).max() < 1e-14, (source, target)
                again = converted(converted(found, target, source), source, target)
                assert same(again, found), (source, target)
            else:
                with pytest.raises(ValueError, match="no exact"):
                    converted(held, source, target)


def test_ggmls_arrays_come_in_the_order_of_its_step():
    ggml = rnn.convert(keras_weights(), source="keras", target="ggml")
    assert list(ggml) == ["W_zh", "U_zh", "b_zh", "W_n", "U_n", "b_n"]
    assert rnn.gru_step(drawn(2, 2), drawn(2, 3), *map(ag.tensor, ggml.values()), 3).shape == (2, 3)


def test_activations_of_both_ends_count():
    ggml = rnn.convert(keras_weights(), source="keras", target="ggml")
    text = "needs f(-a) = 1 - f(a); got softmax"
    for target in ("keras", "bigdl"):
        assert_raises(
            ValueError, text, lambda target=target: rnn.convert(ggml, source="ggml", target=target, gate_activation="softmax")
        )
    assert same(rnn.convert(ggml, source="ggml", target="ggml", gate_activation="softmax"), ggml)
    state = {k: array(v) for k, v in nn.GRU(2, 3).state_dict().items()}
    assert_raises(
        ValueError,
        "torch has tanh and sigmoid only; got relu",
        lambda: rnn.convert(state, source="torch", target="keras", activation="relu"),
    )
    assert_raises(
        ValueError, "Unknown activation: 'cosh'", lambda: rnn.convert(ggml, source="ggml", target="keras", activation="cosh")
    )


def test_reset_after_is_a_keras_grus():
    after = keras_weights(after=True)
    to = lambda weights, target, family, source="keras": rnn.convert(weights, source=source, target=target, reset_after=family)
    assert_raises(
        ValueError, "reset_after=False is no family of these keras weights for torch", lambda: to(after, "torch", False)
    )
    assert same(to(after, "torch", True), rnn.convert(after, source="keras", target="torch"))
    assert_raises(
        ValueError,
        "reset_after=True is no family of these torch weights",
        lambda: to(to(after, "torch", True), "cudnn", True, "torch"),
    )
    assert_raises(ValueError, "reset_after is a GRU's; got an LSTM", lambda: to(keras_weights(4), "keras", True))
    assert_raises(ValueError, "reset_after=False contradicts the weights", lambda: rnn.load_keras(after, reset_after=False))
    assert list(to(after[:2], "torch", True)) == list(nn.GRU(2, 3).state_dict())


def state(**changed):
    found = {k: array(v) for k, v in nn.GRU(2, 3).state_dict().items()} | changed
    return {k: v for k, v in found.items() if v is not None}


BAD = {
    "torch: weight_ih_l0 must have shape (9, 2); got (6, 2)": ("torch", state(weight_ih_l0=np.ones((6, 2)))),
    "bias_ih_l0, bias_hh_l0; got weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, extra": ("torch", state(extra=np.ones(2))),
    "bias_ih_l0, bias_hh_l0; got weight_ih_l0, weight_hh_l0, bias_ih_l0": ("torch", state(bias_hh_l0=None)),
    "torch weights are the state_dict": ("torch", state(weight_hh_l0=None)),
    "weight_ih_l1, weight_hh_l1": ("torch", state(weight_ih_l2=np.ones((9, 3)))),
    "a GRU has 3 gates and an LSTM 4; got weight_hh (10, 3)": ("torch", state(weight_hh_l0=np.ones((10, 3)))),
    "recurrent_kernel must be [U, G U]; got (9,)": ("keras", [np.ones((2, 9)), np.ones(9), np.ones(9)]),
    "recurrent_kernel must be [U, G U]; got (0, 9)": ("keras", [np.ones((2, 9)), np.ones((0, 9)), np.ones(9)]),
    "both directions of a Bidirectional must have the same shapes": ("keras", [*keras_weights(), *keras_weights(units=4)]),
    "w_c must be [I + C, C] with C = 3; got (3, 3)": (
        "tf_block",
        {"w_ru": np.ones((3, 6)), "w_c": np.ones((3, 3)), "b_ru": np.ones(6), "b_c": np.ones(3)},
    ),
    "b_n must be a vector or a matrix; got shape ()": (
        "ggml",
        {**rnn.convert(keras_weights(), source="keras", target="ggml"), "b_n": np.array(1.0)},
    ),
    "beside params the dict has num_layers, num_units": (
        "cudnn",
        {**rnn.convert(state(), source="torch", target="cudnn"), "dropout": 0.5},
    ),
}


@pytest.mark.parametrize("text", BAD)
def test_weights_that_do_not_fit(text):
    source, weights = BAD[text]
    assert_raises(ValueError, text, lambda: rnn.convert(weights, source=source, target="keras"))


@pytest.mark.parametrize("dtype", [ag.bfloat16, ag.float16, ag.float32])
def test_tensors_keep_their_dtype(dtype, device):
    weights = [ag.tensor(w, dtype=dtype, device=device) for w in keras_weights(after=True)]
    there = rnn.convert(weights, source="keras", target="torch")
    back = rnn.convert(there, source="torch", target="keras")
    assert all(t.dtype is dtype and t.device == weights[0].device for t in (*there.values(), *back))
    assert all((array(a) == array(b)).all() for a, b in zip(weights, back))
    assert rnn.load_torch(there, device=device).weight_ih_l0.dtype is dtype


def test_loaded_modules_are_in_their_sources_mode():
    source = nn.GRU(2, 3, 2, dropout=0.5).eval()
    assert not rnn.load_torch(source).training and rnn.load_torch(source.state_dict()).training
    assert_raises(TypeError, "[load_torch] expected a module or its state_dict; got int", lambda: rnn.load_torch(3))
    two = nn.GRU(INPUTS, UNITS, bidirectional=True, dtype=ag.float64)
    made = rnn.load_keras(rnn.convert(two.state_dict(), source="torch", target="keras"), return_sequences=True)
    assert isinstance(made, layers.Bidirectional)
    x = drawn(4, 2, INPUTS)
    assert_close(made(x.transpose(0, 1)).transpose(0, 1), array(two(x)[0]), 1e-12)
