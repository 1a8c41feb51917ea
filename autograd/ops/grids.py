"""Combinations of vectors, grids, differences and integrals along a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations as choices
from itertools import combinations_with_replacement as repeated_choices
from typing import Any

from .. import create, dtypes, shapes
from ..op import public
from ..tensor import Tensor
from .rounding import floating, tensors
from .scan import cumsum
from .views import broadcast_tensors, cat, stack

# -- combinations ---------------------------------------------------------------------------------------


def meshgrid(*vectors: Any, indexing: str = "ij") -> tuple:
    """Grids of the coordinates of vectors: element [i, j, ...] of the k-th is vectors[k] at that index.

    indexing "xy" exchanges the first two dimensions.
    """
    if len(vectors) == 1 and isinstance(vectors[0], Sequence):
        vectors = tuple(vectors[0])
    tensors("meshgrid", *vectors)
    if not vectors or any(x.ndim > 1 for x in vectors):
        raise ValueError(f"[meshgrid] expects vectors or numbers; got {', '.join(str(x.shape) for x in vectors) or 'nothing'}")
    if any(x.dtype is not vectors[0].dtype for x in vectors):
        raise TypeError(f"[meshgrid] all must have one dtype; got {', '.join(str(x.dtype) for x in vectors)}")
    if indexing not in ("ij", "xy"):
        raise ValueError(f'[meshgrid] indexing is "ij" or "xy"; got {indexing!r}')
    n = len(vectors)
    grids = broadcast_tensors(*(x.reshape([-1 if k == i else 1 for k in range(n)]) for i, x in enumerate(vectors)))
    return tuple(g.transpose(0, 1) for g in grids) if indexing == "xy" and n > 1 else tuple(grids)


def cartesian_prod(*vectors: Tensor) -> Tensor:
    """All tuples of one element of each vector, a row each; a single vector is itself."""
    tensors("cartesian_prod", *vectors)
    if not vectors or any(x.ndim != 1 for x in vectors):
        raise ValueError(f"[cartesian_prod] expects vectors; got {', '.join(str(x.shape) for x in vectors) or 'nothing'}")
    if len(vectors) == 1:
        return vectors[0]
    return stack([g.reshape(-1) for g in meshgrid(*vectors)], 1)


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector in their order, a row each."""
    tensors("combinations", x)
    if x.ndim != 1 or r < 0:
        raise ValueError(f"[combinations] expects a vector and r >= 0; got shape {x.shape} and r={r}")
    if not r:
        return x[:0]
    rows = list((repeated_choices if with_replacement else choices)(range(x.shape[0]), r))
    if not rows:
        return x[:0].reshape(0, r)
    return x[create.tensor(rows, device=x.device)]


def block_diag(*matrices: Tensor) -> Tensor:
    """The matrices along the diagonal, zeros elsewhere; numbers and vectors are matrices of one row."""
    tensors("block_diag", *matrices)
    if any(x.ndim > 2 for x in matrices):
        raise ValueError(f"[block_diag] expects at most 2 dimensions; got {', '.join(str(x.shape) for x in matrices)}")
    blocks = [x.reshape((1,) * (2 - x.ndim) + x.shape) for x in matrices]
    if not blocks:
        return create.zeros(1, 0)
    d = blocks[0].dtype
    for x in blocks:
        d = dtypes.promote_types(d, x.dtype)
    width, start, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        x = x.to(d)
        sides = start, width - start - x.shape[1]
        rows.append(cat([x.new_zeros((x.shape[0], sides[0])), x, x.new_zeros((x.shape[0], sides[1]))], 1))
        start += x.shape[1]
    return cat(rows, 0)


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 … N - 1 of each element, along a new last dimension. ag.linalg.vander."""
    tensors("vander", x)
    x = x if x.ndim else x.reshape(1)
    n = x.shape[-1] if N is None else N
    if n < 1 or (N is not None and N <= 1):
        raise ValueError(f"[vander] N must be above 1; got {n}")
    x = x if x.dtype.is_floating_point else x.to(dtypes.int64)
    ones = x.detach().ones_like().unsqueeze(-1)
    return cat([ones, x.unsqueeze(-1).expand(*x.shape, n - 1)], -1).cumprod(-1)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1 … 0 of each element of a vector, a row each; ascending with `increasing`."""
    tensors("vander", x)
    if x.ndim != 1:
        raise ValueError(f"[vander] expects a vector; got shape {x.shape}")
    n = x.shape[0] if N is None else N
    if n < 1 or not x.shape[0]:
        return x.new_zeros((x.shape[0], max(n, 0)))
    ones = x.detach().ones_like().unsqueeze(-1)
    y = cat([ones, x.unsqueeze(-1).expand(x.shape[0], n - 1)], -1).cumprod(-1)
    return y if increasing else y.flip(-1)


