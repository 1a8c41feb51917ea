"""ag.special: PyTorch's names of the special functions. They live in ops/."""

from .op import PUBLIC
from .ops.bessel import i0, i0e, i1, i1e
from .ops.composite import exp2
from .ops.gamma import digamma
from .ops.hyperbolic import logit, sinc, xlog1py, xlogy
from .ops.reduce import logsumexp
from .ops.rounding import round
from .ops.softmax import log_softmax, softmax
from .ops.special import entr, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri

erf, expit, expm1, gammaln, log1p, psi = (PUBLIC[name] for name in ("erf", "sigmoid", "expm1", "lgamma", "log1p", "digamma"))

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i0e", "i1", "i1e", "log1p",
    "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip
