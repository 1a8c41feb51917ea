"""Two processes against one, each with one thread: the digits CNN, the same batches, the same total work.

Both train in turns within one run, so that they meet the same noise: in one turn rank 0 takes whole batches while rank 1
waits, in the next each takes half. The speed-up is the ratio of the fastest turns; beside it stand the seconds of CPU that
were used, which say what the speed-up is where the cores are free, however busy they are.
"""

from __future__ import annotations

import sys
import time

import autograd as ag
from autograd import distributed, nn, optim

BATCH, STEPS, TURNS = 128, 7, 15


def network() -> nn.Module:
    """conv - relu - conv - relu - pool - dense."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip


class Trainer:
    """A network with its optimizer, and the batches of one epoch."""

    def __init__(self, rank: int, size: int, bucket_bytes: int):
        ag.manual_seed(0)
        self.data = ag.data.digits()
        self.model = distributed.DataParallel(network(), bucket_bytes=bucket_bytes)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.sampler = distributed.ShardedSampler(self.data, BATCH, rank=rank, size=size)
        self.alone = size == 1

    def turn(self) -> tuple[float, float]:
        """One turn of STEPS full batches; seconds, and seconds of this process' CPU."""
        batches = [self.data.gather(indices) for indices in list(self.sampler)[:STEPS]]
        wall, cpu = time.perf_counter(), time.process_time()
        for x, y in batches:
            self.optimizer.zero_grad()
            if self.alone:
                nn.functional.cross_entropy(self.model(x), y).backward()
            else:
                with self.model.sync(len(x), BATCH):
                    nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
        return time.perf_counter() - wall, time.process_time() - cpu


def measure(bucket_bytes: int) -> dict:
    """In every rank: each turn's seconds, alone and shared."""
    alone, shared = Trainer(0, 1, bucket_bytes), Trainer(distributed.rank(), distributed.size(), bucket_bytes)
    seen: dict = {"alone": [], "shared": [], "waiting": []}
    for _ in range(TURNS + 1):
        distributed.barrier()
        if distributed.rank() == 0:
            seen["alone"].append(alone.turn())
        distributed.barrier()
        before = distributed.stats()["seconds"]
        seen["shared"].append(shared.turn())
        seen["waiting"].append(distributed.stats()["seconds"] - before)
    return {name: turns[1:] for name, turns in seen.items()}  # the first warms up


def data_parallel(size: int = 2, bucket_bytes: int = 1 << 20) -> dict:
    """{"one", "all": samples/s, "speedup", "cpu_speedup", "cpu_overhead", "waiting": seconds a step}."""
    ranks = distributed.spawn(measure, size, (bucket_bytes,))
    best = {name: min(wall for wall, _ in ranks[0][name]) for name in ("alone", "shared")}
    used = min(cpu for _, cpu in ranks[0]["alone"])
    busiest = min(max(turn[1] for turn in turns) for turns in zip(*(r["shared"] for r in ranks), strict=True))
    together = min(sum(turn[1] for turn in turns) for turns in zip(*(r["shared"] for r in ranks), strict=True))
    return {
        "one": BATCH * STEPS / best["alone"], "all": BATCH * STEPS / best["shared"], "speedup": best["alone"] / best["shared"],
        "cpu_speedup": used / busiest, "cpu_overhead": together / used - 1,
        "waiting": min(ranks[0]["waiting"]) / STEPS,
    }  # fmt: skip


def main() -> None:
    size = int(sys.argv[1]) if sys.argv[1:] else 2
    found = data_parallel(size)
    print(f"digits CNN, batches of {BATCH}: 1 process {found['one']:.0f} samples/s, {size} processes {found['all']:.0f} samples/s")
    print(f"speed-up {found['speedup']:.2f} (by CPU time {found['cpu_speedup']:.2f}; all together use "
          f"{found['cpu_overhead']:+.0%} CPU; {found['waiting'] * 1e3:.2f} ms a step in communication)")  # fmt: skip


if __name__ == "__main__":
    main()
