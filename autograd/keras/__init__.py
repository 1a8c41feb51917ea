"""Keras: models in three lines, on the same layers and the same tape. Keras 3's names, defaults and numbers.

>>> from autograd import keras
>>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3, "softmax")])
>>> model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
>>> history = model.fit(x, y, epochs=10, validation_split=0.2)  # doctest: +SKIP
"""

from . import (
    activations,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
    utils,
)
from .graph import Input, InputLayer
from .layer import InputSpec, Layer
from .losses import Loss
from .metrics_base import Metric
from .model import Model
from .optimizer_base import Optimizer
from .saving import clone_model, load_model, model_from_json, register_keras_serializable
from .sequential import Sequential

layers.Input, layers.InputLayer, layers.Layer, layers.InputSpec = Input, InputLayer, Layer, InputSpec  # type: ignore[attr-defined]

__all__ = [
    "Input", "InputLayer", "InputSpec", "Layer", "Loss", "Metric", "Model", "Optimizer", "Sequential", "activations",
    "callbacks", "clone_model", "constraints", "initializers", "layers", "load_model", "losses", "metrics", "model_from_json",
    "models", "optimizers", "register_keras_serializable", "regularizers", "utils",
]  # fmt: skip
