"""Distributions of whole vectors: MultivariateNormal, and Independent, which makes one of many."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from .. import shapes
from ..ops.linalg import cholesky, inv, solve_triangular
from ..random import randn
from ..tensor import Tensor
from .base import Distribution


class MultivariateNormal(Distribution):
    """The bell curve in d dimensions: exp(-(x - loc)' S^-1 (x - loc) / 2) / sqrt((2 pi)^d det S), S = L L'.

    loc: [batch, d]. Exactly one of covariance_matrix S, precision_matrix S^-1 and scale_tril L (lower triangular, with
    a positive diagonal): [batch, d, d]. L is quickest: the others are factorised.
    """

    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None):  # fmt: skip
        named = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: m for name, m in named.items() if m is not None}
        if len(given) != 1:
            raise ValueError(f"[MultivariateNormal] give exactly one of {', '.join(named)}; got {len(given)}")
        ((name, matrix),) = given.items()
        if loc.ndim < 1 or matrix.ndim < 2 or matrix.shape[-2:] != (loc.shape[-1], loc.shape[-1]):
            raise ValueError(f"[MultivariateNormal] expects loc [*, d], {name} [*, d, d]; got {loc.shape}, {matrix.shape}")
        batch, d = shapes.broadcast((loc.shape[:-1], matrix.shape[:-2]), "MultivariateNormal"), loc.shape[-1]
        super().__init__(batch, (d,), validate_args)
        self.loc, matrix = loc.expand((*batch, d)), matrix.expand((*batch, d, d))
        self._given = {"loc": self.loc, name: matrix}
        self._require(loc == loc, "loc must be numbers")
        if name == "scale_tril":
            self._require(matrix == matrix.tril(), "scale_tril must be lower triangular")
            self._require(matrix.diagonal(dim1=-2, dim2=-1) > 0, "the diagonal of scale_tril must be positive")
            self.scale_tril = matrix
        else:
            self._require((matrix - matrix.mT).abs() <= 1e-6 + 1e-5 * matrix.abs(), f"{name} must be symmetric")
            self.scale_tril = cholesky(matrix if name == "covariance_matrix" else inv(matrix))

    @cached_property
    def covariance_matrix(self) -> Tensor:
        """S = L L'"""
        given = self._given.get("covariance_matrix")
        return self.scale_tril @ self.scale_tril.mT if given is None else given

    @cached_property
    def precision_matrix(self) -> Tensor:
        """S^-1"""
        return self._given["precision_matrix"] if "precision_matrix" in self._given else inv(self.covariance_matrix)

    mean = property(lambda self: self.loc, doc="loc")
    mode = property(lambda self: self.loc, doc="loc")
    variance = property(lambda self: (self.scale_tril * self.scale_tril).sum(-1), doc="The diagonal of S.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """loc + L z, z standard normal."""
        z = randn(self._shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """-|L^-1 (x - loc)|^2 / 2 - log(det L) - d log(2 pi) / 2"""
        d = (self._checked(value) - self.loc).unsqueeze(-1)
        z = solve_triangular(self.scale_tril.expand((*d.shape[:-2], *self.scale_tril.shape[-2:])), d, upper=False).squeeze(-1)
        return (z * z).sum(-1) * -0.5 - self.half_log_det() - 0.5 * math.log(2 * math.pi) * self.event_shape[0]

    def entropy(self) -> Tensor:
        """d (1 + log(2 pi)) / 2 + log(det L)"""
        return self.half_log_det() + 0.5 * (1 + math.log(2 * math.pi)) * self.event_shape[0]

    def half_log_det(self) -> Tensor:
        """log(det L) = log(det S) / 2"""
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` batch dimensions of another distribution as one event: log_prob adds up over them."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        n, batch = reinterpreted_batch_ndims, base_distribution.batch_shape
        if not 0 <= n <= len(batch):
            raise ValueError(f"[Independent] reinterpreted_batch_ndims must be in [0, {len(batch)}] for batch {batch}; got {n}")
        cut = len(batch) - n
        super().__init__(batch[:cut], batch[cut:] + base_distribution.event_shape, validate_args)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        self.has_rsample = base_distribution.has_rsample

    mean = property(lambda self: self.base_dist.mean, doc="The base's.")
    variance = property(lambda self: self.base_dist.variance, doc="The base's.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """The base's."""
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """The base's."""
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum of the base's over the reinterpreted dimensions."""
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """The sum of the base's over the reinterpreted dimensions."""
        return self.summed(self.base_dist.entropy())

    def expand(self, batch_shape: Any) -> Independent:
        """The same with a larger batch_shape."""
        n = self.reinterpreted_batch_ndims
        tail = self.base_dist.batch_shape[len(self.batch_shape) :]
        return Independent(self.base_dist.expand((*batch_shape, *tail)), n, self._validate)

    def summed(self, x: Tensor) -> Tensor:
        """x without its last reinterpreted dimensions."""
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
