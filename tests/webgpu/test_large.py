"""Tensors larger than one binding: the limit is cut, so that small ones are large."""

import numpy as np
import pytest

import autograd as ag
from autograd.webgpu import fuse


@pytest.fixture(params=[True, False], ids=["fused", "unfused"])
def fusion(request, monkeypatch):
    monkeypatch.setattr(fuse, "ENABLED", request.param)


def made(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, shape)
    x = (x * 100).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)
    return x, ag.tensor(x, device="wgpu:2")


def same(got, want, rtol=1e-6, atol=1e-6):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=atol)


def test_elementwise(small, fusion):
    (x, a), (row, b), (col, c) = made(70, 90), made(90, seed=1), made(70, 1, seed=2)
    assert a.array.storage.large and not b.array.storage.large
    same(a * 2 + b, x * 2 + row)
    same((a + a.T.contiguous().T).tanh(), np.tanh(2 * x))
    same(c + b, col + row)
    same(ag.where(a > 0, a, c), np.where(x > 0, x, col))
    same(a.T * a.T, (x * x).T)
    same(a[3:, ::2] - 1, x[3:, ::2] - 1)
    same(a[5] + b, x[5] + row)
    same(ag.ones(70, 90, device="wgpu:2") * 3 + a, 3 + x)
    same(a.flip(0).exp(), np.exp(x[::-1]))
    assert (a.half() + 1).dtype is ag.float16
    same((a.half() + 1).float(), (x.astype(np.float16) + np.float16(1)), rtol=2e-3)
    same(a.bfloat16().float(), x, rtol=1e-2)
    i, k = made(3, 5000, dtype=np.int64)
    same(k // 7, i // 7)


def test_copies(small, fusion):
    x, a = made(60, 100)
    y = a.clone()
    y[10:20, 5:] = 7
    y[:, 0] = a[:, 99]
    want = x.copy()
    want[10:20, 5:] = 7
    want[:, 0] = x[:, 99]
    same(y, want)
    same(ag.cat([a, a], 1), np.concatenate([x, x], 1))
    same(a.T.contiguous(), x.T)
    same(a.reshape(100, 60), x.reshape(100, 60))
    y.zero_()
    same(y, np.zeros_like(x))
    y.copy_(a)
    same(y, x)
    h = a.half()
    h[1::2, 3:8] = 2
    want = x.astype(np.float16)
    want[1::2, 3:8] = 2
    np.testing.assert_array_equal(h.numpy(), want)


@pytest.mark.parametrize("dim", [(0, 1), (0,), (1,), (2,), (0, 2)])
def test_reductions(small, fusion, dim):
    x, a = made(7, 30, 40)
    axes = dim
    same(a.sum(dim), x.sum(axes), atol=1e-4)
    same(a.amax(dim, keepdim=True), x.max(axes, keepdims=True))
    same(a.mean(dim), x.mean(axes), atol=1e-5)
    same(a.half().sum(dim).float(), x.astype(np.float16).astype(np.float32).sum(axes), rtol=2e-3, atol=2e-2)
    i, k = made(7, 30, 40, dtype=np.int64)
    same(k.sum(dim), i.sum(axes))
    assert (a > 2).any().item() is False and (a < 2).all().item() is True


@pytest.mark.parametrize("m, k, n", [(90, 50, 60), (3, 3000, 2), (3000, 3, 4), (4, 3, 3000), (60, 4, 60), (1, 5000, 1)])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products(small, m, k, n, batch):
    (x, a), (y, b), (z, c) = made(*batch, m, k), made(k, n, seed=1), made(n, seed=2)
    same(a @ b, x @ y, rtol=1e-4, atol=1e-4)
    same(ag.nn.functional.linear(a, b.T, c), x @ y + z, rtol=1e-4, atol=1e-4)
    same(a.half() @ b.half(), (x.astype(np.float16).astype(np.float32) @ y.astype(np.float16)), rtol=5e-3, atol=2e-2)


def test_a_product_that_only_the_second_batch_makes_large(small):
    (x, a), (y, b) = made(9, 4), made(60, 4, 7, seed=1)
    same(a @ b, x @ y, rtol=1e-4, atol=1e-5)


def test_gradients(small):
    x, a = made(80, 60)
    w, b = made(60, 70, seed=1)
    a.requires_grad = b.requires_grad = True
    (a @ b).tanh().sum().backward()
    t = 1 - np.tanh(x @ w) ** 2
    same(a.grad, t @ w.T, rtol=1e-3, atol=1e-4)
    same(b.grad, x.T @ t, rtol=1e-3, atol=1e-4)


def test_one_that_is_large_by_the_adapters_own_limit(gpu):
    """On software Vulkan that is 128 MiB; elsewhere this is an ordinary tensor."""
    n = min(gpu.pool.max_binding, 1 << 27) // 4 + 1001
    x = ag.ones(n, device="wgpu") * 0.5
    x[n - 3 :] = 2
    assert x.array.nbytes > gpu.pool.max_binding or gpu.pool.max_binding > 1 << 27
    y = x + 1
    assert y[n - 5 :].tolist() == [1.5, 1.5, 3, 3, 3] and y.sum().item() == pytest.approx(1.5 * n + 4.5, rel=1e-6)
