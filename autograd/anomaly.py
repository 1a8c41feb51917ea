"""Anomaly mode: name the operation whose gradient first became NaN, and the line that called it.

Nothing here runs while the mode is off. While it is on, the number that every node gets carries the calling lines:
they live exactly as long as the node, and the tape needs no place for them.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from types import TracebackType
from typing import Any

from .grad_mode import no_grad

tape: Any = importlib.import_module(".tape", __package__)  # ag.tape is a function
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_plain_seq = tape.next_seq


class _TracedSeq(int):
    """A node's number, with the lines outside the engine that led to it, innermost first."""

    lines: tuple[tuple[str, int, str], ...]


def _traced_seq() -> int:
    seq = _TracedSeq(_plain_seq())
    lines = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_HERE):
            lines.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    seq.lines = tuple(lines)
    return seq


def _watch(node: Any, grads: Any) -> None:
    """RuntimeError when one of the gradients that a node computed holds a NaN."""
    for i, g in enumerate(grads if isinstance(grads, tuple) else (grads,)):
        if g is None or not g.dtype.is_floating_point:
            continue
        with no_grad():
            found = bool(g.detach().isnan().any())
        if found:
            raise RuntimeError(f"[{node.op.name}] the gradient of its input {i} has NaN values, shape {g.shape}. {_told(node)}")


def _told(node: Any) -> str:
    lines = getattr(node.seq, "lines", None)
    if not lines:
        return "Run the forward pass in anomaly mode too, to see where it was called."
    name, number, function = lines[0]
    source = linecache.getline(name, number).strip()
    callers = "".join(f"\n  from {n}:{k} in {f}" for n, k, f in lines[1:8])
    return f"It was called at {name}:{number} in {function}: {source}{callers}"


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return tape.next_seq is _traced_seq


def _set(mode: bool, check_nan: bool) -> None:
    tape.next_seq = _traced_seq if mode else _plain_seq
    tape.watch = _watch if mode and check_nan else None


class set_detect_anomaly:
    """Switch anomaly mode for the whole program, at once; as a context manager, back again on the way out.

    In this mode a gradient that holds a NaN raises RuntimeError where it was computed (unless check_nan=False), with
    the op's name and the line of the forward pass that called it. Everything is slower: for finding faults only.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = is_anomaly_enabled(), tape.watch is not None
        _set(bool(mode), check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _set(*self._before)


class detect_anomaly:
    """`with ag.detect_anomaly():` anomaly mode inside; see set_detect_anomaly."""

    def __init__(self, check_nan: bool = True):
        self._check_nan = check_nan
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((is_anomaly_enabled(), tape.watch is not None))
        _set(True, self._check_nan)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _set(*self._before.pop())
