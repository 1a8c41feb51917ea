"""Things that Keras names: initializers, regularizers, constraints, activations."""

import json
import math

import numpy as np
import pytest
from helpers import array, assert_close

import autograd as ag
from autograd.keras import activations, constraints, initializers, regularizers

X = np.random.default_rng(0).normal(size=(4, 5))


@pytest.mark.parametrize("family", [initializers, regularizers, constraints], ids=lambda m: m.__name__.rpartition(".")[2])
def test_names_of_objects(family):
    for name, kind in family.TABLE.items():
        made = family.get(name)
        assert type(made) is kind and type(family.get(kind.__name__)) is kind and family.get(made) is made
        config = json.loads(json.dumps(family.serialize(made)))
        again = family.deserialize(config)
        assert type(again) is kind and again.get_config() == made.get_config() and repr(again) == repr(made)
        assert type(family.get({**config, "module": "keras", "registered_name": None})) is kind  # as Keras writes it
        assert type(family.get(kind)) is kind
    assert family.get(None) is None
    own = lambda *a: None
    assert family.get(own) is own and family.serialize(own) is own
    with pytest.raises(ValueError, match="Unknown"):
        family.get("nothing_like_it")
    with pytest.raises(ValueError, match="class_name"):
        family.get({"name": "x"})
    with pytest.raises(TypeError, match="a name, a config"):
        family.get(3)


def test_near_names_are_told():
    with pytest.raises(ValueError, match="Near: glorot_normal, glorot_uniform"):
        initializers.get("glorot")


# -- initializers -----------------------------------------------------------------------------------------------

SPREAD = {  # name: (variance of fans (fan_in, fan_out), bound in deviations)
    "glorot_uniform": (lambda i, o: 2 / (i + o), math.sqrt(3)), "glorot_normal": (lambda i, o: 2 / (i + o), 2 / 0.8796),
    "he_uniform": (lambda i, o: 2 / i, math.sqrt(3)), "he_normal": (lambda i, o: 2 / i, 2 / 0.8796),
    "lecun_uniform": (lambda i, o: 1 / i, math.sqrt(3)), "lecun_normal": (lambda i, o: 1 / i, 2 / 0.8796),
}  # fmt: skip


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("shape, fans", [((60, 100), (60, 100)), ((3, 4, 20, 30), (240, 360)), ((5000,), (5000, 5000))])
def test_scaled_initializers(name, shape, fans):
    """Keras' fans and bounds: the last two sizes times the kernel's field."""
    ag.manual_seed(0)
    values = array(initializers.get(name)(shape, "float64"))
    variance, bound = SPREAD[name]
    deviation = math.sqrt(variance(*fans))
    assert values.std() == pytest.approx(deviation, rel=0.05) and abs(values.mean()) < 0.1 * deviation
    assert 0.9 * bound * deviation < np.abs(values).max() <= bound * deviation * 1.0001


def test_plain_initializers():
    ag.manual_seed(0)
    at = lambda made, shape=(50, 40): array(made(shape, "float64"))
    assert (at(initializers.Zeros()) == 0).all() and (at(initializers.Ones()) == 1).all()
    assert (at(initializers.Constant([1.0, 2.0]), (3, 2)) == [1, 2]).all()
    assert (at(initializers.Identity(2.0), (2, 3)) == [[2, 0, 0], [0, 2, 0]]).all()
    uniform = at(initializers.RandomUniform(1, 3))
    assert 1 <= uniform.min() < 1.01 and 2.99 < uniform.max() < 3
    normal, cut = at(initializers.RandomNormal(1, 2), (90000,)), at(initializers.TruncatedNormal(1, 2), (90000,))
    assert normal.mean() == pytest.approx(1, abs=0.03) and normal.std() == pytest.approx(2, rel=0.02) and np.abs(normal - 1).max() > 6
    assert np.abs(cut - 1).max() <= 4 and cut.std() == pytest.approx(2 * 0.8796, rel=0.02)
    for shape in (4, 12), (12, 4), (2, 3, 5):
        q = at(initializers.Orthogonal(2.0), shape).reshape(-1, shape[-1])
        product = q @ q.T if len(q) <= q.shape[1] else q.T @ q
        assert np.abs(product - 4 * np.eye(len(product))).max() < 1e-12
    for wrong in [lambda: at(initializers.Orthogonal(), (3,)), lambda: at(initializers.Identity(), (3,)), lambda: initializers.VarianceScaling(-1),
                  lambda: initializers.VarianceScaling(mode="fan"), lambda: initializers.VarianceScaling(distribution="normal")]:  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("name", [n for n, c in initializers.TABLE.items() if hasattr(c(), "seed") and "seed" in c().get_config()])
