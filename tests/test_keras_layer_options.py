"""Keras' layers, what no golden value says: randomness, masks joined, starting values, saving, errors."""

import json

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises
from keras_layer_calls import Called, like
from keras_layer_rows import ROWS, values

import autograd as ag
from autograd import keras, nn
from autograd.keras import layers
from autograd.keras.saving import custom_object_scope, deserialize_layer, serialize_layer


def test_a_model_of_many_layers_trains_and_is_saved(tmp_path):
    """Layers in a functional model: several inputs, masks on the way, losses that fall."""
    words, extra = keras.Input((6,), dtype="int64"), keras.Input((6, 3))
    x = layers.Embedding(9, 8, mask_zero=True)(words)
    x = layers.Concatenate()([x, layers.TimeDistributed(layers.Dense(4, "relu"))(extra)])
    x = layers.LayerNormalization()(layers.Conv1D(8, 3, padding="same")(x))
    x = layers.Add()([x, layers.MultiHeadAttention(2, 4)(x, x)])
    x = layers.BatchNormalization()(layers.GlobalAveragePooling1D()(x))
    model = keras.Model([words, extra], layers.Dense(1)(x))
    generator = np.random.default_rng(0)
    data = [generator.integers(0, 9, (16, 6)), generator.standard_normal((16, 6, 3)).astype(np.float32)]
    tensors, target = [ag.tensor(a) for a in data], ag.tensor(data[1].sum((1, 2))[:, None])
    optimizer = ag.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        loss = nn.functional.mse_loss(model(tensors, training=True), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    model.save(tmp_path / "many.keras")
    again = keras.models.load_model(tmp_path / "many.keras")
    assert np.array_equal(again.predict(data, verbose=0), model.predict(data, verbose=0))


# --- what is random ---

RANDOM = [
    ("Dropout", {"rate": 0.3}),
    ("Dropout", {"rate": 0.3, "noise_shape": (None, 1, None)}),
    ("SpatialDropout1D", {"rate": 0.3}),
    ("SpatialDropout2D", {"rate": 0.3, "data_format": "channels_first"}),
    ("GaussianDropout", {"rate": 0.3}),
    ("GaussianNoise", {"stddev": 0.5}),
    ("AlphaDropout", {"rate": 0.3}),
]


def noisy(name, config, device="cpu"):
    shape = (50, 8, 4, 4) if "2D" in name else (200, 8, 20)
    return getattr(layers, name)(**config), ag.ones(*shape, device=device)


@pytest.mark.parametrize("name, config", RANDOM, ids=[f"{n}-{len(c)}" for n, c in RANDOM])
def test_noise_acts_in_training_alone_and_follows_the_seed(name, config, device):
    layer, x = noisy(name, config, device)
    assert layer(x) is x and layer(x, training=False) is x
    ag.manual_seed(5)
    first, second = layer(x, training=True), layer(x, training=True)
    ag.manual_seed(5)
    again = layer(x, training=True)
    assert np.array_equal(array(first), array(again)) and not np.array_equal(array(first), array(second))
    own = getattr(layers, name)(**config, seed=3)
    drawn = [array(own(x, training=True)) for _ in range(2)]
    twin = type(own).from_config(own.get_config())
    ag.manual_seed(6)  # has no say
    assert [np.array_equal(a, array(twin(x, training=True))) for a in drawn] == [True, True]
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("name, config", [r for r in RANDOM if "Dropout" in r[0] and r[0][0] in "DS"])
def test_dropout_keeps_the_mean_and_drops_the_rate(name, config):
    layer, x = noisy(name, config)
    ag.manual_seed(0)
    y = array(layer(x, training=True))
    free = y[:, :, 0, 0] if "2D" in name else y[:, 0] if "1D" in name or "noise_shape" in config else y
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.7)}
    deviation = np.sqrt(0.3 * 0.7 / free.size)
    assert abs((free == 0).mean() - 0.3) < 4 * deviation
    if free is not y:  # what shares a draw is dropped together
        assert (y == (y[:, :, :1, :1] if "2D" in name else y[:, :1])).all()


