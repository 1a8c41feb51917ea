"""What every Keras layer can do: calling, building, masks, weights, losses, names, config."""

import copy
import json

import numpy as np
import pytest
from helpers import array, assert_close

import autograd as ag
from autograd import nn
from autograd.keras.layer import InputSpec, Layer, reset_names
from autograd.keras.naming import snake_case

X = np.random.default_rng(0).normal(size=(4, 5))


class Affine(Layer):
    """y = x W + b, written as a user would."""

    supports_masking = True

    def __init__(self, units, regularizer=None, constraint=None, **kwargs):
        super().__init__(**kwargs)
        self.units, self.regularizer, self.constraint = units, regularizer, constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", (input_shape[-1], self.units), regularizer=self.regularizer, constraint=self.constraint)
        self.bias = self.add_weight("bias", (self.units,), "zeros")
        self.count = self.add_weight("count", (), "zeros", trainable=False)

    def call(self, inputs):
        return inputs @ self.kernel + self.bias

    def get_config(self):
        return {**super().get_config(), "units": self.units, "regularizer": self.regularizer}


class Pair(Layer):
    """A layer of layers, one of them PyTorch's."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.one, self.drop, self.norm = Affine(3, "l2", activity_regularizer="l1"), nn.Dropout(0.5), nn.BatchNorm1d(3)
        self.two = Affine(2, "l1")

    def call(self, inputs, training=None):
        self.seen = training, self.one.training, self.drop.training
        return self.two(self.norm(self.drop(self.one(inputs))))


# -- calling ----------------------------------------------------------------------------------------------------


def test_building_by_calling(device):
    """Arrays go where the weights are, weights where the first Tensor is; floating inputs become the weights' dtype."""
    layer = Affine(2)
    assert not layer.built and layer.get_weights() == []
    y = layer(ag.tensor(X, dtype="float32", device=device))
    assert layer.built and y.shape == (4, 2) and y.device == device and layer.kernel.device == device
    assert layer(X).device == device and layer(X).dtype is ag.float32
    assert_close(layer(X), array(layer(ag.tensor(X, dtype="float32", device=device))))
    if device == "cpu":
        assert layer(ag.tensor(X)).dtype is ag.float32
        wide = Affine(2, dtype="float64")
        assert wide(X).dtype is ag.float64 and wide.kernel.dtype is ag.float64
        assert layer.double()(ag.tensor(X)).dtype is ag.float64  # the weights decide, not the constructor


def test_arrays_follow_the_default_device(wgpu):
    ag.set_default_device(wgpu)
    try:
        assert Affine(2)(X).device == wgpu
    finally:
        ag.set_default_device("cpu")
    outer = Pair().to(wgpu)
    outer.build(None)
    assert outer(ag.tensor(X, dtype="float32", device=wgpu)).device == wgpu


def test_training_has_one_switch():
    layer = Pair()
    for act, want in [
        (lambda: layer(X), False),
        (lambda: layer(X, training=True), True),
        (lambda: layer(X), False),
        (lambda: layer.train()(X), True),
        (lambda: layer(X, training=False), False),
        (lambda: layer(X, training=None), True),
        (lambda: layer.eval()(X), False),
    ]:
        act()
        assert layer.seen == (want, want, want)
    assert not any(m.training for m in layer.modules())
    with pytest.raises(ValueError):
        layer(X[0], training=True)
    assert not any(m.training for m in layer.modules())  # an error puts the flags back too


def test_inputs_that_are_refused():
    layer = Affine(2)
    for inputs, words in (3.0, "Tensors or NumPy arrays; got float"), ("x", "got str"):
        with pytest.raises(TypeError, match=words):
            layer(inputs)
    with pytest.raises(TypeError, match="with its inputs; got none"):
        layer()
    with pytest.raises(ValueError, match=r"expected min_ndim=2, found ndim=1. Full shape received: \(5,\)"):
        layer(X[0])
    with pytest.raises(NotImplementedError, match="has no call"):
        Layer()(X)
    with pytest.raises(TypeError, match="Keyword argument not understood: 'rate'"):
        Affine(2, rate=3)


@pytest.mark.parametrize("spec, shape, words", [
    (InputSpec(ndim=3), (2, 3), "expected ndim=3, found ndim=2"),
    (InputSpec(axes={-1: 4}), (2, 3), "expected axis -1 to have size 4, found 3"),
    (InputSpec(shape=(2, None, 3)), (3, 5, 3), r"expected shape=\(2, None, 3\), found shape=\(3, 5, 3\)"),
    (InputSpec(shape=(2, None)), (2, 5, 3), "expected shape"),
])  # fmt: skip
def test_input_specs(spec, shape, words):
    with pytest.raises(ValueError, match=words):
        spec.check("l", shape)
    InputSpec(ndim=2, shape=(None, 3), axes={1: 3}, min_ndim=1).check("l", (None, 3))


