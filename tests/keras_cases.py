"""Programs that run on Keras and on autograd.keras alike: what they compute is compared in test_keras_golden.py.

Each function takes the package and gives {name: array}. keras_reference.py runs them on Keras and writes the golden file.
"""

import numpy as np


def array(x):
    """A tensor of either package, or a number, as float64."""
    x = x.detach() if hasattr(x, "detach") else x
    x = x.cpu() if hasattr(x, "cpu") else x
    return np.array(x.numpy() if hasattr(x, "numpy") else x, dtype=np.float64)


def rng(seed):
    return np.random.default_rng(seed)


def probabilities(r, *shape):
    e = np.exp(r.normal(size=shape))
    return e / e.sum(-1, keepdims=True)


def one_hot(labels, n):
    return np.eye(n)[labels]


# -- losses ---------------------------------------------------------------------------------------------

R = rng(1)
REAL = (R.normal(size=(5, 3)), R.normal(size=(5, 3)))
POSITIVE = (R.uniform(0.1, 3, size=(5, 3)), R.uniform(0.1, 3, size=(5, 3)))
BINARY = (R.integers(0, 2, (5, 3)).astype(float), R.uniform(size=(5, 3)))
LABELS = R.integers(0, 4, 5)
CLASSES = (one_hot(LABELS, 4), probabilities(R, 5, 4))
UNNORMALISED = (one_hot(LABELS, 4), R.uniform(0.05, 2, size=(5, 4)))
SPARSE = (LABELS, CLASSES[1])
LOGITS = R.normal(size=(5, 4)) * 3
EDGE = (np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 1e-12]]))
EMBEDDED = (np.array([0, 1, 0, 1, 1]), np.array([[0.6, 0.8], [1.0, 0.0], [0.8, -0.6], [0.0, 1.0], [-0.6, 0.8]]))
SEQUENCES = (R.integers(1, 5, (3, 4)), R.normal(size=(3, 9, 5)))

LOSSES = [
    ("MeanSquaredError", {}, REAL), ("MeanAbsoluteError", {}, REAL), ("MeanAbsolutePercentageError", {}, REAL),
    ("MeanSquaredLogarithmicError", {}, POSITIVE), ("Huber", {}, REAL), ("Huber", {"delta": 0.3}, REAL), ("LogCosh", {}, REAL),
    ("CosineSimilarity", {}, REAL), ("CosineSimilarity", {"axis": 0}, REAL), ("Poisson", {}, POSITIVE), ("KLDivergence", {}, CLASSES),
    ("Hinge", {}, (BINARY[0], REAL[1])), ("Hinge", {}, (BINARY[0] * 2 - 1, REAL[1])), ("SquaredHinge", {}, (BINARY[0], REAL[1])),
    ("CategoricalHinge", {}, CLASSES), ("BinaryCrossentropy", {}, BINARY), ("BinaryCrossentropy", {}, EDGE),
    ("BinaryCrossentropy", {"from_logits": True}, (BINARY[0], REAL[1] * 4)), ("BinaryCrossentropy", {"label_smoothing": 0.2}, BINARY),
    ("BinaryFocalCrossentropy", {}, BINARY), ("BinaryFocalCrossentropy", {"apply_class_balancing": True, "gamma": 3.0}, BINARY),
    ("BinaryFocalCrossentropy", {"from_logits": True}, (BINARY[0], REAL[1])), ("CategoricalCrossentropy", {}, CLASSES),
    ("CategoricalCrossentropy", {}, UNNORMALISED), ("CategoricalCrossentropy", {}, EDGE),
    ("CategoricalCrossentropy", {"from_logits": True}, (CLASSES[0], LOGITS)),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, CLASSES), ("CategoricalFocalCrossentropy", {}, CLASSES),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "alpha": 0.5, "gamma": 1.5}, (CLASSES[0], LOGITS)),
    ("SparseCategoricalCrossentropy", {}, SPARSE), ("SparseCategoricalCrossentropy", {"from_logits": True}, (LABELS, LOGITS)),
    ("SparseCategoricalCrossentropy", {"ignore_class": int(LABELS[0])}, SPARSE), ("Dice", {}, BINARY),
    ("Tversky", {"alpha": 0.3, "beta": 0.7}, BINARY), ("CTC", {}, SEQUENCES),
    ("CategoricalGeneralizedCrossEntropy", {"q": 0.7}, SPARSE), ("Circle", {"gamma": 2.0}, EMBEDDED),
]  # fmt: skip
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 3.0])


