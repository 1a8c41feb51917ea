"""ag.Function: an operation of the user's own, with its gradient. The protocol is torch.autograd.Function's.

A subclass becomes an Op that is not in the registry, so the tape walks it like any other; what it saved stands in its
Node, so freed graphs and overwritten tensors are noticed as everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from numpy import ndarray

from . import dtypes
from .create import zeros
from .grad_mode import no_grad, state
from .op import Op
from .tape import FREED, Node, make_node, make_pick
from .tensor import Tensor, rewrap

INPUT, OUTPUT, NOTHING = "input", "output", "nothing"


class FunctionCtx:
    """What forward and backward are given as `ctx`: save_for_backward and friends, and any attribute of the user's.

    forward's and backward's are two objects with one __dict__. Only backward's knows the node, which holds that
    __dict__: a cycle would keep the graph alive until the collector comes.
    """

    __slots__ = ("__dict__", "_node")

    needs_input_grad: tuple[bool, ...]

    def __init__(self, needs: tuple[bool, ...]):
        self._node: Node | None = None
        self.needs_input_grad = needs
        self._to_save: tuple = ()
        self._constant: tuple = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs, outputs or other tensors (or None) for backward. TypeError for anything else."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"[save_for_backward] expects tensors or None; got {type(t).__name__}. Set ctx.name = value")
        self._to_save = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """These outputs of forward have no gradient."""
        self._constant = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (True, the default) or None for an output that nothing was computed from."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple:
        """What save_for_backward kept. RuntimeError where it was freed, or changed in place since."""
        node = self._node
        if node is None:
            return self._to_save
        places = node.attrs["places"]
        if node.saved is FREED:
            raise node._freed()
        node.saved_inputs()  # checks the versions
        for data, version, v in node.kept:
            if version[0] != v:
                raise node._overwritten(data.shape, version[0], v)
        return tuple([_again(node, t, where) for t, where in zip(node.saved, places, strict=True)])


def _again(node: Node, t: Any, where: tuple[str, int, int]) -> Any:
    """A saved tensor: itself, or an output as a tensor that hangs on the node."""
    kind, index, kept = where
    if kind != OUTPUT:
        return t
    data, version, _ = node.kept[kept]
    return rewrap(data, version, node if index >= 0 else None, index)


class _FunctionOp(Op):
    """The Op of a Function with a given number of outputs."""

    function: ClassVar[type[Function]]

    @staticmethod
    def backward(node: Node, *grads: Any) -> tuple:
        function = node.op.function
        ctx = FunctionCtx.__new__(FunctionCtx)
        ctx.__dict__, ctx._node = node.attrs["ctx"], node
        if ctx._materialize:
            grads = tuple([_zeros(o) if g is None else g for g, o in zip(grads, node.attrs["outputs"], strict=True)])
        found = function.backward(ctx, *grads)
        return _checked(function.__name__, found if isinstance(found, tuple) else (found,), node.edges)

    fused_backward = backward


def _zeros(output: tuple) -> Tensor:
    shape, dtype, device = output
    return zeros(shape, dtype=dtype, device=device)


def _checked(name: str, grads: tuple, edges: tuple) -> tuple:
    """One gradient an input; RuntimeError where the count is wrong, TypeError for what is no tensor."""
    n = len(edges)
    if len(grads) > n and all(g is None for g in grads[n:]):
        grads = grads[:n]
    if len(grads) != n:
        raise RuntimeError(f"[{name}] backward must return one gradient for each input of forward ({n}); got {len(grads)}")
    for i, g in enumerate(grads):
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"[{name}] gradients are tensors or None; got {type(g).__name__} for input {i}")
    return grads


class Function:
    """Subclass it, write two static methods, call apply:

        class Cube(ag.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                return dy * 3 * x * x

        y = Cube.apply(x)

    forward gets the arguments of apply as they are, computes without recording and returns a tensor or a tuple of
    tensors (and other things, which have no gradient). backward gets one gradient an output and returns one an
    argument: None where it is no tensor or wants none. Written in Tensor operations it is differentiable again;
    otherwise mark it @once_differentiable. forward(*args) with setup_context(ctx, inputs, output) is understood too.
    """

    _ops: ClassVar[dict[int, type[Op]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._ops = {}
        for name in ("forward", "backward", "setup_context"):
            if name in cls.__dict__ and not isinstance(cls.__dict__[name], staticmethod):
                raise TypeError(f"[{cls.__name__}] {name} must be a static method; write @staticmethod above it")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The outputs of the arguments; every subclass writes its own."""
        raise NotImplementedError("[Function] a subclass needs a static forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """What backward needs, for a forward that is written without ctx."""
        raise NotImplementedError("[Function] setup_context is not written")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the arguments, from those of the outputs."""
        raise NotImplementedError("[Function] a subclass needs a static backward(ctx, *grads) to have gradients")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward on the arguments and record it, when a gradient may be asked for."""
        recording = state.enabled and any([isinstance(x, Tensor) and x._requires_grad for x in args])
        edges = tuple([(x.node or x) if recording and isinstance(x, Tensor) and x._requires_grad else None for x in args])
        ctx = FunctionCtx(tuple([edge is not None for edge in edges]))
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        results = output if isinstance(output, tuple) else (output,)
        if not any(isinstance(y, Tensor) for y in results):
            raise TypeError(f"[{cls.__name__}] forward must return at least one tensor; got {type(output).__name__}")
        if recording:
            results = _record(cls, ctx, edges, args, results)
        ctx._to_save = ()  # the node has it now
        return results if isinstance(output, tuple) else results[0]


def _record(cls: type[Function], ctx: FunctionCtx, edges: tuple, args: tuple, results: tuple) -> tuple:
    """Put the function on the tape; results that are arguments come back as tensors of their own."""
    taken = {id(x) for x in args}
    fresh = tuple([rewrap(y.array, y.version) if id(y) in taken and isinstance(y, Tensor) else y for y in results])
    constant = {id(y) for y in ctx._constant}
    moving = [_is_moving(y) and id(y) not in constant for y in results]
    if not any(moving):
        return fresh
    first = next(y for y in results if isinstance(y, Tensor))
    outputs = [(y.shape, y.dtype, y.device) if isinstance(y, Tensor) else ((), dtypes.float32, "cpu") for y in results]
    attrs = {"ctx": ctx.__dict__, "outputs": outputs, "places": ()}
    node = make_node(_op_of(cls, len(results)), edges, attrs, first.array)
    node.gpu = None if first.array.__class__ is ndarray else first.array.gpu
    _save(node, ctx._to_save, results, fresh, moving)
    for i, (y, moves) in enumerate(zip(fresh, moving, strict=True)):
        if moves:
            y.node = node if len(results) == 1 else make_pick(node, i, y.array)
            y._requires_grad = True
    ctx._constant = ()
    return fresh


def _is_moving(y: Any) -> bool:
    return isinstance(y, Tensor) and y.dtype.is_floating_point


def _save(node: Node, tensors: tuple, results: tuple, fresh: tuple, moving: list) -> None:
    """Keep the tensors: outputs as (data, version counter, version), which makes no cycle, all others as they are."""
    saved: list = []
    kept: list = []
    places: list = []
    for t in tensors:
        at = next((i for i, y in enumerate(results) if y is t and fresh[i] is t), None) if t is not None else None
        if at is None:
            places.append((NOTHING if t is None else INPUT, 0, 0))
            saved.append(t)
        else:
            places.append((OUTPUT, at if moving[at] else -1, len(kept)))
            saved.append(None)
            kept.append((t.array, t.version, t.version[0]))
    node.attrs["places"] = places
    node.saved, node.kept = tuple(saved), tuple(kept)
    node.versions = tuple([None if t is None else t.version[0] for t in saved])


def _op_of(cls: type[Function], outputs: int) -> type[Op]:
    """The Op that stands for the function on the tape, made once for each number of outputs."""
    op = cls._ops.get(outputs)
    if op is None:
        fields = {"name": cls.__name__, "outputs": outputs, "function": cls, "__doc__": cls.__doc__}
        op = cls._ops[outputs] = type(cls.__name__, (_FunctionOp,), fields)
    return op


class _Refuse(Function):
    """Identity whose gradient is an error: what a backward that cannot be differentiated hands out."""

    @staticmethod
    def forward(ctx: Any, message: str, count: int, *tensors: Any) -> tuple:
        ctx.message = message
        return tuple([None if t is None else t.detach() for t in tensors[:count]])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


def once_differentiable(function: Callable) -> Callable:
    """Decorator of a backward that is not written in Tensor operations: under @staticmethod.

    It runs without recording. RuntimeError when its gradients are differentiated.
    """

    @functools.wraps(function)
    def backward(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = function(ctx, *grads)
        used = [t for t in (*grads, *ctx.saved_tensors) if isinstance(t, Tensor)]
        if not state.enabled or not any(t._requires_grad for t in used):
            return found
        several = isinstance(found, tuple)
        outputs = found if several else (found,)
        message = f"[{ctx._node.op.name}] its backward is marked once_differentiable and was differentiated"
        refused = _Refuse.apply(message, len(outputs), *outputs, *used)
        return refused if several else refused[0]

    return backward
