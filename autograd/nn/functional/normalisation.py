"""Normalisations: each takes off a mean, divides by a deviation, and scales and shifts the result."""

from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes
from ...tensor import Tensor


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions; var is the biased one.

    weight, bias: of shape normalized_shape, which must be how input's shape ends. float16 is computed in float32.
    """
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"[layer_norm] the input must end in normalized_shape {shape}; got {input.shape}")
    axes = tuple(range(-len(shape), 0))
    x = input.float() if input.dtype is dtypes.float16 else input
    centred = x - x.mean(axes, keepdim=True)
    y = centred * ((centred * centred).mean(axes, keepdim=True) + eps).rsqrt()
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y.to(input.dtype)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm of x along dim, eps)."""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)
