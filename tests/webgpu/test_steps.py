"""Steps of optimizers and clipping on arrays of 16 bits: in place, several parameters a dispatch, as in float32."""

import numpy as np
import pytest
from halves import BFLOAT, HALF, bits, values, wide

import autograd as ag
from autograd import nn, optim, webgpu
from autograd.dtypes import converted
from autograd.webgpu import adapter, foreach
from autograd.webgpu.launch import Adam, Sgd

SHORT = {"float16": HALF, "bfloat16": BFLOAT}
SHAPES = (5, 7), (7,), (3, 7), (3,)  # none a multiple of four
NUMBERS = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.1, "bias1": 0.1, "bias2": 0.01}


@pytest.fixture(scope="module")
def native_and_packed(gpu):
    """wgpu, the same adapter as wgpu:3 with shader-f16 withheld, and as wgpu:4 with WebGPU's own limits."""
    found = adapter.adapters()[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "adapters", lambda: found * 5)
        patch.setenv("AUTOGRAD_WGPU_LIMITS", "default")
        webgpu.open_device(4)
        patch.delenv("AUTOGRAD_WGPU_LIMITS")
        patch.setenv("AUTOGRAD_WGPU_NO_F16", "1")
        webgpu.open_device(3)
    yield {"native": "wgpu", "packed": "wgpu:3", "few buffers": "wgpu:4"}
    for index in (3, 4):
        webgpu._opened.pop(index).close()


@pytest.fixture(params=["native", "packed"])
def place(request, native_and_packed):
    return native_and_packed[request.param]


@pytest.fixture(params=SHORT)
def dtype(request):
    return SHORT[request.param]


def opened(place):
    return webgpu.open_device(int(place.partition(":")[2] or 0))


def dispatches(gpu, call, *args):
    """How many a call makes, all that waits after it included."""
    gpu.flush()
    before = gpu.counters["dispatches"]
    call(*args)
    gpu.flush()
    return gpu.counters["dispatches"] - before


def surrounded(gpu, x, before):
    """(a view of a copy of x, all of its memory): around it are NaNs whose bits no conversion keeps."""
    around = np.full(before + x.size + 5, 0x7C01 if x.dtype == HALF else 0x7F81, np.uint16).view(x.dtype)
    around[before : before + x.size] = x
    whole = gpu.upload(around)
    return whole.view(x.shape, (1,), before), whole, around


def step(kind, p, g, m, v):
    """One step of a kernel; which of the state it uses."""
    if kind == "adam":
        Adam()(p, g, m, v, decoupled=True, **NUMBERS)
        return [m, v]
    momentum = 0.9 if kind == "momentum" else 0.0
    Sgd()(p, g, m if momentum else None, lr=0.1, weight_decay=0.1, momentum=momentum)
    return [m] if momentum else []


@pytest.mark.parametrize("kept", ["float32", "16 bits"])
@pytest.mark.parametrize("before", [0, 3, 4])
@pytest.mark.parametrize("kind", ["adam", "momentum", "sgd"])
def test_a_step_rounds_once_and_leaves_the_rest_alone(kind, before, kept, place, dtype):
    gpu = opened(place)
    copied = dtype in gpu.packed and before % 4
    for size in (1, 2, 7, 64, 130):
        start, g = values(size, dtype), values(size, dtype, 1)
        moments = values(size, dtype, 2), converted(np.abs(wide(values(size, dtype, 3))), dtype)
        p, whole, around = surrounded(gpu, start, before)
        state = [gpu.upload(x if kept == "16 bits" else wide(x)) for x in moments]
        twins = [gpu.upload(wide(x)) for x in (start, g, *moments)]
        short = gpu.upload(g)
        assert dispatches(gpu, step, kind, p, short, *state) == (3 if copied else 1)
        used = step(kind, *twins)
        around[before : before + size] = converted(gpu.download(twins[0]), dtype)
        np.testing.assert_array_equal(bits(gpu.download(whole)), bits(around))
        for got, want in zip(state, used):
            want = gpu.download(want)
            want = converted(want, dtype) if kept == "16 bits" else want
            np.testing.assert_array_equal(gpu.download(got).view(np.uint8), want.view(np.uint8))


def test_a_gradient_of_another_type(place, dtype):
    """Loss scalers and users may leave float32 gradients on 16-bit parameters, or the other way round."""
    gpu = opened(place)
    x, g = values(7, dtype), values(7, dtype, 1)
    ends = []
    for start, slope in ((x, wide(g)), (wide(x), g), (wide(x), wide(g))):
        p = gpu.upload(start)
        Adam()(p, gpu.upload(slope), gpu.full((7,), 0, np.float32), gpu.full((7,), 0, np.float32), decoupled=False, **NUMBERS)
        ends.append(gpu.download(p))
    np.testing.assert_array_equal(bits(ends[0]), bits(converted(ends[2], dtype)))
    np.testing.assert_array_equal(ends[1], ends[2])


