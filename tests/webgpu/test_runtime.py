"""The queue, the pool, the caches, faults and threads."""

import threading

import numpy as np
import pytest

import autograd as ag
from autograd import webgpu
from autograd.webgpu import fuse, shaders
from autograd.webgpu.launch import Adam, Binary, Matmul, Reduce, Softmax, Unary, copy_into, full
from autograd.webgpu.switches import switched

REPORT = """
import sys
import numpy as np
from autograd import webgpu
from autograd.webgpu.launch import Binary, Matmul, Reduce, Unary
gpu = webgpu.open_device()
x = gpu.upload(np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32))
y = Unary("tanh")(Binary("mul")(x, 3))
z = Matmul()(y, x.view((90, 70), (1, 90), 0))
for i in range(600):
    z = Binary("add")(z, i)
sys.stdout.buffer.write(gpu.download(Reduce("sum")(z, (0,))).tobytes())
print(type(gpu.queue.recorder).__name__, file=sys.stderr)
"""


def test_importing_does_not_import_wgpu(run):
    done = run("import sys, autograd.webgpu.launch; sys.exit('wgpu' in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_the_safe_path_gives_the_same_bits(gpu, run):
    fast, safe = (run(REPORT, AUTOGRAD_WGPU_SAFE=value) for value in ("0", "1"))
    assert b"FastRecorder" in fast.stderr and b"SafeRecorder" in safe.stderr
    assert len(fast.stdout) == 280 and fast.stdout == safe.stdout


GROWTH = """
import numpy as np
from pathlib import Path
from autograd import webgpu
from autograd.webgpu.launch import Binary
gpu = webgpu.open_device()
x = gpu.upload(np.ones(4, np.float32))
def pages(reads):
    for _ in range(reads):
        gpu.download(Binary("add")(x, 1))
    return int(Path("/proc/self/statm").read_text().split()[1])
print(-pages(50) + pages(300))
"""


@pytest.mark.parametrize("safe", ["0", "1"])
def test_reading_keeps_no_memory(safe, run):
    done = run(GROWTH, AUTOGRAD_WGPU_SAFE=safe)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1000  # pages of 4 KiB; 90 KB a read would be 6,900


@pytest.mark.parametrize("name", ["AUTOGRAD_FUSE", "AUTOGRAD_WGPU_SAFE", "AUTOGRAD_WGPU_NO_F16"])
def test_a_switch_is_0_or_1(name, monkeypatch):
    for value, want in (("0", False), ("1", True), ("", "default")):
        monkeypatch.setenv(name, value)
        assert switched(name, "default") == want
    monkeypatch.setenv(name, "off")
    with pytest.raises(ValueError, match=rf'{name} is "0" or "1" or not set; got \'off\''):
        switched(name, True)


def test_an_adapter_that_is_not_there(run):
    done = run("from autograd import webgpu; webgpu.open_device()", AUTOGRAD_WGPU_ADAPTER="Voodoo 2")
    assert b"RuntimeError: [wgpu] no Vulkan adapter found that AUTOGRAD_WGPU_ADAPTER='Voodoo 2'" in done.stderr
    done = run("from autograd import webgpu; webgpu.open_device(9)")
    assert b"there is no device wgpu:9" in done.stderr or b"no Vulkan adapter" in done.stderr


def test_an_adapter_by_part_of_its_name(gpu, run):
    name = gpu.name[:6].upper()
    done = run("from autograd import webgpu; print(webgpu.open_device().name)", AUTOGRAD_WGPU_ADAPTER=name)
    assert done.stdout.decode().strip() == gpu.name


def test_nothing_is_submitted_before_a_value_is_needed(gpu):
    x = gpu.upload(np.arange(8, dtype=np.float32))
    gpu.synchronize()
    before = gpu.counters["submits"]
    for _ in range(20):
        x = Binary("add")(x, 1)
    assert gpu.counters["submits"] == before
    np.testing.assert_array_equal(gpu.download(x), np.arange(8) + 20)
    assert gpu.counters["submits"] == before + 1


def test_uploads_are_batched(gpu):
    gpu.synchronize()
    before = gpu.counters["submits"]
    x = [ag.ones(3, 5).to("wgpu", non_blocking=True) * k for k in range(20)]
    assert gpu.counters["submits"] == before
    total = sum(x[1:], x[0])
    assert total.sum().item() == 15 * 190 and gpu.counters["submits"] == before + 1


def test_a_number_that_is_read_flushes_what_it_needs(gpu, monkeypatch):
    monkeypatch.setattr(fuse, "ENABLED", True)  # with AUTOGRAD_FUSE=0 nothing waits, by design
    x, y = ag.ones(4, 6, device="wgpu") * 2, ag.ones(3, device="wgpu") * 1
    loss, other = x.sum(), y.exp() + 1
    assert loss.item() == 48
    assert other.array.pending is not None and y.array.pending is not None
    np.testing.assert_allclose(other.numpy(), np.e + 1, rtol=1e-6)


def test_downloads_copy_once(gpu, check, rng):
    """Straight from mapped memory into the layout and the dtype of the result."""
    for dtype in (np.float32, np.int64, np.float16, np.bool_):
        x = rng.integers(0, 2, (5, 7)).astype(dtype)
        a = gpu.upload(x)
        turned, back, spread = a.view((7, 5), (1, 7), 0), a.view((3,), (-7,), 29), a.view((2, 3), (0, 0), 3)
        for view, want in ((a, x), (turned, x.T), (back, x[4:1:-1, 1]), (spread, np.broadcast_to(x[0, 3], (2, 3)))):
            got = gpu.download(view)
            assert got.flags.owndata and got.flags.writeable and got.flags.c_contiguous
            np.testing.assert_array_equal(got, want)


def test_a_column_is_downloaded_without_the_rest(gpu, rng):
    x = rng.standard_normal((300, 300)).astype(np.float16)
    a, before = gpu.upload(x), gpu.counters["bytes_downloaded"]
    np.testing.assert_array_equal(gpu.download(a.view((3, 100), (300 * 100, 300), 7)), x[:, 7].reshape(3, 100))
    assert gpu.counters["bytes_downloaded"] - before == 600


def test_a_full_queue_submits_itself(gpu):
    x = gpu.upload(np.zeros(4, np.float32))
    for _ in range(1500):
        x = Binary("add")(x, 1)
    assert gpu.queue.pending() < 1500
    np.testing.assert_array_equal(gpu.download(x), 1500)


def test_parameters_of_one_batch_do_not_overtake(gpu):
    """Each dispatch has its own slot: with one slot, 1, 2, 3 came out as 3, 3, 3."""
    x = gpu.upload(np.zeros(4, np.float32))
    results = [Binary("add")(x, value) for value in range(300)]
    for value, result in enumerate(results):
        np.testing.assert_array_equal(gpu.download(result), value)


def test_an_upload_does_not_overtake_queued_work(gpu):
    """A recycled buffer that queued work still reads may not be written at once."""
    for size in (64, 100_000):
        gpu.synchronize()
        x = gpu.upload(np.full(size, 1, np.float32))
        gpu.synchronize()
        results = []
        for value in range(2, 30):
            results.append(Binary("add")(x, 0))
            del x
            x = gpu.upload(np.full(size, value, np.float32))
        del x
        for value, result in enumerate(results, start=1):
            np.testing.assert_array_equal(gpu.download(result), value)


def training_step(gpu, x, w, m, v, step):
    """A step in miniature: upload, product, softmax, reduction, update in place."""
    data = gpu.upload(x + step)
    y = Softmax("softmax")(Matmul()(data, w), 1)
    g = Matmul()(data.view(x.shape[::-1], (1, x.shape[1]), 0), y)
    options = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.0, "decoupled": False}
    Adam()(w, g, m, v, lr=0.01, bias1=0.1, bias2=0.01, **options)
    return Reduce("sum")(y, (0, 1))


