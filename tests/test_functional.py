"""Functions of nn.functional, their modules, and the GRU. Expected numbers were computed with PyTorch 2.13 (float32)."""

import math

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn
from autograd.nn import functional as F


def leaf(values, device, dtype="float32"):
    return ag.tensor(np.asarray(values, dtype), device=device, requires_grad=True)


def fill(module):
    """The parameters as one run of 0.5 * sin(0, 1, 2, …)."""
    k = 0
    with ag.no_grad():
        for p in module.parameters():
            p.copy_(ag.tensor((0.5 * np.sin(np.arange(k, k + p.numel()))).reshape(p.shape), dtype=p.dtype))
            k += p.numel()
    return module


# -- functions ------------------------------------------------------------------------------------------

X = [-2.0, -0.5, 0.0, 1.0, 3.0]
ACTIVATIONS = {
    "relu": (F.relu, nn.ReLU(), [0, 0, 0, 1, 3], [0, 0, 0, 1, 1]),
    "leaky_relu": (F.leaky_relu, nn.LeakyReLU(), [-0.02, -0.005, 0, 1, 3], [0.01, 0.01, 0.01, 1, 1]),
    "gelu": (F.gelu, nn.GELU(), [-0.0455001, -0.1542688, 0, 0.8413447, 2.9959502], [-0.0852319, 0.1325049, 0.5, 1.0833154, 1.0119456]),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"), nn.GELU("tanh"),
        [-0.0454023, -0.154286, 0, 0.841192, 2.9963627], [-0.0860992, 0.1326301, 0.5, 1.0829641, 1.0115843],
    ),
    "silu": (F.silu, nn.SiLU(), [-0.2384058, -0.1887703, 0, 0.7310586, 2.8577225], [-0.0907843, 0.2600388, 0.5, 0.9276705, 1.0881041]),
    "softplus": (F.softplus, nn.Softplus(), [0.126928, 0.474077, 0.6931472, 1.3132616, 3.0485873], [0.1192029, 0.3775407, 0.5, 0.7310586, 0.9525741]),
    "softplus_beta": (
        lambda x: F.softplus(x, 2, 5), nn.Softplus(2, 5),
        [0.009075, 0.1566308, 0.3465736, 1.063464, 3], [0.0179862, 0.2689414, 0.5, 0.8807971, 1],
    ),
    "logsigmoid": (F.logsigmoid, nn.LogSigmoid(), [-2.1269281, -0.974077, -0.6931472, -0.3132617, -0.0485874], [0.8807971, 0.6224593, 0.5, 0.2689414, 0.0474259]),
    "sigmoid": (F.sigmoid, nn.Sigmoid(), [0.1192029, 0.3775407, 0.5, 0.7310586, 0.9525741], [0.1049936, 0.2350037, 0.25, 0.1966119, 0.0451767]),
    "tanh": (F.tanh, nn.Tanh(), [-0.9640276, -0.4621172, 0, 0.7615942, 0.9950548], [0.0706508, 0.7864477, 1, 0.4199743, 0.009866]),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, device):
    function, module, y, dx = ACTIVATIONS[name]
    x = leaf(X, device)
    got = function(x)
    assert_close(got, y, 3e-6)
    got.sum().backward()
    assert_close(x.grad, dx, 3e-6)
    assert_close(module(x), y, 3e-6)


