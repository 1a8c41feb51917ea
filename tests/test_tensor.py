"""The tensor as a Python object: printing, conversion, protocols, and PyTorch's dtype rules (constants from PyTorch)."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers import array, assert_raises

import autograd as ag

# -- printing -----------------------------------------------------------------------------------------------

REPRS = {
    "tensor([1., 2.])": lambda: ag.tensor([1.0, 2.0]),
    "tensor([ 1.5000, -2.2500,  3.0000])": lambda: ag.tensor([1.5, -2.25, 3.0]),
    "tensor(2.5000)": lambda: ag.tensor(2.5),
    "tensor(3)": lambda: ag.tensor(3),
    "tensor(True)": lambda: ag.tensor(True),
    "tensor([True])": lambda: ag.tensor([True]),
    "tensor([ True, False])": lambda: ag.tensor([True, False]),
    "tensor([[  1, -20],\n        [300,   4]])": lambda: ag.tensor([[1, -20], [300, 4]]),
    "tensor([1.0000, 0.5000], dtype=autograd.float64)": lambda: ag.tensor([1.0, 0.5], dtype=ag.float64),
    "tensor([1.0000, 0.1000], dtype=autograd.float16)": lambda: ag.tensor([1.0, 0.1], dtype=ag.float16),
    "tensor([  1, 255], dtype=autograd.uint8)": lambda: ag.tensor([1, 255], dtype=ag.uint8),
    "tensor([])": lambda: ag.zeros(0),
    "tensor([], size=(2, 0))": lambda: ag.zeros(2, 0),
    "tensor([], size=(2, 0), dtype=autograd.int64)": lambda: ag.zeros(2, 0, dtype=ag.int64),
    "tensor([1.0000e-06, 1.0000e+00])": lambda: ag.tensor([1e-6, 1.0]),
    "tensor([1.0000e+09, 1.0000e+00])": lambda: ag.tensor([1e9, 1.0]),
    "tensor([    inf, -1.5000])": lambda: ag.tensor([float("inf"), -1.5]),
    "tensor([1.], requires_grad=True)": lambda: ag.tensor([1.0], requires_grad=True),
    "tensor([2.], grad_fn=<MulBackward>)": lambda: ag.tensor([1.0], requires_grad=True) * 2,
    "tensor([12345678901])": lambda: ag.tensor([12345678901]),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text):
    assert repr(REPRS[text]()) == text


def test_repr_of_long_tensors_is_short(device):
    x = ag.arange(2000, device=device)
    assert len(repr(x)) < 100 and "..., 1997, 1998, 1999]" in repr(x)
    assert ("device='wgpu:0'" in repr(x)) == (device == "wgpu")
    assert repr(ag.zeros(40, 40)).count("...") == 7


# -- conversion ---------------------------------------------------------------------------------------------


def test_numbers(device):
    one = ag.tensor([[2.5]], device=device)
    assert (one.item(), float(one), int(one), bool(one)) == (2.5, 2.5, 2, True)
    assert ag.tensor([[1, 2], [3, 4]], device=device).tolist() == [[1, 2], [3, 4]]
    assert isinstance(ag.tensor(3, device=device).item(), int) and ag.tensor(True, device=device).item() is True
    assert not ag.tensor(0.0, device=device) and ag.tensor(2.5, device=device).tolist() == 2.5
    assert f"{ag.tensor(2.5, device=device):.2f}" == "2.50" and f"{ag.tensor([1.0])}" == "tensor([1.])"
    assert f"{ag.tensor(2.5, device=device)} {ag.tensor(True)}" == "2.5 True"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(ag.tensor([2.5], device=device), ".2f")
    assert [10, 20, 30][ag.tensor(1, device=device)] == 20 and list(range(ag.tensor(2))) == [0, 1]


def test_length_iteration_membership_and_hash():
    x = ag.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert len(x) == 2 and [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    first, _ = x
    (first * 3).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [0.0, 0.0]]
    a, b = ag.tensor([1.0]), ag.tensor([1.0])
    assert len({a, b}) == 2 and {a: "found"}[a] == "found" and a in [b, a]
    assert ag.tensor([1.0]) in [ag.tensor([1.0])]  # one element: its truth is its value, as in PyTorch
    assert (a == None) is False and (a != None) is True  # noqa: E711
    assert 2.0 in ag.tensor([1.0, 2.0]) and 5 not in ag.tensor([1.0, 2.0])
    assert_raises(TypeError, "[in] a tensor contains numbers; asked for a NoneType", lambda: None in a)
    assert (+x).tolist() == x.tolist() and (+x).requires_grad
    assert (1 << ag.tensor([3])).tolist() == (65 >> ag.tensor([3])).tolist() == [8]


def test_shape_queries():
    x = ag.zeros(2, 3, 4).permute(2, 0, 1)
    assert x.shape == x.size() == (4, 2, 3) and x.size(-1) == 3 and x.stride() == (1, 12, 4) and x.stride(0) == 1
    assert (x.ndim, x.dim(), x.numel(), x.itemsize, x.nbytes) == (3, 3, 24, 4, 96)
    assert not x.is_contiguous() and x.contiguous().is_contiguous() and x.is_floating_point()
    assert x.T.shape == (3, 2, 4) and x.mT.shape == (4, 3, 2)


def test_numpy_works_with_tensors():
    x = ag.tensor([1.0, 2.0])
    assert np.asarray(x).dtype == np.float32 and np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.shares_memory(np.asarray(x), x.array) and not np.shares_memory(np.array(x), x.array)
    assert_raises(ValueError, "[array] copy=False", lambda: np.array(x, dtype=np.float64, copy=False))
    assert_raises(ValueError, "[array] copy=False", lambda: np.array(x.bfloat16(), copy=False))
    assert np.shares_memory(np.array(x, copy=False), x.array)
    turned = ag.tensor([1.0, 2.0], requires_grad=True)
    for y in (np.eye(2, dtype=np.float32)[::-1] @ turned, turned @ np.eye(2, dtype=np.float32)[::-1]):
        assert isinstance(y, ag.Tensor) and y.tolist() == [2.0, 1.0] and y.requires_grad
    left = np.float32(2) * x
    assert isinstance(left, ag.Tensor) and left.tolist() == [2.0, 4.0]
    assert isinstance(np.float64(2) * x, ag.Tensor) and (np.float64(2) * x).dtype is ag.float32
    assert_raises(RuntimeError, "[numpy] the tensor requires grad", lambda: np.asarray(x.clone().requires_grad_()))
    user = np.geterr()
    with np.errstate(all="raise"):
        assert (x / 0).isinf().all() and ag.tensor([-1.0]).sqrt().isnan().all()
    assert np.geterr() == user


def test_pickle_and_deepcopy(device):
    x = ag.tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)
    (x * x).sum().backward()
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert twin.tolist() == x.tolist() and twin.requires_grad and twin.device == device and twin.is_leaf
        with ag.no_grad():
            twin.zero_()
        assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    twin = copy.deepcopy({"a": x, "b": x})
    assert twin["a"] is twin["b"] and twin["a"].grad.tolist() == x.grad.tolist() and twin["a"].grad is not x.grad
    view = x.detach().t()[0]
    assert pickle.loads(pickle.dumps(view)).tolist() == copy.deepcopy(view).tolist() == [1.0, 3.0]
    assert_raises(RuntimeError, "[deepcopy] only leaves", lambda: copy.deepcopy(x * 2))
    x.note = ["kept"]
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert twin.note == ["kept"]
    assert twin.note is not x.note
    assert pickle.loads(pickle.dumps(ag.float16)) is ag.float16 and copy.deepcopy(ag.float16) is ag.float16


# -- making tensors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data, dtype, values", [
    (1.5, "float32", 1.5), (2, "int64", 2), (True, "bool", True), ([], "float32", []), ([1, 2.5], "float32", [1.0, 2.5]),
    ([True, 2], "int64", [1, 2]), (((1, 2), [3, 4]), "int64", [[1, 2], [3, 4]]), (range(3), "int64", [0, 1, 2]),
    (np.float64(2), "float64", 2.0), (np.arange(2, dtype=np.int32), "int32", [0, 1]), (np.ones(1, ">f4"), "float32", [1.0]),
])  # fmt: skip
def test_tensor_from_data(data, dtype, values, device):
    if dtype == "float64" and device == "wgpu":
        assert_raises(TypeError, "float64", lambda: ag.tensor(data, device=device))
        return
    x = ag.tensor(data, device=device)
    assert (x.dtype.name, x.tolist()) == (dtype, values)
    assert ag.tensor([x, x] if x.ndim else x, device=device).tolist() == ([values, values] if x.ndim else values)


@pytest.mark.parametrize(("data", "dtype"), [
    ([300], "uint8"), ([-256], "uint8"), (2**31, "int32"), (2**63, "int64"), ([2**63], None), ([float("nan")], "int64"), (1e20, "int64"),
])  # fmt: skip
def test_numbers_that_do_not_fit_are_refused(data, dtype, device):
    assert_raises(OverflowError, "[tensor]", lambda: ag.tensor(data, dtype=dtype, device=device))
    assert ag.tensor([-1, 255.9], dtype="uint8", device=device).tolist() == [255, 255]
    assert ag.tensor([-(2**31), 2**31 - 1], dtype="int32", device=device).tolist() == [-(2**31), 2**31 - 1]


def test_tensor_copies():
    a = np.ones(2, np.float32)
    x = ag.tensor(a)
    y = ag.tensor(x)
    a[0] = x.array[1] = 5
    assert (x.tolist(), y.tolist()) == ([1.0, 5.0], [1.0, 1.0])
    assert ag.as_tensor(x) is x and np.shares_memory(ag.as_tensor(a).array, a)


FILLED = {
    "zeros": (lambda d: ag.zeros(2, 2, device=d), [[0.0, 0.0], [0.0, 0.0]]),
    "ones": (lambda d: ag.ones((2,), dtype=ag.int32, device=d), [1, 1]),
    "full": (lambda d: ag.full((2,), 2.5, device=d), [2.5, 2.5]),
    "full of whole numbers": (lambda d: ag.full((), 7, device=d), 7),
    "arange": (lambda d: ag.arange(3, device=d), [0, 1, 2]),
    "arange by step": (lambda d: ag.arange(1, 2, 0.25, device=d), [1.0, 1.25, 1.5, 1.75]),
    "arange down": (lambda d: ag.arange(3, 0, -1, device=d), [3, 2, 1]),
    "linspace": (lambda d: ag.linspace(0, 1, 5, device=d), [0.0, 0.25, 0.5, 0.75, 1.0]),
    "eye": (lambda d: ag.eye(2, 3, device=d), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "like": (lambda d: ag.ones_like(ag.zeros(2, device=d)) + ag.full((2,), 1.0, device=d).zeros_like(), [1.0, 1.0]),
    "new": (lambda d: ag.zeros(1, device=d).new_full((2,), 3) + ag.zeros(1, device=d).new_tensor([1.0, 2.0]), [4.0, 5.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLED)
def test_filled_tensors(name, device):
    make, values = FILLED[name]
    x = make(device)
    assert x.tolist() == values and x.device == device and x.is_leaf


def test_random_numbers_are_seeded_and_the_same_everywhere(device):
    ag.manual_seed(5)
    drawn = [ag.randn(3), ag.rand(3), ag.randint(0, 10, (4,)), ag.randperm(5)]
    ag.manual_seed(5)
    again = [ag.randn(3, device=device), ag.rand(3, device=device), ag.randint(10, (4,), device=device), ag.randperm(5, device=device)]
    assert [x.tolist() for x in drawn] == [x.tolist() for x in again]
    state = ag.get_rng_state()
    x = ag.randn_like(again[0])
    ag.set_rng_state(state)
    assert ag.randn_like(again[0]).tolist() == x.tolist() and x.device == device
    assert sorted(drawn[3].tolist()) == [0, 1, 2, 3, 4]


def test_defaults_are_settable(wgpu):
    try:
        ag.set_default_dtype(ag.float16)
        ag.set_default_device(wgpu)
        assert ag.get_default_device() == "wgpu:0" and ag.get_default_dtype() is ag.float16
        for x in (ag.tensor([1.0]), ag.zeros(2), ag.randn(2), ag.arange(2) / 2):
            assert x.dtype is ag.float16 and x.device == "wgpu"
    finally:
        ag.set_default_dtype(ag.float32)
        ag.set_default_device("cpu")
    assert ag.tensor([1.0]).device == "cpu" and ag.tensor([1.0]).dtype is ag.float32


@pytest.mark.parametrize(("asked", "printed"), [("wgpu", "wgpu:0 wgpu:0 wgpu:0"), ("", "cpu cpu cpu"), ("cuda", "AUTOGRAD_DEVICE")])
def test_environment_names_the_default_device(wgpu, asked, printed):
    """A script that names no device runs on a GPU unchanged, its layers too; a name that is none is an error at import."""
    code = "import autograd as ag; print(ag.tensor([1.0]).device, ag.nn.Linear(2, 3).weight.device, ag.arange(3).device)"
    environment = {**os.environ, "AUTOGRAD_DEVICE": asked}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert printed in done.stdout + done.stderr and (done.returncode != 0) is (asked == "cuda")


# -- dtypes -------------------------------------------------------------------------------------------------

SHORT = {"b": "bool", "u8": "uint8", "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64"}
# row: the left operand, a vector; columns: the right one, in SHORT's order
VECTORS = """
b    b   u8  i32 i64 f16 f32 f64
u8   u8  u8  i32 i64 f16 f32 f64
i32  i32 i32 i32 i64 f16 f32 f64
i64  i64 i64 i64 i64 f16 f32 f64
f16  f16 f16 f16 f16 f16 f32 f64
f32  f32 f32 f32 f32 f32 f32 f64
f64  f64 f64 f64 f64 f64 f64 f64
"""
ZERO_DIM = """
b    b   u8  i32 i64 f16 f32 f64
u8   u8  u8  u8  u8  f16 f32 f64
i32  i32 i32 i32 i32 f16 f32 f64
i64  i64 i64 i64 i64 f16 f32 f64
f16  f16 f16 f16 f16 f16 f16 f16
f32  f32 f32 f32 f32 f32 f32 f32
f64  f64 f64 f64 f64 f64 f64 f64
"""
# columns: True, 3, 2.5
NUMBERS = """
b    b   i64 f32
u8   u8  u8  f32
i32  i32 i32 f32
i64  i64 i64 f32
f16  f16 f16 f16
f32  f32 f32 f32
f64  f64 f64 f64
"""
# columns: x / x, sum, sqrt, x ** 2, x ** 0.5, x // 2, cat with float16, where(x > 0, x, 2.5), clamp(0, 0.5), max
FUNCTIONS = """
b    f32 i64 f32 i64 f32 i64 f16 f32 f32 b
u8   f32 i64 f32 u8  f32 u8  f16 f32 f32 u8
i32  f32 i64 f32 i32 f32 i32 f16 f32 f32 i32
i64  f32 i64 f32 i64 f32 i64 f16 f32 f32 i64
f16  f16 f16 f16 f16 f16 f16 f16 f16 f16 f16
f32  f32 f32 f32 f32 f32 f32 f32 f32 f32 f32
f64  f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""


