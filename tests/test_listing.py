"""ag.tape(loss): what was recorded, as a list and as a table."""

from helpers import array, assert_raises

import autograd as ag


def leaf(*values, device="cpu"):
    return ag.tensor(list(values), device=device, requires_grad=True)


def test_tape_lists_what_was_recorded(device):
    x, w = leaf(1.0, 2.0, device=device), ag.tensor([[1.0], [2.0]], device=device, requires_grad=True)
    loss = ((x * w).exp() * 2).sum()
    tape = ag.tape(loss, w=w)
    assert [(e.op, e.inputs, e.shape) for e in tape] == [
        ("mul", ("leaf0 (2,)", "w"), (2, 2)), ("exp", (0,), (2, 2)), ("mul", (1, None), (2, 2)), ("sum", (2,), ()),
    ]  # fmt: skip
    assert [e.saved for e in tape] == [16, 16, 0, 0] and tape.saved == 32
    assert all(e.dtype is ag.float32 and e.device == device for e in tape)
    lines = repr(tape).splitlines()
    assert lines[0].split() == ["#", "op", "inputs", "shape", "dtype", "device", "saved"]
    assert lines[2].split()[:3] == ["1", "exp", "#0"] and len(lines) == 6
    loss.backward()
    assert ag.tape(loss).saved == 0


def test_tape_counts_a_shared_tensor_once_and_lists_outputs_of_one_op():
    x = leaf(1.0, 2.0)
    assert ag.tape((x * x * x).sum()).saved == 16  # x, and x * x
    assert list(ag.tape(x)) == [] and repr(ag.tape(x)) == "nothing was recorded"
    assert_raises(TypeError, "[tape] expected a Tensor; got int", lambda: ag.tape(3))


def test_tape_of_a_deep_graph():
    y = leaf(1.0)
    for _ in range(5_000):
        y = y * 1.0
    tape = ag.tape(y)
    assert len(tape) == 5_000 and tape[-1].inputs == (4_998, None)


def test_the_module_is_still_importable():
    from autograd.tape import Node

    assert isinstance(leaf(1.0).exp().grad_fn, Node) and array(leaf(1.0)).tolist() == [1.0]
