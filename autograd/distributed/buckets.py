"""Gradients in buckets: flat arrays that are averaged over the ranks while backward still runs.

A bucket is g of each of its parameters one after the other, then for each parameter whether there is a gradient at all,
then whether this rank has more to come. It is multiplied by the rank's weight and sent off when it is full and all buckets
before it were: so the order is the same on all ranks, whatever backward's was. The last bucket waits for the end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import dtypes
from ..aliasing import write
from ..create import place
from ..grad_mode import no_grad
from ..hooks import Arrivals
from ..ops.views import cat
from ..tensor import Tensor
from .backend import Request, backend

BYTES = 1 << 20  # of a bucket: one slot of the process backend


class _Here(threading.local):
    """Of the sync() that this thread is in: how many samples this rank has."""

    samples: int = 1


here = _Here()


class Bucket:
    """Some parameters of one dtype and device, and the array that their gradients travel in."""

    def __init__(self, parameters: Sequence[Tensor]):
        self.parameters = tuple(parameters)
        first = self.parameters[0]
        self.on_host = first.array.__class__ is np.ndarray
        self.kind = np.dtype(np.float32) if first.dtype in dtypes.SHORT else first.dtype.numpy
        ends = np.cumsum([0, *(p.numel() for p in self.parameters)]).tolist()
        self.count = ends[-1]
        self.spans = [slice(a, b) for a, b in pairwise(ends)]
        self.flat = np.empty(self.count + len(self.parameters) + 1, self.kind)
        self.begin()

    def begin(self) -> None:
        """Empty."""
        self.flat.fill(0)
        self.missing = len(self.parameters)
        self.settled = [False] * self.missing
        self.request: Request | None = None

    def put(self, i: int, g: np.ndarray) -> None:
        """Add a gradient of parameter i."""
        part = self.flat[self.spans[i]].reshape(g.shape)
        np.add(part, dtypes.converted(g, self.kind, copy=False), out=part)
        self.flat[self.count + i] = 1

    def settle(self, i: int) -> None:
        """Parameter i has put what it has: put_rest() leaves it out."""
        self.missing -= not self.settled[i]
        self.settled[i] = True

    def put_rest(self) -> None:
        """The .grad of every parameter that is not settled; a GPU's are joined there, and read at once."""
        rest = [i for i, p in enumerate(self.parameters) if not self.settled[i] and p.grad is not None]
        grads = [self.parameters[i].grad for i in rest]
        if self.on_host:
            for i, g in zip(rest, grads):
                self.put(i, g.array)  # type: ignore[union-attr]
        elif rest:
            with no_grad():
                joined = cat([g.detach().reshape(-1) for g in grads])._host()  # type: ignore[union-attr]
            start = 0
            for i in rest:
                count = self.parameters[i].numel()
                self.put(i, joined[start : start + count].reshape(self.parameters[i].shape))
                start += count

    def send(self, weight: float, compress: Any, more: bool = False, wait: bool = False) -> None:
        """Start to add it up over the ranks, with this rank's weight. wait: for it too, where nothing is left to do."""
        self.flat[: self.count] *= weight
        self.flat[-1] = more
        if compress is not None:
            self.request = compress.start(backend(), self.flat, self.count)
        elif wait:  # in this thread: two changes of threads less
            backend().all_reduce(self.flat)
            self.request = Request()
        else:
            self.request = backend().start_all_reduce(self.flat)

    def receive(self) -> np.ndarray:
        """The sum, once it is there."""
        self.request.wait()  # type: ignore[union-attr]
        return self.flat

    def store(self, total: np.ndarray) -> None:
        """Make the sum the .grad of the parameters; None where no rank has one."""
        if not self.on_host:
            device = self.parameters[0].device
            whole: Any = place(dtypes.converted(total[: self.count], self.parameters[0].dtype.numpy, copy=False), device)
        for i, p in enumerate(self.parameters):
            if not total[self.count + i]:
                p.grad = None
                continue
            if self.on_host:
                value: Any = dtypes.converted(total[self.spans[i]], p.dtype.numpy, copy=False).reshape(p.shape)
            else:
                value = whole[self.spans[i]].reshape(p.shape).array
            if p.grad is None:
                p.grad = p.detach().zeros_like()
            write(p.grad, value, "sync")


