"""Layer: a Keras layer that is an nn.Module. Weights and losses: layer_weights.py."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from .. import create, dtypes
from ..grad_mode import no_grad, state
from ..tensor import Tensor
from .layer_weights import Weighted, device_of, next_number, running
from .naming import snake_case
from .room import is_users, no_trial, take, trials
from .tree import is_shape, leaves, mapped, shapes

_names: dict[str, int] = {}


def unique_name(stem: str) -> str:
    """stem, stem_1, stem_2, …: Keras' numbering."""
    count = _names[stem] = _names.get(stem, -1) + 1
    return f"{stem}_{count}" if count else stem


def reset_names() -> None:
    """Start the numbering of layer names anew."""
    _names.clear()


class InputSpec:
    """What a layer accepts: ndim, min_ndim, shape (None: any), axes ({axis: size}). Checked at every call."""

    def __init__(self, ndim: int | None = None, min_ndim: int | None = None, shape: Any = None, axes: dict | None = None):
        self.ndim, self.min_ndim, self.axes = ndim, min_ndim, dict(axes or {})
        self.shape = None if shape is None else tuple(shape)

    def check(self, layer: str, shape: tuple, index: int = 0) -> None:
        """ValueError, in Keras' words, for a shape that does not fit."""
        head = f'Input {index} of layer "{layer}" is incompatible with the layer: '
        full = f" Full shape received: {shape}"
        if self.ndim is not None and len(shape) != self.ndim:
            raise ValueError(f"{head}expected ndim={self.ndim}, found ndim={len(shape)}.{full}")
        if self.min_ndim is not None and len(shape) < self.min_ndim:
            raise ValueError(f"{head}expected min_ndim={self.min_ndim}, found ndim={len(shape)}.{full}")
        for axis, size in self.axes.items():
            if None not in (size, shape[axis]) and shape[axis] != size:
                raise ValueError(f"{head}expected axis {axis} to have size {size}, found {shape[axis]}.{full}")
        if self.shape is not None:
            fits = len(shape) == len(self.shape) and all(None in (a, b) or a == b for a, b in zip(self.shape, shape, strict=True))
            if not fits:
                raise ValueError(f"{head}expected shape={self.shape}, found shape={shape}")


def _once_built(build: Callable) -> Callable:
    """A class's build(), which also sets `built` and puts the constructor's weights= in."""

    @functools.wraps(build)
    def inside(self: Layer, input_shape: Any = None) -> None:
        build(self, input_shape)
        if getattr(type(self), "build", None) is inside:
            self.built, self._build_shape = True, input_shape
            if self._initial_weights is not None:
                self.set_weights(self._initial_weights)
                self._initial_weights = None

    return inside


