"""ag.autograd.functional: derivatives of functions as functions, by torch.autograd.functional's names and rules.

func takes one tensor or several and returns one or several. Where `inputs` is a tensor so is the result for it; a tuple
gives a tuple. Nothing is added to any .grad. strict=True: RuntimeError where an output does not depend on an input
(False: zeros). create_graph=True: the result can be differentiated with respect to the inputs, which then keep their
history; otherwise everything comes back detached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .grad_mode import enable_grad
from .ops.views import stack
from .tape import grad
from .tensor import Tensor


def _tuple(x: Any, what: str, op: str) -> tuple[Tensor, ...]:
    """A tensor or a sequence of tensors, as a tuple."""
    found = tuple(x) if isinstance(x, list | tuple) else (x,)
    for t in found:
        if not isinstance(t, Tensor):
            raise TypeError(f"[{op}] {what} must be a Tensor or a tuple of Tensors; got {type(t).__name__}")
    return found


def _shaped(values: tuple, like: Any) -> Any:
    """A tuple where `like` was one, else its only member."""
    return values if isinstance(like, list | tuple) else values[0]


class _Run:
    """func at its inputs, recorded: what all functions here start from."""

    def __init__(self, op: str, func: Callable, inputs: Any, create_graph: bool, strict: bool):
        self.op, self.given, self.create_graph, self.strict = op, inputs, create_graph, strict
        tensors = _tuple(inputs, "inputs", op)
        # A view of an input that requires grad keeps its history; anything else starts a new one.
        self.inputs = tuple(
            x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(True) for x in tensors
        )
        self.made = func(*self.inputs)
        self.outputs = _tuple(self.made, "the function's result", op)
        if strict:
            for i, y in enumerate(self.outputs):
                if not y.requires_grad:
                    raise RuntimeError(f"[{op}] strict: output {i} does not require grad: it depends on no input")

    def single(self) -> Tensor:
        """The only output, of one element."""
        if len(self.outputs) != 1 or self.outputs[0].numel() != 1:
            shapes = ", ".join(str(y.shape) for y in self.outputs)
            raise RuntimeError(f"[{self.op}] the function must return one tensor of one element; got shapes {shapes}")
        return self.outputs[0].reshape(())

    def vectors(self, v: Any, like: tuple, what: str) -> tuple[Tensor, ...]:
        """v, checked against the tensors it belongs to; ones where there is a single element and no v."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"[{self.op}] v may be left out only for {what} of one element; got shape {like[0].shape}")
            return (like[0].detach().ones_like(),)
        found = _tuple(v, "v", self.op)
        if [t.shape for t in found] != [t.shape for t in like]:
            got, want = [t.shape for t in found], [t.shape for t in like]
            raise RuntimeError(f"[{self.op}] v must have the shapes of {what}, {want}; got {got}")
        return found

    def gradients(self, outputs: tuple, inputs: tuple, v: Any, create: bool, what: str = "the output") -> tuple[Tensor, ...]:
        """The gradients of outputs·v; zeros for an input that they do not depend on, or RuntimeError when strict."""
        pairs = [(y, None if v is None else v[i]) for i, y in enumerate(outputs) if y.requires_grad]
        if pairs:
            ys, seeds = zip(*pairs, strict=True)
            found = grad(ys, inputs, None if v is None else seeds, retain_graph=True, create_graph=create, allow_unused=True)
        else:
            found = (None,) * len(inputs)
        for i, g in enumerate(found):
            if self.strict and g is None:
                raise RuntimeError(f"[{self.op}] strict: {what} does not depend on input {i}")
            if self.strict and self.create_graph and create and not g.requires_grad:
                raise RuntimeError(f"[{self.op}] strict: the derivative is constant in input {i}, and create_graph was asked for")
        return tuple(x.zeros_like() if g is None else g for x, g in zip(inputs, found, strict=True))

    def out(self, values: tuple) -> tuple[Tensor, ...]:
        """The results, detached unless a graph of them was asked for."""
        return values if self.create_graph else tuple(t.detach() for t in values)


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), v^T J): v has the shapes of the outputs, and may be left out for a single element."""
    with enable_grad():
        run = _Run("vjp", func, inputs, create_graph, strict)
        seeds = run.vectors(v, run.outputs, "the outputs")
        found = run.gradients(run.outputs, run.inputs, seeds, create_graph)
    return _shaped(run.out(run.outputs), run.made), _shaped(run.out(found), inputs)


def _push(run: _Run, outputs: tuple, v: tuple, create: bool, what: str = "the output") -> tuple[Tensor, ...]:
    """J v of outputs, by differentiating u^T J, which is linear in u, with respect to u (the double-backward trick)."""
    u = tuple(y.detach().zeros_like().requires_grad_(True) for y in outputs)
    pulled = run.gradients(outputs, run.inputs, u, True, what)
    if not any(g.requires_grad for g in pulled):
        return tuple(y.zeros_like() for y in outputs)
    moving = [(g, t) for g, t in zip(pulled, v, strict=True) if g.requires_grad]
    gs, seeds = zip(*moving, strict=True)
    found = grad(gs, u, seeds, create_graph=create, allow_unused=True)
    return tuple(y.zeros_like() if g is None else g for y, g in zip(outputs, found, strict=True))


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), J v): v has the shapes of the inputs, and may be left out for a single element.

    By two backward passes, so it costs about three times the function.
    """
    with enable_grad():
        run = _Run("jvp", func, inputs, create_graph, strict)
        found = _push(run, run.outputs, run.vectors(v, run.inputs, "the inputs"), create_graph)
    return _shaped(run.out(run.outputs), run.made), _shaped(run.out(found), run.made)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), v^T H): H is the Hessian of a function to one element, v has the shapes of the inputs."""
    with enable_grad():
        run = _Run("vhp", func, inputs, create_graph, strict)
        first = run.gradients((run.single(),), run.inputs, None, True)
        seeds = run.vectors(v, run.inputs, "the inputs")
        found = run.gradients(first, run.inputs, seeds, create_graph, "the gradient")
    return _shaped(run.out(run.outputs), run.made), _shaped(run.out(found), inputs)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), H v). H is symmetric: vhp gives the same at less cost, this one is for functions where it is not."""
    with enable_grad():
        run = _Run("hvp", func, inputs, create_graph, strict)
        first = run.gradients((run.single(),), run.inputs, None, True)
        found = _push(run, first, run.vectors(v, run.inputs, "the inputs"), create_graph, "the gradient")
    return _shaped(run.out(run.outputs), run.made), _shaped(run.out(found), inputs)


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
    """d output / d input: shape output.shape + input.shape, from one backward pass for each element of the output.

    A tensor for one input and one output; a tuple over inputs, over outputs, or over outputs of tuples over inputs.
    """
    with enable_grad():
        run = _Run("jacobian", func, inputs, create_graph, strict)
        rows = tuple(_rows(run, y) for y in run.outputs)
    parts = tuple(_shaped(run.out(row), inputs) for row in rows)
    return _shaped(parts, run.made)


def _rows(run: _Run, y: Tensor) -> tuple[Tensor, ...]:
    """The Jacobians of one output, one an input."""
    n = y.numel()
    flat = y.reshape(n)
    found = [run.gradients((flat[i],), run.inputs, None, run.create_graph) for i in range(n)]
    if not found:
        return tuple(x.new_zeros(*y.shape, *x.shape) for x in run.inputs)
    return tuple(stack(list(column)).reshape(*y.shape, *x.shape) for x, column in zip(run.inputs, zip(*found), strict=True))


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
    """d^2 output / d input d input of a function to one element: shape input.shape + input.shape.

    For a tuple of inputs a tuple of tuples: [i][j] is the derivative by input i, then by input j.
    """
    several = isinstance(inputs, list | tuple)
    _tuple(inputs, "inputs", "hessian")

    def first(*tensors: Tensor) -> tuple:
        with enable_grad():
            run = _Run("hessian", func, tensors, True, strict)
            return run.gradients((run.single(),), run.inputs, None, True)

    with enable_grad():
        run = _Run("hessian", first, inputs, create_graph, strict)
        rows = tuple(run.out(_rows(run, g)) for g in run.outputs)
    return rows if several else rows[0][0]
