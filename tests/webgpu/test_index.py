"""gather, scatter_add and their kin; softmax and optimizers: the launchers against the engine on the CPU."""

import numpy as np
import pytest

import autograd as reference
from autograd.webgpu.launch import (
    Adam,
    Gather,
    IndexAdd,
    IndexSelect,
    Reduce,
    ScatterAdd,
    ScatterReduce,
    Sgd,
    Softmax,
    SoftmaxBackward,
    full,
)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_gather(gpu, check, rng):
    x = normal(rng, 4, 5, 6)
    for axis in range(3):
        shape = [3, 3, 3]
        shape[axis] = 7
        index = rng.integers(0, x.shape[axis], shape)
        want = reference.gather(reference.tensor(x), axis, reference.tensor(index)).numpy()
        check(Gather()(gpu.upload(x), gpu.upload(index), axis), want)


def test_scatter_add(gpu, check, rng):
    x, src = normal(rng, 4, 5, 6), normal(rng, 4, 9, 6)
    index = rng.integers(0, 5, (3, 9, 2))
    want = reference.tensor(x).scatter_add(1, reference.tensor(index), reference.tensor(src)).numpy()
    device = [gpu.upload(v) for v in (x, index, src)]
    first = gpu.download(ScatterAdd()(*device, 1))
    np.testing.assert_allclose(first, want, rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(gpu.download(ScatterAdd()(*device, 1)), first)
    np.testing.assert_array_equal(gpu.download(device[0]), x)


def test_scatter_add_of_itself(gpu, check, rng):
    x, index = normal(rng, 4, 5), np.zeros((4, 5), np.int64)
    a = gpu.upload(x)
    want = reference.tensor(x).scatter_add(1, reference.tensor(index), reference.tensor(x)).numpy()
    check(ScatterAdd()(a, gpu.upload(index), a, 1), want, atol=1e-6)


@pytest.mark.parametrize("axis", range(3))
def test_rows(axis, gpu, check, rng):
    x = normal(rng, 4, 5, 6)
    index = np.array([3, 0, 0, 2])
    shape = list(x.shape)
    shape[axis] = 4
    src = normal(rng, *shape)
    check(IndexSelect()(gpu.upload(x), gpu.upload(index), axis), x.take(index, axis))
    want = reference.tensor(x).index_add(axis, reference.tensor(index), reference.tensor(src)).numpy()
    check(IndexAdd()(gpu.upload(x), gpu.upload(index), gpu.upload(src), axis), want, atol=1e-6)


def test_strided_index(gpu, check, rng):
    x, index, src = normal(rng, 50), rng.integers(0, 50, 21), normal(rng, 21)
    want = np.zeros(50, np.float32)
    np.add.at(want, index[::-1], src)
    turned = gpu.upload(index).view((21,), (-1,), 20)
    check(IndexSelect()(gpu.upload(x), turned, 0), x[index[::-1]])
    check(IndexAdd()(full((50,), 0, np.float32, gpu), turned, gpu.upload(src), 0), want, atol=1e-6)


def test_many_duplicates(gpu, check, rng):
    index, src = rng.integers(0, 100, 3000), normal(rng, 3000, 8)
    want = np.zeros((100, 8))
    np.add.at(want, index, src.astype(np.float64))
    zeros = full((100, 8), 0, np.float32, gpu)
    got = IndexAdd()(zeros, gpu.upload(index), gpu.upload(src), 0)
    check(got, want.astype(np.float32), atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 37, 256, 1000])
