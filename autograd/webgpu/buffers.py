"""Array, the device twin of a NumPy array, and Gpu, the device that it lives on.

Importing this module does not import wgpu: Tensor asks it what an Array is.
"""

from sys import getrefcount
from weakref import WeakSet

import numpy as np

from ..device import closed
from .layout import (
    INDEX_LIMIT,
    Plans,
    contiguous_strides,
    element_count,
    extent,
    is_contiguous,
    pack_words,
)
from .packed import BFLOAT16, FLOAT16, FLOAT32, PACKED, aliases, float32_outputs
from .shaders import WGSL_TYPES

INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
# How a dtype is stored; whatever is missing has no WGSL type.
STORED = {
    np.dtype(np.float32): np.dtype(np.float32),
    np.dtype(np.float16): np.dtype(np.float16),
    BFLOAT16: BFLOAT16,
    np.dtype(np.int32): np.dtype(np.int32),
    INT64: np.dtype(np.int32),
    BOOL: np.dtype(np.uint32),
    np.dtype(np.uint8): np.dtype(np.uint32),
}
INT32 = np.iinfo(np.int32)
SPARSE = 1 << 16  # elements: what lies between those of a view is downloaded with them, up to so much


class OutOfMemoryError(MemoryError):
    """The device has no memory left, even with the pool emptied."""


class DeviceLostError(RuntimeError):
    """The device is gone (destroyed, reset, unplugged) and with it what was on it."""


def is_out_of_memory(error):
    """Whether an error of the library says that memory is short: wgpu 0.32 calls that a validation error."""
    return "OutOfMemory" in type(error).__name__ or "not enough memory" in str(error).lower()


def failure(said, error):
    """The exception that an error of the library becomes; `said` is what was being done."""
    if is_out_of_memory(error):
        return OutOfMemoryError(f"{said}: the device's memory is full. Free tensors or use smaller batches.")
    if "device is lost" in str(error).lower():
        return DeviceLostError(
            f"{said}: the device was lost, and with it the tensors on it. Tensors on the CPU are as they were; "
            "ag.wgpu.reopen() opens a new device."
        )
    return RuntimeError(f"{said}: {error}")


class Storage:
    """A buffer on loan from the pool: it goes back when the last Array lets go.

    large: whether it is more than one binding may show.
    """

    __slots__ = ("buffer", "id", "give", "bounds", "large")
    start, nbytes = 0, None  # what a kernel is shown: all of it

    def __init__(self, buffer, give, large=False):
        self.buffer = buffer
        self.id = buffer.id
        self.give = give
        self.large = large
        # Lowest and highest index per view, where someone has looked; None once written to.
        self.bounds = None

    def __del__(self):
        self.give(self.buffer)


class Window:
    """Part of a large Storage, for a kernel to bind: bytes from `start` on."""

    __slots__ = ("whole", "buffer", "id", "start", "nbytes", "bounds")
    large = False

    def __init__(self, whole, start, nbytes):
        self.whole, self.buffer = whole, whole.buffer  # `whole` keeps the memory
        self.id = whole.id, start, nbytes
        self.start, self.nbytes = start, nbytes
        self.bounds = None


class Array:
    """A strided view of device memory; strides and offset count elements."""

    __slots__ = ("_storage", "pending", "shape", "strides", "offset", "dtype", "gpu", "size", "__weakref__")

    def __init__(self, storage, shape, strides, offset, dtype, gpu, size):
        self._storage = storage
        self.pending = None
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.gpu = gpu
        self.size = size

    @property
    def storage(self):
        """The memory; what waits in a pending expression (see fuse.py) is computed now."""
        pending = self.pending  # read first: another thread may be computing it
        if self._storage is None:
            self.gpu.compute(pending)
        return self._storage

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self):
        """Bytes of the elements as the user sees them (an int64 counts 8)."""
        return self.size * self.dtype.itemsize

    def is_contiguous(self):
        """True where the elements follow one another in row-major order."""
        return is_contiguous(self.shape, self.strides)

    def view(self, shape, strides, offset):
        """Another view of the same storage; host arithmetic only."""
        shape = tuple(shape)
        return Array(
            self.storage,
            shape,
            tuple(strides),
            offset,
            self.dtype,
            self.gpu,
            element_count(shape),
        )

    def replaces(self, old):
        """Whether this value may take the place of `old`: nobody sees its memory, nor old's but its own expression."""
        if self.shape != old.shape or getrefcount(self) > 4:
            return False
        if self.pending is None and (getrefcount(self._storage) > 2 or not self.is_contiguous()):
            return False
        held = getrefcount(old) - (0 if self.pending is None else self.pending.mentions(old))
        alone = old._storage is None or getrefcount(old._storage) <= 2
        if not alone or held > 3:
            return False
        if self.pending is not None and self.pending.host is not None and old._storage is not None:
            # Made of a gradient's product: now, so that a loop's kernels do not depend on when .grad is dropped.
            self.gpu.compute(self.pending)
        return True

    def __repr__(self):
        return (
            f"Array(shape={self.shape}, strides={self.strides}, offset={self.offset}, "
            f"dtype={self.dtype}, gpu={self.gpu.name!r})"
        )


