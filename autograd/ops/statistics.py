"""Order statistics, sums that leave NaN out, histograms, covariance."""

from __future__ import annotations

import math
from typing import Any

from .. import create, dtypes, shapes
from ..op import public
from ..tensor import Tensor
from .reduce import Pair, std, var
from .rounding import floating, tensors
from .select import where
from .sort import argsort, bucketize, front, picked
from .views import cat

# -- sums that leave NaN out ----------------------------------------------------------------------------


def nansum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of what is not NaN."""
    x = x.masked_fill(x.isnan(), 0) if x.dtype.is_floating_point else x
    return x.sum(dim, keepdim, dtype=dtype)


def nanmean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of what is not NaN."""
    if not x.dtype.is_floating_point and dtype is None:
        raise TypeError(f"[nanmean] expects floating point; got {x.dtype}. Convert with .float() first")
    total = nansum(x, dim, keepdim, dtype=dtype)
    return total / (~x.isnan()).sum(dim, keepdim).to(total.dtype)


def count_nonzero(x: Tensor, dim: Any = None) -> Tensor:
    """How many elements over `dim` are not zero, int64."""
    return (x != 0).sum(dim)


def var_mean(x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None) -> tuple:
    """(var(x), mean(x)) with the arguments of var."""
    return _with_mean(var, x, dim, unbiased, keepdim, correction)


def std_mean(x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None) -> tuple:
    """(std(x), mean(x)) with the arguments of std."""
    return _with_mean(std, x, dim, unbiased, keepdim, correction)


def _with_mean(spread: Any, x: Tensor, dim: Any, unbiased: bool, keepdim: bool, correction: int | None) -> tuple:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return spread(x, dim, unbiased, keepdim, correction=correction), x.mean(dim, keepdim)


class Extremes(tuple):
    """(min, max), as aminmax returns."""

    __slots__ = ()
    min = property(lambda self: self[0])
    max = property(lambda self: self[1])


def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """(smallest, largest) over `dim` (all by default)."""
    axes = () if dim is None else dim
    return Extremes((x.amin(axes, keepdim), x.amax(axes, keepdim)))


# -- order statistics -----------------------------------------------------------------------------------


def median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle one in order, the lower of two; NaN where there is one. With `dim` (values, indices).

    Without `dim` equal ones share the gradient; with it, it goes to the index.
    """
    return _median(x, dim, keepdim, False)


def nanmedian(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of what is not NaN; NaN of nothing else. With `dim` (values, indices)."""
    return _median(x, dim, keepdim, True)


