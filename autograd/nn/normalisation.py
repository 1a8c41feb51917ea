"""Normalisations as layers, with their parameters and running statistics."""

from __future__ import annotations

from typing import Any

from .. import create, dtypes
from ..grad_mode import no_grad
from ..tensor import Tensor
from . import functional as F
from . import init
from .layers import new_parameter
from .module import Module


class _Affine(Module):
    """weight 1 and bias 0 at the start, where there are any."""

    def _register(self, shape: tuple, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, new_parameter(*shape, device=device, dtype=dtype) if wanted else None)

    def reset_parameters(self) -> None:
        """weight 1, bias 0."""
        for parameter, value in ((self.weight, 1), (self.bias, 0)):
            if parameter is not None:
                init.constant_(parameter, value)


class _Running(_Affine):
    """Statistics of batches or samples, kept as running averages in running_mean, running_var, num_batches_tracked."""

    ndims: tuple[int, ...] = ()
    newer = ("num_batches_tracked",)

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
                 device: Any, dtype: Any, bias: bool):  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._register((num_features,), affine, affine and bias, device, dtype)
        kept = track_running_stats
        self.register_buffer("running_mean", create.zeros(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("running_var", create.ones(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("num_batches_tracked", create.zeros((), device=device, dtype=dtypes.int64) if kept else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was tracked."""
        if self.track_running_stats:
            with no_grad():
                for buffer, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                    buffer.fill_(value)

    def reset_parameters(self) -> None:
        """weight 1, bias 0, nothing tracked."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input: Tensor, channels_at: int = 1) -> None:
        if input.ndim not in self.ndims or input.shape[channels_at] != self.num_features:
            counts = " or ".join(map(str, self.ndims))
            op = type(self).__name__
            raise ValueError(f"[{op}] expects {counts} dimensions with {self.num_features} channels; got {input.shape}")

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        shown = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}, track_running_stats={self.track_running_stats}"


class _BatchNorm(_Running):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """x normalised; momentum=None averages all batches alike."""
        self._check(input)
        factor = self.momentum or 0.0
        if self.training and self.track_running_stats:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1 / float(self.num_batches_tracked)
        of_batch = self.training or self.running_mean is None
        mean, var = (self.running_mean, self.running_var) if not self.training or self.track_running_stats else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, of_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """F.batch_norm of [N, C] or [N, C, L]."""

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """F.batch_norm of [N, C, H, W]."""

    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """F.batch_norm of [N, C, D, H, W]."""

    ndims = (5,)


class _InstanceNorm(_Running):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """x [N, C, ...], or one sample [C, ...], normalised."""
        single = input.ndim == self.ndims[0]
        if self.affine or input.ndim not in self.ndims:  # without parameters any number of channels will do
            self._check(input, 0 if single else 1)
        x = input.unsqueeze(0) if single else input
        own = self.training or not self.track_running_stats
        y = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum or 0.0, self.eps)
        return y.squeeze(0) if single else y


class InstanceNorm1d(_InstanceNorm):
    """F.instance_norm of [N, C, L] or [C, L]."""

    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """F.instance_norm of [N, C, H, W] or [C, H, W]."""

    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """F.instance_norm of [N, C, D, H, W] or [C, D, H, W]."""

    ndims = (4, 5)


class GroupNorm(_Affine):
    """F.group_norm: (x - mean) / sqrt(var + eps) over groups of channels, then weight and bias a channel."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
                 dtype: Any = None, *, bias: bool = True):  # fmt: skip
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"[GroupNorm] num_channels must be divisible by num_groups; got {num_channels} and {num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._register((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """x [N, C, ...] normalised over groups of channels."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """F.rms_norm: x / sqrt(mean(x^2) + eps) * weight over the last dimensions, which are normalized_shape."""

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.register_parameter("weight", new_parameter(*shape, device=device, dtype=dtype) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight 1."""
        if self.weight is not None:
            init.constant_(self.weight, 1)

    def forward(self, input: Tensor) -> Tensor:
        """x divided by its root mean square."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """F.local_response_norm: x / (k + alpha * mean of x^2 over neighbouring channels)^beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """x [N, C, ...] normalised across channels."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
