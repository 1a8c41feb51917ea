"""Circular and hyperbolic functions (tanh stands with the activations in unary.py)."""

from __future__ import annotations

import math

import numpy as np

from ..op import Op, public, register, unary
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.launch import Unary
from .unary import used


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


@register
class Asin(Op):
    """y = asin(x)
    dx = dy / sqrt(1 - x^2)
    """

    numpy = staticmethod(np.arcsin)
    wgpu = Unary("asin")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return used(dy, dy * (1 - x * x).rsqrt())


@register
class Acos(Op):
    """y = acos(x)
    dx = -dy / sqrt(1 - x^2)
    """

    numpy = staticmethod(np.arccos)
    wgpu = Unary("acos")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return used(dy, -dy * (1 - x * x).rsqrt())


def tan(x: Tensor) -> Tensor:
    """sin(x) / cos(x)"""
    return x.sin() / x.cos()


def atan(x: Tensor) -> Tensor:
    """The angle whose tangent is x."""
    return x.atan2(1)


def sinh(x: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / 2, exact near 0."""
    return (x.expm1() - (-x).expm1()) * 0.5


def cosh(x: Tensor) -> Tensor:
    """(exp(x) + exp(-x)) / 2, finite as long as it can be."""
    return (x - math.log(2)).exp() + (-x - math.log(2)).exp()


for _op in (Sin, Cos, Asin, Acos):
    public(unary(_op))
for _function in (tan, atan, sinh, cosh):
    public(_function)
