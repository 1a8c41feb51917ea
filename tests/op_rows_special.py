"""Rows for scans, sorting and special functions, in the form of tests/op_cases.py; tests/op_table.py takes them in."""

import math
from statistics import NormalDist

import numpy as np
from op_cases import FLOATS, INTS, NUMBERS, Case, Row, bad_dim, on, unary

import autograd as ag
from autograd.op import REGISTRY, apply


def recurrence(a, b, start=0):
    """y[t] = a[t] * y[t - 1] + b[t] along the last dimension, in Python numbers."""
    y = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
    for at in np.ndindex(y.shape[:-1]):
        value = start
        for t in range(y.shape[-1]):
            value = float(np.broadcast_to(a, y.shape)[(*at, t)]) * value + float(np.broadcast_to(b, y.shape)[(*at, t)])
            y[(*at, t)] = value
    return y


def scan(a, b, axis=-1):
    given = b if a is None else a
    return apply(REGISTRY["linear_scan"], a, b, axis=axis % given.ndim)


def first_axis(reference):
    return lambda *x: np.moveaxis(reference(*(np.moveaxis(v, 0, -1) for v in x)), -1, 0)


def order(x, descending=False):
    """Positions of the last dimension in order, equal ones as they stand, by Python's own sort."""
    rows = [sorted(range(len(row)), key=lambda i: -row[i] if descending else row[i]) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return np.array(rows, np.int64).reshape(x.shape)


def bessel(n):
    """exp(-|x|) I_n(x) by the power series."""

    def function(x):
        terms = [(x / 2) ** (2 * k + n) / (math.factorial(k) * math.factorial(k + n)) for k in range(60)]
        return math.fsum(terms) * math.exp(-abs(x))

    return function


def special(name, function, *domains, **kwargs):
    call = getattr(ag.special, name)
    one = ((3, 4), (), (0,), (2, 3, 4))
    cases = tuple(Case(call, np.vectorize(function, otypes=[object]), tuple((s,) for s in one), (d,)) for d in domains)
    return Row(cases, **kwargs)


GAMMA_LOOSE = {"cpu": 3e-6, "wgpu": 2e-5}

ROWS = {
    "linear_scan": Row(
        (
            Case(scan, recurrence, (((3, 4), (3, 4)), ((5,), (5,)), ((1,), (1,)), ((2, 0), (2, 0)))),
            Case(lambda a, b: scan(a, b, 0), first_axis(recurrence), (((3, 4), (3, 4)), ((4, 2, 3), (4, 2, 3)))),
            Case(lambda b: scan(None, b), lambda b: recurrence(1, b), (((3, 4),), ((2, 300),))),
            Case(lambda a: scan(a, None), lambda a: recurrence(a, 0, 1), (((3, 4),),)),
            Case(lambda a: scan(a * on(a, [1.0, 0.0, 1.0, 0.0]).to(a.dtype), None), lambda a: recurrence(a * [1, 0, 1, 0], 0, 1), (((3, 4),),)),
        ),
        dtypes=("float32", "float64", "int64"),
    ),
    "running_max": Row(
        tuple(
            Case(lambda x, axis=axis: apply(REGISTRY["running_max"], x, axis=axis), lambda x, axis=axis: np.stack([np.max(np.moveaxis(x, axis, 0)[: t + 1], 0) for t in range(x.shape[axis])], axis), (((3, 4),), ((2, 300),)))
            for axis in (0, 1)
        ),
        dtypes=NUMBERS, gradient=False,
    ),
    "argsort": Row(
        (
            Case(lambda x: x.argsort(), order, (((3, 4),), ((5,),), ((1, 1),), ((2, 3, 70),))),
            Case(lambda x: ag.argsort(x, 0, descending=True), first_axis(lambda x: order(x, True)), (((5, 3),), ((9, 2, 2),))),
            Case(lambda x: ag.argsort(x.trunc(), descending=True), lambda x: order(np.trunc(x), True), (((3, 9),),)),
        ),
        dtypes=(*FLOATS, *INTS), gradient=False, errors=(bad_dim("argsort"),),
    ),
    "lgamma": unary("lgamma", math.lgamma, (0.25, 9.0), (-1.75, -1.25), tolerance=GAMMA_LOOSE),
    "erfinv": unary("erfinv", lambda x: NormalDist().inv_cdf((x + 1) / 2) * math.sqrt(0.5), (-0.9, 0.9), (0.9, 0.99)),
    "erfcx": special("erfcx", lambda x: math.erfc(x) * math.exp(x * x), (-2.0, 2.0), (2.0, 9.0)),
    "i0e": special("i0e", bessel(0), (-7.0, 7.0), (8.5, 15.0)),
    "i1e": special("i1e", bessel(1), (-7.0, 7.0), (8.5, 15.0)),
}
