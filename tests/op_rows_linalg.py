"""Rows of the op table for linear algebra. Inputs are made well-conditioned inside the calls: layouts repeat rows."""

import numpy as np
from op_cases import Case, Row, ones

import autograd as ag
from autograd.op import REGISTRY, apply

SQUARE = (((3, 3),), ((2, 3, 3),))
ANY = (*SQUARE, ((4, 3),), ((2, 3, 4),))
SMALL = ((-0.9, 0.9),)
PRECISE = {"dtypes": ("float32", "float64"), "tolerance": {"wgpu": 5e-5, "cpu": 5e-5}}


def well(x):
    """x plus 3, 5, 7, … on the diagonal: far from singular, and its singular values differ."""
    steps = np.diag(np.arange(3, 3 + 2 * max(x.shape[-2:]), 2))[: x.shape[-2], : x.shape[-1]]
    return x + (ag.tensor(steps, device=x.device).to(x.dtype) if isinstance(x, ag.Tensor) else steps)


def symmetric(x):
    return well(x + (x.mT if isinstance(x, ag.Tensor) else np.swapaxes(x, -1, -2)))


def eliminated(a):
    """The rows of a matrix, reduced by the rows above them, without exchanges: what LU keeps."""
    if a.ndim > 2:
        return np.array([eliminated(part) for part in a])
    a = a.copy()
    for i in range(len(a)):
        for j in range(min(i, a.shape[1])):
            a[i, j] /= a[j, j]
            a[i, j + 1 :] -= a[i, j] * a[j, j + 1 :]
    return a


def gram(x):
    return np.einsum("...ij,...ik->...jk", x, x)


def not_square(name, *rest):
    return ValueError, f"[{name}] expects square matrices [..., n, n]; got shape (2, 3)", lambda d: getattr(ag, name)(*ones(d, (2, 3)), *rest)


def a_vector(name):
    return ValueError, f"[{name}] expects matrices [..., m, n]; got shape (3,)", lambda d: getattr(ag, name)(*ones(d, (3,)))


def triangle(which, unit, mask):
    def reference(a, b):
        a = mask(well(a))
        if unit:
            a = np.where(np.eye(a.shape[-1]) == 1, 1, a)
        return np.linalg.inv(a) @ b

    return Case(lambda a, b: ag.linalg.solve_triangular(well(a), b, upper=which, unitriangular=unit), reference, SYSTEMS, SMALL)


SYSTEMS = (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)))

ROWS = {
    "solve": Row(
        (
            Case(lambda a, b: ag.linalg.solve(well(a), b), lambda a, b: np.linalg.inv(well(a)) @ b, SYSTEMS, SMALL),
            *(triangle(which, unit, np.triu if which else np.tril) for which in (False, True) for unit in (False, True)),
        ),
        errors=(
            (ValueError, "[solve] sizes must agree", lambda d: ag.linalg.solve(*ones(d, (2, 2), (3,)))),
            (ag.linalg.LinAlgError, "[solve] Singular matrix; got (2, 2) float32 and (2, 1) float32", lambda d: ag.linalg.solve(*ones(d, (2, 2), (2, 1)))),
        ),
        **PRECISE,
    ),
    "cholesky": Row(
        (Case(lambda x: ag.cholesky(symmetric(x)), lambda x: np.linalg.cholesky(symmetric(x)), SQUARE, SMALL),
         Case(lambda x: ag.cholesky(symmetric(x), upper=True).mT, lambda x: np.linalg.cholesky(symmetric(x)), SQUARE, SMALL)),
        errors=(not_square("cholesky"), (ag.linalg.LinAlgError, "[cholesky] Matrix is not positive definite", lambda d: ag.cholesky(-ag.eye(2, device=d)))),
        **PRECISE,
    ),
    "lu": Row((Case(lambda x: ag.lu(well(x))[0], lambda x: eliminated(well(x)), ANY, SMALL),), **PRECISE),
    "qr": Row(
        (
            Case(lambda x: ag.qr(well(x))[0] @ ag.qr(well(x))[1], well, ANY, SMALL),
            Case(lambda x: ag.qr(well(x))[1] ** 2, lambda x: np.swapaxes(np.linalg.cholesky(gram(well(x))), -1, -2) ** 2, SQUARE, SMALL),
        ),
        errors=(a_vector("qr"),), **PRECISE,
    ),
    "svd": Row(
        (
            Case(lambda x: ag.svd(well(x))[1], lambda x: np.sqrt(np.linalg.eigvalsh(gram(np.swapaxes(well(x), -1, -2)))[..., : -min(x.shape[-2:]) - 1 : -1]), ANY, SMALL),
            Case(lambda x: ag.svd(well(x))[0] @ ag.svd(well(x))[2].mT, lambda x: np.linalg.svd(well(x), False)[0] @ np.linalg.svd(well(x), False)[2], ANY, SMALL),
        ),
        errors=(a_vector("svd"),), **PRECISE,
    ),
    "eigh": Row(
        (
            Case(lambda x: ag.linalg.eigh(symmetric(x))[0], lambda x: np.sort(np.linalg.eigvals(symmetric(x)).real), SQUARE, SMALL),
            Case(lambda x: ag.linalg.eigh(symmetric(x))[1] ** 2, lambda x: np.linalg.eigh(symmetric(x))[1] ** 2, SQUARE, SMALL),
        ),
        **PRECISE,
    ),
    "pinv": Row(
        (Case(lambda x: apply(REGISTRY["pinv"], well(x), rcond=1e-6), lambda x: np.linalg.pinv(well(x)), ANY, SMALL),), **PRECISE,
    ),
    "det": Row((Case(lambda x: ag.det(well(x)), lambda x: np.linalg.det(well(x)), SQUARE, SMALL),), errors=(not_square("det"),), **PRECISE),
}
