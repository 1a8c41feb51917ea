"""Symbolic tensors, and the graph that calling layers on them makes: the functional API.

Input() gives a SymbolicTensor; a layer called on one records a Node instead of computing. A Graph is the part of what
was recorded that leads from some inputs to some outputs; it runs as a loop over its nodes.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from .. import create, dtypes
from ..grad_mode import no_grad
from ..nn.module import Module
from ..tensor import Tensor
from .layer import Layer, masks_of, unique_name
from .layer_weights import device_of, running
from .room import no_trial, take
from .tree import by_key, leaves, mapped

_number = itertools.count()


class SymbolicTensor:
    """A tensor that is not there yet: its shape (None where not known), its dtype, and the node that will make it."""

    is_symbolic = True

    def __init__(self, shape: tuple, dtype: dtypes.DType, node: Node | None = None, name: str = ""):
        self.shape, self.dtype, self.node, self.name = tuple(shape), dtype, node, name

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<SymbolicTensor shape={self.shape} dtype={self.dtype.name} name={self.name!r}>"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"[SymbolicTensor] {self.name!r} has no values yet: call a Model made of it on arrays")

    def __bool__(self) -> bool:
        raise TypeError(f"[SymbolicTensor] {self.name!r} has no values yet, so it cannot decide a condition")

    def __iter__(self) -> Any:
        raise TypeError(f"[SymbolicTensor] {self.name!r} has no values yet, so it cannot be iterated over")

    def __getitem__(self, key: Any) -> Any:
        return Operation("getitem")(self, _plain_key(key))


class Node:
    """One recorded call: layer(*args, **kwargs), with symbolic tensors where values will be."""

    def __init__(self, layer: Module, args: tuple, kwargs: dict):
        self.layer, self.args, self.kwargs, self.number = layer, args, kwargs, next(_number)
        self.inputs = [x for x in leaves(by_key((args, kwargs))) if isinstance(x, SymbolicTensor)]
        self.outputs: Any = None


class FirstCall:
    """What a layer remembers of its first recorded call, for layer.input and layer.output: weakly, and not in its copies."""

    def __init__(self, node: Node | None = None):
        self._node = None if node is None else weakref.ref(node)

    def node(self) -> Node | None:
        """The call, while anything else holds on to it."""
        return None if self._node is None else self._node()

    def __deepcopy__(self, memo: dict) -> FirstCall:
        return FirstCall()

    def __reduce__(self) -> tuple:
        return FirstCall, ()


def _plain_key(key: Any) -> Any:
    """An index as plain data: slices as ("slice", start, stop, step)."""
    if isinstance(key, tuple):
        return [_plain_key(k) for k in key]
    if isinstance(key, slice):
        return ["slice", key.start, key.stop, key.step]
    if key is Ellipsis:
        return ["..."]
    if key is not None and not isinstance(key, int):
        raise TypeError(f"[SymbolicTensor] an index is made of integers, slices, None and …; got {type(key).__name__}")
    return key


def _key(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        if plain and plain[0] == "slice":
            return slice(*plain[1:])
        return Ellipsis if plain and plain[0] == "..." else tuple(_key(p) for p in plain)
    return plain


_OPERATIONS: dict[str, Callable] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b, "matmul": lambda a, b: a @ b, "negative": lambda a: -a, "getitem": lambda a, key: a[_key(key)],
}  # fmt: skip


class Operation(Layer):
    """An operator on symbolic tensors (+ - * / ** @, negation, indexing) as a layer, so that it is recorded and saved."""

    def __init__(self, operation: str, **kwargs: Any):
        if operation not in _OPERATIONS:
            raise ValueError(f"[Operation] operation is one of {list(_OPERATIONS)}; got {operation!r}")
        kwargs.setdefault("name", unique_name(operation))
        super().__init__(**kwargs)
        self.operation, self.built = operation, True

    def call(self, *args: Any) -> Tensor:
        """The operator's result."""
        return _OPERATIONS[self.operation](*args)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As any layer's, with numbers and indices beside the tensors."""
        if any(isinstance(x, SymbolicTensor) for x in leaves((args, kwargs))):
            return record(self, args, kwargs)
        result: Any = self.call(*args)
        if masks_of(args[0]) is not None and self.operation != "getitem":
            result._keras_mask = masks_of(args[0])
        return result

    def get_config(self) -> dict:
        """The operator."""
        return {**super().get_config(), "operation": self.operation}