def test_gaussian_noise_has_its_moments():
    x = ag.ones(400, 100)
    ag.manual_seed(0)
    for layer, mean, deviation in (
        (layers.GaussianNoise(0.5), 1.0, 0.5),
        (layers.GaussianDropout(0.3), 1.0, np.sqrt(0.3 / 0.7)),
    ):
        y = array(layer(x, training=True))
        assert abs(y.mean() - mean) < 4 * deviation / 200 and abs(y.std() - deviation) < 4 * deviation / 280
    normal = ag.randn(400, 100)
    y = array(layers.AlphaDropout(0.2)(normal.detach(), training=True))
    assert abs(y.mean()) < 0.03 and abs(y.std() - 1) < 0.03


def test_attention_drops_weights_in_training():
    x = ag.tensor(values((2, 4, 4), 0))
    for layer in (layers.Attention(dropout=0.5, seed=1), layers.MultiHeadAttention(2, 3, dropout=0.5, seed=1)):
        calm, wild = array(layer([x, x])), array(layer([x, x], training=True))
        assert not np.allclose(calm, wild) and np.array_equal(calm, array(layer([x, x])))


# --- what a row cannot say ---


def test_layer_normalization_over_any_axis():
    """Keras on PyTorch cannot; the same numbers moved to the last axis are what is expected."""
    x = ag.tensor(values((3, 4, 5), 0))
    first, last = (layers.LayerNormalization(axis=axis, dtype="float64") for axis in (1, -1))
    for layer, shape in ((first, x.shape), (last, (3, 5, 4))):
        layer.build(shape)
        layer.set_weights([values((4,), 1), values((4,), 2)])
    assert_close(first(x), last(x.transpose(1, 2)).transpose(1, 2))


def test_fused_attention_equals_the_one_with_scores():
    """Other sizes of values, masks of queries, several axes: what Keras has no golden value for without scores."""
    for key in ("value_dim", "masks", "causal_mask", "scores", "axes", "one_axis"):
        row = ROWS[f"multi_head_attention_{key}"]
        plain = {k: v for k, v in row.call.items() if k != "return_attention_scores"}
        fused = Called(row._replace(call=plain))
        scored = Called(row._replace(call={**plain, "return_attention_scores": True}))
        assert len(scored.outputs) == 2
        assert_close(fused.outputs[0], scored.outputs[0], 1e-12, key)
        for call in (fused, scored):
            (call.outputs[0] * like(values(call.outputs[0].shape, 20), call.outputs[0])).sum().backward()
        for x, y in zip(fused.inputs, scored.inputs):
            assert_close(x.grad, y.grad, 1e-12, key)


def test_attention_weights_start_as_wide_as_keras_lets_them():
    """Glorot's bound with the fans of the matrix that a kernel is: d and heads * key_dim."""
    ag.manual_seed(0)
    layer = layers.MultiHeadAttention(8, 16)
    layer.build([(None, 4, 32), (None, 4, 64)])
    for dense, fans in ((layer.query_dense, 32 + 128), (layer.value_dense, 64 + 128), (layer.output_dense, 128 + 32)):
        bound = np.sqrt(6 / fans)
        assert 0.99 * bound < np.abs(array(dense.kernel)).max() <= bound
    assert json.loads(json.dumps(layer.get_config()))["kernel_initializer"]["class_name"] == "GlorotUniform"


def test_attention_regularizes_its_projections():
    layer = layers.MultiHeadAttention(2, 3, activity_regularizer="l2", kernel_regularizer="l1")
    layer(ag.ones(2, 4, 4), ag.ones(2, 4, 4))
    assert len(layer.losses) == 4 + 4
    assert layers.MultiHeadAttention.from_config(layer.get_config()).get_config() == layer.get_config()


def test_attention_masks_are_joined():
    x = ag.tensor(values((2, 4, 4), 0))
    layer = layers.MultiHeadAttention(2, 3, dtype="float64")
    given = ag.tensor(values((2, 4, 4), 7) > 0) | ag.eye(4, dtype="bool")
    steps = ag.tensor([[True, True, True, False], [True, True, False, False]])
    _, weights = layer(x, x, attention_mask=given, value_mask=steps, use_causal_mask=True, return_attention_scores=True)
    seen = array(given) & array(steps)[:, None, :] & np.tril(np.ones((4, 4), bool))
    np.testing.assert_array_equal(array(weights) > 0, np.broadcast_to(seen[:, None], (2, 2, 4, 4)))
    y = layer(x, x, query_mask=steps)
    np.testing.assert_array_equal(array(y._keras_mask), array(steps))


