"""Ops that run on the host on purpose: download, compute, upload, and count it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OnHost:
    """A launcher that computes with NumPy; every call counts in stats()["host_ops"]."""

    def __init__(self, name: str, function: Callable):
        self.name, self.function = name, function

    def __call__(self, x: Any, **attrs: Any) -> Any:
        gpu = x.gpu
        gpu.counters["host_ops"] += 1
        return gpu.upload(self.function(gpu.download(x), **attrs))
