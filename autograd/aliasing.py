"""Tensors that share memory: which views show a base, and what a change in place does to all of them."""

from __future__ import annotations

import weakref
from typing import Any

from numpy import ndarray

from .grad_mode import state
from .hooks import Keep
from .tensor import Tensor


class Views:
    """What in-place operations must know of a storage's views. On a base: `refs` to its views. On a view: `base`,
    and `steps`, the (op, attrs) that lead from the base to it."""

    __slots__ = ("base", "refs", "steps")

    def __init__(self, base: Tensor | None = None, steps: tuple = ()):
        self.base, self.steps = base, steps
        self.refs: list[weakref.ref] = []


UNTRACKED = Views()  # of every view made under no_grad
OF_RECORDED = Views()  # of those among them whose base requires grad


def track_view(view: Tensor, x: Tensor, op: Any, attrs: dict) -> None:
    """Note that `view` = op(x, **attrs) shows x's memory, if it does."""
    data, source = view.array, x.array
    if data.__class__ is ndarray:
        shared = data is source or data.base is source or (source.base is not None and data.base is source.base)
    else:
        shared = data.storage is source.storage
    if not shared:
        return
    view.version = x.version
    if not state.enabled or x.views is UNTRACKED or x.views is OF_RECORDED:
        view.views = OF_RECORDED if x._requires_grad or x.views is OF_RECORDED else UNTRACKED
        return
    if x.views is None:
        x.views = Views()
    base = x if x.views.base is None else x.views.base
    view.views = Views(base, (*x.views.steps, (op, attrs)))
    refs = base.views.refs  # type: ignore[union-attr]
    if len(refs) > 16 and len(refs) & (len(refs) - 1) == 0:  # at each power of two: forget the dead ones
        refs[:] = [r for r in refs if r() is not None]
    refs.append(weakref.ref(view))


def replay(x: Tensor, steps: tuple) -> Tensor:
    """Lead from a base to a view once more."""
    from .op import apply

    for op, attrs in steps:
        x = apply(op, x, **attrs)
    return x


def assign(x: Tensor, value: Tensor, name: str, fresh: bool = False) -> Tensor:
    """Make x hold `value` (already of its shape and dtype), history included: what every in-place operation ends in.

    fresh: nobody else has the tensor `value`, so that its memory may become x's.
    RuntimeError for a leaf that requires grad while recording, and for an expanded tensor; x is unchanged then.
    """
    recording = state.enabled and (value._requires_grad or x._requires_grad)
    if (recording and x.views is UNTRACKED) or (state.enabled and x.views is OF_RECORDED):
        raise RuntimeError(
            f"[{name}] a view made under no_grad cannot be changed in place while recording: its base would not know. "
            "Make the view outside, or clone() it."
        )
    base = x.views.base if x.views is not None else None
    if recording and (_is_fixed(x) or (base is not None and _is_fixed(base))):
        raise RuntimeError(
            f"[{name}] a leaf that requires grad cannot be changed in place while recording. "
            "Use `with ag.no_grad():`, or an out-of-place operation."
        )
    write(x, value.array, name, fresh and not recording)
    if not recording:
        return x
    from .ops.movement import Reshape, set_view

    if base is None:
        if value._requires_grad and not fresh:  # a node of its own: hooks on x are not hooks on a tensor it was copied from
            value = replay(value, ((Reshape, {"shape": value.shape}),))
        _take_history(x, value)
        root = x
    else:
        written = set_view(base, value, x.views.steps)  # type: ignore[union-attr]
        _take_history(base, written)
        root = base
    for ref in root.views.refs if root.views is not None else ():
        v = ref()
        if v is not None:
            again = replay(root, v.views.steps)
            _take_history(v, again)
    return x


def _take_history(t: Tensor, value: Tensor) -> None:
    """t came out of what `value` did. retain_grad() is about t, so it goes along; other hooks stay with the old value."""
    old, t.node, t._requires_grad = t.node, value.node, value._requires_grad
    keep = [h for h in old.hooks if h.__class__ is Keep and h.tensor() is t] if old is not None and old.hooks else ()
    if keep:
        old.hooks.remove(keep[0])  # type: ignore[union-attr]
        if t.node is not None:
            t.retain_grad()


def _is_fixed(t: Tensor) -> bool:
    return t._requires_grad and t.node is None


def write(x: Tensor, data: Any, name: str, fresh: bool = False) -> None:
    """Copy data of x's shape into x's memory and count the change.

    On the GPU, where a copy is a dispatch, x takes a fresh value over instead, if nobody else sees its old memory.
    """
    strides = x.array.strides
    if 0 in strides and x.array.size and any(s == 0 and n > 1 for s, n in zip(strides, x.array.shape, strict=True)):
        raise RuntimeError(f"[{name}] elements of an expanded tensor share memory; clone() it before changing it")
    if x.array.__class__ is ndarray:
        if not x.array.flags.writeable:
            raise RuntimeError(f"[{name}] the memory is read-only; clone() the tensor before changing it")
        x.array[...] = data
    elif fresh and data.replaces(x.array):
        x.array = data
    else:
        x.array.gpu.copy_into(x.array, data)
    x.version[0] += 1
