"""What goes wrong outside of the engine's hands: each time a Python exception that names it, and the process lives on."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import assert_close, assert_raises

import autograd as ag
from autograd import nn

NAN = float("nan")
NOWHERE = str(Path(os.devnull) / "no-driver.json")
# Python code for a process of its own: `tried(f)` is what f raises, as text.
TRIED = """
import autograd as ag

def tried(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def trains():
    w = ag.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    return w.grad.tolist() == [2.0, 4.0]
"""


def run(code, **environment):
    """The lines that a process of its own prints; it has to end well."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    command = [sys.executable, "-W", "error", "-c", TRIED + code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# -- one process, one mistake after the other -----------------------------------------------------------------

# what is done -> (class, what its message holds, f(x of shape (2, 3), device)); single mistakes: test_errors.py
MISTAKES = {
    "shapes": (ValueError, "[add] sizes must be equal or 1", lambda x, d: x + ag.ones(4, device=d)),
    "product": (ValueError, "[matmul] inner sizes must agree; got (2, 3) @ (2, 3)", lambda x, d: x @ x),
    "layer": (ValueError, "[linear] needs x [..., I]", lambda x, d: nn.Linear(2, 2).to(d)(x)),
    "recurrent layer": (ValueError, "[GRU] the input must be [T, B, I] or [T, I] with I = 5; got (2, 3)", lambda x, d: nn.GRU(5, 2).to(d)(x)),
    "device": (ValueError, "got 'cuda'", lambda x, d: x.to("cuda")),
    "backward": (RuntimeError, "[backward] a gradient is created by itself only for a single element; got shape (2, 3)", lambda x, d: (x * 2).backward()),
    "backward without a tape": (RuntimeError, "[backward] the tensor was not recorded", lambda x, d: x.detach().sum().backward()),
    "NaN as an index": (TypeError, "[getitem] indices are", lambda x, d: x[NAN]),
    "NaN made an index": (IndexError, "[getitem] indices must lie in [-2, 1]; got -", lambda x, d: x[ag.tensor([0.0, NAN], device=d).long()]),
    "NaN made an index of gather": (IndexError, "[gather] indices must lie in [0, 1]; got -", lambda x, d: x.gather(0, ag.tensor([[NAN]], device=d).long())),
    "NaN made a label": (
        IndexError, "[cross_entropy] indices must lie in [0, 2]; got -",
        lambda x, d: nn.functional.cross_entropy(x, ag.tensor([1.0, NAN], device=d).long()),
    ),
    "weights of another shape": (
        RuntimeError, "weight: expected shape (2, 3), got (3, 3)",
        lambda x, d: nn.Linear(3, 2).to(d).load_state_dict({"weight": ag.ones(3, 3), "bias": ag.ones(2)}),
    ),
}  # fmt: skip


def test_mistakes_in_the_middle_of_a_computation(device):
    """What was recorded and queued before them still gives the right numbers after them."""
    data = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    x = ag.tensor(data, device=device, requires_grad=True)
    y = (x * 3).tanh()
    for kind, text, function in MISTAKES.values():
        assert_raises(kind, text, lambda function=function: function(x, device))
        y = y + 1
    y.sum().backward()
    assert_close(y, np.tanh(data * 3) + len(MISTAKES))
    assert_close(x.grad, 3 * (1 - np.tanh(data * 3) ** 2))


# -- no GPU ---------------------------------------------------------------------------------------------------


def test_without_a_driver_the_cpu_works():
    lines = run(
        """
print(ag.wgpu.is_available(), ag.wgpu.devices(), trains())
for use in (
    lambda: ag.ones(2, device="wgpu"),
    lambda: ag.tensor([1.0]).to("wgpu"),
    lambda: ag.nn.Linear(2, 2).to("wgpu"),
    lambda: ag.ones(2, device="wgpu:1"),
):
    print(tried(use))
ag.wgpu.synchronize()
print(trains(), max(ag.wgpu.stats().values()))
""",
        VK_ICD_FILENAMES=NOWHERE,
        VK_DRIVER_FILES=NOWHERE,
    )
    assert lines[0] == "False [] True" and lines[-1] == "True 0"
    assert len(lines) == 6
    for line in lines[1:-1]:
        assert line.startswith("RuntimeError: [wgpu] no Vulkan adapter found. Install a driver")
        assert "mesa-vulkan-drivers" in line and "device='cpu'" in line


def test_an_adapter_that_nobody_has():
    lines = run(
        'print(ag.wgpu.is_available(), tried(lambda: ag.ones(2, device="wgpu")))\nprint(trains())',
        AUTOGRAD_WGPU_ADAPTER="Voodoo 2",
    )
    assert lines[0].startswith("False RuntimeError: [wgpu] no Vulkan adapter found that AUTOGRAD_WGPU_ADAPTER='Voodoo 2' names")
    assert lines[1] == "True"


def test_without_the_wgpu_library_the_cpu_works(tmp_path):
    (tmp_path / "wgpu.py").write_text("raise ImportError('broken on purpose')")
    lines = run(
        f'import sys\nsys.path.insert(0, {str(tmp_path)!r})\nprint(ag.wgpu.is_available(), tried(lambda: ag.ones(2, device="wgpu")))\nprint(trains())'
    )
    assert lines[0] == (
        "False RuntimeError: [wgpu] the wgpu library does not import (broken on purpose); pip install 'wgpu>=0.32,<0.33', or use device='cpu'."
    )
    assert lines[1] == "True"


# -- files ----------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_old_weights(tmp_path):
    """The limit on a file's size stands in for the disk's end: the write itself fails half-way."""
    lines = run(
        f"""
import os, resource
path = {str(tmp_path / "weights")!r}
model = ag.nn.Linear(3, 2)
ag.save(model.state_dict(), path)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
print(tried(lambda: ag.save(ag.nn.Linear(300, 200).state_dict(), path)))
print(os.listdir(os.path.dirname(path)), model.load_state_dict(ag.load(path)), trains())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ag.save(ag.nn.Linear(300, 200).state_dict(), path)
print(ag.load(path)["weight"].shape)
"""
    )
    assert lines[0].startswith(f"OSError: [save] {tmp_path / 'weights'} could not be written: ")
    assert lines[1].startswith("['weights'] ") and lines[1].endswith(" True")
    assert lines[2] == "(200, 300)"


def test_damaged_weights_change_no_model(device, tmp_path):
    """Cut off anywhere, or with any one byte changed: ValueError, and the model is as it was."""
    model, path = nn.Linear(3, 2).to(device), tmp_path / "weights"
    ag.save(model.state_dict(), path)
    before, raw = model.weight.detach().clone(), path.read_bytes()
    damaged = [raw[:n] for n in range(0, len(raw), 7)] + [raw[:-1], raw + b"\0"]
    damaged += [raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :] for i in range(0, len(raw), 3)]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ValueError) as caught:
            model.load_state_dict(ag.load(path))
        assert str(caught.value).startswith(f"[load] {path} ")
    path.write_bytes(raw)
    model.load_state_dict(ag.load(path, device))
    assert_close(model.weight, before, 0)
