"""weight_norm and spectral_norm: a weight that is computed anew, from others, before every forward.

PyTorch's names and state_dict keys: weight_g and weight_v, or weight_orig with the buffers weight_u and weight_v.
"""

from __future__ import annotations

from ...grad_mode import no_grad
from ...random import randn
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter


def _taken(module: Module, name: str, op: str) -> Parameter:
    """The parameter, taken out of the module's table."""
    parameter = module._parameters.get(name)
    if parameter is None:
        raise ValueError(f"[{op}] {type(module).__name__} has no parameter {name!r}, or it is already computed from others")
    del module._parameters[name]
    return parameter


class _Computed:
    """Base: a forward pre-hook that sets module.<name>."""

    op = ""

    def __init__(self, name: str):
        self.name = self.computes = name  # the second is what Module looks for when it is copied

    def weight(self, module: Module) -> Tensor:
        """The weight from what it is computed of."""
        raise NotImplementedError(self.op)

    def prepare(self, module: Module) -> None:
        """What comes before it in every forward."""

    def __call__(self, module: Module, args: tuple) -> None:
        self.prepare(module)
        setattr(module, self.name, self.weight(module))

    def install(self, module: Module) -> Module:
        """Set the weight now, and before every forward."""
        setattr(module, self.name, self.weight(module))
        module.register_forward_pre_hook(self)
        return module


def _remove(module: Module, name: str, kind: type[_Computed], sources: tuple[str, ...]) -> Module:
    """Make the weight, as it is now, a parameter again."""
    for entry in module._pre_hooks:
        hook = entry[0]
        if isinstance(hook, kind) and hook.name == name:
            with no_grad():
                weight = hook.weight(module).detach().clone()
            module._pre_hooks.remove(entry)
            module.__dict__.pop(name, None)
            for source in sources:
                delattr(module, source)
            module.register_parameter(name, Parameter(weight))
            return module
    raise ValueError(f"[remove_{kind.op}] {name!r} of {type(module).__name__} is not computed by {kind.op}")


# -- weight_norm ------------------------------------------------------------------------------------------


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The 2-norm over all dimensions but `dim` (None: over all), with every dimension kept."""
    if dim is None:
        return v.norm()
    axes = tuple(d for d in range(v.ndim) if d != dim % v.ndim)
    return (v * v).sum(axes, keepdim=True).sqrt() if axes else v.abs()


class WeightNorm(_Computed):
    """weight = g v / |v|."""

    op = "weight_norm"

    def __init__(self, name: str, dim: int | None):
        super().__init__(name)
        self.dim = None if dim == -1 else dim

    def weight(self, module: Module) -> Tensor:
        """g v / |v|, the norm over all dimensions but dim."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute module.<name> as g v / |v| before every forward; length and direction are trained apart.

    The parameter becomes <name>_g (the norms along dim; one number for dim=None) and <name>_v. ValueError when there
    is no such parameter. Source: Salimans and Kingma 2016.
    """
    hook = WeightNorm(name, dim)
    v = _taken(module, name, "weight_norm")
    with no_grad():
        g = norm_except(v, hook.dim)
    module.register_parameter(f"{name}_g", Parameter(g))
    module.register_parameter(f"{name}_v", Parameter(v.detach()))
    return hook.install(module)


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo weight_norm: the weight as it is now becomes the parameter."""
    return _remove(module, name, WeightNorm, (f"{name}_g", f"{name}_v"))


# -- spectral_norm ----------------------------------------------------------------------------------------


def unit(x: Tensor, eps: float) -> Tensor:
    """x / |x|."""
    return x / x.norm().clamp(min=eps)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as [size of dim, all others]."""
    return weight.movedim(dim, 0).flatten(1) if weight.ndim > 1 else weight.reshape(-1, 1)


def outputs_dim(module: Module) -> int:
    """The dimension of a layer's weight that its outputs are numbered by."""
    return 1 if type(module).__name__.startswith("ConvTranspose") else 0


class SpectralNorm(_Computed):
    """weight = W / sigma, sigma = u^T W v."""

    op = "spectral_norm"

    def __init__(self, name: str, iterations: int, eps: float, dim: int):
        super().__init__(name)
        self.iterations, self.eps, self.dim = iterations, eps, dim

    def prepare(self, module: Module) -> None:
        """In training, power iterations bring u and v nearer to the largest singular vectors."""
        if not module.training:
            return
        matrix = as_matrix(getattr(module, f"{self.name}_orig"), self.dim)
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        with no_grad():
            for _ in range(self.iterations):
                v.copy_(unit(matrix.mT @ u, self.eps))
                u.copy_(unit(matrix @ v, self.eps))

    def weight(self, module: Module) -> Tensor:
        """W / (u^T W v)."""
        weight = getattr(module, f"{self.name}_orig")
        # Copies: the next iteration changes u and v in place, and the gradient of this forward may still need them.
        u, v = (getattr(module, f"{self.name}_{k}").clone() for k in "uv")
        return weight / (u @ (as_matrix(weight, self.dim) @ v))


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:  # fmt: skip
    """Divide module.<name> by an estimate of its largest singular value before every forward.

    The parameter becomes <name>_orig, with buffers <name>_u and <name>_v of which n_power_iterations are made in every
    training forward. dim: that of the outputs; 0, or 1 for transposed convolutions. ValueError when there is no such
    parameter. Source: Miyato et al. 2018.
    """
    if n_power_iterations <= 0:
        raise ValueError(f"[spectral_norm] n_power_iterations must be positive; got {n_power_iterations}")
    dim = outputs_dim(module) if dim is None else dim
    hook = SpectralNorm(name, n_power_iterations, eps, dim)
    weight = _taken(module, name, "spectral_norm")
    module.register_parameter(f"{name}_orig", weight)
    with no_grad():
        for key, size in zip("uv", as_matrix(weight, dim).shape, strict=True):
            drawn = randn(size, dtype=weight.dtype, device=weight.device)
            module.register_buffer(f"{name}_{key}", unit(drawn, eps))
    return hook.install(module)


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo spectral_norm: the weight as it is now becomes the parameter."""
    return _remove(module, name, SpectralNorm, tuple(f"{name}_{key}" for key in ("orig", "u", "v")))