def _median(x: Tensor, dim: int | None, keepdim: bool, ignore: bool) -> Any:
    op = "nanmedian" if ignore else "median"
    tensors(op, x)
    if dim is None:
        if not x.numel():
            return x.sum() * math.nan if x.dtype.is_floating_point else x.new_zeros(())
        row = x.reshape(-1)
        middle = _median(row, 0, False, ignore)[0]
        if not middle.requires_grad:
            return middle
        same = (row == middle) | (row.isnan() & middle.isnan())
        return row.masked_fill(~same, -math.inf).amax()  # the same value; equal ones share the gradient
    axis = shapes.axis_of(dim, x.ndim, op)
    if not x.ndim:
        return Pair((x.clone(), x.zeros_like(dtype=dtypes.int64)))
    n = x.shape[axis]
    if not n:
        raise IndexError(f"[{op}] nothing to choose from along dim {axis} of shape {x.shape}")
    order = front(x, (n + 1) // 2, axis)
    missing = x.detach().isnan()  # NaN stands last
    if ignore:
        middle = (n - missing.long().sum(axis, keepdim=True) - 1).clamp(min=0) // 2
        return picked(x, axis, order.gather(axis, middle), keepdim)
    middle = order.narrow(axis, (n - 1) // 2, 1)
    first = missing.long().argmax(axis, keepdim=True)
    return picked(x, axis, where(missing.any(axis, keepdim=True), first, middle), keepdim)


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """(values, indices) of the most frequent element along `dim`: the smallest of several, at its last position."""
    tensors("mode", x)
    axis = shapes.axis_of(dim, x.ndim, "mode")
    if not x.ndim:
        return Pair((x.clone(), x.zeros_like(dtype=dtypes.int64)))
    n = x.shape[axis]
    if not n:
        raise IndexError(f"[mode] nothing to choose from along dim {axis} of shape {x.shape}")
    order = argsort(x, axis)
    row = x.detach().gather(axis, order)
    places = order.ones_like().cumsum(axis) - 1
    fresh = row.narrow(axis, 1, n - 1) != row.narrow(axis, 0, n - 1)
    starts = cat([fresh.new_ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), dtype=dtypes.bool_), fresh], axis)
    length = places - where(starts, places, 0).cummax(axis)[0]  # in its run, each element's place
    last = length.argmax(axis, keepdim=True)
    return picked(x, axis, order.gather(axis, last), keepdim)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(x: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The element at the fraction q (a number or a vector in [0, 1]) of the order along `dim`; NaN where there is one."""
    return _quantile(x, q, dim, keepdim, interpolation, False)


def nanquantile(x: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The quantile of what is not NaN."""
    return _quantile(x, q, dim, keepdim, interpolation, True)


def _quantile(x: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore: bool) -> Tensor:
    op = "nanquantile" if ignore else "quantile"
    q = _checked_q(x, q, interpolation, op)
    kept_dims = x.ndim
    if dim is None:
        x, axis = x.reshape(-1), 0
    else:
        axis = shapes.axis_of(dim, x.ndim, op)
        x = x.reshape(x.shape or (1,))
    if not x.shape[axis]:
        raise ValueError(f"[{op}] nothing to choose from along dim {axis} of shape {x.shape}")
    row = x.gather(axis, argsort(x, axis)).transpose(axis, -1)
    y = _between(row, q.reshape(-1), interpolation, ignore)  # [..., 1, ...], then the q's
    y = y.transpose(axis, -2) if dim is not None else y
    if dim is None:
        y = y.reshape((1,) * kept_dims + (-1,)) if keepdim else y.reshape(-1)
    elif not keepdim or not kept_dims:
        y = y.squeeze(axis)
    y = y.permute(y.ndim - 1, *range(y.ndim - 1))
    return y if q.ndim else y[0]


def _checked_q(x: Tensor, q: Any, interpolation: str, op: str) -> Tensor:
    tensors(op, x)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[{op}] expects floating point; got {x.dtype}. Convert with .float() first")
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(f"[{op}] interpolation is one of {', '.join(_INTERPOLATIONS)}; got {interpolation!r}")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise ValueError(f"[{op}] q must lie in [0, 1]; got {q}")
        return x.detach().new_full((), q)
    if q.ndim > 1 or q.dtype is not x.dtype:
        raise ValueError(f"[{op}] q is a number or a vector of x's dtype; got {q.dtype} {q.shape} for {x.dtype}")
    if q.numel() and bool(((q < 0) | (q > 1)).any()):
        raise ValueError(f"[{op}] all of q must lie in [0, 1]; got {q.tolist()}")
    return q


def _between(row: Tensor, q: Tensor, interpolation: str, ignore: bool) -> Tensor:
    """row [..., n] in order, q [m] -> [..., 1, m]: the elements at q times the last position."""
    n = row.shape[-1]
    missing = row.detach().isnan().long().sum(-1, keepdim=True)
    last = (n - 1 - missing).clamp(min=0) if ignore else missing.zeros_like() + (n - 1)
    rank = last.to(row.dtype) * q
    if not ignore:
        rank = where(missing > 0, float(n - 1), rank)  # a NaN, which stands last
    if interpolation == "nearest":
        rank = rank.round()
    low = rank.floor() if interpolation != "higher" else rank.ceil()
    below = row.gather(-1, low.detach().long())
    if interpolation in ("linear", "midpoint"):
        above = row.gather(-1, rank.ceil().detach().long())
        weight = rank - low.detach() if interpolation == "linear" else 0.5
        below = below + (above - below) * weight
    return below.unsqueeze(-2)


# -- histograms -----------------------------------------------------------------------------------------


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, ... stands in a vector of integers, or the sum of the weights there."""
    tensors("bincount", x)
    if x.ndim != 1 or x.dtype.is_floating_point or x.dtype is dtypes.bool_:
        raise ValueError(f"[bincount] expects a vector of integers; got {x.dtype} {x.shape}")
    if minlength < 0:
        raise ValueError(f"[bincount] minlength must not be negative; got {minlength}")
    if weights is not None and weights.shape != x.shape:
        raise ValueError(f"[bincount] weights must have x's shape; got {weights.shape} for {x.shape}")
    if x.numel() and int(x.min()) < 0:
        raise ValueError(f"[bincount] the numbers must not be negative; got {int(x.min())}")
    n = max(minlength, int(x.max()) + 1 if x.numel() else 0)
    if weights is None:
        weights = x.ones_like(dtype=dtypes.int64)
    elif weights.dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    weights = weights.detach()
    return weights.new_zeros((n,)).scatter_add(0, x.long(), weights) if x.numel() else weights.new_zeros((n,))


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from min to max (those of x where both are 0)."""
    tensors("histc", x)
    if bins <= 0:
        raise ValueError(f"[histc] bins must be positive; got {bins}")
    x = x.detach().reshape(-1)
    low, high = _range(x, min, max, "histc", 1)
    if not x.numel():
        return x.new_zeros((bins,))
    inside = (x >= low) & (x <= high)
    at = ((floating(x) - low) / (high - low) * bins).floor().nan_to_num(0).clamp(0, bins - 1).long()
    return x.new_zeros((bins,)).scatter_add(0, at, inside.to(x.dtype))


def _range(x: Tensor, low: float, high: float, op: str, beside: float) -> tuple[float, float]:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"[{op}] the range must be finite; got min={low}, max={high}")
    if low > high:
        raise ValueError(f"[{op}] max must not be below min; got min={low}, max={high}")
    if low == high and x.numel():
        low, high = x.min().item(), x.max().item()
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"[{op}] the range of x must be finite; got [{low}, {high}]. Give min and max")
    return (low - beside, high + beside) if low == high else (low, high)


