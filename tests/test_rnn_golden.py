"""Recurrent layers against values that PyTorch, TensorFlow and Keras computed (tests/golden), forward and gradients."""

from pathlib import Path

import numpy as np
import pytest
from helpers import array

import autograd as ag
from autograd import nn
from autograd.ops.rnn import layer
from autograd.ops.rnn_layouts import READERS, WRITERS, Form, Part

GOLDEN = Path(__file__).parent / "golden"
# |got - want| / max(1, |want|): (forward, gradient), of float64 on the CPU, float32 there, float32 on wgpu
LIMITS = {"float64": (1e-12, 1e-10), "float32": (2e-6, 5e-6), "wgpu": (5e-6, 5e-5)}


def names(pattern, without=()):
    return sorted(p.stem for p in GOLDEN.glob(pattern + ".npz") if not any(w in p.stem for w in without))


class Case:
    """A golden file's arrays, as tensors on one device, in float32 there if it has no float64."""

    def __init__(self, name, device):
        self.file = dict(np.load(GOLDEN / f"{name}.npz"))
        self.device = device
        kinds = {a.dtype.name for a in self.file.values() if a.dtype.kind == "f"}
        self.limits = LIMITS["wgpu" if device == "wgpu" else "float32" if kinds == {"float32"} else "float64"]

    def __contains__(self, name):
        return name in self.file

    def __getitem__(self, name):
        return self.file[name]

    def tensor(self, values, grad=True):
        values = np.asarray(values)
        if values.dtype.kind == "f" and self.device == "wgpu":
            values = values.astype(np.float32)
        return ag.tensor(values, device=self.device, requires_grad=grad and values.dtype.kind == "f")

    def close(self, got, name, gradient=False):
        want = self[name] if isinstance(name, str) else name
        got, want = array(got).astype(np.float64), want.astype(np.float64)
        assert got.shape == want.shape, name
        error = np.abs(got - want) / np.maximum(1, np.abs(want))
        assert error.max(initial=0) <= self.limits[gradient], (name, error.max())


# -- PyTorch ------------------------------------------------------------------------------------------------

TORCH = names("torch_*", without=("cell",))


def torch_module(case, name):
    state = {k.removeprefix("param."): v for k, v in case.file.items() if k.startswith("param.")}
    if "_rnn_" in name:
        inputs, units = state["weight_ih_l0"].shape[1], state["weight_hh_l0"].shape[1]
        layers = sum(k.startswith("weight_hh") and not k.endswith("reverse") for k in state)
        module = nn.RNN(inputs, units, layers, "relu" if "relu" in name else "tanh", bidirectional="weight_hh_l0_reverse" in state, dtype=ag.float64)
        module.load_state_dict({k: ag.tensor(v) for k, v in state.items()})
    else:
        module = ag.rnn.load_torch(state, batch_first="batchfirst" in name)
    return (module.float() if case.device == "wgpu" else module).to(case.device)


@pytest.mark.parametrize("name", TORCH)
def test_modules_are_pytorchs(name, device):
    case = Case(name, device)
    module = torch_module(case, name)
    states = [case.tensor(case[s]) for s in ("h0", "c0") if s in case]
    x = case.tensor(case["x"])
    given = nn.utils.rnn.pack_padded_sequence(x, case["lengths"], enforce_sorted=False) if "lengths" in case else x
    y, last = module(given, states[0] if len(states) == 1 else tuple(states))
    if "lengths" in case:
        y, lengths = nn.utils.rnn.pad_packed_sequence(y, total_length=len(x))
        assert array(lengths).tolist() == case["lengths"].tolist()
    last = last if isinstance(last, tuple) else (last,)
    case.close(y, "y")
    total = (y * case.tensor(case["dy"], False)).sum()
    for end, want in zip(last, "hc"):
        case.close(end, want + "n")
        total = total + (end * case.tensor(case[f"d{want}n"], False)).sum()
    total.backward()
    case.close(x.grad, "grad_x", True)
    for state, want in zip(states, "hc"):
        case.close(state.grad, f"grad_{want}0", True)
    for key, p in module.named_parameters():
        case.close(p.grad, "grad." + key, True)


