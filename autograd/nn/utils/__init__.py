"""Clipping gradients, and parameters as one vector; rnn: sequences of different lengths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ... import create, dtypes
from ...grad_mode import no_grad
from ...ops.views import cat, stack
from ...tensor import Tensor, rewrap
from ...webgpu import foreach as launch
from . import parametrizations, parametrize, rnn  # noqa: F401
from .reparametrize import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm  # noqa: F401

_JOINED_BYTES = 32 << 20  # gradients are joined up to this size: fewer kernels, and no buffer that is too large


def _gradients(parameters: Any) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else getattr(parameters, "weights", parameters)  # bigdl's pair
    return [p.grad for p in parameters if p.grad is not None]


@no_grad()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:  # fmt: skip
    """Scale all gradients in place by min(1, max_norm / (norm + 1e-6)); returns the norm of all together, a 0-d tensor.

    norm_type: p of the p-norm, above 0, or inf. The 2-norm neither overflows nor vanishes. Nothing is read back from a GPU
    unless error_if_nonfinite, which raises RuntimeError for an infinite or NaN norm and leaves the gradients alone; or
    unless gradients are on several devices. foreach: PyTorch's, without use.
    """
    max_norm, p = float(max_norm), _order(norm_type, "clip_grad_norm_")
    grads = [g for g in _gradients(parameters) if g.numel()]
    if not grads:
        return create.zeros(())
    if len({g.device for g in grads}) > 1:
        norm = get_total_norm(grads, p, error_if_nonfinite)
        _scale(grads, max_norm, norm)
        return norm
    if all(g.array.__class__ is np.ndarray for g in grads):
        return _clip_on_host(grads, max_norm, p, error_if_nonfinite)
    if p == 2 and not error_if_nonfinite and launch.fits([g.array for g in grads]):
        result = rewrap(launch.clip([g.array for g in grads], max_norm), [0])
        for g in grads:
            g.version[0] += 1
        return result[0]
    groups = _joined(grads)
    norm = _norm([vector for vector, _ in groups], p)
    _check_finite(norm, error_if_nonfinite)
    factor = (max_norm / (norm + 1e-6)).minimum(1.0)
    for vector, members in groups:
        parts = (vector * factor).split([g.numel() for g in members])
        for g, part in zip(members, parts, strict=True):
            g.copy_(part.reshape(*g.shape))
    return norm


@no_grad()
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:  # fmt: skip
    """The norm of all tensors' elements together, a 0-d tensor: what clip_grad_norm_ takes of gradients.

    norm_type: p of the p-norm, above 0, or inf. RuntimeError for an infinite or NaN norm if error_if_nonfinite. Of tensors
    on several devices it is on the first one's. foreach: PyTorch's, without use.
    """
    p = _order(norm_type, "get_total_norm")
    given = [t for t in ([tensors] if isinstance(tensors, Tensor) else tensors) if t.numel()]
    if not given:
        return create.zeros(())
    places: dict[Any, list[Tensor]] = {}
    for t in given:
        places.setdefault(t.device, []).append(t)
    if len(places) > 1:
        norm = _at(get_total_norm([get_total_norm(members, p).cpu() for members in places.values()], p), given[0])
    elif all(t.array.__class__ is np.ndarray for t in given):
        norm = _on_cpu(_host_norm([t.array for t in given], p), given)
    else:
        norm = _norm([vector for vector, _ in _joined(given)], p)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(f"[get_total_norm] the norm is {norm.item()}; error_if_nonfinite=False returns it")
    return norm


@no_grad()
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:  # fmt: skip
    """Scale all gradients in place by min(1, max_norm / (total_norm + 1e-6)). foreach: PyTorch's, without use."""
    _scale(_gradients(parameters), float(max_norm), total_norm)


def _scale(grads: list[Tensor], max_norm: float, norm: Tensor) -> None:
    factor = (max_norm / (norm + 1e-6)).minimum(1.0)
    for g in grads:
        g.mul_(_at(factor, g))


def _at(number: Tensor, t: Tensor) -> Tensor:
    """A 0-d tensor where t is; float64, which a GPU has not, becomes float32 there."""
    return number if number.device == t.device else (number if t.device.type == "cpu" else number.float()).to(t.device)


