"""What all metrics share: their state, and the average, sum and wrapped function that most of them are. Keras 3's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import create, dtypes
from ..tensor import Tensor
from . import naming
from .reductions import as_weight, divide_no_nan, mask_of, same_rank, with_mask
from .room import take

_names: dict[str, int] = {}


def _numbered(name: str) -> str:
    """The name for the first metric of its kind, then name_1, name_2, …"""
    _names[name] = _names.get(name, -1) + 1
    return f"{name}_{_names[name]}" if _names[name] else name


def reset_names() -> None:
    """Start the numbering of metric names anew."""
    _names.clear()


def _function_name(fn: Callable) -> Any:
    """A function by its name, which metrics.deserialize looks up."""
    return getattr(fn, "__name__", fn)


class State:
    """A number or array that a metric keeps between batches, where its values are: assign(), assign_add(), .value, numpy().

    Arithmetic with it is arithmetic with its value.
    """

    def __init__(self, initial: np.ndarray, name: str):
        self.initial, self.name = initial, name
        self.reset()

    def reset(self) -> None:
        """The initial value again."""
        self._value: Tensor | None = None

    @property
    def value(self) -> Tensor:
        """The present value."""
        return create.as_tensor(self.initial) if self._value is None else self._value

    @property
    def shape(self) -> tuple:
        """The value's shape."""
        return self.value.shape

    def assign(self, value: Any) -> None:
        """Replace the value."""
        value = value.value if isinstance(value, State) else value
        self._value = value.detach() if isinstance(value, Tensor) else create.as_tensor(np.asarray(value, self.initial.dtype))

    def assign_add(self, value: Any) -> None:
        """Add to the value, which goes to the device and dtype of the first tensor that comes."""
        now = self._value
        if now is None:
            now = as_weight(self.initial, value) if isinstance(value, Tensor) else create.as_tensor(self.initial)
        self.assign(now + value)

    def numpy(self) -> np.ndarray:
        """The value as an array."""
        return self.value.detach().cpu().numpy()

    def __add__(self, other: Any) -> Tensor:
        return self.value + other

    def __sub__(self, other: Any) -> Tensor:
        return self.value - other

    def __mul__(self, other: Any) -> Tensor:
        return self.value * other

    def __truediv__(self, other: Any) -> Tensor:
        return self.value / (other.value if isinstance(other, State) else other)

    __radd__, __rmul__ = __add__, __mul__


def wide(x: Tensor) -> Tensor:
    """x in a dtype in which one can count and add up: float32 for 16-bit floats."""
    return x.to(dtypes.float32) if x.dtype in dtypes.SHORT else x


class Metric:
    """Base of metrics: update_state(…) takes a batch in, result() gives the value so far, reset_state() starts anew.

    A subclass makes its state with add_variable(). Calling it is update_state and result.
    """

    def __init__(self, dtype: Any = None, name: str | None = None):
        self.name = name or _numbered(naming.snake_case(type(self).__name__))
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._states: list[State] = []

    def add_variable(self, shape: tuple = (), initializer: Any = "zeros", dtype: Any = None, name: str | None = None) -> State:
        """State to keep between batches: zeros, ones or what initializer(shape) gives."""
        kind = (dtypes.as_dtype(dtype) if dtype is not None else self.dtype or dtypes.get_default_dtype()).numpy
        take(shape, f"state of metric {self.name}")
        if initializer in ("zeros", "ones"):
            start = np.full(shape, initializer == "ones", kind)
        elif callable(initializer):
            start = np.asarray(initializer(shape), kind)
        else:
            raise ValueError(f"[add_variable] initializer is zeros, ones or a function of a shape; got {initializer!r}")
        self._states.append(State(start, name or f"variable_{len(self._states)}"))
        return self._states[-1]

    add_weight = add_variable

    @property
    def variables(self) -> list[State]:
        """The states."""
        return list(self._states)

    def reset_state(self) -> None:
        """Forget all batches."""
        for state in self._states:
            state.reset()

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take a batch in."""
        raise NotImplementedError(f"[{type(self).__name__}] has no update_state()")

    def result(self) -> Any:
        """The value so far: a Tensor, or a dict of them."""
        raise NotImplementedError(f"[{type(self).__name__}] has no result()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict:
        """What from_config makes an equal metric of."""
        return {"name": self.name, "dtype": None if self.dtype is None else self.dtype.name}

    @classmethod
    def from_config(cls, config: dict) -> Metric:
        """The metric that get_config() describes."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _samples(values: Any, weight: Any, dtype: Any, how: str) -> tuple[Tensor, Tensor | None]:
    """One value a sample ("sum" or "mean" over the other axes), times its weight; and the weights."""
    mask = mask_of(values)
    values = values if isinstance(values, Tensor) else create.as_tensor(np.asarray(values))
    wanted = dtype or (wide(values).dtype if values.dtype.is_floating_point else dtypes.get_default_dtype())
    values = values.to(wanted)
    if weight is not None:
        weight = with_mask(as_weight(weight, values), mask, values, False)
        values, weight = same_rank(values, weight)
        if values.ndim > weight.ndim:
            values = getattr(values, how)(tuple(range(weight.ndim, values.ndim)))
        weight = weight.expand(values.shape)
        values = values * weight
        if weight.ndim > 1:
            weight = getattr(weight, how)(tuple(range(1, weight.ndim)))
    if values.ndim > 1:
        values = getattr(values, how)(tuple(range(1, values.ndim)))
    return values, weight