def ones(short, *shape, device):
    return ag.ones(*shape, dtype=SHORT[short], device=device)


def results(table, short, device):
    """What the table's functions give for a vector of this dtype."""
    x = ones(short, 2, device=device)
    others = [s for s in SHORT if device == "cpu" or s != "f64"]
    if table is VECTORS:
        return [(x * ones(s, 2, device=device)) for s in others]
    if table is ZERO_DIM:
        return [(x * ones(s, device=device)) for s in others]
    if table is NUMBERS:
        return [x * True, x * 3, 2.5 * x]
    half = ones("f16", 2, device=device)
    return [x / x, x.sum(), x.sqrt(), x**2, x**0.5, x // 2, ag.cat([x, half]), ag.where(x > 0, x, 2.5), x.clamp(0, 0.5), x.max()]


@pytest.mark.parametrize("table", [VECTORS, ZERO_DIM, NUMBERS, FUNCTIONS], ids=["vectors", "zero-dim", "numbers", "functions"])
def test_dtype_promotion_is_pytorchs(table, device):
    for row in table.split("\n")[1:-1]:
        short, *wanted = row.split()
        if device == "wgpu" and short == "f64":
            continue
        if table in (VECTORS, ZERO_DIM) and device == "wgpu":
            wanted = wanted[:-1]
        assert [y.dtype.name for y in results(table, short, device)] == [SHORT[w] for w in wanted], short


def test_dtype_names():
    assert ag.float is ag.float32 and ag.double is ag.float64 and ag.half is ag.float16 and ag.long is ag.int64
    assert repr(ag.float32) == "autograd.float32" and ag.int is ag.int32
    assert ag.result_type(ag.tensor([1]), 2.5) is ag.float32 and ag.promote_types(ag.uint8, ag.int32) is ag.int32
    x = ag.tensor([1.9, -1.9])
    assert (x.long().tolist(), x.int().dtype, x.bool().tolist(), x.half().dtype) == ([1, -1], ag.int32, [True, True], ag.float16)
    assert x.type_as(ag.tensor([1])).dtype is ag.int64 and x.to("float64").dtype is ag.float64


def test_gradients_have_their_tensors_dtype(device):
    x, y = ag.ones(2, device=device, requires_grad=True), ag.ones(2, dtype=ag.float16, device=device, requires_grad=True)
    (x * y * 2).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (ag.float32, ag.float16) and y.grad.tolist() == [2.0, 2.0]


def test_moving_between_devices_keeps_history(wgpu):
    x = ag.tensor([1.0, 2.0], requires_grad=True)
    y = (x.to(wgpu) * 3).cpu() * x
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0] and x.grad.device == "cpu"
    a = ag.ones(2, device=wgpu)
    assert x.to(a).device == "wgpu" and a.to("cpu", ag.float64).dtype is ag.float64 and array(a).tolist() == [1.0, 1.0]
