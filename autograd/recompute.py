"""ag.utils.checkpoint, by torch.utils.checkpoint's names: what is computed inside is not kept, but computed again by backward.

It costs a second forward and saves the memory of everything between the inputs and the outputs of `function`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .function import Function
from .grad_mode import enable_grad, state
from .hooks import walk
from .random import fork_rng, get_rng_state, set_rng_state
from .tape import grad
from .tensor import Tensor


def checkpoint(function: Callable, *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               **kwargs: Any) -> Any:  # fmt: skip
    """function(*args, **kwargs), a tensor or a tuple of them, whose intermediate results backward computes anew.

    Gradients reach the arguments that are tensors and all that the function uses besides, as parameters.
    preserve_rng_state: what it draws is drawn alike the second time. use_reentrant: PyTorch's, which has two ways; this
    one serves for both. What the function changes in place, as running averages, it changes twice.
    """
    if not state.enabled:
        return function(*args, **kwargs)
    segment = _Segment(function, args, kwargs, preserve_rng_state)
    own = [x.detach().requires_grad_(x.requires_grad) for x in segment.tensors]
    made = segment.run(own)
    if not any(isinstance(y, Tensor) and y.requires_grad for y in made):
        return tuple(made) if segment.several else made[0]
    segment.outputs = tuple(y.detach() if isinstance(y, Tensor) else y for y in made)
    leaves = _leaves(made, set(own))
    del made, own
    results = _Checkpoint.apply(segment, *segment.tensors, *leaves)
    segment.outputs = ()
    return results if segment.several else results[0]


def checkpoint_sequential(functions: Any, segments: int, input: Tensor, use_reentrant: bool | None = None,
                          preserve_rng_state: bool = True) -> Tensor:  # fmt: skip
    """The functions (or the modules of a Sequential) one after the other, in so many checkpointed segments; not the last."""
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(len(steps) // segments, 1)
    starts = [size * i for i in range(min(segments, len(steps)))]
    for start, stop in zip(starts, [*starts[1:], len(steps)], strict=True):
        part = _chained(steps[start:stop])
        last = stop == len(steps)
        input = part(input) if last else checkpoint(part, input, preserve_rng_state=preserve_rng_state)
    return input


def _chained(steps: list) -> Callable:
    def run(x: Tensor) -> Tensor:
        for step in steps:
            x = step(x)
        return x

    return run


class _Segment:
    """A function with its arguments, the state of the random stream and of autocast in which it runs."""

    outputs: tuple = ()
    several = False

    def __init__(self, function: Callable, args: tuple, kwargs: dict, preserve: bool):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.tensors = [args[i] for i in self.places]
        self.stream, self.autocast = get_rng_state() if preserve else None, state.autocast

    def run(self, tensors: list[Tensor]) -> tuple:
        """The outputs as a tuple."""
        args = list(self.args)
        for i, x in zip(self.places, tensors, strict=True):
            args[i] = x
        with enable_grad():
            y = self.function(*args, **self.kwargs)
        self.several = isinstance(y, tuple)
        return y if isinstance(y, tuple) else (y,)

    def again(self, tensors: list[Tensor]) -> tuple:
        """run() as it was the first time; afterwards the random stream and autocast are as before."""
        before, state.autocast = state.autocast, self.autocast
        try:
            with fork_rng():
                if self.stream is not None:
                    set_rng_state(self.stream)
                return self.run(tensors)
        finally:
            state.autocast = before


class _Checkpoint(Function):
    """Hands out what the segment computed; its gradient computes it again and goes back through that."""

    @staticmethod
    def forward(ctx: Any, segment: _Segment, *tensors: Tensor) -> tuple:
        ctx.segment, ctx.tensors = segment, tensors
        return segment.outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        segment, recording = ctx.segment, state.enabled
        given, leaves = ctx.tensors[: len(segment.places)], ctx.tensors[len(segment.places) :]
        own = [x.view_as(x) if recording and x.requires_grad else x.detach().requires_grad_(x.requires_grad) for x in given]
        made = segment.again(own)
        pairs = [(y, g) for y, g in zip(made, grads, strict=True) if isinstance(y, Tensor) and y.requires_grad]
        wanted = [x for x in (*own, *leaves) if x.requires_grad]
        found = iter(grad([y for y, _ in pairs], wanted, [g for _, g in pairs], True, recording, True))
        return (None, *(next(found) if x.requires_grad else None for x in (*own, *leaves)))


def _leaves(outputs: Iterable, own: set) -> list[Tensor]:
    """The tensors that the outputs' graph starts from, besides the segment's `own`."""
    nodes = walk(y.node for y in outputs if isinstance(y, Tensor))
    found = {edge: None for node in nodes for edge in node.edges if isinstance(edge, Tensor) and edge not in own}
    return list(found)
