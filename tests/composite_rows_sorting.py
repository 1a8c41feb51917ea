"""Rows for sorting, statistics, products and grids, in the form of tests/op_cases.py."""

import itertools
import math

import numpy as np
from op_cases import AWAY, FLOATS, INTS, POSITIVE, Case, Row, bad_dim, fold, on, ones

import autograd as ag

DOUBLES = ("float32", "float64")
MATRIX = (((3, 4),), ((2, 5),))
LOOSE = {"cpu": 1e-5, "wgpu": 2e-5}
SPREAD = ((-50.0, 50.0),)  # few ties


def case(call, reference, *shapes, domains=SPREAD):
    return Case(call, reference, shapes or MATRIX, domains)


def values(x, wanted):
    return on(x, np.array(wanted, np.float32)).to(x.dtype)


def contraction(equation):
    return lambda *x: np.einsum(equation, *x)


def summed(equation, *shapes):
    return case(lambda *x: ag.einsum(equation, *x), contraction(equation), shapes, domains=((-2.0, 2.0),))


ROWS = {
    "sort": Row((case(lambda x: x.sort()[0], lambda x: np.sort(x, 1)), case(lambda x: ag.sort(x, 0, descending=True).values, lambda x: -np.sort(-x, 0)), case(ag.msort, lambda x: np.sort(x, 0))),
                (*FLOATS, *INTS), errors=(bad_dim("argsort"),)),
    "topk": Row((case(lambda x: x.topk(2)[0], lambda x: -np.sort(-x, 1)[:, :2]), case(lambda x: x.topk(2, 0, largest=False)[0], lambda x: np.sort(x, 0)[:2])), DOUBLES,
                errors=((ValueError, "[topk] k must lie in [0, 3]", lambda d: ag.ones(3, device=d).topk(4)),)),
    "kthvalue": Row((case(lambda x: x.kthvalue(2, keepdim=True)[0], lambda x: np.sort(x, 1)[:, 1:2]),), DOUBLES,
                    errors=((ValueError, "[kthvalue] k must lie in [1, 3]", lambda d: ag.ones(3, device=d).kthvalue(0)),)),
    "median": Row((case(lambda x: x.median(), lambda x: np.sort(x, None)[(x.size - 1) // 2]), case(lambda x: x.median(0)[0], lambda x: np.sort(x, 0)[(len(x) - 1) // 2]),
                   case(lambda x: x.nanmedian(1, True).values, lambda x: np.sort(x, 1)[:, (x.shape[1] - 1) // 2, None])), DOUBLES),
    "median_of_nan": Row((case(lambda x: values(x, [math.nan, 3, 1, 2]).median(), lambda x: np.array(math.nan)), case(lambda x: values(x, [math.nan, 3, 1, 2]).nanmedian(), lambda x: np.array(2.0))), DOUBLES, False),
    "mode": Row((case(lambda x: values(x, [[2, 1, 2, 1], [3, 3, 3, 0]]).mode()[0], lambda x: np.array([1, 3])), case(lambda x: values(x, [[2, 1, 2, 1], [3, 3, 3, 0]]).mode().indices, lambda x: np.array([3, 2]))), DOUBLES, False),
    "quantile": Row((case(lambda x: x.quantile(0.3), lambda x: np.quantile(x, 0.3)), case(lambda x: x.quantile(0.6, 1, True), lambda x: np.quantile(x, 0.6, 1, keepdims=True)),
                     *(case(lambda x, m=m: x.quantile(values(x, [0.25, 0.7]), 0, interpolation=m), lambda x, m=m: np.quantile(x, np.array([0.25, np.float32(0.7)]), 0, method=m)) for m in ("lower", "higher", "midpoint", "nearest"))),
                    DOUBLES, errors=((ValueError, "[quantile] q must lie in [0, 1]; got 2", lambda d: ag.ones(3, device=d).quantile(2)),), tolerance=LOOSE),
    "unique": Row((case(lambda x: values(x, [3, 1, 3, 2, 1]).unique(), lambda x: np.array([1, 2, 3])), case(lambda x: ag.unique(values(x, [3, 1, 3, 2, 1]), return_inverse=True, return_counts=True)[1], lambda x: np.array([2, 0, 2, 1, 0])),
                   case(lambda x: ag.unique(values(x, [[1, 2], [0, 5], [1, 2]]), dim=0), lambda x: np.array([[0, 5], [1, 2]])), case(lambda x: ag.unique_consecutive(values(x, [1, 1, 2, 2, 1])), lambda x: np.array([1, 2, 1]))), DOUBLES, False),
    "searchsorted": Row((case(lambda x: ag.searchsorted(x.flatten().sort()[0], x), lambda x: np.searchsorted(np.sort(x, None), x)), case(lambda x: ag.bucketize(x, x.flatten().sort()[0], right=True), lambda x: np.searchsorted(np.sort(x, None), x, "right"))),
                        (*DOUBLES, "int64"), False, errors=((ValueError, '[searchsorted] side is "left" or "right"', lambda d: ag.searchsorted(*ones(d, (2,), (2,)), side="up")),)),
    "isin": Row((case(lambda x: ag.isin(x.round(), values(x, [1, 2, 3])), lambda x: np.isin(np.rint(x), [1, 2, 3]), domains=((0.0, 5.0),)),), DOUBLES, False),
    "histc": Row((case(lambda x: x.histc(4, -2, 2), lambda x: np.histogram(x, 4, (-2, 2))[0]), case(lambda x: values(x, [0, 1, 1, 3]).long().bincount(minlength=5), lambda x: np.array([1, 2, 0, 1, 0])),
                  case(lambda x: ag.histogram(x.flatten(), values(x, [-2, 0, 1, 2]))[0], lambda x: np.histogram(x, [-2, 0, 1, 2])[0])), DOUBLES, False,
                 errors=((ValueError, "[histc] bins must be positive", lambda d: ag.ones(3, device=d).histc(0)),)),
    "nan_sums": Row((case(lambda x: (x / (x > 0).to(x.dtype) * 0 + x).nansum(1), lambda x: np.where(x > 0, x, 0).sum(1)), case(lambda x: ag.nanmean(values(x, [1, math.nan, 3])), lambda x: np.array(2.0))), DOUBLES, False),
    "counts": Row((case(lambda x: (x > 0).count_nonzero(1), lambda x: (x > 0).sum(1)), case(lambda x: x.aminmax(dim=0).max, lambda x: x.max(0))), DOUBLES, False),
    "var_mean": Row((case(lambda x: ag.var_mean(x, 1)[0], lambda x: np.var(x, 1, ddof=1)), case(lambda x: ag.std_mean(x)[1], np.mean)), DOUBLES, tolerance=LOOSE),
    "cov": Row((case(lambda x: x.cov(), np.cov, domains=((-2.0, 2.0),)), case(lambda x: x.corrcoef(), np.corrcoef, ((3, 6),), domains=((-2.0, 2.0),))), DOUBLES, tolerance=LOOSE),
    # -- products --
    "einsum": Row((summed("ij,jk->ik", (3, 4), (4, 2)), summed("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), summed("ii->i", (3, 3)), summed("ij->", (3, 4)), summed("i,j,k->kij", (2,), (3,), (2,)), summed("...ij,jk", (2, 3, 4), (4, 2)), summed("ij,ij,j->i", (3, 4), (3, 4), (4,))),
                  DOUBLES, errors=((ValueError, "[einsum] 'ij,jk->ik' names 2 operands; got 1", lambda d: ag.einsum("ij,jk->ik", ag.ones(2, 2, device=d))),), tolerance=LOOSE),
    "tensordot": Row((case(lambda a, b: ag.tensordot(a, b, ([1, 2], [0, 1])), contraction("ijk,jkl->il"), ((2, 3, 4), (3, 4, 2)), domains=((-2.0, 2.0),)), case(ag.inner, contraction("ij,kj->ik"), ((2, 3), (4, 3)), domains=((-2.0, 2.0),)),
                      case(ag.kron, np.kron, ((2, 3), (3, 2)), ((2,), (2, 2)), domains=((-2.0, 2.0),))), DOUBLES, linear="each", tolerance=LOOSE),
    "cross": Row((case(ag.cross, np.cross, ((2, 3), (2, 3)), domains=((-2.0, 2.0),)), case(lambda a, b: ag.linalg.cross(a, b, dim=0), lambda a, b: np.cross(a, b, axis=0), ((3, 2), (3, 2)), domains=((-2.0, 2.0),))), DOUBLES, linear="each",
                 errors=((ValueError, "[cross] the size along dim 1 must be 3; got (2, 4) and (2, 4)", lambda d: ag.linalg.cross(*ones(d, (2, 4), (2, 4)))),)),
    "addmm": Row((case(lambda x, a, b: ag.addmm(x, a, b, beta=2, alpha=0.5), lambda x, a, b: 2 * x + a @ b / 2, ((2, 2), (2, 3), (3, 2)), ((2,), (2, 3), (3, 2)), domains=((-2.0, 2.0),)),
                  case(lambda x, a, b: x.baddbmm(a, b), lambda x, a, b: x + a @ b, ((2, 2, 2), (2, 2, 3), (2, 3, 2)), domains=((-2.0, 2.0),)), case(lambda x, a, b: x.addr(a, b), lambda x, a, b: x + np.outer(a, b), ((2, 3), (2,), (3,)), domains=((-2.0, 2.0),)),
                  case(lambda x, a, b: (x * math.nan).addmv(a, b, beta=0), lambda x, a, b: a @ b, ((2,), (2, 3), (3,)), domains=((-2.0, 2.0),))), DOUBLES, gradient=False, tolerance=LOOSE,
                 errors=((ValueError, "[addmm] expects 2-D, 2-D tensors; got (2,), (2, 2)", lambda d: ag.addmm(*ones(d, (2,), (2,), (2, 2)))),)),
    # -- grids, differences, integrals --
    "meshgrid": Row((case(lambda a, b: ag.stack(ag.meshgrid(a, b, indexing="xy")), lambda a, b: np.array(np.meshgrid(a, b)), ((3,), (2,))), case(ag.cartesian_prod, lambda a, b: np.array(list(itertools.product(a, b))), ((3,), (2,))),
                     case(lambda x: x.combinations(2), lambda x: np.array(list(itertools.combinations(x, 2))), ((4,),))), DOUBLES, linear="jointly"),
    "block_diag": Row((case(ag.block_diag, lambda a, b: np.block([[a, np.zeros((2, 1))], [np.zeros((1, 3)), b]]), ((2, 3), (1, 1))),), DOUBLES, linear="jointly"),
    "vander": Row((case(ag.vander, np.vander, ((3,),), domains=((-2.0, 2.0),)), case(lambda x: ag.linalg.vander(x, N=4), lambda x: np.vander(x, 4, True), ((3,),), domains=((-2.0, 2.0),))), DOUBLES),
    "trace": Row((case(lambda x: x.trace(), np.trace, ((3, 4),)),), DOUBLES, linear="jointly", tolerance=LOOSE, errors=((ValueError, "[trace] expects a matrix", lambda d: ag.ones(3, device=d).trace()),)),
    "diff": Row((case(lambda x: x.diff(), np.diff), case(lambda x: ag.diff(x, 2, 0, append=x), lambda x: np.diff(x, 2, 0, append=x))), (*DOUBLES, "int64"), linear="jointly", errors=(bad_dim("diff", 1)[:2] + (lambda d: ag.ones(2, 3, device=d).diff(1, 2),),)),
    "trapezoid": Row((case(lambda y: ag.trapezoid(y, dx=0.5, dim=0), lambda y: np.trapezoid(y, dx=0.5, axis=0)), case(lambda y, x: ag.trapz(y, x), lambda y, x: np.trapezoid(y, x), ((3, 4), (4,)), domains=((-2.0, 2.0),)),
                      case(lambda y: ag.cumulative_trapezoid(y)[..., -1], lambda y: np.trapezoid(y))), DOUBLES, tolerance=LOOSE),
    "gradient": Row((case(lambda x: ag.gradient(x)[0], lambda x: np.gradient(x)[0]), case(lambda x: ag.gradient(x, dim=1, spacing=2.0, edge_order=1)[0], lambda x: np.gradient(x, 2.0, axis=1)),
                     case(lambda x: ag.gradient(x, spacing=(values(x, [0, 1, 3, 4]),), dim=1, edge_order=2)[0], lambda x: np.gradient(x, [0, 1, 3, 4], axis=1, edge_order=2), ((3, 4),))), DOUBLES, linear="jointly", tolerance=LOOSE),
    "dist": Row((case(ag.dist, lambda a, b: np.linalg.norm((a - b).ravel()), ((3, 4), (3, 4)), domains=(AWAY, POSITIVE)), case(lambda x: x.renorm(2, 0, 1.0), lambda x: x * np.minimum(1, 1 / np.linalg.norm(x, axis=1, keepdims=True)), domains=(AWAY,))),
                DOUBLES, tolerance=LOOSE),
    "prod_of_rows": Row((case(lambda x: x.prod(0), fold(math.prod, (0,)), domains=(AWAY,)),), DOUBLES),
}
