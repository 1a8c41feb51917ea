"""Ops that run on the host on purpose: download, compute, upload, and count it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import LinAlgError


class OnHost:
    """A launcher that computes with NumPy; every call counts in stats()["host_ops"]."""

    def __init__(self, name: str, function: Callable):
        self.name, self.function = name, function

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        gpu = inputs[0].gpu
        gpu.counters["host_ops"] += 1
        try:
            out = self.function(*[gpu.download(x) for x in inputs], **attrs)
        except ValueError as error:  # in the op's name, as on the CPU
            kind = LinAlgError if isinstance(error, np.linalg.LinAlgError) else ValueError
            raise kind(f"[{self.name}] {error}; got {' and '.join(f'{x.shape} {x.dtype}' for x in inputs)}") from None
        return tuple([gpu.upload(y) for y in out]) if isinstance(out, tuple) else gpu.upload(out)
