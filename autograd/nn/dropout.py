"""Dropout as layers: they act in training only."""

from __future__ import annotations

from collections.abc import Callable

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Dropout(Module):
    function: Callable

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        F.check_probability(p, type(self).__name__)
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function of x, in training."""
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training each element is 0 with probability p, else x / (1 - p); in eval y = x. inplace changes x."""

    function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """F.dropout1d: in training each channel of x [N, C, L] or [C, L] is 0 with probability p, else x / (1 - p)."""

    function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """F.dropout2d: in training each channel of x [N, C, H, W] is 0 with probability p, else x / (1 - p)."""

    function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """F.dropout3d: in training each channel of x [N, C, D, H, W] or [C, D, H, W] is 0 with probability p, else x / (1 - p)."""

    function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """F.alpha_dropout: dropout behind SELU, which keeps mean 0 and variance 1. inplace acts, which PyTorch's module forgets."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """F.feature_alpha_dropout: AlphaDropout of whole channels of x [N, C, ...]. inplace acts, as in AlphaDropout."""

    function = staticmethod(F.feature_alpha_dropout)
