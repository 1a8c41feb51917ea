"""Launchers of the cross_entropy kernels."""

from __future__ import annotations

import functools
from struct import Struct

from .buffers import Array
from .elementwise import scalar_word
from .layout import workgroups
from .packed import FLOAT32
from .pieces import cut, too_large
from .rows import dense, lanes_of, row_lib

PARAMS = Struct("<8I2f")
LIBS = ("math", "f32", "cross_entropy")


class CrossEntropy:
    """`CrossEntropy()(x, t, smoothing=…)`: (y, stats) of rows x [R, C]: ops/cross_entropy.py."""

    def __call__(self, x: Array, t: Array, *, smoothing: float) -> tuple[Array, Array]:
        if too_large((x, t), x.size):
            return cut("cross_entropy", lambda x, t: self(x, t, smoothing=smoothing), (x, t), (0,), x.size)
        gpu, x, t = x.gpu, dense(x), dense(t)
        rows, classes = x.shape
        y, stats = gpu.empty((rows,), FLOAT32), gpu.empty((rows, 2), FLOAT32)
        lib, constants, share = row_lib(lanes_of(gpu, classes))
        kernel = gpu.kernel("cross_entropy", (*LIBS, lib), constants, T="f32")
        params = PARAMS.pack(rows, classes, x.offset, t.offset, 0, 0, 0, 0, 0.0, smoothing)
        gpu.run(kernel, (x, t, y, stats), params, workgroups(-(-rows // share)))
        return y, stats


class CrossEntropyBackward:
    """`CrossEntropyBackward()(dy, x, t, stats, smoothing=…)`: dx."""

    def __call__(self, dy: Array, x: Array, t: Array, stats: Array, *, smoothing: float) -> Array:
        if too_large((x, t), x.size):
            launch = functools.partial(self, smoothing=smoothing)
            return cut("cross_entropy_backward", launch, (dy, x, t, stats), (0,), x.size)
        gpu, x, t, stats = x.gpu, dense(x), dense(t), dense(stats)
        rows, classes = x.shape
        dx = gpu.empty(x.shape, FLOAT32)
        number, place = 0.0, (0, stats.offset // 2, 0, 0)
        if dy.pending is not None and dy.pending.launcher is None:  # a constant, as of a mean
            number, dy = scalar_word(dy.pending.args[0], "f32"), x
        else:
            dy.storage  # noqa: B018  (what waits is computed)
            place = dy.offset, stats.offset // 2, dy.strides[0] & 0xFFFFFFFF, 1
        params = PARAMS.pack(rows, classes, x.offset, t.offset, *place, number, smoothing)
        kernel = gpu.kernel("cross_entropy_backward", LIBS, T="f32")
        gpu.run(kernel, (x, t, dy, stats, dx), params, workgroups(-(-rows * classes // 64)))
        return dx
