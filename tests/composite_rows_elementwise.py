"""Rows for elementwise functions that are made of ops, in the form of tests/op_cases.py."""

import math

import numpy as np
from op_cases import FLOATS, INTS, NUMBERS, POSITIVE, UNIT, Case, Row, binary, reduction, truth, unary

ROWS = {
    "rsqrt": unary("rsqrt", lambda x: x**-0.5, POSITIVE),
    "reciprocal": unary("reciprocal", lambda x: 1 / x, POSITIVE, (-4.0, -0.25)),
    "tan": unary("tan", math.tan, (-1.25, 1.25)),
    "sinh": unary("sinh", math.sinh, (-2.0, 2.0), (-1e-3, 1e-3)),
    "cosh": unary("cosh", math.cosh),
    "atan": unary("atan", math.atan),
    "log2": unary("log2", math.log2, POSITIVE),
    "isnan": unary("isnan", math.isnan, dtypes=NUMBERS, gradient=False),
    "logical_not": unary("logical_not", lambda x: not x, dtypes=(*NUMBERS, "bool"), gradient=False),
    "logical_and": binary("logical_and", truth(lambda a, b: a and b), dtypes=(*NUMBERS, "bool"), gradient=False),
    "logical_or": binary("logical_or", truth(lambda a, b: a or b), dtypes=(*NUMBERS, "bool"), gradient=False),
    "logical_xor": binary("logical_xor", truth(lambda a, b: a != b), dtypes=(*NUMBERS, "bool"), gradient=False),
    "ceil": unary("ceil", math.ceil, dtypes=(*FLOATS, *INTS)),
    "trunc": unary("trunc", math.trunc, dtypes=(*FLOATS, *INTS)),
    "all": reduction("all", all, (*NUMBERS, "bool"), gradient=False),
    "contiguous": Row((Case(lambda x: x.mT.contiguous(), lambda x: np.swapaxes(x, -1, -2), (((3, 4),), ((2, 3, 4),))),), linear="jointly"),
    "asin": unary("asin", math.asin, UNIT),
    "acos": unary("acos", math.acos, UNIT),
}
