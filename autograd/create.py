"""Making tensors: from data, filled, counted, random. PyTorch's names and arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes, shapes
from .blocks import empty as empty_array
from .device import Device, as_device
from .tensor import Tensor, rewrap, wrap

_PYTHON_NUMBER = (bool, int, float)
_LARGE = 1 << 26  # elements
# PyTorch's old names of tensors, by dtype.
TYPES = {"float64": "DoubleTensor", "float32": "FloatTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
         "int64": "LongTensor", "int32": "IntTensor", "uint8": "ByteTensor", "bool": "BoolTensor"}  # fmt: skip


def place(array: np.ndarray, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor that owns `array` on the CPU, or an upload of it on wgpu."""
    where = as_device(device)
    if where.type != "cpu":
        from .webgpu import open_device

        array = open_device(where.index).upload(array)
    t = wrap(array)
    if requires_grad:
        t.requires_grad = True
    return t


def tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf with a copy of `data`: numbers, nested sequences, a NumPy array or a Tensor.

    Python floats become the default dtype, integers int64; NumPy arrays keep their type. TypeError for what is
    not numeric, ValueError for ragged sequences, OverflowError for numbers that a type of integers cannot hold.
    """
    if isinstance(data, Tensor):
        if device is None:
            device = data.device
        data = data._host()
    array = _as_array(data)
    if dtype is None:
        kept = isinstance(data, np.ndarray | np.generic)
        wanted = dtypes.of_array(array).numpy if kept else _python_dtype(array)
    else:
        wanted = dtypes.as_dtype(dtype).numpy
    if wanted.kind in "iu" and array.dtype != wanted and not isinstance(data, np.ndarray | np.generic):
        _check_range(array, wanted)
    with np.errstate(all="ignore"):
        array = dtypes.converted(array, wanted)
    return place(array, device, requires_grad)


def _check_range(array: np.ndarray, wanted: np.dtype) -> None:
    """OverflowError for Python's numbers that a type of integers cannot hold; a byte may be given as a negative number."""
    top = int(np.iinfo(wanted).max)
    with np.errstate(invalid="ignore"):
        fits = (array > -top - 2 if wanted.kind == "i" else array >= -top) & (array < top + 1)
    if not fits.all():
        raise OverflowError(f"[tensor] {array[~fits].flat[0]} does not fit in {dtypes.BY_NUMPY[wanted]}")


def _as_array(data: Any) -> np.ndarray:
    if isinstance(data, np.ndarray | np.generic | bool | int | float):
        array = np.asarray(data)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        data = [x._values() if isinstance(x, Tensor) else _as_array(x) if isinstance(x, list | tuple) else x for x in data]
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"[tensor] the sequences must have equal lengths: {error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"[tensor] numbers, sequences of numbers, arrays and tensors become tensors; got {type(data).__name__}")
    return array


def _python_dtype(array: np.ndarray) -> np.dtype:
    if array.dtype.kind == "f":
        return dtypes.get_default_dtype().numpy
    if array.size == 0 and array.dtype == np.float64:
        return dtypes.get_default_dtype().numpy
    return np.dtype(bool) if array.dtype.kind == "b" else np.dtype(np.int64)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where that is possible."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    if isinstance(data, np.ndarray) and dtype is None and as_device(device).type == "cpu":
        return from_numpy(data)
    return tensor(data, dtype, device)


def from_numpy(array: np.ndarray) -> Tensor:
    """A CPU tensor that shares the array's memory. TypeError for a dtype the engine does not have."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"[from_numpy] expected a numpy.ndarray; got {type(array).__name__}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtypes.of_array(array, "from_numpy")
    return wrap(array.view(np.ndarray) if type(array) is not np.ndarray else array)


def full(size: Any, fill_value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of shape `size` filled with a number (whose kind decides the dtype when none is given)."""
    shape = shapes.shape_args((size,), "full")
    if any(n < 0 for n in shape):
        raise ValueError(f"[full] sizes must not be negative; got {shape}")
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.scalar_dtype(fill_value)
    where = as_device(device)
    if where.type == "cpu":
        y = empty_array(shape, np.float32 if d is dtypes.bfloat16 else d.numpy)
        with np.errstate(all="ignore"):
            y[...] = fill_value
            return place(dtypes.converted(y, d.numpy, copy=False), where, requires_grad)
    from .webgpu import open_device

    t = wrap(open_device(where.index).full(shape, fill_value, d.numpy))
    t.requires_grad = requires_grad
    return t


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros: zeros(2, 3) or zeros((2, 3))."""
    shape = shapes.shape_args(size, "zeros")
    return full(shape, 0, dtype or dtypes.get_default_dtype(), device, requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones: ones(2, 3) or ones((2, 3))."""
    shape = shapes.shape_args(size, "ones")
    return full(shape, 1, dtype or dtypes.get_default_dtype(), device, requires_grad)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose values do not matter yet (zeros here: nothing is left to chance)."""
    return zeros(*size, dtype=dtype, device=device, requires_grad=requires_grad)


def full_like(x: Tensor, fill_value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`fill_value` in x's shape, dtype and device."""
    return full(x.shape, fill_value, dtype or x.dtype, device or x.device, requires_grad)


