"""Distributions: values against numbers that Python's math works out, moments of samples, gradients, what is refused."""

import math

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import distributions as D


def close(got, want, tolerance=1e-5):
    assert_close(got, np.asarray(want, np.float64), tolerance)


LN2, LN2PI = math.log(2), math.log(2 * math.pi)
# name: (constructor's numbers, a value, its log_prob, entropy, mean, variance)
KNOWN = {
    "Normal": ((1.0, 2.0), 2.0, -0.125 - LN2 - LN2PI / 2, 0.5 + LN2PI / 2 + LN2, 1.0, 4.0),
    "Laplace": ((1.0, 2.0), -1.0, -1 - math.log(4), 1 + math.log(4), 1.0, 8.0),
    "Uniform": ((-1.0, 3.0), 0.5, -math.log(4), math.log(4), 1.0, 16 / 12),
    "Exponential": ((0.5,), 3.0, -LN2 - 1.5, 1 + LN2, 2.0, 4.0),
    "Bernoulli": ((0.25,), 1.0, -2 * LN2, 0.25 * math.log(4) + 0.75 * math.log(4 / 3), 0.25, 0.1875),
}  # fmt: skip
# At a probability of a quarter and of nine tenths: the value below which so much lies.
QUANTILES = {
    "Normal": (1 - 2 * 0.6744897501960817, 1 + 2 * 1.2815515655446004), "Laplace": (1 - 2 * LN2, 1 + 2 * math.log(5)),
    "Uniform": (0.0, 2.6), "Exponential": (2 * math.log(4 / 3), 2 * math.log(10)),
}  # fmt: skip


def made(name, device, dtype=ag.float32, requires_grad=False):
    """The distribution of that row, in a batch of two equal ones, and its parameters."""
    parameters = [ag.full((2,), n, dtype=dtype, device=device, requires_grad=requires_grad) for n in KNOWN[name][0]]
    return getattr(D, name)(*parameters), parameters


@pytest.mark.parametrize("name", KNOWN)
def test_values(name, device):
    d, _ = made(name, device)
    _, value, log_prob, entropy, mean, variance = KNOWN[name]
    assert d.batch_shape == (2,) and d.event_shape == ()
    close(d.log_prob(ag.full((3, 1), value, device=device)), np.full((3, 2), log_prob))
    close(d.entropy(), [entropy] * 2)
    close(d.perplexity(), [math.exp(entropy)] * 2)
    close(d.mean, [mean] * 2)
    close(d.variance, [variance] * 2)
    close(d.stddev, [math.sqrt(variance)] * 2)
    wide = d.expand((3, 2))
    assert wide.batch_shape == (3, 2) and wide.sample().shape == (3, 2)
    close(wide.entropy(), np.full((3, 2), entropy))


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles(name, device):
    d, _ = made(name, device)
    close(d.icdf(ag.tensor([0.25, 0.9], device=device)), QUANTILES[name], 1e-4)
    close(d.cdf(ag.tensor(QUANTILES[name], device=device)), [0.25, 0.9])


@pytest.mark.parametrize("name", KNOWN)
def test_samples(name, device):
    """Mean and variance within five standard errors; the same numbers from the same seed on both devices."""
    d, _ = made(name, device, requires_grad=True)
    mean, variance = KNOWN[name][4:]
    ag.manual_seed(4)
    x = d.sample((10_000,))
    assert x.shape == (10_000, 2) and x.device == device and x.dtype is ag.float32 and not x.requires_grad
    assert abs(x.mean().item() - mean) < 5 * math.sqrt(variance / 20_000) and abs(x.var().item() / variance - 1) < 0.1
    assert not bool((x[:, 0] == x[:, 1]).all())
    ag.manual_seed(4)
    close(made(name, "cpu")[0].sample((10_000,)), array(x))


