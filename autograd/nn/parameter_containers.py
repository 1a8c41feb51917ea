"""Modules that hold parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

from ..tensor import Tensor
from .module import Module
from .parameter import Parameter


def _as_parameter(value: Any, kind: str) -> Parameter:
    """A Parameter as it is, any other tensor made one."""
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Tensor):
        raise TypeError(f"[{kind}] holds tensors; got {type(value).__name__}")
    return Parameter(value.detach(), requires_grad=value.dtype.is_floating_point)


def _shown(name: Any, p: Parameter) -> str:
    return f"  ({name}): Parameter containing: [{p.dtype.name} of size {'x'.join(map(str, p.shape))}]"


class ParameterList(Module):
    """A list of parameters that a module finds: tensors become Parameters. state_dict keys: 0, 1, 2, …"""

    def __init__(self, values: Iterable[Tensor] | None = None):
        super().__init__()
        self.extend(values or ())

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def _slot(self, index: Any) -> str:
        n, i = len(self), operator.index(index)
        if not -n <= i < n:
            raise IndexError(f"[ParameterList] index {i} is out of range for {n} parameters")
        return str(i % n)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return self._parameters[self._slot(index)]

    def __setitem__(self, index: int, value: Tensor) -> None:
        self._parameters[self._slot(index)] = _as_parameter(value, "ParameterList")

    def append(self, value: Tensor) -> ParameterList:
        """Add one at the end."""
        self.register_parameter(str(len(self)), _as_parameter(value, "ParameterList"))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Add several at the end."""
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        """One line a parameter."""
        return "\n".join(_shown(name, p) for name, p in self._parameters.items())  # type: ignore[arg-type]


class ParameterDict(Module):
    """A dict of parameters that a module finds: tensors become Parameters. state_dict keys are its own."""

    def __init__(self, parameters: Any = None):
        super().__init__()
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Parameter:
        return self._parameters[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, value: Tensor) -> None:
        self._parameters.pop(key, None)
        self.register_parameter(key, _as_parameter(value, "ParameterDict"))

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._parameters.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, parameter)."""
        return self._parameters.items()

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, or `default`."""
        return self._parameters.get(key, default)

    def update(self, parameters: Any) -> None:
        """Add those of a dict, or of pairs (name, tensor)."""
        for key, value in dict(parameters.items() if hasattr(parameters, "items") else parameters).items():
            self[key] = value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name; if there is none, `default` becomes it."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Parameter:
        """Take one out."""
        return self._parameters.pop(key)  # type: ignore[return-value]

    def popitem(self) -> tuple[str, Any]:
        """Take out the last, as (name, parameter)."""
        return self._parameters.popitem()

    def copy(self) -> ParameterDict:
        """A dict of the same parameters."""
        return ParameterDict(self)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict with `default` under every name."""
        return ParameterDict(dict.fromkeys(keys, default))

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def clear(self) -> None:
        """Take all out."""
        self._parameters.clear()

    extra_repr = ParameterList.extra_repr
