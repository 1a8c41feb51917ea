"""Device buffers by size class, recycled in a fixed order."""

import gc
import threading
from functools import lru_cache
from heapq import heappop, heappush

import wgpu

from .buffers import OutOfMemoryError, failure, is_out_of_memory

MIN_CLASS = 256
EXACT_ABOVE = 1 << 16
KEEP_BYTES = 1 << 28
TENSOR = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class Buffer:
    """One device allocation: its id never comes back, so caches may be keyed on it."""

    __slots__ = ("id", "size", "gpu_buffer", "stamp")

    def __init__(self, ident, size, gpu_buffer):
        self.id = ident
        self.size = size
        self.gpu_buffer = gpu_buffer
        self.stamp = -1


@lru_cache(maxsize=4096)
def size_class(nbytes):
    """Powers of two, and quarter steps above 64 KiB so that at most a fifth is wasted."""
    if nbytes <= MIN_CLASS:
        return MIN_CLASS
    power = 1 << (nbytes - 1).bit_length()
    if power <= EXACT_ABOVE:
        return power
    step = power >> 3
    return -(-nbytes // step) * step


class Pool:
    """Free buffers by size; the lowest id goes out first, whatever order they came back in.

    So a loop that allocates and frees alike in every step meets the same buffers in every
    step, and the bind groups that name them are found in their cache.
    """

    def __init__(self, device, max_bytes, max_binding, on_drop, drain):
        self.device = device
        self.max_bytes = max_bytes
        self.max_binding = min(max_binding, max_bytes)
        self.on_drop = on_drop
        self.drain = drain
        self.batch = 0
        self.lock = threading.Lock()  # of ids and totals; what is free needs none: see give()
        self.free = {}
        self.buffers = {}
        self.next_id = 0
        self.total_bytes = 0

    def take(self, nbytes):
        """A buffer of at least `nbytes`; it holds old data."""
        size = size_class(nbytes)
        try:
            return self.buffers[heappop(self.free[size])]
        except (KeyError, IndexError):
            return self._create(nbytes, size)

    def take_large(self, nbytes):
        """A buffer larger than a binding; of a size of its own, so that no kernel is given one as a small one."""
        size = max(size_class(nbytes), size_class(self.max_binding) + 256)
        try:
            return self.buffers[heappop(self.free[size])]
        except (KeyError, IndexError):
            return self._create(nbytes, size)

    def give(self, buffer, push=heappush):
        """Return a buffer. Runs in finalisers, at exit too, when globals are gone: no lock, one atomic push."""
        buffer.stamp = self.batch
        push(self.free[buffer.size], buffer.id)

    def _create(self, nbytes, size):
        if nbytes > self.max_bytes:
            self.refuse(nbytes)
        if self.pooled()[1] > max(KEEP_BYTES, self.live()[1]):
            self.trim()
        wanted = min(size, (self.max_bytes if nbytes > self.max_binding else self.max_binding) & ~15)
        gpu_buffer = self.allocate(wanted)
        self.free.setdefault(size, [])
        with self.lock:  # two threads may not get one id
            buffer = self.buffers[self.next_id] = Buffer(self.next_id, size, gpu_buffer)
            self.next_id += 1
            self.total_bytes += size
        return buffer

    def refuse(self, nbytes):
        """Say that there can be no buffer of this size."""
        raise ValueError(
            f"[wgpu] one tensor needs {nbytes:,} bytes and this adapter's buffers hold at most "
            f"{self.max_bytes:,}. Split it, or keep it on the CPU."
        )

    def allocate(self, size, usage=TENSOR):
        """A new device buffer, with a second attempt once everything that can be given back was."""
        return self.attempt(lambda: self._allocate(size, usage), f"buffer of {size:,} bytes")

    def _allocate(self, size, usage):
        return self.device.create_buffer(size=size, usage=usage)

    def attempt(self, work, what):
        """work(), which takes memory of the device for `what`; once more, where it is short, when all was given back."""
        try:
            try:
                return work()
            except wgpu.GPUError as error:
                if not is_out_of_memory(error):
                    raise
            return self._attempt_again(work, what)
        except wgpu.GPUError as error:
            raise failure(f"[wgpu] no {what}", error) from error

    def _attempt_again(self, work, what):
        gc.collect()  # tensors in reference cycles
        self.drain()  # what is queued keeps its buffers until it is done
        self.trim()
        try:
            return work()
        except wgpu.GPUError as error:
            if not is_out_of_memory(error):
                raise
            live = self.live()
            raise OutOfMemoryError(
                f"[wgpu] no room for a {what}; {live[0]} buffers with "
                f"{live[1]:,} bytes are in use. Free tensors or use smaller batches."
            ) from error

    def trim(self):
        """Give every free buffer back to the driver."""
        dropped = set()
        for heap in list(self.free.values()):
            try:
                while True:
                    dropped.add(heappop(heap))
            except IndexError:  # it is empty; other threads may have taken some
                pass
        with self.lock:
            self.total_bytes -= sum(self.buffers.pop(ident).size for ident in dropped)
        if dropped:
            self.on_drop(dropped)

    def pooled(self):
        """(buffers, bytes) that wait for their next user."""
        counts = [(len(heap), size) for size, heap in list(self.free.items())]
        return sum(n for n, _ in counts), sum(n * size for n, size in counts)

    def live(self):
        """(buffers, bytes) that tensors hold."""
        count, nbytes = self.pooled()
        return len(self.buffers) - count, self.total_bytes - nbytes