def _operator(name: str, swapped: bool = False) -> Callable:
    def method(self: SymbolicTensor, other: Any) -> Any:
        return Operation(name)(other, self) if swapped else Operation(name)(self, other)

    return method


_SHORT = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "matmul": "matmul"}
for _short, _long in _SHORT.items():
    setattr(SymbolicTensor, f"__{_short}__", _operator(_long))
    setattr(SymbolicTensor, f"__r{_short}__", _operator(_long, True))
setattr(SymbolicTensor, "__neg__", lambda self: Operation("negative")(self))  # noqa: B010 (as the others)


class InputLayer(Layer):
    """Where a model begins: shape without the batch, or batch_shape; its output is the symbolic tensor."""

    def __init__(self, shape: Any = None, batch_size: int | None = None, dtype: Any = None, name: str | None = None, *,
                 batch_shape: Any = None, trainable: bool = True):  # fmt: skip
        super().__init__(name=unique_name("input_layer") if name is None else name, trainable=trainable)
        if (shape is None) == (batch_shape is None):
            raise ValueError("[InputLayer] give shape (without the batch) or batch_shape")
        if batch_shape is None:
            batch_shape = (batch_size, *((shape,) if isinstance(shape, int) else shape))
        if any(n is not None and (not isinstance(n, int) or n < 0) for n in batch_shape):
            raise ValueError(f"[InputLayer] sizes are integers from 0 on, or None; got {batch_shape}")
        self.batch_shape = tuple(batch_shape)
        self.input_dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        self.built = True
        node = Node(self, (), {})
        self.__dict__["output"] = node.outputs = SymbolicTensor(self.batch_shape, self.input_dtype, node, self.name)

    def call(self, inputs: Any) -> Any:
        """What comes in."""
        return inputs

    def get_config(self) -> dict:
        """Shape, dtype and name."""
        return {"batch_shape": self.batch_shape, "dtype": self.input_dtype.name, "name": self.name}


def Input(shape: Any = None, batch_size: int | None = None, dtype: Any = None, name: str | None = None, *,
          batch_shape: Any = None) -> SymbolicTensor:  # fmt: skip
    """A symbolic tensor to call layers on: shape without the batch (None where any size will do), or batch_shape."""
    return InputLayer(shape, batch_size, dtype, name, batch_shape=batch_shape).output


def record(layer: Module, args: tuple, kwargs: dict) -> Any:
    """Enter layer(*args, **kwargs) as a Node, build the layer, and give its symbolic outputs."""
    if kwargs.get("training") is not None:
        raise TypeError(f"[{_name(layer)}] training= has no place in a graph: the model's own switch decides at each call")
    kwargs = {k: v for k, v in kwargs.items() if k != "training"}
    node = Node(layer, args, kwargs)
    spec, running.told = running.told, None
    if isinstance(layer, Layer):
        layer._prepare(args[0] if args else next(iter(kwargs.values())))
    first = None if isinstance(layer, Layer) else next((p.dtype for _, p in layer.named_parameters()), dtypes.get_default_dtype())
    kind = first if first is not None else layer.dtype
    simple = isinstance(layer, Layer) and len(args) == 1 and isinstance(args[0], SymbolicTensor) and not kwargs
    if spec is not None:
        found: Any = spec
    elif simple and getattr(type(layer), "compute_output_shape", None) is not Layer.compute_output_shape:
        shape = layer.compute_output_shape(args[0].shape)  # type: ignore[operator]
        several = isinstance(shape, list) or (isinstance(shape, tuple) and shape and isinstance(shape[0], tuple | list))
        found = [(tuple(s), kind) for s in shape] if several else (tuple(shape), kind)
    else:
        found = _traced(layer, args, kwargs)
    node.outputs = _symbolic(found, node, _name(layer))
    layer.__dict__.setdefault("_first_call", FirstCall(node))
    return node.outputs


@contextmanager
def told(spec: Any) -> Iterator[None]:
    """The next call that is recorded inside gives this, (shape, dtype) in nests, and nothing is tried out; None: it is."""
    before, running.told = running.told, spec
    try:
        yield
    finally:
        running.told = before


def _name(layer: Module) -> str:
    return layer.name if isinstance(layer, Layer) else type(layer).__name__


def _is_spec(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dtypes.DType)


