"""PyTorch's words for optimizers, gradients, files, windows, checkpoints and functions of functions."""

import math

import numpy as np
import pytest
from autograd.utils.checkpoint import checkpoint, checkpoint_sequential
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn
from autograd.nn import functional as F


def close(got, want, tolerance=1e-5):
    assert_close(got, np.asarray(want, np.float64), tolerance)


# -- optimizers, schedules, files ---------------------------------------------------------------------------


def test_optimizers_take_pytorchs_words():
    p = nn.Parameter(ag.ones(2))
    seen = []
    for kind in (ag.optim.Adam, ag.optim.AdamW, ag.optim.SGD, ag.optim.RMSprop, ag.optim.Adagrad, ag.optim.NAdam, ag.optim.Rprop):
        kind([p], foreach=True, capturable=False)
    optimizer = ag.optim.AdamW([p], fused=True)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == ["before", "after", "before"]
    assert_raises(TypeError, "unexpected keyword argument 'learning_rate'", lambda: ag.optim.Adam([p], learning_rate=1))
    assert_raises(ValueError, "[Adam] differentiable must be False", lambda: ag.optim.Adam([p], differentiable=True))


def test_optimizers_and_schedules_of_the_users_own():
    class Momentum(ag.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @ag.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["m"] = state.get("m", 0) * 0.5 + p.grad
                    p.sub_(state["m"] * group["lr"])

    class Warm(ag.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base * min(1.0, (self.last_epoch + 1) / 2) for base in self.base_lrs]

    p = nn.Parameter(ag.ones(1))
    p.grad = ag.ones(1)
    optimizer = Momentum([p], 1.0)
    schedule = Warm(optimizer)
    for want in (0.5, -1.0):  # rates 0.5 and 1, moments 1 and 1.5
        optimizer.step()
        schedule.step()
        close(p.detach(), [want])
    assert schedule.get_last_lr() == [1.0]


def test_gradients_of_generators_and_zeros():
    net = nn.Linear(2, 1)
    grads = ag.grad(net(ag.ones(1, 2)).sum(), net.parameters(), only_inputs=True)
    assert [g.tolist() for g in grads] == [[[1, 1]], [1]]
    other = ag.ones(2, requires_grad=True)
    (g,) = ag.grad(net(ag.ones(1, 2)).sum(), {"x": other}.values(), materialize_grads=True)
    assert g.tolist() == [0, 0]
    assert_raises(ValueError, "[grad] only_inputs", lambda: ag.grad(other.sum(), other, only_inputs=False))
    ag.autograd.backward([other.sum()], grad_tensors=[ag.tensor(2.0)])
    assert other.grad.tolist() == [2, 2]


def test_gradients_are_contiguous(device):
    x = ag.randn(2, 1, 3, 3, device=device, requires_grad=True)
    (g,) = ag.grad(F.conv2d(x, ag.ones(1, 1, 3, 3, device=device), padding=1).sum(), x)
    assert g.view(2, -1).shape == (2, 9)


def test_loading_with_pytorchs_words(tmp_path, device):
    path = tmp_path / "weights"
    ag.save({"w": ag.ones(2)}, path)
    assert ag.load(path, map_location=device, weights_only=True)["w"].device == device
    assert_raises(ValueError, "[load] weights_only must be True", lambda: ag.load(path, weights_only=False))
    assert_raises(ValueError, "[load] give device or map_location", lambda: ag.load(path, "cpu", map_location="cpu"))


def test_inference_mode():
    w = ag.ones(1, requires_grad=True)
    with ag.inference_mode():
        assert not (w * 2).requires_grad
    with ag.inference_mode(False):
        assert (w * 2).requires_grad
    assert not ag.inference_mode()(lambda: w * 2)().requires_grad and not ag.inference_mode(lambda: w * 2)().requires_grad


# -- words, windows, least squares --------------------------------------------------------------------------


def test_arguments_by_pytorchs_words(device):
    x = ag.arange(6.0, device=device).reshape(2, 3)
    assert ag.sum(input=x, dim=1).tolist() == [3, 12] and ag.add(input=x, other=x, alpha=2)[0].tolist() == [0, 3, 6]
    assert ag.cat(tensors=[x, x], dim=1).shape == (2, 6) and ag.split(x, split_size_or_sections=2, dim=1)[1].shape == (2, 1)
    assert ag.permute(input=x, dims=(1, 0)).shape == ag.reshape(x, shape=(3, 2)).shape == (3, 2)
    assert ag.where(x > 1, input=x, other=-x)[0].tolist() == [0, -1, 2] and ag.mm(x, mat2=x.T).shape == (2, 2)
    assert ag.exp(input=x * 0).sum().item() == 6 and x.mul(other=2).sum().item() == 30 and ag.gt(input=x, other=4).sum().item() == 1
    assert_raises(TypeError, "sum() got an unexpected keyword argument 'inputs'", lambda: ag.sum(inputs=x))


def test_windows(device):
    r = math.sqrt(0.5)
    close(ag.hann_window(4, device=device), [0, 0.5, 1, 0.5])
    close(ag.hann_window(5, periodic=False, device=device), [0, 0.5, 1, 0.5, 0])
    close(ag.hamming_window(4, device=device), [0.08, 0.54, 1, 0.54])
    close(ag.blackman_window(4, device=device), [0, 0.34, 1, 0.34])
    close(ag.bartlett_window(4, device=device), [0, 0.5, 1, 0.5])
    i0 = [math.fsum((b / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(30)) for b in (0.0, 2 * math.sqrt(0.75), 2.0)]
    close(ag.kaiser_window(4, beta=2.0, device=device), [i0[0] / i0[2], i0[1] / i0[2], 1, i0[1] / i0[2]])
    close(ag.hann_window(8, device=device)[1], math.sin(math.pi / 8) ** 2)
    assert ag.hann_window(1).tolist() == [1] and ag.hann_window(0).shape == (0,) and r < 1
    assert_raises(ValueError, "[hann_window] the length", lambda: ag.hann_window(-1))


def test_least_squares(device):
    a = ag.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], device=device)
    b = ag.tensor([[0.0], [2.0], [1.0]], device=device)
    found = ag.linalg.lstsq(a, b)  # the line 1/2 + x/2 through (0, 0), (1, 2), (2, 1)
    close(found.solution, [[0.5], [0.5]])
    close(found.residuals, [1.5])
    assert found.rank.item() == 2 and ag.linalg.lstsq(a, b[:, 0]).solution.shape == (2,)
    x, y = a.cpu().double().requires_grad_(), b.cpu().double()
    assert device != "cpu" or ag.gradcheck(lambda x: ag.linalg.lstsq(x, y).solution, x)
    assert_raises(ValueError, "[lstsq] A and B must have equally many rows", lambda: ag.linalg.lstsq(a, b[:2]))
    four = ag.arange(16.0, device=device).reshape(2, 2, 2, 2) + 20 * ag.eye(4, device=device).reshape(2, 2, 2, 2)
    right = ag.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    y = ag.linalg.tensorsolve(four, right)
    close(ag.tensordot(four, y, 2), array(right))
    close(ag.tensordot(ag.linalg.tensorinv(four), right, 2), array(y))
    for kind in (ag.linalg.LinAlgError, RuntimeError, ValueError):
        with pytest.raises(kind, match=r"\[cholesky\] Matrix is not positive definite"):
            ag.linalg.cholesky(-ag.eye(2, device=device))


