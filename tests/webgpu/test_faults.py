"""What goes wrong, and what holds then: lost devices, short memory, limits, several devices at once."""

import threading
import time

import numpy as np
import pytest

import autograd as ag
from autograd import webgpu
from autograd.webgpu import adapter, fuse, matmul, pool
from autograd.webgpu.launch import Binary, Matmul, Reduce, Unary, copy_into

LOST = """
import logging
import numpy as np, autograd as ag
logging.disable(logging.CRITICAL)
kept = (ag.ones(3, device="wgpu") * 2).cpu()
x, w = ag.ones(3, device="wgpu") + 1, ag.randn(4, 4).to("wgpu")
ag.wgpu.synchronize()
{gone}
uses = {{
    "read": lambda: x.numpy(), "number": lambda: x.sum().item(), "new": lambda: ag.ones(3, device="wgpu" if {old} else x.device),
    "op": lambda: (x * 3).tolist(), "matmul": lambda: (w @ w).tolist(), "in place": lambda: x.add_(1).tolist(),
    "kernel": lambda: x.erfinv().tolist(), "copy": lambda: x.clone().tolist(), "repr": lambda: repr(x),
}}
for name, use in uses.items():
    try:
        value = use()
        print(name, "gave", value) if name != "new" else print("raised", end=" ")
    except ag.wgpu.DeviceLostError as error:
        assert "reopen" in str(error)
        print("raised", end=" ")
print(kept.tolist())
{after}
"""


def test_every_use_of_a_lost_device_raises_and_a_new_one_opens(run):
    after = """
ag.wgpu.reopen()
y = ag.ones(3, device="wgpu") * 5
print(y.tolist())
try:
    x + y
except RuntimeError as error:
    print(error)
"""
    code = LOST.format(gone="ag.wgpu.open_device(0).wgpu_device.destroy()", old=True, after=after)
    done = run(code)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode().splitlines()
    assert said[0].split("[")[0].split() == ["raised"] * 9 and said[0].endswith("[2.0, 2.0, 2.0]"), said
    assert said[1] == "[5.0, 5.0, 5.0]" and "closed wgpu:0" in said[2]


def test_tensors_of_a_device_that_was_closed_raise(run):
    done = run(LOST.format(gone="ag.wgpu.reopen()", old=False, after="print(ag.ones(2, device='wgpu').tolist())"))
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode().splitlines()
    assert said[0].split("[")[0].split() == ["raised"] * 9 and said[1] == "[1.0, 1.0]", said


LOST_MEANWHILE = """
import logging, weakref
import autograd as ag
from wgpu.backends.wgpu_native import _api
logging.disable(logging.CRITICAL)
gpu = ag.wgpu.open_device()
x = ag.ones(4, device="wgpu") * 2
wait = gpu.queue.recorder.wait
def lost(device, *given):
    wait(device, *given)
    gpu.wgpu_device.destroy()
    _api.lib.wgpuDevicePoll(device._internal, True, _api.ffi.NULL)
gpu.queue.recorder.wait = lost
try:
    print(x.tolist())
except ag.wgpu.DeviceLostError:
    ag.wgpu.reopen()
    print(ag.ones(2, device="wgpu").tolist())
gone, gpu, x, wait, lost = weakref.ref(gpu), None, None, None, None
import gc; gc.collect()
assert gone() is None
"""


@pytest.mark.parametrize("safe", ["0", "1"])
def test_a_device_that_is_lost_while_a_value_is_read(safe, run):
    """Its mapped memory is gone: the library would end the process. Nothing keeps a device that was closed."""
    done = run(LOST_MEANWHILE, AUTOGRAD_WGPU_SAFE=safe)
    assert done.returncode == 0 and done.stdout.split(b"\n")[0] == b"[1.0, 1.0]", done.stderr


SHORT = {"OutOfMemory": "no room", "Validation": "Validation Error\n\nCaused by:\n  In wgpuDeviceCreateBuffer\n    Not enough memory left."}


def short_of_memory(kind):
    """The error of a device without memory: as WebGPU has it, or as wgpu 0.32 says it."""
    import wgpu

    return getattr(wgpu, f"GPU{kind}Error")(SHORT[kind])


