"""Other libraries' functions that meet our tensors. PyTorch is not needed: its protocol is called as it would call it."""

import copy

import numpy as np
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


def test_dlpack_shares_memory():
    ours = ag.arange(3.0)
    theirs = np.from_dlpack(ours)
    theirs[0] = 7
    assert ours[0].item() == 7 and ours.__dlpack_device__() == (1, 0)
    source = np.arange(6, dtype=np.int32).reshape(2, 3).T
    back = ag.from_dlpack(source)
    source[0, 0] = 9
    assert back.dtype is ag.int32 and back.tolist() == source.tolist()
    assert ag.from_dlpack(ours).array.ctypes.data == ours.array.ctypes.data
    assert ag.from_dlpack(ours, copy=True).array.ctypes.data != ours.array.ctypes.data


def test_dlpack_errors(wgpu):
    x = ag.ones(2)
    for kind, text, call in (
        (BufferError, "[dlpack] only CPU memory is shared", lambda: x.to(wgpu).__dlpack__()),
        (BufferError, "[dlpack] only CPU memory is shared", lambda: x.to(wgpu).__dlpack_device__()),
        (BufferError, "[dlpack] NumPy, which shares the memory, has no bfloat16; pass .float()", lambda: x.bfloat16().__dlpack__()),
        (BufferError, "[dlpack] the tensor requires grad", lambda: ag.ones(2, requires_grad=True).__dlpack__()),
        (TypeError, "[from_dlpack] expected an array with __dlpack__; got list", lambda: ag.from_dlpack([1.0])),
        (ValueError, "[from_dlpack] memory is shared on the CPU", lambda: ag.from_dlpack(np.ones(2), device="wgpu")),
        (TypeError, "[from_numpy]", lambda: ag.from_dlpack(np.ones(2, complex))),
    ):
        assert_raises(kind, text, call)


def test_arrays_beside_tensors():
    x = ag.tensor([1.0, 2.0], requires_grad=True)
    for y in (np.ones(2) * x, x * np.ones(2), np.ones(2) + x, np.ones(2) - x, np.ones(2) < x):
        assert isinstance(y, ag.Tensor)
    assert (np.ones(2) * x).dtype is ag.float64 and (np.float64(2) * x).dtype is ag.float32
    (np.full(2, 3.0) * x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with ag.no_grad():
        assert np.asarray(x).tolist() == [1, 2]
    assert_raises(RuntimeError, "[numpy] the tensor requires grad", x.numpy)


def test_copy_shares_memory_and_history(device):
    x = ag.tensor([1.0, 2.0], device=device, requires_grad=True)
    twin = copy.copy(x)
    assert twin is not x and twin.requires_grad and twin.is_leaf
    with ag.no_grad():
        twin[0] = 5
    assert x.tolist() == [5, 2] and x._version == 1
    copy.copy(x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
    p = copy.copy(ag.nn.Parameter(ag.ones(2)))
    assert type(p) is ag.nn.Parameter and copy.copy(x[:1]).tolist() == [5]


class TransformerEncoderLayer:
    """PyTorch's layer, as far as its twin is made from it."""

    def __init__(self, source):
        self.self_attn, self.linear1, self.dropout, self.norm1 = source.self_attn, source.linear1, source.dropout, source.norm1
        self.norm_first, self.training, self.activation = True, False, named("gelu")
        self.state_dict = source.state_dict


def test_pytorchs_transformer_layer_is_taken_over():
    source = ag.nn.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu", norm_first=True, batch_first=True).double().eval()
    x = ag.ones(2, 3, 4, dtype="float64")
    assert array(ag.nn.TransformerEncoder(TransformerEncoderLayer(source), 1)(x)).tolist() == array(source(x)).tolist()
