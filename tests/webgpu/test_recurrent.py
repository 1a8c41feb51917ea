"""Recurrent layers on the GPU: in pieces where a binding cannot show them, and in 16 bits without float32 twins."""

import numpy as np
import pytest
from halves import BFLOAT, HALF, steps_between, values, wide

import autograd as ag
from autograd import nn
from autograd.ops import rnn as core
from autograd.webgpu import fuse
from autograd.webgpu import rnn as kernels
from autograd.webgpu.layout import contiguous_strides

CELLS = {"gru": 3, "gru_before": 3, "lstm": 4, "rnn": 1}
CASES = [*((cell, None) for cell in CELLS), ("lstm", 5)]  # (cell, projection)
LONG, HIGH = (13, 9), (3, 110)  # steps and rows: cut in time, and by rows too


def shapes(cell, steps, batch, units=8, inputs=5, project=None):
    """Of x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr."""
    rows, width, lstm = CELLS[cell] * units, project or units, cell == "lstm"
    found = [(steps, batch, inputs), (batch, width), (rows, inputs), (rows, width), (rows,), (rows,)]
    return [*found, (batch, units) if lstm else None, (width, units) if project else None]


def drawn(sizes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [None if s is None else rng.uniform(-0.6, 0.6, s).astype(dtype) for s in sizes]


def trained(cell, arrays, device, dtype=ag.float32, **options):
    """What a layer gives and the gradients of all that it was given, as float32."""
    inputs = [None if a is None else ag.tensor(a, device=device).to(dtype).requires_grad_() for a in arrays]
    found = [y for y in core.layer(cell, *inputs, **options) if y is not None]
    weights = [ag.tensor(np.random.default_rng(k).uniform(-1, 1, y.shape).astype(np.float32), device=device) for k, y in enumerate(found)]
    loss = sum((y.float() * w).sum() for y, w in zip(found, weights, strict=True))
    return [t.detach().float().numpy() for t in (*found, *ag.grad(loss, [t for t in inputs if t is not None]))]


def close(found, wanted, rtol, atol):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol * max(1, np.abs(b).max()))


# -- larger than a binding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "options"), [(LONG, {}), (LONG, {"lengths": 1, "reverse": True}), (HIGH, {"lengths": 1})], ids=str)
@pytest.mark.parametrize(("cell", "project"), CASES)
def test_pieces_are_one_piece_and_numpy(cell, project, size, options, small):
    arrays = drawn(shapes(cell, *size, project=project))
    if "lengths" in options:
        options = {**options, "lengths": np.random.default_rng(3).integers(0, size[0] + 1, size[1])}
    pieces = trained(cell, arrays, "wgpu:2", **options)
    assert small.has_large
    close(pieces, trained(cell, arrays, "wgpu", **options), 2e-5, 2e-6)
    close(pieces, trained(cell, arrays, "cpu", **options), 2e-4, 2e-5)


@pytest.mark.parametrize(("cell", "project"), CASES)
def test_pieces_of_a_dispatch_a_step(cell, project, small, monkeypatch):
    monkeypatch.setattr(kernels, "MEMORY", 0)
    arrays = drawn(shapes(cell, *LONG, project=project))
    close(trained(cell, arrays, "wgpu:2"), trained(cell, arrays, "cpu"), 2e-4, 2e-5)


