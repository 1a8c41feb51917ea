"""PyTorch's *_copy functions: each a view of movement's, copied; and small makers of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import create, dtypes, shapes
from ..op import public
from ..tensor import Tensor
from . import diagonal, rearrange, views
from .select import where


def _copying(function: Callable, name: str) -> Callable:
    def copied(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        y = function(x, *args, **kwargs)
        return tuple([views.clone(part) for part in y]) if isinstance(y, tuple) else views.clone(y)

    copied.__name__, copied.__doc__ = name, f"A copy of what {name.removesuffix('_copy')}() shows."
    return copied


def unravel_index(indices: Tensor, shape: Any) -> tuple:
    """The coordinates, one tensor a dimension, of flat positions in a tensor of `shape`."""
    sizes = (shape,) if isinstance(shape, int) else shapes.shape_args((shape,), "unravel_index")
    if indices.dtype.rank != 1:
        raise TypeError(f"[unravel_index] indices are integers; got {indices.dtype}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"[unravel_index] sizes must not be negative; got {sizes}")
    rest, found = indices, []
    for n in reversed(sizes):
        found.append(rest % max(n, 1))
        rest = rest.floor_divide(max(n, 1))
    return tuple(reversed(found))


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None) -> Tensor:
    """The positions on and above a diagonal of a row x col matrix: a row of rows and a row of columns."""
    return _indices(row, col, dtype, device, "triu_indices", lambda r, c: c - r >= offset)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None) -> Tensor:
    """The positions on and below a diagonal of a row x col matrix: a row of rows and a row of columns."""
    return _indices(row, col, dtype, device, "tril_indices", lambda r, c: c - r <= offset)


def _indices(row: int, col: int, dtype: Any, device: Any, op: str, inside: Callable) -> Tensor:
    if row < 0 or col < 0:
        raise ValueError(f"[{op}] sizes must not be negative; got {row} and {col}")
    r, c = np.nonzero(inside(np.arange(row)[:, None], np.arange(col)))
    return create.tensor(np.stack([r, c]), dtype, device)


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor with a number in it, of the default dtype unless one is given."""
    number = s.item() if isinstance(s, Tensor) else s
    return create.full((), number, dtype or dtypes.get_default_dtype(), device, requires_grad)


def fill(x: Tensor, value: Any) -> Tensor:
    """A tensor like x, full of a number or a 0-d tensor, to which the gradient goes."""
    if not isinstance(value, Tensor):
        value = create.full((), value, x.dtype, x.device)
    if value.ndim:
        raise ValueError(f"[fill] the value is a number or a 0-d tensor; got shape {value.shape}")
    return where(create.tensor(True, device=x.device), value.to(x.dtype).to(x.device), x)


_SOURCES: dict[str, Callable] = {
    "expand": views.expand, "view": views.view, "narrow": views.narrow, "permute": views.permute, "squeeze": views.squeeze,
    "t": views.t, "transpose": views.transpose, "unbind": views.unbind, "unsqueeze": views.unsqueeze,
    "split_with_sizes": rearrange.split_with_sizes, "select": rearrange.select, "unfold": diagonal.unfold,
    "diagonal": diagonal.diagonal, "alias": lambda x: x,
}  # fmt: skip
for _name, _function in _SOURCES.items():
    public(_copying(_function, f"{_name}_copy"), method=_name == "narrow")
for _function in (unravel_index, triu_indices, tril_indices, scalar_tensor, fill):
    public(_function, method=False)
