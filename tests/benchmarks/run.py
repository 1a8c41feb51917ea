"""`make bench`: ratios to PyTorch and to peers, and counts, measured side by side. Prints tables, writes out/bench.json.

On the CPU against PyTorch with one thread and with two (rivals.py); with DEVICE=wgpu also host costs, dispatches, submits
and bytes of training steps, and the peers that are installed (extra `bench`), each in a process of its own on the same
Vulkan driver. A figure is the median of rounds in turns; a ratio below 1 means that this project is faster.
Usage: run.py [part of a row's name ...]
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import data_parallel
import peers
import workloads as w
from rivals import KEPT, Rival, measured
from timing import alone, counts, peak

import autograd as ag

Row = tuple[str, Callable[[], dict]]
THREADS = 1, 2


def against(rivals: dict, found: dict, work: str, options: dict, threads: int, calls: int, rounds: int) -> dict:
    """A row, kept in `found` for the row of the better ones."""
    if not rivals:
        rivals.update(ours=Rival("autograd"), torch=Rival("torch"), torch_kept=Rival("torch", KEPT))
    found[threads] = measured(rivals, work, options, threads, calls, rounds)
    return found[threads]


def better(found: dict) -> dict:
    """Every rival at its better number of threads."""
    best = {name: min(found[threads][name] for threads in THREADS) for name in found[1] if name.endswith("_ms")}
    ours, *others = best
    return {**best, **{f"ratio_{name.removesuffix('_ms')}": best[ours] / best[name] for name in others}}


def cpu(rivals: dict) -> Iterator[Row]:
    """Against PyTorch with one thread and with two; `torch_kept` is PyTorch in a process where glibc keeps freed memory."""
    work: list = [("(x*y+z).sum().backward(), 8 elements", "small", {}, 200, 21), ("chain of five on 1 M, sum, backward", "chain", {}, 1, 21),
                  ("matmul 1024", "matmul", {}, 1, 21), ("MLP 784-256-10 with AdamW", "mlp", {}, 5, 21),
                  ("2-layer encoder, forward + backward", "encoder", {}, 1, 21)]  # fmt: skip
    for size in w.SIZES:
        for kind in "GRU", "LSTM":
            options, name = {"kind": kind, "size": size}, f"{kind} {' x '.join(map(str, size))}, forward + backward"
            work.append((name, "recurrent", options, 10 if size[0] * size[1] < 1000 else 1, 9 if size[0] == 64 else 21))
    for name, *what, calls, rounds in work:
        found: dict = {}
        for threads in THREADS:
            yield f"{name} | {threads} thread{'s' * (threads > 1)}", partial(against, rivals, found, *what, threads, calls, rounds)
        yield f"{name} | better of both", partial(better, found)
    for kind in "GRU", "LSTM":
        for size in w.SIZES[:2]:
            name = f"{kind} {' x '.join(map(str, size))}: memory"
            yield name, partial(lambda k, s: peak(w.recurrent(ag, k, s)), kind, size)
    yield "digits CNN, samples a second: one process, two processes (one thread each)", data_parallel.data_parallel


def queued() -> dict:
    """Host cost of queuing: no value is read and nothing is flushed inside the timed part."""
    x = ag.ones(8, device="wgpu")

    def run() -> None:
        y = x
        for _ in range(64):
            y = y + x

    found = []
    for _ in range(41):
        found.append(alone(run, rounds=1)["ours_ms"] / 64)
        ag.wgpu.synchronize()
    return {"ours_ms": sorted(found)[len(found) // 2]}


def wgpu() -> Iterator[Row]:
    """Counts that hold on every GPU, then times on this adapter beside the peers'."""
    yield "one add of 8 elements on wgpu, queued (64 in a chain)", queued
    steps = {
        "MLP with AdamW": w.mlp, "2-layer encoder with AdamW": partial(w.encoder, train=True),
        "GRU 32 x 64 x 64 x 128 with AdamW": partial(w.recurrent, kind="GRU", size=(32, 64, 64, 128), train=True),
        "(x*y+z).sum().backward()": w.small,
    }  # fmt: skip
    for name, make in steps.items():
        yield f"{name}: a step's counts", partial(lambda m: counts(m(ag, device="wgpu")), make)
    for name, make in peers.ours().items():
        yield f"{name} on wgpu", partial(lambda m: alone(m(ag, device="wgpu", finish=ag.wgpu.synchronize), rounds=3), make)
        for peer in peers.able(name):
            yield f"{name} | {peer}", partial(peers.measure, peer, name)


def shown(row: dict) -> str:
    """A row's figures in a line."""
    if "note" in row:
        return row["note"]
    return "  ".join(f"{name} {value:,.3f}" if isinstance(value, float) and value % 1 else f"{name} {value:,.0f}" for name, value in row.items())


def main(parts: list[str]) -> None:
    try:
        from threadpoolctl import threadpool_info

        for pool in threadpool_info():
            print(f"{pool['internal_api']} {pool.get('version')}: {pool['num_threads']} threads, {pool.get('architecture', '')}")
    except ImportError:
        raise SystemExit("pip install 'autograd-wgpu[bench]'") from None
    rivals: dict = {}
    rows = list(cpu(rivals))
    if os.environ.get("DEVICE", "cpu") != "cpu":
        rows += wgpu()
        print(*ag.wgpu.devices(), sep="\n")
    rows = [row for row in rows if not parts or any(part in row[0] for part in parts)]
    found = {}
    for name, measure in rows:
        found[name] = measure()
        print(f"{name:72s} {shown(found[name])}", flush=True)
    for rival in rivals.values():
        rival.close()
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "bench.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