def test_by_sorting(length, gpu, check, rng, monkeypatch):
    from autograd.webgpu import index as module

    monkeypatch.setattr(module, "SORT_ABOVE", 0)
    for axis in range(3):
        x = normal(rng, 6, 7, 5)
        index = rng.integers(0, x.shape[axis], 2 * length)[::2]
        shape = list(x.shape)
        shape[axis] = length
        src = normal(rng, *shape)
        want = reference.tensor(x).double().index_add(axis, reference.tensor(index.copy()), reference.tensor(src).double())
        strided = gpu.upload(np.repeat(index, 2)).view((length,), (2,), 0)
        operands = gpu.upload(x), strided, gpu.upload(src), axis
        first = gpu.download(IndexAdd()(*operands))
        np.testing.assert_allclose(first, want.numpy(), rtol=2e-6, atol=1e-6 * length**0.5)
        np.testing.assert_array_equal(gpu.download(IndexAdd()(*operands)), first)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_any_scatter_by_sorting(reduce, gpu, check, rng, monkeypatch):
    """The index may be smaller than x off the axis, and be repeated along a dimension."""
    from autograd.webgpu import index as module

    x, src = normal(rng, 4, 5, 6), normal(rng, 4, 9, 6)
    index = rng.integers(0, 5, (3, 9, 4))
    repeated = gpu.upload(index[:, :, 0]).view((3, 9, 4), (9, 1, 0), 0)
    for device, numbers in ((gpu.upload(index), index), (repeated, np.repeat(index[:, :, :1], 4, 2))):
        results = []
        for above in (0, module.SORT_ABOVE):
            monkeypatch.setattr(module, "SORT_ABOVE", above)
            operands = gpu.upload(x), device, gpu.upload(src), 1
            results.append(gpu.download(ScatterAdd()(*operands) if reduce == "sum" else ScatterReduce()(*operands, reduce)))
            monkeypatch.undo()
        np.testing.assert_array_equal(*results)
        tensors = reference.tensor(x), reference.tensor(numbers), reference.tensor(src)
        want = tensors[0].scatter_reduce(1, *tensors[1:], reduce)
        np.testing.assert_allclose(results[0], want.numpy(), rtol=2e-6, atol=1e-6)


def test_a_long_scatter_is_sorted(gpu, rng):
    """Quadratic, it would be 2^23 comparisons: as it is, a few dozen dispatches."""
    x, index, src = (gpu.upload(a) for a in (normal(rng, 4096), rng.integers(0, 4096, 4096), normal(rng, 4096)))
    before = gpu.queue.pending() + gpu.counters["dispatches"]
    y = ScatterAdd()(x, index, src, 0)
    assert 70 < gpu.queue.pending() + gpu.counters["dispatches"] - before < 90
    want = gpu.download(x).astype(np.float64)
    np.add.at(want, gpu.download(index), gpu.download(src))
    np.testing.assert_allclose(gpu.download(y), want, rtol=1e-5, atol=1e-5)


def test_integers_add_up(gpu, check):
    index = gpu.upload(np.array([1, 1, 0]))
    zeros = full((2,), 0, np.int64, gpu)
    check(IndexAdd()(zeros, index, gpu.upload(np.array([5, 6, 7])), 0), np.array([7, 11]))


def test_index_bounds(gpu):
    index = gpu.upload(np.array([[3, -2], [7, 0]]))
    assert gpu.index_bounds(index) == (-2, 7)
    assert gpu.index_bounds(index.view((2,), (2,), 0)) == (3, 7)
    gpu.copy_into(index, 9)
    assert gpu.index_bounds(index) == (9, 9)
    long = gpu.upload(np.arange(10_000))
    before = gpu.counters["submits"]
    assert gpu.index_bounds(long) == (0, 9999)
    assert gpu.counters["submits"] == before
    assert gpu.index_bounds(long.view((9000,), (1,), 1000)) == (1000, 9999)
    assert gpu.index_bounds(Reduce("argmax")(long, None)) == (9999, 9999)


