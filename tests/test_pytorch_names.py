"""PyTorch's names that are second names, shorthands or small composites: each does what it says, on both devices."""

import math

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn
from autograd.nn import functional as F


def close(got, want, tolerance=1e-5):
    assert_close(got, np.asarray(want, np.float64), tolerance)


def test_limits_of_dtypes():
    half, single, brain, double = (ag.finfo(d) for d in (ag.float16, ag.float32, ag.bfloat16, ag.float64))
    assert (half.max, half.eps, half.bits, half.tiny) == (65504.0, 2.0**-10, 16, 2.0**-14)
    assert (single.min, single.resolution, single.dtype) == (-(2 - 2.0**-23) * 2.0**127, 1e-6, "float32")
    assert (brain.eps, brain.smallest_normal) == (2.0**-7, 2.0**-126) and double.bits == 64 and ag.finfo().dtype == "float32"
    assert (ag.iinfo(ag.uint8).max, ag.iinfo(ag.int32).min, ag.iinfo(ag.int64).bits) == (255, -(2**31), 64)
    assert_raises(TypeError, "[finfo] expects a floating point dtype", lambda: ag.finfo(ag.int64))
    assert_raises(TypeError, "[iinfo] expects an integer dtype", lambda: ag.iinfo(ag.bool))


def test_constants_and_kinds():
    assert (ag.pi, ag.e, ag.inf, ag.newaxis) == (math.pi, math.e, math.inf, None) and math.isnan(ag.nan)
    assert isinstance(ag.float32, ag.dtype) and ag.Size([2, 3]) == ag.ones(2, 3).shape
    assert ag.float32.is_signed and not ag.uint8.is_signed and not ag.float32.is_complex


def test_devices_by_name():
    assert ag.device("wgpu") == ag.device("wgpu:0") == ag.device("wgpu", 0) == "wgpu" and ag.device("wgpu:1").index == 1
    assert ag.device(ag.device("cpu")) == "cpu" and ag.device("cpu").index is None
    assert_raises(ValueError, "CUDA is not used here", lambda: ag.device("cuda"))
    assert_raises(ValueError, "[device]", lambda: ag.device("wgpu:0", 1))
    with ag.device("cpu") as inside:
        assert ag.zeros(1).device == inside == "cpu"


def test_tensors_of_old(device):
    assert ag.Tensor([1, 2]).tolist() == [1.0, 2.0] and ag.Tensor(2, 3).shape == (2, 3) and ag.Tensor().shape == (0,)
    assert ag.LongTensor([1.5, 2.0]).tolist() == [1, 2] and ag.BoolTensor([0, 2]).tolist() == [False, True]
    assert isinstance(ag.ones(1, device="cpu"), ag.FloatTensor) and not isinstance(ag.ones(1, device="cpu"), ag.LongTensor)
    x = ag.ones(2, device=device)
    assert x.type() == "autograd.FloatTensor" and x.type("autograd.LongTensor").dtype is x.type(ag.int64).dtype is ag.int64
    assert x.type(ag.IntTensor).dtype is ag.int32 and x.byte().dtype is ag.uint8
    assert_raises(TypeError, "[Tensor] expected data", lambda: ag.Tensor([1], [2]))


def test_what_a_tensor_says(device):
    x = ag.arange(6.0, device=device).reshape(2, 3)
    assert x.ndimension() == 2 and x.nelement() == ag.numel(x) == 6 and x.element_size() == 4 and x[1].storage_offset() == 3
    assert x.data_ptr() == x[0].data_ptr() != x[1].data_ptr() and ag.is_floating_point(x) and ag.is_signed(x)
    assert x.is_cpu == (device == "cpu") and not x.is_cuda and not ag.is_complex(x) and ag.is_nonzero(x[1, 1])
    assert 5.0 in x and 7 not in x and x.adjoint().shape == x.mH.shape == (3, 2) and x.is_same_size(x + 1)
    assert x.new_empty(2, dtype=ag.int64).dtype is ag.int64 and x.requires_grad_().numpy(force=True).shape == (2, 3)


