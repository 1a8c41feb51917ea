"""keras.models: the names that Keras keeps there."""

from .model import Model
from .saving import clone_model, load_model, model_from_json, save_model
from .sequential import Sequential

__all__ = ["Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]
