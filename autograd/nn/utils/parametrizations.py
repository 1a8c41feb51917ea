"""weight_norm and spectral_norm as parametrizations: torch.nn.utils.parametrizations' names and state_dict keys."""

from __future__ import annotations

from ...grad_mode import no_grad
from ...random import randn
from ...tensor import Tensor
from ..module import Module
from .parametrize import is_parametrized, register_parametrization
from .reparametrize import as_matrix, norm_except, outputs_dim, unit


class _WeightNorm(Module):
    """g v / |v|, the norm over all dimensions but dim."""

    def __init__(self, dim: int | None):
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        """The weight."""
        return v * (g / norm_except(v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """(g, v) of a weight."""
        return norm_except(weight, self.dim), weight


class _SpectralNorm(Module):
    """W / sigma; the buffers _u and _v come nearer to the largest singular vectors whenever it is read in training."""

    def __init__(self, weight: Tensor, iterations: int, dim: int, eps: float):
        super().__init__()
        self.n_power_iterations, self.dim, self.eps = iterations, dim, eps
        matrix = as_matrix(weight.detach(), dim)
        if weight.ndim > 1:
            for key, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(key, unit(randn(size, dtype=weight.dtype, device=weight.device), eps))
            self.iterate(matrix, 15)

    @no_grad()
    def iterate(self, matrix: Tensor, times: int) -> None:
        """Power iterations."""
        for _ in range(times):
            self._u.copy_(unit(matrix @ self._v, self.eps))
            self._v.copy_(unit(matrix.mT @ self._u, self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """W / (u^T W v); a vector is divided by its norm."""
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self.iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next reading changes them, this one's gradient may still need them
        return weight / (u @ (matrix @ v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: its norm is 1 already."""
        return value


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """module.<name> = g v / |v|, the norm over all dimensions but dim; keys original0 (g) and original1 (v).

    The keys of nn.utils.weight_norm load too. Source: Salimans and Kingma 2016. ValueError when there is no such parameter.
    """
    register_parametrization(module, name, _WeightNorm(dim))
    module.register_load_state_dict_pre_hook(_OldKeys(name))
    return module


class _OldKeys:
    """Before loading: <name>_g and <name>_v under their new names."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, module: Module, state: dict, prefix: str, *_: object) -> None:
        for old, new in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{self.name}_{old}"
            if key in state and is_parametrized(module, self.name):
                state[f"{prefix}parametrizations.{self.name}.{new}"] = state.pop(key)


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:  # fmt: skip
    """module.<name> divided by an estimate of its largest singular value; dim is that of the outputs.

    Source: Miyato et al. 2018. ValueError when there is no such parameter, or n_power_iterations is not positive.
    """
    if n_power_iterations <= 0:
        raise ValueError(f"[spectral_norm] n_power_iterations must be positive; got {n_power_iterations}")
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"[spectral_norm] {type(module).__name__} has no parameter {name!r}")
    where = outputs_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, where, eps))
