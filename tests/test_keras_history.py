"""What fit() returns and shows: the History, its picture, and Keras' progress display."""

import io

import numpy as np
import pytest

from autograd import keras

RAW = np.random.default_rng(0).normal(size=(23, 3)).astype("f")
SUM = RAW.sum(1) * 2


def regression():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    return model


def test_the_history_shows_and_draws_itself(tmp_path):
    model = regression()
    history = model.fit(RAW, SUM, epochs=3, verbose=0, validation_data=(RAW, SUM))
    assert history is model.history and history.epoch == [0, 1, 2] and history.params["epochs"] == 3
    assert "3 epochs" in repr(history) and "val_mae" in repr(history) and "first" in repr(history)
    pytest.importorskip("matplotlib")
    figure = history.plot(tmp_path / "history.png")
    assert [axes.get_title() for axes in figure.axes] == ["loss", "mae"]
    assert all(len(axes.lines) == 2 for axes in figure.axes)
    assert (tmp_path / "history.png").stat().st_size > 1000


def test_the_display_is_keras(capsys):
    model = regression()
    model.fit(RAW, SUM, epochs=2, batch_size=10)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Epoch 1/2" and lines[2] == "Epoch 2/2"
    assert lines[1].startswith("3/3 ━━━━━━━━━━━━━━━━━━━━ 0s ") and "/step - loss: " in lines[1] and " - mae: " in lines[1]
    model.fit(RAW, SUM, batch_size=10, verbose=2)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("3/3 - 0s - ") and "━" not in line
    model.fit(RAW, SUM, verbose=0)
    assert capsys.readouterr().out == ""
    model.evaluate(RAW, SUM, batch_size=10, verbose=1)
    assert capsys.readouterr().out.startswith("3/3 ━")


def test_the_bar_moves_on_a_terminal():
    from autograd.keras.progress import Progbar

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    bar = Progbar(4, interval=0.0, stream=out)
    for step in range(1, 5):
        bar.update(step, {"loss": 0.5, "tiny": 1e-5}, finalize=step == 4)
    text = out.getvalue()
    assert text.count("\r") == 4 and text.endswith("\n")
    assert "1/4" in text and "4/4" in text and "loss: 0.5000 - tiny: 1.0000e-05" in text


def test_a_loop_written_by_hand(tmp_path):
    history = keras.callbacks.History()
    for i in range(3):
        history.add(loss=3.0 - i, val_loss=4.0 - i)
    assert history.epoch == [0, 1, 2] and history.history == {"loss": [3, 2, 1], "val_loss": [4, 3, 2]}
    history.plot(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG") and "<History: 3 epochs" in repr(history)
