"""What is made of a product element by element runs in its kernel: counts, values, and the order of the program."""

import numpy as np
import pytest
from helpers import array
from hypothesis import given, settings
from hypothesis import strategies as st

import autograd as ag
from autograd import nn
from autograd.webgpu import fuse

F = nn.functional
pytestmark = pytest.mark.usefixtures("wgpu")
ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "gelu": lambda z: z * 0.5 * (1 + np.array(ag.tensor(z / np.sqrt(2)).erf())),
}


@pytest.fixture(autouse=True)
def fused(monkeypatch):
    """These tests are about fusion, whatever the environment says."""
    monkeypatch.setattr(fuse, "ENABLED", True)


def made(*shape, dtype=ag.float32, grad=False):
    values = np.random.default_rng(sum(shape)).uniform(-1, 1, shape)
    return ag.tensor(values, dtype=dtype, device="wgpu", requires_grad=grad)


def counted(function):
    """(how many dispatches function() takes, what it returns), all that waits at its end included."""
    ag.wgpu.synchronize()
    before = ag.wgpu.stats()["dispatches"]
    kept = function()
    ag.wgpu.synchronize()
    return ag.wgpu.stats()["dispatches"] - before, kept


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_layer_is_one_dispatch(name):
    x, w, b = made(6, 20), made(12, 20), made(12)
    count, y = counted(lambda: getattr(F, name)(F.linear(x, w, b)))
    assert count == 1
    want = ACTIVATIONS[name](array(x).astype(np.float64) @ array(w).T + array(b))
    np.testing.assert_allclose(array(y), want, rtol=1e-5, atol=1e-6)