def losses(keras):
    """Each loss with each reduction, without and with weights."""
    found = {}
    for i, (title, options, (y_true, y_pred)) in enumerate(LOSSES):
        for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight", None):
            loss = getattr(keras.losses, title)(reduction=reduction, **options)
            found[f"{i}.{title}.{reduction}"] = array(loss(y_true, y_pred))
            if found[f"{i}.{title}.None"].shape[:1] == (5,) if reduction is None else y_pred.shape[0] == 5 and title not in ("Dice", "Tversky") and options.get("axis") != 0:
                found[f"{i}.{title}.{reduction}.weighted"] = array(loss(y_true, y_pred, WEIGHTS))
    return found


# -- metrics --------------------------------------------------------------------------------------------

GUESSED = (LABELS, (LABELS + (np.arange(5) > 2)) % 4)
THRESHOLDED = (np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.8, 0.6, 0.4, 0.9]))
METRICS = [
    ("Accuracy", {}, (LABELS, LABELS.copy() * (np.arange(5) != 2))), ("BinaryAccuracy", {}, BINARY), ("BinaryAccuracy", {"threshold": 0.2}, BINARY),
    ("CategoricalAccuracy", {}, CLASSES), ("SparseCategoricalAccuracy", {}, SPARSE), ("TopKCategoricalAccuracy", {"k": 2}, CLASSES),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, SPARSE), ("MeanSquaredError", {}, REAL), ("RootMeanSquaredError", {}, REAL),
    ("MeanAbsoluteError", {}, REAL), ("MeanAbsolutePercentageError", {}, REAL), ("MeanSquaredLogarithmicError", {}, POSITIVE),
    ("LogCoshError", {}, REAL), ("CosineSimilarity", {}, REAL), ("KLDivergence", {}, CLASSES), ("Poisson", {}, POSITIVE),
    ("Hinge", {}, (BINARY[0], REAL[1])), ("SquaredHinge", {}, (BINARY[0], REAL[1])), ("CategoricalHinge", {}, CLASSES),
    ("BinaryCrossentropy", {}, BINARY), ("CategoricalCrossentropy", {}, CLASSES), ("SparseCategoricalCrossentropy", {}, SPARSE),
    ("Precision", {}, BINARY), ("Precision", {"thresholds": [0.2, 0.7]}, BINARY), ("Precision", {"top_k": 2}, BINARY),
    ("Precision", {"class_id": 1}, BINARY), ("Recall", {}, BINARY), ("Recall", {"thresholds": 0.3}, BINARY),
    ("TruePositives", {}, BINARY), ("FalsePositives", {}, BINARY), ("TrueNegatives", {}, BINARY), ("FalseNegatives", {}, BINARY),
    ("SensitivityAtSpecificity", {"specificity": 0.5}, BINARY), ("SpecificityAtSensitivity", {"sensitivity": 0.5}, BINARY),
    ("PrecisionAtRecall", {"recall": 0.5}, BINARY), ("RecallAtPrecision", {"precision": 0.5}, BINARY), ("AUC", {}, BINARY),
    ("AUC", {"curve": "PR"}, BINARY), ("AUC", {"summation_method": "minoring"}, BINARY),
    ("AUC", {"summation_method": "majoring", "curve": "PR"}, BINARY), ("AUC", {"thresholds": [0.2, 0.5, 0.9]}, BINARY),
    ("AUC", {"from_logits": True}, (BINARY[0], REAL[1])), ("F1Score", {}, CLASSES), ("F1Score", {"average": "micro"}, CLASSES),
    ("FBetaScore", {"average": "macro", "beta": 2.0, "threshold": 0.3}, CLASSES), ("FBetaScore", {"average": "weighted"}, CLASSES),
    ("R2Score", {}, REAL), ("R2Score", {"class_aggregation": None}, REAL), ("R2Score", {"class_aggregation": "variance_weighted_average"}, REAL),
    ("R2Score", {"num_regressors": 2}, REAL), ("PearsonCorrelation", {}, REAL), ("ConcordanceCorrelation", {}, REAL),
    ("IoU", {"num_classes": 4, "target_class_ids": [0, 2], "dtype": "float64"}, GUESSED), ("BinaryIoU", {"dtype": "float64"}, THRESHOLDED),
    ("MeanIoU", {"num_classes": 4, "ignore_class": 1, "dtype": "float64"}, GUESSED), ("OneHotMeanIoU", {"num_classes": 4, "dtype": "float64"}, CLASSES),
    ("OneHotIoU", {"num_classes": 4, "target_class_ids": [1, 3], "dtype": "float64"}, CLASSES),
]  # fmt: skip


