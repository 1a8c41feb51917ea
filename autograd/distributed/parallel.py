"""DataParallel: a replica of one module on every rank, whose gradients are averaged over the ranks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..grad_mode import no_grad
from ..nn.module import Module
from ..tensor import Tensor
from .backend import agree, backend
from .buckets import BYTES, Averager, Bucket, make_buckets
from .collective import broadcast


class DataParallel(Module):
    """The module, the same on every rank:

        model = distributed.DataParallel(Net())
        with model.sync(samples=len(x)):
            loss_fn(model(x), y).backward()
        optimizer.step()

    At the start rank 0's parameters and buffers are given to all. sync() averages gradients; a backward outside of it adds
    to the rank's own .grad alone, and the next sync() averages what has added up.
    bucket_bytes: gradients travel in pieces of about this size, while backward goes on. compress: "float16" halves them.
    state_dict() and load_state_dict() are the module's own, without a prefix; the module is `.module`.

    Buffers, such as the running statistics of BatchNorm, stay each rank's own: broadcast_buffers() gives rank 0's to all,
    before the model is evaluated or saved. SyncBatchNorm has the same statistics everywhere.
    ValueError where ranks have modules of different names, shapes or dtypes, other buckets or another compression.
    """

    def __init__(self, module: Module, *, bucket_bytes: int = BYTES, compress: str | None = None):
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"[DataParallel] expected a Module; got {type(module).__name__}")
        if bucket_bytes < 1:
            raise ValueError(f"[DataParallel] bucket_bytes is a positive number; got {bucket_bytes}")
        self.module = module
        self._compress = None
        if compress is not None:
            from .compression import compressor

            self._compress = compressor(compress)
        self._trained = list(Module.parameters(module))
        self._buckets = make_buckets(self._trained, bucket_bytes)
        _check_same(module, self._buckets, compress)
        self.broadcast()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's."""
        return self.module(*args, **kwargs)

    def sync(self, samples: int = 1, total: int | None = None) -> AbstractContextManager:
        """Around backward(): on the way out every .grad is sum(n_r g_r) / sum(n_r) over all ranks r, the same bits on each.

        samples: n_r, how many samples the loss of this rank is the mean of. With 0 the rank's gradients count as zeros,
        and it need not run backward. total: sum(n_r), the same on all ranks, saves asking for it.
        A parameter that a rank does not use counts as zeros there; one that no rank uses has no .grad.
        ValueError for numbers below 0, or no samples at all.
        """
        if samples < 0 or (total is not None and not 0 < total >= samples):
            raise ValueError(f"[sync] samples are 0 or more, total is their sum over all ranks; got {samples} and {total}")
        now = list(Module.parameters(self.module))
        if len(now) != len(self._trained) or any(a is not b for a, b in zip(now, self._trained)):
            raise RuntimeError("[sync] the module has other parameters than when DataParallel was made; make it anew")
        if backend().size == 1 and samples and total in (None, samples):
            return nullcontext()
        overlap = not any(getattr(m, "communicates", False) for m in self.module.modules())
        return Averager(self._buckets, samples, total, self._compress, overlap)

    @no_grad()
    def broadcast(self, src: int = 0) -> None:
        """Give rank src's parameters and buffers to all."""
        for t in (*Module.parameters(self.module), *self.module.buffers()):
            broadcast(t, src)

    @no_grad()
    def broadcast_buffers(self, src: int = 0) -> None:
        """Give rank src's buffers to all."""
        for t in self.module.buffers():
            broadcast(t, src)

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """The module's own."""
        return self.module.state_dict(prefix=prefix, keep_vars=keep_vars)

    def load_state_dict(self, state_dict: dict, strict: bool = True) -> Any:
        """The module's own: the same on every rank, or broadcast() follows."""
        return self.module.load_state_dict(state_dict, strict)


def _check_same(module: Module, buckets: Sequence[Bucket], compress: str | None) -> None:
    entries = [*module.named_parameters(), *module.named_buffers()]
    rows = [f"{name} {t.shape} {t.dtype.name}" for name, t in entries]
    rows += [f"bucket {i} {b.flat.shape} {b.kind}, compress={compress!r}" for i, b in enumerate(buckets)]
    agree(backend(), "[DataParallel] all ranks have modules of the same names, shapes and dtypes", rows)


def weights_digest(module: Module) -> np.ndarray:
    """A hash of all parameters' bits."""
    total = hashlib.sha256()
    for p in Module.parameters(module):
        total.update(np.ascontiguousarray(p._host()).tobytes())
    return np.frombuffer(total.digest(), np.uint8).copy()
