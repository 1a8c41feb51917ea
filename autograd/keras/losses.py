"""Losses by Keras' names: functions give a value a sample (losses_functions.py has the formulas), classes reduce them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..tensor import Tensor
from . import naming
from .losses_functions import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    categorical_hinge,
    circle,
    cosine_similarity,
    ctc,
    dice,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
    tensor_like,
    tversky,
)  # fmt: skip
from .reductions import REDUCTIONS, joined_mask, mask_of, reduce_weighted, same_rank


class Loss:
    """Base of losses: a subclass writes call(y_true, y_pred), which gives a value a sample; calling reduces them.

    reduction: "sum_over_batch_size" or "mean" (the sum over the number of values), "sum", "mean_with_sample_weight" (over
    the sum of the weights), "none" or None. A mask on y_pred leaves places out. dtype: that of y_pred unless given.
    """

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: Any = None):
        if reduction not in REDUCTIONS:
            raise ValueError(f"[{type(self).__name__}] reduction is one of {list(REDUCTIONS)}; got {reduction!r}")
        self.name = name or naming.snake_case(type(self).__name__)
        self.reduction = reduction
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        mask = mask_of(y_pred)
        y_pred = tensor_like(y_pred) if not isinstance(y_pred, list | tuple | dict) else y_pred
        if self.dtype is not None and isinstance(y_pred, Tensor):
            y_pred = y_pred.to(self.dtype)
        values = tensor_like(self.call(y_true, y_pred))
        return reduce_weighted(values, sample_weight, joined_mask(mask, mask_of(values)), self.reduction)

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """The loss of each sample."""
        raise NotImplementedError(f"[{type(self).__name__}] has no call()")

    def get_config(self) -> dict:
        """What from_config makes an equal loss of."""
        return {"name": self.name, "reduction": self.reduction, **({} if self.dtype is None else {"dtype": self.dtype.name})}

    @classmethod
    def from_config(cls, config: dict) -> Loss:
        """The loss that get_config() describes."""
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A loss made of a function fn(y_true, y_pred, **options)."""

    def __init__(self, fn: Callable, reduction: str | None = "sum_over_batch_size", name: str | None = None,
                 dtype: Any = None, **options: Any):  # fmt: skip
        super().__init__(name or getattr(fn, "__name__", "loss"), reduction, dtype)
        self.fn, self.options = fn, options

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """fn(y_true, y_pred) in as many dimensions."""
        if isinstance(y_pred, Tensor):
            y_true, y_pred = same_rank(tensor_like(y_true).to(y_pred.device), y_pred)
        return self.fn(y_true, y_pred, **self.options)

    def get_config(self) -> dict:
        """The function by name, and its options."""
        return {**super().get_config(), "fn": serialize(self.fn), **self.options}

    @classmethod
    def from_config(cls, config: dict) -> Any:
        """The loss that get_config() describes."""
        kind: Any = cls
        return kind(**{**config, "fn": get(config["fn"])} if "fn" in config else config)


def _class(title: str, fn: Callable, name: str | None = None) -> type[LossFunctionWrapper]:
    """A class for a function: its options first, then reduction, name and dtype."""
    own = [p for p in inspect.signature(fn).parameters.values() if p.default is not p.empty]
    common = {"reduction": "sum_over_batch_size", "name": name or fn.__name__, "dtype": None}
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(own + [inspect.Parameter(k, keyword, default=v) for k, v in common.items()])

    def __init__(self: LossFunctionWrapper, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"[{title}] {error}; it takes {', '.join(signature.parameters)}") from None
        bound.apply_defaults()
        LossFunctionWrapper.__init__(self, fn, **bound.arguments)

    def get_config(self: LossFunctionWrapper) -> dict:
        return {**Loss.get_config(self), **self.options}

    doc = f"{fn.__doc__}\n\n    A class: takes {signature}, and is called with (y_true, y_pred, sample_weight=None)."
    body = {"__init__": __init__, "get_config": get_config, "__doc__": doc, "__module__": __name__, "__signature__": signature}
    return type(title, (LossFunctionWrapper,), body)


