"""Sequential, the functional API, subclasses: how they are made, what they say, how they are saved."""

import copy

import numpy as np
from helpers import assert_raises

import autograd as ag
from autograd import keras, nn

layers = keras.layers
X = np.random.default_rng(0).normal(size=(10, 4)).astype("f")


def values(model, x=X):
    return model.predict(x, verbose=0)


# -- Sequential -----------------------------------------------------------------------------------------


def test_three_ways_to_begin_a_sequential():
    made = [
        keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(2)]),
        keras.Sequential([layers.InputLayer((4,)), layers.Dense(3), layers.Dense(2)]),
        keras.Sequential([layers.Dense(3, input_shape=(4,)), layers.Dense(2)]),
    ]
    later = keras.Sequential([layers.Dense(3), layers.Dense(2)])
    assert not later.built and later.weights == []
    assert_raises(ValueError, "not built", later.summary)
    later.build((None, 4))
    called = keras.Sequential()
    called.add(layers.Dense(3))
    called.add(layers.Dense(2))
    called(X)
    for model in [*made, later, called]:
        assert model.built and [w.shape for w in model.get_weights()] == [(4, 3), (3,), (3, 2), (2,)]
        model.set_weights(made[0].get_weights())
        np.testing.assert_array_equal(values(model), values(made[0]))
        assert len(model.layers) == 2 and model.output_shape == (None, 2)


def test_add_and_pop_rebuild():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="a")])
    model.add(layers.Dense(2, name="b"))
    assert model.output_shape == (None, 2) and [x.name for x in model.layers] == ["a", "b"]
    assert model.pop().name == "b" and model.output_shape == (None, 3)
    model.pop()
    assert_raises(ValueError, "no layers to pop", model.pop)
    assert_raises(ValueError, "no layers", lambda: model(X))


def test_what_a_sequential_refuses():
    assert_raises(TypeError, "Make an object of it", lambda: keras.Sequential([layers.Dense]))
    assert_raises(TypeError, "got int", lambda: keras.Sequential([3]))
    assert_raises(ValueError, "called 'x'", lambda: keras.Sequential([layers.Dense(1, name="x"), layers.Dense(1, name="x")]))
    one = layers.Dense(4)
    assert_raises(ValueError, "stands in it once", lambda: keras.Sequential([one, one]))
    assert_raises(ValueError, "stands first", lambda: keras.Sequential([layers.Dense(1), keras.Input((4,))]))
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    assert_raises(ValueError, "(None, 4)", lambda: model(X[:, :3]))


def test_modules_from_outside_are_layers_too():
    model = keras.Sequential([keras.Input((4,)), nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), layers.Dense(2)])
    assert model.output_shape == (None, 2) and not model.layers[1].training
    model.compile("adam", "mse")
    before = [w.copy() for w in model.get_weights()]
    first, last = model.fit(X, np.ones((10, 2)), epochs=9, verbose=0).history["loss"][:: 8]
    assert last < first and not model.layers[1].training
    assert all((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))
    assert_raises(TypeError, "no config", lambda: model.get_config())


def test_sequences_of_other_lengths_after_a_deferred_build():
    model = keras.Sequential([layers.GRU(3), layers.Dense(2)])
    model(np.zeros((2, 5, 4), "f"))
    assert model(np.zeros((3, 9, 4), "f")).shape == (3, 2)


# -- functional -----------------------------------------------------------------------------------------


def test_shared_layers_have_one_set_of_weights():
    a, b = keras.Input((4,)), keras.Input((4,))
    shared = layers.Dense(3)
    model = keras.Model([a, b], shared(a) + shared(b))
    assert len(model.weights) == 2 and model.layers.count(shared) == 1
    kernel, bias = shared.get_weights()
    np.testing.assert_allclose(values(model, [X, X * 2]), X @ kernel * 3 + 2 * bias, atol=1e-5)


def test_operators_on_symbolic_tensors():
    x, y = keras.Input((4,)), keras.Input((4,))
    model = keras.Model([x, y], [x + y, 1 - x, x * 2 / (y * y + 1), -x, (x * x) ** 0.5, x[:, 1:3], x[:, None, -1], x[..., 0]])
    u, v = X.astype(np.float64), X[::-1].astype(np.float64)
    want = [u + v, 1 - u, u * 2 / (v * v + 1), -u, abs(u), u[:, 1:3], u[:, None, -1], u[..., 0]]
    for got, expected in zip(values(model, [X, X[::-1].copy()]), want, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)
    assert model.output_shape[5:] == [(None, 2), (None, 1), (None,)]


