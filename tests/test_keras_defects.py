"""What a Keras-like interface elsewhere (ggmlR 0.8.2) was seen to do wrong: each a test that would have caught it.

Its data-parallel training is in the tests of autograd.distributed.
"""

import numpy as np
import pytest

import autograd as ag
from autograd import keras

layers = keras.layers


def data(n=40, classes=3, seed=0):
    r = np.random.default_rng(seed)
    return r.normal(size=(n, 5)).astype("f"), r.integers(0, classes, n)


def test_softmax_is_applied_once_in_training():
    x, y = data()
    model = keras.Sequential([keras.Input((5,)), layers.Dense(3, "softmax")])
    model.compile(keras.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
    kernel, bias = model.get_weights()
    z = x.astype(float) @ kernel + bias
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    want = -np.log(p[np.arange(40), y]).mean()
    assert model.fit(x, y, batch_size=40, verbose=0).history["loss"][0] == pytest.approx(want, abs=1e-6)
    # and the gradient is that of one softmax: p - y
    loss = keras.losses.SparseCategoricalCrossentropy()(y, model(x))
    loss.backward()
    np.testing.assert_allclose(model.layers[0].bias.grad.numpy(), (p - np.eye(3)[y]).mean(0), atol=1e-6)


def test_validation_data_is_never_trained_on():
    x, y = data(50)
    y[40:] = 0
    poisoned = x.copy()
    poisoned[40:] = np.nan  # one look at these in training would spoil the weights
    weights = []
    for inputs in (x, poisoned):
        ag.manual_seed(0)
        model = keras.Sequential([keras.Input((5,)), layers.Dense(4, "relu"), layers.Dense(3, "softmax")])
        model.compile("adam", "sparse_categorical_crossentropy")
        history = model.fit(inputs, y, batch_size=16, epochs=3, verbose=0, validation_split=0.2)
        weights.append(model.get_weights())
    assert np.isnan(history.history["val_loss"]).all() and np.isfinite(history.history["loss"]).all()
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_split_is_the_last_part_before_shuffling():
    x, y = np.arange(20, dtype="f")[:, None], np.zeros(20)
    seen = {True: set(), False: set()}

    class Look(keras.Layer):
        def call(self, inputs, training=False):
            seen[training] |= set(inputs.numpy()[:, 0].tolist())
            return inputs

    model = keras.Sequential([Look(), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.predict(x[:1] * 0 - 1, verbose=0)
    seen[False].clear()
    model.fit(x, y, batch_size=4, epochs=3, verbose=0, validation_split=0.25, shuffle=True)
    assert seen[True] == set(range(15)) and seen[False] == set(range(15, 20))


def test_callbacks_are_called():
    x, y = data()
    hooks = []
    told = keras.callbacks.LambdaCallback(**{
        name: lambda *args, name=name: hooks.append(name)
        for name in ("on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_train_batch_end", "on_epoch_end", "on_train_end")
    })  # fmt: skip
    model = keras.Sequential([layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, y, batch_size=20, verbose=0, callbacks=[told])
    batch = ["on_train_batch_begin", "on_train_batch_end"]
    assert hooks == ["on_train_begin", "on_epoch_begin", *batch, *batch, "on_epoch_end", "on_train_end"]


@pytest.mark.parametrize("name", ["cross_entropy", "mse_loss", "categorical", "whatever"])
def test_unknown_losses_are_refused_and_not_crossentropy(name):
    model = keras.Sequential([layers.Dense(3)])
    with pytest.raises(ValueError, match=f"Unknown loss: '{name}'"):
        model.compile("sgd", name)


def test_batch_norm_is_not_rms_norm():
    x = (data(64)[0] * 3 + 2).astype(np.float64)
    ag.manual_seed(0)
    layer = layers.BatchNormalization(epsilon=1e-3, dtype="float64")
    y = layer(x, training=True).detach().numpy()
    np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3), atol=1e-10)
    t = ag.tensor(x, requires_grad=True)
    assert ag.gradcheck(lambda t: (layer(t, training=True) ** 3).sum(), t)


def test_recurrent_weights_do_not_start_from_a_constant():
    for kind in (layers.GRU, layers.LSTM, layers.SimpleRNN):
        layer = kind(8)
        layer(np.zeros((2, 3, 4), "f"))
        kernel, recurrent, _ = layer.get_weights()
        assert len(np.unique(kernel)) == kernel.size, kind.__name__
        np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(8), atol=1e-5, err_msg=kind.__name__)  # orthogonal


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "SimpleRNN"])
def test_return_sequences_is_right_for_batches(kind):
    x = np.random.default_rng(1).normal(size=(6, 7, 4)).astype("f")
    layer = getattr(layers, kind)(5, return_sequences=True)
    whole = layer(x).detach().numpy()
    assert whole.shape == (6, 7, 5)
    for i in range(6):
        np.testing.assert_allclose(whole[i : i + 1], layer(x[i : i + 1]).detach().numpy(), atol=1e-6)
    last = getattr(layers, kind)(5)
    last(x)
    last.set_weights(layer.get_weights())
    np.testing.assert_allclose(last(x).detach().numpy(), whole[:, -1], atol=1e-6)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "SimpleRNN"])
def test_saving_keeps_recurrent_weights(kind, tmp_path):
    x = np.random.default_rng(1).normal(size=(6, 7, 4)).astype("f")
    model = keras.Sequential([keras.Input((7, 4)), getattr(layers, kind)(5), layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(x, np.ones((6, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.load_model(tmp_path / "model.keras")
    assert len(again.get_weights()) == 5
    for a, b in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))


def test_the_last_partial_batch_is_used():
    x = np.zeros((11, 1), "f")
    x[10] = 1.0  # the only sample with a gradient stands in the last batch of three
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    seen = []
    count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    history = model.fit(x, x, batch_size=4, verbose=0, shuffle=False, callbacks=[count])
    assert seen == [0, 1, 2]
    np.testing.assert_allclose(model.get_weights()[0], 2 / 3, rtol=1e-6)  # its error, doubled, over three samples
    assert history.history["loss"][0] == pytest.approx(1 / 11)
    assert model.predict(x, batch_size=4, verbose=0).shape == (11, 1)
