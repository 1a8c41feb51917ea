"""Rows and reductions by an invocation each, and by a workgroup each in a tree: the same numbers, to the bit each time."""

import numpy as np
import pytest

import autograd as ag
from autograd.webgpu import rows
from autograd.webgpu.launch import Reduce, Softmax, SoftmaxBackward

F = ag.nn.functional
KINDS = ("one", "tree")
LENGTHS = (1, 5, 64, 1000, 4097)


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch, gpu):
    monkeypatch.setattr(rows, "KIND", request.param)
    return request.param


def drawn(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32) * 3


def exact(name, x, axis):
    d = x.astype(np.float64) - x.max(axis, keepdims=True)
    e = np.exp(d)
    total = e.sum(axis, keepdims=True)
    return e / total if name == "softmax" else d - np.log(total)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_any_length(kind, length, name, gpu):
    x, dy = drawn(3, length), drawn(3, length)[::-1].copy()
    want = exact(name, x, 1)
    launch, back = Softmax(name), SoftmaxBackward(f"{name}_backward")
    y = launch(gpu.upload(x), 1)
    np.testing.assert_allclose(gpu.download(y), want, rtol=1e-5, atol=1e-6)
    turned = gpu.upload(np.ascontiguousarray(x.T)).view((3, length), (1, 3), 0)
    np.testing.assert_allclose(gpu.download(launch(turned, 1)), want, rtol=1e-5, atol=1e-6)
    sums = (dy * want).sum(1, keepdims=True) if name == "softmax" else dy.sum(1, keepdims=True, dtype=np.float64)
    gradient = want * (dy - sums) if name == "softmax" else dy - np.exp(want) * sums
    dx = gpu.download(back(y, gpu.upload(dy), 1))
    np.testing.assert_allclose(dx, gradient, rtol=1e-4, atol=2e-5)
    again = gpu.download(back(launch(gpu.upload(x), 1), gpu.upload(dy), 1))
    np.testing.assert_array_equal(again, dx)


@pytest.mark.parametrize("shape, axes", [((7,), (0,)), ((5, 700), (1,)), ((700, 5), (0,)), ((700, 40), (0,)), ((3, 900, 8), (0, 1)),
                                         ((2, 3000, 3), (1,)), ((90_001,), (0,)), ((6, 130, 4), (0, 2)), ((40_000, 8), (0,))])  # fmt: skip
def test_reductions_of_any_shape(kind, shape, axes, gpu):
    x = drawn(*shape)
    device = gpu.upload(x)
    every = axes == (0,) and len(shape) == 2  # the other folds differ in how two numbers are joined, not in where they lie
    for name, exactly in (("sum", np.sum), ("max", np.max), ("min", np.min)) if every else (("sum", np.sum),):
        want = exactly(x.astype(np.float64), axis=axes)
        got = gpu.download(Reduce(name)(device, axes))
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=3e-6 * np.prod([shape[d] for d in axes]) ** 0.5)
        np.testing.assert_array_equal(gpu.download(Reduce(name)(device, axes)), got)
    if every:
        np.testing.assert_array_equal(gpu.download(Reduce("any")(device, axes)), x.any(axes))


def test_a_tree_takes_two_passes_at_most(monkeypatch, gpu):
    monkeypatch.setattr(rows, "KIND", "tree")
    for shape, axes, most in (((1 << 20,), (0,), 2), ((128, 128), (1,), 1), ((2048, 128), (0,), 2), ((64, 4096), (1,), 1)):
        x = gpu.upload(drawn(*shape))
        gpu.synchronize()
        before = ag.wgpu.stats()["dispatches"]
        y = Reduce("sum")(x, axes)
        assert ag.wgpu.stats()["dispatches"] - before <= most, shape
        np.testing.assert_allclose(gpu.download(y), drawn(*shape).sum(axes, dtype=np.float64), rtol=1e-5, atol=5e-3)


@pytest.mark.parametrize("length", [1, 12, 130, 5000])
@pytest.mark.parametrize("affine", [True, False])
def test_norms(kind, length, affine, wgpu):
    x, w, b, dy = drawn(5, length), drawn(length), drawn(length) + 1, drawn(5, length)[:, ::-1].copy()
    found = []
    for device, dtype in (("cpu", "float64"), (wgpu, "float32")):
        tensors = [ag.tensor(a.astype(dtype), device=device, requires_grad=True) for a in (x, w, b)]
        given = tensors if affine else tensors[:1]
        y = F.layer_norm(given[0], (length,), *given[1:])
        found.append([y, *ag.grad(y, given, ag.tensor(dy.astype(dtype), device=device))])
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_losses(kind, classes, wgpu):
    x, t = drawn(9, classes), np.arange(9) % classes
    found = []
    for device, dtype in (("cpu", "float64"), (wgpu, "float32")):
        logits = ag.tensor(x.astype(dtype), device=device, requires_grad=True)
        loss = F.cross_entropy(logits, ag.tensor(t, device=device), label_smoothing=0.1)
        found.append([loss, *ag.grad(loss, [logits])])
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), rtol=2e-5, atol=1e-7)


def test_nan_and_infinity_travel_through_a_tree(kind, gpu):
    x = drawn(4, 300)
    x[0, 3], x[1, 299], x[2] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        d = x - x.max(1, keepdims=True)
        want = np.exp(d) / np.exp(d).sum(1, keepdims=True)
    np.testing.assert_allclose(gpu.download(Softmax("softmax")(gpu.upload(x), 1)), want, rtol=1e-5)
    np.testing.assert_array_equal(gpu.download(Reduce("max")(gpu.upload(x), (1,))), x.max(1))


def test_the_choice_goes_by_the_adapters_type(gpu, monkeypatch):
    monkeypatch.setattr(rows, "KIND", "")
    lengths = (10, 1000, 5000)
    monkeypatch.setitem(gpu.info, "type", "CPU")
    assert [rows.lanes_of(gpu, n) for n in lengths] == [1, 1, 256] and not rows.trees(gpu, 5000)
    monkeypatch.setitem(gpu.info, "type", "DiscreteGPU")
    assert [rows.lanes_of(gpu, n) for n in lengths] == [1, 256, 256] and rows.trees(gpu, 5000)
    assert rows.lanes_of(gpu, 1000, step=7) == 1  # rows side by side
    monkeypatch.setattr(rows, "KIND", "leaf")
    with pytest.raises(ValueError, match="AUTOGRAD_WGPU_ROWS"):
        rows.trees(gpu, 1)
