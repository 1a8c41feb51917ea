"""Factorisations of matrices: NumPy on the host on purpose, with gradients that are formulas in Tensor operations.

All work on the last two dimensions of [..., m, n]; T is the transpose, sym(X) = (X + X^T) / 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import create, dtypes
from ..op import HOST_OPS, Op, apply, register
from ..tape import Node
from ..tensor import Tensor
from ..webgpu.host import OnHost
from .composite import tril, triu
from .diagonal import diag_embed, diagonal
from .matmul import matmul
from .views import cat

_WHY = "a sequential algorithm on small matrices"


def _half_diagonal(x: Tensor) -> Tensor:
    """The lower triangle, its diagonal halved: what a symmetric matrix has to say once."""
    return tril(x) - diag_embed(diagonal(x, 0, -2, -1)) / 2


# -- solve ----------------------------------------------------------------------------------------------


def _solve(a: np.ndarray, b: np.ndarray, triangle: str, unit: bool) -> np.ndarray:
    if not triangle:
        return np.linalg.solve(a, b)
    n, x = a.shape[-1], b.copy()
    for i in range(n) if triangle == "lower" else range(n - 1, -1, -1):
        known = slice(0, i) if triangle == "lower" else slice(i + 1, n)
        row = x[..., i : i + 1, :] - a[..., i : i + 1, known] @ x[..., known, :]
        x[..., i : i + 1, :] = row if unit else row / a[..., i : i + 1, i : i + 1]
    return x


@register
class Solve(Op):
    """y = a^-1 b, for a whole matrix a or for its "lower" or "upper" triangle (unit: with ones on the diagonal)
    da = -db y^T, on the triangle; db = a^-T dy
    """

    numpy = staticmethod(_solve)
    wgpu = OnHost("solve", _solve)
    saves = ((0, 1), ())
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> tuple:
        a, (y,), (triangle, unit) = ctx.saved_inputs()[0], ctx.saved_outputs(), ctx.attrs.values()
        db = solve(a.mT, dy, {"lower": "upper", "upper": "lower"}.get(triangle, ""), unit)
        if not ctx.needs(0):
            return None, db
        da = -matmul(db, y.mT)
        if triangle:
            da = tril(da, -int(unit)) if triangle == "lower" else triu(da, int(unit))
        return da, db


def solve(a: Tensor, b: Tensor, triangle: str = "", unit: bool = False) -> Tensor:
    """a^-1 b for matrices with equal leading dimensions."""
    return apply(Solve, a, b, triangle=triangle, unit=unit)


def solve_right(a: Tensor, b: Tensor, triangle: str = "", unit: bool = False) -> Tensor:
    """b a^-1, as (a^-T b^T)^T; triangle says which one of a^T."""
    return solve(a.mT, b.mT, triangle, unit).mT


# -- cholesky -------------------------------------------------------------------------------------------


@register
class Cholesky(Op):
    """y = L with L L^T = a, lower triangular; a is symmetric and its lower triangle is read
    da = sym(L^-T P L^-1), P the lower triangle of L^T dL with its diagonal halved
    """

    numpy = staticmethod(np.linalg.cholesky)
    wgpu = OnHost("cholesky", np.linalg.cholesky)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_outputs()
        p = _half_diagonal(matmul(y.mT, dy))
        da = solve(y.mT, solve_right(y, p, "upper"), "upper")
        return (da + da.mT) / 2


# -- lu -------------------------------------------------------------------------------------------------


def _lu(a: np.ndarray, pivot: bool) -> tuple:
    m, n = a.shape[-2:]
    lu = a.copy().reshape(math.prod(a.shape[:-2]), m, n)
    k = min(m, n)
    pivots = np.zeros((len(lu), k), np.int32)
    batch = np.arange(len(lu))
    for j in range(k):
        row = np.abs(lu[:, j:, j]).argmax(1) + j if pivot else np.full(len(lu), j)
        pivots[:, j] = row + 1  # counted from 1, as LAPACK does
        top = lu[batch, row].copy()
        lu[batch, row] = lu[:, j]
        lu[:, j] = top
        head = lu[:, j, j, None].copy()
        head[head == 0] = 1  # then the whole column is 0
        lu[:, j + 1 :, j] /= head
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return lu.reshape(a.shape), pivots.reshape(*a.shape[:-2], k)


def order_of(pivots: np.ndarray, m: int) -> np.ndarray:
    """The order of the rows, [..., m], after the exchanges that LAPACK's pivots stand for."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(m), (len(flat), 1))
    batch = np.arange(len(flat))
    for j in range(flat.shape[-1]):
        row = flat[:, j] - 1
        order[batch, row], order[:, j] = order[:, j].copy(), order[batch, row]
    return order.reshape(*pivots.shape[:-1], m)