def cudnn_arguments(case, name):
    """(params, attributes, the gradient of params) from PyTorch's weights."""
    state = {k.removeprefix("param."): v for k, v in case.file.items() if k.startswith("param.")}
    suffixes = [k.removeprefix("weight_hh") for k in state if k.startswith("weight_hh")]
    skip = name.endswith("skip")

    def flat(prefix):
        found = []
        for end in suffixes:
            kinds = ("weight_ih", "weight_hh", "weight_hr")
            found += [case[prefix + k + end].ravel() for k in kinds if prefix + k + end in case and not (skip and k == "weight_ih" and "_l0" in end)]
        rows = len(state["weight_hh_l0"])
        zeros = np.zeros(rows)
        return np.concatenate(found + [case.file.get(prefix + k + end, zeros) for end in suffixes for k in ("bias_ih", "bias_hh")])

    mode = next(m for m in ("rnn_relu", "rnn_tanh", "lstm", "gru") if f"_{m}_" in name)
    attributes = {"rnn_mode": mode, "direction": "bidirectional" if any(e.endswith("reverse") for e in suffixes) else "unidirectional"}
    attributes |= {"input_mode": "skip_input" if skip else "linear_input", "time_major": "batchfirst" not in name}
    attributes["num_proj"] = len(state["weight_hr_l0"]) if "weight_hr_l0" in state else 0
    return flat("param."), attributes, None if "nobias" in name else flat("grad.")


@pytest.mark.parametrize("name", TORCH)
def test_cudnn_rnn_is_pytorchs(name, device):
    case = Case(name, device)
    params, attributes, wanted = cudnn_arguments(case, name)
    turn = (lambda a: a) if attributes["time_major"] else (lambda a: np.swapaxes(a, 0, 1))
    x, h0, flat = case.tensor(case["x"]), case.tensor(turn(case["h0"]).copy()), case.tensor(params.astype(case["x"].dtype))
    c0 = case.tensor(case["c0"]) if "c0" in case else None
    lengths = case.file.get("lengths")
    y, hn, cn, reserve = ag.rnn.cudnn_rnn(x, h0, c0, flat, lengths, **attributes)
    case.close(y, "y")
    case.close(hn, turn(case["hn"]))
    if c0 is not None:
        case.close(cn, "cn")
    else:
        assert cn.shape == ()
    dy, dhn = case.tensor(case["dy"], False), case.tensor(turn(case["dhn"]).copy(), False)
    dcn = case.tensor(case["dcn"], False) if c0 is not None else None
    total = (y * dy).sum() + (hn * dhn).sum() + (0 if c0 is None else (cn * dcn).sum())
    total.backward()
    alone = ag.rnn.cudnn_rnn_backprop(x, h0, c0, flat, lengths, y, hn, cn, dy, dhn, dcn, reserve, **attributes)
    for grads in (x.grad, h0.grad, None if c0 is None else c0.grad, flat.grad), alone:
        case.close(grads[0], "grad_x", True)
        case.close(grads[1], turn(case["grad_h0"]), True)
        if c0 is not None:
            case.close(grads[2], "grad_c0", True)
        if wanted is not None:
            case.close(grads[3], wanted, True)


def test_gru_cell_is_pytorchs(device):
    case = Case("torch_grucell_step", device)
    cell = nn.GRUCell(4, 5, dtype=ag.float64)
    cell.load_state_dict({k.removeprefix("param."): ag.tensor(v) for k, v in case.file.items() if k.startswith("param.")})
    cell = (cell.float() if device == "wgpu" else cell).to(device)
    x, h = case.tensor(case["x"]), case.tensor(case["h"])
    new = cell(x, h)
    case.close(new, "h_new")
    new.backward(case.tensor(case["d_h"], False))
    case.close(x.grad, "grad_x", True)
    case.close(h.grad, "grad_h", True)
    for key, p in cell.named_parameters():
        case.close(p.grad, "grad." + key, True)


# -- TensorFlow ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tf_gru_block_a", "tf_gru_block_b"])
def test_block_cell_is_tensorflows(name, device):
    case = Case(name, device)
    inputs = [case.tensor(case[k]) for k in ("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c")]
    outputs = ag.rnn.gru_block_cell(*inputs)
    for got, want in zip(outputs, ("r", "u", "c", "h")):
        case.close(got, want)
    d_h = case.tensor(case["d_h"], False)
    grads = ag.rnn.gru_block_cell_grad(*inputs, *[case.tensor(case[k]) for k in "ruc"], d_h)
    for got, want in zip(grads, ("d_x", "d_h_prev", "d_c_bar", "d_r_bar_u_bar")):
        case.close(got, want, True)
    outputs[3].backward(d_h)
    case.close(inputs[0].grad, "d_x", True)
    case.close(inputs[1].grad, "d_h_prev", True)


