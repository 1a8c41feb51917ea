"""Rows, windows and indices of tensors larger than one binding: pieces = one piece = NumPy, gradients too."""

import numpy as np
import pytest

import autograd as ag

F = ag.nn.functional
X, LONG, ROW = (80, 60), (2, 3000), (4500,)


def places(shape, below, seed=7):
    return np.random.default_rng(seed).integers(0, below, shape)


def seeded(function):
    """The same, with the same random numbers in every call."""
    return lambda *given: (ag.manual_seed(5), function(*given))[1]


ORDERS = np.stack([np.random.default_rng(k).permutation(80) for k in range(60)], 1)  # no place twice: PyTorch lets any win
# name: (function of tensors, their shapes or arrays; float arrays get gradients)
ROWS = {
    "softmax": (lambda x: x.softmax(1), X),
    "softmax of columns": (lambda x: x.softmax(0), X),
    "softmax of long rows": (lambda x: x.softmax(1), LONG),
    "softmax between": (lambda x: x.softmax(1), (9, 20, 30)),
    "softmax of a view": (lambda x: x[3:, ::2].softmax(1), X),
    "log_softmax": (lambda x: x.log_softmax(-1), X),
    "log_softmax of long rows": (lambda x: x.log_softmax(1), LONG),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (60,), w, b), X, (60,), (60,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (60,), w), X, (60,)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (6, 5, 12, 13)),
    "group_norm": (lambda x: F.group_norm(x, 2), (20, 4, 6, 7)),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), X, places((80,), 60)),
    "cross_entropy of each": (lambda x, t: F.cross_entropy(x, t, reduction="none"), X, places((80,), 60)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (5, 4, 12, 16), (5, 4, 10, 16), (5, 4, 10, 12)),
    "masked attention": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > 0), *[(5, 4, 12, 10)] * 3, (5, 1, 12, 12)),
    "attention with dropout": (
        seeded(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.4)),
        (5, 4, 12, 16), (5, 4, 10, 16), (5, 4, 10, 12)),
    "turned attention with dropout": (
        seeded(lambda x, m: F.scaled_dot_product_attention(*[x[:, :, :, k].transpose(1, 2) for k in (0, 1, 2)], m > 0, dropout_p=0.4)),
        (3, 10, 7, 3, 24), (3, 1, 10, 10)),
    "causal attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (20, 2, 10, 7)),
}
SCANS = {
    "cumsum": (lambda x: x.cumsum(1), X),
    "cumsum of columns": (lambda x: x.cumsum(0), X),
    "cumsum of a long row": (lambda x: x.cumsum(0), ROW),
    "cumprod": (lambda x: (1 + x / 50).cumprod(1), X),
    "cumprod of long rows": (lambda x: (1 + x / 1000).cumprod(1), LONG),
    "cummax": (lambda x: x.cummax(1)[0], X),
    "cummax of long rows": (lambda x: x.cummax(1)[0], LONG),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), X),
    "sort": (lambda x: x.sort(1)[0], X),
    "sort of a long row": (lambda x: x.sort(descending=True)[0], ROW),
    "topk of a view of a long row": (lambda x: x[::-2].topk(70)[0], ROW),
    "sort of columns": (lambda x: x.sort(0, descending=True)[0], X),
    "topk": (lambda x: x.topk(4)[0], X),
    "median": (lambda x: x.median(1)[0], X),
}
WINDOWS = {
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (6, 3, 14, 15), (4, 3, 3, 3)),
    "strided conv2d": (lambda x, w: F.conv2d(x, w, stride=2, groups=2), (20, 4, 9, 9), (6, 2, 3, 3)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), (6, 3, 8, 9), (3, 4, 3, 3)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), (8, 4, 14, 15)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (8, 4, 14, 16)),
    "unfold": (lambda x: F.unfold(x, 3), (9, 2, 9, 9)),
    "fold": (lambda x: F.fold(x, (8, 9), 3), (9, 18, 42)),
}
INDICES = {
    "gather": (lambda x, i: x.gather(1, i), X, places((70, 90), 60)),
    "gather of columns": (lambda x, i: x.gather(0, i), X, places((90, 50), 80)),
    "gather from a long row": (lambda x, i: x.gather(0, i), ROW, places((300,), 4500)),
    "gather many": (lambda x, i: x.gather(0, i), (50,), places((9000,), 50)),
    "index_select": (lambda x, i: x.index_select(0, i), X, places((40,), 80)),
    "index_select of columns": (lambda x, i: x.index_select(1, i), X, places((90,), 60)),
    "embedding": (lambda x, i: F.embedding(i, x), (400, 16), places((9, 20), 400)),
    "take": (lambda x, i: x.take(i), X, places((30, 5), 4800)),
    "index": (lambda x, i: x[i, 2:], X, places((7, 9), 80)),
    "two indices": (lambda x, i, j: x[i, j], X, places((90,), 80), places((90,), 60, 8)),
    "scatter_add": (lambda x, i, s: x.scatter_add(0, i, s), X, places((90, 60), 80), (90, 60)),
    "scatter_add of rows": (lambda x, i, s: x.scatter_add(1, i, s), (70, 40), places((60, 50), 40), (65, 55)),
    "scatter_add to a long row": (lambda x, i, s: x.scatter_add(0, i, s), ROW, places((3000,), 4500), (3000,)),
    "index_add": (lambda x, i, s: x.index_add(0, i, s), (400, 16), places((300,), 400), (300, 16)),
    "scatter": (lambda x, i, s: x.scatter(1, i, s), X, places((80, 1), 60), (80, 1)),
    "scatter to columns": (lambda x, i, s: x.scatter(0, i, s), X, ORDERS[:50], (50, 60)),
    "scatter_reduce": (lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), X, places((90, 60), 80), (90, 60)),
}
MOVES = {
    "stack": (lambda x: ag.stack([x, x * 2], 1), X),
    "cat": (lambda x, y: ag.cat([x, y], 0), X, (5, 60)),
    "where": (lambda x, y: ag.where(x > y, x, y), X, (60,)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 3.0), X),
    "masked_select": (lambda x: x.masked_select(x > 0), X),
    "roll": (lambda x: x.roll(7, 0), X),
    "tril": (lambda x: x.tril(), X),
    "pad": (lambda x: F.pad(x, (1, 2, 3, 0), value=2.0), X),
    "repeat": (lambda x: x.repeat(2, 3), (30, 20)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), X),
    "norm": (lambda x: x.norm(), X),
    "var": (lambda x: x.var(0), X),
    "einsum": (lambda x, y: ag.einsum("ij,kj->ik", x, y), X, (70, 60)),
    "addmm": (lambda x, y, z: ag.addmm(x, y, z), (80, 70), X, (60, 70)),
}
ALL = {**ROWS, **SCANS, **WINDOWS, **INDICES, **MOVES}