def metrics(keras):
    """Each metric after one batch, after two, and after a reset and a weighted one."""
    found = {}
    for i, (title, options, (y_true, y_pred)) in enumerate(METRICS):
        metric = getattr(keras.metrics, title)(**options)
        for step, (a, b) in enumerate(((0, 3), (3, 5))):
            metric.update_state(y_true[a:b], y_pred[a:b])
            found[f"{i}.{title}.{step}"] = array(metric.result())
        metric.reset_state()
        metric.update_state(y_true, y_pred, sample_weight=WEIGHTS)
        found[f"{i}.{title}.weighted"] = array(metric.result())
    mean = keras.metrics.Mean()
    for value, weight in ((2.0, None), ([1.0, 4.0], [0.5, 2.0]), ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [1.0, 1.0]])):
        mean.update_state(np.asarray(value), sample_weight=None if weight is None else np.asarray(weight))
        found[f"mean.{len(found)}"] = array(mean.result())
    total = keras.metrics.Sum()
    total.update_state(np.array([1.0, 2.0]), sample_weight=np.array([3.0, 4.0]))
    found["sum"] = array(total.result())
    return found


# -- optimizers -----------------------------------------------------------------------------------------

OPTIMIZERS = [
    ("SGD", {"learning_rate": 0.1}), ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}), ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "clipnorm": 0.5}), ("Adam", {"learning_rate": 0.01}),
    ("Adam", {"amsgrad": True, "global_clipnorm": 0.5}), ("Adam", {"gradient_accumulation_steps": 2}),
    ("AdamW", {"learning_rate": 0.01}), ("Adamax", {"learning_rate": 0.01}), ("Adagrad", {"learning_rate": 0.1, "clipvalue": 0.25}),
    ("Adadelta", {"learning_rate": 1.0}), ("Nadam", {"learning_rate": 0.01}), ("Lion", {"weight_decay": 0.1}),
    ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02,
              "l2_shrinkage_regularization_strength": 0.03, "beta": 0.1}),
    ("Adafactor", {"learning_rate": 0.05}), ("Adafactor", {"learning_rate": 0.5, "beta_2_decay": -0.5, "clip_threshold": 2.0, "weight_decay": 0.01}),
    ("Lamb", {"learning_rate": 0.01}), ("Lamb", {"weight_decay": 0.1, "global_clipnorm": 0.5}),
    ("Adam", {"learning_rate": 0.01, "use_ema": True, "ema_momentum": 0.8}), ("RMSprop", {"loss_scale_factor": 64.0, "clipnorm": 0.5}),
    ("SGD", {"learning_rate": 0.1, "use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3, "gradient_accumulation_steps": 2}),
]  # fmt: skip
SCHEDULES = [
    ("ExponentialDecay", (0.1, 4, 0.5), {}), ("ExponentialDecay", (0.1, 4, 0.5), {"staircase": True}), ("InverseTimeDecay", (0.1, 4, 0.5), {}),
    ("PiecewiseConstantDecay", ([3, 6], [1.0, 0.5, 0.25]), {}), ("PolynomialDecay", (0.1, 5), {"power": 2.0}),
    ("PolynomialDecay", (0.1, 3), {"cycle": True}), ("CosineDecay", (0.1, 6), {"alpha": 0.125}),
    ("CosineDecay", (0.0, 5), {"warmup_target": 0.125, "warmup_steps": 3}), ("CosineDecayRestarts", (0.1, 3), {"m_mul": 0.75}),
    ("CosineDecayRestarts", (0.1, 3), {"t_mul": 1.0}),
]  # fmt: skip


def schedules(keras):
    """Each schedule over some steps."""
    made = [(i, n, getattr(keras.optimizers.schedules, n)(*a, **o)) for i, (n, a, o) in enumerate(SCHEDULES)]
    return {f"{i}.{n}": np.array([float(array(s(step))) for step in range(12)]) for i, n, s in made}


# -- training -------------------------------------------------------------------------------------------

X, Y = rng(2).normal(size=(50, 6)), rng(3).integers(0, 3, 50)
TARGET = np.sin(X.sum(1, keepdims=True))


def start(model, seed=4):
    """Weights that do not depend on the package: normal matrices, small biases, in get_weights' order."""
    r = rng(seed)
    model.set_weights([r.normal(size=w.shape) * (0.5 if w.ndim > 1 else 0.1) for w in model.get_weights()])
    return model


def classifier(keras, **options):
    layers = keras.layers
    return start(keras.Sequential([
        keras.Input((6,)), layers.Dense(8, "relu", **options), layers.Dense(5, "tanh"), layers.Dense(3, "softmax"),
    ]))  # fmt: skip


def recorded(name, model, history, found):
    """The history and the final weights of a fit."""
    for key, values in history.history.items():
        found[f"{name}.{key}"] = np.array([float(array(v)) for v in values])
    for i, w in enumerate(model.get_weights()):
        found[f"{name}.w{i}"] = np.asarray(w, dtype=np.float64)


def fits(keras):
    """Whole fits on arrays: each optimizer, weights, validation, schedules, regularizers and constraints."""
    found = {}
    plain = {"verbose": 0, "shuffle": False}
    for i, (title, options) in enumerate(OPTIMIZERS):
        model = classifier(keras)
        model.compile(getattr(keras.optimizers, title)(**options), "sparse_categorical_crossentropy", metrics=["accuracy"])
        recorded(f"optimizer{i}.{title}", model, model.fit(X, Y, batch_size=16, epochs=3, **plain), found)
    cases = {
        "validation_split": {"validation_split": 0.3},
        "class_weight": {"class_weight": {0: 1.0, 1: 3.0, 2: 0.25}},
        "sample_weight": {"sample_weight": rng(5).uniform(size=50)},
        "validation_data": {"validation_data": (X[:7], Y[:7], rng(6).uniform(size=7)), "validation_freq": 2, "validation_batch_size": 4},
        "steps": {"steps_per_epoch": 2},
        "initial_epoch": {"initial_epoch": 1},
    }
    for name, options in cases.items():
        model = classifier(keras)
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["acc"], weighted_metrics=["accuracy", "sparse_categorical_crossentropy"])
        recorded(name, model, model.fit(X, Y, batch_size=16, epochs=3, **plain, **options), found)
        if name == "class_weight":
            found["evaluate"] = np.array(model.evaluate(X, Y, verbose=0, batch_size=16))
            found["evaluate.weighted"] = np.array(model.evaluate(X, Y, verbose=0, batch_size=16, sample_weight=rng(8).uniform(size=50)))
            found["predict"] = np.asarray(model.predict(X, verbose=0, batch_size=16))
            found["train_on_batch"] = np.array(model.train_on_batch(X[:9], Y[:9], class_weight={1: 2.0}))
            found["test_on_batch"] = np.array(model.test_on_batch(X[:9], Y[:9], sample_weight=rng(9).uniform(size=9)))
    schedule = keras.optimizers.schedules.ExponentialDecay(0.05, 4, 0.7)
    model = classifier(keras)
    model.compile(keras.optimizers.Adam(schedule), "crossentropy")
    recorded("schedule", model, model.fit(X, Y, epochs=3, **plain), found)
    model = classifier(keras, kernel_regularizer="l2", bias_regularizer=keras.regularizers.L1(0.1), kernel_constraint=keras.constraints.MaxNorm(1.0))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "sparse_categorical_crossentropy")
    recorded("regularised", model, model.fit(X, Y, epochs=3, **plain), found)
    model = start(keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)]))
    model.compile("rmsprop", keras.losses.Huber(), metrics=["mse", keras.metrics.RootMeanSquaredError(), "mae"])
    recorded("regression", model, model.fit(X, TARGET, epochs=3, **plain), found)
    model = start(keras.Sequential([keras.Input((6,)), keras.layers.Dense(1, "sigmoid")]))
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="precision")])
    recorded("binary", model, model.fit(X, (TARGET > 0).astype(float), epochs=3, batch_size=20, **plain), found)
    return found


