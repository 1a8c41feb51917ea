"""What a profile found: events, their averages by name, the table, the Chrome trace."""

from __future__ import annotations

import gzip
import json
import os
import secrets
from collections.abc import Callable, Iterable
from typing import Any

CPU, WGPU = "cpu", "wgpu"
_TOTALS = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
_COLUMNS = (*_TOTALS, "cpu_time", "device_time", "count")
_SAME = {"wgpu_time": "device_time", "wgpu_time_total": "device_time_total", "self_wgpu_time_total": "self_device_time_total"}


class FunctionEvent:
    """One call of an operation, one range, or one kernel on a GPU.

    name; category: "cpu_op", "backward", "user_annotation", "module", "optimizer", "step" or "kernel"; device_type: "cpu" or
    "wgpu", and device, e.g. "wgpu:0"; thread; start and end in microseconds since the profile began; input_shapes where
    record_shapes asked for them; cpu_parent: the event it ran within.
    """

    __slots__ = ("category", "cpu_parent", "device", "end", "inner", "input_shapes", "name", "start", "thread")

    def __init__(self, name: str, category: str, device: str, thread: int, start: float, parent: FunctionEvent | None = None):
        self.name, self.category, self.device, self.thread = name, category, device, thread
        self.start, self.end, self.inner = start, start, 0.0
        self.cpu_parent = parent
        self.input_shapes: tuple = ()

    @property
    def device_type(self) -> str:
        """ "cpu" or "wgpu"."""
        return self.device.partition(":")[0]

    @property
    def cpu_time_total(self) -> float:
        """Microseconds on the host, with what ran within; 0 for a kernel."""
        return self.end - self.start if self.device == CPU else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the host, without what ran within and was recorded itself."""
        return self.end - self.start - self.inner if self.device == CPU else 0.0

    @property
    def device_time_total(self) -> float:
        """Microseconds on the GPU; 0 for what ran on the host."""
        return 0.0 if self.device == CPU else self.end - self.start

    self_device_time_total = device_time_total

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} on {self.device}: {self.end - self.start:.3f} us>"


class FunctionEventAvg:
    """All events of one name (and, where grouped so, one set of input shapes): count, totals and averages, in microseconds."""

    def __init__(self, key: str, device_type: str, input_shapes: tuple):
        self.key, self.device_type, self.input_shapes = key, device_type, input_shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0

    def add(self, event: FunctionEvent) -> None:
        """Count one more event."""
        self.count += 1
        for name in _TOTALS:
            setattr(self, name, getattr(self, name) + getattr(event, name))

    @property
    def cpu_time(self) -> float:
        """The average time on the host."""
        return self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The average time on the GPU."""
        return self.device_time_total / self.count

    def __repr__(self) -> str:
        times = f"cpu {self.cpu_time_total:.1f} us, wgpu {self.device_time_total:.1f} us"
        return f"<FunctionEventAvg {self.key}: {self.count} calls, {times}>"


