"""Modules, initial values and nn.utils."""

import copy
import math
import pickle

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn, optim

INF = float("inf")

# -- modules --------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.Linear(2, 3, bias=False)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(ag.ones(1))
        self.register_buffer("count", ag.zeros((), dtype=ag.int64))
        self.register_buffer("cache", ag.ones(2), persistent=False)

    def forward(self, x):
        return self.scale * (self.first(x) - self.second(x))


def test_module_tables():
    net = Net()
    assert [k for k, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias"]
    assert len(list(net.parameters())) == 3
    assert list(net.state_dict()) == ["scale", "count", "first.weight", "first.bias", "second.weight"]
    assert [k for k, _ in net.named_buffers()] == ["count", "cache"]
    assert [k for k, _ in net.named_modules()] == ["", "first", "second"]
    assert [k for k, _ in net.named_children()] == ["first", "second"] and len(list(net.children())) == 2
    assert net.get_submodule("first") is net.first and net.get_parameter("first.bias") is net.first.bias
    assert_raises(AttributeError, "no attribute 'third'", lambda: net.third)
    assert_raises(AttributeError, "'third' is missing", lambda: net.get_submodule("third"))
    assert_raises(TypeError, "must stay a Parameter", lambda: setattr(net, "scale", ag.ones(1)))
    assert_raises(KeyError, "already has", lambda: net.register_buffer("first", ag.ones(1)))
    assert_raises(AttributeError, "super().__init__()", lambda: setattr(object.__new__(Net), "a", nn.ReLU()))
    net.scale = None
    assert "scale" not in net.state_dict() and net.scale is None
    del net.first
    assert not hasattr(net, "first")
    assert_raises(NotImplementedError, "no forward()", lambda: nn.Module()(1))
    assert_raises(TypeError, "[Parameter]", lambda: nn.Parameter([1.0]))


def test_parameter():
    data = ag.ones(2)
    p = nn.Parameter(data)
    assert isinstance(p, ag.Tensor) and p.requires_grad and p.is_leaf and type(p).__name__ == "Parameter"
    assert np.shares_memory(p.detach().numpy(), data.numpy())
    assert type(p * 2) is ag.Tensor and type(copy.deepcopy(p)) is nn.Parameter
    assert repr(p).startswith("Parameter containing:\ntensor(")
    assert not nn.Parameter(ag.arange(3), requires_grad=False).requires_grad
    assert_raises(RuntimeError, "floating point", lambda: nn.Parameter(ag.arange(3)))


def test_state_dict(device):
    one, two = Net().to(device), Net().to(device)
    result = two.load_state_dict(one.state_dict())
    assert result.missing_keys == [] == result.unexpected_keys
    assert_close(two.first.weight, array(one.first.weight))
    assert two.first.weight is two.second.weight and two.first.weight is not one.first.weight
    before = array(two.scale).copy()
    state = {**one.state_dict(), "scale": ag.zeros(1), "first.weight": ag.zeros(3), "extra": ag.ones(1)}
    del state["first.bias"]
    with pytest.raises(RuntimeError) as caught:
        two.load_state_dict(state)
    for text in ("missing: first.bias", "unexpected: extra", "first.weight: expected shape (3, 2), got (3,)"):
        assert text in str(caught.value)
    assert_close(two.scale, before)
    assert_raises(RuntimeError, "expected a Tensor, got list", lambda: two.load_state_dict({"scale": [1.0]}, strict=False))
    partly = two.load_state_dict({"scale": ag.tensor([5.0], dtype=ag.float64), "extra": ag.ones(1)}, strict=False)
    assert partly.unexpected_keys == ["extra"] and "first.bias" in partly.missing_keys
    assert_close(two.scale, [5.0])
    assert two.scale.requires_grad and two.state_dict()["scale"].requires_grad is False


def test_modes_and_moves(device):
    net = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([nn.Dropout()]))
    assert not any(m.training for m in net.eval().modules()) and all(m.training for m in net.train().modules())
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Dropout", "ModuleList", "Sequential"]
    net = Net()
    weight = net.first.weight
    net(ag.ones(1, 2)).sum().backward()
    net.to(device).half()
    assert net.first.weight is weight and weight.dtype is ag.float16 and weight.device == device and weight.requires_grad
    assert weight.grad.dtype is ag.float16 and weight.grad.device == device
    assert net.count.dtype is ag.int64 and net.cache.dtype is ag.float16 and net.cache.device == device
    assert net.second.weight is weight and net.float().scale.dtype is ag.float32
    assert net(ag.ones(1, 2, device=device)).device == device
    net.zero_grad()
    assert weight.grad is None
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    assert_raises(TypeError, "floating point", lambda: net.to(ag.int64))
    assert net.to("cpu", ag.float64).scale.dtype is ag.float64 and net.double().cpu() is net


