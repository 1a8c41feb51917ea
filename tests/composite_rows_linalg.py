"""Rows for linear algebra that is made of the factorisations, in the form of tests/op_cases.py."""

import math

import numpy as np
from op_cases import Case, Row, ones
from op_rows_linalg import ANY, PRECISE, SMALL, SQUARE, SYSTEMS, not_square, symmetric, well

import autograd as ag

L = ag.linalg


def made(call, reference, shapes=SQUARE, **kwargs):
    return Row((Case(call, reference, shapes, SMALL),), **PRECISE, **kwargs)


def exponential(x):
    y, term = np.zeros_like(x) + np.eye(x.shape[-1]), np.eye(x.shape[-1])
    for k in range(1, 40):
        term = term @ x / k
        y = y + term
    return y


def values(x):
    return np.linalg.svd(well(x), compute_uv=False)


def norms(ord, reference):
    return Case(lambda x: L.matrix_norm(well(x), ord), lambda x: reference(well(x)), ANY, SMALL)


ROWS = {
    "inverse": made(lambda x: ag.inverse(well(x)), lambda x: np.linalg.inv(well(x))),
    "pinverse": made(lambda x: ag.pinverse(well(x)), lambda x: np.linalg.pinv(well(x)), ANY),
    "cholesky_solve": made(lambda a, b: ag.cholesky_solve(b, ag.cholesky(symmetric(a))), lambda a, b: np.linalg.inv(symmetric(a)) @ b, SYSTEMS),
    "cholesky_inverse": made(lambda a: ag.cholesky_inverse(ag.cholesky(symmetric(a), upper=True), True), lambda a: np.linalg.inv(symmetric(a))),
    "lu_solve": Row(
        tuple(Case(lambda a, b, t=t: L.lu_solve(*L.lu_factor(well(a)), b, adjoint=t), lambda a, b, t=t: np.linalg.inv(np.swapaxes(well(a), -1, -2) if t else well(a)) @ b, SYSTEMS, SMALL)
              for t in (False, True)), **PRECISE,
    ),
    "linalg_lu": made(lambda x: (lambda p, lower, upper: p @ lower @ upper)(*L.lu(well(x))), well, ANY),
    "slogdet": made(lambda x: ag.slogdet(well(x))[1], lambda x: np.log(abs(np.linalg.det(well(x)))), errors=(not_square("slogdet"),)),
    "logdet": made(lambda x: ag.logdet(well(x)), lambda x: np.log(np.linalg.det(well(x)))),
    "matrix_power": Row(
        tuple(Case(lambda x, n=n: ag.matrix_power(well(x) / 3, n), lambda x, n=n: np.linalg.matrix_power(well(x) / 3, n), SQUARE, SMALL) for n in (0, 1, 3, -2)),
        errors=(not_square("matrix_power", 2),), **PRECISE,
    ),
    "matrix_exp": made(lambda x: ag.matrix_exp(x * 3), lambda x: exponential(x * 3), (((3, 3),), ((2, 3, 3),), ((1, 1),)), errors=(not_square("matrix_exp"),)),
    "multi_dot": Row(
        (Case(lambda *x: L.multi_dot(x), lambda a, b, c: a @ b @ c, (((2, 3), (3, 4), (4, 1)), ((3,), (3, 4), (4,))), SMALL),), linear="each",
        errors=((ValueError, "[multi_dot] inner sizes must agree", lambda d: L.multi_dot(ones(d, (2, 3), (2, 3)))),),
    ),
    "matrix_norm": Row(
        (norms("fro", lambda x: np.sqrt(np.einsum("...ij,...ij->...", x, x))), norms("nuc", lambda x: np.linalg.svd(x, compute_uv=False).sum(-1)),
         norms(2, lambda x: np.linalg.svd(x, compute_uv=False)[..., 0]), norms(-2, lambda x: np.linalg.svd(x, compute_uv=False)[..., -1]),
         norms(1, lambda x: abs(x).sum(-2).max(-1)), norms(-math.inf, lambda x: abs(x).sum(-1).min(-1))),
        errors=((ValueError, '[matrix_norm] ord must be "fro"', lambda d: L.matrix_norm(*ones(d, (2, 2)), 3)),), **PRECISE,
    ),
    "cond": made(lambda x: L.cond(well(x)), lambda x: values(x)[..., 0] / values(x)[..., -1], ANY),
    "matrix_rank": Row((Case(lambda x: L.matrix_rank(well(x)), lambda x: np.full(x.shape[:-2], min(x.shape[-2:])), ANY, SMALL),), ("float32", "float64"), gradient=False),
}
