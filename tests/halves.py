"""Arrays of 16 bits for tests: drawn, widened, and how far apart two are."""

import numpy as np

import autograd as ag
from autograd.dtypes import converted, widened

HALF, BFLOAT = np.dtype(np.float16), ag.bfloat16.numpy


def values(shape, dtype, seed=0):
    return converted(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), dtype)


def wide(x):
    """What any 16-bit array holds, as float32."""
    return widened(x).astype(np.float32)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint16)


def steps_between(a, b):
    """How many representable numbers lie between a and b, both float16; 0 where both are NaN."""
    rank = [np.where(bits(x) & 0x8000, -(bits(x) & 0x7FFF).astype(int), bits(x).astype(int)) for x in (a, b)]
    return np.where(np.isnan(a) & np.isnan(b), 0, np.abs(rank[0] - rank[1]))
