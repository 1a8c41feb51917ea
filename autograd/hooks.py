"""Hooks on gradients: what register_hook returns, and what retain_grad registers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tensor import Tensor


class Keep:
    """retain_grad's hook. It holds its tensor weakly: the cycle tensor -> node -> hook -> tensor would outlive both."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor):
        self.tensor = weakref.ref(tensor)

    def __call__(self, g: Tensor) -> None:
        t = self.tensor()
        if t is not None:
            t.grad = g.clone() if t.grad is None else t.grad + g


class RemovableHandle:
    """What register_hook returns; remove() takes the hook out again."""

    def __init__(self, hooks: list, hook: Callable):
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
