"""Rows for what moves, repeats, joins and picks elements, in the form of tests/op_cases.py."""

import numpy as np
from op_cases import FLOATS, INDEX, MASK, Case, Row, on, ones

import autograd as ag

MATRIX, CUBE = (((3, 4),),), (((2, 3, 4),),)
MANY = (((3, 4),), ((2, 3, 4),))


def moved(call, reference, shapes=MATRIX, **kwargs):
    return Row((Case(call, reference, shapes),), dtypes=(*FLOATS, "int64"), linear="jointly", **kwargs)


def pair(call, reference, *shapes, **kwargs):
    return Row((Case(call, reference, shapes),), dtypes=(*FLOATS, "int64"), linear="jointly", **kwargs)


def flat(y):
    return ag.cat([part.reshape(-1) for part in y])


def flat_lists(parts):
    return np.concatenate([np.ravel(part) for part in parts])


def raises(kind, text, call, *shapes):
    return kind, text, lambda d: call(*ones(d, *shapes))


def on_diagonal(x, k=0):
    y = np.zeros((len(x) + abs(k),) * 2, x.dtype)
    for i, v in enumerate(x):
        y[i + max(-k, 0), i + max(k, 0)] = v
    return y


def put(x, places, values, add=False):
    y = x.copy().reshape(-1)
    for place, v in zip(np.ravel(places), np.ravel(values)):
        y[place] = y[place] + v if add else v
    return y.reshape(x.shape)


def filled(x, index, value):
    y = x.copy()
    y[index] = value
    return y


def reduced_rows(join, x, s, index):
    y = x.copy()
    for k, i in enumerate(index):
        y[i] = join(y[i], s[k])
    return y


PLACES = [[0, 5], [7, -1]]
HIT = MASK.ravel().nonzero()[0]

