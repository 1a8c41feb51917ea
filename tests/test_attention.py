"""Attention: the fused op against its composite twin on both devices, masks, dropout, and the layers built on it."""

import itertools
import math

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import nn
from autograd.ops import attention, attention_numpy

F = nn.functional
WIDE = {"cpu": "float64", "wgpu": "float32"}


def random(device, *shapes, dtype=None, grad=True):
    r = np.random.default_rng(0)
    return [ag.tensor(r.standard_normal(s), dtype=dtype or WIDE[device], device=device, requires_grad=grad) for s in shapes]


def masks(lead, length, columns):
    """None, and masks of all kinds; each has a row that sees nothing."""
    r = np.random.default_rng(1)
    seen = r.random((length, columns)) < 0.7
    seen[0] = False
    keys = r.random((lead[0], *(1,) * len(lead), columns)) < 0.6
    keys[0] = False
    return None, seen, keys, np.where(seen, r.standard_normal(seen.shape), -np.inf), r.random((*lead, length, columns)) < 0.5


def placed(mask, q):
    return None if mask is None else ag.tensor(mask, device=q.device, dtype=None if mask.dtype == bool else q.dtype)


def outcome(function, q, k, v, *options, **kwargs):
    y = function(q, k, v, *options)
    dy = ag.tensor(np.cos(np.arange(y.numel())).reshape(y.shape), dtype=y.dtype, device=y.device)
    return [y, *ag.grad(y, (q, k, v), dy, **kwargs)]


@pytest.mark.parametrize("lead, length, columns, wide, deep", [((2, 3), 5, 7, 8, 4), ((2,), 3, 3, 5, 6), ((1, 2, 2), 4, 2, 3, 3)])
def test_fused_equals_composite(device, lead, length, columns, wide, deep):
    q, k, v = random(device, (*lead, length, wide), (*lead, columns, wide), (*lead, columns, deep))
    for mask, causal, p in itertools.product(masks(lead, length, columns), (False, True), (0.0, 0.4)):
        options = placed(mask, q), 0.3, causal, p, 11
        want = outcome(attention.composite, q, k, v, *options)
        fused = outcome(attention.attention, q, k, v, *options)
        graph = outcome(attention.attention, q, k, v, *options, create_graph=True)
        for a, b, c in zip(fused, want, graph, strict=True):
            assert np.isfinite(array(a)).all()
            assert_close(a, b, 1e-5 if device == "wgpu" else 1e-12, f"{causal}, {p}")
            assert_close(a, c, 1e-5 if device == "wgpu" else 1e-12)


def test_blocks_change_nothing(monkeypatch):
    q, k, v = random("cpu", (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4))
    mask = placed(masks((2, 3), 5, 7)[4], q)
    want = outcome(attention.attention, q, k, v, mask, 0.5, True, 0.3, 5)
    for size in (1, 10, 40, 120):
        monkeypatch.setattr(attention_numpy, "BLOCK", size)
        for a, b in zip(outcome(attention.attention, q, k, v, mask, 0.5, True, 0.3, 5), want):
            assert_close(a, b)


def test_nothing_of_the_scores_size_is_kept(device):
    q, k, v = random(device, (1, 2, 96, 4), (1, 2, 96, 4), (1, 2, 96, 4))
    assert ag.tape(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)).saved < 96 * 96 * q.itemsize


def test_strided_heads(device):
    (x,) = random(device, (2, 5, 3 * 8))
    q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in x.chunk(3, -1))
    for a, b in zip(outcome(attention.attention, q, k, v, None, 0.5, False, 0.0, 0),
                    outcome(attention.composite, q, k, v, None, 0.5, False, 0.0, 0)):  # fmt: skip
        assert_close(a, b, 1e-5 if device == "wgpu" else 1e-12)


def test_derivatives():
    q, k, v = random("cpu", (2, 3, 2), (2, 4, 2), (2, 4, 3))
    mask = placed(masks((2,), 3, 4)[1], q)
    for call in (lambda *x: F.scaled_dot_product_attention(*x, mask), lambda *x: F.scaled_dot_product_attention(*x, is_causal=True)):
        assert ag.gradcheck(call, (q, k, v)) and ag.gradgradcheck(call, (q, k, v))
    (added,) = random("cpu", (3, 4))
    assert ag.gradcheck(F.scaled_dot_product_attention, (q, k, v, added))


