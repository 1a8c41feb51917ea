"""Normalisations. Each takes off a mean, divides by a deviation, then scales by gamma and shifts by beta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...grad_mode import no_grad
from ...nn import functional as F
from ...ops.select import where
from ...tensor import Tensor
from ..layer import InputSpec
from .base import Elementwise, axis_in, known, whole


class _Affine(Elementwise):
    """What has an axis, a gamma (with `scale`) and a beta (with `center`)."""

    def add_affine(self, shape: Sequence[int]) -> None:
        """gamma and beta, where wanted."""
        self.gamma = self.beta = None
        if self.scale:
            self.own_weight("gamma", shape)
        if self.center:
            self.own_weight("beta", shape)

    def affine(self, y: Tensor, shape: Sequence[int]) -> Tensor:
        """y gamma + beta, both in a shape that broadcasts to y."""
        y = y if self.gamma is None else y * self.gamma.reshape(*shape)
        return y if self.beta is None else y + self.beta.reshape(*shape)

    def axes(self, shape: Sequence) -> list[int]:
        """self.axis as a list, counted from the front."""
        given = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        return sorted(axis_in(axis, shape, type(self).__name__) for axis in given)

    def compute_output_shape(self, input_shape: Any) -> tuple:
        """The input's. ValueError for an axis that it has not."""
        self.axes(input_shape)
        return tuple(input_shape)


def _list_of_axes(axis: Any, layer: str) -> Any:
    if isinstance(axis, int):
        return axis
    if not isinstance(axis, list | tuple) or not all(isinstance(a, int) for a in axis):
        raise TypeError(f"[{layer}] axis is a whole number or a list of them; got {axis!r}")
    return list(axis)


def _wide(x: Tensor) -> Tensor:
    """16-bit floats are normalised in float32: squares would overflow."""
    return x.float() if x.dtype in dtypes.SHORT else x


class BatchNormalization(_Affine):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta for each channel along `axis`.

    In training mean and (biased) variance are those of the batch, of the elements that the mask leaves, and
    moving <- moving * momentum + batch * (1 - momentum); else the moving ones are used. A layer with trainable=False is
    in inference mode always, as in Keras. Weights: gamma, beta, moving_mean, moving_variance (Ioffe and Szegedy 2015).

    The statistics are those of what one call sees: of the shard, where a batch is split over several devices.
    """

    missing = {"synchronized": False, "renorm": False, "renorm_clipping": None, "renorm_momentum": 0.99}

    def __init__(self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", moving_mean_initializer: Any = "zeros",
                 moving_variance_initializer: Any = "ones", beta_regularizer: Any = None, gamma_regularizer: Any = None,
                 beta_constraint: Any = None, gamma_constraint: Any = None, **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """gamma, beta and the moving statistics."""
        (axis,) = self.axes(input_shape)
        shape = (known(input_shape[axis], axis, input_shape, "BatchNormalization"),)
        self.add_affine(shape)
        self.own_weight("moving_mean", shape, trainable=False)
        self.own_weight("moving_variance", shape, trainable=False)
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: shape[0]})

    def call(self, inputs: Tensor, training: bool = False, mask: Tensor | None = None) -> Tensor:
        """See the class; the mask has one dimension less than x."""
        x = _wide(inputs)
        (axis,) = self.axes(x.shape)
        shape = [1] * x.ndim
        shape[axis] = x.shape[axis]
        if mask is not None and mask.ndim != x.ndim - 1:
            raise ValueError(f"[{self.name}] the mask has one dimension less than the input; got {mask.shape} for {x.shape}")
        if training and self.trainable and x.numel():  # an empty batch has no statistics
            mean, centred, variance = _moments(x, [i for i in range(x.ndim) if i != axis], mask)
            self._move(mean, variance)
        else:
            mean, variance = (_wide(w).reshape(*shape) for w in (self.moving_mean, self.moving_variance))
            centred = x - mean
        scale = (variance + self.epsilon).rsqrt()
        scale = scale if self.gamma is None else scale * self.gamma.reshape(*shape)  # small: one product less over x
        y = centred * scale
        return (y if self.beta is None else y + self.beta.reshape(*shape)).to(inputs.dtype)

    def _move(self, mean: Tensor, variance: Tensor) -> None:
        with no_grad():
            for moving, batch in ((self.moving_mean, mean), (self.moving_variance, variance)):
                step = batch.detach().reshape(-1).to(moving.dtype) * (1 - self.momentum)
                moving.mul_(self.momentum).add_(step)


def _moments(x: Tensor, axes: list[int], mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(mean, x - mean, biased variance) over axes, which stay with size 1; of the elements that the mask leaves."""
    over = tuple(axes)
    if mask is None:
        mean = x.mean(over, keepdim=True)
        centred = x - mean
        return mean, centred, (centred * centred).mean(over, keepdim=True)
    seen = mask.to(dtypes.bool_).unsqueeze(-1).expand(*x.shape)
    count = seen.to(x.dtype).sum(over, keepdim=True) + 1e-7  # Keras' epsilon: no division by 0
    mean = where(seen, x, 0.0).sum(over, keepdim=True) / count
    centred = x - mean
    inside = where(seen, centred, 0.0)
    return mean, centred, (inside * inside).sum(over, keepdim=True) / count


