"""What Keras' optimizers share beside their formulas: moving averages, loss scaling, accumulation, state; and both devices.

The values are Keras' 3.15.1: for three steps printed here, for whole fits in tests/golden/keras3_training.npz.
"""

import json

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises
from keras_cases import OPTIMIZERS

import autograd as ag
from autograd import keras, nn
from autograd.keras.optimizer_base import COMMON

# after each apply() of SGD(1.0) with gradients (1/2, 1/4) t at (1, 2): the parameters, and their averages
EMA = {
    "plain": ({}, [[(0.5, 1.75), (0.5, 1.75)], [(-0.5, 1.25), (0, 1.5)], [(-2, 0.5), (-1, 1)], [(-4, -0.5), (-2.5, 0.25)]]),
    "overwritten": (
        {"ema_overwrite_frequency": 2},
        [[(0.5, 1.75), (0.5, 1.75)], [(0, 1.5), (0, 1.5)], [(-1.5, 0.75), (-0.75, 1.125)], [(-2.125, 0.4375), (-2.125, 0.4375)]],
    ),
    "accumulated": (
        {"gradient_accumulation_steps": 2},
        [[(1, 2), (1, 2)], [(0.25, 1.625), (0.25, 1.625)], [(0.25, 1.625), (0.25, 1.625)], [(-1.5, 0.75), (-0.625, 1.1875)]],
    ),
    "both": (
        {"gradient_accumulation_steps": 2, "ema_overwrite_frequency": 2},
        [[(1, 2), (1, 2)], [(0.25, 1.625), (0.25, 1.625)], [(0.25, 1.625), (0.25, 1.625)], [(-0.625, 1.1875), (-0.625, 1.1875)]],
    ),
}
SCALED = {"plain": ({}, [(0.875, 1.9375), (0.625, 1.8125)]), "clipped": ({"clipvalue": 0.1}, [(0.9, 1.9375), (0.8, 1.8375)])}
SCALED["accumulated"] = ({"gradient_accumulation_steps": 2}, [(1, 2), (0.8125, 1.90625)])


def applied(optimizer, device, steps):
    """The parameter after each apply()."""
    p = nn.Parameter(ag.tensor([1.0, 2.0], device=device))
    for t in range(1, steps + 1):
        optimizer.apply([ag.tensor([0.5 * t, 0.25 * t], device=device)], [p])
        yield p


@pytest.mark.parametrize("name", EMA)
def test_moving_averages_are_keras(name, device):
    options, rows = EMA[name]
    optimizer = keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5, **options)
    for p, (value, mean) in zip(applied(optimizer, device, 4), rows, strict=True):
        assert (array(p) == value).all() and (array(optimizer.variables[-1]) == mean).all()
    optimizer.finalize_variable_values([p])
    assert (array(p) == rows[-1][1]).all()


@pytest.mark.parametrize("name", SCALED)
def test_loss_scale_is_keras(name, device):
    options, rows = SCALED[name]
    optimizer = keras.optimizers.SGD(1.0, loss_scale_factor=4.0, **options)
    for p, value in zip(applied(optimizer, device, 2), rows, strict=True):
        assert_close(p, np.array(value))
    assert float(optimizer.scale_loss(ag.tensor(2.0))) == 8.0
    assert float(keras.optimizers.SGD().scale_loss(ag.tensor(2.0))) == 2.0


def test_fit_ends_with_the_averages_before_the_last_callback():
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(self.model.get_weights()[0].ravel())

        on_train_end = lambda self, logs=None: self.on_epoch_end(0)

    model = keras.Sequential([keras.Input((2,), dtype="float64"), keras.layers.Dense(1, dtype="float64")])
    model.set_weights([np.ones((2, 1)), np.zeros(1)])
    model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, loss_scale_factor=8.0), "mse")
    x = np.arange(8.0).reshape(4, 2) / 4
    model.fit(x, x.sum(1) * 0.5, epochs=2, batch_size=2, shuffle=False, verbose=0, callbacks=[Watch()])
    wanted = [(0.66078125, 0.582734375), (0.6409551391601563, 0.569456884765625), (0.6914861145019533, 0.6270084716796875)]
    assert np.abs(np.array(seen) - wanted).max() < 1e-12
    assert (model.get_weights()[0].ravel() == seen[-1]).all()


