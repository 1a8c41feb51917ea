"""Launchers of the recurrent kernels: a workgroup runs whole sequences for four batch rows, in one dispatch."""

from __future__ import annotations

from typing import Any

from .buffers import Array
from .movement import copy, full

# Backward holds three gradients a unit for four rows: 48 bytes, of the 16 KiB that WebGPU grants a workgroup.
MAX_UNITS = 16384 // 48
ROWS = 4


def _dense(x: Array) -> Array:
    return x if x.is_contiguous() else copy(x)


def _params(g: Array, h0: Array, arrays: tuple) -> list[int]:
    """steps, batch, units, and where each array starts."""
    return [g.shape[0], *h0.shape, 0, *(a.offset for a in arrays)]


class Gru:
    """`Gru()(g [T, B, 3H], h0 [B, H], w [3H, H], b [3H] or None) -> (y [T, B, H], gates [4, T, B, H])`."""

    def __call__(self, g: Array, h0: Array, w: Array, b: Array | None) -> tuple[Array, Array]:
        gpu, (steps, batch, units) = g.gpu, (g.shape[0], *h0.shape)
        y, gates = gpu.empty((steps, batch, units), g.dtype), gpu.empty((4, steps, batch, units), g.dtype)
        if not y.size:
            return y, gates
        # Neighbouring invocations own neighbouring units: turned, the weights they read lie side by side.
        turned = copy(w.view((units, 3 * units), (w.strides[1], w.strides[0]), w.offset))
        bias = _dense(b) if b is not None else full((3 * units,), 0, g.dtype, gpu)
        arrays = (_dense(g), _dense(h0), turned, bias, y, gates)
        _run("gru", gpu, arrays, _params(g, h0, arrays))
        return y, gates


class GruBackward:
    """`GruBackward()(dy, y, gates, h0, w) -> (dg [T, B, 3H], du [T, B, 3H], dh0 [B, H])`."""

    def __call__(self, dy: Array, y: Array, gates: Array, h0: Array, w: Array) -> tuple[Array, Array, Array]:
        gpu, (steps, batch, units) = y.gpu, y.shape
        dg, du = (gpu.empty((steps, batch, 3 * units), y.dtype) for _ in range(2))
        dh0 = gpu.empty((batch, units), y.dtype)
        if not dh0.size:
            return dg, du, dh0
        arrays = (_dense(dy), _dense(y), _dense(gates), _dense(h0), _dense(w), dg, du, dh0)
        _run("gru_backward", gpu, arrays, _params(y, h0, arrays))
        return dg, du, dh0


def _run(name: str, gpu: Any, arrays: tuple, params: list[int]) -> None:
    units = params[2]
    size = min(128, -(-units // 32) * 32)
    declared = f"const SIZE = {size}u;\nconst UNITS = {units}u;\nconst OWN = {-(-units // size)}u;\n"
    kernel = gpu.kernel(name, ("math",), declared, **gpu.alias_types(arrays[0].dtype))
    gpu.run(kernel, arrays, params, -(-params[1] // ROWS))
