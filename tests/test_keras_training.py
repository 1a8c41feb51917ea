"""compile, fit, evaluate, predict: against Keras' own numbers, and against loops written by hand."""

import json
import math
import warnings
from pathlib import Path

import keras_cases
import numpy as np
import pytest
from helpers import assert_raises

import autograd as ag
from autograd import keras, nn

GOLDEN = Path(__file__).parent / "golden"
layers = keras.layers


@pytest.fixture
def double():
    """float64 by default, as in the golden file; layer names count from nothing."""
    before = ag.get_default_dtype()
    ag.set_default_dtype(ag.float64)
    yield
    ag.set_default_dtype(before)


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "keras3_training.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("group", keras_cases.GROUPS, ids=lambda group: group.__name__)
def test_the_same_program_gives_the_same_numbers_as_keras(group, golden, double):
    got = {f"{group.__name__}/{name}": value for name, value in group(keras).items()}
    assert set(got) == {name for name in golden if name.startswith(f"{group.__name__}/")}
    for name, value in got.items():
        close = 1e-7 if "IoU" in name else 1e-10  # Keras divides those in float32
        np.testing.assert_allclose(value, golden[name], rtol=close, atol=close, err_msg=name)


def test_hooks_are_called_as_keras_calls_them(double):
    assert keras_cases.calls(keras) == json.loads((GOLDEN / "keras3_calls.json").read_text())


# -- a loop by hand -------------------------------------------------------------------------------------


def digits(n=200):
    """Handwritten digits as sequences of their rows."""
    images, labels = ag.data.digits().tensors
    return images[:n, 0].numpy(), labels[:n].numpy()


def gru_model():
    ag.manual_seed(1)
    return keras.Sequential([keras.Input((8, 8)), layers.GRU(12), layers.Dropout(0.2), layers.Dense(10, "softmax")])


def test_fit_with_a_gru_is_a_loop_written_by_hand():
    x, y = digits()
    model, twin = gru_model(), gru_model()
    twin.set_weights(model.get_weights())
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    ag.manual_seed(2)
    history = model.fit(x, y, batch_size=32, epochs=4, verbose=0, validation_split=0.2)

    assert isinstance(twin, nn.Module)
    kept = int(len(x) * 0.8)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(twin.parameters())
    by_hand = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    ag.manual_seed(2)
    for _ in range(4):
        order, sums = ag.randperm(kept).numpy(), np.zeros(2)
        twin.train()
        for start in range(0, kept, 32):
            part = order[start : start + 32]
            p = twin(ag.tensor(x[part]))
            losses = -(p[ag.arange(len(part)), ag.tensor(y[part])].log())
            twin.zero_grad()
            losses.mean().backward()
            optimizer.step()
            sums += losses.sum().item(), (p.argmax(-1).numpy() == y[part]).sum()
        twin.eval()
        with ag.no_grad():
            p = twin(ag.tensor(x[kept:])).numpy()
        by_hand["loss"].append(sums[0] / kept)
        by_hand["accuracy"].append(sums[1] / kept)
        by_hand["val_loss"].append(-np.log(p[np.arange(len(p)), y[kept:]]).mean())
        by_hand["val_accuracy"].append((p.argmax(-1) == y[kept:]).mean())
    for name, values in by_hand.items():
        np.testing.assert_allclose(history.history[name], values, rtol=0, atol=1e-6, err_msg=name)
    for mine, theirs in zip(twin.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6)
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_devices_agree(wgpu):
    histories = []
    for device in ("cpu", wgpu):
        ag.manual_seed(0)
        model = keras.Sequential([keras.Input((6,)), layers.Dense(5, "tanh"), layers.Dense(3, "softmax")]).to(device)
        model.compile(keras.optimizers.Adam(0.05, global_clipnorm=0.5), "sparse_categorical_crossentropy", metrics=["accuracy"],
                      weighted_metrics=[keras.metrics.SparseCategoricalCrossentropy(name="weighted")])  # fmt: skip
        weights = np.linspace(0, 1, 50)
        fitted = model.fit(keras_cases.X, keras_cases.Y, epochs=3, batch_size=20, verbose=0, sample_weight=weights, validation_split=0.2)
        histories.append({**fitted.history, "predicted": model.predict(keras_cases.X, verbose=0)})
        assert {p.device.type for p in model.parameters()} == {device}
    for name in histories[0]:
        np.testing.assert_allclose(histories[0][name], histories[1][name], rtol=0, atol=1e-5, err_msg=name)