@pytest.mark.parametrize("axis", range(3))
def test_softmax(axis, gpu, check, rng):
    x = normal(rng, 4, 5, 6)
    x[0, 0, 0] = np.nan
    x[1] = -np.inf
    x[2] *= 1e4
    x[3, 0, 0] = np.inf
    device = gpu.upload(x)
    swapped = gpu.upload(x.T).view(x.shape, (1, 4, 20), 0)
    for name in ("softmax", "log_softmax"):
        want = getattr(reference, name)(reference.tensor(x), axis).numpy()
        check(Softmax(name)(device, axis), want, atol=1e-6)
        check(Softmax(name)(swapped, axis), want, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_backward(name, gpu, check, rng):
    x, dy = normal(rng, 4, 5, 6), normal(rng, 4, 5, 6)
    for axis in range(3):
        leaf = reference.tensor(x, dtype=reference.float64, requires_grad=True)
        y = getattr(reference, name)(leaf, axis)
        (want,) = reference.grad(y, leaf, reference.tensor(dy, dtype=reference.float64))
        operands = gpu.upload(y.detach().numpy().astype(np.float32)), gpu.upload(dy)
        check(SoftmaxBackward(f"{name}_backward")(*operands, axis), want.numpy().astype(np.float32), atol=1e-6)


@pytest.mark.parametrize("size", [8, 7])
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(size, decoupled, gpu, check, rng):
    start = normal(rng, size)
    leaf = reference.nn.Parameter(reference.tensor(start))
    kind = reference.optim.AdamW if decoupled else reference.optim.Adam
    twin = kind([leaf], lr=0.01, weight_decay=0.1)
    p, m, v = gpu.upload(start), full((size,), 0, np.float32, gpu), full((size,), 0, np.float32, gpu)
    for step in range(1, 4):
        g = normal(rng, size)
        leaf.grad = reference.tensor(g)
        twin.step()
        Adam()(
            p, gpu.upload(g), m, v, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1,
            decoupled=decoupled, bias1=1 - 0.9**step, bias2=1 - 0.999**step,
        )  # fmt: skip
    check(p, leaf.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("momentum, nesterov", [(0, False), (0.9, False), (0.9, True)])
def test_sgd(momentum, nesterov, gpu, check, rng):
    start = normal(rng, 3, 4)
    leaf = reference.nn.Parameter(reference.tensor(start))
    twin = reference.optim.SGD([leaf], lr=0.1, momentum=momentum, weight_decay=0.05, nesterov=nesterov)
    p = gpu.upload(start)
    swapped = gpu.upload(start.T).view((3, 4), (1, 3), 0)
    for target in (p, swapped):
        buffer = full((3, 4), np.nan, np.float32, gpu) if momentum else None
        leaf.array = start.copy()
        twin.state.clear()
        for step in range(3):
            g = normal(rng, 3, 4)
            leaf.grad = reference.tensor(g)
            twin.step()
            options = {"momentum": momentum, "nesterov": nesterov, "first": step == 0}
            Sgd()(target, gpu.upload(g), buffer, lr=0.1, weight_decay=0.05, **options)
        check(target, leaf.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_long_rows(name, gpu, check, rng):
    """llvmpipe ends an invocation after 65,535 passes of its loops: rows are then split."""
    x, dy = normal(rng, 2, 70_000), normal(rng, 2, 70_000)
    leaf = reference.tensor(x, dtype=reference.float64, requires_grad=True)
    y = getattr(reference, name)(leaf, 1)
    (want,) = reference.grad(y, leaf, reference.tensor(dy, dtype=reference.float64))
    out = y.detach().numpy().astype(np.float32)
    check(Softmax(name)(gpu.upload(x), 1), out, atol=2e-6)
    got = SoftmaxBackward(f"{name}_backward")(gpu.upload(out), gpu.upload(dy), 1)
    check(got, want.numpy().astype(np.float32), rtol=1e-5, atol=1e-5)


def test_long_index(gpu, check, rng):
    length = 70_000
    src, ones = normal(rng, length), gpu.upload(np.ones(length, np.int64))
    for size in (3, 300):
        zeros = full((size,), 0, np.float32, gpu)
        got = gpu.download(IndexAdd()(zeros, ones, gpu.upload(src), 0))
        assert abs(got[1] - src.astype(np.float64).sum()) < 1e-3
        assert got[0] == 0 == got[2]