def results(function, given, device, dtype):
    """What a function makes of arrays on a device, and its gradients."""
    tensors = []
    for k, x in enumerate(given):
        if isinstance(x, tuple):
            x = np.random.default_rng(k).uniform(-1, 1, x).astype(np.float32)
        floating = x.dtype.kind == "f"
        tensors.append(ag.tensor(x, device=device, dtype=dtype if floating else None, requires_grad=floating))
    y = function(*tensors)
    w = ag.tensor(np.random.default_rng(9).uniform(-1, 1, y.shape).astype(np.float32), device=device)
    (y.float() * w).sum().backward()
    return [y.detach(), *(t.grad for t in tensors if t.grad is not None)]


def agree(case, dtype, rtol, atol):
    pieces, one, cpu = (results(case[0], case[1:], device, dtype) for device in ("wgpu:2", "wgpu", "cpu"))
    assert len(pieces) == len(one) == len(cpu)
    for a, b, c in zip(pieces, one, cpu, strict=True):
        assert a.shape == b.shape == c.shape and a.dtype is b.dtype is c.dtype
        a, b, c = (t.float().numpy() for t in (a, b, c))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        np.testing.assert_allclose(a, c, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", ALL)
def test_pieces_are_one_piece_and_numpy(name, small):
    agree(ALL[name], ag.float32, 2e-4, 2e-5)
    assert small.has_large


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "cumsum", "sort", "gather", "embedding", "max_pool2d", "where", "stack"])
def test_of_two_bytes(name, dtype, small):
    function, *given = ALL[name]
    given = [(2 * x[0], *x[1:]) if isinstance(x, tuple) and len(x) > 1 else x for x in given]
    agree((function, *given), dtype, *((2e-2, 2e-2) if dtype is ag.float16 else (1e-1, 1e-1)))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("shape, dim", [(X, 0), (X, 1), (X, None), (LONG, 1), (ROW, 0), ((2, 2, 3000), 2), ((3000, 3), 0)])
