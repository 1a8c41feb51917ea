"""get_parameters(): two vectors and the module are one memory, whatever happens to either."""

import copy
import pickle

import numpy as np
import pytest
from bigdl_subjects import SUBJECTS, device_of, expected, gradients, gru, pass_of, stacked, values
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import bigdl, nn


@pytest.fixture(params=SUBJECTS)
def module(request, device):
    """A GRU in its Recurrent, a wrapped Linear, a container of several."""
    ag.manual_seed(3)
    return SUBJECTS[request.param](device)


def is_one_thing(module, w, g):
    assert (array(w) == values(module)).all() and (array(g) == gradients(module)).all()


def test_flat_vectors_are_the_modules_memory(module):
    x, _, dy = pass_of(module)
    module.backward(x, dy)
    before, grads = values(module), gradients(module)
    w, g = module.get_parameters()
    assert w.shape == g.shape == before.shape and (array(w) == before).all() and (array(g) == grads).all()
    again = module.get_parameters()
    assert again[0] is w and again[1] is g
    w *= 2
    g.fill_(7)
    is_one_thing(module, w, g)
    assert (values(module) == 2 * before).all() and (gradients(module) == 7).all()
    with ag.no_grad():
        for p in module.parameters().weights:
            p.sub_(1)
    is_one_thing(module, w, g)
    module.zero_grad_parameters()
    module.forward(x)
    module.backward(x, dy)
    is_one_thing(module, w, g)
    w -= 0.5 * g
    is_one_thing(module, w, g)
    assert array(g).any()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_flat_vectors_survive_training(kind, module):
    twin = module.clone_module()
    x = ag.randn(2, 5, 3, device=device_of(module))
    w, g = module.get_parameters()
    for each in (module, twin):
        optimizer = getattr(ag.optim, kind)(each.parameters(), lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            (each(x) ** 2).sum().backward()
            optimizer.step()
    is_one_thing(module, w, g)
    assert (values(module) == values(twin)).all()
    module.load_state_dict(twin.reset().state_dict())
    is_one_thing(module, w, g)
    for set_to_none in (True, False):
        g.fill_(1)
        module.zero_grad(set_to_none)
        assert not array(g).any()
        is_one_thing(module, w, g)
    assert all(a is b for a, b in zip(module.get_parameters(), (w, g)))


def test_a_graph_from_before_still_holds(device):
    m = gru(device=device)
    x, _, dy = pass_of(m)
    wanted = expected(m, x, dy)
    w, g = m.get_parameters()
    m.backward(x, dy)
    assert_close(g, np.concatenate([array(d).ravel() for d in wanted[1:]]))
    m.forward(x)
    w.add_(1)
    assert_raises(RuntimeError, "was changed in place", lambda: m.backward(x, dy))


def test_part_of_a_flat_module_stays_in_the_vector(device):
    m = stacked(device)
    w, g = m.get_parameters()
    part = bigdl.Module(m._modules["2"])
    last, last_grad = part.get_parameters()
    assert last.shape == (10,)
    last.fill_(3)
    last_grad.fill_(4)
    is_one_thing(m, w, g)
    assert (array(w)[-10:] == 3).all() and (array(g)[-10:] == 4).all() and (array(w)[:-10] != 3).all()
    bigger = bigdl.Sequential().add(m).add(nn.Linear(2, 1, device=device))
    all_w, _ = bigger.get_parameters()
    assert (array(all_w)[:-3] == array(w)).all()
    w.fill_(0)  # no longer the memory
    assert (array(all_w)[-13:-3] == 3).all()


def test_moving_ends_a_vector(wgpu):
    m = gru()
    w, g = m.get_parameters()
    m.to(wgpu)
    x, _, dy = pass_of(m)
    m.backward(x, dy)
    assert not array(g).any() and gradients(m).any()
    there, grads = m.get_parameters()
    assert there is not w and str(there.device).startswith("wgpu")
    is_one_thing(m, there, grads)
    assert m.cpu().get_parameters()[0] is not there


def test_flat_half_precision(device):
    m = bigdl.Module(nn.Linear(3, 3, device=device, dtype="float16"))
    w, g = m.get_parameters()
    w += 1
    m.module.bias.grad = ag.ones(3, dtype="float16", device=device)
    is_one_thing(m, w, g)
    assert array(g).sum() == 3


def test_copies_of_flat_parameters_are_their_own():
    m = gru()
    w, g = m.get_parameters()
    g.fill_(2)
    for twin in (m.clone_module(), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        with ag.no_grad():
            twin.cell.weight.zero_()
        twin.zero_grad()
        assert twin.cell.weight.grad is None and (array(g) == 2).all() and array(w)[:36].all()
        other, _ = twin.get_parameters()
        other.fill_(9)
        assert (values(twin) == 9).all() and (array(w) != 9).all()


def test_what_cannot_be_flat():
    assert_raises(ValueError, "[get_parameters] Module has no parameters", bigdl.Module(nn.ReLU()).get_parameters)
    mixed = bigdl.Sequential().add(nn.Linear(2, 2)).add(nn.Linear(2, 2, dtype="float64"))
    before = values(mixed)
    assert_raises(ValueError, "one dtype and device; got autograd.float32 on cpu and autograd.float64 on cpu", mixed.get_parameters)
    assert (values(mixed) == before).all() and type(mixed.parameters()[0][0]) is nn.Parameter
    m = gru()
    m.get_parameters()
    x = ag.randn(1, 2, 3, requires_grad=True)
    (g,) = ag.autograd.grad(m(x).sum(), [m.cell.bias], create_graph=True)

    def assign():
        m.cell.bias.grad = g

    assert_raises(RuntimeError, "[grad] the gradient of a flat parameter is memory", assign)