def functional(keras):
    """Several inputs and outputs, shared layers, a nested model, losses and weights by name."""
    found, layers = {}, keras.layers
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(5, "tanh", name="shared")
    inner_input = keras.Input((5,))
    inner = keras.Model(inner_input, layers.Dense(3, "relu", name="hidden")(inner_input), name="inner")
    both = layers.Concatenate(name="both")([inner(shared(a)), inner(shared(b))])
    summed = layers.Add(name="summed")([shared(a), shared(b)])
    first, second = layers.Dense(1, name="first")(both), layers.Dense(3, "softmax", name="second")(summed)
    model = start(keras.Model([a, b], [first, second]))
    r = rng(7)
    data, targets = [r.normal(size=(30, 4)) for _ in "ab"], [r.normal(size=(30, 1)), r.integers(0, 3, 30)]
    model.compile(
        "adam", {"first": "mse", "second": "sparse_categorical_crossentropy"}, loss_weights={"first": 0.5, "second": 2.0},
        metrics={"first": ["mae"], "second": ["accuracy"]},
    )  # fmt: skip
    recorded("lists", model, model.fit(data, targets, epochs=2, batch_size=8, verbose=0, shuffle=False), found)
    weights = [r.uniform(size=30), r.uniform(size=30)]
    named = {"a": data[0], "b": data[1]}
    history = model.fit(named, targets, epochs=2, batch_size=8, verbose=0, shuffle=False, sample_weight=weights)
    recorded("dicts", model, history, found)
    for i, p in enumerate(model.predict(data, verbose=0)):
        found[f"predict{i}"] = np.asarray(p)
    return found