def test_seeds(name):
    """A seed gives the same values each time, and leaves the common stream alone; without one they follow manual_seed."""
    kind = initializers.TABLE[name]
    own = kind(seed=3)
    ag.manual_seed(1)
    want = array(ag.rand(3))
    ag.manual_seed(1)
    assert (array(own((4, 5))) == array(own((4, 5)))).all() and not (array(own((4, 5))) == array(kind(seed=4)((4, 5)))).all()
    assert (array(ag.rand(3)) == want).all()
    free = kind()
    first = array(free((4, 5)))
    assert not (first == array(free((4, 5)))).all()
    ag.manual_seed(1)
    ag.rand(3)
    assert (array(kind()((4, 5))) == first).all()


# -- regularizers, constraints, activations -----------------------------------------------------------------------


def test_regularizers():
    w = ag.tensor(X, requires_grad=True)
    total = np.abs(X).sum(), (X * X).sum()
    assert_close(regularizers.L1(0.3)(w), 0.3 * total[0])
    assert_close(regularizers.L2(0.3)(w), 0.3 * total[1])
    assert_close(regularizers.l1_l2(0.3, 0.2)(w), 0.3 * total[0] + 0.2 * total[1])
    for mode, rows in ("rows", X), ("columns", X.T):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = np.abs(unit @ unit.T)[np.triu_indices(len(rows), 1)]
        penalty = regularizers.OrthogonalRegularizer(0.5, mode)
        assert_close(penalty(w), 0.5 * cosines.mean())
        assert ag.gradcheck(penalty, (w,))
    for wrong in [lambda: regularizers.L1(-1), lambda: regularizers.L2(float("nan")), lambda: regularizers.OrthogonalRegularizer(mode="row"),
                  lambda: regularizers.OrthogonalRegularizer()(ag.ones(3))]:  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


def test_constraints():
    """The formulas of each, over the axis and over several."""
    e = 1e-7
    for axis in 0, 1, [0, 1]:
        n = np.sqrt((X * X).sum(axis if isinstance(axis, int) else tuple(axis), keepdims=True))
        w = ag.tensor(X)
        assert_close(constraints.MaxNorm(1.5, axis)(w), X * np.clip(n, 0, 1.5) / (e + n))
        assert_close(constraints.UnitNorm(axis)(w), X / (e + n))
        assert_close(constraints.MinMaxNorm(0.5, 1.5, 0.7, axis)(w), X * (0.7 * np.clip(n, 0.5, 1.5) + 0.3 * n) / (e + n))
    assert_close(constraints.NonNeg()(ag.tensor(X)), X * (X >= 0))


sigmoid = lambda x: 1 / (1 + np.exp(-x))
softplus = lambda x: np.log1p(np.exp(x))
ACTIVATIONS = {
    "linear": lambda x: x, "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "sigmoid": sigmoid, "tanh": np.tanh,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x), "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "exponential": np.exp,
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)), "softplus": softplus, "softsign": lambda x: x / (1 + np.abs(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x), "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))), "mish": lambda x: x * np.tanh(softplus(x)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1), "hard_sigmoid_keras2": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0), "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "tanh_shrink": lambda x: x - np.tanh(x), "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2, "log_sigmoid": lambda x: -softplus(-x),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), "log_softmax": lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
    "glu": lambda x: x[..., :3] * sigmoid(x[..., 3:]),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, device):
    x = np.random.default_rng(1).normal(size=(4, 6)) * 2.5
    kind = "float32" if device == "wgpu" else "float64"
    f = activations.get(name)
    assert_close(f(ag.tensor(x, dtype=kind, device=device)), ACTIVATIONS[name](x), 1e-5 if device == "wgpu" else 1e-12)
    assert activations.get(activations.serialize(f)) is f and activations.get(f) is f


def test_activations_with_arguments():
    assert set(activations.TABLE) == set(ACTIVATIONS) | {"threshold"}
    x = ag.tensor([-3.0, -0.5, 0.5, 2.0, 9.0])
    assert activations.relu(x, 0.5, 6.0, 1.0).tolist() == [-2.0, -0.75, -0.25, 2.0, 6.0]
    assert activations.relu(x, max_value=1.0).tolist() == [0, 0, 0.5, 1, 1]
    assert activations.threshold(x, 0.6, -1.0).tolist() == [-1, -1, -1, 2, 9]
    assert_close(activations.gelu(x, approximate=True), array(x) * 0.5 * (1 + np.tanh(0.7978845608 * (array(x) + 0.044715 * array(x) ** 3))), 1e-6)
    assert_close(activations.softmax(ag.tensor(X), axis=0).sum(0), np.ones(5), 1e-12)
    assert activations.get(None) is activations.linear and activations.deserialize(None) is activations.linear
    with pytest.raises(ValueError, match="Unknown activation: 'tan'"):
        activations.get("tan")
