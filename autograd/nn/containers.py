"""Modules that hold modules."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from .module import Module


def _slot(container: Module, index: Any) -> str:
    """The name of the entry at a position, which may count from the end."""
    n, i = len(container._modules), operator.index(index)
    if not -n <= i < n:
        raise IndexError(f"[{type(container).__name__}] index {i} is out of range for {n} modules")
    return list(container._modules)[i]


class _Listed(Module):
    """What Sequential and ModuleList share: entries by position."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._like(dict(list(self._modules.items())[index]))
        return self._modules[_slot(self, index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self.register_module(_slot(self, index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [_slot(self, index)]
        self._number([m for name, m in self._modules.items() if name not in names])

    def _like(self, entries: dict) -> Any:
        """A container of the same kind with some of the entries."""
        raise NotImplementedError

    def _number(self, modules: list) -> None:
        """Enter the modules anew under 0, 1, 2, …"""
        self._modules.clear()
        for i, module in enumerate(modules):
            self.register_module(str(i), module)

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before a position."""
        entries = list(self._modules.values())
        entries.insert(index, module)
        self._number(entries)
        return self

    def pop(self, index: Any) -> Any:
        """Take out the module at a position."""
        taken = self[index]
        del self[index]
        return taken


class Sequential(_Listed):
    """Calls its modules one after the other: Sequential(a, b) or Sequential({"first": a, "second": b})."""

    def __init__(self, *modules: Any):
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            self.register_module(str(name), module)

    def _like(self, entries: dict) -> Sequential:
        return type(self)(entries)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other) if isinstance(other, Sequential) else NotImplemented

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(other) if isinstance(other, Sequential) else NotImplemented

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*list(self) * self._times(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(list(self) * (self._times(times) - 1))

    def _times(self, times: int) -> int:
        if operator.index(times) < 1:
            raise ValueError(f"[Sequential] can be repeated a positive number of times; got {times}")
        return times

    def forward(self, input: Any) -> Any:
        """The last module's output."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(_Listed):
    """A list of modules that are found as children."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self.extend(modules or ())

    def _like(self, entries: dict) -> ModuleList:
        return type(self)(entries.values())

    def __repr__(self) -> str:
        """Equal neighbours are one line: (0-2): 3 x ReLU()."""
        runs = [(text, len(list(group))) for text, group in groupby(map(repr, self))]
        lines, start = [], 0
        for text, n in runs:
            shown = f"({start}): {text}" if n == 1 else f"({start}-{start + n - 1}): {n} x {text}"
            lines.append("\n  " + shown.replace("\n", "\n  "))
            start += n
        return f"{type(self).__name__}({''.join(lines)}" + ("\n)" if lines else ")")

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)


class ModuleDict(Module):
    """A dict of modules that are found as children."""

    def __init__(self, modules: Any = None):
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, module)."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Add those of a dict, or of pairs (name, module)."""
        for key, module in dict(modules).items():
            self.register_module(key, module)

    def pop(self, key: str) -> Module:
        """Take a module out."""
        return self._modules.pop(key)  # type: ignore[return-value]

    def clear(self) -> None:
        """Take all out."""
        self._modules.clear()