@pytest.mark.parametrize("read", [True, False])
def test_a_loop_grows_nothing(gpu, rng, read):
    x = rng.standard_normal((12, 8)).astype(np.float32)
    w = gpu.upload(rng.standard_normal((8, 4)).astype(np.float32))
    m, v = full((8, 4), 0, np.float32, gpu), full((8, 4), 0, np.float32, gpu)
    seen = []
    for step in range(40):
        before = webgpu.stats()["dispatches"]
        loss = training_step(gpu, x, w, m, v, step)
        if read:
            gpu.download(loss)
        now = webgpu.stats()
        seen.append(
            (
                now["dispatches"] - before,
                now["pipelines"],
                now["buffers_live"],
                gpu.pool.total_bytes,
                len(gpu.queue.groups),
            )
        )
    assert len(set(seen[4:])) == 1, seen


def test_memory_comes_back_when_the_last_view_dies(gpu):
    gpu.synchronize()
    before = webgpu.stats()["buffers_live"]
    x = gpu.upload(np.zeros(10, np.float32))
    view = x.view((5,), (1,), 5)
    assert webgpu.stats()["buffers_live"] == before + 1
    del x
    assert webgpu.stats()["buffers_live"] == before + 1
    del view
    assert webgpu.stats()["buffers_live"] == before


def test_stats_count(gpu):
    gpu.synchronize()
    webgpu.reset_stats()
    x = gpu.upload(np.zeros(10, np.float32))
    y = Unary("neg")(x)
    assert webgpu.stats()["ops"] == 1
    y.storage
    assert webgpu.stats()["dispatches"] == 1 and webgpu.stats()["bytes_uploaded"] == 40
    gpu.download(y)
    now = webgpu.stats(0)
    assert now["dispatches"] == 1 and now["submits"] == 1 and now["bytes_downloaded"] == 40
    Unary("neg")(x).storage
    webgpu.reset_stats()
    gpu.synchronize()
    assert webgpu.stats()["dispatches"] == 0


