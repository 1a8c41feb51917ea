"""Recurrent layers: properties, the cuDNN family, conversions, dispatches, memory, errors."""

import itertools

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises
from hypothesis import given
from hypothesis import strategies as st

import autograd as ag
from autograd import nn, rnn
from autograd.ops import rnn as core
from autograd.webgpu import rnn as kernels

CELLS = {"gru": 3, "gru_before": 3, "lstm": 4, "rnn": 1}


def drawn(*shape, seed=0, device="cpu", dtype=np.float64, grad=True):
    values = np.random.default_rng([seed, *shape]).uniform(-0.8, 0.8, shape)
    return ag.tensor(values.astype(np.float32 if device == "wgpu" else dtype), device=device, requires_grad=grad)


def layer_inputs(cell, batch=3, steps=4, inputs=2, units=3, project=None, **kwargs):
    g, width = CELLS[cell], project or units
    shapes = [(steps, batch, inputs), (batch, width), (g * units, inputs), (g * units, width), (g * units,), (g * units,)]
    shapes += [(batch, units)] if cell == "lstm" else []
    shapes += [(project, units)] if project else []
    return [drawn(*s, seed=i, **kwargs) for i, s in enumerate(shapes)]


def total(outputs):
    return sum(((k + 1) * (y * y).sum() for k, y in enumerate(outputs) if y is not None), start=0)


def gradients(cell, inputs, **options):
    outputs = core.layer(cell, *inputs, **options)
    return outputs, ag.grad(total(outputs), inputs)


# -- the core -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"lengths": [4, 0, 2]}, {"lengths": [1, 3, 4], "reverse": True}], ids=str)
def test_checkpoint_changes_nothing(cell, options, device):
    inputs = layer_inputs(cell, device=device)
    outputs, grads = gradients(cell, inputs, **options)
    for k in (1, 3, 9):
        again, same = gradients(cell, inputs, checkpoint=k, **options)
        for a, b in zip((*again, *same), (*outputs, *grads)):
            if b is not None:
                assert_close(a, array(b), 1e-5 if device == "wgpu" else 1e-12)


@given(st.sampled_from(list(CELLS)), st.lists(st.integers(0, 5), min_size=1, max_size=4), st.booleans())
def test_a_sequence_gives_what_it_gives_alone(cell, lengths, reverse):
    x, h0, *rest = layer_inputs(cell, batch=len(lengths), steps=5)
    c0 = rest[4:]
    y, hn, cn = core.layer(cell, x, h0, *rest, lengths=lengths, reverse=reverse)
    for b, n in enumerate(lengths):
        alone = core.layer(cell, x[:n, b : b + 1], h0[b : b + 1], *rest[:4], *(c[b : b + 1] for c in c0), reverse=reverse)
        assert_close(alone[0][:, 0], array(y)[:n, b], 1e-12)
        assert_close(alone[1][0], array(hn)[b], 1e-12)
        assert cn is None or np.allclose(array(alone[2])[0], array(cn)[b], 0, 1e-12)
        assert not array(y)[n:, b].any()


@given(st.sampled_from(["RNN", "LSTM", "GRU"]), st.integers(1, 2), st.booleans(), st.integers(0, 3))
def test_no_state_is_a_state_of_zeros(kind, layers, bidirectional, steps):
    module = getattr(nn, kind)(2, 3, layers, bidirectional=bidirectional, dtype=ag.float64)
    zeros = ag.zeros(layers * (1 + bidirectional), 2, 3, dtype=ag.float64)
    x = drawn(steps, 2, 2)
    y, _ = module(x)
    same, _ = module(x, (zeros, zeros) if kind == "LSTM" else zeros)
    assert (array(y) == array(same)).all()