class Averager:
    """One round of averaging, `with Averager(...): loss.backward()`: every .grad becomes sum(n_r g_r) / sum(n_r).

    samples: this rank's n_r; a rank with none counts as zeros, whatever its gradients are. total: sum(n_r), if known.
    overlap: False sends nothing before the end, for backwards that communicate themselves: all ranks keep one order.
    """

    def __init__(self, buckets: Sequence[Bucket], samples: int, total: int | None, compress: Any, overlap: bool = True):
        self.buckets, self.samples, self.compress = buckets, samples, compress
        self.late: dict[Tensor, Any] = {}  # gradients that came after their bucket had put one
        self.place = {p: (b, i) for b in buckets for i, p in enumerate(b.parameters)}
        self.next = 0
        self._weight: float | None = None if total is None else samples / total
        self._counted: Request | None = None
        # A GPU's gradients are read at the end: reading one waits for all that backward has queued.
        early = [p for b in buckets if b.on_host for p in b.parameters] if samples and overlap else []
        self._arrivals = Arrivals(early, self._arrived)

    def __enter__(self) -> None:
        for bucket in self.buckets:
            bucket.begin()
        if self._weight is None:
            self._count = np.array([float(self.samples)])
            self._counted = backend().start_all_reduce(self._count)
        self._before, here.samples = here.samples, self.samples
        self._arrivals.__enter__()

    def __exit__(self, kind: Any, *_: object) -> None:
        self._arrivals.__exit__()
        here.samples = self._before
        if kind is None:
            with no_grad():
                self._end()

    @property
    def weight(self) -> float:
        """This rank's share of the samples."""
        if self._weight is None:
            self._counted.wait()  # type: ignore[union-attr]
            if not self._count[0]:
                raise ValueError("[sync] no rank has samples; got samples=0 on all")
            self._weight = self.samples / float(self._count[0])
        return self._weight

    def _arrived(self, p: Tensor, g: Tensor | None) -> None:
        """A gradient is complete, while backward runs."""
        bucket, i = self.place[p]
        if bucket.request is not None:  # it is on its way, with the gradient of an earlier backward
            if g is not None:
                self.late[p] = g.copied() if p not in self.late else self.late[p] + g
            return
        if p.grad is not None and not bucket.settled[i]:
            bucket.put(i, p.grad.array)
        if g is not None:
            bucket.put(i, g.array)
        bucket.settle(i)
        while self.next < len(self.buckets) - 1 and not self.buckets[self.next].missing:
            self.buckets[self.next].send(self.weight, self.compress)
            self.next += 1

    def _end(self) -> None:
        """Send the rest, and store the sums; a second time around when any rank has late gradients."""
        weight = self.weight
        for bucket in self.buckets[self.next :]:
            if self.samples:
                bucket.put_rest()
            bucket.send(weight, self.compress, bool(self.late), bucket is self.buckets[-1])
        totals = [bucket.receive() for bucket in self.buckets]
        if totals and totals[-1][-1]:
            for bucket in self.buckets:
                bucket.flat = np.empty_like(bucket.flat)  # the totals have the old
                bucket.begin()
                for i, p in enumerate(bucket.parameters):
                    if p in self.late:
                        bucket.put(i, self.late[p].array)
                bucket.send(weight, self.compress)
            for total, bucket in zip(totals, self.buckets):
                total += bucket.receive()
        for total, bucket in zip(totals, self.buckets):
            bucket.store(total)


def make_buckets(parameters: Sequence[Tensor], size: int = BYTES) -> list[Bucket]:
    """Buckets of about `size` bytes, the last parameters first: theirs are the gradients that backward begins with."""
    groups: list[list[Tensor]] = []
    bytes_ = 0
    for p in reversed(parameters):
        same = groups and (groups[-1][0].dtype, groups[-1][0].device) == (p.dtype, p.device)
        if not same or bytes_ + p.nbytes > size:
            groups.append([])
            bytes_ = 0
        groups[-1].append(p)
        bytes_ += p.nbytes
    return [Bucket(g) for g in groups]