class EventList(list):
    """Averages of events, in the order in which their names first came; `notes` go below the table."""

    def __init__(self, rows: Iterable[FunctionEventAvg], notes: Iterable[str] = (), shapes: bool = False):
        super().__init__(rows)
        self.notes, self.shapes = tuple(notes), shapes

    @property
    def self_cpu_time_total(self) -> float:
        """The self times of all rows together, on the host."""
        return sum(row.self_cpu_time_total for row in self)

    @property
    def self_device_time_total(self) -> float:
        """The same on the GPU."""
        return sum(row.self_device_time_total for row in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int | None = 55) -> str:
        """The table as text: the largest first by sort_by ("self_cpu_time_total", "wgpu_time_total", "count", ...).

        row_limit: show so many rows (-1: all); the sums below count them all. ValueError for an unknown column.
        """
        known = (*_COLUMNS, *_SAME)
        if sort_by is not None and sort_by not in known:
            raise ValueError(f"[table] sort_by is one of {', '.join(known)}; got {sort_by!r}")
        column = None if sort_by is None else _SAME.get(sort_by, sort_by)
        rows = list(self) if column is None else sorted(self, key=lambda row: getattr(row, column), reverse=True)
        if not rows:
            return "nothing was recorded"
        gpu = any(row.device_type == WGPU for row in self)
        shown = rows if row_limit < 0 else rows[:row_limit]
        body = [self._cells(row, gpu, max_name_column_width) for row in shown]
        ends = [f"Self CPU time total: {duration(self.self_cpu_time_total)}"]
        if gpu:
            ends.append(f"Self wgpu time total: {duration(self.self_device_time_total)}")
        return aligned([self._heads(gpu), *body], [*ends, *self.notes])

    def _heads(self, gpu: bool) -> list[str]:
        heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        heads += ["Self wgpu", "Self wgpu %", "wgpu total", "wgpu time avg"] if gpu else []
        return [*heads, "# of Calls", *(["Input Shapes"] if self.shapes else [])]

    def _cells(self, row: FunctionEventAvg, gpu: bool, width: int | None) -> list[str]:
        cpu, device = self.self_cpu_time_total, self.self_device_time_total
        name = row.key if width is None or len(row.key) <= width else row.key[: max(0, width - 3)] + "..."
        cells = [name, share(row.self_cpu_time_total, cpu), duration(row.self_cpu_time_total), share(row.cpu_time_total, cpu)]
        cells += [duration(row.cpu_time_total), duration(row.cpu_time)]
        if gpu:
            cells += [duration(row.self_device_time_total), share(row.self_device_time_total, device)]
            cells += [duration(row.device_time_total), duration(row.device_time)]
        return [*cells, str(row.count), *([str([list(s) for s in row.input_shapes])] if self.shapes else [])]

    def __str__(self) -> str:
        return self.table()


def averages(events: Iterable[FunctionEvent], notes: Iterable[str], shapes: bool) -> EventList:
    """The events together by name, kind of device and, with shapes, input shapes."""
    rows: dict[tuple, FunctionEventAvg] = {}
    for event in sorted(events, key=lambda e: e.start):
        if event.category == "step":  # as long as all that ran in it, which has its own rows
            continue
        key = (event.name, event.device_type, event.input_shapes if shapes else ())
        if key not in rows:
            rows[key] = FunctionEventAvg(*key)
        rows[key].add(event)
    return EventList(rows.values(), notes, shapes)


def duration(us: float) -> str:
    """Microseconds as text."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3f}{unit}"
    return f"{us:.3f}us"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent."""
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"


def aligned(rows: list[list[str]], ends: list[str]) -> str:
    """Rows of cells, the first the heads, under lines of dashes; the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    line = "  ".join("-" * w for w in widths)
    text = ["  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))) for row in rows]
    return "\n".join([line, text[0], line, *text[1:], line, *ends])


# -- the Chrome trace -----------------------------------------------------------------------------------


def trace(events: Iterable[FunctionEvent], devices: dict[str, str]) -> dict:
    """The events as Chrome's trace viewer and Perfetto read them: processes are devices, threads their rows."""
    places: dict[str, int] = {CPU: 0}
    for device in devices:
        places.setdefault(device, len(places))
    entries: list[dict] = []
    threads: set[tuple[int, int]] = set()
    for event in sorted(events, key=lambda e: (e.start, -e.end)):
        pid = places.setdefault(event.device, len(places))
        threads.add((pid, event.thread))
        args: dict[str, Any] = {"Input Dims": [list(s) for s in event.input_shapes]} if event.input_shapes else {}
        entries.append({"ph": "X", "cat": event.category, "name": event.name, "pid": pid, "tid": event.thread,
                        "ts": round(event.start, 3), "dur": round(event.end - event.start, 3), "args": args})  # fmt: skip
    names = [_label("process_name", pid, 0, f"{device} {devices.get(device, '')}".strip()) for device, pid in places.items()]
    names += [_label("thread_name", pid, tid, "queue" if pid else f"thread {tid}") for pid, tid in sorted(threads)]
    return {"displayTimeUnit": "ms", "traceEvents": names + entries}


def _label(kind: str, pid: int, tid: int, name: str) -> dict:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def write_json(content: dict, path: Any) -> None:
    """Write beside `path` and rename, so that what was there stays whatever goes wrong; *.gz is compressed."""
    path = os.path.realpath(path)
    raw = json.dumps(content, allow_nan=False).encode()
    pack: Callable = gzip.compress if path.endswith(".gz") else bytes
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with open(fresh, "xb") as file:
            file.write(pack(raw))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        if os.path.exists(fresh):
            os.remove(fresh)
