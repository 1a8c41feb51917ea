"""The rows of keras_layer_rows.py called, and what Keras found for them: what both tests of Keras' layers use."""

import json
from pathlib import Path

import numpy as np
from helpers import assert_close
from keras_layer_rows import inputs, masks, values, weight

import autograd as ag
from autograd.keras import layers

GOLDEN = np.load(Path(__file__).parent / "golden/keras3_layers.npz")
INDEX = json.loads(str(GOLDEN["index"]))["rows"]


def made(layer, config, dtype="float64"):
    """The layer, and those it wraps."""
    config = {k: made(*v[0], dtype) if isinstance(v, list) and isinstance(v[0], tuple) else v for k, v in config.items()}
    return getattr(layers, layer)(**config, dtype=dtype)


def golden(key):
    """{part: array} of a row."""
    parts, at = {}, 0
    for name, shape in INDEX[key]["parts"].items():
        size = int(np.prod(shape))
        parts[name] = GOLDEN[key][at : at + size].reshape(shape)
        at += size
    assert at == len(GOLDEN[key])
    return parts


class Called:
    """A row's layer, built, with the row's weights; inputs with gradients and masks; the outputs as a list."""

    def __init__(self, row, layer=None, dtype="float64", device="cpu"):
        self.layer = made(row.layer, row.config, dtype) if layer is None else layer
        self.inputs = [
            ag.tensor(x, dtype=dtype if x.dtype.kind == "f" else None, device=device, requires_grad=x.dtype.kind == "f")
            for x in inputs(row)
        ]
        for x, keep in zip(self.inputs, masks(row)):
            if keep is not None:
                x._keras_mask = ag.tensor(keep, device=device)
        with ag.no_grad():
            self.call(row)  # builds
        self.layer.set_weights([weight(n, w.shape, k) for k, (n, w) in enumerate(names(self.layer))])
        found = self.call(row)
        self.outputs = list(found) if isinstance(found, (tuple, list)) else [found]

    def call(self, row):
        return self.layer(self.inputs, **row.call) if row.listed else self.layer(*self.inputs, **row.call)

    def parts(self, row):
        """What golden() holds, computed here."""
        total = sum((y * like(values(y.shape, 20 + i), y)).sum() for i, y in enumerate(self.outputs))
        total = total + sum(self.layer.losses)
        total.backward()
        parts = {f"y{i}": y for i, y in enumerate(self.outputs)}
        parts |= {f"dx{i}": grad(x) for i, x in enumerate(self.inputs) if x.requires_grad}
        parts |= {f"dw{k}": grad(w) for k, (_, w) in enumerate(names(self.layer)) if w.requires_grad}
        parts |= {f"after_{n}": w for n, w in names(self.layer) if n in row.checked}
        mask = getattr(self.outputs[0], "_keras_mask", None)
        return parts if mask is None else {**parts, "mask": mask}


def names(layer):
    """(name, weight) in the order of get_weights."""
    known = {id(p): name.rpartition(".")[2] for name, p in layer.named_parameters()}
    return [(known[id(w)], w) for w in layer.weights]


def grad(x):
    return ag.zeros_like(x) if x.grad is None else x.grad


def like(numbers, x):
    return ag.tensor(numbers, dtype=x.dtype, device=x.device)


def compare(key, got, tolerance):
    want = golden(key)
    assert list(got) == list(want)
    for name in want:
        assert_close(got[name], want[name], tolerance * max(1.0, float(np.abs(want[name]).max(initial=0))), f"{key} {name}")
