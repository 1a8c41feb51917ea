"""`make bench`: host costs and ratios against PyTorch, measured side by side. Prints a table, writes out/bench.json.

Each pair of rivals runs in alternation within one process, so that both meet the same noise; a figure is the median
of the rounds, and the ratio is the median of the rounds' ratios. Set DEVICE=wgpu to add the GPU's host costs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import autograd as ag

ROUNDS = 41


def seconds(function: Callable, calls: int) -> float:
    """The time of one call, averaged over `calls`."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def against(ours: Callable, theirs: Callable, calls: int, rounds: int = ROUNDS) -> dict:
    """Both in turns: their medians in microseconds, and the median ratio."""
    for f in (ours, theirs):
        seconds(f, calls)
    times = [(seconds(ours, calls), seconds(theirs, calls)) for _ in range(rounds)]
    return {
        "ours_us": median(a for a, _ in times) * 1e6,
        "theirs_us": median(b for _, b in times) * 1e6,
        "ratio": median(a / b for a, b in times),
    }


def small_ops(library) -> Callable:
    """(x*y+z).sum().backward() on 8 elements: the cost of the tape itself."""
    x, y, z = (library.randn(8, requires_grad=True) for _ in range(3))

    def step() -> None:
        x.grad = y.grad = z.grad = None
        (x * y + z).sum().backward()

    return step


def recurrent_step(library, kind: str, batch: int, steps: int, inputs: int, units: int) -> Callable:
    """Forward and backward of nn.GRU or nn.LSTM in float32."""
    model = getattr(library.nn, kind)(inputs, units)
    x = library.randn(steps, batch, inputs)

    def step() -> None:
        model.zero_grad()
        model(x)[0].sum().backward()

    return step


def cpu() -> list[tuple[str, dict]]:
    """Against PyTorch with one thread and with two."""
    import torch

    rows = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        versus = f"PyTorch, {threads} thread{'s' * (threads > 1)}"
        rows.append((f"(x*y+z).sum().backward(), 8 elements | {versus}", against(small_ops(ag), small_ops(torch), 200)))
        for size in (32, 64, 64, 128), (64, 128, 128, 256), (1, 64, 64, 128):
            for kind in "GRU", "LSTM":
                ours, theirs = (recurrent_step(library, kind, *size) for library in (ag, torch))
                rounds = 5 if size[0] == 64 else ROUNDS
                rows.append((f"{kind} forward + backward, B T I H = {size} | {versus}", against(ours, theirs, 1, rounds)))
    return rows


def wgpu() -> list[tuple[str, dict]]:
    """Host cost of queuing: no value is read and nothing is flushed inside the timed part."""
    x = ag.ones(8, device="wgpu")

    def chain() -> None:
        y = x
        for _ in range(64):
            y = y + x

    times = []
    for _ in range(ROUNDS):
        times.append(seconds(chain, 1) / 64)
        ag.wgpu.synchronize()
    return [("one add of 8 elements on wgpu, queued (64 in a chain)", {"ours_us": median(times) * 1e6})]


def main() -> None:
    try:
        from threadpoolctl import threadpool_info

        for pool in threadpool_info():
            print(f"{pool['internal_api']} {pool.get('version')}: {pool['num_threads']} threads, {pool.get('architecture', '')}")
    except ImportError:
        print("threads unknown: pip install threadpoolctl")
    rows = cpu()
    if os.environ.get("DEVICE", "cpu") != "cpu":
        rows += wgpu()
    width = max(len(name) for name, _ in rows)
    for name, row in rows:
        theirs = f"{row['theirs_us']:12.1f} µs  ratio {row['ratio']:.2f}" if "ratio" in row else ""
        print(f"{name:{width}s} {row['ours_us']:12.1f} µs {theirs}")
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "bench.json").write_text(json.dumps(dict(rows), indent=1))


if __name__ == "__main__":
    main()
