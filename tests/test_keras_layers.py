"""Keras' layers give Keras' numbers: every row of keras_layer_rows.py against golden values that Keras itself computed.

keras_layers_reference.py says how.
"""

import itertools
import json

import numpy as np
import pytest
from helpers import assert_close
from keras_layer_calls import GOLDEN, INDEX, Called, compare, golden, made, names
from keras_layer_rows import ROWS, inputs, values

import autograd as ag
from autograd.keras import layers
from autograd.keras.saving import deserialize_layer, serialize_layer

# --- every row ---


def test_every_row_has_golden_values():
    assert set(INDEX) == set(ROWS) == set(GOLDEN.files) - {"index"}


@pytest.mark.parametrize("key", ROWS)
def test_values_gradients_weights_and_masks_are_keras(key):
    row = ROWS[key]
    called = Called(row)
    assert [[name, list(w.shape)] for name, w in names(called.layer)] == INDEX[key]["weights"]
    compare(key, called.parts(row), 1e-12)


def in_float32(key, device):
    row = ROWS[key]
    called = Called(row, dtype="float32", device=device)
    assert {y.dtype for y in called.outputs} == {ag.float32} and {y.device.type for y in called.outputs} == {device}
    compare(key, called.parts(row), 1e-5)


@pytest.mark.parametrize("key", ROWS)
def test_float32(key):
    in_float32(key, "cpu")


# On the GPU the first row of every layer, and what masks and padding add: each new shader costs time.
ON_GPU = sorted({row.layer: key for key, row in reversed(ROWS.items())}.values()) + [
    "conv1d_causal", "conv2d_same_strided", "average_pooling2d_same", "batch_normalization_mask", "multi_head_attention_mask",
    "global_average_pooling1d_mask", "multiply_mask", "concatenate_mask", "attention_mask", "softmax_mask",
]  # fmt: skip


@pytest.mark.parametrize("key", ON_GPU)
def test_float32_on_the_gpu(key, wgpu):
    in_float32(key, wgpu)


@pytest.mark.parametrize("key", ROWS)
def test_output_shapes_are_foreseen(key):
    row = ROWS[key]
    layer = made(row.layer, row.config)
    shapes = [tuple(x.shape) for x in inputs(row)]
    single = not row.listed and len(shapes) == 1
    open_shapes = [(None, *s[1:]) for s in shapes]
    found = layer.compute_output_shape(open_shapes[0] if single else open_shapes)
    shape = golden(key)["y0"].shape
    assert tuple(found) == (None, *shape[1:])
    assert tuple(layer.compute_output_shape(shapes[0] if single else shapes)) == shape


@pytest.mark.parametrize("key", ROWS)
def test_configs_go_through_json(key):
    row = ROWS[key]
    first = Called(row)
    config = json.loads(json.dumps(serialize_layer(first.layer)))
    twin = deserialize_layer(config)
    assert type(twin) is type(first.layer) and serialize_layer(twin) == serialize_layer(first.layer)
    with ag.no_grad():
        for y, again in zip(first.outputs, Called(row, twin).outputs):
            assert_close(again, y, 0, key)
    copies = twin.get_weights()
    assert all(np.array_equal(a, b) for a, b in zip(copies, first.layer.get_weights(), strict=True))


@pytest.mark.parametrize("key", ROWS)
def test_configs_that_keras_wrote_make_the_same_layer(key):
    """Same arguments, same defaults: what Keras has beyond ours is switched off in them."""
    written = INDEX[key]["config"]
    layer = deserialize_layer(written)
    own, theirs = made(ROWS[key].layer, ROWS[key].config).get_config(), dict(written["config"])
    assert layer.dtype is ag.float64 and layer.name == theirs["name"]
    for config in (own, theirs, got := layer.get_config()):
        for name in ("name", "layer", *type(layer).missing):
            config.pop(name, None)
    assert got == own and set(theirs) - {"activity_regularizer"} == set(own) - {"activity_regularizer"}
    for name, value in own.items():
        if not isinstance(theirs.get(name), dict):
            assert json.dumps(theirs.get(name)) == json.dumps(value), name
    x = Called(ROWS[key], layer)
    for i, y in enumerate(x.outputs):
        assert_close(y, golden(key)[f"y{i}"], 1e-11, key)


