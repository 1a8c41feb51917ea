"""Views, copies and joints: PyTorch's functions over the primitives of movement.py."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .. import dtypes, shapes
from ..device import Device, as_device
from ..op import apply, public
from ..tensor import Tensor
from .movement import Cast, Cat, Clone, Expand, Move, Permute, Place, Reshape, Slice


def reshape(x: Tensor, *shape: Any) -> Tensor:
    """x in another shape, a view where strides allow: x.reshape(2, 3), x.reshape((2, -1))."""
    return apply(Reshape, x, shape=shapes.resolve_reshape(x.shape, shapes.shape_args(shape, "reshape"), "reshape"))


def view(x: Tensor, *shape: Any) -> Tensor:
    """As reshape, but never a copy: RuntimeError when the strides do not allow a view."""
    y = reshape(x, *shape)
    if y.version is not x.version:
        raise RuntimeError(f"[view] strides {x.stride()} of shape {x.shape} allow no view of shape {y.shape}; use reshape")
    return y


def permute(x: Tensor, *dims: Any) -> Tensor:
    """x with its dimensions in the order `dims`."""
    given = shapes.shape_args(dims, "permute")
    order = tuple(shapes.axis_of(d, x.ndim, "permute") for d in given)
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"[permute] the dimensions of shape {x.shape} must each appear once; got {given}")
    return apply(Permute, x, order=order)


def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """x with two dimensions exchanged."""
    order = list(range(x.ndim))
    i, j = shapes.axis_of(dim0, x.ndim, "transpose"), shapes.axis_of(dim1, x.ndim, "transpose")
    if order:
        order[i], order[j] = j, i
    return apply(Permute, x, order=tuple(order))


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are."""
    if x.ndim > 2:
        raise ValueError(f"[t] expects at most 2 dimensions; got shape {x.shape}. Use transpose or mT")
    return transpose(x, 0, 1) if x.ndim == 2 else x


def expand(x: Tensor, *shape: Any) -> Tensor:
    """x repeated to `shape` as a view; -1 keeps a size."""
    wanted = shapes.shape_args(shape, "expand")
    if wanted == x.array.shape:
        return x
    pad = len(wanted) - x.ndim
    full = tuple(x.shape[i - pad] if n == -1 and i >= pad else n for i, n in enumerate(wanted))
    if pad < 0 or not shapes.expandable(x.shape, full):
        raise ValueError(f"[expand] only dimensions of size 1 can be repeated; got {x.shape} -> {wanted}")
    if min(full, default=0) < 0:
        raise ValueError(f"[expand] sizes must not be negative, and -1 keeps one that is there; got {x.shape} -> {wanted}")
    return apply(Expand, x, shape=full)


def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """x expanded to `shape`."""
    return expand(x, *shape)


def broadcast_tensors(*tensors: Tensor) -> tuple:
    """The tensors expanded to their common shape."""
    shape = shapes.broadcast([x.shape for x in tensors], "broadcast_tensors")
    return tuple(expand(x, *shape) for x in tensors)


def squeeze(x: Tensor, dim: Any = None) -> Tensor:
    """x without its dimensions of size 1, or without those of `dim` that have size 1."""
    axes = range(x.ndim) if dim is None else () if dim == () else shapes.axes_of(dim, x.ndim, "squeeze")
    kept = tuple(n for i, n in enumerate(x.shape) if not (i in axes and n == 1))
    return apply(Reshape, x, shape=kept)


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """x with a dimension of size 1 at `dim`."""
    i = shapes.axis_of(dim, x.ndim + 1, "unsqueeze")
    return apply(Reshape, x, shape=(*x.shape[:i], 1, *x.shape[i:]))


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """x with the dimensions start_dim … end_dim made one."""
    i, j = shapes.axis_of(start_dim, x.ndim, "flatten"), shapes.axis_of(end_dim, x.ndim, "flatten")
    if i > j:
        raise ValueError(f"[flatten] start_dim must not be after end_dim; got {start_dim} and {end_dim}")
    return reshape(x, (*x.shape[:i], shapes.numel(x.shape[i : j + 1]), *x.shape[j + 1 :]))


def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """The tensors one after the other along `dim`; their other sizes must agree."""
    tensors = list(tensors)
    if not tensors or not all(isinstance(x, Tensor) for x in tensors):
        raise TypeError("[cat] expected a non-empty sequence of tensors")
    tensors = [x for x in tensors if x.shape != (0,)] or tensors[:1]  # PyTorch lets shape (0,) join anything
    first = tensors[0]
    i = shapes.axis_of(dim if axis is None else axis, first.ndim, "cat")
    for x in tensors:
        if x.ndim != first.ndim or not x.ndim or any(x.shape[k] != first.shape[k] for k in range(x.ndim) if k != i):
            named = ", ".join(str(y.shape) for y in tensors)
            raise ValueError(f"[cat] sizes must agree except along dim {i}; got {named}")
    d = dtypes.promote([(x.dtype, 2) for x in tensors])
    return apply(Cat, *(x.to(d) for x in tensors), axis=i, sizes=tuple(x.shape[i] for x in tensors))


