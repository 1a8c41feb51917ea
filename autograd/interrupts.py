"""Ctrl-C when it does no harm: an optimizer's step, or a batch for the GPU, is done or not begun, never half done."""

from __future__ import annotations

# signal's own signal() and getsignal() turn numbers into enums and back, which costs six times what they do.
import _signal
import threading
from typing import Any

_SIGINT, _install = _signal.SIGINT, _signal.signal
_here = threading.get_ident


class _Held:
    """`with held:` what Ctrl-C does, a KeyboardInterrupt usually, happens when the outermost such block ends.

    A second Ctrl-C does not wait. Python handles signals in the main thread alone, so elsewhere this is nothing; and where
    SIGINT has no handler in Python (ignored, or ending the process), it stays as it is.
    """

    __slots__ = ("before", "came", "depth", "note")

    def __init__(self) -> None:
        self.before: Any = None
        self.came = False
        self.depth = 0  # of the main thread, which alone writes it
        self.note = self._note

    def _note(self, number: int, frame: Any) -> None:
        """The handler meanwhile."""
        if self.came and callable(self.before):
            self.came = False
            self.before(number, frame)
        self.came = True

    def __enter__(self) -> None:
        if not self.depth:
            self.came = False
            try:
                self.before = before = _install(_SIGINT, self.note)
            except ValueError:  # not the main thread
                return
            if not callable(before):
                _install(_SIGINT, before)
        elif _here() != threading.main_thread().ident:
            return
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        if not self.depth or (_here() != threading.main_thread().ident):
            return
        self.depth -= 1
        if not self.depth and callable(self.before):
            before, self.before = self.before, None
            _install(_SIGINT, before)
            if self.came:
                before(_SIGINT, None)


held = _Held()
