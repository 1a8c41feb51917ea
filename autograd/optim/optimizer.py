"""Optimizer: groups of parameters, their options, and the state that goes with each parameter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np

from .. import dtypes, grad_mode
from ..grad_mode import enable_grad, no_grad
from ..hooks import RemovableHandle, distinct
from ..interrupts import held
from ..tensor import Tensor

_SMALL = 1 << 12  # elements up to which parameters are joined: below, NumPy's calls cost more than the arithmetic
_BLOCK = 1 << 16  # elements updated at a time: parameter, gradient and state then stay in the cache between passes


# What a group may hold besides its options: notes by schedules and users.
_NOTES = {"initial_lr", "name", "param_names", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"}
# What PyTorch's state_dicts say about how its steps are computed; it changes no numbers.
_PYTORCH_ONLY = ("foreach", "fused", "capturable", "differentiable")
_NO_HOW: dict = {}


class Optimizer:
    """Base of all optimizers. A subclass names its options with their defaults and writes update() for one parameter.

    params: tensors, (name, tensor) pairs as of named_parameters(), or dicts {"params": [...], option: value} that form
    groups with options of their own. how: PyTorch's foreach and fused, which say how a step is computed and change no
    number (here many parameters are always computed together), and capturable and differentiable, which must be False.
    ValueError for no parameters, a parameter given twice, a non-leaf, an unknown option; TypeError for non-tensors.
    """

    steps_skipped = 0  # by a GradScaler
    _pre_hooks: Any = ()
    _post_hooks: Any = ()
    plain = ("step",)  # what of a parameter's state is a number; PyTorch keeps it as a tensor

    def __init__(self, params: Any, defaults: dict, how: dict = _NO_HOW):
        _check_how(type(self).__name__, how)
        self.defaults = defaults
        self.param_groups: list[dict] = []
        self.state: dict[Tensor, dict] = defaultdict(dict)
        self.steps_taken = 0
        # What a bigdl.Module calls parameters() is (weights, gradients).
        groups = [params] if isinstance(params, dict) else getattr(params, "weights", params)
        if isinstance(groups, Tensor | set):
            raise TypeError(f"[{type(self).__name__}] parameters come in a list or iterator; got {type(params).__name__}")
        groups = list(groups)
        if not groups:
            raise ValueError(f"[{type(self).__name__}] got no parameters")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict) -> None:
        """Train more parameters, with options of their own: {"params": [...], "lr": 0.1}."""
        name, given = type(self).__name__, dict(param_group)
        params = given.pop("params", ())
        if isinstance(params, set | frozenset):
            raise TypeError(f"[{name}] parameters come in an order, which state_dict() counts by; got a set. Make it a list")
        empty = isinstance(params, list) and not params  # as written; an iterator may have been used up by mistake
        params = [params] if isinstance(params, Tensor) else list(params or ())
        if params and all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in params):
            given["param_names"] = [label for label, _ in params]
            params = [p for _, p in params]
        unknown = set(given) - set(self.defaults) - _NOTES
        if unknown:
            raise ValueError(f"[{name}] unknown options {sorted(unknown)} in a group; there are {sorted(self.defaults)}")
        if not params and not empty:
            raise ValueError(f"[{name}] got a group without parameters: none, or an iterator that is used up")
        seen = {p for g in self.param_groups for p in g["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"[{name}] parameters are tensors; got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"[{name}] only leaves can be trained; got the result of {p.grad_fn}. detach() it first")
            if p in seen:
                raise ValueError(f"[{name}] a parameter of shape {p.shape} appears twice")
            seen.add(p)
        group = {"params": params, **self.defaults, **given}
        self.check(group)
        self.param_groups.append(group)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        for name in ("lr", "weight_decay"):
            if name in group:
                require(self, group, name, 0)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients, or fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else p.grad.detach().zeros_like()

    def step(self, closure: Callable | None = None) -> Any:
        """Update every parameter that has a gradient. closure() computes the loss anew first; its value is returned."""
        loss = None
        closure = self._before_step(closure)
        if closure is not None:
            with enable_grad():
                loss = closure()
        with held, no_grad():  # Ctrl-C leaves all parameters and their state as before the step, or as after it
            for group in self.param_groups:
                ready = [p for p in group["params"] if p.grad is not None]
                self._follow(ready)
                rows = [(p, self._gradient(p, group), self.state.setdefault(p, {})) for p in ready]
                self.update_group(rows, with_plain_rate(group))
            self.steps_taken += 1
        self._after_step(closure)
        return loss

    def _before_step(self, closure: Callable | None) -> Callable | None:
        """The closure, or what the hooks put in its place."""
        for hook in tuple(self._pre_hooks):
            changed = hook(self, (closure,), {})
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"[{type(self).__name__}] a hook before a step gives None or (args, kwargs), not {changed!r}")
            args, kwargs = changed
            closure = kwargs.get("closure", args[0] if args else None)
        return closure

    def _after_step(self, closure: Callable | None) -> None:
        for hook in tuple(self._post_hooks):
            hook(self, (closure,), {})

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step, args being (closure,); it may return new (args, kwargs)."""
        self._pre_hooks = self._pre_hooks or []
        hook = distinct(self._pre_hooks, hook)
        self._pre_hooks.append(hook)
        return RemovableHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        self._post_hooks = self._post_hooks or []
        hook = distinct(self._post_hooks, hook)
        self._post_hooks.append(hook)
        return RemovableHandle(self._post_hooks, hook)

    def _follow(self, ready: list[Tensor]) -> None:
        """After module.to(device) the state goes where the parameters went. It looks at the first one: steps are short."""
        for value in self.state.get(ready[0], {}).values() if ready else ():
            if isinstance(value, Tensor) and value.device != ready[0].device:
                self.state = defaultdict(dict, {p: self._loaded(p, entry) for p, entry in self.state.items()})
                return

    def update_group(self, ready: list[tuple[Tensor, Tensor, dict]], group: dict) -> None:
        """Change the parameters of a group: (parameter, gradient, state) of each that has a gradient."""
        for p, g, state in ready:
            self.update(p, g, state, group)

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change one parameter, given its gradient."""
        raise NotImplementedError(f"[{type(self).__name__}] has no update()")

    def _gradient(self, p: Tensor, group: dict) -> Tensor:
        g: Any = p.grad
        if g.shape != p.shape or g.device != p.device:
            raise ValueError(
                f"[{type(self).__name__}] a gradient has its parameter's shape and device; got {g.shape} on {g.device} "
                f"for {p.shape} on {p.device}"
            )
        return -g if group.get("maximize") else g

    # -- saving -------------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """{"state": {parameter number: state}, "param_groups": [options with parameter numbers]}: plain data."""
        number = {p: i for i, p in enumerate(self._all())}
        groups = [{**g, "params": [number[p] for p in g["params"]]} for g in self.param_groups]
        return {"state": {number[p]: dict(s) for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken: the same steps follow, to the bit. Parameters are matched by their place in
        their group; by name where both sides have the same names, in whatever order.

        ValueError when groups, parameters or shapes differ; nothing is changed then.
        """
        name, groups = type(self).__name__, state_dict["param_groups"]
        sizes, own = ([len(g["params"]) for g in gs] for gs in (groups, self.param_groups))
        if sizes != own:
            raise ValueError(f"[{name}.load_state_dict] groups must have {own} parameters; got {sizes}")
        groups = [{k: v for k, v in g.items() if k not in _PYTORCH_ONLY or (k == "differentiable" and v)} for g in groups]
        unknown = {k for g in groups for k in g} - {"params", *_NOTES, *self.defaults}
        if unknown:
            raise ValueError(f"[{name}.load_state_dict] unknown options {sorted(unknown)}; is this another optimizer's state?")
        groups = [_in_order(saved, own.get("param_names")) for saved, own in zip(groups, self.param_groups, strict=True)]
        parameter = dict(zip((i for g in groups for i in g["params"]), self._all(), strict=True))
        if not set(state_dict["state"]) <= set(parameter):
            raise ValueError(f"[{name}.load_state_dict] state for parameters that are in no group")
        loaded = {parameter[i]: self._loaded(parameter[i], entry) for i, entry in state_dict["state"].items()}
        self.state = defaultdict(dict, loaded)
        for group, saved in zip(self.param_groups, groups, strict=True):
            group.update({k: v for k, v in saved.items() if k != "params"})

    def _loaded(self, p: Tensor, entry: dict) -> dict:
        """One parameter's saved state, copied to where the parameter is."""
        name, found = f"[{type(self).__name__}.load_state_dict]", {}
        for key, value in entry.items():
            if isinstance(value, Tensor) and key in self.plain:
                value = value.item()
            if key == "step":
                value = int(value)
            if isinstance(value, Tensor):
                wanted = self.slot_shape(p, key)
                if value.shape != wanted:
                    raise ValueError(f"{name} {key} must have shape {wanted}; got {value.shape}")
                value = value.detach().to(p.device, state_dtype(p)).clone()
            found[key] = value
        return found

    def slot_shape(self, p: Tensor, key: str) -> tuple:
        """The shape of the tensor that is kept for p under this name."""
        return p.shape

    def _all(self) -> Iterator[Tensor]:
        return (p for g in self.param_groups for p in g["params"])

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _check_how(name: str, how: dict) -> None:
    """See Optimizer; TypeError for a word that is none of PyTorch's."""
    for word, value in how.items():
        if word not in _PYTORCH_ONLY:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument {word!r}")
        if word in ("capturable", "differentiable") and value:
            raise ValueError(f"[{name}] {word} must be False; got {value!r}")


