"""Model files that somebody made up, with checksums that fit: refused with a ValueError, before anything large is made."""

import copy
import json
import random
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from helpers import assert_raises

import autograd as ag
from autograd import checkpoint, keras
from autograd.keras import layers

MOST = 512 << 20  # bytes of address space that a load here may take; what is asked for is terabytes


def recurrent():
    model = keras.Sequential([
        keras.Input((5,), dtype="int32"), layers.Embedding(7, 3, mask_zero=True), layers.Bidirectional(layers.GRU(2, return_sequences=True)),
        layers.LSTM(2, dropout=0.1), layers.BatchNormalization(), layers.Dense(2, "softmax", kernel_regularizer="l2"),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.01, use_ema=True), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(np.arange(20).reshape(4, 5) % 7, np.arange(4) % 2, verbose=0)
    return model


def branched():
    x, y = keras.Input((4, 3)), keras.Input((4, 3), name="other")
    z = layers.Concatenate()([layers.MultiHeadAttention(2, 2)(x, y), x * 2 + y])
    z1, z2 = layers.RNN([layers.GRUCell(2), layers.LSTMCell(2)])(z), layers.Dense(2)(layers.Flatten()(z))
    model = keras.Model([x, y], layers.Dense(1, "sigmoid")(layers.Add()([z1, z2])))
    model.compile("sgd", "binary_crossentropy", metrics=[keras.metrics.AUC(num_thresholds=10)])
    return model


def stateful():
    cell = layers.GRU(2, stateful=True, batch_input_shape=(2, 3, 2), return_sequences=True, checkpoint=2)
    model = keras.Sequential([cell, layers.CuDNNLSTM(2), layers.Dense(1)])
    model.compile(keras.optimizers.Lamb(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)), keras.losses.Huber(0.5))
    return model


MAKERS = {"recurrent": recurrent, "branched": branched, "stateful": stateful}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What the files of the models hold, and their bytes."""
    folder, found = tmp_path_factory.mktemp("saved"), {}
    for name, make in MAKERS.items():
        keras.utils.set_random_seed(0)
        make().save(folder / name)
        found[name] = ag.load(folder / name), (folder / name).read_bytes()
    return found


def plain(tree):
    """A copy with lists for tuples, which can be changed; tensors stay."""
    if isinstance(tree, dict):
        return {k: plain(v) for k, v in tree.items()}
    return [plain(v) for v in tree] if isinstance(tree, list | tuple) else tree


def changed(data, *rows):
    """The data with other values (... for none) at places in it."""
    data = plain(data)
    for *keys, last, value in rows:
        place = data
        for key in keys:
            place = place[key]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return data


@contextmanager
def little_memory():
    """Inside, whoever asks for more than MOST gets a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def refused(load, path, text):
    """load(path) raises a ValueError with this text, and takes little memory."""
    with little_memory(), pytest.raises(ValueError) as caught:
        load(path)
    assert text in str(caught.value) and "MemoryError" not in str(caught.value)


