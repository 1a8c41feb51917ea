"""Random programs: whatever is composed, both devices and a NumPy mirror agree, in values and in gradients."""

import numpy as np
from helpers import array
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import autograd as ag

SHAPE = (3, 4)

# name: (step on a tensor, the same on an array). Steps keep to numbers of moderate size.
STEPS = {
    "tanh": (lambda x, k: x.tanh(), lambda x, k: np.tanh(x)),
    "scale": (lambda x, k: x * (0.5 + k), lambda x, k: x * (0.5 + k)),
    "shift": (lambda x, k: k - x, lambda x, k: k - x),
    "square": (lambda x, k: x * x * 0.25, lambda x, k: x * x * 0.25),
    "ratio": (lambda x, k: x / (x * x + 1), lambda x, k: x / (x * x + 1)),
    "sigmoid": (lambda x, k: x.sigmoid(), lambda x, k: 1 / (1 + np.exp(-x))),
    "transpose": (lambda x, k: x.mT, lambda x, k: np.swapaxes(x, -1, -2)),
    "reshape": (lambda x, k: x.reshape(-1, 2), lambda x, k: x.reshape(-1, 2)),
    "flip": (lambda x, k: x.flip(0), lambda x, k: x[::-1]),
    "back": (lambda x, k: x[::-1], lambda x, k: x[::-1]),
    "double": (lambda x, k: ag.cat([x, x * 2], dim=1), lambda x, k: np.concatenate([x, x * 2], 1)),
    "halve": (lambda x, k: x[:, : x.shape[1] // 2 + 1], lambda x, k: x[:, : x.shape[1] // 2 + 1]),
    "rows": (lambda x, k: x[[0, k, 0]], lambda x, k: x[[0, k, 0]]),
    "centre": (lambda x, k: x - x.mean(k, keepdim=True), lambda x, k: x - x.mean(k, keepdims=True)),
    "sum": (lambda x, k: x.sum(0, keepdim=True).expand(3, -1) * 0.3, lambda x, k: np.repeat(x.sum(0, keepdims=True), 3, 0) * 0.3),
    "softmax": (lambda x, k: x.softmax(k), lambda x, k: softmax(x, k)),
    "product": (lambda x, k: (x @ x.mT * 0.2).tanh(), lambda x, k: np.tanh(x @ x.T * 0.2)),
    "layer": (lambda x, k: (x @ x.mT * 0.1 + k).sigmoid() @ x * 0.5 + x, lambda x, k: 1 / (1 + np.exp(-(x @ x.T * 0.1 + k))) @ x * 0.5 + x),
    "changed operand": (lambda x, k: changed(x, k), lambda x, k: np.tanh(0.1 * ones_of(x) @ ones_of(x).T) @ x * (0.5 - k)),
    "where": (lambda x, k: ag.where(ag.arange(x.shape[1], device=x.device) % 2 == k, x, 0.1), lambda x, k: np.where(np.arange(x.shape[1]) % 2 == k, x, 0.1)),
    "write row": (lambda x, k: written(x, k), lambda x, k: mirrored(x, k)),
    "in place": (lambda x, k: x.clone().mul_(0.5).add_(x), lambda x, k: x * 1.5),
    "view in place": (lambda x, k: halved(x.clone()), lambda x, k: np.concatenate([x[:, :1] * 0.5 + 1, x[:, 1:]], 1)),
}  # fmt: skip


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def ones_of(x):
    return np.ones(x.shape)


def changed(x, k):
    """A product whose operand is overwritten while it waits."""
    z = ag.ones(*x.shape, dtype=x.dtype, device=x.device) * 1
    y = z @ z.mT
    z.mul_(7)
    return (y * 0.1).tanh() @ x * (0.5 - k)


def written(x, k):
    y = x.clone()
    y[k] = x[0] * 2
    return y


def mirrored(x, k):
    y = x.copy()
    y[k] = x[0] * 2
    return y


def halved(y):
    column = y[:, 0]
    column.mul_(0.5)
    column += 1
    return y


def run(program, x, which):
    for name, k in program:
        x = STEPS[name][which](x, k)
    return x


def with_gradient(program, a, device):
    x = ag.tensor(a, device=device, requires_grad=True)
    y = run(program, x, 0)
    y.sum().backward()
    return array(y), array(x.grad)


programs = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 1)), min_size=1, max_size=8)


def fits(program):
    """Whether the mirror can run it: a reshape may leave too few rows, a doubling too many columns."""
    x = np.zeros(SHAPE)
    try:
        for name, k in program:
            x = STEPS[name][1](x, k)
            if x.ndim != 2 or not 2 <= x.shape[0] <= 24 or not 1 <= x.shape[1] <= 24:
                return False
    except ValueError:
        return False
    return True


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the device is only a name
@given(program=programs.filter(fits), seed=st.integers(0, 100))
def test_programs_agree(device, program, seed):
    a = np.random.default_rng(seed).uniform(-1, 1, SHAPE)
    y, g = with_gradient(program, a.astype(np.float32), device)
    np.testing.assert_allclose(y, run(program, a.astype(np.float32).astype(np.float64), 1), rtol=2e-4, atol=2e-5)
    wanted, wanted_g = with_gradient(program, a.astype(np.float32).astype(np.float64), "cpu")
    np.testing.assert_allclose(y, wanted, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(g, wanted_g, rtol=1e-3, atol=1e-4)


@given(programs.filter(fits), st.integers(0, 100))
def test_gradients_of_programs_are_slopes(program, seed):
    x = ag.tensor(np.random.default_rng(seed).uniform(0.1, 1, SHAPE), requires_grad=True)
    assert ag.gradcheck(lambda x: run(program, x, 0), x, fast_mode=True)