@pytest.mark.parametrize("name", QUANTILES)
def test_gradients_through_samples(name, device):
    """With the seed held a sample is a function of the parameters: at loc + scale z the gradients are 1 and z."""
    d, parameters = made(name, device, requires_grad=True)
    assert d.has_rsample
    ag.manual_seed(2)
    x = d.rsample((3,))
    grads = [array(g) for g in ag.grad(x.sum(), parameters)]
    given = [array(p) for p in parameters]
    x = array(x.detach())
    if name == "Exponential":
        want = [(-x / given[0]).sum(0)]
    elif name == "Uniform":
        u = (x - given[0]) / (given[1] - given[0])
        want = [(1 - u).sum(0), u.sum(0)]
    else:
        want = [np.full(2, 3), ((x - given[0]) / given[1]).sum(0)]
    for got, expected in zip(grads, want):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KNOWN)
def test_gradients_of_formulas(name):
    _, parameters = made(name, "cpu", ag.float64, requires_grad=True)
    value = ag.tensor(KNOWN[name][1], dtype=ag.float64)
    assert ag.gradcheck(lambda *p: getattr(D, name)(*p).log_prob(value).sum() + getattr(D, name)(*p).entropy().sum(), parameters)


def test_categorical(device):
    weights = ag.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 4.0]], device=device, requires_grad=True)
    d = D.Categorical(weights)
    assert d.batch_shape == (2,) and d.event_shape == () and d.mode.tolist() == [2, 2]
    close(d.probs.detach(), [[0.25, 0, 0.75], [0.25, 0.25, 0.5]])
    close(d.entropy().detach(), [0.25 * math.log(4) + 0.75 * math.log(4 / 3), 1.5 * LN2])
    p = d.log_prob(ag.tensor([[2, 1], [0, 2], [0, 0]], device=device))
    close(p.detach(), [[math.log(0.75), -2 * LN2], [-2 * LN2, -LN2], [-2 * LN2, -2 * LN2]])
    close(ag.grad(p[0].sum(), weights)[0], [[-0.25, -0.25, 1 / 12], [-0.125, 0.375, -0.125]])  # 1/w of the chosen less 1/sum
    ag.manual_seed(0)
    x = d.sample((50, 80))
    assert x.shape == (50, 80, 2) and x.dtype is ag.int64 and x.device == device and d.sample().shape == (2,)
    share = [[(x[..., row] == k).float().mean().item() for k in range(3)] for row in range(2)]
    assert share[0][1] == 0 and np.abs(np.array(share) - array(d.probs)).max() < 0.04
    logits = D.Categorical(logits=ag.tensor([0.0, LN2, -math.inf], device=device))
    close(logits.probs, [1 / 3, 2 / 3, 0])
    close(logits.entropy(), math.log(3) - 2 / 3 * LN2)
    assert logits.sample((2, 3)).shape == (2, 3) and logits.expand((4,)).sample((5,)).shape == (5, 4)
    assert d.sample((0,)).shape == (0, 2)
    for wrong in (3, -1, 0.5):
        assert_raises(ValueError, "[Categorical] the value lies outside", lambda w=wrong: d.log_prob(ag.tensor(w, device=device)))
    assert_raises(NotImplementedError, "[rsample] Categorical has no sample with a gradient", d.rsample)