SECOND = {
    "absolute": (-2.0, 2.0), "arccos": (0.5, math.acos(0.5)), "arcsin": (0.5, math.asin(0.5)), "arctan": (2.0, math.atan(2)),
    "fix": (-1.5, -1.0), "negative": (3.0, -3.0), "sgn": (-3.0, -1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_names(name, device):
    given, want = SECOND[name]
    x = ag.tensor([given], device=device)
    close(getattr(ag, name)(x), [want])
    close(getattr(x.clone(), f"{name}_")(), [want])


def test_second_names_of_two(device):
    a, b = ag.tensor([1.0, 2.0], device=device), ag.tensor([2.0, 2.0], device=device)
    assert ag.less(a, b).tolist() == [True, False] and ag.greater_equal(a, b).tolist() == [False, True]
    assert a.not_equal(b).tolist() == [True, False] and ag.less_equal(a, b).all() and not ag.greater(a, b).any()
    close(ag.arctan2(a, b), [math.atan2(1, 2), math.atan2(2, 2)])
    close(ag.ger(a, b), [[2, 2], [4, 4]])
    assert ag.concatenate([a, b]).tolist() == [1, 2, 2, 2]


CHANGES = {
    "sin_": ((), [math.sin(0.25), math.sin(0.5)]), "square_": ((), [0.0625, 0.25]), "clip_": ((0.3, 1.0), [0.3, 0.5]), "log1p_": ((), [math.log(1.25), math.log(1.5)]),
    "cumsum_": ((0,), [0.25, 0.75]), "gt_": ((0.3,), [0, 1]), "multiply_": ((2,), [0.5, 1.0]), "erf_": ((), [math.erf(0.25), math.erf(0.5)]), "logit_": ((), [-math.log(3), 0]),
    "subtract_": ((1,), [-0.75, -0.5]), "fmod_": ((0.2,), [0.05, 0.1]), "copysign_": ((-1.0,), [-0.25, -0.5]), "nan_to_num_": ((), [0.25, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place_keep_their_gradient(name, device):
    args, want = CHANGES[name]
    x = ag.tensor([0.25, 0.5], device=device)
    assert getattr(x, name)(*args) is x
    close(x, want)
    leaf = ag.tensor([0.25, 0.5], device=device, requires_grad=True)
    out, plain = getattr(leaf * 1, name)(*args), getattr(leaf * 1, name[:-1])(*args)
    if plain.requires_grad and name != "gt_":
        close(ag.grad(out.sum(), leaf)[0], array(ag.grad(plain.sum(), leaf)[0]))


def test_dividing_in_place_by_what_is_made_of_it(device):
    x = ag.tensor([[1.0, 3.0]], device=device, requires_grad=True)
    w = x * 1
    w /= w.sum(-1, keepdim=True)
    w *= x
    w[0, 0].backward()  # x0^2 / (x0 + x1)
    close(x.grad, [[(2 * 4 - 1) / 16, -1 / 16]])


def test_views_in_place(device):
    x = ag.arange(6.0, device=device).reshape(2, 3).clone()
    assert x.unsqueeze_(0).shape == (1, 2, 3) and x.squeeze_(0).t_().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.transpose_(0, 1).shape == (2, 3) and x.tril_().tolist() == [[0, 0, 0], [3, 4, 0]]
    leaf = ag.ones(2, device=device, requires_grad=True)
    y = leaf * 3
    y.unsqueeze_(1).mul_(2)
    y.sum().backward()
    close(leaf.grad, [6, 6])
    assert_raises(RuntimeError, "[t_] a leaf that requires grad", leaf.t_)
    shown = x[0]
    assert_raises(RuntimeError, "[t_] other tensors show this tensor's memory", x.t_)
    assert shown.shape == (3,)
    assert ag.zeros(3, 2, device=device).fill_diagonal_(5).tolist() == [[5, 0], [0, 5], [0, 0]]
    assert_raises(ValueError, "[fill_diagonal_]", lambda: ag.zeros(3, device=device).fill_diagonal_(1))


# -- drawing ------------------------------------------------------------------------------------------------

MOMENTS = {
    "uniform_": ((-1, 3), 1, 4 / math.sqrt(12)), "normal_": ((2, 3), 2, 3), "exponential_": ((2,), 0.5, 0.5), "geometric_": ((0.25,), 4, math.sqrt(12)),
    "bernoulli_": ((0.3,), 0.3, math.sqrt(0.21)), "log_normal_": ((0, 0.5), math.exp(0.125), math.sqrt((math.exp(0.25) - 1) * math.exp(0.25))), "random_": ((3, 7), 4.5, math.sqrt(1.25)),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_filling_with_random_numbers(name, device):
    args, mean, std = MOMENTS[name]
    ag.manual_seed(3)
    x = getattr(ag.empty(20_000, device=device), name)(*args)
    assert abs(x.mean().item() - mean) < 5 * std / math.sqrt(20_000) and abs(x.std().item() / std - 1) < 0.06
    own = ag.Generator().manual_seed(5)
    first = getattr(ag.empty(4, device=device), name)(*args, generator=own)
    close(getattr(ag.empty(4, device="cpu"), name)(*args, generator=own.manual_seed(5)), array(first), 1e-6)


def test_multinomial(device):
    weights = ag.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], device=device)
    ag.manual_seed(0)
    drawn = ag.multinomial(weights, 4000, replacement=True)
    assert drawn.shape == (2, 4000) and drawn.dtype is ag.int64 and drawn.device == device
    assert not (drawn[0] == 1).any() and (drawn[1] == 1).all() and abs((drawn[0] == 2).float().mean().item() - 0.75) < 0.035
    assert sorted(weights[0].multinomial(2).tolist()) == [0, 2]
    first = [ag.multinomial(weights[0], 2)[0].item() for _ in range(300)]
    assert abs(first.count(2) / 300 - 0.75) < 0.13
    assert_raises(ValueError, "[multinomial] each row needs a positive weight", lambda: ag.multinomial(weights, 2))
    assert_raises(ValueError, "[multinomial] weights must be finite and not negative", lambda: ag.multinomial(-weights, 1))
    assert_raises(TypeError, "[multinomial] expected a tensor of floating point", lambda: ag.multinomial(drawn, 1))


def test_distributions(device):
    ag.manual_seed(1)
    p = ag.tensor([0.0, 1.0, 0.25], device=device).expand(4000, 3)
    drawn = ag.bernoulli(p).mean(0)
    assert drawn[:2].tolist() == [0, 1] and abs(drawn[2].item() - 0.25) < 0.035
    assert_raises(ValueError, "[bernoulli] probabilities lie in [0, 1]", lambda: ag.bernoulli(p + 1))
    means = ag.normal(ag.tensor([0.0, 5.0], device=device).expand(4000, 2), 0.5).mean(0)
    close(means, [0, 5], 0.05)
    assert ag.normal(1.0, 2.0, (2, 3), device=device).shape == (2, 3)
    assert_raises(TypeError, "[normal] give size", lambda: ag.normal(0.0, 1.0))
    assert abs(ag.poisson(ag.full((4000,), 3.0, device=device)).mean().item() - 3) < 0.15
    assert ag.randint_like(p[:2], 2, 5).min().item() >= 2 and ag.randint(5, size=(3,)).shape == (3,)


def test_streams():
    ag.manual_seed(7)
    before = ag.randn(2)
    with ag.random.fork_rng():
        ag.manual_seed(8)
    assert ag.initial_seed() == 7
    after = ag.randn(2)
    ag.manual_seed(7)
    assert ag.equal(ag.randn(4), ag.cat([before, after]))
    own = ag.Generator(device="cpu").manual_seed(3)
    a = ag.randperm(5, generator=own, dtype=ag.int32), ag.rand(2, generator=own)
    own.manual_seed(3)
    assert ag.equal(ag.randperm(5, generator=own, dtype=ag.int32), a[0]) and ag.equal(ag.rand_like(a[1], generator=own), a[1])
    assert isinstance(own.seed(), int) and own.initial_seed() != 3


def test_there_is_no_other_algorithm_to_switch_to():
    ag.use_deterministic_algorithms(False, warn_only=True)
    assert ag.are_deterministic_algorithms_enabled()
    assert_raises(TypeError, "[use_deterministic_algorithms] expects True or False; got int", lambda: ag.use_deterministic_algorithms(1))


def test_gumbel_softmax(device):
    ag.manual_seed(0)
    logits = ag.tensor([0.0, math.log(3.0)], device=device, requires_grad=True)
    hard = F.gumbel_softmax(logits.expand(4000, 2), tau=0.5, hard=True)
    assert set(hard.reshape(-1).tolist()) == {0.0, 1.0} and abs(hard[:, 1].mean().item() - 0.75) < 0.035
    soft = F.gumbel_softmax(logits.expand(3, 2))
    close(soft.sum(-1), [1, 1, 1])
    hard[:, 1].sum().backward()
    assert logits.grad.abs().min().item() > 0


# -- initialisation, layers ---------------------------------------------------------------------------------


def test_starting_values(device):
    ag.manual_seed(0)
    w = nn.init.trunc_normal_(ag.empty(100, 100, device=device), mean=1.0, std=2.0, a=-1.0, b=2.0)
    assert -1 <= w.min().item() < -0.95 and 1.95 < w.max().item() <= 2
    density = [math.exp(-(((i + 0.5) / 1000 * 3 - 2) ** 2) / 8) for i in range(1000)]
    want = sum(d * ((i + 0.5) / 1000 * 3 - 1) for i, d in enumerate(density)) / sum(density)
    assert abs(w.mean().item() - want) < 0.05
    assert nn.init.eye_(ag.empty(2, 3, device=device)).tolist() == [[1, 0, 0], [0, 1, 0]]
    kernel = nn.init.dirac_(ag.empty(4, 2, 3, device=device), groups=2)
    assert kernel.sum().item() == 4 and kernel[:, :, 1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    columns = (nn.init.sparse_(ag.empty(10, 4, device=device), 0.25) == 0).sum(0)
    assert columns.tolist() == [3, 3, 3, 3]
    own = ag.Generator().manual_seed(2)
    first = nn.init.xavier_normal_(ag.empty(3, 3, device=device), generator=own)
    close(nn.init.xavier_normal_(ag.empty(3, 3), generator=own.manual_seed(2)), array(first))
    for wrong in (lambda: nn.init.eye_(ag.empty(2)), lambda: nn.init.dirac_(ag.empty(2, 2)), lambda: nn.init.sparse_(ag.empty(2), 0.5)):
        with pytest.raises(ValueError, match="expects"):
            wrong()


INPLACE = (nn.ReLU, nn.LeakyReLU, nn.SiLU, nn.ELU, nn.CELU, nn.SELU, nn.Hardtanh, nn.ReLU6, nn.Hardsigmoid, nn.Hardswish, nn.Mish)


@pytest.mark.parametrize("kind", INPLACE)
def test_activations_in_place(kind, device):
    leaf = ag.tensor([-4.0, -0.5, 0.25, 2.0, 7.0], device=device, requires_grad=True)
    x = leaf * leaf.abs()  # whose gradient needs nothing of x
    y = kind(inplace=True)(x)
    assert y is x
    want = kind()(leaf * leaf.abs())
    close(y, array(want))
    close(ag.grad(y.sum(), leaf)[0], array(ag.grad(want.sum(), leaf)[0]))


def test_embedding_options(device):
    table = nn.Embedding(4, 2, max_norm=1.0, scale_grad_by_freq=True).to(device)
    with ag.no_grad():
        table.weight.copy_(ag.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0], [1.0, 0.0]]))
    y = table(ag.tensor([0, 0, 1], device=device))
    close(y, [[0.6, 0.8], [0.6, 0.8], [0.3, 0.4]])
    y.sum().backward()
    close(table.weight.grad, [[1, 1], [1, 1], [0, 0], [0, 0]])
    close(table.weight[2], [6, 8])
    assert repr(nn.Embedding(4, 2, max_norm=1.0)) == "Embedding(4, 2, max_norm=1.0)"
    frozen = nn.Embedding.from_pretrained(ag.ones(3, 2), padding_idx=1)
    assert not frozen.weight.requires_grad and frozen.padding_idx == 1 and frozen.num_embeddings == 3
    assert_raises(ValueError, "[Embedding] gradients are dense here", lambda: nn.Embedding(4, 2, sparse=True))
    assert_raises(ValueError, "[Embedding] _weight must be", lambda: nn.Embedding(4, 2, _weight=ag.ones(2, 2)))


def test_lazy_layers(device):
    def build():
        return nn.Sequential(
            nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.LazyConvTranspose2d(2, 2), nn.LazyInstanceNorm2d(affine=True),
            nn.Flatten(), nn.LazyLinear(6), nn.Unflatten(1, (2, 3)),
        ).to(device)  # fmt: skip

    net, x = build(), ag.randn(2, 3, 6, 6, device=device)
    optimizer = ag.optim.SGD(net.parameters(), lr=0.1, fused=True)
    y = net(x)
    assert y.shape == (2, 2, 3) and [type(m) for m in net[:4]] == [nn.Conv2d, nn.BatchNorm2d, nn.ConvTranspose2d, nn.InstanceNorm2d]
    assert net[1].num_features == 4 and net[2].in_channels == 4 and net[1].running_mean.device == device
    y.sum().backward()
    optimizer.step()
    twin = build()
    twin.load_state_dict(net.state_dict())
    close(twin.eval()(x), array(net.eval()(x)))
    assert type(twin[1].running_var) is ag.Tensor and type(twin[1].weight) is nn.Parameter
    assert list(nn.LazyInstanceNorm1d().state_dict()) == list(nn.InstanceNorm1d(3, affine=True, track_running_stats=True).state_dict())
    for plain in (nn.LazyBatchNorm1d(bias=False), nn.LazyInstanceNorm1d(bias=False)):
        plain(ag.ones(2, 3, 4))
        assert plain.weight.shape == (3,) and plain.bias is None
    assert_raises(ValueError, "[LazyBatchNorm2d] expects 4 dimensions", lambda: nn.LazyBatchNorm2d()(ag.ones(2, 3)))
    assert_raises(ValueError, "[LazyConvTranspose1d] expects", lambda: nn.LazyConvTranspose1d(2, 2)(ag.ones(3)))


def test_losses_take_their_tensors_by_name():
    x, t = ag.tensor([0.5, 2.0]), ag.tensor([1.0, -1.0])
    pairs = [(nn.HuberLoss(), {"input": x, "target": t}), (nn.PoissonNLLLoss(), {"log_input": x, "target": t}),
             (nn.GaussianNLLLoss(), {"input": x, "target": t, "var": x}), (nn.MarginRankingLoss(), {"input1": x, "input2": t, "target": t}),
             (nn.TripletMarginWithDistanceLoss(), {"anchor": x[None], "positive": t[None], "negative": x[None]})]  # fmt: skip
    for loss, tensors in pairs:
        assert loss(**tensors).item() == loss(*tensors.values()).item()
    assert "(distance_function): PairwiseDistance" in repr(nn.TripletMarginWithDistanceLoss())


def test_buffers_and_submodules():
    m = nn.Module()
    m.kept, m.passing = nn.Buffer(ag.ones(2)), nn.Buffer(ag.zeros(1), persistent=False)
    m.inner = nn.Sequential(nn.Linear(1, 1))
    assert list(m.state_dict()) == ["kept", "inner.0.weight", "inner.0.bias"] and m.get_buffer("passing").tolist() == [0]
    m.set_submodule("inner.0", nn.Identity())
    assert type(m.inner[0]) is nn.Identity
    assert_raises(AttributeError, "[get_buffer]", lambda: m.get_buffer("inner.none"))
    assert_raises(AttributeError, "[get_submodule]", lambda: m.set_submodule("inner.7", nn.Identity()))


def test_parametrizations_are_computed_once_when_cached():
    calls = []

    class Doubled(nn.Module):
        def forward(self, w):
            calls.append(1)
            return w * 2

    layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    calls.clear()
    with nn.utils.parametrize.cached():
        assert layer.weight is layer.weight and len(calls) == 1
    assert layer.weight is not layer.weight and len(calls) == 3


def test_numbers_are_written_at_indices(device):
    x, i = ag.zeros(2, 3, device=device), ag.tensor([0, 1], device=device)
    x[i, i] = 1.5
    x[ag.tensor([False, True], device=device), 2] = -math.inf
    x[[0], [2]] = [2.5]
    assert x.tolist() == [[1.5, 0, 2.5], [0, 1.5, -math.inf]]


def test_a_number_on_the_cpu_meets_any_device(device):
    s, x = ag.tensor(2.0, device="cpu", requires_grad=True), ag.ones(2, device=device, requires_grad=True)
    y = s * x - ag.tensor(1.0, dtype=ag.float64, device="cpu")
    y.sum().backward()
    assert y.device == device and y.dtype is ag.float32 and y.tolist() == [1, 1]
    assert s.grad.item() == 2 and s.grad.device == "cpu" and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("name", ["cuda", "compile", "jit", "sparse_coo_tensor", "complex64"])
def test_what_is_not_there_says_so(name):
    assert not hasattr(ag, name)
    with pytest.raises(AttributeError, match=f"module 'autograd' has no attribute '{name}'"):
        getattr(ag, name)
    with pytest.raises(AttributeError, match=r"The GPU is ag\.wgpu"):
        ag.cuda


def test_data_is_the_same_memory_without_history(device):
    """`p.data` changes a parameter outside the tape, as PyTorch's programs do; giving `.data` gives the memory."""
    p = ag.nn.Linear(2, 2).to(device).weight
    p.data.fill_(1.0)
    p.data[0] = 4.0
    p.data -= 0.5 * ag.ones(2, 2, device=device)
    assert p.tolist() == [[3.5, 3.5], [0.5, 0.5]] and p.is_leaf and p.requires_grad and not p.data.requires_grad
    y = (p * 2).sum()
    p.data = ag.zeros(3, device=device)
    p.data.copy_(ag.ones(3, device=device))
    assert p.tolist() == [1.0, 1.0, 1.0] and y.item() == 16.0
    with pytest.raises(TypeError, match=r"\[data\] .*floating point"):
        p.data = ag.arange(3, device=device)
    with pytest.raises(TypeError, match=r"\[data\] expected a Tensor"):
        p.data = 1.0


def test_a_change_through_data_is_not_checked(device):
    """Backward takes what the memory holds then, and says nothing: so it is in PyTorch; detach() shares the check."""
    x = ag.tensor([3.0], device=device, requires_grad=True)
    y = x * x
    x.data.zero_()
    y.backward()
    assert x.grad.tolist() == [0.0]
    z = x * x
    x.detach().fill_(1.0)
    with pytest.raises(RuntimeError, match=r"in place|in-place"):
        z.backward()