@pytest.mark.parametrize("cell", CELLS)
def test_padding_is_not_read(cell, device):
    inputs = layer_inputs(cell, device=device)
    lengths = [2, 0, 4]
    outputs, grads = gradients(cell, inputs, lengths=lengths)
    spoilt = array(inputs[0]).copy()
    for b, n in enumerate(lengths):
        spoilt[n:, b] = np.nan
    inputs[0] = ag.tensor(spoilt, device=device, requires_grad=True)
    again, same = gradients(cell, inputs, lengths=lengths)
    for a, b in zip((*again, *same), (*outputs, *grads)):
        assert a is None or (array(a) == array(b)).all()


def test_nothing_is_saved_when_nothing_is_recorded():
    inputs = layer_inputs("gru", grad=False)
    (*_, saved) = ag.op.apply(core.Gru, *inputs, None, None, mask=None, reverse=False, save=False)
    assert not saved.numel()
    y, hn, _ = core.layer("gru", *inputs)
    assert_close(hn, array(y)[-1])


@pytest.mark.parametrize("cell", CELLS)
def test_other_activations_take_the_composite(cell):
    inputs = layer_inputs(cell)
    assert ag.gradcheck(lambda *x: core.layer(cell, *x, activation="softsign", gate_activation="hardswish")[0], inputs, fast_mode=True)
    y, *_ = core.layer(cell, *inputs, activation=lambda x: x.tanh())
    assert_close(y, array(core.layer(cell, *inputs)[0]), 1e-12)


def test_errors_of_the_core():
    x, h, w, u, b, v = layer_inputs("gru")
    assert_raises(ValueError, "h0 must have shape (3, 3)", lambda: core.layer("gru", x, h[:2], w, u, b, v))
    assert_raises(ValueError, "w_ih must have shape (9, 2)", lambda: core.layer("gru", x, h, w[:3], u, b, v))
    assert_raises(ValueError, "lengths must lie in 0 … 4; got [5, 1, 1]", lambda: core.layer("gru", x, h, w, u, lengths=[5, 1, 1]))
    assert_raises(ValueError, "lengths must be 3 whole numbers", lambda: core.layer("gru", x, h, w, u, lengths=[1]))
    assert_raises(ValueError, "exclude each other", lambda: core.layer("gru", x, h, w, u, lengths=[1, 1, 1], mask=np.ones((4, 3))))
    assert_raises(ValueError, "unknown activation 'tan'", lambda: core.layer("gru", x, h, w, u, activation="tan"))
    assert_raises(ValueError, "I must be H = 3", lambda: core.layer("gru", x, h, None, u))
    assert_raises(ValueError, "needs c0", lambda: core.layer("lstm", x, h, w, u))
    assert_raises(ValueError, "H and P must be positive", lambda: core.layer("gru", x, h[:, :0], w[:0], u[:0, :0]))
    assert_raises(ValueError, "checkpoint must be", lambda: core.layer("gru", x, h, w, u, checkpoint=0))
    assert_raises(TypeError, "x's dtype", lambda: core.layer("gru", x, h.float(), w, u))


# -- wgpu ---------------------------------------------------------------------------------------------------


def dispatches(cell, steps, project):
    """Of a training step, forward and backward."""
    inputs = layer_inputs(cell, steps=steps, project=project, device="wgpu")
    counts = []
    for _ in range(2):  # once to warm
        ag.wgpu.synchronize()
        counts = [ag.wgpu.stats()["dispatches"]]
        outputs = core.layer(cell, *inputs)
        ag.wgpu.synchronize()
        counts.append(ag.wgpu.stats()["dispatches"])
        ag.grad(outputs[0].sum(), inputs)
        ag.wgpu.synchronize()
        counts.append(ag.wgpu.stats()["dispatches"])
    return np.diff(counts)


# As many units as in other tests: the kernels of a recurrent layer take software Vulkan a second to compile.
PROJECTED = [*((cell, None) for cell in CELLS), ("lstm", 2), ("lstm", 3)]


