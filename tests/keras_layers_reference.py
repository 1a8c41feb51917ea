"""Writes tests/golden/keras3_layers.npz with Keras itself. By hand, where Keras 3 and PyTorch are installed:

    KERAS_BACKEND=torch python tests/keras_layers_reference.py

Every row of keras_layer_rows.py is computed in float64. The file holds "index", a JSON text, and for each row one
vector: the outputs, the gradients of sum(y * dy) + the layer's losses with respect to inputs and trainable weights,
the weights that the call changed, and the first output's mask, one after the other in the order and the shapes that
the index gives. The index holds the configs too that Keras writes.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import torch
from keras.src.backend.common.dtypes import BIT64_TO_BIT32_DTYPE
from keras_layer_rows import ROWS, inputs, masks, values, weight

GOLDEN = Path(__file__).parent / "golden/keras3_layers.npz"


def made(layer, config):
    """The layer, and those it wraps, in float64."""
    config = {k: made(*v[0]) if isinstance(v, list) and isinstance(v[0], tuple) else v for k, v in config.items()}
    return getattr(keras.layers, layer)(**config, dtype="float64")


def average_same(layer, x):
    """The means of the elements within each window, as on TensorFlow and JAX: on PyTorch Keras 3.15 divides wrongly."""
    first = 1 if layer.data_format == "channels_last" else 2
    pads = [(0, 0)] * x.ndim
    for axis, (size, stride) in enumerate(zip(layer.pool_size, layer.strides), first):
        total = max((-(-x.shape[axis] // stride) - 1) * stride + size - x.shape[axis], 0)
        pads[axis] = (total // 2, total - total // 2)
    sums = (
        keras.ops.average_pool(keras.ops.pad(a, pads), layer.pool_size, layer.strides, "valid", layer.data_format)
        for a in (x, torch.ones_like(x))
    )
    return next(sums) / next(sums)


def computed(row):
    """({part: array}, the weights' names and shapes, the config that Keras writes)."""
    layer = made(row.layer, row.config)
    config = keras.saving.serialize_keras_object(layer)
    tensors = [torch.tensor(x, requires_grad=x.dtype == np.float64) for x in inputs(row)]

    def call():
        for x, keep in zip(tensors, masks(row)):  # anew every time: MultiHeadAttention takes them off
            keras.src.backend.set_keras_mask(x, None if keep is None else torch.tensor(keep))
        return layer(tensors, **row.call) if row.listed else layer(*tensors, **row.call)

    call()  # builds
    layer.set_weights([weight(w.name, w.shape, k) for k, w in enumerate(layer.weights)])
    results = call()
    if row.layer.startswith("AveragePooling") and row.config.get("padding") == "same":
        results = average_same(layer, *tensors)
    results = results if isinstance(results, (tuple, list)) else [results]
    assert all(y.dtype == torch.float64 for y in results), [y.dtype for y in results]
    loss = sum((y * torch.tensor(values(y.shape, 20 + i))).sum() for i, y in enumerate(results)) + sum(layer.losses)
    wanted = {f"dx{i}": x for i, x in enumerate(tensors) if x.requires_grad}
    wanted |= {f"dw{k}": w.value for k, w in enumerate(layer.weights) if w.trainable}
    found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    parts = {f"y{i}": y for i, y in enumerate(results)}
    parts |= {k: torch.zeros_like(wanted[k]) if g is None else g for k, g in zip(wanted, found)}
    parts |= {f"after_{w.name}": w.value for w in layer.weights if w.name in row.checked}
    keep = keras.src.backend.get_keras_mask(results[0])
    if keep is not None:
        parts["mask"] = keep
    return {k: v.detach().numpy() for k, v in parts.items()}, [(w.name, tuple(w.shape)) for w in layer.weights], config


def main():
    BIT64_TO_BIT32_DTYPE["float64"] = "float64"  # as on TensorFlow; elsewhere Keras rounds float64 to float32 here and there
    index, vectors = {}, {}
    for key, row in ROWS.items():
        try:
            parts, weights, config = computed(row)
        except Exception as e:
            raise RuntimeError(f"Keras cannot compute row {key}") from e
        index[key] = {"weights": weights, "parts": {name: part.shape for name, part in parts.items()}, "config": config}
        vectors[key] = np.concatenate([part.reshape(-1).astype(np.float64) for part in parts.values()])
    about = {"keras": keras.__version__, "backend": keras.backend.backend(), "rows": index}
    target = Path(sys.argv[1]) if sys.argv[1:] else GOLDEN
    np.savez_compressed(target, index=json.dumps(about), **vectors)
    print(f"{len(index)} rows, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