def _in_order(saved: dict, names: list[str] | None) -> dict:
    """A saved group with its parameters in the order of these names, where it has the same ones: then order says nothing."""
    given = saved.get("param_names")
    if not names or not given or given == names or sorted(given) != sorted(names) or len(set(names)) < len(names):
        return saved
    number = dict(zip(given, saved["params"], strict=True))
    return {**saved, "params": [number[name] for name in names], "param_names": list(names)}


def with_plain_rate(group: dict) -> dict:
    """The group, its rate a Python number where the user or a schedule made it a Tensor or one of NumPy's numbers."""
    rate = group.get("lr", 0.0)
    return group if isinstance(rate, int | float) else {**group, "lr": float(rate)}


def require(optimizer: Optimizer, group: dict, name: str, low: float, below: float = float("inf")) -> None:
    """ValueError unless low <= group[name] < below; TypeError when it is no number."""
    values = group[name] if isinstance(group[name], tuple | list) else (group[name],)
    for value in values:
        value = value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
        if not isinstance(value, Real):
            raise TypeError(f"[{type(optimizer).__name__}] {name} is a number; got {type(value).__name__}")
        if not low <= float(value) < below:
            raise ValueError(f"[{type(optimizer).__name__}] {name} must be in [{low}, {below}); got {group[name]}")


