"""Activations by Keras' names. None is linear, as everywhere in Keras.

Two hard sigmoids: Keras 3's is "hard_sigmoid" (clip(x / 6 + 0.5, 0, 1)); Keras 2's, which old weights were trained with,
is "hard_sigmoid_keras2" (clip(0.2 x + 0.5, 0, 1)).
"""

from __future__ import annotations

from typing import Any

from ..nn import functional as F
from ..ops.select import where
from ..tensor import Tensor
from . import naming


def linear(x: Tensor) -> Tensor:
    """x"""
    return x


def relu(x: Tensor, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """max(x, 0); in general max_value where x >= max_value, x where x >= threshold, else negative_slope (x - threshold)."""
    if negative_slope == 0 and threshold == 0:
        y = F.relu(x)
    else:
        y = where(x >= threshold, x, (x - threshold) * negative_slope)
    return y if max_value is None else y.clamp(max=max_value)


def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6)"""
    return F.relu6(x)


def leaky_relu(x: Tensor, negative_slope: float = 0.2) -> Tensor:
    """x where x >= 0, else negative_slope x"""
    return F.leaky_relu(x, negative_slope)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (exp(x) - 1)"""
    return F.elu(x, alpha)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1))"""
    return F.celu(x, alpha)


def selu(x: Tensor) -> Tensor:
    """1.0507 elu(x, 1.6733) (Klambauer et al. 2017)"""
    return F.selu(x)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))"""
    return F.softplus(x)


def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)"""
    return F.softsign(x)


def silu(x: Tensor) -> Tensor:
    """x sigmoid(x)"""
    return F.silu(x)


def gelu(x: Tensor, approximate: bool = False) -> Tensor:
    """x times the normal distribution's CDF, or its approximation with tanh"""
    return F.gelu(x, approximate="tanh" if approximate else "none")


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))"""
    return F.sigmoid(x)


def tanh(x: Tensor) -> Tensor:
    """tanh(x)"""
    return F.tanh(x)


def hard_sigmoid(x: Tensor) -> Tensor:
    """clip(x / 6 + 0.5, 0, 1): Keras 3's"""
    return F.hardsigmoid(x)


def hard_sigmoid_keras2(x: Tensor) -> Tensor:
    """clip(0.2 x + 0.5, 0, 1): Keras 2's"""
    return (x * 0.2 + 0.5).clamp(0.0, 1.0)


def hard_silu(x: Tensor) -> Tensor:
    """x hard_sigmoid(x)"""
    return F.hardswish(x)


def hard_tanh(x: Tensor) -> Tensor:
    """clip(x, -1, 1)"""
    return F.hardtanh(x)


def hard_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x where |x| > threshold, else 0"""
    return F.hardshrink(x, threshold)


def soft_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x moved towards 0 by the threshold"""
    return F.softshrink(x, threshold)


def tanh_shrink(x: Tensor) -> Tensor:
    """x - tanh(x)"""
    return x - F.tanh(x)


def threshold(x: Tensor, threshold: float, default_value: float) -> Tensor:
    """x where x > threshold, else default_value"""
    return F.threshold(x, threshold, default_value)


def squareplus(x: Tensor, b: float = 4.0) -> Tensor:
    """(x + sqrt(x^2 + b)) / 2"""
    return (x + (x * x + b).sqrt()) / 2


def exponential(x: Tensor) -> Tensor:
    """exp(x)"""
    return x.exp()


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis"""
    return F.softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log(softmax(x))"""
    return F.log_softmax(x, axis)


def log_sigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x))"""
    return F.logsigmoid(x)


def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x))"""
    return F.mish(x)


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """a sigmoid(b), a and b the halves of x along an axis"""
    return F.glu(x, axis)


swish, hard_swish = silu, hard_silu
TABLE: dict[str, Any] = {
    f.__name__: f
    for f in (linear, relu, relu6, leaky_relu, elu, celu, selu, softplus, softsign, silu, gelu, sigmoid, tanh, hard_sigmoid,
              hard_sigmoid_keras2, hard_silu, hard_tanh, hard_shrink, soft_shrink, tanh_shrink, threshold, squareplus,
              exponential, softmax, log_softmax, log_sigmoid, mish, glu)
}  # fmt: skip
TABLE |= {"swish": silu, "hard_swish": hard_silu}


def get(identifier: Any) -> Any:
    """The function of a name ("tanh"), or a function itself; None gives linear. ValueError: unknown."""
    return linear if identifier is None else naming.get(identifier, TABLE, "activation")


def serialize(activation: Any) -> Any:
    """Its name, or {"class_name", "config"} of an object that has one."""
    return naming.serialize(activation, TABLE)


def deserialize(config: Any, custom_objects: dict | None = None) -> Any:
    """The activation of a name or a config."""
    return linear if config is None else naming.deserialize(config, TABLE, "activation", custom_objects)