def test_metrics_of_counts_agree_on_the_gpu(wgpu):
    y, p = keras_cases.BINARY
    for title, options in (("AUC", {}), ("AUC", {"curve": "PR"}), ("Precision", {"top_k": 2}), ("Recall", {}), ("FalsePositives", {})):
        values = []
        for device in ("cpu", wgpu):
            metric = getattr(keras.metrics, title)(**options)
            metric.update_state(ag.tensor(y.astype("f")).to(device), ag.tensor(p.astype("f")).to(device))
            values.append(metric.result().item())
        assert values[0] == pytest.approx(values[1], abs=1e-6), title


# -- what data may be -----------------------------------------------------------------------------------


def regression(**options):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.01), "mse", **options)
    return model


RAW = np.random.default_rng(0).normal(size=(23, 3)).astype("f")
SUM = RAW.sum(1) * 2


def weights_after(data, **options):
    model = regression()
    history = model.fit(*data, epochs=2, verbose=0, **options)
    return model.get_weights()[0], history.history["loss"]


def test_arrays_tensors_lists_generators_and_loaders_train_alike():
    def batches():
        while True:
            for start in range(0, 23, 5):
                yield RAW[start : start + 5], SUM[start : start + 5]

    loader = ag.data.DataLoader(ag.data.TensorDataset(ag.tensor(RAW), ag.tensor(SUM)), batch_size=5)
    want, losses = weights_after((RAW, SUM), batch_size=5, shuffle=False)
    cases = {
        "tensors": ((ag.tensor(RAW), ag.tensor(SUM)), {"batch_size": 5, "shuffle": False}),
        "lists": ((RAW.tolist(), SUM.tolist()), {"batch_size": 5, "shuffle": False}),
        "a generator": ((batches(),), {"steps_per_epoch": 5}),
        "a loader": ((loader,), {}),
        "a list of an iterable's batches": ((iter_again(5),), {}),
    }
    for name, (data, options) in cases.items():
        got, found = weights_after(data, **options)
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(found, losses, rtol=1e-6, err_msg=name)


