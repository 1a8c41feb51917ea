"""Binding and recording: through wgpu's own C handles, or through its public objects.

wgpu's Python wrappers cost ten times what the C call behind them costs, so the default path
calls the C functions that those wrappers call. AUTOGRAD_WGPU_SAFE=1 takes the public API.
"""

import os

from .shaders import SLOT_BYTES


def choose():
    """The recorder that the environment asks for."""
    if os.environ.get("AUTOGRAD_WGPU_SAFE", "") not in ("", "0"):
        return SafeRecorder()
    return FastRecorder()


class SafeRecorder:
    """Binds and records with wgpu's documented objects only."""

    map_mode = "READ"

    def bind(self, device, layout, arena, buffers):
        """A bind group: the arena's current slot, then (buffer, start, bytes or None: all of it)."""
        slot = {"buffer": arena, "offset": 0, "size": SLOT_BYTES}
        entries = [{"binding": 0, "resource": slot}]
        for binding, (buffer, start, nbytes) in enumerate(buffers, start=1):
            part = {"buffer": buffer, "offset": start}
            entries.append({"binding": binding, "resource": part if nbytes is None else {**part, "size": nbytes}})
        return device.create_bind_group(layout=layout, entries=entries)

    def record(self, compute_pass, work, first_slot):
        """Put every dispatch of `work` into an open compute pass."""
        offset = first_slot * SLOT_BYTES
        for kernel, group, x, y, z in work:
            compute_pass.set_pipeline(kernel.pipeline)
            compute_pass.set_bind_group(0, group, [offset])
            compute_pass.dispatch_workgroups(x, y, z)
            offset += SLOT_BYTES


class FastRecorder:
    """Binds and records with the library's C functions: three calls a dispatch."""

    # What wgpu's own read_buffer maps with: READ submits an empty batch first.
    map_mode = "READ_NOSYNC"

    def __init__(self):
        try:
            from wgpu.backends.wgpu_native import _api

            lib, self.ffi = _api.lib, _api.ffi
            self.errors = _api.error_handler
            self.whole = lib.WGPU_WHOLE_SIZE
            self.create_bind_group = lib.wgpuDeviceCreateBindGroup
            self.release_bind_group = lib.wgpuBindGroupRelease
            self.set_pipeline = lib.wgpuComputePassEncoderSetPipeline
            self.set_bind_group = lib.wgpuComputePassEncoderSetBindGroup
            self.dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        except (ImportError, AttributeError) as error:
            raise RuntimeError(
                "[wgpu] this wgpu release moved the handles that the fast path records "
                f"through ({error}); set AUTOGRAD_WGPU_SAFE=1 or install wgpu>=0.32,<0.33."
            ) from error

    def checked(self, call, *args):
        """Call, and raise what the library reports meanwhile: else it would only be logged."""
        self.errors.capture("autograd")
        try:
            result = call(*args)
        finally:
            problem = self.errors.release("autograd")
        if problem is not None:
            raise RuntimeError(problem[1])
        return result

    def bind(self, device, layout, arena, buffers):
        """A bind group's handle: the arena's current slot, then (buffer, start, bytes or None: all of it)."""
        entries = self.ffi.new("WGPUBindGroupEntry[]", len(buffers) + 1)
        entries[0].buffer = arena._internal
        entries[0].size = SLOT_BYTES
        for binding, (buffer, start, nbytes) in enumerate(buffers, start=1):
            entry = entries[binding]
            entry.binding = binding
            entry.buffer = buffer._internal
            entry.offset = start
            entry.size = self.whole if nbytes is None else nbytes
        wanted = self.ffi.new("WGPUBindGroupDescriptor *")
        wanted.layout = layout._internal
        wanted.entries = entries
        wanted.entryCount = len(entries)
        handle = self.checked(self.create_bind_group, device._internal, wanted)
        return self.ffi.gc(handle, self.release_bind_group)

    def record(self, compute_pass, work, first_slot):
        """Put every dispatch of `work` into an open compute pass."""
        self.checked(self._record, compute_pass._internal, work, first_slot)

    def _record(self, handle, work, first_slot):
        set_pipeline, set_bind_group = self.set_pipeline, self.set_bind_group
        dispatch = self.dispatch
        offsets = self.ffi.new("uint32_t[1]")
        offset, last = first_slot * SLOT_BYTES, None
        for kernel, group, x, y, z in work:
            if kernel is not last:
                set_pipeline(handle, kernel.pipeline._internal)
                last = kernel
            offsets[0] = offset
            set_bind_group(handle, 0, group, 1, offsets)
            dispatch(handle, x, y, z)
            offset += SLOT_BYTES
