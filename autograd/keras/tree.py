"""Nested lists, tuples and dicts of tensors: what a layer takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """What lies inside nested lists, tuples and dicts, in order."""
    if isinstance(tree, list | tuple):
        for x in tree:
            yield from leaves(x)
    elif isinstance(tree, dict):
        for x in tree.values():
            yield from leaves(x)
    else:
        yield tree


def by_key(tree: Any) -> Any:
    """The same nesting with the entries of dicts in the order of their keys, which is Keras' order of their leaves."""
    if isinstance(tree, list | tuple):
        return [by_key(x) for x in tree]
    return {k: by_key(tree[k]) for k in sorted(tree)} if isinstance(tree, dict) else tree


def mapped(fn: Callable, tree: Any) -> Any:
    """The same nesting, with fn(leaf) in the place of every leaf."""
    if isinstance(tree, list | tuple):
        parts = [mapped(fn, x) for x in tree]
        if isinstance(tree, tuple):
            return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
        return parts
    if isinstance(tree, dict):
        return {k: mapped(fn, x) for k, x in tree.items()}
    return fn(tree)


def shapes(tree: Any) -> Any:
    """The nesting with shapes (tuples) in the place of tensors, for Layer.build; None stays None."""
    return mapped(lambda x: None if x is None else tuple(x.shape), tree)


def is_shape(value: Any) -> bool:
    """Whether this is one shape, a sequence of sizes or None, and not a list of shapes."""
    return isinstance(value, list | tuple) and all(n is None or isinstance(n, int) for n in value)
