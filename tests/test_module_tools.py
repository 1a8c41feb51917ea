"""Computed weights, parameter containers, backward hooks and summaries of modules. Numbers are PyTorch 2.13's."""

import copy
import math
import pickle

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn

U = nn.utils
NORM = (U.weight_norm, U.remove_weight_norm, {"bias", "weight_g", "weight_v"})
SPECTRAL = (U.spectral_norm, U.remove_spectral_norm, {"bias", "weight_orig", "weight_u", "weight_v"})


def wave(device, *shape):
    return ag.tensor(np.cos(np.arange(math.prod(shape)) * 0.61).reshape(shape), device=device, dtype="float64" if device == "cpu" else "float32")


def filled(module, device):
    module = module.double() if device == "cpu" else module.to(device)
    with ag.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(ag.tensor(0.5 * np.sin(np.arange(p.numel()) * 0.37 + i).reshape(p.shape)).to(p.dtype).to(device))
    return module


# what, layer, input, options: the sum of |y|, and the sums of |gradient| of the parameters
COMPUTED = {
    "linear": (NORM, lambda: nn.Linear(3, 2), (4, 3), {}, 5.80110536, [9.3264997, 13.4683115, 5.1540742]),
    "linear, one norm": (NORM, lambda: nn.Linear(3, 2), (4, 3), {"dim": None}, 5.80110536, [9.3264997, 10.5995796, 5.9152851]),
    "conv, dim 1": (NORM, lambda: nn.Conv1d(2, 3, 2), (1, 2, 5), {"dim": 1}, 5.99952411, [11.3690321, 3.8406407, 21.4655197]),
    "spectral": (SPECTRAL, lambda: nn.Linear(3, 2), (4, 3), {"n_power_iterations": 2}, 6.45791814, [9.5967906, 4.5884196]),
    "spectral, transposed": (SPECTRAL, lambda: nn.ConvTranspose1d(2, 3, 2), (1, 2, 5), {"n_power_iterations": 2}, 11.8749485, [21.5922257, 38.9792319]),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_weights(name, device):
    (install, remove, keys), build, shape, options, total, gradients = COMPUTED[name]
    tolerance = 1e-7 if device == "cpu" else 1e-5
    m = install(filled(build(), device), **options)
    assert set(m.state_dict()) == keys
    for key, buffer in m.named_buffers():
        with ag.no_grad():
            getattr(m, key).copy_(nn.functional.normalize(wave(device, *buffer.shape), dim=0))
    x = wave(device, *shape)
    y = m(x)
    (y * y).sum().backward()
    assert_close(y.abs().sum(), total, tolerance)
    for p, g in zip(m.parameters(), gradients, strict=True):
        assert_close(p.grad.abs().sum(), g, tolerance)
    m.eval()
    want = m(x)
    remove(m)
    assert set(m.state_dict()) == {"weight", "bias"} and not m._pre_hooks and isinstance(m.weight, nn.Parameter)
    assert_close(m(x), want, tolerance)


def test_computed_weights_train_and_refuse():
    ag.manual_seed(0)  # twenty iterations reach 1e-4 unless two singular values nearly agree
    m = U.spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
    m(ag.ones(1, 4))
    assert abs(np.linalg.svd(array(m.weight))[1][0] - 1) < 1e-4
    before = array(m.eval().weight_u).copy()
    m(ag.ones(1, 4))
    assert np.array_equal(before, array(m.weight_u))
    for kind, text, call in (
        (ValueError, "[weight_norm] Linear has no parameter 'kernel'", lambda: U.weight_norm(nn.Linear(2, 2), "kernel")),
        (ValueError, "[spectral_norm] Linear has no parameter 'weight'", lambda: U.spectral_norm(m)),
        (ValueError, "[spectral_norm] n_power_iterations must be positive; got 0", lambda: U.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)),
        (ValueError, "[remove_weight_norm] 'weight' of Linear is not computed by weight_norm", lambda: U.remove_weight_norm(m)),
    ):
        assert_raises(kind, text, call)


