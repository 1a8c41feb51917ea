"""Launchers of the layer_norm kernels."""

from __future__ import annotations

from struct import Struct
from typing import Any

from .buffers import Array
from .layout import workgroups
from .packed import FLOAT32
from .pieces import cut, too_large
from .reduce import Fold
from .rows import dense, lanes_of, row_lib

PARAMS = Struct("<2I3f3I4I")
CHUNK = 256  # rows that an invocation of layer_norm_columns adds up
V = {
    4: "alias V = vec4<f32>;\nfn total(v: V) -> f32 { return (v.x + v.y) + (v.z + v.w); }\n",
    1: "alias V = f32;\nfn total(v: V) -> f32 { return v; }\n",
}

total = Fold("sum")


class Rows:
    """What the two launchers share: a matrix [R, D] of float32, by fours where that can be."""

    def launch(self, name: str, read: list, written: list, text: str, centred: bool, eps: float = 0.0, stats: Any = None) -> None:
        """One dispatch over the rows of x, the first of `read`, of which others may be None."""
        x = read[0]
        rows, length = x.shape
        given = [x if a is None else a for a in read]
        wide = 1 if length % 4 or any(a.offset % 4 for a in given) else 4
        lanes = lanes_of(x.gpu, length // wide, wide)
        lib, constants, share = row_lib(lanes)
        kernel = x.gpu.kernel(name, ("math", "f32", "layer_norm", lib), V[wide] + constants + text, T="f32")
        places = [*(a.offset // wide for a in given), 0 if stats is None else stats.offset // 2]
        params = PARAMS.pack(rows, length // wide, float(centred), 1 / length, eps, 1, 0, 0, *places)
        extra = () if stats is None else (stats,)
        x.gpu.run(kernel, (*given, *extra, *written), params, workgroups(-(-rows // share)))


class LayerNorm(Rows):
    """`LayerNorm()(x, w, b, eps=…, centred=…)`: (y, stats): ops/layer_norm.py."""

    def __call__(self, x: Array, w: Array | None, b: Array | None, *, eps: float, centred: bool) -> tuple[Array, Array]:
        gpu, rows = x.gpu, x.shape[0]
        if too_large((x,), x.size):
            return cut("layer_norm", lambda x: self(x, w, b, eps=eps, centred=centred), (x,), (0,), x.size)
        y, stats = gpu.empty(x.shape, FLOAT32), gpu.empty((rows, 2), FLOAT32)
        text = f"const WEIGHT = {str(w is not None).lower()};\nconst BIAS = {str(b is not None).lower()};\n"
        read = [dense(x), *(None if a is None else dense(a) for a in (w, b))]
        self.launch("layer_norm", read, [y, stats], text, centred, eps)
        return y, stats


class LayerNormBackward(Rows):
    """`LayerNormBackward()(dy, x, w, stats, centred=…, needs=…)`: (dx, dw, db), None where not needed."""

    def __call__(self, dy: Array, x: Array, w: Array | None, stats: Array, *, centred: bool, needs: tuple) -> tuple:
        if too_large((dy, x), x.size):
            launch = lambda dy, x, stats: self(dy, x, w, stats, centred=centred, needs=needs)
            return cut("layer_norm_backward", launch, (dy, x, stats), (0,), x.size, summed=(1, 2))
        x, dy, stats = dense(x), dense(dy), dense(stats)
        dx = dw = db = None
        if needs[0]:
            dx = x.gpu.empty(x.shape, FLOAT32)
            text = f"const WEIGHT = {str(w is not None).lower()};\n"
            self.launch("layer_norm_backward", [x, None if w is None else dense(w), dy], [dx], text, centred, stats=stats)
        if needs[1] or needs[2]:
            dw, db = self.columns(dy, x, stats)
        return dx, dw, db

    def columns(self, dy: Array, x: Array, stats: Array) -> tuple[Array, Array]:
        """(dw, db): one dispatch where the rows are few, and two more where they are cut into chunks."""
        gpu, (rows, length) = x.gpu, x.shape
        wide = 1 if length % 4 or x.offset % 4 or dy.offset % 4 else 4
        chunks = -(-rows // CHUNK)
        dw, db = (gpu.empty((chunks, length), FLOAT32) for _ in "wb")
        kernel = gpu.kernel("layer_norm_columns", ("layer_norm",), V[wide])
        places = x.offset // wide, dy.offset // wide, stats.offset // 2, 0
        params = PARAMS.pack(rows, length // wide, 0.0, 0.0, 0.0, chunks, 0, 0, *places)
        gpu.run(kernel, (x, dy, stats, dw, db), params, workgroups(-(-chunks * length // wide // 64)))
        return tuple(a.view((length,), (1,), 0) if chunks == 1 else total(a, (0,)) for a in (dw, db))  # type: ignore[return-value]
