"""Layers with their parameters, initialised as PyTorch initialises them."""

from __future__ import annotations

import math
from typing import Any

from .. import create
from ..grad_mode import no_grad
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


def new_parameter(*shape: int, device: Any, dtype: Any) -> Parameter:
    """A parameter whose values are still to be set."""
    return Parameter(create.empty(*shape, device=device, dtype=dtype))


class Identity(Module):
    """y = x, whatever arguments it is made with."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """x as it is."""
        return input


class Linear(Module):
    """y = x @ weight^T + bias: [..., in_features] -> [..., out_features].

    weight [out_features, in_features] and bias [out_features] start uniform on ±1 / sqrt(in_features).
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = new_parameter(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", new_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the starting values anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """x @ weight^T + bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Flatten(Module):
    """y = x with the dimensions start_dim … end_dim made one; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """x.flatten(start_dim, end_dim)."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """y = x with one dimension split into several: x.unflatten(dim, unflattened_size)."""

    def __init__(self, dim: int, unflattened_size: Any):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """x.unflatten(dim, unflattened_size)."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Embedding(Module):
    """Rows of weight [num_embeddings, embedding_dim], standard normal at the start, by integer index.

    The row of padding_idx starts as zeros and gets no gradient. max_norm, norm_type, scale_grad_by_freq, sparse: see
    F.embedding. _weight: the table itself. IndexError for an index outside the table.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
                 _freeze: bool = False, device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else F.check_padding(padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        if sparse:
            raise ValueError("[Embedding] gradients are dense here; got sparse=True")
        if _weight is not None:
            if _weight.shape != (num_embeddings, embedding_dim):
                raise ValueError(f"[Embedding] _weight must be {(num_embeddings, embedding_dim)}; got {_weight.shape}")
            self.weight = Parameter(_weight.detach(), requires_grad=not _freeze)
            return
        self.weight = new_parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.weight.requires_grad = not _freeze
        self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Embedding:  # fmt: skip
        """An Embedding around the given matrix, not trained unless freeze=False."""
        if embeddings.ndim != 2:
            raise ValueError(f"[Embedding] the table is a matrix; got shape {embeddings.shape}")
        n, d = embeddings.shape
        return cls(n, d, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def reset_parameters(self) -> None:
        """Draw the starting values anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        """weight[x]: [...] -> [..., embedding_dim]."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        plain = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        shown = "".join(f", {k}={getattr(self, k)}" for k, default in plain.items() if getattr(self, k) != default)
        return f"{self.num_embeddings}, {self.embedding_dim}{shown}"


class LayerNorm(Module):
    """y = (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, which are normalized_shape."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, new_parameter(*shape, device=device, dtype=dtype) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight 1, bias 0."""
        for parameter, value in ((self.weight, 1), (self.bias, 0)):
            if parameter is not None:
                init.constant_(parameter, value)

    def forward(self, input: Tensor) -> Tensor:
        """x normalised over its last dimensions."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        affine = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}"