def test_hooks():
    net, log = nn.Linear(1, 1, bias=False), []
    nn.init.ones_(net.weight)
    x = ag.tensor([2.0])
    handles = [
        net.register_forward_pre_hook(lambda m, args: (args[0] + 1,)),
        net.register_forward_hook(lambda m, args, y: log.append((args[0].item(), y.item()))),
        net.register_forward_hook(lambda m, args, kwargs, y: y * 10, with_kwargs=True),
        net.register_forward_pre_hook(lambda m, args, kwargs: ((), {"input": args[0]}), with_kwargs=True),
    ]
    handles[1].remove()
    assert net(x).item() == 30 and log == []
    for handle in handles:
        handle.remove()
    assert net(x).item() == 2


def test_copies():
    net = Net()
    net(ag.ones(1, 2)).sum().backward()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.second.weight is twin.first.weight is not net.first.weight
        assert [type(p) for p in twin.parameters()] == [nn.Parameter] * 3
        assert_close(twin(ag.ones(2, 2)), array(net(ag.ones(2, 2))))
    assert net.scale.grad is not None and copy.deepcopy(net).scale.grad is None  # as in PyTorch


def test_containers():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Linear(1, 1)
    seq = nn.Sequential(a, b).append(c)
    assert len(seq) == 3 and seq[-1] is c and list(seq[1:]) == [b, c] and type(seq[:1]) is nn.Sequential
    seq.insert(0, c)
    del seq[1]
    seq[1] = a
    assert list(seq) == [c, a, c] and list(seq.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert list(nn.Sequential({"x": a, "y": b}).named_children()) == [("x", a), ("y", b)]
    assert_raises(IndexError, "out of range for 3", lambda: seq[3])
    assert_raises(TypeError, "expected a Module", lambda: nn.Sequential(3))
    listed = nn.ModuleList([a]) + [b]
    listed += [c]
    assert list(listed) == [a, b, c] and list(listed[::2]) == [a, c]
    table = nn.ModuleDict({"a": a})
    table["b"] = b
    assert list(table) == ["a", "b"] and "b" in table and table.pop("a") is a and len(table) == 1
    assert nn.Identity(1, x=2)(3) == 3
    assert nn.Flatten()(ag.zeros(2, 3, 4)).shape == (2, 12)


REPRS = {
    "Linear(in_features=1, out_features=2, bias=False)": nn.Linear(1, 2, bias=False),
    "GRU(2, 3, num_layers=2, dropout=0.5)": nn.GRU(2, 3, num_layers=2, dropout=0.5),
    "GRUCell(2, 3, bias=False)": nn.GRUCell(2, 3, bias=False),
    "Embedding(5, 3, padding_idx=4)": nn.Embedding(5, 3, padding_idx=-1),
    "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)": nn.LayerNorm(3),
    "Dropout(p=0.3, inplace=False)": nn.Dropout(0.3),
    "RReLU(lower=0.125, upper=0.3333333333333333, inplace=True)": nn.RReLU(inplace=True),
    "MaxUnpool1d(kernel_size=(2,), stride=(2,), padding=(0,))": nn.MaxUnpool1d(2),
    "MaxUnpool2d(kernel_size=(3, 3), stride=(2, 2), padding=(0, 1))": nn.MaxUnpool2d(3, 2, (0, 1)),
    "LazyLinear(in_features=0, out_features=2, bias=False)": nn.LazyLinear(2, bias=False),
    "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1), groups=2)": nn.LazyConv2d(4, 3, groups=2),
    "Flatten(start_dim=1, end_dim=-1)": nn.Flatten(),
    "Softplus(beta=1.0, threshold=20.0)": nn.Softplus(),
    "ReLU(inplace=True)": nn.ReLU(inplace=True),
    "Sequential(\n  (0): Tanh()\n  (1): Sequential(\n    (0): GELU(approximate='none')\n  )\n)": nn.Sequential(nn.Tanh(), nn.Sequential(nn.GELU())),
    "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)": nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]),
    "CrossEntropyLoss()": nn.CrossEntropyLoss(),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text):
    assert repr(REPRS[text]) == text


