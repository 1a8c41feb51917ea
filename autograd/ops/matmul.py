"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import shapes
from ..op import Op, apply, public, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu import launch


def _rows(x: Any) -> Any:
    """x as one matrix of all its rows."""
    return x if x.ndim == 2 else x.reshape(shapes.numel(x.shape[:-1]), x.shape[-1])


def _matmul(a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None, turned: bool = False) -> np.ndarray:
    if a.dtype == np.float16:  # NumPy has no fast float16 product and sums it in float16
        a, b, bias = (x if x is None else x.astype(np.float32) for x in (a, b, bias))
        return _matmul(a, b, bias).astype(np.float16)
    y = np.matmul(a, b) if a.ndim < 3 or b.ndim > 2 else np.matmul(_rows(a), b).reshape(*a.shape[:-1], b.shape[1])
    if bias is not None:
        y += bias
    return y


_kernel = launch.Matmul()
_WIDE = {np.dtype(np.float16): np.float32}  # NumPy sums float16 in float16


@register
class Matmul(Op):
    """y = a @ b, over the last two dimensions, + bias
    da = dy @ b^T; db = a^T @ dy; dbias = dy summed to its shape
    """

    numpy = staticmethod(_matmul)
    wgpu = staticmethod(lambda a, b, bias=None, turned=False: _kernel(a, b, bias))
    saves = ((1,), (0,), ())

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, b, *_ = ctx.saved_inputs()
        da = None if b is None else matmul(dy, b.mT)
        return da, None if a is None else _weight_gradient(a, dy, ctx), *[dy] * (len(ctx.edges) - 2)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor) -> tuple:
        a, b, *_ = ctx.saved_inputs()
        if a is None or len(ctx.edges) < 3 or ctx.edges[2] is None or not ctx.attrs["turned"]:
            return Matmul.backward(ctx, dy)
        dw, dbias = apply(_WithSums, _rows(dy).mT, _rows(a))
        return None if b is None else matmul(dy, b.mT), dw.mT, dbias


class _WithSums(Op):
    """y = a @ b, and the sums of a's rows: the gradients of a linear layer's weight and bias, in one kernel."""

    name = "matmul"
    numpy = staticmethod(lambda a, b: (_matmul(a, b), a.sum(1, dtype=_WIDE.get(a.dtype)).astype(a.dtype, copy=False)))
    wgpu = staticmethod(_kernel.with_sums)
    outputs = 2
    differentiable = False


def _weight_gradient(a: Tensor, dy: Tensor, ctx: Node) -> Tensor:
    """a^T @ dy; with one b for a whole batch it is one long product, not a batch of products to be summed."""
    if len(ctx.edges[1].shape) == 2 and a.ndim > 2 and a.shape[:-2] == dy.shape[:-2]:
        a, dy = _rows(a), _rows(dy)
    if ctx.attrs["turned"]:  # b is a transpose, as in linear(): its gradient, laid out likewise, needs no copy
        return matmul(dy.mT, a).mT
    return matmul(a.mT, dy)


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
    if bias is None or bias.shape == () or not x.dtype is weight.dtype is bias.dtype:
        return matmul(x, weight.mT) if bias is None else matmul(x, weight.mT) + bias
    if x.ndim > 1:
        return apply(Matmul, x, weight.mT, bias, turned=True)
    return apply(Matmul, x.unsqueeze(0), weight.mT, bias, turned=True).squeeze(0)


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
Tensor.__matmul__ = lambda a, b: _product(a, b) if isinstance(b, Tensor) else NotImplemented  # type: ignore[attr-defined]