def trace(x: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    tensors("trace", x)
    if x.ndim != 2:
        raise ValueError(f"[trace] expects a matrix; got shape {x.shape}")
    return x.diagonal().sum()


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` numbers from base^start to base^end, evenly in their logarithms."""
    for name, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor):
            if x.ndim:
                raise ValueError(f"[logspace] {name} must be a number or a 0-d tensor; got shape {x.shape}")
            device = x.device if device is None else device
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if not isinstance(steps, int) or steps < 0:
        raise ValueError(f"[logspace] steps must be a whole number, not negative; got {steps}")
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()
    gap = (end - start) / (steps - 1) if steps > 1 else 0.0
    values = [_power(base, start + gap * k if 2 * k < steps else end - gap * (steps - 1 - k)) for k in range(steps)]
    if steps == 1:
        values = [_power(base, start)]
    if not d.is_floating_point:
        values = [int(v) for v in values]
    return create.tensor(values, dtype=d, device=device, requires_grad=requires_grad)


def _power(base: float, exponent: float) -> float:
    try:
        return float(base) ** exponent
    except OverflowError:
        return math.inf


# -- differences and integrals --------------------------------------------------------------------------


def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """x[k + 1] - x[k] along `dim`, n times, with `prepend` before and `append` behind x."""
    tensors("diff", x)
    if not x.ndim:
        raise ValueError("[diff] expects at least one dimension; got a 0-d tensor")
    axis = shapes.axis_of(dim, x.ndim, "diff")
    if n < 0:
        raise ValueError(f"[diff] n must not be negative; got {n}")
    if not n:
        return x.clone()
    parts = [v for v in (prepend, x, append) if v is not None]
    for v in parts:
        if v.ndim != x.ndim or any(v.shape[i] != x.shape[i] for i in range(x.ndim) if i != axis):
            raise ValueError(f"[diff] prepend and append must have x's sizes but along dim {axis}; got {v.shape} for {x.shape}")
    x = cat(parts, axis) if len(parts) > 1 else x
    for _ in range(min(n, x.shape[axis])):
        size = x.shape[axis]
        if not size:
            break
        high, low = x.narrow(axis, 1, size - 1), x.narrow(axis, 0, size - 1)
        x = high ^ low if x.dtype is dtypes.bool_ else high - low
    return x


def _steps(y: Tensor, x: Any, dx: float, axis: int, op: str) -> Any:
    """The widths of the intervals, to be multiplied with something of one element less along the axis."""
    if x is None:
        return dx
    if not x.ndim or x.shape[-1 if x.ndim == 1 else axis - y.ndim] != y.shape[axis]:
        raise ValueError(f"[{op}] x must have as many points as y along dim {axis}; got {x.shape} for {y.shape}")
    if x.ndim == 1:
        return diff(x).reshape(-1, *(1,) * (y.ndim - 1 - axis))
    return diff(x, dim=axis - y.ndim)


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The sum of (y[k] + y[k + 1]) / 2 * (x[k + 1] - x[k]) along `dim`; points 1, or dx, apart without x."""
    pieces, axis = _pieces(y, x, dx, dim, "trapezoid")
    return pieces.sum(axis)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The running sum of what trapezoid adds up."""
    pieces, axis = _pieces(y, x, dx, dim, "cumulative_trapezoid")
    return cumsum(pieces, axis)


def _pieces(y: Tensor, x: Any, dx: float | None, dim: int, op: str) -> tuple[Tensor, int]:
    tensors(op, y)
    if x is not None and dx is not None:
        raise TypeError(f"[{op}] give x or dx, not both")
    axis = shapes.axis_of(dim, y.ndim, op)
    if not y.ndim:
        raise ValueError(f"[{op}] expects at least one dimension; got a 0-d tensor")
    y = floating(y, op)
    n = max(y.shape[axis] - 1, 0)
    both = y.narrow(axis, min(1, y.shape[axis]), n) + y.narrow(axis, 0, n)
    pieces = both * _steps(y, x, 1 if dx is None else dx, axis, op) * 0.5
    return pieces, axis - y.ndim + pieces.ndim


def gradient(x: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple:
    """Slopes along each of `dim` (all): central differences inside, one-sided of edge_order 1 or 2 at the edges.

    spacing: the distance of points, one for all or one a dimension, or a vector of coordinates a dimension.
    """
    tensors("gradient", x)
    if edge_order not in (1, 2):
        raise ValueError(f"[gradient] edge_order is 1 or 2; got {edge_order}")
    x = floating(x, "gradient")
    axes = _axes(x, dim)
    if spacing is None or isinstance(spacing, int | float):
        spacing = [1.0 if spacing is None else spacing] * len(axes)
    elif isinstance(spacing, Tensor):
        spacing = [spacing]
    if len(spacing) != len(axes):
        raise ValueError(f"[gradient] spacing needs one entry a dimension, {len(axes)}; got {len(spacing)}")
    for axis in axes:
        if x.shape[axis] < edge_order + 1:
            raise ValueError(f"[gradient] every dimension needs at least {edge_order + 1} points; got shape {x.shape}")
    return tuple(_slope(x, axis, h, edge_order) for axis, h in zip(axes, spacing, strict=True))


def _axes(x: Tensor, dim: Any) -> list[int]:
    if dim is None:
        return list(range(x.ndim))
    axes = [shapes.axis_of(d, x.ndim, "gradient") for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(axes)) != len(axes):
        raise ValueError(f"[gradient] a dimension may appear once; got {dim}")
    return axes


def _slope(x: Tensor, axis: int, h: Any, edge_order: int) -> Tensor:
    """The slopes along one axis: weighted differences of neighbours, h to the left and k to the right."""
    n = x.shape[axis]
    if isinstance(h, Tensor) and h.ndim:
        if h.shape != (n,):
            raise ValueError(f"[gradient] coordinates along dim {axis} must be {n} numbers; got shape {h.shape}")
        gaps = diff(h.to(x.dtype)).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    else:
        gaps = x.detach().new_ones((n - 1, *(1,) * (x.ndim - 1 - axis))) * h
    rise = diff(x, dim=axis) / gaps
    cut = lambda v, start, size: v.narrow(v.ndim - (x.ndim - axis), start, size)
    if n > 2:
        left, right = cut(gaps, 0, n - 2), cut(gaps, 1, n - 2)
        inner = (cut(rise, 0, n - 2) * right + cut(rise, 1, n - 2) * left) / (left + right)
    first, last = cut(rise, 0, 1), cut(rise, n - 2, 1)
    if edge_order == 2:
        a, b = cut(gaps, 0, 1), cut(gaps, 1, 1)
        c, d = cut(gaps, n - 3, 1), cut(gaps, n - 2, 1)
        first = first + (first - cut(rise, 1, 1)) * a / (a + b)
        last = last + (last - cut(rise, n - 3, 1)) * d / (c + d)
    return cat([first, inner, last] if n > 2 else [first, last], axis)


for _function in (combinations, vander, trace, diff):
    public(_function)
for _function in (meshgrid, cartesian_prod, block_diag, logspace, trapezoid, cumulative_trapezoid, gradient):
    public(_function, method=False)
public(trapezoid, "trapz", method=False)
