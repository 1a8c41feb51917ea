"""A core subset of the tests once more in the modes that the environment can ask for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Transfers, views, reductions, 16-bit types, gradients and training on wgpu: quick, and through every kind of launcher.
CORE = ["tests/webgpu/test_reduce.py", "tests/webgpu/test_half.py", "tests/webgpu/test_bfloat16.py", "tests/test_views.py"]
MODES = {
    "unfused": ("AUTOGRAD_FUSE", "0"),
    "safe": ("AUTOGRAD_WGPU_SAFE", "1"),
    "no_f16": ("AUTOGRAD_WGPU_NO_F16", "1"),
    "limits": ("AUTOGRAD_WGPU_LIMITS", "default"),
}


@pytest.mark.parametrize("mode", MODES)
def test_core(mode, wgpu):
    name, value = MODES[mode]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "not cpu and not a_million", *CORE]
    done = subprocess.run(command, env={**os.environ, name: value}, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " skipped" not in done.stdout


def test_limits_are_webgpus_own_when_asked(run):
    code = """
import autograd as ag
gpu = ag.wgpu.open_device()
assert gpu.wgpu_device.limits["max-buffer-size"] == 1 << 28
assert gpu.pool.max_bytes == 1 << 28 and gpu.pool.max_binding == 1 << 27
try:
    ag.zeros(1 << 27, device="wgpu")
except ValueError as error:
    print(error)
"""
    done = run(code, AUTOGRAD_WGPU_LIMITS="default")
    assert b"needs 536,870,912 bytes and this adapter's buffers hold at most 268,435,456" in done.stdout, done.stderr
    done = run("import autograd as ag; ag.wgpu.open_device()", AUTOGRAD_WGPU_LIMITS="tiny")
    assert b"ValueError: [wgpu] AUTOGRAD_WGPU_LIMITS" in done.stderr
