"""What a module's state_dict holds, and how one is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..aliasing import write
from ..tensor import Tensor
from .parameter import UninitializedParameter

if TYPE_CHECKING:
    from .module import Module


class LoadResult(NamedTuple):
    """The names that load_state_dict(strict=False) could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def named_state(module: Module) -> Iterator[tuple[str, Tensor]]:
    """(dotted name, tensor) of parameters and persistent buffers, tied ones under each of their names."""
    for path, owner in module.named_modules(remove_duplicate=False):
        entries = [*owner._parameters.items(), *((k, b) for k, b in owner._buffers.items() if k not in owner._transient)]
        for name, t in entries:
            if t is not None:
                yield (f"{path}.{name}" if path else name), t


def load_state_dict(module: Module, state_dict: dict, strict: bool) -> LoadResult:
    """See Module.load_state_dict."""
    if not hasattr(state_dict, "keys"):
        raise TypeError(f"[load_state_dict] expected a dict of tensors; got {type(state_dict).__name__}")
    own = dict(named_state(module))
    missing = [k for k in own if k not in state_dict]
    unexpected = [k for k in state_dict if k not in own]
    matched = [(k, own[k], state_dict[k]) for k in own if k in state_dict]
    wrong = [note for k, t, value in matched if (note := _misfit(k, t, value))]
    if wrong or (strict and (missing or unexpected)):
        raise RuntimeError(_report(type(module).__name__, missing * strict, unexpected * strict, wrong))
    # Everything that can fail happens before the first write.
    ready = [(t, value.detach().to(t.device, t.dtype)) for _, t, value in matched]
    for t, value in ready:
        if isinstance(t, UninitializedParameter) and t.shape != value.shape:
            t.materialize(value.shape)
        write(t, value.array, "load_state_dict")
    return LoadResult(missing, unexpected)


def _misfit(name: str, t: Tensor, value: Any) -> str | None:
    if not isinstance(value, Tensor):
        return f"{name}: expected a Tensor, got {type(value).__name__}"
    fits = value.shape == t.shape
    if not fits and isinstance(t, UninitializedParameter):  # any size where it has 0
        fits = value.ndim == t.ndim and all(n in (0, m) for n, m in zip(t.shape, value.shape, strict=True))
    return None if fits else f"{name}: expected shape {t.shape}, got {value.shape}"


def _report(name: str, missing: list, unexpected: list, wrong: list) -> str:
    parts = (("missing", missing), ("unexpected", unexpected), ("wrong", wrong))
    found = "; ".join(f"{what}: {', '.join(map(str, names))}" for what, names in parts if names)
    hint = "" if wrong else " strict=False loads what matches."
    return f"[load_state_dict] the entries must be those of {name}; nothing was loaded. {found}.{hint}"