def recurrent(keras):
    """Embedding with a mask, a GRU that gives all steps, and a loss that leaves the masked ones out."""
    found, layers = {}, keras.layers
    words = rng(10).integers(1, 9, (20, 6))
    words[:, 4:] = 0
    words[::2, 3] = 0
    tags = rng(11).integers(0, 3, (20, 6))
    model = start(keras.Sequential([
        keras.Input((6,), dtype="int32"), layers.Embedding(9, 4, mask_zero=True), layers.GRU(5, return_sequences=True),
        layers.Dense(3, "softmax"),
    ]))  # fmt: skip
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["sparse_categorical_crossentropy"])
    recorded("tagger", model, model.fit(words, tags, epochs=3, batch_size=8, verbose=0, shuffle=False), found)
    model = start(keras.Sequential([
        keras.Input((6,), dtype="int32"), layers.Embedding(9, 4, mask_zero=True), layers.GRU(5), layers.Dense(1, "sigmoid"),
    ]))  # fmt: skip
    model.compile("rmsprop", "binary_crossentropy", metrics=["accuracy"])
    recorded("last", model, model.fit(words, tags[:, :1] > 0, epochs=3, batch_size=8, verbose=0, shuffle=False), found)
    return found


# -- callbacks ------------------------------------------------------------------------------------------

HOOKS = [
    "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_train_batch_begin", "on_train_batch_end", "on_test_begin",
    "on_test_end", "on_test_batch_begin", "on_test_batch_end", "on_predict_begin", "on_predict_end", "on_predict_batch_begin",
    "on_predict_batch_end",
]  # fmt: skip


def calls(keras):
    """Every hook that fit, evaluate and predict call, in order: its name, number, and the names in its logs."""
    seen = []

    class Recorder(keras.callbacks.Callback):
        pass

    def hook(name):
        def told(self, *args, **kwargs):
            logs = kwargs.get("logs") if "logs" in kwargs else (args[-1] if len(args) > ("batch" in name or "epoch" in name) else None)
            number = args[0] if ("batch" in name or "epoch" in name) else None
            seen.append([name, number, sorted(logs or {})])

        return told

    for name in HOOKS:
        setattr(Recorder, name, hook(name))
    model = classifier(keras)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    recorder = Recorder()
    model.fit(X, Y, batch_size=20, epochs=2, verbose=0, callbacks=[recorder], validation_split=0.2)
    model.evaluate(X, Y, batch_size=30, verbose=0, callbacks=[recorder])
    model.predict(X, batch_size=30, verbose=0, callbacks=[recorder])
    return seen


def watched(keras):
    """Histories and weights under callbacks that steer training."""
    found, plain = {}, {"verbose": 0, "shuffle": False, "epochs": 12, "batch_size": 10, "validation_split": 0.4}
    c = keras.callbacks
    cases = {
        "stop": [c.EarlyStopping(patience=2)],
        "restore": [c.EarlyStopping(patience=3, restore_best_weights=True, min_delta=0.001)],
        "baseline": [c.EarlyStopping(monitor="val_accuracy", mode="max", patience=2, baseline=0.9, start_from_epoch=1)],
        "plateau": [c.ReduceLROnPlateau(patience=1, factor=0.5, cooldown=1, min_lr=0.02)],
        "scheduler": [c.LearningRateScheduler(lambda epoch, rate: rate * 0.8 if epoch else rate)],
    }
    for name, callbacks in cases.items():
        model = classifier(keras)
        model.compile(keras.optimizers.SGD(0.5, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
        recorded(name, model, model.fit(X, Y, callbacks=callbacks, **plain), found)
    return found


GROUPS = (losses, metrics, schedules, fits, functional, recurrent, watched)