# Sizes that are not known stay so: the layer, its arguments, the input's shape, the output's.
UNKNOWN = [
    ("Dense", {"units": 3}, (None, None, 5), (None, None, 3)),
    ("Embedding", {"input_dim": 7, "output_dim": 3}, (None, None), (None, None, 3)),
    ("Conv1D", {"filters": 3, "kernel_size": 3}, (None, None, 4), (None, None, 3)),
    ("Conv1D", {"filters": 3, "kernel_size": 3, "padding": "same", "data_format": "channels_first"}, (2, 4, None), (2, 3, None)),
    ("Conv2D", {"filters": 3, "kernel_size": 3}, (None, None, 8, 4), (None, None, 6, 3)),
    ("Conv2DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2}, (None, None, 8, 4), (None, None, 17, 3)),
    ("DepthwiseConv2D", {"kernel_size": 3}, (None, None, 8, 4), (None, None, 6, 4)),
    ("MaxPooling1D", {}, (None, None, 4), (None, None, 4)),
    ("AveragePooling2D", {"padding": "same"}, (None, None, 5, 4), (None, None, 3, 4)),
    ("GlobalMaxPooling1D", {}, (None, None, 4), (None, 4)),
    ("Flatten", {}, (None, None, 4), (None, None)),
    ("Reshape", {"target_shape": (-1, 2)}, (None, None, 4), (None, None, 2)),
    ("Permute", {"dims": (2, 1)}, (None, None, 4), (None, 4, None)),
    ("ZeroPadding1D", {}, (None, None, 4), (None, None, 4)),
    ("Cropping2D", {"cropping": 1}, (None, None, 4, 4), (None, None, 2, 4)),
    ("UpSampling1D", {}, (None, None, 4), (None, None, 4)),
    ("UpSampling2D", {}, (None, None, 3, 4), (None, None, 6, 4)),
    ("Add", {}, [(None, None, 4), (None, 1, 4)], (None, None, 4)),
    ("Concatenate", {"axis": 1}, [(None, None, 4), (None, 3, 4)], (None, None, 4)),
    ("Concatenate", {}, [(None, None, 4), (None, 3, 5)], (None, 3, 9)),
    ("Dot", {"axes": 2}, [(None, None, 4), (None, 3, 4)], (None, None, 3)),
    ("TimeDistributed", {"layer": [("Dense", {"units": 3})]}, (None, None, 4), (None, None, 3)),
]


@pytest.mark.parametrize("layer, config, shape, expected", UNKNOWN, ids=[f"{r[0]}-{i}" for i, r in enumerate(UNKNOWN)])
def test_unknown_sizes(layer, config, shape, expected):
    assert tuple(made(layer, config).compute_output_shape(shape)) == expected


@pytest.mark.parametrize("key", ROWS)
def test_an_empty_batch(key):
    row = ROWS[key]
    called = Called(row)
    xs = [ag.zeros(0, *x.shape[1:], dtype=x.dtype) for x in called.inputs]
    y = called.layer(xs, **row.call) if row.listed else called.layer(*xs, **row.call)
    assert (y[0] if isinstance(y, tuple) else y).shape == (0, *called.outputs[0].shape[1:])
    assert all(np.isfinite(w).all() for w in called.layer.get_weights())


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_transposed_convolutions_are_transposes(padding):
    """sum(conv(x) * y) = sum(x * transpose(y)), with one kernel, for every small kernel, stride and dilation."""
    count = 0
    for kernel, stride, dilation, places in itertools.product(range(1, 6), range(1, 5), (1, 2), (1, 2, 5)):
        if stride > 1 and dilation > 1:
            continue
        options = {"kernel_size": kernel, "strides": stride, "dilation_rate": dilation, "padding": padding, "use_bias": False}
        there, back = layers.Conv1D(2, **options, dtype="float64"), layers.Conv1DTranspose(3, **options, dtype="float64")
        y = ag.tensor(values((2, places, 2), 1))
        z = back(y)
        x = ag.tensor(values(z.shape, 2))
        assert there(x).shape == y.shape, (kernel, stride, dilation, places)
        back.set_weights(there.get_weights())
        assert_close((there(x) * y).sum(), (x * back(y)).sum(), 1e-11, f"{kernel, stride, dilation, places}")
        count += 1
    assert count == 75


def test_unknown_arguments_are_refused():
    for key, row in ROWS.items():
        with pytest.raises(TypeError, match="'colour'"):
            made(row.layer, {**row.config, "colour": "blue"})
        assert made(row.layer, {**row.config, "name": "mine", "trainable": False}).get_config()["name"] == "mine", key


def test_a_subclass_keeps_the_arguments_of_its_layer():
    class Scaled(layers.Dense):
        def __init__(self, units, by, **kwargs):
            super().__init__(units, **kwargs)
            self.by = by

        def build(self, input_shape):
            super().build(input_shape)
            self.add_weight(name="weight", shape=(), initializer="ones")

        def call(self, inputs):
            return super().call(inputs) * self.weight * self.by

        def get_config(self):
            return {**super().get_config(), "by": self.by}

    layer = Scaled(3, 2.0, activation="relu")
    x = ag.tensor(values((2, 4), 0), dtype="float32")
    y = layer(x)
    twin = Scaled.from_config(json.loads(json.dumps(layer.get_config())))
    twin.build((None, 4))
    twin.set_weights(layer.get_weights())
    assert_close(twin(x), y, 0)
    assert [n for n, _ in names(twin)] == ["kernel", "bias", "weight"]


def test_rows_cover_the_layers():
    """Every layer that is not recurrent has a row, but those that are random, code or a base."""
    known = {
        v.__name__ for v in vars(layers).values() if isinstance(v, type) and v.__module__.startswith("autograd.keras.layers")
    }
    recurrent = {k for k in known if vars(layers)[k].__module__.rpartition(".")[2] not in MODULES}
    other = {"AlphaDropout", "GaussianDropout", "Lambda", "SpatialDropout1D", "SpatialDropout2D", "Wrapper"}
    assert known - recurrent - other == {row.layer for row in ROWS.values()}


MODULES = {"activation", "attention", "convolution", "core", "depthwise", "merging", "normalization", "pooling",
           "regularization", "reshaping", "wrappers"}  # fmt: skip
