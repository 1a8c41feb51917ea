"""What all distributions share: shapes, checks of what is given, sampling without a gradient."""

from __future__ import annotations

import numbers
from typing import Any

from .. import create, dtypes, shapes
from ..grad_mode import no_grad
from ..ops.select import where
from ..tensor import Tensor


class Distribution:
    """A batch of distributions: batch_shape counts independent ones, event_shape is the shape of one draw of one.

    A sample of sample_shape S has the shape S + batch_shape + event_shape, and log_prob of it S + batch_shape.
    validate_args (default: on): check the parameters, and what log_prob is asked about, which reads values from the GPU.
    """

    has_rsample = False

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)
        self._validate = validate_args is not False
        self._given: dict[str, Tensor] = {}  # the constructor's arguments, with the whole batch_shape

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """A sample through which gradients go to the parameters. NotImplementedError where there is no such sample."""
        raise NotImplementedError(f"[rsample] {type(self).__name__} has no sample with a gradient; use sample() and log_prob()")

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A sample without history."""
        return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`. ValueError for one outside the support."""
        raise NotImplementedError(f"[log_prob] {type(self).__name__} does not define it")

    def entropy(self) -> Tensor:
        """The entropy in nats, batch_shape."""
        raise NotImplementedError(f"[entropy] {type(self).__name__} does not define it")

    def perplexity(self) -> Tensor:
        """exp(entropy)"""
        return self.entropy().exp()

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError(f"[mean] {type(self).__name__} has none")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean, elementwise."""
        raise NotImplementedError(f"[variance] {type(self).__name__} has none")

    @property
    def stddev(self) -> Tensor:
        """sqrt(variance)"""
        return self.variance.sqrt()

    def expand(self, batch_shape: Any) -> Distribution:
        """The same distribution with a larger batch_shape, to which the old one broadcasts; no memory is copied."""
        batch, tail = tuple(batch_shape), len(self.batch_shape)
        given = {name: t.expand((*batch, *t.shape[tail:])) for name, t in self._given.items()}
        return type(self)(**given, validate_args=self._validate)

    def _shape(self, sample_shape: Any) -> tuple:
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def _checked(self, value: Any) -> Tensor:
        """`value`, if it may be asked about. TypeError for no tensor, ValueError for a wrong shape or outside the support."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise TypeError(f"[{name}] expected a Tensor; got {type(value).__name__}")
        if self._validate:
            shapes.broadcast((value.shape, self.batch_shape + self.event_shape), name)
            if not bool(self._supports(value).all()):
                raise ValueError(f"[{name}] the value lies outside the support, or is NaN; validate_args=False answers it")
        return value

    def _supports(self, value: Tensor) -> Tensor:
        return value == value

    def _require(self, good: Tensor, rule: str) -> None:
        if self._validate and not bool(good.all()):
            raise ValueError(f"[{type(self).__name__}] {rule}; got others")

    def __repr__(self) -> str:
        shown = (f"{k}: {t.item() if t.numel() == 1 else t.shape}" for k, t in self._given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def together(name: str, *values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of one shape, dtype and device: the first tensor's, else the defaults."""
    first = next((v for v in values if isinstance(v, Tensor)), None)
    options = {} if first is None else {"dtype": first.dtype, "device": first.device}
    made = []
    for v in values:
        if not isinstance(v, Tensor | numbers.Real):
            raise TypeError(f"[{name}] parameters are numbers or tensors; got {type(v).__name__}")
        if not isinstance(v, Tensor):
            v = create.tensor(float(v), **options)
        made.append(v)
    if not all(t.dtype.is_floating_point for t in made):
        raise TypeError(f"[{name}] parameters are floating point; got {', '.join(t.dtype.name for t in made)}")
    shape = shapes.broadcast([t.shape for t in made], name)
    return [t.expand(shape) for t in made]


def one_of(name: str, probs: Any, logits: Any) -> None:
    """ValueError unless exactly one of both is given."""
    if (probs is None) == (logits is None):
        raise ValueError(f"[{name}] give probs or logits, and not both")


def held(probs: Tensor) -> Tensor:
    """Probabilities held so far from 0 and 1 that their logarithms are finite."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def product(p: Tensor, log_q: Tensor) -> Tensor:
    """p * log_q, and 0 where p is 0 also for infinite log_q."""
    return p * where(p == 0, 0.0, log_q)
