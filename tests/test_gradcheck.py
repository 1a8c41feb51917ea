"""The checker itself: what is right passes, planted faults are found and named, unfit inputs are refused."""

import numpy as np
import pytest
from helpers import assert_raises

import autograd as ag
from autograd.autograd import GradcheckError
from autograd.op import Op, apply


class Cube(Op):
    """y = x^3
    dx = 3 dy x^2
    """

    name, numpy, saves = "cube", staticmethod(lambda x: x * x * x), ((0,),)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_inputs()
        return dy * x * x * 3

    fused_backward = backward


class WrongFactor(Cube):
    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_inputs()
        return dy * x * x * 2

    fused_backward = backward


class WrongSecondOrder(Cube):
    """The gradient's numbers are right; the gradient's own gradient ends at the detached x."""

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_inputs()
        return dy * x.detach() * x.detach() * 3


class WrongShape(Cube):
    @staticmethod
    def backward(ctx, dy):
        return ag.cat([dy, dy])

    fused_backward = backward


def double(*shape, seed=0):
    return ag.tensor(np.random.default_rng(seed).uniform(0.5, 2, shape), requires_grad=True)


def through(op):
    return lambda x: apply(op, x)


BOTH = pytest.mark.parametrize("fast", [False, True])


@BOTH
@pytest.mark.parametrize("function, shapes", [
    (lambda x: x.sin(), [(2, 3)]),
    (lambda x: x, [(2, 3)]),
    (through(Cube), [(3,)]),
    (lambda a, b: a @ b, [(2, 3), (3, 2)]),
    (lambda a, b: (a * b, a - b), [(2, 1), (3,)]),
    (lambda a, b: [a.exp().sum(), (b > 1).sum(), b.argmax()], [(2,), (3,)]),
    (lambda x: x.sum(), [()]),
    (lambda x: x * 2, [(0, 3)]),
    (lambda x, y: x * 3, [(2,), (2,)]),
])  # fmt: skip
def test_right_gradients_pass(function, shapes, fast):
    tensors = [double(*s, seed=i) for i, s in enumerate(shapes)]
    assert ag.gradcheck(function, tensors, fast_mode=fast) is True
    assert ag.gradgradcheck(function, tensors, fast_mode=fast) is True