def test_short_dtypes(device):
    for dtype, tolerance in (("float16", 4e-3), ("bfloat16", 3e-2)):
        q, k, v = random(device, (2, 4, 8), (2, 4, 8), (2, 4, 8), dtype=dtype)
        short = outcome(attention.attention, q, k, v, None, 0.3, True, 0.0, 0)
        exact = outcome(attention.attention, *(x.detach().float().requires_grad_() for x in (q, k, v)), None, 0.3, True, 0.0, 0)
        for a, b in zip(short, exact):
            assert a.dtype.name == dtype
            assert_close(a.float(), b, tolerance)


def test_dropout_is_the_same_on_both_devices_and_keeps_the_mean(wgpu):
    q, k, v = random("cpu", (2, 6, 4), (2, 6, 4), (2, 6, 4), dtype="float32")
    results = []
    for where in ("cpu", wgpu):
        ag.manual_seed(3)
        results.append(F.scaled_dot_product_attention(*(x.to(where) for x in (q, k, v)), dropout_p=0.5))
    assert_close(results[1], results[0], 1e-5)
    share = attention_numpy.kept((4, 200, 200), 9, 0.25).mean((1, 2))
    assert abs(share - 0.75).max() < 0.01
    assert not np.array_equal(*(attention_numpy.kept((9, 9), seed, 0.5) for seed in (1, 2)))


def test_empty_sizes(device):
    q, k, v = random(device, (2, 3, 4), (2, 0, 4), (2, 0, 5))
    y, dq, *_ = outcome(F.scaled_dot_product_attention, q, k, v)
    assert_close(y, np.zeros((2, 3, 5)))
    assert_close(dq, np.zeros((2, 3, 4)))
    assert F.scaled_dot_product_attention(q[:, :0], q, q).shape == (2, 0, 4)


def test_heads_that_share_keys_and_shapes_that_broadcast():
    q, k, v = random("cpu", (2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 2))
    want = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))
    assert_close(F.scaled_dot_product_attention(q, k, v, enable_gqa=True), want)
    assert_close(F.scaled_dot_product_attention(q[:1, :1], k, v)[1], F.scaled_dot_product_attention(q[0, :1].expand(2, 3, 2), k[1], v[1]))


