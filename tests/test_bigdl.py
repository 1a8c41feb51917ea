"""BigDL's GRU, Recurrent and BiRecurrent: against Keras' golden values, NumPy and the tape."""

from pathlib import Path

import numpy as np
import pytest
from bigdl_subjects import device_of, expected, gradients, gru, pass_of, values
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import bigdl, nn

GOLDEN = Path(__file__).parent / "golden"
# |got - want| / max(1, |want|): (forward, gradient), of float64 on the CPU, float32 there, float32 on wgpu
LIMITS = {"float64": (1e-12, 1e-10), "float32": (2e-6, 2e-5), "wgpu": (5e-6, 5e-5)}


# -- the GRU ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["before_f64", "before_f32", "before_nobias_f64", "hardsig_before_f64", "before_goback_f64"])
@pytest.mark.parametrize("way", ["tape", "protocol"])
def test_gru_is_keras(name, way, device):
    file = dict(np.load(GOLDEN / f"keras_gru_{name}.npz"))
    kind = "float32" if device == "wgpu" else file["x"].dtype.name
    limits = LIMITS["wgpu" if device == "wgpu" else kind]
    keys = [k for k in ("kernel", "recurrent_kernel", "bias") if k in file]

    def tensor(name, grad=False):
        return ag.tensor(file[name].astype(kind), device=device, requires_grad=grad)

    def close(got, want, gradient=True):
        error = np.abs(array(got).astype(np.float64) - want) / np.maximum(1, np.abs(want))
        assert array(got).shape == want.shape and error.max() <= limits[gradient], error.max()

    backwards, units = "goback" in name, file["h0"].shape[1]
    m = gru(units, device, kind, inner_activation="hard_sigmoid" if "hardsig" in name else None)
    if backwards:
        m.compute = lambda x: m.over(x, reverse=True).flip(1)
    m.set_weights(ag.rnn.convert([file[k] for k in keys], source="keras", target="bigdl", reset_after=False))
    x, h0, dy = tensor("x", way == "tape"), tensor("h0", way == "tape"), tensor("dy")
    m.set_hidden_state(h0)
    dy[:, -1] += tensor("dhn")
    if way == "tape":
        y = m(x)
        y.backward(dy)
        close(h0.grad, file["grad_h0"])
        dx = x.grad
    else:
        y = m.forward(x)
        dx = m.backward(x, dy)
        assert h0.grad is None and x.grad is None
    close(y, file["y"], False)
    close(m.get_hidden_state(), file["hn"], False)
    close(dx, file["grad_x"])
    grads = ag.rnn.convert({k: p.grad for k, p in m.cell.named_parameters()}, source="bigdl", target="keras")
    for got, key in zip(grads, keys):
        close(got, file["grad_" + key])


def test_layout_is_converts_and_back_bit_for_bit():
    m = gru(dtype="float64")
    assert {k: p.shape for k, p in m.cell.named_parameters()} == {"weight": (12, 3), "bias": (12,), "h2g": (8, 4), "u_h": (4, 4)}
    other = gru(dtype="float64")
    there = ag.rnn.convert(m.cell.state_dict(), source="bigdl", target="tf_block")
    back = ag.rnn.convert(there, source="tf_block", target="bigdl")
    other.set_weights(back)
    assert (values(m) == values(other)).all()
    other.cell.load_state_dict(back)
    m.set_weights([np.full(p.shape, i) for i, p in enumerate(m.parameters().weights)])
    assert [float(p.min()) for p in m.parameters()[0]] == [0, 1, 2, 3]
    assert_raises(ValueError, "[set_weights] the weights are weight, bias, h2g, u_h; got 1", lambda: m.set_weights([1]))
    bad = {**back, "u_h": back["u_h"][:2]}
    assert_raises(ValueError, "[set_weights] u_h must have shape (4, 4); got (2, 4)", lambda: m.set_weights(bad))


def test_start_is_uniform_by_fan_in():
    m = bigdl.GRU(100, 25)
    for p, bound in (m.weight, 0.1), (m.bias, 0.1), (m.h2g, 0.2), (m.u_h, 0.2):
        assert 0.9 * bound < float(p.detach().abs().max()) <= bound