HUGE = 10**12
LAYERS, NODES, METRICS = ("model", "config", "layers"), ("model", "config", "nodes"), ("compile", "config", "metrics")
FORGED = [
    ("recurrent", [(*LAYERS, 4, "config", "units", HUGE)], "has shape (2, 1000000000000), for which the weights in the file"),
    ("recurrent", [(*LAYERS, 2, "config", "units", 10**5)], "for which the weights in the file are too few"),
    ("recurrent", [(*LAYERS, 0, "config", "input_dim", HUGE)], "for which the weights in the file are too few"),
    ("recurrent", [(*LAYERS, 4, "config", "bogus", 3)], "[Dense] this config makes none, for bogus=3: TypeError: Keyword"),
    ("recurrent", [(*LAYERS, 2, "config", "dropout", "much")], "[LSTM] this config makes none, for dropout=much: TypeError"),
    ("recurrent", [(*LAYERS, 2, "config", "units", ...)], "[LSTM] this config makes none: TypeError"),
    ("recurrent", [(*LAYERS, 1, "config", "layer", "config", "checkpoint", "two")], "[GRU] checkpoint must be a positive number"),
    ("recurrent", [(*LAYERS, 4, "config", "kernel_regularizer", {"class_name": "L2", "config": {"l3": 1}})], "[L2] this config makes none, for l3=1"),
    ("recurrent", [("compile", "optimizer", "config", "beta_1", "x")], "[Adam] this config makes none, for beta_1=x"),
    ("recurrent", [("compile", "state", {"calls": 1})], "is damaged"),
    ("recurrent", [("model", {"class_name": "Dense", "config": {"units": 3}})], "holds a Dense, which is no model"),
    ("recurrent", [("weights", [1])], "holds something else than weights"),
    ("stateful", [(*LAYERS, 0, "config", "batch_input_shape", [HUGE, 3, 2]), ("model", "config", "input", "batch_shape", [HUGE, 3, 2])], "state of gru"),
    ("branched", [(*METRICS, "list", 0, "object", "config", {"num_thresholds": HUGE})], "thresholds of a metric of shape (1000000000000,) is more"),
    ("branched", [(*METRICS, "list", 0, "object", {"class_name": "MeanIoU", "config": {"num_classes": 10**6}})], "state of metric"),
    ("branched", [(*NODES, 0, "outputs", ...), (*LAYERS, 0, "config", "batch_shape", [1, 2**20, 3])], "lacks the shapes of its outputs"),
    ("branched", [(*NODES, 0, "outputs", {"tensor": [["a"], "float32"]})], "sizes are integers from 0 on, or None"),
    ("branched", [(*NODES, 0, "layer", 99)], "[Model] this config makes none: IndexError"),
    ("branched", [(*NODES, 0, "args", [])], "[Model] this config makes none"),
]


@pytest.mark.parametrize("name, rows, text", FORGED, ids=[f"{i}-{text[:30]}" for i, (*_, text) in enumerate(FORGED)])
def test_what_is_refused(name, rows, text, saved, tmp_path):
    ag.save(changed(saved[name][0], *rows), tmp_path / "f")
    refused(keras.load_model, tmp_path / "f", text)


def test_a_model_inside_is_not_run_either(tmp_path):
    """Attention over 2^20 steps takes 2^40 scores, of a file of some kilobytes."""
    x = keras.Input((4, 1))
    model = keras.Sequential([keras.Input((4, 1)), keras.Model(x, layers.Attention()([x, x])), layers.GlobalMaxPooling1D()])
    model.save(tmp_path / "f")
    data = ag.load(tmp_path / "f")
    assert keras.load_model(tmp_path / "f").output_shape == (None, 1)
    ag.save(changed(data, ("model", "config", "outputs", ...), ("model", "config", "input", "batch_shape", [1, 2**20, 1])), tmp_path / "f")
    refused(keras.load_model, tmp_path / "f", "lacks the shapes of its outputs")


class Own(keras.Model):
    """A user's model, which is built by a run on zeros of the shape that the file names."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def call(self, inputs):
        return self.dense(inputs)

    def get_config(self):
        return {"name": self.name}


def test_a_users_model_is_run_on_small_zeros_alone(tmp_path):
    model = Own()
    model(np.ones((2, 3), np.float32))
    model.save(tmp_path / "f")
    again = keras.load_model(tmp_path / "f", custom_objects={"Own": Own})
    assert (again.get_weights()[0] == model.get_weights()[0]).all()
    ag.save(changed(ag.load(tmp_path / "f"), ("build_shape", [10**6, 10**6, 3])), tmp_path / "f")
    assert_raises(ValueError, "more than a file may ask for", lambda: keras.load_model(tmp_path / "f", custom_objects={"Own": Own}))


class Twice(layers.Layer):
    """A user's layer without compute_output_shape."""

    def call(self, inputs):
        return inputs * 2


