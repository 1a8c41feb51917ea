"""Activations: elementwise functions, softmax and its relatives."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ... import create
from ...create import empty_like, zeros_like
from ...dtypes import converted, float16, float32
from ...op import public
from ...ops import softmax as along
from ...ops.select import where
from ...random import rand
from ...shapes import axis_of
from ...tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), gradient 0 at 0."""
    return input.relu_() if inplace else input.relu()


def relu_(input: Tensor) -> Tensor:
    """relu(input, inplace=True)"""
    return input.relu_()


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope * x."""
    return _in_place(input, lambda x: where(x > 0, x, x * negative_slope), inplace)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh": x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."""
    if approximate == "none":
        return input * (((input * math.sqrt(0.5)).erf() + 1) * 0.5)
    if approximate == "tanh":
        near = input.clamp(-10, 10) if input.dtype is float16 else input  # tanh is flat there; 300^2 would be infinite
        inner = (near + near * near * near * 0.044715) * math.sqrt(2 / math.pi)
        return input * ((inner.tanh() + 1) * 0.5)
    raise ValueError(f'[gelu] approximate is "none" or "tanh"; got {approximate!r}')


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _in_place(input, lambda x: x.silu(), inplace)


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


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`. A row of only -inf gives NaN. Without dim: a warning, and PyTorch's choice.

    That choice is dimension 0 for tensors of 0, 1 and 3 dimensions, and 1 for all others.
    """
    return along.softmax(input, _chosen(input, dim, "softmax"), dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along `dim`, exact where softmax would round to 0; without dim as softmax."""
    return along.log_softmax(input, _chosen(input, dim, "log_softmax"), dtype)


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(-x) / sum(exp(-x)) along `dim`; without dim as softmax."""
    return along.softmax(-input, _chosen(input, dim, "softmin"), dtype)


def _chosen(input: Tensor, dim: int | None, op: str) -> int:
    if dim is not None:
        return dim
    chosen = 0 if input.ndim in (0, 1, 3) else 1
    warnings.warn(f"[{op}] no dim was given; dim={chosen} is taken, as PyTorch does. Write it down", stacklevel=5)
    return chosen


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return _in_place(input, lambda x: _exponential(x, alpha, 1.0, 1.0), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    if alpha == 0:
        raise ValueError("[celu] alpha must not be 0")
    return _in_place(input, lambda x: _exponential(x, alpha, 1.0, 1 / alpha), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * (x where x > 0, else alpha * (exp(x) - 1)), with the constants that keep mean 0 and variance 1."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return _in_place(input, lambda x: _exponential(x, alpha * scale, scale, 1.0), inplace)


def _exponential(x: Tensor, negative: float, positive: float, inner: float) -> Tensor:
    """positive * x where x > 0, else negative * (exp(inner * x) - 1); what is not chosen is held where it is finite."""
    low = x.clamp(max=0)
    low = (low if inner == 1 else low * inner).expm1() * negative
    return where(x > 0, x if positive == 1 else x * positive, low)


def _in_place(input: Tensor, function: Callable[[Tensor], Tensor], inplace: bool) -> Tensor:
    """function(x); with inplace x takes its value, and the gradient keeps what x was."""
    return input.copy_(function(input.clone())) if inplace else function(input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight * x; weight has one number, or one for each channel of input [N, C, ...]."""
    if weight.ndim > 1 or not (weight.numel() == 1 or (input.ndim and weight.shape[0] == input.shape[min(1, input.ndim - 1)])):
        raise ValueError(f"[prelu] weight has one number, or one a channel (dimension 1); got {weight.shape} for {input.shape}")
    if weight.numel() == 1:
        slope = weight.reshape(())
    else:
        slope = weight.reshape(-1, *(1,) * (input.ndim - 2))
    return where(input > 0, input, input * slope)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x where x > 0, else a * x: a drawn from [lower, upper) for each element in training, else (lower + upper) / 2.

    A seed gives the same on both devices. Xu et al.: Empirical Evaluation of Rectified Activations (arXiv 1505.00853).
    """
    if not lower <= upper:
        raise ValueError(f"[rrelu] lower must not be above upper; got {lower} and {upper}")
    slope: Any = (lower + upper) / 2
    if training:
        drawn = rand(input.shape, dtype=float32, device="cpu").numpy() * (upper - lower) + lower
        slope = create.place(converted(drawn, input.dtype.numpy), input.device)
    return _in_place(input, lambda x: where(x <= 0, x * slope, x), inplace)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + g) / tau) along `dim`, g = -log(-log(u)), u uniform: a sample of categories that has a gradient.

    hard: exactly one 1 in each row, at the largest, with the gradient of the soft sample. eps: PyTorch's, without use.
    Jang et al.: Categorical Reparameterization with Gumbel-Softmax (arXiv 1611.01144).
    """
    waits = empty_like(logits).exponential_()
    soft = softmax((logits - waits.log()) / tau, dim)
    if not hard:
        return soft
    best = soft.detach().argmax(dim, keepdim=True)
    return zeros_like(soft).scatter(dim, best, 1.0) - soft.detach() + soft


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), where a and b are the halves of x along `dim`."""
    if not input.ndim:
        raise ValueError("[glu] expects at least one dimension; got a 0-d tensor")
    axis = axis_of(dim, input.ndim, "glu")
    if input.shape[axis] % 2:
        raise ValueError(f"[glu] dimension {axis} must have an even size; got {input.shape}")
    half = input.shape[axis] // 2
    return input.narrow(axis, 0, half) * input.narrow(axis, half, half).sigmoid()


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x held between min_val and max_val; the gradient at the bounds is 0."""
    if min_val > max_val:
        raise ValueError(f"[hardtanh] min_val must not be above max_val; got {min_val} and {max_val}")
    return _in_place(input, lambda x: x.masked_fill(x <= min_val, min_val).masked_fill(x >= max_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0, 6, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """0 below -3, 1 above 3, x / 6 + 1/2 between."""
    return _in_place(input, lambda x: hardtanh(x / 6 + 0.5, 0, 1), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return _in_place(input, _hardswish, inplace)


def _hardswish(x: Tensor) -> Tensor:
    inside = x.abs() < 3
    s = x.masked_fill(~inside, 0)  # the product's gradient at infinity would be NaN
    return where(inside, s * (s + 3) / 6, x.masked_fill(x <= -3, 0))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(log(1 + exp(x)))."""
    return _in_place(input, lambda x: x * x.softplus().tanh(), inplace)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, 0 where it is not further away."""
    if lambd < 0:
        raise ValueError(f"[softshrink] lambd must not be negative; got {lambd}")
    return where(input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, else 0."""
    return input.masked_fill((input >= -lambd) & (input <= lambd), 0)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    return _in_place(input, lambda x: x.masked_fill(x <= threshold, value), inplace)


for _function in (prelu, celu, selu, hardshrink):
    public(_function, method=_function in (prelu, hardshrink))