class Layer(Weighted):
    """Base of Keras' layers: subclasses write build(input_shape), which makes weights with add_weight, and
    call(inputs, …), which computes; callers call the layer.

    Calling takes Tensors, NumPy arrays (which go where the weights are) or symbolic inputs, in nested lists, tuples and
    dicts, and
    - builds the layer at the first call, on the device of its inputs, which may be none of them when all are arrays;
    - casts floating inputs to the dtype of the layer's own weights, as Keras does;
    - hands call() `mask`, if it has the argument: the keyword, else the masks that came with the inputs (`_keras_mask`);
      compute_mask says what goes on with the outputs;
    - hands call() `training`, if it has the argument. One switch decides: the module's `training` flag, False at first (a
      bare call is inference), set by train(), eval() and fit(). A keyword training= sets the flags of this layer and all
      modules below it, PyTorch's too, for the time of this one call;
    - adds activity_regularizer(output) / batch size to `losses` for every output.

    name: the class's in snake_case, numbered, by default. trainable: see there. dtype: of the weights (default: the
    default dtype). Of Keras 2: input_shape, batch_input_shape, batch_size, input_dim (what a Sequential model starts
    from) and weights (arrays for set_weights once the layer is built). TypeError for other keywords.
    """

    supports_masking = False
    built = False
    input_spec: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls.build = _once_built(cls.__dict__["build"])  # type: ignore[method-assign]

    def __init__(self, *, name: str | None = None, trainable: bool = True, dtype: Any = None, activity_regularizer: Any = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(trainable, dtype, activity_regularizer)
        self.name = unique_name(snake_case(type(self).__name__)) if name is None else str(name)
        self._initial_weights = kwargs.pop("weights", None)
        self._build_shape: Any = None
        self.batch_input_shape = _first_shape(kwargs)
        for key in kwargs:
            raise TypeError(f"Keyword argument not understood: {key!r}, by {type(self).__name__}")

    # -- what subclasses write ----------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs of this shape (sizes, None where unknown; a list of shapes for a list)."""

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes; every subclass writes its own."""
        raise NotImplementedError(f"[Layer] {type(self).__name__} has no call()")

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs where the layer supports masking, else None."""
        return mask if self.supports_masking else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs, None where it is not known; found by running call() on zeros of two batch sizes."""
        no_trial(self, self.name)
        if not self.built:
            self.build(input_shape)
        kept = [(layer, layer._number, list(layer._called)) for layer in self._layers()]
        found = []
        for size in (2, 3):
            with no_grad():
                found.append(shapes(self(_zeros(input_shape, size, self.dtype, device_of(self, None)), training=False)))
        for layer, number, called in kept:  # losses of zeros are no losses
            layer.__dict__["_number"], layer._called[:] = number, called
        return _merged(*found)

    def get_config(self) -> dict:
        """The constructor's arguments as plain data; subclasses add theirs."""
        config = {"name": self.name, "trainable": self._trainable, "dtype": (self._dtype or self.dtype).name}
        if self.batch_input_shape is not None:
            config["batch_input_shape"] = self.batch_input_shape
        return config

    @classmethod
    def from_config(cls, config: dict) -> Any:
        """The layer of a config."""
        return cls(**config)

    def __getattr__(self, name: str) -> Any:
        """input and output: the symbolic tensors of the first call that was recorded (graph.py)."""
        call = self.__dict__.get("_first_call") if name in ("input", "output") else None
        node = None if call is None else call.node()
        if node is None or name in self._modules:
            return super().__getattr__(name)
        return node.outputs if name == "output" else node.args[0] if node.args else next(iter(node.kwargs.values()))

    # -- calling ------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """See the class."""
        if any(getattr(x, "is_symbolic", False) for x in leaves((args, kwargs))):
            from . import graph  # it builds on this module

            return graph.record(self, args, kwargs)
        training = kwargs.pop("training", None)
        changed = [] if training is None else [m for m in self.modules() if m.training != bool(training)]
        if not running.inputs:
            running.number = next_number()
        self.__dict__["_number"] = running.number
        running.inputs.append(args or list(kwargs.values()))
        for m in changed:
            m.training = bool(training)
        try:
            return self._run(args, kwargs)
        finally:
            running.inputs.pop()
            for m in changed:
                m.training = not training

    def _run(self, args: tuple, kwargs: dict) -> Any:
        first_name, takes_mask, takes_training = _signature(type(self))  # type: ignore[arg-type]
        if not args and first_name not in kwargs:
            raise TypeError(f"[{self.name}] a layer is called with its inputs; got none")
        inputs = args[0] if args else kwargs[first_name]
        mask = kwargs.get("mask")
        if mask is None:
            mask = masks_of(inputs)
            if takes_mask and mask is not None:
                kwargs = {**kwargs, "mask": mask}
        if not all(isinstance(x, Tensor | None) for x in leaves((args, kwargs))):
            args, kwargs = self._uploaded(args, kwargs)
        given = args[0] if args else kwargs[first_name]
        self._prepare(given)
        own = self.cast_dtype()
        if own is not None:
            cast = functools.partial(_cast, own)
            args, kwargs = mapped(cast, args), mapped(cast, kwargs)
        if takes_training:
            kwargs = {**kwargs, "training": self.training}
        outputs = self.call(*args, **kwargs)
        if self.activity_regularizer is not None:
            for y in leaves(outputs):
                self.add_loss(self.activity_regularizer(y) / y.shape[0])
        return self._masked(given, mask, outputs)

    def cast_dtype(self) -> dtypes.DType | None:
        """What floating inputs are cast to; None where the layer has no weights of its own."""
        return next((p.dtype for p in self._parameters.values() if p is not None and p.dtype.is_floating_point), None)

    def _uploaded(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """NumPy arrays as Tensors: floating ones in the layer's dtype, all where the weights are."""
        where, kind = device_of(self, (args, kwargs)), self.dtype

        def convert(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            return create.place(dtypes.converted(x, kind.numpy if x.dtype.kind == "f" else dtypes.of_array(x).numpy), where)

        return mapped(convert, args), mapped(convert, kwargs)

    def _prepare(self, inputs: Any) -> None:
        """Check the inputs, and build the layer at the first call."""
        if self.input_spec is None and self.built:
            return
        try:
            shape = shapes(inputs)
        except AttributeError:
            kinds = sorted({type(x).__name__ for x in leaves(inputs) if not hasattr(x, "shape")})
            raise TypeError(f"[{self.name}] inputs are Tensors or NumPy arrays; got {', '.join(kinds)}") from None
        self.check_input(shape)
        if not self.built:
            before, running.device = running.device, device_of(self, inputs)
            try:
                with trials() if is_users(self) else nullcontext():
                    self.build(shape)
            finally:
                running.device = before

    def check_input(self, shape: Any) -> None:
        """ValueError where the shape (a list of shapes, for a list of inputs) is not what input_spec accepts."""
        if self.input_spec is None:
            return
        specs = self.input_spec if isinstance(self.input_spec, list) else [self.input_spec]
        given = [shape] if is_shape(shape) else list(shape)
        for i, (spec, one) in enumerate(zip(specs, given, strict=False)):
            if spec is not None:
                spec.check(self.name, tuple(one), i)

    def _masked(self, inputs: Any, mask: Any, outputs: Any) -> Any:
        """The outputs, each with its mask as `_keras_mask`."""
        masks = self.compute_mask(inputs, mask)
        if masks is None and mask is None:
            return outputs
        if isinstance(outputs, list | tuple):
            masks = masks if isinstance(masks, list | tuple) else [masks] * len(outputs)
            marked = [_mark(y, m) for y, m in zip(outputs, masks, strict=True)]
            return marked if isinstance(outputs, list) else tuple(marked)
        return _mark(outputs, masks[0] if isinstance(masks, list) else masks)

    def extra_repr(self) -> str:
        """The name."""
        return f"name={self.name!r}"


Layer.build = _once_built(Layer.build)  # type: ignore[method-assign]


def _first_shape(kwargs: dict) -> tuple | None:
    """batch_input_shape from Keras 2's four keywords, which are taken out."""
    batch, given = kwargs.pop("batch_size", None), kwargs.pop("batch_input_shape", None)
    shape, width = kwargs.pop("input_shape", None), kwargs.pop("input_dim", None)
    if given is not None:
        return tuple(given)
    if shape is None and width is not None:
        shape = (width,)
    return None if shape is None else (batch, *((shape,) if isinstance(shape, int) else shape))


@functools.cache
def _signature(kind: type) -> tuple[str, bool, bool]:
    """The name of call's first argument, and whether it has `mask` and `training`."""
    names = list(inspect.signature(kind.call).parameters)[1:]  # type: ignore[attr-defined]
    return (names[0] if names else "inputs"), "mask" in names, "training" in names


def masks_of(inputs: Any) -> Any:
    """The masks that tensors carry, in the inputs' nesting; None when there is none at all."""
    if isinstance(inputs, Tensor):
        return getattr(inputs, "_keras_mask", None)
    found = mapped(lambda x: getattr(x, "_keras_mask", None), inputs)
    return found if any(m is not None for m in leaves(found)) else None


def _cast(kind: dtypes.DType, x: Any) -> Any:
    if not isinstance(x, Tensor) or x.dtype is kind or not x.dtype.is_floating_point:
        return x
    if state.autocast is not None and x.dtype.itemsize < kind.itemsize:
        return x  # autocast has its own mind about short types
    return x.to(dtype=kind)


def _mark(y: Any, mask: Any) -> Any:
    if getattr(y, "_keras_mask", None) is mask:
        return y
    if hasattr(y, "_keras_mask"):
        y = copy.copy(y)  # an identity returned its input: that one's mask stays
    if mask is not None:
        y._keras_mask = mask
    return y


def _zeros(shape: Any, size: int, dtype: Any, device: Any) -> Any:
    if is_shape(shape):
        sizes = [size if n is None else n for n in shape]
        take(sizes, "an input")
        return create.zeros(*sizes, dtype=dtype, device=device)
    return {k: _zeros(s, size, dtype, device) for k, s in shape.items()} if isinstance(shape, dict) else [
        _zeros(s, size, dtype, device) for s in shape
    ]  # fmt: skip


def _merged(a: Any, b: Any) -> Any:
    """Sizes that both have; None where they differ."""
    if is_shape(a):
        return tuple(m if m == n else None for m, n in zip(a, b, strict=True))
    return {k: _merged(a[k], b[k]) for k in a} if isinstance(a, dict) else [_merged(x, y) for x, y in zip(a, b, strict=True)]
