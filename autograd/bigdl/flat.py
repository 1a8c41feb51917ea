"""Parameters that are parts of one vector, and their gradients parts of another: what get_parameters() gives.

A vector and its parts share memory and version counter, on both devices. A flat parameter's .grad is its part of the
gradient vector for good: assigning to it copies, and None fills it with zeros, so that optimizers, backward() and
zero_grad() leave the two vectors and the module one thing.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy import ndarray

from .. import create
from ..grad_mode import no_grad
from ..nn.parameter import Parameter
from ..tensor import Tensor

_slot = Tensor.__dict__["grad"]


class Link(NamedTuple):
    """Where a parameter lies: `start` in the vector of values and in that of gradients; grad: its part of the latter."""

    values: Tensor
    gradients: Tensor
    start: int
    grad: Tensor


class FlatParameter(Parameter):
    """A Parameter that is part of a vector. A copy or an unpickled one is on its own again."""

    __slots__ = ()

    @property
    def grad(self) -> Tensor | None:  # type: ignore[override]
        """Its part of the gradient vector. RuntimeError when a gradient with a history is assigned: a copy has none."""
        link = self.__dict__.get("flat")
        return _slot.__get__(self) if link is None else link.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        link = self.__dict__.get("flat")
        if link is None:
            _slot.__set__(self, value)
        elif value is not link.grad:
            if value is not None and value.requires_grad:
                raise RuntimeError(
                    "[grad] the gradient of a flat parameter is memory and keeps no history; use ag.grad(…, create_graph=True)"
                )
            with no_grad():
                link.grad.zero_() if value is None else link.grad.copy_(value)


def flat_vectors(parameters: list[Parameter]) -> tuple[Tensor, Tensor]:
    """(values, gradients), each of one dimension, whose memory is that of the parameters, in their order.

    Parameters that already lie one after the other in a vector stay where they are. ValueError for several dtypes or
    devices; TypeError for parameters of a class of their own.
    """
    return _as_they_lie(parameters) or _joined(parameters)


def _as_they_lie(parameters: list[Parameter]) -> tuple[Tensor, Tensor] | None:
    """The vector, or the part of one, that the parameters fill without gaps; None when they do not."""
    first: Link | None = parameters[0].__dict__.get("flat")
    stop = 0 if first is None else first.start
    for p in parameters:
        link: Link | None = p.__dict__.get("flat")
        if link is None or first is None or link.values is not first.values or link.start != stop:
            return None
        if not (_shows(p, link.values, stop) and _shows(link.grad, link.gradients, stop)):
            return None
        stop += p.numel()
    if first is None or (first.start == 0 and stop == first.values.numel()):
        return None if first is None else (first.values, first.gradients)
    with no_grad():
        return first.values[first.start : stop], first.gradients[first.start : stop]


def _shows(t: Tensor, vector: Tensor, start: int) -> bool:
    """Whether t's memory is still the vector's from `start` on: to(device) and to(dtype) move it away."""
    a, b = t.array, vector.array
    if a.__class__ is not b.__class__ or a.dtype != b.dtype or not t.is_contiguous():
        return False
    if a.__class__ is ndarray:
        return not a.size or a.ctypes.data == b.ctypes.data + start * a.itemsize
    return not a.size or (a.storage is b.storage and a.offset == b.offset + start)


def _joined(parameters: list[Parameter]) -> tuple[Tensor, Tensor]:
    """Two new vectors with what the parameters and gradients hold, of which they become parts."""
    first = parameters[0]
    for p in parameters:
        if type(p) not in (Parameter, FlatParameter):
            raise TypeError(f"[get_parameters] only an nn.Parameter can become part of a vector; got {type(p).__name__}")
        if (p.dtype, p.device) != (first.dtype, first.device):
            raise ValueError(
                f"[get_parameters] one vector needs parameters of one dtype and device; got {first.dtype} on {first.device} "
                f"and {p.dtype} on {p.device}"
            )
    total = sum(p.numel() for p in parameters)
    values, gradients = (create.zeros(total, dtype=first.dtype, device=first.device) for _ in range(2))
    with no_grad():
        start, places = 0, []
        for p in parameters:
            part = slice(start, start + p.numel())
            values[part].copy_(p.detach().reshape(-1))
            if p.grad is not None:
                gradients[part].copy_(p.grad.detach().reshape(-1))
            places.append(part)
            start = part.stop
        # A graph that was recorded with these values still holds, where the parameters' counters were equal.
        values.version[0] = max(p.version[0] for p in parameters)
        for p, part in zip(parameters, places, strict=True):
            shown, grad = values[part].reshape(p.shape), gradients[part].reshape(p.shape)
            p.array, p.version, p.views = shown.array, values.version, None
            p.__class__ = FlatParameter
            _slot.__set__(p, None)
            p.__dict__["flat"] = Link(values, gradients, part.start, grad)
    return values, gradients
