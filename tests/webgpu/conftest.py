"""The device that these tests run on, and the comparison that they all use."""

import os
import subprocess
import sys

import numpy as np
import pytest

from autograd import webgpu
from autograd.webgpu import adapter

SMALL = 8192  # bytes that the device of `small` binds at once


@pytest.fixture(scope="session")
def gpu():
    """The first Vulkan device; without one a skip, or in CI a failure."""
    if not webgpu.is_available():
        if os.environ.get("AUTOGRAD_REQUIRE_WGPU", "") not in ("", "0"):
            pytest.fail("AUTOGRAD_REQUIRE_WGPU is set and there is no Vulkan device")
        pytest.skip("no Vulkan device: install mesa-vulkan-drivers to run the GPU tests")
    return webgpu.open_device(0)


@pytest.fixture(scope="module")
def small(gpu):
    """wgpu:2, a device of its own whose kernels see 8 KiB of a tensor: small ones are large there."""
    found = adapter.adapters()[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "adapters", lambda: found * 3)
        opened = webgpu.open_device(2)
    opened.pool.max_binding = SMALL
    record = opened.queue.recorder.bind

    def bind(device, layout, arena, buffers):
        assert all((size or 0) <= SMALL for _, _, size in buffers), buffers
        return record(device, layout, arena, buffers)

    opened.queue.recorder.bind = bind
    yield opened
    webgpu._opened.pop(2).close()


@pytest.fixture(scope="session")
def packing(gpu):
    """The same adapter once more, with shader-f16 withheld."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOGRAD_WGPU_NO_F16", "1")
        return adapter.open_gpu(0)


@pytest.fixture
def rng():
    """The same random numbers in every run."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def check(gpu):
    """Assert that a device array has the shape, dtype and values of a NumPy one."""

    def compare(got, want, rtol=2e-6, atol=1e-7):
        got, want = gpu.download(got), np.asarray(want)
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)

    return compare


@pytest.fixture(scope="session")
def run():
    """Run a program in a fresh interpreter, with more in its environment."""

    def program(code, **env):
        merged = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env}
        return subprocess.run([sys.executable, "-c", code], env=merged, capture_output=True, timeout=300)

    return program
