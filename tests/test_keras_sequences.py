"""The rules of Keras' recurrent layers: cells, masks, directions, states, both ways, dropout, gradients."""

import json

import numpy as np
import pytest
from helpers import array, assert_close
from hypothesis import given
from hypothesis import strategies as st
from test_keras_recurrent import KINDS, STATE, X, loaded, rng

import autograd as ag
from autograd.keras import layers
from autograd.keras.layer import Layer
from autograd.nn import Module


def everything(kind, units=4, **options):
    """A layer that returns all it has, in float64."""
    return getattr(layers, kind)(units, return_sequences=True, return_state=True, dtype="float64", **options)


@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("masked", ["none", "right", "holes", "all"])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("zero", [False, True])
def test_rnn_with_a_cell_is_the_layer(reset_after, masked, backwards, zero):
    """The step by step loop and the core agree, with gradients."""
    options = {"return_sequences": True, "return_state": True, "go_backwards": backwards, "zero_output_for_mask": zero, "dtype": "float64"}
    fused, loop = layers.GRU(4, reset_after=reset_after, **options), layers.RNN(layers.GRUCell(4, reset_after=reset_after, dtype="float64"), **options)
    mask = {"none": None, "right": np.arange(5) < np.array([[5], [3]]), "holes": rng(2, 5) > 0, "all": np.arange(5) < np.array([[5], [0]])}[masked]
    fused.build((2, 5, 3))
    loop.build((2, 5, 3))
    loop.set_weights(fused.get_weights())
    grads = []
    for layer in fused, loop:
        x = ag.tensor(rng(2, 5, 3), requires_grad=True)
        y, h = layer(x, mask=mask, initial_state=ag.tensor(rng(2, 4, seed=1)))
        ((y * ag.tensor(rng(2, 5, 4, seed=2))).sum() + (h * h).sum()).backward()
        grads.append([y, h, x.grad, *(w.grad for w in layer.weights)])
    for got, want in zip(*grads):
        assert_close(got, want, 1e-12)