def test_multivariate_normal(device):
    """S = [[4, 2], [2, 3]] has the root [[2, 0], [1, sqrt 2]], the determinant 8 and the inverse [[3, -2], [-2, 4]] / 8."""
    s = ag.tensor([[4.0, 2.0], [2.0, 3.0]], device=device)
    root = ag.tensor([[2.0, 0.0], [1.0, math.sqrt(2)]], device=device, requires_grad=True)
    loc = ag.tensor([1.0, -1.0], device=device, requires_grad=True)
    ways = [D.MultivariateNormal(loc, s), D.MultivariateNormal(loc, scale_tril=root),
            D.MultivariateNormal(loc, precision_matrix=ag.tensor([[3.0, -2.0], [-2.0, 4.0]], device=device) / 8)]  # fmt: skip
    x = ag.tensor([[1.0, -1.0], [2.0, 1.0]], device=device)  # one step and two from loc: (3 - 8 + 16) / 8
    for d in ways:
        assert d.batch_shape == () and d.event_shape == (2,)
        close(d.scale_tril.detach(), array(root), 1e-4)
        close(d.covariance_matrix.detach(), array(s), 1e-4)
        close(d.precision_matrix.detach(), [[0.375, -0.25], [-0.25, 0.5]], 1e-4)
        close(d.variance.detach(), [4, 3], 1e-4)
        close(d.log_prob(x).detach(), [-LN2PI - 1.5 * LN2, -LN2PI - 1.5 * LN2 - 11 / 16], 1e-4)
        close(d.entropy().detach(), 1 + LN2PI + 1.5 * LN2, 1e-4)
    d = ways[1]
    close(ag.grad(d.log_prob(x[1]), loc)[0], [-0.125, 0.75], 1e-4)  # S^-1 (x - loc)
    ag.manual_seed(1)
    y = d.rsample((4000,))
    assert y.shape == (4000, 2) and d.expand((3,)).sample((2,)).shape == (2, 3, 2)
    assert np.abs(np.cov(array(y.detach()).T) - array(s)).max() < 0.4
    close(ag.grad(y.mean(0).sum(), loc)[0], [1, 1], 1e-4)
    batch = D.MultivariateNormal(ag.zeros(3, 1, 2, device=device), scale_tril=root.detach())
    assert batch.batch_shape == (3, 1) and batch.log_prob(x).shape == (3, 2)
    assert_raises(ValueError, "[MultivariateNormal] give exactly one of", lambda: D.MultivariateNormal(loc))
    assert_raises(ValueError, "[MultivariateNormal] scale_tril must be lower triangular", lambda: D.MultivariateNormal(loc, scale_tril=s))
    assert_raises(ValueError, "covariance_matrix must be symmetric", lambda: D.MultivariateNormal(loc, root.detach()))
    assert_raises(ValueError, "expects loc [*, d]", lambda: D.MultivariateNormal(ag.zeros(3, device=device), s))


def test_independent(device):
    base = D.Normal(ag.zeros(2, 3, device=device), 1.0)
    d = D.Independent(base, 1)
    assert d.batch_shape == (2,) and d.event_shape == (3,) and d.has_rsample and repr(d).startswith("Independent(Normal(")
    close(d.log_prob(ag.ones(5, 1, 3, device=device)), np.full((5, 2), -1.5 - 1.5 * LN2PI))
    close(d.entropy(), [1.5 + 1.5 * LN2PI] * 2)
    assert d.rsample((4,)).shape == d.sample((4,)).shape == (4, 2, 3) and d.expand((7, 2)).sample().shape == (7, 2, 3)
    close(D.kl_divergence(d, D.Independent(D.Normal(ag.ones(2, 3, device=device), 1.0), 1)), [1.5, 1.5])
    assert_raises(ValueError, "[Independent] reinterpreted_batch_ndims must be in [0, 2]", lambda: D.Independent(base, 3))


