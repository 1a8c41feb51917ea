"""Other libraries' functions that meet our tensors. PyTorch is not needed: its protocol is called as it would call it."""

from helpers import array, assert_raises

import autograd as ag


def named(name):
    """A function of PyTorch's, as far as the protocol sees it."""
    function = lambda *args: None
    function.__name__ = name
    return function


def test_pytorchs_functions_run_ours(device):
    x = ag.tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)
    call = ag.Tensor.__torch_function__
    y = call(named("softmax"), (ag.Tensor,), (x, 1), {"_stacklevel": 3, "dtype": None})
    assert array(y).tolist() == array(ag.softmax(x, 1)).tolist() and y.requires_grad
    assert array(call(named("mse_loss"), (), (x, x))).item() == 0
    assert abs(array(call(named("det"), (), (x.cpu(),))).item() + 2) < 1e-6
    assert_raises(TypeError, "[fft] PyTorch's function has no twin here", lambda: call(named("fft"), (), (x,)))
