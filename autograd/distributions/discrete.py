"""Distributions of whole numbers: Bernoulli and Categorical. Their samples have no gradient; log_prob has."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from .. import shapes
from ..grad_mode import no_grad
from ..ops.sampling import bernoulli, multinomial
from ..ops.softmax import softmax
from ..tensor import Tensor
from .base import Distribution, held, one_of, product, together


class Bernoulli(Distribution):
    """1 with probability p, else 0. probs is p, or logits log(p / (1 - p))."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        one_of("Bernoulli", probs, logits)
        kind = "probs" if logits is None else "logits"
        (given,) = together("Bernoulli", probs if logits is None else logits)
        super().__init__(given.shape, (), validate_args)
        self._given = {kind: given}
        if kind == "probs":
            self._require((given >= 0) & (given <= 1), "probs must be in [0, 1]")
        else:
            self._require(given == given, "logits must be numbers")

    @cached_property
    def probs(self) -> Tensor:
        """p"""
        return self._given["probs"] if "probs" in self._given else self._given["logits"].sigmoid()

    @cached_property
    def logits(self) -> Tensor:
        """log(p / (1 - p)), finite also for p of 0 and 1."""
        if "logits" in self._given:
            return self._given["logits"]
        p = held(self._given["probs"])
        return p.log() - (-p).log1p()

    mean = property(lambda self: self.probs, doc="p")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="p (1 - p)")
    mode = property(lambda self: (self.probs >= 0.5).to(self.probs.dtype), doc="1 where p is at least a half, else 0")

    def _supports(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """0 and 1 in the parameters' dtype."""
        return bernoulli(self.probs.expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """x log(p) + (1 - x) log(1 - p) = x logits - log(1 + exp(logits))"""
        return self._checked(value) * self.logits - self.logits.softplus()

    def entropy(self) -> Tensor:
        """-p log(p) - (1 - p) log(1 - p)"""
        return self.logits.softplus() - self.probs * self.logits


class Categorical(Distribution):
    """0 … K-1, with the probabilities along the last dimension: of probs, which need not add up to 1, or softmax(logits).

    probs, logits: [batch_shape, K]. Afterwards both attributes are normalised. Samples are int64.
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        one_of("Categorical", probs, logits)
        kind = "probs" if logits is None else "logits"
        (given,) = together("Categorical", probs if logits is None else logits)
        if not given.ndim:
            raise ValueError(f"[Categorical] {kind} need a dimension of categories; got a single number")
        super().__init__(given.shape[:-1], (), validate_args)
        self._given = {kind: given}
        if kind == "probs":
            good = (given >= 0) & (given < math.inf) & (given.sum(-1, keepdim=True) > 0)
            self._require(good, "probs must be finite and not negative, and each row needs a positive one")
        else:
            self._require(given < math.inf, "logits must be below infinity and not NaN")

    @cached_property
    def probs(self) -> Tensor:
        """[batch_shape, K], adding up to 1"""
        if "logits" in self._given:
            return softmax(self._given["logits"], -1)
        return self._given["probs"] / self._given["probs"].sum(-1, keepdim=True)

    @cached_property
    def logits(self) -> Tensor:
        """log(probs), finite also for a probability of 0 that was given as such"""
        if "logits" in self._given:
            return self._given["logits"].log_softmax(-1)
        return held(self.probs).log()

    mode = property(lambda self: self.probs.argmax(-1), doc="The likeliest category.")

    def _supports(self, value: Tensor) -> Tensor:
        return (value >= 0) & (value < self.probs.shape[-1]) & (value == value.long())

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Category numbers, int64."""
        shape, rows = self._shape(sample_shape), self.probs.reshape(-1, self.probs.shape[-1])
        if not math.prod(shape):
            return self.probs.new_zeros(shape).long()
        return multinomial(rows, shapes.numel(sample_shape), replacement=True).t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """logits[x]"""
        value = self._checked(value)
        shape = shapes.broadcast((value.shape, self.batch_shape), "Categorical")
        rows = self.logits.expand((*shape, self.logits.shape[-1]))
        return rows.gather(-1, value.long().expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum of p log(p)"""
        return -product(self.probs, self.logits).sum(-1)
