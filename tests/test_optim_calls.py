"""How optimizers and clipping are called: rates of other types, hooks around a step, gradients in several places."""

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn, optim


def parameter(device="cpu", values=(1.0, -2.0, 0.5)):
    return nn.Parameter(ag.tensor(values, device=device))


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop", "LBFGS"])
def test_rates_of_other_types(kind, device):
    """A rate that is a Tensor or one of NumPy's numbers, from the start or since."""
    found = []
    for first, then in ((0.5, 0.25), (np.float32(0.5), np.float32(0.25)), (ag.tensor(0.5), ag.tensor([0.25]))):
        p = parameter(device)
        optimizer = getattr(optim, kind)([p], lr=first)

        def closure(p=p):
            p.grad = p.detach() * 2
            return (p * p).sum()

        optimizer.step(closure)
        optimizer.param_groups[0]["lr"] = then
        optimizer.step(closure)
        found.append(array(p).tolist())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", ["SGD", "LBFGS"])
def test_hooks_around_a_step(kind):
    p, seen = parameter(), []
    optimizer = getattr(optim, kind)([p], lr=0.1)

    def closure():
        seen.append("closure")
        p.grad = ag.zeros(3)
        return p.sum()

    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: (seen.append(args), ((closure,), {}))[1])
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    assert optimizer.step(None).item() == p.sum().item() and seen == [(None,), "closure", "after"]
    before.remove()
    optimizer.register_step_pre_hook(lambda *_: 3)
    assert_raises(RuntimeError, "(args, kwargs)", lambda: optimizer.step(closure))


def test_clipping_over_several_devices(wgpu):
    p, q = parameter(values=(1.0, 1.0)), parameter(wgpu, (1.0,))
    for norm_type, norm in ((2, 5.0), (1, 7.0), (np.inf, 4.0)):
        p.grad, q.grad = ag.tensor([3.0, 0.0]), ag.tensor([4.0], device=wgpu)
        found = nn.utils.clip_grad_norm_([p, q], 2.0, norm_type=norm_type)
        assert found.device.type == "cpu" and abs(found.item() - norm) < 1e-6
        assert_close(p.grad, [6 / norm, 0.0], 1e-5)
        assert_close(q.grad, [8 / norm], 1e-5)
    h, d = nn.Parameter(ag.ones(1, device=wgpu).half()), nn.Parameter(ag.ones(1).double())
    h.grad, d.grad = ag.tensor([3e4], device=wgpu).half(), ag.tensor([4e5], dtype="float64")
    assert nn.utils.clip_grad_norm_([h, d], 1.0).dtype is ag.float32
    assert_close(h.grad.float(), [0.0748], 1e-3)
    assert_close(d.grad, [0.9972], 1e-4)
    p.grad = ag.tensor([np.inf, 0.0])
    assert_raises(RuntimeError, "is inf", lambda: nn.utils.clip_grad_norm_([p, q], 2.0, error_if_nonfinite=True))
    assert_close(q.grad, [2.0], 1e-5)


@pytest.mark.parametrize("norm_type", [0, -1, -np.inf, np.nan])
def test_norms_that_are_none(norm_type, device):
    p = parameter(device)
    p.grad = ag.ones_like(p)
    assert_raises(ValueError, "[clip_grad_norm_] norm_type", lambda: nn.utils.clip_grad_norm_([p], 1.0, norm_type, foreach=False))
    assert_raises(ValueError, "[get_total_norm] norm_type", lambda: nn.utils.get_total_norm([p], norm_type))
    nn.utils.clip_grad_value_([p], 0.5, foreach=True)
    assert p.grad.tolist() == [0.5] * 3


def test_state_finds_its_parameter_by_name():
    """A model whose layers are written down in another order since: of one shape, so that nothing else would tell."""
    a, b = parameter(), parameter()
    saved = optim.SGD([("a", a), ("b", b)], lr=0.1, momentum=0.9)
    a.grad, b.grad = ag.ones(3), ag.zeros(3)
    saved.step()
    loaded = optim.SGD([("b", b), ("a", a)], lr=0.1, momentum=0.9)
    loaded.load_state_dict(saved.state_dict())
    assert loaded.state[a]["momentum_buffer"].tolist() == [1, 1, 1] and loaded.state[b]["momentum_buffer"].tolist() == [0, 0, 0]
    assert loaded.param_groups[0]["param_names"] == ["b", "a"]
    loaded = optim.SGD([("c", b), ("a", a)], lr=0.1, momentum=0.9)  # other names: by place, as in PyTorch
    loaded.load_state_dict(saved.state_dict())
    assert loaded.state[b]["momentum_buffer"].tolist() == [1, 1, 1] and loaded.param_groups[0]["param_names"] == ["a", "b"]
