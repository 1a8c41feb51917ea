"""Drawing from distributions, and filling tensors with what is drawn. Numbers come from the one stream of random.py."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes, shapes
from ..grad_mode import no_grad
from ..op import public
from ..random import Generator, drawn, rand, randint, randint_like, randn
from ..tensor import Tensor
from .sort import searchsorted

# Bits of whole numbers that every dtype holds exactly; int64's are those that every device holds.
_EXACT = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "int64": 31, "int32": 31, "uint8": 8, "bool": 1}


@no_grad()
def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that input says, else 0; input's shape and dtype. ValueError for one outside [0, 1]."""
    _floating(input, "bernoulli")
    if bool((~((input >= 0) & (input <= 1))).any()):
        raise ValueError("[bernoulli] probabilities lie in [0, 1]; got others. Apply sigmoid or clamp?")
    return (_uniform(input, generator) < input).to(input.dtype)


@no_grad()
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """num_samples indices from each row of weights, a vector or a matrix, as likely as the weights say: int64.

    Rows need not add up to 1. ValueError for negative, infinite or NaN weights, for a row of zeros, and for more
    samples than there are positive weights without replacement.
    """
    _floating(input, "multinomial")
    if input.ndim not in (1, 2):
        raise ValueError(f"[multinomial] expects a vector or a matrix of weights; got shape {input.shape}")
    if num_samples < 1:
        raise ValueError(f"[multinomial] num_samples must be positive; got {num_samples}")
    weights = (input if input.ndim == 2 else input.unsqueeze(0)).to(_wide(input))
    if bool((~((weights >= 0) & (weights < math.inf))).any()):
        raise ValueError("[multinomial] weights must be finite and not negative")
    found = int((weights > 0).sum(-1).min().item()) if weights.numel() else 0
    if not found or (not replacement and num_samples > found):
        more = "" if replacement else f", and {num_samples} samples without replacement as many; the poorest row has {found}"
        raise ValueError(f"[multinomial] each row needs a positive weight{more}")
    if replacement:
        heights = weights.cumsum(-1)
        u = rand(weights.shape[0], num_samples, dtype=weights.dtype, device=weights.device, generator=generator)
        index = searchsorted(heights, u * heights[:, -1:], right=True).minimum(heights.argmax(-1, keepdim=True))
    else:  # the smallest of exponential waiting times with these rates
        waits = drawn("standard_exponential", weights.shape, weights.dtype, weights.device, False, generator)
        index = (weights / waits).topk(num_samples).indices
    return index if input.ndim == 2 else index.squeeze(0)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers with these means and standard deviations: tensors that broadcast, or numbers and a size."""
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if not given and size is None:
        raise TypeError("[normal] give size when mean and std are numbers")
    if given and size is not None:
        raise TypeError("[normal] size goes with numbers only; mean and std have shapes")
    shape = shapes.broadcast([x.shape for x in given], "normal") if given else shapes.shape_args((size,), "normal")
    d, where = (dtype, device) if not given else (dtype or given[0].dtype, device or given[0].device)
    with no_grad():
        y = randn(shape, dtype=d, device=where, generator=generator) * std + mean
    return y.requires_grad_(requires_grad)


@no_grad()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates that input holds, in its shape and dtype. ValueError for a negative rate."""
    _floating(input, "poisson")
    rates = input.cpu().double().numpy()
    if not (rates >= 0).all():
        raise ValueError("[poisson] rates must not be negative")
    return drawn("poisson", input.shape, input.dtype, input.device, False, generator, rates)


def uniform_(x: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """x = numbers uniform on [a, b)."""
    return _put(x, _uniform(x, generator) * (b - a) + a)


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """x = normal numbers."""
    return _put(x, randn(x.shape, dtype=_wide(x), device=x.device, generator=generator) * std + mean)


def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """x = exp(normal numbers)."""
    return _put(x, (randn(x.shape, dtype=_wide(x), device=x.device, generator=generator) * std + mean).exp())


def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """x = exponential numbers of rate lambd, all above 0."""
    return _put(x, drawn("standard_exponential", x.shape, _wide(x), x.device, False, generator) / lambd)


def cauchy_(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """x = median + sigma * tan(pi * (u - 1/2)), u uniform."""
    return _put(x, ((_uniform(x, generator) - 0.5) * math.pi).tan() * sigma + median)


def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """x = how many trials of probability p the first success took: 1, 2, …"""
    if not 0 < p < 1:
        raise ValueError(f"[geometric_] p lies between 0 and 1; got {p}")
    return _put(x, (drawn("standard_exponential", x.shape, _wide(x), x.device, False, generator) / -math.log1p(-p)).ceil())


def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """x = 1 with probability p (a number, or a tensor that broadcasts to x), else 0."""
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise ValueError(f"[bernoulli_] p lies in [0, 1]; got {p}")
    return _put(x, _uniform(x, generator) < p)


def random_(x: Tensor, low: int | None = None, high: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """x = whole numbers on [low, high), or below `low`; by default all that x's dtype holds exactly, from 0."""
    if high is None:
        low, high = 0, 2 ** _EXACT[x.dtype.name] if low is None else low
    return _put(x, randint(low, high, x.shape, device=x.device, generator=generator))  # type: ignore[arg-type]


def _put(x: Tensor, values: Tensor) -> Tensor:
    return x.copy_(values.to(x.dtype))


def _uniform(x: Tensor, generator: Generator | None) -> Tensor:
    return rand(x.shape, dtype=_wide(x), device=x.device, generator=generator)


def _wide(x: Tensor) -> Any:
    """16-bit numbers are drawn in float32 and rounded once."""
    return dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32


def _floating(x: Any, op: str) -> None:
    if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
        came = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"[{op}] expected a tensor of floating point; got {came}")


for _function in (bernoulli, multinomial):
    public(_function)
for _function in (normal, poisson, randint_like):
    public(_function, method=False)
for _function in (uniform_, normal_, log_normal_, exponential_, cauchy_, geometric_, bernoulli_, random_):
    setattr(Tensor, _function.__name__, _function)
