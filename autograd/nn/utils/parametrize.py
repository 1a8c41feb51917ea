"""Parametrizations: a parameter computed from others whenever it is read. torch.nn.utils.parametrize's names and keys.

The module's class is replaced by a subclass with a property; what the value is computed from stands in
module.parametrizations.<name>: the tensors `original`, or `original0`, `original1`, …, and the modules 0, 1, … that are
applied to them one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...grad_mode import no_grad
from ...tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter


class ParametrizationList(ModuleList):
    """The modules that compute one value, and the originals they compute it from."""

    def __init__(self, modules: list[Module], original: Parameter):
        super().__init__(modules)
        value: Any = original
        if hasattr(modules[0], "right_inverse"):
            with no_grad():
                value = modules[0].right_inverse(original)
        self.is_tensor = isinstance(value, Tensor)
        if self.is_tensor:
            with no_grad():
                original.copy_(value)
            self.register_parameter("original", original)
        else:
            for i, part in enumerate(value):
                kept = Parameter(part.detach(), requires_grad=original.requires_grad)
                self.register_parameter(f"original{i}", kept)

    def originals(self) -> list[Tensor]:
        """What the value is computed from."""
        return list(self._parameters.values())  # type: ignore[arg-type]

    @no_grad()
    def assign(self, value: Tensor) -> None:
        """Set the originals so that `value` comes out, as far as right_inverse knows how."""
        found: Any = value
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"[parametrize] {type(module).__name__} has no right_inverse: set its originals instead")
            found = module.right_inverse(found)
        for original, part in zip(self.originals(), (found,) if self.is_tensor else found, strict=True):
            original.copy_(part)

    def forward(self) -> Tensor:
        """The value."""
        first, *rest = self
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether module.<tensor_name> (None: anything in it) is parametrized."""
    made = module._modules.get("parametrizations")
    return isinstance(made, ModuleDict) and (len(made) > 0 if tensor_name is None else tensor_name in made)


_known: dict | None = None  # inside cached(): (module, name) -> its value


@contextmanager
def cached() -> Iterator[None]:
    """Inside, every parametrized value is computed once, at its first reading; changes of its originals do not show."""
    global _known
    before, _known = _known, {} if _known is None else _known
    try:
        yield
    finally:
        _known = before


def _property(name: str) -> property:
    def value(module: Module) -> Tensor:
        if _known is None:
            return module.parametrizations[name]()
        if (module, name) not in _known:
            _known[module, name] = module.parametrizations[name]()
        return _known[module, name]

    return property(value)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module) -> Module:
    """Compute module.<tensor_name> as parametrization(original) whenever it is read; returns the module.

    A second parametrization is applied to what the first gives. right_inverse(value), where the parametrization has it,
    gives the original(s) of the value as it is now. ValueError when there is no such parameter, TypeError for what is no
    Module.
    """
    if not isinstance(parametrization, Module):
        raise TypeError(f"[register_parametrization] expected a Module; got {type(parametrization).__name__}")
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    parameter = module._parameters.get(tensor_name)
    if parameter is None:
        raise ValueError(f"[register_parametrization] {type(module).__name__} has no parameter {tensor_name!r}")
    made = ParametrizationList([parametrization], parameter)
    del module._parameters[tensor_name]
    if not is_parametrized(module):
        module.register_module("parametrizations", ModuleDict())
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), dict(_METHODS))
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def _set(module: Module, name: str, value: Any) -> None:
    if is_parametrized(module, name):
        module.parametrizations[name].assign(value)
    else:
        Module.__setattr__(module, name, value)


def _deep_copy(module: Module, memo: dict) -> Module:
    """A copy with a class of its own: the properties of one must not go with those of the other."""
    kind = type(module)
    inside = {k: v for k, v in vars(kind).items() if k not in ("__dict__", "__weakref__")}
    twin = object.__new__(type(kind.__name__, kind.__bases__, inside))
    memo[id(module)] = twin
    twin.__dict__.update(copy.deepcopy(module.__dict__, memo))
    return twin


def _refuse_pickling(module: Module, protocol: Any) -> Any:
    raise RuntimeError(f"[parametrize] a {type(module).__name__} has a class of its own: save its state_dict() instead")


_METHODS = {"__setattr__": _set, "__deepcopy__": _deep_copy, "__reduce_ex__": _refuse_pickling}


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Undo register_parametrization; returns the module.

    leave_parametrized: keep the value as it is computed now, otherwise the original (of which there must be one).
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"[remove_parametrizations] {tensor_name!r} of {type(module).__name__} is not parametrized")
    made = module.parametrizations[tensor_name]
    if not leave_parametrized and not made.is_tensor:
        raise ValueError("[remove_parametrizations] there are several originals; leave_parametrized=True keeps the value")
    originals = made.originals()
    with no_grad():
        value = made().detach().clone() if leave_parametrized else originals[0].detach()
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    module.register_parameter(tensor_name, Parameter(value, requires_grad=originals[0].requires_grad))
    return module