@pytest.mark.parametrize(("n", "sizes", "options"), [(1, (7,), (2,)), (2, (6, 5), (3, 2, 1)), (3, (4, 2, 5), ((2, 1, 3),))])
def test_max_unpool_undoes_max_pool(n, sizes, options, device):
    x = ag.tensor(np.random.default_rng(0).uniform(1, 2, (2, 3, *sizes)).astype(np.float32), device=device)
    pool, unpool = getattr(nn, f"MaxPool{n}d")(*options, return_indices=True), getattr(nn, f"MaxUnpool{n}d")(*options)
    y, places = pool(x)
    back = unpool(y, places, x.shape)
    assert_close(back, np.where(np.isin(array(x), array(y)), array(x), 0))
    assert_close(pool(back)[0], array(y))


def test_padding_is_never_the_largest(device):
    low = [-math.inf, -math.inf, -math.inf, 1, 2, -math.inf]
    x = ag.tensor([low], device=device, requires_grad=True)
    y, places = nn.functional.max_pool1d(x, 3, 2, 1, return_indices=True)
    assert places.tolist() == [[0, 3, 4]] and y.tolist() == [[-math.inf, 1, 2]]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 0, 0, 1, 1, 0]]
    for dtype, value in ((ag.uint8, 0), (ag.int64, -(2**31)), (ag.int64, -5)):
        flat = ag.full((1, 4, 5), value, dtype=dtype, device=device)
        y, places = nn.functional.max_pool2d(flat, 3, 2, 1, return_indices=True)
        assert places.tolist() == [[[0, 1, 3], [5, 6, 8]]] and (y == value).all()
    dilated = nn.functional.max_pool1d(ag.full((1, 6), -math.inf, device=device), 3, 1, 2, 2, return_indices=True)[1]
    assert dilated.tolist() == [[0, 1, 0, 1, 2, 3]]


# -- layers that wait for their input -------------------------------------------------------------------


def waiting(device="cpu"):
    return nn.Sequential(nn.LazyConv2d(4, 2, groups=2, device=device), nn.Flatten(), nn.LazyLinear(3, device=device))


def test_lazy_layers(device):
    ag.manual_seed(0)
    net = waiting().to(device)
    assert [p.shape for p in net.parameters()] == [(4, 0, 2, 2), (4,), (3, 0), (3,)]
    optimizer, calls = optim.AdamW(net.parameters(), lr=0.1), []
    x = ag.ones(2, 6, 3, 3, device=device)
    copies = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    net[2].register_forward_hook(lambda *_: calls.append(1))
    before = net(x)
    before.square().sum().backward()
    assert [type(m).__name__ for m in net] == ["Conv2d", "Flatten", "Linear"] and calls == [1]
    assert [p.shape for p in net.parameters()] == [(4, 3, 2, 2), (4,), (3, 16), (3,)]
    assert all(type(p) is nn.Parameter and p.device == device for p in net.parameters())
    assert (net[0].in_channels, net[2].in_features) == (6, 16) and 0.2 < array(net[2].weight).max() <= 0.25
    old = [array(p).copy() for p in net.parameters()]
    optimizer.step()
    assert all((array(p) != w).all() for p, w in zip(net.parameters(), old, strict=True))
    for twin in copies:
        assert type(twin[2]) is nn.LazyLinear and twin[2].weight is not net[2].weight
        twin.load_state_dict(net.state_dict())
        assert_close(twin(x), array(net(x)), 1e-6)
    assert nn.LazyConv1d(2, 3)(ag.ones(4, 5)).shape == (2, 3)
    assert nn.LazyConv3d(2, 1, bias=False)(ag.ones(1, 4, 2, 2, 2)).shape == (1, 2, 2, 2, 2)


