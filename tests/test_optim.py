"""Optimizers. Expected numbers were computed with PyTorch 2.13."""

import copy

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises
from optim_rows import GRADIENTS, START, STEPS

import autograd as ag
from autograd import nn, optim


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
    here, there = (after_100_steps(name, options, (7,), device) for device in ("cpu", wgpu))
    np.testing.assert_allclose(there, here, rtol=2e-4, atol=2e-5)


def after_100_steps(name, options, shape, device):
    random = np.random.default_rng(0)
    start, gradients = (random.standard_normal(s).astype(np.float32) for s in (shape, (100, *shape)))
    p = parameter(device, values=start)
    run(getattr(optim, name)([p], **options), p, gradients)
    return array(p)


@pytest.mark.parametrize("name", [*dict.fromkeys(name for name, _, _ in STEPS)])
def test_float16_keeps_float32_state(name, device):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    narrow, wide = parameter(device, "float16"), parameter(device)
    optimizer = getattr(optim, name)([narrow], **options)
    run(optimizer, narrow)
    run(getattr(optim, name)([wide], **options), wide)
    assert_close(narrow, array(wide), 3e-3)
    assert all(v.dtype is ag.float32 for v in optimizer.state[narrow].values() if isinstance(v, ag.Tensor))


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop"])
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
    assert optim.SGD([{"params": [a]}, {"params": [], "weight_decay": 0.0}]).step() is None  # no layer without decay, say


REFUSED = [
    (ValueError, "no parameters", lambda p: optim.SGD([])),
    (ValueError, "without parameters", lambda p: optim.SGD([{"params": iter([])}])),
    (TypeError, "an order", lambda p: optim.SGD([{"params": {p}}])),
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
    (ValueError, "etas", lambda p: optim.Rprop([p], etas=(1.0, 1.2))),
    (ValueError, "eps are two", lambda p: optim.Adafactor([p], eps=(-1.0, 1e-3))),
    (ValueError, "d must be", lambda p: optim.Adafactor([p], d=0.5)),
    (ValueError, "beta2_decay", lambda p: optim.Adafactor([p], beta2_decay=0.5)),
    (ValueError, "two dimensions", lambda p: optim.Muon([p])),
    (ValueError, "adjust_lr_fn", lambda p: optim.Muon([p], adjust_lr_fn="rms")),
    (ValueError, "one group", lambda p: optim.LBFGS([{"params": [p]}, {"params": [parameter()]}])),
    (ValueError, "strong_wolfe", lambda p: optim.LBFGS([p], line_search_fn="wolfe")),
    (ValueError, "closure", lambda p: optim.LBFGS([p]).step()),
]


@pytest.mark.parametrize(("kind", "text", "function"), REFUSED)
def test_refused(kind, text, function):
    assert_raises(kind, text, lambda: function(parameter()))


def test_wrong_gradients():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)
    assert_raises(ValueError, "[grad] a gradient has its tensor's shape", lambda: setattr(p, "grad", ag.ones(1)))
    p.grad = ag.ones(3)
    p.data = p.data[:1]
    assert_raises(ValueError, "(1,)", optimizer.step)
    assert_close(p, START[:1])


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