def _symbolic(spec: Any, node: Node, name: str) -> Any:
    if _is_spec(spec):
        return SymbolicTensor(spec[0], spec[1], node, name)
    if isinstance(spec, dict):
        return {k: _symbolic(v, node, f"{name}_{k}") for k, v in spec.items()}
    return type(spec)(_symbolic(v, node, name) for v in spec)


def _traced(layer: Module, args: tuple, kwargs: dict) -> Any:
    """(shape, dtype) of each output, from running the layer on zeros of two sizes: what differs between them is None."""
    no_trial(layer, _name(layer))
    modes = {m: m.training for m in layer.modules()}
    runs = []
    try:
        layer.eval()
        for batch, other in ((2, 31), (3, 34)):
            values = mapped(lambda x, b=batch, o=other: _stand_in(x, b, o, layer), (args, kwargs))
            with no_grad():
                runs.append(mapped(lambda t: (tuple(t.shape), t.dtype), layer.forward(*values[0], **values[1])))
    finally:
        for m, training in modes.items():
            m.training = training
            if isinstance(m, Layer):
                m._called.clear()  # losses of zeros are no losses
    return _joined(*runs)


def _stand_in(x: Any, batch: int, other: int, layer: Module) -> Any:
    if not isinstance(x, SymbolicTensor):
        return x
    sizes = [batch if i == 0 else other if n is None else n for i, n in enumerate(x.shape)]
    if x.shape and x.shape[0] is not None:
        sizes[0] = x.shape[0]
    take(sizes, "an input")
    return create.zeros(*sizes, dtype=x.dtype, device=device_of(layer, ()))


def _joined(a: Any, b: Any) -> Any:
    if _is_spec(a):
        return tuple(m if m == n else None for m, n in zip(a[0], b[0])), a[1]
    if isinstance(a, dict):
        return {k: _joined(a[k], b[k]) for k in a}
    return type(a)(_joined(x, y) for x, y in zip(a, b))


