"""Mixed precision: what autocast casts, what the scaler does, and that training goes on as in float32."""

import copy
import threading

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import amp, nn, optim

F = nn.functional
LOW, WIDE = "low", "float32"

# operation of x (float32) and h (short), and its dtype under autocast on the CPU and on a GPU, as in PyTorch 2.13
OPS = {
    "matmul": (lambda x, h: x @ x.T, LOW, LOW),
    "mixed matmul": (lambda x, h: x @ h.T, LOW, LOW),
    "einsum": (lambda x, h: ag.einsum("ij,kj->ik", x, x), LOW, LOW),
    "addmm": (lambda x, h: ag.addmm(x[:, :2], x, x.T[:, :2]), LOW, LOW),
    "linear": (lambda x, h: F.linear(x, x, x[:, 0]), LOW, LOW),
    "conv1d": (lambda x, h: F.conv1d(x[None], x[None]), LOW, LOW),
    "attention": (lambda x, h: F.scaled_dot_product_attention(x[None], x[None], h[None]), LOW, LOW),
    "exp": (lambda x, h: h.exp(), LOW, WIDE),
    "pow": (lambda x, h: h**2, LOW, WIDE),
    "rpow": (lambda x, h: 2**h, LOW, WIDE),
    "number / tensor": (lambda x, h: 2 / h, LOW, WIDE),
    "prelu": (lambda x, h: F.prelu(x, x[0, :1]), LOW, LOW),
    "linalg.multi_dot": (lambda x, h: ag.linalg.multi_dot([x, x.T, x]), LOW, LOW),
    "linalg.vecdot": (lambda x, h: ag.linalg.vecdot(x, x), LOW, LOW),
    "linalg.vector_norm": (lambda x, h: ag.linalg.vector_norm(h), LOW, WIDE),
    "sum": (lambda x, h: h.sum(), LOW, WIDE),
    "prod": (lambda x, h: h.prod(), WIDE, WIDE),
    "softmax": (lambda x, h: F.softmax(h, 1), LOW, WIDE),
    "layer_norm": (lambda x, h: F.layer_norm(h, (3,)), LOW, WIDE),
    "sum with a dtype": (lambda x, h: h.sum(dtype=h.dtype), LOW, LOW),
    "mse_loss": (lambda x, h: F.mse_loss(h, h), WIDE, WIDE),
    "cross_entropy": (lambda x, h: F.cross_entropy(h, h), WIDE, WIDE),
    "cat": (lambda x, h: ag.cat([x, h]), WIDE, WIDE),
    "cat of short ones": (lambda x, h: ag.cat([h, h]), LOW, LOW),
    "relu": (lambda x, h: F.relu(h), LOW, LOW),
    "gelu": (lambda x, h: F.gelu(h), LOW, LOW),
    "elu": (lambda x, h: F.elu(h), LOW, LOW),
    "mean": (lambda x, h: h.mean(), LOW, LOW),
    "max_pool1d": (lambda x, h: F.max_pool1d(h[None], 2), LOW, LOW),
    "avg_pool1d": (lambda x, h: F.avg_pool1d(h[None], 2), LOW, LOW),
    "add": (lambda x, h: x + h, WIDE, WIDE),
    "wide relu": (lambda x, h: F.relu(x), WIDE, WIDE),
}