def test_cell_by_itself_is_one_step(device):
    m = gru(device=device)
    x, h = ag.randn(2, 3, device=device), ag.randn(2, 4, device=device)
    new, same = m.cell.forward((x, h))
    assert new is same
    assert_close(new, m.set_hidden_state(h)(x.unsqueeze(1))[:, 0])
    dy = ag.randn(2, 4, device=device)
    dx, dh = m.cell.backward((x, h), (dy, ag.zeros(2, 4, device=device)))
    h = h.requires_grad_()
    wanted = ag.autograd.grad(m.cell((x.requires_grad_(), h))[0], [x, h], dy)
    assert_close(dx, wanted[0])
    assert_close(dh, wanted[1])


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_gru_can_be_differentiated_twice(p):
    ag.manual_seed(1)
    m = gru(2, dtype="float64", p=p)
    x = ag.randn(2, 3, 3, dtype="float64", requires_grad=True)

    def run(x, *_):
        ag.manual_seed(5)
        return m(x)

    assert ag.autograd.gradcheck(run, [x, *m.parameters().weights])
    assert ag.autograd.gradgradcheck(run, [x])
    both = bigdl.BiRecurrent(bigdl.JoinTable(2, 2)).add(bigdl.GRU(3, 2, dtype="float64"))
    assert ag.autograd.gradcheck(lambda x, *_: both(x), [x, *both.parameters().weights])


def test_activations(device):
    x = ag.randn(2, 3, 3, device=device)
    m = gru(device=device, activation=nn.Tanh(), inner_activation=nn.Sigmoid())
    assert m.cell.activation == "tanh" and m.cell.inner_activation == "sigmoid"
    other = gru(device=device, activation=nn.ReLU(), inner_activation=lambda x: x.sigmoid()).set_weights(m.parameters()[0])
    named = gru(device=device, activation="relu").set_weights(m.parameters()[0])
    assert_close(other(x), named(x))
    assert np.abs(array(other(x)) - array(m(x))).max() > 1e-3
    learned = gru(device=device, activation=nn.PReLU().to(device))
    learned.backward(x, learned.forward(x).detach().ones_like())
    assert len(learned.parameters().weights) == 5 and float(learned.cell.activation.weight.grad.abs()) > 0


# -- dropout ------------------------------------------------------------------------------------------------


def six_masks(m, seed, batch):
    """The masks that a forward after this seed draws: of x for r, z, ĥ, then of h for r, z and of r h."""
    ag.manual_seed(seed)
    return [array(nn.functional.dropout(ag.ones(batch, n), m.cell.p)) for n in (3, 3, 3, 4, 4, 4)]


def by_hand(m, x, masks):
    """The formula in NumPy, with masks that are the same at all steps."""
    w, b, h2g, u_h = (array(p).astype(np.float64) for p in m.parameters().weights)
    (w_r, w_z, w_h), (b_r, b_z, b_h), (u_r, u_z) = np.split(w, 3), np.split(b, 3), np.split(h2g, 2)
    h, states = np.zeros((len(x), 4)), []
    for t in range(x.shape[1]):
        a = x[:, t]
        r = 1 / (1 + np.exp(-((a * masks[0]) @ w_r.T + b_r + (h * masks[3]) @ u_r.T)))
        z = 1 / (1 + np.exp(-((a * masks[1]) @ w_z.T + b_z + (h * masks[4]) @ u_z.T)))
        new = np.tanh((a * masks[2]) @ w_h.T + b_h + (r * h * masks[5]) @ u_h.T)
        h = (1 - z) * new + z * h
        states.append(h)
    return np.stack(states, 1)