def permutation(pivots: Tensor, m: int, like: Tensor) -> Tensor:
    """The matrix P of a = P L U."""
    return create.place(np.swapaxes(np.eye(m, dtype=like.array.dtype)[order_of(pivots._host(), m)], -1, -2).copy(), like.device)


def unpack(lu: Tensor) -> tuple[Tensor, Tensor]:
    """(L, U) of an LU matrix: below the diagonal and ones on it, and the rest."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    eye = create.eye(m, k, dtype=lu.dtype, device=lu.device)
    return tril(lu[..., :k], -1) + eye, triu(lu[..., :k, :])


@register
class Lu(Op):
    """y, pivots = L below and U above the diagonal of one matrix, P L U = a, with partial pivoting
    da = P L^-T (tril(L^T dL, -1) + triu(dU U^T)) U^-T for a square a; the rest of a longer one is solved for
    """

    numpy = staticmethod(_lu)
    wgpu = OnHost("lu", _lu)
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dy: Tensor, _: Any) -> Tensor:
        lu, pivots = ctx.saved_outputs()
        m, n = lu.shape[-2:]
        k = min(m, n)
        lower, upper = unpack(lu)
        dl, du = tril(dy[..., :k], -1), triu(dy[..., :k, :])
        l1, u1, dl1, du1 = lower[..., :k, :], upper[..., :k], dl[..., :k, :], du[..., :k]
        if n > k:  # u2 = L^-1 a2
            right = solve(l1.mT, du[..., k:], "upper", True)
            dl1 = dl1 - matmul(right, upper[..., k:].mT)
        if m > k:  # l2 = a2 U^-1
            below = solve_right(u1.mT, dl[..., k:, :], "upper")
            du1 = du1 - matmul(lower[..., k:, :].mT, below)
        inner = tril(matmul(l1.mT, dl1), -1) + triu(matmul(du1, u1.mT))
        da = solve(l1.mT, solve_right(u1.mT, inner, "upper"), "upper", True)
        if n > k:
            da = cat([da, right], -1)
        if m > k:
            da = cat([da, below], -2)
        return matmul(permutation(pivots, m, dy), da)


# -- qr -------------------------------------------------------------------------------------------------


def _qr(a: np.ndarray, complete: bool) -> tuple:
    return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))


@register
class Qr(Op):
    """q, r with q r = a, q^T q = 1, r upper triangular
    da = (dq + q M) r^-T, M the lower triangle of r dr^T - dq^T q, mirrored; columns right of a square give q dr
    """

    numpy = staticmethod(_qr)
    wgpu = OnHost("qr", _qr)
    saves = ((0,),)
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dq: Tensor | None, dr: Tensor | None) -> Tensor:
        (a,), (q, r) = ctx.saved_inputs(), ctx.saved_outputs()
        m, n = a.shape[-2:]
        if ctx.attrs["complete"] and m > n:
            raise RuntimeError('[qr] the gradient of mode="complete" is defined for m <= n only; use mode="reduced"')
        dq = q.zeros_like() if dq is None else dq
        dr = r.zeros_like() if dr is None else dr
        right = matmul(q, dr[..., m:]) if n > m else None
        if n > m:  # r2 = q^T a2
            dq = dq + matmul(a[..., m:], dr[..., m:].mT)
            r, dr = r[..., :m], dr[..., :m]
        inner = matmul(r, dr.mT) - matmul(dq.mT, q)
        mirrored = tril(inner) + tril(inner, -1).mT
        da = solve_right(r.mT, dq + matmul(q, mirrored), "upper")
        return da if right is None else cat([da, right], -1)


# -- singular values and eigenvalues --------------------------------------------------------------------


def _finite(a: np.ndarray) -> np.ndarray:
    """a, where it is finite: LAPACK's iterations may never end on what is not."""
    strange = a.size - np.count_nonzero(np.isfinite(a))
    if strange:
        raise np.linalg.LinAlgError(f"a matrix must be finite, and {strange} elements are NaN or infinite")
    return a


def _svd(a: np.ndarray, full: bool) -> tuple:
    _finite(a)
    return tuple(np.linalg.svd(a, full_matrices=full))


def _gaps(x: Tensor) -> Tensor:
    """1 / (x_j - x_i), 0 on the diagonal."""
    gaps = x.unsqueeze(-2) - x.unsqueeze(-1)
    eye = create.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return (1 - eye) / (gaps + eye)


