"""Which matmul kernel suits an adapter: measured on request, remembered by the device, and in a file when asked.

A choice is (kernel, rows, columns): blocks of 4 x 4 an invocation.
"""

import json
import os
import time
from pathlib import Path

import numpy as np

# Software Vulkan is slow at barriers and likes long invocations; a GPU wants many, and its workgroup memory.
ON_CPU = {"large": ("matmul", 4, 4), "middle": ("matmul", 2, 2), "small": ("matmul", 1, 1)}
ON_GPU = {"large": ("matmul_shared", 2, 2), "middle": ("matmul_shared", 2, 2), "small": ("matmul", 1, 1)}
CANDIDATES = [("matmul", 4, 4), ("matmul", 2, 2), ("matmul", 1, 1), ("matmul", 1, 2), ("matmul_shared", 2, 2)]
CANDIDATES += [("matmul_shared", 1, 1), ("matmul_shared", 4, 4)]
# What stands for each kind of product: m, k, n.
SAMPLES = {"large": (512, 512, 512), "middle": (128, 256, 128), "small": (32, 256, 32)}
HOPELESS = 4


def kind_of(m, n, count):
    """How a product is classed: are there invocations enough for large tiles?"""
    if m * n * count < 1 << 14 or min(m, n) < 16:
        return "small"
    return "large" if m * n >= 1 << 18 else "middle"


def choice(gpu, m, n, count):
    """The kernel for a product on this device: the tuned one, or what its type suggests."""
    kind = kind_of(m, n, count)
    return gpu.tuned.get(kind) or (ON_CPU if gpu.info["type"] == "CPU" else ON_GPU)[kind]


def autotune(gpu, cache=False, samples=None):
    """Measure the candidates and use the fastest from now on; {kind: (kernel, rows, columns)}.

    cache: take what was measured before from a file in the user's cache folder, or leave it there.
    """
    known = read_cache(gpu) if cache else None
    if known is None:
        known = {kind: fastest(gpu, kind, *sizes) for kind, sizes in (samples or sizes_for(gpu)).items()}
        if cache:
            write_cache(gpu, known)
    use(gpu, known)
    return dict(gpu.tuned)


def sizes_for(gpu):
    """The samples; shallow ones where products run on a CPU."""
    if gpu.info["type"] != "CPU":
        return SAMPLES
    return {kind: (m, min(k, 64), n) for kind, (m, k, n) in SAMPLES.items()}


def use(gpu, choices):
    """Take these kernels from now on: what was planned with others is forgotten."""
    from .matmul import LAUNCHERS

    gpu.tuned = {**gpu.tuned, **choices}
    for launcher in LAUNCHERS:
        launcher.plans.clear()


def fastest(gpu, kind, m, k, n):
    """The candidate that takes least time for one product of this size."""
    from .matmul import Matmul

    rng = np.random.default_rng(0)
    a, b = (gpu.upload(rng.standard_normal(shape).astype(np.float32)) for shape in ((m, k), (k, n)))
    product, before, times = Matmul(), gpu.tuned, {}
    try:
        for candidate in CANDIDATES:
            use(gpu, {kind: candidate})
            least = min(times.values(), default=float("inf"))
            times[candidate] = seconds(gpu, lambda: product(a, b), HOPELESS * least)
    finally:
        gpu.tuned = before
    return min(times, key=times.get)


def seconds(gpu, work, hopeless):
    """The least of a few runs; of one where that is hopelessly long already."""
    least = float("inf")
    for attempt in range(4):
        gpu.synchronize()
        start = time.perf_counter()
        kept = work()
        gpu.synchronize()
        del kept
        if attempt:  # the first compiles
            least = min(least, time.perf_counter() - start)
            if least > hopeless:
                break
    return least


def cache_file():
    """Where choices are kept for the user."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "autograd-wgpu" / "matmul.json"


def adapter_key(gpu):
    """An adapter and its driver: another driver may prefer other kernels."""
    return " / ".join(gpu.info[part] for part in ("name", "backend", "driver"))


def read_cache(gpu):
    """What the file says of this adapter, or None."""
    try:
        stored = json.loads(cache_file().read_text(encoding="utf-8"))[adapter_key(gpu)]
        known = {kind: tuple(stored[kind]) for kind in SAMPLES}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return known if set(known.values()) <= set(CANDIDATES) else None


def write_cache(gpu, choices):
    """Enter this adapter's choices in the file."""
    path = cache_file()
    try:
        everything = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        everything = {}
    if not isinstance(everything, dict):
        everything = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    everything[adapter_key(gpu)] = choices
    path.write_text(json.dumps(everything, indent=1), encoding="utf-8")
