"""What is refused before anything runs, and what parameters that share memory ask for."""

import numpy as np
import pytest

import autograd as ag
from autograd.webgpu import fuse

F = ag.nn.functional


def dispatches():
    return ag.wgpu.stats()["dispatches"]


@pytest.fixture
def huge(gpu):
    """2 ** 34 elements, of four bytes."""
    one = ag.tensor([2.0], device="wgpu")
    return one, one.expand(2**17, 2**17), ag.tensor([0], device="wgpu").expand(2**17, 2**17)


USES = {
    "add": lambda one, x, i: x + 1, "sum": lambda one, x, i: x.sum(), "amax": lambda one, x, i: x.amax(1),
    "argmax": lambda one, x, i: x.argmax(1), "softmax": lambda one, x, i: x.softmax(1), "cumsum": lambda one, x, i: x.cumsum(0),
    "matmul": lambda one, x, i: x @ one.expand(2**17), "inner": lambda one, x, i: one.expand(3, 2**33) @ one.expand(2**33, 2),
    "gather": lambda one, x, i: x.gather(1, i), "scatter_add": lambda one, x, i: x.scatter_add(0, i, x),
    "sort": lambda one, x, i: x.sort(1), "clone": lambda one, x, i: x.clone(), "cat": lambda one, x, i: ag.cat([x, x]),
    "conv2d": lambda one, x, i: F.conv2d(one.expand(2**12, 3, 2**11, 2**10), one.expand(4, 3, 3, 3)),
    "max_pool2d": lambda one, x, i: F.max_pool2d(one.expand(2**12, 3, 2**11, 2**10), 2), "where": lambda one, x, i: ag.where(i > 0, x, x),
    "layer_norm": lambda one, x, i: F.layer_norm(x, (2**17,)), "embedding": lambda one, x, i: F.embedding(i, one.expand(3, 4)),
    "attention": lambda one, x, i: F.scaled_dot_product_attention(*[one.expand(2**12, 2**4, 2**10, 64)] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_indices_beyond_32_bits_are_refused_before_anything_runs(name, huge):
    ag.wgpu.synchronize()
    before = dispatches()
    with pytest.raises(ValueError, match=r"\] kernels index with 32 bits; shape \(.*\) has [\d,]+ elements"):
        USES[name](*huge)
    assert dispatches() == before and huge[1][7:9, 5:8].sum().item() == 12


def test_an_index_that_repeats_is_looked_at_once(gpu):
    x, index = ag.ones(3, 2**20, device="wgpu"), ag.tensor([[3], [1]], device="wgpu").expand(2, 2**20)
    before = dispatches()
    with pytest.raises(IndexError):
        x.gather(0, index)
    assert dispatches() == before


STEPS = {
    "AdamW": lambda p: ag.optim.AdamW(p, 0.1).step(),
    "SGD": lambda p: ag.optim.SGD(p, 0.1, weight_decay=0.1).step(),
    "momentum": lambda p: ag.optim.SGD(p, 0.1, momentum=0.9).step(),
    "clip": lambda p: ag.nn.utils.clip_grad_norm_(p, 1.0),
}


@pytest.mark.parametrize("shares_gradient", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_a_dispatch_binds_no_buffer_twice_that_it_writes(name, shares_gradient, gpu, monkeypatch):
    """Parameters that are views of one flat tensor, as bigdl's get_parameters() makes them; gradients beside them, or in it."""
    record, ends = gpu.record, []

    def checked(kernel, key, storages, *rest):
        written = [s.buffer.id for s, how in zip(storages, kernel.layout.access[1:], strict=True) if how == "w"]
        ids = [s.buffer.id for s in storages]
        assert all(ids.count(ident) == 1 for ident in written), kernel.name
        record(kernel, key, storages, *rest)

    monkeypatch.setattr(gpu, "record", checked)
    for device in ("wgpu", "cpu"):
        numbers = np.random.default_rng(0).standard_normal(64).astype(np.float32)
        flat = ag.tensor(numbers, device=device)
        gradients = flat[32:] if shares_gradient else ag.tensor(numbers[32:], device=device)
        cuts = slice(0, 8), slice(8, 15), slice(15, 23), slice(23, 27), slice(28, 32)
        params = [flat[cut].detach().requires_grad_() for cut in cuts]
        for p, cut in zip(params, cuts, strict=True):
            p.grad = gradients[cut]
        STEPS[name](params)
        ends.append((flat.numpy(), gradients.numpy()))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [ag.float32, ag.bfloat16, ag.int64], ids=str)
def test_operands_computed_meanwhile_are_no_more_than_a_kernel_binds(dtype, gpu, monkeypatch):
    """A sum reads x alone while it waits; then its operands get memory of their own, each a buffer to read."""
    monkeypatch.setattr(fuse, "ENABLED", True)
    monkeypatch.setattr(fuse, "chosen", lambda root, host=None: [root])
    x = ag.tensor([1, 2, 3], device="wgpu").to(dtype)
    parts = [x + k for k in range(9)]
    total = sum(parts[1:], parts[0])
    square = total * total
    assert [p.tolist()[0] for p in parts] == list(range(1, 10)) and total.array.pending is not None
    assert square.float().tolist() == pytest.approx([45**2, 54**2, 63**2], rel=1 / 256) and total.tolist() == [45, 54, 63]
