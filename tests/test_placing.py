"""Writing by position in place, and the views that diagonal, unfold and their kin give."""

import numpy as np
import pytest
from helpers import array, assert_close

import autograd as ag

PAIRS = {
    "scatter": (0, lambda d: ag.tensor([[0, 1, 1]], device=d), lambda d: ag.ones(1, 3, device=d)),
    "scatter_add": (0, lambda d: ag.tensor([[0, 1, 1]], device=d), lambda d: ag.ones(1, 3, device=d)),
    "scatter_reduce": (0, lambda d: ag.tensor([[0, 1, 1]], device=d), lambda d: ag.ones(1, 3, device=d) * 3, "amax"),
    "index_add": (1, lambda d: ag.tensor([2, 2], device=d), lambda d: ag.ones(2, 2, device=d)),
    "index_copy": (0, lambda d: ag.tensor([1], device=d), lambda d: ag.ones(1, 3, device=d)),
    "index_fill": (0, lambda d: ag.tensor([-1], device=d), 7),
    "index_reduce": (1, lambda d: ag.tensor([2, 2], device=d), lambda d: ag.ones(2, 2, device=d) * 2, "prod"),
    "index_put": (lambda d: (ag.tensor([0, 1], device=d), ag.tensor([1, 1], device=d)), lambda d: ag.ones(2, device=d)),
    "put": (lambda d: ag.tensor([0, -1], device=d), lambda d: ag.ones(2, device=d)),
    "masked_scatter": (lambda d: ag.tensor([True, False, True], device=d), lambda d: ag.ones(4, device=d)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_in_place_twin_does_the_same(name, device):
    args = [a(device) if callable(a) else a for a in PAIRS[name]]
    leaf = ag.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3), device=device, requires_grad=True)
    want = getattr(leaf * 1, name)(*args)
    x = leaf * 1
    y = getattr(x, f"{name}_")(*args)
    assert y is x
    assert x._version == 1
    assert_close(y, want)
    (got,), (wanted,) = (ag.grad((t * t).sum(), leaf) for t in (y, want))
    assert_close(got, wanted)


VIEWS = {
    "diagonal": (lambda x: x.diagonal(1), lambda a: [a[0][1], a[1][2]]),
    "unfold": (lambda x: x.unfold(1, 2, 2), lambda a: [[r[:2]] for r in a]),
    "select": (lambda x: x.select(1, 2), lambda a: [r[2] for r in a]),
    "movedim": (lambda x: x.movedim(0, 1), lambda a: [*zip(*a)]),
    "unflatten": (lambda x: x.unflatten(1, (3, 1)), lambda a: [[[v] for v in r] for r in a]),
    "tensor_split": (lambda x: x.tensor_split(2, 1)[1], lambda a: [r[2:] for r in a]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory_and_history(name, device):
    view, reference = VIEWS[name]
    x = ag.zeros(2, 3, device=device)
    y = view(x)
    x[...] = ag.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3), device=device)
    assert y._version == x._version == 1
    assert_close(y, np.array(reference(array(x).tolist())))
    leaf = ag.ones(2, 3, device=device, requires_grad=True)
    x = leaf * 1
    view(x).mul_(5)
    assert sorted(array(x).ravel()) == sorted([5.0] * y.numel() + [1.0] * (6 - y.numel()))
    assert_close(ag.grad(x.sum(), leaf)[0], array(x))


def test_a_repeated_place_keeps_the_last_value_and_its_gradient(device):
    source = ag.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    x = ag.zeros(2, device=device)
    x[ag.tensor([0, 0, 1], device=device)] = source
    assert array(x).tolist() == [2.0, 3.0]
    assert array(ag.grad(x.sum(), source)[0]).tolist() == [0.0, 1.0, 1.0]


def test_a_diagonal_of_odd_memory_is_a_view():
    x = ag.zeros(6, 4)[::2].mT
    x.diagonal()[:] = ag.tensor([1.0, 2.0, 3.0])
    assert array(x).tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3], [0, 0, 0]]


@pytest.mark.parametrize("name", ["cholesky_ex", "inv_ex"])
def test_ex_reports_instead_of_raising(name, device):
    good, bad = [[4.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 1.0]]
    a = ag.tensor(np.array([good, bad], np.float32), device=device)
    y, info = getattr(ag.linalg, name)(a)
    assert array(info).tolist() == [0, 1]
    assert np.isnan(array(y)[1]).all()
    assert not np.isnan(array(y)[0]).any()
    with pytest.raises(ValueError, match="atri"):
        getattr(ag.linalg, name)(a, check_errors=True)


def test_the_determinants_gradient_is_right_where_it_is_0(device):
    a = ag.tensor(np.array([[1.0, 2.0], [2.0, 4.0]], np.float32), device=device, requires_grad=True)
    assert_close(ag.grad(ag.det(a), a)[0], np.array([[4.0, -2.0], [-2.0, 1.0]]), 1e-5)
