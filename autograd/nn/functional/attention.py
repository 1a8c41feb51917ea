"""Scaled dot-product attention. PyTorch's name, arguments and numbers."""

from __future__ import annotations

import math

from ...ops.attention import attention, weighed
from ...random import randint
from ...shapes import broadcast, expandable
from ...tensor import Tensor
from .dropout import check_probability

NAME = "scaled_dot_product_attention"


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """softmax(scale query key^T + mask) value: query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V].

    scale: 1 / sqrt(E) by default. attn_mask broadcasts to [..., L, S]: bool, True where a query may see a key, or
    floating point, added to the scores. is_causal: query i sees keys 0 … i; not beside a mask. A query that may see
    nothing gives zeros, and finite gradients. dropout_p: the probability that a weight is dropped; pass 0 in eval.
    enable_gqa: query [..., H, L, E] may have a multiple of the heads of key and value (grouped-query attention).

    Neither device keeps scores for the gradient, unless attn_mask requires grad. Formulas and their source:
    ops/attention.py. ValueError for shapes that do not fit, TypeError for mixed dtypes.
    """
    q, k, v, mask, options = prepared(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return attention(q, k, v, mask, **options)


def attention_weights(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                      dropout_p: float = 0.0) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(what scaled_dot_product_attention gives, the weights [..., L, S], dropped ones as 0)."""
    q, k, v, mask, options = prepared(query, key, value, attn_mask, dropout_p, False, None, False)
    return weighed(q, k, v, mask, **options)


def prepared(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
             scale: float | None, enable_gqa: bool) -> tuple:  # fmt: skip
    """(q, k, v, mask, options) for ops.attention: leading dimensions equal, everything checked."""
    check_probability(dropout_p, NAME)
    q, k, v = query, key, value
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ValueError(f"[{NAME}] query, key and value have at least 2 dimensions; got {q.shape}, {k.shape} and {v.shape}")
    if not q.dtype is k.dtype is v.dtype or not q.dtype.is_floating_point:
        raise TypeError(f"[{NAME}] query, key and value have one floating point dtype; got {q.dtype}, {k.dtype} and {v.dtype}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        got = f"{q.shape}, {k.shape}, {v.shape}"
        raise ValueError(f"[{NAME}] needs query [..., L, E], key [..., S, E], value [..., S, V]; got {got}")
    if enable_gqa:
        k, v = (_repeated(q, x) for x in (k, v))
    batch = broadcast((q.shape[:-2], k.shape[:-2], v.shape[:-2]), NAME)
    q, k, v = (x if x.shape[:-2] == batch else x.expand(*batch, *x.shape[-2:]) for x in (q, k, v))
    _check_mask(attn_mask, (*batch, q.shape[-2], k.shape[-2]), is_causal, q)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0
    seed = int(randint(0, 2**32, (1,), device="cpu").item()) if dropout_p else 0
    return q, k, v, attn_mask, {"scale": float(scale), "causal": bool(is_causal), "p": float(dropout_p), "seed": seed}


def _repeated(q: Tensor, x: Tensor) -> Tensor:
    """x with every head as often as q has heads for it."""
    if min(q.ndim, x.ndim) < 3 or not x.shape[-3] or q.shape[-3] % x.shape[-3]:
        raise ValueError(f"[{NAME}] query must have a multiple of the heads of key and value; got {q.shape} and {x.shape}")
    return x if q.shape[-3] == x.shape[-3] else x.repeat_interleave(q.shape[-3] // x.shape[-3], -3)


def _check_mask(mask: Tensor | None, shape: tuple, is_causal: bool, q: Tensor) -> None:
    if mask is None:
        return
    if is_causal:
        raise ValueError(f"[{NAME}] attn_mask and is_causal exclude each other; put the causal part into the mask")
    if mask.dtype.name != "bool" and mask.dtype is not q.dtype:
        raise TypeError(f"[{NAME}] attn_mask is of bool or of the query's dtype {q.dtype}; got {mask.dtype}")
    if mask.ndim < 2 or not expandable(mask.shape, shape):
        raise ValueError(f"[{NAME}] attn_mask must broadcast to {shape}; got {mask.shape}")
