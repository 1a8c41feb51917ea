"""Starting values of weights, by Keras' names, fans and bounds. Drawn on the host from the engine's one stream.

An initializer is called with (shape, dtype=None) and gives a CPU Tensor; any function of these will do. seed: a stream of
its own that starts anew at every call, so that one object gives the same values each time (None: the common stream).
Sources: Keras' documentation; Glorot and Bengio 2010; He et al. 2015; Saxe et al. 2014 (orthogonal).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..create import from_numpy
from ..dtypes import as_dtype, converted, get_default_dtype
from ..random import Generator, drawing_from, rand, randn
from ..tensor import Tensor
from . import naming

_TRUNCATED_STD = 0.87962566103423978  # the deviation of a standard normal that is cut at ±2


class Initializer(naming.Configured):
    """Base: subclasses write draw(shape), a float64 NumPy array."""

    seed: int | None = None

    def draw(self, shape: tuple) -> np.ndarray:
        """The values."""
        raise NotImplementedError(f"[initializers] {type(self).__name__} has no draw()")

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        d = get_default_dtype() if dtype is None else as_dtype(dtype)
        own = contextlib.nullcontext() if self.seed is None else drawing_from(Generator().manual_seed(self.seed))
        with own:
            return from_numpy(converted(np.asarray(self.draw(tuple(shape))), d.numpy))


def _normal(shape: tuple) -> np.ndarray:
    return randn(shape, dtype="float64", device="cpu").numpy()


def _uniform(shape: tuple, low: float, high: float) -> np.ndarray:
    return rand(shape, dtype="float64", device="cpu").numpy() * (high - low) + low


def _truncated(shape: tuple) -> np.ndarray:
    """A standard normal whose values beyond ±2 are drawn again."""
    values = np.array(_normal(shape))
    while (far := np.abs(values) > 2).any():
        values[far] = _normal((int(far.sum()),))
    return values


class Zeros(Initializer):
    """Zeros."""

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        return np.zeros(shape)


class Ones(Initializer):
    """Ones."""

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        return np.ones(shape)


class Constant(Initializer):
    """`value` everywhere: a number, or an array that broadcasts to the shape."""

    def __init__(self, value: Any = 0.0):
        self.value = value

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        return np.array(np.broadcast_to(np.asarray(self.value), shape))


class RandomNormal(Initializer):
    """Normal(mean, stddev)."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        return _normal(shape) * self.stddev + self.mean


class TruncatedNormal(RandomNormal):
    """Normal(mean, stddev) without the values beyond two deviations, which are drawn again."""

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        return _truncated(shape) * self.stddev + self.mean


class RandomUniform(Initializer):
    """Uniform on [minval, maxval)."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        return _uniform(shape, self.minval, self.maxval)


def fans(shape: tuple) -> tuple[int, int]:
    """(inputs, outputs) of a weight [*kernel, in, out]; n, n of [n]; 1, 1 of a scalar."""
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class VarianceScaling(Initializer):
    """Variance scale / n, n the "fan_in", "fan_out" or "fan_avg" of the shape.

    distribution: "truncated_normal" (of that variance after the cut), "untruncated_normal" or "uniform" on
    ±sqrt(3 scale / n). ValueError for a scale that is not positive and for other names.
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", seed: int | None = None):
        if scale <= 0:
            raise ValueError(f"[VarianceScaling] scale must be positive; got {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f'[VarianceScaling] mode is "fan_in", "fan_out" or "fan_avg"; got {mode!r}')
        if distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
            raise ValueError(
                f'[VarianceScaling] distribution is "truncated_normal", "untruncated_normal" or "uniform"; got {distribution!r}'
            )
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    @classmethod
    def from_config(cls, config: Mapping) -> Any:
        """The initializer of a config; Keras' own also name input_axes and output_axes, None: those of fans()."""
        return cls(**{k: v for k, v in config.items() if k not in ("input_axes", "output_axes") or v is not None})

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        fan_in, fan_out = fans(shape)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, n)
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return _uniform(shape, -limit, limit)
        if self.distribution == "untruncated_normal":
            return _normal(shape) * math.sqrt(variance)
        return _truncated(shape) * (math.sqrt(variance) / _TRUNCATED_STD)


class _Scaled(VarianceScaling):
    """A VarianceScaling with its numbers fixed."""

    numbers: tuple[float, str, str] = (1.0, "fan_in", "uniform")

    def __init__(self, seed: int | None = None):
        super().__init__(*self.numbers, seed)


class GlorotUniform(_Scaled):
    """Uniform on ±sqrt(6 / (fan_in + fan_out)): Keras' default for kernels."""

    numbers = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Scaled):
    """Truncated normal of variance 2 / (fan_in + fan_out)."""

    numbers = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Scaled):
    """Uniform on ±sqrt(6 / fan_in)."""

    numbers = (2.0, "fan_in", "uniform")


class HeNormal(_Scaled):
    """Truncated normal of variance 2 / fan_in."""

    numbers = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Scaled):
    """Uniform on ±sqrt(3 / fan_in)."""

    numbers = (1.0, "fan_in", "uniform")


class LecunNormal(_Scaled):
    """Truncated normal of variance 1 / fan_in."""

    numbers = (1.0, "fan_in", "truncated_normal")


class Orthogonal(Initializer):
    """gain times a random matrix [all sizes but the last, last] with orthonormal rows or columns, whichever are fewer.

    ValueError for fewer than two dimensions.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None):
        self.gain, self.seed = gain, seed

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        if len(shape) < 2:
            raise ValueError(f"[Orthogonal] needs at least 2 dimensions; got shape {shape}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        q, r = np.linalg.qr(_normal((max(rows, columns), min(rows, columns))))
        q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # without it the matrices would not be spread evenly
        return (q if rows >= columns else q.T).reshape(shape) * self.gain


class Identity(Initializer):
    """gain times the identity. ValueError for shapes that are not two-dimensional."""

    def __init__(self, gain: float = 1.0):
        self.gain = gain

    def draw(self, shape: tuple) -> np.ndarray:
        """See the class."""
        if len(shape) != 2:
            raise ValueError(f"[Identity] a matrix has 2 dimensions; got shape {shape}")
        return np.eye(*shape) * self.gain


TABLE: dict[str, Any] = {
    naming.snake_case(c.__name__): c
    for c in (Zeros, Ones, Constant, RandomNormal, TruncatedNormal, RandomUniform, VarianceScaling, GlorotUniform, GlorotNormal,
              HeUniform, HeNormal, LecunUniform, LecunNormal, Orthogonal, Identity)
}  # fmt: skip
TABLE |= {"zero": Zeros, "one": Ones, "normal": RandomNormal, "uniform": RandomUniform}
TABLE |= {"orthogonal_initializer": Orthogonal, "identity_initializer": Identity}
get, serialize, deserialize = naming.family(TABLE, "initializer")
