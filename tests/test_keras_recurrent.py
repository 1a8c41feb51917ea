"""Keras' recurrent layers against values and messages of Keras' own (tests/golden). Their rules: test_keras_sequences.py."""

import json

import numpy as np
import pytest
from helpers import array, assert_close
from test_rnn_golden import GOLDEN, Case, names

import autograd as ag
from autograd.keras import layers

KINDS = ["GRU", "LSTM", "SimpleRNN", "CuDNNGRU", "CuDNNLSTM"]
BEHAVIOUR = json.loads((GOLDEN / "keras_behaviour.json").read_text())
GRAPH = json.loads((GOLDEN / "keras_v1_behaviour.json").read_text())


def rng(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def loaded(layer, weights, x):
    """The layer, built for x, with these weights."""
    layer.build(x.shape)
    layer.set_weights(weights)
    return layer.to(x.device) if isinstance(x, ag.Tensor) else layer


# -- against Keras ------------------------------------------------------------------------------------------


def options_of(name, case):
    found = {"reset_after": "after" in name, "use_bias": "bias" in case, "go_backwards": "goback" in name}
    found |= {"return_sequences": "lastonly" not in name, "zero_output_for_mask": name.endswith("_zero_f64")}
    return found | ({"recurrent_activation": "hard_sigmoid_keras2"} if "hardsig" in name else {})


@pytest.mark.parametrize("name", names("keras_gru_*") + names("keras_layer_gru_after_lastonly*"))
def test_gru_is_keras(name, device):
    case = Case(name, device)
    x, h0 = case.tensor(case["x"]), case.tensor(case["h0"])
    keys = [k for k in ("kernel", "recurrent_kernel", "bias") if k in case]
    layer = layers.GRU(case["h0"].shape[1], return_state=True, dtype=x.dtype, **options_of(name, case))
    loaded(layer, [case[k] for k in keys], x)
    y, hn = layer(x, initial_state=h0, mask=ag.tensor(case["mask"], device=device) if "mask" in case else None)
    case.close(y, "y")
    case.close(hn, "hn")
    ((y * case.tensor(case["dy"], False)).sum() + (hn * case.tensor(case["dhn"], False)).sum()).backward()
    for got, want in zip([x, h0, *layer.weights], ["x", "h0", *keys], strict=True):
        case.close(got.grad, "grad_" + want, True)


def test_bidirectional_is_keras(device):
    case = Case("keras_bigru_f64", device)
    x = case.tensor(case["x"])
    layer = layers.Bidirectional(layers.GRU(4, return_sequences=True, return_state=True, dtype=x.dtype))
    loaded(layer, [case[f"{way}_{k}"] for way in ("fwd", "bwd") for k in ("kernel", "recurrent_kernel", "bias")], x)
    for got, want in zip(layer(x), ("y", "hn_fwd", "hn_bwd"), strict=True):
        case.close(got, want)


def test_stateful_is_keras(device):
    case = Case("keras_layer_gru_stateful_f64", device)
    batches = [case.tensor(b, False) for b in case["x"]]
    layer = layers.GRU(4, return_sequences=True, stateful=True, dtype=batches[0].dtype)
    loaded(layer, [case[k] for k in ("kernel", "recurrent_kernel", "bias")], batches[0])
    for i, x in enumerate(batches):
        case.close(layer(x), case["y"][i])
        case.close(layer.states[0], case["state_after"][i])
    layer.reset_states()
    case.close(layer.states[0], "state_after_reset")
    case.close(layer(batches[0]), "y_batch0_after_reset")
    layer.reset_states([case["S"]])
    case.close(layer(batches[1]), "y_batch1_from_S")


def test_losses_are_keras():
    file = np.load(GOLDEN / "keras_layer_gru_losses.npz")
    options = {"kernel_regularizer": ag.keras.regularizers.L2(0.01), "recurrent_regularizer": {"class_name": "L1", "config": {"l1": 0.02}}}
    options |= {"bias_regularizer": ag.keras.regularizers.l1_l2(0.03, 0.04), "activity_regularizer": ag.keras.regularizers.L2(0.05)}
    layer = loaded(layers.GRU(4, dtype="float64", **options), [file[k] for k in ("kernel", "recurrent_kernel", "bias")], file["x"])
    y = layer(file["x"])
    assert_close(y, file["y"], 1e-6)
    for want in "losses_tf_keras", "losses_keras3":
        assert_close(ag.stack(layer.losses), file[want], 1e-7)  # their coefficients went through float32


@pytest.mark.parametrize("name", ["nonneg", "maxnorm", "unitnorm", "minmaxnorm"])
def test_constraints_are_keras(name):
    file = {k.removeprefix(name + "_"): v for k, v in np.load(GOLDEN / "keras_layer_gru_constraints.npz").items() if k.startswith(name)}
    c = ag.keras.constraints
    constraint = {"nonneg": c.NonNeg(), "maxnorm": c.MaxNorm(0.8), "unitnorm": c.UnitNorm(), "minmaxnorm": c.MinMaxNorm(0.3, 0.9, 0.5)}[name]
    layer = layers.GRU(4, kernel_constraint=constraint, dtype="float64")
    loaded(layer, [file[k] for k in ("kernel_before", "rk", "bias")], file["x"])
    assert_close(layer.weights[0], file["kernel_before"], 0)  # not at set_weights
    ((layer(file["x"]) - ag.tensor(file["t"].astype(np.float64))) ** 2).mean().backward()
    tolerance = 1e-6 if file["x"].dtype == np.float32 else 1e-12
    assert_close(layer.weights[0].grad, file["kernel_grad"], tolerance)
    ag.optim.SGD(layer.parameters(), 0.5).step()
    layer.apply_constraints()
    assert_close(layer.weights[0], file["kernel_after"], tolerance)


def test_cudnn_layout_is_keras(device):
    """Three layouts of one GRU: the same function, and gradients in each layer's own layout."""
    file = np.load(GOLDEN / "keras_cudnn_layout.npz")
    kinds = {"gru": layers.GRU, "cudnngru": layers.CuDNNGRU}
    x = ag.tensor(rng(2, 5, 3), dtype="float32" if device == "wgpu" else "float64", device=device)
    found = {}
    for kind, make in kinds.items():
        weights = [file[f"{kind}_{k}"] for k in ("kernel", "recurrent_kernel", "bias")]
        layer = loaded(make(4, return_sequences=True, dtype=x.dtype), weights, x)
        y = layer(x)
        (y * y).sum().backward()
        found[kind] = y, [array(w.grad).astype(np.float64) for w in layer.weights]
    limits = (1e-5, 1e-5) if device == "wgpu" else (1e-12, 1e-10)
    assert_close(found["cudnngru"][0], found["gru"][0], limits[0])
    for got, want in zip(ag.rnn.convert(found["cudnngru"][1], source="cudnn_gru", target="keras"), found["gru"][1], strict=True):
        assert_close(ag.tensor(got), want, limits[1])
    assert (ag.rnn.convert([file[f"gru_{k}"] for k in ("kernel", "recurrent_kernel", "bias")], source="keras", target="cudnn")["params"] == file["cudnn_params_flat"]).all()


def cudnn_lstm_weights(kernel, recurrent, bias):
    """LSTM's weights as CuDNNLSTM's: every block's memory reinterpreted, as the spec says."""
    blocks = lambda a, shape: np.concatenate([np.ascontiguousarray(b.T).reshape(shape) for b in np.split(a, 4, 1)], 1)
    units = len(recurrent)
    return [blocks(kernel, (len(kernel), units)), blocks(recurrent, (units, units)), np.concatenate([bias, np.zeros_like(bias)])]


@pytest.mark.parametrize("kind", ["LSTM", "CuDNNLSTM", "SimpleRNN"])
def test_others_are_pytorchs(kind, device):
    """The other cells against PyTorch's values."""
    case = Case("torch_rnn_tanh_uni_1l" if kind == "SimpleRNN" else "torch_lstm_uni_1l", device)
    state = {k.removeprefix("param."): v for k, v in case.file.items() if k.startswith("param.")}
    if kind == "SimpleRNN":
        weights = [state["weight_ih_l0"].T, state["weight_hh_l0"].T, state["bias_ih_l0"] + state["bias_hh_l0"]]
    else:
        weights = ag.rnn.convert(state, source="torch", target="keras")
        weights = cudnn_lstm_weights(*weights) if kind == "CuDNNLSTM" else weights
    x, states = case.tensor(case["x"]), [case.tensor(case[s][0]) for s in ("h0", "c0") if s in case]
    layer = getattr(layers, kind)(len(weights[1]), return_sequences=True, return_state=True, time_major=True, dtype=x.dtype)
    y, *ends = loaded(layer, weights, x)(x, initial_state=states)
    case.close(y, "y")
    total = (y * case.tensor(case["dy"], False)).sum()
    for end, s in zip(ends, "hc"):
        case.close(end, case[s + "n"][0])
        total = total + (end * case.tensor(case[f"d{s}n"][0], False)).sum()
    total.backward()
    case.close(x.grad, "grad_x", True)
    for state0, s in zip(states, "hc"):
        case.close(state0.grad, case[f"grad_{s}0"][0], True)
    if kind != "CuDNNLSTM":
        case.close(layer.weights[0].grad, case["grad.weight_ih_l0"].T, True)
        case.close(layer.weights[1].grad, case["grad.weight_hh_l0"].T, True)


# -- errors and behaviour, in Keras' words --------------------------------------------------------------------

X = rng(2, 5, 3).astype(np.float32)
STATE = np.ones((2, 4), np.float32)


def built(**options):
    layer = layers.CuDNNGRU(4, **options)
    layer.build((2, 5, 3))
    return layer


# Keras' situation: (what to do, words that its message and ours share)
ERRORS = {
    "CuDNNGRU.reset_states, stateful=False": (lambda: built().reset_states(), "Layer must be stateful."),
    "CuDNNGRU.reset_states before build, stateful=True": (lambda: layers.CuDNNGRU(4, stateful=True).reset_states(), "it needs to know its batch size"),
    "CuDNNGRU stateful build with unknown batch": (lambda: layers.CuDNNGRU(4, stateful=True).build((None, 5, 3)), "it needs to know its batch size"),
    "reset_states(wrong shape)": (lambda: built(stateful=True).reset_states(np.ones((3, 4))), "State 0 is incompatible with layer cu_dnngru"),
    "reset_states(two arrays)": (lambda: built(stateful=True).reset_states([STATE, STATE]), "expects 1 states, but it received 2 state values"),
    "reset_states(python list of floats)": (lambda: built(stateful=True).reset_states(STATE.tolist()), "expects 1 states, but it received 8 state values"),
    "reset_states(string array)": (lambda: built(stateful=True).reset_states(np.full((2, 4), "a")), "could not convert string to float"),
    "CuDNNGRU call with mask": (lambda: built()(X, mask=np.ones((2, 5), bool)), "Masking is not supported for CuDNN RNNs."),
    "CuDNNGRU call 2-D input": (lambda: layers.CuDNNGRU(4)(X[:, 0]), "expected ndim=3, found ndim=2. Full shape received: (2, 3)"),
    "CuDNNGRU wrong number of initial states": (lambda: built()(X, initial_state=[STATE, STATE]), "not compatible with `cell.state_size`"),
    "CuDNNGRU(units=-1)": (lambda: layers.CuDNNGRU(-1)(X), "Dimension -1 must be >= 0"),
    "GRU(units=0)": (lambda: layers.GRU(0), "expected a positive integer, got 0."),
    "CuDNNGRU(activation='relu')": (lambda: layers.CuDNNGRU(4, activation="relu"), "Keyword argument not understood:"),
    "CuDNNGRU(dropout=.1)": (lambda: layers.CuDNNGRU(4, dropout=0.1), "Keyword argument not understood:"),
    "CuDNNGRU(kernel_initializer='nope')": (lambda: layers.CuDNNGRU(4, kernel_initializer="nope"), "Unknown initializer: 'nope'."),
    "tf_keras stateful wrong batch": (lambda: built(stateful=True)(rng(3, 5, 3)), "expected shape=(2, None, 3), found shape=(3, 5, 3)"),
}


@pytest.mark.parametrize("situation", ERRORS)
def test_errors_are_keras(situation):
    act, words = ERRORS[situation]
    kind, _, text = BEHAVIOUR["errors"][situation].partition(": ")
    assert words in text
    with pytest.raises(Exception) as caught:
        act()
    assert type(caught.value).__name__ == kind
    assert words in str(caught.value)


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match=r"expected shape=\(2, 4\) but found shape=\(2, 3\)"):
        built(stateful=True).reset_states(np.full((2, 3), "1"))  # strings have a shape too
    with pytest.raises(TypeError, match="Keyword argument not understood: 'zero_output_for_mask'"):
        layers.CuDNNGRU(4, zero_output_for_mask=True)
    both = layers.Bidirectional(layers.CuDNNGRU(4, return_sequences=True))
    assert layers.CuDNNGRU.from_config(both.forward_layer.get_config()).units == 4


