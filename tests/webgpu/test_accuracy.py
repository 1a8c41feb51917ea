"""Every elementwise kernel against NumPy in float64: values, edges, integers."""

import math
import warnings

import numpy as np
import pytest

from autograd.webgpu.launch import Binary, Cast, Ternary, Unary

EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 0.5, -0.5, 2.5, -3.5]
erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), 1 / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# name -> (reference, low, high)
UNARY = {
    "neg": (np.negative, -9, 9),
    "abs": (np.abs, -9, 9),
    "sign": (np.sign, -9, 9),
    "exp": (np.exp, -87, 88.5),
    "expm1": (np.expm1, -20, 80),
    "log": (np.log, 1e-30, 1e30),
    "log1p": (np.log1p, -0.999, 100),
    "sqrt": (np.sqrt, 0, 1e9),
    "sin": (np.sin, -1e4, 1e4),
    "cos": (np.cos, -1e4, 1e4),
    "tanh": (np.tanh, -12, 12),
    "sigmoid": (sigmoid, -80, 80),
    "erf": (erf, -5, 5),
    "floor": (np.floor, -9, 9),
    "round": (np.round, -9, 9),
    "relu": (lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), -9, 9),
    "softplus": (softplus, -80, 80),
}


def reference(function, *operands):
    """The float64 result, rounded once."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*(np.asarray(v, np.float64) for v in operands)).astype(np.float32)


@pytest.mark.parametrize("name", UNARY)
def test_unary_values(name, gpu, check, rng):
    function, low, high = UNARY[name]
    x = np.concatenate([rng.uniform(low, high, 500), rng.uniform(-1, 1, 500)])
    x = np.clip(x, low, high).astype(np.float32)
    y = reference(function, x)
    # Near a zero of sin, cos or log the operand's own rounding is what is left.
    check(Unary(name)(gpu.upload(x)), y, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", UNARY)
def test_unary_edges(name, gpu, check):
    x = np.array(EDGES, np.float32)
    want = reference(UNARY[name][0], x)
    check(Unary(name)(gpu.upload(x)), want)


def test_small_arguments_keep_their_digits(gpu, check, rng):
    x = (rng.uniform(-1, 1, 200) * 10.0 ** rng.uniform(-20, -1, 200)).astype(np.float32)
    for name in ("tanh", "expm1", "log1p", "sin", "erf"):
        check(Unary(name)(gpu.upload(x)), reference(UNARY[name][0], x), rtol=1e-6, atol=0)


def test_sine_of_large_arguments(gpu, check, rng):
    x = (rng.uniform(-1, 1, 500) * 10.0 ** rng.uniform(3, 38, 500)).astype(np.float32)
    for name in ("sin", "cos"):
        check(Unary(name)(gpu.upload(x)), reference(UNARY[name][0], x), atol=2e-7)


def test_erfc_tail(gpu, check):
    """erfcx is what erfc, and so gelu, rest on: exp(x^2) erfc(x), which must not fall off where erfc is tiny."""
    x = np.linspace(-3, 6, 300).astype(np.float32)
    check(Unary("erfcx")(gpu.upload(x)), reference(lambda x: np.exp(x * x) * erfc(x), x), rtol=4e-6)


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": np.arctan2,
}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_values(name, gpu, check, rng):
    a, b = rng.uniform(-9, 9, (2, 500)).astype(np.float32)
    if name == "pow":
        a = np.abs(a)
    check(Binary(name)(gpu.upload(a), gpu.upload(b)), reference(BINARY[name], a, b), atol=2e-7)


@pytest.mark.parametrize("name", BINARY)
def test_binary_edges(name, gpu, check):
    a, b = (v.ravel().copy() for v in np.meshgrid(EDGES, EDGES))
    a, b = a.astype(np.float32), b.astype(np.float32)
    want = reference(BINARY[name], a, b)
    tiny = np.abs(want) < 1.2e-38  # devices may round what is subnormal to zero
    got = gpu.download(Binary(name)(gpu.upload(a), gpu.upload(b)))
    np.testing.assert_allclose(got[~tiny], want[~tiny], rtol=2e-6)
    np.testing.assert_allclose(got[tiny], 0, atol=1.2e-38)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, gpu, check):
    a, b = (v.ravel().astype(np.float32) for v in np.meshgrid(EDGES, EDGES))
    want = COMPARISONS[name](a, b)
    check(Binary(name, out="bool")(gpu.upload(a), gpu.upload(b)), want)


def test_pow_of_whole_exponents(gpu, check):
    a, b = (v.ravel() for v in np.meshgrid([-3.0, -2.0, -0.5, 0.0, 2.0], np.arange(-20.0, 21)))
    a, b = a.astype(np.float32), b.astype(np.float32)
    check(Binary("pow")(gpu.upload(a), gpu.upload(b)), reference(np.power, a, b))


def test_remainders_are_exact(gpu, rng):
    a = (rng.uniform(-1, 1, 300) * 10.0 ** rng.uniform(-3, 9, 300)).astype(np.float32)
    b = rng.uniform(0.01, 3, 300).astype(np.float32)
    got = gpu.download(Binary("remainder")(gpu.upload(a), gpu.upload(b)))
    np.testing.assert_array_equal(got, np.remainder(a, b))


INTEGER = ("add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum")
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("name", [*INTEGER, *BITS])
def test_integers(name, dtype, gpu, check):
    low, high = (0, 9) if dtype == np.uint8 else (-9, 10)
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(np.arange(low, high), np.arange(low, high)))
    with np.errstate(all="ignore"):
        want = (BINARY | BITS)[name](a, b)
    check(Binary(name)(gpu.upload(a), gpu.upload(b)), want)


def test_integer_extremes_do_not_trap(gpu, check):
    a = gpu.upload(np.array([-(2**31), 7], np.int32))
    b = gpu.upload(np.array([-1, 0], np.int32))
    check(Binary("floor_divide")(a, b), np.array([-(2**31), 0], np.int32))
    check(Binary("remainder")(a, b), np.array([0, 0], np.int32))


def test_integer_pow(gpu, check):
    a = gpu.upload(np.array([2, -3, 0, 5, 1, -1], np.int64))
    b = gpu.upload(np.array([10, 3, 0, 1, -2, -3], np.int64))
    check(Binary("pow")(a, b), np.array([1024, -27, 1, 5, 1, -1]))


def test_uint8_wraps(gpu, check):
    a = gpu.upload(np.array([250, 3], np.uint8))
    check(Binary("add")(a, 10), np.array([4, 13], np.uint8))
    check(Binary("sub")(a, 10), np.array([240, 249], np.uint8))
    check(Unary("neg")(a), np.array([6, 253], np.uint8))
    check(Unary("bitwise_not")(a), np.array([5, 252], np.uint8))


CASTS = [np.float32, np.int32, np.int64, np.uint8, np.bool_]


@pytest.mark.parametrize("source", CASTS)
@pytest.mark.parametrize("target", CASTS)
def test_casts(source, target, gpu, check):
    x = np.array([0, 1, 2, 100.75]).astype(source)
    check(Cast()(gpu.upload(x), target), x.astype(target))


def test_where(gpu, check, rng):
    a, b = rng.standard_normal((2, 3, 4)).astype(np.float32)
    c = a > b
    device = [gpu.upload(v) for v in (c, a, b)]
    check(Ternary("where")(*device), np.where(c, a, b))
    check(Ternary("where")(device[0], device[1], 2), np.where(c, a, np.float32(2)))
    check(Ternary("where")(device[0], 1, 2, dtype=np.dtype(np.int64)), np.where(c, 1, 2))
