"""Distributions of numbers: Normal, Laplace, Uniform, Exponential. All have samples with gradients."""

from __future__ import annotations

import math
from typing import Any

from ..ops.select import where
from ..random import drawn, rand, randn
from ..tensor import Tensor
from .base import Distribution, together


class _Symmetric(Distribution):
    """Around loc, as wide as scale."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = together(type(self).__name__, loc, scale)
        super().__init__(self.loc.shape, (), validate_args)
        self._given = {"loc": self.loc, "scale": self.scale}
        self._require(self.loc == self.loc, "loc must be numbers")
        self._require(self.scale > 0, "scale must be positive")

    mean = property(lambda self: self.loc, doc="loc")
    mode = property(lambda self: self.loc, doc="loc")


class Normal(_Symmetric):
    """The bell curve of mean loc and standard deviation scale.

    p(x) = exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)). loc, scale: numbers or tensors that broadcast; scale > 0.
    """

    stddev = property(lambda self: self.scale, doc="scale")
    variance = property(lambda self: self.scale * self.scale, doc="scale^2")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """loc + scale * z, z standard normal."""
        z = randn(self._shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * z

    def log_prob(self, value: Tensor) -> Tensor:
        """-((x - loc) / scale)^2 / 2 - log(scale) - log(2 pi) / 2"""
        z = (self._checked(value) - self.loc) / self.scale
        return z * z * -0.5 - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """(1 + erf((x - loc) / (scale sqrt 2))) / 2"""
        return (((self._checked(value) - self.loc) / (self.scale * math.sqrt(2))).erf() + 1) * 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """loc + scale sqrt 2 erfinv(2 p - 1)"""
        return self.loc + self.scale * (value * 2 - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        """(1 + log(2 pi)) / 2 + log(scale)"""
        return self.scale.log() + 0.5 * (1 + math.log(2 * math.pi))


class Laplace(_Symmetric):
    """Two exponentials back to back: p(x) = exp(-|x - loc| / scale) / (2 scale), scale > 0."""

    variance = property(lambda self: self.scale * self.scale * 2, doc="2 scale^2")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """loc + scale * (a - b), a and b exponential with rate 1."""
        a, b = (_waits(self, sample_shape, self.loc) for _ in range(2))
        return self.loc + self.scale * (a - b)

    def log_prob(self, value: Tensor) -> Tensor:
        """-|x - loc| / scale - log(2 scale)"""
        return -(self._checked(value) - self.loc).abs() / self.scale - (self.scale * 2).log()

    def cdf(self, value: Tensor) -> Tensor:
        """1/2 - sign(x - loc) (exp(-|x - loc| / scale) - 1) / 2"""
        d = self._checked(value) - self.loc
        return 0.5 - d.sign() * (-d.abs() / self.scale).expm1() * 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """loc - scale sign(p - 1/2) log(1 - 2 |p - 1/2|)"""
        d = value - 0.5
        return self.loc - self.scale * d.sign() * (d.abs() * -2).log1p()

    def entropy(self) -> Tensor:
        """1 + log(2 scale)"""
        return (self.scale * 2).log() + 1


class Uniform(Distribution):
    """p(x) = 1 / (high - low) on [low, high), low < high."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = together("Uniform", low, high)
        super().__init__(self.low.shape, (), validate_args)
        self._given = {"low": self.low, "high": self.high}
        self._require(self.low < self.high, "low must be below high")

    mean = property(lambda self: (self.low + self.high) * 0.5, doc="(low + high) / 2")
    variance = property(lambda self: (self.high - self.low) ** 2 / 12, doc="(high - low)^2 / 12")

    def _supports(self, value: Tensor) -> Tensor:
        return (value >= self.low) & (value <= self.high)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """low + (high - low) * u, u uniform on [0, 1)."""
        u = rand(self._shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + (self.high - self.low) * u

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(high - low) on [low, high), else -inf"""
        value = self._checked(value)
        inside = (value >= self.low) & (value < self.high)
        return where(inside, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """(x - low) / (high - low), held in [0, 1]"""
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """low + (high - low) p"""
        return self.low + (self.high - self.low) * value

    def entropy(self) -> Tensor:
        """log(high - low)"""
        return (self.high - self.low).log()


class Exponential(Distribution):
    """Waiting times: p(x) = rate exp(-rate x) for x >= 0, rate > 0."""

    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = together("Exponential", rate)
        super().__init__(self.rate.shape, (), validate_args)
        self._given = {"rate": self.rate}
        self._require(self.rate > 0, "rate must be positive")

    mean = property(lambda self: self.rate.reciprocal(), doc="1 / rate")
    stddev = property(lambda self: self.rate.reciprocal(), doc="1 / rate")
    variance = property(lambda self: self.rate**-2, doc="1 / rate^2")
    mode = property(lambda self: self.rate.zeros_like(), doc="0")

    def _supports(self, value: Tensor) -> Tensor:
        return value >= 0

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """w / rate, w exponential with rate 1."""
        return _waits(self, sample_shape, self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """log(rate) - rate x"""
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        """1 - exp(-rate x)"""
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """-log(1 - p) / rate"""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """1 - log(rate)"""
        return 1 - self.rate.log()


def _waits(of: Distribution, sample_shape: Any, like: Tensor) -> Tensor:
    """Exponential numbers of rate 1, in a sample's shape and in the dtype and on the device of a parameter."""
    return drawn("standard_exponential", of._shape(sample_shape), like.dtype, like.device, False, None)