def test_block_cell_over_time_is_tensorflows(device):
    case = Case("tf_gru_block_seq", device)
    x, h0, *weights = (case.tensor(case[k]) for k in ("x", "h0", "w_ru", "w_c", "b_ru", "b_c"))
    h, states = h0, []
    for step in x.unbind(0):
        h = ag.rnn.gru_block_cell(step, h, *weights)[3]
        states.append(h)
    y = ag.stack(states)
    case.close(y, "y")
    y.backward(case.tensor(case["dy"], False))
    case.close(x.grad, "grad_x", True)
    case.close(h0.grad, "grad_h0", True)


def through_core(case, source, weights, gradients, **options):
    """The core with weights of one layout: y, hn and every gradient, the weights' in the same layout."""
    form = READERS[source](weights)
    form.family = form.family or ("after" if "after" in case.name else "before")
    (part,) = form.parts
    count, units, _ = part.w.shape
    x = case.tensor(np.swapaxes(case["x"], 0, 1).copy())
    h0 = case.tensor(case["h0"])
    flat = [None if a is None else case.tensor(a.reshape(count * units, *a.shape[2:])) for a in (part.w, part.r, part.b, part.c)]
    y, hn, _ = layer({"after": "gru", "before": "gru_before"}[form.family], x, h0, *flat, **options)
    y = y.transpose(0, 1)
    turned = y.flip(1) if options.get("reverse") else y
    case.close(turned, "y")
    case.close(hn, "hn")
    ((turned * case.tensor(case["dy"], False)).sum() + (hn * case.tensor(case["dhn"], False)).sum()).backward()
    case.close(x.grad.transpose(0, 1), "grad_x", True)
    case.close(h0.grad, "grad_h0", True)
    grads = [None if t is None else array(t.grad).reshape(a.shape) for t, a in zip(flat, (part.w, part.r, part.b, part.c))]
    found = WRITERS[source](Form(form.family, [Part(*grads)]))
    for got, want in zip(found.values() if isinstance(found, dict) else found, gradients):
        case.close(got, want, True)


@pytest.mark.parametrize("name", names("tf_rnncell_*"))
def test_core_is_tensorflows_gru_cell(name, device):
    case = Case(name, device)
    case.name = name
    keys = ("w_ru", "w_c", "b_ru", "b_c")
    through_core(case, "tf_block", {k: case[k] for k in keys}, ["grad_" + k for k in keys], lengths=case.file.get("lengths"))


@pytest.mark.parametrize("name", names("keras_gru_*"))
def test_core_is_keras(name, device):
    case = Case(name, device)
    case.name = name
    keys = [k for k in ("kernel", "recurrent_kernel", "bias") if k in case]
    options = {"reverse": "goback" in name}
    if "mask" in case:
        options |= {"mask": case["mask"].T, "padding": "zero" if "zero" in name else "repeat"}
    if "hardsig" in name:
        options["gate_activation"] = "hard_sigmoid"
    through_core(case, "keras", [case[k] for k in keys], ["grad_" + k for k in keys], **options)


def test_layouts_are_keras_own():
    """One GRU's weights in three layouts, converted by Keras' own code."""
    file = np.load(GOLDEN / "keras_cudnn_layout.npz")
    plain, fused = ([file[f"{kind}_{k}"] for k in ("kernel", "recurrent_kernel", "bias")] for kind in ("gru", "cudnngru"))
    flat = file["cudnn_params_flat"]
    for got, want in zip(ag.rnn.convert(plain, source="keras", target="cudnn_gru"), fused):
        assert (got == want).all()
    for got, want in zip(ag.rnn.convert(fused, source="cudnn_gru", target="keras"), plain):
        assert (got == want).all()
    found = ag.rnn.convert(plain, source="keras", target="cudnn")
    assert (found["params"] == flat).all() and ag.rnn.cudnn_rnn_params_size(1, 4, 3, rnn_mode="gru") == 108
    for got, want in zip(ag.rnn.convert(found, source="cudnn", target="keras"), plain):
        assert (got == want).all()