class Block(layers.Layer):
    """One that builds a model of its own from such layers."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = keras.Sequential([Twice(), layers.Dense(3)])

    def build(self, input_shape):
        self.inner.build(input_shape)

    def call(self, inputs):
        return self.inner(inputs)


def test_what_users_layers_build_is_tried_out_as_ever(tmp_path):
    model = keras.Sequential([keras.Input((4, 2)), Block(), layers.TimeDistributed(Twice())])
    model.save(tmp_path / "f")
    again = keras.load_model(tmp_path / "f", custom_objects={"Block": Block, "Twice": Twice})
    x = np.ones((1, 4, 2), np.float32)
    assert (np.asarray(again(x).detach()) == np.asarray(model(x).detach())).all()


def test_limits_are_those_of_the_load_alone(saved, tmp_path):
    ag.save(changed(saved["recurrent"][0], (*LAYERS, 4, "config", "units", 10**6)), tmp_path / "f")
    refused(keras.load_model, tmp_path / "f", "too few")
    layer = layers.Dense(3000)
    layer.build((None, 1000))
    assert layer.kernel.shape == (1000, 3000)


VALUES = [None, True, -1, 0, 1, 3, 10**6, HUGE, 2**63, 0.5, -2.5, float("nan"), "", "x", "relu", "Dense", [], {}, [1, 2], [10**9, 10**9], [[[[]]]],
          {"class_name": "GRUCell", "config": {"units": 10**8}}, {"class_name": "GRU", "config": {}}, {"tensor": 0}, {"list": [1]}, {"object": {}}]  # fmt: skip


def places(tree, at=()):
    """The keys that lead to every part of nested data."""
    if at:
        yield at
    for k, v in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(v, (*at, k))


def mutated(data, draw):
    """Some parts replaced by other values, dropped, or put in each other's place."""
    data = plain(data)
    for _ in range(draw.choice([1, 1, 2, 3])):
        found = list(places(data))
        (*keys, last), other = draw.choice(found), draw.choice(found)
        value = copy.deepcopy(draw.choice(VALUES))
        if draw.random() < 0.2:
            value = ...
        elif draw.random() < 0.2:
            value = data
            for key in other:
                value = value[key]
        data = changed(data, (*keys, last, value))
    return data


def loads_or_refuses(load, path):
    """True when it loads; a ValueError with a text is the only other way it may end."""
    try:
        load(path)
    except ValueError as error:
        assert len(str(error)) > 10 and "MemoryError" not in str(error)
        return False
    return True


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(2))
def test_random_changes_of_a_model(name, seed, saved, tmp_path):
    draw, loaded = random.Random(seed), 0
    with little_memory():
        for _ in range(40):
            ag.save(mutated(saved[name][0], draw), tmp_path / "f")
            loaded += loads_or_refuses(keras.load_model, tmp_path / "f")
    assert 0 < loaded < 30


@pytest.mark.parametrize("name", MAKERS)
def test_random_changes_of_bytes(name, saved, tmp_path):
    raw, draw = saved[name][1], random.Random(1)
    for _ in range(60):
        at, length = draw.randrange(len(raw)), draw.randrange(9)
        fresh = bytes(draw.randrange(256) for _ in range(draw.randrange(9)))
        content = draw.choice([raw[:at], raw[:at] + fresh + raw[at + length :]])
        (tmp_path / "f").write_bytes(content)
        assert content == raw or not loads_or_refuses(keras.load_model, tmp_path / "f")


def forged(path, structure, arrays, header=None):
    """A file with a checksum that fits, of a structure that save() does not write."""
    text = structure if isinstance(structure, str) else json.dumps(structure)
    metadata = dict(zip(checkpoint._KEYS, (checkpoint._VERSION, text, checkpoint._digest(text, arrays)), strict=True))
    with open(path, "wb") as file:
        checkpoint._write(file, arrays, metadata)


STRUCTURES = [
    {}, {"tensor": "b"}, {"tensor": ["a"]}, {"tensor": {}}, {"dict": 3}, {"dict": [[1]]}, {"dict": [[[], 1]]}, {"list": 5}, {"tuple": None},
    {"float": "x"}, {"set": [1]}, {"a": 1, "b": 2}, "[" * 5000, "{", "9" * 5000, '{"list":[' * 3000 + "]}" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("structure", STRUCTURES, ids=range(len(STRUCTURES)))
def test_structures_that_save_does_not_write(structure, tmp_path):
    forged(tmp_path / "f", structure, {"a": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match="is damaged: its structure is not what"):
        ag.load(tmp_path / "f")


@pytest.mark.parametrize("entry", [
    {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}, {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 4]}, {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]},
    {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}, {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]}, {"dtype": "F32", "shape": [1], "data_offsets": [2**63, 2**63 + 4]},
], ids=str)  # fmt: skip
def test_headers_that_promise_what_is_not_there(entry, tmp_path):
    text = json.dumps({"a": entry}).encode()
    (tmp_path / "f").write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * min(4, entry["data_offsets"][1]))
    refused(ag.load, tmp_path / "f", "[load]")