def test_batch_normalization_with_trainable_false_is_inference():
    x = ag.tensor(values((6, 4), 0))
    layer = layers.BatchNormalization(dtype="float64")
    layer(x, training=True)
    moved = layer.get_weights()
    assert not np.allclose(moved[2], 0)
    layer.trainable = False
    y = layer(x, training=True)
    assert all(np.array_equal(a, b) for a, b in zip(moved, layer.get_weights()))
    assert_close(y, array(layer(x)), 0)
    assert layer.trainable_weights == [] and len(layer.non_trainable_weights) == 4


def test_a_batch_of_one_is_normalised():
    """PyTorch refuses a batch with one value a channel; Keras does not."""
    layer = layers.BatchNormalization()
    assert array(layer(ag.ones(1, 3) * 5, training=True)).tolist() == [[0.0, 0.0, 0.0]]


def test_masks_of_numpy_inputs_lie_where_the_outputs_do(device):
    for layer, x in (
        (layers.Masking(), np.zeros((2, 3, 4), np.float32)),
        (layers.Embedding(5, 2, mask_zero=True), np.zeros((2, 3), np.int64)),
    ):
        layer(ag.tensor(x, device=device))
        layer.to(device)
        y = layer(ag.tensor(x, device=device))
        assert y._keras_mask.device == y.device and not array(y._keras_mask).any()
    y = layer(x)  # the weights say where
    assert y.device.type == device and y._keras_mask.device == y.device


def test_embedding_takes_floats_and_refuses_what_is_outside(device):
    layer = layers.Embedding(4, 2).to(device)
    x = ag.tensor([[1.0, 3.0]], device=device)
    np.testing.assert_array_equal(array(layer(x)), array(layer(x.to("int64"))))
    with pytest.raises(IndexError):
        layer(ag.tensor([[4]], device=device))


def test_regularizers_constraints_and_initializers_reach_the_weights():
    layer = layers.Dense(3, kernel_initializer="ones", bias_initializer=keras.initializers.Constant(2.0),
                         kernel_regularizer=keras.regularizers.L2(0.1), bias_regularizer="l1", kernel_constraint="unit_norm",
                         activity_regularizer=keras.regularizers.L1(0.5))  # fmt: skip
    layer(ag.ones(2, 4))
    assert array(layer.kernel).tolist() == [[1.0] * 3] * 4 and array(layer.bias).tolist() == [2.0] * 3
    activity, *rest = [round(loss.item(), 5) for loss in layer.losses]
    assert activity == 0.5 * (4 + 2) * 6 / 2 and sorted(rest) == [0.06, 1.2]
    layer.apply_constraints()
    np.testing.assert_allclose(array(layer.kernel), 0.5, rtol=1e-6)
    twin = layers.Dense.from_config(json.loads(json.dumps(layer.get_config())))
    assert twin.get_config() == layer.get_config() and isinstance(twin.activity_regularizer, keras.regularizers.L1)


def test_merges_are_functions_too():
    x, y = keras.Input((3,)), keras.Input((3,))
    model = keras.Model([x, y], [layers.concatenate([x, y], axis=1), layers.add([x, y]), layers.dot([x, y], 1)])
    a, b = ag.ones(2, 3), ag.ones(2, 3) * 2
    assert [array(t).tolist()[0] for t in model([a, b])] == [[1, 1, 1, 2, 2, 2], [3, 3, 3], [6]]


def test_keras_other_names():
    assert layers.MaxPool2D is layers.MaxPooling2D and layers.Convolution1D is layers.Conv1D
    assert layers.GlobalAvgPool1D is layers.GlobalAveragePooling1D and layers.multiply.__name__ == "multiply"