def test_inputs_and_outputs_by_name_and_in_order():
    a, b = keras.Input((4,), name="a"), keras.Input((2,), name="b")
    model = keras.Model({"a": a, "b": b}, {"out": layers.Dense(1, kernel_initializer="ones")(a), "same": b})
    got = values(model, {"b": X[:, :2], "a": X})
    np.testing.assert_allclose(got["out"][:, 0], X.sum(1), atol=1e-5)
    assert model.output_names == ["out", "same"]
    ordered = keras.Model([a, b], [b, a[:, :1]])
    np.testing.assert_array_equal(values(ordered, {"a": X, "b": X[:, :2]})[0], X[:, :2])
    assert_raises(ValueError, "missing", lambda: model({"a": X}))
    assert_raises(ValueError, "expected 2 inputs", lambda: ordered([X]))
    assert_raises(ValueError, "'b' has shape (None, 2)", lambda: ordered([X, X]))


def test_layers_stand_in_keras_order():
    """By distance from the outputs, then as a walk from these meets them, dicts by key: what Keras 3.15.1 said. Weights go by it."""
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    first, second = layers.Dense(3, name="A")(a), layers.Dense(3, name="B")(b)
    third, fourth = layers.Dense(3, name="C")(second * 2.0), layers.Dense(3, name="D")(a)
    joined, added = layers.Concatenate(name="cc")([third, first]), layers.Add(name="ad")([fourth, second, first])
    model = keras.Model({"b": b, "a": a}, {"z": joined, "y": added})
    assert [layer.name for layer in model.layers] == ["b", "B", "a", "D", "A", "C", "ad", "cc"]  # no operator among them
    assert model.output_names == ["y", "z"]
    start, late, shared = keras.Input((4,), name="i"), keras.Input((4,), name="k"), layers.Dense(4, name="sh")
    x = shared(start)
    y = layers.Dense(4, name="p")(shared(layers.Dense(4, name="q")(start)))
    z = layers.Dense(4, name="r")(x)
    model = keras.Model([start, late], [layers.Add(name="s")([z, y]), layers.Dense(2, name="t")(shared(late)), z])
    assert [layer.name for layer in model.layers] == ["i", "q", "sh", "k", "r", "p", "s", "t"]


def test_models_are_layers_and_nest():
    x = keras.Input((4,))
    inner = keras.Model(x, layers.Dense(3, name="inside")(x), name="inner")
    outer = keras.Sequential([keras.Input((4,)), inner, keras.Sequential([layers.Dense(2)], name="tail")])
    assert [len(outer.weights), outer.output_shape] == [4, (None, 2)]
    assert set(outer.state_dict()) >= {"inner.inside.kernel", "inner.inside.bias"}
    y = keras.Input((4,))
    twice = keras.Model(y, inner(y) + inner(y))
    np.testing.assert_allclose(values(twice), 2 * values(inner), atol=1e-6)


def test_a_part_of_a_model_is_a_model():
    x = keras.Input((4,))
    hidden = layers.Dense(3, "relu", name="hidden")(x)
    model = keras.Model(x, layers.Dense(2)(hidden))
    features = keras.Model(model.input, model.get_layer("hidden").output)
    kernel, bias = model.get_layer("hidden").get_weights()
    np.testing.assert_allclose(values(features), np.maximum(X @ kernel + bias, 0), atol=1e-6)
    head = keras.Model(hidden, model.output)
    np.testing.assert_allclose(values(head, values(features)), values(model), atol=1e-6)


def test_graphs_run_in_a_loop_however_deep():
    x = y = keras.Input((1,))
    for _ in range(3000):
        y = y + 1
    model = keras.Model(x, y)
    for each in (model, copy.deepcopy(model)):
        np.testing.assert_array_equal(values(each, np.zeros((2, 1), "f")), np.full((2, 1), 3000))


def test_a_subclass_may_call_a_layer_output():
    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.output = layers.Dense(1)

        def call(self, x):
            return self.output(x)

    assert Mine()(X).shape == (10, 1)


