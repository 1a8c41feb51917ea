"""Hooks on gradients: what register_hook and its like return and register, and who waits for gradients to arrive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .grad_mode import state

if TYPE_CHECKING:
    from .tape import Node
    from .tensor import Tensor


def walk(nodes: Iterable) -> Iterator[Node]:
    """Each node that these come from, these too, once; what is no node (a leaf, None) is passed over."""
    seen: set = set()
    stack = [n for n in nodes if hasattr(n, "edges")]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend([edge for edge in node.edges if hasattr(edge, "edges")])


class Keep:
    """retain_grad's hook. It holds its tensor weakly: the cycle tensor -> node -> hook -> tensor would outlive both."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor):
        self.tensor = weakref.ref(tensor)

    def __call__(self, g: Tensor) -> None:
        t = self.tensor()
        if t is not None:
            t.grad = g.clone() if t.grad is None else t.grad + g


def set_grad(t: Tensor, g: Tensor | None) -> None:
    """t.grad = g. TypeError or ValueError for what could not be t's gradient: broadcasting would hide it in the next step."""
    if g is not None:
        if not hasattr(g, "requires_grad"):
            raise TypeError(f"[grad] expected a Tensor or None; got {type(g).__name__}")
        if g.shape != t.shape or g.dtype is not t.dtype or g.device != t.device:
            got, want = (f"{x.shape} of {x.dtype} on {x.device}" for x in (g, t))
            raise ValueError(f"[grad] a gradient has its tensor's shape, dtype and device; got {got} for {want}")
    t._grad = g


class Afterwards:
    """What register_post_accumulate_grad_hook puts among a leaf's hooks: the gradient passes, backward() calls `hook` later."""

    __slots__ = ("hook",)

    def __init__(self, hook: Callable):
        self.hook = hook

    def __call__(self, g: Tensor) -> None:
        """Nothing: the gradient has not been added yet."""


def distinct(hooks: list, hook: Callable) -> Callable:
    """`hook`, or a stand-in where it is among `hooks` already: each handle takes out its own."""
    return partial(hook) if any(h is hook for h in hooks) else hook


class RemovableHandle:
    """What register_hook returns; remove() takes the hook out again."""

    def __init__(self, hooks: list, hook: Any):
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        for i, hook in enumerate(self._hooks):
            if hook is self._hook:
                del self._hooks[i]
                return

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Arrivals:
    """`with Arrivals(leaves, arrived):` call arrived(leaf, gradient) while backward() runs, as soon as a leaf's gradient
    is complete and before it is added to .grad: what communication that overlaps with backward starts from.

    The gradient is None where none comes, which is told at the start if the leaf is not in the graph at all. Not told of:
    leaves with hooks, whose gradient is not settled before the end. Only this thread's walks count.
    RuntimeError for backward(inputs=...) or create_graph=True inside.
    """

    def __init__(self, leaves: Iterable[Tensor], arrived: Callable):
        self.leaves, self.arrived = frozenset(leaves), arrived
        self._before: Any = None

    def __enter__(self) -> Arrivals:
        self._before, state.arrivals = state.arrivals, self
        return self

    def __exit__(self, *_: object) -> None:
        state.arrivals = self._before

    def last_uses(self, pending: dict, plain: bool) -> dict[Node, list]:
        """{node: leaves}: the oldest node that sends a gradient to a leaf is the last that backward comes to."""
        if not plain:
            raise RuntimeError("[backward] what sends gradients off takes no inputs= or create_graph=True; use ag.grad()")
        found: dict[Tensor, Node] = {}
        for node in walk(pending):
            for edge in node.edges:
                if edge in self.leaves and not edge.hooks and (edge not in found or node.seq > found[edge].seq):
                    found[edge] = node  # numbers count down
        last: dict[Node, list] = {}
        for leaf, node in found.items():
            last.setdefault(node, []).append(leaf)
        for leaf in self.leaves:
            if leaf not in found and leaf not in pending and not leaf.hooks:
                self.arrived(leaf, None)
        return last
