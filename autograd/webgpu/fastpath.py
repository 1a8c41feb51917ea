"""Binding and recording: through wgpu's own C handles, or through its public objects.

wgpu's Python wrappers cost ten times what the C call behind them costs, so the default path
calls the C functions that those wrappers call. AUTOGRAD_WGPU_SAFE=1 takes the public API.
"""

import numpy as np
import wgpu

from ..interrupts import held
from .buffers import failure
from .shaders import SLOT_BYTES
from .switches import switched

REFUSED = "[wgpu] the device refused a download"


def choose():
    """The recorder that the environment asks for."""
    return SafeRecorder() if switched("AUTOGRAD_WGPU_SAFE", False) else FastRecorder()


class SafeRecorder:
    """Binds, records and reads with wgpu's documented objects only."""

    def wait(self, device, target, nbytes):
        """Map a buffer once all that was submitted is done."""
        try:
            target.map_async("READ", 0, nbytes).sync_wait()
        except AttributeError as error:  # a device that was destroyed has no poller
            raise failure(REFUSED, "the device is lost") from error
        except (wgpu.GPUError, RuntimeError) as error:
            raise failure(REFUSED, error) from error

    def take(self, device, target, nbytes, take):
        """take(the first bytes of a mapped buffer as uint8); the buffer is unmapped."""
        try:
            device.create_bind_group_layout(entries=[])  # of a lost device even the mapped memory is gone
        except wgpu.GPUError as error:
            raise failure(REFUSED, error) from error
        try:
            return take(np.frombuffer(target.read_mapped(0, nbytes, copy=False), np.uint8))
        finally:
            target.unmap()

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

    def __init__(self):
        try:
            from wgpu.backends.wgpu_native import _api

            lib, self.ffi = _api.lib, _api.ffi
            self.errors, self.text_of = _api.error_handler, _api.from_c_string_view
            self.whole = lib.WGPU_WHOLE_SIZE
            self.create_bind_group = lib.wgpuDeviceCreateBindGroup
            self.release_bind_group = lib.wgpuBindGroupRelease
            self.set_pipeline = lib.wgpuComputePassEncoderSetPipeline
            self.set_bind_group = lib.wgpuComputePassEncoderSetBindGroup
            self.dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
            self.map, self.unmap = lib.wgpuBufferMapAsync, lib.wgpuBufferUnmap
            self.mapped_range, self.poll = lib.wgpuBufferGetConstMappedRange, lib.wgpuDevicePoll
            self.create_layout, self.release_layout = lib.wgpuDeviceCreateBindGroupLayout, lib.wgpuBindGroupLayoutRelease
            self.no_entries = self.ffi.new("WGPUBindGroupLayoutDescriptor *")
            self.mapping(lib.WGPUMapMode_Read, lib.WGPUCallbackMode_AllowProcessEvents, lib.WGPUMapAsyncStatus_Success)
        except (ImportError, AttributeError) as error:
            raise RuntimeError(
                "[wgpu] this wgpu release moved the handles that the fast path records "
                f"through ({error}); set AUTOGRAD_WGPU_SAFE=1 or install wgpu>=0.32,<0.33."
            ) from error

    def mapping(self, mode, callback_mode, success):
        """How a buffer is mapped: the callback enters in a list what went wrong, None where nothing did."""
        ffi, text_of, self.map_mode, self.callback_mode = self.ffi, self.text_of, mode, callback_mode
        # Until the library called back, even if nobody waits any more, it may use these.
        self.asked = asked = {}

        def called(status, message, handle, _):
            ffi.from_handle(handle).append(None if status == success else f"{text_of(message)} (status {status})")
            asked.pop(handle, None)

        self.called = ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", called)

    def wait(self, device, target, nbytes):
        """Map a buffer once all that was submitted is done.

        The waiting thread polls: wgpu's own wait wakes a second one, which costs more than a small kernel. Ctrl-C
        comes when the device has done what was submitted.
        """
        said = []
        handle, how = self.ffi.new_handle(said), self.ffi.new("WGPUBufferMapCallbackInfo *")
        how.mode, how.callback, how.userdata1 = self.callback_mode, self.called, handle
        self.asked[handle] = said
        try:
            with held:  # an exception in called(), where Ctrl-C would arrive, is lost, and the loop would not end
                self.checked(self.map, target._internal, self.map_mode, 0, nbytes, how[0])
                while not said:
                    self.checked(self.poll, device._internal, True, self.ffi.NULL)
        except RuntimeError as error:
            raise failure(REFUSED, error) from error
        if said[0] is not None:
            raise failure(REFUSED, said[0])

    def take(self, device, target, nbytes, take):
        """take(the first bytes of a mapped buffer as uint8); the buffer is unmapped."""
        self.check_alive(device._internal)
        buffer = target._internal
        try:
            return take(np.frombuffer(self.ffi.buffer(self.mapped_range(buffer, 0, nbytes), nbytes), np.uint8))
        finally:
            self.unmap(buffer)

    def check_alive(self, device):
        """Raise where the device was destroyed: its mapped memory is gone, and to ask for it would end the process.

        An empty layout asks for nothing else. Commands that are finished and not submitted would tell as well, but the
        library (wgpu 0.32) keeps some 90 KB of them after each submit.
        """
        try:
            self.release_layout(self.checked(self.create_layout, device, self.no_entries))
        except RuntimeError as error:
            raise failure(REFUSED, error) from error

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
