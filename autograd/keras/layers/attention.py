"""Attention, AdditiveAttention and MultiHeadAttention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import create, dtypes
from ...nn import functional as F
from ...nn.functional.attention import attention_weights
from ...ops.select import where
from ...random import Generator, drawing_from
from ...tensor import Tensor
from .. import initializers, regularizers
from ..layer import masks_of
from ..tree import is_shape
from .base import ArgumentsLayer, axis_in, choice, known, whole


def _causal(length: int, columns: int, like: Tensor) -> Tensor:
    """[length, columns], True where a query i sees a key j <= i."""
    return create.ones(length, columns, dtype=dtypes.bool_, device=like.device).tril()


def _check_rate(rate: Any, layer: str) -> None:
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise ValueError(f"[{layer}] dropout is a number in [0, 1); got {rate!r}")


class _Scored(ArgumentsLayer):
    """What gives an output with the query's mask, and perhaps the weights beside it, which have none."""

    supports_masking = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The query's."""
        return None if mask is None else mask[0]

    def _masked(self, inputs: Any, mask: Any, outputs: Any) -> Any:
        if isinstance(outputs, tuple):
            return super()._masked(inputs, mask, outputs[0]), outputs[1]
        return super()._masked(inputs, mask, outputs)


class Attention(_Scored):
    """softmax(scores) value, called on [query, value] or [query, value, key]; key is value by default (Luong et al. 2015).

    query [N, T, d], value [N, S, v], key [N, S, d] -> [N, T, v]; scores = scale * query key^T for score_mode="dot",
    concat_score_weight * sum(tanh(scale * (query + key))) over d for "concat"; scale is 1 unless use_scale.

    mask: [query_mask [N, T], value_mask [N, S]]: masked values are not seen (1e9 is taken off their scores), masked
    queries give 0. use_causal_mask: query i sees values 0 … i. dropout: of the weights, in training.
    With return_attention_scores the result is (y, the weights [N, T, S]).
    """

    def __init__(self, use_scale: bool = False, score_mode: str = "dot", dropout: float = 0.0, seed: int | None = None,
                 **kwargs: Any):  # fmt: skip
        choice(score_mode, ("dot", "concat"), "score_mode", "Attention")
        super().__init__(locals(), **kwargs)
        _check_rate(dropout, type(self).__name__)
        self._generator = None if seed is None else Generator().manual_seed(seed)

    def build(self, input_shape: Any) -> None:
        """scale and concat_score_weight, where there are such."""
        self._check(input_shape)
        self.scale = self.concat_score_weight = None
        if self.use_scale:
            self.add_weight(name="scale", shape=(), initializer="ones")
        if self.score_mode == "concat":
            self.add_weight(name="concat_score_weight", shape=(), initializer="ones")

    def _check(self, inputs: Any) -> None:
        if not isinstance(inputs, list | tuple) or len(inputs) not in (2, 3) or is_shape(inputs):
            raise ValueError(f"[{self.name}] is called on a list [query, value] or [query, value, key]; got {inputs!r}")

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """[N, T, S]."""
        if self.score_mode == "dot":
            found = query @ key.mT
            return found if self.scale is None else found * self.scale
        sums = query.unsqueeze(-2) + key.unsqueeze(-3)
        sums = sums if self.scale is None else sums * self.scale
        return sums.tanh().sum(-1) * self.concat_score_weight

    def call(self, inputs: Sequence[Tensor], mask: Any = None, training: bool = False, return_attention_scores: bool = False,
             use_causal_mask: bool = False) -> Any:  # fmt: skip
        """See the class."""
        self._check(inputs)
        query, value, key = (*inputs, inputs[1])[:3]
        scores = self.scores(query, key)
        query_mask, seen = (None, None) if mask is None else mask[:2]
        seen = None if seen is None else seen.unsqueeze(-2)
        if use_causal_mask:
            causal = _causal(scores.shape[-2], scores.shape[-1], scores)
            seen = causal if seen is None else seen & causal
        if seen is not None:
            scores = where(seen, scores, scores - (65504.0 if scores.dtype is dtypes.float16 else 1e9))
        weights = scores.softmax(-1)
        kept = weights
        if training and self.dropout:
            with drawing_from(self._generator):
                kept = F.dropout(weights, self.dropout)
        y = kept @ value
        if query_mask is not None:
            y = where(query_mask.unsqueeze(-1), y, 0.0)
        return (y, weights) if return_attention_scores else y

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """The query's with the value's last size."""
        self._check(input_shape)
        return (*input_shape[0][:-1], input_shape[1][-1])


