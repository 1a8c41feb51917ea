"""PyTorch's second names for what is there, the in-place forms of it, and what a tensor says about itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import create, dtypes
from ..grad_mode import state
from ..op import PUBLIC, public
from ..show import set_printoptions
from ..tensor import Tensor
from . import (  # noqa: F401  (their functions are Tensor's methods now)
    bessel,
    binary,
    composite,
    diagonal,
    gamma,
    hyperbolic,
    matmul,
    matrix_norm,
    movement,
    norms,
    products,
    rounding,
    scan,
    sort,
    special,
    statistics,
    trigonometry,
    views,
)
from .getitem import rewrap_for_write
from .inplace import in_place, keeping

# PyTorch's second name: the first.
SECOND = {
    "absolute": "abs", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "fix": "trunc", "ger": "outer",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "negative": "neg", "not_equal": "ne", "sgn": "sign",
}  # fmt: skip
# What has an in-place form besides those in inplace.py.
_CHANGING = (
    "acos", "acosh", "addbmm", "addmm", "addmv", "addr", "arccosh", "arcsinh", "arctanh", "asin", "asinh", "atan", "atan2",
    "atanh", "baddbmm", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "clamp_max", "clamp_min", "clip", "copysign", "cos", "cosh", "cumprod", "cumsum", "deg2rad", "digamma", "divide", "eq", "erf",
    "erfc", "erfinv", "exp2", "expm1", "float_power", "fmod", "frac", "gcd", "ge", "gt", "heaviside", "hypot", "i0", "lcm",
    "ldexp", "le", "lgamma", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "lt",
    "multiply", "nan_to_num", "ne", "nextafter", "rad2deg", "renorm", "sign", "sin", "sinc", "sinh", "square", "subtract", "tan",
    "tril", "triu", "true_divide", "xlogy", *SECOND,
)  # fmt: skip

# What PyTorch has as a function that changes its argument, besides a method.
_IN_PLACE = (
    "abs", "acos", "acosh", "arccosh", "arcsinh", "arctanh", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max",
    "clamp_min", "clip", "cos", "cosh", "deg2rad", "detach", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "gcd", "lcm",
    "ldexp", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "rad2deg", "reciprocal", "relu", "round", "rsqrt",
    "sigmoid", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "xlogy",
)  # fmt: skip


def is_nonzero(input: Tensor) -> bool:
    """Whether the single element is not zero."""
    return bool(input)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed


def is_complex(input: Tensor) -> bool:
    """False: there are no complex numbers here."""
    return input.dtype.is_complex


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape."""
    return input.shape == other.shape


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, as mT: there are no complex numbers to conjugate."""
    return views.transpose(input, -2, -1)


def element_size(x: Tensor) -> int:
    """Bytes an element."""
    return x.itemsize


def storage_offset(x: Tensor) -> int:
    """How many elements before x's first one its memory starts; 0 for what owns its memory."""
    data = x.array
    if data.__class__ is not np.ndarray:
        return data.offset
    owner = data
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return (data.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // data.itemsize


def data_ptr(x: Tensor) -> int:
    """A number that tensors share exactly when they start at the same memory: on the CPU its address."""
    data = x.array
    if data.__class__ is np.ndarray:
        return data.__array_interface__["data"][0]
    return id(data.storage) + data.offset * data.dtype.itemsize


def type_(x: Tensor, dtype: Any = None) -> Any:
    """x in another dtype: ag.float32, "float32", ag.FloatTensor; without one, the name of x's dtype as PyTorch had it."""
    if dtype is None:
        return f"autograd.{create.TYPES[x.dtype.name]}"
    if isinstance(dtype, str):
        dtype = {kind: name for name, kind in create.TYPES.items()}.get(dtype.rpartition(".")[2], dtype)
    return x.to(dtypes.as_dtype(getattr(dtype, "dtype", dtype)))


def byte(x: Tensor) -> Tensor:
    """x as uint8."""
    return x.to(dtypes.uint8)


def new_empty(x: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the given size in x's dtype and on its device whose values do not matter yet."""
    return create.empty(*size, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """x = fill_value on the main diagonal of a matrix, or of more dimensions of one size.

    wrap: in a tall matrix the diagonal begins again below its end, one row apart.
    """
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(f"[fill_diagonal_] expects a matrix, or dimensions of one size; got shape {x.shape}")
    mask = np.zeros(x.shape, bool)
    np.fill_diagonal(mask, True, wrap=wrap)
    return x.masked_fill_(create.place(mask, x.device), fill_value)


def _becoming(function: Callable, name: str) -> Callable:
    """The in-place form of a view: x itself shows its memory that way from now on."""

    def changed(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if x.views is not None:
            raise RuntimeError(f"[{name}] other tensors show this tensor's memory; use {name[:-1]}() instead")
        if x._requires_grad and x.node is None and state.enabled:
            raise RuntimeError(f"[{name}] a leaf that requires grad cannot be changed in place; use {name[:-1]}()")
        y = function(rewrap_for_write(x), *args, **kwargs)
        x.array, x.node, x.views = y.array, y.node, None
        x.version[0] += 1
        return x

    changed.__name__, changed.__doc__ = name, f"{function.__doc__}\nIn place: x itself takes the new shape."
    return changed


for _name, _first in SECOND.items():
    PUBLIC[_name] = PUBLIC[_first]
    setattr(Tensor, _name, getattr(Tensor, _first))
PUBLIC["concatenate"] = PUBLIC["cat"]
for _name in ("swapaxes", "transpose", "swapdims", "t", "squeeze", "unsqueeze"):
    setattr(Tensor, f"{_name}_", _becoming(getattr(Tensor, _name), f"{_name}_"))
for _name in _CHANGING:
    setattr(Tensor, f"{_name}_", in_place(keeping(getattr(Tensor, _name)), f"{_name}_"))
for _function in (is_nonzero, is_signed, is_complex, is_same_size):
    public(_function)
for _name in ("numel", "is_floating_point", "detach"):
    public(getattr(Tensor, _name), _name)
for _name in _IN_PLACE:  # after the loops above have made them
    public(getattr(Tensor, f"{_name}_"), f"{_name}_", method=False)
for _function in (element_size, storage_offset, data_ptr, byte, new_empty, fill_diagonal_):
    setattr(Tensor, _function.__name__, _function)
for _name, _function in {"type": type_, "ndimension": Tensor.dim, "nelement": Tensor.numel}.items():
    setattr(Tensor, _name, _function)
public(adjoint)
public(set_printoptions, method=False)
Tensor.H = Tensor.mH = Tensor.mT  # type: ignore[attr-defined]  # there are no complex numbers to conjugate
Tensor.is_cpu = property(lambda x: x.device.type == "cpu", doc="Whether it is on the CPU.")  # type: ignore[attr-defined]
Tensor.is_cuda = False  # type: ignore[attr-defined]