class Sum(Metric):
    """The sum of all values, times their weights."""

    def __init__(self, name: str = "sum", dtype: Any = None):
        super().__init__(dtype, name)
        self.total = self.add_variable(name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Add a batch's values."""
        self.total.assign_add(_samples(values, sample_weight, self.dtype, "sum")[0].sum())

    def result(self) -> Tensor:
        """The sum."""
        return self.total.value


class Mean(Metric):
    """sum(weights values) / sum(weights), 0 before the first; the other axes of each sample are averaged."""

    def __init__(self, name: str = "mean", dtype: Any = None):
        super().__init__(dtype, name)
        self.total = self.add_variable(name="total")
        self.count = self.add_variable(name="count")
        self._unweighted = 0.0  # weights that are plain numbers are added up here, so that a GPU needs no kernel for them

    def update_state(self, values: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Add a batch's values. sample_weight: one for all, one a sample, or one a value."""
        if isinstance(sample_weight, int | float) or sample_weight is None:
            values, _ = _samples(values, None, self.dtype, "mean")
            weight = 1 if sample_weight is None else sample_weight
            self.total.assign_add(values.detach().sum() if weight == 1 else values.detach().sum() * weight)
            self._unweighted += weight * (values.shape[0] if values.ndim else 1)
            return
        values, weights = _samples(values, sample_weight, self.dtype, "mean")
        self.total.assign_add(values.detach().sum())
        self.count.assign_add(weights.sum() if weights is not None else float(values.shape[0]))

    def reset_state(self) -> None:
        """Forget all batches."""
        super().reset_state()
        self._unweighted = 0.0

    def result(self) -> Tensor:
        """The average."""
        total = self.total.value
        if self.count._value is None:
            return total / self._unweighted if self._unweighted else total
        return divide_no_nan(total, self.count.value + self._unweighted)


class MeanMetricWrapper(Mean):
    """The average of fn(y_true, y_pred, **options) over samples."""

    def __init__(self, fn: Callable, name: str | None = None, dtype: Any = None, **options: Any):
        super().__init__(name or str(getattr(fn, "__name__", "mean")), dtype)
        self.fn, self.options = fn, options

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Take a batch in; places that a mask on y_pred leaves out do not count."""
        values = self.fn(y_true, y_pred, **self.options)
        mask = mask_of(y_pred)
        if mask is not None:
            weight = None if sample_weight is None else as_weight(sample_weight, values)
            sample_weight = with_mask(weight, mask, values, False)
        super().update_state(values, sample_weight)

    def get_config(self) -> dict:
        """The function by name, and its options."""
        return {**super().get_config(), "fn": _function_name(self.fn), **self.options}

    @classmethod
    def from_config(cls, config: dict) -> Any:
        """The metric that get_config() describes. ValueError for a function that nobody knows."""
        from . import losses, metrics  # they build on this module

        kind: Any = cls
        if isinstance(config.get("fn"), str):
            config = {**config, "fn": naming.lookup(config["fn"], {**losses.TABLE, **metrics.FUNCTIONS}, "metric")}
        return kind(**config)


