"""checkpoint=k of Keras' and BigDL's recurrent layers: the same values and gradients, and less kept for backward."""

import numpy as np
import pytest
from helpers import assert_close

import autograd as ag
from autograd import bigdl, keras
from autograd.keras import layers

KINDS = ["GRU", "LSTM", "SimpleRNN", "CuDNNGRU", "CuDNNLSTM"]
STEPS = 7
VARIANTS = [{}, {"go_backwards": True, "return_sequences": False}, {"time_major": True, "stateful": True}]
MASKS = {"none": None, "right": np.arange(STEPS) < np.array([[STEPS], [0], [3]]), "holes": np.arange(3 * STEPS).reshape(3, STEPS) % 3 > 0}


def rng(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def passes(layer, device, dtype, mask=None, initial=None, weights=None):
    """Outputs of two batches, and the gradients of everything that both depend on."""
    x = ag.tensor(rng(3, STEPS, 2), dtype=dtype, device=device, requires_grad=True)
    given = x.transpose(0, 1) if getattr(layer, "time_major", False) else x
    layer(given.detach())  # builds
    if weights is not None:
        layer.set_weights(weights)
    states = None if initial is None else [ag.tensor(rng(3, 4, seed=i), dtype=dtype, device=device) for i in range(initial)]
    if getattr(layer, "stateful", False):
        layer.reset_states()
    found = [y for _ in range(2) for y in layer(given, mask=mask, initial_state=states)]
    sum((i + 1) * (y * y).sum() for i, y in enumerate(found)).backward()
    return [*found, x.grad, *(w.grad for w in layer.weights)]


def both(make, device, **options):
    """The same layer without and with checkpoint=3: every output and gradient is compared."""
    dtype = "float32" if device == "wgpu" else "float64"
    plain = make(dtype=dtype)
    wanted = passes(plain, device, dtype, **options)
    again = make(dtype=dtype, checkpoint=3)
    for got, want in zip(passes(again, device, dtype, weights=plain.get_weights(), **options), wanted, strict=True):
        assert_close(got, want, 2e-5 if device == "wgpu" else 1e-12)


CASES = [(kind, i, mask) for kind in KINDS for i in range(3) for mask in MASKS if mask == "none" or (i < 2 and "CuDNN" not in kind)]


@pytest.mark.parametrize("kind, variant, mask", CASES, ids=str)
def test_keras_layers_give_the_same(kind, variant, mask, device):
    variant = VARIANTS[variant]
    options = {"return_sequences": True, "return_state": True, **variant}
    states = None if variant.get("stateful") else 1 + ("LSTM" in kind)
    both(lambda **more: getattr(layers, kind)(4, **options, **more), device, mask=MASKS[mask], initial=states)


def test_what_else_runs_on_the_core(device):
    options = {"return_sequences": True, "return_state": True}
    both(lambda **more: layers.GRU(4, reset_after=False, zero_output_for_mask=True, **options, **more), device, mask=MASKS["holes"])
    both(lambda **more: layers.SimpleRNN(4, activation="relu", **options, **more), device)
    both(lambda **more: layers.Bidirectional(layers.LSTM(4, **options, **more)), device, mask=MASKS["right"])


def test_bidirectional_hands_it_to_both_ways():
    layer = layers.Bidirectional(layers.CuDNNLSTM(4, checkpoint=2))
    assert layer.forward_layer.checkpoint == layer.backward_layer.checkpoint == 2
    assert layers.Bidirectional.from_config(layer.get_config()).backward_layer.checkpoint == 2


def test_input_dropout_goes_with_it():
    ag.manual_seed(0)
    layer = layers.GRU(4, dropout=0.5, return_sequences=True, checkpoint=2, dtype="float64")
    x = ag.tensor(rng(3, STEPS, 2), requires_grad=True)
    y = layer(x, training=True)
    (mask, *_) = layer.cell._masks["x"]
    y.sum().backward()
    plain = layers.GRU.from_config({**layer.get_config(), "checkpoint": None, "dropout": 0.0})
    z = ag.tensor(rng(3, STEPS, 2), requires_grad=True)
    plain(z)
    plain.set_weights(layer.get_weights())
    same = plain(z * mask.unsqueeze(1))
    same.sum().backward()
    assert_close(y, same, 1e-12)
    assert_close(x.grad, z.grad, 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_config_has_it_only_where_it_was_asked_for(kind):
    make = getattr(layers, kind)
    assert "checkpoint" not in make(4).get_config()
    model = keras.Sequential([keras.Input((STEPS, 2)), make(4, checkpoint=3)])
    assert keras.models.clone_model(model).layers[0].checkpoint == 3


@pytest.mark.parametrize("kind, gates", [("GRU", 4), ("LSTM", 6), ("SimpleRNN", 0), ("CuDNNGRU", 4), ("CuDNNLSTM", 6)])
def test_bytes_that_are_kept(kind, gates):
    """Of 64 steps the plain layer keeps x, y and what the gates left; with checkpoint=8 x, and a state of every eighth step."""
    batch, steps, width, units = 4, 64, 2, 16
    x = ag.tensor(rng(batch, steps, width), requires_grad=True)
    saved = {}
    for k in None, 8:
        layer = getattr(layers, kind)(units, checkpoint=k, dtype="float64")
        layer(x)
        weights = 3 * sum(w.nbytes for w in layer.weights)  # in Keras' layout, in the core's, and biases apart
        saved[k] = ag.tape(layer(x)).saved
        bound = x.nbytes + weights + steps // (k or 1) * batch * units * 8 * (1 + gates if k is None else 1 + ("LSTM" in kind))
        assert saved[k] <= bound, (k, saved[k], bound)
    assert saved[None] - saved[8] >= steps * batch * units * 8 * (1 + gates) * 3 // 4 - weights


REFUSED = [(ValueError, "checkpoint must be a positive number of steps, or None; got", lambda k=k: layers.GRU(4, checkpoint=k)) for k in (0, 1.5, True, "3")]
REFUSED += [
    (ValueError, "recurrent_dropout, and dropout with implementation=1 run step by step", lambda: layers.LSTM(4, recurrent_dropout=0.1, checkpoint=2)),
    (ValueError, "recurrent_dropout, and dropout with implementation=1", lambda: layers.GRU(4, dropout=0.1, implementation=1, checkpoint=2)),
    (ValueError, "a cell of your own", lambda: layers.RNN(layers.GRUCell(4), checkpoint=2)),
    (ValueError, "is for the fused activations", lambda: layers.GRU(4, recurrent_activation="hard_sigmoid", checkpoint=2)(rng(3, 2, 2))),
    (ValueError, "[GRU] checkpoint=2 is for p=0, tanh and sigmoid", lambda: bigdl.GRU(2, 4, 0.5, checkpoint=2)),
    (ValueError, "[GRU] checkpoint=2 is for p=0, tanh and sigmoid", lambda: bigdl.GRU(2, 4, activation="relu", checkpoint=2)),
    (ValueError, "[GRU] checkpoint must be a positive number of steps", lambda: bigdl.GRU(2, 4, checkpoint=0)),
]


@pytest.mark.parametrize("kind, text, call", REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_what_is_refused(kind, text, call):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("mask_zero", [False, True])
def test_bigdl_gives_the_same(mask_zero, device):
    dtype = "float32" if device == "wgpu" else "float64"
    x = rng(3, STEPS, 2)
    x[1, 2:5] = 0
    x, dy = (ag.tensor(a, dtype=dtype, device=device) for a in (x, rng(3, STEPS, 4)))
    found = []
    for k in None, 3:
        one = bigdl.Recurrent(mask_zero).add(bigdl.GRU(2, 4, checkpoint=k, dtype=dtype, device=device))
        two = bigdl.BiRecurrent().add(bigdl.GRU(4, 4, checkpoint=k, dtype=dtype, device=device))
        model = bigdl.Sequential().add(one).add(two)
        for i, (_, p) in enumerate(model.named_parameters()):
            p.array = ag.tensor(rng(*p.shape, seed=i), dtype=dtype, device=device).array
        y = model.forward(x)
        model.zero_grad_parameters()
        found.append([y, model.backward(x, dy), *model.parameters()[1]])
    for got, want in zip(*found, strict=True):
        assert_close(got, want, 2e-5 if device == "wgpu" else 1e-12)
    assert "checkpoint=3" in repr(model)
