"""Names for things: a string, a config dict, a class, an object or a function, as Keras takes them everywhere.

A family (initializers, regularizers, losses, …) is a table from Keras' names to classes or functions. Names match in
snake_case and CamelCase: "glorot_uniform" and "GlorotUniform" are one.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any


class Configured:
    """What is made of plain arguments, each kept as an attribute under its own name: get_config reads them back."""

    def get_config(self) -> dict:
        """The constructor's arguments, by name."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: Mapping) -> Any:
        """The object of a config."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_config().items())})"


def snake_case(name: str) -> str:
    """A class's name as Keras writes it in layer names: SimpleRNN -> simple_rnn, CuDNNGRU -> cu_dnngru."""
    name = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def _key(name: str) -> str:
    return name.replace("_", "").lower()


CUSTOM: dict[str, Any] = {}  # names that users have registered, or gave to load_model: saving.py


def lookup(name: str, table: Mapping[str, Any], kind: str) -> Any:
    """The entry of a name. ValueError that lists near names."""
    if name in CUSTOM:
        return CUSTOM[name]
    if name in table:
        return table[name]
    keys = {_key(k): k for k in table}
    found = keys.get(_key(name))
    if found is None:
        near = [keys[k] for k in difflib.get_close_matches(_key(name), keys, 3, 0.5)]
        hint = f"Near: {', '.join(near)}" if near else f"There are {', '.join(sorted(table))}"
        raise ValueError(f"[{kind}] Unknown {kind}: {name!r}. {hint}; an object or a function will do too")
    return table[found]


def _made(entry: Any, config: Mapping | None = None) -> Any:
    """A class becomes an object; a function is what it is."""
    if not inspect.isclass(entry):
        return entry
    return made_of(entry, config or {}, {})


def made_of(kind: Any, config: Mapping, more: Mapping) -> Any:
    """kind.from_config(config, **more), or kind(**config) where it has none.

    ValueError that names the class, and the argument where one is to blame, for a config that makes none.
    """
    make = (lambda c: kind.from_config(c, **more)) if hasattr(kind, "from_config") else (lambda c: kind(**c))
    try:
        return make(dict(config))
    except ValueError:
        raise  # it says what is wrong
    except Exception as error:
        text = f"[{kind.__name__}] this config makes none{_blamed(make, config)}: {in_words(error)}"
        raise ValueError(text) from error


def _blamed(make: Callable, config: Any) -> str:
    """The argument without which the config is fine, if there is one."""
    for name in config if isinstance(config, Mapping) else ():
        with contextlib.suppress(Exception):
            make({k: v for k, v in config.items() if k != name})
            return f", for {name}={str(config[name])[:80]}"
    return ""


def in_words(error: Exception) -> str:
    """The class and the text of an error that is told within another."""
    return f"{type(error).__name__}: {str(error)[:300]}"


def get(identifier: Any, table: Mapping[str, Any], kind: str, custom_objects: Mapping | None = None) -> Any:
    """The object that `identifier` means: None (None), a name, {"class_name": …, "config": …}, a class or an object.

    kind: the family's name in messages. ValueError for an unknown name, TypeError for what is none of these.
    """
    if identifier is None:
        return None
    if custom_objects:
        table = {**table, **custom_objects}
    if isinstance(identifier, str):
        return _made(lookup(identifier, table, kind))
    if isinstance(identifier, Mapping):
        return deserialize(identifier, table, kind)
    if inspect.isclass(identifier):
        return _made(identifier)
    if callable(identifier) or hasattr(identifier, "get_config"):
        return identifier
    raise TypeError(f"[{kind}] a name, a config, an object or a function; got {type(identifier).__name__}")


def deserialize(config: Any, table: Mapping[str, Any], kind: str, custom_objects: Mapping | None = None) -> Any:
    """The object of what serialize gave, or Keras itself: only what the table (or custom_objects) holds is ever made."""
    if not isinstance(config, Mapping):
        return get(config, table, kind, custom_objects)
    if custom_objects:
        table = {**table, **custom_objects}
    name, inner = config.get("class_name"), config.get("config", {})
    if not isinstance(name, str):
        raise ValueError(f'[{kind}] a config is a dict with "class_name" and "config"; got keys {sorted(map(str, config))}')
    if name == "function" and isinstance(inner, str):  # Keras 3 writes functions so
        return lookup(inner, table, kind)
    return _made(lookup(name, table, kind), inner)


def serialize(value: Any, table: Mapping[str, Any]) -> Any:
    """What deserialize turns back into `value`: None, a function's name, or {"class_name", "config"}.

    A function that the table does not hold stays itself: a config made of it works in this process, and JSON refuses it.
    """
    if value is None:
        return None
    for name, entry in table.items():
        if entry is value:
            return name
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    return value


def family(table: Mapping[str, Any], kind: str) -> tuple[Callable, Callable, Callable]:
    """(get, serialize, deserialize) of a family, as its module offers them."""

    def get_one(identifier: Any) -> Any:
        """What a name, a config or an object means; None gives None. ValueError: unknown."""
        return get(identifier, table, kind)

    def serialize_one(value: Any) -> Any:
        """{"class_name", "config"}, from which deserialize makes it again."""
        return serialize(value, table)

    def deserialize_one(config: Any, custom_objects: Mapping | None = None) -> Any:
        """The object of a config."""
        return deserialize(config, table, kind, custom_objects)

    return get_one, serialize_one, deserialize_one
