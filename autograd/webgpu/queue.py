"""The deferred command queue: program order in, one submit per batch out."""

import threading

import numpy as np
import wgpu

from .pool import size_class
from .shaders import SLOT_BYTES

MAX_BATCH = 512
STAGED_LIMIT = 1 << 18
KEEP_MAPPABLE = 1 << 24
EMPTY_SLOT = bytes(SLOT_BYTES)


class Queue:
    """Dispatches wait here until the batch is full or a value is needed.

    Each dispatch owns one slot of the parameter arena. The arena is written once per batch,
    just before its submit: a write overtakes everything that is recorded but not submitted.
    """

    def __init__(self, device, pool, counters, recorder):
        self.device = device
        self.pool = pool
        self.counters = counters
        self.recorder = recorder
        self.lock = threading.RLock()
        self.work = []
        self.params = []
        self.staged = []
        self.staging = None
        self.mappable = {}
        self.groups = {}
        usage = wgpu.BufferUsage
        self.arena = device.create_buffer(
            size=MAX_BATCH * SLOT_BYTES,
            usage=usage.UNIFORM | usage.COPY_DST | usage.COPY_SRC,
        )

    def record(self, kernel, key, storages, params, x, y=1, z=1):
        """Queue one dispatch. `key` is the layout's id and then the buffers' ids."""
        with self.lock:
            group = self.groups.get(key)
            if group is None:
                group = self._bind(kernel, key, storages)
            self.work.append((kernel, group, x, y, z))
            self.params.append(params)
            if len(self.params) >= MAX_BATCH:
                self.flush()

    def pending(self):
        """Dispatches that are recorded and not submitted."""
        with self.lock:
            return len(self.work) - len(self.staged)

    def upload(self, buffer, data):
        """Write `data` (contiguous, multiple of 4 bytes) into a buffer, in program order."""
        with self.lock:
            self.counters["bytes_uploaded"] += data.nbytes
            if buffer.stamp != self.pool.batch:
                self.device.queue.write_buffer(buffer.gpu_buffer, 0, data)
            elif data.nbytes > STAGED_LIMIT:
                self.flush()
                self.device.queue.write_buffer(buffer.gpu_buffer, 0, data)
            else:
                # Queued work still uses this buffer: the bytes go in by a copy in the queue.
                self.staged.append((buffer, data.tobytes()))
                self.work.append(None)
                self.params.append(EMPTY_SLOT)
                if len(self.params) >= MAX_BATCH:
                    self.flush()

    def flush(self, fetch=None):
        """Submit what is queued; returns at once. `fetch` is one more copy: see read()."""
        with self.lock:
            if not self.work and fetch is None:
                return
            work, params, staged = self.work, self.params, self.staged
            self.work, self.params, self.staged = [], [], []
            self.pool.batch += 1
            try:
                if params:
                    self.device.queue.write_buffer(self.arena, 0, b"".join(params))
                self._submit(work, staged, fetch)
            except (wgpu.GPUError, RuntimeError) as error:
                raise RuntimeError(self._explain(work, error)) from error
            self.counters["dispatches"] += len(work) - len(staged)
            self.counters["submits"] += 1

    def read(self, buffer, start, nbytes):
        """A copy of a buffer's bytes once everything queued so far is done, as uint8."""
        size = size_class(nbytes)
        with self.lock:
            target = self.mappable.pop(size, None)
            if target is None:
                usage = wgpu.BufferUsage
                target = self.device.create_buffer(
                    size=size, usage=usage.MAP_READ | usage.COPY_DST
                )
            self.flush((buffer, start, target, 0, nbytes))
        # Other threads go on recording while this one waits, however long that is.
        target.map_async(self.recorder.map_mode, 0, nbytes).sync_wait()
        data = np.frombuffer(target.read_mapped(0, nbytes, copy=False), np.uint8).copy()
        target.unmap()
        if size <= KEEP_MAPPABLE:
            self.mappable[size] = target
        return data

    def wait(self):
        """Submit what is queued and wait until the device has done it."""
        # wgpu 0.32's on_submitted_work_done passes its callback with a wrong C type and fails;
        # a read comes after all that was submitted, and works.
        self.read(self.arena, 0, 4)

    def _submit(self, work, staged, fetch):
        encoder = self.device.create_command_encoder()
        copies = iter(self._stage(staged))
        start = 0
        while start < len(work):
            if work[start] is None:
                buffer, offset, nbytes = next(copies)
                encoder.copy_buffer_to_buffer(
                    self.staging, offset, buffer.gpu_buffer, 0, nbytes
                )
                start += 1
                continue
            stop = start
            while stop < len(work) and work[stop] is not None:
                stop += 1
            compute_pass = encoder.begin_compute_pass()
            self.recorder.record(compute_pass, work[start:stop], start)
            compute_pass.end()
            start = stop
        if fetch is not None:
            encoder.copy_buffer_to_buffer(*fetch)
        self.device.queue.submit([encoder.finish()])

    def _stage(self, staged):
        """Write the staged uploads side by side; returns (buffer, offset, bytes) of each."""
        if not staged:
            return []
        places, offset = [], 0
        for buffer, data in staged:
            places.append((buffer, offset, len(data)))
            offset += len(data)
        if self.staging is None or self.staging.size < offset:
            usage = wgpu.BufferUsage
            self.staging = self.device.create_buffer(
                size=1 << offset.bit_length(), usage=usage.COPY_SRC | usage.COPY_DST
            )
        self.device.queue.write_buffer(
            self.staging, 0, b"".join(data for _, data in staged)
        )
        return places

    def _bind(self, kernel, key, storages):
        if len(self.groups) >= 8192:
            self.groups.clear()
        entries = [
            {
                "binding": 0,
                "resource": {"buffer": self.arena, "offset": 0, "size": SLOT_BYTES},
            }
        ]
        for binding, storage in enumerate(storages, start=1):
            entries.append(
                {"binding": binding, "resource": {"buffer": storage.buffer.gpu_buffer}}
            )
        try:
            group = self.device.create_bind_group(
                layout=kernel.layout.group_layout, entries=entries
            )
        except wgpu.GPUError as error:
            raise RuntimeError(f"[{kernel.name}] {error}") from error
        self.groups[key] = group
        return group

    def forget(self, idents):
        """Drop the bind groups of buffers that are gone."""
        with self.lock:
            stale = [key for key in self.groups if not idents.isdisjoint(key[1:])]
            for key in stale:
                del self.groups[key]

    def _explain(self, work, error):
        """Name the kernel at fault: each dispatch is encoded alone, and none is submitted."""
        for item in work:
            if item is None:
                continue
            kernel, group, x, y, z = item
            try:
                encoder = self.device.create_command_encoder()
                compute_pass = encoder.begin_compute_pass()
                compute_pass.set_pipeline(kernel.pipeline)
                compute_pass.set_bind_group(0, group, [0])
                compute_pass.dispatch_workgroups(x, y, z)
                compute_pass.end()
                encoder.finish()
            except wgpu.GPUError as problem:
                return f"[{kernel.name}] the device refused this dispatch: {problem}"
        return f"[wgpu] the device refused a batch of {len(work)} commands: {error}"
