"""Choosing and opening adapters. Importing this module imports wgpu."""

import os
import tempfile

if "XDG_RUNTIME_DIR" not in os.environ:
    # Drivers print a warning at start-up without one.
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="autograd-xdg-")

import wgpu

from ..device import Device
from . import fastpath
from .buffers import Gpu
from .pipelines import Pipelines
from .pool import Pool
from .queue import Queue
from .switches import switched

RANK = {"DiscreteGPU": 0, "IntegratedGPU": 1, "Unknown": 2, "CPU": 3}
# WebGPU's defaults: kernels that keep to them run on every adapter.
DEFAULT_LIMITS = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-dynamic-storage-buffers-per-pipeline-layout": 4,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffers-per-shader-stage": 12,
    "max-uniform-buffer-binding-size": 65536,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroups-per-dimension": 65535,
}
# These are raised to what the adapter offers, unless AUTOGRAD_WGPU_LIMITS=default asks for WebGPU's own.
RAISED_LIMITS = {"max-buffer-size": 1 << 28, "max-storage-buffer-binding-size": 1 << 27}
MOST_BUFFERS = 32  # of one kernel: an optimizer's step then does eight parameters at once
NO_ADAPTER = (
    "[wgpu] no Vulkan adapter found{}. Install a driver (Debian and Ubuntu: "
    "apt-get install mesa-vulkan-drivers runs on any CPU), or use device='cpu'."
)


def adapters():
    """Usable adapters, a real GPU before a software one."""
    found = wgpu.gpu.enumerate_adapters_sync()
    native = [a for a in found if a.info["backend_type"] in ("Vulkan", "Metal", "D3D12")]
    native.sort(key=lambda a: RANK.get(a.info["adapter_type"], 2))
    wanted = os.environ.get("AUTOGRAD_WGPU_ADAPTER", "").lower()
    return [a for a in native if wanted in label(a).lower()]


def label(adapter):
    """The text that AUTOGRAD_WGPU_ADAPTER is looked for in."""
    info = adapter.info
    return f"{info['device']} {info['vendor']} {info['description']} {info['backend_type']}"


def describe(adapter):
    """What `devices()` says of one adapter."""
    info, limits = adapter.info, adapter.limits
    native = "shader-f16" in adapter.features and not switched("AUTOGRAD_WGPU_NO_F16", False)
    return {
        "name": info["device"],
        "backend": info["backend_type"],
        "type": info["adapter_type"],
        "driver": info["description"],
        "shader_f16": native,
        "float16": "native" if native else "packed in pairs, computed in float32",
        "bfloat16": "packed in pairs, computed in float32",
        "limits": {key: limits[key] for key in (*RAISED_LIMITS, *DEFAULT_LIMITS)},
    }


def open_gpu(index):
    """Open the adapter with this index."""
    found = adapters()
    if not found:
        wanted = os.environ.get("AUTOGRAD_WGPU_ADAPTER")
        named = f" that AUTOGRAD_WGPU_ADAPTER={wanted!r} names" if wanted else ""
        raise RuntimeError(NO_ADAPTER.format(named))
    if index >= len(found):
        raise RuntimeError(
            f"[wgpu] there is no device wgpu:{index}; {len(found)} found, so the last is "
            f"wgpu:{len(found) - 1}."
        )
    adapter = found[index]
    info = describe(adapter)
    device = adapter.request_device_sync(
        required_features=features(adapter, info),
        required_limits=required_limits(adapter.limits),
    )
    return build(Device("wgpu", index), info, device)


def features(adapter, info):
    """What is asked for where it is offered: native float16, and timestamps, which only a profile uses."""
    found = ["shader-f16"] if info["shader_f16"] else []
    return found + (["timestamp-query"] if "timestamp-query" in adapter.features else [])


def required_limits(offered):
    """WebGPU's defaults, never more than offered; buffer sizes as large as offered, and more buffers."""
    wanted = os.environ.get("AUTOGRAD_WGPU_LIMITS", "")
    if wanted not in ("", "default"):
        raise ValueError(f'[wgpu] AUTOGRAD_WGPU_LIMITS is "default" or not set; got {wanted!r}')
    limits = {key: min(value, offered[key]) for key, value in DEFAULT_LIMITS.items()}
    limits.update({key: min(value, offered[key]) if wanted else offered[key] for key, value in RAISED_LIMITS.items()})
    if not wanted:
        limits["max-storage-buffers-per-shader-stage"] = min(MOST_BUFFERS, offered["max-storage-buffers-per-shader-stage"])
    return limits


def build(device, info, wgpu_device):
    """Put the parts of a Gpu together around an open wgpu device."""
    counters = dict.fromkeys(
        (
            "ops",
            "dispatches",
            "submits",
            "pipelines",
            "bytes_uploaded",
            "bytes_downloaded",
            "host_ops",
        ),
        0,
    )
    sizes = [wgpu_device.limits[key] for key in RAISED_LIMITS]
    pool = Pool(wgpu_device, *sizes, lambda idents: queue.forget(idents), lambda: queue.drain())
    queue = Queue(wgpu_device, pool, counters, fastpath.choose())
    pipelines = Pipelines(wgpu_device, counters)
    return Gpu(device, info, wgpu_device, pool, queue, pipelines, counters)
