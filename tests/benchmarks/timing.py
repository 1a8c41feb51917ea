"""How the benchmarks measure this project alone: medians, the memory that a step takes, what it asks of a driver."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from statistics import median

import autograd as ag


def seconds(function: Callable, calls: int = 1) -> float:
    """The time of one call, averaged over `calls`."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def alone(function: Callable, calls: int = 1, rounds: int = 5) -> dict:
    """The median time of one call, in milliseconds, after two calls that compile and fill the pools."""
    seconds(function, 2)
    return {"ours_ms": median(seconds(function, calls) for _ in range(rounds)) * 1e3}


def peak(step: Callable) -> dict:
    """The most memory that NumPy's arrays take within one step, above what was there before, in MB."""
    step()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        step()
        return {"peak_MB": (tracemalloc.get_traced_memory()[1] - before) / 1e6}
    finally:
        tracemalloc.stop()


def counts(step: Callable, steps: int = 3) -> dict:
    """What one training step on wgpu asks of the driver, once it is warm: nothing is read in it."""
    for _ in range(3):
        step()
    ag.wgpu.synchronize()
    before = ag.wgpu.stats()
    for _ in range(steps):
        step()
        ag.wgpu.synchronize()
    after = ag.wgpu.stats()
    names = ("ops", "dispatches", "submits", "pipelines", "bytes_uploaded", "bytes_downloaded")
    found = {name: (after[name] - before[name]) / steps for name in names}
    return {**found, "bytes_live": after["bytes_live"], "bytes_pooled": after["bytes_pooled"]}
