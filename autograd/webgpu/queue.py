"""The deferred command queue: program order in, one submit per batch out."""

import threading

import numpy as np
import wgpu

from ..interrupts import held
from .buffers import failure
from .pool import size_class
from .shaders import SLOT_BYTES
from .timestamps import label

MAX_BATCH = 512
STAGED_LIMIT = 1 << 18
KEEP_MAPPABLE = 1 << 24
PROBED = 1 << 20  # bytes of an upload from which on it is asked first whether there is room
# Beside dispatches (tuples), the queue holds these: both are false.
COPY, SKIPPED = None, ()
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
        self.reading = threading.Lock()  # while mapped memory is copied, the device may not be given back
        self.work = []
        self.params = []
        self.params_there = b""  # what the arena holds
        self.staged = []
        self.staging = None
        self.mappable = {}
        self.draining = False
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
            if len(self.params) > len(self.work):  # Ctrl-C came between the two lines below
                self.params.pop()
            self.params.append(params)
            self.work.append((kernel, group, x, y, z))
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
            busy = buffer.stamp == self.pool.batch
            if busy and data.nbytes > STAGED_LIMIT:
                self.flush()
                busy = False
            if not busy:
                self._write(buffer.gpu_buffer, data)
            else:
                # Queued work still uses this buffer: the bytes go in by a copy in the queue.
                with held:
                    self.staged.append((buffer, data.tobytes()))
                    del self.params[len(self.work) :]
                    self.params.append(EMPTY_SLOT)
                    self.work.append(COPY)
                if len(self.params) >= MAX_BATCH:
                    self.flush()

    def _write(self, gpu_buffer, data):
        if data.nbytes > PROBED:  # where memory is short, wgpu loses the device in a write, and not here
            self.pool.allocate(data.nbytes, wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC)
        try:
            self.device.queue.write_buffer(gpu_buffer, 0, data)
        except wgpu.GPUError as error:
            raise failure("[wgpu] the device refused an upload", error) from error

    def flush(self, fetch=None):
        """Submit what is queued; returns at once. `fetch` is one more copy: see read()."""
        with held, self.lock:  # a batch is submitted, or still waits
            if not self.work and fetch is None:
                return
            work, params, staged = self.work, self.params[: len(self.work)], self.staged
            self.work, self.params, self.staged = [], [], []
            self.pool.batch += 1
            try:
                self._write_params(b"".join(params))
                self._submit(work, staged, fetch)
            except (wgpu.GPUError, RuntimeError) as error:
                raise self._salvage(work, staged, error) from error
            self.counters["dispatches"] += len(work) - len(staged)
            self.counters["submits"] += 1

    def _write_params(self, data):
        """Bring the arena up to date. A training step's are often those of the last: a write costs more than to compare."""
        if not self.params_there.startswith(data):
            kept, self.params_there = self.params_there[len(data) :], b""
            self.device.queue.write_buffer(self.arena, 0, data)
            self.params_there = data + kept

    def read(self, buffer, start, nbytes, take=np.ndarray.copy):
        """take(a buffer's bytes as uint8) once everything queued so far is done; the bytes are gone afterwards."""
        size = size_class(nbytes)
        try:
            with self.lock:
                target = self.mappable.pop(size, None) or self._create_mappable(size)
                self.flush((buffer, start, target, 0, nbytes))
        except wgpu.GPUError as error:
            raise failure("[wgpu] the device refused a download", error) from error
        # Other threads go on recording while this one waits, however long that is.
        self.recorder.wait(self.device, target, nbytes)
        with self.reading:
            data = self.recorder.take(self.device, target, nbytes, take)
        if size <= KEEP_MAPPABLE:
            self.mappable[size] = target
        return data

    def _create_mappable(self, size):
        usage = wgpu.BufferUsage
        return self.pool.allocate(size, usage.MAP_READ | usage.COPY_DST)

    def drain(self):
        """Do what is queued, and give back what only transfers hold: when memory is short."""
        with self.lock:
            self.flush()
            if self.draining:  # the wait below asked for memory itself
                return
            self.draining = True
            try:
                self.wait()
            except MemoryError:
                pass
            finally:
                self.draining = False
            self.mappable.clear()
            self.staging = None

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
            if work[start] is SKIPPED:
                start += 1
                continue
            if work[start] is COPY:
                buffer, offset, nbytes = next(copies)
                encoder.copy_buffer_to_buffer(
                    self.staging, offset, buffer.gpu_buffer, 0, nbytes
                )
                start += 1
                continue
            stop = start
            while stop < len(work) and work[stop]:
                stop += 1
            self.encode(encoder, work[start:stop], start)
            start = stop
        if fetch is not None:
            encoder.copy_buffer_to_buffer(*fetch)
        self.device.queue.submit([encoder.finish()])

    def encode(self, encoder, work, first_slot):
        """Put dispatches into a pass; their parameters lie in the slots from `first_slot` on. A profile times it."""
        compute_pass = encoder.begin_compute_pass()
        self.recorder.record(compute_pass, work, first_slot)
        compute_pass.end()

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
            self.staging = self.pool.allocate(1 << offset.bit_length(), usage.COPY_SRC | usage.COPY_DST)
        self.device.queue.write_buffer(
            self.staging, 0, b"".join(data for _, data in staged)
        )
        return places

    def _bind(self, kernel, key, storages):
        if len(self.groups) >= 8192:
            self.groups.clear()
        if any(storage.large for storage in storages):
            self._refuse_large(kernel, storages)
        buffers = [(storage.buffer.gpu_buffer, storage.start, storage.nbytes) for storage in storages]
        try:
            group = self.recorder.bind(
                self.device, kernel.layout.group_layout, self.arena, buffers
            )
        except (wgpu.GPUError, RuntimeError) as error:
            raise failure(f"[{label(kernel)}] the device refused its buffers", error) from error
        self.groups[key] = group
        return group

    def _refuse_large(self, kernel, storages):
        nbytes = max(storage.buffer.size for storage in storages if storage.large)
        raise ValueError(
            f"[{kernel.name}] a tensor's memory of {nbytes:,} bytes is more than the {self.pool.max_binding:,} that "
            "this adapter binds at once. Other ops run in pieces, this does not: use it on parts, after .clone()."
        )

    def forget(self, idents):
        """Drop the bind groups of buffers that are gone."""
        with self.lock:
            stale = [
                key for key in self.groups if any((k[0] if k.__class__ is tuple else k) in idents for k in key[1:])
            ]
            for key in stale:
                del self.groups[key]

    def _salvage(self, work, staged, error):
        """Submit the batch without the dispatches at fault; returns the exception to raise for them."""
        said = failure(f"[wgpu] the device refused a batch of {len(work)} commands", error)
        kept = list(work)
        for i, item in enumerate(work):
            problem = item and self._problem(item)
            if problem:
                said = failure(f"[{label(item[0])}] the device refused this dispatch", problem)
                kept[i] = SKIPPED
        try:
            self._submit(kept, staged, None)
        except (wgpu.GPUError, RuntimeError):
            # The device is lost, or the fault is not one dispatch's: nothing was done.
            said.args = (f"{said} Nothing of its batch was done.",)
        return said

    def _problem(self, item):
        """What the device has against one dispatch, encoded alone and not submitted."""
        try:
            encoder = self.device.create_command_encoder()
            self.encode(encoder, [item], 0)
            encoder.finish()
        except (wgpu.GPUError, RuntimeError) as problem:
            return problem
        return None
