"""Rows for public functions that are made of ops, in the form of tests/op_cases.py."""

import math

import numpy as np
from op_cases import (
    AWAY,
    FLOATS,
    INDEX,
    MASK,
    NUMBERS,
    ONE,
    POSITIVE,
    TWO,
    Case,
    Row,
    bad_dim,
    each,
    fold,
    integers_refused,
    on,
    ones,
    reduction,
    setitem,
    unary,
    whole_sum,
    written,
)

import autograd as ag


def mean(row):
    return math.fsum(row) / len(row) if row else math.nan


def var(row, free=1):
    m = mean(row)
    return math.fsum((v - m) ** 2 for v in row) / (len(row) - free)


def std(row):
    return math.sqrt(var(row))


def logsumexp(row):
    return math.log(math.fsum(math.exp(v) for v in row)) if row else -math.inf


def norm(p):
    return lambda row: math.fsum(abs(v) ** p for v in row) ** (1 / p)



MATRIX = (((3, 4),), ((2, 3, 4),))
DIMS = ((None, False), (0, False), (-1, True), ((0, 2), False))

COMPOSITES = {
    "mean": reduction("mean", mean, errors=(bad_dim("mean"), integers_refused("mean")), dims=DIMS, linear="jointly", empty=False),
    "var": Row(
        tuple(Case(lambda x, k=k: x.var(1, correction=k), fold(lambda row, k=k: var(row, k), (1,)), (((3, 4),), ((2, 5, 3),))) for k in (0, 1, 2))
        + (Case(lambda x: x.var(), fold(var), (((3, 4),),)), Case(lambda x: ag.var(x, unbiased=False), fold(lambda row: var(row, 0)), (((3, 4),), ((1,),)))),
        errors=(bad_dim("var"), integers_refused("var")), tolerance={"wgpu": 1e-5, "cpu": 1e-5},
    ),
    "std": Row(
        (Case(lambda x: x.std(-1, keepdim=True), fold(std, (-1,), True), (((3, 4),),)), Case(lambda x: x.std(), fold(std), (((3, 4),),))),
        errors=(bad_dim("std"), integers_refused("std")), tolerance={"wgpu": 1e-5, "cpu": 1e-5},
    ),
    "logsumexp": Row(
        tuple(Case(lambda x, d=d, k=k: x.logsumexp(d, k), fold(logsumexp, d if isinstance(d, tuple) else (d,), k), s)
              for d, k, s in ((0, False, (((3, 4),), ((0, 2),))), (-1, True, (((3, 4),),)), ((0, 1), False, (((3, 4),),)))),
        errors=(bad_dim("logsumexp"),),
    ),
    "norm": Row(
        tuple(Case(lambda x, p=p: x.norm(p), fold(norm(p)), (((3, 4),), ((5,),)), (AWAY,)) for p in (1, 2, 3))
        + (Case(lambda x: x.norm(dim=1, keepdim=True), fold(norm(2), (1,), True), (((3, 4),),)),
           Case(lambda x: x.norm(math.inf), fold(lambda row: max(abs(v) for v in row)), (((3, 4),),)),
           Case(lambda x: x.norm(dim=(0, 2)), fold(norm(2), (0, 2)), (((2, 3, 4),),))),
        tolerance={"wgpu": 1e-5, "cpu": 1e-5},
    ),
    "max": Row(
        (Case(lambda x: x.max(), fold(max), (((3, 4),), ((),))),
         *(Case(lambda x, d=d: x.max(d).values, fold(max, (d,)), MATRIX) for d in (0, 1)),
         Case(lambda x: x.max(-1, keepdim=True)[0], fold(max, (-1,), True), MATRIX),
         Case(lambda a, b: a.max(b), each(max), TWO)),
        dtypes=NUMBERS, errors=(bad_dim("max"),),
    ),
    "min": Row(
        (Case(lambda x: x.min(), fold(min), (((3, 4),), ((),))),
         *(Case(lambda x, d=d: x.min(d).values, fold(min, (d,)), MATRIX) for d in (0, 1)),
         Case(lambda a, b: a.min(b), each(min), TWO)),
        dtypes=NUMBERS, errors=(bad_dim("min"),),
    ),
    "max_index": Row((Case(lambda x: x.max(1).indices, fold(lambda row: row.index(max(row)), (1,)), MATRIX),), dtypes=NUMBERS, gradient=False),
    "clamp": Row(
        (Case(lambda x: x.clamp(-1, 0.5), each(lambda v: min(max(v, -1), 0.5))), Case(lambda x: x.clamp(min=0), each(lambda v: max(v, 0))),
         Case(lambda x: x.clip(max=0.5), each(lambda v: min(v, 0.5))),
         Case(lambda x, low: x.clamp(low), each(max), TWO, ((-2.0, 2.0), (-1.0, 1.0)))),
        errors=((ValueError, "[clamp] give min, max or both", lambda d: ag.ones(2, device=d).clamp()),),
    ),
    "masked_fill": Row(
        (Case(lambda x: x.masked_fill(on(x, MASK), -1), lambda x: written(x, MASK, -1), (((3, 4),),)),
         Case(lambda x: x.masked_fill(on(x, MASK[0]), -1), lambda x: written(x, (slice(None), MASK[0]), -1), (((3, 4),),)),
         Case(lambda x, v: x.masked_fill(on(x, MASK), v), lambda x, v: written(x, MASK, v), (((3, 4), ()),))),
        dtypes=(*FLOATS, "int64"),
        errors=((TypeError, "[masked_fill] the mask must be a bool tensor; got autograd.float32", lambda d: ag.masked_fill(*ones(d, (2,), (2,)), 0)),
                (TypeError, "[masked_fill] 0.5 does not fit into autograd.int64", lambda d: ag.arange(2, device=d).masked_fill(ag.ones(2, device=d) > 0, 0.5))),
    ),
    "masked_select": Row((Case(lambda x: x.masked_select(on(x, MASK)), lambda x: np.array([v for v, m in zip(x.flat, MASK.flat) if m]), (((3, 4),), ((4,),))
                               [:1]),), linear="jointly"),
    "square": unary("square", lambda v: v * v),
    "exp2": unary("exp2", lambda v: 2**v),
    "log10": unary("log10", math.log10, POSITIVE),
    "silu": unary("silu", lambda v: v / (1 + math.exp(-v))),
    "isinf": unary("isinf", math.isinf, dtypes=NUMBERS, gradient=False),
    "isfinite": unary("isfinite", math.isfinite, dtypes=NUMBERS, gradient=False),
    "div_rounded": Row(
        (Case(lambda a, b: ag.div(a, b, rounding_mode="floor"), each(lambda a, b: a // b), TWO, ((-9.0, 9.0), (1.25, 4.0))),
         Case(lambda a, b: a.div(b, rounding_mode="trunc"), each(lambda a, b: math.trunc(a / b)), TWO, ((-9.0, 9.0), (1.25, 4.0)))),
        dtypes=("float32", "float64", "int64", "int32"),
        errors=((ValueError, '[div] rounding_mode is None, "floor" or "trunc"', lambda d: ag.div(*ones(d, (2,), (2,)), rounding_mode="up")),),
    ),
    "add_alpha": Row((Case(lambda a, b: ag.add(a, b, alpha=3), each(lambda a, b: a + 3 * b), TWO), Case(lambda a, b: a.sub(b, alpha=2), each(lambda a, b: a - 2 * b), TWO)),
                     dtypes=(*FLOATS, "int64"), linear="jointly", tolerance={"cpu": 1e-6}),
    "constants": Row(
        (Case(lambda x: x * ag.full((4,), 2.0, device=x.device).to(x.dtype), lambda x: x * np.full(4, 2.0), (((3, 1),), ((4,),), ((),))),
         Case(lambda x: x.zeros_like() * x + x.ones_like(), lambda x: np.ones(x.shape), (((3, 4),),))),
    ),
    "to_integers": Row(
        tuple(Case(lambda x, to=to: x.to(to).to(x.dtype), each(f), domains=((0.0, 9.0),))
              for to, f in ((ag.int64, int), (ag.int32, int), (ag.uint8, int), (ag.bool_, lambda v: v != 0 and type(v)(1)))),
        dtypes=(*NUMBERS, "bool"), gradient=False,
    ),
    "lerp": Row((Case(lambda a, b: ag.lerp(a, b, 0.25), each(lambda a, b: a + 0.25 * (b - a)), TWO[:5]), Case(ag.lerp, each(lambda a, b, w: a + w * (b - a)), (((3, 4), (3, 4), (3, 4)),)))),
    "addcmul": Row((Case(lambda x, a, b: x.addcmul(a, b, value=0.5), each(lambda x, a, b: x + 0.5 * a * b), (((3, 4), (3, 1), (4,)),)),)),
    "addcdiv": Row((Case(lambda x, a, b: x.addcdiv(a, b, value=0.5), each(lambda x, a, b: x + 0.5 * a / b), (((3, 4), (3, 1), (4,)),), (POSITIVE,)),)),
    "outer": Row((Case(ag.outer, lambda a, b: np.array([[p * q for q in b] for p in a]), (((3,), (4,)),)),), linear="each",
                 errors=((ValueError, "[outer] expects two vectors", lambda d: ag.outer(*ones(d, (2, 2), (2,)))),)),
    "bmm": Row((Case(ag.bmm, lambda a, b: np.einsum("bmk,bkn->bmn", a, b), (((2, 3, 4), (2, 4, 2)),)),), linear="each",
               errors=((ValueError, "[bmm] expects 3-D and 3-D tensors", lambda d: ag.bmm(*ones(d, (2, 2), (2, 2)))),)),
    "mv": Row((Case(ag.mv, lambda a, b: np.einsum("mk,k->m", a, b), (((3, 4), (4,)),)),), linear="each"),
    "dot": Row((Case(ag.dot, lambda a, b: np.asarray(whole_sum([p * q for p, q in zip(a.tolist(), b.tolist())])), (((4,), (4,)), ((0,), (0,)))),), linear="each"),
    "stack": Row(
        tuple(Case(lambda a, b, d=d: ag.stack([a, b], d), lambda a, b, d=d: np.moveaxis(np.array([a, b]), 0, d), (((3, 4), (3, 4)), ((0, 2), (0, 2)))) for d in (0, 1, -1)),
        dtypes=(*FLOATS, "bool"), linear="jointly",
        errors=((ValueError, "[stack] expected at least one tensor and one shape; got (2,), (3,)", lambda d: ag.stack(ones(d, (2,), (3,)))),),
    ),
    "split": Row(
        (Case(lambda x: x.split(2)[1], lambda x: x[2:4], (((5, 3),), ((3,),))), Case(lambda x: x.split([1, 3], -1)[1], lambda x: x[:, 1:], (((2, 4),),)),
         Case(lambda x: x.chunk(2, 1)[1], lambda x: x[:, 3:], (((2, 5),),)), Case(lambda x: x.unbind(1)[2], lambda x: x[:, 2], (((2, 3),),)),
         Case(lambda x: x.narrow(1, 1, 2), lambda x: x[:, 1:3], (((2, 4),),))),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=((ValueError, "[split] the sizes must add up to 3", lambda d: ag.ones(3, device=d).split([1, 1])),
                (ValueError, "[split] split_size must be positive", lambda d: ag.ones(3, device=d).split(0)),
                (IndexError, "[narrow] 2 + 2 must lie within dimension 0", lambda d: ag.ones(3, device=d).narrow(0, 2, 2))),
    ),
    "flip": Row((Case(lambda x: x.flip(0), lambda x: np.array(x.tolist()[::-1]).reshape(x.shape), (((3, 4),), ((3,),), ((0, 2),))),
                 Case(lambda x: x.flip(0, -1), lambda x: np.array([row[::-1] for row in x.tolist()[::-1]]), (((3, 4),),))),
                dtypes=(*FLOATS, "int64"), linear="jointly", errors=(bad_dim("flip"),)),
    "squeeze": Row(
        (Case(lambda x: x.squeeze(), lambda x: np.array([v for row in x for v in row.ravel()]), (((3, 1, 1),),)), Case(lambda x: x.squeeze(1).unsqueeze(-1), lambda x: x.reshape(3, 4, 1), (((3, 1, 4),),)),
         Case(lambda x: x.squeeze(0), lambda x: x, (((3, 1),), ((),))), Case(lambda x: x.unsqueeze(0), lambda x: np.array([x]), ONE),
         Case(lambda x: x.flatten(1), lambda x: np.array([row.ravel() for row in x]), (((2, 3, 4),), ((2, 3),))), Case(ag.flatten, lambda x: np.array(list(x.flat)), ONE)),
        dtypes=(*FLOATS, "int64"), linear="jointly", errors=(bad_dim("squeeze"),),
    ),
    "tril": Row(tuple(Case(lambda x, k=k: x.tril(k), lambda x, k=k: np.array([[v if j - i <= k else 0 for j, v in enumerate(row)] for i, row in enumerate(x)]), (((3, 4),), ((3, 3),))) for k in (0, 1, -1)), linear="jointly"),
    "triu": Row(tuple(Case(lambda x, k=k: x.triu(k), lambda x, k=k: np.array([[v if j - i >= k else 0 for j, v in enumerate(row)] for i, row in enumerate(x)]), (((3, 4),), ((3, 3),))) for k in (0, 1, -1)), linear="jointly"),
    "getitem": Row(
        tuple(
            Case(lambda x, f=f: x[f(x)], lambda x, f=f: x[f(None)], (((3, 4, 5),),))
            for f in (
                lambda x: [0, 2, 2],
                lambda x: ([0, 2], [1, 3]),
                lambda x: (slice(None), [1, 1, 3]),
                lambda x: ([0], slice(1, None), [4, 0]),
                lambda x: ([[0], [2]], slice(None, None, 2), [1, 2, 2]),
                lambda x: (..., MASK[0] if x is None else on(x, MASK[0]), 2),
                lambda x: MASK if x is None else on(x, MASK),
                lambda x: INDEX if x is None else on(x, INDEX),
                lambda x: (None, slice(None), -1, [-1, -5]),
                lambda x: (True, [0, 2]),
                lambda x: (slice(None), True, 1),
                lambda x: False,
                lambda x: np.array(True) if x is None else on(x, True),
                lambda x: np.array(1),
            )
        ),
        dtypes=(*FLOATS, "int64", "bool"), linear="jointly",
        errors=((IndexError, "[getitem] indices must lie in [-3, 2]; got 3", lambda d: ag.ones(3, device=d)[[0, 3]]),
                (TypeError, "[getitem] indices are integers or booleans; got autograd.float32", lambda d: ag.ones(3, device=d)[ag.ones(1, device=d)]),
                (IndexError, "[getitem] a mask has the shape of what it covers", lambda d: ag.ones(3, device=d)[ag.ones(2, device=d) > 0]),
                (TypeError, "[getitem] indices are integers or booleans; got float64", lambda d: ag.ones(3, device=d)[np.array([np.nan])]),
                (TypeError, "[getitem] uint8 indices are a mask to PyTorch", lambda d: ag.ones(3, device=d)[np.array([1, 0, 1], np.uint8)]),
                (TypeError, "[getitem] uint8 indices are a mask to PyTorch", lambda d: ag.ones(3, device=d)[ag.ones(3, dtype=ag.uint8, device=d)])),
    ),
    "setitem": Row(
        tuple(
            Case(setitem(lambda y, f=f: f(y)), lambda x, v, f=f: written(x, f(None), v), (((3, 4), shape),))
            for f, shape in (
                (lambda y: [0, 2], (4,)),
                (lambda y: ([0, 2], [1, 3]), (2,)),
                (lambda y: (slice(None), [1, 3]), (3, 2)),
                (lambda y: MASK if y is None else on(y, MASK), ()),
                (lambda y: MASK if y is None else on(y, MASK), (6,)),
                (lambda y: (slice(1, None), [3, 0]), (2, 1)),
            )
        ),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=((IndexError, "out of range", lambda d: setitem(3)(*ones(d, (3,), ()))),
                (ValueError, "[setitem] the value must broadcast", lambda d: setitem([0, 1])(*ones(d, (3, 2), (3,))))),
    ),
}

from composite_rows_elementwise import ROWS as ELEMENTWISE  # noqa: E402
from composite_rows_linalg import ROWS as LINALG  # noqa: E402
from composite_rows_math import ROWS as MATH  # noqa: E402  (its rows are made with what stands above)
from composite_rows_movement import ROWS as MOVEMENT  # noqa: E402
from composite_rows_nn import ROWS as NN  # noqa: E402
from composite_rows_sorting import ROWS as SORTING  # noqa: E402

COMPOSITES.update(ELEMENTWISE | MATH | MOVEMENT | LINALG | NN | SORTING)
