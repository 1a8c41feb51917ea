"""Callbacks: what they do, when they are called, what they write."""

import csv

import numpy as np
import pytest
from helpers import assert_raises

from autograd import keras

layers, callbacks = keras.layers, keras.callbacks
X = np.random.default_rng(0).normal(size=(24, 3)).astype("f")
Y = X.sum(1, keepdims=True)


def model(rate=0.01, **options):
    made = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="zeros")])
    made.compile(keras.optimizers.SGD(rate), "mse", **options)
    return made


class Scripted(callbacks.Callback):
    """Puts these values into the logs, one an epoch, before the callbacks after it see them."""

    def __init__(self, values, name="val_loss"):
        super().__init__()
        self.values, self.name = values, name

    def on_epoch_end(self, epoch, logs=None):
        logs[self.name] = self.values[epoch]


def run(values, *watching, name="val_loss", rate=0.01):
    made = model(rate)
    seen = []
    keep = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(made.get_weights()[0].copy()))
    history = made.fit(X, Y, epochs=len(values), verbose=0, shuffle=False, callbacks=[Scripted(values, name), keep, *watching])
    return made, history, seen


@pytest.mark.parametrize(
    "values, options, epochs, best",
    [
        ([3, 2, 1, 2, 3, 4], {"patience": 2}, 5, 2), ([3, 2, 1, 2, 3, 4], {"patience": 0}, 4, 2),
        ([3, 2.9, 2.8, 2.7], {"patience": 1, "min_delta": 0.5}, 2, 0), ([1, 2, 3, 4, 5], {"patience": 1, "start_from_epoch": 2}, 4, 2),
        ([5, 4, 3, 2, 1], {"patience": 1, "baseline": 0.5}, 5, 4), ([1, 2, 3], {"patience": 1, "mode": "max"}, 3, 2),
    ],
    ids=str,
)  # fmt: skip
def test_early_stopping_stops_and_puts_the_best_weights_back(values, options, epochs, best):
    stop = callbacks.EarlyStopping(restore_best_weights=True, **options)
    made, history, seen = run(values, stop)
    assert len(history.epoch) == epochs and stop.best_epoch == best
    np.testing.assert_array_equal(made.get_weights()[0], seen[best])
    assert made.stop_training == (epochs < len(values))


def test_early_stopping_keeps_the_last_weights_unless_asked():
    made, history, seen = run([1, 2, 3, 4], callbacks.EarlyStopping(patience=1))
    assert len(history.epoch) == 2
    np.testing.assert_array_equal(made.get_weights()[0], seen[-1])


def test_early_stopping_speaks_and_warns(capsys):
    run([1, 2, 3], callbacks.EarlyStopping(patience=1, verbose=1, restore_best_weights=True))
    assert capsys.readouterr().out == "Epoch 2: early stopping\nRestoring model weights from the end of the best epoch: 1.\n"
    with pytest.warns(UserWarning, match="there is no 'val_loss'"):
        model().fit(X, Y, verbose=0, callbacks=[callbacks.EarlyStopping()])


@pytest.mark.parametrize("monitor, mode", [("val_loss", "min"), ("val_accuracy", "max"), ("auc_1", "max"), ("root_mean_squared_error", "min"),
                                            ("second_accuracy", "max"), ("val_first_loss", "min")])  # fmt: skip
def test_the_mode_follows_from_the_name(monitor, mode):
    assert callbacks.EarlyStopping(monitor).mode == mode


def test_an_unknown_direction_is_asked_for():
    assert_raises(ValueError, "mode='min' or 'max'", lambda: callbacks.EarlyStopping("val_surprise"))
    assert_raises(ValueError, "auto, min or max", lambda: callbacks.EarlyStopping(mode="down"))


def test_reduce_lr_on_plateau():
    _, history, _ = run([5, 5, 5, 5, 5, 4, 4], callbacks.ReduceLROnPlateau(patience=2, factor=0.5, cooldown=1, min_lr=0.004), rate=0.01)
    assert history.history["learning_rate"] == [0.01, 0.01, 0.01, 0.005, 0.005, 0.004, 0.004]
    _, history, _ = run([5] * 6, callbacks.ReduceLROnPlateau(patience=1, factor=0.1, min_lr=0.002), rate=0.01)
    assert history.history["learning_rate"] == pytest.approx([0.01, 0.01, 0.002, 0.002, 0.002, 0.002])
    assert_raises(ValueError, "below 1", lambda: callbacks.ReduceLROnPlateau(factor=1.0))


def test_learning_rate_scheduler():
    for schedule in (lambda epoch, rate: rate / 2, lambda epoch: 0.01 * 0.5 ** (epoch + 1)):
        made = model()
        history = made.fit(X, Y, epochs=3, verbose=0, callbacks=[callbacks.LearningRateScheduler(schedule)])
        assert history.history["learning_rate"] == [0.005, 0.0025, 0.00125]
    assert_raises(ValueError, "a number", lambda: made.fit(X, Y, verbose=0, callbacks=[callbacks.LearningRateScheduler(lambda e: "fast")]))


def test_a_schedule_cannot_be_overruled():
    made = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    made.compile(keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)), "mse")
    assert_raises(TypeError, "schedule", lambda: setattr(made.optimizer, "learning_rate", 0.1))
    made.fit(X, Y, batch_size=12, verbose=0, epochs=5)
    assert made.optimizer.learning_rate == pytest.approx(0.05) and made.optimizer.iterations == 10


