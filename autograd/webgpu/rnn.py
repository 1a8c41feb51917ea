"""Launchers of the recurrent kernels: a workgroup runs whole sequences for four batch rows, in one dispatch."""

from __future__ import annotations

from typing import Any

from .buffers import Array
from .layout import LONGEST_LOOP
from .movement import Pad, copy, full

# Backward shares three gradients a unit for four rows: 48 bytes, of the 16 KiB that WebGPU grants a workgroup.
MAX_UNITS = 16384 // 48 // 4 * 4
ROWS = 4
_pad = Pad()


def _dense(x: Array) -> Array:
    return x if x.is_contiguous() else copy(x)


def _aligned(x: Array, dims: int = 1) -> Array:
    """x dense, its last `dims` filled up to a multiple of four and its start on one: what vec4 loads need."""
    short = -x.shape[-1] % 4
    if short:
        return _pad(x, [(0, 0)] * (len(x.shape) - dims) + [(0, -n % 4) for n in x.shape[-dims:]])
    return x if x.is_contiguous() and x.offset % 4 == 0 else copy(x)


class Gru:
    """`Gru()(g [T, B, 3H], h0 [B, H], w [3H, H], b [3H] or None) -> (y [T, B, H], gates [4, T, B, H])`."""

    def __call__(self, g: Array, h0: Array, w: Array, b: Array | None) -> tuple[Array, Array]:
        gpu, steps, (batch, units) = g.gpu, g.shape[0], h0.shape
        y, gates = gpu.empty((steps, batch, units), g.dtype), gpu.empty((4, steps, batch, units), g.dtype)
        if not y.size:
            return y, gates
        # Neighbouring invocations own neighbouring units: turned, the weights they read lie side by side.
        down, across = w.strides
        turned = _turned(w.view((3, units, units), (units * down, down, across), w.offset))
        b = full((3, units), 0, g.dtype, gpu) if b is None else b.view((3, units), (units * b.strides[0], b.strides[0]), b.offset)
        arrays = (_dense(g), _dense(h0), turned, _aligned(b), y, gates)
        _run("gru", gpu, arrays, (steps, batch, units))
        return y, gates


class GruBackward:
    """`GruBackward()(dy, y, gates, h0, w) -> (dg [T, B, 3H], du [T, B, 3H], dh0 [B, H])`."""

    def __call__(self, dy: Array, y: Array, gates: Array, h0: Array, w: Array) -> tuple[Array, Array, Array]:
        gpu, (steps, batch, units) = y.gpu, y.shape
        dg, du = (gpu.empty((steps, batch, 3 * units), y.dtype) for _ in range(2))
        dh0 = gpu.empty((batch, units), y.dtype)
        if not dh0.size:
            return dg, du, dh0
        down, across = w.strides
        square = _aligned(w.view((3, units, units), (units * down, down, across), w.offset), 2)
        arrays = (_dense(dy), _dense(y), _dense(gates), _dense(h0), square, dg, du, dh0)
        _run("gru_backward", gpu, arrays, (steps, batch, units))
        return dg, du, dh0


def _turned(w: Array) -> Array:
    """[3, H, H] with unit and input exchanged, filled up: [UNITS, 3, UNITS]."""
    if w.shape[-1] % 4:
        w = _aligned(w, 2)
    gates, units, inputs = w.strides
    return copy(w.view((w.shape[2], 3, w.shape[1]), (inputs, gates, units), w.offset))


def _run(name: str, gpu: Any, arrays: tuple, sizes: tuple[int, int, int]) -> None:
    """As many dispatches as software Vulkan's limit on loops asks for (one on a GPU), forward or backward in time.

    Sizes that shape the kernel (units, owned quads) are constants: few models have many of them.
    """
    steps, batch, units = sizes
    quads = -(-units // 4)
    size = min(64, -(-quads // 16) * 16)
    own = -(-quads // size)
    declared = f"const SIZE = {size}u;\nconst UNITS = {quads * 4}u;\nconst OWN = {own}u;\n"
    kernel = gpu.kernel(name, ("math",), declared, **gpu.alias_types(arrays[0].dtype))
    passes = own * ((3 if name == "gru_backward" else 1) * quads + 64)  # of all loops, a step
    piece = max(3 * LONGEST_LOOP // passes, 1) if gpu.info["type"] == "CPU" else steps
    begins = range(0, steps, piece)
    for begin in reversed(begins) if name == "gru_backward" else begins:
        words = [*sizes, begin, min(begin + piece, steps), *(a.offset for a in arrays)]
        gpu.run(kernel, arrays, words, -(-batch // ROWS))
