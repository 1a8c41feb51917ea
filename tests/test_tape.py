"""The tape: what backward() and grad() do to .grad and to the graph; hooks and modes."""

import threading

import numpy as np
import pytest
from helpers import assert_close, assert_raises

import autograd as ag


def leaf(*values, device="cpu"):
    return ag.tensor(list(values), device=device, requires_grad=True)


# -- accumulation -------------------------------------------------------------------------------------------


def test_gradients_add_up_over_calls_and_over_uses(device):
    x = leaf(3.0, device=device)
    y = x * x
    (y * x + y).sum().backward()  # 3x^2 + 2x
    assert x.grad.tolist() == [33.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [35.0]
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_grad_keeps_its_identity_when_it_grows():
    x = leaf(1.0, 2.0)
    x.sum().backward()
    held = x.grad
    x.sum().backward()
    assert x.grad is held and held.tolist() == [2.0, 2.0]


def test_equal_leaves_are_told_apart():
    a, b = leaf(1.0, 1.0), leaf(1.0, 1.0)
    (a * 2 + b * 3).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([2.0, 2.0], [3.0, 3.0])


ALIASING = {
    "both operands": lambda a, b, g: (a + b).backward(g),
    "views of the seed": lambda a, b, g: (a.reshape(2, 1).reshape(2) + b.reshape(1, 2)[0]).backward(g),
    "cat": lambda a, b, g: ag.cat([a, b]).backward(ag.cat([g, g])),
    "expanded": lambda a, b, g: (a.sum() + b.sum()).backward(),
    "leaf itself": lambda a, b, g: (a.backward(g), b.backward(g)),
    "identity chain": lambda a, b, g: (a.clone().to(ag.float32) + b.contiguous()).backward(g),
}


@pytest.mark.parametrize("way", ALIASING)
def test_gradients_share_memory_with_nothing(way, device):
    a, b, g = leaf(1.0, 1.0, device=device), leaf(1.0, 1.0, device=device), ag.ones(2, device=device)
    ALIASING[way](a, b, g)
    a.grad.mul_(7)
    assert b.grad.tolist() == g.tolist() == [1.0, 1.0]
    b.grad[0] = 5
    assert a.grad.tolist() == [7.0, 7.0]
    assert g.tolist() == [1.0, 1.0]


def test_grad_does_not_follow_a_later_change_of_what_it_came_from():
    x, w = leaf(1.0, 2.0), ag.tensor([3.0, 4.0])
    (x * w).sum().backward()
    first = x.grad.tolist()
    w.zero_()
    assert x.grad.tolist() == first == [3.0, 4.0]


# -- the graph's life ---------------------------------------------------------------------------------------


def test_second_backward_needs_retain_graph(device):
    x = leaf(3.0, device=device)
    y = (x * x).exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    before = x.grad.tolist()
    assert_raises(RuntimeError, "backward a second time through a graph whose saved values were freed", y.backward)
    assert x.grad.tolist() == before


@pytest.mark.parametrize("function", [lambda x: x + 1, lambda x: x.mean(), lambda x: (x * 2) / 2, lambda x: x.cumsum(0), lambda x: ag.sub(x, 0, alpha=3)])
def test_graph_that_saves_no_tensor_can_be_walked_again(function, device):
    x = leaf(1.0).detach().to(device).requires_grad_()
    y = function(x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_part_of_a_graph_survives_the_others_backward():
    x = leaf(2.0)
    h = x.exp()
    (g,) = ag.grad((h * h).sum(), h)
    assert_close(g, 2 * h)
    h.sum().backward()  # grad() stopped at h: what h needs is still there
    assert_close(x.grad, h)


def test_create_graph_gives_gradients_of_any_order():
    x = leaf(0.5)
    y, value = x.sin(), 0.5
    wanted = [np.cos(value), -np.sin(value), -np.cos(value), np.sin(value), np.cos(value)]
    for w in wanted:
        (y,) = ag.grad(y.sum(), x, create_graph=True)
        assert_close(y, np.array([w]), 1e-6)


def test_backward_with_create_graph_makes_a_differentiable_grad():
    x = leaf(3.0)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad and x.grad.tolist() == [27.0]
    (second,) = ag.grad(x.grad.sum(), x)
    assert second.tolist() == [18.0]


def test_gradient_penalty():
    w, x = leaf(3.0), leaf(2.0)
    (g,) = ag.grad((w * x * x).sum(), x, create_graph=True)  # 2wx
    (g * g).sum().backward()  # 4 w^2 x^2
    assert (w.grad.tolist(), x.grad.tolist()) == ([96.0], [144.0])


# -- grad() and backward(): arguments -----------------------------------------------------------------------


def test_grad_leaves_every_grad_alone():
    x, w = leaf(2.0), leaf(3.0)
    h = x * w
    gx, gh, again = ag.grad((h * h).sum(), [x, h, x])
    assert (gx.tolist(), gh.tolist(), again.tolist()) == ([36.0], [12.0], [36.0])
    assert x.grad is None and w.grad is None and not gx.requires_grad


def test_grad_of_itself_and_of_several_outputs():
    x = leaf(2.0)
    assert ag.grad(x, x)[0].tolist() == [1.0]
    assert ag.grad([x * 2, x * x, x], x, [leaf(1.0), leaf(10.0), leaf(100.0)])[0].tolist() == [142.0]
    y = x * 3
    assert ag.grad([y, y], x, [leaf(1.0), leaf(2.0)])[0].tolist() == [9.0]


def test_unused_inputs():
    x, other = leaf(1.0), leaf(1.0)
    assert ag.grad(x.sum(), [x, other], allow_unused=True)[1] is None
    assert_raises(RuntimeError, "[grad] the outputs do not depend on input 1; allow_unused=True", lambda: ag.grad(x.sum(), [x, other]))
    assert_raises(RuntimeError, "[grad] input 0 does not require grad", lambda: ag.grad(x.sum(), ag.ones(1)))


def test_backward_into_chosen_inputs_only():
    x, w = leaf(2.0), leaf(3.0)
    h = x * w
    (h * h).sum().backward(inputs=[w, h])
    assert x.grad is None and w.grad.tolist() == [24.0] and h.grad.tolist() == [12.0]


@pytest.mark.parametrize("text, function", [
    ("[backward] a gradient is created by itself only for a single element; got shape (2,)", lambda: leaf(1.0, 2.0).exp().backward()),
    ("[backward] the gradient must have its tensor's shape; got (3,) for (2,)", lambda: leaf(1.0, 2.0).exp().backward(ag.ones(3))),
    ("[backward] the tensor was not recorded", lambda: ag.ones(1).backward()),
    ("[requires_grad] only floating point tensors have gradients", lambda: ag.arange(3).requires_grad_()),
    ("[requires_grad] only floating point tensors have gradients", lambda: ag.tensor([1, 2], requires_grad=True)),
    ("[requires_grad] only a leaf's flag can be changed", lambda: leaf(1.0).exp().requires_grad_(False)),
    ("[retain_grad] the tensor does not require grad", lambda: ag.ones(1).retain_grad()),
    ("[register_hook] the tensor does not require grad", lambda: ag.ones(1).register_hook(print)),
    ("[register_hook] a hook returns None or the gradient's shape (2,)", lambda: hooked(lambda g: g.sum())),
    ("[register_hook] a hook returns None or the gradient's shape (2,)", lambda: hooked(lambda g: g.double())),
    ("[register_hook] a hook returns None or the gradient's shape (2,)", lambda: hooked(lambda g: 2.0)),
    ("[backward] inputs holds no tensor", lambda: leaf(1.0).sum().backward(inputs=[])),
])  # fmt: skip
def test_misuse_is_named(text, function):
    assert_raises(RuntimeError, text, function)


def hooked(hook):
    x = leaf(1.0, 2.0)
    x.register_hook(hook)
    x.sum().backward()


def test_what_cannot_be_a_gradient_is_not_assigned_as_one():
    x = leaf(1.0, 2.0)
    for g in (ag.ones(1), ag.ones(2, 1), ag.ones(2, dtype=ag.float16), ag.tensor([1, 2])):
        assert_raises(ValueError, "[grad] a gradient has its tensor's shape, dtype and device", lambda g=g: setattr(x, "grad", g))
    assert_raises(TypeError, "[grad] expected a Tensor or None; got list", lambda: setattr(x, "grad", [1.0, 2.0]))
    assert x.grad is None
    x.grad = given = ag.ones(2)
    assert x.grad is given


def test_a_failing_backward_adds_nothing():
    x, w = leaf(2.0), leaf(3.0)
    y = (x * w).exp()
    z = (w * 2).sum() + y.sum()
    with ag.no_grad():
        y.mul_(2)
    assert_raises(RuntimeError, "[exp] a tensor of shape (1,) that its gradient needs was changed in place: it is at version 1, expected 0", z.backward)
    assert x.grad is None and w.grad is None


def test_integer_results_are_off_the_tape():
    x = leaf(1.0, 3.0)
    for y in (x.argmax(), x > 2, x.long(), x.isnan(), x.sign().detach()):
        assert not y.requires_grad and y.grad_fn is None
    values, indices = x.max(0)
    assert values.requires_grad and not indices.requires_grad


# -- hooks --------------------------------------------------------------------------------------------------


def test_hooks_see_the_whole_gradient_once_and_may_replace_it():
    x = leaf(1.0)
    h = x * 2
    seen = []
    h.register_hook(lambda g: seen.append(g.tolist()))
    handle = h.register_hook(lambda g: g * 10)
    (h + h * 3).sum().backward(retain_graph=True)
    assert seen == [[4.0]] and x.grad.tolist() == [80.0]
    handle.remove()
    handle.remove()
    x.grad = None
    (h + h * 3).sum().backward()
    assert x.grad.tolist() == [8.0]


def test_hooks_on_leaves():
    x = leaf(1.0)
    seen = []
    with x.register_hook(lambda g: seen.append(g.tolist())):
        x.register_hook(lambda g: g + 1)
        (x * 2 + x * 3).sum().backward()
        assert seen == [[5.0]] and x.grad.tolist() == [6.0]
        assert ag.grad((x * 2).sum(), x)[0].tolist() == [3.0]
    (x * 2).sum().backward()
    assert len(seen) == 2 and x.grad.tolist() == [9.0]


def test_retain_grad_sees_what_hooks_made_of_the_gradient():
    x = leaf(1.0)
    h = x * 2
    h.retain_grad()
    h.retain_grad()  # twice is once
    h.register_hook(lambda g: g * 10)
    (h * 3).sum().backward(retain_graph=True)
    assert h.grad.tolist() == [30.0] and x.grad.tolist() == [60.0]
    (h * 3).sum().backward()
    assert h.grad.tolist() == [60.0]
    h.grad.zero_()
    assert x.grad.tolist() == [120.0]


def test_an_error_in_a_hook_stops_the_walk_and_leaves_the_mode():
    x = leaf(1.0)

    def fails(g):
        raise KeyError("hook")

    x.register_hook(fails)
    with pytest.raises(KeyError):
        (x * 2).sum().backward()
    assert x.grad is None and ag.is_grad_enabled()


# -- modes --------------------------------------------------------------------------------------------------


def recording():
    return (leaf(1.0) * 1).requires_grad


def test_modes_nest_and_end_on_every_way_out():
    once = ag.no_grad()
    with once:
        assert not recording()
        with once, ag.enable_grad():
            assert recording()
        assert not recording()
        with pytest.raises(KeyError), ag.enable_grad():
            raise KeyError
        assert not recording()
    assert recording()
    with ag.set_grad_enabled(False):
        assert not recording() and not ag.is_grad_enabled()
    assert recording()
    ag.set_grad_enabled(False)
    assert not recording()
    ag.set_grad_enabled(True)
    assert recording()


@pytest.mark.parametrize("decorate, on", [
    (lambda f: ag.no_grad(f), False), (lambda f: ag.no_grad()(f), False), (lambda f: ag.enable_grad()(f), True),
    (lambda f: ag.set_grad_enabled(False)(f), False),
])  # fmt: skip
def test_modes_as_decorators(decorate, on):
    @decorate
    def function(depth):
        """Documented."""
        return function(depth - 1) if depth else recording()

    assert recording(), "decorating changes nothing"
    assert function(2) is on and function.__doc__ == "Documented."
    assert recording()


def test_a_mode_holds_in_a_generators_body_and_nowhere_else():
    @ag.no_grad()
    def steps():
        given = yield recording()
        try:
            yield given, recording()
        except KeyError:
            yield "caught", recording()
        finally:
            seen.append(recording())
        return 5

    seen = []
    for end in (lambda g: next(g, None), lambda g: g.close()):
        generator = steps()
        assert next(generator) is False and recording()
        assert generator.send(3) == (3, False) and recording()
        assert generator.throw(KeyError()) == ("caught", False) and recording()
        end(generator)
    assert seen == [False, False] and recording()


def test_inference_mode_of_false_records_again():
    with ag.inference_mode():
        assert not recording()
        with ag.inference_mode(False):
            assert recording()
        assert not recording()


def test_mode_is_the_threads_own():
    seen = []
    with ag.no_grad():
        thread = threading.Thread(target=lambda: seen.append(recording()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_no_grad_results_are_leaves_and_detach_cuts():
    x = leaf(2.0, 3.0)
    with ag.no_grad():
        y = x * 2
        view = x[0]
    assert y.is_leaf and not y.requires_grad and not view.requires_grad
    d = (x * 3).detach()
    assert d.is_leaf and d.grad_fn is None
    (d * x).sum().backward()
    assert x.grad.tolist() == [6.0, 9.0]
