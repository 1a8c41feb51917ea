"""BigDL's module protocol, row by row, on a recurrent layer, a wrapped layer and a container."""

import copy

import numpy as np
import pytest
from bigdl_subjects import SUBJECTS, device_of, expected, gradients, gru, linear, pass_of, stacked, values
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import bigdl, nn


@pytest.fixture(params=SUBJECTS)
def module(request, device):
    """A GRU in its Recurrent, a wrapped Linear, a container of several."""
    ag.manual_seed(3)
    return SUBJECTS[request.param](device)


# -- the module protocol ------------------------------------------------------------------------------------


def test_forward_caches_and_backward_is_the_tapes(module):
    x, y, dy = pass_of(module)
    assert module.output is y and (array(module(x)) == array(y)).all() and module.output is y
    dx = module.backward(x, dy)
    assert module.grad_input is dx and not dx.requires_grad and dx.shape == x.shape
    wanted = expected(module, x, dy)
    assert_close(dx, wanted[0])
    for (_, p), g in zip(module.named_parameters(), wanted[1:]):
        assert_close(p.grad, g)
    assert (array(module.update_output(x)) == array(y)).all()


def test_update_grad_input_leaves_parameters_alone(module):
    x, _, dy = pass_of(module)
    dx = module.update_grad_input(x, dy)
    assert all(p.grad is None for _, p in module.named_parameters())
    assert module.acc_grad_parameters(x, dy) is None
    first = gradients(module)
    assert (array(module.grad_input) == array(dx)).all() and first.any()
    module.acc_grad_parameters(x, dy)
    assert np.allclose(gradients(module), 2 * first, atol=1e-6)
    module.backward(x, dy)
    assert np.allclose(gradients(module), 3 * first, atol=1e-5)
    kept = module.parameters().gradients
    module.zero_grad_parameters()
    assert not gradients(module).any() and all(a is b for a, b in zip(kept, module.parameters().gradients, strict=True))


def test_forward_goes_on_on_the_tape(module):
    x = ag.randn(2, 5, 3, device=device_of(module), requires_grad=True)
    y = module.forward(x * 2)
    y.sum().backward()
    again = x.detach().requires_grad_()
    module(again * 2).sum().backward()
    assert_close(x.grad, again.grad)


@pytest.mark.parametrize("name", ["backward", "update_grad_input", "acc_grad_parameters"])
def test_backward_needs_its_forward(name, module):
    x, call = ag.randn(2, 5, 3, device=device_of(module)), getattr(module, name)
    dy = module(x).detach().ones_like()
    assert_raises(RuntimeError, f"[{name}] needs a forward() of the same input", lambda: call(x, dy))
    module.forward(x)
    assert_raises(RuntimeError, f"[{name}] the input must be that of the last forward()", lambda: call(x + 1, dy))
    call(x.clone(), dy)
    assert_raises(RuntimeError, "the gradient must have its tensor's shape", lambda: call(x, dy[:1]))
    assert_raises(ValueError, f"[{name}] one gradient for each of 1 outputs; got 2", lambda: call(x, (dy, dy)))
    with ag.no_grad():
        module.forward(x)
    assert_raises(RuntimeError, f"[{name}] the forward() ran under no_grad", lambda: call(x, dy))
    module.forward(x)
    x.add_(1)
    assert_raises(RuntimeError, f"[{name}] the input was changed in place", lambda: call(x, dy))


def test_whole_numbers_have_no_gradient(device):
    m = bigdl.Module(nn.Embedding(5, 2, device=device))
    ids = ag.tensor([[1, 2]], device=device)
    y = m.forward(ids)
    assert not array(m.backward(ids, y.detach().ones_like())).any()
    assert array(m.module.weight.grad).sum() == 4


def test_parameters_and_optimizers(module):
    weights, grads = module.parameters()
    assert [w is p for w, (_, p) in zip(weights, module.named_parameters(), strict=True)] == [True] * len(weights)
    assert [g is p.grad for g, (_, p) in zip(grads, module.named_parameters(), strict=True)] == [True] * len(weights)
    assert not gradients(module).any() and bigdl.Module(nn.ReLU()).parameters() is None
    x, _, dy = pass_of(module)
    twin = module.clone_module()
    for each, given in (module, module.parameters()), (twin, twin.named_parameters()):
        optimizer = ag.optim.Adam(given, lr=0.1)
        each.forward(x)
        each.backward(x, dy)
        nn.utils.clip_grad_norm_(each.parameters(), 1.0)
        optimizer.step()
    assert (values(module) == values(twin)).all()
    assert np.linalg.norm(gradients(module)) < 1.001