@pytest.mark.parametrize("short", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", OPS)
def test_lists(name, short, device):
    function, *wanted = OPS[name]
    x = ag.tensor([[1.0, -0.5, 2.0], [0.5, 0.25, 1.0]], device=device)
    x, h = ag.cat([x, x]), ag.cat([x, x]).to(short)
    want = wanted[device == "wgpu"]
    with ag.autocast(device, dtype=getattr(ag, short)):
        got = function(x, h)
    assert got.dtype.name == (short if want == LOW else want)
    wide = function(x, h.float())
    assert_close(got.float(), array(wide), 2e-2)


LAYERS = {
    "Linear": (lambda: nn.Linear(4, 3), (5, 4)),
    "Conv2d": (lambda: nn.Conv2d(2, 3, 2), (1, 2, 4, 4)),
    "GRU": (lambda: nn.GRU(4, 3), (5, 2, 4)),
    "LSTM": (lambda: nn.LSTM(4, 3, bidirectional=True), (5, 2, 4)),
    "RNN": (lambda: nn.RNN(4, 3), (5, 2, 4)),
    "GRUCell": (lambda: nn.GRUCell(4, 3), (2, 4)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2), (5, 2, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_their_gradients(name):
    """Short outputs near the float32 ones; float32 gradients at the float32 parameters."""
    check_layer(name, "cpu")


@pytest.mark.parametrize("name", sorted(set(LAYERS) - {"LSTM", "RNN", "GRUCell"}))  # a GRU's kernels stand for theirs
def test_layers_and_their_gradients_on_the_gpu(name, wgpu):
    check_layer(name, wgpu)


def check_layer(name, device):
    make, shape = LAYERS[name]
    ag.manual_seed(0)
    layer = make().to(device)
    x = ag.randn(*shape, device=device)

    def run():
        y = layer(x, x, x) if name == "MultiheadAttention" else layer(x)
        y = y[0] if isinstance(y, tuple) else y
        y.float().sum().backward()
        grads = {n: array(p.grad) for n, p in layer.named_parameters()}
        assert all(p.grad.dtype is ag.float32 for p in layer.parameters())
        layer.zero_grad()
        return y, grads

    with ag.autocast(device, ag.float16):
        y, grads = run()
    assert y.dtype is ag.float16
    want, wide = run()
    assert want.dtype is ag.float32
    assert_close(y.float(), array(want), 5e-3)
    for key, g in grads.items():
        np.testing.assert_allclose(g, wide[key], atol=2e-2 * max(1, np.abs(wide[key]).max()), err_msg=key)


def test_regions_nest_and_end(device):
    x = ag.ones(2, 2, device=device)
    assert not ag.is_autocast_enabled(device)
    with ag.autocast(device, ag.float16):
        assert ag.is_autocast_enabled(device) and ag.get_autocast_dtype(device) is ag.float16
        with ag.autocast(device, enabled=False):
            assert (x @ x).dtype is ag.float32 and not ag.is_autocast_enabled(device)
        with ag.autocast(device, ag.bfloat16):
            assert (x @ x).dtype is ag.bfloat16
        with pytest.raises(KeyError), ag.autocast(device, enabled=False):
            raise KeyError
        assert (x @ x).dtype is ag.float16
        seen = []
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
        assert seen == [ag.float32]  # a region is its thread's
        assert (x[:, :0] @ x[:0]).dtype is ag.float16

        @ag.autocast(device, enabled=False)
        def plain():
            return (x @ x).dtype

        assert plain() is ag.float32
    assert (x @ x).dtype is ag.float32 and ag.get_autocast_dtype("wgpu") is ag.float16


def test_other_devices_and_types_are_left_alone():
    x = ag.ones(2, 2)
    with ag.autocast("wgpu"):
        assert (x @ x).dtype is ag.float32
        with ag.autocast("cpu"):
            assert (x @ x).dtype is ag.bfloat16 and ag.is_autocast_enabled("wgpu")
    with ag.autocast("cpu", ag.float16):
        d = x.double()
        assert (d @ d).dtype is ag.float64
        assert x.to(ag.int64).sum().dtype is ag.int64


def test_parameters_are_cast_once(device):
    w = nn.Parameter(ag.ones(2, 2, device=device))
    with ag.autocast(device, ag.float16):
        first = F.linear(ag.ones(1, 2, device=device), w)
        policy = ag.cast.state.autocast
        assert list(policy.casts) == [w]
        cast = policy.casts[w][1]
        F.linear(first, w)
        assert policy.casts[w][1] is cast
        with ag.no_grad():
            w.mul_(2)
        assert_close(F.linear(ag.ones(1, 2, device=device), w).float(), [[4.0, 4.0]])
        w.data.copy_(ag.full_like(w, 3.0))  # no version tells of this
        assert_close(F.linear(ag.ones(1, 2, device=device), w).float(), [[6.0, 6.0]])
        for _ in range(2):  # a cast outlives a graph that is freed
            F.linear(ag.ones(1, 2, device=device), w).float().sum().backward()
        assert_close(w.grad, [[2.0, 2.0], [2.0, 2.0]])
    with ag.autocast(device, ag.float16, cache_enabled=False):
        F.linear(first, w)
        assert not ag.cast.state.autocast.casts


def test_linear_algebra_widens_on_the_cpu():
    h = ag.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=ag.bfloat16)
    with ag.autocast("cpu"):
        for found in (ag.linalg.cholesky(h), ag.linalg.inv(h), ag.linalg.solve(h, h), ag.linalg.svdvals(h), ag.linalg.qr(h)[0], ag.det(h)):
            assert found.dtype is ag.float32


def test_backward_is_not_autocast(device):
    x = ag.ones(2, 2, device=device, requires_grad=True)
    y = (x @ x).exp().sum()
    with ag.autocast(device, ag.float16):
        y.backward()
    with ag.autocast(device, ag.float16, enabled=False):
        (g,) = ag.grad((x @ x).exp().sum(), [x])
    assert (array(x.grad) == array(g)).all()


def test_refused(wgpu):
    assert_raises(ValueError, "device_type is one of cpu, wgpu; got 'cuda'", lambda: ag.autocast("cuda"))
    assert_raises(ValueError, "float16 or bfloat16", lambda: ag.autocast("cpu", ag.float32))
    with ag.autocast(wgpu):
        p = ag.full((2,), 0.5, device=wgpu)
        assert_raises(RuntimeError, "takes logits", lambda: F.binary_cross_entropy(p, p))


# -- the scaler -----------------------------------------------------------------------------------------


def scaled(device, make=lambda p: optim.SGD(p, lr=0.5), **options):
    p = nn.Parameter(ag.ones(1, device=device))
    optimizer = make([p])
    return p, optimizer, amp.GradScaler(device, **{"init_scale": 8.0, "growth_interval": 2, **options})


def one_step(p, optimizer, scaler, factor, clip=True):
    optimizer.zero_grad()
    scaler.scale((p * factor).sum()).backward()
    if clip:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([p], 1.0)
    scaler.step(optimizer)
    scaler.update()
    return p.item()


def test_order_of_a_step(device):
    p, optimizer, scaler = scaled(device)
    assert one_step(p, optimizer, scaler, 0.5) == 0.75 and scaler.get_scale() == 8
    one_step(p, optimizer, scaler, 0.0)
    assert scaler.get_scale() == 16
    assert one_step(p, optimizer, scaler, float("inf")) == 0.75 and scaler.get_scale() == 8
    assert one_step(p, optimizer, scaler, 4.0) == pytest.approx(0.25, abs=1e-6)  # clipping divides by norm + 1e-6
    assert one_step(p, optimizer, scaler, float("nan"), clip=False) == pytest.approx(0.25, abs=1e-6) and scaler.get_scale() == 4


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "NAdam", "ASGD"])
def test_skipped_steps_leave_the_state_alone(name, device):
    options = {"momentum": 0.9} if name == "SGD" else {}
    p, optimizer, scaler = scaled(device, lambda q: getattr(optim, name)(q, lr=0.1, **options))
    one_step(p, optimizer, scaler, 1.0)
    before = copy.deepcopy(optimizer.state_dict()), p.item(), optimizer.steps_taken
    one_step(p, optimizer, scaler, float("inf"))
    after = optimizer.state_dict()
    assert (p.item(), optimizer.steps_taken) == before[1:] and scaler.get_scale() == 4
    for key, value in before[0]["state"][0].items():
        assert array(after["state"][0][key]).tolist() == array(value).tolist()


