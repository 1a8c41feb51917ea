"""Dropout of channels and for SELU, and randomised leaky ReLU: what is drawn, on what, and that a seed fixes it."""

import math

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn
from autograd.nn import functional as F

FALL = 1.0507009873554805 * 1.6732632423543772  # how far below 0 SELU can get

# name, shape, how many leading dimensions count channels
CHANNELS = [
    ("dropout1d", (40, 50, 3), 2),
    ("dropout1d", (2000, 3), 1),
    ("dropout2d", (40, 50, 2, 3), 2),
    ("dropout2d", (40, 50, 3), 2),
    ("dropout3d", (40, 50, 1, 2, 2), 2),
    ("dropout3d", (2000, 1, 3, 2), 1),
    ("feature_alpha_dropout", (40, 50, 2), 2),
    ("feature_alpha_dropout", (40, 50), 2),
]
NAMES = ("Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
quiet = pytest.mark.filterwarnings("ignore:.dropout2d. expects")


def kept_and_dropped(p):
    """What alpha dropout makes of 1: a + b, and of what it drops: b - a * FALL, with the mean 0 and variance 1 it keeps."""
    a = 1 / math.sqrt((1 - p) * (1 + p * FALL**2))
    return a + a * p * FALL, a * p * FALL - a * FALL


@quiet
@pytest.mark.parametrize(("name", "shape", "lead"), CHANNELS)
def test_whole_channels(name, shape, lead, device):
    p, function = 0.25, getattr(F, name)
    x = ag.ones(*shape, device=device, requires_grad=True)
    ag.manual_seed(5)
    y = function(x, p, True)
    y.sum().backward()
    high, low = kept_and_dropped(p) if "alpha" in name else (4 / 3, 0)
    flat = array(y).reshape(*shape[:lead], -1)
    kept = flat[..., 0] > 1
    assert_close(flat, np.where(kept, high, low)[..., None] + 0 * flat, 1e-6)
    assert 0.7 < kept.mean() < 0.8
    assert_close(x.grad, (flat > 1).reshape(shape) * ((high - low) / (1 + FALL) if "alpha" in name else high), 1e-6)
    ag.manual_seed(5)
    there = ag.ones(*shape, device=device)
    assert function(there, p, True, inplace=True) is there
    assert_close(there, array(y))
    ag.manual_seed(5)
    assert_close(function(ag.ones(*shape), p, True), array(y), 1e-6, "one seed, both devices")


def test_alpha_dropout_keeps_mean_and_variance(device):
    x = np.random.default_rng(0).standard_normal(40000).astype(np.float32)
    for p in (0.1, 0.6):
        ag.manual_seed(1)
        y = array(F.alpha_dropout(ag.tensor(x, device=device), p, True))
        high, low = kept_and_dropped(p)
        dropped = np.abs(y - low) < 1e-5
        a = (high - low) / (1 + FALL)
        assert_close(y, np.where(dropped, low, a * x + high - a), 1e-5)
        assert abs(dropped.mean() - p) < 0.02 and abs(y.mean()) < 0.03 and abs(y.std() - 1) < 0.03
    assert_close(F.alpha_dropout(ag.tensor([1.0, -2.0], device=device), 1.0, True), [0.0, 0.0])


def test_rrelu(device):
    x = np.random.default_rng(0).standard_normal(20000).astype(np.float32)
    t = ag.tensor(x, device=device, requires_grad=True)
    ag.manual_seed(2)
    layer = nn.RReLU(0.1, 0.4)
    y = layer(t)
    y.sum().backward()
    slope = array(t.grad)
    assert_close(y, np.where(x > 0, x, slope * x), 1e-6)
    below = slope[x <= 0]
    assert (slope[x > 0] == 1).all() and 0.1 <= below.min() < 0.101 and 0.399 < below.max() <= 0.4
    assert abs(below.mean() - 0.25) < 0.005 and abs(below.std() - 0.3 / math.sqrt(12)) < 0.005
    ag.manual_seed(2)
    assert_close(F.rrelu(ag.tensor(x), 0.1, 0.4, True), array(y), 1e-6, "one seed, both devices")
    assert_close(layer.eval()(t), np.where(x > 0, x, 0.25 * x), 1e-6)
    z = ag.tensor([-1.0, 2.0], device=device)
    assert nn.RReLU(0.5, 0.5, inplace=True)(z) is z and array(z).tolist() == [-0.5, 2.0]
    assert_raises(ValueError, "lower must not be above", lambda: F.rrelu(z, 0.5, 0.1))


@quiet
@pytest.mark.parametrize("name", NAMES)
def test_layers(name):
    layer, x = getattr(nn, name)(0.5), ag.ones(6, 20, 4, 1, 1) if name == "Dropout3d" else ag.ones(6, 20, 4)
    ag.manual_seed(0)
    assert repr(layer) == f"{name}(p=0.5, inplace=False)"
    assert len(np.unique(array(layer(x)))) == 2 and layer.eval()(x) is x
    assert getattr(nn, name)(0.0)(x) is x
    assert getattr(nn, name)(0.5, inplace=True)(x) is x and len(np.unique(array(x))) == 2
    assert_raises(ValueError, "probability", lambda: getattr(nn, name)(1.5))


def test_shapes_without_channels():
    assert_raises(ValueError, "[dropout1d] expects [N, C, L]", lambda: F.dropout1d(ag.ones(2, 2, 2, 2)))
    assert_raises(ValueError, "[feature_alpha_dropout] expects", lambda: F.feature_alpha_dropout(ag.ones(3), 0.5, True))
    with pytest.warns(UserWarning, match="dropout2d"):
        assert F.dropout2d(ag.ones(2, 2, 2)).shape == (2, 2, 2)
    with pytest.warns(UserWarning, match="dropout3d"):
        assert_close(F.dropout3d(ag.ones(5), 1.0), [0.0] * 5)
    with pytest.warns(UserWarning):
        assert_raises(ValueError, "a dimension of channels", lambda: F.dropout2d(ag.ones(3)))