def test_dropout_is_six_masks_for_all_steps(device):
    m = gru(device=device, p=0.4)
    x = ag.randn(3, 6, 3, device=device)
    masks = six_masks(m, 7, 3)
    ag.manual_seed(7)
    y = m(x)
    assert_close(y, by_hand(m, array(x).astype(np.float64), masks))
    again = m(x)
    assert np.abs(array(y) - array(again)).max() > 1e-3  # drawn anew at each forward
    ag.manual_seed(7)
    assert (array(m(x)) == array(y)).all()
    scale = np.float32(1 / 0.6)
    assert all(set(np.unique(mask)) <= {0, scale} for mask in masks)
    assert all((a != b).any() for i, a in enumerate(masks) for b in masks[:i] if a.shape == b.shape)
    assert any((mask[0] != mask[1]).any() for mask in masks)  # each sample its own
    plain = gru(device=device).set_weights(m.parameters()[0])
    assert (array(m.evaluate()(x)) == array(plain(x))).all()


def test_dropout_rates():
    ag.manual_seed(0)
    m = bigdl.Recurrent().add(bigdl.GRU(1, 1, p=0.25))
    m.set_weights([np.array([[0], [0], [1]]), np.array([-50, -50, 0]), np.zeros((2, 1)), np.zeros((1, 1))])
    y = m(ag.full((4000, 2, 1), 0.1)).detach().numpy()[..., 0]  # r = z = 0: tanh of the masked input
    assert (y[:, 0] == y[:, 1]).all()
    assert np.abs((y == 0).mean() - 0.25) < 0.03
    assert np.allclose(y[y != 0], np.tanh(0.1 / 0.75), atol=1e-6)
    nothing = gru(p=1.0)
    assert (array(nothing(ag.randn(1, 2, 3))) == array(nothing(ag.zeros(1, 2, 3)))).all()


def test_backward_uses_the_masks_of_its_forward(device):
    m = gru(device=device, p=0.5)
    x, dy = ag.randn(2, 4, 3, device=device), ag.randn(2, 4, 4, device=device)
    ag.manual_seed(2)
    m.forward(x)
    dx = m.backward(x, dy)
    assert (array(m.update_grad_input(x, dy)) == array(dx)).all()
    ag.manual_seed(2)
    wanted = expected(m, x, dy)
    assert_close(dx, wanted[0])
    assert_close(m.cell.h2g.grad, wanted[3])


# -- Recurrent and BiRecurrent ----------------------------------------------------------------------------------


def test_hidden_state(device):
    m, x = gru(device=device), ag.randn(2, 6, 3, device=device)
    assert_raises(RuntimeError, "[get_hidden_state] needs a forward()", m.get_hidden_state)
    whole = m.forward(x)
    first = m.forward(x[:, :3])
    state = m.get_hidden_state()
    assert_close(state, first[:, -1])
    second = m.set_hidden_state(state).forward(x[:, 3:])
    assert_close(ag.cat([first, second], 1), array(whole))
    assert_raises(ValueError, "set for a batch of 2; got an input of 1", lambda: m(x[:1]))
    assert_raises(ValueError, "must be [B, 4]; got (2, 5)", lambda: m.set_hidden_state(ag.zeros(2, 5)))
    assert_close(m.set_hidden_state(None).forward(x), array(whole))
    m.clear_state()
    assert_raises(RuntimeError, "[get_hidden_state]", m.get_hidden_state)


def test_hid_resize(device):
    m = gru(device=device)
    h = m.hid_resize(None, 2, (3,))
    assert h.shape == (2, 4) and str(h.device) == device_of(m) and not array(h).any()
    kept = ag.ones(2, 4, device=device)
    assert m.cell.hid_resize(kept, 2) is kept and m.cell.hid_resize(kept, 5).shape == (5, 4)
    assert_raises(ValueError, "[hid_resize] a step's shape is (3,) here; got (7,)", lambda: m.hid_resize(None, 2, (7,)))


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_mask_zero_keeps_the_state(p, device):
    m = bigdl.Recurrent(mask_zero=True).add(bigdl.GRU(3, 4, p=p, device=device))
    values = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    values[0, 3:] = values[1, 1] = 0
    ag.manual_seed(4)
    y = array(m(ag.tensor(values, device=device)))
    assert not y[0, 3:].any() and not y[1, 1].any() and y[1, 2:].all()
    assert (array(m.get_hidden_state())[0] == y[0, 2]).all()
    if not p:
        alone = bigdl.Recurrent().add(m.cell)
        dense = ag.tensor(values[1:, [0, 2, 3, 4]], device=device)
        assert_close(alone(dense), y[1:, [0, 2, 3, 4]])


