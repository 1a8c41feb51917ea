"""One row an op: how to call it, what it must give, on which inputs. tests/test_ops.py is generated from this.

Add a row with every op: a test compares this table with the registry. What rows are made of: tests/op_cases.py.
"""

import math

import numpy as np
from op_cases import (
    AWAY,
    FLOATS,
    INDEX,
    INTS,
    MASK,
    NUMBERS,
    POSITIVE,
    ROWS,
    TWO,
    WINDOWS,
    Case,
    Row,
    bad_dim,
    binary,
    compare,
    diagonal,
    each,
    embed,
    empty_refused,
    first,
    float_index,
    gather,
    index_add,
    integers_refused,
    logic,
    mismatch,
    on,
    ones,
    out_of_range,
    reduction,
    scatter_add,
    setitem,
    softmax,
    unary,
    whole_sum,
    windows_added,
    windows_of,
    written,
)
from op_rows_attention import ROWS as ATTENTION
from op_rows_index import ROWS as INDEXING
from op_rows_linalg import ROWS as LINALG
from op_rows_norm import ROWS as NORMS
from op_rows_rnn import ROWS as RECURRENT
from op_rows_special import ROWS as SPECIAL

import autograd as ag
from autograd.ops.views import pad
from autograd.ops.window import add_windows, max_pool, windows