@pytest.mark.parametrize(
    "text, line",
    [("fn op(x: T) -> R {\n  return x +;\n}\n", 2), ("fn op(x: T) -> R {\n\n  return nothing(x);\n}\n", 3)],
)
def test_a_shader_error_names_file_and_line(gpu, monkeypatch, text, line):
    read = shaders.read
    monkeypatch.setattr(shaders, "read", lambda name: text if name == "broken" else read(name))
    x = gpu.upload(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match=rf"broken\.wgsl, line {line}"):
        Unary("broken")(x).storage
    with pytest.raises(RuntimeError, match=r"there is no shader .*missing\.wgsl"):
        Unary("missing")(x).storage


def test_a_shader_error_in_a_library_names_it(gpu, monkeypatch):
    read = shaders.read
    monkeypatch.setattr(shaders, "read", lambda name: "fn (\n" if name == "lib/unary" else read(name))
    monkeypatch.setattr(gpu.pipelines, "kernels", {})
    with pytest.raises(RuntimeError, match=r"lib/unary\.wgsl, line 1"):
        Unary("neg")(gpu.upload(np.zeros((3, 2), np.float32)).view((2, 3), (1, 2), 0)).storage


def test_a_refused_dispatch_names_its_kernel_and_the_device_lives(gpu, check, run):
    x = gpu.upload(np.arange(4, dtype=np.float32))
    y = gpu.empty((4,), np.float32)
    gpu.run(gpu.kernel("fill"), (y,), (1, 0), 70_000)
    with pytest.raises(RuntimeError, match=r"\[fill\] the device refused this dispatch"):
        gpu.flush()
    with pytest.raises(RuntimeError, match=r"\[fill\]"):
        gpu.run(gpu.kernel("fill"), (x, y), (1, 0), 1)
    check(Unary("neg")(x), np.array([0, -1, -2, -3], np.float32))


def test_a_kernel_must_bind_as_the_rules_say():
    with pytest.raises(RuntimeError, match="binds its parameters"):
        shaders.access("@group(0) @binding(1) var<storage, read> x: array<f32>;")


def test_out_of_memory_empties_the_pool_first(gpu, monkeypatch):
    import wgpu

    keep = gpu.upload(np.ones(3, np.float32))
    gpu.synchronize()
    gpu.pool.trim()
    allocate, calls = gpu.pool._allocate, []

    def refuse(size, usage, times):
        if size < 4096:  # for the wait that comes before the second attempt
            return allocate(size, usage)
        calls.append(size)
        if len(calls) <= times:
            raise wgpu.GPUOutOfMemoryError("no")
        return allocate(size, usage)

    monkeypatch.setattr(gpu.pool, "_allocate", lambda size, usage: refuse(size, usage, 1))
    gpu.empty((12_345,), np.float32)
    assert len(calls) == 2
    calls.clear()
    monkeypatch.setattr(gpu.pool, "_allocate", lambda size, usage: refuse(size, usage, 2))
    with pytest.raises(webgpu.OutOfMemoryError, match="no room for a buffer of 2,097,152 bytes"):
        gpu.empty((500_000,), np.float32)
    np.testing.assert_array_equal(gpu.download(keep), 1)


def test_threads_share_a_device(gpu):
    failures = []

    def work(seed):
        values = np.random.default_rng(seed).standard_normal((40, 33)).astype(np.float32)
        for _ in range(20):
            x = gpu.upload(values)
            for _ in range(10):
                x = Binary("add")(x, 1)
            if not np.allclose(gpu.download(x), values + 10, atol=1e-5):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_opening_twice_gives_one_device(gpu):
    assert webgpu.open_device(0) is gpu


def test_an_array_of_a_dead_interpreter_does_no_harm(run):
    code = """
import numpy as np
from autograd import webgpu
from autograd.webgpu.launch import Unary
kept = Unary("neg")(webgpu.open_device().upload(np.ones(3, np.float32)))
cycle = [kept]
cycle.append(cycle)
"""
    done = run(code)
    assert done.returncode == 0 and b"Error" not in done.stderr, done.stderr


def test_copy_into_is_ordered_with_what_follows(gpu, check):
    x = gpu.upload(np.zeros(4, np.float32))
    before = Binary("add")(x, 0)
    copy_into(x, 5)
    after = Binary("add")(x, 0)
    check(before, np.zeros(4, np.float32))
    check(after, np.full(4, 5, np.float32))


def test_without_shader_f16(run):
    code = """
import numpy as np
from autograd import webgpu
from autograd.webgpu.launch import Unary
gpu = webgpu.open_device()
said = webgpu.devices()[0]
assert not said["shader_f16"] and said["float16"].startswith("packed")
print(gpu.download(Unary("neg")(gpu.upload(np.arange(3, dtype=np.float16)))))
"""
    done = run(code, AUTOGRAD_WGPU_NO_F16="1")
    assert done.stdout.decode().strip() == "[-0. -1. -2.]", done.stderr


def test_moved_handles_say_what_to_do(gpu, monkeypatch):
    from wgpu.backends.wgpu_native import _api

    from autograd.webgpu.fastpath import FastRecorder

    monkeypatch.delattr(_api, "error_handler")
    with pytest.raises(RuntimeError, match="AUTOGRAD_WGPU_SAFE=1"):
        FastRecorder()
