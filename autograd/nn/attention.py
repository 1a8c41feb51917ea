"""MultiheadAttention. PyTorch's arguments, parameter names and starting values."""

from __future__ import annotations

from typing import Any

from ..function import Function
from ..ops.views import cat
from ..tensor import Tensor
from . import functional as F
from . import init
from .functional.attention import attention_weights
from .layers import Linear, new_parameter
from .module import Module


class Unpacked(Function):
    """q, k, v of one projection [..., 3 E], as views; their gradients are joined at once, not one by one into zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple:
        return tuple(x.chunk(3, -1))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return cat(grads, -1)


class MultiheadAttention(Module):
    """y = concat(head_1, …, head_h) W_o^T + b_o, head_i = attention(query W_q^T, key W_k^T, value W_v^T) of E / h columns.

    query [L, N, E], key [S, N, kdim], value [S, N, vdim] -> (y [L, N, E], weights); batch_first puts N first, and
    without N everything is unbatched. weights [N, L, S] are the heads' average, or [N, h, L, S] with
    average_attn_weights=False; None with need_weights=False, which is what runs without a matrix of weights.

    key_padding_mask [N, S] and attn_mask [L, S] or [N h, L, S]: bool, True where a key may *not* be seen, or floating
    point, added to the scores. A query that may see nothing gives zeros before W_o, and finite gradients.
    bias_k and bias_v (add_bias_kv) are one more key and value; add_zero_attn adds one of zeros.

    in_proj_weight [3 E, E], or q_proj_weight, k_proj_weight and v_proj_weight where kdim or vdim differ from E, are
    xavier uniform, biases 0, bias_k and bias_v xavier normal. Source: Vaswani et al. 2017.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"[MultiheadAttention] embed_dim is a multiple of num_heads; got {embed_dim} and {num_heads}")
        F.check_probability(dropout, "MultiheadAttention")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        packed = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": None if packed else (embed_dim, embed_dim),
            "k_proj_weight": None if packed else (embed_dim, self.kdim),
            "v_proj_weight": None if packed else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if packed else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else new_parameter(*shape, device=device, dtype=dtype))
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """(y, weights or None). is_causal says that attn_mask is the causal one, which must be given too."""
        if is_causal and attn_mask is None:
            raise ValueError("[MultiheadAttention] is_causal says what attn_mask is; got none. Pass the causal mask")
        batched = self._check(query, key, value)
        axis = 0 if self.batch_first else 1
        inputs = (query, key, value)
        if not batched:
            one = {id(x): x.unsqueeze(axis) for x in inputs}  # equal inputs stay one object
            inputs = tuple(one[id(x)] for x in inputs)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        q, k, v = self._projected(*inputs)
        k, v = self._with_biases(k, v)
        q, k, v = (self._heads(x) for x in (q, k, v))
        if self.add_zero_attn:
            k, v = (cat([x, x.new_zeros(*x.shape[:2], 1, x.shape[-1])], 2) for x in (k, v))
        batch, length, columns = q.shape[0], q.shape[2], k.shape[2]
        shapes = (batch, self.num_heads, length, columns - (self.bias_k is not None) - self.add_zero_attn)
        mask = _joined(_spread(attn_mask, shapes, batched), _padding(key_padding_mask, shapes), columns - shapes[-1], q)
        p = self.dropout if self.training else 0.0
        if need_weights:
            y, weights = attention_weights(q, k, v, mask, p)
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            y, weights = F.scaled_dot_product_attention(q, k, v, mask, p), None
        y = y.permute(0, 2, 1, 3) if self.batch_first else y.permute(2, 0, 1, 3)
        y = self.out_proj(y.reshape(*y.shape[:2], self.embed_dim))
        if batched:
            return y, weights
        return y.squeeze(axis), None if weights is None else weights.squeeze(0)

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether there is a batch; ValueError for shapes that do not fit."""
        shapes = f"{query.shape}, {key.shape} and {value.shape}"
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ValueError(f"[MultiheadAttention] query, key and value have 3 dimensions, or 2 unbatched; got {shapes}")
        sizes = query.shape[-1], key.shape[-1], value.shape[-1]
        wanted = self.embed_dim, self.kdim, self.vdim
        if sizes != wanted or key.shape[:-1] != value.shape[:-1]:
            raise ValueError(f"[MultiheadAttention] the last sizes are {wanted}, key and value agree in the rest; got {shapes}")
        batch = 0 if self.batch_first else 1
        if query.ndim == 3 and query.shape[batch] != key.shape[batch]:
            raise ValueError(f"[MultiheadAttention] query and key need one batch size (dimension {batch}); got {shapes}")
        return query.ndim == 3

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple:
        if self.in_proj_weight is not None and query is key is value:
            return Unpacked.apply(F.linear(query, self.in_proj_weight, self.in_proj_bias))
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        if self.in_proj_weight is None:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        else:
            weights = self.in_proj_weight.chunk(3)
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))

    def _with_biases(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """One more key and value, learned."""
        if self.bias_k is None:
            return k, v
        axis = 1 if self.batch_first else 0
        shape = (k.shape[0], 1, self.embed_dim) if self.batch_first else (1, k.shape[1], self.embed_dim)
        return cat([k, self.bias_k.expand(*shape)], axis), cat([v, self.bias_v.expand(*shape)], axis)

    def _heads(self, x: Tensor) -> Tensor:
        """[N, T, E] or [T, N, E] -> [N, h, T, E / h], a view."""
        x = x.unflatten(-1, (self.num_heads, self.head_dim))
        return x.permute(0, 2, 1, 3) if self.batch_first else x.permute(1, 2, 0, 3)


def _spread(mask: Tensor | None, shapes: tuple, batched: bool) -> Tensor | None:
    """attn_mask as one that broadcasts to [N, h, L, S]."""
    if mask is None:
        return None
    batch, heads, length, columns = shapes
    if mask.shape == (length, columns):
        return mask
    if mask.shape == (batch * heads, length, columns):
        return mask.reshape(batch, heads, length, columns)
    wanted = f"{(length, columns)} or {(batch * heads, length, columns)}"
    raise ValueError(f"[MultiheadAttention] attn_mask must have shape {wanted}; got {mask.shape}")


def _padding(mask: Tensor | None, shapes: tuple) -> Tensor | None:
    """key_padding_mask as one that broadcasts to [N, h, L, S]."""
    if mask is None:
        return None
    if mask.shape != (shapes[0], shapes[3]):
        raise ValueError(f"[MultiheadAttention] key_padding_mask must have shape {(shapes[0], shapes[3])}; got {mask.shape}")
    return mask.unsqueeze(1).unsqueeze(1)


def _joined(mask: Tensor | None, padding: Tensor | None, added: int, q: Tensor) -> Tensor | None:
    """Both masks as one for scaled_dot_product_attention, where True is what may be seen; `added` keys always may."""
    masks = [m for m in (mask, padding) if m is not None]
    if not masks:
        return None
    for m in masks:
        if m.dtype.name != "bool" and not m.dtype.is_floating_point:
            raise TypeError(f"[MultiheadAttention] masks are of bool or floating point; got {m.dtype}")
    if all(m.dtype.name == "bool" for m in masks):
        joined = ~(masks[0] if len(masks) == 1 else masks[0] | masks[1])
        return F.pad(joined, (0, added), value=True) if added else joined
    numbers = [q.new_zeros(()).where(~m, float("-inf")) if m.dtype.name == "bool" else m.to(q.dtype) for m in masks]
    total = numbers[0] if len(numbers) == 1 else numbers[0] + numbers[1]
    return F.pad(total, (0, added)) if added else total
