"""What a row of tests/op_table.py is made of: cases, inputs, and the functions and references that many rows share.

A row holds cases; a case a call on tensors, the same on NumPy arrays in other words, and the inputs' shapes and domains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import autograd as ag

FLOATS = ("float32", "float64", "float16")
INTS = ("int64", "int32")
NUMBERS = (*FLOATS, *INTS, "uint8")
WHOLE = (*INTS, "uint8", "bool")

ONE = (((3, 4),), ((),), ((1,),), ((0,),), ((2, 0, 3),), ((2, 3, 4),))
TWO = (((3, 4), (3, 4)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 3), ()), ((0,), (1,)), ((2, 1, 4), (3, 1)), ((), ()))


@dataclass(frozen=True)
class Case:
    call: Callable
    reference: Callable
    shapes: tuple = ONE
    domains: tuple = ((-2.0, 2.0),)  # of each input; the last one holds for those that follow


@dataclass(frozen=True)
class Row:
    cases: tuple[Case, ...]
    dtypes: tuple[str, ...] = FLOATS
    gradient: bool = True
    linear: str = ""  # "jointly" in all inputs, or in "each"
    errors: tuple = ()  # (exception, text, function of a device)
    rounds: bool = False  # its values are rounded: differences say nothing of its gradient
    tolerance: dict = field(default_factory=dict)  # device -> |got - want| / max(1, |want|), where not the default


def draw(shape, domain, dtype, random):
    """Inputs that every float dtype can hold, so that all devices and precisions see the same numbers."""
    low, high = domain
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in ("int64", "int32", "uint8"):
        low = max(math.ceil(low), 0) if dtype == "uint8" else math.ceil(low)
        return random.integers(low, math.floor(high) + 1, shape).astype(dtype)
    return np.asarray(random.uniform(low, high, shape)).astype(np.float16).astype(dtype)


def inputs(case, shapes, dtype, seed=0):
    """The arrays of one run of a case."""
    random = np.random.default_rng(seed)
    domains = case.domains + case.domains[-1:] * len(shapes)
    return [draw(s, d, dtype, random) for s, d in zip(shapes, domains)]


def each(function):
    """A function of Python numbers, applied to every element; arrays broadcast."""
    return np.vectorize(function, otypes=[object])


def fold(function, axes=None, keepdim=False):
    """A function of a list of numbers, applied along axes."""

    def reference(x):
        chosen = tuple(range(x.ndim)) if axes is None else tuple(a % x.ndim for a in axes)
        rest = [d for d in range(x.ndim) if d not in chosen]
        count = math.prod(x.shape[d] for d in rest)
        rows = x.transpose(*rest, *chosen).reshape(count, math.prod(x.shape[d] for d in chosen))
        y = np.array([function(row.tolist()) for row in rows]).reshape([x.shape[d] for d in rest])
        return np.expand_dims(y, chosen) if keepdim else y

    return reference


def on(x, data):
    """Indices, masks and constants, where x is."""
    return ag.tensor(data, device=x.device)


def unary(name, function, *domains, **kwargs):
    call = getattr(ag, name)
    return Row(tuple(Case(call, each(function), domains=(d,)) for d in domains or ((-2.0, 2.0),)), **kwargs)


def binary(name, function, *domains, **kwargs):
    call = getattr(ag, name)
    kwargs.setdefault("errors", (mismatch(name),))
    return Row((Case(call, each(function), TWO, domains or ((-2.0, 2.0),)),), **kwargs)


def mismatch(name):
    return ValueError, f"[{name}] sizes must be equal or 1", lambda d: getattr(ag, name)(*ones(d, (2, 3), (4,)))


def ones(device, *shapes, **kwargs):
    return [ag.ones(s, device=device, **kwargs) for s in shapes]


def compare(name, function):
    row = binary(name, function, dtypes=(*NUMBERS, "bool"), gradient=False)
    same = Case(lambda a: getattr(ag, name)(a, a), each(lambda a: function(a, a)))
    return Row((*row.cases, same), row.dtypes, False, errors=row.errors)


def logic(name, function):
    number = Case(lambda a: getattr(ag, name)(a, 3), each(lambda a: function(int(a), 3)))
    wrong = (TypeError, f"[{name}] works on integers and booleans", lambda d: getattr(ag, name)(*ones(d, (2,), (2,))))
    row = binary(name, function, (0.0, 100.0), dtypes=WHOLE, gradient=False)
    return Row((*row.cases, *([] if name.startswith("logical") else [number])), row.dtypes, False, errors=(wrong,))


def truth(function):
    return lambda a, b: function(bool(a), bool(b))


# -- references ---------------------------------------------------------------------------------------------


def softmax(x, axis, log=False):
    def one(row):
        top = max(row)
        total = math.fsum(math.exp(v - top) for v in row)
        return [v - top - math.log(total) if log else math.exp(v - top) / total for v in row]

    return np.apply_along_axis(lambda row: np.array(one(row.tolist())), axis, x) if x.size else x


def gather(x, index, axis):
    y = np.zeros(np.shape(index), x.dtype)
    for at in np.ndindex(y.shape):
        y[at] = x[(*at[:axis], index[at], *at[axis + 1 :])]
    return y


def scatter_add(x, index, source, axis):
    y = x.copy()
    for at in np.ndindex(index.shape):
        y[(*at[:axis], index[at], *at[axis + 1 :])] += source[at]
    return y


def index_add(x, index, source):
    y = x.copy()
    for k, i in enumerate(index):
        y[i] += source[k]
    return y


def written(x, index, value):
    y = x.copy()
    y[index] = value
    return y


def embed(x, shape, index, value):
    return written(np.full(shape, value, x.dtype), index, x)


def setitem(index):
    """base, value -> base with value at the index."""

    def call(base, value):
        y = base.clone()
        y[index(y) if callable(index) else index] = value
        return y

    return call


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def diagonal(x, offset):
    return np.array([x[i, j] for i in range(x.shape[0]) for j in range(x.shape[1]) if j - i == offset])


def windows_of(x, starts, kernel, stride, dilation):
    """[.., H, W] -> [.., *starts, *kernel], one window after the other."""
    y = np.zeros((*x.shape[:-2], *starts, *kernel), x.dtype)
    for at in np.ndindex(*starts, *kernel):
        h, w = (at[k] * stride[k] + at[k + 2] * dilation[k] for k in (0, 1))
        y[(..., *at)] = x[..., h, w]
    return y


def windows_added(x, sizes, stride, dilation):
    y = np.zeros((*x.shape[:-4], *sizes), x.dtype)
    for at in np.ndindex(x.shape[-4:]):
        h, w = (at[k] * stride[k] + at[k + 2] * dilation[k] for k in (0, 1))
        y[..., h, w] += x[(..., *at)]
    return y


# count, kernel, stride and dilation of windows over a plane of 5 by 6
WINDOWS = (((4, 3), (2, 2), (1, 2), (1, 1)), ((3, 4), (2, 2), (1, 1), (2, 2)), ((1, 1), (5, 6), (1, 1), (1, 1)))
INDEX = np.array([[0, 2, 2], [1, 1, 0]])
ROWS = np.array([2, 0, 2, 1])
MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])
OUT_OF_RANGE = [[0, 1, 9]]
POSITIVE, UNIT, AWAY = (0.25, 4.0), (-0.9, 0.9), (0.25, 2.0)


def out_of_range(name, *rest):
    def call(device):
        x = ag.ones(2, 3, device=device)
        index = on(x, OUT_OF_RANGE if name in ("gather", "scatter_add") else [0, 9])
        sources = [ag.ones(*shape, device=device) for shape in rest]
        return getattr(ag, name)(x, 0, index, *sources)

    return IndexError, f"[{name}] indices must lie in [0, 1]; got 9", call


def float_index(name, *rest):
    def call(device):
        sources = [ag.ones(*shape, device=device) for shape in rest]
        return getattr(ag, name)(ag.ones(2, 3, device=device), 0, ag.zeros(1, 3, device=device)[0 if name.startswith("index") else ...], *sources)

    return TypeError, f"[{name}] an index is a tensor of int64 or int32; got autograd.float32", call


def bad_dim(name, *args):
    return IndexError, f"[{name}] dim must be in [-2, 1]", lambda d: getattr(ag, name)(ag.ones(2, 3, device=d), 2, *args)


def integers_refused(name, *args):
    return TypeError, f"[{name}] expects floating point; got autograd.int64", lambda d: getattr(ag, name)(ag.arange(3, device=d), *args)


def empty_refused(name):
    return ValueError, f"[{name}] nothing to choose from", lambda d: getattr(ag, name)(ag.zeros(0, device=d))


def reduction(name, function, dtypes=FLOATS, dims=((None, False), (0, False), (-1, True), ((0, 2), False)), empty=True, **kwargs):
    """A reduction over all, one and several dimensions."""
    cases = []
    for dim, keep in dims:
        shapes = (((2, 3, 4),), ((5, 1, 7),), *((((2, 0, 3),),) if empty else ()))
        axes = None if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
        args = {"keepdim": keep} if dim is None else {"dim": dim, "keepdim": keep}
        if dim is None:
            shapes += (((),), *((((0,),),) if empty else ()))
        if name in ("argmax", "argmin") and dim is None:
            args = {}
        cases.append(Case(lambda x, args=args: getattr(ag, name)(x, **args), fold(function, axes, keep), shapes))
    return Row(tuple(cases), dtypes, errors=kwargs.pop("errors", (bad_dim(name),)), **kwargs)


def first(best):
    return lambda row: row.index(best(row))


def whole_sum(row):
    return math.fsum(row) if row and isinstance(row[0], float) else sum(row)