@pytest.mark.parametrize(("cell", "project"), PROJECTED)
def test_dispatches_do_not_grow_with_time_up_to_256_units(cell, project, wgpu, monkeypatch):
    """Seen at 3 units and as much less memory: what a step shares grows with the units."""
    monkeypatch.setattr(kernels, "MEMORY", kernels.MEMORY * 3 // 256)
    assert (dispatches(cell, 8, project) == dispatches(cell, 3, project)).all()


@pytest.mark.parametrize(("cell", "project"), PROJECTED)
def test_beyond_them_a_step_takes_two_dispatches_at_most_each_way(cell, project, wgpu, monkeypatch):
    monkeypatch.setattr(kernels, "MEMORY", 0)
    grown = (dispatches(cell, 8, project) - dispatches(cell, 3, project)) / 5
    assert (grown >= 1).all()
    assert (grown <= 2).all()


@pytest.mark.parametrize("options", [{}, {"lengths": [2, 0, 4, 1, 4], "reverse": True}], ids=str)
@pytest.mark.parametrize(("cell", "project"), [*((cell, None) for cell in CELLS), ("lstm", 33)])
@pytest.mark.parametrize("memory", [0, kernels.MEMORY], ids=["dispatches", "persistent"])
def test_more_units_than_a_workgroup_has_invocations(cell, project, memory, options, wgpu, monkeypatch):
    """The composite's numbers, whether a dispatch runs all steps or a phase of one."""
    monkeypatch.setattr(kernels, "MEMORY", memory)
    monkeypatch.setattr(kernels, "LARGEST", 32)
    values = [0.3 * array(x) for x in layer_inputs(cell, batch=5, units=38, project=project)]
    made = lambda device, dtype: [ag.tensor(v.astype(dtype), device=device, requires_grad=True) for v in values]
    fused = gradients(cell, made("wgpu", np.float32), **options)
    twin = gradients(cell, made("cpu", np.float64), activation=lambda x: x.tanh(), **options)
    for a, b in zip((*fused[0], *fused[1]), (*twin[0], *twin[1])):
        if b is not None:
            assert_close(a, array(b), 1e-5)


# -- TensorFlow's block cell --------------------------------------------------------------------------------


def block_inputs(batch=2, inputs=3, units=2, **kwargs):
    shapes = ((batch, inputs), (batch, units), (inputs + units, 2 * units), (inputs + units, units), (2 * units,), (units,))
    return [drawn(*s, seed=i, **kwargs) for i, s in enumerate(shapes)]


def test_block_cell_gradient_with_any_gates(device):
    """The function whose gradient the op is, with r, u, c as they are given."""
    given_, gates = block_inputs(device=device), [drawn(2, 2, seed=9 + i, device=device) for i in range(4)]
    d_x, d_h, d_c_bar, d_ru = (array(g) for g in rnn.gru_block_cell_grad(*given_, *gates))
    _, h, w_ru, w_c, *_ = (array(t) for t in given_)
    r, u, c, dy = (array(t) for t in gates)
    back = dy * (1 - u) * (1 - c * c)
    reset = (back @ w_c.T)[:, 3:]
    both = np.concatenate([reset * h * r * (1 - r), dy * (h - c) * u * (1 - u)], 1)
    for got, want in zip((d_x, d_h, d_c_bar, d_ru), ((both @ w_ru.T)[:, :3] + (back @ w_c.T)[:, :3], (both @ w_ru.T)[:, 3:] + reset * r + dy * u, back, both)):
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_block_cell_of_no_rows(device):
    inputs = block_inputs(batch=0, device=device)
    r, u, c, h = rnn.gru_block_cell(*inputs)
    assert r.shape == u.shape == c.shape == h.shape == (0, 2)
    h.sum().backward()
    assert not array(inputs[2].grad).any()


BLOCK_RULES = {
    "rank of x must be 2": (0, (2, 3, 1)),
    "rank of h_prev must be 2": (1, (2,)),
    "h_prev.dims(0) must be batch_size = 2; got 3": (1, (3, 2)),
    "rank of w_ru must be 2": (2, (5,)),
    "w_ru.dims(0) must be input_size + cell_size = 5; got 4": (2, (4, 4)),
    "w_ru.dims(1) must be cell_size * 2 = 4; got 3": (2, (5, 3)),
    "w_c.dims(0) must be input_size + cell_size = 5; got 6": (3, (6, 2)),
    "w_c.dims(1) must be cell_size = 2; got 1": (3, (5, 1)),
    "rank of b_ru must be 1": (4, (1, 4)),
    "b_ru.dims(0) must be cell_size * 2 = 4; got 2": (4, (2,)),
    "b_c.dims(0) must be cell_size = 2; got 3": (5, (3,)),
}


@pytest.mark.parametrize("text", BLOCK_RULES)
def test_block_cell_rules(text):
    at, shape = BLOCK_RULES[text]
    inputs = block_inputs()
    inputs[at] = drawn(*shape)
    assert_raises(ValueError, "[gru_block_cell] " + text, lambda: rnn.gru_block_cell(*inputs))
    gates = [drawn(2, 2) for _ in range(4)]
    assert_raises(ValueError, text, lambda: rnn.gru_block_cell_grad(*inputs, *gates))
    assert_raises(ValueError, "u.dims(1) must be cell_size = 2; got 3", lambda: rnn.gru_block_cell_grad(*block_inputs(), gates[0], drawn(2, 3), *gates[2:]))


# -- cuDNN's family -----------------------------------------------------------------------------------------

MODES = ("rnn_relu", "rnn_tanh", "lstm", "gru")


def cudnn_inputs(mode, layers=1, units=2, inputs=3, steps=3, batch=2, time_major=True, device="cpu", **attributes):
    attributes = {"rnn_mode": mode, **attributes}
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    size = rnn.cudnn_rnn_params_size(layers, units, inputs, **attributes)
    turn = (lambda *s: s) if time_major else (lambda a, b, c: (b, a, c))
    h = turn(layers * directions, batch, attributes.get("num_proj") or units)
    c = drawn(*turn(layers * directions, batch, units), seed=2, device=device) if mode == "lstm" else None
    return [drawn(*turn(steps, batch, inputs), device=device), drawn(*h, seed=1, device=device), c, drawn(size, seed=3, device=device)], attributes


@pytest.mark.parametrize(("mode", "direction", "time_major"), [*itertools.product(MODES, ("unidirectional", "bidirectional"), (True, False))])
def test_cudnn_rnn_is_differentiable_twice(mode, direction, time_major):
    layers = 1 if direction == "bidirectional" else 2
    inputs, attributes = cudnn_inputs(mode, layers, time_major=time_major, direction=direction)
    c = inputs.pop(2)
    call = lambda x, h, p: ag.cat([y.flatten() for y in rnn.cudnn_rnn(x, h, c, p, [3, 1], time_major=time_major, **attributes)[:2]])
    assert ag.gradcheck(call, inputs, fast_mode=True)
    if mode != "rnn_relu":
        assert ag.gradgradcheck(call, inputs, fast_mode=True)


@pytest.mark.parametrize(("mode", "input_mode", "num_proj"), [*itertools.product(MODES, ("linear_input", "skip_input", "auto_select"), (0,)), ("lstm", "linear_input", 1)])
def test_canonical_weights_round_trip(mode, input_mode, num_proj):
    options = {"rnn_mode": mode, "input_mode": input_mode, "num_proj": num_proj, "direction": "bidirectional"}
    sizes = (2, 3, 4 if input_mode == "linear_input" else 3)
    params = drawn(rnn.cudnn_rnn_params_size(*sizes, **options))
    weights, biases = rnn.cudnn_rnn_params_to_canonical(*sizes, params, **options)
    assert all(b.shape == (3,) for b in biases)
    assert (array(rnn.cudnn_rnn_canonical_to_params(*sizes, weights, biases, **options)) == array(params)).all()
    assert_raises(ValueError, f"expected {len(weights)} weights; got", lambda: rnn.cudnn_rnn_canonical_to_params(*sizes, weights[1:], biases, **options))
    assert_raises(ValueError, "params_size", lambda: rnn.cudnn_rnn_params_to_canonical(*sizes, params[1:], **options))


def test_dropout_comes_from_the_seeds(device):
    inputs, attributes = cudnn_inputs("gru", 2, steps=6, device=device)
    run = lambda **kw: rnn.cudnn_rnn(*inputs, dropout=0.5, **attributes, **kw)
    y, hn, cn, reserve = run(seed=1, seed2=2)
    assert (array(run(seed=1, seed2=2)[0]) == array(y)).all()
    assert not np.allclose(array(run(seed=1, seed2=3)[0]), array(y))
    assert set(np.unique(array(reserve))) == {0.0, 2.0}
    whole = rnn.cudnn_rnn(*inputs, **attributes)[0]
    assert (array(run(is_training=False)[0]) == array(whole)).all()
    dy = [t.ones_like() for t in (y, hn)]
    grads = rnn.cudnn_rnn_backprop(*inputs, None, y, hn, cn, *dy, None, reserve, dropout=0.5, seed=1, seed2=2, **attributes)
    for got, want in zip((grads[0], grads[1], grads[3]), ag.grad(y.sum() + hn.sum(), [inputs[i] for i in (0, 1, 3)])):
        assert_close(got, array(want), 1e-5)
    other = run(seed=1, seed2=3)[3]
    assert_raises(ValueError, "reserve_space is not that", lambda: rnn.cudnn_rnn_backprop(*inputs, None, y, hn, cn, *dy, None, other, dropout=0.5, seed=1, seed2=2, **attributes))


def test_cudnn_errors():
    inputs, attributes = cudnn_inputs("lstm", 2)
    x, h, c, p = inputs
    run = lambda *a, **kw: rnn.cudnn_rnn(*a, **{**attributes, **kw})
    assert_raises(ValueError, "params_size = ", lambda: run(x, h, c, p[1:]))
    assert_raises(ValueError, "lengths must be 2 whole numbers", lambda: run(x, h, c, p, [1]))
    assert_raises(ValueError, "lengths must lie in 0 … 3; got [4, 0]", lambda: run(x, h, c, p, [4, 0]))
    assert_raises(ValueError, "skip_input needs input_size = num_units = 2; got 3", lambda: run(x, h, c, p, input_mode="skip_input"))
    assert_raises(ValueError, "one shape without a projection", lambda: run(x, h, c[:1], p))
    assert_raises(ValueError, "a projection needs rnn_mode lstm", lambda: run(x, h, None, p, rnn_mode="gru", num_proj=1))
    assert_raises(ValueError, "rnn_mode is one of", lambda: run(x, h, c, p, rnn_mode="elman"))
    assert_raises(ValueError, "input must have 3 dimensions", lambda: run(x[0], h, c, p))
    assert_raises(ValueError, "is_training must be set to True", lambda: run(x, h, c, p, is_training=False)[0].sum().backward())


# -- ggmlR and conversions ----------------------------------------------------------------------------------


def keras_weights(gates=3, after=False, units=3, inputs=2, seed=0):
    random = np.random.default_rng(seed)
    bias = (2, gates * units) if after else (gates * units,)
    return [random.normal(size=s) for s in ((inputs, gates * units), (units, gates * units), bias)]


def same(a, b):
    a, b = (list(x.values()) if isinstance(x, dict) else list(x) for x in (a, b))
    return len(a) == len(b) and all(np.array_equal(p, q) for p, q in zip(a, b))


@pytest.mark.parametrize(
    ("weights", "systems"),
    [
        (keras_weights(after=True), ("keras", "torch", "cudnn", "cudnn_gru", "keras")),
        (keras_weights(), ("keras", "tf_block", "bigdl", "ggml", "tf_block", "keras")),
        (keras_weights(4), ("keras", "torch", "cudnn", "ggml", "torch", "keras")),
    ],
    ids=["after", "before", "lstm"],
)
def test_conversions_come_back_bit_for_bit(weights, systems):
    held, start = weights, weights
    for source, target in itertools.pairwise(systems):
        held = rnn.convert(held, source=source, target=target)
        again = rnn.convert(rnn.convert(held, source=target, target="keras"), source="keras", target=target)
        assert same(again, held), target
    assert same(held, start)


def test_steps_of_ggml_are_the_same_functions():
    kernel = keras_weights()
    x, h = drawn(2, 2, grad=False), drawn(2, 3, grad=False)
    block = {k: ag.tensor(v) for k, v in rnn.convert(kernel, source="keras", target="tf_block").items()}
    ggml = {k: ag.tensor(v) for k, v in rnn.convert(kernel, source="keras", target="ggml").items()}
    assert_close(rnn.gru_step(x, h, *(ggml[k] for k in ("W_zh", "U_zh", "b_zh", "W_n", "U_n", "b_n")), 3), array(rnn.gru_block_cell(x, h, *block.values())[3]), 1e-12)
    lstm = keras_weights(4)
    c = drawn(2, 3, seed=5, grad=False)
    steps = {k: ag.tensor(v) for k, v in rnn.convert(lstm, source="keras", target="ggml").items()}
    got = rnn.lstm_step(x, h, c, steps["W_gates"], steps["U_gates"], steps["b_gates"], 3)
    _, *want = rnn.load_keras(lstm, return_state=True)(x.unsqueeze(1), initial_state=[h, c])
    for a, b in zip(got, want):
        assert_close(a, array(b), 1e-12)
    for name in (None, "linear", "relu", "silu", "gelu", "hardsigmoid", "hardswish", "softmax"):
        assert rnn.gru_step(x, h, *(ggml[k] for k in ("W_zh", "U_zh", "b_zh", "W_n", "U_n", "b_n")), 3, name, name).shape == (2, 3)


def test_conversions_that_are_refused():
    before, after, lstm = keras_weights(), keras_weights(after=True), keras_weights(4)
    to = lambda w, target, **kw: rnn.convert(w, source="keras", target=target, **kw)
    assert_raises(ValueError, "no exact conversion", lambda: to(before, "torch"))
    assert_raises(ValueError, "no exact conversion", lambda: to(after, "ggml"))
    assert_raises(ValueError, "f(-a) = 1 - f(a); got relu", lambda: to(before, "ggml", gate_activation="relu"))
    assert to(before, "ggml", gate_activation="hard_sigmoid")
    assert_raises(ValueError, "tanh and sigmoid only", lambda: to(before, "tf_block", activation="relu"))
    assert_raises(ValueError, "tf_block has no LSTM", lambda: to(lstm, "tf_block"))
    assert_raises(ValueError, "pass reset_after", lambda: to(before[:2], "torch"))
    assert_raises(ValueError, "source is one of", lambda: rnn.convert(before, source="theano", target="torch"))
    two = nn.GRU(2, 3, 2).state_dict()
    assert_raises(ValueError, "Convert them one by one", lambda: rnn.convert(two, source="torch", target="keras"))
    projected = nn.LSTM(2, 3, proj_size=2).state_dict()
    assert_raises(ValueError, "no projection", lambda: rnn.convert(projected, source="torch", target="keras"))


def test_diagonal_candidates_cross_the_families():
    before = keras_weights()
    before[1][:, 6:] = np.diag([0.5, -1.0, 2.0])
    after = rnn.convert(before, source="keras", target="keras", reset_after=True)
    assert same(rnn.convert(after, source="keras", target="keras", reset_after=False), before)
    x, h = drawn(2, 4, 2, grad=False), drawn(2, 3, grad=False)
    module = rnn.load_keras(after)
    block = {k: ag.tensor(v) for k, v in rnn.convert(before, source="keras", target="tf_block").items()}
    state = h
    for t in range(4):
        state = rnn.gru_block_cell(x[:, t], state, *block.values())[3]
    assert_close(module(x, initial_state=h), array(state), 1e-12)
    after[2][1, 6:] = 1
    assert_raises(ValueError, "exact only if it is 0", lambda: rnn.convert(after, source="keras", target="keras", reset_after=False))
