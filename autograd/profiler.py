"""ag.profiler: what a program's time goes to, on both devices.

    with ag.profiler.profile() as prof:
        loss = model(x).sum()
        loss.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    prof.export_chrome_trace("trace.json")

While a profile runs, the functions that everything goes through are exchanged for ones that look at the clock: see
profiler_hooks.py. When none does, nothing of this is in the way.
"""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from . import profiler_events
from .profiler_events import EventList, FunctionEvent
from .profiler_hooks import Recording

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule"]

_running: Recording | None = None
_lock = threading.Lock()


class ProfilerActivity(enum.Enum):
    """What is timed: the host's work, a GPU's kernels."""

    CPU = "cpu"
    WGPU = "wgpu"


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Callable[[int], ProfilerAction]:
    """For profile(schedule=...): after skip_first steps, again and again `wait` steps without recording, `warmup` recorded
    and thrown away, `active` recorded. repeat: so many rounds; 0 goes on. ValueError for negative numbers, or active=0.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(f"[schedule] wait, warmup, repeat and skip_first are not negative, active is positive; got {wait}, "
                         f"{warmup}, {repeat}, {skip_first}, {active}")  # fmt: skip
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step >= repeat * length):
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class record_function:
    """`with record_function("name"):`, or as a decorator: a range of its own name in the profile, if one is running."""

    def __init__(self, name: str):
        self.name = name
        self._open: list[tuple[Recording, FunctionEvent] | None] = []

    def __enter__(self) -> record_function:
        recording = _running
        mine = recording is not None and recording.here()
        self._open.append((recording, recording.enter(self.name, "user_annotation")) if recording and mine else None)
        return self

    def __exit__(self, *_: object) -> None:
        if opened := self._open.pop():
            opened[0].leave(opened[1])

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return inside


class profile:
    """A context that times operations, forward and backward, of the thread that enters it, and GPU kernels of all threads.

    activities: of ProfilerActivity; default both, as far as there is a GPU open or opened meanwhile. A CPU row is an
    operation's NumPy function, or on wgpu the host's time to queue it; a row `TanhBackward` is a gradient formula and holds
    the operations it is made of; `Optimizer.step#AdamW.step` is a step. Rows `wgpu::tanh` are kernels, one a dispatch,
    timed by the adapter's timestamps where it has them; a note says so where not. Each kernel then is a pass of its own,
    which takes the GPU a little longer than without a profile. Elementwise operations on wgpu wait and become one kernel.
    record_shapes: keep the shapes of inputs. with_modules: a range for each call of an nn.Module.
    schedule: which steps are recorded, as schedule() gives it; then call step() after each. on_trace_ready(profile) is
    called when steps to be saved are complete, and at the end.
    RuntimeError inside another profile; ValueError for no or unknown activities.
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[[profile], Any] | None = None,
                 record_shapes: bool = False, with_modules: bool = False):  # fmt: skip
        chosen = set(ProfilerActivity) if activities is None else set(activities)
        if not chosen or not chosen <= set(ProfilerActivity):
            raise ValueError(f"[profile] activities are some of ProfilerActivity.CPU and .WGPU; got {activities!r}")
        self.record_shapes, self.with_modules = bool(record_shapes), bool(with_modules)
        self.activities, self.on_trace_ready, self.step_num = chosen, on_trace_ready, 0
        self._schedule = schedule
        self._recording: Recording | None = None
        self._events: list[FunctionEvent] = []
        self._devices: dict[str, str] = {}
        self._notes: list[str] = []
        self._action = ProfilerAction.NONE

    def __enter__(self) -> profile:
        self._action = ProfilerAction.RECORD_AND_SAVE if self._schedule is None else self._schedule(0)
        self.step_num = 0
        if self._action is not ProfilerAction.NONE:
            self._start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        recorded = self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if self._recording is not None:
            self._stop()
        self._action = ProfilerAction.NONE
        if recorded and error is None and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """The end of a step, which is a range ProfilerStep#n in the trace; a schedule decides about the next."""
        if self._recording is not None:
            self._recording.mark(f"ProfilerStep#{self.step_num}")
        self.step_num += 1
        if self._schedule is None:
            return
        before, self._action = self._action, self._schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (self._action is ProfilerAction.NONE and self._recording is not None):
            self._stop()
            if before is ProfilerAction.RECORD_AND_SAVE and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if self._action is not ProfilerAction.NONE:
            if self._recording is None:
                self._start()
            elif before is ProfilerAction.WARMUP and self._action is not ProfilerAction.WARMUP:
                self._recording.clear()

    def _start(self) -> None:
        global _running
        with _lock:
            if _running is not None:
                raise RuntimeError("[profile] another profile is running: one at a time")
            _running = recording = Recording(self.record_shapes)
        try:
            recording.start(ProfilerActivity.CPU in self.activities, ProfilerActivity.WGPU in self.activities, self.with_modules)
        except BaseException:
            recording.restore()
            _running = None
            raise
        self._recording = recording

    def _stop(self) -> None:
        global _running
        recording, self._recording = self._recording, None
        assert recording is not None
        try:
            recording.flush()
        finally:
            recording.restore()
            _running = None
        recording.collect()
        self._events, self._devices, self._notes = recording.events, recording.devices, recording.notes

    def events(self) -> list[FunctionEvent]:
        """Everything recorded, by its start. RuntimeError while recording goes on."""
        if self._recording is not None:
            raise RuntimeError("[profile] it is still recording: ask when the `with` has ended, or in on_trace_ready")
        return sorted(self._events, key=lambda e: e.start)

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The events together by name, and by input shapes too. ValueError for shapes that were not recorded."""
        if group_by_input_shape and not self.record_shapes:
            raise ValueError("[key_averages] group_by_input_shape needs profile(record_shapes=True)")
        return profiler_events.averages(self.events(), self._notes, group_by_input_shape)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events for chrome://tracing or ui.perfetto.dev; compressed where path ends in .gz. Failing, it leaves
        what was at `path`.
        """
        profiler_events.write_json(profiler_events.trace(self.events(), self._devices), path)