def test_extremes(name, shape, dim, small):
    x = np.random.default_rng(0).integers(-40, 40, shape).astype(np.float32)
    x.reshape(-1)[[-5, x.size // 2]] = np.nan
    got = [getattr(ag.tensor(x, device=device), name)(dim).numpy() for device in ("wgpu:2", "wgpu", "cpu")]
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], got[2])


@pytest.mark.parametrize("shape, dim", [(X, 1), (X, 0), ((300, 20), 1), ((60, 90), 1), ((513,), 0), (ROW, 0), ((2, 1500), 1), ((1100, 3), 0)])
@pytest.mark.parametrize("dtype", [ag.float32, ag.int64, ag.float16])
def test_orders(shape, dim, dtype, small):
    x = places(shape, 50).astype(np.float32)
    got = [ag.tensor(x, device=device).to(dtype).argsort(dim, descending=True, stable=True).numpy() for device in ("wgpu:2", "cpu")]
    np.testing.assert_array_equal(*got)


def test_integers(small):
    x = places((90, 60), 100)
    a = ag.tensor(x, device="wgpu:2")
    assert a.dtype is ag.int64 and a.array.storage.large
    np.testing.assert_array_equal(a.cumsum(0).numpy(), x.cumsum(0))
    np.testing.assert_array_equal(a.gather(1, a % 60).numpy(), np.take_along_axis(x, x % 60, 1))
    np.testing.assert_array_equal(a.to(ag.float32).to(ag.uint8).to(ag.int32).numpy(), x)
    np.testing.assert_array_equal(F.one_hot(a, 100).sum(2).numpy(), 1)
    np.testing.assert_array_equal((a > 50).nonzero().numpy(), np.argwhere(x > 50))
    np.testing.assert_array_equal(ag.arange(9000, device="wgpu:2").numpy(), np.arange(9000))


@pytest.mark.parametrize("make", [lambda p: ag.optim.SGD(p, 0.1), lambda p: ag.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
                                  lambda p: ag.optim.AdamW(p, 0.1), lambda p: ag.optim.Adam(p, 0.1, amsgrad=True),
                                  lambda p: ag.optim.RMSprop(p, 0.1), lambda p: ag.optim.Adagrad(p, 0.1)],
                         ids=["SGD", "momentum", "AdamW", "amsgrad", "RMSprop", "Adagrad"])  # fmt: skip
def test_optimizers(make, small):
    ends = []
    for device in ("wgpu:2", "cpu"):
        rng = np.random.default_rng(0)
        shapes = (70, 61), (5, 3), (4001,), (9,)
        params = [ag.tensor(rng.standard_normal(s).astype(np.float32), device=device, requires_grad=True) for s in shapes]
        optimizer = make(params)
        for _ in range(2):
            optimizer.zero_grad()
            sum(((p - 1) ** 2).sum() for p in params).backward()
            norm = ag.nn.utils.clip_grad_norm_(params, 20.0)
            optimizer.step()
        ends.append([norm.numpy(), *(p.detach().numpy() for p in params)])
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_random_numbers(small):
    for make in (lambda d: ag.randn(80, 60, device=d), lambda d: ag.randint(0, 9, (9000,), device=d),
                 lambda d: F.dropout(ag.ones(80, 60, device=d), 0.4), lambda d: ag.nn.init.uniform_(ag.zeros(80, 60, device=d), 2, 3)):  # fmt: skip
        drawn = []
        for device in ("wgpu:2", "cpu"):
            ag.manual_seed(3)
            drawn.append(make(device).numpy())
        np.testing.assert_allclose(*drawn, rtol=1e-6)


def test_what_cannot_be_cut_says_so_before_it_runs(small):
    x, h = ag.randn(20, 30, 60, device="wgpu:2"), ag.randn(2, 2, 70, 60, device="wgpu:2")
    gru = ag.nn.GRU(60, 40).to("wgpu:2")
    for use, words in {
        lambda: F.scaled_dot_product_attention(h, h, h, dropout_p=0.5): r"\[attention\] what it does at once of shape \(1, 1, 70, 60\)",
        lambda: gru(x)[0].sum().item(): r"\[gru\] what it does at once of shape \(120, 40\) takes 19,200 bytes",
    }.items():
        with pytest.raises(ValueError, match=words):
            use()
    assert (ag.randn(100, device="wgpu:2").sort()[0].diff() >= 0).all().item()
