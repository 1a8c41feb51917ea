"""ag.func: derivatives as functions of functions, and modules as functions of their parameters; torch.func's names.

Arguments and results may be tensors, or dicts, lists and tuples of them. Nothing is added to any .grad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import functional
from .grad_mode import enable_grad, state
from .hooks import walk
from .nn.module import Module
from .ops.views import stack, unbind
from .tape import grad as grads_of
from .tensor import Tensor

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


# -- modules --------------------------------------------------------------------------------------------


def functional_call(module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict | None = None, *,
                    tie_weights: bool = True, strict: bool = False) -> Any:  # fmt: skip
    """module(*args, **kwargs) with the given tensors, by dotted name, in the place of its parameters and buffers.

    parameter_and_buffer_dicts: a dict, or several that name different ones. What is not named stays (strict: RuntimeError).
    tie_weights: a tensor that the module has under several names is replaced under all. RuntimeError for unknown names.
    """
    dicts = [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, dict) else parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for part in dicts:
        if given.keys() & part.keys():
            raise ValueError(f"[functional_call] {sorted(given.keys() & part.keys())} are given twice")
        given.update(part)
    args = args if isinstance(args, tuple) else () if args is None else (args,)
    with _in_place_of(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def _in_place_of(module: Module, given: dict[str, Tensor], tie: bool, strict: bool) -> Iterator[None]:
    places: dict[str, tuple[dict, str]] = {}
    names: dict[int, list[str]] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name, t in table.items():
                if t is not None:
                    full = f"{path}.{name}" if path else name
                    places[full] = (table, name)
                    names.setdefault(id(t), []).append(full)
    unknown, left = given.keys() - places.keys(), places.keys() - given.keys()
    if unknown or (strict and left):
        raise RuntimeError(f"[functional_call] the names must be the module's; unknown: {sorted(unknown)}, left: {sorted(left)}")
    before = [(table, name, table[name]) for table, name in places.values()]
    try:
        for full, t in given.items():
            table, name = places[full]
            twins = names[id(table[name])] if tie else ()
            for other in (full, *(twin for twin in twins if twin not in given)):
                table, name = places[other]
                table[name] = t
        yield
    finally:
        for table, name, t in before:
            table[name] = t


def stack_module_state(models: Sequence[Module]) -> tuple[dict, dict]:
    """(parameters, buffers) of modules of one kind, stacked by name: what vmap() of functional_call() runs over."""
    if not models:
        raise RuntimeError("[stack_module_state] expected at least one module")
    parameters = {k: stack([dict(m.named_parameters())[k] for m in models]).detach() for k, _ in models[0].named_parameters()}
    buffers = {k: stack([dict(m.named_buffers())[k] for m in models]) for k, _ in models[0].named_buffers()}
    return {k: p.requires_grad_() for k, p in parameters.items()}, buffers


# -- nested arguments -----------------------------------------------------------------------------------


def _leaves(tree: Any) -> list:
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, list | tuple) else [tree]


def _rebuilt(tree: Any, leaves: Iterator) -> Any:
    """The same nesting with other leaves."""
    if isinstance(tree, dict):
        return {k: _rebuilt(v, leaves) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        parts = [_rebuilt(v, leaves) for v in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(leaves)


# -- derivatives ----------------------------------------------------------------------------------------


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that gives (the gradient of func with respect to its arguments number `argnums`, func's value).

    func returns a tensor of one element, or with has_aux (it, anything), which comes back as (gradient, (value, anything)).
    """

    def both(*args: Any, **kwargs: Any) -> tuple:
        single = isinstance(argnums, int)
        chosen = [args[i] for i in ((argnums,) if single else argnums)]
        own = [_fresh(x) for x in _leaves(chosen)]
        parts = iter(_rebuilt(chosen, iter(own)))
        numbers = {i % len(args) for i in ((argnums,) if single else argnums)}
        with enable_grad():
            out = func(*(next(parts) if i in numbers else x for i, x in enumerate(args)), **kwargs)
        value, aux = out if has_aux else (out, None)
        if not isinstance(value, Tensor) or value.numel() != 1:
            came = value.shape if isinstance(value, Tensor) else type(value).__name__
            raise RuntimeError(f"[grad] the function must return a tensor of one element; got {came}")
        grads = [x.detach().zeros_like() for x in own]
        if value.requires_grad:
            grads = [_let_go(g, own) for g in grads_of(value, own, create_graph=True, materialize_grads=True)]
        result = _rebuilt(chosen, iter(grads))
        value = _let_go(value, own)
        return (result[0] if single else tuple(result)), ((value, aux) if has_aux else value)

    return both


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that gives func's gradient with respect to its arguments number `argnums`; with has_aux, (it, anything)."""

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _fresh(x: Tensor) -> Tensor:
    """x as the start of a graph; what it came from stays connected."""
    return x.view_as(x) if x.requires_grad and state.enabled else x.detach().requires_grad_()