def model(device, dtype):
    random = np.random.default_rng(0)
    return [nn.Parameter(ag.tensor(random.standard_normal(s).astype(np.float32), device=device).to(dtype=dtype)) for s in SHAPES]


def give_gradients(parameters, t):
    random = np.random.default_rng(t + 1)
    for p in parameters:
        p.grad = ag.tensor(random.standard_normal(p.shape).astype(np.float32), device=p.device).to(dtype=p.dtype)


# and the arrays that a step needs of each parameter, where it is all that is computed
MAKE = {
    "Adam": (lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1), 4),
    "AdamW": (lambda p: optim.AdamW(p, lr=0.01), 4),
    "AdamW, up": (lambda p: optim.AdamW(p, lr=0.01, maximize=True), None),
    "SGD": (lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1), 2),
    "momentum": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), 3),
}


@pytest.mark.parametrize("kind", ["float32", *SHORT])
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("place", ["native", "packed", "few buffers"], indirect=True)
def test_optimizers_equal_the_cpus_and_parameters_share_dispatches(name, kind, place):
    make, arrays = MAKE[name]
    room = opened(place).wgpu_device.limits["max-storage-buffers-per-shader-stage"]
    most = arrays and -(-len(SHAPES) // min(8, room // arrays))
    here, there = model("cpu", getattr(ag, kind)), model(place, getattr(ag, kind))
    optimizers = make(here), make(there)
    versions = [p._version for p in there]
    for t in range(5):
        for parameters in (here, there):
            give_gradients(parameters, t)
        optimizers[0].step()
        found = dispatches(opened(place), optimizers[1].step)
        assert found == most or not t or most is None  # the first one makes the state
    for p, q, version in zip(here, there, versions, strict=True):
        tolerance = {"float32": 2e-5, "float16": 3e-3, "bfloat16": 3e-3}[kind]
        np.testing.assert_allclose(q.detach().float().numpy(), p.detach().float().numpy(), rtol=tolerance, atol=tolerance)
        assert q.dtype is p.dtype and q._version > version
        state = [v for v in optimizers[1].state[q].values() if isinstance(v, ag.Tensor)]
        assert all(v.dtype is ag.float32 for v in state)


@pytest.mark.parametrize("kind", ["float32", *SHORT])
def test_clipping_equals_the_cpus_in_three_dispatches(kind, place):
    here, there = model("cpu", getattr(ag, kind)), model(place, getattr(ag, kind))
    for parameters in (here, there):
        give_gradients(parameters, 0)
    norms = [nn.utils.clip_grad_norm_(here, 0.5)]
    found = dispatches(opened(place), lambda: norms.append(nn.utils.clip_grad_norm_(there, 0.5)))
    assert found == 3  # the parts of the norm, their sum, all gradients times the factor
    assert norms[1].item() == pytest.approx(norms[0].item(), rel=1e-5)
    assert norms[1].dtype is ag.float32
    for p, q in zip(here, there, strict=True):
        rtol = {"float32": 1e-5, "float16": 2**-10, "bfloat16": 2**-7}[kind]
        np.testing.assert_allclose(q.grad.float().numpy(), p.grad.float().numpy(), rtol=rtol)


@pytest.mark.parametrize("before", [0, 3, 4])
def test_clipping_leaves_the_rest_alone(before, place, dtype):
    gpu = opened(place)
    for size in (1, 7, 600):
        x = values(size, dtype)
        view, whole, around = surrounded(gpu, x, before)
        found = dispatches(gpu, foreach.clip, [view], 0.1)
        assert found == (5 if dtype in gpu.packed and before % 4 else 3)
        norm = np.linalg.norm(wide(x).astype(np.float64))
        after = gpu.download(whole)
        scaled = wide(after[before : before + size])
        np.testing.assert_allclose(
            scaled, wide(x) * min(1, 0.1 / (norm + 1e-6)), rtol=2**-7 if dtype == BFLOAT else 2**-10, atol=1e-6
        )
        after[before : before + size] = around[before : before + size] = x
        np.testing.assert_array_equal(bits(after), bits(around))


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize("name", ["AdamW", "momentum"])
def test_in_pieces(name, kind, small):
    """Parameters larger than what a kernel may see, beside one of odd length."""
    ends = []
    for device in ("wgpu:2", "cpu"):
        random = np.random.default_rng(0)
        drawn = [random.standard_normal(s).astype(np.float32) for s in ((70, 121), (9,))]
        parameters = [nn.Parameter(ag.tensor(x, device=device).to(dtype=getattr(ag, kind))) for x in drawn]
        optimizer = MAKE[name][0](parameters)
        for t in range(2):
            give_gradients(parameters, t)
            nn.utils.clip_grad_norm_(parameters, 20.0)
            optimizer.step()
        ends.append([p.detach().float().numpy() for p in parameters])
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=2**-7, atol=3e-3)
