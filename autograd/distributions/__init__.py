"""Probability distributions with PyTorch's names: sample them, ask for log_prob, differentiate through rsample.

>>> import autograd as ag
>>> ag.distributions.Normal(0.0, 2.0).log_prob(ag.tensor(0.0))
tensor(-1.6121)
"""

from .base import Distribution
from .continuous import Exponential, Laplace, Normal, Uniform
from .discrete import Bernoulli, Categorical
from .divergence import kl_divergence, register_kl
from .multivariate import Independent, MultivariateNormal

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "MultivariateNormal", "Normal",
    "Uniform", "kl_divergence", "register_kl",
]  # fmt: skip
