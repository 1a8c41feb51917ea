"""How long each kernel takes, by the adapter's timestamps: what a profile puts in place of Queue.encode."""

from time import perf_counter_ns

import numpy as np
import wgpu

ALIGNED = 256  # where a resolved query may begin in its buffer
USAGE = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
TRIES = 5


def nanoseconds_a_tick(device):
    """What a timestamp of this device counts."""
    try:
        from wgpu.backends.wgpu_native import _api

        return float(_api.lib.wgpuQueueGetTimestampPeriod(device.queue._internal))
    except (ImportError, AttributeError):
        return 1.0  # as WebGPU has it


def label(kernel):
    """A kernel's name; that of a fused expression with its ops."""
    ops = [part.removesuffix(".wgsl") for part, _ in kernel.source.parts[1:] if not part.startswith("lib/")]
    return f"{kernel.name}({', '.join(ops)})" if kernel.name == "fused" else kernel.name


class Watched:
    """One device whose dispatches are timed; `device` is its name in the profile."""

    def __init__(self, gpu, device):
        self.gpu, self.device = gpu, device
        self.wgpu_device, self.recorder = gpu.wgpu_device, gpu.queue.recorder
        self.batches = []
        self.period = nanoseconds_a_tick(self.wgpu_device)
        self.offset = self.measure_offset()

    def measure_offset(self):
        """What is added to the device's nanoseconds to get the host's: from the quickest of a few empty passes."""
        best = None
        for _ in range(TRIES):
            encoder = self.wgpu_device.create_command_encoder()
            buffer = self.timed(encoder, 1, lambda i, compute_pass: None)
            commands = encoder.finish()
            before = perf_counter_ns()
            self.wgpu_device.queue.submit([commands])
            ticks = self.read(buffer, 1)
            after = perf_counter_ns()
            if best is None or after - before < best[0]:
                best = after - before, (before + after) / 2 - ticks[0, 1] * self.period
        return best[1]

    def timed(self, encoder, count, record):
        """`count` passes between two timestamps each, which record(i, pass) fills; the buffer that gets the timestamps."""
        queries = self.wgpu_device.create_query_set(type="timestamp", count=2 * count)
        for i in range(count):
            writes = {"query_set": queries, "beginning_of_pass_write_index": 2 * i, "end_of_pass_write_index": 2 * i + 1}
            compute_pass = encoder.begin_compute_pass(timestamp_writes=writes)
            record(i, compute_pass)
            compute_pass.end()
        buffer = self.wgpu_device.create_buffer(size=-(-16 * count // ALIGNED) * ALIGNED, usage=USAGE)
        encoder.resolve_query_set(queries, 0, 2 * count, buffer, 0)
        return buffer

    def read(self, buffer, count):
        """The timestamps of a buffer: (count, 2) in ticks."""
        raw = self.wgpu_device.queue.read_buffer(buffer, 0, 16 * count)
        return np.frombuffer(raw, np.uint64).reshape(count, 2).astype(np.float64)

    def encode(self, encoder, work, first_slot):
        """Queue.encode, with a pass for each dispatch."""

        def record(i, compute_pass):
            self.recorder.record(compute_pass, work[i : i + 1], first_slot + i)

        buffer = self.timed(encoder, len(work), record)
        self.batches.append(([label(item[0]) for item in work], buffer, perf_counter_ns()))

    def forget(self):
        """Drop what was timed so far: it is submitted first."""
        self.gpu.flush()
        self.batches.clear()

    def times(self):
        """(kernel, start, end) of each dispatch that was done, in the host's nanoseconds."""
        self.gpu.synchronize()
        found = []
        for names, buffer, encoded in self.batches:
            ticks = self.read(buffer, len(names)) * self.period
            if ticks.all():  # a batch that was refused has none
                # Nothing begins before it was asked for: what is left of the offset's error shows here.
                self.offset += max(0, encoded - (ticks[0, 0] + self.offset))
                found += [(name, start, end) for name, (start, end) in zip(names, ticks, strict=True)]
        self.batches.clear()
        return [(name, start + self.offset, end + self.offset) for name, start, end in found]