def test_parameters_share_dispatches(wgpu):
    """As many as there may be buffers: Adam has four a parameter, momentum three; WebGPU grants 8, most adapters more."""
    parameters = [parameter(wgpu) for _ in range(16)]
    room = ag.wgpu.open_device().wgpu_device.limits["max-storage-buffers-per-shader-stage"]
    for optimizer in (optim.AdamW(parameters), optim.Adam(parameters, weight_decay=0.1), optim.SGD(parameters, lr=0.1, momentum=0.9)):
        for _ in range(3):
            for p in parameters:
                p.grad = ag.tensor([1.0, 1.0, 1.0], device=wgpu)  # ones() would wait to be filled until it is needed
            ag.wgpu.synchronize()
            ag.wgpu.reset_stats()
            optimizer.step()
            ag.wgpu.synchronize()
        stats = ag.wgpu.stats()
        most = -(-16 // min(8, room // (4 if isinstance(optimizer, optim.Adam) else 3)))
        assert (stats["dispatches"], stats["bytes_downloaded"], stats["pipelines"]) == (most, 0, 0)
        if room >= 32:
            assert most == 2  # examples/04_digits_cnn.py has 16 parameters


def test_a_step_of_the_digits_model_is_at_most_four_dispatches(wgpu):
    """examples/01_digits_gru.py: six parameters of a GRU and a linear layer."""
    model = nn.ModuleList([nn.GRU(8, 64, batch_first=True), nn.Linear(64, 10)]).to(wgpu)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(2):
        for p in model.parameters():
            p.grad = ag.tensor(np.ones(p.shape, np.float32), device=wgpu)
        ag.wgpu.synchronize()
        ag.wgpu.reset_stats()
        optimizer.step()
        ag.wgpu.synchronize()
    assert 0 < ag.wgpu.stats()["dispatches"] <= 4


MATRIX = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]
MATRIX_GRADIENTS = [[[0.1, -0.2, 3.0], [1.0, 0.5, -0.5]], [[0.3, 0.0, -1.0], [0.0, 0.0, 2.0]], [[0.0, 0.0, 0.5], [-1.0, 0.25, 0.0]]]
MATRIX_STEPS = [
    ("Adafactor", {"lr": 0.1}, [[0.9057583, -1.9588264, 0.4143374], [0.251399, 2.5657194, -1.1374407]], 2e-6),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "d": 1.5, "beta2_decay": -1.0, "maximize": True},
     [[1.5242745, -1.993444, 0.9584852], [-0.1871991, 5.6476655, 0.3290551]], 2e-6),
    # PyTorch's iterations are in bfloat16
    ("Muon", {"lr": 0.1}, [[0.8411, -1.8705, 0.346], [0.2223, 2.786, -1.0518]], 3e-3),
    ("Muon", {"lr": 0.1, "momentum": 0.5, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
     [[0.923, -1.9176, 0.4293], [0.2297, 2.8773, -1.001]], 3e-3),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "want", "tolerance"), MATRIX_STEPS)
def test_matrices(name, options, want, tolerance, device):
    p = parameter(device, values=MATRIX)
    optimizer = getattr(optim, name)([p], **options)
    run(optimizer, p, MATRIX_GRADIENTS)
    assert_close(p, want, tolerance)
    q = parameter(device, values=array(p))
    resumed = getattr(optim, name)([q], **options)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for o, t in ((optimizer, p), (resumed, q)):
        run(o, t, MATRIX_GRADIENTS)
    assert (array(q) == array(p)).all()


@pytest.mark.parametrize(("name", "options", "want", "tolerance"), MATRIX_STEPS)
def test_devices_agree_over_100_steps_of_matrices(name, options, want, tolerance, wgpu):
    """The gradients are given and the steps orthogonal or clipped, so rounding adds up and is not magnified."""
    here, there = (after_100_steps(name, options, (4, 3), device) for device in ("cpu", wgpu))
    np.testing.assert_allclose(there, here, rtol=0, atol=5e-6)


# line search, rate, the losses at four steps, where they lead, calls of the closure
VALLEY = [
    (None, 0.001, [29.0, 28.602140235, 28.278902453, 27.805863921], [-1.038974385, 1.535088155], 20),
    ("strong_wolfe", 1.0, [29.0, 4.748247945, 3.294172332, 1.888498282], [-0.0128959, -0.032455277], 25),
]


@pytest.mark.parametrize(("search", "lr", "losses", "end", "calls"), VALLEY)
def test_lbfgs_in_rosenbrocks_valley(search, lr, losses, end, calls, tmp_path):
    def start(values):
        a, b = (nn.Parameter(ag.tensor(v, dtype=ag.float64)) for v in values)
        optimizer = optim.LBFGS([a, b], lr=lr, max_iter=5, history_size=2, line_search_fn=search)

        def closure():
            optimizer.zero_grad()
            loss = (1 - a) ** 2 + 100 * (b - a * a) ** 2
            loss.backward()
            return loss

        return optimizer, a, b, closure

    optimizer, a, b, closure = start([-1.0, 1.5])
    found = [optimizer.step(closure).item() for _ in range(2)]
    ag.save(optimizer.state_dict(), tmp_path / "o")
    again, c, d, other = start([a.item(), b.item()])
    again.load_state_dict(ag.load(tmp_path / "o"))
    found += [optimizer.step(closure).item() for _ in range(2)]
    np.testing.assert_allclose(found, losses, rtol=1e-8)
    np.testing.assert_allclose([a.item(), b.item()], end, rtol=1e-6)
    assert optimizer.state[a]["func_evals"] == calls
    assert [again.step(other).item() for _ in range(2)] == found[2:]
    assert (c.item(), d.item()) == (a.item(), b.item())


