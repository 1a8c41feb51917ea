"""Launchers of optimizer steps: they write parameters and state in place, in one dispatch."""

import math
from struct import Struct

from .elementwise import WORKGROUP
from .layout import workgroups
from .movement import copy, copy_into

ADAM = Struct("<6I9f")
SGD = Struct("<4I2f")
MOMENTUM = Struct("<4I4f2I")


def dense(name, written, grad, params):
    """One dispatch over contiguous arrays, by way of copies where they are not.

    `params(n, offsets)` packs the parameters; both count vec4s where four fit.
    """
    for a in written:
        a.gpu.settle(a.storage)
    work = [a if a.is_contiguous() else copy(a) for a in written]
    grad = grad if grad.is_contiguous() else copy(grad)
    p, gpu = work[0], grad.gpu
    if not p.size:
        return
    wide = not p.size % 4 and not any(a.offset % 4 for a in (grad, *work))
    unit = 4 if wide else 1
    kernel = gpu.kernel(name, V="vec4<f32>" if wide else "f32")
    arrays = (p, grad, *work[1:])
    n, offsets = p.size // unit, [a.offset // unit for a in arrays]
    gpu.run(kernel, arrays, params(n, offsets), workgroups(-(-n // WORKGROUP)))
    for target, source in zip(written, work):
        if source is not target:
            copy_into(target, source)


class Adam:
    """`Adam()(p, g, m, v, *, lr, ...)`: updates p, m and v; `decoupled` makes it AdamW."""

    def __call__(
        self, p, g, m, v, *, lr, beta1, beta2, eps, weight_decay, decoupled, bias1, bias2
    ):
        numbers = (
            lr / bias1,
            eps,
            beta1,
            beta2,
            1 - beta1,
            1 - beta2,
            1 / math.sqrt(bias2),
            weight_decay,
            1 - lr * weight_decay,
        )

        def params(n, offsets):
            return ADAM.pack(n, int(decoupled), *offsets, *numbers)

        dense("adam", (p, m, v), g, params)


class Sgd:
    """`Sgd()(p, g, buf, *, lr, ...)`: updates p, and buf where it is not None."""

    def __call__(
        self,
        p,
        g,
        buf,
        *,
        lr,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        first=False,
    ):
        def plain(n, offsets):
            return SGD.pack(n, *offsets, 0, lr, weight_decay)

        def with_momentum(n, offsets):
            numbers = (lr, weight_decay, momentum, 1 - dampening)
            return MOMENTUM.pack(n, *offsets, *numbers, int(nesterov), int(first))

        if buf is None:
            dense("sgd", (p,), g, plain)
        else:
            dense("sgd_momentum", (p, buf), g, with_momentum)