def test_lazy_layers_refuse():
    net, made = waiting(), waiting()
    made(ag.ones(1, 2, 3, 3))
    net.load_state_dict(waiting().state_dict())
    assert isinstance(net[2].weight, nn.UninitializedParameter)
    assert_raises(RuntimeError, "0.weight: expected shape (4, 1, 2, 2), got (4, 0, 2, 2)", lambda: made.load_state_dict(net.state_dict()))
    wrong = {**made.state_dict(), "2.weight": ag.ones(2, 16)}
    assert_raises(RuntimeError, "2.weight: expected shape (3, 0), got (2, 16)", lambda: net.load_state_dict(wrong))
    assert isinstance(net[0].weight, nn.UninitializedParameter), "nothing was loaded"
    assert_raises(ValueError, "groups=2", lambda: net(ag.ones(1, 3, 3, 3)))
    assert_raises(ValueError, "[LazyConv1d] expects", lambda: nn.LazyConv1d(2, 1)(ag.ones(3)))
    assert_raises(ValueError, "[LazyLinear] expects", lambda: nn.LazyLinear(2)(ag.ones()))


# -- initialisation -------------------------------------------------------------------------------------

BOUNDS = {
    "Linear": (nn.Linear(100, 300).weight, 0.1, "uniform"),
    "Linear bias": (nn.Linear(100, 3000).bias, 0.1, "uniform"),
    "GRU": (nn.GRU(50, 64).weight_ih_l0, 1 / 8, "uniform"),
    "GRUCell bias": (nn.GRUCell(5, 1024).bias_hh, 1 / 32, "uniform"),
    "Embedding": (nn.Embedding(100, 100).weight, 1, "normal"),
    "xavier_uniform_": (nn.init.xavier_uniform_(ag.empty(200, 100), 2.0), 2 * math.sqrt(6 / 300), "uniform"),
    "xavier_normal_": (nn.init.xavier_normal_(ag.empty(200, 100)), math.sqrt(2 / 300), "normal"),
    "kaiming_uniform_": (nn.init.kaiming_uniform_(ag.empty(200, 50, 2), nonlinearity="relu"), math.sqrt(6 / 100), "uniform"),
    "kaiming_normal_": (nn.init.kaiming_normal_(ag.empty(200, 100), mode="fan_out", nonlinearity="tanh"), 5 / 3 / math.sqrt(200), "normal"),
    "normal_": (nn.init.normal_(ag.empty(200, 100, dtype=ag.float16), 0, 0.5), 0.5, "normal"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_initial_values(name):
    values, size, kind = array(BOUNDS[name][0]).astype(np.float64), *BOUNDS[name][1:]
    assert abs(values.mean()) < 0.05 * size
    if kind == "normal":
        assert values.std() == pytest.approx(size, rel=0.03)
    else:
        assert 0.98 * size < np.abs(values).max() <= size and values.std() == pytest.approx(size / math.sqrt(3), rel=0.05)


def test_init(device):
    for shape in ((3, 5), (5, 3), (4, 2, 3)):
        w = array(nn.init.orthogonal_(ag.empty(*shape, device=device), 2.0)).reshape(shape[0], -1)
        w = w if len(w) <= w.shape[1] else w.T
        assert_close(w @ w.T, 4 * np.eye(len(w)), 1e-5)
    p = nn.Parameter(ag.empty(2, 2, device=device))
    assert nn.init.constant_(p, 3) is p and array(p).tolist() == [[3, 3], [3, 3]] and p.requires_grad
    assert array(nn.init.zeros_(p)).sum() == 0 and array(nn.init.ones_(p)).sum() == 4
    ag.manual_seed(1)
    here = array(nn.Linear(3, 2, device=device).weight)
    ag.manual_seed(1)
    assert (array(nn.Linear(3, 2).weight) == here).all(), "a seed gives one start on both devices"
    assert nn.init.calculate_gain("leaky_relu", 0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert_raises(ValueError, "there are", lambda: nn.init.calculate_gain("gelu"))
    assert_raises(ValueError, "2 dimensions", lambda: nn.init.xavier_normal_(ag.empty(3)))


# -- utils ----------------------------------------------------------------------------------------------


def with_gradients(device, *grads):
    parameters = [nn.Parameter(ag.zeros(len(g), device=device)) for g in grads]
    for p, g in zip(parameters, grads, strict=True):
        p.grad = ag.tensor([float(v) for v in g], device=device)
    return parameters


CLIPS = [
    ([[3, 0], [0, 4]], 2.5, 2, 5, [[1.5, 0], [0, 2]]),
    ([[0.3, 0.4]], 1, 2, 0.5, [[0.3, 0.4]]),
    ([[3, -4]], 2, INF, 4, [[1.5, -2]]),
    ([[3, -4], [1]], 2, 1, 8, [[0.75, -1], [0.25]]),
    ([[0, 0]], 1, 2, 0, [[0, 0]]),
    ([[1e20, 1e20]], 1, 2, 1.4142135e20, [[0.7071068, 0.7071068]]),
    ([[3e-30], [4e-30]], 1, 2, 5e-30, [[3e-30], [4e-30]]),
    ([[INF, 1]], 1, 2, INF, [[np.nan, 0]]),
]


@pytest.mark.parametrize(("grads", "limit", "kind", "norm", "want"), CLIPS)
def test_clip_grad_norm(grads, limit, kind, norm, want, device):
    parameters = with_gradients(device, *grads)
    got = nn.utils.clip_grad_norm_([*parameters, nn.Parameter(ag.zeros(1, device=device))], limit, norm_type=kind)
    assert got.shape == () and got.device == device
    assert got.item() == pytest.approx(norm, rel=1e-5)
    for p, g in zip(parameters, want, strict=True):
        assert_close(p.grad, g, 1e-5)


def test_clip_edges(device):
    (p,) = with_gradients(device, [INF, 1])
    assert_raises(RuntimeError, "inf", lambda: nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True))
    assert_close(p.grad, [INF, 1])
    assert nn.utils.clip_grad_norm_([nn.Parameter(ag.zeros(1))], 1.0).item() == 0
    (p,) = with_gradients(device, [3, -4, 0.5])
    nn.utils.clip_grad_value_(p, 1)
    assert_close(p.grad, [1, -1, 0.5])
    half = nn.Parameter(ag.zeros(4, dtype=ag.float16, device=device))
    half.grad = ag.full((4,), 60000.0, dtype=ag.float16, device=device)
    assert nn.utils.clip_grad_norm_(half, 2.0).item() == pytest.approx(120000, rel=1e-3)
    assert_close(half.grad, [1, 1, 1, 1])


def test_clipping_reads_nothing_back(wgpu):
    parameters = with_gradients(wgpu, [3, 0], [0, 4])
    ag.wgpu.synchronize()
    ag.wgpu.reset_stats()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    assert ag.wgpu.stats()["bytes_downloaded"] == 0


def test_vectors(device):
    parameters = [nn.Parameter(ag.ones(2, 2, device=device)), nn.Parameter(ag.zeros(3, device=device))]
    vector = nn.utils.parameters_to_vector(parameters)
    assert_close(vector, [1, 1, 1, 1, 0, 0, 0])
    nn.utils.vector_to_parameters(ag.arange(7.0, device=device), parameters)
    assert_close(parameters[0], [[0, 1], [2, 3]])
    assert_close(parameters[1], [4, 5, 6])
    assert_raises(ValueError, "(7,)", lambda: nn.utils.vector_to_parameters(vector[:3], parameters))