def _let_go(y: Tensor, own: list[Tensor]) -> Tensor:
    """y without history where that leads to nothing but the arguments' own copies."""
    ours = set(own)
    beyond = any(isinstance(edge, Tensor) and edge not in ours for node in walk([y.node]) for edge in node.edges)
    return y if beyond else y.detach()


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), a function of v that gives v^T J for each of primals); with has_aux also what func returned besides."""
    own = [_fresh(x) for x in _leaves(primals)]
    with enable_grad():
        out = func(*_rebuilt(primals, iter(own)))
    out, aux = out if has_aux else (out, None)
    leaves = _leaves(out)

    def back(*cotangents: Any) -> Any:
        pairs = [(y, v) for y, v in zip(leaves, _leaves(cotangents), strict=True) if y.requires_grad]
        options = {"create_graph": state.enabled, "retain_graph": True, "materialize_grads": True}
        found = grads_of([y for y, _ in pairs], own, [v for _, v in pairs], **options)
        return _rebuilt(primals, iter([_let_go(g, own) for g in found]))

    shown = _rebuilt(out, iter([_let_go(y, own) for y in leaves]))
    return (shown, back, aux) if has_aux else (shown, back)


def jvp(func: Callable, primals: tuple, tangents: tuple) -> tuple:
    """(func(*primals), J t): how the result changes when the arguments change by the tangents."""
    return functional.jvp(func, primals, tangents)


def jacrev(func: Callable, argnums: int = 0) -> Callable:
    """A function that gives func's Jacobian with respect to its argument number `argnums`: [*result, *argument]."""

    def jacobian(*args: Any) -> Any:
        def of_one(x: Tensor) -> Any:
            return func(*(x if i == argnums % len(args) else a for i, a in enumerate(args)))

        found = functional.jacobian(of_one, args[argnums], create_graph=True)
        return found if args[argnums].requires_grad or isinstance(found, tuple) else found.detach()

    return jacobian


jacfwd = jacrev


def hessian(func: Callable, argnums: int = 0) -> Callable:
    """A function that gives func's second derivatives with respect to its argument number `argnums`."""

    def second(*args: Any) -> Any:
        def of_one(x: Tensor) -> Any:
            return func(*(x if i == argnums % len(args) else a for i, a in enumerate(args)))

        return functional.hessian(of_one, args[argnums])

    return second


# -- over a batch ---------------------------------------------------------------------------------------


def vmap(func: Callable, in_dims: Any = 0, out_dims: int = 0) -> Callable:
    """A function that runs func on each example along `in_dims` and stacks what it returns along `out_dims`.

    in_dims: the dimension of the examples in all arguments, or one an argument (for a dict of tensors too); None: the same
    for all examples. It calls func once an example: the numbers are torch.vmap's, the time is a loop's.
    """

    def mapped(*args: Any, **kwargs: Any) -> Any:
        dims = (in_dims,) * len(args) if in_dims is None or isinstance(in_dims, int) else tuple(in_dims)
        if len(dims) != len(args):
            raise ValueError(f"[vmap] in_dims must have one entry an argument; got {in_dims} for {len(args)}")
        columns = [_examples(x, d) for x, d in zip(args, dims, strict=True)]
        sizes = {len(c) for c in columns if c is not None}
        if len(sizes) != 1:
            raise ValueError(f"[vmap] the arguments must have one number of examples; got {sorted(sizes) or 'no batch'}")
        rows = range(sizes.pop())
        outs = [func(*(x if c is None else c[i] for x, c in zip(args, columns, strict=True)), **kwargs) for i in rows]
        parts = zip(*(_leaves(y) for y in outs), strict=True)
        return _rebuilt(outs[0], iter([stack(list(part), out_dims) for part in parts]))

    return mapped


def _examples(x: Any, dims: Any) -> list | None:
    """One argument for each example, or None where it is the same for all."""
    leaves = _leaves(x)
    if dims is None or not leaves:
        return None
    each = [dims] * len(leaves) if isinstance(dims, int) else _leaves(dims)
    parts = [None if d is None else unbind(t, d) for t, d in zip(leaves, each, strict=True)]
    count = next(len(p) for p in parts if p is not None)
    return [_rebuilt(x, iter([t if p is None else p[i] for t, p in zip(leaves, parts, strict=True)])) for i in range(count)]