@pytest.mark.parametrize("kind", SHORT)
def test_memory_that_waits_or_is_pooled_is_given_back_before_giving_up(kind, gpu, monkeypatch):
    allocate, calls = gpu.pool._allocate, []
    gpu.pool.trim()
    queued = Unary("exp")(gpu.upload(np.zeros(300, np.float32)))
    queued.storage

    def short(size, usage):
        calls.append((size, gpu.queue.pending(), gpu.pool.pooled()[0]))
        if len(calls) == 1:
            raise short_of_memory(kind)
        return allocate(size, usage)

    monkeypatch.setattr(gpu.pool, "_allocate", short)
    x = gpu.empty((70_001,), np.float32)
    assert x.storage.buffer.size >= 4 * 70_001
    size, pending, pooled = calls[-1]
    assert size == calls[0][0] and pending == 0 and pooled == 0
    np.testing.assert_array_equal(gpu.download(queued), 1)


@pytest.mark.parametrize("kind", SHORT)
def test_transfers_short_of_memory_say_so(kind, gpu, monkeypatch):
    x, many = gpu.upload(np.ones(77_777, np.float32)), np.ones(300_000, np.float32)
    gpu.upload(many)  # leaves its buffer in the pool
    gpu.synchronize()
    allocate = gpu.pool._allocate

    def none(size, usage):
        if size < 4096:  # for the wait that comes before the second attempt
            return allocate(size, usage)
        raise short_of_memory(kind)

    monkeypatch.setattr(gpu.pool, "_allocate", none)
    monkeypatch.setattr(gpu.queue, "mappable", {})
    with pytest.raises(ag.wgpu.OutOfMemoryError, match=r"no room for a buffer of .* in use"):
        gpu.download(x)
    gpu.pool._allocate = allocate
    gpu.upload(many)
    gpu.pool._allocate = none
    with pytest.raises(ag.wgpu.OutOfMemoryError, match=r"no room for a buffer of 1,200,000 bytes"):
        gpu.upload(many)  # is asked first: in a write wgpu would lose the device
    monkeypatch.undo()
    np.testing.assert_array_equal(gpu.download(x), 1)


def test_a_tensor_larger_than_a_buffer_is_refused_with_sizes(gpu, monkeypatch):
    x = ag.ones(1000, device="wgpu") * 2
    monkeypatch.setattr(gpu.pool, "max_bytes", 100_000)
    for make in (
        lambda: ag.ones(200, 200, device="wgpu"),
        lambda: ag.ones(200, 200).to("wgpu"),
        lambda: x.reshape(1000, 1) + x,
        lambda: x.reshape(1000, 1) @ x.reshape(1, 1000),
        lambda: ag.cat([x] * 40),
        lambda: x.expand(50, 1000).contiguous(),
    ):
        with pytest.raises(ValueError, match=r"needs [\d,]+ bytes and this adapter's buffers hold at most 100,000"):
            make().numpy()
    np.testing.assert_array_equal(x.numpy(), 2)


@pytest.fixture(scope="module")
def pair(gpu):
    """Two devices at once: the same adapter under two numbers."""
    found = adapter.adapters()[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "adapters", lambda: found * 2)
        yield webgpu.open_device(0), webgpu.open_device(1)
    webgpu._opened.pop(1).close()


def test_devices_have_queues_of_their_own(pair):
    first, second = pair
    assert first is not second and first.queue is not second.queue
    a, b = (g.upload(np.arange(4, dtype=np.float32)) for g in pair)
    submits = second.counters["submits"]
    x, y = Binary("add")(a, 1), Binary("mul")(b, 3)
    np.testing.assert_array_equal(first.download(x), [1, 2, 3, 4])
    assert second.counters["submits"] == submits
    np.testing.assert_array_equal(second.download(y), [0, 3, 6, 9])
    one, two = ag.ones(3, device="wgpu:0"), ag.ones(3, device="wgpu:1")
    assert str(two.device) == "wgpu:1" and (two.to("wgpu:0") + one).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="wgpu:0, wgpu:1"):
        one + two


