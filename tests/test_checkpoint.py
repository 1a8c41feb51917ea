"""save and load: what comes back, and every way in which a file or an object can be wrong."""

import errno
import io
import json
import os
import pickle
import threading
import zipfile

import numpy as np
import pytest
from helpers import array, assert_raises
from safetensors import numpy as safe

import autograd as ag
from autograd import checkpoint, nn, optim

A = np.arange(24, dtype=np.float32).reshape(4, 6)


def same(a, b):
    """Equal structure, types and values; tensors by dtype, shape and bits."""
    if isinstance(a, ag.Tensor):
        return isinstance(b, ag.Tensor) and a.dtype is b.dtype and a.shape == b.shape and array(a).tobytes() == array(b).tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def objects(device):
    w = ag.tensor(A, device=device)
    return {
        "tensor": w,
        "views": {"t": w.T, "strided": w[:, ::2], "inner": w[1:3, 2:], "expanded": w[:1].expand(3, 6), "flipped": w.flip(0)},
        "shapes": [ag.tensor(5.0, device=device), ag.zeros(0, 3, device=device), ag.zeros(0, device=device)],
        "dtypes": [ag.tensor([0, 1, 1], dtype=d, device=device) for d in (ag.float16, ag.float32, ag.int64, ag.int32, ag.uint8, ag.bool)],
        "plain": {"a": [1, -2.5, True, None, "x\n√\0"], "b": (), "c": ((1,), [{}])},
        "numbers": [1e-320, 0.1, -0.0, float("inf"), float("-inf"), float("nan"), 2**80],
        "keys": {1: "int", "1": "str", (2.5): "float", None: "none", "t": w, "": w, "a.b": w, "__metadata__": w + 1},
        "clash": {"a": {"b": w + 1}, "a.b": w + 2},
        "parameter": nn.Parameter(w),
        "generator": ag.get_rng_state(),
    }


@pytest.mark.parametrize("name", objects("cpu"))
def test_round_trip(name, device, tmp_path):
    value = objects(device)[name]
    ag.save(value, tmp_path / "f")
    assert same(value, ag.load(tmp_path / "f", device=device))
    assert same(value, ag.load(str(tmp_path / "f"), "cpu"))


def test_float64(tmp_path):
    ag.save(ag.tensor(np.pi, dtype=ag.float64), tmp_path / "f")
    assert ag.load(tmp_path / "f").item() == np.pi


def test_ties(device, tmp_path):
    w = ag.tensor(A, device=device)
    ag.save({"a": w, "b": w, "c": w.detach(), "d": w.clone(), "e": w[0], "f": [w[0]], "g": w.T}, tmp_path / "f")
    got = ag.load(tmp_path / "f", device)
    assert got["a"] is got["b"] is got["c"] and got["e"] is got["f"][0]
    assert len({id(got[k]) for k in "adeg"}) == 4
    got["a"].zero_()
    assert array(got["d"]).sum() == A.sum(), "nothing else shares memory"
    assert type(got["a"]) is ag.Tensor and not got["a"].requires_grad and got["a"].device == device


def test_other_libraries(tmp_path):
    net = nn.Linear(2, 3)
    ag.save(net.state_dict(), tmp_path / "f")
    assert sorted(safe.load_file(tmp_path / "f")) == ["bias", "weight"]
    safe.save_file({"w": A, "n": np.array(3), "small": np.array([-5], np.int8)}, tmp_path / "g", {"format": "np"})
    got = ag.load(tmp_path / "g")
    assert sorted(got) == ["n", "small", "w"] and got["small"].dtype is ag.int32 and got["small"].item() == -5
    assert np.array_equal(array(got["w"]), A) and got["n"].shape == ()


def raw_file(entries, data):
    """A safetensors file by hand: {name: (dtype, shape, bytes)}."""
    header, start = {}, 0
    for name, (dtype, shape, size) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_foreign_dtypes(tmp_path):
    wide = np.array([1.5, -2.0, np.inf], np.float32)
    (tmp_path / "f").write_bytes(raw_file({"b": ("BF16", [3], 6)}, (wide.view(np.uint32) >> 16).astype(np.uint16).tobytes()))
    got = ag.load(tmp_path / "f")["b"]
    assert got.dtype is ag.bfloat16 and got.tolist() == wide.tolist()
    (tmp_path / "f").write_bytes(raw_file({"b": ("F8_E4M3", [2], 2)}, b"ab"))
    assert_raises(ValueError, "dtype F8_E4M3; there are F64, F32, F16, I64, I32, U8, BOOL, BF16, I8,", lambda: ag.load(tmp_path / "f"))


REFUSED = [
    ({"opt": {"fn": print}}, 'obj["opt"]["fn"] is a builtin_function_or_method'),
    ([1, (2, {3})], "obj[1][1] is a set"),
    ({"x": 1j}, 'obj["x"] is a complex'),
    ({"x": np.ones(2)}, "ag.from_numpy"),
    ({(1, 2): 3}, "has the key (1, 2)"),
    ({"m": nn.Linear(1, 1)}, 'obj["m"] is a Linear'),
    ([nn.Linear(1, 1)], "Save its state_dict()."),
    (ag.float32, "obj is a DType"),
]


