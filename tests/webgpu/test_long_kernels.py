"""No kernel runs for long: what would is cut into dispatches, whose results are those of one, to the bit."""

import numpy as np
import pytest

import autograd as ag
from autograd import nn
from autograd.webgpu import attention, foreach, matmul, rnn


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def count(function):
    gpu = ag.wgpu.open_device()
    gpu.flush()
    before = ag.wgpu.stats()["dispatches"]
    found = function()
    gpu.flush()
    return ag.wgpu.stats()["dispatches"] - before, found


def test_attention(wgpu, monkeypatch):
    arrays = [drawn(2, 3, 70, 8, seed=k) for k in range(4)]

    def run():
        q, k, v = (ag.tensor(a, device="wgpu", requires_grad=True) for a in arrays[:3])
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return [t.cpu().numpy() for t in (y.detach(), *ag.grad(y, [q, k, v], ag.tensor(arrays[3], device="wgpu")))]

    few, whole = count(run)
    monkeypatch.setattr(attention, "MOST_WORK", 70 * 16 * 64)  # a workgroup a dispatch
    many, pieces = count(run)
    assert many == few + 3 * 6  # seven workgroups of each of three kernels
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_recurrent_layers(kind, wgpu, monkeypatch, gpu):
    monkeypatch.setitem(gpu.info, "type", "DiscreteGPU")
    ag.manual_seed(0)
    layer, x = getattr(nn, kind)(4, 12).to("wgpu"), ag.tensor(drawn(30, 3, 4), device="wgpu")

    def run():
        layer.zero_grad()
        y, _ = layer(x)
        (y * y).sum().backward()
        return [t.cpu().numpy() for t in (y.detach(), *(p.grad for p in layer.parameters()))]

    few, whole = count(run)
    monkeypatch.setattr(rnn, "MOST_PASSES", 200)
    many, pieces = count(run)
    assert many > few + 4
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(a, b)


def test_products(wgpu, monkeypatch, gpu):
    a, b = gpu.upload(drawn(100, 40)), gpu.upload(drawn(40, 60, seed=1))
    whole = gpu.download(matmul.Matmul()(a, b))
    sums = [gpu.download(x) for x in matmul.Matmul().with_sums(a, b, 30)]
    monkeypatch.setattr(matmul, "MOST_WORK", 1)
    many, y = count(lambda: matmul.Matmul()(a, b))
    assert many > 1
    np.testing.assert_array_equal(gpu.download(y), whole)
    for got, want in zip(matmul.Matmul().with_sums(a, b, 30), sums, strict=True):
        np.testing.assert_array_equal(gpu.download(got), want)
    np.testing.assert_array_equal(sums[0], np.roll(whole, 30, 0))
    np.testing.assert_allclose(sums[1], np.roll(drawn(100, 40).sum(1), 30), rtol=1e-4, atol=1e-5)


def test_the_norm_of_very_many_gradients(wgpu, monkeypatch):
    """Of 36,865 parts, which are more than an invocation of software Vulkan walks twice; some are zeros, one is huge."""
    monkeypatch.setattr(foreach, "SHARE", 1)
    few = [np.full(4096, k % 3, np.float32) for k in range(63)] + [np.full(1, 1e25, np.float32)]
    for grads in (few[:-1], few, [*few, np.full(1, np.nan, np.float32)]):
        parameters = [ag.zeros(*g.shape, device="wgpu", requires_grad=True) for g in grads]
        for p, g in zip(parameters, grads, strict=True):
            p.grad = ag.tensor(g, device="wgpu")
        want = np.linalg.norm(np.concatenate(grads).astype(np.float64))
        np.testing.assert_allclose(nn.utils.clip_grad_norm_(parameters, 1.0).item(), want, rtol=1e-5)
        np.testing.assert_allclose(parameters[1].grad.numpy(), grads[1] / want, rtol=1e-5)