def test_keras_own_configs_are_read_where_nothing_is_lost():
    layers.Dense.from_config({"units": 3, "lora_rank": None, "quantization_config": None})
    layers.BatchNormalization.from_config({"synchronized": False, "renorm": False})
    assert_raises(ValueError, "[Dense] there is no lora_rank here", lambda: layers.Dense(3, lora_rank=4))
    assert_raises(ValueError, "there is no synchronized here", lambda: layers.BatchNormalization(synchronized=True))


def double(x):
    return x * 2


def test_lambda_is_loaded_by_name_only():
    layer = layers.Lambda(double)
    assert array(layer(ag.ones(2, 3))).tolist() == [[2.0] * 3] * 2
    assert layer.compute_output_shape((None, 3)) == (None, 3)
    config = json.loads(json.dumps(serialize_layer(layer)))
    assert_raises(ValueError, "[Lambda] function 'double' is code", lambda: deserialize_layer(config))
    with custom_object_scope({"double": double}):
        assert deserialize_layer(config).function is double
    scaled = layers.Lambda(lambda x, by: x * by, output_shape=(3,), arguments={"by": 5})
    assert scaled(ag.ones(1, 3)).sum().item() == 15 and scaled.compute_output_shape((None, 9)) == (None, 3)


def test_time_distributed_gives_each_step_its_mask():
    class Counts(layers.Layer):
        supports_masking = True

        def call(self, inputs, mask=None):
            return inputs * 0 + mask.to(inputs.dtype).sum(-1).reshape(-1, 1, 1)

    x = ag.ones(2, 3, 4, 5)
    x._keras_mask = ag.tensor(values((2, 3, 4), 0) > 0)
    y = layers.TimeDistributed(Counts())(x)
    np.testing.assert_array_equal(array(y)[..., 0, 0], array(x._keras_mask).sum(-1))
    np.testing.assert_array_equal(array(y._keras_mask), array(x._keras_mask))


# --- errors ---