class Histogram(tuple):
    """(hist, bin_edges), as histogram returns."""

    __slots__ = ()
    hist = property(lambda self: self[0])
    bin_edges = property(lambda self: self[1])


def histogram(x: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False) -> Histogram:
    """(counts or sums of weights, edges) for a number of equal bins, or for a vector of ascending edges."""
    tensors("histogram", x)
    if not x.dtype.is_floating_point:
        raise TypeError(f"[histogram] expects floating point; got {x.dtype}")
    if weight is not None and (weight.shape != x.shape or weight.dtype is not x.dtype):
        got = f"{weight.dtype} {weight.shape} for {x.dtype} {x.shape}"
        raise ValueError(f"[histogram] weight must have x's shape and dtype; got {got}")
    values = x.detach().reshape(-1)
    edges = _edges(values, bins, range)
    n = edges.numel() - 1
    amount = values.ones_like() if weight is None else weight.detach().reshape(-1)
    if values.numel():
        low, high = edges[0], edges[n]
        inside = (values >= low) & (values <= high)
        at = (bucketize(values, edges, right=True) - 1).clamp(0, n - 1)
        hist = values.new_zeros((n,)).scatter_add(0, at, amount.masked_fill(~inside, 0))
    else:
        hist = values.new_zeros((n,))
    if density:
        hist = hist / hist.sum() / (edges[1:] - edges[:-1])
    return Histogram((hist, edges))


def _edges(values: Tensor, bins: Any, range: Any) -> Tensor:
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or not bins.numel() or bins.dtype is not values.dtype:
            raise ValueError(f"[histogram] bins are a number or a vector of edges of x's dtype; got {bins.dtype} {bins.shape}")
        if range is not None:
            raise ValueError("[histogram] range is for a number of bins; got edges and a range")
        return bins.detach()
    if bins <= 0:
        raise ValueError(f"[histogram] bins must be positive; got {bins}")
    low, high = range or (0, 0)
    low, high = _range(values, low, high, "histogram", 0.5) if values.numel() or range else (0.0, 1.0)
    return create.linspace(low, high, bins + 1, dtype=values.dtype, device=values.device)


# -- covariance -----------------------------------------------------------------------------------------


def cov(x: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariance matrix of variables (rows) observed together (columns), with frequencies and weights of columns."""
    tensors("cov", x)
    if x.ndim > 2:
        raise ValueError(f"[cov] expects at most 2 dimensions; got shape {x.shape}")
    if x.dtype is dtypes.bool_:
        raise TypeError(f"[cov] numbers expected; got {x.dtype}")
    rows = floating(x if x.ndim == 2 else x.reshape(1, -1))
    n = rows.shape[1]
    weight = _column_weights(rows, fweights, aweights)
    if weight is None:
        total, mean, free = n, rows.mean(1, keepdim=True), n - correction
    else:
        total = weight.sum()
        mean = (rows * weight).sum(1, keepdim=True) / total
        free = total - correction
        if aweights is not None and correction:
            free = total - correction * (weight * aweights).sum() / total
    centred = rows - mean
    scaled = centred if weight is None else centred * weight
    free = free.clamp(min=0) if isinstance(free, Tensor) else rows.new_full((), max(free, 0))
    y = scaled @ centred.mT / free
    return y if x.ndim == 2 and x.shape[0] > 1 else y.squeeze()


def _column_weights(rows: Tensor, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    weight = None
    for given, name, whole in ((fweights, "fweights", True), (aweights, "aweights", False)):
        if given is None:
            continue
        if given.ndim > 1 or given.numel() != rows.shape[1]:
            raise ValueError(f"[cov] {name} must have one number a column, {rows.shape[1]}; got shape {given.shape}")
        if given.dtype.is_floating_point is whole or given.dtype is dtypes.bool_:
            raise TypeError(f"[cov] {name} must be {'integers' if whole else 'floating point'}; got {given.dtype}")
        if given.numel() and bool((given < 0).any()):
            raise ValueError(f"[cov] {name} must not be negative; got {given.min().item()}")
        weight = given if weight is None else weight * given
    return weight


def corrcoef(x: Tensor) -> Tensor:
    """The correlation matrix of variables (rows): cov over the square roots of its diagonal, held in [-1, 1]."""
    tensors("corrcoef", x)
    if x.ndim > 2:
        raise ValueError(f"[corrcoef] expects at most 2 dimensions; got shape {x.shape}")
    c = cov(x)
    if not c.ndim:
        return c / c
    scale = c.diagonal().sqrt()
    return (c / scale.unsqueeze(1) / scale).clamp(-1, 1)


for _function in (nansum, nanmean, count_nonzero, aminmax, median, nanmedian, mode, quantile, nanquantile, bincount, histc,
                  histogram, cov, corrcoef):  # fmt: skip
    public(_function)
for _function in (var_mean, std_mean):
    public(_function, method=False)