def zeros_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in x's shape, dtype and device."""
    return full_like(x, 0, dtype, device, requires_grad)


def empty_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor in x's shape, dtype and device whose values do not matter yet (zeros, as with empty)."""
    return zeros_like(x, dtype, device, requires_grad)


def ones_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in x's shape, dtype and device."""
    return full_like(x, 1, dtype, device, requires_grad)


def check_room(shape: tuple, dtype: Any, device: Any) -> None:
    """What a device cannot hold is refused before the host makes it: there it might fill all memory."""
    if math.prod(shape) > _LARGE:
        empty(*shape, dtype=dtype, device=device)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """start, start + step, … below `end`; arange(n) counts from 0. int64 for integers, else the default dtype."""
    if end is None:
        start, end = 0, start
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    if step == 0 or (end - start) * step < 0:
        raise ValueError(f"[arange] step must lead from start to end; got start={start}, end={end}, step={step}")
    if (end - start) / step >= 2**48:  # more than any machine holds; NumPy's own message does not say which call it was
        raise ValueError(f"[arange] too many numbers: start={start}, end={end}, step={step}")
    whole = all(isinstance(x, int | np.integer) for x in (start, end, step))
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.int64 if whole else dtypes.get_default_dtype()
    check_room((int((end - start) / step),), d, device)
    return place(dtypes.converted(np.arange(start, end, step), d.numpy), device, requires_grad)


def linspace(start: float, end: float, steps: int, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` numbers evenly from start to end, both included."""
    start, end = (x.item() if isinstance(x, Tensor) and not x.ndim else x for x in (start, end))
    if not isinstance(steps, int | np.integer):
        raise TypeError(f"[linspace] steps is a count, an int; got {steps!r}")
    if isinstance(start, Tensor) or isinstance(end, Tensor) or steps < 0:
        raise ValueError(f"[linspace] start and end are numbers and steps is not negative; got {start}, {end}, {steps}")
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()
    check_room((steps,), d, device)
    return place(dtypes.converted(np.linspace(start, end, steps), d.numpy), device, requires_grad)


def eye(n: int, m: int | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The identity matrix, n by m (n by n)."""
    if n < 0 or (m is not None and m < 0):
        raise ValueError(f"[eye] sizes must not be negative; got n={n}, m={m}")
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()
    check_room((n, n if m is None else m), d, device)
    return place(dtypes.converted(np.eye(n, m), d.numpy), device, requires_grad)


def move(x: Tensor, device: Device) -> Tensor:
    """x on `device`, without history; x itself where it is there already."""
    if x.device == device:
        return x
    return place(np.ascontiguousarray(x._host()).reshape(x.shape), device)


def rebuild(kind: type, array: np.ndarray, device: str, requires_grad: bool) -> Tensor:
    """Undo pickling."""
    t = place(array, device)
    twin = rewrap(t.array, [0])
    twin.__class__ = kind
    twin._requires_grad = requires_grad
    return twin


class _OfType(type):
    """isinstance(x, FloatTensor) asks for a tensor of that dtype on the CPU, as in PyTorch."""

    dtype: dtypes.DType

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.device.type == "cpu"


def typed(d: dtypes.DType) -> type:
    """PyTorch's old class of tensors of a dtype: LongTensor([1, 2]) has that data, LongTensor(2, 3) that shape."""

    def new(cls: Any, *data: Any) -> Tensor:
        if not data or all(isinstance(x, int) for x in data):
            return zeros(*(data or (0,)), dtype=d, device="cpu")
        if len(data) > 1:
            raise TypeError(f"[{TYPES[d.name]}] expected data, or whole numbers as a shape; got {len(data)} arguments")
        return tensor(data[0], d, "cpu")

    text = f"Makes CPU tensors of {d.name}: of data, or of a shape."
    return _OfType(TYPES[d.name], (), {"__new__": new, "dtype": d, "__doc__": text, "__module__": "autograd"})
