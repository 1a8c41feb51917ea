"""bfloat16 on both devices: 16 bits in memory, computed in float32, PyTorch's promotion."""

import copy
import pickle

import numpy as np
import pytest
import safetensors

import autograd as ag
from autograd.dtypes import converted, widened

BFLOAT = ag.bfloat16.numpy
ULP = 2.0**-7


def near(x):
    """The bfloat16 nearest to each float32, as float32."""
    return widened(converted(np.asarray(x, np.float32), BFLOAT))


def made(shape, device, seed=0):
    values = near(np.random.default_rng(seed).standard_normal(shape))
    return ag.tensor(values, dtype=ag.bfloat16, device=device), values


def test_rounding_is_to_nearest_even():
    x = np.float32([1, 1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-8), 3.4e38, np.inf, np.nan, 0, -0.0, 2.0**-126])
    want = [1, 1, 1 + 2**-6, -1, np.inf, np.inf, np.nan, 0, -0.0, 2.0**-126]
    np.testing.assert_allclose(near(x), np.float32(want), rtol=ULP)
    assert np.signbit(near(x)).tolist() == np.signbit(x).tolist()
    every = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT)
    again = converted(widened(every), BFLOAT)
    real = ~np.isnan(widened(every))
    np.testing.assert_array_equal(again[real].view(np.uint16), every[real].view(np.uint16))
    assert np.isnan(widened(again[~real])).all()


