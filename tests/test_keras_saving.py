"""Saving and loading models, weights and training: exactly, as data, whole or not at all."""

import copy
import json
import os
import pickle

import keras_cases
import numpy as np
import pytest
from helpers import assert_raises

import autograd as ag
from autograd import keras

layers = keras.layers
X = np.random.default_rng(0).normal(size=(10, 4)).astype("f")


def values(model, x=X):
    return model.predict(x, verbose=0)


@keras.register_keras_serializable("tests")
class Blocks(keras.Model):
    def __init__(self, width=3, name=None):
        super().__init__(name=name)
        self.width = width
        self.blocks = [layers.Dense(width, "relu") for _ in range(2)]
        self.heads = {"a": layers.Dense(1), "b": layers.Dense(1)}

    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x) + self.heads["b"](x)

    def get_config(self):
        return {"width": self.width, "name": self.name}


def branched():
    a = keras.Input((4,), name="a")
    words = keras.Input((5,), dtype="int64", name="words")
    read = layers.GRU(3, name="gru")(layers.Embedding(7, 2, mask_zero=True, name="embedding")(words))
    hidden = layers.Dense(3, "relu", kernel_regularizer="l2", kernel_constraint=keras.constraints.MaxNorm(2.0))(a)
    both = layers.Concatenate()([hidden, read])
    inner = keras.Sequential([layers.Dense(4, "tanh"), layers.BatchNormalization()], name="inner")
    first = layers.Dense(1, name="first")(inner(both) + inner(both * 2))
    return keras.Model([a, words], {"first": first, "second": layers.Dense(2, "softmax", name="second")(both[:, 1:])})


def branched_data():
    r = np.random.default_rng(3)
    return [r.normal(size=(20, 4)).astype("f"), r.integers(0, 7, (20, 5))], {"first": r.normal(size=(20, 1)), "second": r.integers(0, 2, 20)}


@pytest.mark.parametrize("optimizer", ["adam", keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=1.0), "nadam",
                                       keras.optimizers.RMSprop(keras.optimizers.schedules.CosineDecay(0.01, 20), centered=True),
                                       keras.optimizers.Adam(gradient_accumulation_steps=3)], ids=str)  # fmt: skip