class Graph:
    """The nodes that lead from inputs to outputs (each a symbolic tensor, or lists or dicts of them), in order.

    strict: values have the sizes of the inputs; else, when these were only the first that came, as many dimensions.
    ValueError when an output depends on an input that is not among them, or an input is not an Input().
    """

    def __init__(self, inputs: Any, outputs: Any, strict: bool = True):
        self.inputs, self.outputs, self.strict = inputs, outputs, strict
        self.flat_inputs, self.flat_outputs = list(leaves(by_key(inputs))), list(leaves(by_key(outputs)))
        for what, found in (("input", self.flat_inputs), ("output", self.flat_outputs)):
            for x in found:
                if not isinstance(x, SymbolicTensor):
                    raise ValueError(f"[Model] an {what} comes from Input() or a layer called on one; got {x!r}")
        if len(set(map(id, self.flat_inputs))) != len(self.flat_inputs):
            raise ValueError("[Model] an input is given twice")
        given = {id(x) for x in self.flat_inputs}
        seen: dict[int, Node] = {}
        todo = [x.node for x in self.flat_outputs if id(x) not in given]
        while todo:
            node: Any = todo.pop()
            if node.number in seen:
                continue
            if isinstance(node.layer, InputLayer):
                known = ", ".join(x.name for x in self.flat_inputs)
                raise ValueError(f"[Model] the outputs need input {node.layer.name!r}, which is not among the inputs: {known}")
            seen[node.number] = node
            todo += [x.node for x in node.inputs if id(x) not in given]
        self.nodes = [seen[number] for number in sorted(seen)]  # recorded in an order in which they can run

    def __deepcopy__(self, memo: dict) -> Graph:
        """The same calls of copies of the layers, made in a loop."""
        copies = {}
        for x in self.flat_inputs:
            start = isinstance(x.node.layer, InputLayer)  # type: ignore[union-attr]
            layer = deepcopy(x.node.layer, memo) if start else InputLayer(batch_shape=x.shape, dtype=x.dtype)  # type: ignore[union-attr]
            copies[id(x)] = layer.output
        take = lambda tree: mapped(lambda x: copies[id(x)] if isinstance(x, SymbolicTensor) else x, tree)
        for node in self.nodes:
            new = Node(deepcopy(node.layer, memo), take(node.args), take(node.kwargs))
            new.outputs = mapped(lambda x, new=new: SymbolicTensor(x.shape, x.dtype, new, x.name), node.outputs)
            copies |= {id(x): y for x, y in zip(leaves(node.outputs), leaves(new.outputs))}
        return Graph(take(self.inputs), take(self.outputs), self.strict)

    @property
    def layers(self) -> list[Module]:
        """The layers of all nodes and the input layers, each once, in Keras' order: by the distance from the outputs, farthest
        first; equally far ones as a walk from the outputs towards the inputs meets them."""
        ordered, met = self._walked()
        depth: dict[int, int] = {}  # of nodes, by number
        of_layer: dict[int, int] = {}
        for node in reversed(ordered):
            mine = depth[node.number] = max(depth.get(node.number, 0), of_layer.get(id(node.layer), 0))
            of_layer[id(node.layer)] = mine
            for x in node.inputs:
                if x.node is not None:
                    depth[x.node.number] = max(depth.get(x.node.number, 0), mine + 1)
        starts = [x.node.layer for x in self.flat_inputs if x.node is not None and isinstance(x.node.layer, InputLayer)]
        found = {id(layer): layer for layer in [*starts, *(node.layer for node in ordered)]}  # unused inputs come last
        return sorted(found.values(), key=lambda m: (-of_layer.get(id(m), 0), met.get(id(m), -1)))

    def _walked(self) -> tuple[list[Node], dict[int, int]]:
        """A walk from the outputs, inputs before what they lead to; and which layer was met first, second, …"""
        inside = {node.number for node in self.nodes} | {
            x.node.number for x in self.flat_inputs if x.node is not None and isinstance(x.node.layer, InputLayer)
        }
        ordered: list[Node] = []
        met: dict[int, int] = {}
        seen: set[int] = set()
        todo: list = [(x.node, False) for x in reversed(self.flat_outputs)]
        while todo:
            node, done = todo.pop()
            if done:
                ordered.append(node)
            elif node is not None and node.number in inside and node.number not in seen:
                seen.add(node.number)
                met.setdefault(id(node.layer), len(met))
                todo += [(node, True), *((x.node, False) for x in reversed(node.inputs))]
        return ordered, met

    def run(self, inputs: Any) -> Any:
        """The outputs for these inputs: in the nesting the model was made with, a list in its order, or a dict by names."""
        values = {id(x): _fitted(v, x, self.strict) for x, v in zip(self.flat_inputs, self._matched(inputs))}
        for node in self.nodes:
            args, kwargs = mapped(lambda x: values[id(x)] if isinstance(x, SymbolicTensor) else x, (node.args, node.kwargs))
            result = node.layer(*args, **kwargs)
            for symbol, value in zip(leaves(node.outputs), leaves(result)):
                values[id(symbol)] = value
        return mapped(lambda x: values[id(x)], self.outputs)

    def _matched(self, inputs: Any) -> list:
        """The values in the order of flat_inputs."""
        names = [x.name for x in self.flat_inputs]
        if isinstance(inputs, dict) and not isinstance(self.inputs, dict):
            if set(inputs) >= set(names):
                return [inputs[name] for name in names]
            raise ValueError(f"[Model] inputs by name: expected {names}; got {list(inputs)}")
        if isinstance(self.inputs, dict) and isinstance(inputs, dict):
            missing = [k for k in self.inputs if k not in inputs]
            if missing:
                raise ValueError(f"[Model] inputs {missing} are missing; got {list(inputs)}")
            inputs = {k: inputs[k] for k in self.inputs}
        found = list(leaves(by_key(inputs)))
        if len(found) != len(names):
            raise ValueError(f"[Model] expected {len(names)} inputs, {names}; got {len(found)}")
        return found


def _fitted(value: Any, symbol: SymbolicTensor, strict: bool) -> Any:
    """The value in the input's kind of dtype and number of dimensions. ValueError for another shape."""
    if isinstance(value, Tensor) and value.dtype.is_floating_point != symbol.dtype.is_floating_point:
        value = value.to(dtype=symbol.dtype)
    shape = tuple(value.shape)
    if len(shape) == symbol.ndim - 1 and symbol.shape[-1] == 1:
        value = value.reshape((*shape, 1))
    elif len(shape) == symbol.ndim + 1 and shape[-1] == 1:
        value = value.reshape(shape[:-1])
    fits = len(value.shape) == symbol.ndim and all(m in (None, n) or not strict for m, n in zip(symbol.shape, value.shape))
    if not fits:
        raise ValueError(f"[Model] input {symbol.name!r} has shape {symbol.shape}; got {shape}")
    return value
