"""Circular and hyperbolic functions (tanh stands with the activations in unary.py)."""

from __future__ import annotations

import math

import numpy as np

from ..op import Op, public, register, unary
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.launch import Unary


@register
class Sin(Op):
    """y = sin(x)
    dx = dy * cos(x)
    """

    numpy = staticmethod(np.sin)
    wgpu = Unary("sin")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * x.cos()


@register
class Cos(Op):
    """y = cos(x)
    dx = -dy * sin(x)
    """

    numpy = staticmethod(np.cos)
    wgpu = Unary("cos")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return -dy * x.sin()


def tan(x: Tensor) -> Tensor:
    """sin(x) / cos(x)"""
    return x.sin() / x.cos()


def _other_leg(x: Tensor) -> Tensor:
    """sqrt(1 - x^2): the value by (1 - x)(1 + x), exact near 1; the gradient by x^2, since that product's is 0 * inf at 1."""
    v, square = x.detach(), x * x
    return ((1 - v) * (1 + v) + (square.detach() - square)).sqrt()


def asin(x: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]."""
    return x.atan2(_other_leg(x))


def acos(x: Tensor) -> Tensor:
    """The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]."""
    return _other_leg(x).atan2(x)


def atan(x: Tensor) -> Tensor:
    """The angle whose tangent is x."""
    return x.atan2(1)


def sinh(x: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / 2, exact near 0."""
    return (x.expm1() - (-x).expm1()) * 0.5


def cosh(x: Tensor) -> Tensor:
    """(exp(x) + exp(-x)) / 2, finite as long as it can be."""
    return (x - math.log(2)).exp() + (-x - math.log(2)).exp()


for _op in (Sin, Cos):
    public(unary(_op))
for _function in (tan, asin, acos, atan, sinh, cosh):
    public(_function)