MeanSquaredError = _class("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _class("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _class("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _class("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
Huber = _class("Huber", huber, "huber_loss")
LogCosh = _class("LogCosh", log_cosh)
CosineSimilarity = _class("CosineSimilarity", cosine_similarity)
Poisson = _class("Poisson", poisson)
KLDivergence = _class("KLDivergence", kl_divergence)
Hinge = _class("Hinge", hinge)
SquaredHinge = _class("SquaredHinge", squared_hinge)
CategoricalHinge = _class("CategoricalHinge", categorical_hinge)
BinaryCrossentropy = _class("BinaryCrossentropy", binary_crossentropy)
BinaryFocalCrossentropy = _class("BinaryFocalCrossentropy", binary_focal_crossentropy)
CategoricalCrossentropy = _class("CategoricalCrossentropy", categorical_crossentropy)
CategoricalFocalCrossentropy = _class("CategoricalFocalCrossentropy", categorical_focal_crossentropy)
SparseCategoricalCrossentropy = _class("SparseCategoricalCrossentropy", sparse_categorical_crossentropy)
CategoricalGeneralizedCrossEntropy = _class("CategoricalGeneralizedCrossEntropy", categorical_generalized_cross_entropy)
Dice = _class("Dice", dice)
Tversky = _class("Tversky", tversky)
CTC = _class("CTC", ctc)
Circle = _class("Circle", circle)

_FUNCTIONS = (
    mean_squared_error, mean_absolute_error, mean_absolute_percentage_error, mean_squared_logarithmic_error, huber, log_cosh,
    cosine_similarity, poisson, kl_divergence, hinge, squared_hinge, categorical_hinge, binary_crossentropy,
    binary_focal_crossentropy, categorical_crossentropy, categorical_focal_crossentropy, sparse_categorical_crossentropy,
    categorical_generalized_cross_entropy, dice, tversky, ctc, circle,
)  # fmt: skip
_CLASSES = (
    MeanSquaredError, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredLogarithmicError, Huber, LogCosh,
    CosineSimilarity, Poisson, KLDivergence, Hinge, SquaredHinge, CategoricalHinge, BinaryCrossentropy,
    BinaryFocalCrossentropy, CategoricalCrossentropy, CategoricalFocalCrossentropy, SparseCategoricalCrossentropy,
    CategoricalGeneralizedCrossEntropy, Dice, Tversky, CTC, Circle, LossFunctionWrapper,
)  # fmt: skip
_SHORT = {
    "mse": mean_squared_error, "mae": mean_absolute_error, "mape": mean_absolute_percentage_error,
    "msle": mean_squared_logarithmic_error, "bce": binary_crossentropy, "kld": kl_divergence,
}  # fmt: skip
CLASSES: dict[str, Any] = {c.__name__: c for c in _CLASSES}
TABLE: dict[str, Any] = {f.__name__: f for f in _FUNCTIONS} | _SHORT | {k.upper(): f for k, f in _SHORT.items()}
mse, mae, mape, msle, bce, kld = (_SHORT[k] for k in ("mse", "mae", "mape", "msle", "bce", "kld"))


def get(identifier: Any) -> Any:
    """The function of a name ("mse"), the loss of a config, or what is one; None gives None. ValueError: unknown."""
    if isinstance(identifier, str) and identifier in CLASSES:
        return CLASSES[identifier]()
    if isinstance(identifier, dict):
        return deserialize(identifier)
    return naming.get(identifier, TABLE, "loss")


def serialize(loss: Any) -> Any:
    """Its name, or {"class_name", "config"} of an object."""
    return naming.serialize(loss, TABLE)


def deserialize(config: Any, custom_objects: dict | None = None) -> Any:
    """The loss of a name or a config."""
    table = TABLE if isinstance(config, str) else {**TABLE, **CLASSES}
    return naming.deserialize(config, table, "loss", custom_objects)