DIVERGENCES = {
    "Normal": ((0.0, 1.0), (1.0, 2.0), LN2 + 2 / 8 - 0.5),
    "Laplace": ((0.0, 1.0), (2.0, 4.0), math.log(4) + 0.5 + math.exp(-2) / 4 - 1),
    "Uniform": ((0.0, 1.0), (-1.0, 3.0), math.log(4)),
    "Exponential": ((2.0,), (1.0,), LN2 - 0.5),
    "Bernoulli": ((0.25,), (0.5,), 0.25 * math.log(0.5) + 0.75 * math.log(1.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergence(name, device):
    kind, (p, q, want) = getattr(D, name), DIVERGENCES[name]
    p, q = (kind(*[ag.tensor([n], device=device) for n in numbers]) for numbers in (p, q))
    close(D.kl_divergence(p, q), [want])
    close(D.kl_divergence(p, p), [0])
    if name == "Uniform":
        close(D.kl_divergence(q, p), [math.inf])


def test_divergence_of_the_excluded_and_of_vectors(device):
    t = lambda *numbers: ag.tensor(numbers, device=device)
    close(D.kl_divergence(D.Bernoulli(t(0.5, 0.0, 1.0, 0.5)), D.Bernoulli(t(0.0, 0.0, 1.0, 1.0))), [math.inf, 0, 0, math.inf])
    p, q = D.Categorical(t(1.0, 0.0, 1.0)), D.Categorical(t(1.0, 2.0, 1.0))
    close(D.kl_divergence(p, q), LN2)
    close(D.kl_divergence(q, p), math.inf)
    assert_raises(ValueError, "[kl_divergence] both need equally many categories", lambda: D.kl_divergence(p, D.Categorical(t(1.0, 1.0))))
    one = D.MultivariateNormal(t(0.0, 0.0), scale_tril=ag.eye(2, device=device))
    two = D.MultivariateNormal(t(2.0, 0.0), scale_tril=2 * ag.eye(2, device=device))
    close(D.kl_divergence(one, two), 2 * LN2 + (0.5 + 1 - 2) / 2)
    assert_raises(NotImplementedError, "[kl_divergence] no formula for Categorical and MultivariateNormal", lambda: D.kl_divergence(p, one))

    class Standard(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    assert D.kl_divergence(Standard(), D.Normal(0.0, 1.0)).item() == 0  # a subclass has its base's formula
    D.register_kl(Standard, Standard)(lambda p, q: "own")
    assert D.kl_divergence(Standard(), Standard()) == "own"


REFUSED = {
    "[Normal] scale must be positive": lambda: D.Normal(0.0, 0.0),
    "[Normal] loc must be numbers": lambda: D.Normal(math.nan, 1.0),
    "[Laplace] scale must be positive": lambda: D.Laplace(0.0, -1.0),
    "[Uniform] low must be below high": lambda: D.Uniform(1.0, 1.0),
    "[Exponential] rate must be positive": lambda: D.Exponential(ag.tensor([1.0, 0.0])),
    "[Exponential] the value lies outside": lambda: D.Exponential(1.0).log_prob(ag.tensor(-1.0)),
    "[Uniform] the value lies outside": lambda: D.Uniform(0.0, 1.0).log_prob(ag.tensor(2.0)),
    "[Normal] the value lies outside the support, or is NaN": lambda: D.Normal(0.0, 1.0).log_prob(ag.tensor(math.nan)),
    "[Bernoulli] the value lies outside": lambda: D.Bernoulli(0.5).log_prob(ag.tensor(0.5)),
    "[Bernoulli] probs must be in [0, 1]": lambda: D.Bernoulli(1.5),
    "[Bernoulli] give probs or logits": lambda: D.Bernoulli(),
    "[Bernoulli] give probs or logits, and": lambda: D.Bernoulli(0.5, 0.5),
    "[Categorical] probs must be finite": lambda: D.Categorical(ag.zeros(3)),
    "[Categorical] logits must be below": lambda: D.Categorical(logits=ag.tensor([math.nan, 0.0])),
    "[Categorical] probs need a dimension": lambda: D.Categorical(0.5),
    "[Normal] sizes must be equal or 1": lambda: D.Normal(ag.zeros(2), ag.ones(3)),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text):
    assert_raises(ValueError, text, REFUSED[text])


def test_what_is_of_the_wrong_kind_and_what_is_not_checked():
    assert_raises(TypeError, "[Normal] parameters are numbers or tensors; got str", lambda: D.Normal("0", 1))
    assert_raises(TypeError, "[Normal] parameters are floating point; got int64", lambda: D.Normal(ag.tensor([1]), 1.0))
    assert_raises(TypeError, "[Normal] expected a Tensor; got float", lambda: D.Normal(0, 1).log_prob(0.0))
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(ag.tensor(2.0)).item() == -math.inf
    assert repr(D.Normal(0.0, ag.ones(2))) == "Normal(loc: (2,), scale: (2,))" and repr(D.Exponential(2.0)) == "Exponential(rate: 2.0)"
    assert D.Normal(0.0, ag.ones(2, dtype=ag.float64)).sample().dtype is ag.float64
    assert D.Bernoulli(logits=ag.tensor(0.0)).probs.item() == 0.5 and D.Bernoulli(1.0).log_prob(ag.tensor(1.0)).item() > -1e-6
