"""ag.Function: operations of the user's own, first and second derivatives; anomaly mode."""

import gc
import weakref

import numpy as np
import pytest
from helpers import assert_close, assert_raises

import autograd as ag


class Cube(ag.Function):
    """x ** n, and 2 x: the gradient in Tensor operations, from an input and an output."""

    @staticmethod
    def forward(ctx, x, n):
        y = x**n
        ctx.save_for_backward(x, None, y)
        ctx.n = n
        return y, x * 2

    @staticmethod
    def backward(ctx, dy, dz):
        x, nothing, y = ctx.saved_tensors
        assert nothing is None and ctx.needs_input_grad == (True, False)
        return dy * ctx.n * y / x + dz * 2, None


class Sine(ag.Function):
    """The gradient in NumPy: not differentiable again."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ag.tensor(np.sin(x.cpu().numpy()), device=x.device)

    @staticmethod
    @ag.autograd.once_differentiable
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * ag.tensor(np.cos(x.detach().cpu().numpy()), device=x.device)


class Product(ag.Function):
    """Written with setup_context; a gradient only where it is needed."""

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensors
        return tuple(dy * other if need else None for other, need in zip((b, a), ctx.needs_input_grad))


class Split(ag.Function):
    """Three outputs: one without a gradient, one of integers, one that is the input itself."""

    @staticmethod
    def forward(ctx, x):
        hard = (x > 0).to(x.dtype)
        ctx.mark_non_differentiable(hard)
        return x, hard, (x > 0).long(), "text"

    @staticmethod
    def backward(ctx, dx, *others):
        assert not array_of(others[0]).any()
        return dx


def array_of(t):
    return t.detach().cpu().numpy()


def wrong(name, result):
    """A Function of two tensors whose backward returns something wrong."""
    methods = {"forward": staticmethod(lambda ctx, a, b: a * b), "backward": staticmethod(lambda ctx, dy: result)}
    return type(name, (ag.Function,), methods)


def leaf(device, values=(1.0, 2.0, 3.0), dtype=None):
    return ag.tensor(list(values), device=device, dtype=dtype, requires_grad=True)


def test_forward_and_backward(device):
    x = leaf(device)
    y, z = Cube.apply(x, 3)
    assert_close(y, [1, 8, 27])
    assert y.grad_fn.name == "CubeBackward" and y.requires_grad and z.requires_grad
    (y * 2 + z).sum().backward()
    assert_close(x.grad, [8, 26, 56])


def test_an_unused_output_counts_as_zeros(device):
    x = leaf(device)
    Cube.apply(x, 2)[1].sum().backward()
    assert_close(x.grad, [2, 2, 2])


def test_first_and_second_derivatives():
    x, w = leaf("cpu", dtype="float64"), leaf("cpu", (0.5, -1.0, 2.0), "float64")
    for call, inputs in ((lambda x: Cube.apply(x, 3), (x,)), (Product.apply, (x, w)), (lambda x: Product.apply(x, x), (x,))):
        assert ag.gradcheck(call, inputs) and ag.gradgradcheck(call, inputs)
    assert ag.gradcheck(Sine.apply, (x,))


def test_second_derivative_through_a_saved_output(device):
    x = leaf(device)
    (g,) = ag.grad(Cube.apply(x, 3)[0].sum(), x, create_graph=True)
    (h,) = ag.grad(g.sum(), x)
    assert_close(h, [6, 12, 18], 1e-5)


def test_once_differentiable(device):
    x = leaf(device)
    (g,) = ag.grad(Sine.apply(x).sum(), x, create_graph=True)
    assert_close(g, np.cos([1.0, 2.0, 3.0]), 1e-6)
    assert_raises(RuntimeError, "[Sine] its backward is marked once_differentiable", lambda: ag.grad(g.sum(), x))


def test_needs_input_grad(device):
    a, b = leaf(device), ag.ones(3, device=device)
    Product.apply(a, b * 2).sum().backward()
    assert_close(a.grad, [2, 2, 2])
    with ag.no_grad():
        assert Product.apply(a, b).grad_fn is None


def test_outputs_without_a_gradient(device):
    x = leaf(device, (-1.0, 2.0))
    same, hard, whole, text = Split.apply(x)
    assert same is not x and same.requires_grad and text == "text"
    assert not hard.requires_grad and not whole.requires_grad
    (same * hard).sum().backward()
    assert_close(x.grad, [0, 1])


def test_a_gradient_of_a_broadcast_shape_is_summed():
    made = wrong("Broad", None)
    made.backward = staticmethod(lambda ctx, dy: (dy.expand(4, 3), dy))
    a, b = leaf("cpu"), leaf("cpu")
    made.apply(a, b).sum().backward()
    assert_close(a.grad, [4, 4, 4])


def test_errors():
    a, b = leaf("cpu"), ag.ones(3)
    for result, kind, text in (
        ((a, a, a), RuntimeError, "[Wrong] backward must return one gradient for each input of forward (2); got 3"),
        ((1.0, None), TypeError, "[Wrong] gradients are tensors or None; got float for input 0"),
        ((ag.ones(2), None), RuntimeError, "[Wrong] its gradient formula gave shape (2,) for an input of shape (3,)"),
    ):
        assert_raises(kind, text, lambda result=result: wrong("Wrong", result).apply(a, b).sum().backward())
    assert wrong("Fine", (a.detach(), None, None)).apply(a, b).sum().backward() is None
    assert_raises(TypeError, "[Bad] forward must be a static method", lambda: type("Bad", (ag.Function,), {"forward": lambda ctx: 0}))
    empty = type("Empty", (ag.Function,), {"forward": staticmethod(lambda ctx, x: None)})
    assert_raises(TypeError, "[Empty] forward must return at least one tensor", lambda: empty.apply(a))
    saver = type("Saver", (ag.Function,), {"forward": staticmethod(lambda ctx, x: ctx.save_for_backward(3))})
    assert_raises(TypeError, "[save_for_backward] expects tensors or None; got int", lambda: saver.apply(a))
    half = type("Half", (ag.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    assert_raises(NotImplementedError, "[Function] a subclass needs a static backward", lambda: half.apply(a).sum().backward())


def test_freed_and_overwritten(device):
    x = leaf(device)
    y = Cube.apply(x, 3)[0].sum()
    y.backward()
    assert_raises(RuntimeError, "[Cube] backward a second time", y.backward)
    for changed in (0, 1):
        x = leaf(device) * 1
        y = Cube.apply(x, 3)[0]
        with ag.no_grad():
            (x, y)[changed].mul_(2)
        assert_raises(RuntimeError, "[Cube] a tensor of shape (3,) that its gradient needs was changed", lambda y=y: y.sum().backward())


def test_memory_falls_without_the_collector():
    gc.disable()
    try:
        x = leaf("cpu")
        y = Cube.apply(x, 3)[0]
        seen = weakref.ref(y)
        del y
        assert seen() is None
    finally:
        gc.enable()


# -- anomaly mode -------------------------------------------------------------------------------------------


def root(x):
    return x.sqrt().sum()  # the line that the message must name


def test_anomaly_mode_names_the_op_and_the_line(device):
    x = leaf(device, (-1.0, 4.0))
    with ag.detect_anomaly():
        assert ag.is_anomaly_enabled()
        y = root(x) * 2
        with pytest.raises(RuntimeError) as caught:
            y.backward()
    assert not ag.is_anomaly_enabled() and x.grad is None
    for text in ("[sqrt] the gradient of its input 0", "in root: return x.sqrt().sum()  # the line that", "test_anomaly_mode_names"):
        assert text in str(caught.value)


def test_anomaly_mode_switches():
    x = leaf("cpu", (-1.0,))
    y = root(x)
    assert y.grad_fn.seq.__class__ is int
    ag.set_detect_anomaly(True)
    try:
        assert_raises(RuntimeError, "Run the forward pass in anomaly mode too", y.backward)
        with ag.set_detect_anomaly(True, check_nan=False):
            root(x).backward()
        assert ag.is_anomaly_enabled()
    finally:
        ag.set_detect_anomaly(False)
    root(x).backward()
    assert np.isnan(x.grad.numpy()).all()


def test_anomaly_mode_leaves_good_gradients_alone(device):
    x = leaf(device)
    with ag.detect_anomaly():
        (Cube.apply(x, 3)[0] + x.log()).sum().backward()
    assert_close(x.grad, [4, 12.5, 27 + 1 / 3], 1e-5)
