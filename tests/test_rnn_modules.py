"""nn.RNN, nn.LSTM, nn.GRU and their cells, and nn.utils.rnn."""

from helpers import array, assert_close, assert_raises
from test_rnn import drawn

import autograd as ag
from autograd import nn


def test_packed_sequences(device):
    parts = [drawn(n, 2, seed=n, device=device) for n in (2, 4, 1)]
    utils = nn.utils.rnn
    packed = utils.pack_sequence(parts, enforce_sorted=False)
    assert array(packed.batch_sizes).tolist() == [3, 2, 1, 1] and packed.data.shape == (7, 2)
    for got, want in zip(utils.unpack_sequence(packed), parts):
        assert (array(got) == array(want)).all()
    padded, lengths = utils.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=5)
    assert padded.shape == (3, 5, 2) and array(lengths).tolist() == [2, 4, 1] and (array(padded)[0, 2:] == -1).all()
    packed.data.sum().backward()
    assert (array(parts[1].grad) == 1).all()
    left = utils.pad_sequence(parts, True, padding_side="left")
    assert (array(left)[0, 2:] == array(parts[0])).all() and not array(left)[0, :2].any()
    assert_raises(ValueError, "lengths must fall; got [2, 4, 1]", lambda: utils.pack_sequence(parts))
    assert_raises(ValueError, "at least one step", lambda: utils.pack_padded_sequence(padded, [0, 1, 2], True))
    assert_raises(ValueError, "total_length", lambda: utils.pad_packed_sequence(packed, total_length=3))


def test_modules_and_cells(device):
    lstm = nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2).to(device)
    assert [k for k in lstm.state_dict() if k.endswith("_l1_reverse")] == [f"{k}_l1_reverse" for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")]
    y, (hn, cn) = lstm(ag.randn(4, 3, 2, device=device))
    assert y.shape == (4, 3, 4) and hn.shape == (4, 3, 2) and cn.shape == (4, 3, 3)
    alone, (h, c) = lstm(ag.randn(4, 2, device=device))
    assert alone.shape == (4, 4) and h.shape == (4, 2) and c.shape == (4, 3)
    for kind in ("RNN", "LSTM", "GRU"):
        cell, module = getattr(nn, kind + "Cell")(2, 3).to(device), getattr(nn, kind)(2, 3).to(device)
        module.load_state_dict({k + "_l0": v for k, v in cell.state_dict().items()})
        x = ag.randn(3, 2, 2, device=device)
        state = None
        for step in x:
            state = cell(step, state)
        _, last = module(x)
        for a, b in zip(*((s if isinstance(s, tuple) else (s,)) for s in (state, last))):
            assert_close(a, array(b)[0], 1e-5)
    assert repr(nn.RNNCell(2, 3, nonlinearity="relu")) == "RNNCell(2, 3, nonlinearity=relu)"
    relu = nn.RNN(2, 3, nonlinearity="relu")  # of which PyTorch shows the sizes only
    assert (repr(relu), relu.mode, nn.RNN(2, 3).mode, lstm.mode) == ("RNN(2, 3)", "RNN_RELU", "RNN_TANH", "LSTM")
    assert_raises(ValueError, "'tanh' or 'relu'", lambda: nn.RNN(2, 3, nonlinearity="sin"))
    assert_raises(ValueError, "proj_size must lie in", lambda: nn.LSTM(2, 3, proj_size=3))
    assert_raises(ValueError, "pair (h0, c0)", lambda: nn.LSTM(2, 3)(ag.zeros(1, 1, 2), ag.zeros(1, 1, 3)))
    for k in (0, 1.5):
        assert_raises(ValueError, "checkpoint must be a positive number of steps", lambda k=k: nn.GRU(2, 3, checkpoint=k))
    assert_raises(ValueError, "an unbatched input takes states [layers * directions, H]; got (1, 1, 3)", lambda: nn.GRU(2, 3)(ag.zeros(4, 2), ag.zeros(1, 1, 3)))
    for hx in (ag.zeros(2, 3), (ag.zeros(3),), (ag.zeros(3),) * 3):
        assert_raises(ValueError, "the state is a pair (h, c)", lambda hx=hx: nn.LSTMCell(2, 3)(ag.zeros(2), hx))
    assert_raises(ValueError, "c0 must be", lambda: lstm(ag.zeros(1, 1, 2, device=device), (ag.zeros(4, 1, 2, device=device), ag.zeros(4, 1, 2, device=device))))
