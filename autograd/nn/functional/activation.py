"""Activations: elementwise functions, softmax and its relatives."""

from __future__ import annotations

import math

from ...ops.select import where
from ...ops.softmax import log_softmax, softmax
from ...tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), gradient 0 at 0."""
    return input.relu_() if inplace else input.relu()


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, else negative_slope * x."""
    return where(input > 0, input, input * negative_slope)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh": x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."""
    if approximate == "none":
        return input * ((input * math.sqrt(0.5)).erf() + 1) * 0.5
    if approximate == "tanh":
        inner = (input + input * input * input * 0.044715) * math.sqrt(2 / math.pi)
        return input * (inner.tanh() + 1) * 0.5
    raise ValueError(f'[gelu] approximate is "none" or "tanh"; got {approximate!r}')


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return input.silu()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""
    scaled = input if beta == 1 else input * beta
    y = scaled.softplus() if beta == 1 else scaled.softplus() / beta
    return where(scaled > threshold, input, y)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) = -log(1 + exp(-x))."""
    return -(-input).softplus()


def tanh(input: Tensor) -> Tensor:
    """tanh(x)."""
    return input.tanh()
