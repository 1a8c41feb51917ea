"""Rows for elementwise composites and special functions, in the form of tests/op_cases.py."""

import math
from statistics import NormalDist

import numpy as np
from op_cases import AWAY, FLOATS, INTS, POSITIVE, TWO, UNIT, Case, Row, binary, each, fold, mismatch, on, ones, unary

import autograd as ag

DOUBLES = ("float32", "float64")
NORMAL = NormalDist()
NAN, INF = math.nan, math.inf


def takes_tensors(name):
    """A number where a tensor is expected is a TypeError in the function's name."""
    return TypeError, f"[{name}] expected a Tensor; got int", lambda d: getattr(ag, name)(3, ag.ones(2, device=d))


def fixed(call, values, wanted):
    """A case whose input is a list of chosen values: kinks, NaN and infinities."""
    return Case(lambda x: call(on(x, np.array(values, np.float32)).to(x.dtype)), lambda x: np.array(wanted), (((1,),),))


def special(name, function, *domains, **kwargs):
    call = getattr(ag.special, name)
    return Row(tuple(Case(call, each(function), domains=(d,)) for d in domains), **kwargs)


def digamma(x):
    shift = 0.0
    while x < 30:
        shift, x = shift - 1 / x, x + 1
    return shift + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


def bessel(n):
    return lambda x: math.fsum((x / 2) ** (2 * k + n) / (math.factorial(k) * math.factorial(k + n)) for k in range(60))


def logadd(a, b):
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


LOOSE = {"wgpu": 3e-5, "cpu": 1e-5}