# -- checkpoint, func ---------------------------------------------------------------------------------------


def test_checkpoint_on_wgpu(wgpu):
    net, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5)).to("wgpu"), ag.ones(2, 3, device="wgpu", requires_grad=True)
    found = []
    for way in (net, lambda x: checkpoint(net, x)):
        ag.manual_seed(1)
        found.append(ag.grad(way(x).sum(), [x, *net.parameters()]))
    for want, got in zip(*found):
        close(got, array(want))


def test_checkpoint():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))
    x = ag.randn(5, 3, requires_grad=True)
    ways = {
        "plain": net, "checkpoint": lambda x: checkpoint(net, x, use_reentrant=False),
        "sequential": lambda x: checkpoint_sequential(net, 2, x), "within": lambda x: checkpoint(lambda y: checkpoint(net, y), x),
    }  # fmt: skip
    found = {}
    for name, way in ways.items():
        ag.manual_seed(1)
        y = way(x).pow(2).sum()
        noise = ag.rand(1).item()
        grads = ag.grad(y, [x, *net.parameters()])
        found[name] = [y, *grads]
        assert noise == found.setdefault("noise", noise), "backward must leave the random stream alone"
        for got, want in zip(found[name], found["plain"]):
            close(got.detach(), array(want))
    recorded = [entry.op for entry in ag.tape(checkpoint(net, x))]
    assert "tanh" not in recorded
    (g,) = ag.grad(checkpoint(lambda x: (x**3).sum(), x), x, create_graph=True)
    close(ag.grad(g.sum(), x)[0], 6 * array(x))
    with ag.no_grad():
        assert not checkpoint(net, x).requires_grad
    assert checkpoint(lambda a, b: (a, b * 2), x, 3)[1] == 6