def _order(norm_type: float, op: str) -> float:
    """p of a norm. ValueError unless it is above 0."""
    p = float(norm_type)
    if not p > 0:
        raise ValueError(f"[{op}] norm_type is a number above 0, or inf; got {norm_type}")
    return p


def _on_cpu(total: float, given: list[Tensor]) -> Tensor:
    wide = any(t.dtype is dtypes.float64 for t in given)
    return create.tensor(total, dtype=dtypes.float64 if wide else dtypes.float32, device="cpu")


def _clip_on_host(grads: list[Tensor], max_norm: float, p: float, check: bool) -> Tensor:
    total = _host_norm([g.array for g in grads], p)
    _check_finite(total, check)
    factor = max_norm / (total + 1e-6)
    if not factor >= 1:  # a NaN norm shows in the gradients, as in PyTorch
        for g in grads:
            g.mul_(factor)
    return _on_cpu(total, grads)


def _check_finite(norm: Any, check: bool) -> None:
    if check and not math.isfinite(float(norm)):
        raise RuntimeError(f"[clip_grad_norm_] the norm of the gradients is {float(norm)}; error_if_nonfinite=False clips anyway")


def _host_norm(arrays: list[np.ndarray], p: float) -> float:
    """The p-norm of all elements, in double precision above the level of one array."""
    if p == math.inf:
        return max((float(np.abs(dtypes.widened(a)).max()) for a in arrays if a.size), key=lambda v: (v != v, v), default=0.0)
    if p == 2:
        return math.hypot(*(_length(a) for a in arrays))
    return float(sum(float((np.abs(dtypes.converted(a, np.dtype(np.float64))) ** p).sum()) for a in arrays)) ** (1 / p)


def _length(a: np.ndarray) -> float:
    """sqrt(sum(a^2)); scaled by the largest element only when the squares overflow or vanish."""
    flat = dtypes.converted(a.reshape(-1), np.dtype(np.float32) if a.itemsize < 4 else a.dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.dot(flat, flat))
        if 1e-30 < squares < math.inf:
            return math.sqrt(squares)
        top = float(np.abs(flat).max(initial=0))
        if not 0 < top < math.inf:
            return top
        flat = flat / top
        return top * math.sqrt(float(np.dot(flat, flat)))


def _norm(vectors: list[Tensor], p: float) -> Tensor:
    """The p-norm of all elements as a 0-d tensor, in Tensor operations."""
    sizes = [v.abs() for v in vectors]
    if p not in (2, math.inf):
        return _total([(v**p).sum() for v in sizes]) ** (1 / p)
    tops = [v.amax() for v in sizes]
    top = tops[0] if len(tops) == 1 else stack(tops).amax()
    if p == math.inf:
        return top
    scale = top.maximum(1e-37).minimum(3e38)  # what the squares are of is then near 1; 0, inf and NaN stay what they are
    scaled = [v / scale for v in vectors]
    return _total([(v * v).sum() for v in scaled]).sqrt() * scale


def _total(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else stack(parts).sum()


def _joined(grads: list[Tensor]) -> list[tuple[Tensor, list[Tensor]]]:
    """The gradients end to end in vectors of at most _JOINED_BYTES (or of one gradient), each with those it holds."""
    groups: list[list[Tensor]] = [[]]
    size = 0
    for g in grads:
        if groups[-1] and size + g.nbytes > _JOINED_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(g)
        size += g.nbytes
    wide = [[(g.float() if g.dtype in dtypes.SHORT else g).reshape(-1) for g in group] for group in groups]
    return [(cat(flat) if len(flat) > 1 else flat[0], group) for flat, group in zip(wide, groups, strict=True)]


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Hold every element of every gradient in [-clip_value, clip_value], in place. foreach: PyTorch's, without use."""
    for g in _gradients(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements, one parameter after the other, as one vector; gradients flow through."""
    return cat([p.reshape(-1) for p in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Undo parameters_to_vector: copy the vector's parts into the parameters. ValueError when the sizes differ."""
    parameters = list(parameters)
    total = sum(p.numel() for p in parameters)
    if vec.shape != (total,):
        raise ValueError(f"[vector_to_parameters] the vector must have shape ({total},); got {vec.shape}")
    for p, part in zip(parameters, vec.split([p.numel() for p in parameters]), strict=True):
        p.copy_(part.reshape(*p.shape))