class AdditiveAttention(Attention):
    """Attention with scores = sum(scale * tanh(query + key)) over d, scale [d] with use_scale (Bahdanau et al. 2015)."""

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, seed: int | None = None, **kwargs: Any):
        super().__init__(use_scale=use_scale, dropout=dropout, seed=seed, **kwargs)

    def build(self, input_shape: Any) -> None:
        """scale."""
        self._check(input_shape)
        self.scale = None
        if self.use_scale:
            width = known(input_shape[0][-1], -1, input_shape[0], "AdditiveAttention")
            self.add_weight(name="scale", shape=(width,), initializer="glorot_uniform")

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """[N, T, S]."""
        found = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh()
        return (found if self.scale is None else found * self.scale).sum(-1)

    def get_config(self) -> dict:
        """The constructor's arguments."""
        config = super().get_config()
        del config["score_mode"]
        return config


class Projection(ArgumentsLayer):
    """y = the sum over the last `bound` dimensions of x * kernel, + bias.

    kernel [*summed sizes, *output_shape], bias [*output_shape].
    """

    kernel_initializer: Any

    def __init__(self, output_shape: Sequence[int], bound: int = 1, use_bias: bool = True, kernel_initializer: Any = None,
                 bias_initializer: Any = None, kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """kernel and bias."""
        summed = [known(n, -1, input_shape, "MultiHeadAttention") for n in input_shape[-self.bound :]]
        given = self.kernel_initializer
        if isinstance(given, initializers.VarianceScaling):  # its fans are those of the matrix that the kernel is
            matrix = (math.prod(summed), math.prod(self.output_shape))
            self.kernel_initializer = lambda shape, dtype: given(matrix, dtype).reshape(*shape)
        self.own_weight("kernel", (*summed, *self.output_shape))
        self.kernel_initializer = given
        self.bias = None
        if self.use_bias:
            self.own_weight("bias", self.output_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """One product of matrices."""
        lead = inputs.shape[: inputs.ndim - self.bound]
        width = math.prod(self.kernel.shape[: self.bound])
        y = F.linear(inputs.reshape(*lead, width), self.kernel.reshape(width, -1).mT)
        y = y.reshape(*lead, *self.output_shape)
        return y if self.bias is None else y + self.bias

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """The summed sizes become output_shape."""
        return (*input_shape[: -self.bound], *self.output_shape)


class MultiHeadAttention(_Scored):
    """Attention of num_heads heads: layer(query, value, key=value) -> [N, T, *output_shape] (Vaswani et al. 2017).

    query [N, T, d], value [N, S, dv], key [N, S, dk] are projected to [.., num_heads, key_dim] (value_dim for the value,
    key_dim by default), softmax(query key^T / sqrt(key_dim)) value is projected to output_shape (a number or several;
    d by default). activity_regularizer sees what the four projections give. Weights: query, key and value kernels
    [d, num_heads, key_dim] and biases [num_heads, key_dim], then those of attention_output, [num_heads, value_dim,
    *output_shape] and [*output_shape].

    attention_axes: the axes of [N, ...] that attention runs over, by default all but the first and the last; scores are
    [N, rest, num_heads, T…, S…]. attention_mask [N, T…, S…]: True where a query may see a key; query_mask [N, T],
    value_mask [N, S], key_mask [N, S] (by default those that came with the inputs) and use_causal_mask are joined with it.
    A query that may see nothing gets 0 from all heads. Without scores asked for, the engine's fused attention computes.
    With return_attention_scores the result is (y, the weights before dropout).
    """

    missing = {"sliding_window": None, "flash_attention": None, "use_gate": False}

    def __init__(self, num_heads: int, key_dim: int, value_dim: int | None = None, dropout: float = 0.0, use_bias: bool = True,
                 output_shape: Any = None, attention_axes: Any = None, kernel_initializer: Any = "glorot_uniform",
                 bias_initializer: Any = "zeros", kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, activity_regularizer: Any = None,
                 seed: int | None = None, **kwargs: Any):  # fmt: skip
        value_dim = key_dim if value_dim is None else value_dim
        output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape) if output_shape else None
        attention_axes = (attention_axes,) if isinstance(attention_axes, int) else attention_axes
        super().__init__(locals(), **kwargs)
        for name in ("num_heads", "key_dim", "value_dim"):
            whole(getattr(self, name), name, "MultiHeadAttention")
        _check_rate(dropout, "MultiHeadAttention")
        self._inner_regularizer, self.activity_regularizer = self.activity_regularizer, None  # for the projections' outputs
        self._generator = None if seed is None else Generator().manual_seed(seed)

    def _projection(self, name: str, output_shape: Sequence[int], input_shape: Any, bound: int = 1) -> Projection:
        copied = ("use_bias", "kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer",
                  "kernel_constraint", "bias_constraint")  # fmt: skip
        options = {key: getattr(self, key) for key in copied} | {"activity_regularizer": self._inner_regularizer}
        made = Projection(tuple(output_shape), bound, name=name, dtype=self._dtype, trainable=self.trainable, **options)
        made.build(tuple(input_shape))
        return made

    def get_config(self) -> dict:
        """The constructor's arguments."""
        return {**super().get_config(), "activity_regularizer": regularizers.serialize(self._inner_regularizer)}

    def build(self, input_shape: Any) -> None:
        """The four projections, for shapes [query, value] or [query, value, key]."""
        query, value, key = self._shapes(input_shape)
        rank = len(query)
        axes = range(1, rank - 1) if self.attention_axes is None else self.attention_axes
        self._axes = tuple(axis_in(axis, query, "MultiHeadAttention") for axis in axes)
        if not self._axes or any(not 0 < axis < rank - 1 for axis in self._axes):
            raise ValueError(f"[MultiHeadAttention] attention_axes lie between the first axis and the last; got {self._axes}")
        heads = self.num_heads
        self.query_dense = self._projection("query", (heads, self.key_dim), query)
        self.key_dense = self._projection("key", (heads, self.key_dim), key)
        self.value_dense = self._projection("value", (heads, self.value_dim), value)
        inner = (*query[:-1], heads, self.value_dim)
        self.output_dense = self._projection("attention_output", self.output_shape or query[-1:], inner, 2)

    def _shapes(self, shapes: Any) -> tuple:
        if is_shape(shapes) or len(shapes) not in (2, 3):
            raise ValueError(f"[MultiHeadAttention] takes query and value, and perhaps key; got {shapes}")
        query, value, key = (tuple(s) for s in (*shapes, shapes[1])[:3])
        if value[1:-1] != key[1:-1] or not len(query) == len(value) == len(key) >= 3:
            raise ValueError(f"[MultiHeadAttention] key and value differ in their last size only; got {[query, value, key]}")
        return query, value, key

    def forward(self, query: Any, value: Any = None, key: Any = None, query_mask: Any = None, value_mask: Any = None,
                key_mask: Any = None, **kwargs: Any) -> Any:  # fmt: skip
        """The layer takes (query, value, key) apart, or one list of them."""
        inputs = query if isinstance(query, list | tuple) else [query, value] if key is None else [query, value, key]
        given = [query_mask, value_mask, key_mask][: len(inputs)]
        if any(m is not None for m in given):
            kwargs["mask"] = [masks_of(x) if m is None else m for x, m in zip(inputs, given, strict=True)]
        return super().forward(list(inputs), **kwargs)

    def call(self, inputs: Sequence[Tensor], mask: Any = None, attention_mask: Any = None, training: bool = False,
             return_attention_scores: bool = False, use_causal_mask: bool = False) -> Any:  # fmt: skip
        """See the class."""
        query, value, key = (*inputs, inputs[1])[:3]
        q, k, v = (
            self._split(dense(x)) for dense, x in ((self.query_dense, query), (self.key_dense, key), (self.value_dense, value))
        )
        lengths = [[x.shape[axis] for axis in self._axes] for x in (query, value)]
        seen = self._seen(query, value, mask, attention_mask, use_causal_mask)
        rate, weights = self.dropout if training else 0.0, None
        with drawing_from(self._generator):
            if return_attention_scores:
                if use_causal_mask and seen is None:
                    seen = _causal(q.shape[-2], k.shape[-2], q)
                y, weights = attention_weights(q, k, v, seen)
                y = F.dropout(weights, rate) @ v if rate else y
            else:
                y = F.scaled_dot_product_attention(q, k, v, seen, rate, is_causal=use_causal_mask and seen is None)
        y = self.output_dense(self._join(y, lengths[0]))
        if weights is None:
            return y
        return y, weights.reshape(*weights.shape[:-2], *lengths[0], *lengths[1])

    def _seen(self, q: Tensor, v: Tensor, mask: Any, given: Any, causal: bool) -> Tensor | None:
        """All masks in one, in a shape that broadcasts to the scores [N, rest, heads, T, S]; None where there is none."""
        given_masks = (*(mask or ()), None, None, None)[:3]
        if len(self._axes) > 1 and (causal or any(m is not None for m in given_masks)):
            raise ValueError(f"[{self.name}] over several axes masks of steps have no place; give attention_mask")
        parts = [] if given is None else [given.to(dtypes.bool_)]
        queries, values, keys = given_masks
        if queries is not None:
            parts.append(queries.unsqueeze(-1))
        parts += [m.unsqueeze(-2) for m in (values, keys) if m is not None]
        if causal and parts:  # alone it is the fused attention's own business
            parts.append(_causal(q.shape[self._axes[0]], v.shape[self._axes[0]], q).unsqueeze(0))
        if not parts:
            return None
        found = parts[0]
        for part in parts[1:]:
            found = found & part
        n = len(self._axes)
        sizes = [x.shape[axis] for x in (q, v) for axis in self._axes]
        lead = found.shape[: found.ndim - 2 * n]
        if n > 1:
            found = found.expand(*lead, *sizes)
        rows, columns = (math.prod(found.shape[len(lead) + i : len(lead) + i + n]) for i in (0, n))
        between = q.ndim - n - len(lead)  # the rest and the heads, where the mask has nothing to say
        return found.reshape(*lead, *(1,) * between, rows, columns)

    def _order(self, rank: int) -> list[int]:
        """The axes of [N, ..., heads, d]: N and the rest, heads, those of attention, d."""
        return [*(i for i in range(rank - 2) if i not in self._axes), rank - 2, *self._axes, rank - 1]

    def _split(self, x: Tensor) -> Tensor:
        """[N, ..., heads, d] as [N, rest, heads, places of attention, d]."""
        y = x.permute(*self._order(x.ndim))
        lead = x.ndim - 1 - len(self._axes)
        return y.reshape(*y.shape[:lead], math.prod(y.shape[lead:-1]), y.shape[-1])

    def _join(self, y: Tensor, lengths: list[int]) -> Tensor:
        """The way back."""
        y = y.reshape(*y.shape[:-2], *lengths, y.shape[-1])
        return y.permute(*sorted(range(y.ndim), key=self._order(y.ndim).__getitem__))

    def compute_output_shape(self, query_shape: Any, value_shape: Any = None, key_shape: Any = None) -> tuple:
        """The query's, its last size replaced by output_shape; a list of shapes will do too."""
        shapes = query_shape if value_shape is None else [s for s in (query_shape, value_shape, key_shape) if s is not None]
        query, _, _ = self._shapes(shapes)
        return (*query[:-1], *(self.output_shape or query[-1:]))