X, P = ag.ones(2, 4, 3), ag.ones(2, 4, 3, 5)
ERRORS = {
    "unknown argument": (TypeError, "'unit'", lambda: layers.Dense(3, unit=4)),
    "units": (ValueError, "[Dense] units is a whole number not below 1; got 0", lambda: layers.Dense(0)),
    "rank": (ValueError, "expected min_ndim=2, found ndim=1", lambda: layers.Dense(3)(ag.ones(4))),
    "width": (ValueError, "expected axis -1 to have size 3", lambda: [(d := layers.Dense(3))(X), d(ag.ones(2, 5))]),
    "unknown width": (ValueError, "must have a known size", lambda: layers.Dense(3).build((None, None))),
    "activation": (ValueError, "Unknown activation: 'rellu'. Near: relu", lambda: layers.Dense(3, "rellu")),
    "initializer": (ValueError, "Unknown initializer", lambda: layers.Dense(3, kernel_initializer="glorot")),
    "conv rank": (ValueError, "expected ndim=4, found ndim=3", lambda: layers.Conv2D(2, 3)(X)),
    "conv padding": (ValueError, "padding is one of valid, same; got 'causal'", lambda: layers.Conv2D(2, 3, padding="causal")),
    "separable padding": (ValueError, "got 'causal'", lambda: layers.SeparableConv1D(2, 3, padding="causal")),
    "conv window": (ValueError, "windows of (5,) are larger than the input", lambda: layers.Conv1D(2, 5)(X)),
    "conv groups": (ValueError, "3 channels do not divide into 2 groups", lambda: layers.Conv1D(2, 1, groups=2)(X)),
    "conv filters": (ValueError, "filters must divide into groups; got 3 and 2", lambda: layers.Conv1D(3, 1, groups=2)),
    "conv steps": (ValueError, "cannot both be above 1", lambda: layers.Conv1D(2, 3, strides=2, dilation_rate=2)),
    "data_format": (ValueError, "data_format is one of", lambda: layers.Conv1D(2, 3, data_format="NCHW")),
    "kernel_size": (ValueError, "kernel_size is a whole number or 2 of them", lambda: layers.Conv2D(2, (3, 3, 3))),
    "output_padding": (ValueError, "output_padding must be below strides", lambda: layers.Conv1DTranspose(2, 3, output_padding=1)),
    "pool window": (ValueError, "windows of (9,) are larger", lambda: layers.MaxPooling1D(9)(X)),
    "pool padding": (ValueError, "got 'causal'", lambda: layers.AveragePooling1D(2, padding="causal")),
    "norm axis": (ValueError, "axis 5 is out of bounds for shape (2, 4, 3)", lambda: layers.BatchNormalization(axis=5)(X)),
    "norm axes": (TypeError, "axis is a whole number or a list of them", lambda: layers.LayerNormalization(axis="last")),
    "norm mask": (ValueError, "one dimension less", lambda: layers.BatchNormalization()(X, mask=ag.ones(2), training=True)),
    "norm groups": (ValueError, "3 channels do not divide into 2 groups", lambda: layers.GroupNormalization(2)(X)),
    "rate": (ValueError, "[Dropout] rate is a number in [0, 1]; got 1.5", lambda: layers.Dropout(1.5)),
    "noise_shape": (ValueError, "noise_shape has one size a dimension", lambda: layers.Dropout(0.5, (2,))(X, training=True)),
    "stddev": (ValueError, "[GaussianNoise] stddev", lambda: layers.GaussianNoise(-1.0)),
    "reshape": (ValueError, "does not hold the 12 elements", lambda: layers.Reshape((5,))(X)),
    "reshape unknowns": (ValueError, "at most one -1", lambda: layers.Reshape((-1, -1))),
    "permute": (ValueError, "dims holds 1 … 2, each once", lambda: layers.Permute((0, 1))),
    "repeat": (ValueError, "n is a whole number", lambda: layers.RepeatVector(2.5)),
    "cropping": (ValueError, "nothing is left", lambda: layers.Cropping1D(2)(X)),
    "interpolation": (ValueError, "interpolation is one of nearest, bilinear", lambda: layers.UpSampling2D(interpolation="lanczos3")),
    "merge one tensor": (ValueError, "called on a list", lambda: layers.Add()(X)),
    "merge sizes": (ValueError, "sizes must be equal or 1", lambda: layers.Add()([X, ag.ones(2, 4, 5)])),
    "merge batches": (ValueError, "one batch size", lambda: layers.Add()([X, ag.ones(3, 4, 3)])),
    "subtract": (ValueError, "exactly 2 inputs", lambda: layers.Subtract()([X, X, X])),
    "concatenate": (ValueError, "differ along axis -1 only", lambda: layers.Concatenate()([X, ag.ones(2, 5, 3)])),
    "dot": (ValueError, "must be equal", lambda: layers.Dot((1, 2))([X, X])),
    "dot batch": (ValueError, "cannot be the batch's", lambda: layers.Dot(0)([X, X])),
    "attention": (ValueError, "a list [query, value]", lambda: layers.Attention()(X)),
    "score_mode": (ValueError, "score_mode is one of dot, concat", lambda: layers.Attention(score_mode="sum")),
    "heads": (ValueError, "num_heads is a whole number", lambda: layers.MultiHeadAttention(0, 3)),
    "key and value": (ValueError, "differ in their last size only", lambda: layers.MultiHeadAttention(1, 3)(X, X, ag.ones(2, 5, 3))),
    "attention_axes": (ValueError, "lie between", lambda: layers.MultiHeadAttention(1, 3, attention_axes=2)(X, X)),
    "masks over axes": (ValueError, "over several axes", lambda: layers.MultiHeadAttention(1, 3)(P, P, use_causal_mask=True)),
    "wrapped": (ValueError, "wraps a Keras layer; got Linear", lambda: layers.TimeDistributed(nn.Linear(3, 3))),
    "steps": (ValueError, "at least 3 dimensions", lambda: layers.TimeDistributed(layers.Dense(3))(ag.ones(2, 3))),
    "shared_axes": (ValueError, "shared_axes are among 1 … 2", lambda: layers.PReLU(shared_axes=3)(X)),
    "slope": (ValueError, "negative_slope must not be negative", lambda: layers.LeakyReLU(-0.1)),
    "lambda": (TypeError, "function must be callable", lambda: layers.Lambda("double")),
    "weights": (ValueError, "has 2 weights; got 1", lambda: [(d := layers.Dense(3))(X), d.set_weights([np.ones((3, 3))])]),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case):
    assert_raises(*ERRORS[case])