@pytest.mark.parametrize("merge", ["sum", "join"])
def test_both_directions(merge, device):
    m = bigdl.BiRecurrent(None if merge == "sum" else bigdl.JoinTable(2, 2)).add(bigdl.GRU(3, 4, device=device))
    ahead, back = m.layer, m.rev_layer
    assert (values(ahead) == values(back)).all() and back.cell.get_name() == ahead.cell.get_name() + "_reverse"
    x = ag.randn(2, 5, 3, device=device)
    with ag.no_grad():
        back.cell.bias += 0.5  # its own by now
    assert np.abs(values(ahead) - values(back)).max() > 0.4
    one, other = array(ahead(x)), array(back(x.flip(1)))[:, ::-1]
    assert_close(m.forward(x), one + other if merge == "sum" else np.concatenate([one, other], -1))
    assert len(m.parameters().weights) == 8


def test_split_input(device):
    m = bigdl.BiRecurrent(is_split_input=True).add(bigdl.GRU(3, 4, device=device))
    x = ag.randn(2, 5, 6, device=device)
    wanted = array(m.layer(x[..., :3])) + array(m.rev_layer(x[..., 3:].flip(1)))[:, ::-1]
    assert_close(m(x), wanted)
    assert_raises(ValueError, "[BiRecurrent] is_split_input needs an even number of features", lambda: m(x[..., :5]))


def test_no_steps_and_no_rows(device):
    for p in 0.0, 0.5:
        m = gru(device=device, p=p)
        for shape in (2, 0, 3), (0, 3, 3):
            x = ag.zeros(shape, device=device)
            y = m.forward(x)
            assert y.shape == (*shape[:2], 4) and m.backward(x, y.detach()).shape == shape
            assert not gradients(m).any()


def test_tables(device):
    a, b = ag.randn(2, 3, device=device), ag.randn(2, 3, device=device)
    add = bigdl.CAddTable()
    assert_close(add.forward((a, b)), array(a) + array(b))
    da, db = add.backward((a, b), a)
    assert (array(da) == array(a)).all() and (array(db) == array(a)).all()
    assert bigdl.JoinTable(1)((a, b)).shape == (4, 3) and bigdl.JoinTable(-1)((a, b)).shape == (2, 6)
    assert bigdl.JoinTable(1, 1)((a, b)).shape == (2, 6)
    assert_close(bigdl.Select(2, 1)(a), array(a)[:, 0])
    pair = bigdl.Module(nn.Bilinear(3, 3, 2, device=device))
    assert pair.forward((a, b)).shape == (2, 2)
    assert [t.shape for t in pair.backward((a, b), ag.ones(2, 2, device=device))] == [(2, 3), (2, 3)]


# -- regularizers -------------------------------------------------------------------------------------------


def test_regularizers_add_to_gradients(device):
    plain = gru(device=device)
    kinds = {"w_regularizer": bigdl.L1L2Regularizer(0.1, 0.2), "u_regularizer": bigdl.L2Regularizer(0.3), "b_regularizer": bigdl.L1Regularizer(0.4)}
    m = gru(device=device, **kinds).set_weights(plain.parameters()[0])
    x, _, dy = pass_of(m)
    assert_close(m.update_grad_input(x, dy), expected(plain, x, dy)[0])
    m.acc_grad_parameters(x, dy)
    for p, g, (l1, l2) in zip(m.parameters().weights, expected(plain, x, dy)[1:], [(0.1, 0.2), (0.4, 0), (0, 0.3), (0, 0.3)]):
        assert_close(p.grad, array(g) + l1 * np.sign(array(p)) + l2 * array(p))
    once = gradients(m)
    m.zero_grad()
    (m(x) * dy).sum().backward()
    assert np.allclose(gradients(m), once, atol=1e-5)