@pytest.mark.parametrize("rubbish", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("make", [lambda: layers.RNN([layers.GRUCell(4), layers.LSTMCell(4)]), lambda: layers.LSTM(4), lambda: layers.GRU(4, recurrent_dropout=0.5, seed=1)],
                         ids=["cells", "core", "dropout"])  # fmt: skip
def test_what_stands_in_masked_steps_has_no_effect(make, rubbish, device):
    mask, found = rng(2, 5) > 0, []
    for value in 0.0, rubbish:
        x = rng(2, 5, 3)
        x[~mask] = value
        x = ag.tensor(x, dtype="float32", device=device, requires_grad=True)
        layer = make()
        layer(x.detach())
        layer.set_weights([rng(*w.shape, seed=i) for i, w in enumerate(layer.weights)])
        layer(x, mask=mask, training=True).sum().backward()
        found.append([x.grad, *(w.grad for w in layer.weights)])
    for got, want in zip(*found, strict=True):
        assert_close(got, want)


class Minimal(Module):
    """A user's cell: h' = tanh(x W + h), the output twice as wide as the state."""

    state_size, output_size = 4, 8

    def __init__(self):
        super().__init__()
        self.w = ag.nn.Parameter(ag.tensor(rng(3, 4)))

    def forward(self, x, states):
        h = (x @ self.w + states[0]).tanh()
        return ag.cat([h, 2 * h], -1), [h]


def test_rnn_runs_a_users_cell():
    layer = layers.RNN(Minimal(), return_sequences=True, return_state=True)
    x = rng(2, 5, 3)
    y, h = layer(ag.tensor(x))
    want = np.zeros((2, 4))
    for t in range(5):
        want = np.tanh(x[:, t] @ array(layer.cell.w) + want)
        assert_close(y[:, t], np.concatenate([want, 2 * want], -1))
    assert_close(h, want)
    assert layer.compute_output_shape((2, 5, 3)) == [(2, 5, 8), (2, 4)] and len(layer.trainable_weights) == 1
    y.sum().backward()
    assert layer.cell.w.grad is not None

    class Plain:
        state_size = [2, 3]

        def call(self, x, states):
            return states[0] + 1, [states[0] + 1, states[1] * 2]

    y, a, b = layers.RNN(Plain(), return_state=True)(ag.tensor(x), initial_state=[np.zeros((2, 2)), np.ones((2, 3))])
    assert (array(y) == 5).all() and (array(a) == 5).all() and (array(b) == 32).all()
    with pytest.raises(TypeError, match="no get_config"):
        layer.get_config()
    both = layers.Bidirectional(layers.RNN(Minimal(), return_sequences=True))  # copies the cell
    assert both(ag.tensor(x)).shape == (2, 5, 16)
    for wrong in object(), 3:
        with pytest.raises(ValueError, match="Argument `cell` should have a `call` method"):
            layers.RNN(wrong)


def test_stacked_cells_are_stacked_layers():
    cells = [layers.GRUCell(4, dtype="float64"), layers.LSTMCell(5, dtype="float64")]
    layer = layers.RNN(cells, return_sequences=True, return_state=True)
    x = ag.tensor(rng(2, 5, 3))
    y, *states = layer(x)
    one, two = everything("GRU", 4), everything("LSTM", 5)
    middle, h = loaded(one, layer.get_weights()[:3], x)(x)
    want = loaded(two, layer.get_weights()[3:], middle)(middle)
    for got, expected in zip([y, *states], [want[0], h, *want[1:]], strict=True):
        assert_close(got, expected)
    again = layers.RNN.from_config(json.loads(json.dumps(layer.get_config())))
    assert again.get_config() == layer.get_config() and again.state_size == [4, [5, 5]]

    class Own(layers.SimpleRNNCell):
        pass

    config = layers.Bidirectional(layers.RNN([Own(3), Own(2)])).get_config()
    assert layers.Bidirectional.from_config(config, {"Own": Own})(X).shape == (2, 4)
    with pytest.raises(ValueError, match="'Own'"):
        layers.Bidirectional.from_config(config)


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 99))
def test_rows_do_not_see_each_other(kind, lengths, seed):
    """A masked batch gives what its rows give alone, cut to their lengths."""
    layer = everything(kind)
    x = rng(len(lengths), 5, 3, seed=seed)
    if "CuDNN" in kind:
        whole, lengths = layer(x), [5] * len(lengths)
    else:
        whole = layer(x, mask=np.arange(5) < np.array(lengths)[:, None])
    for i, n in enumerate(lengths):
        if n:
            y, *states = layer(x[i : i + 1, :n])
            assert_close(whole[0][i : i + 1, :n], y, 1e-12)
            assert (array(whole[0][i, n:]) == array(y[0, -1])).all() or np.abs(array(whole[0][i, n:]) - array(y[0, -1])).max() < 1e-12
            for got, want in zip(whole[1:], states, strict=True):
                assert_close(got[i : i + 1], want, 1e-12)
        else:
            assert not array(whole[0][i]).any() and not any(array(s[i]).any() for s in whole[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_directions_layouts_and_states(kind):
    """go_backwards turns the input, time_major the axes; one batch in two stateful calls is one sequence."""
    x = rng(2, 6, 3)
    layer = everything(kind)
    y, *states = layer(x)
    weights = layer.get_weights()
    turned = loaded(everything(kind, go_backwards=True), weights, x)(x[:, ::-1].copy())
    major = loaded(everything(kind, time_major=True), weights, x.swapaxes(0, 1))(x.swapaxes(0, 1).copy())
    both = loaded(everything(kind, time_major=True, go_backwards=True), weights, x.swapaxes(0, 1))(x[:, ::-1].swapaxes(0, 1).copy())
    for found, axes in (turned, False), (major, True), (both, True):
        assert_close(found[0].transpose(0, 1) if axes else found[0], y, 1e-12)
        for got, want in zip(found[1:], states, strict=True):
            assert_close(got, want, 1e-12)
    stateful = loaded(everything(kind, stateful=True), weights, x[:, :4])
    parts = [stateful(x[:, :4])[0], stateful(x[:, 4:])[0]]
    assert_close(ag.cat(parts, 1), y, 1e-12)
    assert not any(s.requires_grad for s in stateful.states) and list(stateful.state_dict()) == list(layer.state_dict())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequences", [False, True])
def test_gradients(kind, sequences):
    """Gradients of the layer, weights in Keras' layouts included, and gradients of gradients."""
    layer = getattr(layers, kind)(2, return_sequences=sequences, return_state=True, go_backwards=sequences, dtype="float64")
    layer.build((2, 3, 3))
    inputs = (ag.tensor(rng(2, 3, 3), requires_grad=True), *layer.trainable_weights)
    assert ag.gradcheck(lambda x, *_: tuple(layer(x)), inputs)
    assert ag.gradgradcheck(lambda x, *_: tuple(layer(x)), inputs, fast_mode=True)


@pytest.mark.parametrize("merge", ["concat", "sum", "mul", "ave", None])
@pytest.mark.parametrize("kind", ["GRU", "LSTM", "CuDNNGRU"])
def test_bidirectional_is_two_layers(kind, merge):
    layer = layers.Bidirectional(everything(kind), merge_mode=merge)
    x = ag.tensor(rng(2, 5, 3))
    found = layer(x)
    half = len(layer.get_weights()) // 2
    y, *states = loaded(everything(kind), layer.get_weights()[:half], x)(x)
    back, *others = loaded(everything(kind, go_backwards=True), layer.get_weights()[half:], x)(x)
    back = back.flip(1)
    outputs = {"concat": [ag.cat([y, back], -1)], "sum": [y + back], "mul": [y * back], "ave": [(y + back) / 2], None: [y, back]}[merge]
    for got, want in zip(found, [*outputs, *states, *others], strict=True):
        assert_close(got, want, 1e-12)
    assert [tuple(t.shape) for t in found] == layer.compute_output_shape((2, 5, 3))
    first = [ag.tensor(rng(2, 4, seed=i)) for i in range(len(states) * 2)]
    assert_close(layer(x, initial_state=first)[-1], array(layer([x, *first])[-1]))
    config = json.loads(json.dumps(layer.get_config()))
    assert layers.Bidirectional.from_config(config).get_config() == layer.get_config()


def test_bidirectional_masks_and_states():
    """Masked steps give zeros; states of both ways are kept and reset; what does not fit is refused."""
    layer = layers.Bidirectional(layers.LSTM(4, return_sequences=True, stateful=True))
    mask = np.arange(5) < np.array([[5], [2]])
    y = array(layer(X, mask=mask))
    assert y.shape == (2, 5, 8) and not y[1, 2:].any() and y[1, :2].all()
    assert len(layer.states) == 4 and array(layer.states[0]).any()
    layer.reset_states([STATE, 2 * STATE, 3 * STATE, 4 * STATE])
    assert [array(s)[0, 0] for s in layer.states] == [1, 2, 3, 4]
    layer.reset_states()
    assert not any(array(s).any() for s in layer.states)
    with pytest.raises(ValueError, match="expects 4 states, but it received 1"):
        layer.reset_states([STATE])
    with pytest.raises(ValueError, match="merge_mode"):
        layers.Bidirectional(layers.GRU(4), merge_mode="max")
    with pytest.raises(TypeError, match="recurrent"):
        layers.Bidirectional(Layer())
    with pytest.raises(ValueError, match="opposite directions"):
        layers.Bidirectional(layers.GRU(4), backward_layer=layers.GRU(4))
    with pytest.raises(ValueError, match="return_sequences"):
        layers.Bidirectional(layers.GRU(4), backward_layer=layers.GRU(4, go_backwards=True, return_sequences=True))
    mixed = layers.Bidirectional(layers.GRU(4), backward_layer=layers.LSTM(3, go_backwards=True))
    assert mixed(X).shape == (2, 7) == mixed.compute_output_shape((2, 5, 3))
    assert layers.Bidirectional.from_config(mixed.get_config()).get_config() == mixed.get_config()


@pytest.mark.parametrize("make", [lambda: layers.GRU(4), lambda: layers.CuDNNLSTM(4), lambda: layers.RNN(layers.LSTMCell(4)), lambda: layers.Bidirectional(layers.SimpleRNN(4))])  # fmt: skip
def test_inputs_become_the_weights_dtype(make):
    layer = make()
    for dtype in ag.float64, ag.float32:
        assert layer(ag.tensor(X, dtype=dtype)).dtype is ag.float32
    assert layer.double()(ag.tensor(X)).dtype is ag.float64


def test_in_a_graph():
    """Masks, states and first states through a functional model."""
    keras = ag.keras
    x, h0 = keras.Input((5, 3)), keras.Input((4,))
    gru, both = layers.GRU(4, return_sequences=True, return_state=True), layers.Bidirectional(layers.LSTM(3))
    y, h = gru(layers.Masking()(x), initial_state=h0)
    model = keras.Model([x, h0], [both(y), h])
    values = np.where(np.arange(5)[:, None] < 3, X, 0).astype(np.float32)
    mask = np.broadcast_to(np.arange(5) < 3, (2, 5))
    want_y, want_h = gru(values, initial_state=STATE, mask=mask)
    got = model([values, STATE])
    assert_close(got[0], both(want_y, mask=mask))
    assert_close(got[1], want_h)
    assert [x.shape for x in model.outputs] == [(None, 6), (None, 4)]


# -- dropout ----------------------------------------------------------------------------------------------------

DROPPED = [{"dropout": 0.5}, {"dropout": 0.5, "implementation": 1}, {"recurrent_dropout": 0.5}, {"dropout": 0.3, "recurrent_dropout": 0.4}]


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "SimpleRNN"])
@pytest.mark.parametrize("options", DROPPED, ids=str)
def test_dropout(kind, options):
    """In training only, from the seed, one mask for all steps."""
    if kind == "SimpleRNN" and "implementation" in options:
        with pytest.raises(TypeError, match="not understood: 'implementation'"):
            layers.SimpleRNN(4, **options)
        return
    make = lambda: everything(kind, seed=7, **options)
    one, two = make(), make()
    one.build(X.shape)
    loaded(two, one.get_weights(), X)
    plain = loaded(everything(kind), one.get_weights(), X)
    assert (array(one(X)[0]) == array(plain(X)[0])).all()
    first, second = one(X, training=True)[0], one(X, training=True)[0]
    assert (array(first) == array(two(X, training=True)[0])).all() and not (array(first) == array(second)).all()
    assert not one.training and not one.cell.training
    masks = [*one.cell._masks.values()]
    gates = {"GRU": 3, "LSTM": 4, "SimpleRNN": 1}[kind]
    apart = "recurrent_dropout" in options or "implementation" in options
    for mask in masks:
        assert len(mask) == gates and len({id(m) for m in mask}) == (gates if apart else 1)
        keep = 1 - max(options.values() if "implementation" not in options else [0.5])
        assert all(v == 0 or v >= 1 for v in array(mask[0]).ravel()) and keep < 1


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "SimpleRNN"])
@pytest.mark.parametrize("extra", [{}, {"reset_after": False}, {"use_bias": False}], ids=str)
def test_dropped_step_is_the_step(kind, extra):
    """With masks of ones the step with dropout is the step of the core."""
    if kind != "GRU" and "reset_after" in extra:
        extra = {"activation": "relu"}
    cell = getattr(layers, kind + "Cell")(4, dtype="float64", dropout=0.5, recurrent_dropout=0.5, **extra)
    x, states = ag.tensor(rng(2, 3)), [ag.tensor(rng(2, 4, seed=i)) for i in range(len(layers.LSTM(4).states) if kind == "LSTM" else 1)]
    want = cell(x, states)[1]
    cell._masks = {"x": [ag.ones(2, 3, dtype="float64")] * cell.gates, "h": [ag.ones(2, 4, dtype="float64")] * cell.gates}
    for got, expected in zip(cell(x, states, training=True)[1], want, strict=True):
        assert_close(got, expected, 1e-12)


