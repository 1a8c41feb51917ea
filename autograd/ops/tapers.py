"""Window functions: weights that fall towards the ends of a frame of a signal. PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import create, dtypes
from ..op import public
from ..tensor import Tensor


def _window(formula: Callable, length: int, periodic: bool, options: dict, op: str) -> Tensor:
    """formula(x), x in [0, 1] over the window; a periodic one leaves out its last point, the first of the next."""
    if length < 0:
        raise ValueError(f"[{op}] the length must not be negative; got {length}")
    if length == 1:
        return create.ones(1, **options)
    d = dtypes.as_dtype(options.pop("dtype") or dtypes.get_default_dtype())
    if not d.is_floating_point:
        raise TypeError(f"[{op}] expects a floating point dtype; got {d}")
    x = np.arange(length) / (length if periodic else length - 1 or 1)
    return create.tensor(formula(x), d, **options)


def _options(dtype: Any, device: Any, requires_grad: bool) -> dict:
    return {"dtype": dtype, "device": device, "requires_grad": requires_grad}


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
                   device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """alpha - beta cos(2 pi x)"""
    options = _options(dtype, device, requires_grad)
    return _window(lambda x: alpha - beta * np.cos(2 * math.pi * x), window_length, periodic, options, "hamming_window")


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                requires_grad: bool = False) -> Tensor:  # fmt: skip
    """sin(pi x)^2"""
    options = _options(dtype, device, requires_grad)
    return _window(lambda x: np.sin(math.pi * x) ** 2, window_length, periodic, options, "hann_window")


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)"""
    options, turn = _options(dtype, device, requires_grad), 2 * math.pi
    return _window(lambda x: 0.42 - 0.5 * np.cos(turn * x) + 0.08 * np.cos(2 * turn * x), window_length, periodic, options,
                   "blackman_window")  # fmt: skip


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """1 - |2 x - 1|"""
    options = _options(dtype, device, requires_grad)
    return _window(lambda x: 1 - np.abs(2 * x - 1), window_length, periodic, options, "bartlett_window")


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, device: Any = None,
                  requires_grad: bool = False) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta)"""
    options = _options(dtype, device, requires_grad)
    return _window(lambda x: np.i0(beta * np.sqrt(1 - (2 * x - 1) ** 2)) / np.i0(beta), window_length, periodic, options,
                   "kaiser_window")  # fmt: skip


for _function in (hamming_window, hann_window, blackman_window, bartlett_window, kaiser_window):
    public(_function, method=False)