@pytest.mark.parametrize("situation", ["list input [x, h0, h1]", "initial_state wrong width"])
def test_initial_state_errors_are_keras(situation):
    assert "ValueError: An `initial_state` was passed that is not compatible with `cell.state_size`" in GRAPH[situation]
    call = (lambda: built()([X, STATE, STATE])) if "list" in situation else lambda: built()(X, initial_state=np.ones((2, 5)))
    with pytest.raises(ValueError, match=r"An `initial_state` was passed .* `cell.state_size` is \[4\]"):
        call()


def test_what_keras_accepts():
    """units=0, implementation, and states of other kinds of numbers."""
    assert BEHAVIOUR["errors"]["CuDNNGRU(units=0)"].startswith("no error")
    assert layers.CuDNNGRU(0, implementation=2)(X).shape == (2, 0)
    layer = built(stateful=True)
    for state in STATE.astype(np.float64), STATE.astype(int), STATE.astype(complex), [STATE], ag.tensor(STATE):
        layer.reset_states()
        layer.reset_states(state)
        assert (array(layer.states[0]) == STATE).all() and layer.states[0].dtype is ag.float32


@pytest.mark.parametrize("kind", KINDS)
def test_reset_states_before_the_first_call_sets_them(kind, device):
    """Keras ignores the values then. The call that builds the layer says where it is to be."""
    x = ag.tensor(X, device=device)
    layer = getattr(layers, kind)(4, stateful=True, batch_input_shape=(2, 5, 3), return_sequences=True)
    state = [ag.tensor(STATE, device=device)] * len(layer.states)
    layer.reset_states([STATE] * len(state))
    y = layer(x)
    twin = getattr(layers, kind)(4, return_sequences=True, weights=layer.get_weights())
    assert_close(y, array(twin(x, initial_state=state)), 1e-6)
    assert all(s.device == x.device for s in layer.states)


