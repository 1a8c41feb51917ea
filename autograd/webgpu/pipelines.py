"""Compiled kernels and bind-group layouts, each made once per device."""

import threading

import wgpu

from .buffers import failure
from .layout import Plans
from .shaders import SLOT_BYTES, Source, access

MAX_KERNELS = 512  # of software Vulkan each takes megabytes
BINDING_TYPES = {"u": "uniform", "r": "read-only-storage", "w": "storage"}


class Layout:
    """One explicit bind-group layout; kernels with the same bindings share it."""

    __slots__ = ("id", "access", "group_layout", "pipeline_layout")

    def __init__(self, device, ident, pattern):
        entries = []
        for binding, kind in enumerate(pattern):
            buffer = {"type": BINDING_TYPES[kind]}
            if kind == "u":
                buffer.update(has_dynamic_offset=True, min_binding_size=SLOT_BYTES)
            entries.append(
                {
                    "binding": binding,
                    "visibility": wgpu.ShaderStage.COMPUTE,
                    "buffer": buffer,
                }
            )
        self.id = ident
        self.access = pattern
        self.group_layout = device.create_bind_group_layout(entries=entries)
        self.pipeline_layout = device.create_pipeline_layout(
            bind_group_layouts=[self.group_layout]
        )


class Kernel:
    """A compiled pipeline, its name for messages, and its layout."""

    __slots__ = ("name", "pipeline", "layout", "source")

    def __init__(self, name, pipeline, layout, source):
        self.name = name
        self.pipeline = pipeline
        self.layout = layout
        self.source = source


class Pipelines:
    """Kernels by (file, libs, declarations, packing), layouts by their access pattern."""

    def __init__(self, device, counters):
        self.device = device
        self.counters = counters
        self.kernels = {}
        self.compiled = 0
        self.lock = threading.Lock()
        self.layouts = {}

    def get(self, name, libs=(), extra="", packed=()):
        """The kernel of wgsl/<name>.wgsl with these libs and declarations appended; see Source."""
        return self.cached((name, libs, extra, packed), lambda: Source(name, libs, extra, packed))

    def cached(self, key, make_source):
        """The kernel under this key; the one that was asked for longest ago is dropped when there are very many.

        Launchers' plans hold on to what they launch. They are forgotten from time to time: what is in use is asked for
        again, and what is not is dropped in truth.
        """
        with self.lock:
            kernel = self.kernels.pop(key, None)
            if kernel is None:
                kernel = self._compile(make_source())
                self.compiled += 1
                if len(self.kernels) >= MAX_KERNELS:
                    del self.kernels[next(iter(self.kernels))]
                if self.compiled % (MAX_KERNELS // 2) == 0:
                    Plans.forget_all()
            self.kernels[key] = kernel  # behind all others
            return kernel

    def _compile(self, source):
        text = source.text()
        try:
            layout = self._layout(access(text))
            module = self.device.create_shader_module(label=source.name, code=text)
            pipeline = self.device.create_compute_pipeline(
                label=source.name,
                layout=layout.pipeline_layout,
                compute={"module": module, "entry_point": "main"},
            )
        except wgpu.GPUError as error:
            raise failure(f"[{source.name}] its kernel did not compile", source.blame(str(error))) from error
        self.counters["pipelines"] += 1
        return Kernel(source.name, pipeline, layout, source)

    def _layout(self, pattern):
        layout = self.layouts.get(pattern)
        if layout is None:
            layout = Layout(self.device, len(self.layouts), pattern)
            self.layouts[pattern] = layout
        return layout