ROWS = {
    "acosh": unary("acosh", math.acosh, (1.25, 4.0), (1.0, 1.0), gradient=False),
    "acosh_gradient": unary("acosh", math.acosh, (1.25, 4.0)),
    "asinh": unary("asinh", math.asinh, (-2.0, 2.0), (-1e-3, 1e-3), (-6e4, 6e4)),
    "atanh": unary("atanh", math.atanh, UNIT, (-1e-3, 1e-3)),
    "sinc": unary("sinc", lambda x: math.sin(math.pi * x) / (math.pi * x) if x else 1.0, (-2.0, 2.0), (-5e-3, 5e-3)),
    "logaddexp": Row((Case(ag.logaddexp, each(logadd), TWO), Case(lambda x: ag.logaddexp(x, x), each(lambda x: x + math.log(2)))),
                     errors=(mismatch("logaddexp"), takes_tensors("logaddexp"))),
    "logaddexp_at_infinity": Row(
        (fixed(lambda x: ag.logaddexp(x[:4], x[4:]), [INF, -INF, 1e4, NAN, INF, -INF, -1e4, 0.0], [INF, -INF, 1e4, NAN]),), DOUBLES, False),
    "logaddexp2": Row((Case(ag.logaddexp2, each(lambda a, b: math.log2(2**a + 2**b)), TWO),)),
    "hypot": binary("hypot", math.hypot, errors=(mismatch("hypot"), takes_tensors("hypot"))),
    "hypot_at_the_ends": Row((fixed(lambda x: ag.hypot(x, x), [0.0, 2.0**126, INF], [0.0, 2.0**126 * math.sqrt(2), INF]),), DOUBLES, False),
    "xlogy": Row((Case(ag.xlogy, each(lambda a, b: a * math.log(b)), TWO, ((-2.0, 2.0), POSITIVE)),
                  Case(lambda x: ag.xlogy(x * 0, x * 0), each(lambda x: 0.0)))),
    "xlog1py": Row((Case(ag.special.xlog1py, each(lambda a, b: a * math.log1p(b)), TWO, ((-2.0, 2.0), POSITIVE)),)),
    "logit": Row((Case(ag.logit, each(lambda x: math.log(x / (1 - x))), domains=((0.1, 0.9),)),
                  Case(lambda x: x.logit(0.25), each(lambda x: math.log(min(max(x, 0.25), 0.75) / (1 - min(max(x, 0.25), 0.75)))), domains=((0.05, 0.95),)))),
    "copysign": binary("copysign", math.copysign, AWAY, (-2.0, 2.0), errors=(takes_tensors("copysign"),)),
    "signs": Row((fixed(lambda x: x.signbit(), [0.0, -0.0, -1.0, 2.0, INF, -INF], [False, True, True, False, False, True]),
                  fixed(lambda x: ag.copysign(x.abs() + 1, x).sign(), [0.0, -0.0, -1.0, 2.0], [1, -1, -1, 1])), DOUBLES, False),
    "frac": unary("frac", lambda x: x - math.trunc(x)),
    "fmod": Row((Case(ag.fmod, each(math.fmod), TWO, ((-9.0, 9.0), (1.25, 4.0))), Case(ag.fmod, each(math.fmod), TWO, ((-9.0, 9.0), (-4.0, -1.25))),
                 Case(lambda x: ag.fmod(x, 3), each(lambda x: math.fmod(x, 3)), domains=((-9.0, 9.0),))), (*DOUBLES, *INTS), rounds=False,
                errors=(takes_tensors("fmod"),)),
    "fmax": binary("fmax", max, errors=(takes_tensors("fmax"),)),
    "fmin": binary("fmin", min, errors=(takes_tensors("fmin"),)),
    "fmax_of_nan": Row((fixed(lambda x: ag.fmax(x[:3], x[3:]), [NAN, 1.0, NAN, 2.0, NAN, NAN], [2.0, 1.0, NAN]),
                        fixed(lambda x: ag.fmin(x[:3], x[3:]), [NAN, 1.0, NAN, 2.0, NAN, NAN], [2.0, 1.0, NAN])), DOUBLES, False),
    "clamp_one_side": Row((Case(lambda x: x.clamp_max(0.5), each(lambda x: min(x, 0.5))), Case(lambda x: x.clamp_min(0.5), each(lambda x: max(x, 0.5))))),
    "deg2rad": unary("deg2rad", math.radians, linear="jointly"),
    "rad2deg": unary("rad2deg", math.degrees, dtypes=DOUBLES, linear="jointly", tolerance={"cpu": 1e-5}),
    "rsub": Row((Case(lambda a, b: ag.rsub(a, b, alpha=2), each(lambda a, b: b - 2 * a), TWO),), linear="jointly"),
    "round_decimals": Row((Case(lambda x: x.round(decimals=1), each(lambda x: round(x * 10) / 10)), Case(lambda x: x.round(decimals=-1), each(lambda x: round(x / 10) * 10), domains=((-99.0, 99.0),))),
                          DOUBLES, rounds=True, errors=((TypeError, "[round] decimals are for floating point", lambda d: ag.arange(3, device=d).round(decimals=1)),)),
    "heaviside": Row((fixed(lambda x: ag.heaviside(x, x.ones_like() * 0.5), [-1.0, 0.0, 2.0, INF], [0, 0.5, 1, 1]),), gradient=False,
                     errors=((TypeError, "[heaviside] both must have one dtype", lambda d: ag.heaviside(ag.ones(2, device=d), ag.arange(2, device=d))),)),
    "nan_to_num": Row((fixed(lambda x: x.nan_to_num(1.0, 2.0, 3.0), [NAN, INF, -INF, 4.0], [1, 2, 3, 4]),
                       fixed(lambda x: x.nan_to_num() > 1e4, [NAN, INF, -INF, 4.0], [False, True, False, False])), gradient=False),
    "infinities": Row((fixed(ag.isposinf, [NAN, INF, -INF, 4.0], [False, True, False, False]), fixed(ag.isneginf, [NAN, INF, -INF, 4.0], [False, False, True, False])),
                      gradient=False),
    "isclose": Row((Case(lambda x: ag.isclose(x, x + 1e-3, atol=1e-2), each(lambda x: True)), Case(lambda x: ag.isclose(x, x + 1), each(lambda x: False)),
                    fixed(lambda x: ag.isclose(x, x, equal_nan=True), [NAN, INF, 1.0], [True] * 3), fixed(lambda x: ag.isclose(x, x), [NAN, INF, 1.0], [False, True, True])),
                   DOUBLES, False, errors=((ValueError, "[isclose] rtol and atol must not be negative", lambda d: ag.isclose(*ones(d, (2,), (2,)), rtol=-1)),)),
    "frexp": Row((Case(lambda x: ag.frexp(x)[0], each(lambda x: math.frexp(x)[0]), domains=((-90.0, 90.0),)), Case(lambda x: ag.frexp(x)[1], each(lambda x: math.frexp(x)[1]), domains=((-90.0, 90.0),))),
                 DOUBLES, gradient=False),
    "ldexp": Row((Case(lambda x: ag.ldexp(x, on(x, [1, -2, 3, 0])), lambda x: x * np.array([2, 0.25, 8, 1]), (((3, 4),),)),), linear="jointly"),
    "nextafter": Row((Case(lambda a, b: ag.nextafter(a, b) != a, each(lambda a, b: a != b), TWO), Case(lambda a, b: (ag.nextafter(a, b) - a).sign() == (b - a).sign(), each(lambda a, b: True), TWO)),
                     DOUBLES, gradient=False),
    "shifts": Row((Case(lambda a, b: ag.bitwise_left_shift(a, b), each(lambda a, b: a << b), TWO, ((-9.0, 9.0), (0.0, 9.0))),
                   Case(lambda a, b: a >> b, each(lambda a, b: a >> b), TWO, ((-999.0, 999.0), (0.0, 9.0)))), INTS, False,
                  errors=((TypeError, "[bitwise_left_shift] works on integers", lambda d: ag.bitwise_left_shift(*ones(d, (2,), (2,)))),)),
    "gcd": binary("gcd", math.gcd, (-99.0, 99.0), dtypes=INTS, gradient=False, errors=(takes_tensors("gcd"),)),
    "lcm": binary("lcm", math.lcm, (-99.0, 99.0), dtypes=INTS, gradient=False, errors=(takes_tensors("lcm"),)),
    # -- special functions --
    "erfc": unary("erfc", math.erfc, (-2.0, 2.0), (0.5, 5.0)),
    "digamma": unary("digamma", digamma, (0.25, 9.0), tolerance=LOOSE),
    "i0": unary("i0", bessel(0), (-4.0, 4.0), tolerance=LOOSE),
    "i1": special("i1", bessel(1), (-4.0, 4.0), tolerance=LOOSE),
    "ndtr": special("ndtr", NORMAL.cdf, (-2.0, 2.0), (-5.0, -2.0)),
    "ndtri": special("ndtri", NORMAL.inv_cdf, (0.125, 0.9), (1e-3, 0.09), tolerance=LOOSE),
    "log_ndtr": special("log_ndtr", lambda x: math.log(math.erfc(-x / math.sqrt(2)) / 2), (-2.0, 2.0), (-9.0, -2.0)),
    "entr": special("entr", lambda x: -x * math.log(x), POSITIVE),
    "entr_at_kinks": Row((fixed(ag.special.entr, [0.0, -1.0, NAN], [0.0, -INF, NAN]), fixed(ag.special.ndtri, [0.0, 1.0, 2.0], [-INF, INF, NAN]),
                          fixed(ag.erfinv, [1.0, -1.0, 2.0], [INF, -INF, NAN]), fixed(ag.lgamma, [0.0, -1.0, INF, 1.0], [INF, INF, INF, 0.0])), DOUBLES, False, tolerance=LOOSE),
    # -- along a dimension --
    "cumsum": Row(tuple(Case(lambda x, d=d: x.cumsum(d), lambda x, d=d: np.add.accumulate(x, d), (((3, 4),), ((2, 0),))) for d in (0, 1)), (*FLOATS, *INTS), linear="jointly", tolerance={"cpu": 1e-5}),
    "cumprod": Row((Case(lambda x: x.cumprod(1), lambda x: np.multiply.accumulate(x, 1), (((3, 4),),)),
                    Case(lambda x: (x * on(x, [[1.0], [0.0], [1.0], [0.0]]).to(x.dtype)).cumprod(0), lambda x: np.multiply.accumulate(x * [[1], [0], [1], [0]], 0), (((4, 3),),))), (*FLOATS, "int64")),
    "cummax": Row((Case(lambda x: x.cummax(1)[0], lambda x: np.maximum.accumulate(x, 1), (((3, 4),),)), Case(lambda x: ag.cummin(x, 0)[0], lambda x: np.minimum.accumulate(x, 0), (((3, 4),),))), (*FLOATS, *INTS)),
    "cummax_index": Row((fixed(lambda x: x.cummax(0).indices, [1.0, 3.0, 3.0, 2.0, NAN, 5.0], [0, 1, 2, 2, 4, 4]), fixed(lambda x: x.cummin(0).indices, [3.0, 3.0, 1.0, 2.0, 1.0], [0, 1, 2, 2, 4])),
                        DOUBLES, False),
    "logcumsumexp": Row((Case(lambda x: x.logcumsumexp(1), lambda x: np.logaddexp.accumulate(x, 1), (((3, 4),),)),), DOUBLES),
    "logcumsumexp_at_infinity": Row((fixed(lambda x: x.logcumsumexp(0), [-INF, -INF, 1e4, -1e4, INF], [-INF, -INF, 1e4, 1e4, INF]),), DOUBLES, False),
    "prod": Row((Case(lambda x: x.prod(), fold(math.prod), (((3, 4),), ((0,),), ((),))), Case(lambda x: x.prod(1, keepdim=True), fold(math.prod, (1,), True), (((3, 4),), ((3, 0),))),
                 Case(lambda x: (x * on(x, [1.0, 0.0, 1.0]).to(x.dtype)).prod(), lambda x: np.array(0.0), (((3,),),))), DOUBLES),
}