def test_model_checkpoint(tmp_path):
    run([3, 1, 2, 0.5], callbacks.ModelCheckpoint(tmp_path / "deep" / "{epoch:02d}-{val_loss:.1f}.keras", save_best_only=True))
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["01-3.0.keras", "02-1.0.keras", "04-0.5.keras"]
    best = tmp_path / "best.safetensors"
    made, _, seen = run([3, 1, 2], callbacks.ModelCheckpoint(best, save_best_only=True, save_weights_only=True))
    made.load_weights(best)
    np.testing.assert_array_equal(made.get_weights()[0], seen[1])
    every = callbacks.ModelCheckpoint(tmp_path / "e{epoch}b{batch}.keras", save_freq=2)
    model().fit(X, Y, batch_size=8, epochs=2, verbose=0, callbacks=[every])
    assert sorted(p.name for p in tmp_path.glob("e*b*")) == ["e1b2.keras", "e2b1.keras", "e2b3.keras"]
    wrong = callbacks.ModelCheckpoint(tmp_path / "{accuracy}.keras")
    with pytest.raises(KeyError, match="there are loss, epoch"):
        model().fit(X, Y, verbose=0, callbacks=[wrong])
    assert_raises(ValueError, "save_freq", lambda: callbacks.ModelCheckpoint("x", save_freq="batch"))


def test_a_saved_best_model_goes_on(tmp_path):
    path = tmp_path / "model.keras"
    _, _, seen = run([3, 1, 2], callbacks.ModelCheckpoint(path, save_best_only=True, initial_value_threshold=2.0))
    again = keras.load_model(path)
    np.testing.assert_array_equal(again.get_weights()[0], seen[1])
    assert again.optimizer.iterations == 2


def test_csv_logger(tmp_path):
    path = tmp_path / "log.csv"
    model().fit(X, Y, epochs=2, verbose=0, callbacks=[callbacks.CSVLogger(path)])
    model().fit(X, Y, epochs=3, initial_epoch=2, verbose=0, callbacks=[callbacks.CSVLogger(path, append=True)])
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]
    assert list(rows[0]) == ["epoch", "loss", "val_loss"] and rows[0]["val_loss"] == "NA" and float(rows[1]["loss"]) < float(rows[0]["loss"])
    history = model().fit(X, Y, epochs=2, verbose=0, validation_split=0.25, callbacks=[callbacks.CSVLogger(path, separator=";")])
    rows = list(csv.DictReader(path.read_text().splitlines(), delimiter=";"))
    assert [float(row["val_loss"]) for row in rows] == history.history["val_loss"]


def test_terminate_on_nan(capsys):
    x = X.copy()
    x[10] = np.nan
    history = model().fit(x, Y, batch_size=4, epochs=3, verbose=0, shuffle=False, callbacks=[callbacks.TerminateOnNaN()])
    assert history.epoch == [0] and "Batch 2: Invalid loss" in capsys.readouterr().out


def test_tensorboard(tmp_path, monkeypatch):
    board = callbacks.TensorBoard(tmp_path, update_freq=2, histogram_freq=1)
    model().fit(X, Y, batch_size=8, epochs=2, verbose=0, validation_split=0.25, callbacks=[board])
    written = {part: b"".join(p.read_bytes() for p in (tmp_path / part).iterdir()) for part in ("train", "validation")}
    assert b"epoch_loss" in written["train"] and b"batch_loss" in written["train"] and b"dense" in written["train"]
    assert b"epoch_loss" in written["validation"]
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    assert_raises(ImportError, "pip install tensorboardX", lambda: callbacks.TensorBoard(tmp_path))


def test_matplotlib_is_asked_for(monkeypatch):
    history = model().fit(X, Y, verbose=0)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert_raises(ImportError, "pip install matplotlib", history.plot)


def test_a_users_own_callback():
    class Mine(callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.told = []

        def on_batch_end(self, batch, logs=None):
            self.told.append((batch, sorted(logs)))

        def on_epoch_begin(self, epoch, logs=None):
            assert self.model.optimizer is not None and self.params == {"verbose": 0, "epochs": 2, "steps": 3}

        def on_train_batch_begin(self, batch, logs=None):
            self.model.stop_training = len(self.told) == 4

    mine = Mine()
    history = model(metrics=["mae"]).fit(X, Y, batch_size=8, epochs=2, verbose=0, callbacks=[mine])
    assert mine.told == [(0, ["loss", "mae"]), (1, ["loss", "mae"]), (2, ["loss", "mae"]), (0, ["loss", "mae"]), (1, ["loss", "mae"])]
    assert history.epoch == [0, 1]


def test_what_is_no_callback_is_refused():
    assert_raises(TypeError, "Make an object of it", lambda: model().fit(X, Y, verbose=0, callbacks=[callbacks.EarlyStopping]))
    assert_raises(TypeError, "expected Callback", lambda: model().fit(X, Y, verbose=0, callbacks=["early"]))
    assert_raises(TypeError, "no hook 'on_epoch_stop'", lambda: callbacks.LambdaCallback(on_epoch_stop=print))


def test_a_callback_list_of_ones_own():
    seen = []
    several = callbacks.CallbackList([callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(epoch))])
    history = model().fit(X, Y, epochs=2, verbose=0, callbacks=several)
    assert seen == [0, 1] and history.epoch == [0, 1]
