"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import shapes
from ..create import from_numpy
from ..op import Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch
from ..webgpu.views import permute


def _rows(x: Any) -> Any:
    """x as one matrix of all its rows."""
    return x if x.ndim == 2 else x.reshape(shapes.numel(x.shape[:-1]), x.shape[-1])


def _is_thin(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether few rows meet many columns that lie in memory one after the other, as a weight's transpose does."""
    return 1 < a.shape[0] <= 64 and 4 * a.shape[0] <= b.shape[1] and b.size >= 1 << 14 and b.T.flags.c_contiguous


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == np.float16:  # NumPy has no fast float16 product and sums it in float16
        return _matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    if a.shape[-1] == 1 and b.ndim > 1:
        return np.multiply(a, b)  # np.matmul of a single column and row is ten times slower
    if b.ndim > 2 or a.ndim < 2:
        return np.matmul(a, b)
    rows = _rows(a)
    if _is_thin(rows, b):  # OpenBLAS packs a left operand that lies column by column at half its speed
        y = np.ascontiguousarray(np.matmul(b.T, rows.T).T)
    else:
        y = np.matmul(rows, b)
    return y.reshape(*a.shape[:-1], b.shape[1])


_kernel = launch.Matmul()
_WIDE = {np.dtype(np.float16): np.float32}  # NumPy sums float16 in float16


@register
class Matmul(Op):
    """y = a @ b, over the last two dimensions
    da = dy @ b^T; db = a^T @ dy
    """

    numpy = staticmethod(lambda a, b, turned: _matmul(a, b))
    wgpu = staticmethod(lambda a, b, turned: _kernel(a, b))
    saves = ((1,), (0,))

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b = ctx.saved_inputs()
        da = None if b is None else matmul(dy, b.mT)
        if a is None:
            return da, None
        if len(ctx.edges[1].shape) == 2 and a.ndim > 2 and a.shape[:-2] == dy.shape[:-2]:
            a, dy = _rows(a), _rows(dy)  # one long product, not a batch of products to be summed
        # where b is the transpose of something: its gradient, laid out likewise, needs no copy
        return da, matmul(dy.mT, a).mT if ctx.attrs["turned"] else matmul(a.mT, dy)


def _linear(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    if x.dtype == np.float16:
        x, w, b = (a if a is None else a.astype(np.float32) for a in (x, w, b))
        return _linear(x, w, b).astype(np.float16)
    y = _matmul(x, w.T)
    if b is not None:
        y += b
    return y


@register
class Linear(Op):
    """y = x @ w^T + b, of rows x [..., I], w [O, I], b [O]
    dx = dy @ w; dw = dy^T @ x, db = dy summed over the rows
    """

    numpy = staticmethod(_linear)
    wgpu = staticmethod(lambda x, w, b=None: _kernel(x, permute(w, (1, 0)), b))
    saves = ((1,), (0,), ())

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        x, w, *_ = ctx.saved_inputs()
        dx = None if w is None else matmul(dy, w)
        dy = _rows(dy)
        return dx, None if x is None else matmul(dy.mT, _rows(x)), *[dy] * (len(ctx.edges) - 2)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> tuple:
        x, w, *_ = ctx.saved_inputs()
        if x is None or len(ctx.edges) < 3 or ctx.edges[2] is None:
            return Linear.backward(ctx, dy)
        return None if w is None else matmul(dy, w), *apply(LinearBackward, _rows(dy), _rows(x))


class LinearBackward(Op):
    """dw = dy^T @ x and db, the sums of dy's columns: the gradients of a linear layer's weight and bias, in one kernel."""

    name = "linear_backward"
    numpy = staticmethod(lambda dy, x: (_matmul(dy.T, x), dy.sum(0, dtype=_WIDE.get(dy.dtype)).astype(dy.dtype, copy=False)))
    wgpu = staticmethod(lambda dy, x: _kernel.with_sums(permute(dy, (1, 0)), x))
    outputs = 2
    differentiable = False


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product [..., M, K] @ [..., K, N]; a vector is a row on the left, a column on the right.

    Leading dimensions broadcast. float16 is summed in float32. ValueError when the inner sizes differ.
    """
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        raise TypeError(f"[matmul] expects two tensors; got {type(a).__name__} and {type(b).__name__}")
    if not a.ndim or not b.ndim:
        raise ValueError(f"[matmul] expects at least one dimension on both sides; got {a.shape} @ {b.shape}. Use *")
    if a.dtype is not b.dtype:
        raise TypeError(f"[matmul] both sides must have one dtype; got {a.dtype} and {b.dtype}. Cast one with .to(dtype)")
    rows, columns = a.shape[-1], b.shape[-2 if b.ndim > 1 else -1]
    if rows != columns:
        raise ValueError(f"[matmul] inner sizes must agree; got {a.shape} @ {b.shape}. Transpose one operand?")
    left, right = a.ndim == 1, b.ndim == 1
    a = a.unsqueeze(0) if left else a
    b = b.unsqueeze(1) if right else b
    if b.ndim > 2:
        shapes.broadcast((a.shape[:-2], b.shape[:-2]), "matmul")
    y = apply(Matmul, a, b, turned=_is_turned(b))
    y = y.squeeze(-2) if left else y
    return y.squeeze(-1) if right else y


def _is_turned(b: Tensor) -> bool:
    """Whether b lies in memory column by column."""
    return b.ndim == 2 and b.stride(0) == 1 and b.shape[0] > 1 and b.shape[1] > 1


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y = x @ weight^T + bias: x [..., I], weight [O, I] (or [I]), bias [O] -> y [..., O]."""
    if weight.ndim != 2 or not x.ndim:
        return matmul(x, weight.T) if bias is None else matmul(x, weight.T) + bias
    if x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape not in ((weight.shape[0],), ())):
        got = "" if bias is None else f" + {bias.shape}"
        raise ValueError(f"[linear] needs x [..., I] @ weight [O, I]^T + bias [O]; got {x.shape} @ {weight.shape}^T{got}")
    if not x.dtype is weight.dtype is (weight if bias is None else bias).dtype or (bias is not None and not bias.ndim):
        return matmul(x, weight.mT) if bias is None else matmul(x, weight.mT) + bias
    given = (weight,) if bias is None else (weight, bias)
    return apply(Linear, x, *given) if x.ndim > 1 else apply(Linear, x.unsqueeze(0), *given).squeeze(0)


def _of_ndim(name: str, ndim_a: int, ndim_b: int) -> Any:
    """A product that insists on its operands' numbers of dimensions."""

    def product(a: Tensor, b: Tensor) -> Tensor:
        if a.ndim != ndim_a or b.ndim != ndim_b:
            raise ValueError(f"[{name}] expects {ndim_a}-D and {ndim_b}-D tensors; got {a.shape} and {b.shape}")
        return matmul(a, b)

    product.__name__, product.__doc__ = name, f"The product of a {ndim_a}-D and a {ndim_b}-D tensor."
    return product


def outer(a: Tensor, b: Tensor) -> Tensor:
    """y[i, j] = a[i] * b[j]"""
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"[outer] expects two vectors; got {a.shape} and {b.shape}")
    return a.unsqueeze(1) * b


_product = public(matmul)
for _name, _dims in (("mm", (2, 2)), ("bmm", (3, 3)), ("mv", (2, 1)), ("dot", (1, 1))):
    public(_of_ndim(_name, *_dims))
public(outer)


def _times(a: Any, b: Any) -> Any:
    """a @ b, of which one may be a NumPy array: a tensor on the CPU, as with the other operators."""
    a, b = (from_numpy(x) if isinstance(x, np.ndarray) else x for x in (a, b))
    return _product(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else NotImplemented


Tensor.__matmul__ = _times  # type: ignore[attr-defined]
Tensor.__rmatmul__ = lambda b, a: _times(a, b)  # type: ignore[attr-defined]