def test_lists_dicts_and_keywords():
    class Add(Layer):
        def build(self, input_shape):
            self.shapes = input_shape

        def call(self, inputs, scale=1.0):
            values = list(inputs.values()) if isinstance(inputs, dict) else inputs
            return {"sum": values[0] + values[1] * scale}

    layer = Add()
    assert_close(layer([X, X], scale=2.0)["sum"], (3 * X).astype(np.float32), 1e-6)
    assert layer.shapes == [(4, 5), (4, 5)]
    assert_close(layer(inputs={"a": X, "b": ag.tensor(X)}, scale=np.float64(2))["sum"], 3 * X, 1e-6)
    assert Add().compute_output_shape([(None, 5), (None, 5)]) == {"sum": (None, 5)}


def test_masks_go_with_tensors():
    class Takes(Layer):
        supports_masking = True

        def call(self, inputs, mask=None):
            self.seen = mask
            return inputs

    mask = ag.tensor([True, False, True, True])
    x = ag.tensor(X, dtype="float32")
    x._keras_mask = mask
    takes, plain = Takes(), Affine(2)
    y = takes(x)
    assert takes.seen is mask and y._keras_mask is mask
    assert plain(y)._keras_mask is mask  # passes it on without taking it
    other = ag.tensor([True] * 4)
    z = takes(x, mask=other)
    assert takes.seen is other and z._keras_mask is other and x._keras_mask is mask
    takes.supports_masking = False
    assert not hasattr(takes(x), "_keras_mask") and x._keras_mask is mask  # an identity does not take its input's mask away
    takes([x, ag.tensor(X)])
    assert takes.seen == [mask, None]


def test_output_shapes_are_found_by_trying():
    """Without a trace in losses, flags or weights."""
    layer = Pair()
    assert layer.compute_output_shape((None, 5)) == (None, 2) and layer.compute_output_shape((3, 5)) == (3, 2)
    assert len(layer.losses) == 2  # those of the weights alone
    layer(X)
    losses, weights = [loss.item() for loss in layer.losses], layer.get_weights()
    assert layer.train().compute_output_shape((None, 5)) == (None, 2)
    assert [loss.item() for loss in layer.losses] == losses and len(losses) == 3 and layer.training
    for got, want in zip(layer.get_weights(), weights, strict=True):
        assert (got == want).all()


# -- weights ----------------------------------------------------------------------------------------------------


def test_weights_in_order():
    layer = Pair()
    layer(X)
    names = [n for n, _ in layer.named_parameters()]
    assert names[:3] == ["one.kernel", "one.bias", "one.count"]
    assert len(layer.weights) == 3 + 5 + 3  # weight, bias, mean, variance and count of the BatchNorm1d
    assert [w.shape for w in layer.trainable_weights] == [(5, 3), (3,), (3,), (3,), (3, 2), (2,)]
    assert layer.count_params() == sum(w.numel() for w in layer.weights)
    assert set(layer.state_dict()) >= {"one.kernel", "two.bias", "norm.running_mean"}
    twin = Pair()
    twin(X)
    twin.load_state_dict(layer.state_dict())
    assert_close(twin(X), array(layer(X)))
    assert_close(copy.deepcopy(layer)(X), array(layer(X)))


def test_set_weights_is_all_or_nothing():
    layer = Affine(2, weights=[np.ones((5, 2)), np.ones(2), np.ones(())])
    layer(X)
    before = layer.get_weights()
    assert all((w == 1).all() for w in before)
    for wrong, words in [
        (before[:2], "has 3 weights; got 2"),
        ([before[0] * 2, np.ones(3), before[2]], r"weight 1 of layer .* has shape \(2,\); got \(3,\)"),
        ([before[0] * 2, np.array(["a", "b"]), before[2]], "must be numbers"),
    ]:
        with pytest.raises(ValueError, match=words):
            layer.set_weights(wrong)
        assert all((w == 1).all() for w in layer.get_weights())
    layer.set_weights([ag.tensor(before[0] * 2), before[1].astype(int), before[2]])
    assert (array(layer.kernel) == 2).all() and layer.kernel.dtype is ag.float32
    before[0][:] = 9
    assert (array(layer.kernel) == 2).all()
    with pytest.raises(ValueError, match="Build the layer first"):
        Affine(2).set_weights(before)
    with pytest.raises(ValueError, match="has no weights yet"):
        Affine(2).count_params()


