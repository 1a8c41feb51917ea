"""The matmul kernels that an adapter may get, and how it gets them."""

import json

import numpy as np
import pytest

import autograd as ag
from autograd.webgpu import fuse, tune
from autograd.webgpu.launch import Matmul, Unary


@pytest.fixture(autouse=True)
def restored(gpu):
    """Other tests measure the defaults."""
    yield
    tune.use(gpu, {})
    gpu.tuned = {}


@pytest.mark.parametrize("candidate", tune.CANDIDATES)
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 7, 3), (33, 20, 40), (64, 33, 70), (70, 64, 36)])
def test_every_candidate_is_right(candidate, m, k, n, gpu, check, rng, monkeypatch):
    tune.use(gpu, dict.fromkeys(tune.SAMPLES, candidate))
    a, b = rng.standard_normal((2, m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    x, y, added = gpu.upload(a), gpu.upload(b), gpu.upload(bias)
    across = gpu.upload(np.ascontiguousarray(a[0].T)).view((m, k), (1, m), 0)
    turned = gpu.upload(np.ascontiguousarray(b.T)).view((k, n), (1, k), 0)
    # Each part of a kernel with each other in one of them: software Vulkan takes seconds for one with large tiles.
    (left, right), (other, last) = ((across, y), (x, turned)) if n % 4 else ((x, y), (across, turned))
    check(Matmul()(left, right), (a if left is x else a[0]) @ b, rtol=1e-5, atol=2e-5)
    check(Matmul()(other, last, added), (a if other is x else a[0]) @ b + bias, rtol=1e-5, atol=2e-5)
    if m == 33:  # with what is made of it in the same kernel
        monkeypatch.setattr(fuse, "ENABLED", True)
        with monkeypatch.context() as patch:
            patch.setitem(gpu.info, "type", "DiscreteGPU")  # a CPU's compiler takes seconds for large tiles
            before = ag.wgpu.stats()["dispatches"]
            product = Matmul()(x, y, added)
        check(Unary("relu")(product), np.maximum(a @ b + bias, 0), rtol=1e-5, atol=2e-5)
        assert ag.wgpu.stats()["dispatches"] == before + 1
    for turn in (0, m // 2):
        product, sums = Matmul().with_sums(x.view((m, k), (k, 1), 0), y, turn)
        check(product, np.roll(a[0] @ b, turn, 0), rtol=1e-5, atol=2e-5)
        check(sums, np.roll(a[0].sum(1), turn), rtol=1e-5, atol=2e-5)


def test_the_defaults_go_by_the_adapters_type(gpu, monkeypatch):
    monkeypatch.setitem(gpu.info, "type", "CPU")
    assert {tune.choice(gpu, m, m, 1)[0] for m in (8, 200, 1000)} == {"matmul"}
    monkeypatch.setitem(gpu.info, "type", "DiscreteGPU")
    assert [tune.choice(gpu, m, m, 1)[0] for m in (8, 200, 1000)] == ["matmul", "matmul_shared", "matmul_shared"]


def test_what_was_measured_is_used_and_kept_when_asked(gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tune, "SAMPLES", {kind: (16, 16, 16) for kind in tune.SAMPLES})
    monkeypatch.setattr(tune, "CANDIDATES", tune.CANDIDATES[1:3])
    measured = ag.wgpu.autotune()
    assert set(measured) == {"large", "middle", "small"} and set(measured.values()) <= set(tune.CANDIDATES)
    assert not list(tmp_path.iterdir())
    kept = ag.wgpu.autotune(cache=True)
    stored = json.loads(tune.cache_file().read_text())
    assert list(stored) == [tune.adapter_key(gpu)] and stored[tune.adapter_key(gpu)]["large"] == list(kept["large"])
    monkeypatch.setattr(tune, "fastest", None)  # not measured again
    assert ag.wgpu.autotune(cache=True) == kept and tune.choice(gpu, 8, 8, 1) == kept["small"]
    for broken in ("{", "[]", json.dumps({tune.adapter_key(gpu): {"large": ["rm", 1, 1]}})):
        tune.cache_file().write_text(broken)
        assert tune.read_cache(gpu) is None
        assert tune.write_cache(gpu, kept) is None and tune.read_cache(gpu) == kept
