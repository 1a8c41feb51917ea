"""Optimizers and schedules. Expected numbers were computed with PyTorch 2.13."""

import copy

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn, optim
from autograd.optim import lr_scheduler

START = [1.0, -2.0, 0.5]
GRADIENTS = [[0.1, -0.2, 3.0], [0.3, 0.0, -1.0], [0.0, 0.0, 0.5]]

# optimizer, options, the parameter after the three gradients
STEPS = [
    ("SGD", {"lr": 0.1}, [0.96, -1.98, 0.25]),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, [0.9159001, -1.9458001, -0.173]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}, [0.9032795, -1.863409, -0.2582501]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}, [0.8073099, -1.7750537, -0.3681748]),
    ("SGD", {"lr": 0.1, "weight_decay": 0.5, "maximize": True}, [0.8949, -1.7328, 0.6544375]),
    ("Adam", {"lr": 0.1}, [0.7372772, -1.7811984, 0.3194356]),
    ("Adam", {"lr": 0.1, "weight_decay": 0.5, "betas": (0.5, 0.9), "eps": 1e-3}, [0.7091427, -1.709794, 0.3428509]),
    ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)}, [0.7595572, -1.8378363, 0.3659454]),
    ("AdamW", {"lr": 0.1}, [0.7345718, -1.7754714, 0.318177]),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "eps": 1e-3, "maximize": True}, [1.1040908, -1.9191101, 0.5974318]),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6), "weight_decay": 0.3}, [0.680998, -1.6703573, 0.3286136]),
]


def parameter(device="cpu", dtype="float32", values=START):
    return nn.Parameter(ag.tensor(values, dtype=dtype, device=device))


def run(optimizer, p, gradients=GRADIENTS):
    for g in gradients:
        p.grad = ag.tensor(g, dtype=p.dtype, device=p.device)
        optimizer.step()


@pytest.mark.parametrize(("name", "options", "want"), STEPS)
def test_steps(name, options, want, device):
    p = parameter(device)
    before = p._version
    run(getattr(optim, name)([p], **options), p)
    assert_close(p, want, 3e-6)
    assert p.is_leaf and p.requires_grad and p._version > before


