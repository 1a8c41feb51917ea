"""What Module's backward hooks are made of: a gate around a call's inputs, and one around its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..function import Function
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module


class Gate(Function):
    """Identity of several tensors whose gradients pass through `react` together."""

    @staticmethod
    def forward(ctx: Any, react: Callable, *tensors: Tensor) -> tuple:
        ctx.react = react
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return (None, *ctx.react(grads))


class GatedCall:
    """One call of a module with backward hooks: enter() takes the positional arguments, leave() the output."""

    def __init__(self, module: Module, hooks: list, pre_hooks: list):
        self.module, self.hooks, self.pre_hooks = module, list(hooks), list(pre_hooks)
        self.inputs = 0  # arguments of the call
        self.moving: list[int] = []  # which of them have gradients
        self.grad_output: tuple | None = None

    def enter(self, args: tuple) -> tuple:
        """The arguments, those that require grad through a gate."""
        self.inputs = len(args)
        self.moving = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x._requires_grad]
        if not self.hooks or not self.moving:
            return args
        return _through(self._arrived, args, self.moving)

    def leave(self, output: Any) -> Any:
        """The output, its tensors that require grad through a gate."""
        several = isinstance(output, tuple)
        outputs = output if several else (output,)
        moving = [i for i, y in enumerate(outputs) if isinstance(y, Tensor) and y._requires_grad]
        if not moving:
            return output

        def started(grads: tuple) -> tuple:
            full = _placed(grads, moving, len(outputs))
            for hook in self.pre_hooks:
                full = _changed(hook(self.module, full), full, "grad_output")
            self.grad_output = full
            if self.hooks and not self.moving:
                nothing = (None,) * self.inputs
                for hook in self.hooks:
                    _changed(hook(self.module, nothing, full), nothing, "grad_input")
            return tuple(full[i] for i in moving)

        outputs = _through(started, outputs, moving)
        return outputs if several else outputs[0]

    def _arrived(self, grads: tuple) -> tuple:
        full = _placed(grads, self.moving, self.inputs)
        for hook in self.hooks:
            full = _changed(hook(self.module, full, self.grad_output), full, "grad_input")
        return tuple(full[i] for i in self.moving)


def _through(react: Callable, values: tuple, moving: list[int]) -> tuple:
    gated = iter(Gate.apply(react, *[values[i] for i in moving]))
    return tuple(next(gated) if i in moving else x for i, x in enumerate(values))


def _placed(grads: tuple, moving: list[int], n: int) -> tuple:
    """Gradients in the places of what they belong to, None elsewhere."""
    at = dict(zip(moving, grads, strict=True))
    return tuple(at.get(i) for i in range(n))


def _changed(made: Any, before: tuple, what: str) -> tuple:
    """What a hook made of gradients: the same where it returned None. ValueError for another number of them."""
    if made is None:
        return before
    made = made if isinstance(made, tuple) else (made,)
    if len(made) != len(before):
        raise ValueError(f"[Module] a backward hook returns as many gradients as {what} has; got {len(made)} for {len(before)}")
    return made
