"""Views and in-place changes: shared memory, versions, and gradients that know what was overwritten."""

import numpy as np
import pytest
from helpers import array, assert_raises

import autograd as ag


def leaf(data, device="cpu"):
    return ag.tensor(data, device=device, requires_grad=True)


def grid(device="cpu"):
    return ag.arange(12, device=device).float().reshape(3, 4)


VIEWS = {
    "slice": lambda x: x[1:, ::2],
    "row": lambda x: x[1],
    "element": lambda x: x[2, 3],
    "transpose": lambda x: x.t(),
    "reshape": lambda x: x.reshape(2, 6),
    "flatten": lambda x: x.flatten(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[None].squeeze(0),
    "expand": lambda x: x[:, :1].expand(3, 5),
    "permute": lambda x: x.view(3, 2, 2).permute(2, 0, 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "split": lambda x: x.split(2)[1],
    "unbind": lambda x: x.unbind(1)[3],
    "detach": lambda x: x.detach(),
    "view of a view": lambda x: x.t()[1:].reshape(3, 3)[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_show_the_same_memory(name, device):
    x = grid(device)
    v = VIEWS[name](x)
    x.mul_(10)
    assert array(v).tolist() == array(VIEWS[name](grid(device) * 10)).tolist()
    assert v._version == x._version == 1
    if name != "expand":
        v.fill_(-1)
        assert (array(x) == -1).sum() == v.numel()
        assert x._version == 2


COPIES = {
    "clone": lambda x: x.clone(),
    "integers": lambda x: x[[0, 2]],
    "mask": lambda x: x[x > 3],
    "cast": lambda x: x.to(ag.float16),
    "contiguous transpose": lambda x: x.t().contiguous(),
    "reshape that must copy": lambda x: x.t().reshape(12),
    "flip": lambda x: x.flip(0),
    "cat": lambda x: ag.cat([x]),
    "index_select": lambda x: x.index_select(0, ag.tensor([0], device=x.device)),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not(name, device):
    x = grid(device)
    before = COPIES[name](x)
    kept = array(before).copy()
    x.zero_()
    assert array(before).tolist() == kept.tolist() and before._version == 0


def test_to_and_contiguous_give_the_tensor_itself():
    x = grid()
    assert x.to(ag.float32) is x and x.contiguous() is x and x.cpu() is x and x.float() is x
    assert x.to(ag.float32, copy=True) is not x
    assert_raises(RuntimeError, "[view]", lambda: x.t().view(12))


def test_numpy_shares_memory_both_ways():
    a = np.zeros((2, 3), np.float32)
    x = ag.from_numpy(a)
    a[0, 0] = 5
    x[1] = 7
    assert x[0, 0].item() == 5 and a[1].tolist() == [7, 7, 7]
    assert x.numpy() is not None and np.shares_memory(x.numpy(), a) and np.shares_memory(np.asarray(x[0]), a)
    assert not np.shares_memory(array(ag.tensor(a)), a)
    strange = ag.from_numpy(a[::-1, ::-2])  # PyTorch refuses negative strides
    assert strange.tolist() == [[7.0, 7.0], [0.0, 5.0]]


# -- versions -----------------------------------------------------------------------------------------------

OVERWRITTEN = {
    "operand": lambda x, w: (x * w, lambda: x.add_(1)),
    "operand through a view": lambda x, w: (x * w, lambda: x[0].zero_()),
    "saved view, base changed": lambda x, w: (x.t()[0] * w[0, :3], lambda: x.add_(1)),
    "saved view, other view changed": lambda x, w: (x[0] * w, lambda: x[1].add_(1)),
    "view of a view": lambda x, w: (x.t()[0] * w[0, :3], lambda: x.reshape(12)[0:2].mul_(2)),
    "detached twin": lambda x, w: (x * w, lambda: x.detach().add_(1)),
    "setitem": lambda x, w: (x * w, lambda: x.__setitem__((0, 0), 9)),
    "copy_": lambda x, w: (x * w, lambda: x.copy_(w.detach())),
    "augmented": lambda x, w: (x * w, lambda: x.__iadd__(1)),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_overwritten_operand_is_caught(name, device):
    x, w = grid(device), leaf(np.ones((3, 4), np.float32), device)
    y, change = OVERWRITTEN[name](x, w)
    change()
    with pytest.raises(RuntimeError, match=r"\[mul\] a tensor of shape .* was changed in place: it is at version 1, expected 0"):
        y.sum().backward()
    assert w.grad is None


@pytest.mark.parametrize("function", [lambda x: x.exp(), lambda x: x.tanh(), lambda x: x.softmax(1), lambda x: x.sqrt(), lambda x: x.relu()])
def test_overwritten_output_is_caught(function, device):
    x = leaf(np.ones((2, 3), np.float32), device)
    y = function(x)
    y[0, 0] = 2
    assert_raises_version(y)


def assert_raises_version(y):
    with pytest.raises(RuntimeError, match="that its gradient needs was changed in place: it is at version"):
        y.sum().backward()


def test_harmless_changes_are_not(device):
    x = leaf([1.0, 2.0, 3.0], device)
    y = x + 1
    y[1] = 2.0
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0, 3.0]
    w = ag.ones(3, device=device)
    z = x * w.clone()
    w.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [4.0, 1.0, 4.0]
    c = ag.ones(3, device=device)
    s = (x.detach() * c).sum() + x.sum()
    c.zero_()
    s.backward()


# -- gradients through in-place changes: the values are PyTorch's --------------------------------------------


def step(x):
    return x * 1  # an inner tensor: leaves that require grad are not changed in place


def on_a_view(x):
    y = step(x)
    y[0].mul_(10)
    return y


def on_a_base(x):
    y = step(x)
    v = y[0]
    y.mul_(10)
    return v * 2


def on_a_view_of_a_view(x):
    y = step(x)
    v = y.t()[1:]
    w = v[0]
    w.mul_(5)
    v.add_(1)
    return y.sum(0) + v.sum() + w.sum()


def overwrite(x):
    y = step(x)
    y[:, 1] = y[:, 0] * 3
    return y


def overwrite_with_leaf(x):
    y = ag.zeros(2, 3, device=x.device)
    y[1] = x[0]
    y[0, 1:] = x[1, :2]
    y += 1
    return y * y.detach()


def masked(x):
    y = step(x)
    y[y.detach() > 2] = 0.5
    y[[0, 1], [0, 2]] = x[0, :2] * 7
    return y


def sibling(x):
    y = step(x)
    a, b = y[0], y[1]
    a.add_(b * 2)
    b.zero_()
    return y * 3 + a


def chain(x):
    y = step(x)
    y.add_(1).mul_(2).sub_(x).div_(4)
    y.clamp_(-1, 1)
    y.masked_fill_(y.detach() > 0.9, 0)
    return y


def copied(x):
    y = ag.empty(2, 3, device=x.device)
    y.copy_(x * 2)
    y.t()[2].copy_(x[:, 0])
    return y


def wholly_from_the_leaf(x):
    y, z = ag.empty(2, 3, device=x.device), x * 2
    y.copy_(x)
    z[:] = x
    assert y.grad_fn is not None and z.grad_fn is not None
    return y * z


def unary_in_place(x):
    y = x * 0.5
    y.exp_()
    z = y * 1
    z.neg_()
    z.relu_()
    return y + z


PROGRAMS = {
    # program: d(sum of program(x) * weights)/dx at x = [[1, 2, 3], [4, 5, 6]], weights 1, 2, 3, … in order
    on_a_view: [[10.0, 20.0, 30.0], [4.0, 5.0, 6.0]],
    on_a_base: [[20.0, 40.0, 60.0], [0.0, 0.0, 0.0]],
    on_a_view_of_a_view: [[1.0, 70.0, 9.0], [1.0, 70.0, 9.0]],
    overwrite: [[7.0, 0.0, 3.0], [19.0, 0.0, 6.0]],
    overwrite_with_leaf: [[8.0, 15.0, 24.0], [10.0, 18.0, 0.0]],
    masked: [[7.0, 44.0, 0.0], [0.0, 0.0, 0.0]],
    sibling: [[8.0, 13.0, 18.0], [16.0, 26.0, 36.0]],
    chain: [[0.25, 0.0, 0.0], [0.0, 0.0, 0.0]],
    copied: [[5.0, 4.0, 0.0], [14.0, 10.0, 0.0]],
    wholly_from_the_leaf: [[2.0, 8.0, 18.0], [32.0, 50.0, 72.0]],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_through_in_place_changes(program, device):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device)
    y = program(x)
    weights = ag.arange(1, y.numel() + 1, device=device).float().reshape(y.shape)
    (y * weights).sum().backward()
    assert x.grad.tolist() == PROGRAMS[program]


def test_unary_functions_in_place(device):
    x = leaf([1.0, -2.0], device)
    y = unary_in_place(x)
    y.sum().backward()
    np.testing.assert_allclose(array(y), np.exp([0.5, -1.0]), rtol=1e-5)
    np.testing.assert_allclose(array(x.grad), 0.5 * np.exp([0.5, -1.0]), rtol=1e-5)


def test_in_place_keeps_identity_and_history():
    x = leaf([1.0])
    y = x * 2
    alias = y
    y += 1
    assert y is alias and not y.is_leaf
    assert ag.ones(1).add_(x).requires_grad


def test_created_graph_runs_through_in_place_changes(device):
    x = leaf([1.0, 2.0], device)
    y = x * x
    y[0] = x[0] ** 3 * 2
    (g,) = ag.grad(y.sum(), x, create_graph=True)  # y = [2 x0^3, x1^2]
    (h,) = ag.grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([6.0, 4.0], [12.0, 2.0])


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, text, function", [
    (RuntimeError, "[add_] a leaf that requires grad cannot be changed in place while recording", lambda x, w: w.add_(1)),
    (RuntimeError, "[zero_] a leaf that requires grad", lambda x, w: w[0].zero_()),
    (RuntimeError, "[setitem] a leaf that requires grad", lambda x, w: w.__setitem__(0, 1)),
    (RuntimeError, "[add_] elements of an expanded tensor share memory", lambda x, w: x[:1].expand(3, 4).add_(1)),
    (ValueError, "[add_] the result must have the tensor's own shape; got (3, 4) for (4,)", lambda x, w: x[0].clone().add_(x)),
    (TypeError, "[add_] a result of autograd.float32 cannot be stored in autograd.int64", lambda x, w: x.long().add_(0.5)),
    (TypeError, "[div_] a result of", lambda x, w: x.long().div_(2)),
    (ValueError, "[copy_] the value must broadcast", lambda x, w: x.copy_(x[0, :3])),
])  # fmt: skip
def test_refused_changes_change_nothing(kind, text, function, device):
    x, w = grid(device), leaf(np.ones((3, 4), np.float32), device)
    assert_raises(kind, text, lambda: function(x, w))
    assert x.tolist() == grid().tolist() and w.tolist() == [[1.0] * 4] * 3
    assert x._version == w._version == 0


def test_read_only_memory_is_refused():
    a = np.ones(3, np.float32)
    a.flags.writeable = False
    assert_raises(RuntimeError, "[add_] the memory is read-only", lambda: ag.from_numpy(a).add_(1))


def test_leaves_are_trained_under_no_grad(device):
    w = leaf([1.0, 2.0], device)
    (w * w).sum().backward()
    with ag.no_grad():
        w -= 0.1 * w.grad
    assert w.is_leaf and w.requires_grad
    np.testing.assert_allclose(array(w), [0.8, 1.6], rtol=1e-6)


def test_empty_tensors_can_be_changed(device):
    assert ag.zeros(2, 0, 3, device=device).add_(1).shape == (2, 0, 3)
    x = ag.zeros(3, device=device)
    x[3:] = 1
    x[[]] = 2
    x[x > 5] = 3
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_a_view_made_under_no_grad_is_not_changed_while_recording(device):
    x, w = grid(device) + 0.0, leaf([1.0, 2.0, 3.0, 4.0], device)
    with ag.no_grad():
        v = x[1]
    assert_raises(RuntimeError, "[mul_] a view made under no_grad", lambda: v.mul_(w))
    assert_raises(RuntimeError, "[mul_] a view made under no_grad", lambda: v[:2].mul_(w[:2]))
    v.mul_(2)  # nothing is recorded: nothing can be missed
    assert array(x)[1].tolist() == [8, 10, 12, 14]


def test_nor_is_one_of_what_is_recorded(device):
    """Even by what is not recorded itself: the base's gradient would still be that of its old value."""
    x = leaf([1.0, 2.0], device)
    y = x * 2
    with ag.no_grad():
        v, w = y[:1], x[:1]
    for view in (v, v[:1], w):
        assert_raises(RuntimeError, "[mul_] a view made under no_grad", lambda view=view: view.mul_(3))
        assert_raises(RuntimeError, "[mul_] a view made under no_grad", lambda view=view: view.mul_(view.detach()))
        assert_raises(RuntimeError, "[setitem] a view made under no_grad", lambda view=view: view.__setitem__(0, 3.0))
    with ag.no_grad():
        w.mul_(3)  # what optimizers do
    y.detach()[:1].mul_(3)  # as in PyTorch, detach() is for those who know
    assert x.tolist() == [3.0, 2.0] and y.tolist() == [6.0, 4.0]


@pytest.mark.parametrize("copy", [lambda y, t: y.copy_(t), lambda y, t: y.__setitem__(slice(None), t)])
def test_a_copy_in_place_is_not_the_tensor_it_came_from(copy, device):
    x = leaf([1.0, 2.0], device)
    t, y = x * 2, x * 3
    copy(y, t)
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (t * 5 + y * 7).sum().backward()
    assert y.grad.tolist() == [70.0, 70.0] and x.grad.tolist() == [150.0, 150.0]


@pytest.mark.parametrize("change", [lambda y: y.mul_(3), lambda y: y[:].mul_(3), lambda y: y.__setitem__(slice(None), y * 3)])
def test_retain_grad_is_about_the_tensor_and_hooks_about_its_value(change, device):
    x = leaf([1.0, 2.0], device)
    y = x * 2
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    change(y)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0] and seen == [[15.0, 15.0]] and x.grad.tolist() == [30.0, 30.0]
