"""Circular and hyperbolic functions (tanh stands with the activations in unary.py)."""

from __future__ import annotations

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


@register
class Tan(Op):
    """y = tan(x)
    dx = dy * (1 + y^2)
    """

    numpy = staticmethod(np.tan)
    wgpu = Unary("tan")
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        return dy * (y * y + 1)


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
        return dy * (1 - x * x).rsqrt()


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
        return -dy * (1 - x * x).rsqrt()


@register
class Atan(Op):
    """y = atan(x)
    dx = dy / (1 + x^2)
    """

    numpy = staticmethod(np.arctan)
    wgpu = Unary("atan")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy / (x * x + 1)


@register
class Sinh(Op):
    """y = sinh(x)
    dx = dy * cosh(x)
    """

    numpy = staticmethod(np.sinh)
    wgpu = Unary("sinh")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * x.cosh()


@register
class Cosh(Op):
    """y = cosh(x)
    dx = dy * sinh(x)
    """

    numpy = staticmethod(np.cosh)
    wgpu = Unary("cosh")
    saves = ((0,),)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_inputs()
        return dy * x.sinh()


for _op in (Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh):
    public(unary(_op))