class iter_again:
    """Something that can only be iterated over."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter([(RAW[i : i + self.size], SUM[i : i + self.size]) for i in range(0, 23, self.size)])


def test_a_generator_that_is_used_up_says_so():
    model = regression()
    once = ((RAW, SUM) for _ in range(1))
    assert_raises(ValueError, "steps_per_epoch", lambda: model.fit(once, epochs=2, verbose=0))
    with pytest.warns(UserWarning, match="ended after 2 of 4"):
        model.fit(((RAW, SUM) for _ in range(2)), epochs=1, steps_per_epoch=4, verbose=0)


def test_shuffling_is_one_permutation_an_epoch():
    seen = []

    class Watching(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, x):
            seen.append(x.numpy()[:, 0])
            return self.dense(x)

    model = Watching()
    model.compile("sgd", "mse")
    x = np.arange(10, dtype="f")[:, None]
    model.predict(x, verbose=0)  # builds it, which draws too
    seen.clear()
    ag.manual_seed(3)
    model.fit(x, x, batch_size=4, epochs=2, verbose=0)
    ag.manual_seed(3)
    want = [ag.randperm(10).numpy() for _ in range(2)]
    for epoch in range(2):
        np.testing.assert_array_equal(np.concatenate(seen[3 * epoch : 3 * epoch + 3]), want[epoch])
    seen.clear()
    model.fit(x, x, batch_size=4, verbose=0, shuffle="batch")
    assert sorted(len(s) for s in seen) == [2, 4, 4] and all((np.diff(s) == 1).all() for s in seen)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"validation_split": 1.5}, "between 0 and 1"), ({"validation_split": 0.99}, "empty"), ({"epochs": -1}, "epochs"),
        ({"verbose": 3}, "verbose"), ({"batch_size": 0}, "batch_size"), ({"steps_per_epoch": 0}, "steps_per_epoch"),
        ({"shuffle": "all"}, "shuffle"), ({"sample_weight": SUM[:3]}, "same number of samples"),
        ({"sample_weight": SUM, "class_weight": {0: 1}}, "class_weight"), ({"validation_data": (RAW,)}, "validation_data"),
        ({"validation_data": (RAW, SUM), "validation_freq": 0}, "validation_freq"),
    ],
)  # fmt: skip
def test_what_fit_refuses(options, text):
    assert_raises(ValueError, text, lambda: regression().fit(RAW, SUM, **{"verbose": 0, **options}))


@pytest.mark.parametrize(
    "options, kind, text",
    [
        ({"optimizer": "adamm"}, ValueError, "Near: adam"), ({"loss": "mean_square_error"}, ValueError, "Near: mean_squared_error"),
        ({"loss": "mse", "metrics": ["acuracy"]}, ValueError, "Near: Accuracy"), ({"metrics": "mae"}, ValueError, "list"),
        ({"jit_compile": "yes"}, ValueError, "jit_compile"), ({"steps_per_execution": 4}, ValueError, "steps_per_execution"),
        ({"optimizer": ag.optim.SGD([ag.nn.Parameter(ag.ones(1))])}, TypeError, "keras.optimizers"), ({"speed": 3}, TypeError, "speed"),
    ],
)  # fmt: skip
def test_what_compile_refuses(options, kind, text):
    model = keras.Sequential([layers.Dense(1)])
    with pytest.raises(kind, match=text):
        model.compile(**options)


@pytest.mark.parametrize("options", [{"jit_compile": True}, {"jit_compile": False}, {"run_eagerly": True}], ids=str)
def test_options_that_change_nothing_change_nothing(options):
    want, _ = weights_after((RAW, SUM), shuffle=False)
    model = regression(**options)
    model.fit(RAW, SUM, epochs=2, verbose=0, shuffle=False)
    np.testing.assert_array_equal(model.get_weights()[0], want)


def test_nothing_runs_before_compile_and_without_a_loss():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    assert_raises(ValueError, "compile()", lambda: model.fit(RAW, SUM, verbose=0))
    model.compile("sgd")
    assert_raises(ValueError, "no loss", lambda: model.fit(RAW, SUM, verbose=0))
    frozen = keras.Sequential([keras.Input((3,)), layers.Dense(1, trainable=False)])
    frozen.compile("sgd", "mse")
    assert_raises(ValueError, "no trainable weights", lambda: frozen.fit(RAW, SUM, verbose=0))


def test_losses_that_layers_add_are_trained():
    class Pushed(keras.Layer):
        def build(self, input_shape):
            self.add_weight("w", (1,), "ones")

        def call(self, x):
            self.add_loss((self.w * self.w).sum())
            return x * self.w

    model = keras.Sequential([keras.Input((3,)), Pushed()])
    model.compile(keras.optimizers.SGD(0.1))
    history = model.fit(RAW, epochs=2, batch_size=23, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [1.0, 0.64], rtol=1e-6)  # w = 1, then 1 - 0.1 * 2


def test_a_users_own_train_step_and_metric():
    class Count(keras.metrics.Metric):
        def __init__(self, name="count"):
            super().__init__(name=name)
            self.seen = self.add_variable(shape=(), initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.seen.assign(self.seen + float(y_true.shape[0]))

        def result(self):
            return self.seen.value

    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)
            self.steps = 0

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            self.steps += 1
            return super().train_step(data)

    model = Mine()
    model.compile("sgd", "mse", metrics=[Count()])
    history = model.fit(RAW, SUM, batch_size=10, epochs=2, verbose=0)
    assert model.steps == 6
    assert history.history["count"] == [23.0, 23.0]


# -- predicting and single batches ----------------------------------------------------------------------


def test_predict_gives_arrays_in_the_models_nesting():
    x = keras.Input((3,))
    model = keras.Model(x, {"double": x * 2, "sum": [x[:, :1] + 1, layers.Dense(2)(x)]})
    got = model.predict(RAW, batch_size=7, verbose=0)
    np.testing.assert_allclose(got["double"], RAW * 2)
    np.testing.assert_allclose(got["sum"][0], RAW[:, :1] + 1)
    assert got["sum"][1].shape == (23, 2) and isinstance(got["sum"][1], np.ndarray)
    np.testing.assert_array_equal(model.predict_on_batch(RAW[:4])["double"], RAW[:4] * 2)


def test_several_outputs_are_told_in_keras_order():
    """evaluate(): the loss, the outputs' losses, then the rest by name; the words as Keras 3.15.1 puts them."""
    x = keras.Input((3,))
    outputs = {"reg": layers.Dense(1)(x), "cls": layers.Dense(2, "softmax")(x)}
    model = keras.Model(x, outputs)
    losses = {"reg": "mse", "cls": "sparse_categorical_crossentropy"}
    model.compile("sgd", losses, metrics={"reg": ["mae"], "cls": ["accuracy"]}, weighted_metrics={"cls": ["accuracy"]})
    data, y = np.ones((4, 3), "f"), {"reg": np.ones(4), "cls": np.array([0, 1, 1, 1])}
    names = ["loss", "reg_loss", "cls_loss", "cls_accuracy", "cls_weighted_accuracy", "reg_mae"]
    found = model.evaluate(data, y, verbose=0, return_dict=True)
    assert model.metrics_names == names and sorted(found) == sorted(names)
    assert model.evaluate(data, y, verbose=0) == [found[n] for n in names] == model.test_on_batch(data, y)
    model.compile("sgd", {"reg": "mse"})
    model.fit(data, {"reg": y["reg"]}, verbose=0)  # an output without a loss needs no targets
    with pytest.raises(ValueError, match=r"y has no entries \['reg'\]"):
        model.fit(data, {"cls": y["cls"]}, verbose=0)
    model.compile("sgd", {"reg": "mse"}, metrics={"cls": ["accuracy"]})
    with pytest.raises(ValueError, match="output 'cls' has metrics, and y has no entry"):
        model.fit(data, {"reg": y["reg"]}, verbose=0)


