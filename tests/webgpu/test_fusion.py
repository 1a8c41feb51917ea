"""Waiting expressions: few dispatches, the values of unfused execution, and the order of the program."""

import gc
import threading

import numpy as np
import pytest
import test_programs as programs
from helpers import array
from hypothesis import given
from hypothesis import strategies as st

import autograd as ag
from autograd.webgpu import fuse

pytestmark = pytest.mark.usefixtures("wgpu")


@pytest.fixture(autouse=True)
def fused(monkeypatch):
    """These tests are about fusion, whatever the environment says."""
    monkeypatch.setattr(fuse, "ENABLED", True)


def made(*shape, grad=False):
    values = np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)
    return ag.tensor(values, device="wgpu", requires_grad=grad)


def dispatches(function):
    """How many dispatches function() takes, all that waits at its end included."""
    ag.wgpu.synchronize()
    before = ag.wgpu.stats()["dispatches"]
    kept = function()
    ag.wgpu.synchronize()
    del kept
    return ag.wgpu.stats()["dispatches"] - before


def test_a_chain_is_one_dispatch():
    x, y, b = made(8, 5), made(8, 5), made(5)
    ops = ag.wgpu.stats()["ops"]
    assert dispatches(lambda: (x * 2 + y).tanh() - b) == 1
    assert ag.wgpu.stats()["ops"] - ops == 4
    assert dispatches(lambda: ag.nn.functional.gelu(x + b)) == 1
    assert dispatches(lambda: ag.where(x > 0, x, -x).to(ag.int32)) == 1


def test_what_is_held_is_written_by_the_same_kernel():
    x = made(8)

    def several():
        a = x + 1
        b = a * a
        return a, b, b.exp() - a

    assert dispatches(several) == 1
    v = array(x) + 1
    for got, want in zip(several(), (v, v**2, np.exp(v**2) - v)):
        np.testing.assert_allclose(array(got), want, rtol=1e-6)


def test_a_small_backward_takes_four_dispatches():
    x, y, z = (made(8, grad=True) for _ in range(3))

    def step():
        x.grad = y.grad = z.grad = None
        (x * y + z).sum().backward()

    assert dispatches(step) <= 4
    np.testing.assert_array_equal(array(x.grad), array(y))
    np.testing.assert_array_equal(array(z.grad), 1)


def test_the_composite_gru_step_is_one_dispatch_forward():
    r, z, n, q, h = (made(4, 6) for _ in range(5))

    def step():
        gate = z.sigmoid()
        state = (n + r.sigmoid() * q).tanh()
        return state + gate * (h - state)

    assert dispatches(step) == 1


def test_nobody_computes_what_nobody_holds():
    x = made(8)

    def wasted():
        for _ in range(10):
            x.exp()

    assert dispatches(wasted) == 0


@pytest.mark.parametrize("count", [fuse.MAX_OPS - 1, fuse.MAX_OPS + 1, 5 * fuse.MAX_OPS])
def test_long_chains_are_cut(count):
    x = made(6)
    y = x
    for _ in range(count):
        y = y * 0.5 + 1
    want = array(x)
    for _ in range(count):
        want = want * np.float32(0.5) + np.float32(1)
    np.testing.assert_allclose(array(y), want, rtol=1e-6)