LOGITS = [[2.0, 0.5, -1], [0.3, 1.2, 0], [0, 0, 3.0]]
WEIGHT = [1.0, 2, 4]
SOFT = [[0.2, 0.3, 0.5], [1, 0, 0], [0.1, 0.1, 0.8]]
CROSS_ENTROPY = [
    ([0, 1, 2], {}, 0.290473, [-0.0714677, 0.0584301, 0.0130375, 0.0793571, -0.1381463, 0.0587892, 0.0150928, 0.0150928, -0.0301857]),
    ([0, -100, 2], {}, 0.1681171, [-0.1072015, 0.0876452, 0.0195563, 0, 0, 0, 0.0226392, 0.0226392, -0.0452785]),
    ([0, 1, 2], {"ignore_index": 2}, 0.3882481, [-0.1072015, 0.0876452, 0.0195563, 0.1190357, -0.2072195, 0.0881838, 0, 0, 0]),
    ([0, -100, 2], {"reduction": "sum"}, 0.3362342, [-0.214403, 0.1752904, 0.0391126, 0, 0, 0, 0.0452785, 0.0452785, -0.090557]),
    ([0, -100, 2], {"weight": WEIGHT}, 0.1242006, [-0.0428806, 0.0350581, 0.0078225, 0, 0, 0, 0.0362228, 0.0362228, -0.0724456]),
    ([0, -100, 2], {"label_smoothing": 0.2}, 0.5181171, [-0.0405348, 0.0543119, -0.013777, 0, 0, 0, -0.0106941, -0.0106941, 0.0213882]),
    ([0, -100, 2], {"weight": WEIGHT, "label_smoothing": 0.2, "reduction": "sum"}, 2.2537117, [0.1284229, 0.0887012, -0.2171241, 0, 0, 0, 0.0993545, 0.0326878, -0.1320422]),
    (SOFT, {}, 1.440473, [0.195199, -0.0415699, -0.1536291, -0.2539762, 0.195187, 0.0587892, -0.0182405, -0.0182405, 0.036481]),
    (SOFT, {"label_smoothing": 0.2}, 1.4904733, [0.1863101, -0.0437921, -0.142518, -0.2095318, 0.1729648, 0.036567, -0.0337961, -0.0337961, 0.0675921]),
    (SOFT, {"weight": WEIGHT, "reduction": "sum"}, 10.2430859, None),
]  # fmt: skip


@pytest.mark.parametrize(("target", "options", "loss", "gradient"), CROSS_ENTROPY)
def test_cross_entropy(target, options, loss, gradient, device):
    options = {k: ag.tensor(v, device=device) if k == "weight" else v for k, v in options.items()}
    x, t = leaf(LOGITS, device), ag.tensor(target, device=device)
    got = F.cross_entropy(x, t, **options)
    assert_close(got, loss, 3e-6)
    got.backward()
    if gradient is not None:
        assert_close(x.grad, np.reshape(gradient, (3, 3)), 3e-6)
    module = nn.CrossEntropyLoss(**options)
    assert_close(module(x, t), loss, 3e-6)
    if "label_smoothing" not in options and t.ndim == 1:
        assert_close(F.nll_loss(F.log_softmax(x, 1), t, **options), loss, 3e-6)
        assert_close(nn.NLLLoss(**options)(nn.LogSoftmax(1)(x), t), loss, 3e-6)


def test_cross_entropy_shapes(device):
    waves = ag.tensor(np.sin(np.arange(12, dtype=np.float32)).reshape(2, 3, 2), device=device)
    targets = ag.tensor([[0, 2], [1, 1]], device=device)
    assert_close(F.cross_entropy(waves, targets), 1.2526246, 3e-6)
    assert F.cross_entropy(waves, targets, reduction="none").shape == (2, 2)
    assert_close(F.cross_entropy(ag.arange(3.0, device=device), ag.tensor(1, device=device)), 1.4076059, 3e-6)
    everything_ignored = F.cross_entropy(waves, ag.full((2, 2), -100, device=device))
    assert math.isnan(everything_ignored.item())
    x = leaf(np.ones((2, 3)), device)
    for bad in (3, -1, -7):
        assert_raises(IndexError, f"got {bad}", lambda bad=bad: F.cross_entropy(x, ag.tensor([0, bad], device=device)))
    assert_raises(ValueError, "[cross_entropy]", lambda: F.cross_entropy(x, ag.tensor([0], device=device)))
    assert_raises(ValueError, "[cross_entropy] input and target", lambda: F.cross_entropy(x, ag.ones(2, device=device)))
    assert_raises(ValueError, "reduction", lambda: nn.CrossEntropyLoss(reduction="avg"))
    assert_raises(ValueError, "label_smoothing", lambda: F.cross_entropy(x, ag.tensor([0, 1], device=device), label_smoothing=2))
    assert_raises(ValueError, "one entry a class", lambda: F.cross_entropy(x, ag.tensor([0, 1], device=device), ag.ones(2, device=device)))
    assert_raises(TypeError, "float32", lambda: F.nll_loss(x, ag.ones(2, device=device)))