def test_a_stateful_cell_without_weights(device):
    class Count:
        state_size = 1

        def call(self, x, states):
            return x, [states[0] + x[:, :1]]

    layer = layers.RNN(Count(), stateful=True)
    x = ag.ones(2, 5, 3, device=device)
    layer(x)
    layer(x)
    assert (array(layer.states[0]) == 10).all()


def test_states_and_cell():
    assert GRAPH["states (not stateful)"] == "[None]" and layers.CuDNNGRU(4).states == [None]
    assert layers.LSTM(4).states == [None, None]
    assert layers.CuDNNGRU(4).cell._fields == ("state_size",) and layers.CuDNNGRU(4).cell.state_size == 4
    assert [s.shape for s in built(stateful=True).states] == [(2, 4)]
    supports = BEHAVIOUR["errors"]["mask + cell: supports_masking"]
    assert (layers.GRU(4).supports_masking, layers.CuDNNGRU(4).supports_masking) == (supports["GRU"], supports["CuDNNGRU"])
    with pytest.raises(AttributeError):
        layers.SimpleRNN(4).recurrent_activation


def test_first_states_by_priority():
    """The inputs' list, then initial_state, then what is stored."""
    layer = built(stateful=True)
    layer.reset_states(2 * STATE)
    by_stored = array(layer(X))
    given = array(layer(X, initial_state=STATE))
    assert np.abs(by_stored - given).max() > 1e-3
    assert (array(layer([X, STATE], initial_state=5 * STATE)) == given).all()
    assert BEHAVIOUR["stateful + initial_state twice: |out1-out2|"]["keras3"] == 0
    assert (array(layer(X, initial_state=STATE)) == given).all()


