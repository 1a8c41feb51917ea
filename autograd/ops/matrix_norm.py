"""Norms of vectors and matrices, and what is read off them: condition and rank."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes, shapes
from ..op import public
from ..tensor import Tensor
from .linalg import eigvalsh, inv, matrix, svdvals
from .rearrange import movedim


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """(sum |x|^ord)^(1/ord) over `dim`: inf the largest, -inf the smallest, 0 the number of elements that are not 0.

    The gradient where the norm, or for ord < 2 an element, is 0 is 0. ValueError for no elements and ord < 0 or inf.
    """
    if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
        got = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"[vector_norm] expects floating point; got {got}")
    x = x if dtype is None else x.to(dtype)
    axes = shapes.axes_of(dim, x.ndim, "vector_norm")
    p = float(ord)
    if (p < 0 or p == math.inf) and 0 in [x.shape[i] for i in axes]:
        raise ValueError(f"[vector_norm] ord={ord} needs elements along {axes}; got shape {x.shape}")
    if p == 2:
        return _euclidean(x, axes, keepdim)
    a = x.abs()
    if math.isinf(p):
        return a.amax(axes, keepdim) if p > 0 else a.amin(axes, keepdim)
    if p == 1:
        return _summed(a, axes, keepdim)
    if p == 0:
        return _summed(x.sign().abs(), axes, keepdim)
    if p < 2:  # |x|^p has no finite slope at 0
        zero = a == 0
        powers = (a.masked_fill(zero, 1) ** p).masked_fill(zero, 0 if p > 0 else math.inf)
    else:
        powers = a**p
    total = _summed(powers, axes, keepdim)
    none = (total == 0) | (total == math.inf) if p < 0 else total == 0
    return (total.masked_fill(none, 1) ** (1 / p)).masked_fill(none, 0)


def _summed(x: Tensor, axes: tuple, keepdim: bool) -> Tensor:
    return x.sum(axes, keepdim) if axes else x


def _euclidean(x: Tensor, axes: tuple, keepdim: bool) -> Tensor:
    """The square root of the sum of squares, scaled by the largest first: squares neither overflow nor vanish."""
    if not x.numel():
        return _summed(x * x, axes, keepdim)
    top = x.detach().abs()
    top = top.amax(axes, keepdim=True) if axes else top
    scale = top.masked_fill((top == 0) | (top == math.inf), 1)
    total = _summed((x / scale) ** 2, axes, True)
    zero = total == 0
    y = total.masked_fill(zero, 1).sqrt().masked_fill(zero, 0) * scale
    return y if keepdim else y.reshape(shapes.reduced_shape(x.shape, axes, False))


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """A norm over two dimensions: "fro", "nuc" (sum of singular values), 2 and -2 (largest, smallest of them), 1 and -1
    (largest, smallest column sum), inf and -inf (row sum)."""
    A = matrix(A if dtype is None else A.to(dtype), "matrix_norm")
    if isinstance(dim, int) or len(dim) != 2:
        raise ValueError(f"[matrix_norm] dim is two dimensions; got {dim}")
    i, j = (shapes.axis_of(d, A.ndim, "matrix_norm") for d in dim)
    if i == j:
        raise ValueError(f"[matrix_norm] the two dimensions must differ; got {tuple(dim)}")
    if ord == "fro":
        return vector_norm(A, 2, (i, j), keepdim)
    known = isinstance(ord, int | float) and abs(ord) in (1, 2, math.inf)
    if ord != "nuc" and not known:
        raise ValueError(f'[matrix_norm] ord must be "fro", "nuc", 1, -1, 2, -2, inf or -inf; got {ord!r}')
    if ord == "nuc" or abs(ord) == 2:
        s = svdvals(movedim(A, (i, j), (-2, -1)))
        y = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord > 0 else s.amin(-1)
    else:
        first, second = (i, j) if abs(ord) == 1 else (j, i)
        sums = A.abs().sum(first, keepdim=True)
        y = sums.amax(second, keepdim=True) if ord > 0 else sums.amin(second, keepdim=True)
        y = y.reshape(shapes.reduced_shape(A.shape, (i, j), False))
    return y.reshape(shapes.reduced_shape(A.shape, (i, j), True)) if keepdim else y


def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """vector_norm over one dimension, matrix_norm over two; without ord the 2-norm of all that `dim` spans."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    axes = tuple(range(A.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(axes) not in (1, 2):
        raise ValueError(f"[norm] with ord, one or two dimensions; got shape {A.shape} and dim={dim}")
    if len(axes) == 2:
        return matrix_norm(A, ord, axes, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise ValueError(f"[norm] ord={ord!r} needs two dimensions; got {axes}")
    return vector_norm(A, ord, axes, keepdim, dtype=dtype)


def norm(x: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """(sum |x|^p)^(1/p) over `dim`; "fro" is p = 2, "nuc" the sum of singular values over two dimensions."""
    if p == "nuc":
        if dim is None and x.ndim != 2:
            raise ValueError(f'[norm] p="nuc" needs two dimensions; got shape {x.shape}')
        return matrix_norm(x, "nuc", (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'[norm] p is a number, "fro" or "nuc"; got {p!r}')
    return vector_norm(x, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number |A| |A^-1| in a matrix norm; for p None and 2 the quotient of extreme singular values."""
    matrix(A, "cond", square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        s = svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest); rtol defaults to max(m, n) * eps when atol is 0.

    tol: another name for atol, with rtol 0. hermitian: the sizes of eigenvalues instead.
    """
    matrix(A, "matrix_rank", square=hermitian)
    A = A.detach()
    s = eigvalsh(A).abs() if hermitian else svdvals(A)
    if not s.shape[-1]:
        return A.new_zeros(A.shape[:-2], dtype=dtypes.int64)
    if tol is not None:
        atol, rtol = tol, 0.0
    if rtol is None:
        eps = max(A.shape[-2:]) * (2.0**-52 if A.dtype is dtypes.float64 else 2.0**-23)
        rtol = _default_rtol(atol, eps, A)
    limit = s.amax(-1) * rtol
    limit = limit if atol is None else limit.maximum(limit * 0 + atol)
    return (s > limit.unsqueeze(-1)).long().sum(-1)


def _default_rtol(atol: Any, eps: float, A: Tensor) -> Any:
    """eps where no absolute tolerance was given (None or 0), else 0."""
    if isinstance(atol, Tensor):
        return (atol == 0).to(A.dtype) * eps
    return eps if not atol else 0.0


public(norm)