@pytest.mark.parametrize(("name", "options", "want"), STEPS)
def test_devices_agree_over_100_steps(name, options, want, wgpu):
    random = np.random.default_rng(0)
    start, gradients = random.standard_normal(7).astype(np.float32), random.standard_normal((100, 7)).astype(np.float32)
    found = []
    for device in ("cpu", wgpu):
        p = parameter(device, values=start)
        run(getattr(optim, name)([p], **options), p, gradients)
        found.append(array(p))
    np.testing.assert_allclose(found[1], found[0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_float16_keeps_float32_state(name, device):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    narrow, wide = parameter(device, "float16"), parameter(device)
    optimizer = getattr(optim, name)([narrow], **options)
    run(optimizer, narrow)
    run(getattr(optim, name)([wide], **options), wide)
    assert_close(narrow, array(wide), 3e-3)
    assert all(v.dtype is ag.float32 for v in optimizer.state[narrow].values() if isinstance(v, ag.Tensor))


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_large_and_strided_parameters(name, device):
    random = np.random.default_rng(0)
    values, g = (random.standard_normal((300, 130)).astype(np.float32) for _ in range(2))
    whole = parameter(device, values=values)
    turned = nn.Parameter(ag.tensor(values.T.copy(), device=device).T)
    assert not turned.is_contiguous()
    for p in (whole, turned):
        run(getattr(optim, name)([p], lr=0.1, weight_decay=0.1), p, [g, 2 * g])
    assert_close(turned, array(whole), 1e-6)
    assert np.abs(array(whole) - values).min() > 0


def test_gradients_of_none_and_zero(device):
    for make in (lambda q: optim.AdamW(q, lr=0.1, weight_decay=0.1), lambda q: optim.SGD(q, lr=0.1, momentum=0.9, weight_decay=0.1)):
        a, b = parameter(device), parameter(device)
        optimizer = make([a, b])
        b.grad = ag.zeros(3, device=device)
        optimizer.step()
        assert_close(a, START)
        assert (np.abs(array(b)) < np.abs(START)).all()
        assert list(optimizer.state) == [b]
        optimizer.zero_grad(set_to_none=False)
        assert array(b.grad).tolist() == [0, 0, 0]
        optimizer.zero_grad()
        assert b.grad is None


def test_closure():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with ag.no_grad():
        assert optimizer.step(closure).item() == 5.25
    assert_close(p, [0.8, -1.6, 0.4])


def test_groups():
    a, b = parameter(), parameter()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    for p in (a, b):
        p.grad = ag.ones(3)
    optimizer.step()
    assert_close(a, [0.9, -2.1, 0.4])
    assert_close(b, [0, -3, -0.5])
    c = parameter()
    optimizer.add_param_group({"params": [c], "momentum": 0.5})
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0, 0.5]
    assert "lr: 1.0" in repr(optimizer)


REFUSED = [
    (ValueError, "no parameters", lambda p: optim.SGD([])),
    (ValueError, "without parameters", lambda p: optim.SGD([{"params": []}])),
    (TypeError, "list", lambda p: optim.SGD(p)),
    (TypeError, "float", lambda p: optim.SGD([1.0])),
    (ValueError, "leaves", lambda p: optim.SGD([p * 2])),
    (ValueError, "twice", lambda p: optim.SGD([p, p])),
    (ValueError, "twice", lambda p: optim.SGD([{"params": [p]}, {"params": [p]}])),
    (ValueError, "momentun", lambda p: optim.SGD([{"params": [p], "momentun": 0.9}])),
    (TypeError, "betaz", lambda p: optim.Adam([p], betaz=(0, 0))),
    (ValueError, "lr must be", lambda p: optim.Adam([p], lr=-1.0)),
    (TypeError, "lr is a number", lambda p: optim.Adam([p], lr="0.1")),
    (ValueError, "betas must be", lambda p: optim.AdamW([p], betas=(0.9, 1.0))),
    (ValueError, "weight_decay", lambda p: optim.AdamW([p], weight_decay=-0.1)),
    (ValueError, "nesterov", lambda p: optim.SGD([p], nesterov=True)),
]


@pytest.mark.parametrize(("kind", "text", "function"), REFUSED)
def test_refused(kind, text, function):
    assert_raises(kind, text, lambda: function(parameter()))


def test_wrong_gradients():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = ag.ones(1)
    assert_raises(ValueError, "(1,)", optimizer.step)
    assert_close(p, START)


@pytest.mark.parametrize(("name", "options", "want"), STEPS)
def test_resume_is_exact(name, options, want, device, tmp_path):
    p = parameter(device)
    optimizer = getattr(optim, name)([p], **options)
    run(optimizer, p, GRADIENTS[:2])
    ag.save({"p": p, "o": optimizer.state_dict()}, tmp_path / "o")
    run(optimizer, p, GRADIENTS[2:])
    saved = ag.load(tmp_path / "o")
    q = nn.Parameter(saved["p"].to(device))
    resumed = getattr(optim, name)([q], lr=123.0, **({"momentum": 0.9} if "nesterov" in options else {}))
    resumed.load_state_dict(saved["o"])
    run(resumed, q, GRADIENTS[2:])
    assert (array(q) == array(p)).all()


def test_load_state_dict_refuses():
    p, q = parameter(), parameter(values=[1.0])
    optimizer = optim.Adam([p])
    run(optimizer, p)
    state = copy.deepcopy(optimizer.state_dict())
    assert list(state["state"]) == [0] and state["state"][0]["step"] == 3 and state["param_groups"][0]["params"] == [0]
    cases = (
        ("must have [2] parameters; got [1]", optim.Adam([p, q])),
        ("exp_avg must have shape (1,)", optim.Adam([q])),
        ("unknown options", optim.SGD([p], lr=0.1)),
    )
    for text, other in cases:
        before = copy.deepcopy(other.state_dict())
        assert_raises(ValueError, text, lambda other=other: other.load_state_dict(state))
        assert other.state_dict() == before
    state["state"][0]["step"] = ag.tensor(3.0)  # as PyTorch keeps it
    optimizer.load_state_dict(state)
    assert optimizer.state[p]["step"] == 3


def test_one_dispatch_a_parameter(wgpu):
    parameters = [parameter(wgpu) for _ in range(3)]
    for optimizer in (optim.AdamW(parameters), optim.Adam(parameters, weight_decay=0.1), optim.SGD(parameters, lr=0.1, momentum=0.9)):
        for _ in range(3):
            for p in parameters:
                p.grad = ag.tensor([1.0, 1.0, 1.0], device=wgpu)  # ones() would wait to be filled until it is needed
            ag.wgpu.synchronize()
            ag.wgpu.reset_stats()
            optimizer.step()
            ag.wgpu.synchronize()
        stats = ag.wgpu.stats()
        assert (stats["dispatches"], stats["bytes_downloaded"], stats["pipelines"]) == (2 if isinstance(optimizer, optim.Adam) else 3, 0, 0)


# -- schedules ------------------------------------------------------------------------------------------

SCHEDULES = {
    "StepLR": (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]),
    "MultiStepLR": (lambda o: lr_scheduler.MultiStepLR(o, [3, 1, 3], 0.1), [1, 0.1, 0.1, 0.001, 0.001, 0.001, 0.001, 0.001]),
    "ExponentialLR": (lambda o: lr_scheduler.ExponentialLR(o, 0.9), [0.9**k for k in range(8)]),
    "CosineAnnealingLR": (lambda o: lr_scheduler.CosineAnnealingLR(o, 3), [1, 0.75, 0.25, 0, 0.25, 0.75, 1, 0.75]),
    "LambdaLR": (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), [1 / k for k in range(1, 9)]),
    "LinearLR": (lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 3), [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    make, want = SCHEDULES[name]

    def fresh():
        optimizer = optim.SGD([{"params": parameter(), "lr": 1.0}, {"params": parameter()}], lr=0.5)
        return optimizer, make(optimizer)

    optimizer, schedule = fresh()
    found, saved = [], None
    for k in range(8):
        found.append([g["lr"] for g in optimizer.param_groups])
        assert schedule.get_last_lr() == found[-1]
        if k == 3:
            saved = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(found, np.outer(want, [1, 0.5]), rtol=1e-12, atol=1e-15)
    optimizer, schedule = fresh()
    optimizer.load_state_dict(saved[0])
    schedule.load_state_dict(saved[1])
    for rates in found[3:]:
        assert [g["lr"] for g in optimizer.param_groups] == rates
        optimizer.step()
        schedule.step()


def test_schedules_chain_and_check(tmp_path):
    optimizer = optim.SGD([parameter()], lr=1.0)
    warm, decay = lr_scheduler.LinearLR(optimizer, 0.5, 1.0, 2), lr_scheduler.ExponentialLR(optimizer, 0.5)
    rates = []
    for _ in range(4):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        warm.step()
        decay.step()
    np.testing.assert_allclose(rates, [0.5, 0.375, 0.25, 0.125])
    optimizer.param_groups[0].update(lr=1.0, initial_lr=1.0)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 3, eta_min=0.1)
    for want in (0.775, 0.325, 0.1, 0.325):
        cosine.step()
        assert optimizer.param_groups[0]["lr"] == pytest.approx(want)
    ag.save(warm.state_dict(), tmp_path / "s")
    assert ag.load(tmp_path / "s") == warm.state_dict()
    assert_raises(ValueError, "expected the entries", lambda: decay.load_state_dict(warm.state_dict()))
    assert_raises(TypeError, "an Optimizer", lambda: lr_scheduler.StepLR(parameter(), 2))
    assert_raises(ValueError, "step_size", lambda: lr_scheduler.StepLR(optimizer, 0))
    assert_raises(ValueError, "one a group", lambda: lr_scheduler.LambdaLR(optimizer, []))
    with pytest.warns(UserWarning, match="skips the first rate"):
        lr_scheduler.StepLR(optim.SGD([parameter()], lr=1.0), 2).step()
    going_on = optim.SGD([{"params": parameter(), "initial_lr": 1.0}], lr=0.25)
    assert lr_scheduler.StepLR(going_on, 2, 0.5, last_epoch=4).last_epoch == 5
    assert_raises(KeyError, "initial_lr", lambda: lr_scheduler.StepLR(optim.SGD([parameter()], lr=1.0), 2, last_epoch=4))
