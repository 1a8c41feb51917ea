"""Keras' progress display: n/N, a bar, the time, and the metrics so far. Written to standard output."""

from __future__ import annotations

import sys
import time
from typing import Any

_WIDTH = 20


class Progbar:
    """A line that is rewritten. target: how many steps there will be (None: not known). verbose: 1 the bar, 2 one last line.

    Where output is not a terminal, the bar is written once, at the end, and without colours.
    """

    def __init__(self, target: int | None, verbose: int = 1, interval: float = 0.05, unit_name: str = "step", stream: Any = None):
        self.target, self.verbose, self.interval, self.unit_name = target, verbose, interval, unit_name
        self.stream = stream or sys.stdout
        self.live = bool(getattr(self.stream, "isatty", lambda: False)())
        self._start = self._first = time.perf_counter()
        self._last = 0.0
        self._width = 0

    def due(self) -> bool:
        """Whether it is time to show something again."""
        return self.verbose == 1 and self.live and time.perf_counter() - self._last >= self.interval

    def update(self, current: int, values: dict[str, float] | None = None, finalize: bool = False) -> None:
        """Show the state after `current` steps. finalize: the last one."""
        now = time.perf_counter()
        if current == 1:
            self._first = now  # the first step compiles and builds: it says little about the next
        if (not finalize and not self.due()) or self.verbose not in (1, 2):
            return
        each = (now - self._start) / max(current, 1)
        if current > 1 and self._first > self._start:
            each = (now - self._first) / (current - 1)
        shown = "".join(f" - {k}: {_number(v)}" for k, v in (values or {}).items())
        count = f"{current:{len(str(self.target))}d}/{self.target}" if self.target else f"{current:7d}/Unknown"
        if self.verbose == 1:
            bar = self._bar(current)
            left = _clock(each * (self.target - current)) if self.target and not finalize else f"{now - self._start:.0f}s"
            line = f"{count}{bar} {left} {_each(each)}/{self.unit_name}{shown}"
        else:
            line = f"{count} - {now - self._start:.0f}s - {_each(each)}/{self.unit_name}{shown}"
        pad = " " * max(0, self._width - len(line)) if self.live and self.verbose == 1 else ""
        start = "\r" if self.live and self.verbose == 1 else ""
        self.stream.write(f"{start}{line}{pad}" + ("\n" if finalize else ""))
        self.stream.flush()
        self._last, self._width = now, len(line)

    def _bar(self, current: int) -> str:
        if not self.target:
            return ""
        done = min(_WIDTH, int(_WIDTH * current / self.target))
        if not self.live:
            return " " + "━" * _WIDTH
        return f" \x1b[32m{'━' * done}\x1b[0m\x1b[37m{'━' * (_WIDTH - done)}\x1b[0m"


def _number(value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return f"{number:.4f}" if abs(number) > 1e-3 or number == 0 or number != number else f"{number:.4e}"


def _each(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


def _clock(seconds: float) -> str:
    s = int(seconds)
    if s > 3600:
        return f"{s // 3600}:{s % 3600 // 60:02d}:{s % 60:02d}"
    return f"{s // 60}:{s % 60:02d}" if s > 60 else f"{s}s"