@register
class Svd(Op):
    """u, s, vh with u diag(s) vh = a, u^T u = vh vh^T = 1, s falling
    da = u (skew(u^T du) F diag(s) + diag(s) skew(v^T dv) F + diag(ds)) vh + (1 - u u^T) du s^-1 vh + u s^-1 dv^T (1 - v v^T),
    F[i, j] = 1 / (s_j^2 - s_i^2), skew(X) = X - X^T
    """

    numpy = staticmethod(_svd)
    wgpu = OnHost("svd", _svd)
    keeps = True
    outputs = 3

    @staticmethod
    def backward(ctx: Node, du: Tensor | None, ds: Tensor | None, dvh: Tensor | None) -> Tensor:
        u, s, vh = ctx.saved_outputs()
        m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
        u, vh = u[..., :k], vh[..., :k, :]
        inner = s.new_zeros(()).expand(*s.shape, k) if ds is None else diag_embed(ds)
        f = None if du is None and dvh is None else _gaps(s * s)
        left = right = None
        if du is not None:
            du = du[..., :k]
            turn = matmul(u.mT, du)
            inner = inner + (turn - turn.mT) * f * s.unsqueeze(-2)
            left = (du - matmul(u, turn)) / s.unsqueeze(-2) if m > k else None
        if dvh is not None:
            dvh = dvh[..., :k, :]
            turn = matmul(vh, dvh.mT)
            inner = inner + s.unsqueeze(-1) * (turn - turn.mT) * f
            right = (dvh - matmul(turn.mT, vh)) / s.unsqueeze(-1) if n > k else None
        da = matmul(matmul(u, inner), vh)
        da = da if left is None else da + matmul(left, vh)
        return da if right is None else da + matmul(u, right)


def _eigh(a: np.ndarray, triangle: str) -> tuple:
    _finite(np.triu(a) if triangle == "U" else np.tril(a))
    return tuple(np.linalg.eigh(a, "U" if triangle == "U" else "L"))


@register
class Eigh(Op):
    """w, v with v diag(w) v^T = a, v^T v = 1, w rising; a is symmetric and one triangle is read
    da = sym(v (diag(dw) + (v^T dv) G) v^T), G[i, j] = 1 / (w_j - w_i)
    """

    numpy = staticmethod(_eigh)
    wgpu = OnHost("eigh", _eigh)
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dw: Tensor | None, dv: Tensor | None) -> Tensor:
        w, v = ctx.saved_outputs()
        inner = w.new_zeros(()).expand(*w.shape, w.shape[-1]) if dw is None else diag_embed(dw)
        if dv is not None:
            inner = inner + matmul(v.mT, dv) * _gaps(w)
        da = matmul(matmul(v, inner), v.mT)
        return (da + da.mT) / 2


# -- pinv and det ---------------------------------------------------------------------------------------


def _pinv(a: np.ndarray, rcond: float) -> np.ndarray:
    return np.linalg.pinv(_finite(a), rcond)


@register
class Pinv(Op):
    """y = the pseudo-inverse of a; singular values up to rcond times the largest count as 0
    da = -y^T dy y^T + (1 - a y) dy^T y y^T + y^T y dy^T (1 - y a)
    """

    numpy = staticmethod(_pinv)
    wgpu = OnHost("pinv", _pinv)
    saves = ((0,),)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (a,), (y,) = ctx.saved_inputs(), ctx.saved_outputs()
        first = matmul(dy.mT, matmul(y, y.mT))
        last = matmul(matmul(y.mT, y), dy.mT)
        middle = matmul(matmul(y.mT, dy), y.mT)
        return first - matmul(a, matmul(y, first)) + last - matmul(matmul(last, y), a) - middle


def _det(a: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.det(a))


@register
class Det(Op):
    """y = det(a)
    da = dy times the cofactors: y a^-T, or, where a matrix is singular, det(u) det(v) u C vh by its singular values
    """

    numpy = staticmethod(_det)
    wgpu = OnHost("det", _det)
    saves = ((0,),)
    keeps = True

    @staticmethod
    def backward(ctx: Node, dy: Tensor) -> Tensor:
        (a,), (y,) = ctx.saved_inputs(), ctx.saved_outputs()
        dy = dy.unsqueeze(-1).unsqueeze(-1)
        if not a.numel():
            return a.zeros_like()
        if not bool((y == 0).any()):
            eye = create.eye(a.shape[-1], dtype=a.dtype, device=a.device)
            return solve(a.mT, (dy * y.unsqueeze(-1).unsqueeze(-1)) * eye)
        u, s, vh = apply(Svd, a, full=False)
        turn = (apply(Det, u.detach()) * apply(Det, vh.detach())).unsqueeze(-1).unsqueeze(-1)
        return dy * turn * matmul(u * _products_of_others(s).unsqueeze(-2), vh)


def _products_of_others(s: Tensor) -> Tensor:
    """Each element's product of all the other ones along the last dimension."""
    eye = create.eye(s.shape[-1], dtype=dtypes.bool_, device=s.device)
    factors = s.unsqueeze(-2).expand(*s.shape, s.shape[-1]).masked_fill(eye, 1)
    product = factors[..., 0]
    for j in range(1, s.shape[-1]):
        product = product * factors[..., j]
    return product


for _op in ("solve", "cholesky", "lu", "qr", "svd", "eigh", "pinv", "det"):
    HOST_OPS[_op] = _WHY
