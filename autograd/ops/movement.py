"""Moving elements without changing them: views where strides can say it, copies where they cannot."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, shapes
from ..aliasing import assign, replay
from ..device import Device
from ..op import Op, apply, record, register
from ..tape import Node
from ..tensor import Tensor, rewrap
from ..webgpu import launch, views

_cat_kernel, _copy_kernel = launch.Cat(), launch.Copy()


@register
class Reshape(Op):
    """y = x in another shape, elements in the same order
    dx = dy in x's shape
    """

    numpy = staticmethod(lambda x, shape: x.reshape(shape))
    wgpu = staticmethod(views.reshape)
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy.reshape(ctx.edges[0].shape)


@register
class Permute(Op):
    """y = x with its dimensions in another order
    dx = dy with the order undone
    """

    numpy = staticmethod(lambda x, order: x.transpose(order))
    wgpu = staticmethod(views.permute)
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return apply(Permute, dy, order=shapes.inverse_permutation(ctx.attrs["order"]))


def _expand(x: np.ndarray, shape: tuple) -> np.ndarray:
    if x.size == 1 and x.flags.c_contiguous:  # what a sum's gradient asks for: a tenth of broadcast_to's time
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    return np.broadcast_to(x, shape)


@register
class Expand(Op):
    """y = x repeated along dimensions of size 1, as a view
    dx = dy summed over them
    """

    numpy = staticmethod(_expand)
    wgpu = staticmethod(views.expand)
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy.sum_to(ctx.edges[0].shape)


@register
class Slice(Op):
    """y = x[index], an index of integers, slices and None
    dx = zeros with dy at the index
    """

    numpy = staticmethod(lambda x, index: x[(*index, ...)])
    wgpu = staticmethod(views.slice_)
    view = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return apply(Place, dy, shape=ctx.edges[0].shape, index=ctx.attrs["index"], value=0)


def _place(x: np.ndarray, shape: tuple, index: tuple, value: float) -> np.ndarray:
    y = np.full(shape, value, x.dtype)
    y[index] = x
    return y


@register
class Place(Op):
    """y = value everywhere, x at the index
    dx = dy[index]
    """

    numpy = staticmethod(_place)
    wgpu = staticmethod(views.place)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return apply(Slice, dy, index=ctx.attrs["index"])


@register
class Cat(Op):
    """y = the inputs one after the other along a dimension
    dx_i = its part of dy
    """

    numpy = staticmethod(lambda *arrays, axis, sizes: np.concatenate(arrays, axis))
    wgpu = staticmethod(lambda *arrays, axis, sizes: _cat_kernel(*arrays, axis=axis))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        axis, start, grads = ctx.attrs["axis"], 0, []
        lead = (slice(None),) * axis
        for size, edge in zip(ctx.attrs["sizes"], ctx.edges, strict=True):
            part = (*lead, slice(start, start + size))
            grads.append(None if edge is None else apply(Slice, dy, index=part))
            start += size
        return tuple(grads)


@register
class Clone(Op):
    """y = a copy of x, laid out as x is (order K) or in order (C)
    dx = dy
    """

    numpy = staticmethod(lambda x, order="K": x.copy(order=order))
    wgpu = staticmethod(lambda x, order="K": _copy_kernel(x))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy


@register
class Cast(Op):
    """y = x in another dtype
    dx = dy in x's dtype
    """

    numpy = staticmethod(dtypes.converted)
    wgpu = launch.Cast()

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy  # walk() gives every gradient its input's dtype


def _download(x: Any, device: Device, source: Device) -> Any:
    array = x.gpu.download(x)
    return array if device.type == "cpu" else _upload(array, device, source)


def _upload(x: np.ndarray, device: Device, source: Device) -> Any:
    from ..webgpu import open_device

    return open_device(device.index).upload(x)


@register
class Move(Op):
    """y = x on another device
    dx = dy moved back
    """

    numpy = staticmethod(_upload)
    wgpu = staticmethod(_download)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        return dy.to(ctx.attrs["source"])


@register
class SetView(Op):
    """y = base with one of its views overwritten by value (already done: this only records it)
    dbase = dy with zeros there; dvalue = dy there
    """

    numpy = staticmethod(lambda base, value, steps: base)
    wgpu = staticmethod(lambda base, value, steps: base)

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        steps = ctx.attrs["steps"]
        dbase = None
        if ctx.needs(0):
            dbase = dy.clone()
            there = replay(dbase, steps)
            assign(there, there.zeros_like(), "set_view")
        return dbase, replay(dy, steps)


def set_view(base: Tensor, value: Tensor, steps: tuple) -> Tensor:
    """Record that the view of `base` at the end of `steps` has been overwritten by `value`."""
    y = rewrap(base.array, base.version)
    record(SetView, (base, value), {"steps": steps}, (y,))
    return y