def test_lbfgs_ends_at_a_minimum(device):
    p = parameter(device)
    optimizer = optim.LBFGS([p], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ((p - 3) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert_close(p, [3.0, 3.0, 3.0])
    assert optimizer.state[p]["func_evals"] < 10


@pytest.mark.parametrize("options", [{"lr": 0.03}, {"line_search_fn": "strong_wolfe", "tolerance_grad": 1e-4}])
def test_lbfgs_on_both_devices_over_100_steps(options, wgpu):
    """The whole path, on a convex problem, where errors shrink. In a valley that bends a step's direction magnifies rounding:
    there float32 and float64 part on one device too."""
    paths = []
    for device in ("cpu", wgpu):
        p, weights = parameter(device), ag.tensor([0.25, 1.0, 3.0], device=device)
        optimizer = optim.LBFGS([p], max_iter=1, history_size=2, **options)

        def closure(p=p, weights=weights, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (weights * (p - 3) ** 2).sum()
            loss.backward()
            return loss

        paths.append([])
        for _ in range(100):
            optimizer.step(closure)
            paths[-1].append(array(p).copy())
    assert np.abs(paths[0][50] - START).max() > 1
    np.testing.assert_allclose(paths[1], paths[0], rtol=0, atol=5e-6)


def test_small_parameters_together():
    """Many parameters of one group: the numbers of each alone, to the bit."""
    random = np.random.default_rng(0)
    shapes = [(3,), (4, 5), (), (0,), (70, 70), (2, 3, 4)] * 5
    values = [random.standard_normal(s).astype(np.float32) for s in shapes]
    for name, options in (("Adam", {"amsgrad": True}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("RMSprop", {"centered": True})):
        together = [parameter(values=v) for v in values]
        alone = [parameter(values=v) for v in values]
        one, many = getattr(optim, name)(together, lr=0.1, **options), [getattr(optim, name)([p], lr=0.1, **options) for p in alone]
        for k in range(3):
            for p, q, v in zip(together, alone, values, strict=True):
                if k != 1 or p.ndim != 2:  # some fall behind by a step
                    p.grad, q.grad = ag.tensor(v * (k + 1)), ag.tensor(v * (k + 1))
                else:
                    p.grad = q.grad = None
            for optimizer in (one, *many):
                optimizer.step()
        assert all((array(p) == array(q)).all() for p, q in zip(together, alone, strict=True)), name


def test_named_parameters_and_pytorchs_state():
    layer = nn.Linear(2, 1)
    optimizer = optim.NAdam(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    state = {"step": ag.tensor(2.0), "mu_product": ag.tensor(0.25), "exp_avg": ag.ones(1, 2), "exp_avg_sq": ag.ones(1, 2)}
    group = {k: v for k, v in optimizer.state_dict()["param_groups"][0].items() if k != "param_names"}
    group |= {"foreach": None, "capturable": False, "differentiable": False}
    optimizer.load_state_dict({"state": {0: state}, "param_groups": [group]})
    assert (optimizer.state[layer.weight]["step"], optimizer.state[layer.weight]["mu_product"]) == (2, 0.25)
    group["differentiable"] = True
    assert_raises(ValueError, "unknown options", lambda: optimizer.load_state_dict({"state": {}, "param_groups": [group]}))


@pytest.mark.parametrize("name", [*dict.fromkeys(name for name, _, _ in STEPS)])
def test_the_state_goes_where_the_module_goes(name, wgpu):
    """Steps before and after to(): the same numbers as without it."""
    options = next(options for n, options, _ in STEPS if n == name)
    found = []
    for places in (("cpu", "cpu", "cpu"), ("cpu", wgpu, "cpu")):
        layer = nn.Linear(1, 1)
        layer.weight = nn.Parameter(ag.tensor(START))
        optimizer = getattr(optim, name)([layer.weight], **options)
        for place in places:
            run(optimizer, layer.to(place).weight)
        found.append(array(layer.weight))
    np.testing.assert_allclose(found[1], found[0], rtol=2e-5, atol=2e-6)