# -- parametrizations ---------------------------------------------------------------------------------------

P = U.parametrizations
ORIGINAL = "parametrizations.weight.original"
KEYS = {P.weight_norm: {"bias", ORIGINAL + "0", ORIGINAL + "1"}, P.spectral_norm: {"bias", ORIGINAL, "parametrizations.weight.0._u", "parametrizations.weight.0._v"}}


@pytest.mark.parametrize("install, options, total, gradients", [
    (P.weight_norm, {}, 5.80110536, [9.3264997, 13.4683115, 5.1540742]),
    (P.weight_norm, {"dim": None}, 5.80110536, [9.3264997, 10.5995796, 5.9152851]),
    (P.spectral_norm, {"n_power_iterations": 2}, 6.45800754, [9.5968274, 4.3529445]),
])  # fmt: skip
def test_parametrizations(install, options, total, gradients, device):
    tolerance = 1e-7 if device == "cpu" else 1e-5
    m = install(filled(nn.Linear(3, 2), device), **options)
    assert set(m.state_dict()) == KEYS[install] and U.parametrize.is_parametrized(m, "weight") and isinstance(m, nn.Linear)
    if install is P.spectral_norm:
        with ag.no_grad():
            m.parametrizations.weight[0]._u.copy_(ag.tensor([0.6, 0.8]).to(device))
            m.parametrizations.weight[0]._v.copy_(ag.tensor([0.6, 0.8, 0.0]).to(device))
    x = wave(device, 4, 3)
    y = m(x)
    (y * y).sum().backward()
    assert_close(y.abs().sum(), total, tolerance)
    for p, g in zip(m.parameters(), gradients, strict=True):
        assert_close(p.grad.abs().sum(), g, tolerance)
    m.eval()
    want, twin = m(x), copy.deepcopy(m)
    U.parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and set(m.state_dict()) == {"weight", "bias"}
    assert_close(m(x), want, tolerance)
    assert_close(twin(x), want, tolerance)


def test_a_parametrization_of_ones_own():
    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).mT

        def right_inverse(self, w):
            return w.triu()

    class Double(nn.Module):
        def forward(self, w):
            return w * 2

    m, register = nn.Linear(3, 3), U.parametrize.register_parametrization
    register(m, "weight", Symmetric())
    m.weight = ag.ones(3, 3)
    assert_close(m.weight, np.ones((3, 3)))
    register(m, "weight", Double())
    assert_close(m.weight, np.full((3, 3), 2.0))
    with pytest.raises(RuntimeError, match="Double has no right_inverse"):
        m.weight = ag.ones(3, 3)
    with pytest.raises(RuntimeError, match="save its state_dict"):
        pickle.dumps(m)
    U.parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    assert_close(m.weight, np.triu(np.ones((3, 3))))
    for kind, text, call in (
        (ValueError, "[register_parametrization] Linear has no parameter 'kernel'", lambda: register(m, "kernel", Double())),
        (TypeError, "[register_parametrization] expected a Module; got function", lambda: register(m, "weight", lambda w: w)),
        (ValueError, "[remove_parametrizations] 'weight' of Linear is not parametrized", lambda: U.parametrize.remove_parametrizations(m, "weight")),
        (ValueError, "[remove_parametrizations] there are several originals", lambda: U.parametrize.remove_parametrizations(P.weight_norm(nn.Linear(2, 2)), "weight", False)),
        (ValueError, "[spectral_norm] Linear has no parameter 'kernel'", lambda: P.spectral_norm(m, "kernel")),
        (ValueError, "[spectral_norm] n_power_iterations must be positive; got 0", lambda: P.spectral_norm(m, n_power_iterations=0)),
    ):
        assert_raises(kind, text, call)


# -- containers ---------------------------------------------------------------------------------------------


