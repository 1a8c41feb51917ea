"""The examples do what they say: the scripts on both devices, and the notebook.

`python tests/test_examples.py` runs the notebook and saves it with what it shows now.
"""

import importlib.util
import itertools
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import autograd as ag
from autograd import nn

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPT = EXAMPLES / "01_digits_gru.py"
TEXT = EXAMPLES / "07_keras_text_gru.py"
PARALLEL = EXAMPLES / "08_data_parallel.py"
NOTEBOOK = EXAMPLES / "tour.ipynb"
# A process started in the background may have Ctrl-C switched off: here it is on, whoever runs the tests.
WITH_CTRL_C = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def save_notebook(target):
    """Run the notebook and write it with what it shows, without anything of the machine that ran it."""
    notebook = nbformat.read(NOTEBOOK, 4)
    here = {"metadata": {"path": str(EXAMPLES)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False, resources=here).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, target)


def run(*command, cwd):
    """The command's output; its errors too, when it fails."""
    done = subprocess.run([sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command} failed\n{done.stdout}\n{done.stderr}"
    return done.stdout


def example(path):
    """A script as a module of its own."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def digits():
    """The first example."""
    return example(SCRIPT)


@pytest.fixture
def small(digits, monkeypatch):
    """The same with fewer images: 12 steps an epoch."""
    images, labels, unseen, answers = digits.data()
    monkeypatch.setattr(digits, "data", lambda: (images[:384], labels[:384], unseen[:64], answers[:64]))
    return digits


class Recorder:
    """Stands in for the example's progress bar: looks at the GPU's counters after every step."""

    def __init__(self, total, unit):
        self.n, self.total, self.seen = 0, total, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.n == self.total

    def update(self):
        self.n += 1
        self.seen.append(ag.wgpu.stats())

    def set_postfix(self, **_):
        pass


# --- the first example ---


def test_it_runs_writes_and_loads_back(small, device, tmp_path, capsys):
    small.main(device, 1, tmp_path / "new" / "out")
    printed = capsys.readouterr().out
    assert re.search(rf"device {device}: \d+ steps per second", printed)
    assert re.search(r"test accuracy \d+\.\d%, on 64 images it never saw", printed)
    assert "loaded back, the weights read the same" in printed
    picture = (tmp_path / "new/out/digits.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    weights = ag.load(tmp_path / "new/out/digits.safetensors")
    assert {name: w.shape for name, w in weights.items()} == {
        "gru.weight_ih_l0": (192, 8),
        "gru.weight_hh_l0": (192, 64),
        "gru.bias_ih_l0": (192,),
        "gru.bias_hh_l0": (192,),
        "out.weight": (10, 64),
        "out.bias": (10,),
    }


def test_weights_of_one_device_read_the_same_on_the_other(small, wgpu, tmp_path):
    model, _ = small.train("cpu", epochs=1)
    ag.save(model.state_dict(), tmp_path / "weights.safetensors")
    twin = small.Reader().to(wgpu)
    twin.load_state_dict(ag.load(tmp_path / "weights.safetensors"))
    images = small.data()[2]
    with ag.no_grad():
        here, there = model(ag.from_numpy(images)), twin(ag.from_numpy(images).to(wgpu)).cpu()
    np.testing.assert_allclose(here, there, atol=1e-4)


def test_one_epoch_has_the_same_losses_on_both_devices(digits, wgpu, monkeypatch):
    """Each of the 44 steps' losses, and the mean that the example prints."""
    cross_entropy, losses = nn.functional.cross_entropy, {"cpu": [], wgpu: []}

    def watched(*args):
        loss = cross_entropy(*args)
        losses[loss.device.type].append(loss.detach())
        return loss

    monkeypatch.setattr(nn.functional, "cross_entropy", watched)
    means = [digits.train(device, epochs=1)[1] for device in losses]
    here, there = ([loss.item() for loss in losses[device]] for device in losses)
    assert len(here) == 44 and here[-1] < here[0] / 2
    np.testing.assert_allclose(here, there, atol=1e-4)
    np.testing.assert_allclose(*means, atol=1e-4)


def test_a_training_step_settles(small, wgpu, monkeypatch):
    """From the third step on: the same dispatches every step, no new memory; the last pipeline comes in the third.

    That one is the running total's, which waits for a step before anybody needs it.
    """
    bars = []
    monkeypatch.setattr(small, "tqdm", lambda **kwargs: bars.append(Recorder(**kwargs)) or bars[-1])
    small.train(wgpu, epochs=1)
    seen = bars[0].seen
    assert len(seen) == 12
    dispatches = [after["dispatches"] - before["dispatches"] for before, after in itertools.pairwise(seen[1:])]
    assert len(set(dispatches)) == 1 and dispatches[0] > 10, dispatches
    later = seen[1:]
    assert len({now["pipelines"] for now in seen[2:]}) == 1, [now["pipelines"] for now in seen]
    assert len({now["buffers_live"] for now in later}) == 1, [now["buffers_live"] for now in seen]
    memory = [now["bytes_live"] + now["bytes_pooled"] for now in seen]
    assert len(set(memory[2:])) == 1, memory
    assert seen[-1]["host_ops"] == seen[0]["host_ops"]


def test_default_settings_reach_97_percent(tmp_path):
    printed = run(SCRIPT, "--device", "cpu", "--out", tmp_path, cwd=tmp_path)
    accuracy = float(re.search(r"test accuracy (\d+\.\d)%, on 359 images", printed).group(1))
    assert accuracy >= 97


def test_ctrl_c_ends_it_with_the_weights_saved(device, tmp_path):
    command = [sys.executable, "-c", WITH_CTRL_C, SCRIPT, "--device", device, "--epochs", "100000", "--out", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as training:
        watchdog = threading.Timer(240, training.kill)  # a training that does not end would hang the tests
        watchdog.start()
        bar = b""
        while not re.search(rb"[1-9]\d*/\d+ \[", bar):  # steps are being made
            more = training.stderr.read(64)
            assert more, bar.decode()
            bar += more
        training.send_signal(signal.SIGINT)
        out, errors = training.communicate()
        watchdog.cancel()
    assert training.returncode == 0, errors.decode()
    assert b"Traceback" not in errors
    assert b"test accuracy" in out and b"loaded back, the weights read the same" in out
    weights = ag.load(tmp_path / "digits.safetensors")
    assert len(weights) == 6 and all(np.isfinite(w.numpy()).all() for w in weights.values())
    assert (tmp_path / "digits.png").stat().st_size > 10_000


# --- Keras: a GRU that reads text ---


def test_the_text_example_runs_small(device, tmp_path, capsys):
    example(TEXT).main(device, 2, 300, tmp_path / "new")
    printed = capsys.readouterr().out
    assert "Epoch 2/2" in printed and "(GRU)" in printed and "val_accuracy" in printed
    assert re.search(r"test accuracy \d+\.\d%, on 60 sentences it never saw; the commonest subject alone: \d+\.\d%", printed)
    assert "loaded back, the model reads the same" in printed
    assert (tmp_path / "new/text_gru.png").read_bytes().startswith(b"\x89PNG")


def test_the_text_example_learns(tmp_path):
    """Well above the commonest subject, on sentences it never saw; early stopping ends it before the last epoch."""
    printed = run(TEXT, "--device", "cpu", "--out", tmp_path, cwd=tmp_path)
    accuracy, baseline = map(float, re.search(r"test accuracy (\S+)%.* alone: (\S+)%", printed).groups())
    assert accuracy > 70 and accuracy > baseline + 25
    assert "Epoch 4/15" in printed and "Epoch 15/15" not in printed


# --- data parallel: several processes ---


def test_processes_train_as_one_does_and_go_on_where_they_stopped(tmp_path):
    printed = run(PARALLEL, "--devices", "cpu,cpu", "--epochs", "1", "--out", tmp_path, cwd=tmp_path)
    first, second = re.findall(r"rank \d: process (\d+) on cpu saw 719 samples", printed)
    assert first != second
    assert "by hand: the weights differ by 0.0e+00, between ranks by 0.0e+00" in printed
    assert float(re.search(r"one process alone: by (\S+),", printed).group(1)) < 1e-5
    assert re.search(r"2 processes are \d+\.\d\d times as fast as one", printed)
    assert re.search(r"test accuracy \d+\.\d%, on 359 images it never saw", printed)
    assert ag.load(tmp_path / "data_parallel.safetensors")["epoch"] == 1


# --- forecasts, text, images, mixed precision, a kernel of one's own ---


def test_the_forecast_runs_small(device, tmp_path, capsys):
    example(EXAMPLES / "02_sunspots_forecast.py").main(device, 1, tmp_path / "new")
    printed = capsys.readouterr().out
    assert re.search(r"one year ahead, 59 years from 1950: RMSE \d+\.\d\d; the last value again: 33\.18", printed)
    assert "better than the naive forecast" in printed
    assert (tmp_path / "new/sunspots.png").read_bytes().startswith(b"\x89PNG")


def test_the_forecast_beats_the_naive_one_by_a_fifth(tmp_path):
    """On 59 years it never saw; 15 epochs are enough."""
    printed = run(EXAMPLES / "02_sunspots_forecast.py", "--device", "cpu", "--epochs", "15", "--out", tmp_path, cwd=tmp_path)
    assert float(re.search(r"(\S+)% better than the naive forecast", printed).group(1)) >= 20


def test_the_transformer_runs_small(device, capsys):
    example(EXAMPLES / "03_char_transformer.py").main(device, 2, 20, 5)
    printed = capsys.readouterr().out
    found = re.search(r"bits a character: (\S+); unigram (\S+), bigram (\S+)", printed)
    ours, unigram, bigram = map(float, found.groups())
    assert 1 < bigram < unigram < 6.6 and unigram < ours < 8  # two steps teach it little
    assert re.search(r"it writes:\nReturn [\n -~]{5}\n", printed)


def test_the_transformer_sees_nothing_that_is_to_come():
    module = example(EXAMPLES / "03_char_transformer.py")
    model = module.Writer(width=8, heads=2, layers=1).eval()
    ids = ag.arange(12)[None]
    with ag.no_grad():
        whole, part = model(ids), model(ids[:, :5])
    np.testing.assert_allclose(whole[:, :5], part, atol=1e-5)


def test_the_convolutional_network_runs_small(device, tmp_path, capsys, monkeypatch):
    module = example(EXAMPLES / "04_digits_cnn.py")
    images, labels, unseen, answers = module.data()
    monkeypatch.setattr(module, "data", lambda: (images[:128], labels[:128], unseen[:32], answers[:32]))
    module.main(device, 1, 0, tmp_path / "new")
    printed = capsys.readouterr().out
    assert re.search(rf"device {device}: \d+ steps per second", printed)
    assert re.search(r"test accuracy \d+\.\d%: \d+ of 32 images it never saw are misread", printed)
    assert (tmp_path / "new/digits_cnn.png").read_bytes().startswith(b"\x89PNG")


def test_digits_are_shifted_whole():
    module = example(EXAMPLES / "04_digits_cnn.py")
    images = np.zeros((50, 1, 8, 8), np.float32)
    images[:, 0, 3, 4] = 1
    moved = module.shifted(images, np.random.default_rng(0))
    places = {tuple(map(int, np.argwhere(image[0])[0])) for image in moved}
    assert moved.shape == images.shape and moved.sum() == 50
    assert places == {(i, j) for i in (2, 3, 4) for j in (3, 4, 5)}


def test_mixed_precision_stays_within_one_percent(device, capsys):
    example(EXAMPLES / "05_mixed_precision.py").main(device, 2, 96)
    printed = capsys.readouterr().out
    most, last = map(float, re.search(r"at most (\S+)% apart, the last (\S+)%", printed).groups())
    assert last <= most < 1
    assert printed.count(f"s on {device}") == 2


def test_the_custom_op_is_checked_and_learns(device, capsys):
    example(EXAMPLES / "06_custom_op.py").main(device, 30)
    printed = capsys.readouterr().out
    assert "gradcheck and gradgradcheck in float64 on the CPU: True" in printed
    first, last = map(float, re.search(r"the loss falls from (\S+) to (\S+) in 30 steps", printed).groups())
    assert last < first / 2


# --- the notebook ---


def texts(notebook):
    """What each code cell shows, in words: printed text and values."""
    shown = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            parts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
            shown.append("".join(parts))
    return shown


def test_notebook_runs_and_shows_what_it_says(tmp_path):
    run(__file__, tmp_path / "run.ipynb", cwd=tmp_path)  # in a process of its own: Jupyter warns of much
    stored, fresh = (nbformat.read(path, 4) for path in (NOTEBOOK, tmp_path / "run.ipynb"))
    shown = texts(fresh)
    if ag.wgpu.is_available():
        assert shown == texts(stored), "what it stores is not what it shows: python tests/test_examples.py"
    together = "\n".join(shown)
    for claim in (
        "0  matmul  -, w    (3, 1)  float64  cpu      48 B",
        "0 bytes saved\n[mul] backward a second time",
        "equal: True",
        "first derivative is 1 - t²:        True",
        "analytic 4, numerical 12",
        "first order:  True\nsecond order: False",
        "same states: True",
        "let r = sigmoid4(",
        "workgroupBarrier();",
    ):
        assert claim in together
    assert together.count("same gradient: True") == 4
    here = "CPU and Vulkan agree to 1e-5: True" if ag.wgpu.is_available() else "This machine has no Vulkan device"
    assert here in together
    pictures = [o for cell in fresh.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    assert len(pictures) == 1


def test_notebook_is_stored_as_it_was_run():
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    # Nothing of the machine that ran it: no times, no errors, no paths.
    assert not any(cell.metadata for cell in notebook.cells)
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert not re.search(r"/(home|root|tmp|work|Users)/|0x[0-9a-f]{6}", "\n".join(texts(notebook)))


if __name__ == "__main__":
    save_notebook(sys.argv[1] if sys.argv[1:] else NOTEBOOK)
