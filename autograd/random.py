"""Random numbers: one seeded stream for everything, the same on every device.

The stream is Philox, a counter-based generator; numbers are drawn on the host in float32 (float64 for float64
tensors) and uploaded, so that a seed gives the same numbers wherever the tensor lives.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from . import dtypes, shapes
from .create import place
from .tensor import Tensor

_lock = threading.Lock()
_generator = np.random.Generator(np.random.Philox(0))


def manual_seed(seed: int) -> None:
    """Start the stream anew: the same seed gives the same numbers on both devices."""
    global _generator
    with _lock:
        _generator = np.random.Generator(np.random.Philox(int(seed) & (2**64 - 1)))


def get_rng_state() -> dict:
    """The stream's position, as plain data (see set_rng_state)."""
    with _lock:
        state = _generator.bit_generator.state
    return {k: _plain(v) for k, v in state.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def set_rng_state(state: dict) -> None:
    """Put the stream where get_rng_state found it."""
    inner = {k: np.array(v, dtype=np.uint64) for k, v in state["state"].items()}
    restored = {**state, "state": inner, "buffer": np.array(state["buffer"], dtype=np.uint64)}
    with _lock:
        _generator.bit_generator.state = restored


def _draw(method: str, size: tuple, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()
    if not d.is_floating_point:
        raise TypeError(f"[{method}] draws floating point numbers; got dtype {d}. Use randint for integers")
    kind = np.float64 if d is dtypes.float64 else np.float32
    with _lock:
        array = getattr(_generator, method)(size=size, dtype=kind)
    return place(dtypes.converted(np.asarray(array), d.numpy, copy=False), device, requires_grad)


def rand(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform on [0, 1)."""
    return _draw("random", shapes.shape_args(size, "rand"), dtype, device, requires_grad)


def randn(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal."""
    return _draw("standard_normal", shapes.shape_args(size, "randn"), dtype, device, requires_grad)


def rand_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform on [0, 1), in x's shape, dtype and device."""
    return rand(x.shape, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def randn_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal, in x's shape, dtype and device."""
    return randn(x.shape, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def randint(low: int, high: Any = None, size: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Whole numbers on [low, high): randint(high, size) or randint(low, high, size). int64."""
    if size is None:
        low, high, size = 0, low, high
    if high <= low:
        raise ValueError(f"[randint] high must be above low; got low={low}, high={high}")
    shape = shapes.shape_args((size,), "randint")
    with _lock:
        array = _generator.integers(low, high, size=shape)
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.int64
    return place(dtypes.converted(np.asarray(array), d.numpy), device)


def randperm(n: int, device: Any = None) -> Tensor:
    """0 … n-1 in random order. int64."""
    with _lock:
        array = _generator.permutation(n)
    return place(np.asarray(array, dtype=np.int64), device)