def test_parameter_list():
    own = nn.Parameter(ag.ones(2))
    params = nn.ParameterList([own, ag.zeros(3)])
    params.append(ag.ones(1))
    params += [ag.ones(4)]
    assert list(params.state_dict()) == ["0", "1", "2", "3"] and params[0] is own and params[-1].shape == (4,)
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in params) and len(params[1:3]) == 2
    params[1] = ag.ones(5)
    assert params[1].shape == (5,) and "(0): Parameter containing: [float32 of size 2]" in repr(params)
    assert_raises(IndexError, "[ParameterList] index 4 is out of range for 4 parameters", lambda: params[4])
    assert_raises(TypeError, "[ParameterList] holds tensors; got int", lambda: params.append(3))


def test_parameter_dict():
    params = nn.ParameterDict({"a": ag.ones(2)})
    params["b"] = ag.zeros(3)
    params.update({"c": ag.ones(1)})
    assert list(params.state_dict()) == ["a", "b", "c"] == list(params) and "b" in params and params.get("z") is None
    assert params.pop("a").shape == (2,) and len(params) == 2
    del params["b"]
    assert [k for k, _ in params.items()] == ["c"]
    twin = params.copy() | params.fromkeys(["d", "e"], ag.ones(4))
    assert list(reversed(twin)) == ["e", "d", "c"] and twin["c"] is params["c"] and twin.popitem()[0] == "e" and len(params) == 1
    assert params.setdefault("c", ag.zeros(9)).shape == (1,) and params.setdefault("f", ag.zeros(9)) is params["f"]
    assert repr(params).splitlines() == [
        "ParameterDict(", "    (c): Parameter containing: [float32 of size 1]", "    (f): Parameter containing: [float32 of size 9]", ")",
    ]  # fmt: skip


def test_sequential_is_added_repeated_and_popped():
    a, b = nn.Sequential(nn.ReLU(), nn.Linear(1, 1)), nn.Sequential(nn.Tanh())
    kinds = lambda s: [type(m).__name__ for m in s]
    assert kinds(a + b) == ["ReLU", "Linear", "Tanh"] and (a + b)[1] is a[1] and kinds(2 * b) == ["Tanh", "Tanh"]
    a += b
    b *= 3
    assert kinds(a) == ["ReLU", "Linear", "Tanh"] and len(b) == 3
    assert type(a.pop(0)).__name__ == "ReLU" and list(a.state_dict()) == ["0.weight", "0.bias"]
    assert type(nn.ModuleList(a).pop(-1)).__name__ == "Tanh"
    assert_raises(ValueError, "[Sequential] can be repeated a positive number of times; got 0", lambda: a * 0)
    assert_raises(TypeError, "unsupported operand", lambda: a + [nn.ReLU()])


# -- hooks --------------------------------------------------------------------------------------------------


def test_hooks_put_before_others():
    m, seen = nn.Linear(1, 1), []
    adders = (m.register_forward_pre_hook, m.register_forward_hook, m.register_full_backward_pre_hook, m.register_full_backward_hook)
    for kind, add in enumerate(adders):
        for name in "ab":
            add(lambda *_, kind=kind, name=name: seen.append((kind, name)), prepend=True)
    m(ag.ones(1, 1, requires_grad=True)).backward()
    assert seen == [(kind, name) for kind in range(4) for name in "ba"]


def test_backward_hooks(device):
    m, seen = nn.Linear(2, 2, device=device), []
    m.register_full_backward_pre_hook(lambda module, grad_output: seen.append(("before", grad_output[0].tolist())))
    handle = m.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output[0].tolist())))
    x = ag.ones(1, 2, device=device, requires_grad=True)
    m(x).sum().backward()
    assert seen[0] == ("before", [[1.0, 1.0]]) and seen[1][1] == [[1.0, 1.0]]
    assert_close(seen[1][0][0], array(m.weight).sum(0)[None])
    m(x.detach()).sum().backward()
    assert seen[3] == ((None,), [[1.0, 1.0]])
    handle.remove()
    m(x).sum().backward()
    assert len(seen) == 5