def test_losses(device):
    x, t = leaf([0.0, 3.0], device), ag.tensor([1.0, 1.0], device=device)
    for reduction, square, absolute in (("mean", 2.5, 1.5), ("sum", 5, 3), ("none", [1, 4], [1, 2])):
        assert_close(F.mse_loss(x, t, reduction), square)
        assert_close(nn.MSELoss(reduction)(x, t), square)
        assert_close(nn.L1Loss(reduction)(x, t), absolute)
    for loss in (F.mse_loss, F.l1_loss, F.binary_cross_entropy_with_logits):
        assert_raises(ValueError, "one shape", lambda loss=loss: loss(x.reshape(2, 1), t))
    logits, labels = leaf([-100.0, 0, 100, 2], device), ag.tensor([1.0, 0, 0, 0.25], device=device)
    assert_close(F.binary_cross_entropy_with_logits(logits, labels, reduction="none"), [100, 0.6931472, 100, 1.6269280], 3e-6)
    weights = {"weight": ag.tensor([1.0, 2, 3, 4], device=device), "pos_weight": ag.tensor(3.0, device=device)}
    loss = nn.BCEWithLogitsLoss(reduction="none", **weights)(logits, labels)
    assert_close(loss, [300, 1.3862944, 300, 6.7615681], 3e-6)
    loss.sum().backward()
    sigmoid = 0.8807971
    assert_close(logits.grad, [-3, 1, 3, 4 * (0.75 * sigmoid - 0.75 * (1 - sigmoid))], 3e-6)


def test_layer_norm(device):
    x = leaf([[1.0, 2, 4], [-1, 0, 3]], device)
    w, b = ag.tensor([1.0, 2, 3], device=device), ag.tensor([0.0, 1, -1], device=device)
    y = F.layer_norm(x, (3,), w, b)
    assert_close(y, [[-1.0690414, 0.4654794, 3.0089054], [-0.9805790, 0.2155369, 3.1184318]], 1e-5)
    (y * y).sum().backward()
    assert_close(x.grad, [[0.9382086, -1.4073982, 0.4691896], [0.6366550, -0.8489043, 0.2122500]], 1e-5)
    half = nn.LayerNorm(3, dtype=ag.float16, device=device)(ag.tensor([[300.0, 301, 302]], dtype=ag.float16, device=device))
    assert half.dtype is ag.float16
    assert_close(half, [[-1.2247, 0, 1.2247]], 2e-3)
    assert_raises(ValueError, "must end in normalized_shape (2,)", lambda: F.layer_norm(x, (2,)))


def test_embedding(device):
    table = leaf(np.arange(12).reshape(4, 3), device)
    index = ag.tensor([[0, 3], [3, 2]], device=device)
    y = F.embedding(index, table, padding_idx=-1)
    assert_close(y, np.arange(12).reshape(4, 3)[[[0, 3], [3, 2]]])
    y.sum().backward()
    assert_close(table.grad, np.array([[1], [0], [1], [0]]) * np.ones(3))
    for bad in (4, -1):
        assert_raises(IndexError, f"got {bad}", lambda bad=bad: F.embedding(ag.tensor([bad], device=device), table))
    assert_raises(TypeError, "[embedding]", lambda: F.embedding(ag.tensor([0.5], device=device), table))
    module = nn.Embedding(5, 2, padding_idx=1, device=device)
    assert_close(module.weight[1], [0, 0])
    frozen = nn.Embedding.from_pretrained(table.detach())
    assert not frozen.weight.requires_grad
    assert_close(frozen(index), y)
    assert_raises(IndexError, "padding_idx", lambda: nn.Embedding(5, 2, padding_idx=5))


def put(y, index, v):
    y[index] = v
    return y