@pytest.mark.parametrize(("value", "text"), REFUSED)
def test_cannot_be_saved(value, text, tmp_path):
    path = tmp_path / "f"
    ag.save({"w": 1}, path)
    assert_raises(TypeError, text.replace('"', "'"), lambda: ag.save(value, path))
    assert ag.load(path) == {"w": 1} and os.listdir(tmp_path) == ["f"]


def test_nesting(tmp_path):
    loop = []
    loop.append([loop])
    assert_raises(TypeError, "obj[0][0] contains itself", lambda: ag.save(loop, tmp_path / "f"))
    deep = []
    for _ in range(10_000):
        deep = [deep]
    assert_raises(TypeError, "200 deep", lambda: ag.save(deep, tmp_path / "f"))
    shared = [1]
    ag.save([shared, shared], tmp_path / "f")
    assert ag.load(tmp_path / "f") == [[1], [1]]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "f"
    ag.save({"w": ag.tensor(A)}, path)

    def fails(*args):
        raise KeyboardInterrupt

    for module, name in ((checkpoint.os, "replace"), (checkpoint.os, "fsync"), (checkpoint, "_write")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fails)
            with pytest.raises(KeyboardInterrupt):
                ag.save({"w": 0}, path)
        assert np.array_equal(array(ag.load(path)["w"]), A) and os.listdir(tmp_path) == ["f"]
    with pytest.raises(FileNotFoundError, match=r"^\[save\]") as caught:
        ag.save(1, tmp_path / "missing" / "f")
    assert caught.value.errno == errno.ENOENT


def test_open_files_and_names_in_bytes(tmp_path):
    state = {np.int64(3): ag.tensor(A), "b": (1, 2.5)}
    memory = io.BytesIO()
    ag.save(state, memory)
    ag.save(state, os.fsencode(tmp_path / "f"))
    assert memory.getvalue() == (tmp_path / "f").read_bytes()
    memory.seek(0)
    for source in (memory, os.fsencode(tmp_path / "f")):
        loaded = ag.load(source)
        assert np.array_equal(array(loaded[3]), A) and loaded["b"] == (1, 2.5)
    assert_raises(ValueError, "[load] the file is empty", lambda: ag.load(memory))


def test_a_pipe_stays_a_pipe(tmp_path):
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(ag.load(path)))
    reader.start()
    ag.save({"a": 1}, path)
    reader.join()
    assert found == [{"a": 1}] and os.listdir(tmp_path) == ["pipe"] and path.is_fifo()


def test_what_a_device_lacks_is_no_damage(wgpu, tmp_path):
    ag.save(ag.zeros(1, dtype=ag.float64), tmp_path / "f")
    assert_raises(TypeError, "float64 has no type", lambda: ag.load(tmp_path / "f", device=wgpu))


def test_permissions_and_links(tmp_path):
    path, link = tmp_path / "f", tmp_path / "link"
    ag.save(1, path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    ag.save(2, link)
    assert link.is_symlink() and ag.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640


def test_damage(tmp_path):
    path = tmp_path / "f"
    ag.save({"w": ag.tensor(A), "note": "hello", "lr": 0.25}, path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert_raises(ValueError, "[load]", lambda: ag.load(path))
    path.write_bytes(whole + b"x")
    assert_raises(ValueError, "after its end", lambda: ag.load(path))
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 64]) + whole[i + 1 :])
        assert_raises(ValueError, "[load]", lambda: ag.load(path))
    path.write_bytes(whole)
    assert ag.load(path)["note"] == "hello"


def test_what_is_no_checkpoint(tmp_path):
    path = tmp_path / "f"
    assert_raises(FileNotFoundError, "No such file", lambda: ag.load(path))
    for content, text in (
        (b"", "is empty"),
        (b"hello world" * 20, "not a safetensors file"),
        (pickle.dumps({"w": [1.0] * 10}), "PyTorch file"),
        (b"\x05\0\0\0\0\0\0\0{nope", "header"),
        (b"\x02\0\0\0\0\0\0\0{}", None),
    ):
        path.write_bytes(content)
        if text is None:
            assert ag.load(path) == {}
        else:
            assert_raises(ValueError, text, lambda: ag.load(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02")
    assert_raises(ValueError, "safetensors.torch.save_file", lambda: ag.load(path))


def test_later_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_VERSION", "2")
    ag.save(1, tmp_path / "f")
    monkeypatch.undo()
    assert_raises(ValueError, "version 2", lambda: ag.load(tmp_path / "f"))


@pytest.mark.parametrize("make", [lambda p: optim.AdamW(p, lr=0.05), lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True)])
def test_training_resumes_exactly(make, device, tmp_path):
    def fresh():
        model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)).to(device)
        optimizer = make(model.parameters())
        return model, optimizer, optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    def train(model, optimizer, schedule, steps):
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return losses

    ag.manual_seed(0)
    x, y = ag.randn(16, 3, device=device), ag.randn(16, 2, device=device)
    parts = fresh()
    train(*parts, 3)
    ag.save({"parts": [part.state_dict() for part in parts], "random": ag.get_rng_state()}, tmp_path / "f")
    want = train(*parts, 3)
    again, saved = fresh(), ag.load(tmp_path / "f", device)
    for part, state in zip(again, saved["parts"], strict=True):
        part.load_state_dict(state)
    ag.set_rng_state(saved["random"])
    assert train(*again, 3) == want