class LayerNormalization(_Affine):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over the axes of each sample (Ba et al. 2016).

    gamma and beta have the sizes of these axes.
    """

    missing = {"rms_scaling": False}

    def __init__(self, axis: int | Sequence[int] = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", beta_regularizer: Any = None,
                 gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None,
                 **kwargs: Any):  # fmt: skip
        axis = _list_of_axes(axis, "LayerNormalization")
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """gamma and beta."""
        axes = self.axes(input_shape)
        self.add_affine([known(input_shape[axis], axis, input_shape, "LayerNormalization") for axis in axes])

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        x = _wide(inputs)
        axes = self.axes(x.shape)
        _, centred, variance = _moments(x, axes)
        shape = [n if axis in axes else 1 for axis, n in enumerate(x.shape)]
        return self.affine(centred * (variance + self.epsilon).rsqrt(), shape).to(inputs.dtype)


class GroupNormalization(_Affine):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over groups of channels of each sample.

    groups: how many; -1: one a channel. gamma and beta have one number a channel (Wu and He 2018).
    """

    def __init__(self, groups: int = 32, axis: int = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", beta_regularizer: Any = None,
                 gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(locals(), **kwargs)
        if groups != -1:
            whole(groups, "groups", "GroupNormalization")

    def _groups(self, channels: int) -> int:
        return channels if self.groups == -1 else self.groups

    def build(self, input_shape: Any) -> None:
        """gamma and beta."""
        (axis,) = self.axes(input_shape)
        channels = known(input_shape[axis], axis, input_shape, "GroupNormalization")
        if channels % self._groups(channels):
            raise ValueError(f"[GroupNormalization] {channels} channels do not divide into {self.groups} groups")
        self.add_affine((channels,))
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: channels})

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        (axis,) = self.axes(inputs.shape)
        order = [0, axis, *(i for i in range(1, inputs.ndim) if i != axis)]
        back = sorted(range(inputs.ndim), key=order.__getitem__)
        y = F.group_norm(inputs.permute(*order), self._groups(inputs.shape[axis]), self.gamma, self.beta, self.epsilon)
        return y.permute(*back)


class RMSNormalization(_Affine):
    """y = x / sqrt(mean(x^2) + epsilon) * scale over the axes of each sample (Zhang and Sennrich 2019)."""

    def __init__(self, axis: int | Sequence[int] = -1, epsilon: float = 1e-6, **kwargs: Any):
        axis = _list_of_axes(axis, "RMSNormalization")
        super().__init__(locals(), **kwargs)

    def build(self, input_shape: Any) -> None:
        """scale, of the sizes of the axes."""
        sizes = [known(input_shape[axis], axis, input_shape, "RMSNormalization") for axis in self.axes(input_shape)]
        self.add_weight(name="scale", shape=tuple(sizes), initializer="ones")

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        x = _wide(inputs)
        axes = self.axes(x.shape)
        shape = [n if axis in axes else 1 for axis, n in enumerate(x.shape)]
        y = x * ((x * x).mean(tuple(axes), keepdim=True) + self.epsilon).rsqrt()
        return (y * self.scale.reshape(*shape)).to(inputs.dtype)


class UnitNormalization(_Affine):
    """y = x / max(sqrt(sum(x^2)), 1e-12) over the axes of each sample."""

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Any):
        axis = _list_of_axes(axis, "UnitNormalization")
        super().__init__(locals(), **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return unit(inputs, self.axes(inputs.shape))


def unit(x: Tensor, axes: Sequence[int]) -> Tensor:
    """x with norm 1 over axes."""
    square = (x * x).sum(tuple(axes), keepdim=True)
    return x * square.clamp(min=1e-12**2).rsqrt()
