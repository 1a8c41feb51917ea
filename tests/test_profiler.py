"""The profiler: what it counts, that times fit into one another, what it writes, and that it leaves no trace."""

import gzip
import itertools
import json
import os
import threading

import pytest
from helpers import array, assert_raises

import autograd as ag
from autograd import nn, op, optim, profiler, profiler_events
from autograd.grad_mode import state
from autograd.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def training(device):
    ag.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    optimizer, x = optim.AdamW(model.parameters()), ag.randn(4, 6, device=device)

    def step():
        loss = (model(x) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def watched():
    """What a profile exchanges, to see whether it is back."""
    kinds = [(kind, dict(vars(kind))) for kind in (*op.REGISTRY.values(), optim.Optimizer, nn.Module)]
    opened = ag.wgpu._opened
    queues = [(gpu.queue, dict(vars(gpu.queue)).keys()) for gpu in opened.values()]
    return kinds, state.run, type(opened), queues


def rows(prof, **options):
    return {row.key: row for row in prof.key_averages(**options)}


def test_counts_forward_and_backward(device):
    step = training(device)
    want = step()
    with profile() as prof:
        step()
        step()
    found = rows(prof)
    calls = {"tanh": 2, "TanhBackward": 2, "SumBackward": 2, "Optimizer.step#AdamW.step": 2, "Optimizer.zero_grad#AdamW.zero_grad": 2}
    assert {name: found[name].count for name in calls} == calls
    assert found["linear"].count == 4 and found["LinearBackward"].count == 4
    assert training(device)() == want, "the numbers are those of a run without a profile"


def test_times_fit_into_one_another(device):
    step = training(device)
    step()
    with profile() as prof, record_function("outer"):
        with record_function("inner"):
            step()
        step()
    events = prof.events()
    outer, inner = (next(e for e in events if e.name == name) for name in ("outer", "inner"))
    assert inner.cpu_parent is outer and 0 < inner.cpu_time_total < outer.cpu_time_total
    on_host = [e for e in events if e.device_type == "cpu"]
    assert all(0 <= e.start <= e.end for e in events) and all(e.self_cpu_time_total >= -1e-3 for e in on_host)
    for e in on_host:
        if e.cpu_parent is not None:
            assert e.cpu_parent.start <= e.start and e.end <= e.cpu_parent.end
    total = sum(e.self_cpu_time_total for e in on_host)
    assert total == pytest.approx(outer.cpu_time_total, rel=1e-6), "all that ran, ran within outer, and counts once"
    assert prof.key_averages().self_cpu_time_total == pytest.approx(total)


def test_kernels_are_timed_one_a_dispatch(wgpu):
    step = training(wgpu)
    step()
    ag.wgpu.synchronize()
    ag.wgpu.reset_stats()
    with profile() as prof, record_function("all"):
        step()
        y = ag.ones(3, device=wgpu).cumsum(0) + 1  # waits when the profile ends
    dispatches = ag.wgpu.stats()["dispatches"]
    kernels = [e for e in prof.events() if e.category == "kernel"]
    if "timestamp-query" not in ag.wgpu.open_device().wgpu_device.features:
        assert not kernels and "has no timestamp-query" in prof.key_averages().table()
        return
    assert len(kernels) == dispatches > 10
    assert {e.name for e in kernels} >= {"wgpu::matmul", "wgpu::adam"}
    assert all(e.device == "wgpu:0" and e.end >= e.start and e.self_device_time_total == e.end - e.start for e in kernels)
    assert sum(e.end - e.start for e in kernels) > 0
    assert all(a.end <= b.start + 1 for a, b in itertools.pairwise(kernels)), "one after the other"
    found = rows(prof)
    assert found["wait for wgpu and read"].count >= 1
    assert found["wgpu::adam"].cpu_time_total == 0 < found["wgpu::adam"].device_time_total
    assert "Self wgpu time total" in prof.key_averages().table()
    assert y.tolist() == [2, 3, 4]


def test_an_adapter_without_timestamps_is_said(wgpu, monkeypatch):
    gpu = ag.wgpu.open_device()

    class Without:
        features = set()

    step = training(wgpu)
    monkeypatch.setattr(gpu, "wgpu_device", Without())
    with profile() as prof:
        pass
    monkeypatch.undo()
    with profile(activities=[ProfilerActivity.WGPU]) as only:
        step()
    assert "has no timestamp-query: its kernels are not timed" in prof._notes[0]
    assert all(e.category == "kernel" for e in only.events())
    with profile(activities=[ProfilerActivity.CPU]) as host:
        step()
    assert host.events() and not any(e.category == "kernel" for e in host.events())


def test_the_table(device):
    step = training(device)
    with profile(record_shapes=True, with_modules=True) as prof:
        step()
    averages = prof.key_averages()
    lines = averages.table(sort_by="self_cpu_time_total", row_limit=3).splitlines()
    assert lines[1].split("  ")[0] == "Name" and "# of Calls" in lines[1] and "Self CPU %" in lines[1]
    assert len({len(line) for line in lines[:7]}) == 1 and lines[7].startswith("Self CPU time total: ")
    times = [row.self_cpu_time_total for row in sorted(averages, key=lambda r: -r.self_cpu_time_total)]
    assert profiler_events.duration(times[0]) in lines[3]
    names = {row.key for row in averages}
    assert {"nn.Module: Linear", "nn.Module: Sequential", "nn.Module: Tanh"} <= names
    shaped = prof.key_averages(group_by_input_shape=True)
    assert "Input Shapes" in shaped.table() and ((4, 8),) in {row.input_shapes for row in shaped if row.key == "tanh"}
    assert sum(r.count for r in shaped) == sum(r.count for r in averages)
    for name in ("count", "cpu_time", "wgpu_time_total", "device_time"):
        assert averages.table(sort_by=name, row_limit=-1).count("\n") == len(averages) + (5 if device == "wgpu" else 4)
    assert "Optimizer.zero_gr..." in averages.table(max_name_column_width=20)
    assert_raises(ValueError, "sort_by is one of", lambda: averages.table(sort_by="speed"))
    with profile() as plain:
        ag.ones(2) + 1
    assert_raises(ValueError, "record_shapes", lambda: plain.key_averages(group_by_input_shape=True))
    with profile() as empty:
        pass
    assert empty.key_averages().table() == "nothing was recorded"


def test_the_trace(device, tmp_path, monkeypatch):
    step = training(device)
    path = tmp_path / "trace.json"
    with profile(record_shapes=True) as prof, record_function("train"):
        step()
    prof.export_chrome_trace(path)
    found = json.loads(path.read_text())["traceEvents"]
    spans = [e for e in found if e["ph"] == "X"]
    assert len(spans) == len(prof.events()) and len(found) > len(spans)
    assert all(set(e) == {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"} and e["dur"] >= 0 for e in spans)
    names = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert names[0] == "cpu"
    kernels = {e["pid"] for e in spans if e["cat"] == "kernel"}
    assert all(names[pid].startswith("wgpu:0 ") for pid in kernels)
    assert len({(e["pid"], e["tid"]) for e in spans}) == len([e for e in found if e["name"] == "thread_name"])
    prof.export_chrome_trace(tmp_path / "trace.json.gz")
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"] == found
    before = path.read_bytes()
    monkeypatch.setattr(profiler_events.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    assert_raises(OSError, "full", lambda: prof.export_chrome_trace(path))
    assert path.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["trace.json", "trace.json.gz"]


def test_exceptions_leave_everything_as_it_was(device):
    step = training(device)
    step()
    before = watched()
    prof = profile(with_modules=True)
    with pytest.raises(ZeroDivisionError), prof, record_function("broken"):
        step()
        assert watched() != before
        assert_raises(RuntimeError, "still recording", prof.events)
        assert_raises(RuntimeError, "one at a time", lambda: profile().__enter__())
        1 / 0
    assert watched() == before
    assert rows(prof)["broken"].count == 1, "what was recorded is there"
    with pytest.raises(ValueError), profile():
        ag.ones(2) + ag.ones(3)
    assert watched() == before and profiler._running is None
    step()


def test_refused():
    assert_raises(ValueError, "activities are some of", lambda: profile(activities=[]))
    assert_raises(ValueError, "activities are some of", lambda: profile(activities=["cpu"]))
    assert_raises(TypeError, "with_flops", lambda: profile(with_flops=True))
    assert_raises(ValueError, "active is positive", lambda: schedule(wait=0, warmup=0, active=0))


def test_ranges_without_a_profile_and_as_decorators():
    @record_function("work")
    def work(n):
        return work(n - 1) + 1 if n else 0

    with record_function("nobody looks"):
        assert work(2) == 2
    late = record_function("left open")
    with profile() as prof:
        work(2)
        late.__enter__()
    late.__exit__()
    found = rows(prof)
    assert (found["work"].count, found["left open"].count) == (3, 1)


def test_other_threads_are_left_alone():
    """Their operations run as ever, and their kernels would be timed; ranges are the entering thread's."""
    results = []

    def work():
        x = ag.ones(3, requires_grad=True)
        with record_function("theirs"):
            (x * x).tanh().sum().backward()
        results.append(x.grad.tolist())

    with profile() as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
        ag.ones(2).exp()
    assert results and {e.name for e in prof.events()} == {"exp"}


def test_functions_of_the_users(device):
    class Twice(ag.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    x = ag.ones(3, device=device, requires_grad=True)
    with profile() as prof:
        Twice.apply(x).sum().backward()
    assert rows(prof)["TwiceBackward"].count == 1 and array(x.grad).tolist() == [2, 2, 2]


def test_a_schedule():
    action = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    none, warm, record, save = ProfilerAction
    assert [action(i) for i in range(11)] == [none, none, warm, record, save, none, warm, record, save, none, none]
    seen = []
    before = watched()
    with profile(schedule=action, on_trace_ready=lambda prof: seen.append((prof.step_num, prof.events()))) as prof:
        for i in range(11):
            ag.full((1,), float(i)).exp()
            if i == 5:
                assert watched() == before, "nothing is exchanged in a step that waits"
            prof.step()
    assert [number for number, _ in seen] == [5, 9]
    for _, events in seen:
        assert [e.name for e in events if e.category == "cpu_op"] == ["exp"] * 2
        assert len([e for e in events if e.name.startswith("ProfilerStep#")]) == 2
    with profile(on_trace_ready=seen.append) as prof:
        ag.ones(1).exp()
        prof.step()
    assert seen[-1] is prof and {e.name for e in prof.events()} == {"exp", "ProfilerStep#0"}


def test_a_device_opened_meanwhile(wgpu):
    usual = ag.wgpu.open_device()
    try:
        with profile() as prof:
            ag.wgpu._opened.pop(0)
            (ag.ones(5, device=wgpu).cumsum(0) * 2).tolist()
        gpu = ag.wgpu.open_device()
        with profile() as lost:
            (ag.ones(5, device=wgpu).cumsum(0) * 2).tolist()
            ag.wgpu._opened.pop(0).close()
    finally:
        ag.wgpu._opened[0] = usual
    assert gpu is not usual and "encode" not in vars(gpu.queue) and type(ag.wgpu._opened) is dict
    if "timestamp-query" in gpu.wgpu_device.features:
        assert any(e.category == "kernel" for e in prof.events())
        assert "was lost" in lost.key_averages().table()
