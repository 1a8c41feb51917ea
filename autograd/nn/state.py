"""What a module's state_dict holds, how one is loaded, and the hooks around both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..aliasing import write
from ..grad_mode import no_grad
from ..hooks import RemovableHandle, distinct
from ..tensor import Tensor
from .parameter import Parameter, UninitializedBuffer, UninitializedParameter

if TYPE_CHECKING:
    from .module import Module

EXTRA = "_extra_state"


class LoadResult(NamedTuple):
    """The names that load_state_dict(strict=False) could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Stateful:
    """The half of Module that saves and loads, with its hooks. They run for every module at any depth that has some."""

    _state_hooks: dict[str, list]
    newer: tuple[str, ...] = ()  # names that older files and other libraries' lack: they keep their values then

    def state_dict(self: Any, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Parameters and persistent buffers by dotted name: the same memory, detached unless keep_vars.

        A module that defines get_extra_state() adds what it returns as "…_extra_state".
        """
        owners = list(_owners(self, prefix))
        for start, module in owners:
            for hook in module._hooks_of("saving"):
                hook(module, start, keep_vars)
        found: dict[str, Any] = {}
        for start, module in owners:
            found.update((start + name, t if keep_vars else t.detach()) for name, t in own_state(module))
            if _has_extra(module):
                found[start + EXTRA] = module.get_extra_state()
        for start, module in reversed(owners):
            for hook in module._hooks_of("saved"):
                hook(module, found, start, {})
        return found

    @no_grad()
    def load_state_dict(self: Any, state_dict: dict, strict: bool = True, assign: bool = False) -> Any:
        """Copy values in, cast and moved as needed. Returns (missing_keys, unexpected_keys).

        assign: take the given tensors themselves, with their dtype and device, in the place of the module's own.
        RuntimeError that lists missing, unexpected (unless not `strict`) and wrongly shaped entries; nothing is changed
        then, except that hooks for after the loading, which may forgive names, have run.
        """
        return load_state_dict(self, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """What state_dict() holds besides tensors; a class that has such defines this and set_extra_state()."""
        raise RuntimeError(f"[get_extra_state] {type(self).__name__} must define get_extra_state() and set_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Take what get_extra_state() gave."""
        raise RuntimeError(f"[set_extra_state] {type(self).__name__} must define get_extra_state() and set_extra_state()")

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before state_dict() looks at the tensors."""
        return self._add_state_hook("saving", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, {}), which may change state_dict, where the module's keys begin with prefix."""
        return self._add_state_hook("saved", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, {}, strict, missing_keys, unexpected_keys, error_msgs) before loading.

        state_dict is a copy that may be changed, as for renamed keys; the lists are empty, and what is put in counts.
        """
        return self._add_state_hook("loading", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, result) after loading; names taken out of result's lists are not an error."""
        return self._add_state_hook("loaded", hook)

    def _add_state_hook(self, when: str, hook: Callable) -> RemovableHandle:
        hooks = self._state_hooks.setdefault(when, [])
        hook = distinct(hooks, hook)
        hooks.append(hook)
        return RemovableHandle(hooks, hook)

    def _hooks_of(self, when: str) -> tuple:
        return tuple(self._state_hooks.get(when, ()))


def _owners(root: Module, prefix: str = "") -> Iterator[tuple[str, Module]]:
    """(what its keys begin with, module), parents first; one that has two names twice."""
    for path, module in root.named_modules(remove_duplicate=False):
        yield f"{prefix}{path}." if path else prefix, module


def own_state(module: Module) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of a module's parameters and persistent buffers, without those below it."""
    for name, t in (*module._parameters.items(), *module._buffers.items()):
        if t is not None and name not in module._transient:
            yield name, t


def _has_extra(module: Module) -> bool:
    return type(module).get_extra_state is not Stateful.get_extra_state


def load_state_dict(root: Module, state_dict: dict, strict: bool, assign: bool) -> LoadResult:
    """See Stateful.load_state_dict."""
    if not hasattr(state_dict, "keys"):
        raise TypeError(f"[load_state_dict] expected a dict of tensors; got {type(state_dict).__name__}")
    state, owners = dict(state_dict), list(_owners(root))
    missing: list[str] = []
    unexpected: list[str] = []
    wrong: list[str] = []
    for start, module in owners:
        for hook in module._hooks_of("loading"):
            hook(module, state, start, {}, strict, missing, unexpected, wrong)
    own = {start + name: (module, name, t) for start, module in owners for name, t in own_state(module)}
    extra = {start + EXTRA: module for start, module in owners if _has_extra(module)}
    missing += [k for k, (module, name, _) in own.items() if k not in state and name not in module.newer]
    missing += [k for k in extra if k not in state]
    unexpected += [k for k in state if k not in own and k not in extra]
    matched = [(k, *entry, state[k]) for k, entry in own.items() if k in state]
    wrong += [note for k, _, _, t, value in matched if (note := _misfit(k, t, value))]
    result, forgiving = LoadResult(missing, unexpected), any(m._hooks_of("loaded") for _, m in owners)
    if wrong or (strict and not forgiving and (missing or unexpected)):
        raise RuntimeError(_report(type(root).__name__, missing * strict, unexpected * strict, wrong))
    # Everything that can fail happens before the first write.
    if assign:
        made = {t: _taken(key, t, value) for key, _, _, t, value in matched}
        for module, name, t in own.values():  # what has several names stays one thing
            if t in made:
                setattr(module, name, made[t])
    else:
        ready = [(t, value.detach().to(t.device, t.dtype)) for _, _, _, t, value in matched]
        for t, value in ready:
            _write(t, value)
    for key, module in extra.items():
        if key in state:
            module.set_extra_state(state[key])
    for _, module in reversed(owners):
        for hook in module._hooks_of("loaded"):
            hook(module, result)
    if strict and (missing or unexpected):
        raise RuntimeError(_report(type(root).__name__, missing, unexpected, [], "what matches was loaded"))
    return result


def _taken(key: str, own: Tensor, value: Tensor) -> Tensor:
    """`value` in the place of `own`, as what that is: a parameter keeps its requires_grad."""
    if not isinstance(own, Parameter) or isinstance(own, UninitializedBuffer):
        return value.detach() if isinstance(value, Parameter) else value
    if not value.dtype.is_floating_point:
        raise TypeError(f"[load_state_dict] {key} is a parameter, so what is assigned must be floating point; got {value.dtype}")
    if isinstance(value, Parameter):
        return value.requires_grad_(own.requires_grad)  # type: ignore[return-value]
    return Parameter(value.detach(), own.requires_grad)


def _write(t: Tensor, value: Tensor) -> None:
    if isinstance(t, UninitializedParameter) and t.shape != value.shape:
        t.materialize(value.shape)
    write(t, value.array, "load_state_dict")


def _misfit(name: str, t: Tensor, value: Any) -> str | None:
    if not isinstance(value, Tensor):
        return f"{name}: expected a Tensor, got {type(value).__name__}"
    fits = value.shape == t.shape
    if not fits and isinstance(t, UninitializedParameter):  # any size where it has 0
        fits = value.ndim == t.ndim and all(n in (0, m) for n, m in zip(t.shape, value.shape, strict=True))
    return None if fits else f"{name}: expected shape {t.shape}, got {value.shape}"


def _report(name: str, missing: list, unexpected: list, wrong: list, done: str = "nothing was loaded") -> str:
    parts = (("missing", missing), ("unexpected", unexpected), ("wrong", wrong))
    found = "; ".join(f"{what}: {', '.join(map(str, names))}" for what, names in parts if names)
    hint = "" if wrong else " strict=False loads what matches."
    return f"[load_state_dict] the entries must be those of {name}; {done}. {found}.{hint}"
