"""Dropout in its forms, noise, and penalties on activities.

They act in training alone, and draw from the engine's one stream; with `seed`, from a stream of the layer's own, which
goes on from call to call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import create
from ...nn import functional as F
from ...random import Generator, drawing_from, rand_like, randn_like
from ...tensor import Tensor
from ..layer import InputSpec
from ..regularizers import L1L2
from .base import Elementwise, checked_format


class Noise(Elementwise):
    """Base of layers that are random in training: subclasses write disturb(x), and `amount` names what 0 switches off."""

    amount = "rate"

    def __init__(self, arguments: dict, **kwargs: Any):
        super().__init__(arguments, **kwargs)
        size = getattr(self, self.amount)
        if not isinstance(size, int | float) or not 0 <= size <= 1:
            raise ValueError(f"[{type(self).__name__}] {self.amount} is a number in [0, 1]; got {size!r}")
        if self.seed is not None and (not isinstance(self.seed, int) or isinstance(self.seed, bool)):
            raise ValueError(f"[{type(self).__name__}] seed is a whole number or None; got {self.seed!r}")
        self._generator = None if self.seed is None else Generator().manual_seed(self.seed)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """disturb(x) in training, else x."""
        if not training or not getattr(self, self.amount):
            return inputs
        with drawing_from(self._generator):
            return self.disturb(inputs)

    def disturb(self, x: Tensor) -> Tensor:
        """x with noise."""
        raise NotImplementedError(f"[{type(self).__name__}] has no disturb()")


def _noise_shape(value: Any, layer: str) -> tuple | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or any(n is not None and (not isinstance(n, int) or n < 1) for n in value):
        raise ValueError(f"[{layer}] noise_shape holds positive whole numbers and None; got {value!r}")
    return tuple(value)


def _like(x: Tensor, shape: tuple | None) -> Tensor:
    """Ones in a noise shape, None in it standing for x's size."""
    if shape is None:
        return x.ones_like()
    if len(shape) != x.ndim:
        raise ValueError(f"[Dropout] noise_shape has one size a dimension of the input; got {shape} for {x.shape}")
    return create.ones(*(n if s is None else s for s, n in zip(shape, x.shape)), dtype=x.dtype, device=x.device)


class Dropout(Noise):
    """In training each element is 0 with probability `rate`, else x / (1 - rate).

    noise_shape: the shape of what is drawn, which broadcasts to x; None in it stands for the input's size.
    """

    def __init__(self, rate: float, noise_shape: Sequence | None = None, seed: int | None = None, **kwargs: Any):
        noise_shape = _noise_shape(noise_shape, "Dropout")
        super().__init__(locals(), **kwargs)

    def disturb(self, x: Tensor) -> Tensor:
        """x times 0 or 1 / (1 - rate)."""
        if self.noise_shape is None:
            return F.dropout(x, self.rate)
        return x * F.dropout(_like(x, self.noise_shape), self.rate)


class _SpatialDropout(Noise):
    """Dropout of whole channels."""

    def disturb(self, x: Tensor) -> Tensor:
        """x with channels at 0."""
        first = getattr(self, "data_format", None) == "channels_first"
        shape = (None, None, *(1,) * (x.ndim - 2)) if first else (None, *(1,) * (x.ndim - 2), None)
        return x * F.dropout(_like(x, shape), self.rate)


class SpatialDropout1D(_SpatialDropout):
    """Dropout that keeps or drops a channel of x [N, T, C] for all steps at once (Tompson et al. 2014)."""

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=3)


class SpatialDropout2D(_SpatialDropout):
    """Dropout that keeps or drops a whole channel of x [N, H, W, C], or [N, C, H, W] for channels_first."""

    def __init__(self, rate: float, data_format: str | None = None, seed: int | None = None, **kwargs: Any):
        data_format = checked_format(data_format, "SpatialDropout2D")
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(ndim=4)


class GaussianDropout(Noise):
    """In training y = x * a normal number of mean 1 and variance rate / (1 - rate) (Srivastava et al. 2014)."""

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        if rate == 1:
            raise ValueError("[GaussianDropout] rate must be below 1: the variance is rate / (1 - rate); got 1")

    def disturb(self, x: Tensor) -> Tensor:
        """See the class."""
        return x * (randn_like(x) * math.sqrt(self.rate / (1 - self.rate)) + 1)


class GaussianNoise(Noise):
    """In training y = x + a normal number of mean 0 and standard deviation stddev."""

    amount = "stddev"

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any):
        super().__init__(locals(), **kwargs)

    def disturb(self, x: Tensor) -> Tensor:
        """See the class."""
        return x + randn_like(x) * self.stddev


class AlphaDropout(Noise):
    """Dropout that keeps mean 0 and variance 1 after selu: dropped elements become selu's lower limit, then a x + b.

    a = ((1 - rate) (1 + rate l^2))^(-1/2), b = -a l rate, l = -1.7581 (Klambauer et al. 2017).
    """

    def __init__(self, rate: float, noise_shape: Sequence | None = None, seed: int | None = None, **kwargs: Any):
        noise_shape = _noise_shape(noise_shape, "AlphaDropout")
        super().__init__(locals(), **kwargs)
        if rate == 1:
            raise ValueError("[AlphaDropout] rate must be below 1: the scale divides by 1 - rate; got 1")

    def disturb(self, x: Tensor) -> Tensor:
        """See the class."""
        low = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946
        kept = (rand_like(_like(x, self.noise_shape)) >= self.rate).to(x.dtype)
        a = ((1 - self.rate) * (1 + self.rate * low**2)) ** -0.5
        return (x * kept + (1 - kept) * low) * a - a * low * self.rate


class ActivityRegularization(Elementwise):
    """y = x, with l1 sum(|x|) + l2 sum(x^2), divided by the batch size, in `losses`."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any):
        super().__init__(locals(), activity_regularizer=L1L2(l1=l1, l2=l2), **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """x as it is."""
        return inputs

    def get_config(self) -> dict:
        """l1 and l2, which make the activity_regularizer."""
        config = super().get_config()
        del config["activity_regularizer"]
        return config
