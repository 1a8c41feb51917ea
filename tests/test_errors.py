"""Bad input: the exception's class, and a message that names the op, the rule and what came."""

import numpy as np
import pytest
from helpers import assert_raises

import autograd as ag
from autograd.op import Op, apply


def on(device, *shape, **kwargs):
    return ag.ones(*shape, device=device, **kwargs)


EVERYWHERE = {
    "shapes of +": (ValueError, "[add] sizes must be equal or 1, counted from the last dimension; got (2, 3) and (4,)", lambda d: on(d, 2, 3) + on(d, 4)),
    "shapes of -=": (ValueError, "[sub]", lambda d: on(d, 2).__isub__(on(d, 3))),
    "shapes of @": (ValueError, "[matmul] inner sizes must agree; got (3, 4) @ (5, 6). Transpose one operand?", lambda d: on(d, 3, 4) @ on(d, 5, 6)),
    "foreign operand": (TypeError, "unsupported operand", lambda d: on(d, 2) + "a"),
    "foreign argument": (TypeError, "[add] operands are tensors and numbers; got str", lambda d: ag.add(on(d, 2), "a")),
    "no tensor at all": (TypeError, "[tanh] expected a Tensor; got float", lambda d: ag.tanh(1.0)),
    "unknown dtype": (TypeError, "unknown dtype 'float8'; there are float64, float32", lambda d: ag.zeros(2, dtype="float8", device=d)),
    "complex": (TypeError, "[tensor]", lambda d: ag.tensor(1j, device=d)),
    "complex array": (TypeError, "[from_numpy] no dtype for NumPy's complex128", lambda d: ag.from_numpy(np.ones(2, complex))),
    "text": (TypeError, "[tensor] numbers, sequences of numbers, arrays and tensors become tensors; got str", lambda d: ag.tensor("text", device=d)),
    "ragged": (ValueError, "[tensor] the sequences must have equal lengths", lambda d: ag.tensor([[1, 2], [3]], device=d)),
    "negative size": (ValueError, "[full] sizes must not be negative; got (-1,)", lambda d: ag.zeros(-1, device=d)),
    "shape of floats": (TypeError, "[zeros] a shape is made of whole numbers", lambda d: ag.zeros(2.5, device=d)),
    "a Tensor of text": (TypeError, "[tensor] numbers, sequences of numbers", lambda d: ag.Tensor("text", device=d)),
    "float index": (TypeError, "[getitem] indices are integers or booleans; got autograd.float32", lambda d: on(d, 3)[on(d, 1)]),
    "float as index": (TypeError, "[getitem] indices are", lambda d: on(d, 3)[1.5]),
    "NaN in an index": (TypeError, "[getitem] indices are integers or booleans; got float64", lambda d: on(d, 3)[[float("nan")]]),
    "index out of range": (IndexError, "[getitem] index 3 is out of range for dimension 0 of shape (3,)", lambda d: on(d, 3)[3]),
    "index tensor out of range": (IndexError, "[index_select] indices must lie in [0, 2]; got 3", lambda d: on(d, 3).index_select(0, ag.tensor([0, 3], device=d))),
    "negative where none may be": (IndexError, "[gather] indices must lie in [0, 2]; got -1", lambda d: on(d, 3).gather(0, ag.tensor([-1], device=d))),
    "index of 0-d": (IndexError, "[getitem] too many indices for shape (): 1", lambda d: on(d)[0]),
    "dim out of range": (IndexError, "[sum] dim must be in [-2, 1] for a tensor of 2 dimensions; got 2", lambda d: on(d, 2, 3).sum(2)),
    "dim twice": (ValueError, "[sum] a dimension may appear once; got dim=(0, -2)", lambda d: on(d, 2, 3).sum((0, -2))),
    "dim and axis": (TypeError, "[sum] give dim or axis, not both", lambda d: on(d, 2, 3).sum(0, axis=0)),
    "max of nothing": (ValueError, "[amax] nothing to choose from", lambda d: ag.zeros(0, device=d).max()),
    "max along nothing": (ValueError, "[argmax] nothing to choose from", lambda d: ag.zeros(2, 0, device=d).max(1)),
    "item of many": (RuntimeError, "[item] only a tensor of one element is a number; got shape (2,)", lambda d: on(d, 2).item()),
    "truth of many": (RuntimeError, "[bool] the truth of a tensor of shape (2,) is ambiguous", lambda d: bool(on(d, 2))),
    "length of 0-d": (TypeError, "[len] a 0-d tensor has no length", lambda d: len(on(d))),
    "iteration of 0-d": (TypeError, "[iter] a 0-d tensor cannot be iterated", lambda d: list(on(d))),
    "float as __index__": (TypeError, "[index] only an integer tensor of one element", lambda d: [1, 2][on(d)]),
    **{f"{op} of integers": (TypeError, f"[{op}] expects floating point; got autograd.int32", lambda d, op=op, more=more: getattr(ag.nn.functional, op)(on(d, 2, 4, 3, dtype=ag.int32), *more))
       for op, more in {"layer_norm": [(3,)], "rms_norm": [(3,)], "group_norm": [2], "instance_norm": [], "batch_norm": [None, None, None, None, True]}.items()},
    "mean of integers": (TypeError, "[mean] expects floating point; got autograd.int64", lambda d: ag.arange(3, device=d).mean()),
    "difference of booleans": (TypeError, "[sub] booleans cannot be subtracted", lambda d: (on(d, 2) > 0) - (on(d, 2) > 0)),
    "integer division by 0": (ZeroDivisionError, "[floor_divide] an integer cannot be divided by zero", lambda d: ag.arange(3, device=d) // 0),
    "negative integer power": (ValueError, "[pow] integers to negative integer powers", lambda d: ag.arange(3, device=d) ** -1),
    "arange that never ends": (ValueError, "[arange] step must lead from start to end", lambda d: ag.arange(0, 3, -1, device=d)),
    "power of booleans": (TypeError, "[pow] is a function of numbers; got booleans", lambda d: (on(d, 2) > 0) ** (on(d, 2) > 0)),
    "remainder of booleans": (TypeError, "[remainder] is a function of numbers; got booleans", lambda d: (on(d, 2) > 0) % (on(d, 2) > 0)),
    "expand to -1": (ValueError, "[expand] sizes must not be negative, and -1 keeps one that is there; got () -> (-1,)", lambda d: on(d).expand(-1)),
    "minus of booleans": (TypeError, "[neg] is a function of numbers; got booleans", lambda d: -(on(d, 2) > 0)),
    "relu of booleans": (TypeError, "[relu] is a function of numbers; got booleans", lambda d: (on(d, 2) > 0).relu()),
    "tensor as generator": (TypeError, "[random] generator is an ag.Generator or None; got Tensor", lambda d: ag.poisson(on(d, 2), on(d, 2))),
    "text for a loss": (TypeError, "[l1_loss] expected a tensor; got str", lambda d: ag.nn.functional.l1_loss(on(d, 2), "mean")),
    "NaN in svd": (ag.linalg.LinAlgError, "[svd] a matrix must be finite, and 1 elements are NaN or infinite; got (2, 2) float32", lambda d: ag.svd(ag.tensor([[1, 2], [3, float("nan")]], device=d))),
    "infinity in pinv": (ag.linalg.LinAlgError, "[pinv] a matrix must be finite", lambda d: ag.pinverse(on(d, 5, 7) * float("inf"))),
    "NaN in eigh": (ag.linalg.LinAlgError, "[eigh] a matrix must be finite", lambda d: ag.linalg.eigvalsh(on(d, 2, 2) * float("nan"))),
    "randint of nothing": (ValueError, "[randint] high must be above low", lambda d: ag.randint(3, 3, (2,), device=d)),
    "unknown option": (TypeError, "unexpected keyword argument", lambda d: on(d, 2).sum(dims=0)),
    "unknown device": (ValueError, '[device] a device is "cpu", "wgpu" or "wgpu:N"; got \'cuda\'', lambda d: ag.zeros(2, device="cuda")),
    "a number as device": (TypeError, "[device] a device is a string or a Device; got int", lambda d: ag.zeros(2, device=0)),
    "backward of many": (RuntimeError, "[backward] a gradient is created by itself only for a single element; got shape (2,)", lambda d: on(d, 2, requires_grad=True).backward()),
    "list as gradient": (TypeError, "[backward] a gradient must be a Tensor or None; got list", lambda d: on(d, 2, requires_grad=True).backward([1.0])),
    "default dtype of integers": (TypeError, "[set_default_dtype] the default must be a floating point type", lambda d: ag.set_default_dtype(ag.int64)),
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_everywhere(name, device):
    kind, text, function = EVERYWHERE[name]
    assert_raises(kind, text, lambda: function(device))
    assert (on(device, 2) + 1).tolist() == [2.0, 2.0]  # the engine lives on


ON_WGPU = {
    "mixed devices": (RuntimeError, "[add] all tensors must be on one device; got wgpu:0, cpu. Move them with .to(device)", lambda d: on(d, 2) + on("cpu", 2)),
    "mixed devices in cat": (RuntimeError, "[cat] all tensors must be on one device", lambda d: ag.cat([on(d, 2), on("cpu", 2)])),
    "mixed devices in setitem": (RuntimeError, "[setitem] value and tensor must be on one device", lambda d: on(d, 2).__setitem__(0, on("cpu", 1))),
    "gradient elsewhere": (RuntimeError, "[backward] the gradient must be on its tensor's device; got cpu for wgpu:0", lambda d: on(d, 2, requires_grad=True).backward(on("cpu", 2))),
    "float64": (TypeError, "float64", lambda d: ag.zeros(2, dtype=ag.float64, device=d)),
    "float64 by moving": (TypeError, "float64", lambda d: ag.zeros(2, dtype=ag.float64).to(d)),
    "float64 by casting": (TypeError, "float64", lambda d: on(d, 2).double()),
    "integers beyond 32 bits": (OverflowError, "32 bits", lambda d: ag.tensor([2**40], device=d)),
    "too many to place": (ValueError, "buffers hold at most", lambda d: ag.arange(2**31 - 1, device=d)),
    "too many parts": (ValueError, "32 bits", lambda d: ag.nn.functional.adaptive_max_pool1d(on(d, 2, 3, 5), 2**31 - 1)),
    "too large an image": (ValueError, "32 bits", lambda d: ag.nn.functional.interpolate(on(d, 2, 3, 5), size=2**31 - 1)),
    "no such adapter": (RuntimeError, "wgpu:9", lambda d: ag.zeros(2, device="wgpu:9")),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_WGPU)
def test_on_wgpu(name, wgpu):
    kind, text, function = ON_WGPU[name]
    assert_raises(kind, text, lambda: function(wgpu))
    assert (on(wgpu, 2) + 1).tolist() == [2.0, 2.0]


def test_float64_on_wgpu_suggests_float32(wgpu):
    assert_raises(TypeError, "float32", lambda: ag.zeros(2, dtype=ag.float64, device=wgpu))


def test_op_without_a_kernel_says_so(wgpu):
    class Lonely(Op):
        name, numpy = "lonely", staticmethod(np.tanh)

    assert_raises(NotImplementedError, '[lonely] has no WGSL kernel; move its inputs with .to("cpu")', lambda: apply(Lonely, on(wgpu, 2)))
