"""ag.autograd.functional against derivatives written out by hand."""

import numpy as np
import pytest
from helpers import assert_close, assert_raises

import autograd as ag

D = ag.autograd.functional
A, B = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])


def outer(a, b):
    return a.unsqueeze(1) * b


def power(a, b):
    return (a**3).sum() * b.sum()


def place(device, *arrays):
    return tuple(ag.tensor(x, device=device, dtype="float32" if device == "wgpu" else "float64") for x in arrays)


def test_vjp(device):
    a, b = place(device, A, B)
    v = ag.tensor(np.arange(6.0).reshape(2, 3), device=device, dtype=a.dtype)
    y, (da, db) = D.vjp(outer, (a, b), v)
    assert_close(y, np.outer(A, B))
    assert_close(da, np.arange(6.0).reshape(2, 3) @ B)
    assert_close(db, A @ np.arange(6.0).reshape(2, 3))
    assert not (y.requires_grad or da.requires_grad or a.requires_grad)


def test_jvp(device):
    a, b = place(device, A, B)
    _, dy = D.jvp(outer, (a, b), place(device, B[:2], B))
    assert_close(dy, np.outer(B[:2], B) + np.outer(A, B))
    _, (dy, dz) = D.jvp(lambda a: (a * a, a.sum()), a, a)
    assert_close(dy, 2 * A * A)
    assert_close(dz, 3.0)


def test_jacobian(device):
    a, b = place(device, A, B)
    ja, jb = D.jacobian(outer, (a, b))
    assert_close(ja, np.einsum("ik,j->ijk", np.eye(2), B))
    assert_close(jb, np.einsum("jk,i->ijk", np.eye(3), A))
    assert_close(D.jacobian(lambda a: a.exp(), a), np.diag(np.exp(A)), 1e-5)
    first, second = D.jacobian(lambda a: (a * 2, a.sum()), a)
    assert first.shape == (2, 2) and second.shape == (2,)
    assert D.jacobian(lambda a: a[:0], a).shape == (0, 2)


def test_hessian(device):
    a, b = place(device, A, B)
    (aa, ab), (ba, bb) = D.hessian(power, (a, b))
    assert_close(aa, np.diag(6 * A) * B.sum(), 1e-5)
    assert_close(ab, np.outer(3 * A * A, np.ones(3)), 1e-5)
    assert_close(ba, np.outer(np.ones(3), 3 * A * A), 1e-5)
    assert_close(bb, np.zeros((3, 3)))
    assert_close(D.hessian(lambda a: (a**3).sum(), a), np.diag(6 * A), 1e-5)
    assert_close(D.hessian(lambda a: a.sum(), a), np.zeros((2, 2)))


@pytest.mark.parametrize("name", ["hvp", "vhp"])
def test_hessian_products(name, device):
    a, b = place(device, A, B)
    y, (u, w) = getattr(D, name)(power, (a, b), place(device, A, B))
    assert_close(y, (A**3).sum() * B.sum())
    assert_close(u, 6 * A * A * B.sum() + 3 * A * A * B.sum(), 1e-5)
    assert_close(w, np.full(3, (3 * A**3).sum()), 1e-5)


def test_create_graph(device):
    (a,) = place(device, A)
    a.requires_grad_()
    for made in (
        D.jacobian(lambda a: a**3, a, create_graph=True).sum(),
        D.vjp(lambda a: (a**3).sum(), a, create_graph=True)[1].sum(),
        D.jvp(lambda a: a**3, a, a.ones_like(), create_graph=True)[1].sum(),
    ):
        assert_close(ag.grad(made, a)[0], 6 * A, 1e-5)
    for made in (
        D.hessian(lambda a: (a**3).sum(), a, create_graph=True).sum(),
        D.hvp(lambda a: (a**3).sum(), a, a.detach().ones_like(), create_graph=True)[1].sum(),
        D.vhp(lambda a: (a**3).sum(), a, a.detach().ones_like(), create_graph=True)[1].sum(),
    ):
        assert_close(ag.grad(made, a)[0], np.full(2, 6.0), 1e-5)
    assert a.grad is None


def test_strict():
    a, b = place("cpu", A, B)
    assert_close(D.jacobian(lambda a, b: a * 2, (a, b))[1], np.zeros((2, 3)))
    for call, text in (
        (lambda: D.jacobian(lambda a, b: a * 2, (a, b), strict=True), "[jacobian] strict: the output does not depend on input 1"),
        (lambda: D.vjp(lambda a: a.detach(), a, a, strict=True), "[vjp] strict: output 0 does not require grad"),
        (lambda: D.hessian(lambda a: a.sum(), a, strict=True), "[hessian] strict:"),
        (lambda: D.jacobian(lambda a: a * 2, a, create_graph=True, strict=True), "[jacobian] strict: the derivative is constant"),
    ):
        assert_raises(RuntimeError, text, call)


def test_errors():
    a, b = place("cpu", A, B)
    for kind, text, call in (
        (RuntimeError, "[vjp] v may be left out only for the outputs of one element; got shape (2,)", lambda: D.vjp(lambda a: a, a)),
        (RuntimeError, "[jvp] v must have the shapes of the inputs, [(2,)]; got [(3,)]", lambda: D.jvp(lambda a: a, a, b)),
        (RuntimeError, "[hessian] the function must return one tensor of one element; got shapes (2,)", lambda: D.hessian(lambda a: a, a)),
        (TypeError, "[jacobian] inputs must be a Tensor or a tuple of Tensors; got float", lambda: D.jacobian(lambda a: a, 1.0)),
        (TypeError, "[jacobian] the function's result must be a Tensor", lambda: D.jacobian(lambda a: 1.0, a)),
    ):
        assert_raises(kind, text, call)