def test_errors(device):
    q, k, v = (ag.ones(2, 3, 4, device=device) for _ in range(3))
    seen = ag.ones(3, 3, device=device) > 0
    name = "[scaled_dot_product_attention]"
    sdpa = F.scaled_dot_product_attention
    for kind, text, call in (
        (ValueError, f"{name} needs query [..., L, E]", lambda: sdpa(q, k[..., :2], v)),
        (ValueError, f"{name} attn_mask and is_causal exclude each other", lambda: sdpa(q, k, v, seen, is_causal=True)),
        (ValueError, f"{name} attn_mask must broadcast to (2, 3, 3); got (4, 3)", lambda: sdpa(q, k, v, ag.ones(4, 3, device=device))),
        (TypeError, f"{name} attn_mask is of bool or of the query's dtype", lambda: sdpa(q, k, v, seen.long())),
        (TypeError, f"{name} query, key and value have one floating point dtype", lambda: sdpa(q, k.half(), v)),
        (ValueError, f"{name} p is a probability; got 2", lambda: sdpa(q, k, v, dropout_p=2)),
        (ValueError, f"{name} query must have a multiple of the heads", lambda: sdpa(q, k[:1].expand(3, 3, 4), v, enable_gqa=True)),
        (ValueError, f"{name} query, key and value have at least 2 dimensions", lambda: sdpa(q[0, 0], k, v)),
        (ValueError, "[MultiheadAttention] embed_dim is a multiple", lambda: nn.MultiheadAttention(6, 4)),
        (ValueError, "[MultiheadAttention] is_causal says what attn_mask is", lambda: nn.MultiheadAttention(4, 2)(q, k, v, is_causal=True)),
        (ValueError, "[MultiheadAttention] the last sizes are (6, 6, 6)", lambda: nn.MultiheadAttention(6, 2)(q, k, v)),
        (ValueError, '[TransformerEncoderLayer] activation is "relu", "gelu" or a function', lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh")),
        (ValueError, "[Transformer] the last size of src and tgt is 8", lambda: nn.Transformer(8, 2, 1, 1, 4)(q, k)),
    ):
        assert_raises(kind, text, call)
    attend = nn.MultiheadAttention(4, 2, device=device)
    for text, kwargs in (
        ("[MultiheadAttention] attn_mask must have shape (2, 2) or (6, 2, 2); got (3, 3)", {"attn_mask": seen}),
        ("[MultiheadAttention] key_padding_mask must have shape (3, 2); got (3, 3)", {"key_padding_mask": seen}),
    ):
        assert_raises(ValueError, text, lambda kwargs=kwargs: attend(q, k, v, **kwargs))


# -- layers, held against PyTorch 2.13's numbers: what a wave gives through weights that are a wave -----------------


def wave(device, *shape, k=0.61):
    return ag.tensor(np.cos(np.arange(math.prod(shape)) * k).reshape(shape), device=device, dtype=WIDE[device])


def filled(module, device):
    module = module.double() if device == "cpu" else module.to(device)
    with ag.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(ag.tensor(0.5 * np.sin(np.arange(p.numel()) * 0.37 + i).reshape(p.shape)).to(p.dtype).to(device))
    return module


def upper(d, n=3):
    return (ag.ones(n, n, device=d)).triu(1) > 0


def padding(d):
    return ag.tensor([[False, False, True], [False] * 3], device=d)


def packed(d):
    x = wave(d, 3, 2, 8)
    return nn.MultiheadAttention(8, 2), lambda m: m(x, x, x, key_padding_mask=padding(d), attn_mask=upper(d))


def batch_first(d):
    inputs = wave(d, 2, 3, 8), wave(d, 2, 4, 8, k=0.3), wave(d, 2, 4, 8, k=0.4)
    return nn.MultiheadAttention(8, 2, batch_first=True), lambda m: m(*inputs, average_attn_weights=False)


def extras(d):
    inputs = wave(d, 3, 2, 8), wave(d, 4, 2, 5, k=0.3), wave(d, 4, 2, 6, k=0.4)
    keys = ag.tensor([[False, True, False, False], [False] * 4], device=d)
    made = nn.MultiheadAttention(8, 2, kdim=5, vdim=6, add_bias_kv=True, add_zero_attn=True)
    return made, lambda m: m(*inputs, attn_mask=wave(d, 3, 4, k=2.0), key_padding_mask=keys)


def unbatched(d):
    inputs = wave(d, 3, 8), wave(d, 4, 8, k=0.3), wave(d, 4, 8, k=0.4)
    return nn.MultiheadAttention(8, 2, bias=False), lambda m: m(*inputs, need_weights=False)


def encoder(d):
    x = wave(d, 3, 2, 8)
    return nn.TransformerEncoderLayer(8, 2, 6, 0.0), lambda m: (m(x, src_mask=upper(d), src_key_padding_mask=padding(d)), None)


def pre_norm(d):
    x = wave(d, 2, 3, 8)
    return nn.TransformerEncoderLayer(8, 2, 6, 0.0, "gelu", norm_first=True, bias=False, batch_first=True), lambda m: (m(x), None)


def decoder(d):
    x, memory = wave(d, 3, 2, 8), wave(d, 4, 2, 8, k=0.3)
    return nn.TransformerDecoderLayer(8, 2, 6, 0.0), lambda m: (m(x, memory, tgt_mask=upper(d), tgt_is_causal=True), None)


def transformer(d):
    x, y = wave(d, 4, 2, 8, k=0.3), wave(d, 3, 2, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(3, device=d)
    return nn.Transformer(8, 2, 1, 2, 6, 0.0), lambda m: (m(x, y, tgt_mask=mask), None)


# the layer: the first numbers of y, the sum of |y|, the last weights, the sum of |gradient| of all parameters
LAYERS = {
    packed: ([0.87578238, -1.10300422, 0.86014625], 38.47683988, [0.63351916, 0.00050241, 0.36597843], 131.5335899),
    batch_first: ([0.61571409, -0.8466161, 0.61586972], 38.46348089, [0.995585, 6.5e-07, 0.00440927], 170.4329677),
    extras: ([-0.10280051, 0.88474071, 0.05825802], 17.63956163, [0.04109234, 0.20748742, 0.16131176], 42.8657874),
    unbatched: ([0.25460671, -0.20046178, 0.13972459], 4.08071109, None, 74.9202768),
    encoder: ([-1.1195258, -0.58481718, -0.54286901], 24.64341716, None, 37.4524689),
    pre_norm: ([0.75839704, 0.91776845, 0.49940941], 31.5200195, None, 37.909071),
    decoder: ([-0.35129776, -0.50025715, -0.84986283], 17.43094531, None, 21.7846643),
    transformer: ([0.50938687, 0.39523222, 0.26841946], 21.72358032, None, 20.1635488),
}


@pytest.mark.parametrize("build", LAYERS, ids=lambda f: f.__name__)
def test_layers_give_pytorchs_numbers(build, device):
    first, total, last, gradient = LAYERS[build]
    tolerance = 2e-7 if device == "cpu" else 1e-4
    module, call = build(device)
    module = filled(module, device)
    y, weights = call(module)
    assert_close(y.reshape(-1)[:3], first, tolerance)
    assert_close(y.abs().sum(), total, tolerance)
    if last is not None:
        assert_close(weights.reshape(-1)[-3:], last, tolerance)
    (y * wave(device, *y.shape, k=0.23)).sum().backward()
    assert abs(sum(float(p.grad.abs().sum()) for p in module.parameters()) - gradient) < tolerance * 100


@pytest.mark.parametrize("weighed", [False, True])
def test_padding_that_hides_everything_gives_finite_gradients(device, weighed):
    m = nn.MultiheadAttention(4, 2, device=device)
    x = ag.randn(3, 2, 4, device=device, requires_grad=True)
    hidden = ag.tensor([[True] * 3, [False] * 3], device=device)
    y, _ = m(x, x, x, key_padding_mask=hidden, need_weights=weighed)
    y.sum().backward()
    assert_close(y[:, 0], np.zeros((3, 4)))
    assert np.isfinite(array(x.grad)).all() and all(np.isfinite(array(p.grad)).all() for p in m.parameters())


def test_state_dict_keys_and_starting_values():
    names = {
        "packed": (nn.MultiheadAttention(4, 2), "in_proj_weight in_proj_bias out_proj.weight out_proj.bias"),
        "split": (nn.MultiheadAttention(4, 2, kdim=3, bias=False), "q_proj_weight k_proj_weight v_proj_weight out_proj.weight"),
        "extra": (nn.MultiheadAttention(4, 2, bias=False, add_bias_kv=True), "in_proj_weight bias_k bias_v out_proj.weight"),
    }
    for module, keys in names.values():
        assert list(module.state_dict()) == keys.split()
    keys = list(nn.Transformer(4, 2, 1, 1, 4).state_dict())
    for key in ("encoder.layers.0.self_attn.in_proj_weight", "encoder.norm.bias", "decoder.layers.0.multihead_attn.out_proj.weight", "decoder.layers.0.norm3.weight"):
        assert key in keys
    m = nn.MultiheadAttention(64, 4)
    bound = math.sqrt(6 / (64 + 192))
    assert 0.98 * bound < float(m.in_proj_weight.abs().max()) <= bound and not array(m.in_proj_bias).any()


def test_stacks_copy_their_layer_and_train():
    ag.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), 2, nn.LayerNorm(8))
    first, second = (layer.linear1.weight for layer in model.layers)
    assert first is not second and np.array_equal(array(first), array(second))
    x, target = ag.randn(4, 5, 8), ag.randn(4, 5, 8)
    optimizer = ag.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((model(x) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
