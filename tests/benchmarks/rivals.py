"""Rivals on the CPU: each library in a process of its own, as its users have it, and told by lines when its turn is.

One process for all would measure their neighbours too: a library's idle threads wait for work by spinning on the cores
that the next one needs, and autograd's request that glibc keep freed memory would serve PyTorch as well, which does not
make it. `KEPT` makes it for PyTorch, to show what it is worth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

SPIN = {"autograd": 0.12, "torch": 0.03}  # seconds that a library's idle threads spin: OpenBLAS's 0.105, OpenMP's 0.01
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 26)}


class Rival:
    """A library in a process of its own."""

    def __init__(self, library: str, environment: dict | None = None):
        self.library = library
        command = [sys.executable, str(Path(__file__)), library]
        self.process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **message: Any) -> Any:
        """Its answer to one request; what went wrong there is printed by it and ends this program."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(message), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a rival ended with status {self.process.wait()} at {message}")
        return json.loads(line)

    def turn(self, calls: int) -> float:
        """The time of one call, averaged over so many; when it returns, this library's threads sleep."""
        seconds = self.ask(calls=calls)
        time.sleep(SPIN[self.library])
        return seconds

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def measured(rivals: dict[str, Rival], work: str, options: dict, threads: int, calls: int, rounds: int) -> dict:
    """Their medians in milliseconds, taken in turns so that all meet the same noise, and the first one's ratio to each other."""
    for rival in rivals.values():
        rival.ask(work=work, options=options, threads=threads)
    times = [[rival.turn(calls) for rival in rivals.values()] for _ in range(rounds)]
    columns = dict(zip(rivals, zip(*times, strict=True), strict=True))
    ours, *others = columns
    found = {f"{name}_ms": median(column) * 1e3 for name, column in columns.items()}
    ratios = {f"ratio_{name}": median(a / b for a, b in zip(columns[ours], columns[name], strict=True)) for name in others}
    return {**found, **ratios}


def serve(name: str) -> None:
    """Make work and take turns, as the lines say."""
    import workloads
    from threadpoolctl import threadpool_limits

    library = import_module(name)
    step: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        if "work" in message:
            library.set_num_threads(message["threads"])
            threadpool_limits(message["threads"])
            step = getattr(workloads, message["work"])(library, **message["options"])
            step()
            print(0, flush=True)
            continue
        step()  # wakes its own threads
        start = time.perf_counter()
        for _ in range(message["calls"]):
            step()
        print((time.perf_counter() - start) / message["calls"], flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