@pytest.mark.parametrize("name", ["keras_gru_after_f64", "keras_gru_before_f64", "keras_gru_before_nobias_f64", "keras_bigru_f64"])
def test_load_keras_builds_the_layer(name):
    case = Case(name, "cpu")
    ways = ("fwd_", "bwd_") if "bi" in name.split("_")[1] else ("",)
    weights = [case[w + k] for w in ways for k in ("kernel", "recurrent_kernel", "bias") if w + k in case]
    layer = ag.rnn.load_keras(weights, reset_after=False if "nobias" in name else None, return_sequences=True)
    case.close(layer(case["x"], initial_state=case.file.get("h0")), "y")
    if "nobias" in name:
        with pytest.raises(ValueError, match="either family"):
            ag.rnn.load_keras(weights)


# -- config, weights, shapes ------------------------------------------------------------------------------------


def test_config_has_keras_keys():
    fused = layers.CuDNNGRU(4, name="c", return_state=True, kernel_regularizer="l2", recurrent_constraint="max_norm").get_config()
    plain = layers.GRU(4, name="g").get_config()
    for ours, theirs in (fused, BEHAVIOUR["CuDNNGRU.get_config"]), (plain, BEHAVIOUR["GRU.get_config (tf_keras)"]):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            if isinstance(value, dict):
                assert ours[key]["class_name"] == value["class_name"]
                assert ours[key]["config"] == pytest.approx(value["config"])
            else:
                assert ours[key] == value, key
    again = layers.CuDNNGRU.from_config(BEHAVIOUR["CuDNNGRU.get_config"])  # as Keras wrote it
    assert again.get_config()["recurrent_constraint"]["config"] == {"max_value": 2, "axis": 0}
    assert layers.GRU.from_config(BEHAVIOUR["GRU.get_config (tf_keras)"]).get_config() == plain