def stored_dtype(dtype):
    """The dtype in device memory, or a TypeError that says what to do."""
    try:
        return STORED[dtype]
    except KeyError:
        hint = "use float32" if dtype.kind in "fc" else "use int32"
        raise TypeError(
            f"[wgpu] {dtype} has no type in WGSL; {hint}, or keep the tensor on the CPU."
        ) from None


def check_int64(values):
    """Refuse values that 32 bits cannot hold, by name; returns (lowest, highest)."""
    bounds = int(values.min()), int(values.max())
    for value in bounds:
        if not INT32.min <= value <= INT32.max:
            raise OverflowError(
                f"[wgpu] int64 is stored in 32 bits on the GPU and {value} does not fit; "
                "keep this tensor on the CPU."
            )
    return bounds


class Gpu:
    """One open device: memory, queue, kernels. `autograd.webgpu.open_device` makes it."""

    def __init__(self, device, info, wgpu_device, pool, queue, pipelines, counters):
        self.device = device
        self.info = info
        self.name = info["name"]
        # (type in a kernel, type in memory) of each dtype here, and the dtypes whose elements share words.
        self.types = dict(WGSL_TYPES) if info["shader_f16"] else {**WGSL_TYPES, FLOAT16: ("f32", "half2")}
        self.packed = frozenset(dtype for dtype, (_, memory) in self.types.items() if memory in PACKED)
        self.wgpu_device = wgpu_device
        self.pool = pool
        self.queue = queue
        self.pipelines = pipelines
        self.counters = counters
        self.kernels = Plans()
        self.tuned = {}  # see tune.py
        self.has_large = False  # whether there ever was a tensor larger than a binding: see large.py
        self.waiting = []  # weak references to the Arrays that fuse.py has yet to compute
        self.totals = WeakSet()  # numbers that a loop adds to: see fuse.py
        self.fused = Plans()
        self.record = queue.record
        self.take = pool.take
        self.give = pool.give

    def empty(self, shape, dtype):
        """An Array with whatever the recycled memory holds."""
        shape, dtype = tuple(shape), np.dtype(dtype)
        size = element_count(shape)
        stored = self.check(shape, dtype)
        nbytes = size * stored.itemsize
        large = nbytes > self.pool.max_binding
        self.has_large = self.has_large or large
        storage = Storage(self.pool.take_large(nbytes) if large else self.take(nbytes), self.give, large)
        return Array(storage, shape, contiguous_strides(shape), 0, dtype, self, size)

    def check(self, shape, dtype):
        """The dtype in memory of such an Array; refused when no buffer, or no kernel's index, can hold it."""
        size = element_count(shape)
        if size >= INDEX_LIMIT:
            raise ValueError(f"[wgpu] kernels index with 32 bits; shape {shape} has {size:,} elements.")
        stored = stored_dtype(dtype)
        if size * stored.itemsize > self.pool.max_bytes:
            self.pool.refuse(size * stored.itemsize)
        return stored

    def upload(self, values):
        """Copy a NumPy array to the device."""
        values = np.asarray(values)
        out = self.empty(values.shape, values.dtype)
        if not out.size:
            return out
        if values.dtype == INT64:
            # An index is checked on the host: what is known now need not be read back then.
            bounds = check_int64(values)
            out.storage.bounds = {(out.shape, out.strides, 0): bounds}
        flat = values.astype(STORED[values.dtype], order="C", copy=False).reshape(-1)
        if flat.nbytes % 4:
            flat = np.append(flat, flat[-1:])
        self.queue.upload(out.storage.buffer, np.ascontiguousarray(flat).view(np.uint8))
        return out

    def download(self, array):
        """A fresh, writable, C-contiguous NumPy copy; waits for the work that makes it."""
        if not array.size:
            return np.empty(array.shape, array.dtype)
        low, high = extent(array.shape, array.strides, array.offset)
        if high - low > max(4 * array.size, SPARSE):  # a column of a large matrix, say: a copy leaves the rest behind
            return self.download(self.copy(array))
        stored = STORED[array.dtype]
        # A write or read moves whole words, so an odd 16-bit start is rounded down.
        start = low * stored.itemsize // 4 * 4
        nbytes = -(-((high + 1) * stored.itemsize - start) // 4) * 4
        self.counters["bytes_downloaded"] += nbytes
        first = array.offset - start // stored.itemsize
        strides = [stride * stored.itemsize for stride in array.strides]

        def take(raw):  # the one copy: from the mapped memory into the result, in its layout and dtype
            words = raw.view(stored)[first:]
            view = np.lib.stride_tricks.as_strided(words, array.shape, strides, writeable=False)
            return view.astype(array.dtype, order="C", copy=True)

        return self.queue.read(array.storage.buffer.gpu_buffer, start, nbytes, take)

    # Those below are launchers, which import this module: at the top it would be a cycle.
    def compute(self, pending):
        """Give a pending value its memory."""
        from .fuse import compute

        compute(pending)

    def settle(self, storage):
        """Compute what waits and reads this storage, which is about to be overwritten."""
        if self.waiting:
            from .fuse import settle

            settle(self, storage)

    def fill(self, shape, value, dtype):
        """An Array with every element equal to `value`, written now."""
        from .movement import fill

        return fill(shape, value, dtype, self)

    def full(self, shape, value, dtype):
        """An Array with every element equal to `value`."""
        from .movement import full

        return full(shape, value, dtype, self)

    def copy(self, array):
        """A contiguous copy."""
        from .movement import copy

        return copy(array)

    def cast(self, array, dtype):
        """A contiguous copy in another dtype."""
        from .movement import cast

        return cast(array, dtype)

    def copy_into(self, dst, src):
        """Write an Array or a number, broadcast, into the memory that `dst` views."""
        from .movement import copy_into

        copy_into(dst, src)

    def index_bounds(self, index):
        """(lowest, highest) of a non-empty integer Array; cheap where it was just uploaded."""
        from .index import index_bounds

        return index_bounds(index)

    def kernel(self, name, libs=(), extra="", **types):
        """The compiled kernel of wgsl/<name>.wgsl.

        `libs` names files of wgsl/lib to append, `extra` is WGSL text to append, and each
        keyword becomes an alias: `T="f32"` appends `alias T = f32;`. Where E or F is packed, what is
        only read is read so, and what is written as E is float32: see written().
        """
        key = (name, libs, extra, *types.items())
        kernel = self.kernels.get(key)
        if kernel is None:
            text, packed = aliases(types)
            kernel = self.kernels.keep(key, self.pipelines.get(name, tuple(libs), text + extra, packed))
        return kernel

    def run(self, kernel, arrays, params, groups):
        """Queue one dispatch of a kernel.

        `arrays` in binding order from 1, `params` bytes (at most 256) or a sequence of
        unsigned ints, `groups` the workgroup count or a tuple of up to three.
        """
        if not isinstance(params, bytes):
            params = pack_words(params)
        packed = []
        if kernel.source.packed:
            arrays, packed = float32_outputs(self, kernel, arrays)
        storages = [array.storage for array in arrays]
        key = (kernel.layout.id, *(storage.id for storage in storages))
        if isinstance(groups, int):
            groups = (groups,)
        self.record(kernel, key, storages, params.ljust(256, b"\0"), *groups)
        for array, wide in packed:
            self.copy_into(array, wide)

    def alias_types(self, dtype):
        """The aliases T (in the kernel) and E (in memory) of a dtype."""
        kind, element = self.types[dtype]
        return {"T": kind, "E": element}

    def written(self, dtype):
        """The dtype that kernels write where the result is to be `dtype`: float32 where that is packed."""
        return FLOAT32 if dtype in self.packed else dtype

    def rounded(self, array, dtype):
        """What a kernel wrote, in the dtype it is to have."""
        return array if array.dtype == dtype else self.cast(array, dtype)

    def close(self):
        """Give the device back to the driver: what is on it is lost, and its tensors say so."""
        self.device = closed(self.device)
        with self.queue.reading:
            self.wgpu_device.destroy()
        Plans.forget_all()  # they keep devices

    def compute_waiting(self):
        """Queue what waits in expressions."""
        if self.waiting:
            from .fuse import compute_all

            compute_all(self)

    def flush(self):
        """Submit what is queued, waiting expressions included, and return at once."""
        self.compute_waiting()
        self.queue.flush()

    def synchronize(self):
        """Submit what is queued, waiting expressions included, and wait until it is done."""
        self.compute_waiting()
        self.queue.wait()