NOTHING_WRITTEN = {  # y [4, 3], v [0, 3] and i, an empty index
    "mask": lambda y, v, i: put(y, y.sum(1) > 99, v),
    "index": lambda y, v, i: put(y, i, v),
    "slice": lambda y, v, i: put(y, slice(2, 2), v),
    "index_put": lambda y, v, i: y.index_put((i,), v, accumulate=True),
    "index_add": lambda y, v, i: y.index_add(0, i, v),
    "index_copy": lambda y, v, i: y.index_copy(0, i, v),
    "index_reduce": lambda y, v, i: y.index_reduce(0, i, v, "mean"),
    "index_fill": lambda y, v, i: y.index_fill(0, i, v.sum()),
    "scatter": lambda y, v, i: y.scatter(0, i.reshape(0, 1), v),
    "scatter_add": lambda y, v, i: y.scatter_add(0, i.reshape(0, 1), v),
    "scatter_reduce": lambda y, v, i: y.scatter_reduce(0, i.reshape(0, 1), v, "amax"),
    "put": lambda y, v, i: y.put(i, v.reshape(-1)),
    "masked_scatter": lambda y, v, i: y.masked_scatter(y > 99, v),
}


@pytest.mark.parametrize("name", NOTHING_WRITTEN)
def test_an_expert_without_samples_has_a_gradient_of_zeros(name, device):
    x, w = leaf(np.ones((4, 3)), device), leaf(np.ones((3, 3)), device)
    y = NOTHING_WRITTEN[name](x * 2, x[:0] @ w, ag.zeros(0, dtype=ag.int64, device=device))
    assert_close(y, np.full((4, 3), 2.0))
    y.sum().backward()
    assert_close(x.grad, np.full((4, 3), 2.0))
    assert_close(w.grad, np.zeros((3, 3)))


def test_the_nearest_element_does_not_move_with_the_grid(device):
    x, grid = leaf([[[[1.0, 2], [3, 4]]]], device), leaf([[[[-0.5, 0.5], [0.4, 0.4]]]], device)
    F.grid_sample(x, grid, "nearest", align_corners=False).sum().backward()
    assert_close(grid.grad, np.zeros((1, 1, 2, 2)))
    assert_close(x.grad, [[[[0, 0], [1, 1]]]])


def test_one_hot_and_normalize(device):
    index = ag.tensor([[0, 2], [1, 1]], device=device)
    assert array(F.one_hot(index)).tolist() == np.eye(3, dtype=int)[[[0, 2], [1, 1]]].tolist()
    assert F.one_hot(index, 5).shape == (2, 2, 5) and F.one_hot(index).dtype is ag.int64
    assert_raises(IndexError, "got 2", lambda: F.one_hot(index, 2))
    x = ag.tensor([[3.0, 4], [0, 0]], device=device)
    assert_close(F.normalize(x), [[0.6, 0.8], [0, 0]])


def test_dropout(device):
    ones = np.ones(4000, np.float32)
    ag.manual_seed(3)
    x = leaf(ones, device)
    y = nn.Dropout(0.25)(x)
    y.sum().backward()
    kept = array(y) != 0
    assert_close(y, kept / 0.75, 1e-6)
    assert_close(x.grad, array(y))
    assert 0.72 < kept.mean() < 0.78
    ag.manual_seed(3)
    assert ((array(F.dropout(ag.tensor(ones), 0.25)) != 0) == kept).all(), "a seed gives one mask on both devices"
    assert F.dropout(x, 0.0) is x and nn.Dropout().eval()(x) is x
    assert_close(F.dropout(x, 1.0), 0 * ones)
    z = ag.tensor(ones, device=device)
    assert nn.Dropout(0.5, inplace=True)(z) is z and set(np.unique(array(z))) == {0, 2}
    for p in (-0.1, 1.5):
        assert_raises(ValueError, "probability", lambda p=p: nn.Dropout(p))


# -- recurrent ------------------------------------------------------------------------------------------