FULL = {"kernel_initializer": "he_normal", "bias_regularizer": "l1", "recurrent_constraint": "unit_norm", "activity_regularizer": "l2"}
FULL |= {"return_sequences": True, "return_state": True, "go_backwards": True, "stateful": True, "time_major": True, "trainable": False}
SPECIFIC = {"GRU": {"activation": "relu", "recurrent_activation": "hard_sigmoid", "use_bias": False, "dropout": 0.1, "recurrent_dropout": 0.2, "seed": 3,
                    "reset_after": False, "implementation": 1, "unroll": True, "zero_output_for_mask": True, "use_cudnn": False},
            "LSTM": {"activation": "softsign", "unit_forget_bias": False}, "SimpleRNN": {"activation": None}, "CuDNNLSTM": {"unit_forget_bias": False}}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_config_round_trip(kind):
    options = {**FULL, **SPECIFIC.get(kind, {})}
    layer = getattr(layers, kind)(4, **options)
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    assert again.get_config() == layer.get_config()
    for name in options:
        assert name in config
    assert not again.trainable and again.stateful


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("state", [False, True])
def test_shapes_and_masks(kind, sequences, state):
    layer = getattr(layers, kind)(4, return_sequences=sequences, return_state=state)
    found, wanted = layer(X), layer.compute_output_shape((2, 5, 3))
    assert (isinstance(found, list), isinstance(wanted, list)) == (state, state)
    found, wanted = (found, wanted) if state else ([found], [wanted])
    assert [tuple(t.shape) for t in found] == wanted
    if "LSTM" not in kind:
        assert [list(s) for s in wanted] == BEHAVIOUR["compute_output_shape"][f"seq={sequences:d},state={state:d}"]
        masks = layer.compute_mask(X, "ones:0")
        assert (masks if state else [masks]) == GRAPH["compute_mask"][f"seq={sequences},state={state}"]
    assert layer.compute_output_shape((None, None, 3)) is not None


