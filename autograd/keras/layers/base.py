"""What Keras' layers share: their arguments, kept and given back as a config, and data formats."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...tensor import Tensor
from .. import activations, constraints, initializers, regularizers
from ..layer import Layer

# An argument that ends so names an object of this family.
_FAMILIES: dict[str, Any] = {
    "activation": activations,
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
}


def _family(name: str) -> Any:
    return _FAMILIES.get(name.rpartition("_")[2])


class ArgumentsLayer(Layer):
    """A layer whose config is its constructor's arguments, each kept as an attribute under its own name.

    missing: arguments that Keras has and this layer has not, each with the value that switches it off. That value alone
    is accepted, so that Keras' own configs can be read.
    """

    missing: dict[str, Any] = {}

    def __init__(self, arguments: dict, **kwargs: Any):
        """arguments: the subclass' locals(); activations, initializers, … are looked up by name."""
        for name, off in self.missing.items():
            if kwargs.pop(name, off) != off:
                raise ValueError(f"[{type(self).__name__}] there is no {name} here; only {name}={off!r} is accepted")
        if isinstance(kwargs.get("dtype"), Mapping):  # Keras writes {"class_name": "DTypePolicy", "config": {"name": …}}
            kwargs["dtype"] = kwargs["dtype"]["config"]["name"]
        super().__init__(**kwargs)
        names = list(inspect.signature(arguments["__class__"].__init__).parameters)[1:]
        self._kept = [name for name in names if name in arguments and name != "kwargs"]
        for name in self._kept:
            family, value = _family(name), arguments[name]
            setattr(self, name, value if family is None else family.get(value))

    def get_config(self) -> dict:
        """The constructor's arguments as plain data."""
        config = super().get_config()
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        for name in self._kept:
            family, value = _family(name), getattr(self, name)
            config[name] = value if family is None else family.serialize(value)
        return config

    def own_weight(self, name: str, shape: Sequence[int], prefix: str | None = None, **options: Any) -> Tensor:
        """add_weight with the initializer, regularizer and constraint that the constructor's arguments `prefix`_… name."""
        prefix = name if prefix is None else prefix
        kinds = ("initializer", "regularizer", "constraint")
        found: dict[str, Any] = {kind: getattr(self, f"{prefix}_{kind}", None) for kind in kinds}
        return self.add_weight(name=name, shape=tuple(shape), **found, **options)


class Elementwise(ArgumentsLayer):
    """A layer whose output has its input's shape, and passes its mask on."""

    supports_masking = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The input's."""
        return tuple(input_shape)


def whole(value: Any, name: str, layer: str, low: int = 1) -> int:
    """A whole number not below `low`. ValueError else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ValueError(f"[{layer}] {name} is a whole number not below {low}; got {value!r}")
    return value


def numbers(value: Any, n: int, name: str, layer: str, low: int = 1) -> tuple[int, ...]:
    """n whole numbers, or one for all. ValueError else."""
    values = (value,) * n if isinstance(value, int) else tuple(value) if isinstance(value, list | tuple) else ()
    if len(values) != n:
        raise ValueError(f"[{layer}] {name} is a whole number or {n} of them; got {value!r}")
    return tuple(whole(v, name, layer, low) for v in values)


def choice(value: Any, allowed: Sequence[str], name: str, layer: str) -> str:
    """One of `allowed`, in lower case. ValueError else."""
    if not isinstance(value, str) or value.lower() not in allowed:
        raise ValueError(f"[{layer}] {name} is one of {', '.join(allowed)}; got {value!r}")
    return value.lower()


def checked_format(value: Any, layer: str) -> str:
    """channels_last (None means it) or channels_first."""
    return choice("channels_last" if value is None else value, ("channels_last", "channels_first"), "data_format", layer)


def to_first(x: Tensor, format: str) -> Tensor:
    """[N, ..., C] as [N, C, ...]."""
    return x if format == "channels_first" else x.permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def from_first(x: Tensor, format: str) -> Tensor:
    """[N, C, ...] in the layer's format."""
    return x if format == "channels_first" else x.permute(0, *range(2, x.ndim), 1)


def sizes_of(shape: Sequence, format: str) -> tuple[tuple, Any]:
    """(the sizes between, the channels) of [N, ..., C] or [N, C, ...]."""
    shape = tuple(shape)
    return (shape[1:-1], shape[-1]) if format == "channels_last" else (shape[2:], shape[1])


def joined(batch: Any, sizes: Sequence, channels: Any, format: str) -> tuple:
    """The shape of sizes_of's parts."""
    return (batch, *sizes, channels) if format == "channels_last" else (batch, channels, *sizes)


def axis_in(axis: int, shape: Sequence, layer: str) -> int:
    """An axis counted from the front. ValueError where the shape has none such."""
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise ValueError(f"[{layer}] axis {axis!r} is out of bounds for shape {tuple(shape)}")
    return axis % len(shape)


def known(size: Any, axis: Any, shape: Sequence, layer: str) -> int:
    """A size that weights are made from. ValueError where it is not known."""
    if size is None:
        raise ValueError(f"[{layer}] axis {axis} must have a known size to build weights; got shape {tuple(shape)}")
    return size