def test_backward_hooks_replace_gradients():
    class Both(nn.Module):
        def forward(self, a, n, b):
            return a * b, n

    m, a, b = Both(), ag.tensor([2.0], requires_grad=True), ag.tensor([3.0], requires_grad=True)
    m.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 10, grads[1]))
    m.register_full_backward_hook(lambda module, grads, _: (grads[0] + 1, None, None))
    y, n = m(a, 7, b)
    y.backward()
    assert n == 7 and a.grad.item() == 31 and b.grad is None
    m.register_full_backward_hook(lambda module, grads, _: (grads[0],))
    assert_raises(ValueError, "[Module] a backward hook returns as many gradients as grad_input has; got 1 for 3", lambda: m(a, 7, b)[0].backward())


# -- summary ------------------------------------------------------------------------------------------------


def test_summary(device):
    model = nn.Sequential(nn.Linear(3, 4, device=device), nn.BatchNorm1d(4, device=device), nn.Dropout(0.5))
    model[0].weight.requires_grad_(False)
    state = {k: array(v).copy() for k, v in model.state_dict().items()}
    table = ag.summary(model, (5, 3))
    assert [(x.name, x.kind, x.shape, x.parameters) for x in table] == [
        ("", "Sequential", (5, 4), 0), ("0", "Linear", (5, 4), 16), ("1", "BatchNorm1d", (5, 4), 8), ("2", "Dropout", (5, 4), 0),
    ]  # fmt: skip
    assert (table.parameters, table.trainable, table.parameter_bytes, table.output_bytes) == (24, 12, 96, 240)
    text = repr(table)
    assert "  0: Linear" in text and "24 parameters (12 trainable, 12 not), 96 bytes" in text
    assert model.training and all(np.array_equal(state[k], array(v)) for k, v in model.state_dict().items())
    assert not model._hooks and not model[0]._pre_hooks


def test_summary_of_other_inputs():
    table = ag.summary(nn.Sequential(nn.Embedding(10, 4), nn.GRU(4, 8)), (3, 2), dtype="int64")
    assert table[2].shape == ((3, 2, 8), (1, 2, 8))
    assert ag.summary(nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)])[0].shape == (5, 4)
    shared = nn.Linear(2, 2)
    assert ag.summary(nn.Sequential(shared, nn.ReLU(), shared), (1, 2)).parameters == 6
    assert_raises(TypeError, "[summary] expected a Module; got int", lambda: ag.summary(3, (1,)))
    assert_raises(ValueError, "[summary] one dtype, or one for each of 2 inputs; got 1", lambda: ag.summary(nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)], dtype=["float32"]))
    broken = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3))
    with pytest.raises(ValueError):
        ag.summary(broken, (1, 2))
    assert not broken[0]._hooks and broken.training


def test_modules_are_copied():
    m = nn.Linear(2, 2)
    assert copy.copy(m).weight is m.weight and copy.deepcopy(m).weight is not m.weight


def test_weight_norm_loads_its_old_keys():
    old, new = U.weight_norm(nn.Linear(2, 3)), nn.Sequential(P.weight_norm(nn.Linear(2, 3)))
    new.load_state_dict({f"0.{name}": value for name, value in old.state_dict().items()})
    assert_close(new(ag.ones(1, 2)), old(ag.ones(1, 2)))


@pytest.mark.parametrize("install", [U.weight_norm, U.spectral_norm])
def test_computed_weights_are_copied(install, device):
    m, x = install(nn.Linear(2, 3).to(device)), ag.ones(1, 2, device=device)
    m(x).sum().backward()
    m.eval()
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), ag.optim.swa_utils.AveragedModel(m)):
        assert_close(twin(x), m(x))
    assert m.weight.requires_grad
