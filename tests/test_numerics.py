"""Values and gradients where formulas break: kinks, ties, extremes, NaN, constants; the same on both devices."""

import math

import numpy as np
import pytest
from helpers import array, assert_close

import autograd as ag
from autograd.nn import functional as F

inf, nan = math.inf, math.nan


def run(function, x, device):
    """function's value and gradient at x."""
    t = ag.tensor(x, device=device, requires_grad=True)
    y = function(t)
    y.sum().backward()
    return y, t.grad


# name: function, x, value, gradient of the sum
POINTS = {
    # -- kinks: one documented choice each --
    "relu at 0": (lambda x: x.relu(), [-1.0, 0.0, -0.0, 2.0], [0, 0, 0, 2], [0, 0, 0, 1]),
    "abs at 0": (lambda x: x.abs(), [-2.0, 0.0, 2.0], [2, 0, 2], [-1, 0, 1]),
    "clamp at its bounds": (lambda x: x.clamp(0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0], [0, 0, 0.5, 1, 1], [0, 1, 1, 1, 0]),
    "clamp with one bound": (lambda x: x.clamp(min=0), [-1.0, 0.0, 1.0], [0, 0, 1], [0, 1, 1]),
    "clamp by tensors": (lambda x: x.clamp(x.detach() * 0, x.detach() * 0 + 1), [-1.0, 0.0, 1.0, 2.0], [0, 0, 1, 1], [0, 1, 1, 0]),
    "clamp to nan": (lambda x: x.clamp(nan, 2), [1.0, 3.0], [nan, nan], [0, 0]),
    "clamp to a tensor with nan": (lambda x: x.clamp(max=ag.tensor([nan, 2.0, 2.0], device=x.device)), [1.0, 1.0, 3.0], [nan, 1, 2], [0, 1, 0]),
    "median of equals": (lambda x: x.median(), [2.0, 1.0, 2.0, 3.0], 2, [0.5, 0, 0.5, 0]),
    "clamp with crossed bounds": (lambda x: x.clamp(2, 1), [0.0, 3.0], [1, 1], [0, 0]),
    "max shares": (lambda x: x.max(), [1.0, 3.0, 3.0], 3, [0, 0.5, 0.5]),
    "min shares": (lambda x: x.min(), [1.0, 1.0, 3.0], 1, [0.5, 0.5, 0]),
    "amax shares along dims": (lambda x: x.amax((0, 1)), [[5.0, 5.0], [5.0, 1.0]], 5, [[1 / 3, 1 / 3], [1 / 3, 0]]),
    "max(dim) goes to its index": (lambda x: x.max(0).values, [1.0, 3.0, 3.0], 3, [0, 1, 0]),
    "min(dim) goes to its index": (lambda x: x.min(0)[0], [1.0, 1.0, 3.0], 1, [1, 0, 0]),
    "maximum halves": (lambda x: ag.maximum(x, ag.tensor([1.0, 5.0, 0.0], device=x.device)), [1.0, 2.0, 3.0], [1, 5, 3], [0.5, 0, 1]),
    "minimum halves": (lambda x: x.minimum(x.detach() * 1), [1.0, 2.0], [1, 2], [0.5, 0.5]),
    "norm at 0": (lambda x: x.norm(), [0.0, 0.0], 0, [0, 0]),
    "norm of rows, one of zeros": (lambda x: x.norm(dim=1), [[3.0, 4.0], [0.0, 0.0]], [5, 0], [[0.6, 0.8], [0, 0]]),
    "round to even": (lambda x: x.round(), [0.5, 1.5, 2.5, -0.5, -1.5], [0, 2, 2, 0, -2], [0] * 5),
    "sign at 0": (lambda x: x.sign(), [-2.0, 0.0, 3.0], [-1, 0, 1], [0, 0, 0]),
    "atan2 at the origin": (lambda x: x.atan2(x.detach().abs()), [0.0, -0.0, 1.0], [0, 0, math.pi / 4], [0, 0, 0.5]),
    "fmod at -0": (lambda x: x.fmod(2), [-0.0, 0.0, -5.0], [-0.0, 0, -1], [1, 1, 1]),
    "multi_margin_loss at its margin": (lambda x: F.multi_margin_loss(x, ag.tensor([1], device=x.device)), [[0.0, 2.0, 1.0]], 0, [[0, 0, 0]]),
    "multilabel_margin_loss at its margin": (lambda x: F.multilabel_margin_loss(x, ag.tensor([[0, -1]], device=x.device)), [[1.0, 0.0]], 0, [[0, 0]]),
    "triplet_margin_loss swapped, of equals": (lambda x: F.triplet_margin_loss(x, x.detach(), x.detach() + 1, swap=True), [[2.0]], 2e-6, [[1.5]]),
    # -- powers --
    "x ** 0": (lambda x: x**0, [0.0, -2.0, inf], [1, 1, 1], [0, 0, 0]),
    "x ** 1": (lambda x: x**1, [0.0, -2.0], [0, -2], [1, 1]),
    "x ** 2": (lambda x: x**2, [0.0, -2.0, 3.0], [0, 4, 9], [0, -4, 6]),
    "x ** 3": (lambda x: x**3, [0.0, -2.0], [0, -8], [0, 12]),
    "x ** 0.5": (lambda x: x**0.5, [0.0, 4.0, -1.0], [0, 2, nan], [inf, 0.25, nan]),
    "x ** -1": (lambda x: x**-1, [0.0, -2.0], [inf, -0.5], [-inf, -0.25]),
    "x ** -2": (lambda x: x**-2, [-2.0], [0.25], [0.25]),
    "0 ** x": (lambda x: 0**x, [0.0, 2.0], [1, 0], [0, 0]),
    "2 ** x": (lambda x: 2.0**x, [3.0, -1.0], [8, 0.5], [8 * math.log(2), 0.5 * math.log(2)]),
    "base of tensors": (lambda x: x ** ag.tensor([0.0, 2.0, 0.0, 2.0], device=x.device), [0.0, 0.0, 2.0, -2.0], [1, 0, 1, 4], [0, 0, 0, -4]),
    "exponent of tensors": (lambda x: ag.tensor([0.0, 0.0, 2.0], device=x.device) ** x, [0.0, 2.0, 0.0], [1, 0, 1], [0, 0, math.log(2)]),
    # -- far out --
    "tanh": (lambda x: x.tanh(), [-1000.0, 0.0, 90.0, 1000.0], [-1, 0, 1, 1], [0, 1, 0, 0]),
    "tanh near 0": (lambda x: x.tanh() * 1e4, [1e-4, -1e-4], [1, -1], [1e4, 1e4]),
    "sigmoid": (lambda x: x.sigmoid(), [-1000.0, 0.0, 1000.0], [0, 0.5, 1], [0, 0.25, 0]),
    "sigmoid far below": (lambda x: x.sigmoid() * 1e8, [-20.0], [math.exp(-20) * 1e8], [math.exp(-20) * 1e8]),
    "softplus": (lambda x: x.softplus(), [-1000.0, 0.0, 1000.0], [0, math.log(2), 1000], [0, 0.5, 1]),
    "silu": (lambda x: x.silu(), [-1000.0, 0.0, 1000.0], [0, 0, 1000], [0, 0.5, 1]),
    "gelu in float16": (lambda x: F.gelu(x.half()).float(), [-60000.0, 300.0, 60000.0], [0, 300, 60000], [0, 1, 1]),
    "gelu by tanh in float16": (lambda x: F.gelu(x.half(), "tanh").float(), [-60000.0, -300.0, 300.0, 60000.0], [0, 0, 300, 60000], [0, 0, 1, 1]),
    "gelu of the largest": (lambda x: F.gelu(x) / 1e38, [3e38, -3e38], [3, 0], [1e-38, 0]),
    "binary_cross_entropy at 0 and 1": (lambda x: F.binary_cross_entropy(x, x.new_tensor([0, 1, 1, 0]), reduction="none"),
                                        [0.0, 1.0, 0.0, 1.0], [0, 0, 100, 100], [1, -1, -1e12, 1e12]),
    "binary_cross_entropy in float16": (lambda x: F.binary_cross_entropy(x.half(), x.new_tensor([1, 0]).half(), reduction="none").float(),
                                        [0.0, 1.0], [100, 100], [-65504, 65504]),
    "std of an outlier in float16": (lambda x: x.half().std().float(), [300.0] + [0.0] * 8, 100, None),
    "cosine_similarity in float16": (lambda x: F.cosine_similarity(x.half(), x.half()).float(), [[0.0, 0], [3e4, 4e4]], [0, 1], None),
    "erf": (lambda x: x.erf(), [-1000.0, 0.0, 1000.0], [-1, 0, 1], [0, 2 / math.sqrt(math.pi), 0]),
    "expm1 near 0": (lambda x: x.expm1() * 1e6, [1e-6], [1], [1e6]),
    "log1p near 0": (lambda x: x.log1p() * 1e6, [1e-6], [1], [1e6]),
    "exp": (lambda x: x.exp(), [-1000.0, 0.0], [0, 1], [0, 1]),
    "asin": (lambda x: x.asin(), [-1.0, 0.0, 1.0 - 2**-20, 1.0], [-math.pi / 2, 0, math.asin(1 - 2**-20), math.pi / 2],
             [inf, 1, 1 / math.sqrt(1 - (1 - 2**-20) ** 2), inf]),
    "acos": (lambda x: x.acos(), [-1.0, 0.0, 1.0], [math.pi, math.pi / 2, 0], [-inf, -1, -inf]),
    "acosh": (lambda x: x.acosh(), [1.0, 1e30, inf], [0, math.log(2e30), inf], [inf, 0, 0]),
    "hardswish": (lambda x: F.hardswish(x), [-inf, -3.0, 0.0, 3.0, inf], [0, 0, 0, 3, inf], [0, 0, 0.5, 1, 1]),
    "huber_loss": (lambda x: F.huber_loss(x, x.detach() * 0, "none"), [-1e20, -0.5, 0.0, 2.0], [1e20, 0.125, 0, 1.5], [-1, -0.5, 0, 1]),
    "huber_loss of inf": (lambda x: F.huber_loss(x, x.zeros_like(), "none"), [-inf, inf], [inf, inf], [-1, 1]),
    "smooth_l1_loss of inf": (lambda x: F.smooth_l1_loss(x, x.zeros_like(), "none"), [-inf, inf], [inf, inf], [-1, 1]),
    "logaddexp of -inf": (lambda x: ag.logaddexp(x, x), [-inf, 0.0], [-inf, math.log(2)], [0, 1]),
    "lerp counts from the nearer": (lambda x: x.lerp(ag.tensor([1.0, 3.0], device=x.device), 1.0), [1e8, 1.0], [1, 3], [0, 0]),
    "lerp by tensors": (lambda x: x.lerp(x.detach() + 1, ag.tensor([0.25, 0.75, 1.0], device=x.device)), [1.0, 2.0, 3.0],
                        [1.25, 2.75, 4], [0.75, 0.25, 0]),
    "log": (lambda x: x.log(), [0.0, 1.0, inf], [-inf, 0, inf], [inf, 1, 0]),
    "sqrt at 0": (lambda x: x.sqrt(), [0.0, 4.0], [0, 2], [inf, 0.25]),
    "i0 where exp is infinite": (lambda x: x.i0().isfinite().float() + x.i0() * 0, [90.0, -90.0], [1, 1], [0, 0]),
    "i1 where exp is infinite": (lambda x: ag.special.i1(x).sign() + ag.special.i1(x) * 0, [90.0, -90.0], [1, -1], [0, 0]),
    "norm of large numbers": (lambda x: x.norm() / 1e30, [3e30, 4e30], 5, [0.6e-30, 0.8e-30]),
    "norm of small numbers": (lambda x: x.norm() * 1e30, [3e-30, 4e-30], 5, [0.6e30, 0.8e30]),
    "logsumexp": (lambda x: x.logsumexp(0), [1000.0, 1000.0], 1000 + math.log(2), [0.5, 0.5]),
    "logsumexp below": (lambda x: x.logsumexp(0), [-1000.0, -1000.0], -1000 + math.log(2), [0.5, 0.5]),
    "logsumexp with -inf": (lambda x: x.logsumexp(0), [-inf, 1.0], 1, [0, 1]),
    "logsumexp of -inf": (lambda x: x.logsumexp(1), [[-inf, -inf], [0.0, -inf]], [-inf, 0], [[0, 0], [1, 0]]),
    "logsumexp of inf": (lambda x: x.logsumexp(0), [inf, 0.0], inf, [nan, 0]),
    "softmax": (lambda x: x.softmax(0) * ag.tensor([1.0, 0.0], device=x.device), [1000.0, -1000.0], [1, 0], [0, 0]),
    "softmax with -inf": (lambda x: x.softmax(0) * ag.tensor([1.0, 2.0, 3.0], device=x.device), [1.0, -inf, 2.0],
                          [0.26894142, 0, 2.19317574], [-0.39322387, 0, 0.39322387]),
    "log_softmax": (lambda x: x.log_softmax(0)[0], [-10000.0, 0.0, 0.0], -10000 - math.log(2), [1, -0.5, -0.5]),
    # -- constants and single values --
    "std of constants": (lambda x: x.std(), [2.0, 2.0, 2.0], 0, [0, 0, 0]),
    "std of rows, one constant": (lambda x: x.std(1), [[1.0, 1.0], [1.0, 3.0]], [0, math.sqrt(2)], [[0, 0], [-math.sqrt(0.5), math.sqrt(0.5)]]),
    "var of one value": (lambda x: x.var(), [2.0], nan, [nan]),
    "var of fewer than the correction": (lambda x: x.var(correction=3), [1.0, 2.0, 4.0], inf, None),
    "biased var of one value": (lambda x: x.var(unbiased=False), [2.0], 0, [0]),
    "var": (lambda x: x.var(), [1.0, 2.0, 4.0], 7 / 3, [-4 / 3, -1 / 3, 5 / 3]),
    "var of large numbers": (lambda x: x.var(), [10000.0, 10001.0, 10002.0], 1, [-1, 0, 1]),
    # -- NaN and infinities travel --
    "relu of nan": (lambda x: x.relu(), [nan, inf, -inf], [nan, inf, 0], [1, 1, 0]),
    "clamp of nan": (lambda x: x.clamp(-1, 1), [nan, inf, -inf], [nan, 1, -1], None),
    "max of nan": (lambda x: x.max(), [1.0, nan, 2.0], nan, None),
    "amin of nan": (lambda x: x.amin(1), [[1.0, nan], [2.0, 3.0]], [nan, 2], None),
    "max(dim) of nan": (lambda x: x.max(1).values, [[1.0, nan], [2.0, 3.0]], [nan, 3], [[0, 1], [0, 1]]),
    "maximum of nan": (lambda x: x.maximum(x.detach() * 0), [nan, 1.0], [nan, 1], None),
    "sum of nan": (lambda x: x.sum(), [nan, 1.0], nan, [1, 1]),
    "tanh of inf and nan": (lambda x: x.tanh(), [inf, -inf, nan], [1, -1, nan], [0, 0, nan]),
    "abs of nan": (lambda x: x.abs(), [nan, -inf], [nan, inf], None),
    "division by 0": (lambda x: x / 0, [1.0, -1.0, 0.0], [inf, -inf, nan], [inf, inf, inf]),
    "0 / x": (lambda x: 0 / x, [0.0, 2.0], [nan, 0], None),
    "where hides nan": (lambda x: ag.where(x > 0, x, x.detach() * nan), [1.0, 2.0], [1, 2], [1, 1]),
    "masked_fill hides inf": (lambda x: (1 / x).masked_fill(x == 0, 0), [0.0, 2.0], [0, 0.5], [0, -0.25]),
    "mean of large numbers": (lambda x: x.mean(), [1e38, 1e38], 1e38, [0.5, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_points(name, device):
    function, x, value, gradient = POINTS[name]
    y, g = run(function, x, device)
    assert_close(y, np.asarray(value, np.float32), 2e-6, "value")
    if gradient is not None:
        assert_close(g, np.asarray(gradient, np.float32), 2e-6, "gradient")


def test_double_where_protects_a_gradient(device):
    x = ag.tensor([-1.0, 4.0], device=device, requires_grad=True)
    inside = ag.where(x > 0, x, 1.0)
    ag.where(x > 0, inside.sqrt(), x).sum().backward()
    assert x.grad.tolist() == [1.0, 0.25]


def test_nan_and_infinity_are_told_apart(device):
    x = ag.tensor([nan, inf, -inf, 0.0], device=device)
    assert x.isnan().tolist() == [True, False, False, False]
    assert x.isinf().tolist() == [False, True, True, False]
    assert x.isfinite().tolist() == [False, False, False, True]
    assert (x == x).tolist() == [False, True, True, True] and (x != x).tolist() == [True, False, False, False]
    assert x.argmax().item() == 0 and x.argmin().item() == 0
    assert bool(x.isnan().any()) and not ag.allclose(x, x) and ag.allclose(x, x, equal_nan=True)


def test_half_precision_sums_in_single(device):
    x = ag.ones(4096, dtype=ag.float16, device=device, requires_grad=True)
    assert x.sum().item() == 4096 and (x * 30).mean().item() == 30
    assert (x @ x).item() == 4096
    assert ag.ones(2, 40000, dtype=ag.float16, device=device).mean(1).tolist() == [1.0, 1.0]
    zero = ag.zeros(4096, dtype=ag.int64, device=device)
    assert ag.zeros(1, dtype=ag.float16, device=device).index_add(0, zero, x.detach()).tolist() == [4096.0]
    table = ag.ones(1, dtype=ag.float16, device=device, requires_grad=True)
    table[zero].sum().backward()
    assert table.grad.tolist() == [4096.0]
    assert ag.tensor([60000.0], device=device).half().item() == 60000 and ag.tensor([7e4], device=device).half().item() == inf


def test_long_sums_are_accurate(device):
    x = ag.full((100_000,), 0.1, device=device)
    assert abs(x.sum().item() - 10_000) < 0.01


def test_bytes_beside_numbers_that_they_do_not_hold(device):
    x = ag.tensor([0, 7, 250], dtype=ag.uint8, device=device)
    assert (x <= -3).tolist() == (x > 256).tolist() == (-1 == x).tolist() == [False] * 3
    assert (x > -3).tolist() == (300 > x).tolist() == (x != -3).tolist() == [True] * 3
    assert ag.nn.functional.hardswish(x).tolist() == [0, 7, 250]


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16])
def test_short_floats_beside_numbers_that_they_do_not_hold(dtype, device):
    x = ag.tensor([10000.0, 0.3], dtype=dtype, device=device, requires_grad=True)
    assert (ag.tensor([0.25], dtype=dtype, device=device) * 65536).item() == 16384
    y = x / 1e6
    assert y.dtype is dtype
    assert_close(y.float(), [1e-2, 3e-7], 5e-3)
    assert_close((x * 1e-7).float(), [1e-3, 3e-8], 5e-3)
    assert_close(ag.grad((x * 1e4 / 1e6).sum(), x)[0].float(), [1e-2, 1e-2], 5e-3)
    scale = ag.tensor(1e6, device=device, requires_grad=True)  # a 0-d tensor is a number too, and keeps its dtype's gradient
    z = x / scale
    z.sum().backward()
    assert z.dtype is dtype and scale.grad.dtype is ag.float32
    assert_close(z.float(), [1e-2, 3e-7], 5e-3)
    assert_close(scale.grad, -1.00003e-8, 5e-3)
    assert_close((x * ag.tensor(100_000, device=device) / 1e6).float()[1:], [0.03], 5e-3)
    assert (x == 0.3).tolist() == [False, True] and (0.3 >= x).tolist() == [False, True] and (x > 0.3).tolist() == [True, False]


def test_integer_division_and_remainder_follow_python(device):
    a, b = ag.tensor([7, -7, 7, -7], device=device), ag.tensor([2, 2, -2, -2], device=device)
    assert (a // b).tolist() == [3, -4, -4, 3] and (a % b).tolist() == [1, 1, -1, -1]
    assert ag.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    f, g = a.float() + 0.5, b.float()
    assert (f // g).tolist() == [3.0, -4.0, -4.0, 3.0] and (f % g).tolist() == [1.5, 1.5, -0.5, -0.5]
    assert (2 ** ag.tensor([0, 3], device=device)).tolist() == [1, 8] and (ag.tensor([-2, 3], device=device) ** 3).tolist() == [-8, 27]
    assert (ag.tensor([1, 2, -1, -1, 0, 3], device=device) ** ag.tensor([-1, -1, -1, -2, -1, 2], device=device)).tolist() == [1, 0, -1, 1, 0, 9]


HIDDEN = {
    "sqrt": (lambda x: x.sqrt(), [1.0, 1.0, 0.25]),
    "log": (lambda x: x.log(), [1.0, 1.0, 0.25]),
    "log1p": (lambda x: (x - 1).log1p(), [1.0, 1.0, 0.25]),
    "reciprocal": (lambda x: 1 / x, [1.0, 1.0, -0.0625]),
    "ratio": (lambda x: (x * 0 + 1) / x.relu(), [1.0, 1.0, -0.0625]),
    "power": (lambda x: x**0.5, [1.0, 1.0, 0.25]),
    "asin": (lambda x: (x / 8 + (x <= 0) * 9).asin(), [1.0, 1.0, 0.125 / 0.75**0.5]),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_where_does_not_take_sends_nothing_back(name, device):
    function, want = HIDDEN[name]
    x = ag.tensor([-4.0, 0.0, 4.0], device=device, requires_grad=True)
    ag.where(x > 0, function(x), x).sum().backward()
    np.testing.assert_allclose(array(x.grad), want, rtol=1e-5)


def test_the_first_few_are_the_front_of_the_whole_order(device):
    """topk and kthvalue need not sort the rest: ties and NaN still come in argsort's order."""
    rows = [[1, 3, 3, 2, 3, 1], [nan, 1, nan, 2, nan, 0], [2, 2, 2, 2, 2, 2], [0.0, -0.0, inf, -inf, inf, 0]]
    for x in (ag.tensor(rows, device=device), ag.tensor([[3, 1, 3, 0, 3, 1]], device=device)):
        for k in range(1, 7):
            for largest in (True, False):
                order = x.argsort(1, descending=largest)
                assert array(x.topk(k, largest=largest).indices).tolist() == array(order).T[:k].T.tolist()
            assert array(x.kthvalue(k).indices).tolist() == array(order)[:, k - 1].tolist()


@pytest.mark.parametrize("count", [3, 12])
def test_searching_many_rows_is_searching_each(count, device):
    rows = [[-1.0, 0, 0, 2, inf], [0, 1, 2, nan, nan], [5, 5, 5, 5, 5]]
    asked = np.resize([0.0, nan, 5, -inf, 2, inf, 1], (3, count)).astype(np.float32)
    for right in (False, True):
        found = ag.searchsorted(ag.tensor(rows, device=device), ag.tensor(asked, device=device), right=right)
        before = [[np.searchsorted(np.float32(r), v, "right" if right else "left") for v in w] for r, w in zip(rows, asked, strict=True)]
        assert array(found).tolist() == before


def test_ctc_has_one_gradient_with_and_without_a_graph_of_it(device):
    """The second sample ends early, the third is too long for its steps, and the last has nothing to say."""
    scores = np.sin(np.arange(5 * 4 * 3, dtype=np.float32) * 1.7).reshape(5, 4, 3)
    x = ag.tensor(scores, device=device, requires_grad=True)
    targets, lengths, sizes = ag.tensor([[1, 2], [1, 1], [2, 2], [1, 2]], device=device), [5, 4, 2, 3], [2, 2, 2, 0]
    losses = ag.nn.functional.ctc_loss(x.log_softmax(2), targets, lengths, sizes, reduction="none", zero_infinity=True)
    assert array(losses)[2] == 0 and (array(losses)[[0, 1, 3]] > 0).all()
    (plain,) = ag.grad(losses.sum(), x, retain_graph=True)
    (graphed,) = ag.grad(losses.sum(), x, create_graph=True)
    assert_close(plain, graphed)
    assert np.abs(array(plain)[:, [0, 1, 3]]).max() > 0.1 and not array(plain)[3:, 3].any()


@pytest.mark.parametrize("name, want", [("huber_loss", 1), ("smooth_l1_loss", 1), ("pairwise_distance", 0.2)])
def test_curvature_where_a_difference_is_0(name, want, device):
    """A formula of |d| has the right value and slope at d = 0, and no curvature."""
    functions = {
        "huber_loss": lambda x: F.huber_loss(x, x.zeros_like(), "sum"),
        "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x.zeros_like(), "sum"),
        "pairwise_distance": lambda x: F.pairwise_distance(ag.cat([x, x.zeros_like() + 3, x.zeros_like() + 4]), x.zeros_like(), eps=0),
    }
    x = ag.tensor([0.0], device=device, requires_grad=True)
    (slope,) = ag.grad(functions[name](x), x, create_graph=True)
    assert slope.item() == 0 and ag.grad(slope, x)[0].item() == pytest.approx(want)