@pytest.mark.parametrize("name, options", OPTIMIZERS, ids=[f"{i}.{n}" for i, (n, _) in enumerate(OPTIMIZERS)])
def test_devices_agree_and_state_goes_on(name, options, wgpu):
    """Eight steps on both devices, those on the CPU with the state saved and loaded between them, into another optimizer."""
    start = {s: np.random.default_rng(7).uniform(0.5, 1.5, s) for s in [(), (3,), (4, 3), (2, 3, 2)]}
    grads = np.random.default_rng(8)
    params = {d: [nn.Parameter(ag.tensor(a, dtype="float32", device=d)) for a in start.values()] for d in ("cpu", "wgpu")}
    made = {d: getattr(keras.optimizers, name)(**options) for d in params}
    for _ in range(8):
        drawn = [grads.normal(size=s).astype(np.float32) for s in start]
        for d, own in params.items():
            made[d].apply([ag.tensor(g, device=d) for g in drawn], own)
        state = made["cpu"].state_dict()
        made["cpu"] = type(made["cpu"]).from_config(made["cpu"].get_config())
        made["cpu"].build(params["cpu"])
        made["cpu"].load_state_dict(state)
    for d, own in params.items():
        made[d].finalize_variable_values(own)
    for a, b, s in zip(*params.values(), start, strict=True):
        assert_close(b, a, 1e-5)
        assert np.abs(array(a) - start[s]).max() > 1e-5


def test_half_precision_keeps_its_averages_wide(device):
    p = nn.Parameter(ag.ones(4, dtype="float16", device=device))
    for optimizer in keras.optimizers.Lamb(0.01, use_ema=True), keras.optimizers.Adafactor(0.01, use_ema=True):
        optimizer.apply([ag.ones(4, dtype="float16", device=device) * 0.1], [p])
        assert p.dtype is ag.float16 and {t.dtype for t in optimizer.variables} == {ag.float32}
    assert 0.9 < float(p.detach().float().mean()) < 0.99


def test_a_parameter_of_zeros_takes_lambs_plain_step(device):
    p = nn.Parameter(ag.zeros(3, device=device))
    keras.optimizers.Lamb(0.25).apply([ag.tensor([1.0, -2.0, 0.0], device=device)], [p])
    assert_close(p, np.array([-0.25, 0.25, 0.0]), 1e-6)


def test_configs_have_keras_names():
    config = json.loads(json.dumps(keras.optimizers.Lamb().get_config()))
    assert set(config) == {*COMMON, "learning_rate", "beta_1", "beta_2", "epsilon"}
    assert (config["use_ema"], config["ema_momentum"], config["loss_scale_factor"]) == (False, 0.99, None)
    assert repr(keras.optimizers.SGD(0.1, use_ema=True)) == "SGD(learning_rate=0.1, momentum=0.0, nesterov=False, use_ema=True)"


REFUSED = {
    "use_ema is a bool and ema_momentum lies in [0, 1]": [{"use_ema": "yes"}, {"use_ema": True, "ema_momentum": 2.0}, {"ema_momentum": None}],
    "ema_overwrite_frequency is an integer from 1 on": [{"use_ema": True, "ema_overwrite_frequency": n} for n in (0, 1.5, True, "2")],
    "ema_overwrite_frequency=3 needs use_ema=True": [{"ema_overwrite_frequency": 3}],
    "loss_scale_factor is a positive number": [{"loss_scale_factor": s} for s in (0.0, -1, "8", True)],
    "gradient_accumulation_steps is an integer from 2 on": [{"gradient_accumulation_steps": n} for n in (1, 2.5, "3")],
    "at most one of clipnorm, clipvalue, global_clipnorm, positive": [{"clipnorm": 0}, {"clipnorm": "1"}, {"clipnorm": 1, "clipvalue": 1}],
    "weight_decay is a number": [{"weight_decay": "much"}],
    "unknown options ['jit_compile']": [{"jit_compile": True}],
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text):
    for options in REFUSED[text]:
        assert_raises(ValueError, text, lambda options=options: keras.optimizers.Lamb(**options))
    for options in {"clip_threshold": 0.5}, {"beta_2_decay": 1.0}:
        assert_raises(ValueError, "[Adafactor] clip_threshold", lambda options=options: keras.optimizers.Adafactor(**options))