def stack(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """The tensors, all of one shape, along a new dimension."""
    tensors = list(tensors)
    if not tensors or any(x.shape != tensors[0].shape for x in tensors):
        named = ", ".join(str(x.shape) for x in tensors)
        raise ValueError(f"[stack] expected at least one tensor and one shape; got {named or 'nothing'}")
    where = dim if axis is None else axis
    return cat([unsqueeze(x, where) for x in tensors], shapes.axis_of(where, tensors[0].ndim + 1, "stack"))


def _axis_within(x: Tensor, dim: int, op: str) -> int:
    """axis_of() for what a 0-d tensor has no dimension for."""
    if not x.ndim:
        raise IndexError(f"[{op}] a 0-d tensor has no dimension {dim}; reshape it to (1,) first")
    return shapes.axis_of(dim, x.ndim, op)


def split(x: Tensor, split_size: Any, dim: int = 0) -> tuple:
    """x in parts of `split_size` along `dim` (the last may be smaller), or in parts of the given sizes; views."""
    i = shapes.axis_of(dim, x.ndim, "split")
    n = x.shape[i]
    if isinstance(split_size, int):
        if split_size <= 0:
            raise ValueError(f"[split] split_size must be positive; got {split_size}")
        split_size = [min(split_size, n - k) for k in range(0, n, split_size)] or [0]
    if sum(split_size) != n:
        raise ValueError(f"[split] the sizes must add up to {n}; got {list(split_size)}")
    parts, start = [], 0
    for size in split_size:
        parts.append(narrow(x, i, start, size))
        start += size
    return tuple(parts)


def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple:
    """x in `chunks` equal parts along `dim` (the last may be smaller), views."""
    if chunks <= 0:
        raise ValueError(f"[chunk] chunks must be positive; got {chunks}")
    n = x.shape[shapes.axis_of(dim, x.ndim, "chunk")]
    return split(x, max(-(-n // chunks), 1), dim)


def unbind(x: Tensor, dim: int = 0) -> tuple:
    """The slices of x along `dim`, views without that dimension."""
    i = _axis_within(x, dim, "unbind")
    return tuple(apply(Slice, x, index=(*(slice(None),) * i, k)) for k in range(x.shape[i]))


def narrow(x: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """x[start : start + length] along `dim`, a view; start is a number or a 0-d integer tensor."""
    i = _axis_within(x, dim, "narrow")
    if isinstance(start, Tensor) and (start.ndim or start.dtype.rank != 1):
        raise TypeError(f"[narrow] start is a whole number or a 0-d integer tensor; got {start.dtype} {start.shape}")
    start = operator.index(start)
    start += x.shape[i] if start < 0 else 0
    if not 0 <= start <= x.shape[i] or length < 0 or start + length > x.shape[i]:
        raise IndexError(f"[narrow] {start} + {length} must lie within dimension {i} of shape {x.shape}")
    return apply(Slice, x, index=(*(slice(None),) * i, slice(start, start + length)))


def flip(x: Tensor, *args: Any, dims: Any = ()) -> Tensor:
    """A copy of x with the order along `dims` reversed: x.flip(0, 1), x.flip((0, 1)), x.flip(dims=(0, 1))."""
    given = shapes.shape_args(args or ((dims,) if isinstance(dims, int) else (tuple(dims),)), "flip")
    axes = shapes.axes_of(given, x.ndim, "flip") if given else ()
    index = tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))
    return apply(Clone, apply(Slice, x, index=index), order="C")


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """x with `value` (0) around it: (before, after) pairs from the last dimension backwards; negative sizes cut."""
    if mode != "constant":
        raise NotImplementedError(f'[pad] only mode="constant" is here yet; got {mode!r}')
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ValueError(f"[pad] expects (before, after) pairs for at most {x.ndim} dimensions; got {tuple(pad)}")
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape, strict=True))
    shape = tuple(n + a + b for (a, b), n in zip(pairs, x.shape, strict=True))
    if any(n < 0 for n in shape):
        raise ValueError(f"[pad] {tuple(pad)} leaves negative sizes of shape {x.shape}")
    inside = apply(Slice, x, index=cut)
    index = tuple(slice(max(a, 0), max(a, 0) + n) for (a, _), n in zip(pairs, inside.shape, strict=True))
    return apply(Place, inside, shape=shape, index=index, value=value or 0)


def clone(x: Tensor) -> Tensor:
    """A copy of x with its own memory; gradients flow through."""
    return apply(Clone, x)


def contiguous(x: Tensor) -> Tensor:
    """x itself if its elements lie in order, else a copy that does."""
    return x if x.is_contiguous() else apply(Clone, x, order="C")


def to(x: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False,
       non_blocking: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """x in another dtype and/or on another device: x.to("wgpu"), x.to(ag.float16), x.to(other), x.to(device, dtype).

    x itself when nothing changes (unless copy). Gradients flow back to where x is. non_blocking: transfers are
    queued anyway; accepted for PyTorch's sake.
    """
    flags = [a for a in args if isinstance(a, bool)]  # PyTorch's order: non_blocking, copy
    copy = flags[1] if len(flags) > 1 else copy
    for a in args:
        if isinstance(a, Tensor):
            device, dtype = a.device, a.dtype
        elif a is None or isinstance(a, bool):
            continue
        elif isinstance(a, Device) or (isinstance(a, str) and a.split(":")[0] not in dtypes._BY_NAME):
            device = a
        else:
            dtype = a
    y = x
    where = None if device is None else as_device(device)
    if where is not None and where.type == "cpu" and where != x.device:  # before the cast: float64 is on the CPU only
        y = apply(Move, y, device=where, source=x.device)
    if dtype is not None:
        d = dtypes.as_dtype(dtype)
        if d is not x.dtype:
            if d is dtypes.float64 and y.device.type != "cpu":
                raise TypeError(f"[to] float64 is on the CPU only; got {y.device}. Use float32, or move with .cpu() first")
            y = apply(Cast, y, dtype=d.numpy)
    if where is not None and where != y.device:
        y = apply(Move, y, device=where, source=y.device)
    return laid_out(clone(y) if copy and y is x else y, memory_format)


def laid_out(x: Tensor, memory_format: Any) -> Tensor:
    """x in PyTorch's memory format, or the name of one; None and preserve_format leave it as it is."""
    form = str(memory_format).removeprefix("torch.")
    if memory_format is None or form == "preserve_format":
        return x
    if form == "contiguous_format":
        return contiguous(x)
    if form not in ("channels_last", "channels_last_3d") or x.ndim != (4 if form == "channels_last" else 5):
        raise ValueError(f"[to] no memory format {form} for shape {x.shape}: channels_last is for 4-D, channels_last_3d for 5-D")
    last = contiguous(permute(x, 0, *range(2, x.ndim), 1))
    return permute(last, 0, x.ndim - 1, *range(1, x.ndim - 1))


def cpu(x: Tensor) -> Tensor:
    """x on the CPU."""
    return to(x, device="cpu")


def wgpu(x: Tensor, index: int = 0) -> Tensor:
    """x on the GPU."""
    return to(x, device=f"wgpu:{index}")


def cast_function(name: str) -> Any:
    """x.float(), x.half(), …: x in a named dtype."""
    d = dtypes.as_dtype(name)

    def cast(x: Tensor, *, memory_format: Any = None) -> Tensor:
        return to(x, dtype=d, memory_format=memory_format)

    cast.__name__, cast.__doc__ = name, f"x as {d.name}."
    return cast


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """x in other's dtype."""
    return to(x, dtype=other.dtype)


def sum_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Undo a broadcast from `shape`: sum over the dimensions that it stretched."""
    if x.shape == shape:
        return x
    axes = shapes.reduced_axes(x.shape, tuple(shape))
    return reshape(x.sum(axes, keepdim=True) if axes else x, *shape)


for _function in (reshape, view, permute, transpose, t, expand, broadcast_to, squeeze, unsqueeze, flatten, split, chunk,
                  unbind, narrow, flip, clone, contiguous):  # fmt: skip
    public(_function)
for _function in (cat, stack, broadcast_tensors):
    public(_function, method=False)
public(cat, "concat", method=False)
for _name in ("swapaxes", "swapdims"):
    public(transpose, _name)
for _function in (to, cpu, wgpu, type_as, sum_to):
    setattr(Tensor, _function.__name__, _function)
for _name in ("double", "float", "half", "bfloat16", "int", "long", "bool"):
    setattr(Tensor, _name, cast_function(_name))
Tensor.T = property(lambda x: permute(x, *range(x.ndim)[::-1]), doc="The dimensions in reverse order.")  # type: ignore[attr-defined]
Tensor.mT = property(lambda x: transpose(x, -2, -1), doc="The last two dimensions exchanged.")  # type: ignore[attr-defined]
