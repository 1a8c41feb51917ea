"""Starting values. Every function fills a tensor in place, from the project's one random stream, and returns it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..create import place
from ..grad_mode import no_grad
from ..random import Generator, rand, randn
from ..shapes import numel
from ..tensor import Tensor

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
GAINS |= dict.fromkeys(("conv1d", "conv2d", "conv3d"), 1.0)
GAINS |= dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0)


def _put(t: Tensor, values: Any) -> Tensor:
    with no_grad():
        return t.copy_(values)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on [a, b)."""
    return _put(tensor, rand(tensor.shape, generator=generator, dtype=_drawn(tensor), device="cpu") * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return _put(tensor, randn(tensor.shape, generator=generator, dtype=_drawn(tensor), device="cpu") * std + mean)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:  # fmt: skip
    """Normal with the given mean and standard deviation, of which only what lies in [a, b] (not in units of std) is kept.

    Drawn by the inverse of the distribution function: x = mean + std * sqrt(2) * erfinv(u), u uniform between the bounds'.
    """
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2))) for bound in (a, b))
    u = rand(tensor.shape, generator=generator, dtype="float64", device="cpu") * (high - low) + low
    values = (u.clamp(-1 + 1e-15, 1 - 1e-15).erfinv() * (std * math.sqrt(2)) + mean).clamp(a, b)
    return _put(tensor, values.to(_drawn(tensor)))


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


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform on ±gain * sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor, "xavier_uniform_")))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with std gain * sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0, gain * math.sqrt(2 / sum(_fans(tensor, "xavier_normal_"))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, op: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'[{op}] mode is "fan_in" or "fan_out"; got {mode!r}')
    fan = _fans(tensor, op)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:  # fmt: skip
    """Uniform on ±gain * sqrt(3 / fan), the gain that of leaky_relu with slope a (or of another nonlinearity)."""
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:  # fmt: skip
    """Normal with std gain / sqrt(fan)."""
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_"), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """gain times a random matrix [first size, all others] with orthonormal rows or columns, whichever are fewer."""
    if tensor.ndim < 2:
        raise ValueError(f"[orthogonal_] needs at least 2 dimensions; got shape {tensor.shape}")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], numel(tensor.shape[1:])
    drawn = randn(rows, columns, generator=generator, dtype=_drawn(tensor), device="cpu").numpy().astype(np.float64)
    q, r = np.linalg.qr(drawn if rows >= columns else drawn.T)
    q *= np.sign(np.diag(r))  # without it the matrices would not be spread evenly
    q = (q if rows >= columns else q.T) * gain
    return _put(tensor, place(q.reshape(tensor.shape), "cpu").to(tensor.dtype))


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix, ones on the diagonal of a matrix of any sizes."""
    if tensor.ndim != 2:
        raise ValueError(f"[eye_] expects a matrix; got shape {tensor.shape}")
    return _put(tensor, place(np.eye(*tensor.shape), "cpu").to(tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A weight [out, in, *kernel] of 1 to 3 kernel dimensions that passes its input channels on, within each group."""
    if not 3 <= tensor.ndim <= 5:
        raise ValueError(f"[dirac_] expects 3 to 5 dimensions; got shape {tensor.shape}")
    if tensor.shape[0] % groups:
        raise ValueError(f"[dirac_] groups must divide the first size; got {groups} for {tensor.shape}")
    values = np.zeros(tensor.shape)
    each = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            values[(group * each + channel, channel, *middle)] = 1
    return _put(tensor, place(values, "cpu").to(tensor.dtype))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """A matrix of normal numbers with standard deviation std, of which that share in every column, rounded up, is 0."""
    if tensor.ndim != 2:
        raise ValueError(f"[sparse_] expects a matrix; got shape {tensor.shape}")
    rows, columns = tensor.shape
    order = rand(rows, columns, generator=generator, device="cpu").argsort(0)
    kept = randn(rows, columns, generator=generator, dtype=_drawn(tensor), device="cpu") * std
    return _put(tensor, kept.masked_fill(order < math.ceil(sparsity * rows), 0))
