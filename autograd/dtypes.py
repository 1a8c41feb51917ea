"""Element types: PyTorch's names, their NumPy twins, and PyTorch's promotion rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class DType:
    """An element type. `ag.float32` and its siblings are the only instances.

    name: PyTorch's name; numpy: the NumPy dtype; rank: 0 bool, 1 integer, 2 floating point.
    NumPy has no bfloat16: its twin is a structure of one uint16, which NumPy moves and does not calculate with.
    """

    __slots__ = ("itemsize", "name", "numpy", "rank")

    def __init__(self, name: str, numpy: Any, rank: int):
        self.name, self.numpy, self.rank = name, np.dtype(numpy), rank
        self.itemsize = self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        return self.rank == 2

    @property
    def is_signed(self) -> bool:
        return self.name not in ("uint8", "bool")

    @property
    def is_complex(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"autograd.{self.name}"

    def __reduce__(self) -> tuple:
        return (as_dtype, (self.name,))


float64 = DType("float64", np.float64, 2)
float32 = DType("float32", np.float32, 2)
float16 = DType("float16", np.float16, 2)
bfloat16 = DType("bfloat16", [("bfloat16", np.uint16)], 2)
int64 = DType("int64", np.int64, 1)
int32 = DType("int32", np.int32, 1)
uint8 = DType("uint8", np.uint8, 1)
bool_ = DType("bool", np.bool_, 0)

ALL = (float64, float32, float16, bfloat16, int64, int32, uint8, bool_)
BY_NUMPY = {d.numpy: d for d in ALL}
_BY_NAME = {d.name: d for d in ALL} | {"double": float64, "float": float32, "half": float16, "long": int64, "int": int32}
SHORT = (float16, bfloat16)  # what is worth computing in float32
_BY_PYTHON = {float: None, int: int64, bool: bool_}

_default = float32
_BOOLS, _INTEGERS = (bool, np.bool_), (int, np.integer)  # isinstance is slow on unions made at each call


def as_dtype(what: object) -> DType:
    """The DType that `what` names: a DType, a NumPy dtype or scalar type, a name, or Python's float/int/bool.

    Raises TypeError for anything else, with the list of what there is.
    """
    if isinstance(what, DType):
        return what
    if isinstance(what, str) and what in _BY_NAME:
        return _BY_NAME[what]
    if isinstance(what, type) and what in _BY_PYTHON:  # by identity: NumPy's float64 equals float
        return _BY_PYTHON[what] or _default  # type: ignore[index]
    try:
        return BY_NUMPY[np.dtype(what)]  # type: ignore[call-overload]
    except (TypeError, KeyError):
        names = ", ".join(d.name for d in ALL)
        raise TypeError(f"unknown dtype {what!r}; there are {names}") from None


def of_array(array: np.ndarray, op: str = "tensor") -> DType:
    """The DType of a NumPy array; TypeError when the engine has no such type."""
    try:
        return BY_NUMPY[array.dtype]
    except KeyError:
        names = ", ".join(d.name for d in ALL)
        raise TypeError(f"[{op}] no dtype for NumPy's {array.dtype}; there are {names}. Convert with .astype first?") from None


def set_default_dtype(dtype: object) -> None:
    """Set the dtype that Python floats become (float32 at the start). Floating point only."""
    global _default
    d = as_dtype(dtype)
    if not d.is_floating_point:
        raise TypeError(f"[set_default_dtype] the default must be a floating point type; got {d}")
    _default = d


def get_default_dtype() -> DType:
    """The dtype that Python floats become."""
    return _default


def scalar_dtype(value: bool | int | float) -> DType:
    """The dtype a Python number has when nothing else decides."""
    if isinstance(value, _BOOLS):
        return bool_
    return int64 if isinstance(value, _INTEGERS) else _default


def _wider(a: DType, b: DType) -> DType:
    """PyTorch's promotion of two types, both of full weight: the higher kind wins, then the larger size."""
    if a.rank != b.rank:
        return a if a.rank > b.rank else b
    if a.itemsize == b.itemsize and a is not b and a.rank == 2:
        return float32  # holds both float16 and bfloat16
    return a if a.itemsize >= b.itemsize else b