ROWS = {
    "flip": moved(lambda x: x.flip(dims=(0, -1)), lambda x: np.array([r[::-1] for r in x.tolist()[::-1]])),
    "fliplr": moved(ag.fliplr, lambda x: np.array([r[::-1] for r in x.tolist()]), errors=(raises(ValueError, "[fliplr] expects at least 2 dimensions", ag.fliplr, (3,)),)),
    "flipud": moved(ag.flipud, lambda x: np.array(x.tolist()[::-1]), errors=(raises(ValueError, "[flipud] expects at least 1 dim", ag.flipud, ()),)),
    "rot90": Row(
        tuple(Case(lambda x, k=k: x.rot90(k), lambda x, k=k: np.rot90(x, k), (((3, 4),), ((2, 3, 2),))) for k in (0, 1, 2, -1, 7)), linear="jointly",
        errors=(raises(ValueError, "[rot90] the two dims must differ", lambda x: x.rot90(1, (0, -2)), (2, 2)),),
    ),
    "roll": Row(
        tuple(Case(lambda x, s=s, d=d: x.roll(s, d), lambda x, s=s, d=d: np.roll(x, s, d), MANY) for s, d in ((1, 0), (-5, 1), (2, None), ((1, 2), (1, 0)))), linear="jointly",
        errors=(raises(ValueError, "[roll] as many shifts as dims", lambda x: x.roll((1, 2), 0), (2, 2)), raises(IndexError, "[roll] a 0-d", lambda x: x.roll(1, 0), ())),
    ),
    "movedim": moved(lambda x: x.movedim((0, 1), (-1, 0)), lambda x: np.einsum("abc->bca", x), CUBE,
                     errors=(raises(ValueError, "[movedim] distinct dimensions", lambda x: x.movedim((0, 0), (0, 1)), (2, 2)),)),
    "repeat": moved(lambda x: x.repeat(2, 1, 3), lambda x: np.array([[r * 3 for r in x.tolist()]] * 2),
                    errors=(raises(ValueError, "[repeat] one non-negative count", lambda x: x.repeat(2), (2, 2)),)),
    "tile": moved(lambda x: x.tile(2), lambda x: np.array([r * 2 for r in x.tolist()])),
    "repeat_interleave": Row(
        (Case(lambda x: x.repeat_interleave(2, 1), lambda x: np.array([[v for v in r for _ in "ab"] for r in x.tolist()]), MATRIX),
         Case(lambda x: x.repeat_interleave(on(x, [0, 2, 1]), 0), lambda x: np.array([x[1], x[1], x[2]]), MATRIX)),
        linear="jointly", errors=(raises(ValueError, "[repeat_interleave] repeats is a whole number or 2", lambda x: x.repeat_interleave(on(x, [1, 2, 3]), 0), (2,)),),
    ),
    "unflatten": moved(lambda x: x.unflatten(1, (2, -1)), lambda x: np.array([[r[:2], r[2:]] for r in x.tolist()])),
    "atleast_3d": moved(ag.atleast_3d, lambda x: np.array([[[v] for v in r] for r in x.tolist()])),
    "hstack": pair(lambda a, b: ag.hstack((a, b)), lambda a, b: np.array([p + q for p, q in zip(a.tolist(), b.tolist())]), ((2, 3), (2, 1))),
    "vstack": pair(lambda a, b: ag.vstack((a, b)), lambda a, b: np.array([a.tolist(), *b.tolist()]), ((3,), (2, 3))),
    "dstack": pair(lambda a, b: ag.dstack((a, b)), lambda a, b: np.array([[[p, q] for p, q in zip(*r)] for r in zip(a.tolist(), b.tolist())]), ((2, 3), (2, 3))),
    "column_stack": pair(lambda a, b: ag.column_stack((a, b)), lambda a, b: np.array([[p, *q] for p, q in zip(a.tolist(), b.tolist())]), ((2,), (2, 3))),
    "tensor_split": Row(
        (Case(lambda x: flat(x.tensor_split(3, 1)), lambda x: flat_lists([x[:, :2], x[:, 2:3], x[:, 3:]]), MATRIX),
         Case(lambda x: flat(x.tensor_split((2, 3), 0)), lambda x: flat_lists([x[:2], x[2:]]), MATRIX)),
        linear="jointly", errors=(raises(ValueError, "[tensor_split] sections must be positive", lambda x: x.tensor_split(0), (2,)),),
    ),
    "hsplit": moved(lambda x: flat(x.hsplit(2)), lambda x: flat_lists([x[:, :2], x[:, 2:]]),
                    errors=(raises(ValueError, "[hsplit] dimension 1 of shape (2, 3) must split evenly", lambda x: x.hsplit(2), (2, 3)),)),
    "select": moved(lambda x: x.select(1, -1), lambda x: np.array([r[-1] for r in x.tolist()]),
                    errors=(raises(IndexError, "[select] index 2 is out of range", lambda x: x.select(0, 2), (2, 3)),)),
    "diag": Row(
        (Case(lambda x: x.diag(1), lambda x: np.array([x[0, 1], x[1, 2], x[2, 3]]), MATRIX), *(Case(lambda x, k=k: x.diag(k), lambda x, k=k: on_diagonal(x, k), (((3,),),)) for k in (0, 2, -1))),
        linear="jointly", errors=(raises(ValueError, "[diag] expects a vector or a matrix", ag.diag, (1, 1, 1)),),
    ),
    "diag_embed": moved(lambda x: x.diag_embed(-1, 0, 2), lambda x: np.einsum("bij->ibj", np.array([on_diagonal(r, -1) for r in x])), (((2, 3),),)),
    "diagonal_scatter": pair(lambda x, s: x.diagonal_scatter(s, 1), lambda x, s: filled(x, (np.arange(3), np.arange(1, 4)), s), ((3, 4), (3,)),
                             errors=(raises(ValueError, "[diagonal_scatter] src must have the shape", lambda x, s: x.diagonal_scatter(s), (3, 4), (2,)),)),
    "select_scatter": pair(lambda x, s: x.select_scatter(s, 1, 2), lambda x, s: filled(x, np.s_[:, 2], s), ((3, 4), (3,))),
    "slice_scatter": pair(lambda x, s: x.slice_scatter(s, 1, 0, 4, 2), lambda x, s: filled(x, np.s_[:, ::2], s), ((3, 4), (3, 2))),
    "sum_to_size": moved(lambda x: x.sum_to_size(3, 1), lambda x: np.array([[r.sum()] for r in x]), MATRIX),
    "index_fill": moved(lambda x: x.index_fill(1, on(x, [0, -1]), 3), lambda x: filled(x, np.s_[:, [0, 3]], 3)),
    "index_put": Row(
        tuple(Case(lambda x, v, a=a: x.index_put((None, on(x, [1, 2, 1])), v, accumulate=a), lambda x, v, a=a: (np.array([put(r, [1, 2, 1], w, a) for r, w in zip(x, v)])), (((2, 4), (2, 3)),)) for a in (False, True)),
        linear="jointly", errors=(raises(TypeError, "[index_put] expects at least one index tensor", lambda x: x.index_put((None,), x), (2,)),
                                  raises(TypeError, "[index_put] indices are tensors and None; got int, Tensor", lambda x: x.index_put((0, on(x, [1])), x[0, :1]), (2, 2)),),
    ),
    "index_reduce": Row(
        (Case(lambda x, s: x.index_reduce(0, on(x, [1, 0, 1]), s, "prod"), lambda x, s: reduced_rows(np.multiply, x, s, [1, 0, 1]), (((2, 4), (3, 4)),)),
         Case(lambda x, s: x.index_reduce(0, on(x, [1, 0, 1]), s, "mean", include_self=False), lambda x, s: np.array([s[1], (s[0] + s[2]) / 2]), (((2, 4), (3, 4)),))),
    ),
    "put": Row(
        tuple(Case(lambda x, s, a=a: x.put(on(x, PLACES), s, a), lambda x, s, a=a: put(x, PLACES, s, a), (((3, 4), (2, 2)),)) for a in (False, True)), linear="jointly",
        errors=(raises(IndexError, "[put] indices must lie in [-2, 1]; got 5", lambda x, s: x.put(on(x, [5]), s), (2,), (1,)),),
    ),
    "take": moved(lambda x: x.take(on(x, PLACES)), lambda x: np.array([[x[0, 0], x[1, 1]], [x[1, 3], x[2, 3]]])),
    "take_along_dim": moved(lambda x: x.take_along_dim(on(x, INDEX[:, :1]), 0), lambda x: np.array([x[0], x[1]])),
    "masked_scatter": pair(lambda x, s: x.masked_scatter(on(x, MASK), s), lambda x, s: put(x, HIT, s[: len(HIT)]), ((3, 4), (9,)),
                           errors=(raises(ValueError, "[masked_scatter] source must have at least", lambda x, s: x.masked_scatter(x > 0, s), (3,), (2,)),)),
    "masked_select": moved(lambda x: x.masked_select(on(x, MASK)), lambda x: np.array([v for v, m in zip(x.ravel(), MASK.ravel()) if m])),
}
