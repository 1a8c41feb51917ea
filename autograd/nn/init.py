"""Starting values. Every function fills a tensor in place, from the project's one random stream, and returns it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..create import place
from ..grad_mode import no_grad
from ..random import rand, randn
from ..shapes import numel
from ..tensor import Tensor

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
GAINS |= dict.fromkeys(("conv1d", "conv2d", "conv3d"), 1.0)
GAINS |= dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0)


def _put(t: Tensor, values: Any) -> Tensor:
    with no_grad():
        return t.copy_(values)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform on [a, b)."""
    return _put(tensor, rand(tensor.shape, dtype=_drawn(tensor), device="cpu") * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return _put(tensor, randn(tensor.shape, dtype=_drawn(tensor), device="cpu") * std + mean)


def _drawn(t: Tensor) -> Any:
    """float16 is drawn in float32 and rounded once."""
    if not t.dtype.is_floating_point:
        raise TypeError(f"[init] random values are floating point; got a tensor of {t.dtype}")
    return "float64" if t.dtype.name == "float64" else "float32"


def constant_(tensor: Tensor, val: float) -> Tensor:
    """`val` everywhere."""
    return _put(tensor, val)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _put(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return _put(tensor, 1)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much a nonlinearity shrinks variance, as PyTorch has it: tanh 5/3, relu sqrt(2), leaky_relu sqrt(2/(1+param^2))."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in GAINS:
        raise ValueError(f"[calculate_gain] unknown nonlinearity {nonlinearity!r}; there are leaky_relu, {', '.join(GAINS)}")
    return GAINS[nonlinearity]


def _fans(t: Tensor, op: str) -> tuple[int, int]:
    """(inputs, outputs) of a weight [out, in, *kernel]."""
    if t.ndim < 2:
        raise ValueError(f"[{op}] fan in and fan out need at least 2 dimensions; got shape {t.shape}")
    field = numel(t.shape[2:])
    return t.shape[1] * field, t.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform on ±gain * sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor, "xavier_uniform_")))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with std gain * sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0, gain * math.sqrt(2 / sum(_fans(tensor, "xavier_normal_"))))


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, op: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'[{op}] mode is "fan_in" or "fan_out"; got {mode!r}')
    fan = _fans(tensor, op)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform on ±gain * sqrt(3 / fan), the gain that of leaky_relu with slope a (or of another nonlinearity)."""
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal with std gain / sqrt(fan)."""
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_"))


def orthogonal_(tensor: Tensor, gain: float = 1) -> Tensor:
    """gain times a random matrix [first size, all others] with orthonormal rows or columns, whichever are fewer."""
    if tensor.ndim < 2:
        raise ValueError(f"[orthogonal_] needs at least 2 dimensions; got shape {tensor.shape}")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], numel(tensor.shape[1:])
    drawn = randn(rows, columns, dtype=_drawn(tensor), device="cpu").numpy().astype(np.float64)
    q, r = np.linalg.qr(drawn if rows >= columns else drawn.T)
    q *= np.sign(np.diag(r))  # without it the matrices would not be spread evenly
    q = (q if rows >= columns else q.T) * gain
    return _put(tensor, place(q.reshape(tensor.shape), "cpu").to(tensor.dtype))