def test_one_bad_gradient_of_many(device):
    parameters = [nn.Parameter(ag.ones(3, device=device)) for _ in range(5)]
    optimizer, scaler = optim.SGD(parameters, lr=1.0), amp.GradScaler(device, init_scale=2.0)
    for bad in range(6):
        for i, p in enumerate(parameters):
            p.grad = ag.tensor([2.0, float("nan") if i == bad else 2.0, -2.0], device=device)
        scaler.step(optimizer)
        scaler.update(2.0)
    assert all(array(p).tolist() == [0.0, 0.0, 2.0] for p in parameters)


def test_large_gradients_are_finite(device):
    p = nn.Parameter(ag.zeros(2, device=device))
    optimizer, scaler = optim.SGD([p], lr=1e-30), amp.GradScaler(device, init_scale=1.0)
    p.grad = ag.tensor([3e38, -3e38], device=device)
    scaler.step(optimizer)
    assert optimizer.steps_taken == 1


def test_scale_of_a_short_loss(device):
    scaler = amp.GradScaler(device)
    loss = ag.tensor(4.0, dtype=ag.float16, device=device)
    assert scaler.scale(loss).dtype is ag.float32 and scaler.scale(loss).item() == 4 * 2**16
    assert [t.item() for t in scaler.scale([loss, loss])] == [4 * 2**16] * 2
    assert_raises(TypeError, "outputs are tensors", lambda: scaler.scale(1.0))


