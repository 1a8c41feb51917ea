"""dp_train(): a whole training, shared out over processes and devices."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import data as datasets
from .. import random
from ..checkpoint import load
from ..create import as_tensor
from ..data.collate import default_collate, upload
from ..data.worker import Fetcher
from ..device import as_device
from ..nn.module import Module
from ..nn.utils import clip_grad_norm_
from ..optim import Optimizer
from .backend import backend
from .buckets import BYTES
from .compression import compressor
from .launch import check_picklable, report, spawn
from .output import save
from .parallel import DataParallel, weights_digest
from .sampler import ShardedSampler

_SAME = ("seed", "batch_size", "shuffle")  # what a checkpoint must have been made with


def dp_train(make_model: Callable, data: Any, loss_fn: Callable, *, optimizer: Callable, devices: Sequence = ("cpu", "cpu"),
             epochs: int = 1, batch_size: int = 32, max_norm: float | None = None, schedule: Callable | None = None,
             shuffle: bool = True, seed: int = 0, checkpoint: str | os.PathLike | None = None, resume: bool = False,
             progress: bool = True, on_epoch: Callable | None = None, bucket_bytes: int = BYTES, compress: str | None = None,
             threads: int = 1, timeout: float = 300.0) -> tuple[Module, dict]:  # fmt: skip
    """Train replicas of one model, one process for each of `devices`; returns the model, on the CPU, and its history.

        model, history = ag.distributed.dp_train(Net, dataset, nn.functional.cross_entropy, epochs=5, batch_size=64,
                                                 optimizer=functools.partial(optim.SGD, lr=0.1))

    make_model() makes the Module, from the stream that `seed` starts. data: a Dataset, a tuple of tensors or arrays, or a
    function that makes one in each process; its samples are (inputs…, target). The loss is loss_fn(model(*inputs), target),
    the mean over the samples it is given. optimizer(parameters) makes the Optimizer, schedule(optimizer) what is stepped
    after each epoch. All of these are sent to other processes: classes and functions at the top of a module.

    Every batch of batch_size samples, the shorter last one too, is shared out by ShardedSampler; gradients are averaged by
    sample count (DataParallel), clipped to max_norm, and every replica takes the same step: a hash of the weights is
    compared after each epoch. On unlike devices, which round differently, rank 0's weights go to all after each step.
    BatchNorm's statistics are those of each shard, and rank 0's running ones go to all after each epoch; a model with
    SyncBatchNorm has those of the whole batch.

    history: {"loss": each epoch's mean over all samples, "samples_per_second": […], "ranks": [{"pid", "device", "samples"}]}.
    progress prints a line an epoch; on_epoch(record) is called here, in the caller's process.
    checkpoint: a file that rank 0 replaces after each epoch. resume=True goes on from it, if it is there, and gives the same
    losses and weights, to the bit, as a run on as many devices that was not interrupted; what is random depends on seed, epoch
    and rank alone.

    RuntimeError with the traceback of a rank that failed; the others are ended. Ctrl-C ends all. FileExistsError for a
    checkpoint that is there without resume; ValueError for one of other settings; TypeError for what cannot be pickled.
    """
    if isinstance(devices, str):
        raise TypeError(f"[dp_train] devices is a list, with a device for each process; got {devices!r}. [{devices!r}] * 2?")
    if resume and checkpoint is None:
        raise ValueError("[dp_train] resume=True goes on from a checkpoint; give its path")
    job = _Job(make_model, data, loss_fn, optimizer, [str(as_device(d)) for d in devices], epochs, batch_size, max_norm, schedule,
               shuffle, seed, None if checkpoint is None else os.path.abspath(checkpoint), bucket_bytes, compress)  # fmt: skip
    job.check()
    if job.checkpoint is not None and os.path.exists(job.checkpoint):
        if not resume:
            raise FileExistsError(f"[dp_train] {job.checkpoint} is there already; resume=True goes on from it")
        job.start = job.read()
    with random.drawing_apart(seed):
        model = make_model()
    if not isinstance(model, Module):
        raise TypeError(f"[dp_train] make_model() makes a Module; got {type(model).__name__}")

    def listen(record: dict) -> None:
        if progress:
            shown = f"epoch {record['epoch']}/{epochs}  loss {record['loss']:.4f}"
            print(f"{shown}  {record['samples_per_second']:.0f} samples/s on {len(job.devices)} devices", flush=True)
        if on_epoch is not None:
            on_epoch(record)

    ranks = spawn(_work, len(job.devices), (job,), timeout=timeout, threads=threads, listen=listen)
    weights, history = ranks[0].pop("weights"), ranks[0].pop("history")
    model.load_state_dict(weights)
    return model, {**history, "ranks": ranks}


@dataclass
class _Job:
    """What the workers are told."""

    make_model: Callable
    data: Any
    loss_fn: Callable
    optimizer: Callable
    devices: list[str]
    epochs: int
    batch_size: int
    max_norm: float | None
    schedule: Callable | None
    shuffle: bool
    seed: int
    checkpoint: str | None
    bucket_bytes: int
    compress: str | None
    start: dict | None = field(default=None)

    def check(self) -> None:
        """Raise for what could only fail later, in every worker."""
        if not self.devices:
            raise ValueError("[dp_train] devices has at least one device; got none")
        for name, low in (("epochs", 1), ("batch_size", 1), ("seed", 0), ("bucket_bytes", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ValueError(f"[dp_train] {name} is an integer from {low} on; got {value!r}")
        if self.max_norm is not None and not self.max_norm > 0:
            raise ValueError(f"[dp_train] max_norm is a positive number or None; got {self.max_norm!r}")
        if self.compress is not None:
            compressor(self.compress)
        path = self.checkpoint
        if path is not None and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path))):
            raise ValueError(f"[dp_train] checkpoint is a file in a folder that is there; got {path}")
        for name in ("make_model", "loss_fn", "optimizer", "schedule"):
            value = getattr(self, name)
            if not callable(value) and not (name == "schedule" and value is None):
                hint = ". functools.partial(optim.SGD, lr=0.1) is called with the parameters" if name == "optimizer" else ""
                raise TypeError(f"[dp_train] {name} is called in each process; got {type(value).__name__}{hint}")
            check_picklable("dp_train", name, value)
        check_picklable("dp_train", "data", self.data)
        if not callable(self.data) or hasattr(self.data, "__getitem__"):
            _dataset(self.data)

    def read(self) -> dict:
        """The checkpoint, checked against these settings."""
        found = load(self.checkpoint)  # type: ignore[arg-type]
        settings = found.get("settings") if isinstance(found, dict) else None
        if not isinstance(settings, dict):
            raise ValueError(f"[dp_train] {self.checkpoint} is not a checkpoint of dp_train")
        for name in _SAME:
            if settings[name] != getattr(self, name):
                raise ValueError(
                    f"[dp_train] {self.checkpoint} was made with {name}={settings[name]!r}; got {getattr(self, name)!r}"
                )
        return found


class _Run:
    """One rank's training."""

    def __init__(self, job: _Job):
        group = backend()
        self.job, self.rank = job, group.rank
        self.device = as_device(job.devices[group.rank])
        self.data = _dataset(job.data)
        self.sampler = ShardedSampler(self.data, job.batch_size, job.shuffle, job.seed)
        random.manual_seed(job.seed)
        self.model = DataParallel(job.make_model().to(self.device), bucket_bytes=job.bucket_bytes, compress=job.compress)
        self.optimizer = job.optimizer(self.model.parameters())
        if not isinstance(self.optimizer, Optimizer):
            raise TypeError(f"[dp_train] optimizer(parameters) makes an Optimizer; got {type(self.optimizer).__name__}")
        self.schedule = None if job.schedule is None else job.schedule(self.optimizer)
        self.together = any(getattr(m, "communicates", False) for m in self.model.modules())
        self.unlike = _unlike(self.device)
        self.fetcher = Fetcher(self.data, default_collate, True, False)
        self.history: dict[str, list] = {"loss": [], "samples_per_second": []}
        self.epoch = self.seen = 0
        if job.start is not None:
            self._resume(job.start)

    def _resume(self, start: dict) -> None:
        if start["samples"] != len(self.data):
            raise ValueError(f"[dp_train] the checkpoint was made with {start['samples']} samples; got {len(self.data)}")
        self.model.load_state_dict(start["model"])
        self.optimizer.load_state_dict(start["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(start["schedule"])
        self.epoch, self.history = start["epoch"], start["history"]

    def train(self) -> None:
        """The epochs that are left."""
        while self.epoch < self.job.epochs:
            started = time.perf_counter()
            loss = self._one_epoch()
            self.epoch += 1
            if self.schedule is not None:
                self.schedule.step()
            self._check_equal()
            self.model.broadcast_buffers()
            seconds = time.perf_counter() - started
            self.history["loss"].append(loss)
            self.history["samples_per_second"].append(len(self.data) / seconds)
            self._save()
            if self.rank == 0:
                report({"epoch": self.epoch, **{name: values[-1] for name, values in self.history.items()}})

    def _one_epoch(self) -> float:
        """The mean loss over all samples of all ranks."""
        random.manual_seed(_seed(self.job.seed, self.epoch, self.rank))
        self.sampler.set_epoch(self.epoch)
        losses = []
        for indices, total in zip(self.sampler, self.sampler.totals, strict=True):
            self.optimizer.zero_grad()
            with self.model.sync(len(indices), total):
                if indices or self.together:
                    *inputs, target = upload(self._fetch(indices), self.device)
                    loss = self.job.loss_fn(self.model(*inputs), target)
                    loss.backward()
                    if indices:
                        losses.append((loss.detach(), len(indices)))
            if self.job.max_norm is not None:
                clip_grad_norm_(self.model.parameters(), self.job.max_norm)
            self.optimizer.step()
            if self.unlike:
                self.model.broadcast()
            self.seen += len(indices)
        mine = np.array([sum(float(loss) * n for loss, n in losses)])  # read once an epoch: reading waits for a GPU
        backend().all_reduce(mine)
        return float(mine[0]) / len(self.data)

    def _fetch(self, indices: list[int]) -> Any:
        batch = self.fetcher.fetch(indices or [0])
        if not isinstance(batch, list | tuple) or len(batch) < 2:
            raise TypeError(f"[dp_train] samples are (inputs…, target); got {type(batch).__name__} of {len(batch)}")
        return batch if indices else [part[:0] for part in batch]

    def _check_equal(self) -> None:
        found = backend().all_gather(weights_digest(self.model))
        if any((d != found[0]).any() for d in found):
            raise RuntimeError("[dp_train] the replicas' weights differ. Does the model or the loss change weights by itself?")

    def _save(self) -> None:
        """Every rank comes here: an optimizer whose state is shared out collects it, and nobody trains on before it is saved."""
        if self.job.checkpoint is None:
            return
        settings = {name: getattr(self.job, name) for name in _SAME}
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch,
                 "schedule": None if self.schedule is None else self.schedule.state_dict(),
                 "history": self.history, "settings": settings, "samples": len(self.data)}  # fmt: skip
        save(state, self.job.checkpoint)


def _work(job: _Job) -> dict:
    """What each process runs."""
    run = _Run(job)
    run.train()
    told: dict[str, Any] = {"pid": os.getpid(), "device": str(run.device), "samples": run.seen}
    if run.rank == 0:
        told["weights"] = {name: t.detach().cpu() for name, t in run.model.state_dict().items()}
        told["history"] = run.history
    return told


def _dataset(data: Any) -> Any:
    """A Dataset of what dp_train takes as data."""
    if callable(data) and not hasattr(data, "__getitem__"):
        data = data()
    if isinstance(data, tuple | list) and data and all(hasattr(part, "shape") for part in data):
        data = datasets.TensorDataset(*(as_tensor(part) for part in data))
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        raise TypeError(f"[dp_train] data is a Dataset, a tuple of tensors, or makes one; got {type(data).__name__}")
    if not len(data):
        raise ValueError("[dp_train] data has no samples")
    return data


def _seed(seed: int, epoch: int, rank: int) -> int:
    """Of the stream that one rank draws from in one epoch."""
    return int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1, np.uint64)[0])


def _unlike(device: Any) -> bool:
    """Whether the ranks' devices compute with different arithmetic."""
    name = "cpu"
    if device.type == "wgpu":
        from ..webgpu import devices

        name = str(devices()[device.index]["name"])
    mine = np.zeros(256, np.uint8)
    text = np.frombuffer(name.encode()[:256], np.uint8)
    mine[: text.size] = text
    return any((other != mine).any() for other in backend().all_gather(mine))
