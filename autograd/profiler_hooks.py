"""How a profile sees what runs: for its time, the functions that everything goes through are exchanged.

On the host these are state.run, which calls every NumPy function (its thread's alone); the views', which it does not
call; each op's launcher and gradient formula; optimizers' steps. On a GPU it is Queue.encode, which puts recorded
dispatches into a pass: here each gets a pass of its own, between two timestamps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from . import blocks, op, webgpu
from .grad_mode import state
from .ops import reduce
from .profiler_events import CPU, FunctionEvent

_MISSING = object()


class Recording:
    """Events of one profile, from start() to restore(); collect() then adds what the GPUs measured."""

    def __init__(self, shapes: bool):
        self.shapes = shapes
        self.events: list[FunctionEvent] = []
        self.devices: dict[str, str] = {}
        self.notes: list[str] = []
        self._thread = threading.get_ident()
        self._stack: list[FunctionEvent] = []
        self._undo = ExitStack()
        self._watched: list[Any] = []
        self._origin = self._mark = perf_counter_ns()
        self._live, self._cpu = True, False

    # -- events of the host -------------------------------------------------------------------------

    def here(self) -> bool:
        """Whether this is the thread that is recorded, and it still is."""
        return self._live and threading.get_ident() == self._thread

    def now(self) -> float:
        """Microseconds since the profile began."""
        return (perf_counter_ns() - self._origin) / 1e3

    def enter(self, name: str, category: str, shapes: tuple = ()) -> FunctionEvent:
        """Begin an event."""
        event = FunctionEvent(name, category, CPU, self._thread, 0.0, self._stack[-1] if self._stack else None)
        event.input_shapes = shapes
        self._stack.append(event)
        event.start = self.now()
        return event

    def leave(self, event: FunctionEvent) -> None:
        """End it, and what was begun within and not ended; one that has ended already is left as it is."""
        end = self.now()
        if event not in self._stack:
            return
        while True:
            last = self._stack.pop()
            last.end = end
            if last.cpu_parent is not None:
                last.cpu_parent.inner += end - last.start
            self.events.append(last)
            if last is event:
                return

    def mark(self, name: str) -> None:
        """An event from the last mark, or the beginning, until now."""
        now = perf_counter_ns()
        event = FunctionEvent(name, "step", CPU, self._thread, (self._mark - self._origin) / 1e3)
        event.end, self._mark = (now - self._origin) / 1e3, now
        self.events.append(event)

    def clear(self) -> None:
        """Forget what was recorded so far; what is open begins now."""
        self.events.clear()
        for watched in self._watched:
            watched.forget()
        self._mark = perf_counter_ns()
        for event in self._stack:
            event.start, event.inner = self.now(), 0.0

    # -- exchanging functions -----------------------------------------------------------------------

    def start(self, cpu: bool, wgpu: bool, modules: bool) -> None:
        """Exchange the functions."""
        self._cpu = cpu
        if wgpu:
            self._watch_devices()
        if cpu:
            self._swap(state, "run", self._timed_run(state.run))
            for kind in _subclasses(op.Op):
                self._watch_op(kind)
            self._watch_optimizers()
        if modules:
            from .nn import Module

            name: Callable = lambda module, *_: f"nn.Module: {type(module).__name__}"
            self._swap(Module, "__call__", self._timed(Module.__call__, name, "module"))
        self._origin = self._mark = perf_counter_ns()

    def restore(self) -> None:
        """Put every function back, and end what is open."""
        self._live = False
        if self._stack:
            self.leave(self._stack[0])
        self._undo.close()

    def _swap(self, owner: Any, name: str, value: Any) -> None:
        before = vars(owner).get(name, _MISSING)
        self._undo.callback(_put, owner, name, before)
        setattr(owner, name, value)

    def _timed(self, function: Callable, name: Any, category: str, shapes: bool = False) -> Callable:
        """`function`, each call of which is an event; `name` is text, or gives it from the arguments."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if not self.here():
                return function(*args, **kwargs)
            label = name if name.__class__ is str else name(*args)
            if self._stack and self._stack[-1].name == label:  # one that is the other's: fused_backward by backward
                return function(*args, **kwargs)
            event = self.enter(label, category, _shapes(args) if shapes and self.shapes else ())
            try:
                return function(*args, **kwargs)
            finally:
                self.leave(event)

        return timed

    def _timed_run(self, plain: Callable) -> Callable:
        """state.run, with an event for the NumPy function that it calls."""
        names: dict[Any, str] = {reduce._add_all: "sum", np.add: "add"}
        for kind in _subclasses(op.Op):
            if "numpy" in vars(kind):
                names.setdefault(kind.numpy, kind.name or kind.__name__.strip("_"))  # type: ignore[attr-defined]

        def run(function: Callable, *args: Any, **attrs: Any) -> Any:
            if not self._live:
                return plain(function, *args, **attrs)
            inner = args[0] if function is blocks.mapped or function is blocks.blocked else function
            event = self.enter(names.get(inner) or _called(inner, args), "cpu_op", _shapes(args) if self.shapes else ())
            try:
                return plain(function, *args, **attrs)
            finally:
                self.leave(event)

        return run

    def _watch_op(self, kind: type) -> None:
        own = vars(kind)
        if own.get("view") and "numpy" in own:
            self._swap(kind, "numpy", staticmethod(self._timed(kind.numpy, kind.name, "cpu_op", True)))  # type: ignore[attr-defined]
        if own.get("wgpu") is not None:
            self._swap(kind, "wgpu", staticmethod(self._timed(kind.wgpu, kind.name, "cpu_op", True)))  # type: ignore[attr-defined]
        name: Callable = lambda node, *_: f"{node.op.__name__}Backward"
        for rule in ("backward", "fused_backward"):
            if rule in own:
                self._swap(kind, rule, staticmethod(self._timed(getattr(kind, rule), name, "backward")))

    def _watch_optimizers(self) -> None:
        from .optim import Optimizer

        for kind in (Optimizer, *_subclasses(Optimizer)):
            for method in ("step", "zero_grad"):
                if method in vars(kind):
                    name = partial(_method_name, method)
                    self._swap(kind, method, self._timed(vars(kind)[method], name, "optimizer"))

    # -- GPUs ---------------------------------------------------------------------------------------

    def _watch_devices(self) -> None:
        """Time the kernels of every open device, and of those that will be opened."""
        with webgpu._lock:
            opened = webgpu._opened
            webgpu._opened = _Opened(opened, self._watch_device)
            self._undo.callback(_put_devices, opened)
        for index, gpu in list(opened.items()):
            self._watch_device(index, gpu)

    def _watch_device(self, index: int, gpu: Any) -> None:
        if not self._live:
            return
        device = f"wgpu:{index}"
        self.devices[device] = gpu.name
        if self._cpu:
            self._swap(gpu.queue, "read", self._timed(gpu.queue.read, "wait for wgpu and read", "cpu_op"))
        if "timestamp-query" not in gpu.wgpu_device.features:
            self.notes.append(f"{device} ({gpu.name}) has no timestamp-query: its kernels are not timed. CPU times of its "
                              "operations are the host's, to queue them")  # fmt: skip
            return
        from .webgpu.timestamps import Watched

        gpu.queue.flush()  # what was asked for before is not of this profile
        watched = Watched(gpu, device)
        self._watched.append(watched)
        self._swap(gpu.queue, "encode", watched.encode)

    def flush(self) -> None:
        """Send off what still waits for a GPU, while it is timed."""
        self._live = False  # the host's part is over
        for watched in self._watched:
            try:
                watched.gpu.flush()
            except webgpu.DeviceLostError:  # collect() says so
                pass

    def collect(self) -> None:
        """Wait for the GPUs, and take their kernels' times."""
        for watched in self._watched:
            try:
                times = watched.times()
            except webgpu.DeviceLostError:
                self.notes.append(f"{watched.device} was lost, and with it the times of its kernels")
                continue
            for name, start, end in times:
                event = FunctionEvent(f"wgpu::{name}", "kernel", watched.device, 0, (start - self._origin) / 1e3)
                event.end = (end - self._origin) / 1e3
                self.events.append(event)


