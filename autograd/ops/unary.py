"""Elementwise functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..blocks import blocked, chosen
from ..grad_mode import state
from ..op import Op, public, register, unary
from ..tape import Node
from ..tensor import Tensor, wrap
from ..webgpu.launch import Unary


def used(dy: Tensor, dx: Tensor) -> Tensor:
    """dx = dy * slope, with 0 where dy is 0 although the slope there is infinite or NaN.

    So a value that `where` did not take sends nothing back: ag.where(x > 0, x.sqrt(), x) has a gradient everywhere.
    """
    # On the GPU asking would cost more than doing.
    if dx.array.__class__ is np.ndarray and dx.array.dtype.kind == "f" and not np.isnan(dx.array).any():
        return dx
    return dx.masked_fill((dy == 0) & (dx != dx), 0)


def of_output(op: type[Op], function: Callable, ctx: Node, dy: Tensor) -> Tensor:
    """dx by function(y, dy, dx) on pieces of arrays; on the GPU, which makes one kernel of the formula, by the formula."""
    if dy.array.__class__ is not np.ndarray or dy.array.dtype.kind != "f":
        return op.backward(ctx, dy)
    (y,) = ctx.saved_outputs()
    return wrap(state.run(blocked, function, dy.array.dtype, y.array.shape, y.array, dy.array))


def _tanh_backward(y: np.ndarray, dy: Any, dx: np.ndarray) -> None:
    np.multiply(y, y, out=dx)
    np.subtract(1, dx, out=dx)
    dx *= dy


def _sigmoid_backward(y: np.ndarray, dy: Any, dx: np.ndarray) -> None:
    np.subtract(1, y, out=dx)
    dx *= y
    dx *= dy


def _relu_backward(y: np.ndarray, dy: Any, dx: np.ndarray) -> None:
    chosen(np.less_equal(y, 0), 0, dy, dx)


def _relu(x: np.ndarray) -> np.ndarray:
    # NumPy is four times as fast at the larger of two arrays as at that of an array and a number.
    return np.maximum(x, 0) if x.size < 4096 else blocked(_larger_than_0, x.dtype, x.shape, x)


def _larger_than_0(x: np.ndarray, y: np.ndarray) -> None:
    np.maximum(x, np.zeros(x.shape, x.dtype), out=y)


@register
class Neg(Op):
    """y = -x
    dx = -dy
    """

    numpy = staticmethod(np.negative)
    wgpu = Unary("neg")
    booleans = False

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return -dy


@register
class Abs(Op):
    """y = |x|
    dx = dy * sign(x)
    """

    numpy = staticmethod(np.absolute)
    wgpu = Unary("abs")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * x.sign()


@register
class Sign(Op):
    """y = sign(x)
    dx = 0
    """

    numpy = staticmethod(lambda x: x.copy() if x.dtype == bool else np.sign(x))
    wgpu = Unary("sign")

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy.zeros_like()


@register
class Exp(Op):
    """y = exp(x)
    dx = dy * y
    """

    numpy = staticmethod(np.exp)
    wgpu = Unary("exp")
    costly = True
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy * y


@register
class Expm1(Op):
    """y = exp(x) - 1
    dx = dy * (y + 1)
    """

    numpy = staticmethod(np.expm1)
    wgpu = Unary("expm1")
    costly = True
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy * (y + 1)


@register
class Log(Op):
    """y = log(x)
    dx = dy / x
    """

    numpy = staticmethod(np.log)
    wgpu = Unary("log")
    costly = True
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return used(dy, dy / x)


@register
class Log1p(Op):
    """y = log(1 + x)
    dx = dy / (1 + x)
    """

    numpy = staticmethod(np.log1p)
    wgpu = Unary("log1p")
    costly = True
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return used(dy, dy / (x + 1))


@register
class Sqrt(Op):
    """y = sqrt(x)
    dx = dy / (2 * y)
    """

    numpy = staticmethod(np.sqrt)
    wgpu = Unary("sqrt")
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return used(dy, dy / (y * 2))


@register
class Tanh(Op):
    """y = tanh(x)
    dx = dy * (1 - y^2)
    """

    numpy = staticmethod(np.tanh)
    wgpu = Unary("tanh")
    costly = True
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy * (1 - y * y)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> Tensor:
        return of_output(Tanh, _tanh_backward, ctx, dy)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    # tanh saturates where exp would overflow: right from -1000 to 1000. Far below zero it rounds to 0 or an ulp
    # of 1, where exp(x) still has digits.
    y = np.tanh(x * 0.5)
    y = y * x.dtype.type(0.5) + x.dtype.type(0.5)
    low = x < -4
    return np.where(low, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), y) if low.any() else y


@register
class Sigmoid(Op):
    """y = 1 / (1 + exp(-x))
    dx = dy * y * (1 - y)
    """

    numpy = staticmethod(_sigmoid)
    wgpu = Unary("sigmoid")
    costly = True
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy * (y * (1 - y))

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> Tensor:
        return of_output(Sigmoid, _sigmoid_backward, ctx, dy)


@register
class Relu(Op):
    """y = max(x, 0), NaN kept
    dx = dy where y > 0 or NaN, else 0
    """

    numpy = staticmethod(_relu)
    wgpu = Unary("relu")
    booleans = False
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy.masked_fill(y <= 0, 0)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> Tensor:
        return of_output(Relu, _relu_backward, ctx, dy)


@register
class Softplus(Op):
    """y = log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))
    dx = dy * sigmoid(x)
    """

    numpy = staticmethod(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))
    wgpu = Unary("softplus")
    costly = True
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * x.sigmoid()


class _Step(Op):
    """A function that is constant almost everywhere: y = step(x), dx = 0."""

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy.zeros_like()


@register
class Floor(_Step):
    """y = the largest whole number not above x
    dx = 0
    """

    numpy = staticmethod(np.floor)
    wgpu = Unary("floor")


@register
class Round(_Step):
    """y = the nearest whole number, halves to even
    dx = 0
    """

    numpy = staticmethod(np.rint)
    wgpu = Unary("round")


@register
class BitwiseNot(Op):
    """y = ~x, of integers and booleans
    no gradient
    """

    numpy = staticmethod(np.invert)
    wgpu = Unary("bitwise_not")
    differentiable = False


for _op in (Exp, Expm1, Log, Log1p, Sqrt, Tanh, Sigmoid, Softplus):
    public(unary(_op))
for _op in (Neg, Abs, Sign, Relu):
    public(unary(_op, floating=False))


def _whole(op: type[Op]) -> Any:
    """Rounding of integers changes nothing."""
    function = unary(op, floating=False)

    def rounded(x: Tensor) -> Tensor:
        return function(x) if x.dtype.is_floating_point else x.clone()

    rounded.__doc__ = op.__doc__
    return rounded


for _op in (Floor, Round):
    public(_whole(_op), _op.name)

_bitwise_not = unary(BitwiseNot, floating=False)


def bitwise_not(x: Tensor) -> Tensor:
    """~x, of integers and booleans."""
    if x.dtype.is_floating_point:
        raise TypeError(f"[bitwise_not] works on integers and booleans; got {x.dtype}")
    return x.logical_not() if x.dtype is dtypes.bool_ else _bitwise_not(x)


public(bitwise_not)
Tensor.__neg__ = Tensor.neg  # type: ignore[attr-defined]
Tensor.__abs__ = Tensor.abs  # type: ignore[attr-defined]
Tensor.__invert__ = Tensor.bitwise_not  # type: ignore[attr-defined]
