"""PyTorch's linear algebra over the factorisations of factor.py: solvers, inverses, determinants, powers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import create, dtypes, shapes
from ..op import apply, public
from ..tensor import Tensor
from .composite import tril
from .diagonal import diagonal
from .factor import Cholesky, Det, Eigh, Lu, Pinv, Qr, Svd, permutation, solve, solve_right, unpack
from .matmul import matmul
from .select import where


def matrix(A: Tensor, op: str, square: bool = False) -> Tensor:
    """A, checked: float32 or float64, at least 2 dimensions, the last two equal when `square`."""
    if not isinstance(A, Tensor):
        raise TypeError(f"[{op}] expected a Tensor; got {type(A).__name__}")
    if A.ndim < 2 or (square and A.shape[-1] != A.shape[-2]):
        kind = "square matrices [..., n, n]" if square else "matrices [..., m, n]"
        raise ValueError(f"[{op}] expects {kind}; got shape {A.shape}")
    if A.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"[{op}] expects float32 or float64; got {A.dtype}. Convert with .float() first")
    return A


def _same_batch(a: Tensor, b: Tensor, op: str) -> tuple[Tensor, Tensor]:
    """Both with their leading dimensions broadcast."""
    if a.dtype is not b.dtype:
        raise TypeError(f"[{op}] both must have one dtype; got {a.dtype} and {b.dtype}")
    if a.shape[:-2] == b.shape[:-2]:
        return a, b
    batch = shapes.broadcast((a.shape[:-2], b.shape[:-2]), op)
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


def _identity(A: Tensor) -> Tensor:
    """Identity matrices in A's batch shape."""
    eye = create.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return eye.expand(*A.shape[:-2], *eye.shape)


def _infos(A: Tensor) -> Tensor:
    return create.zeros(A.shape[:-2], dtype=dtypes.int32, device=A.device)


def _with_info(function: Callable, A: Tensor, check_errors: bool, definite: bool = False) -> tuple:
    """(function(A), info): info is 0, or the number of the first pivot of a matrix that is 0 (not positive, if `definite`).

    What function gives for such a matrix is NaN; with check_errors it is an error.
    """
    try:
        return function(A), _infos(A)
    except ValueError:
        if check_errors:
            raise
    pivots = diagonal(apply(Lu, A.detach(), pivot=not definite)[0], 0, -2, -1)
    bad = (pivots <= 0) | pivots.isnan() if definite else pivots == 0
    failed = bad.any(-1)
    mask = failed.unsqueeze(-1).unsqueeze(-1)
    y = function(where(mask, _identity(A), A)).masked_fill(mask, math.nan)
    return y, ((bad.long().argmax(-1) + 1) * failed.long()).to(dtypes.int32)


# -- solving --------------------------------------------------------------------------------------------


def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B (left=False: X A = B). B is a vector [..., n] when it is 1-D or has A's shape without the last."""
    matrix(A, "solve", square=True)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    if vector and not left:
        raise ValueError(f"[solve] left=False expects matrices on the right side; got {B.shape}")
    b = B.unsqueeze(-1) if vector else B
    if b.shape[-2 if left else -1] != A.shape[-1]:
        raise ValueError(f"[solve] sizes must agree; got A {A.shape} and B {B.shape}")
    a, b = _same_batch(A, b, "solve")
    x = solve(a, b) if left else solve_right(a, b)
    return x.squeeze(-1) if vector else x


def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple:
    """(solution, info): as solve(), with NaN and the number of the zero pivot for a singular matrix."""
    return _with_info(lambda a: linalg_solve(a, B, left=left), matrix(A, "solve_ex", square=True), check_errors)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A X = B (left=False: X A = B) for the upper or lower triangle of A, its diagonal taken as 1 if unitriangular."""
    matrix(A, "solve_triangular", square=True)
    matrix(B, "solve_triangular")
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise ValueError(f"[solve_triangular] sizes must agree; got A {A.shape} and B {B.shape}, left={left}")
    a, b = _same_batch(A, B, "solve_triangular")
    if left:
        return solve(a, b, "upper" if upper else "lower", unitriangular)
    return solve_right(a, b, "lower" if upper else "upper", unitriangular)


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> tuple:
    """(X, A) with A X = b, or A^T X = b, for a triangle of A."""
    turned, up = (A.mT, not upper) if transpose else (A, upper)
    return solve_triangular(turned, b, upper=up, unitriangular=unitriangular), A.clone()


def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. ValueError for a singular one."""
    matrix(A, "inv", square=True)
    return solve(A, _identity(A))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple:
    """(inverse, info): as inv(), with NaN and the number of the zero pivot for a singular matrix."""
    return _with_info(inv, matrix(A, "inv_ex", square=True), check_errors)