def test_trainable_goes_to_all():
    layer = Pair()
    layer.trainable = False
    layer.extra = Affine(2)  # joins a frozen layer
    layer(X)
    layer.extra(X)
    assert not layer.trainable and not layer.one.trainable and layer.trainable_weights == []
    assert not any(w.requires_grad for w in layer.weights) and layer.get_losses_for(None) == []
    layer.trainable = True
    assert len(layer.trainable_weights) == 6 + 2 and not layer.one.count.requires_grad and layer.norm.weight.requires_grad
    frozen = Affine(2, trainable=False)
    frozen(X)
    assert frozen.trainable_weights == [] and len(frozen.non_trainable_weights) == 3


@pytest.mark.parametrize("arguments, words", [
    ({"name": "call", "shape": (2,)}, "a name is a new attribute's"),
    ({"name": "a.b", "shape": (2,)}, "without dots"),
    ({"name": "w", "shape": (2, -1)}, "Dimension -1 must be >= 0"),
    ({"name": "w", "shape": (2,), "initializer": lambda shape, dtype: np.zeros(3)}, r"gave shape \(3,\); expected \(2,\)"),
    ({"name": "w", "shape": (2,), "initializer": "nope"}, "Unknown initializer: 'nope'"),
])  # fmt: skip
def test_weights_that_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Affine(2).add_weight(**arguments)


def test_constraints_hold_trainable_weights():
    layer = Affine(2, constraint="non_neg")
    layer.build((None, 3))
    layer.set_weights([-np.ones((3, 2)), np.ones(2), 0.0])
    layer.trainable = False
    layer.apply_constraints()
    assert (array(layer.kernel) == -1).all()
    layer.trainable = True
    layer.apply_constraints()
    assert (array(layer.kernel) == 0).all() and layer.kernel.is_leaf and layer.kernel.requires_grad


# -- losses -----------------------------------------------------------------------------------------------------


def test_losses_of_the_latest_call():
    layer = Pair()
    assert layer.losses == []
    layer(X)
    activity, l2, l1 = layer.losses
    y = layer.one(X)
    assert_close(activity, array(y.abs().sum() * 0.01 / 4), 1e-6)
    assert_close(l2, array((layer.one.kernel**2).sum() * 0.01), 1e-6)
    assert_close(l1, array(layer.two.kernel.abs().sum() * 0.01), 1e-6)
    layer(X)
    assert len(layer.losses) == 3
    layer.two.add_loss(lambda: layer.two.bias.sum() + 7)
    assert len(layer.losses) == 4 and layer.get_losses_for(None)[0].item() == 7
    z = ag.tensor(X, dtype="float32", requires_grad=True)
    other = ag.tensor(X)
    layer(z.tanh())
    assert len(layer.get_losses_for(z)) == 1 and layer.get_losses_for(other) == [] and layer.get_losses_for(X) == []
    layer(other)
    assert len(layer.get_losses_for([X, other])) == 1 and layer.get_losses_for(z) == []
    sum(layer.losses).backward()
    assert layer.one.kernel.grad is not None


def test_a_shared_layer_counts_every_use():
    class Twice(Layer):
        def __init__(self):
            super().__init__()
            self.inner = Affine(5, activity_regularizer="l2")

        def call(self, inputs):
            self.add_loss(inputs.sum())
            return self.inner(self.inner(inputs))

    layer = Twice()
    for _ in range(2):
        layer(X)
        assert len(layer.losses) == 3 and len(layer.get_losses_for(X)) == 3
    layer.inner(X)
    assert len(layer.inner.losses) == 1


# -- names ------------------------------------------------------------------------------------------------------


def test_layer_names_are_numbered():
    reset_names()
    assert [Affine(1).name for _ in range(3)] == ["affine", "affine_1", "affine_2"] and Affine(1, name="own").name == "own"
    names = {"SimpleRNN": "simple_rnn", "CuDNNGRU": "cu_dnngru", "GRUCell": "gru_cell", "Conv2D": "conv2d", "ReLU": "re_lu", "MaxNorm": "max_norm"}
    assert {k: snake_case(k) for k in names} == names


def test_config_and_keras_2s_shapes():
    for options, want in [
        ({}, None),
        ({"input_shape": (5,)}, (None, 5)),
        ({"input_shape": 5, "batch_size": 2}, (2, 5)),
        ({"input_dim": 5}, (None, 5)),
        ({"batch_input_shape": [2, 5]}, (2, 5)),
    ]:
        layer = Affine(2, "l1", **options)
        assert layer.batch_input_shape == want
        config = json.loads(json.dumps(layer.get_config()))
        assert Affine.from_config(config).get_config() == layer.get_config()
        assert ("batch_input_shape" in config) == (want is not None)
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float64"}, "registered_name": None}
    assert Affine(2, dtype=policy).get_config()["dtype"] == "float64"  # Keras 3's