class _Opened(dict):
    """The open devices: tells of one that is entered."""

    def __init__(self, devices: dict, entered: Callable):
        super().__init__(devices)
        self.entered = entered

    def __setitem__(self, index: int, gpu: Any) -> None:
        super().__setitem__(index, gpu)
        self.entered(index, gpu)


def _put_devices(plain: dict) -> None:
    with webgpu._lock:
        now = dict(webgpu._opened)
        plain.clear()
        plain.update(now)
        webgpu._opened = plain


def _put(owner: Any, name: str, before: Any) -> None:
    if before is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def _subclasses(kind: type) -> list[type]:
    """All classes below, each once."""
    found: dict[type, None] = {}
    waiting = kind.__subclasses__()
    while waiting:
        below = waiting.pop()
        if below not in found:
            found[below] = None
            waiting += below.__subclasses__()
    return list(found)


def _shapes(args: tuple) -> tuple:
    return tuple([tuple(a.shape) for a in args if hasattr(a, "shape")])


def _called(function: Any, args: tuple) -> str:
    """A name for a function that is no op's: of a helper of an op, or of an optimizer."""
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None) or ""
    if module == "autograd.threads" and args:  # split: it is given the function
        return _called(args[0], ())
    if module.startswith("autograd.optim"):
        return "update"
    return getattr(function, "__name__", type(function).__name__).strip("_")


def _method_name(method: str, optimizer: Any, *_: Any) -> str:
    return f"Optimizer.{method}#{type(optimizer).__name__}.{method}"