def test_threads_on_two_devices(pair):
    failures = []

    def work(gpu, seed):
        x = np.random.default_rng(seed).standard_normal((9, 11)).astype(np.float32)
        for _ in range(10):
            y = Matmul()(gpu.upload(x), gpu.upload(x.T.copy()))
            copy_into(y.view((9,), (10,), 0), 0)
            got = gpu.download(Reduce("sum")(y, (1,)))
            want = x @ x.T
            np.fill_diagonal(want, 0)
            if not np.allclose(got, want.sum(1), atol=1e-4):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(gpu, seed)) for seed, gpu in enumerate(pair * 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures


def test_threads_get_buffers_of_their_own(gpu, monkeypatch):
    """Two with one id would be one to every cache. The pool is emptied while others take from it."""
    held, failures, made = [], [], pool.Buffer

    def slow(*given):
        time.sleep(0.002)  # long enough for every other thread to read the same number
        return made(*given)

    def work(seed):
        try:
            for i in range(6):
                held.append(gpu.empty((20_000 + 50_000 * (8 * i + seed),), np.float32))
                gpu.pool.trim()
        except Exception as error:
            failures.append(error)

    monkeypatch.setattr(pool, "Buffer", slow)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and len({a.storage.id for a in held}) == len(held) == 48
    assert gpu.pool.total_bytes == sum(buffer.size for buffer in gpu.pool.buffers.values())
    held.clear()
    gpu.pool.trim()


def test_threads_train_on_one_device(gpu):
    """Each with a model of its own: recording, waiting expressions, gradients, steps in place and reads in between."""

    def losses(seed, device):
        rng = np.random.default_rng(seed)
        x, w = (ag.tensor(rng.standard_normal(s).astype(np.float32), device=device) for s in ((12, 7), (7, 5)))
        w.requires_grad_()
        optimizer, seen = ag.optim.AdamW([w], 0.05), []
        for _ in range(8):
            optimizer.zero_grad()
            loss = ((x @ w).tanh().softmax(1) ** 2).sum()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        return seen

    found = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: losses(k, "wgpu")})) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for k in range(4):
        np.testing.assert_allclose(found[k], losses(k, "cpu"), rtol=1e-4)


def test_a_refused_dispatch_of_a_program_names_op_and_kernel_and_the_device_goes_on(gpu, monkeypatch):
    """What the driver says never comes alone: here of an expression, a reduction and a product of too many workgroups."""
    x = ag.ones(8, 8, device="wgpu") * 2
    x.sum().item()
    record = gpu.record

    def too_many(kernel, key, storages, params, *groups):
        record(kernel, key, storages, params, 70_000)

    monkeypatch.setattr(fuse, "ENABLED", True)
    uses = {r"fused\(exp, mul, add\)": lambda: x.exp() * x + 1, "sum": lambda: x.sum(1), r"matmul\w*": lambda: x @ x}
    for name, use in {**uses, "softmax": lambda: x.softmax(1)}.items():
        monkeypatch.setattr(gpu, "record", too_many)
        y = use()
        with pytest.raises(RuntimeError, match=rf"^\[{name}\] the device refused this dispatch"):
            y.numpy()
        monkeypatch.setattr(gpu, "record", record)
        assert (x * 3 - 1).sum().item() == 64 * 5


@pytest.mark.parametrize("shape", [(70, 9, 40), (5, 40, 8, 33), (40, 8, 70)])
def test_long_products_are_cut(shape, gpu, rng, check, monkeypatch):
    *batch, m, k, n = shape
    a, b = rng.standard_normal((*batch, m, k)).astype(np.float32), rng.standard_normal((*batch, k, n)).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    monkeypatch.setattr(matmul, "MOST_WORK", 2 * 1024 * k)
    product, before = Matmul(), gpu.queue.pending()
    y = product(gpu.upload(a), gpu.upload(b), gpu.upload(bias))
    assert y.storage and gpu.queue.pending() - before > 1
    check(y, a @ b + bias, rtol=1e-5, atol=1e-5)
    before = gpu.queue.pending()
    y = Unary("relu")(product(gpu.upload(a), gpu.upload(b), gpu.upload(bias)))
    assert y.storage and gpu.queue.pending() - before > 1
    check(y, np.maximum(a @ b + bias, 0), rtol=1e-5, atol=1e-5)


def test_ctrl_c_while_a_value_is_awaited(run):
    """It arrives in the library's callback, where an exception would be lost, and the wait for that callback not end."""
    code = """
import os, signal, threading
import autograd as ag
signal.signal(signal.SIGINT, signal.default_int_handler)
x = ag.ones(256, 256, device="wgpu")
(x @ x).sum().item()
for _ in range(3):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            (x @ x).sum().item()
    except KeyboardInterrupt:
        print("came")
print(ag.ones(3, device="wgpu").sum().item())
"""
    done = run(code)
    assert done.stdout.split() == [b"came"] * 3 + [b"3.0"], done.stderr