def promote(operands: list[tuple[DType, int]]) -> DType:
    """PyTorch's result type. Each operand is (dtype, weight): 2 a tensor with dimensions, 1 a 0-d tensor, 0 a number.

    A lighter operand decides only when its kind (bool < integer < floating point) is above that of all heavier ones:
    float16 vector * 2.5 stays float16, integer vector * 2.5 becomes the default dtype.
    """
    result: DType | None = None
    for weight in (2, 1, 0):
        group: DType | None = None
        for d, w in operands:
            if w == weight:
                group = d if group is None else _wider(group, d)
        if group is not None and (result is None or group.rank > result.rank):
            result = group
    assert result is not None
    return result


def result_type(a: object, b: object) -> DType:
    """The dtype of an arithmetic operation between two tensors or numbers, as torch.result_type."""
    return promote([_weighted(a), _weighted(b)])


promote_types = _wider


def _weighted(x: object) -> tuple[DType, int]:
    data = getattr(x, "array", None)
    if data is not None and hasattr(x, "requires_grad"):
        return BY_NUMPY[data.dtype], 2 if data.shape else 1
    return scalar_dtype(x), 0  # type: ignore[arg-type]


def limits(dtype: DType) -> Any:
    """NumPy's finfo, or the same of bfloat16: max, eps, nmant, minexp, smallest_subnormal."""
    if dtype is not bfloat16:
        return np.finfo(dtype.numpy)
    return SimpleNamespace(
        max=(2 - 2.0**-7) * 2.0**127, min=-(2 - 2.0**-7) * 2.0**127, eps=2.0**-7, nmant=7, minexp=-126,
        tiny=2.0**-126, smallest_normal=2.0**-126, smallest_subnormal=2.0**-133, bits=16, dtype=dtype.numpy,
    )  # fmt: skip


class finfo:
    """The numbers of a floating point dtype (by default the default dtype): bits, max, min (-max), eps (between 1 and the
    next number), tiny = smallest_normal, resolution, dtype (its name)."""

    def __init__(self, type: object = None):
        d = _default if type is None else as_dtype(type)
        if not d.is_floating_point:
            raise TypeError(f"[finfo] expects a floating point dtype; got {d}. iinfo is for integers")
        found = limits(d)
        self.bits, self.dtype = d.itemsize * 8, d.name
        self.max, self.min, self.eps = float(found.max), float(found.min), float(found.eps)
        self.tiny = self.smallest_normal = float(found.smallest_normal)
        self.resolution = 0.01 if d is bfloat16 else 10.0**-found.precision

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in ("resolution", "min", "max", "eps", "smallest_normal"))
        return f"finfo({shown}, dtype={self.dtype})"


class iinfo:
    """The numbers of an integer dtype: bits, max, min, dtype (its name)."""

    def __init__(self, type: object):
        d = as_dtype(type)
        if d.rank != 1:
            raise TypeError(f"[iinfo] expects an integer dtype; got {d}. finfo is for floating point")
        found = np.iinfo(d.numpy)
        self.bits, self.max, self.min, self.dtype = d.itemsize * 8, int(found.max), int(found.min), d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def widened(x: Any) -> Any:
    """A bfloat16 array as the float32 array of the same values; anything else as it is."""
    if getattr(x, "dtype", None) != bfloat16.numpy:
        return x
    return (x["bfloat16"].astype(np.uint32) << 16).view(np.float32)


def converted(x: Any, dtype: np.dtype, copy: bool = True) -> np.ndarray:
    """x in another dtype, in C order; to bfloat16 by way of float32, rounded to nearest, ties to even."""
    if x.dtype == dtype or dtype != bfloat16.numpy:
        return (x if x.dtype == dtype else widened(x)).astype(dtype, order="C", copy=copy)
    x = np.ascontiguousarray(x, np.float32).reshape(x.shape)
    bits = x.view(np.uint32)
    rounded = np.where(np.isnan(x), bits >> 16 | 0x40, (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16)
    return rounded.astype(np.uint16).view(bfloat16.numpy)


def nearest(number: float, dtype: DType) -> float:
    """The number of a dtype that is nearest to this one."""
    with np.errstate(over="ignore"):
        return float(widened(converted(np.asarray(number, np.float32), dtype.numpy)))
