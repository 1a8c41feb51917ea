"""What a Keras layer holds: weights with their regularizers and constraints, the trainable switch, and losses."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..create import as_tensor, place
from ..device import Device, as_device
from ..grad_mode import no_grad
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..tape import Node
from ..tensor import Tensor
from . import constraints, initializers, regularizers
from .room import take_weight
from .tree import leaves


class Running(threading.local):
    """This thread's calls in progress: their inputs, outermost first, and where a layer built by one puts its weights."""

    def __init__(self) -> None:
        self.inputs: list = []
        self.number = 0  # of the outermost call
        self.device: Device | None = None
        self.told: Any = None  # what the next recorded call gives: graph.py


running = Running()
next_number = itertools.count(1).__next__


class _Called(list):
    """Losses of the latest calls, (number of the call, loss, inputs). A copied or loaded layer starts without."""

    def __deepcopy__(self, memo: dict) -> _Called:
        return _Called()

    def __reduce__(self) -> tuple:
        return _Called, ()


class Weighted(Module):
    """The half of Layer (layer.py) that has to do with weights and losses."""

    name: str

    def __init__(self, trainable: bool = True, dtype: Any = None, activity_regularizer: Any = None):
        super().__init__()
        self.training = False  # a bare call is inference, as in Keras; train() or fit() switch it on
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if isinstance(dtype, Mapping):  # how Keras 3 writes it: {"class_name": "DTypePolicy", "config": {"name": "float32"}}
            dtype = dtype["config"]["name"]
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._regularizers: dict[str, Any] = {}
        self._constraints: dict[str, Any] = {}
        self._fixed: set[str] = set()  # names of weights made with trainable=False
        self._frozen: list[Parameter] = []  # those of plain modules that trainable=False switched off
        self._trainable = bool(trainable)
        self._number = 0  # of the outermost call that this layer last ran in
        self._called = _Called()
        self._standing: list = []  # losses added outside a call

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, Module):
            if not isinstance(value, Weighted):
                value.train(self.training)  # PyTorch's modules start in training mode, layers do not
            if not self._trainable:
                _freeze(self, value)

    # -- weights ------------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """The weights' dtype; before there are any, the one asked for, or the default dtype."""
        for p in self.parameters():
            if p.dtype.is_floating_point:
                return p.dtype
        return dtypes.get_default_dtype() if self._dtype is None else self._dtype

    def add_weight(self, name: str, shape: Any = (), initializer: Any = "glorot_uniform", *, trainable: bool = True,
                   regularizer: Any = None, constraint: Any = None, dtype: Any = None) -> Parameter:  # fmt: skip
        """A new Parameter, registered as the attribute `name`, on the device of the call that builds the layer.

        initializer: a name, or anything called with (shape, dtype) that gives a Tensor or an array. regularizer adds to
        `losses`; constraint is for apply_constraints(). trainable=False: no gradient. dtype: the layer's by default.
        ValueError for negative sizes, for a result of another shape and for a name that is taken.
        """
        if not name or "." in name or hasattr(type(self), name):
            raise ValueError(f"[add_weight] a name is a new attribute's, without dots; got {name!r} in {type(self).__name__}")
        shape = tuple(int(n) for n in shape)
        if any(n < 0 for n in shape):
            raise ValueError(f"[add_weight] Dimension {min(shape)} must be >= 0; got shape {shape} for {name!r} of {self.name}")
        take_weight(shape, f"weight {name!r} of {self.name}")
        wanted = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        values = as_tensor(initializers.get("zeros" if initializer is None else initializer)(shape, dtype=wanted))
        if values.shape != shape:
            raise ValueError(f"[add_weight] the initializer of {name!r} gave shape {values.shape}; expected {shape}")
        host = values.detach().cpu().to(wanted).copied()
        made = Parameter(place(host.array, running.device), trainable and self._trainable)
        setattr(self, name, made)
        for table, value in (self._regularizers, regularizers.get(regularizer)), (self._constraints, constraints.get(constraint)):
            table.pop(name, None)
            if value is not None:
                table[name] = value
        (self._fixed.discard if trainable else self._fixed.add)(name)
        return made

    def _layers(self) -> Iterator[Weighted]:
        """This layer and the layers below it, parents first."""
        return (m for m in self.modules() if isinstance(m, Weighted))

    @property
    def weights(self) -> list[Tensor]:
        """All weights, the layer's own first, then its sublayers'; of plain modules their buffers too. Each once."""
        found: dict[int, Tensor] = {}
        for m in self.modules():
            own: list = list(m._parameters.values())
            if not isinstance(m, Weighted):
                own += [b for k, b in m._buffers.items() if k not in m._transient]
            found |= {id(t): t for t in own if t is not None and id(t) not in found}
        return list(found.values())

    variables = property(lambda self: self.weights)

    @property
    def trainable_weights(self) -> list[Tensor]:
        """Those that get a gradient."""
        return [w for w in self.weights if w.requires_grad]

    @property
    def non_trainable_weights(self) -> list[Tensor]:
        """Those that get none."""
        return [w for w in self.weights if not w.requires_grad]

    trainable_variables = property(lambda self: self.trainable_weights)
    non_trainable_variables = property(lambda self: self.non_trainable_weights)

    @property
    def trainable(self) -> bool:
        """Whether the weights are trained. Setting it goes to all sublayers, and to requires_grad of the weights."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        value = bool(value)
        for layer in self._layers():
            layer.__dict__["_trainable"] = value
            for name, p in layer._parameters.items():
                if p is not None and name not in layer._fixed:
                    p.requires_grad = value
            for p in layer._frozen:
                p.requires_grad = True
            layer._frozen.clear()
        if not value:
            for module in self.children():
                _freeze(self, module)

    def get_weights(self) -> list[np.ndarray]:
        """Copies of all weights as NumPy arrays, in the order of `weights`."""
        return [np.array(w.detach().cpu().numpy()) for w in self.weights]

    def set_weights(self, weights: Any) -> None:
        """Copy arrays or Tensors in, in the order of `weights`, cast to their dtype.

        ValueError for another number or another shape; nothing is changed then.
        """
        own, given = self.weights, list(weights)
        if len(own) != len(given):
            hint = " Build the layer first: call it, or build(input_shape)." if not own else ""
            raise ValueError(f"[set_weights] layer {self.name} has {len(own)} weights; got {len(given)}.{hint}")
        arrays = [np.asarray(g.detach().cpu().numpy() if isinstance(g, Tensor) else g) for g in given]
        for i, (w, a) in enumerate(zip(own, arrays, strict=True)):
            if w.shape != a.shape:
                raise ValueError(f"[set_weights] weight {i} of layer {self.name} has shape {w.shape}; got {a.shape}")
            if a.dtype.kind not in "biuf":
                raise ValueError(f"[set_weights] weight {i} of layer {self.name} must be numbers; got {a.dtype}")
        with no_grad():
            for w, a in zip(own, arrays, strict=True):
                w.copy_(place(dtypes.converted(a, w.dtype.numpy), w.device))

    def count_params(self) -> int:
        """The number of numbers in all weights. ValueError before the layer is built."""
        if not getattr(self, "built", True):
            raise ValueError(f"[count_params] layer {self.name} has no weights yet: call it, or build(input_shape)")
        return sum(w.numel() for w in self.weights)

    def apply_constraints(self) -> None:
        """w <- constraint(w) for every trainable weight that has one, here and below: after each optimizer step."""
        with no_grad():
            for layer in self._layers():
                for name, constraint in layer._constraints.items():
                    w = layer._parameters[name]
                    if w is not None and w.requires_grad:
                        w.copy_(constraint(w.detach()))

    # -- losses -------------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Add a scalar Tensor to `losses`. Inside call() it stands until the next call; outside it, or as a function of
        no arguments, which is evaluated every time, for good."""
        if callable(loss) or not running.inputs:
            self._standing.append(loss)
            return
        if self._called and self._called[0][0] != running.number:
            self._called.clear()
        seen = [weakref.ref(x) for x in leaves(running.inputs) if isinstance(x, Tensor | np.ndarray)]
        self._called.append((running.number, loss, seen))

    @property
    def losses(self) -> list[Tensor]:
        """Scalars to add to the objective: those of the latest call (activity regularizers, add_loss), layer by layer,
        then the regularizers of trainable weights (kernel, recurrent, bias), here and below."""
        return [loss for loss, _ in self._call_losses()] + self.get_losses_for(None)

    def _call_losses(self) -> list[tuple[Tensor, list]]:
        since = self._number
        return [(loss, seen) for layer in self._layers() for number, loss, seen in layer._called if number >= since]

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """inputs None: the losses that depend on weights alone. A Tensor or array, or a list of them: those of the latest
        call whose value came from one of them; none for others. (Keras has this in its graphs only.)"""
        if inputs is None:
            layers = list(self._layers())
            standing = [loss() if callable(loss) else loss for layer in layers for loss in layer._standing]
            pairs = [(r, layer._parameters[name]) for layer in layers for name, r in layer._regularizers.items()]
            return standing + [r(w) for r, w in pairs if w is not None and w.requires_grad]
        wanted = list(leaves(inputs))
        return [
            loss for loss, seen in self._call_losses()
            if any(ref() is x for ref in seen for x in wanted) or any(_came_from(loss, x) for x in wanted)
        ]  # fmt: skip


def _freeze(layer: Weighted, module: Module) -> None:
    """Switch what was assigned to a frozen layer off, so that trainable=True can switch it on again."""
    for m in module.modules():
        if isinstance(m, Weighted):
            if m._trainable:
                m.trainable = False
        else:
            for p in m._parameters.values():
                if p is not None and p.requires_grad:
                    p.requires_grad = False
                    layer._frozen.append(p)


def _came_from(y: Any, x: Any) -> bool:
    """Whether the tape leads from y back to x."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor) or not x.requires_grad:
        return False
    target: Any = x if x.node is None else x.node
    todo: list = [y.node]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if node is target:
            return True
        if isinstance(node, Node) and id(node) not in seen:
            seen.add(id(node))
            todo += node.edges
    return False


def device_of(layer: Module, inputs: Any) -> Device:
    """Where a layer's NumPy inputs go: to its weights, to its Tensor inputs, or to the default device."""
    for t in itertools.chain(leaves(inputs), Module.parameters(layer)):
        if isinstance(t, Tensor):
            return t.device
    return as_device(running.device)
