"""Dropout: elements or whole channels are zeroed or saturated at random in training, and the rest scaled to make up for it."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ... import create, dtypes
from ...random import rand
from ...tensor import Tensor

_SATURATION = 1.0507009873554804934193349852946 * 1.6732632423543772848170429916717  # SELU tends to minus this


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); x itself when not training.

    The mask is drawn from the one random stream, so a seed gives the same on both devices.
    """
    check_probability(p, "dropout")
    if not training or p == 0:
        return input
    return _zeroed(input, input.shape, p, inplace)


def check_probability(p: float, op: str) -> None:
    """ValueError unless 0 <= p <= 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"[{op}] p is a probability; got {p}")


def _kept(shape: tuple, p: float) -> np.ndarray:
    return rand(shape, dtype=dtypes.float32, device="cpu").numpy() >= p


def _like(x: Tensor, values: np.ndarray) -> Tensor:
    return create.place(dtypes.converted(values, x.dtype.numpy), x.device)


def _zeroed(x: Tensor, shape: tuple, p: float, inplace: bool) -> Tensor:
    """x times a mask of `shape`, which broadcasts to x's."""
    mask = _like(x, _kept(shape, p) * (1 / (1 - p) if p < 1 else 0.0))
    return x.mul_(mask) if inplace else x * mask


# -- whole channels -------------------------------------------------------------------------------------


def _channels(x: Tensor, batched: bool = True) -> tuple[int, ...]:
    """A number for each channel of [N, C, ...], or of [C, ...]."""
    lead = 2 if batched else 1
    return (*x.shape[:lead], *(1,) * (x.ndim - lead))


def _by_channel(op: str, input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    check_probability(p, op)
    if not training or p == 0:
        return input
    if input.ndim < 1 + batched:
        raise ValueError(f"[{op}] expects a dimension of channels; got {input.shape}. dropout takes any shape")
    return _zeroed(input, _channels(input, batched), p, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of input [N, C, L] or [C, L] 0 with probability p, else x / (1 - p). ValueError for other dimensions.

    Tompson et al.: Efficient Object Localization Using Convolutional Networks (arXiv 1411.4280).
    """
    if input.ndim not in (2, 3):
        raise ValueError(f"[dropout1d] expects [N, C, L] or [C, L]; got {input.shape}. dropout takes any shape")
    return _by_channel("dropout1d", input, p, training, inplace, input.ndim == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As dropout1d over [N, C, H, W]. As in PyTorch three dimensions are [N, C, L], and other numbers are warned about."""
    if input.ndim != 4:
        warnings.warn(f"[dropout2d] expects [N, C, H, W]; {input.shape} is taken as [N, C, ...]", stacklevel=2)
    return _by_channel("dropout2d", input, p, training, inplace, True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As dropout1d over [N, C, D, H, W] or [C, D, H, W]. As in PyTorch, other numbers of dimensions are warned about."""
    if input.ndim not in (4, 5):
        warnings.warn(f"[dropout3d] expects [N, C, D, H, W] or [C, D, H, W]; {input.shape} is taken as [C, ...]", stacklevel=2)
    return _by_channel("dropout3d", input, p, training, inplace, input.ndim == 5)


# -- for SELU -------------------------------------------------------------------------------------------


def _saturated(x: Tensor, shape: tuple, p: float, inplace: bool) -> Tensor:
    """a * x + b where kept, a * -saturation + b where not: mean 0 and variance 1 stay so."""
    if p == 1:
        zero = _like(x, np.zeros(()))
        return x.mul_(zero) if inplace else x * zero
    a = 1 / math.sqrt((_SATURATION**2 * p + 1) * (1 - p))
    kept = _kept(shape, p)
    scale, shift = _like(x, kept * a), _like(x, (p - ~kept) * (a * _SATURATION))
    return x.mul_(scale).add_(shift) if inplace else x * scale + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Each element SELU's lower limit with probability p, then all scaled and shifted so that mean 0 and variance 1 stay.

    x itself when not training. Klambauer et al.: Self-Normalizing Neural Networks (arXiv 1706.02515).
    """
    check_probability(p, "alpha_dropout")
    if not training or p == 0 or not input.numel():
        return input
    return _saturated(input, input.shape, p, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of input [N, C, ...]. ValueError for fewer than two dimensions."""
    check_probability(p, "feature_alpha_dropout")
    if not training or p == 0 or not input.numel():
        return input
    if input.ndim < 2:
        raise ValueError(f"[feature_alpha_dropout] expects [N, C, ...]; got {input.shape}. Use alpha_dropout")
    return _saturated(input, _channels(input), p, inplace)
