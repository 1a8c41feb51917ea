"""BigDL's module protocol, around any nn.Module.

A bigdl.Module is an nn.Module and a BigDL module at once. Called, m(x), it is on the caller's tape like any layer and
keeps nothing. m.forward(x) does the same and keeps what m.backward(x, dy) needs. Where the two systems use one name:

    parameters()  is BigDL's (weights, gradients); optimizers and clip_grad_norm_ take it as it is.
                  named_parameters() is nn.Module's, and so is all the rest: state_dict, to, apply, hooks, …
    training      is nn.Module's flag and, called, BigDL's method: `if m.training:` and m.training() both work.

Source: BigDL's AbstractModule (0.1 to 2.x). Not taken over: engines of its own kind, RDDs, scaleW/scaleB, freezing
(requires_grad does it). BigDL's camelCase spellings (updateOutput, …) find the methods too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter_ns
from typing import Any, NamedTuple, Self

from .. import nn
from ..create import as_tensor, zeros_like
from ..grad_mode import no_grad, state
from ..tape import backward as backpropagate
from ..tensor import Tensor
from .base import Base
from .flat import flat_vectors


class Parameters(NamedTuple):
    """Parallel lists: the tensors that are trained, and their gradients."""

    weights: list[Tensor]
    gradients: list[Tensor]


class Forward(NamedTuple):
    """What a forward() leaves for backward(): its inputs with their versions, and where their gradients arrive."""

    inputs: list[Tensor]
    versions: list[int]
    insides: list[Tensor]
    recorded: bool


def leaves(value: Any) -> list[Tensor]:
    """The tensors of a table: a Tensor, or tuples and lists of tables. TypeError for anything else."""
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, tuple | list):
        raise TypeError(f"[bigdl] a module takes a Tensor or a table (a tuple of them); got {type(value).__name__}")
    return [t for entry in value for t in leaves(entry)]


def like(value: Any, tensors: Iterator[Tensor]) -> Any:
    """A table of the same form with other tensors."""
    return next(tensors) if isinstance(value, Tensor) else type(value)(like(entry, tensors) for entry in value)


def _inside(x: Tensor) -> Tensor:
    """x as the module sees it: its gradient is found here, and goes on to what x was made of, if it was."""
    if not x.is_floating_point():
        return x
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


class Module(Base):
    """An nn.Module with BigDL's protocol: bigdl.Module(nn.Linear(3, 4)) gives it to any module.

    A table (several inputs or outputs) is a tuple; a wrapped module gets its entries as arguments. Subclasses write
    compute(input) instead of forward().
    """

    output: Any = None
    grad_input: Any = None
    _last: Forward | None = None
    _by_call = False

    def __init__(self, module: nn.Module | None = None):
        super().__init__(type(self if module is None else module).__name__)
        if module is not None:
            if not isinstance(module, nn.Module):
                raise TypeError(f"[bigdl.Module] wraps an nn.Module; got {type(module).__name__}")
            self.register_module("module", module)

    def compute(self, input: Any) -> Any:
        """The output, in tensor operations: what a subclass writes."""
        wrapped = self._modules.get("module")
        if wrapped is None:
            raise NotImplementedError(f"[bigdl.Module] {type(self).__name__} has no compute()")
        return wrapped(*input) if isinstance(input, tuple) else wrapped(input)

    # -- computing ----------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """The output on the caller's tape; nothing is kept. Several arguments are a table."""
        started = perf_counter_ns()
        try:
            if not (self._hooks or self._pre_hooks or self._backward_hooks or self._backward_pre_hooks or options):
                return self.compute(inputs[0] if len(inputs) == 1 else inputs)
            self.__dict__["_by_call"] = True  # super() calls forward()
            try:
                return super().__call__(*inputs, **options)
            finally:
                self.__dict__["_by_call"] = False
        finally:
            self._times[0] += perf_counter_ns() - started

    def forward(self, *inputs: Any) -> Any:
        """update_output(input), which is on the tape too; several arguments are a table."""
        input = inputs[0] if len(inputs) == 1 else inputs
        return self.compute(input) if self._by_call else self.update_output(input)

    def update_output(self, input: Any) -> Any:
        """The output, kept in `output` with what backward(input, …) needs, until the next forward or clear_state()."""
        self._forget()
        inputs = leaves(input)
        insides = [_inside(t) for t in inputs]
        found = self(like(input, iter(insides)))
        last = Forward(inputs, [t.version[0] for t in inputs], insides, state.enabled)
        self.__dict__.update(output=found, _last=last)
        return found

    def backward(self, input: Any, grad_output: Any) -> Any:
        """update_grad_input and acc_grad_parameters in one pass; returns the gradient of the input.

        RuntimeError without a forward() of the same input before it. Any number of times after one forward.
        """
        return self._send_back("backward", input, grad_output, True, True)

    def update_grad_input(self, input: Any, grad_output: Any) -> Any:
        """The gradient of the input, kept in `grad_input`; zeros where there is none. Parameters' gradients stay."""
        return self._send_back("update_grad_input", input, grad_output, True, False)

    def acc_grad_parameters(self, input: Any, grad_output: Any) -> None:
        """Add the parameters' gradients to those that are there."""
        self._send_back("acc_grad_parameters", input, grad_output, False, True)

    def _send_back(self, op: str, input: Any, grad_output: Any, to_input: bool, to_parameters: bool) -> Any:
        started, last = perf_counter_ns(), self._check_last(op, input)
        ys, dys = leaves(self.output), leaves(grad_output)
        if len(ys) != len(dys):
            raise ValueError(f"[{op}] one gradient for each of {len(ys)} outputs; got {len(dys)}")
        pairs = [(y, dy) for y, dy in zip(ys, dys) if y.requires_grad]
        targets = [t for t in last.insides if to_input and t.requires_grad]
        targets += [p for _, p in self.named_parameters() if to_parameters and p.requires_grad]
        if pairs and targets:
            for t in last.insides:
                t.grad = None
            outputs, seeds = zip(*pairs)
            backpropagate(outputs, seeds, retain_graph=True, inputs=targets)
        if to_input:
            grads = [zeros_like(x) if t.grad is None else t.grad for x, t in zip(last.inputs, last.insides)]
            for t in last.insides:
                t.grad = None
            self.__dict__["grad_input"] = like(input, iter(grads))
        self._times[1] += perf_counter_ns() - started
        return self.grad_input if to_input else None

    def _check_last(self, op: str, input: Any) -> Forward:
        """The forward that a backward continues."""
        last, name = self._last, type(self).__name__
        if last is None:
            raise RuntimeError(f"[{op}] needs a forward() of the same input before it. Calling {name} itself keeps nothing")
        if not last.recorded:
            raise RuntimeError(f"[{op}] the forward() ran under no_grad and recorded nothing")
        given = leaves(input)
        same = len(given) == len(last.inputs) and all(a is b or _equal(a, b) for a, b in zip(given, last.inputs))
        if not same:
            raise RuntimeError(f"[{op}] the input must be that of the last forward(); got another. Call forward(input) first")
        if [t.version[0] for t in last.inputs] != last.versions:
            raise RuntimeError(f"[{op}] the input was changed in place since forward(); clone() it before changing it")
        return last

    def _forget(self) -> None:
        self.__dict__.update(output=None, grad_input=None, _last=None)

    def clear_state(self) -> Self:
        """Empty the caches of this module and those below; parameters and buffers stay."""
        for module in self.modules():
            if isinstance(module, Module):
                module._forget()
        return self

    # -- parameters ---------------------------------------------------------------------------------

    def parameters(self) -> Parameters | None:  # type: ignore[override]
        """(weights, gradients), parallel lists of the module's own tensors; None if there are none.

        A gradient that is not there yet is made, of zeros.
        """
        found = [p for _, p in self.named_parameters()]
        for p in found:
            if p.grad is None:
                p.grad = zeros_like(p.detach())
        return Parameters(found, [p.grad for p in found]) if found else None  # type: ignore[misc,arg-type]

    def zero_grad_parameters(self) -> None:
        """Fill all gradients with zeros, in their memory; make those that are not there yet."""
        pair = self.parameters()
        with no_grad():
            for g in pair.gradients if pair else ():
                g.zero_()

    def get_parameters(self) -> tuple[Tensor, Tensor]:
        """(weight, gradient): all parameters as one vector, all gradients as another, whose memory is the module's.

        Writing to a vector changes the module and the reverse, on both devices, whatever an optimizer, backward() or
        zero_grad() does; to(device) and to(dtype) end that, and another call makes new vectors. Parameters that already
        lie in a vector stay there, so that a second call, or one of a part of the module, gives the same memory.
        ValueError for a module without parameters, or with parameters of several dtypes or devices.
        """
        found = [p for _, p in self.named_parameters()]
        if not found:
            raise ValueError(f"[get_parameters] {type(self).__name__} has no parameters")
        return flat_vectors(found)

    def get_parameters_table(self) -> dict[str, dict[str, Tensor]]:
        """{module name: {"weight", "bias", "gradWeight", "gradBias"}}, of every module that has parameters of its own.

        More than two of them are weight0, gradient0, weight1, … A plain nn.Module below a named one is name.path.
        ValueError when two modules have one name.
        """
        self.parameters()  # makes the gradients
        table: dict = {}
        for name, owner in self._named_owners():
            own = [p for p in owner._parameters.values() if p is not None]
            if not own:
                continue
            if name in table:
                raise ValueError(f"[get_parameters_table] two modules are named {name!r}; give one another with set_name()")
            if len(own) > 2:
                entry = {f"{what}{i}": t for i, p in enumerate(own) for what, t in (("weight", p), ("gradient", p.grad))}
            else:
                kinds = ("weight", "gradWeight"), ("bias", "gradBias")
                entry = {what: t for names, p in zip(kinds, own) for what, t in zip(names, (p, p.grad))}
            table[name] = entry
        return table

    def _named_owners(self) -> Iterator[tuple[str, nn.Module]]:
        """(name, module) of all below: a bigdl.Module's own name, or the nearest one's with the path from there."""
        named: dict[str, tuple[str, str]] = {}  # path of a bigdl.Module -> (its name, the path of what it wraps)
        for path, module in self.named_modules():
            if isinstance(module, Module):
                inner = "module" if "module" in module._modules else ""
                named[path] = (module.get_name(), ".".join(filter(None, (path, inner))))
                yield module.get_name(), module
                continue
            above = path
            while above not in named:
                above = above.rpartition(".")[0]
            name, start = named[above]
            rest = path[len(start) :].lstrip(".")
            yield (f"{name}.{rest}" if rest else name), module

    def set_weights(self, weights: Any) -> Self:
        """Copy arrays or Tensors into the parameters, in their order; a dict goes by name. Returns self.

        ValueError for another number, other names or shapes; nothing is changed then.
        """
        own = dict(self.named_parameters())
        given = weights if isinstance(weights, Mapping) else dict(zip(own, weights)) if len(weights) == len(own) else None
        if given is None or set(given) != set(own):
            got = sorted(weights) if isinstance(weights, Mapping) else len(weights)
            raise ValueError(f"[set_weights] the weights are {', '.join(own)}; got {got}")
        tensors = {name: as_tensor(value) for name, value in given.items()}
        for name, p in own.items():
            if tensors[name].shape != p.shape:
                raise ValueError(f"[set_weights] {name} must have shape {p.shape}; got {tensors[name].shape}")
        with no_grad():
            for name, p in own.items():
                p.copy_(tensors[name].detach().to(p.device, p.dtype))
        return self

    def __getstate__(self) -> dict:
        """Everything but the caches: what copies and pickles hold."""
        return {k: v for k, v in super().__getstate__().items() if k not in ("output", "grad_input", "_last")}


def _equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same."""
    return (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device) and bool((a.detach() == b.detach()).all())