def test_the_forward_pass_of_training_is_one_dispatch_and_writes_what_is_saved():
    x, w, b = made(2, 3, 20), made(12, 20, grad=True), made(12, grad=True)
    count, y = counted(lambda: F.gelu(F.linear(x, w, b)))
    assert count == 1
    y.sum().backward()
    plain, bias = (ag.tensor(array(t), requires_grad=True) for t in (w, b))
    F.gelu(F.linear(ag.tensor(array(x)), plain, bias)).sum().backward()
    np.testing.assert_allclose(array(w.grad), array(plain.grad), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(array(b.grad), array(bias.grad), rtol=1e-4, atol=1e-5)


def test_a_gradients_mask_is_part_of_the_product_before():
    z = made(6, 12, grad=True)
    w, dy = made(12, 8), made(6, 8)
    y = z.relu()
    loss = (y @ w * dy).sum()
    array(loss)

    def back():
        z.grad = None
        loss.backward(retain_graph=True)
        return z.grad

    assert counted(back)[0] == 2  # dy by 1, then dy @ w^T under the mask
    np.testing.assert_allclose(array(back()), (array(dy) @ array(w).T) * (array(z) > 0), rtol=1e-5, atol=1e-6)


def test_a_product_that_is_held_is_written_too():
    x, w = made(5, 7), made(7, 8)

    def both():
        z = x @ w
        return z, z.relu(), z.relu() + 1

    count, (z, y, more) = counted(both)
    assert count == 1
    want = array(x) @ array(w)
    for got, right in ((z, want), (y, np.maximum(want, 0)), (more, np.maximum(want, 0) + 1)):
        np.testing.assert_allclose(array(got), right, rtol=1e-5, atol=1e-6)
    z = x @ w
    y = z.tanh()
    np.testing.assert_allclose(array(z), want, rtol=1e-5, atol=1e-6)  # read first
    np.testing.assert_allclose(array(y), np.tanh(want), rtol=1e-5, atol=1e-6)
    z = x @ w
    y = z.mT + 1  # of another layout: of what was written
    np.testing.assert_allclose(array(y), want.T + 1, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [8, 7, 1])
@pytest.mark.parametrize("dtype", [ag.float32, ag.float16, ag.bfloat16])
def test_leaves_of_any_layout(n, dtype):
    a, b, r = made(2, 5, 6, dtype=dtype), made(2, 6, n, dtype=dtype), made(2, n, 5, dtype=dtype)
    s, t = made(n, dtype=dtype), made(5, 1, dtype=dtype)
    count, y = counted(lambda: (a @ b) * s + r.mT - t)
    packed = y.array.dtype in y.array.gpu.packed  # words of which two invocations would write halves
    assert count == (2 if packed and n % 4 else 1)
    fuse.ENABLED = False
    plain = (a @ b) * s + r.mT - t
    np.testing.assert_allclose(array(y.float()), array(plain.float()), rtol=1e-6, atol=1e-6)
    if dtype is ag.float32:
        want = array(a).astype(np.float64) @ array(b) * array(s) + array(r).swapaxes(1, 2) - array(t)
        np.testing.assert_allclose(array(y), want, rtol=1e-5, atol=1e-6)


def test_results_of_other_types():
    x, w = made(5, 8), made(8, 4)
    count, (above, whole) = counted(lambda: ((z := x @ w) > 0.1, (z * 10).to(ag.int32)))
    assert count == 1
    z = array(x) @ array(w)
    np.testing.assert_array_equal(array(above), z > 0.1)
    np.testing.assert_array_equal(array(whole), (z * 10).astype(np.int32))


def test_what_an_operand_was_is_what_counts():
    x, w, b, r = made(4, 6), made(6, 8), made(8), made(4, 8)
    want = np.maximum(array(x) @ array(w) + array(b), 0) * array(r)
    for change in (lambda: x.zero_(), lambda: w[0].fill_(9), lambda: b.add_(100), lambda: r.mul_(2)):
        y = (x @ w + b).relu() * r
        change()
        np.testing.assert_allclose(array(y), want, rtol=1e-5, atol=1e-6)
        want = np.maximum(array(x) @ array(w) + array(b), 0) * array(r)
    z = x @ w
    z.relu_().add_(1)
    old = z * 2
    z.zero_()
    np.testing.assert_allclose(array(old), 2 * (np.maximum(array(x) @ array(w), 0) + 1), rtol=1e-5, atol=1e-6)
    total = made(4, 8)
    alias, before = total.detach(), array(total).copy()
    total += x @ w
    np.testing.assert_allclose(array(alias), before + array(x) @ array(w), rtol=1e-5, atol=1e-6)


def test_two_products_and_one_sum():
    x, h, w, u, b = made(4, 6), made(4, 5), made(6, 8), made(5, 8), made(8)
    count, y = counted(lambda: (x @ w + h @ u + b).tanh())
    assert count == 2
    np.testing.assert_allclose(array(y), np.tanh(array(x) @ array(w) + array(h) @ array(u) + array(b)), rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_into_the_kernel():
    x, w, many = made(4, 6), made(6, 8), [made(4, 8) * (k + 1) for k in range(7)]
    for y in many:
        array(y)
    product, total = array(x) @ array(w), sum(array(y) for y in many)

    def several():
        z = x @ w
        for y in many:
            z = z + y
        return z

    np.testing.assert_allclose(array(several()), product + total, rtol=1e-4, atol=1e-5)
    kept = [y + (x @ w) for y in many]
    held = (z := x @ w) * 2, [z + k for k in range(12)]  # more values than buffers
    for k, (y, v) in enumerate(zip(kept, many)):
        np.testing.assert_allclose(array(y), product + array(v), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(array(held[1][k]), product + k, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(array(held[0]), product * 2, rtol=1e-5, atol=1e-6)


def test_reductions_of_a_product():
    x, w = made(4, 6), made(6, 8)
    z = array(x) @ array(w)
    count, (total, mean, held) = counted(lambda: ((x @ w).sum(), (x @ w).relu().mean(1), (y := (x @ w).exp(), (y * 2).amax(0))))
    assert count == 7  # with the division of the mean
    np.testing.assert_allclose(array(total), z.sum(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(array(mean), np.maximum(z, 0).mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(array(held[0]), np.exp(z), rtol=1e-5)
    np.testing.assert_allclose(array(held[1]), np.exp(z).max(0) * 2, rtol=1e-5)


def test_a_split_product_and_an_unfused_one_are_as_before(monkeypatch):
    x, w = made(4, 2048), made(2048, 4)
    count, y = counted(lambda: (x @ w).relu())
    assert count == 3  # the parts, their sum, relu
    np.testing.assert_allclose(array(y), np.maximum(array(x).astype(np.float64) @ array(w), 0), rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(fuse, "ENABLED", False)
    assert counted(lambda: (made(4, 8) @ made(8, 4)).relu())[0] == 2


def test_a_product_does_not_wait_for_ever():
    x, w = made(4, 6), made(6, 8)
    old = x @ w
    for _ in range(fuse.MAX_AGE + 1):
        assert x.sum().array.storage  # a dispatch
    young = x @ w
    assert old.array.pending is None and young.array.pending is not None
    np.testing.assert_array_equal(array(old), array(young))
    assert counted(lambda: [x @ w for _ in range(3)] and None)[0] == 0  # nobody holds them


STEPS = {
    "product": (lambda a, b: a @ b * 0.3, lambda a, b: a @ b * np.float32(0.3)),
    "turned": (lambda a, b: a @ b.mT, lambda a, b: a @ b.T),
    "relu": (lambda a, b: a.relu(), lambda a, b: np.maximum(a, 0)),
    "tanh": (lambda a, b: a.tanh(), lambda a, b: np.tanh(a)),
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "row": (lambda a, b: a * b[0], lambda a, b: a * b[0]),
    "mean": (lambda a, b: (a - b).mean(1, keepdim=True) + a, lambda a, b: (a - b).mean(1, keepdims=True) + a),
}
CHANGES = {
    "halve": (lambda a, b: a.mul_(0.5), lambda a, b: np.multiply(a, 0.5, out=a)),
    "relu_": (lambda a, b: a.relu_(), lambda a, b: np.maximum(a, 0, out=a)),
    "add_": (lambda a, b: a.add_(b), lambda a, b: np.add(a, b.copy(), out=a)),
    "fill row": (lambda a, b: a[1].fill_(0.25), lambda a, b: a[1].fill(0.25)),
    "add product": (lambda a, b: a.add_(b @ b, alpha=0.1), lambda a, b: np.add(a, 0.1 * (b @ b), out=a)),
}
PLACES = st.tuples(st.sampled_from([*STEPS, *CHANGES, "read", "drop"]), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


def played(program, values):
    """What a program leaves in its four places, some of which may share memory with what others were made of."""
    which = isinstance(values[0], np.ndarray)
    for name, target, i, j in program:
        if name in STEPS:
            values[target] = STEPS[name][which](values[i], values[j])
            values[target] = values[target].clip(-2, 2) if which else values[target].clamp(-2, 2)
        elif name in CHANGES:
            CHANGES[name][which](values[i], values[j])
            np.clip(values[i], -2, 2, out=values[i]) if which else values[i].clamp_(-2, 2)
        elif name == "read":
            np.array(values[i][0])
        else:
            values[target] = values[i] * 0.5
    return [np.array(v) for v in values]


@settings(max_examples=12)
@given(program=st.lists(PLACES, min_size=3, max_size=10))
def test_programs_of_products(program):
    start = [np.random.default_rng(k).uniform(-1, 1, (4, 4)).astype(np.float32) for k in range(4)]
    want = played(program, [v.astype(np.float64) for v in start])
    for enabled in (True, False):
        fuse.ENABLED = enabled
        got = played(program, [ag.tensor(v, device="wgpu") for v in start])
        fuse.ENABLED = True
        for v, w in zip(got, want):
            np.testing.assert_allclose(v, w, rtol=2e-4, atol=2e-5)