def test_scaler_out_of_turn():
    p, optimizer, scaler = scaled("cpu")
    assert_raises(RuntimeError, "no step()", scaler.update)
    p.grad = ag.ones(1)
    scaler.unscale_(optimizer)
    assert_raises(RuntimeError, "was called already", lambda: scaler.unscale_(optimizer))
    scaler.step(optimizer)
    assert_raises(RuntimeError, "was called already", lambda: scaler.step(optimizer))
    assert_raises(RuntimeError, "before step()", lambda: scaler.unscale_(optimizer))
    assert_raises(TypeError, "closure", lambda: scaler.step(optimizer, lambda: None))
    short = nn.Parameter(ag.ones(1, dtype=ag.float16))
    short.grad = ag.ones(1, dtype=ag.float16)
    assert_raises(ValueError, "got float16", lambda: scaler.step(optim.SGD([short], lr=0.1)))
    for options in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"init_scale": 0.0}, {"growth_interval": 0}):
        assert_raises(ValueError, "[GradScaler]", lambda o=options: amp.GradScaler("cpu", **o))


def test_scaler_resumes_and_can_be_off(tmp_path):
    p, optimizer, scaler = scaled("cpu", growth_interval=3)
    one_step(p, optimizer, scaler, 1.0)
    ag.save(scaler.state_dict(), tmp_path / "s")
    resumed = amp.GradScaler("cpu")
    resumed.load_state_dict(ag.load(tmp_path / "s"))
    assert resumed.state_dict() == scaler.state_dict() and resumed.get_growth_interval() == 3
    off = amp.GradScaler("cpu", enabled=False)
    assert off.state_dict() == {} and off.get_scale() == 1 and not off.is_enabled()
    before = p.item()
    assert one_step(p, optimizer, off, 0.5, clip=False) == before - 0.25
    assert_raises(ValueError, "expected the entries", lambda: scaler.load_state_dict({}))


# -- training -------------------------------------------------------------------------------------------


class Forecast(nn.Module):
    """A GRU, or a transformer's encoder layer, and a line on top."""

    def __init__(self, kind):
        super().__init__()
        self.body = nn.GRU(4, 8, batch_first=True) if kind == "gru" else Encoder(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        y = self.body(x)
        return self.head(y[0] if isinstance(y, tuple) else y)[..., 0]


class Encoder(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.enter, self.attention = nn.Linear(width, size), nn.MultiheadAttention(size, 2, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.forward_part = nn.Sequential(nn.Linear(size, 16), nn.GELU(), nn.Linear(16, size))

    def forward(self, x):
        x = self.enter(x)
        x = self.norms[0](x + self.attention(x, x, x, need_weights=False)[0])
        return self.norms[1](x + self.forward_part(x))


def trained(kind, device, short, steps):
    ag.manual_seed(1)
    model = Forecast(kind).to(device)
    x = ag.randn(8, 6, 4, device=device)
    target = x.sum(2).cumsum(1).tanh()
    optimizer, scaler = optim.AdamW(model.parameters(), lr=0.02), amp.GradScaler(device, init_scale=1024.0, enabled=short is ag.float16)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with ag.autocast(device, short or ag.float16, enabled=short is not None):
            loss = F.mse_loss(model(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_trains_as_in_float32(kind, device):
    steps = 40 if device == "cpu" else 8
    wide, short = trained(kind, device, None, steps), trained(kind, device, ag.float16, steps)
    assert wide[-1] < 0.8 * wide[0]
    assert abs(short[-1] / wide[-1] - 1) < 0.01


def test_trains_in_bfloat16():
    wide, short = (trained("gru", "cpu", kind, 40)[-1] for kind in (None, ag.bfloat16))
    assert abs(short / wide - 1) < 0.01