def test_a_loaded_model_goes_on_exactly(optimizer, tmp_path):
    x, y = branched_data()
    model = branched()
    model.compile(optimizer, {"first": "mse", "second": keras.losses.SparseCategoricalCrossentropy()}, loss_weights={"first": 0.5, "second": 1.0},
                  metrics={"first": ["mae"], "second": ["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(1, name="top")]})  # fmt: skip
    plain = {"batch_size": 8, "verbose": 0, "shuffle": False}
    model.fit(x, y, epochs=2, **plain)
    model.save(tmp_path / "model.keras")
    again = keras.load_model(tmp_path / "model.keras")
    assert again.optimizer.iterations == model.optimizer.iterations > 0
    assert again.state_dict().keys() == model.state_dict().keys()
    want, got = (m.fit(x, y, initial_epoch=2, epochs=4, **plain).history for m in (model, again))
    assert got == want and set(want) == {"loss", "first_loss", "second_loss", "first_mae", "second_accuracy", "second_top"}
    for a, b in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sequential_and_subclass_round_trips(tmp_path):
    deferred = keras.Sequential([layers.Dense(3), layers.Dense(2, "relu")])
    blocks = Blocks(5)
    words = keras.Sequential([layers.Embedding(7, 2), layers.GRU(3)])
    for i, model in enumerate((deferred, blocks, words)):
        x = np.arange(12).reshape(3, 4) % 7 if model is words else X
        model(x)
        model.save(tmp_path / f"{i}.keras")
        again = keras.load_model(tmp_path / f"{i}.keras")
        assert type(again) is type(model) and not again.compiled
        np.testing.assert_array_equal(values(again, x), values(model, x))


def test_custom_objects(tmp_path):
    class Scale(keras.Layer):
        def __init__(self, by=1.0, **kwargs):
            super().__init__(**kwargs)
            self.by = by

        def call(self, x):
            return x * self.by

        def get_config(self):
            return {**super().get_config(), "by": self.by}

    def my_loss(y_true, y_pred):
        return (y_true - y_pred).abs().mean(-1)

    model = keras.Sequential([keras.Input((4,)), Scale(2.5), layers.Dense(1)])
    model.compile("sgd", my_loss)
    model.save(tmp_path / "m.keras")
    assert_raises(ValueError, "no layer class 'Scale'", lambda: keras.load_model(tmp_path / "m.keras"))
    assert_raises(ValueError, "'my_loss'", lambda: keras.load_model(tmp_path / "m.keras", custom_objects={"Scale": Scale}))
    known = {"Scale": Scale, "my_loss": my_loss}
    model.compile("sgd", my_loss, metrics=[my_loss, keras.metrics.MeanMetricWrapper(my_loss, name="wrapped"), keras.metrics.binary_accuracy])
    model.save(tmp_path / "m.keras")
    again = keras.load_model(tmp_path / "m.keras", custom_objects=known)
    assert again.evaluate(X, X[:, :1], verbose=0, return_dict=True).keys() == {"loss", "my_loss", "wrapped", "binary_accuracy"}
    assert again.layers[0].by == 2.5
    assert again.evaluate(X, X[:, :1], verbose=0) == model.evaluate(X, X[:, :1], verbose=0)
    without = keras.load_model(tmp_path / "m.keras", custom_objects={"Scale": Scale}, compile=False)
    assert not without.compiled
    with keras.utils.custom_object_scope({"Scale": Scale}):
        assert keras.models.clone_model(model).layers[0].by == 2.5


def test_weights_alone(tmp_path):
    def made(width=3):
        return keras.Sequential([keras.Input((4,)), layers.Dense(width), layers.Dense(2)])

    model, other = made(), made()  # the second one's layers have other names
    model.save_weights(tmp_path / "w.safetensors")
    other.load_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(values(other), values(model))
    assert set(ag.load(tmp_path / "w.safetensors")) == set(model.state_dict())
    wrong = made(5)
    before = wrong.get_weights()
    with pytest.raises(ValueError) as caught:
        wrong.load_weights(tmp_path / "w.safetensors")
    assert str(caught.value).count("has shape") == 3
    for a, b in zip(before, wrong.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.warns(UserWarning, match="left out"):
        wrong.load_weights(tmp_path / "w.safetensors", skip_mismatch=True)
    np.testing.assert_array_equal(wrong.get_weights()[3], model.get_weights()[3])
    assert_raises(ValueError, "no weights yet", lambda: keras.Sequential([layers.Dense(1)]).save_weights(tmp_path / "x"))
    assert_raises(ValueError, "was not written by Model.save()", lambda: keras.load_model(tmp_path / "w.safetensors"))


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    path = tmp_path / "m.keras"
    model.save(path)
    old = path.read_bytes()
    assert_raises(FileExistsError, "overwrite", lambda: model.save(path, overwrite=False))
    model.add(layers.Dense(2, activation=lambda x: x * 2))
    with pytest.raises(TypeError):
        model.save(path)
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
    model.pop()
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["m.keras"]


def test_nothing_in_a_file_is_called(tmp_path):
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    model.save(tmp_path / "m.keras")
    data = ag.load(tmp_path / "m.keras")
    for name in ("os.system", "builtins.eval", "Tensor", "__import__"):
        data["model"]["config"]["layers"][0] = {"class_name": name, "config": {"command": "exit 1"}}
        ag.save(data, tmp_path / "evil.keras")
        assert_raises(ValueError, f"no layer class {name!r}", lambda: keras.load_model(tmp_path / "evil.keras"))


@pytest.mark.parametrize(("keys", "value", "text"), [
    (("model",), None, "is a dict with"), (("model", "config", "layers", 0), 5, "is a dict with"),
    (("model", "config", "layers", 0, "config"), None, "is a dict with"), (("compile",), {"config": {}}, "is damaged"),
    (("compile", "config", "loss"), "eval", "Unknown loss: 'eval'.*compile=False"), (("weights",), ..., r"lacks \['weights'\]"),
    (("built",), ..., r"lacks \['built'\]"),
])  # fmt: skip
def test_a_file_of_another_make_says_what_is_wrong_with_it(keys, value, text, tmp_path):
    """Whole, with a checksum that fits, but not what save() writes."""
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.save(tmp_path / "m.keras")
    data = place = ag.load(tmp_path / "m.keras")
    for key in keys[:-1]:
        place = place[key]
    if value is ...:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    ag.save(data, tmp_path / "m.keras")
    with pytest.raises(ValueError, match=text):
        keras.load_model(tmp_path / "m.keras")


def test_json_and_clones():
    model = branched()
    again = keras.model_from_json(model.to_json())
    assert [w.shape for w in again.get_weights()] == [w.shape for w in model.get_weights()]
    assert again.name == model.name and [x.name for x in again.layers] == [x.name for x in model.layers]
    again.set_weights(model.get_weights())
    x, _ = branched_data()
    np.testing.assert_array_equal(values(again, x)["first"], values(model, x)["first"])
    assert json.loads(model.to_json())["class_name"] == "Model"


def test_models_move_and_load_onto_the_gpu(wgpu, tmp_path):
    model = keras.Sequential([keras.Input((4,)), layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(X, X[:, :2], verbose=0, shuffle=False)
    model.save(tmp_path / "m.keras")
    moved = keras.load_model(tmp_path / "m.keras", device=wgpu)
    assert {p.device.type for p in moved.parameters()} == {"wgpu"}
    want, got = (m.fit(X, X[:, :2], verbose=0, shuffle=False).history["loss"] for m in (model, moved))
    assert got == pytest.approx(want, abs=1e-6)
    model.to(wgpu)  # after steps on the CPU: the optimizer's state goes along, there and back
    for where in (wgpu, "cpu"):
        want, got = (m.to(where).fit(X, X[:, :2], verbose=0, shuffle=False).history["loss"] for m in (moved, model))
        assert got == pytest.approx(want, abs=1e-6)


def test_to_categorical_and_seeds():
    np.testing.assert_array_equal(keras.utils.to_categorical([0, 2, 1]), np.eye(3)[[0, 2, 1]])
    assert keras.utils.to_categorical([[1], [0]], 4).shape == (2, 4)
    assert_raises(ValueError, "[0, 2)", lambda: keras.utils.to_categorical([2], 2))
    draws = []
    for _ in range(2):
        keras.utils.set_random_seed(7)
        draws.append(ag.rand(3).tolist())
    assert draws[0] == draws[1]


def test_copies_have_weights_of_their_own():
    model = branched()
    for made in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        again = made(model)
        x, _ = branched_data()
        np.testing.assert_array_equal(values(again, x)["first"], values(model, x)["first"])
        again.set_weights([w * 0 for w in again.get_weights()])
        assert not (values(again, x)["first"] == values(model, x)["first"]).all()


def test_configs_of_losses_metrics_and_optimizers_make_equal_ones():
    for family, rows in ((keras.losses, keras_cases.LOSSES), (keras.metrics, keras_cases.METRICS), (keras.optimizers, keras_cases.OPTIMIZERS)):
        for title, options, *_ in rows:
            made = getattr(family, title)(**options)
            again = family.deserialize(family.serialize(made))
            assert type(again) is type(made) and again.get_config() == made.get_config(), title
            assert json.loads(json.dumps(made.get_config())) is not None
    schedules = keras.optimizers.schedules
    for title, arguments, options in keras_cases.SCHEDULES:
        made = getattr(schedules, title)(*arguments, **options)
        again = schedules.deserialize(schedules.serialize(made))
        assert [again(i) for i in range(9)] == [made(i) for i in range(9)]