FUNCTIONS = {
    "add": lambda x, y: x + y,
    "number": lambda x, y: 2.5 * x,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**2,
    "exp": lambda x, y: x.exp(),
    "tanh": lambda x, y: x.tanh(),
    "softmax": lambda x, y: x.softmax(-1),
    "matmul": lambda x, y: x @ y.T,
    "sum": lambda x, y: x.sum(1),
    "prod": lambda x, y: x.prod(0),
    "mean": lambda x, y: x.mean(0),
    "amax": lambda x, y: x.amax(1),
    "cumsum": lambda x, y: x.cumsum(1),
    "cat": lambda x, y: ag.cat([x, y], 1),
    "where": lambda x, y: ag.where(x > y, x, y),
    "index": lambda x, y: x[[2, 0, 2]],
    "slice": lambda x, y: x[1:, ::2],
    "sort": lambda x, y: x.sort(1)[0],
    "layer_norm": lambda x, y: ag.nn.functional.layer_norm(x, (7,)),
    "flip": lambda x, y: x.flip(0),
    "abs": lambda x, y: abs(-x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_float32_rounded_once(name, device):
    (x, v), (y, w) = made((5, 7), device), made((5, 7), device, 1)
    got = FUNCTIONS[name](x, y)
    want = FUNCTIONS[name](ag.tensor(v), ag.tensor(w))
    assert got.dtype is ag.bfloat16 and str(got.device).startswith(device)
    np.testing.assert_allclose(got.numpy(), near(want.numpy()), rtol=1.01 * ULP if device == "wgpu" else 0)


@pytest.mark.parametrize("name", ["add", "number", "div", "exp", "softmax", "matmul", "mean", "cumsum", "index", "where"])
def test_gradients(name, device):
    (x, v), (y, w) = made((5, 7), device), made((5, 7), device, 1)
    x.requires_grad = y.requires_grad = True
    a, b = ag.tensor(v, requires_grad=True), ag.tensor(w, requires_grad=True)
    (FUNCTIONS[name](x, y) * 3).sum().backward()
    (FUNCTIONS[name](a, b) * 3).sum().backward()
    for t, u in ((x, a), (y, b)):
        if u.grad is not None:
            assert t.grad.dtype is ag.bfloat16
            np.testing.assert_allclose(t.grad.numpy(), u.grad.numpy(), rtol=4 * ULP, atol=0.05)
    x.grad = None
    for _ in range(2):
        x.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2)


def test_comparisons_and_integers(device):
    x = ag.tensor([0.0, -0.0, 2.0, float("nan")], dtype=ag.bfloat16, device=device)
    assert (x == 0).tolist() == [True, True, False, False] and (x != x).tolist() == [False, False, False, True]
    assert (x[:3] == x[:3]).tolist() == [True] * 3 and x[:3].argmax().item() == 2 and (x < 1).sum().item() == 2
    assert x.long()[2].item() == 2 and x.bool().tolist() == [False, False, True, True]


def test_promotion():
    b, h, f, i = (ag.ones(2, dtype=d) for d in (ag.bfloat16, ag.float16, ag.float32, ag.int64))
    same = (i, b, 2.5, True)
    for other, want in ((h, ag.float32), (f, ag.float32), *((x, ag.bfloat16) for x in same)):
        assert (b + other).dtype is want and (other * b).dtype is want
    assert (b + ag.tensor(1.0)).dtype is ag.bfloat16 and (b + ag.ones(2, dtype=ag.float64)).dtype is ag.float64
    assert ag.promote_types(ag.bfloat16, ag.float16) is ag.float32 and ag.result_type(b, 1.5) is ag.bfloat16


def test_making_and_casting(device):
    for x, want in (
        (ag.full((3,), 2.5, dtype=ag.bfloat16, device=device), [2.5] * 3),
        (ag.ones(3, dtype="bfloat16", device=device), [1] * 3),
        (ag.arange(3, dtype=ag.bfloat16, device=device), [0, 1, 2]),
        (ag.eye(2, dtype=ag.bfloat16, device=device), [[1, 0], [0, 1]]),
        (ag.linspace(0, 1, 3, dtype=ag.bfloat16, device=device), [0, 0.5, 1]),
        (ag.tensor([1.003, 3], device=device).bfloat16(), [1.0, 3.0]),
        (ag.tensor([1, 2], device=device).to(ag.bfloat16), [1, 2]),
    ):
        assert x.dtype is ag.bfloat16 and x.tolist() == want and x.itemsize == 2 and x.nbytes == 2 * x.numel()
        assert (x * 1).dtype is ag.bfloat16 and x.float().dtype is ag.float32 and x.half().tolist() == want
    x = ag.randn(4, dtype=ag.bfloat16, device=device)
    assert x.numpy().dtype == np.float32 and np.asarray(x).dtype == np.float32
    assert repr(ag.full((2,), 1.5, dtype=ag.bfloat16)) == "tensor([1.5000, 1.5000], dtype=autograd.bfloat16)"
    assert ag.tensor(x).dtype is ag.bfloat16 and x.to("cpu").tolist() == x.tolist()


def test_changes_in_place_and_views(device):
    x = ag.zeros(3, 5, dtype=ag.bfloat16, device=device)
    x[1, 1:4] = 2.5
    x[:, 0].add_(1)
    x.mul_(2)
    x[0] = x[1]
    np.testing.assert_array_equal(x.numpy(), [[2, 5, 5, 5, 0], [2, 5, 5, 5, 0], [2, 0, 0, 0, 0]])


@pytest.mark.parametrize("optimizer", [ag.optim.SGD, ag.optim.AdamW])
def test_training(optimizer, device):
    ag.manual_seed(0)
    model = ag.nn.Sequential(ag.nn.Linear(3, 8), ag.nn.Tanh(), ag.nn.Linear(8, 1)).bfloat16().to(device)
    x = made((16, 3), device)[0]
    target = x.sum(1, keepdim=True)
    step = optimizer(model.parameters(), lr=0.05)
    losses = []
    for _ in range(25):
        loss = ((model(x) - target) ** 2).mean()
        step.zero_grad()
        loss.backward()
        ag.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        step.step()
        losses.append(loss.item())
    assert loss.dtype is ag.bfloat16 and losses[-1] < 0.5 * losses[0]


def test_it_survives_saving_and_copying(device, tmp_path):
    x = made((3, 5), device)[0]
    ag.save({"x": x, "odd": x[0, :3], "f": ag.ones(3)}, tmp_path / "f")
    back = ag.load(tmp_path / "f", device=device)
    twins = [back["x"], pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()]
    for t in twins:
        assert t.dtype is ag.bfloat16 and t.tolist() == x.tolist()
    assert back["odd"].tolist() == x[0, :3].tolist()
    kinds = {name: entry["dtype"] for name, entry in safetensors.deserialize((tmp_path / "f").read_bytes())}
    assert kinds == {"x": "BF16", "odd": "BF16", "f": "F32"}
