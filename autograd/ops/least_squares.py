"""Least squares, and the tensors' own solve and inverse: composites of linalg.py."""

from __future__ import annotations

from typing import NamedTuple

from .. import create, shapes
from ..tensor import Tensor
from .linalg import inv, linalg_solve, matrix, pinverse, svdvals
from .matmul import matmul
from .matrix_norm import matrix_rank


class LeastSquares(NamedTuple):
    """What lstsq() returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The X [..., n, k] of least |A X - B| for A [..., m, n] and B [..., m, k] (or [..., m]), the shortest where many are.

    It is pinv(A) B, so it has the pseudo-inverse's gradient. Singular values up to rcond (default: eps * max(m, n)) times
    the largest count as 0. residuals: |A X - B|^2 by column where every A has rank n < m, else empty. singular_values:
    with driver="gelsd" or "gelss", else empty; the drivers "gels" and "gelsy" differ in nothing else here.
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f'[lstsq] driver is "gels", "gelsy", "gelsd" or "gelss"; got {driver!r}')
    m, n = matrix(A, "lstsq").shape[-2:]
    vector = B.ndim == A.ndim - 1
    b = B.unsqueeze(-1) if vector else B
    if b.ndim < 2 or b.shape[-2] != m:
        raise ValueError(f"[lstsq] A and B must have equally many rows; got {A.shape} and {B.shape}")
    small = max(m, n) * (2.0**-52 if A.dtype.itemsize == 8 else 2.0**-23) if rcond is None else rcond
    x = matmul(pinverse(A, small), b)
    rank = matrix_rank(A, rtol=small)
    full = m > n and bool((rank == n).all())
    residuals = ((matmul(A, x) - b) ** 2).sum(-2) if full else create.zeros(0, dtype=A.dtype, device=A.device)
    values = svdvals(A) if driver in ("gelsd", "gelss") else create.zeros(0, dtype=A.dtype, device=A.device)
    return LeastSquares(x.squeeze(-1) if vector else x, residuals, rank, values)


def tensorsolve(A: Tensor, B: Tensor, dims: tuple | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B, where A has B's shape first; `dims` of A are moved to its end before."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    rest = A.shape[B.ndim :]
    if shapes.numel(rest) != B.numel() or A.shape[: B.ndim] != B.shape:
        raise ValueError(f"[tensorsolve] A must be B's shape and as many elements again; got {A.shape} and {B.shape}")
    return linalg_solve(A.reshape(B.numel(), -1), B.flatten()).reshape(*rest)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map from its last dimensions to its first `ind`: tensordot(tensorinv(A), B, ind) solves for B."""
    first, last = A.shape[:ind], A.shape[ind:]
    if ind < 1 or shapes.numel(first) != shapes.numel(last):
        raise ValueError(f"[tensorinv] the first {ind} dimensions must hold as much as the others; got {A.shape}")
    return inv(A.reshape(shapes.numel(first), -1)).reshape(*last, *first)
