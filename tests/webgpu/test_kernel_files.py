"""What every kernel's file says of itself, and how many compiled kernels are kept."""

import gc
import re
from pathlib import Path

import numpy as np
import pytest

from autograd.webgpu import pipelines
from autograd.webgpu.launch import Binary

FILES = sorted((Path(__file__).resolve().parents[2] / "wgsl").glob("*.wgsl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_what_its_kernel_costs(path):
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("// cost:")]
    assert len(lines) == 1 and len(lines[0]) <= 130, lines
    arithmetic, _, device = lines[0].removeprefix("// cost:").partition(";")
    assert re.search(r"operation|arithmetic|comparison|atomic", arithmetic)
    assert re.search(r"bytes|once a tile", lines[0])
    assert "invocation" in device


def test_the_least_recently_used_kernel_is_dropped(gpu, monkeypatch):
    monkeypatch.setattr(pipelines, "MAX_KERNELS", len(gpu.pipelines.kernels) + 2)
    x = gpu.upload(np.ones((2, 3, 4), np.float32)[:, ::2])

    def compiled(name):
        before = gpu.counters["pipelines"]
        gpu.pipelines.get("fill", (), f"// {name}\n")
        return gpu.counters["pipelines"] - before

    assert compiled("a") == compiled("b") == 1 and compiled("a") == 0
    assert compiled("c") == 1 and len(gpu.pipelines.kernels) == pipelines.MAX_KERNELS
    for name in range(pipelines.MAX_KERNELS - 2):  # pushes out all but a and c and itself
        compiled(name)
        assert compiled("a") == 0  # used again and again
    assert compiled("b") == 1  # gone
    assert len(gpu.pipelines.kernels) == pipelines.MAX_KERNELS
    np.testing.assert_array_equal(gpu.download(Binary("add")(x, x)), 2)  # compiled again where it must be


def test_a_kernel_that_is_dropped_is_gone(gpu, monkeypatch):
    """Plans keep what they launch: they are forgotten before they keep more than that."""
    monkeypatch.setattr(gpu.pipelines, "kernels", {})
    monkeypatch.setattr(pipelines, "MAX_KERNELS", 6)
    for name in range(20):
        gpu.kernel("fill", (), f"// one of many: {name}\n")
    gc.collect()
    alive = [kernel for kernel in gc.get_objects() if type(kernel) is pipelines.Kernel]
    assert sum("one of many" in kernel.source.text() for kernel in alive) <= 6
