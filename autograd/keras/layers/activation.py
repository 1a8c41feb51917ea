"""Activations as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...nn import functional as F
from ...ops.select import where
from ...tensor import Tensor
from .. import activations
from ..layer import InputSpec
from .base import Elementwise


def _not_negative(value: Any, name: str, layer: str) -> None:
    if value is None or value < 0:
        raise ValueError(f"[{layer}] {name} must not be negative; got {value!r}")


class Activation(Elementwise):
    """y = activation(x), by name or as a function."""

    def __init__(self, activation: Any, **kwargs: Any):
        super().__init__(locals(), **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """activation(x)."""
        return self.activation(inputs)


class ReLU(Elementwise):
    """y = max_value where x >= max_value, x where x >= threshold, else negative_slope (x - threshold)."""

    def __init__(self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        _not_negative(0 if max_value is None else max_value, "max_value", "ReLU")
        _not_negative(negative_slope, "negative_slope", "ReLU")
        _not_negative(threshold, "threshold", "ReLU")

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Elementwise):
    """y = x where x > 0, else negative_slope x."""

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any):
        super().__init__(locals(), **kwargs)
        _not_negative(negative_slope, "negative_slope", "LeakyReLU")

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return F.leaky_relu(inputs, self.negative_slope)


class PReLU(Elementwise):
    """y = x where x > 0, else alpha x; alpha has the shape of one sample, with 1 along shared_axes."""

    def __init__(self, alpha_initializer: Any = "zeros", alpha_regularizer: Any = None, alpha_constraint: Any = None,
                 shared_axes: int | Sequence[int] | None = None, **kwargs: Any):  # fmt: skip
        shared_axes = [shared_axes] if isinstance(shared_axes, int) else None if shared_axes is None else list(shared_axes)
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """alpha."""
        shared = self.shared_axes or []
        if any(not 1 <= axis < len(input_shape) for axis in shared):
            raise ValueError(f"[PReLU] shared_axes are among 1 … {len(input_shape) - 1}; got {shared}")
        shape = [1 if axis in shared else size for axis, size in enumerate(input_shape)][1:]
        if None in shape:
            raise ValueError(f"[PReLU] sizes that are not shared must be known; got {tuple(input_shape)}")
        self.own_weight("alpha", shape)
        axes = {axis: size for axis, size in enumerate(input_shape) if axis and axis not in shared}
        self.input_spec = InputSpec(ndim=len(input_shape), axes=axes)

    def call(self, inputs: Tensor) -> Tensor:
        """max(x, 0) - alpha max(-x, 0): the gradient at 0 is 0."""
        return inputs.relu() - self.alpha * (-inputs).relu()


class ELU(Elementwise):
    """y = x where x > 0, else alpha (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any):
        super().__init__(locals(), **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return F.elu(inputs, self.alpha)


class Softmax(Elementwise):
    """y = exp(x) / sum(exp(x)) along an axis, or over several; what a mask leaves out is 0, also where it leaves nothing."""

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Any):
        axis = axis if isinstance(axis, int) else list(axis)
        super().__init__(locals(), **kwargs)

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """See the class; the mask broadcasts to x."""
        x = inputs
        if mask is not None:
            mask = mask if mask.dtype is dtypes.bool_ else mask > 0.5
            x = where(mask, x, -3e4 if x.dtype is dtypes.float16 else -1e9)
        if isinstance(self.axis, int):
            y = x.softmax(self.axis)
        else:
            y = (x - x.logsumexp(tuple(self.axis), keepdim=True)).exp()
        return y if mask is None else where(mask, y, 0.0)