@pytest.mark.parametrize(("size", "dtype"), [(LONG, ag.float16), (HIGH, ag.bfloat16)], ids=str)
@pytest.mark.parametrize(("cell", "project"), CASES)
def test_pieces_of_two_bytes_round_what_one_piece_rounds(cell, project, size, dtype, small):
    """The state goes from piece to piece in float32: y and the last state are those of one piece, but for a last bit."""
    arrays = drawn(shapes(cell, 2 * size[0], size[1], project=project))
    pieces, one = (trained(cell, arrays, device, dtype) for device in ("wgpu:2", "wgpu"))
    step = 2.0**-10 if dtype is ag.float16 else 2.0**-7
    close(pieces[:2], one[:2], step, step**2)
    close(pieces, one, 3 * step, 3 * step)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_modules_and_families_in_pieces(kind, small):
    """Two layers both ways of packed sequences; Keras' masks in the middle; cuDNN's op; without gradients."""
    x = np.random.default_rng(0).uniform(-1, 1, (9, 40, 6)).astype(np.float32)
    lengths = np.random.default_rng(1).integers(1, 10, 40)
    mask = np.random.default_rng(2).uniform(0, 1, (40, 9)) > 0.3
    state = None
    ends = []
    for device in ("wgpu:2", "cpu"):
        ag.manual_seed(0)
        module = getattr(nn, kind)(6, 7, 2, bidirectional=True)
        state = state or {k: v.numpy() for k, v in module.state_dict().items()}
        module.load_state_dict({k: ag.tensor(v) for k, v in state.items()})
        module.to(device)
        t = ag.tensor(x, device=device, requires_grad=True)
        packed = nn.utils.rnn.pack_padded_sequence(t, lengths, enforce_sorted=False)
        y, _ = nn.utils.rnn.pad_packed_sequence(module(packed)[0])
        (y * y).sum().backward()
        found = [y.detach(), t.grad, *(p.grad for p in module.parameters())]
        with ag.no_grad():
            found.append(module(t)[0])
        cell = {"RNN": "rnn"}.get(kind, kind.lower())
        inputs = [None if a is None else ag.tensor(a, device=device) for a in drawn(shapes(cell, 9, 40, inputs=6))]
        inputs[0] = ag.tensor(x, device=device)
        found += core.layer(cell, *inputs, mask=mask.T, padding="repeat")[:2]
        found += core.layer(cell, *inputs, checkpoint=4)[:2]
        mode = {"rnn": "rnn_tanh"}.get(cell, cell)
        params = ag.tensor(drawn([ag.rnn.cudnn_rnn_params_size(1, 8, 6, rnn_mode=mode)])[0], device=device)
        h0, c0 = ag.zeros(1, 40, 8, device=device), ag.zeros(1, 40, 8, device=device) if kind == "LSTM" else None
        found += ag.rnn.cudnn_rnn(inputs[0], h0, c0, params, rnn_mode=mode)[:2]
        ends.append([a.numpy() for a in found])
    close(*ends, 2e-4, 2e-5)


def test_the_block_cell_and_skipped_inputs_in_pieces(small):
    rng = np.random.default_rng(0)
    given = [rng.uniform(-1, 1, s).astype(np.float32) for s in ((300, 6), (300, 7), (13, 14), (13, 7), (14,), (7,))]
    ends = []
    for device in ("wgpu:2", "cpu"):
        tensors = [ag.tensor(a, device=device, requires_grad=True) for a in given]
        gates = ag.rnn.gru_block_cell(*tensors)
        found = [*gates, *ag.grad(sum((g * g).sum() for g in gates), tensors)]
        x, h = (ag.tensor(rng_of(s), device=device, requires_grad=True) for s in ((7, 60, 8), (60, 8)))
        w = ag.tensor(rng_of((24, 8)), device=device, requires_grad=True)
        y = core.layer("gru", x, h, None, w, b_ih=ag.tensor(rng_of((24,)), device=device))[0]
        ends.append([t.detach().numpy() for t in (*found, y, *ag.grad((y * y).sum(), [x, h, w]))])
    close(*ends, 2e-4, 2e-5)


def rng_of(shape):
    return np.random.default_rng(shape[0]).uniform(-0.6, 0.6, shape).astype(np.float32)


def test_what_backward_needs_may_be_more_than_a_buffer(small, monkeypatch):
    monkeypatch.setattr(small.pool, "max_bytes", 16384)
    inputs = [None if a is None else ag.tensor(a, device="wgpu:2", requires_grad=True) for a in drawn(shapes("lstm", *LONG))]
    with pytest.raises(ValueError, match=r"\[lstm\] what it keeps for backward, 22,464 bytes of .* buffer .* 16,384. Pass checkpoint=k"):
        core.layer("lstm", *inputs)
    y, *_ = core.layer("lstm", *inputs, checkpoint=4)
    assert y.sum().isfinite().item()


def test_what_no_piece_can_show_is_refused_with_sizes(small):
    gru = nn.GRU(3, 30).to("wgpu:2")
    with pytest.raises(ValueError, match=r"\[gru\] what it does at once of shape \(90, 30\) takes 10,800 bytes, .* binds 8,192"):
        gru(ag.ones(2, 2, 3, device="wgpu:2"))


# -- 16 bits ---------------------------------------------------------------------------------------------------


def uploaded(gpu, x, offset):
    """x on a device, its first element in the middle of a word."""
    if x is None:
        return None
    flat = np.concatenate([np.zeros(offset, x.dtype), x.reshape(-1)])
    return gpu.upload(flat).view(x.shape, contiguous_strides(x.shape), offset)


