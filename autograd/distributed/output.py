"""What one rank does for all: it writes files, and shows how far the training is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import checkpoint
from .backend import backend


def save(obj: Any, path: str | os.PathLike) -> None:
    """ag.save of rank 0's obj. Every rank calls it, and goes on once the file is written.

    What rank 0 raises is raised there, and on the others a RuntimeError with its text.
    """
    group, error, text = backend(), None, b""
    if group.rank == 0:
        try:
            checkpoint.save(obj, path)
        except Exception as raised:
            error, text = raised, f"{type(raised).__name__}: {raised}".encode()
    size = np.array([len(text)], np.int64)
    group.broadcast(size, 0)
    if not size[0]:
        return
    told = np.frombuffer(text, np.uint8).copy() if group.rank == 0 else np.empty(int(size[0]), np.uint8)
    group.broadcast(told, 0)
    if error is not None:
        raise error
    raise RuntimeError(f"[distributed.save] rank 0 could not save: {told.tobytes().decode()}")


def progress(iterable: Iterable | None = None, **options: Any) -> Any:
    """tqdm(iterable, **options) that shows itself on rank 0 alone. ImportError without tqdm."""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise ImportError("[progress] needs tqdm: pip install 'autograd-wgpu[examples]'") from error
    return tqdm(iterable, **{**options, "disable": backend().rank != 0 or options.get("disable", False)})