def test_many_operands_are_cut():
    xs = [made(7) * (i + 1) for i in range(20)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    np.testing.assert_allclose(array(total), array(made(7)) * 210, rtol=1e-5)


def test_many_values_may_wait():
    x = made(5)
    waiting = [x + i for i in range(3 * fuse.MAX_WAITING)]
    for i, y in enumerate(waiting):
        np.testing.assert_array_equal(array(y), array(x) + np.float32(i))


def test_a_write_in_place_waits_for_its_readers():
    x = made(6)
    old = array(x).copy()
    y = x * 2
    shown = x[2:] + 1
    x.add_(10)
    x[0] = 7
    np.testing.assert_array_equal(array(y), old * 2)
    np.testing.assert_array_equal(array(shown), old[2:] + 1)
    z = x + 0
    x.zero_()
    np.testing.assert_allclose(array(z), np.r_[7, old[1:] + 10], rtol=1e-6)


def test_a_write_into_a_value_that_another_was_made_of():
    x = made(6)
    a = x + 1
    b = a * 2  # holds a's expression, not its memory
    a.zero_()
    np.testing.assert_array_equal(array(b), (array(x) + 1) * 2)
    np.testing.assert_array_equal(array(a), 0)


def test_a_constant_is_written_when_it_is_changed():
    z = ag.zeros(3, 4, device="wgpu")
    y = z + 1
    row = z[1]
    row.add_(5)
    e = z[:1].expand(2, 4)
    z[0] = 9
    np.testing.assert_array_equal(array(y), 1)
    np.testing.assert_array_equal(array(z), [[9] * 4, [5] * 4, [0] * 4])
    np.testing.assert_array_equal(array(e), 9)


def test_an_optimizer_step_waits_for_its_readers():
    p = ag.nn.Parameter(made(4))
    before = array(p).copy()
    y = p * 3
    p.grad = made(4) * 1
    ag.optim.SGD([p], lr=1.0).step()
    np.testing.assert_array_equal(array(y), before * 3)
    np.testing.assert_array_equal(array(p), before - array(made(4)))


def test_types_meet_in_one_kernel():
    x, i = made(3, 5), ag.arange(5, device="wgpu")
    mask = (i % 2 == 0) & (i < 4)

    def mixed():
        return ag.where(mask, x, i.to(ag.float32) * 0.5) + (i // 2).to(ag.float32) * mask

    assert dispatches(mixed) == 3  # what has the shape of i before and after `where`, then what has that of x
    n = np.arange(5)
    m = (n % 2 == 0) & (n < 4)
    np.testing.assert_allclose(array(mixed()), np.where(m, array(x), n * 0.5) + (n // 2) * m, rtol=1e-6)
    u = ag.tensor([250, 3], dtype=ag.uint8, device="wgpu")
    np.testing.assert_array_equal(array((u + 10) * 2 - 8), np.array([(4 * 2 - 8) % 256, 18], np.uint8))


@pytest.mark.parametrize("shapes", [((4, 1), (1, 6)), ((2, 3, 4), (4,)), ((), (3,)), ((5, 1, 4), (3, 1)), ((1,), (2, 2))])
def test_broadcasting_and_strides(shapes):
    a, b = (made(*s) if s else made(1).reshape(()) for s in shapes)
    y = (a + b * 2).tanh() - b
    v, w = array(a), array(b)
    np.testing.assert_allclose(array(y), np.tanh(v + w * 2) - w, rtol=1e-5, atol=1e-6)
    turned = (a.expand(*y.shape).mT.exp() if y.ndim > 1 else a.exp()) * 2
    wide = np.broadcast_to(v, y.shape)
    np.testing.assert_allclose(array(turned), np.exp(wide.swapaxes(-1, -2) if y.ndim > 1 else v) * 2, rtol=1e-5)


def test_bad_operands_are_refused_at_once():
    i = ag.arange(3, device="wgpu")
    with pytest.raises(OverflowError, match="32 bits"):
        i + 2**40
    with pytest.raises(ValueError, match=r"\[add\]"):
        made(2) + made(3)


def test_a_loop_compiles_nothing_after_its_first_steps():
    w, x = made(6, 3, grad=True), made(4, 6)

    def step():
        w.grad = None
        h = (x @ w).tanh()
        ((h * h + h.exp()).sum() * 0.5).backward()
        with ag.no_grad():
            w.sub_(w.grad * 0.01)

    step()
    step()
    before = ag.wgpu.stats()["pipelines"]
    counts = {dispatches(step) for _ in range(4)}
    assert ag.wgpu.stats()["pipelines"] == before and len(counts) == 1


def test_memory_is_released():
    x = made(1000)
    gc.collect()
    ag.wgpu.synchronize()
    before = ag.wgpu.stats()["buffers_live"]
    kept = [(x + i).exp() for i in range(40)]
    del kept
    y = (x + 1).exp() * 2
    array(y)
    del y
    assert ag.wgpu.stats()["buffers_live"] == before


def test_threads_share_waiting_values():
    x = made(16)
    y = (x * 3).tanh()
    results, errors = [], []

    def work():
        try:
            for k in range(30):
                results.append(array((y + k).exp() * 0 + y))
        except Exception as error:  # handed over to the test
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors and len(results) == 120
    for r in results:
        np.testing.assert_allclose(r, np.tanh(array(x) * 3), rtol=1e-5, atol=1e-6)


@given(program=programs.programs.filter(programs.fits), seed=st.integers(0, 100))
def test_fused_is_unfused(program, seed):
    a = np.random.default_rng(seed).uniform(-1, 1, programs.SHAPE).astype(np.float32)
    results = []
    for enabled in (True, False):
        fuse.ENABLED = enabled
        results.append(programs.with_gradient(program, a, "wgpu"))
    fuse.ENABLED = True
    for fused_value, plain in zip(*results):
        np.testing.assert_allclose(fused_value, plain, rtol=2e-5, atol=2e-6)


def test_a_change_in_place_of_unshared_memory_is_part_of_the_expression():
    x, g = made(6), made(6)
    before, step = array(x).copy(), array(g)
    assert dispatches(lambda: x.sub_(g * 0.5).mul_(2)) == 1
    want = (before - step * np.float32(0.5)) * 2
    np.testing.assert_allclose(array(x), want, rtol=1e-6)
    alias, view = x.detach(), x[2:]
    x.add_(1)  # seen by both
    np.testing.assert_allclose(array(alias), want + 1, rtol=1e-6)
    np.testing.assert_allclose(array(view), want[2:] + 1, rtol=1e-6)
    del alias, view
    later = x * 3
    x.add_(100)
    np.testing.assert_allclose(array(later), (want + 1) * 3, rtol=1e-6)
    np.testing.assert_allclose(array(x), want + 101, rtol=1e-6)


def test_two_tensors_never_come_to_share_a_waiting_value():
    a, b = made(3), made(3)
    c = a * 5
    b.copy_(c)
    b.clamp_(-9, 9)
    c.add_(1)
    np.testing.assert_allclose(array(b), array(a) * 5, rtol=1e-6)
    np.testing.assert_allclose(array(c), array(a) * 5 + 1, rtol=1e-6)


def test_a_saved_output_outlives_changes_of_the_tensor():
    x = made(4, grad=True)
    y = x * 1
    y.sigmoid_()
    saved = array(y).copy()
    z = (y * 2).sum()
    with ag.no_grad():
        y.add_(1)
    z.backward()
    np.testing.assert_allclose(array(x.grad), 2 * saved * (1 - saved), rtol=1e-5)


def test_a_reduction_computes_what_nobody_else_wants():
    x, y = made(60, 8), made(60, 8)
    assert dispatches(lambda: (x * y + x).sum(1)) == 1
    assert dispatches(lambda: ((x - y) * (x - y)).mean(0)) == 2  # the sum, and the division
    v, w = array(x), array(y)
    np.testing.assert_allclose(array((x * y + x).sum(1)), (v * w + v).sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(array(((x - y) * 2).amax(0)), ((v - w) * 2).max(0), rtol=1e-6)
    np.testing.assert_array_equal(array((x > y).sum(1)), (v > w).sum(1))
    np.testing.assert_array_equal(array((x > y).any(0)), (v > w).any(0))
    kept = x * y
    total = kept.sum()
    np.testing.assert_allclose(array(kept), v * w, rtol=1e-6)
    np.testing.assert_allclose(array(total), (v * w).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(7,), (4, 8), (5, 6, 4), (3, 700), (700, 3), (600, 8), (2, 3000, 4), (1, 1)])
def test_reductions_of_expressions_of_any_shape(shape):
    x, b = made(*shape), made(shape[-1])
    v, w = array(x).astype(np.float64), array(b)
    for axes in [(d,) for d in range(len(shape))] + [tuple(range(len(shape)))]:
        want = v * 2 + w
        np.testing.assert_allclose(array((x * 2 + b).sum(axes)), want.sum(axes), rtol=2e-5, atol=1e-3)
        np.testing.assert_allclose(array((x * 2 + b).amax(axes, keepdim=True)), want.max(axes, keepdims=True), rtol=1e-6)
    if len(shape) == 2:  # read through strides
        np.testing.assert_allclose(array((x.mT * 2 + 1).sum(0)), (v.T * 2 + 1).sum(0), rtol=2e-5, atol=1e-3)


def test_a_reduction_that_waits_sees_what_was_there():
    x, y = made(40), made(40)
    v, w = array(x).copy(), array(y)
    total, mean = (x * y).sum(), (x * y).mean()
    x.zero_()
    np.testing.assert_allclose(array(total), (v * w).sum(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(array(mean), (v * w).mean(), rtol=1e-4, atol=1e-5)
    later = (y * 2).sum()
    more = later + later.exp() * 0
    y.add_(1)
    np.testing.assert_allclose(array(more), (w * 2).sum(), rtol=1e-4, atol=1e-5)


def test_many_reductions_may_wait():
    x = made(30)
    waiting = [(x + i).sum() for i in range(3 * fuse.MAX_WAITING)]
    for i, y in enumerate(waiting):
        np.testing.assert_allclose(array(y), (array(x) + np.float32(i)).sum(), rtol=1e-4, atol=1e-4)


def test_a_long_chain_of_reductions_is_no_deep_recursion():
    x = made(8)
    for _ in range(1000):
        x = (x * 0.5 + 1) / (x + 3).sum()
    v = array(made(8))
    for _ in range(1000):
        v = (v * np.float32(0.5) + 1) / (v + 3).sum()
    np.testing.assert_allclose(array(x), v, rtol=1e-5)


def test_constants_are_computed_on_the_host():
    one = ag.ones(3, 2, device="wgpu")
    assert dispatches(lambda: -(one / 4) * 2 + 1) == 0
    np.testing.assert_array_equal(array(-(one / 4) * 2 + 1), 0.5)
    np.testing.assert_array_equal(array(one / 0), np.inf)