def walked(gpu, cell, arrays, offset, reverse=False):
    """All that the launchers of a cell give of numbers of 16 bits: results, and gradients of all inputs."""
    inputs = [uploaded(gpu, a, offset) for a in arrays]
    kept = [a for k, a in enumerate(inputs) if k not in (4, 5)]  # no gradient asks for a bias
    y, hn, *rest = kernels.Forward(cell)(*inputs, reverse=reverse)
    cn = rest[0] if cell == "lstm" else None
    dy, dhn, dcn = (None if a is None else uploaded(gpu, values(a.shape, y.dtype, 5), offset) for a in (y, hn, cn))
    again = uploaded(gpu, values(y.shape, y.dtype, 7), offset)  # the same in both, to the bit
    needs = tuple(a is not None for a in arrays)
    saved = rest[-1] if rest else None
    found = kernels.Backward(f"{cell}_backward")(dy, dhn, dcn, *kept, again, saved, needs=needs, reverse=reverse)
    results = (y, hn, *([cn] if cn is not None else []), *(g for g in found if g is not None))
    assert all(a.dtype == inputs[0].dtype for a in results)
    return [gpu.download(a) for a in results]


# Pairs that end with a row, with the last of four rows, with none; and states read back from memory, by dispatches a step.
@pytest.mark.parametrize(("batch", "units", "memory"), [(4, 8, kernels.MEMORY), (6, 7, kernels.MEMORY), (3, 7, kernels.MEMORY), (3, 8, 0)])
@pytest.mark.parametrize(("cell", "project"), CASES)
def test_packed_is_within_a_step_of_native(cell, project, batch, units, memory, gpu, packing, monkeypatch):
    monkeypatch.setattr(kernels, "MEMORY", memory)
    arrays = [None if s is None else values(s, HALF, k) for k, s in enumerate(shapes(cell, 5, batch, units, 3, project))]
    offset, reverse = (1, True) if batch == 6 else (0, False)
    packed = walked(packing, cell, arrays, offset, reverse)
    for a, b in zip(walked(gpu, cell, arrays, offset, reverse), packed, strict=True):
        # One step of the largest: a sum that cancels has the error of what it is made of.
        assert steps_between(a, b).max() <= 1 or np.abs(wide(a) - wide(b)).max() <= 2.0**-11 * np.abs(wide(a)).max()


@pytest.mark.parametrize(("dtype", "packs"), [(HALF, False), (HALF, True), (BFLOAT, True)], ids=["float16", "packed", "bfloat16"])
@pytest.mark.parametrize(("cell", "project"), CASES)
def test_rounded_once_and_not_on_the_way(cell, project, packs, dtype, gpu, packing):
    """What float32 gives of the same numbers, rounded: the state between 24 steps is float32."""
    device = packing if packs else gpu
    arrays = [None if s is None else values(s, dtype, k) for k, s in enumerate(shapes(cell, 24, 3, 7, 3, project))]
    given = [None if a is None else device.upload(a) for a in arrays]
    exact = [None if a is None else device.upload(wide(a)) for a in arrays]
    rounds = 2.0**-11 if dtype == HALF else 2.0**-8
    for a, b in zip(kernels.Forward(cell)(*given)[:2], kernels.Forward(cell)(*exact)[:2], strict=True):
        np.testing.assert_allclose(wide(device.download(a)), device.download(b), rtol=1.01 * rounds, atol=2e-6)


def step_of(kind, dtype):
    """The dispatches of a step forward and back of a layer whose weights and input have gradients."""
    ag.manual_seed(0)
    layer = getattr(nn, kind)(8, 8).to("wgpu").to(dtype)
    x = ag.randn(32, 4, 8, device="wgpu").to(dtype).requires_grad_()
    w = ag.ones(32, 4, 8, device="wgpu", dtype=dtype)
    gpu, counts = ag.wgpu.open_device(), []
    for _ in range(2):
        gpu.flush()
        before = ag.wgpu.stats()["dispatches"]
        y, _ = layer(x)
        grads = ag.grad(y, [x, *layer.parameters()], w)
        gpu.flush()
        counts.append(ag.wgpu.stats()["dispatches"] - before)
        assert all(g.dtype is dtype for g in (y, *grads))
        assert y.array.storage.buffer.size == y.numel() * (4 if dtype is ag.float32 else 2)
    return counts[-1]


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16], ids=str)
@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_a_step_takes_two_dispatches_more_than_float32_at_most(kind, dtype, wgpu, monkeypatch):
    monkeypatch.setattr(fuse, "ENABLED", True)  # the counts are those of fusion, whatever the environment says
    assert step_of(kind, dtype) <= step_of(kind, ag.float32) + 2
