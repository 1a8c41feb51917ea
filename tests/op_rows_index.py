"""Rows of the op table for writing by position."""

import numpy as np
from op_cases import FLOATS, INDEX, NUMBERS, Case, Row, on, ones

import autograd as ag

DISTINCT = np.array([[1, 0, 2], [0, 2, 1]])


def scattered(x, index, src, axis, join=lambda old, new: new):
    """x with each src element joined, one after the other, with what its place holds."""
    y = x.copy()
    for at in np.ndindex(index.shape):
        place = (*at[:axis], index[at], *at[axis + 1 :])
        y[place] = join(y[place], src[at])
    return y


def reduced(reduce, join):
    return Case(
        lambda x, s: ag.scatter_reduce(x, 0, on(x, INDEX), s, reduce), lambda x, s: scattered(x, INDEX, s, 0, join),
        (((3, 4), (2, 3)), ((3, 3), (3, 4))),
    )


def wrong_src(name, *rest):
    text = f"[{name}] index must have the dimensions of x and src"
    return ValueError, text, lambda d: getattr(ag, name)(ag.ones(3, 3, device=d), 0, ag.tensor(INDEX, device=d), ag.ones(2, 2, device=d), *rest)


ROWS = {
    "scatter": Row(
        (
            Case(lambda x, s: ag.scatter(x, 0, on(x, INDEX), s), lambda x, s: scattered(x, INDEX, s, 0), (((3, 3), (2, 3)), ((3, 4), (3, 3)))),
            Case(lambda x, s: x.scatter(-1, on(x, DISTINCT), s), lambda x, s: scattered(x, DISTINCT, s, 1), (((2, 3), (2, 3)), ((3, 4), (2, 3)))),
            Case(lambda x: x.scatter(1, on(x, INDEX), 2), lambda x: scattered(x, INDEX, np.full((2, 3), 2), 1), (((3, 4),),)),
            Case(lambda x, s: x.index_copy(0, on(x, [2, 0]), s), lambda x, s: np.array([s[1], x[1], s[0]]), (((3, 4), (2, 4)), ((3,), (2,)))),
        ),
        dtypes=(*NUMBERS, "bool"),
        errors=(
            wrong_src("scatter"),
            (IndexError, "[scatter] indices must lie in [0, 1]; got 2", lambda d: ag.ones(2, 3, device=d).scatter(0, ag.tensor(INDEX, device=d), 1.0)),
            (TypeError, "[scatter] give src or value", lambda d: ag.ones(3, device=d).scatter(0, ag.tensor([0], device=d))),
        ),
    ),
    "scatter_reduce": Row(
        (reduced("prod", lambda a, b: a * b), reduced("amax", max), reduced("amin", min)),
        dtypes=(*FLOATS, "int64", "int32"),
        errors=(
            wrong_src("scatter_reduce", "prod"),
            (ValueError, "[scatter_reduce] reduce must be one of", lambda d: ag.scatter_reduce(*ones(d, (2,)), 0, ag.tensor([0], device=d), *ones(d, (1,)), "xor")),
        ),
    ),
}
