"""A GRU reads sentences of Python's own documentation and says what they are about: python examples/07_keras_text_gru.py

The text is on every machine that has Python: the docstrings of modules about numbers, files, text and networks. Each
sentence becomes the numbers of its words; an embedding, a GRU and a dense layer learn which subject it is from.
"""

import argparse
import importlib
import inspect
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np

import autograd as ag
from autograd import keras

SUBJECTS = {
    "numbers": "math cmath decimal fractions statistics random datetime",
    "files": "os shutil pathlib tempfile zipfile tarfile io",
    "text": "re string textwrap difflib json csv argparse",
    "networks": "socket ssl http.client http.server urllib.request smtplib ftplib",
}
LENGTH = 24  # words of a sentence; the rest is cut off


def docstrings(thing, module, deeper=True):
    """What a module's functions, classes and their methods say about themselves."""
    for name, value in sorted(vars(thing).items()):
        own = value.__module__.lstrip("_") == module if inspect.isclass(value) else callable(value) or isinstance(value, property)
        if own and not name.startswith("__") and isinstance(value.__doc__, str):
            yield value.__doc__
            if inspect.isclass(value) and deeper:
                yield from docstrings(value, module, deeper=False)


def sentences():
    """(words, subject) of every sentence of four words or more, each once; sorted, so always in the same order."""
    found = {}
    for subject, (_, modules) in enumerate(SUBJECTS.items()):
        for name in modules.split():
            for text in docstrings(importlib.import_module(name), name):
                for sentence in re.split(r"(?<=[.:!?])\s|\n\s*\n|>>>.*", text):
                    words = re.findall(r"[a-z]+", sentence.lower())
                    if len(words) >= 4:
                        found.setdefault(" ".join(words), subject)
    return [(text.split(), subject) for text, subject in sorted(found.items())]


def data(limit=None):
    """Word numbers (n, LENGTH), 0 after the end, and subjects, for training and for the test; and the known words.

    A word that the training sentences hold only once is 1, as is one that they do not hold.
    """
    pairs = sentences()
    order = np.random.default_rng(0).permutation(len(pairs))[:limit]
    test, train = np.split(order, [len(order) // 5])
    counts = Counter(word for i in train for word in pairs[i][0])
    words = {word: number for number, word in enumerate(sorted(w for w, n in counts.items() if n > 1), 2)}
    numbers = [[words.get(word, 1) for word in pairs[i][0][:LENGTH]] for i in order]
    x = np.array([row + [0] * (LENGTH - len(row)) for row in numbers])
    y = np.array([pairs[i][1] for i in order])
    return x[len(test) :], y[len(test) :], x[: len(test)], y[: len(test)], words


def reader(vocabulary):
    """Word numbers in, the probability of each subject out; the mask keeps the GRU from reading behind the end."""
    model = keras.Sequential([
        keras.Input((LENGTH,), dtype="int64"),
        keras.layers.Embedding(vocabulary, 32, mask_zero=True),
        keras.layers.SpatialDropout1D(0.3),
        keras.layers.GRU(32),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(len(SUBJECTS), activation="softmax"),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.005), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main(device, epochs, limit, out):
    ag.manual_seed(0)
    x, y, unseen, answers, words = data(limit)
    model = reader(len(words) + 2).to(device)
    model.summary()
    stop = keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True)
    history = model.fit(x, y, batch_size=64, epochs=epochs, validation_split=0.15, callbacks=[stop])
    out.mkdir(parents=True, exist_ok=True)
    history.plot(out / "text_gru.png")
    model.save(out / "text_gru.keras")

    _, accuracy = model.evaluate(unseen, answers, verbose=0)
    baseline = np.bincount(answers).max() / len(answers)
    print(f"test accuracy {accuracy:.1%}, on {len(answers)} sentences it never saw; the commonest subject alone: {baseline:.1%}")
    guesses = keras.models.load_model(out / "text_gru.keras").to(device).predict(unseen, verbose=0).argmax(1)
    assert abs(np.mean(guesses == answers) - accuracy) < 1e-6, "the model loaded back reads differently"
    names, spoken = list(SUBJECTS), {number: word for word, number in words.items()}
    for row, guess, answer in list(zip(unseen, guesses, answers))[:8]:
        text = " ".join(spoken.get(number, "…") for number in row if number)
        print(f"{names[guess]:>8} {'' if guess == answer else f'(not {names[answer]})':<14} {text[:80]}")
    print(f"wrote text_gru.png and text_gru.keras to {out}/; loaded back, the model reads the same")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--limit", type=int, help="use no more sentences than this")
    parser.add_argument("--out", type=Path, default=Path("out"))
    main(**vars(parser.parse_args()))