def test_dropout_acts_in_training_alone():
    model = keras.Sequential([keras.Input((3,)), layers.Dropout(0.5)])
    np.testing.assert_array_equal(model.predict(RAW, verbose=0), RAW)
    np.testing.assert_array_equal(model(RAW).numpy(), RAW)
    assert (model(RAW, training=True).numpy() == 0).any()


def test_single_batches_say_what_evaluate_says():
    model = regression(metrics=["mae"])
    loss, mae = model.evaluate(RAW, SUM, verbose=0)
    assert model.test_on_batch(RAW, SUM) == pytest.approx([loss, mae])
    assert model.test_on_batch(RAW, SUM, return_dict=True) == pytest.approx({"loss": loss, "mae": mae})
    assert model.train_on_batch(RAW, SUM) == pytest.approx([loss, mae])
    assert model.evaluate(RAW, SUM, verbose=0)[0] < loss
    assert model.metrics_names == ["loss", "mae"]


def test_what_becomes_trainable_after_compile_is_asked_about():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2), layers.Dense(1)])
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    model.fit(RAW, SUM, verbose=0)
    model.layers[0].trainable = True
    assert_raises(ValueError, "compile() anew", lambda: model.fit(RAW, SUM, verbose=0))
    model.compile("sgd", "mse")
    model.fit(RAW, SUM, verbose=0)


def test_sixteen_bits_are_counted_in_thirty_two():
    ones = ag.ones(5000, dtype=ag.float16)
    for metric, want in ((keras.metrics.TruePositives(), 5000), (keras.metrics.BinaryAccuracy(), 1), (keras.metrics.Mean(), 300)):
        metric(ones * 300) if want == 300 else metric(ones, ones)
        assert metric.result().item() == want


def test_averages_count_samples():
    x = np.array([[1.0], [1.0], [1.0], [5.0]], "f")
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mae")
    history = model.fit(x, x, batch_size=3, verbose=0, shuffle=False)
    assert history.history["loss"] == [2.0]  # (1 + 1 + 1 + 5) / 4, not (1 + 5) / 2


def test_no_warnings_in_an_ordinary_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = regression().fit(RAW, SUM, verbose=0, epochs=2)
    assert math.isfinite(history.history["loss"][-1])