def test_it_is_an_nn_module(module):
    x = ag.randn(2, 5, 3, device=device_of(module))
    assert isinstance(module, nn.Module)
    twin = copy.deepcopy(module).reset()
    twin.load_state_dict(module.state_dict())
    assert (array(twin(x)) == array(module(x))).all()
    outer = nn.Sequential(module, nn.ReLU())
    assert len(list(outer.parameters())) == len(module.parameters().weights)
    outer(x).sum().backward()
    outer.zero_grad()
    assert all(p.grad is None for p in outer.parameters())
    module.requires_grad_(False)
    assert not module(x).requires_grad and module.forward(x).requires_grad
    assert ag.summary(module, (2, 5, 3)).parameters == values(module).size
    seen = []
    module.register_forward_hook(lambda m, args, y: seen.append(y.shape))
    assert module(x).shape == module.forward(x).shape == seen[0] == seen[1]
    average = ag.optim.swa_utils.AveragedModel(module)
    average.update_parameters(module)
    assert (values(average.module) == values(module)).all()


# -- the rest of the protocol -------------------------------------------------------------------------------


def test_parameters_table(device):
    m = stacked(device).set_name("model")
    m._modules["0"].layer.cell.set_name("ahead")
    bigdl_linear = linear(device).set_name("fc")
    table = m.get_parameters_table()
    assert {k: sorted(v) for k, v in table.items() if k == "model.2"} == {"model.2": ["bias", "gradBias", "gradWeight", "weight"]}
    assert sorted(table["ahead"]) == [f"{what}{i}" for what in ("gradient", "weight") for i in range(4)]
    assert table["ahead"]["weight2"] is m._modules["0"].layer.cell.h2g and len(table) == 3
    assert table["model.2"]["gradBias"] is m._modules["2"].bias.grad
    (entry,) = bigdl_linear.get_parameters_table().items()
    assert entry[0] == "fc" and entry[1]["weight"] is bigdl_linear.module.weight
    nested = bigdl.Module(nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2))).set_name("n")
    assert {k: len(v) for k, v in nested.get_parameters_table().items()} == {"n.0": 2, "n.2": 4}
    twice = bigdl.Sequential().add(linear(device).set_name("a")).add(linear(device).set_name("a"))
    assert_raises(ValueError, "two modules are named 'a'", twice.get_parameters_table)


def test_clear_state(module):
    x, y, dy = pass_of(module)
    module.backward(x, dy)
    grads = gradients(module)
    assert module.clear_state() is module and module.output is None and module.grad_input is None
    assert (gradients(module) == grads).all() and (array(module(x)) == array(y)).all()


def test_copy_status(device):
    def model():
        return bigdl.Sequential().add(nn.Linear(3, 4, device=device)).add(nn.BatchNorm1d(4, device=device))

    a, b = model(), model()
    for _ in range(3):
        a.forward(ag.randn(8, 3, device=device))
    before = values(b)
    assert b.copy_status(a) is b and (values(b) == before).all()
    for (name, mine), (_, other) in zip(b.named_buffers(), a.named_buffers(), strict=True):
        assert (array(mine) == array(other)).all() and array(mine).any(), name
        assert mine is not other
    assert_raises(ValueError, "[copy_status] the modules must have the same structure", lambda: a.copy_status(linear(device)))
    assert_raises(ValueError, "[copy_status]", lambda: a.copy_status(model().add(nn.ReLU())))
    other = bigdl.Sequential().add(nn.Linear(3, 5, device=device)).add(nn.BatchNorm1d(5, device=device))
    assert_raises(ValueError, "[copy_status] 1.running_mean must have shape (4,); got (5,)", lambda: a.copy_status(other))
    assert gru(device=device).copy_status(gru(device=device)) is not None


