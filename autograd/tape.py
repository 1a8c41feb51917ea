"""The tape: nodes that record operations, and the walk that sends gradients back through them.

A tensor that came out of a recorded operation points to its Node; a Node points to where its gradients go
(`edges`): earlier Nodes, leaf tensors, or None. Nodes carry a number that counts up, so newest-first is an
order in which every node comes before all that it depends on: a heap is all the scheduling there is.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from .grad_mode import state
from .hooks import Afterwards

if TYPE_CHECKING:
    from .tensor import Tensor

# Counting down makes heapq's smallest-first the newest-first that backward needs.
next_seq = itertools.count(0, -1).__next__
watch: Callable | None = None  # anomaly mode looks at every node's gradients
_grad_lock = threading.Lock()
FREED = object()
NO_TARGETS: dict = {}
_SEQUENCE = (list, tuple)


class Node:
    """One recorded operation, and the `ctx` that its gradient formula receives.

    op, attrs: what ran; edges: where gradients go, one an input; saved, versions: the inputs kept for the formula
    and the version each had; kept: outputs kept, as (data, version counter, version); shape, dtype, gpu: the output's.
    """

    __slots__ = ("attrs", "dtype", "edges", "gpu", "hooks", "kept", "op", "saved", "seq", "shape", "versions")

    op: Any
    attrs: dict
    edges: tuple
    saved: Any  # a tuple, or FREED
    versions: tuple
    kept: tuple
    shape: tuple[int, ...]
    dtype: Any
    gpu: Any
    hooks: list | None
    seq: int

    def __repr__(self) -> str:
        return f"<{self.op.__name__}Backward>"

    name = property(lambda self: f"{self.op.__name__}Backward")

    @property
    def next_functions(self) -> tuple:
        """Where gradients go, as PyTorch shows it: ((node or leaf or None, output index), ...)."""
        return tuple((e, getattr(e, "index", 0)) for e in self.edges)

    def needs(self, i: int) -> bool:
        """Whether a gradient for input i is wanted."""
        return self.edges[i] is not None

    def saved_inputs(self) -> tuple:
        """The inputs that the op asked to keep; None for one that no wanted gradient needs. Checks versions."""
        saved = self.saved
        if saved is FREED:
            raise self._freed()
        for x, v in zip(saved, self.versions):  # strict= would cost as much as the check
            if v is not None and x.version[0] != v:
                raise self._overwritten(x.shape, x.version[0], v)
        return saved

    def saved_outputs(self) -> tuple:
        """The outputs that the op asked to keep, as tensors that are on the tape when the formula is recorded."""
        if self.saved is FREED:
            raise self._freed()
        for data, version, v in self.kept:
            if version[0] != v:
                raise self._overwritten(data.shape, version[0], v)
        rewrap = self.op.rewrap
        return tuple([rewrap(data, version, self, i) for i, (data, version, _) in enumerate(self.kept)])

    def _overwritten(self, shape: tuple, now: int, then: int) -> RuntimeError:
        return RuntimeError(
            f"[{self.op.name}] a tensor of shape {shape} that its gradient needs was changed in place: it is at version "
            f"{now}, expected {then}. Use the out-of-place operation, or clone() before changing it."
        )

    def _freed(self) -> RuntimeError:
        return RuntimeError(
            f"[{self.op.name}] backward a second time through a graph whose saved values were freed. "
            "Use retain_graph=True the first time, or detach() what is carried from one step to the next."
        )


class Pick(Node):
    """Output `index` of a node with several outputs: hands its gradient over to that node, `edges[0]`."""

    __slots__ = ("index",)

    index: int


_new = object.__new__


def make_node(op: Any, edges: tuple, attrs: dict, data: Any, kind: type = Node) -> Any:
    """A Node for the output `data`. A function, because calling a class costs twice as much and every op pays it."""
    node = _new(kind)
    node.op = op
    node.edges = edges
    node.attrs = attrs
    node.shape = data.shape
    node.dtype = data.dtype
    node.seq = next_seq()
    node.saved = node.versions = node.kept = ()
    node.gpu = node.hooks = None
    return node


def make_pick(source: Node, index: int, data: Any) -> Pick:
    """A Pick for output number `index` of `source`."""
    pick = make_node(source.op, (source,), source.attrs, data, Pick)
    pick.index, pick.gpu = index, source.gpu
    return pick


def _leading_to(pending: dict, targets: dict) -> set:
    """The nodes from which a target (a node or leaf) is reached by at least one edge: the only ones worth running."""
    found: dict[int, Node] = {}
    stack = [n for n in pending if isinstance(n, Node)]
    while stack:
        node = stack.pop()
        if node.seq not in found:
            found[node.seq] = node
            stack.extend(e for e in node.edges if isinstance(e, Node))
    leading: set = set()
    for seq in sorted(found, reverse=True):  # oldest first
        if any(e in leading or e in targets for e in found[seq].edges):
            leading.add(found[seq])
    return leading


def run_hooks(hooks: Iterable[Callable], g: Tensor) -> Tensor:
    """Pass a gradient through hooks; one that returns a tensor of the same shape and dtype replaces it."""
    for hook in tuple(hooks):
        changed = hook(g)
        if changed is not None:
            if getattr(changed, "shape", None) != g.shape or changed.dtype is not g.dtype:
                got = f"shape {changed.shape} of {changed.dtype}" if hasattr(changed, "shape") else type(changed).__name__
                rule = f"a hook returns None or the gradient's shape {g.shape} of {g.dtype}"
                raise RuntimeError(f"[register_hook] {rule}; got {got}")
            g = changed
    return g


def walk(pending: dict, retain: bool, create: bool, needed: set | None = None, targets: dict = NO_TARGETS,
         last: dict = NO_TARGETS) -> dict:  # fmt: skip
    """Send the gradients in `pending` (node or leaf -> gradient) back; return those that arrive at leaves.

    With `needed`, only those nodes run, and `targets` collects the gradients of the inner nodes that are asked for.
    last: {node: leaves whose gradient is complete when it has run}, which state.arrivals is told of.
    """
    heap = [(n.seq, n) for n in pending if isinstance(n, Node)]
    heapify(heap)
    watching = watch
    while heap:
        node = heappop(heap)[1]
        dy = pending.pop(node)
        if node.hooks:
            dy = run_hooks(node.hooks, dy)
        if needed is not None:
            if node in targets:
                targets[node] = dy
            if node not in needed:
                continue
        if node.__class__ is Pick:
            _hand_over(node, dy, pending, heap)
            continue
        op = node.op
        rule = op.backward if create else op.fused_backward
        grads = rule(node, dy) if op.outputs == 1 else rule(node, *dy)
        if watching is not None:
            watching(node, grads)
        for edge, g in zip(node.edges, grads if grads.__class__ is tuple else (grads,), strict=True):
            if edge is None or g is None or (needed is not None and edge not in needed and edge not in targets):
                continue
            inner = edge.__class__ is Node or edge.__class__ is Pick
            want = edge if inner else edge.array  # both have the shape and the NumPy dtype that the gradient must have
            data = g.array
            if data.shape != want.shape:
                g = op.fit(g, want.shape)
            if data.dtype is not want.dtype:
                g = g.to(want.dtype)
            if edge in pending:
                pending[edge] = pending[edge] + g
            else:
                pending[edge] = g
                if inner:
                    heappush(heap, (edge.seq, edge))
        if not retain and (node.kept or node.versions.count(None) != len(node.versions)):  # numbers alone are no memory
            node.saved, node.kept = FREED, ()
        if last and node in last:
            for leaf in last[node]:
                state.arrivals.arrived(leaf, pending.get(leaf))
    return pending


def _hand_over(pick: Pick, dy: Tensor, pending: dict, heap: list) -> None:
    """Put the gradient of one output into its place among those of the node with several."""
    source = pick.edges[0]
    grads = pending.get(source)
    if grads is None:
        pending[source] = grads = [None] * source.op.outputs
        heappush(heap, (source.seq, source))
    before = grads[pick.index]
    grads[pick.index] = dy if before is None else before + dy


def _seed(outputs: tuple, seeds: tuple, where: str) -> dict:
    """The first gradients: one for each output; an output that is given twice gets their sum."""
    pending: dict = {}
    for y, dy in zip(outputs, seeds, strict=True):
        dy = _first_gradient(y, dy, where)
        key = y.node or y
        pending[key] = dy if key not in pending else pending[key] + dy
    return pending


def _first_gradient(y: Tensor, dy: Tensor | None, where: str) -> Tensor:
    """dy, checked against y; a one for a single element when there is none."""
    if not y._requires_grad:
        raise RuntimeError(f"[{where}] the tensor was not recorded: it does not require grad and has no grad_fn")
    if dy is None:
        if y.array.size != 1:
            raise RuntimeError(
                f"[{where}] a gradient is created by itself only for a single element; got shape {y.shape}. "
                "Reduce it (.sum(), .mean()) or pass gradient="
            )
        return y.one()
    if not hasattr(dy, "requires_grad"):
        raise TypeError(f"[{where}] a gradient must be a Tensor or None; got {type(dy).__name__}")
    if dy.shape != y.shape:
        raise RuntimeError(f"[{where}] the gradient must have its tensor's shape; got {dy.shape} for {y.shape}")
    if dy.device != y.device:
        raise RuntimeError(f"[{where}] the gradient must be on its tensor's device; got {dy.device} for {y.device}")
    return dy if dy.dtype is y.dtype else dy.to(y.dtype)


def _as_tuple(x: Any) -> tuple:
    return (x,) if x is None or hasattr(x, "requires_grad") else tuple(x)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:  # fmt: skip
    """Add d(sum of tensors·grad_tensors)/d(leaf) into the .grad of every leaf, or only of `inputs`.

    retain_graph (default: create_graph) keeps the saved values for another pass; create_graph records the gradient
    itself. Nothing is added to any .grad when an error stops the walk.
    """
    retain = create_graph if retain_graph is None else retain_graph
    before, seeds = state.enabled, ()
    state.enabled = create_graph
    try:
        if tensors.__class__ in _SEQUENCE:
            seeds = (None,) * len(tensors) if grad_tensors is None else _as_tuple(grad_tensors)
            pending = _seed(tuple(tensors), seeds, "backward")
        else:
            pending = {tensors.node or tensors: _first_gradient(tensors, grad_tensors, "backward")}
        last = NO_TARGETS if state.arrivals is None else state.arrivals.last_uses(pending, inputs is None and not create_graph)
        if inputs is None:
            arrived = walk(pending, retain, create_graph, last=last)
        else:
            only = _as_tuple(inputs)
            if not only:
                raise RuntimeError("[backward] inputs holds no tensor; leave it out for all leaves")
            arrived = _walk_to(only, pending, retain, create_graph)
        del grad_tensors, seeds, pending  # what nobody else holds may be taken over as a .grad
        hooked: tuple = ()
        for leaf in arrived:
            if leaf.hooks and leaf.node is None:
                arrived[leaf] = run_hooks(leaf.hooks, arrived[leaf])
                hooked = (*hooked, leaf)
        with _grad_lock:
            while arrived:
                _accumulate(*arrived.popitem(), create_graph)
        for leaf in hooked:
            for hook in [h.hook for h in leaf.hooks if h.__class__ is Afterwards]:
                hook(leaf)
    finally:
        state.enabled = before


def _walk_to(inputs: tuple, pending: dict, retain: bool, create: bool) -> dict:
    """The gradients that arrive at `inputs`, leaves or not: {tensor: gradient}."""
    only = {t.node or t: t for t in inputs}
    targets: dict = dict.fromkeys(only)
    arrived = walk(pending, retain, create, _leading_to(pending, targets), targets)
    return {t: g for k, t in only.items() if (g := arrived.get(k) if targets[k] is None else targets[k]) is not None}


def _accumulate(leaf: Tensor, g: Tensor, create_graph: bool) -> None:
    """Add g into leaf.grad. The memory of g is taken over only when nobody else can see it."""
    if leaf.grad is not None:
        if create_graph:
            leaf.grad = leaf.grad + g
        else:
            leaf.grad.accumulate(g)
    elif getrefcount(g) <= 3 and (create_graph or g.owns_memory()):  # our caller's tuple, our variable, getrefcount's
        leaf._grad = g
    else:
        leaf._grad = g.clone() if create_graph else g.copied()


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, allow_unused: bool | None = None, only_inputs: bool = True,
         materialize_grads: bool = False) -> tuple:  # fmt: skip
    """The gradients of sum(outputs·grad_outputs) with respect to `inputs`, as a tuple, contiguous; no .grad is touched.

    An input that the outputs do not depend on raises RuntimeError, or gives None with allow_unused=True, or zeros with
    materialize_grads. only_inputs must be True: PyTorch keeps the word and has no other way either.
    """
    if not only_inputs or (materialize_grads and allow_unused is False):
        raise ValueError("[grad] only_inputs must be True, and allow_unused may not be False with materialize_grads")
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    for i, x in enumerate(inputs):
        if not x.requires_grad:
            raise RuntimeError(f"[grad] input {i} does not require grad")
    seeds = _as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outputs)
    retain = create_graph if retain_graph is None else retain_graph
    before = state.enabled
    state.enabled = create_graph
    try:
        found = _walk_to(inputs, _seed(outputs, seeds, "grad"), retain, create_graph)
        result = []
        for i, x in enumerate(inputs):
            g = found.get(x)
            if g is None and materialize_grads:
                g = x.detach().zeros_like()
            if g is None and not allow_unused:
                raise RuntimeError(f"[grad] the outputs do not depend on input {i}; allow_unused=True gives None for it")
            if g is not None and x.node is None and x.hooks:
                g = run_hooks(x.hooks, g)
            result.append(None if g is None else g.contiguous())  # so that g.view(…) works, as in PyTorch
    finally:
        state.enabled = before
    return tuple(result)