GRUS = [
    ({}, [0.33641, -0.201662, -0.046874, 0.064029, 0.221977, -0.236567, 0.342065, -0.149927],
     [0.221977, -0.236567, 0.342065, -0.149927], [-0.090528, 0.044063, 2.55531, 0.754359]),
    ({"num_layers": 2, "bidirectional": True},
     [-0.202757, -0.057525, 0.152985, -0.262864, -0.213205, -0.057567, 0.167585, -0.274335,
      -0.349344, -0.108854, 0.070026, -0.134984, -0.329767, -0.063797, 0.097633, -0.151317],
     [0.221977, -0.236567, 0.342065, -0.149927, 0.57578, 0.615907, 0.302046, 0.446296,
      -0.349344, -0.108854, -0.329767, -0.063797, 0.152985, -0.262864, 0.167585, -0.274335],
     [-0.211744, -0.014441, -1.104016, -0.559668, -0.7401, 0.530016, 2.488535, 0.657439,
      4.025109, -0.277672, 4.045872, 2.880491, 2.916594, -0.020152, 3.097765, 1.112775]),
    ({"bias": False, "batch_first": True}, [0.354116, -0.242639, 0.113605, 0.250313, -0.122235, 0.016323, 0.321229, -0.25162],
     [0.113605, 0.250313, 0.321229, -0.25162], [1.594489, -0.003228]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "y", "hn", "gradients"), GRUS)
def test_gru(options, y, hn, gradients, device):
    module = fill(nn.GRU(2, 2, **options)).to(device)
    got, last = module(ag.tensor(np.cos(np.arange(8, dtype=np.float32)).reshape(2, 2, 2), device=device))
    assert_close(got.reshape(-1), y, 1e-5)
    assert_close(last.reshape(-1), hn, 1e-5)
    (got.sum() + (last * last).sum()).backward()
    for p, total in zip(module.parameters(), gradients, strict=True):
        assert_close(p.grad.sum(), total, 2e-5)


def test_gru_layouts_and_states(device):
    gru = fill(nn.GRU(3, 4, num_layers=2, bidirectional=True)).to(device)
    x = ag.randn(5, 2, 3, device=device)
    y, hn = gru(x)
    assert y.shape == (5, 2, 8) and hn.shape == (4, 2, 4)
    same, _ = gru(x, ag.zeros(4, 2, 4, device=device))
    assert_close(same, array(y))
    alone, state = gru(x[:, 1], ag.zeros(4, 4, device=device))
    assert alone.shape == (5, 8) and state.shape == (4, 4)
    assert_close(alone, array(y)[:, 1], 1e-5)
    first = nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True).to(device)
    first.load_state_dict(gru.state_dict())
    turned, last = first(x.transpose(0, 1))
    assert_close(turned, array(y).transpose(1, 0, 2), 1e-5)
    assert_close(last, array(hn), 1e-5)
    assert_raises(ValueError, "(4, 2, 4)", lambda: gru(x, ag.zeros(4, 1, 4, device=device)))
    assert_raises(ValueError, "[T, B, I]", lambda: gru(ag.zeros(5, 2, 7, device=device)))
    assert_raises(ValueError, "num_layers", lambda: nn.GRU(3, 4, num_layers=0))
    with pytest.warns(UserWarning, match="between layers"):
        nn.GRU(3, 4, dropout=0.5)
    noisy = nn.GRU(3, 4, num_layers=2, dropout=1.0).to(device)
    assert_close(noisy(x)[0][:, 0], array(noisy(x)[0])[:, 1], 1e-6)  # layer 2 reads zeros whatever x is
    assert not np.allclose(array(noisy.eval()(x)[0])[:, 0], array(noisy(x)[0])[:, 1])


def test_gru_cell(device):
    cell = fill(nn.GRUCell(2, 2)).to(device)
    x, h = ag.tensor([[0.5, -1.0]], device=device), ag.tensor([[0.25, -0.75]], device=device)
    assert_close(cell(x, h), [[0.2358853, -0.4239222]], 1e-5)
    assert_close(cell(x[0], h[0]), [0.2358853, -0.4239222], 1e-5)
    assert cell(x).shape == (1, 2)
    assert_raises(ValueError, "(1, 2)", lambda: cell(x, ag.zeros(2, 2, device=device)))
    assert_raises(ValueError, "I = 2", lambda: cell(ag.zeros(1, 3, device=device)))
