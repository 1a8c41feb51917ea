"""The Kullback-Leibler divergence of pairs of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..ops.linalg import solve_triangular
from ..ops.select import where
from ..tensor import Tensor
from .base import Distribution, product
from .continuous import Exponential, Laplace, Normal, Uniform
from .discrete import Bernoulli, Categorical
from .multivariate import Independent, MultivariateNormal

_PAIRS: dict[tuple[type, type], Callable] = {}


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q) = the mean over p of log p(x) - log q(x), in nats, batch_shape.

    There for two of one class; NotImplementedError for pairs without a formula, which register_kl adds.
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _PAIRS:
                return _PAIRS[a, b](p, q)
    raise NotImplementedError(f"[kl_divergence] no formula for {type(p).__name__} and {type(q).__name__}; register_kl adds one")


def register_kl(type_p: type, type_q: type) -> Callable:
    """@register_kl(P, Q) on f(p, q): kl_divergence of a P and a Q, or of their subclasses, calls it."""

    def enter(formula: Callable) -> Callable:
        _PAIRS[type_p, type_q] = formula
        return formula

    return enter


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    """log(sq / sp) + (sp^2 + (mp - mq)^2) / (2 sq^2) - 1/2"""
    r, d = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (r * r + d * d - 1) * 0.5 - r.log()


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    """r exp(-d / sp) + d / sq - log(r) - 1, with r = sp / sq, d = |mp - mq|"""
    r, d = p.scale / q.scale, (p.loc - q.loc).abs()
    return r * (-d / p.scale).exp() + d / q.scale - r.log() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    """log of q's width over p's; infinite unless q covers p"""
    outside = (q.low > p.low) | (q.high < p.high)
    return ((q.high - q.low) / (p.high - p.low)).log().masked_fill(outside, math.inf)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    """rq / rp - log(rq / rp) - 1"""
    r = q.rate / p.rate
    return r - r.log() - 1


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """a log(a / b) + (1 - a) log((1 - a) / (1 - b)), a and b the probabilities; infinite where q excludes what p does not"""
    y = p.probs * (p.logits - q.logits) - p.logits.softplus() + q.logits.softplus()
    excluded = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
    return y.masked_fill(excluded, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    """sum of a log(a / b), a and b the probabilities; infinite where q excludes what p does not"""
    if p.probs.shape[-1] != q.probs.shape[-1]:
        raise ValueError(f"[kl_divergence] both need equally many categories; got {p.probs.shape[-1]} and {q.probs.shape[-1]}")
    terms = product(p.probs, p.logits) - product(p.probs, q.logits)
    return where((q.probs == 0) & (p.probs > 0), math.inf, terms).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    """(|Lq^-1 Lp|^2 + |Lq^-1 (mp - mq)|^2 - d) / 2 + log(det Lq / det Lp)"""
    if p.event_shape != q.event_shape:
        raise ValueError(f"[kl_divergence] both need equally many dimensions; got {p.event_shape} and {q.event_shape}")
    d = (p.loc - q.loc).unsqueeze(-1)
    lp, lq = (m.scale_tril.expand((*d.shape[:-2], *m.scale_tril.shape[-2:])) for m in (p, q))
    a, b = solve_triangular(lq, lp, upper=False), solve_triangular(lq, d, upper=False)
    squares = (a * a).sum((-2, -1)) + (b * b).sum((-2, -1))
    return (squares - p.event_shape[0]) * 0.5 + q.half_log_det() - p.half_log_det()


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    """the sum of the bases' over the reinterpreted dimensions"""
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("[kl_divergence] both Independent need the same reinterpreted_batch_ndims")
    return p.summed(kl_divergence(p.base_dist, q.base_dist))