def test_functional_call():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    eye = ag.eye(2)
    x = ag.tensor([[1.0, 2.0]])
    assert ag.func.functional_call(net, {"0.weight": eye * 2}, x).tolist() == [[4, 8]]  # tied: both are replaced
    before = net(x)
    assert ag.func.functional_call(net, {"0.weight": eye * 2}, (x,), tie_weights=False).shape == (1, 2)
    assert ag.equal(net(x), before)
    assert_raises(RuntimeError, "unknown: ['2.weight']", lambda: ag.func.functional_call(net, {"2.weight": eye}, x))
    assert_raises(RuntimeError, "left: ['1.weight']", lambda: ag.func.functional_call(net, {"0.weight": eye}, x, strict=True))
    norm = nn.BatchNorm1d(2)
    state = {k: v.clone() for k, v in {**dict(norm.named_parameters()), **dict(norm.named_buffers())}.items()}
    ag.func.functional_call(norm, state, ag.randn(4, 2))
    assert state["num_batches_tracked"].item() == 1 and norm.num_batches_tracked.item() == 0


def test_derivatives_of_functions():
    func = ag.func
    x = ag.tensor([1.0, 2.0, 3.0])
    cube = lambda x: (x**3).sum()
    g = func.grad(cube)(x)
    close(g, [3, 12, 27])
    assert not g.requires_grad and not x.requires_grad
    close(func.grad(lambda x: func.grad(cube)(x).sum())(x), [6, 12, 18])
    close(func.hessian(cube)(x), np.diag([6, 12, 18]))
    close(func.jacrev(lambda x: x * x.sum())(x), np.eye(3) * 6 + np.array([[1], [2], [3]]))
    grads, value = func.grad_and_value(lambda p, s: (p["a"] * p["b"]).sum() * s)({"a": x, "b": x + 1}, 2)
    close(grads["a"], [4, 6, 8])
    close(value, 40)
    y, back = func.vjp(lambda a, b: a * b, x, x + 1)
    close(back(ag.ones_like(y))[1], [1, 2, 3])
    close(func.jvp(lambda a: a * a, (x,), (ag.ones_like(x),))[1], [2, 4, 6])
    close(func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x + 1)[0], [2, 3, 4])
    w = ag.ones(3, requires_grad=True)
    func.grad(lambda x: (x * x * w).sum())(x).sum().backward()  # what the function captured keeps its gradient
    close(w.grad, [2, 4, 6])
    assert_raises(RuntimeError, "[grad] the function must return a tensor of one element", lambda: func.grad(lambda x: x)(x))


def test_vmap(device):
    x = ag.arange(6.0, device=device).reshape(2, 3)
    close(ag.vmap(ag.dot)(x, x), [5, 50])
    close(ag.vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=1)(x, ag.tensor([1.0, 2.0], device=device)), [[0, 1, 2], [6, 8, 10]])
    nets = [nn.Linear(3, 1).to(device) for _ in range(2)]
    parameters, buffers = ag.func.stack_module_state(nets)
    call = lambda p, b, x: ag.func.functional_call(nets[0], (p, b), (x,))
    close(ag.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x).detach(), [array(net(x)) for net in nets])
    each = ag.vmap(ag.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(ag.ones(3, device=device), x)
    close(each, [[0, 6, 12], [72, 96, 120]])
    assert_raises(ValueError, "[vmap] the arguments must have one number of examples", lambda: ag.vmap(ag.dot)(x, x[:1]))


def test_hooks_after_the_gradient_was_added(device):
    """hook(leaf) sees .grad complete, also what earlier calls left there: an optimizer's step fits in it."""
    w, v = (ag.tensor([n], device=device, requires_grad=True) for n in (1.0, 3.0))
    seen = []
    handle = w.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf is w, leaf.grad.item(), v.grad is not None)))
    w.register_hook(lambda g: g * 10)  # before, although registered later
    for _ in range(2):
        (w * v).sum().backward()
    assert seen == [(True, 30.0, True), (True, 60.0, True)]
    ag.grad((w * v).sum(), w)
    handle.remove()
    (w * v).sum().backward()
    assert len(seen) == 2 and w.grad.item() == 90.0
    rate = v.register_post_accumulate_grad_hook(lambda leaf: leaf.data.sub_(leaf.grad))
    v.grad = None
    (v * v).sum().backward()
    rate.remove()
    assert v.tolist() == [-3.0]
    assert_raises(RuntimeError, "[register_post_accumulate_grad_hook] expected a leaf", lambda: (w * 2).register_post_accumulate_grad_hook(print))