def test_what_the_functional_api_refuses():
    x, z = keras.Input((4,), name="x"), keras.Input((4,), name="z")
    y = layers.Dense(2)(x) + layers.Dense(2)(z)
    assert_raises(ValueError, "'z'", lambda: keras.Model(x, y))
    assert_raises(ValueError, "given twice", lambda: keras.Model([x, x], x))
    assert_raises(ValueError, "comes from Input()", lambda: keras.Model(x, X))
    assert_raises(ValueError, "inputs and outputs", lambda: keras.Model(x))
    assert_raises(TypeError, "no values yet", lambda: bool(x))
    assert_raises(TypeError, "no values yet", lambda: np.asarray(x))
    assert_raises(TypeError, "iterated", lambda: list(x))
    assert_raises(TypeError, "an index is made of", lambda: x[X])
    assert_raises(ValueError, "'a'", lambda: keras.Model(x, layers.Dense(1, name="a")(layers.Dense(1, name="a")(x))))
    assert_raises(ValueError, "no layer 'b'", lambda: keras.Model(x, layers.Dense(1, name="a")(x)).get_layer("b"))


# -- subclasses and modules -----------------------------------------------------------------------------


def test_layers_in_lists_and_dicts_are_found():
    class Blocks(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [layers.Dense(3, "relu") for _ in range(2)]
            self.heads = {"a": layers.Dense(1), "b": layers.Dense(1)}

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return self.heads["a"](x) + self.heads["b"](x)

    model = Blocks()
    model(X)
    assert len(model.layers) == 4 and len(model.weights) == 8 and len(list(model.parameters())) == 8
    model.compile("adam", "mse")
    before = model.get_weights()
    model.fit(X, X[:, :1], verbose=0)
    assert sum((a != b).any() for a, b in zip(before, model.get_weights(), strict=True)) >= 6


def test_a_model_is_a_module():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, "tanh"), layers.BatchNormalization(), layers.Dense(1)])
    assert isinstance(model, nn.Module) and isinstance(model, keras.Layer)
    assert model.train() is model and all(m.training for m in model.modules())
    model.eval()
    twin = keras.models.clone_model(model)
    twin.load_state_dict(dict(zip(twin.state_dict(), model.state_dict().values(), strict=True)))
    np.testing.assert_array_equal(values(twin), values(model))
    optimizer = ag.optim.Adam(model.parameters(), lr=0.01)
    loss = nn.functional.mse_loss(model(ag.tensor(X)), ag.tensor(X[:, :1]))
    loss.backward()
    optimizer.step()
    assert not np.allclose(values(twin), values(model))


def test_frozen_layers_stay():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(1)])
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.fit(X, X[:, :1], verbose=0)
    after = model.get_weights()
    assert [(a == b).all() for a, b in zip(before, after, strict=True)] == [True, True, False, False]
    assert len(model.trainable_weights) == 2 and len(model.non_trainable_weights) == 2


def test_summary(capsys):
    a, b = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    shared = layers.Dense(3, name="shared")
    out = layers.Dense(2, name="out", trainable=False)(shared(a) + shared(b))
    model = keras.Model([a, b], out, name="pair")
    model.summary()
    text = capsys.readouterr().out
    assert text.startswith('Model: "pair"') and "Layer (type)" in text and "Connected to" in text
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert "(None, 3)" in rows["shared"] and "15" in rows["shared"] and "left, right" in rows["shared"] and "add" in rows["out"]
    assert "Total params: 23 (92.00 B)" in text and "Trainable params: 15" in text and "Non-trainable params: 8" in text
    outer = keras.Sequential([keras.Input((4,)), keras.Sequential([layers.Dense(1, name="deep")], name="inner")])
    seen = []
    outer.summary(print_fn=seen.append, expand_nested=True, show_trainable=True, line_length=80)
    assert "  deep (Dense)" in seen[0] and "Trainable" in seen[0] and "Connected" not in seen[0]
    assert max(map(len, seen[0].splitlines())) == 80


def test_names_are_counted_until_the_session_is_cleared():
    keras.utils.clear_session()
    assert [layers.Dense(1).name for _ in range(3)] == ["dense", "dense_1", "dense_2"]
    assert [keras.metrics.Precision().name for _ in range(2)] == ["precision", "precision_1"]
    keras.utils.clear_session()
    assert layers.Dense(1).name == "dense" and keras.metrics.Precision().name == "precision"
