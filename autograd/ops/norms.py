"""Composites of norms: distances and rescaling."""

from __future__ import annotations

from ..op import promoted, public
from ..shapes import axis_of
from ..tensor import Tensor
from .rounding import tensors
from .select import where


def dist(x: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of x - other."""
    tensors("dist", x, other)
    x, other = promoted(x, other)
    return (x - other).norm(p)


def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """x with its slices along `dim` whose p-norm exceeds maxnorm scaled down to it."""
    tensors("renorm", x)
    if p <= 0 or maxnorm < 0:
        raise ValueError(f"[renorm] p must be positive and maxnorm not negative; got p={p}, maxnorm={maxnorm}")
    if x.ndim < 2:
        raise ValueError(f"[renorm] expects at least 2 dimensions; got shape {x.shape}")
    axis = axis_of(dim, x.ndim, "renorm")
    size = x.norm(p, tuple(i for i in range(x.ndim) if i != axis), keepdim=True)
    return x * where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


public(dist)
public(renorm)
