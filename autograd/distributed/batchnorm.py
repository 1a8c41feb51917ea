"""Batch normalisation with the statistics of all ranks, and the recorded all-reduce that it is made of."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..create import full
from ..function import Function
from ..grad_mode import no_grad
from ..nn.module import Module
from ..nn.normalisation import _BatchNorm
from ..ops.views import cat
from ..tensor import Tensor
from .buckets import here
from .collective import all_reduce


class AllReduce(Function):
    """y = the sum of x over all ranks, recorded: AllReduce.apply(x).

    dx = sum(dy) over all ranks. Within DataParallel.sync(samples=n), where losses count by their samples and the gradient
    that comes of dx will, it is sum(n_r dy_r) / n: what the loss over the whole batch sends back, also for uneven shards.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return all_reduce(x.detach().clone())

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        n = here.samples
        mine = dy * n if n else dy.zeros_like()  # without samples dy may be that of a mean of nothing
        total = AllReduce.apply(mine)
        return total / n if n else total * 0


class SyncBatchNorm(_BatchNorm):
    """BatchNorm1d, 2d or 3d whose mean and variance in training are those of all ranks' batches together.

    All ranks take part in every forward and backward, also those whose batch is empty. The running statistics are the same
    on all ranks. In evaluation nothing is communicated. convert_sync_batchnorm(model) puts it in the place of BatchNorm.
    ValueError for one value a channel on all ranks together.
    """

    ndims = (2, 3, 4, 5)
    communicates = True

    def forward(self, input: Tensor) -> Tensor:
        """x [N, C, ...] normalised."""
        if not self.training and self.running_mean is not None:
            return super().forward(input)
        self._check(input)
        x = input.float() if input.dtype in dtypes.SHORT else input
        shape, axes = (1, -1, *(1,) * (x.ndim - 2)), (0, *range(2, x.ndim))
        held = full((1,), x.numel() // self.num_features, dtype=x.dtype, device=x.device)
        sums = AllReduce.apply(cat([x.sum(axes), held]))
        count = sums[-1].detach()
        if self.training and count.item() == 1:
            raise ValueError(f"[SyncBatchNorm] training needs more than one value a channel; got {input.shape} on all ranks")
        mean = sums[:-1] / count
        centred = x - mean.reshape(*shape)
        var = AllReduce.apply((centred * centred).sum(axes)) / count
        if self.training and self.track_running_stats:
            self._track(mean, var * (count / (count - 1)))
        y = centred * (var + self.eps).rsqrt().reshape(*shape)
        if self.weight is not None:
            y = y * self.weight.reshape(*shape)
        return (y if self.bias is None else y + self.bias.reshape(*shape)).to(input.dtype)

    @no_grad()
    def _track(self, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked.add_(1)
        factor = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        for running, batch in ((self.running_mean, mean), (self.running_var, var)):
            running.mul_(1 - factor).add_(batch.detach().to(running.dtype) * factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module) -> Module:
        """PyTorch's name for the function below."""
        return convert_sync_batchnorm(module)


def convert_sync_batchnorm(module: Module) -> Module:
    """The module with a SyncBatchNorm, of the same parameters and statistics, for every BatchNorm at any depth."""
    twins: dict[Module, Module] = {}
    for owner in list(module.modules()):
        for name, child in owner._modules.items():
            if isinstance(child, _BatchNorm) and not isinstance(child, SyncBatchNorm):
                owner._modules[name] = twins.setdefault(child, _twin(child))
    if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
        return _twin(module)
    return module


def _twin(norm: Any) -> SyncBatchNorm:
    """A SyncBatchNorm that holds the same tensors."""
    made = SyncBatchNorm(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    for table in ("_parameters", "_buffers"):
        getattr(made, table).update(getattr(norm, table))
    return made.train(norm.training)  # type: ignore[return-value]
