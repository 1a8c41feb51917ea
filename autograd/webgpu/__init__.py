"""Our side of the GPU: adapters, memory, the queue and the kernels' launchers.

`wgpu` is the library, `autograd.webgpu` is what we build on it. Nothing here imports the
library before a device is asked for.
"""

import threading

from .buffers import DeviceLostError, OutOfMemoryError

__all__ = [
    "DeviceLostError",
    "OutOfMemoryError",
    "autotune",
    "devices",
    "is_available",
    "kernel",
    "open_device",
    "reopen",
    "reset_stats",
    "stats",
    "synchronize",
]

_opened = {}
_lock = threading.Lock()


def _adapter_module():
    try:
        from . import adapter
    except (ImportError, OSError) as error:
        raise RuntimeError(
            f"[wgpu] the wgpu library does not import ({error}); "
            "pip install 'wgpu>=0.32,<0.33', or use device='cpu'."
        ) from error
    return adapter


def is_available():
    """True where a device could be opened."""
    try:
        return bool(_adapter_module().adapters())
    except RuntimeError:
        return False


def devices():
    """A dict per adapter, in the order of `wgpu:0`, `wgpu:1`, ...: name, type, limits, how 16-bit types are computed."""
    adapter = _adapter_module()
    return [adapter.describe(found) for found in adapter.adapters()]


def open_device(index=0):
    """The Gpu with this index; opened at the first call, the same object ever after."""
    gpu = _opened.get(index)
    if gpu is None:
        with _lock:
            gpu = _opened.get(index)
            if gpu is None:
                gpu = _opened[index] = _adapter_module().open_gpu(index)
    return gpu


def kernel(source, name="kernel"):
    r'''A kernel of your own: WGSL text with an entry point `main`, as something to call with tensors.

        double = ag.wgpu.kernel("""
            struct Params { factor: f32 }
            @group(0) @binding(0) var<uniform> p: Params;
            @group(0) @binding(1) var<storage, read> x: array<f32>;
            @group(0) @binding(2) var<storage, read_write> y: array<f32>;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                if (id.x < arrayLength(&y)) { y[id.x] = p.factor * x[id.x]; }
            }
        """)
        y = double(x, ag.empty(x.shape, device=x.device), threads=x.numel(), factor=2.0)

    Binding 0 is a struct of f32, i32 and u32, given by name, or nothing; buffers follow from 1: one tensor each, in that
    order. float32 is f32, float16 f16 (where the adapter has it), int32 and int64 i32, bool and
    uint8 u32. arrayLength() is the tensor's length. A tensor that is only read may be any view; one that is written
    (read_write) may not, and is changed in place. threads: how many invocations at least, a number or up to three: the
    workgroups are rounded up, so compare with a length. What is written is returned. It is compiled once a device, at the
    first call, and takes its turn among the other operations.
    No gradient is recorded: wrap it in ag.Function, as examples/06_custom_op.py does.
    ValueError for declarations it does not understand and for sizes; TypeError for dtypes and parameters; RuntimeError with
    the compiler's words and the line when it does not compile.
    '''
    from .custom import Kernel

    return Kernel(source, name)


def autotune(index=0, cache=False):
    """Measure the matmul kernels on `wgpu:index` and use the fastest; what was chosen, by kind of product.

    It is remembered while the device is open. cache: also in a small file in the user's cache folder, and from there
    when the adapter was measured before.
    """
    from .tune import autotune

    return autotune(open_device(index), cache)


def reopen(index=0):
    """Open a new device in place of `wgpu:index`, after it was lost or to begin afresh.

    Tensors on the old one can no longer be used: whatever is done with them raises.
    """
    with _lock:
        old = _opened.pop(index, None)
        if old is not None:
            old.close()
    return open_device(index)


def synchronize(index=None):
    """Wait until the device (every open one by default) has done what was queued."""
    for gpu in _selected(index):
        gpu.synchronize()


def stats(index=None):
    """Counters of one device, or the sum over all open ones."""
    total = dict.fromkeys(
        (
            "ops",
            "dispatches",
            "submits",
            "pipelines",
            "buffers_live",
            "bytes_live",
            "bytes_pooled",
            "bytes_uploaded",
            "bytes_downloaded",
            "host_ops",
        ),
        0,
    )
    for gpu in _selected(index):
        buffers_live, bytes_live = gpu.pool.live()
        now = dict(gpu.counters, buffers_live=buffers_live, bytes_live=bytes_live)
        now["bytes_pooled"] = gpu.pool.pooled()[1]
        now["dispatches"] += gpu.queue.pending()
        for key, value in now.items():
            total[key] += value
    return total


def reset_stats(index=None):
    """Zero the counters that count up; what is in use stays counted."""
    for gpu in _selected(index):
        for key in gpu.counters:
            gpu.counters[key] = 0
        # Dispatches are added up when they are submitted: what waits is not to count later.
        gpu.counters["dispatches"] = -gpu.queue.pending()


def _selected(index):
    if index is None:
        return list(_opened.values())
    return [open_device(index)]