TABLE = {
    # -- of one tensor --
    "neg": unary("neg", lambda x: -x, dtypes=(*FLOATS, *INTS), linear="jointly"),
    "abs": unary("abs", abs, dtypes=NUMBERS),
    "sign": unary("sign", lambda x: (x > 0) - (x < 0), dtypes=(*FLOATS, *INTS)),
    "exp": unary("exp", math.exp),
    "expm1": unary("expm1", math.expm1, (-2.0, 2.0), (-1e-3, 1e-3)),
    "log": unary("log", math.log, POSITIVE),
    "log1p": unary("log1p", math.log1p, (-0.75, 2.0), (-1e-3, 1e-3)),
    "sqrt": unary("sqrt", math.sqrt, POSITIVE),
    "tanh": unary("tanh", math.tanh),
    "sigmoid": unary("sigmoid", lambda x: 1 / (1 + math.exp(-x)), (-2.0, 2.0), (-20.0, 20.0)),
    "erf": unary("erf", math.erf, (-0.9, 0.9), (-4.0, 4.0)),
    "relu": unary("relu", lambda x: max(x, 0), dtypes=(*FLOATS, *INTS)),
    "softplus": unary("softplus", lambda x: math.log1p(math.exp(x))),
    "floor": unary("floor", math.floor, dtypes=(*FLOATS, *INTS)),
    "round": unary("round", round, dtypes=(*FLOATS, *INTS)),
    "bitwise_not": unary(
        "bitwise_not", lambda x: not x if isinstance(x, bool) else ~x, dtypes=(*INTS, "bool"), gradient=False,
        errors=((TypeError, "[bitwise_not]", lambda d: ag.bitwise_not(ag.ones(2, device=d))),),
    ),
    "sin": unary("sin", math.sin),
    "cos": unary("cos", math.cos),
    # -- of two --
    "add": binary("add", lambda a, b: a + b, dtypes=NUMBERS, linear="jointly"),
    "sub": binary("sub", lambda a, b: a - b, dtypes=(*FLOATS, *INTS), linear="jointly"),
    "mul": binary("mul", lambda a, b: a * b, dtypes=NUMBERS, linear="each"),
    "div": binary("div", lambda a, b: a / b, (-2.0, 2.0), AWAY),
    "pow": Row(
        (
            Case(ag.pow, each(lambda a, b: a**b), TWO, (AWAY, (-2.0, 2.0))),
            *(Case(lambda x, p=p: x**p, each(lambda x, p=p: x**p), domains=(AWAY,)) for p in (0, 1, 2, 3, -1, 0.5, 2.5)),
            *(Case(lambda x, p=p: p**x, each(lambda x, p=p: p**x)) for p in (2, 0.5)),
        ),
        errors=(mismatch("pow"),),
    ),
    "maximum": binary("maximum", max, dtypes=NUMBERS),
    "minimum": binary("minimum", min, dtypes=NUMBERS),
    "atan2": binary("atan2", math.atan2),
    "remainder": Row(
        (
            Case(ag.remainder, each(lambda a, b: a - b * math.floor(a / b)), TWO, ((-9.0, 9.0), (1.25, 4.0))),
            Case(ag.remainder, each(lambda a, b: a - b * math.floor(a / b)), TWO, ((-9.0, 9.0), (-4.0, -1.25))),
        ),
        dtypes=("float32", "float64", *INTS),
        errors=(mismatch("remainder"),),
    ),
    "floor_divide": Row(
        (
            Case(ag.floor_divide, each(lambda a, b: a // b), TWO, ((-9.0, 9.0), (1.25, 4.0))),
            Case(ag.floor_divide, each(lambda a, b: a // b), TWO, ((-9.0, 9.0), (-4.0, -1.25))),
        ),
        dtypes=("float32", "float64", *INTS),
        errors=(mismatch("floor_divide"),),
    ),
    "eq": compare("eq", lambda a, b: a == b),
    "ne": compare("ne", lambda a, b: a != b),
    "lt": compare("lt", lambda a, b: a < b),
    "le": compare("le", lambda a, b: a <= b),
    "gt": compare("gt", lambda a, b: a > b),
    "ge": compare("ge", lambda a, b: a >= b),
    "bitwise_and": logic("bitwise_and", lambda a, b: a & b),
    "bitwise_or": logic("bitwise_or", lambda a, b: a | b),
    "bitwise_xor": logic("bitwise_xor", lambda a, b: a ^ b),
    # -- reductions --
    "sum": reduction("sum", whole_sum, (*NUMBERS, "bool"), linear="jointly"),
    "amax": reduction("amax", max, NUMBERS, dims=((0, False), (-1, True), ((0, 2), False), ((), False)), empty=False,
                      errors=(bad_dim("amax"), empty_refused("amax"))),
    "amin": reduction("amin", min, NUMBERS, dims=((0, False), (-1, True), ((0, 2), False), ((), False)), empty=False,
                      errors=(bad_dim("amin"), empty_refused("amin"))),
    "any": reduction("any", any, (*NUMBERS, "bool"), gradient=False),
    "argmax": reduction("argmax", first(max), NUMBERS, dims=((None, False), (0, False), (-1, True)), empty=False, gradient=False,
                        errors=(bad_dim("argmax"), empty_refused("argmax"))),
    "argmin": reduction("argmin", first(min), NUMBERS, dims=((None, False), (0, False), (-1, True)), empty=False, gradient=False,
                        errors=(bad_dim("argmin"), empty_refused("argmin"))),
    # -- movement --
    "reshape": Row(
        (
            Case(lambda x: x.reshape(4, -1), lambda x: np.array(x.ravel().tolist()).reshape(4, 3), (((3, 4),), ((2, 6),))),
            Case(lambda x: x.t().reshape(12), lambda x: np.array([v for row in zip(*x.tolist()) for v in row]), (((3, 4),),)),
            Case(lambda x: x.reshape(0, 5), lambda x: np.zeros((0, 5)), (((2, 0),),)),
        ),
        dtypes=(*NUMBERS, "bool"), linear="jointly",
        errors=(
            (ValueError, "[reshape] the number of elements must stay; got (2, 3) (6) -> (4, 2) (8)", lambda d: ag.ones(2, 3, device=d).reshape(4, 2)),
            (ValueError, "[reshape] cannot spread", lambda d: ag.ones(2, 3, device=d).reshape(4, -1)),
            (ValueError, "[reshape] a shape has at most one -1", lambda d: ag.ones(2, 3, device=d).reshape(-1, -1)),
            (TypeError, "[reshape] a shape is made of whole numbers", lambda d: ag.ones(2, 3, device=d).reshape(2.0, 3)),
        ),
    ),
    "permute": Row(
        (
            Case(lambda x: x.permute(2, 0, 1), lambda x: np.einsum("abc->cab", x), (((2, 3, 4),), ((2, 0, 3),))),
            Case(lambda x: x.transpose(0, -1), lambda x: np.einsum("abc->cba", x), (((2, 3, 4),),)),
        ),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=((ValueError, "[permute] the dimensions", lambda d: ag.ones(2, 3, device=d).permute(0, 0)),),
    ),
    "expand": Row(
        (
            Case(lambda x: x.expand(2, 3, 4), lambda x: np.zeros((2, 3, 4)) + x, (((3, 1),), ((4,),), ((),), ((1, 3, 4),))),
            Case(lambda x: x.expand(0, -1), lambda x: np.zeros((0, 4)), (((1, 4),),)),
        ),
        dtypes=FLOATS, linear="jointly",
        errors=((ValueError, "[expand] only dimensions of size 1", lambda d: ag.ones(2, 3, device=d).expand(4, 3)),),
    ),
    "slice": Row(
        (
            Case(lambda x: x[1], lambda x: np.array(x.tolist()[1]), (((3, 4),), ((3,),))),
            Case(lambda x: x[:, 1:4:2], lambda x: np.array([row[1:4:2] for row in x.tolist()]), (((3, 5),),)),
            Case(lambda x: x[..., None, -1], lambda x: np.array([[row[-1]] for row in x.tolist()]), (((3, 5),),)),
            Case(lambda x: x[2:2], lambda x: np.zeros((0, 4)), (((3, 4),),)),
        ),
        dtypes=(*FLOATS, "int64", "bool"), linear="jointly",
        errors=(
            (IndexError, "[getitem] index 2 is out of range for dimension 0 of shape (2, 3)", lambda d: ag.ones(2, 3, device=d)[2]),
            (IndexError, "[getitem] too many indices", lambda d: ag.ones(2, 3, device=d)[0, 0, 0]),
            (TypeError, "[getitem] indices are", lambda d: ag.ones(2, 3, device=d)["a"]),
        ),
    ),
    "place": Row(
        (
            Case(lambda x: pad(x, (1, 2), value=0.5), lambda x: embed(x, (3, 7), np.s_[:, 1:5], 0.5), (((3, 4),),)),
            Case(lambda x: pad(x, (1, 0, 0, 2)), lambda x: embed(x, (5, 5), np.s_[:3, 1:], 0), (((3, 4),),)),
            Case(lambda x: pad(x, (-1, 1)), lambda x: embed(x[:, 1:], (3, 4), np.s_[:, :3], 0), (((3, 4),),)),
        ),
        errors=((ValueError, "[pad] expects (before, after) pairs", lambda d: pad(ag.ones(2, 3, device=d), (1,))),),
    ),
    "cat": Row(
        (
            Case(lambda a, b: ag.cat([a, b, a]), lambda a, b: np.array(a.tolist() + b.tolist() + a.tolist()), (((2, 3), (4, 3)), ((2,), (3,)))),
            Case(lambda a, b: ag.cat([a, b], dim=-1), lambda a, b: np.array([p + q for p, q in zip(a.tolist(), b.tolist())]), (((2, 3), (2, 1)), ((2, 3), (2, 0)))),
        ),
        dtypes=(*NUMBERS, "bool"), linear="jointly",
        errors=(
            (ValueError, "[cat] sizes must agree except along dim 0; got (2, 3), (2, 4)", lambda d: ag.cat(ones(d, (2, 3), (2, 4)))),
            (TypeError, "[cat] expected a non-empty sequence", lambda d: ag.cat([])),
        ),
    ),
    "clone": Row((Case(ag.clone, lambda x: x),), dtypes=(*NUMBERS, "bool"), linear="jointly"),
    "cast": Row(
        tuple(Case(lambda x, to=to: x.to(to).to(x.dtype), lambda x: x) for to in (ag.float16, ag.float32)),
        rounds=True,
        errors=((TypeError, "unknown dtype 'float8'", lambda d: ag.ones(2, device=d).to(dtype="float8")),),
    ),
    "move": Row((Case(lambda x: x.cpu().to(x.device), lambda x: x),), dtypes=(*NUMBERS, "bool"), linear="jointly"),
    "set_view": Row(
        (
            Case(setitem(0), lambda x, v: written(x, 0, v), (((3, 4), (4,)), ((3, 4), ()), ((3,), ()))),
            Case(setitem((slice(None), slice(1, 3))), lambda x, v: written(x, np.s_[:, 1:3], v), (((3, 4), (3, 2)), ((3, 4), (1,)))),
            Case(setitem((slice(None, None, 2), None)), lambda x, v: written(x, np.s_[::2, None], v), (((4, 3), (2, 1, 3)),)),
        ),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=((ValueError, "[setitem] the value must broadcast", lambda d: setitem(0)(*ones(d, (2, 3), (2,)))),),
    ),
    # -- products --
    "matmul": Row(
        (
            Case(lambda a, b: a @ b, lambda a, b: np.einsum("mk,kn->mn", a, b), (((2, 3), (3, 4)), ((1, 1), (1, 1)), ((17, 33), (33, 5)), ((2, 0), (0, 3)), ((0, 2), (2, 3)))),
            Case(lambda a, b: a @ b, lambda a, b: np.einsum("...mk,...kn->...mn", a, b), (((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 2)))),
            Case(lambda a, b: a @ b, lambda a, b: np.einsum("...k,k->...", a, b), (((3,), (3,)), ((2, 3), (3,)), ((2, 2, 3), (3,)))),
            Case(lambda a, b: a @ b, lambda a, b: np.einsum("k,...kn->...n", a, b), (((3,), (3, 2)), ((3,), (2, 3, 2)))),
        ),
        dtypes=("float32", "float64", "float16", "int64"), linear="each", tolerance={"cpu": 1e-5, "wgpu": 1e-5},
        errors=(
            (ValueError, "[matmul] inner sizes must agree; got (2, 3) @ (2, 3). Transpose one operand?", lambda d: ag.matmul(*ones(d, (2, 3), (2, 3)))),
            (ValueError, "[matmul] expects at least one dimension", lambda d: ag.matmul(*ones(d, (), (2,)))),
            (ValueError, "[matmul] sizes must be equal or 1", lambda d: ag.matmul(*ones(d, (2, 2, 3), (4, 3, 2)))),
            (TypeError, "[matmul] both sides must have one dtype", lambda d: ag.ones(2, 2, device=d) @ ag.ones(2, 2, device=d).half()),
        ),
    ),
    "linear": Row(
        (
            Case(ag.nn.functional.linear, lambda x, w, b: x @ w.T + b, (((2, 3), (4, 3), (4,)), ((2, 5, 3), (2, 3), (2,)), ((3,), (4, 3), (4,)), ((0, 3), (2, 3), (2,)), ((2, 0), (3, 0), (3,)), ((17, 33), (129, 33), (129,)))),
            Case(ag.nn.functional.linear, lambda x, w: x @ w.T, (((2, 3), (4, 3)), ((2, 5, 3), (1, 3)), ((3,), (4, 3)))),
        ),
        dtypes=("float32", "float64", "float16", "int64"), linear="", tolerance={"cpu": 1e-5, "wgpu": 1e-5},
        errors=(
            (ValueError, "[linear] needs x [..., I] @ weight [O, I]^T + bias [O]; got (2, 3) @ (4, 2)^T + (4,)", lambda d: ag.nn.functional.linear(*ones(d, (2, 3), (4, 2), (4,)))),
            (ValueError, "[linear] needs x [..., I] @ weight [O, I]^T + bias [O]; got (2, 3) @ (4, 3)^T + (3,)", lambda d: ag.nn.functional.linear(*ones(d, (2, 3), (4, 3), (3,)))),
        ),
    ),
    # -- selection --
    "where": Row(
        (
            Case(lambda a, b: ag.where(on(a, MASK), a, b), lambda a, b: written(np.zeros((3, 4)) + b, MASK, (np.zeros((3, 4)) + a)[MASK]), (((3, 4), (3, 4)), ((4,), (3, 1)), ((), (3, 4)), ((), ()))),
            Case(lambda a: ag.where(on(a, MASK), a, 3), lambda a: written(np.full((3, 4), 3.0), MASK, a[MASK]), (((3, 4),),)),
            Case(lambda a: ag.where(on(a, MASK), 3, a), lambda a: written(a, MASK, 3), (((3, 4),),)),
        ),
        dtypes=(*NUMBERS,), linear="",
        errors=((TypeError, "[where] the condition must be a bool tensor; got autograd.float32", lambda d: ag.where(*ones(d, (2,), (2,), (2,)))),),
    ),
    "gather": Row(
        (
            Case(lambda x: x.gather(0, on(x, INDEX)), lambda x: gather(x, INDEX, 0), (((3, 4),), ((5, 3),))),
            Case(lambda x: ag.gather(x, -1, on(x, INDEX)), lambda x: gather(x, INDEX, 1), (((2, 3),), ((3, 4),))),
        ),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=(out_of_range("gather"), float_index("gather"), bad_dim("gather", None)),
    ),
    "scatter_add": Row(
        (
            Case(lambda x, s: x.scatter_add(0, on(x, INDEX), s), lambda x, s: scatter_add(x, INDEX, s, 0), (((3, 4), (2, 3)), ((3, 3), (3, 4)))),
            Case(lambda x, s: x.scatter_add(1, on(x, INDEX), s), lambda x, s: scatter_add(x, INDEX, s, 1), (((2, 3), (2, 3)),)),
        ),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=(out_of_range("scatter_add", (1, 3)), float_index("scatter_add", (1, 3))),
    ),
    "index_select": Row(
        (
            Case(lambda x: x.index_select(0, on(x, ROWS)), lambda x: np.array([x.tolist()[i] for i in ROWS]), (((3, 4),), ((3,),), ((3, 2, 2),))),
            Case(lambda x: x.index_select(1, on(x, ROWS)), lambda x: np.array([[row[i] for i in ROWS] for row in x.tolist()]), (((2, 3),),)),
            Case(lambda x: x[on(x, INDEX)], lambda x: np.array([[x.tolist()[i] for i in row] for row in INDEX]), (((3, 2),),)),
        ),
        dtypes=(*NUMBERS, "bool"), linear="jointly",
        errors=(out_of_range("index_select"), float_index("index_select")),
    ),
    "index_add": Row(
        (Case(lambda x, s: x.index_add(0, on(x, ROWS), s), lambda x, s: index_add(x, ROWS, s), (((3, 2), (4, 2)), ((3,), (4,)))),),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=(out_of_range("index_add", (2, 3)), float_index("index_add", (3, 3))),
    ),
    "nonzero": Row((Case(ag.nonzero, lambda x: np.array([at for at in np.ndindex(x.shape) if x[at]]).reshape(-1, x.ndim), (((3, 4),), ((5,),), ((0, 2),))),),
                   dtypes=(*NUMBERS, "bool"), gradient=False),
    # -- softmax --
    "softmax": Row(
        tuple(Case(lambda x, d=d: ag.softmax(x, d), lambda x, d=d: softmax(x, d), (((3, 4),), ((2, 5),), ((1, 1),), ((0, 3),))) for d in (0, 1)),
        errors=(integers_refused("softmax", 0), bad_dim("softmax")),
    ),
    "log_softmax": Row(
        tuple(Case(lambda x, d=d: ag.log_softmax(x, d), lambda x, d=d: softmax(x, d, log=True), (((3, 4),), ((2, 5),), ((1, 1),), ((0, 3),))) for d in (0, 1)),
        errors=(integers_refused("log_softmax", 0), bad_dim("log_softmax")),
    ),
    # -- windows --
    "diagonal": Row(
        tuple(Case(lambda x, k=k: x.diagonal(k), lambda x, k=k: diagonal(x, k), (((3, 4),), ((4, 2),))) for k in (0, 1, -1)),
        dtypes=(*FLOATS, "int64"), linear="jointly",
        errors=((ValueError, "[diagonal] needs two different dimensions", lambda d: ag.ones(2, 2, device=d).diagonal(0, 1, 1)),),
    ),
    "unfold": Row(
        (
            Case(lambda x: x.unfold(0, 3, 2), lambda x: np.array([x[k : k + 3] for k in range(0, len(x) - 2, 2)]), (((7,),),)),
            Case(lambda x: x.unfold(1, 2, 1), lambda x: np.array([[row[k : k + 2] for k in range(len(row) - 1)] for row in x]), (((2, 4),),)),
        ),
        dtypes=(*FLOATS, "int64"), linear="jointly",
    ),
    "windows": Row(
        tuple(Case(lambda x, w=w: windows(x, *w), lambda x, w=w: windows_of(x, *w), (((5, 6),), ((2, 5, 6),))) for w in WINDOWS), linear="jointly",
    ),
    "add_windows": Row(
        tuple(Case(lambda x, w=w: add_windows(x, (5, 6), *w[2:]), lambda x, w=w: windows_added(x, (5, 6), *w[2:]), (((*w[0], *w[1]),),)) for w in WINDOWS),
        linear="jointly",
    ),
    "max_pool": Row(
        tuple(Case(lambda x, w=w: max_pool(x, *w)[0], lambda x, w=w: windows_of(x, *w).max((-1, -2)), (((5, 6),), ((2, 5, 6),))) for w in WINDOWS),
    ),
}

TABLE.update(ATTENTION | SPECIAL | INDEXING | LINALG | NORMS | RECURRENT)