def state_dtype(p: Tensor) -> dtypes.DType:
    """The dtype of p's state: float32 for 16-bit types, in which small moments vanish."""
    return dtypes.float32 if p.dtype in dtypes.SHORT else p.dtype


def new_state(p: Tensor) -> Tensor:
    """Zeros to keep beside p."""
    return p.detach().zeros_like(dtype=state_dtype(p))


def on_host(p: Tensor) -> bool:
    """Whether p is a NumPy array."""
    return p.array.__class__ is np.ndarray


def host_update(function: Callable, p: Tensor, g: Tensor, *slots: Tensor) -> None:
    """function(p, g, *slots, scratch) on blocks of the arrays, in place; 16-bit types go through float32."""
    arrays = [p.array, g.array, *(s.array for s in slots)]
    wide = state_dtype(p).numpy
    for i in (0, 1):
        if arrays[i].dtype != wide:
            arrays[i] = dtypes.converted(arrays[i], wide)
    if all(a.flags.c_contiguous for a in arrays):
        flat = [a.reshape(-1) for a in arrays]
        scratch = np.empty(min(_BLOCK, flat[0].size), wide)
        for start in range(0, flat[0].size, _BLOCK):
            block = [a[start : start + _BLOCK] for a in flat]
            grad_mode.state.run(function, *block, scratch[: block[0].size])
    else:
        grad_mode.state.run(function, *arrays, np.empty(p.shape, wide))
    if arrays[0] is not p.array:
        p.array[...] = dtypes.converted(arrays[0], p.array.dtype, copy=False)
    p.version[0] += 1


def host_updates(function: Callable, rows: list[tuple[Tensor, ...]]) -> None:
    """host_update(function, *row) for rows (p, g, *state): small parameters joined, so that a hundred cost as one."""
    loose: dict[np.dtype, list[tuple[Tensor, ...]]] = {}
    for row in rows:
        kind = row[0].array.dtype
        if row[0].array.size <= _SMALL and all(t.array.dtype == kind and t.array.flags.c_contiguous for t in row):
            loose.setdefault(kind, []).append(row)
        else:
            host_update(function, *row)
    for kind, small in loose.items():
        if len(small) == 1 or kind not in (np.float32, np.float64):
            for row in small:
                host_update(function, *row)
            continue
        size = 0
        start = 0
        for i, row in enumerate(small):
            size += row[0].array.size
            if size >= _BLOCK or i + 1 == len(small):
                _update_joined(function, small[start : i + 1])
                start, size = i + 1, 0


def _update_joined(function: Callable, rows: list[tuple[Tensor, ...]]) -> None:
    """function on the rows' arrays, each column as one vector; then the parts of all but the gradients go back."""
    columns = [np.concatenate([t.array.reshape(-1) for t in column]) for column in zip(*rows, strict=True)]
    grad_mode.state.run(function, *columns, np.empty_like(columns[0]))
    for j, column in enumerate(columns):
        if j == 1:
            continue
        start = 0
        for row in rows:
            target = row[j].array
            stop = start + target.size
            target.reshape(-1)[:] = column[start:stop]
            start = stop
    for row in rows:
        row[0].version[0] += 1