def test_l2_is_weight_decay(device):
    plain = gru(device=device)
    rule = bigdl.L2Regularizer(0.1)
    m = gru(device=device, w_regularizer=rule, u_regularizer=rule, b_regularizer=rule).set_weights(plain.parameters()[0])
    steps = [(m, ag.optim.SGD(m.parameters(), lr=0.1)), (plain, ag.optim.SGD(plain.parameters(), lr=0.1, weight_decay=0.1))]
    for seed in range(3):
        for each, optimizer in steps:
            ag.manual_seed(seed)
            x, _, dy = pass_of(each)
            each.zero_grad_parameters()
            each.backward(x, dy)
            optimizer.step()
    assert np.allclose(values(m), values(plain), atol=1e-6)


# -- bad input ----------------------------------------------------------------------------------------------


BAD = [
    (ValueError, "[GRU] sizes must be positive; got input_size=0", lambda: bigdl.GRU(0, 2)),
    (ValueError, "[GRU] p is a probability; got 1.5", lambda: bigdl.GRU(2, 2, p=1.5)),
    (ValueError, "[GRU] unknown activation 'tann'", lambda: bigdl.GRU(2, 2, activation="tann")),
    (TypeError, "[GRU] w_regularizer is a regularizer or None; got float", lambda: bigdl.GRU(2, 2, w_regularizer=0.1)),
    (ValueError, "[L2Regularizer] l2 must not be negative; got -1", lambda: bigdl.L2Regularizer(-1)),
    (TypeError, "[Recurrent] add() takes a cell, such as bigdl.GRU; got Linear", lambda: bigdl.Recurrent().add(nn.Linear(2, 2))),
    (ValueError, "[Recurrent] has its cell", lambda: gru().add(bigdl.GRU(3, 4))),
    (RuntimeError, "[Recurrent] has no cell", lambda: bigdl.Recurrent().forward(ag.zeros(1, 2, 3))),
    (ValueError, "[Recurrent] the input must be [B, T, I]; got (2, 3)", lambda: gru().forward(ag.zeros(2, 3))),
    (ValueError, "[hid_resize] a step's shape is (3,) here; got (5,)", lambda: gru().forward(ag.zeros(2, 4, 5))),
    (TypeError, "[bigdl] a module takes a Tensor or a table", lambda: gru().forward(np.zeros((1, 2, 3)))),
    (TypeError, "[GRU] a cell takes the table (x [B, I], h [B, H])", lambda: bigdl.GRU(3, 4).forward(ag.zeros(1, 2, 3))),
    (ValueError, "[GRU] x must be [B, I]; got (1, 2, 3)", lambda: bigdl.GRU(3, 4)((ag.zeros(1, 2, 3), ag.zeros(1, 4)))),
    (TypeError, "[bigdl.Module] wraps an nn.Module; got int", lambda: bigdl.Module(3)),
    (NotImplementedError, "[bigdl.Module] Module has no compute()", lambda: bigdl.Module().forward(ag.zeros(1))),
    (TypeError, "[Sequential] add() takes an nn.Module; got str", lambda: bigdl.Sequential().add("relu")),
    (TypeError, "[CAddTable] takes a table, a tuple of Tensors; got Tensor", lambda: bigdl.CAddTable()(ag.zeros(1))),
    (ValueError, "[JoinTable] dimension 3 is none of a tensor of shape (1,)", lambda: bigdl.JoinTable(3)((ag.zeros(1), ag.zeros(1)))),
    (ValueError, "[JoinTable] dimensions are counted from 1", lambda: bigdl.JoinTable(0)),
    (ValueError, "[Select] dimension and index are counted from 1", lambda: bigdl.Select(1, 0)),
    (TypeError, "[BiRecurrent] merge is a module that takes a table; got str", lambda: bigdl.BiRecurrent("concat")),
]


@pytest.mark.parametrize("kind, text, call", BAD, ids=[text[:40] for _, text, _ in BAD])
def test_bad_input(kind, text, call):
    assert_raises(kind, text, call)