def test_input_dropout_is_one_mask_for_all_steps():
    layer = everything("GRU", dropout=0.5, seed=1)
    y = layer(X, training=True)[0]
    (mask, *_) = layer.cell._masks["x"]
    assert set(np.unique(array(mask))) <= {0.0, 2.0}
    assert_close(y, layer(X * array(mask)[:, None])[0], 1e-12)


@pytest.mark.parametrize("make", [lambda: layers.GRU(4, dropout=1.0), lambda: layers.LSTM(4, recurrent_dropout=-0.1), lambda: layers.GRU(4, implementation=3),
                                  lambda: layers.GRU(4, use_cudnn="yes"), lambda: layers.GRU(4, activation="tan"), lambda: layers.LSTM(2.5), lambda: layers.CuDNNGRU(2.5)])  # fmt: skip
def test_options_that_are_refused(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "CuDNNGRU"])
def test_dispatches_do_not_grow_with_steps(kind, wgpu):
    counts = []
    for steps in 32, 64:
        layer = getattr(layers, kind)(8, return_sequences=True)
        x = ag.tensor(rng(2, steps, 3).astype(np.float32), device=wgpu)
        layer(x).sum().backward()  # builds, compiles
        ag.wgpu.synchronize()
        before = ag.wgpu.stats()["dispatches"]
        layer(x).sum().backward()
        ag.wgpu.synchronize()
        counts.append(ag.wgpu.stats()["dispatches"] - before)
    assert counts[0] == counts[1]
