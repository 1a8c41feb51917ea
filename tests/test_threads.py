"""Threads, pieces and kept memory on the CPU: the same bits for any number of threads, errors that arrive, forks."""

import math
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import autograd as ag
from autograd import blocks, threads
from autograd.blocks import BLOCK, PIECE, SHARED

SIZES = (SHARED, SHARED + 1, 3 * BLOCK - 7, (2, SHARED // 2 + 3))
COSTLY = ("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "softplus")


@pytest.fixture(autouse=True)
def own_count():
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)


def numbers(shape, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2.0, shape).astype(np.float32)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("name", COSTLY)
def test_every_number_of_threads_gives_the_same_bits(name, shape):
    x = numbers(shape)
    found = []
    for n in (1, 2, 3, 7):
        threads.set_num_threads(n)
        leaf = ag.tensor(x, requires_grad=True)
        y = getattr(leaf, name)()
        y.sum().backward()
        found.append((y.detach().numpy().tobytes(), leaf.grad.numpy().tobytes()))
    assert len(set(found)) == 1
    small = ag.tensor(x.reshape(-1)[:1000])  # which threads do not share
    np.testing.assert_allclose(getattr(small, name)().numpy(), y.detach().numpy().reshape(-1)[:1000], rtol=1e-6)


@pytest.mark.parametrize("layout", ["turned", "every second", "one number"])
def test_arrays_that_are_not_in_order(layout):
    x = {"turned": numbers((700, 500)).T, "every second": numbers(2 * SHARED)[::2],
         "one number": np.broadcast_to(np.float32(0.5), (600, 500))}[layout]  # fmt: skip
    np.testing.assert_array_equal(ag.from_numpy(x).tanh().numpy(), np.tanh(np.ascontiguousarray(x)))


def special(shape, seed):
    x = np.random.default_rng(seed).standard_normal(shape)
    flat = x.reshape(-1)
    flat[::7], flat[1::7], flat[2::11], flat[3::13] = 0.0, -0.0, np.nan, np.inf
    return x


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(5000,), (3, BLOCK // 2 + 5), (64, 0)])
def test_choosing_by_bits_is_choosing(dtype, shape):
    with np.errstate(invalid="ignore"):
        a, b = special(shape, 1).astype(dtype), special(shape, 2).astype(dtype)
    condition = special(shape, 3) > 0
    ta, tb, tc = (ag.from_numpy(x) for x in (a, b, condition))
    pairs = [(ta, tb, a, b), (0, tb, 0, b), (ta, 0, a, 0), (3, tb, 3, b), (ta, 3, a, 3)]
    if dtype.startswith("float"):
        pairs += [(-0.0, tb, -0.0, b), (ta, float("nan"), a, np.nan), (float("-inf"), tb, -np.inf, b)]
    for p, q, left, right in pairs:
        got = ag.where(tc, p, q).numpy()
        assert got.dtype == a.dtype
        assert got.tobytes() == np.where(condition, left, right).astype(dtype).tobytes()


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("shape", [(7,), (3 * BLOCK + 5,), (300, 700)])
def test_fused_gradients_have_the_bits_of_the_formulas(name, shape):
    x = special(shape, 4).astype(np.float32)
    grads = []
    for seed in (None, special(shape, 5).astype(np.float32)):
        for create in (False, True):
            leaf = ag.tensor(x, requires_grad=True)
            y = getattr(leaf, name)()
            dy = None if seed is None else ag.tensor(seed)
            (g,) = ag.grad(y.sum() if dy is None else y, leaf, dy, create_graph=create)
            grads.append(g.detach().numpy())
    for fused, formula in (grads[:2], grads[2:]):
        np.testing.assert_array_equal(fused, formula)


def test_gradient_of_relu_where_nothing_is_seen():
    x = ag.tensor(np.full(5000, -1.0), requires_grad=True)
    (x.relu() * float("inf")).sum().backward()  # inf * 0: what relu is given is inf, what it hands on is 0
    assert not x.grad.numpy().any()


def test_an_error_in_any_part_is_raised_when_all_have_ended():
    threads.set_num_threads(2)
    ended = []

    def work(failing, start, stop):
        ended.append(start)
        if (start > 0) == failing:
            raise KeyError("part")

    for failing in (False, True):
        ended.clear()
        with pytest.raises(KeyError, match="part"):
            threads.split(lambda i, j, f=failing: work(f, i, j), 4, 1)
        assert sorted(ended) == [0, 2]
    threads.split(lambda i, j: ended.append(i), 4, 1)  # and the workers go on
    assert sorted(ended)[-1] == 2


def test_work_inside_work_and_from_many_threads():
    threads.set_num_threads(2)
    x, wrong = ag.tensor(numbers(SHARED)), []
    expected = x.tanh().numpy().tobytes()

    def inner(start, stop):
        threads.split(lambda i, j: done.append((start + i, start + j)), stop - start, 1)

    done: list = []
    threads.split(inner, 4, 1)
    assert sorted(done) == [(0, 2), (2, 4)]

    def user():
        for _ in range(5):
            if x.tanh().numpy().tobytes() != expected:
                wrong.append(1)

    users = [threading.Thread(target=user) for _ in range(4)]
    [t.start() for t in users]
    [t.join(60) for t in users]
    assert not wrong and not any(t.is_alive() for t in users)


def test_a_users_errstate_is_left_alone():
    threads.set_num_threads(2)
    x = ag.tensor(np.full(SHARED, 1000.0, np.float32))
    with np.errstate(all="raise"):
        assert np.isinf(x.exp().numpy()).all()
        assert np.geterr()["over"] == "raise"


def _in_a_fork(queue):
    threads.set_num_threads(2)
    queue.put(float(ag.ones(SHARED).exp().sum()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_makes_threads_of_its_own():
    threads.set_num_threads(2)
    expected = float(ag.ones(SHARED).exp().sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with threads._pool.busy:  # a fork in the middle of work
        child = context.Process(target=_in_a_fork, args=(queue,))
        child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0


def test_threads_neither_hold_up_the_end_nor_warn():
    code = "import autograd as ag; from autograd import threads; threads.set_num_threads(3); ag.ones(1 << 20).exp()"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("value, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_counts_that_are_none(value, error):
    with pytest.raises(error, match=r"\[set_num_threads\]"):
        threads.set_num_threads(value)


def in_environment(code, **variables):
    """What a new process prints."""
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


def test_the_environment_says_how_many_and_whether_memory_is_kept():
    count = "from autograd import threads; print(threads.get_num_threads())"
    assert in_environment(count, OMP_NUM_THREADS="3").stdout == "3\n"
    keeps = "from autograd import malloc; print(malloc.KEEPS)"
    assert in_environment(keeps, AUTOGRAD_MALLOC="system").stdout == "False\n"
    assert "AUTOGRAD_MALLOC" in in_environment(keeps, AUTOGRAD_MALLOC="mine").stderr


def test_only_the_glibc_is_asked_to_keep_memory(monkeypatch):
    from autograd import malloc

    class Other:  # another C library: it may have a mallopt, with other numbers
        def mallopt(self, *_):
            raise AssertionError("asked")

    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda _: Other())
    assert malloc.keep_freed() is False


def test_pieces_are_those_of_the_operands():
    x = np.arange(3 * BLOCK + 1.0)
    seen = []

    def function(a, b, out):
        seen.append(a.size)
        np.add(a, b, out=out)

    np.testing.assert_array_equal(blocks.blocked(function, x.dtype, x.shape, x, 1.0), x + 1)
    assert seen == [BLOCK, BLOCK, BLOCK, 1]
    row = np.ones(5)
    grid = np.ones((BLOCK, 5))
    np.testing.assert_array_equal(blocks.blocked(np.add, x.dtype, grid.shape, grid, row), grid + row)


@pytest.mark.parametrize("name", ["erf", "erfinv", "erfcx", "lgamma", "i0e", "i1e"])
@pytest.mark.parametrize("dtype", [ag.float32, ag.float64])
def test_functions_of_many_passes_are_the_same_in_pieces(name, dtype):
    """A piece gives what the whole gives, in any layout."""
    x = ag.tensor(numbers((3, PIECE + 5)) / 3, dtype=dtype)
    y = getattr(ag.special, name, getattr(ag, name, None))(x)
    assert y.dtype is dtype
    for view in (x.T, x[:, ::2]):
        other = getattr(ag.special, name, getattr(ag, name, None))(view)
        np.testing.assert_array_equal(other.numpy(), (y.T if view.shape[1] == 3 else y[:, ::2]).numpy())
    few = getattr(ag.special, name, getattr(ag, name, None))(x[1, :7])
    np.testing.assert_array_equal(few.numpy(), y[1, :7].numpy())


@pytest.mark.parametrize(("dtype", "bound"), [(ag.float32, 2.0), (ag.float64, 4.0)])
def test_erf_in_units_in_the_last_place(dtype, bound):
    x = np.concatenate([np.linspace(-6, 6, 4001), np.logspace(-30, 0, 200)]).astype(dtype.numpy)
    true = np.array([math.erf(v) for v in x.tolist()])
    units = np.abs(ag.tensor(x).erf().numpy() - true) / np.spacing(np.abs(true).astype(x.dtype))
    assert units.max() < bound
