"""PyTorch's older and rarer words: functions that change their argument, the dimension nobody gave, norms, stacked datasets."""

import math

import numpy as np
import pytest
from helpers import assert_close, assert_raises

import autograd as ag
from autograd import nn
from autograd.nn import functional as F


def close(got, want, tolerance=1e-5):
    assert_close(got, np.asarray(want, np.float64), tolerance)


def test_arguments_by_name(device):
    x = ag.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    close(F.linear(input=x, weight=x, bias=x[0]), [[6, 13], [12, 27]])
    close(F.softmax(input=x, dim=-1), [[1 / (1 + math.e), math.e / (1 + math.e)]] * 2)
    close(F.log_softmax(input=x, dim=1).exp(), [[1 / (1 + math.e), math.e / (1 + math.e)]] * 2)
    assert ag.pow(x, exponent=2).tolist() == x.pow(exponent=2).tolist() == [[1, 4], [9, 16]]
    assert ag.pow(input=2, exponent=x)[1].tolist() == [8, 16]


def test_functions_that_change_their_argument(device):
    x = ag.tensor([-2.0, 0.5, 3.0], device=device)
    for function, args, want in (
        (ag.clamp_, (-1.0, 2.0), [-1, 0.5, 2]), (ag.relu_, (), [0, 0.5, 2]), (ag.sqrt_, (), [0, math.sqrt(0.5), math.sqrt(2)]),
        (ag.square_, (), [0, 0.5, 2]), (ag.neg_, (), [0, -0.5, -2]), (ag.exp_, (), [1, math.exp(-0.5), math.exp(-2)]),
    ):  # fmt: skip
        assert function(x, *args) is x
        close(x, want)
    y = ag.ones(2, device=device, requires_grad=True) * 2
    assert ag.detach_(y) is y and y.is_leaf and not y.requires_grad


@pytest.mark.parametrize("shape, dim", [((), 0), ((3,), 0), ((2, 3), 1), ((2, 3, 2), 0), ((1, 3, 2, 2), 1)])
def test_the_dimension_that_nobody_gave(shape, dim, device):
    x = ag.arange(math.prod(shape), dtype=ag.float32, device=device).reshape(*shape)
    for module, function in ((nn.Softmax, F.softmax), (nn.LogSoftmax, F.log_softmax), (nn.Softmin, F.softmin)):
        for call in (module(), function):
            with pytest.warns(UserWarning, match=f"no dim was given; dim={dim} is taken"):
                y = call(x)
            assert ag.equal(y, module(dim)(x))
    assert repr(nn.Softmax()) == "Softmax(dim=None)"


def test_norms_of_many(device):
    parts = [ag.tensor([3.0], device=device), ag.tensor([[-4.0, 12.0]], device=device)]
    close(nn.utils.get_total_norm(parts), 13)
    close(nn.utils.get_total_norm(iter(parts), 1.0), 19)
    close(nn.utils.get_total_norm(parts[1], math.inf), 12)
    assert nn.utils.get_total_norm([]).item() == 0
    broken = [parts[0] / 0]
    assert nn.utils.get_total_norm(broken).item() == math.inf
    assert_raises(RuntimeError, "[get_total_norm] the norm is inf", lambda: nn.utils.get_total_norm(broken, error_if_nonfinite=True))
    p, free = nn.Parameter(ag.zeros(2, device=device)), nn.Parameter(ag.zeros(1, device=device))
    p.grad = ag.tensor([6.0, 8.0], device=device)
    total = nn.utils.get_total_norm([p.grad])
    nn.utils.clip_grads_with_norm_([p, free], 5.0, total)
    close(p.grad, [3, 4])
    nn.utils.clip_grads_with_norm_(p, 50.0, total)  # already below
    close(p.grad, [3, 4])


def test_datasets_side_by_side():
    images, labels = ag.data.TensorDataset(ag.arange(6.0).reshape(3, 2)), [5, 6, 7]
    pairs = ag.utils.data.StackDataset(images, labels)
    assert len(pairs) == 3 and pairs[1][0][0].tolist() == [2, 3] and pairs[1][1] == 6
    named = ag.data.StackDataset(x=[1.0, 2.0, 3.0], y=labels)
    assert named[2] == {"x": 3.0, "y": 7}
    (batch,) = ag.data.DataLoader(named, batch_size=3)
    assert batch["x"].tolist() == [1, 2, 3] and batch["y"].tolist() == labels
    assert_raises(ValueError, "[StackDataset] datasets must have one length; got [3, 2]", lambda: ag.data.StackDataset(labels, [1, 2]))
    for wrong in (lambda: ag.data.StackDataset(), lambda: ag.data.StackDataset(labels, y=labels)):
        assert_raises(ValueError, "[StackDataset] give datasets either in order or by name", wrong)


def test_older_paths():
    from autograd.nn.modules import Linear
    from autograd.nn.modules.module import Module

    assert Linear is nn.Linear is nn.modules.Linear and Module is nn.Module is nn.modules.module.Module
    assert all(issubclass(kind, nn.RNNBase) for kind in (nn.RNN, nn.LSTM, nn.GRU)) and not issubclass(nn.GRUCell, nn.RNNBase)
    assert_raises(TypeError, "[RNNBase] has no cell of its own", lambda: nn.RNNBase(1, 2))


def test_how_tensors_print():
    x = ag.arange(8.0) / 7
    try:
        ag.set_printoptions(precision=2, threshold=5, edgeitems=2)
        assert repr(x) == "tensor([0.00, 0.14, ..., 0.86, 1.00])"
        ag.set_printoptions(sci_mode=True)
        assert repr(x[:2]) == "tensor([0.00e+00, 1.43e-01])" and repr(ag.ones(1)) == "tensor([1.00e+00])"
        ag.set_printoptions(profile="short")
        assert repr(x[:2] * 1e-6) == "tensor([0.00e+00, 1.43e-07])"
        ag.set_printoptions(sci_mode=False)
        assert repr(x[:2] * 1e-6) == "tensor([0.00, 0.00])"
        ag.set_printoptions(profile="full", linewidth=30)
        assert repr(ag.zeros(2000)).count("0.") == 2000 and max(map(len, repr(ag.zeros(2000)).split("\n"))) <= 30
        assert_raises(ValueError, "[set_printoptions] profile is one of default, short, full", lambda: ag.set_printoptions(profile="long"))
    finally:
        ag.set_printoptions(profile="default")
    assert repr(x[:2]) == "tensor([0.0000, 0.1429])" and repr(ag.zeros(1)) == "tensor([0.])"