def test_predict(device):
    m = bigdl.Sequential().add(nn.Dropout(0.5)).add(nn.Linear(3, 4, device=device))
    x = ag.randn(7, 3, device=device)
    wanted = array(m.get_submodule("1")(x))
    for given in (x, list(x), iter(list(x))):
        found = m.predict(given, batch_size=3)
        assert_close(found, wanted)
        assert not found.requires_grad and m.is_training() and m.output is None
    classes = m.predict_class(x)
    assert classes.dtype == ag.int64 and array(classes).tolist() == (wanted.argmax(-1) + 1).tolist()
    assert_raises(ValueError, "[predict_class] a sample's output must have one dimension; got (2, 4)", lambda: gru(device=device).predict_class(ag.zeros(1, 2, 3, device=device)))
    assert_raises(ValueError, "[predict] got no samples", lambda: m.predict([]))
    assert_raises(TypeError, "[predict] samples are Tensors; got int", lambda: m.predict([1]))
    assert_raises(ValueError, "[predict] batch_size must be positive; got 0", lambda: m.predict(x, 0))


def test_names(module):
    kind = {"Recurrent": "Recurrent", "Module": "Linear", "Sequential": "Sequential"}[type(module).__name__]
    name = module.get_name()
    assert name.startswith(kind) and len(name) == len(kind) + 8 and int(name[-8:], 16) >= 0
    assert module.set_name("mine") is module and module.get_name() == "mine" and module.clone_module().get_name() == "mine"
    ag.manual_seed(0)
    first = ag.rand(1).item()
    ag.manual_seed(0)
    bigdl.CAddTable()  # its name is not drawn from the stream
    assert ag.rand(1).item() == first


def test_modes(module):
    assert module.is_training() and module.training
    assert module.evaluate() is module and not module.training and not module.is_training()
    assert not any(m.training for m in module.modules())
    assert module.training() is module and all(m.training for m in module.modules())
    assert module.eval() is module and not module.is_training()
    was = module.training
    module.train()
    assert module.train(was) is module and not module.training and repr(module.training) == "False"
    assert_raises(TypeError, "[train] the mode is True or False; got int", lambda: module.train(1))


def test_reset_and_clone(module):
    x, _, dy = pass_of(module)
    module.backward(x, dy)
    twin = module.clone_module()
    assert twin.output is None and (values(twin) == values(module)).all() and (gradients(twin) == gradients(module)).all()
    before, names = values(module), [p for _, p in module.named_parameters()]
    assert module.reset() is module
    assert (values(module) != before).mean() > 0.9 and (values(twin) == before).all()
    assert all(a is b for a, (_, b) in zip(names, module.named_parameters()))

    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(ag.ones(1))

    assert_raises(TypeError, "[reset] Bare has parameters and no reset_parameters()", bigdl.Module(Bare()).reset)


def test_times(module):
    module.reset_times()
    assert all((ahead, back) == (0, 0) for _, ahead, back in module.get_times())
    x, _, dy = pass_of(module)
    (first, ahead, back), *below = module.get_times()
    assert first is module and ahead > 0 and back == 0
    module.backward(x, dy)
    assert module.get_times()[0][2] > 0
    inner = [t for m, t, _ in module.get_times() if m is not module and not isinstance(m, bigdl.Cell)]
    assert len(below) == sum(isinstance(m, bigdl.Module) for m in module.modules()) - 1
    assert all(t <= ahead for t in inner)
    module.reset_times()
    assert module.get_times()[0][1:] == (0, 0)


def test_engine_type(wgpu):
    m = bigdl.Sequential().add(nn.Linear(2, 2)).add(nn.Linear(2, 2))
    assert m.check_engine_type() is m
    m._modules["1"].to(wgpu)
    assert_raises(RuntimeError, "[check_engine_type] a module runs on one device; got tensors on cpu, wgpu", m.check_engine_type)


def test_scalas_spelling(module):
    x, _, dy = pass_of(module)
    assert module.updateOutput(x).shape == dy.shape and module.updateGradInput(x, dy) is module.gradInput
    module.accGradParameters(x, dy)
    module.zeroGradParameters()
    assert module.isTraining() and module.getName() == module.get_name()
    assert module.getParameters()[0].shape == values(module).shape
    assert_raises(AttributeError, f"{type(module).__name__} has no attribute 'noSuchThing'", lambda: module.noSuchThing)