def pinverse(A: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse [..., n, m] of [..., m, n]; singular values up to rcond times the largest count as 0."""
    return apply(Pinv, matrix(A, "pinverse"), rcond=rcond)


# -- cholesky -------------------------------------------------------------------------------------------


def cholesky(A: Tensor, upper: bool = False) -> Tensor:
    """L, lower triangular, with L L^T = A (upper: U^T U = A) for positive definite matrices; one triangle is read."""
    matrix(A, "cholesky", square=True)
    return apply(Cholesky, A.mT).mT if upper else apply(Cholesky, A)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple:
    """(L, info): as cholesky(), with NaN and the order of the first minor that is not positive for a matrix with one."""
    return _with_info(lambda a: cholesky(a, upper), matrix(A, "cholesky_ex", square=True), check_errors, definite=True)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = B, given the Cholesky factor L of A. As in PyTorch, the gradient of L is that of a whole matrix."""
    matrix(L, "cholesky_solve", square=True)
    if matrix(B, "cholesky_solve").shape[-2] != L.shape[-1]:
        raise ValueError(f"[cholesky_solve] sizes must agree; got B {B.shape} and L {L.shape}")
    lower, B = _same_batch(L.mT if upper else L, B, "cholesky_solve")
    lower = lower + (tril(lower) - lower).detach()  # reads one triangle, but sends a gradient to both
    return solve(lower.mT, solve(lower, B))


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, given its Cholesky factor L."""
    return cholesky_solve(_identity(matrix(L, "cholesky_inverse", square=True)), L, upper)


# -- lu, qr, svd, eigh ----------------------------------------------------------------------------------


def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple:
    """(LU, pivots): L below and U on and above the diagonal; row i was exchanged with row pivots[i] - 1."""
    return apply(Lu, matrix(A, "lu_factor"), pivot=pivot)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple:
    """lu_factor(), with infos (zeros) behind when get_infos."""
    packed = lu_factor(A, pivot=pivot)
    return (*packed, _infos(A)) if get_infos else packed


def linalg_lu(A: Tensor, *, pivot: bool = True) -> tuple:
    """(P, L, U) with P L U = A."""
    packed, pivots = lu_factor(A, pivot=pivot)
    return permutation(pivots, A.shape[-2], A), *unpack(packed)


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B (left=False: X A = B; adjoint: A^T instead of A), given lu_factor(A)."""
    matrix(LU, "lu_solve", square=True)
    matrix(B, "lu_solve")
    if B.shape[-2 if left else -1] != LU.shape[-1] or pivots.shape != LU.shape[:-1]:
        raise ValueError(f"[lu_solve] sizes must agree; got LU {LU.shape}, pivots {pivots.shape} and B {B.shape}, left={left}")
    if not left:  # X A = B is A^T X^T = B^T
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    p = permutation(pivots, LU.shape[-1], LU)
    a, b = _same_batch(LU, B, "lu_solve")
    if adjoint:
        return matmul(p, solve(a.mT, solve(a.mT, b, "lower"), "upper", True))
    return solve(a, solve(a, matmul(p.mT, b), "lower", True), "upper")


def linalg_qr(A: Tensor, mode: str = "reduced") -> tuple:
    """(Q, R) with Q R = A. mode: "reduced", "complete" (Q square), or "r" (Q left empty, no gradient)."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'[qr] mode must be "reduced", "complete" or "r"; got {mode!r}')
    matrix(A, "qr")
    if mode == "r":
        return A.new_zeros(0), apply(Qr, A.detach(), complete=False)[1]
    return apply(Qr, A, complete=mode == "complete")


def qr(A: Tensor, some: bool = True) -> tuple:
    """(Q, R) with Q R = A; some=False makes Q square."""
    return linalg_qr(A, "reduced" if some else "complete")


def linalg_svd(A: Tensor, full_matrices: bool = True) -> tuple:
    """(U, S, Vh) with U diag(S) Vh = A and S falling."""
    return apply(Svd, matrix(A, "svd"), full=full_matrices)


def svd(A: Tensor, some: bool = True, compute_uv: bool = True) -> tuple:
    """(U, S, V) with U diag(S) V^T = A; U and V are zeros without compute_uv."""
    if not compute_uv:
        m, n = matrix(A, "svd").shape[-2:]
        return A.new_zeros((*A.shape[:-2], m, m)), svdvals(A), A.new_zeros((*A.shape[:-2], n, n))
    u, s, vh = linalg_svd(A, not some)
    return u, s, vh.mT


def svdvals(A: Tensor) -> Tensor:
    """The singular values, falling."""
    return linalg_svd(A, False)[1]


def eigh(A: Tensor, UPLO: str = "L") -> tuple:
    """(eigenvalues rising, eigenvectors in columns) of symmetric matrices, of which one triangle is read."""
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f'[eigh] UPLO must be "L" or "U"; got {UPLO!r}')
    return apply(Eigh, matrix(A, "eigh", square=True), triangle=UPLO.upper())


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, rising."""
    return eigh(A, UPLO)[0]


# -- determinants ---------------------------------------------------------------------------------------


def det(A: Tensor) -> Tensor:
    """The determinants of square matrices."""
    return apply(Det, matrix(A, "det", square=True))


def slogdet(A: Tensor) -> tuple:
    """(sign, log|det|), by an LU factorisation: what det() would overflow with. Singular: (0, -inf)."""
    packed, pivots = lu_factor(matrix(A, "slogdet", square=True))
    d = diagonal(packed, 0, -2, -1)
    rows = create.arange(1, A.shape[-1] + 1, dtype=dtypes.int32, device=A.device)
    odd = (pivots != rows).long().sum(-1) % 2
    return d.sign().prod(-1) * (1 - 2 * odd).to(A.dtype), d.abs().log().sum(-1)


def logdet(A: Tensor) -> Tensor:
    """log(det(A)): NaN for a negative determinant, -inf for 0."""
    sign, magnitude = slogdet(A)
    return magnitude + sign.masked_fill(sign < 0, math.nan).masked_fill(sign >= 0, 0)


# -- powers and products --------------------------------------------------------------------------------


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A to the whole power n, by repeated squaring; a negative one of the inverse."""
    matrix(A, "matrix_power", square=True)
    if n < 0:
        return matrix_power(inv(A), -n)
    result, square = None, A
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        square = matmul(square, square) if n else square
    if result is None:
        result = _identity(A) + (A * 0 if A.requires_grad else 0)
    return result.clone() if result is A else result


def matrix_exp(A: Tensor) -> Tensor:
    """The sum of A^k / k!: the Taylor polynomial of degree 16 of A / 2^s, squared s times."""
    matrix(A, "matrix_exp", square=True)
    if not A.numel():
        return A.clone()
    norm = A.detach().abs().sum(-2).amax().item()
    reach = 0.75 if A.dtype is dtypes.float64 else 2.5  # up to here the rest of the series is below the rounding
    s = max(0, math.ceil(math.log2(norm / reach))) if 0 < norm < math.inf else 0
    x = A / 2**s if s else A
    eye = _identity(A)
    x2 = matmul(x, x)
    x3 = matmul(x2, x)
    x4 = matmul(x2, x2)
    y = x4 / math.factorial(16)
    for k in (12, 8, 4, 0):
        part = [p / math.factorial(k + i) for i, p in enumerate((eye, x, x2, x3))]
        y = y + part[0] + part[1] + part[2] + part[3]
        y = matmul(y, x4) if k else y
    for _ in range(s):
        y = matmul(y, y)
    return y


def multi_dot(tensors: Sequence[Tensor], **kwargs: Any) -> Tensor:
    """The product of several matrices, in the order that costs least; the first and last may be vectors."""
    if kwargs:
        raise TypeError(f"[multi_dot] unknown arguments {', '.join(kwargs)}")
    parts = list(tensors)
    if len(parts) < 2:
        raise ValueError(f"[multi_dot] expects at least two tensors; got {len(parts)}")
    ends = (1, 2)
    if any(t.ndim not in (ends if i in (0, len(parts) - 1) else (2,)) for i, t in enumerate(parts)):
        raise ValueError(f"[multi_dot] expects matrices, or vectors at the ends; got {', '.join(str(t.shape) for t in parts)}")
    row, column = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = parts[0].unsqueeze(0) if row else parts[0]
    parts[-1] = parts[-1].unsqueeze(1) if column else parts[-1]
    for left, right in itertools.pairwise(parts):
        if left.shape[1] != right.shape[0]:
            raise ValueError(f"[multi_dot] inner sizes must agree; got {left.shape} @ {right.shape}")
    y = _cheapest(parts)
    y = y.squeeze(0) if row else y
    return y.squeeze(-1) if column else y


def _cheapest(parts: list[Tensor]) -> Tensor:
    """The classic dynamic programme over (first, last) of the chain, shortest spans first."""
    sizes = [parts[0].shape[0], *(p.shape[1] for p in parts)]
    n = len(parts)
    cost = np.zeros((n, n))
    cut: dict[tuple[int, int], int] = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            costs = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cut[i, j] = i + int(np.argmin(costs))
            cost[i, j] = min(costs)
    found: dict[tuple[int, int], Tensor] = {(i, i): p for i, p in enumerate(parts)}
    wanted = [(0, n - 1)]
    for i, j in wanted:  # grows while it is walked: every product before its parts
        if i != j:
            wanted += [(i, cut[i, j]), (cut[i, j] + 1, j)]
    for i, j in reversed(wanted):
        if i != j:
            found[i, j] = matmul(found[i, cut[i, j]], found[cut[i, j] + 1, j])
    return found[0, n - 1]


for _function in (cholesky, cholesky_solve, cholesky_inverse, triangular_solve, pinverse, lu, qr, svd, det, slogdet, logdet,
                  matrix_power, matrix_exp):  # fmt: skip
    public(_function)
public(inv, "inverse")
