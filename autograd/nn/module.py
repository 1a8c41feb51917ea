"""Module: parameters, buffers and submodules, found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..hooks import RemovableHandle, distinct
from ..tensor import Tensor
from .backward_hooks import GatedCall
from .moving import Movable
from .parameter import Buffer, Parameter
from .state import Stateful


class Module(Stateful, Movable):
    """Base of all layers: assign Parameters and Modules as attributes, write forward(), call the object.

    Attributes that are Parameters, Modules or registered buffers are kept in tables of their own, so that
    parameters(), state_dict() and to() find them at any depth.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        put = super().__setattr__
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_modules", {})
        put("_transient", set())  # names of buffers that state_dict leaves out
        put("_pre_hooks", [])
        put("_hooks", [])
        put("_backward_hooks", [])
        put("_backward_pre_hooks", [])
        put("_state_hooks", {})

    # -- calling ------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module does; every subclass writes its own."""
        raise NotImplementedError(f"[Module] {type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._hooks or self._pre_hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in tuple(self._pre_hooks):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is not None and with_kwargs:
                args, kwargs = changed
            elif changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        gate = None
        if self._backward_hooks or self._backward_pre_hooks:
            gate = GatedCall(self, self._backward_hooks, self._backward_pre_hooks)
            args = gate.enter(args)
        output = self.forward(*args, **kwargs)
        for hook, with_kwargs in tuple(self._hooks):
            changed = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
            output = output if changed is None else changed
        return output if gate is None else gate.leave(output)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call hook(module, args) before forward; what it returns replaces args. prepend: before the hooks there are.

        with_kwargs: hook(module, args, kwargs), which returns None or (args, kwargs).
        """
        return _add_hook(self._pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call hook(module, args, output) after forward; what it returns replaces output. prepend: before the hooks there are.

        with_kwargs: hook(module, args, kwargs, output).
        """
        return _add_hook(self._hooks, (hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when the gradients of forward's positional inputs are known.

        Both are tuples, None for what has no gradient; what the hook returns replaces grad_input.
        """
        return _add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_output) before the gradient goes through; what it returns replaces grad_output."""
        return _add_hook(self._backward_pre_hooks, hook, prepend)

    # -- attributes ---------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table, ())
            if name in found:
                return found[name]
        if hasattr(type(self), name):  # a property failed: its own error says what is missing
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if "_modules" not in tables:
            if isinstance(value, Parameter | Module | Buffer):
                raise AttributeError(f"[Module] call super().__init__() before assigning {name!r} in {type(self).__name__}")
            super().__setattr__(name, value)
            return
        if isinstance(value, Buffer):
            self.__dict__.pop(name, None)
            self.register_buffer(name, value.tensor, value.persistent)
            return
        kind = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else None
        if kind is None:
            for table, what in (("_parameters", "a Parameter"), ("_buffers", "a Tensor"), ("_modules", "a Module")):
                if name in tables[table]:
                    if value is not None and not (table == "_buffers" and isinstance(value, Tensor)):
                        raise TypeError(f"[Module] {name!r} must stay {what} or None; got {type(value).__name__}")
                    tables[table][name] = value
                    return
            super().__setattr__(name, value)
            return
        declared = getattr(type(self), name, self)
        if hasattr(declared, "__set__"):  # a property, whose setter knows where it goes
            super().__setattr__(name, value)
            return
        if declared is not self:  # reading would go on giving that
            raise KeyError(f"[Module] {type(self).__name__} has a class attribute {name!r}: take another name, or remove it")
        _free_name(self, name, kind)
        tables[kind][name] = value

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._transient.discard(name)
                return
        super().__delattr__(name)

    def __getstate__(self) -> dict:
        """What copies and pickles hold: of a weight that is computed before every forward the value, without its history."""
        state = dict(self.__dict__)
        for hook, _ in self._pre_hooks:
            name = getattr(hook, "computes", "")
            if isinstance(state.get(name), Tensor):
                state[name] = state[name].detach()
        return state

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Enter a parameter (None: a place that stays empty) under `name`."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"[register_parameter] expected a Parameter or None for {name!r}; got {type(param).__name__}")
        _check_name(self, name, self._parameters, "register_parameter")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Enter a tensor that is state but not trained; state_dict() leaves it out unless `persistent`."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"[register_buffer] expected a Tensor or None for {name!r}; got {type(tensor).__name__}")
        _check_name(self, name, self._buffers, "register_buffer")
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Enter a submodule under `name`, which need not be an identifier."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"[register_module] expected a Module or None for {name!r}; got {type(module).__name__}")
        _check_name(self, name, self._modules, "register_module")
        self._modules[name] = module

    add_module = register_module

    # -- walking ------------------------------------------------------------------------------------

    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:  # fmt: skip
        """(name, module) for this module and all below it, parents first; one that appears twice is given once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) for the modules directly below this one."""
        seen: set = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return (m for _, m in self.named_children())

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:  # fmt: skip
        """(name, parameter); a parameter that is used twice is given once, under its first name."""
        return _named_entries(self, "_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once: what an optimizer takes."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:  # fmt: skip
        """(name, buffer), each once."""
        return _named_entries(self, "_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted name; "" is this one. AttributeError when there is none."""
        module: Any = self
        for part in target.split(".") if target else ():
            module = module._modules.get(part)
            if module is None:
                raise AttributeError(f"[get_submodule] {type(self).__name__} has no module {target!r}: {part!r} is missing")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted name. AttributeError when there is none."""
        return self._at(target, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted name. AttributeError when there is none."""
        return self._at(target, "buffer")

    def _at(self, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), f"_{kind}s").get(name)
        if found is None:
            raise AttributeError(f"[get_{kind}] {type(self).__name__} has no {kind} {target!r}")
        return found

    def set_submodule(self, target: str, module: Module) -> None:
        """Put a module in the place of the one at a dotted name. AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        self.get_submodule(target)
        self.get_submodule(path)._modules[name] = module

    # -- state --------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Set training mode, at any depth, by each module's own train(): what Dropout and its like look at."""
        if not isinstance(mode, bool):
            raise TypeError(f"[train] the mode is True or False; got {type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """train(False)."""
        return self.train(False)

    def apply(self, fn: Callable) -> Module:
        """Call fn(module) on everything below, then on this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set requires_grad of all parameters."""
        for _, p in self.named_parameters():
            p.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for _, p in self.named_parameters():
            if p.grad is not None:
                p.grad = None if set_to_none else p.grad.zeros_like()

    # -- showing ------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands between the parentheses of repr(): the constructor's arguments."""
        return ""

    def __repr__(self) -> str:
        extra, name = self.extra_repr(), type(self).__name__
        if not self._modules and "\n" not in extra:
            return f"{name}({extra})"
        rows = [*extra.split("\n")] if extra else []
        rows += [f"({key}): " + repr(m).replace("\n", "\n  ") for key, m in self._modules.items()]
        return f"{name}(\n  " + "\n  ".join(rows) + "\n)"


def _add_hook(hooks: list, entry: Any, first: bool) -> RemovableHandle:
    entry = entry if isinstance(entry, tuple) else distinct(hooks, entry)
    hooks.insert(0 if first else len(hooks), entry)
    return RemovableHandle(hooks, entry)


def _check_name(module: Module, name: str, table: dict, where: str) -> None:
    if not isinstance(name, str) or not name or "." in name:
        raise KeyError(f"[{where}] a name is a non-empty string without dots; got {name!r}")
    if hasattr(module, name) and name not in table:
        raise KeyError(f"[{where}] {type(module).__name__} already has an attribute {name!r}")


def _free_name(module: Module, name: str, kept: str) -> None:
    """Take `name` out of every other table: an attribute is one thing at a time."""
    module.__dict__.pop(name, None)
    for table in ("_parameters", "_buffers", "_modules"):
        if table != kept:
            module.__dict__[table].pop(name, None)


def _named_entries(module: Module, table: str, prefix: str, recurse: bool, once: bool) -> Iterator:
    seen: set = set()
    pairs = module.named_modules(prefix=prefix, remove_duplicate=once) if recurse else iter([(prefix, module)])
    for path, owner in pairs:
        for name, t in getattr(owner, table).items():
            if t is None or t in seen:
                continue
            if once:
                seen.add(t)
            yield (f"{path}.{name}" if path else name), t
