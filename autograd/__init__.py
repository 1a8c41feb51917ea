"""autograd: a dynamic autograd engine in Python, on NumPy or on any GPU through WebGPU.

>>> import autograd as ag
>>> x = ag.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from importlib import import_module
from math import e, inf, nan, pi

from . import amp, autograd, data, linalg, nn, op, ops, optim, rnn, special, utils  # noqa: F401  (ops gives Tensor its methods)
from . import webgpu as wgpu
from .amp import autocast, get_autocast_dtype, is_autocast_enabled
from .anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from .checkpoint import load, save
from .create import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    typed,
    zeros,
    zeros_like,
)
from .device import Device as device
from .device import get_default_device, set_default_device
from .dtypes import DType as dtype
from .dtypes import (
    bfloat16,
    bool_,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int32,
    int64,
    promote_types,
    result_type,
    set_default_dtype,
    uint8,
)
from .function import Function
from .grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .gradcheck import gradcheck, gradgradcheck
from .interop import from_dlpack
from .listing import tape  # after this ag.tape is the function; `from autograd.tape import …` still finds the module
from .random import (
    Generator,
    are_deterministic_algorithms_enabled,
    get_rng_state,
    initial_seed,
    manual_seed,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
    use_deterministic_algorithms,
)  # fmt: skip
from .summary import summary
from .tape import backward, grad
from .tensor import Tensor
from .threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

# Imported when they are first asked for: a fifth of the start-up.
_LATER = ("bigdl", "distributed", "distributions", "func", "keras", "profiler")

# What PyTorch has and this has not: what to do instead.
_ELSEWHERE = {
    "cuda": '. The GPU is ag.wgpu: device = "wgpu" if ag.wgpu.is_available() else "cpu"',
    "backends": ". There is nothing to choose: every result is deterministic",
    "compile": ". Elementwise operations are fused on the GPU as they are; leave the decorator out",
    **dict.fromkeys(("complex64", "complex128", "fft", "stft"), ". There are no complex numbers"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    if name == "vmap":
        return import_module(f"{__name__}.func").vmap
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_ELSEWHERE.get(name, '')}")


half, double, float, long, int = float16, float64, float32, int64, int32
newaxis, Size = None, tuple  # a shape is a tuple here
DoubleTensor, FloatTensor, HalfTensor, BFloat16Tensor = (typed(d) for d in (float64, float32, float16, bfloat16))
LongTensor, IntTensor, ByteTensor, BoolTensor = (typed(d) for d in (int64, int32, uint8, bool_))
globals().update(op.PUBLIC)  # add, matmul, softmax, …: what `make ops` counts as public functions
bool = bool_

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "Size",
    "dtype", "e", "finfo", "func", "vmap", "iinfo", "inf", "inference_mode", "initial_seed", "nan", "newaxis", "pi", "seed",
    "Generator", "amp", "autocast", "bigdl", "data", "distributed", "keras", "get_autocast_dtype", "is_autocast_enabled",
    "utils", "distributions", "are_deterministic_algorithms_enabled", "use_deterministic_algorithms",
    "Function", "Tensor", "detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly", "summary",
    "arange", "as_tensor", "autograd", "backward", "bfloat16", "bool", "device", "double", "empty", "enable_grad", "eye", "float",
    "empty_like",
    "float16", "float32", "float64", "from_dlpack", "from_numpy", "full", "full_like", "get_default_device", "get_default_dtype",
    "get_num_threads", "get_rng_state",
    "grad", "gradcheck", "gradgradcheck", "half", "int", "int32", "int64", "is_grad_enabled", "linalg",
    "linspace", "load",
    "long", "manual_seed", "nn", "no_grad", "ones", "ones_like", "optim", "profiler", "promote_types", "rand", "rand_like",
    "randint", "randn", "randn_like", "randperm", "result_type", "rnn", "save", "set_default_device", "set_default_dtype",
    "set_grad_enabled", "set_num_threads", "set_rng_state", "special", "tape", "tensor", "uint8", "wgpu", "zeros", "zeros_like",
    *op.PUBLIC,
]  # fmt: skip
