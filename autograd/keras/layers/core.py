"""Dense, Embedding, Masking, Identity and Lambda."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import create, dtypes
from ...nn import functional as F
from ...ops.select import where
from ...tensor import Tensor
from ..layer import InputSpec
from .base import ArgumentsLayer, Elementwise, known, whole


class Dense(ArgumentsLayer):
    """y = activation(x @ kernel + bias): [..., d] -> [..., units], kernel [d, units], bias [units]."""

    supports_masking = True
    missing = {"lora_rank": None, "lora_alpha": None, "quantization_config": None}

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 bias_initializer: Any = "zeros", kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)
        whole(units, "units", "Dense")
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """kernel and bias."""
        width = known(input_shape[-1], -1, input_shape, "Dense")
        self.own_weight("kernel", (width, self.units))
        self.bias = None
        if self.use_bias:
            self.own_weight("bias", (self.units,))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: width})

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return self.activation(F.linear(inputs, self.kernel.mT, self.bias))

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """The last size becomes units."""
        return (*input_shape[:-1], self.units)


class Embedding(ArgumentsLayer):
    """y = embeddings[x]: whole numbers [...] below input_dim -> [..., output_dim], embeddings [input_dim, output_dim].

    Floating point inputs are cut to whole numbers. mask_zero: the mask is x != 0. IndexError for an index outside the table.
    """

    missing = {"lora_rank": None, "lora_alpha": None, "quantization_config": None, "input_length": None}

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform",
                 embeddings_regularizer: Any = None, embeddings_constraint: Any = None, mask_zero: bool = False,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)
        whole(input_dim, "input_dim", "Embedding")
        whole(output_dim, "output_dim", "Embedding")
        self.supports_masking = bool(mask_zero)

    def build(self, input_shape: Any) -> None:
        """embeddings."""
        self.own_weight("embeddings", (self.input_dim, self.output_dim))

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return F.embedding(_integers(inputs), self.embeddings)

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Tensor | None:
        """x != 0 with mask_zero, else None."""
        if not self.mask_zero:
            return None
        return _integers(inputs if isinstance(inputs, Tensor) else create.as_tensor(inputs).to(self.embeddings.device)) != 0

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """output_dim is added at the end."""
        return (*input_shape, self.output_dim)


def _integers(x: Tensor) -> Tensor:
    return x.to(dtypes.int64) if x.dtype.is_floating_point else x


class Identity(Elementwise):
    """y = x."""

    def __init__(self, **kwargs: Any):
        super().__init__(locals(), **kwargs)

    def call(self, inputs: Any) -> Any:
        """x as it is."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The input's."""
        return input_shape


class Masking(Elementwise):
    """Masks the steps of x [N, T, ..., d] whose d numbers all equal mask_value; there y is 0, elsewhere x."""

    def __init__(self, mask_value: float = 0.0, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        self.input_spec = InputSpec(min_ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        """x, masked steps as 0."""
        return where((inputs != self.mask_value).any(-1, keepdim=True), inputs, 0.0)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Tensor:
        """Where any number of the step is another than mask_value."""
        x = inputs if isinstance(inputs, Tensor) else create.as_tensor(inputs)
        return (x != self.mask_value).any(-1)


class Lambda(ArgumentsLayer):
    """y = function(x, **arguments). It has no weights.

    mask: what compute_mask gives, or a function of (inputs, mask). output_shape: the shape without the batch size, or a
    function of the input's shape; without it the shape is found by calling the function. The function is code, which no
    file holds: a config names it, and from_config looks the name up in custom_objects. ValueError for a name without one.
    """

    def __init__(self, function: Callable, output_shape: Any = None, mask: Any = None, arguments: Mapping | None = None,
                 **kwargs: Any):  # fmt: skip
        if not callable(function):
            raise TypeError(f"[Lambda] function must be callable; got {function!r}. Loading? Name it in custom_objects")
        super().__init__({**locals(), "arguments": dict(arguments or {})}, **kwargs)
        self.supports_masking = mask is not None

    def call(self, inputs: Any) -> Any:
        """See the class."""
        return self.function(inputs, **self.arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """mask, or what it gives."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """output_shape, or what it gives, or the shape of what the function gives."""
        if self.output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self.output_shape):
            return tuple(self.output_shape(input_shape))
        return (input_shape[0], *self.output_shape)

    def get_config(self) -> dict:
        """The arguments; the function by its name."""
        config = super().get_config()
        for name in ("function", "mask", "output_shape"):
            if callable(config[name]):
                config[name] = config[name].__name__
        return config

    @classmethod
    def from_config(cls, config: dict, custom_objects: Mapping | None = None) -> Lambda:
        """The layer of a config whose names custom_objects explains."""
        config, known_functions = dict(config), custom_objects or {}
        for name in ("function", "mask", "output_shape"):
            if isinstance(config.get(name), str):
                if config[name] not in known_functions:
                    raise ValueError(
                        f"[Lambda] {name} {config[name]!r} is code, which files do not hold; give it in custom_objects"
                    )
                config[name] = known_functions[config[name]]
        return cls(**config)
