"""Layers of two inputs, and bags of embeddings."""

from __future__ import annotations

import math
from typing import Any

from ..grad_mode import no_grad
from ..tensor import Tensor
from . import functional as F
from . import init
from .layers import new_parameter
from .module import Module
from .parameter import Parameter


class Bilinear(Module):
    """y[o] = x1 · weight[o] · x2 + bias[o]; weight and bias start uniform on ±1 / sqrt(in1_features)."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__()
        if in1_features < 1:
            raise ValueError(f"[Bilinear] in1_features must be positive; got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = new_parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", new_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """F.bilinear(x1, x2)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class CosineSimilarity(Module):
    """F.cosine_similarity along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosine of the angle between x1 and x2."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """F.pairwise_distance: the p-norm of x1 - x2 + eps along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distance of x1 and x2."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class EmbeddingBag(Module):
    """F.embedding_bag: the sum, mean or maximum of rows of weight [num_embeddings, embedding_dim], standard normal at first.

    The row of padding_idx starts as zeros and belongs to no bag.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self.padding_idx = None if padding_idx is None else F.check_padding(padding_idx, num_embeddings)
        if _weight is None:
            self.weight = new_parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.reset_parameters()
        else:
            if _weight.shape != (num_embeddings, embedding_dim):
                raise ValueError(f"[EmbeddingBag] the table is ({num_embeddings}, {embedding_dim}); got {_weight.shape}")
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> EmbeddingBag:
        """An EmbeddingBag around the given matrix, not trained unless freeze=False."""
        if embeddings.ndim != 2:
            raise ValueError(f"[EmbeddingBag] the table is a matrix; got shape {embeddings.shape}")
        made = cls(embeddings.shape[0], embeddings.shape[1], _weight=embeddings.detach(), **options)
        made.weight.requires_grad = not freeze
        return made

    def reset_parameters(self) -> None:
        """Draw the starting values anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """F.embedding_bag(x, weight, offsets)."""
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
                               self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)  # fmt: skip

    def extra_repr(self) -> str:
        """The constructor's arguments that are not the defaults."""
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        shown += "" if self.max_norm is None else f", max_norm={self.max_norm}"
        shown += "" if self.norm_type == 2 else f", norm_type={self.norm_type}"
        shown += f", scale_grad_by_freq={self.scale_grad_by_freq}" if self.scale_grad_by_freq else ""
        shown += f", mode={self.mode!r}"
        return shown if self.padding_idx is None else f"{shown}, padding_idx={self.padding_idx}"