@BOTH
@pytest.mark.parametrize("function, text", [
    (through(WrongFactor), "output 0 at (0, 0) with respect to input 0 at (0, 0) is wrong: analytic 3"),
    (lambda x: x.detach() * x, "is wrong"),
    (lambda x: (x * 2).detach(), "The output does not require grad although it depends on the input"),
    (lambda x: ag.cat([x[:1] ** 2, x[1:].detach() ** 2]), "output 0 at (1, 1) with respect to input 0 at (1, 1)"),
    (lambda x: (x.exp(), through(WrongFactor)(x)), "output 1 at"),
    (lambda x: x + ag.tensor(np.nan, dtype=ag.float64), "is wrong: analytic 1, numerical nan"),
])  # fmt: skip
def test_planted_faults_are_found(function, text, fast):
    x = ag.tensor([[1.25, 1.0], [0.5, 1.0]], dtype=ag.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        ag.gradcheck(function, x, fast_mode=fast)
    assert text in str(caught.value)
    assert ag.gradcheck(function, x, fast_mode=fast, raise_exception=False) is False


@BOTH
def test_planted_fault_of_second_order_is_found(fast):
    x = double(2, 3)
    assert ag.gradcheck(through(WrongSecondOrder), x, fast_mode=fast)
    with pytest.raises(GradcheckError, match=r"\[gradgradcheck\] the gradient of output 0 .* with respect to input 0"):
        ag.gradgradcheck(through(WrongSecondOrder), x, fast_mode=fast)


def test_fault_in_the_second_of_two_inputs_is_named():
    a, b = double(2, seed=1), double(3, seed=2)
    with pytest.raises(GradcheckError, match=r"with respect to input 1 at \(\d,\)"):
        ag.gradcheck(lambda a, b: (a.sum() * b.detach() + b), (a, b))


def test_formula_of_a_wrong_shape_is_an_error():
    assert_raises(RuntimeError, "[cube] its gradient formula gave shape (6,) for an input of shape (3,)",
                  lambda: ag.gradcheck(through(WrongShape), double(3)))  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
def test_chance_is_detected(fast):
    noise = np.random.default_rng(0)
    x = double(3)
    with pytest.raises(GradcheckError, match="two runs of the function differ in output 0"):
        ag.gradcheck(lambda x: x * float(noise.random()), x, fast_mode=fast)
    assert ag.gradcheck(lambda x: x + 1e-9 * float(noise.random()), x, atol=1e-2, nondet_tol=1e-6, fast_mode=fast)


def test_chance_in_the_gradient_alone_is_detected():
    noise = np.random.default_rng(0)

    class Shaky(Cube):
        @staticmethod
        def backward(ctx, dy):
            return dy * float(noise.random())

        fused_backward = backward

    with pytest.raises(GradcheckError, match="two runs of the gradient of output 0 with respect to input 0 differ"):
        ag.gradcheck(through(Shaky), double(3))


@BOTH
def test_inputs_are_left_as_they_were(fast):
    x, still = double(2, 3), ag.tensor([0.1, 0.2, 0.3], dtype=ag.float64)
    x.array[0, 0] = -0.0
    before, version = x.array.tobytes(), x._version
    seen = []

    def function(x, y):
        seen.append(y.array.tobytes())
        return x * y

    state = ag.get_rng_state()
    ag.gradcheck(function, (x, still), fast_mode=fast)
    ag.gradgradcheck(function, (x, still), fast_mode=fast)
    with pytest.raises(GradcheckError):
        ag.gradcheck(lambda x, y: x.detach() * y, (x, still), fast_mode=fast)
    with pytest.raises(ZeroDivisionError):
        ag.gradcheck(lambda x, y: 1 / 0 if x.array[0, 0] != 0 else x, (x, still), fast_mode=fast)
    assert x.array.tobytes() == before and x._version == version and x.grad is None
    assert set(seen) == {still.array.tobytes()}
    assert ag.get_rng_state() == state


def test_inputs_that_are_views_and_inner_tensors():
    base = double(4, 6)
    for view in (base.t(), base[1:3, ::2], base.permute(1, 0)[2], base.detach()[::-1, 1:].requires_grad_(), base * 2):
        assert ag.gradcheck(lambda x: (x * x).sum(0), view)
    assert ag.gradcheck(lambda a, b: a * b, (base[:, 0], base[:, 1]))
    assert ag.gradcheck(lambda a, b: a * b, (base, base))


def test_works_in_no_grad_and_through_closures():
    w = double(3)
    with ag.no_grad():
        assert ag.gradcheck(lambda *_: (w * w).sum(), (w,))
        assert not ag.is_grad_enabled()


def test_gradgradcheck_takes_seeds_and_names_them():
    x, seed = double(3), double(3, seed=5)
    assert ag.gradgradcheck(lambda x: x.exp(), x, seed)

    class ForgetsSeed(Cube):
        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_inputs()
            return dy.detach() * x * x * 3

    with pytest.raises(GradcheckError, match="with respect to grad_output 0"):
        ag.gradgradcheck(through(ForgetsSeed), x, seed)


single = ag.ones(2, requires_grad=True)
wide = double(3)


@pytest.mark.parametrize("kind, text, function", [
    (TypeError, "[gradcheck] input 0 is float32: its rounding drowns differences", lambda: ag.gradcheck(lambda x: x, single)),
    (TypeError, "[gradgradcheck] input 0 is float32", lambda: ag.gradgradcheck(lambda x: x, single)),
    (TypeError, "[gradcheck] output 0 is float32", lambda: ag.gradcheck(lambda x: x.float(), wide)),
    (ValueError, "[gradcheck] at least one input must require grad", lambda: ag.gradcheck(lambda x: x, wide.detach())),
    (ValueError, "[gradcheck] elements of input 0 share memory (it was expanded); pass its clone()",
     lambda: ag.gradcheck(lambda x: x, double(3, 1).expand(3, 4))),
    (ValueError, "[gradcheck] input 0 and input 1 share memory", lambda: ag.gradcheck(lambda a, b: a * b, (wide, wide[:2]))),
    (TypeError, "unexpected keyword argument 'check_forward_ad'", lambda: ag.gradcheck(lambda x: x, wide, check_forward_ad=True)),
])  # fmt: skip
def test_unfit_inputs_are_refused(kind, text, function):
    assert_raises(kind, text, function)


def test_read_only_memory_is_refused():
    a = np.ones(3)
    a.flags.writeable = False
    x = ag.from_numpy(a).requires_grad_()
    assert_raises(ValueError, "[gradcheck] the memory of input 0 is read-only", lambda: ag.gradcheck(lambda x: x, x))