def test_weights_are_keras():
    layer = built(kernel_regularizer="l2")
    assert [[name, list(w.shape), w.dtype.name] for name, w in layer.named_parameters()] == [
        [name.removesuffix(":0"), *rest] for name, *rest in BEHAVIOUR["CuDNNGRU weights"]
    ]
    layer.trainable = False
    counts = BEHAVIOUR["CuDNNGRU trainable=False"]
    assert (len(layer.trainable_weights), len(layer.non_trainable_weights)) == (counts["trainable"], counts["non_trainable"])
    assert layers.GRU(4).get_weights() == []
    bias = loaded(layers.GRU(4), [np.zeros(s) for s in ((3, 12), (4, 12), (2, 12))], X).weights[2]
    assert list(bias.shape) == BEHAVIOUR["GRU init bias shapes"]["reset_after_true"]


@pytest.mark.parametrize("kind", KINDS)
def test_initial_values(kind):
    """Glorot's bound on the whole kernel, orthonormal rows across all gates, zeros, and ones for forget gates."""
    ag.manual_seed(0)
    layer = getattr(layers, kind)(8, dtype="float64")
    layer.build((None, 5, 3))
    kernel, recurrent, bias = layer.get_weights()
    bound = np.sqrt(6 / sum(kernel.shape))
    assert 0.8 * bound < np.abs(kernel).max() <= bound
    assert np.abs(recurrent @ recurrent.T - np.eye(8)).max() < 1e-12
    ones = {"LSTM": slice(8, 16), "CuDNNLSTM": slice(40, 48)}.get(kind, slice(0))
    assert (bias[..., ones] == 1).all() and np.delete(bias.ravel(), range(bias.size)[ones]).any() == 0


def test_losses_of_every_output_and_where_they_come_from():
    layer = layers.CuDNNGRU(4, return_state=True, kernel_regularizer="l1", recurrent_regularizer="l1", bias_regularizer="l1", activity_regularizer="l1")
    y, _ = layer(X)
    assert len(GRAPH["losses"]) == len(layer.losses) == 5  # two outputs, three weights
    assert_close(layer.losses[0], array(y.abs().sum() * 0.01 / 2))
    assert len(layer.get_losses_for(None)) == len(GRAPH["get_losses_for(None)"])
    assert len(layer.get_losses_for(X)) == len(GRAPH["get_losses_for(x)"])
    assert layer.get_losses_for(np.ones((2, 5, 3))) == GRAPH["get_losses_for(unrelated)"]
    z = ag.tensor(X, requires_grad=True)
    layer(z * 2)
    assert len(layer.get_losses_for(z)) == 2 and layer.get_losses_for(X) == []
