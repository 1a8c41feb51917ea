"""Learning-rate schedules and averaged models. Expected numbers were computed with PyTorch 2.13."""

import copy
import math
import warnings

import numpy as np
import pytest
from helpers import assert_close, assert_raises

import autograd as ag
from autograd import nn, optim
from autograd.optim import lr_scheduler as S
from autograd.optim import swa_utils


def parameter(values=(1.0,)):
    return nn.Parameter(ag.tensor(values))


def rates(make, steps=8, momentum=0.9, lr=1.0):
    """The rates of a schedule of one group, made by make(optimizer)."""
    optimizer = optim.SGD([parameter()], lr=lr, momentum=momentum)
    schedule = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


SCHEDULES = {
    "StepLR": (lambda o: S.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]),
    "MultiStepLR": (lambda o: S.MultiStepLR(o, [3, 1, 3], 0.1), [1, 0.1, 0.1, 0.001, 0.001, 0.001, 0.001, 0.001]),
    "ExponentialLR": (lambda o: S.ExponentialLR(o, 0.9), [0.9**k for k in range(8)]),
    "CosineAnnealingLR": (lambda o: S.CosineAnnealingLR(o, 3), [1, 0.75, 0.25, 0, 0.25, 0.75, 1, 0.75]),
    "LambdaLR": (lambda o: S.LambdaLR(o, lambda e: 1 / (e + 1)), [1 / k for k in range(1, 9)]),
    "LinearLR": (lambda o: S.LinearLR(o, 0.25, 1.0, 3), [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
    "ConstantLR": (lambda o: S.ConstantLR(o, 0.25, 3), [0.25, 0.25, 0.25, 1.0, 1.0, 1.0, 1.0, 1.0]),
    "PolynomialLR": (lambda o: S.PolynomialLR(o, 6, 2.0), [1.0, 0.694444444, 0.444444444, 0.25, 0.111111111, 0.027777778, 0.0, 0.0]),
    "MultiplicativeLR": (lambda o: S.MultiplicativeLR(o, lambda e: 1 - 0.1 * e), [1.0, 0.9, 0.72, 0.504, 0.3024, 0.1512, 0.06048, 0.018144]),
    "Chained": (lambda o: S.ChainedScheduler([S.LinearLR(o, 0.5, 1.0, 2), S.ExponentialLR(o, 0.5)], o), [0.5, 0.375, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]),
    "Sequential": (lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.25, 1.0, 3), S.CosineAnnealingLR(o, 4)], [3]), [0.25, 0.5, 0.75, 1.0, 0.853553391, 0.5, 0.146446609, 0.0]),
    "SequentialThree": (lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.5, 9), S.CosineAnnealingWarmRestarts(o, 2), S.MultiplicativeLR(o, lambda e: 0.5)], [2, 5]), [0.5, 0.5, 1.0, 0.5, 1.0, 0.5, 0.25, 0.125]),
}
# these do not scale with the initial rate
ABSOLUTE = {
    "WarmRestarts": (lambda o: S.CosineAnnealingWarmRestarts(o, 2, 2, 0.1), [1.0, 0.55, 1.0, 0.868198052, 0.55, 0.231801948, 1.0, 0.96574579]),
    "Cyclic": (lambda o: S.CyclicLR(o, 0.1, 0.5, 2, 3), [0.1, 0.3, 0.5, 0.366666667, 0.233333333, 0.1, 0.3, 0.5]),
    "CyclicTriangular2": (lambda o: S.CyclicLR(o, 0.1, 0.5, 2, mode="triangular2"), [0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2]),
    "CyclicExpRange": (lambda o: S.CyclicLR(o, 0.1, 0.5, 2, mode="exp_range", gamma=0.9), [0.1, 0.28, 0.424, 0.2458, 0.1, 0.218098, 0.3125764, 0.19565938]),
    "CyclicScale": (lambda o: S.CyclicLR(o, 0.1, 0.5, 2, scale_fn=lambda k: 1 / (k + 1), scale_mode="iterations", cycle_momentum=False), [0.1, 0.2, 0.233333333, 0.15, 0.1, 0.133333333, 0.157142857, 0.125]),
    "OneCycle": (lambda o: S.OneCycleLR(o, 1.0, 8), [0.04, 0.819275105, 0.971941777, 0.811745654, 0.555984014, 0.283060998, 0.076641594, 4e-06]),
    "OneCycleLinear": (lambda o: S.OneCycleLR(o, 1.0, epochs=2, steps_per_epoch=4, anneal_strategy="linear", pct_start=0.5), [0.04, 0.36, 0.68, 1.0, 0.750001, 0.500002, 0.250003, 4e-06]),
    "OneCycleThree": (lambda o: S.OneCycleLR(o, 1.0, 10, three_phase=True, pct_start=0.4), [0.04, 0.28, 0.76, 1.0, 0.76, 0.28, 0.04, 0.030001]),
    "SWALR": (lambda o: swa_utils.SWALR(o, 0.1, 4), [1.0, 0.868198052, 0.55, 0.231801948, 0.1, 0.1, 0.1, 0.1]),
    "SWALRLinear": (lambda o: swa_utils.SWALR(o, 0.1, 2, "linear"), [1.0, 0.55, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
}


@pytest.mark.parametrize("name", [*SCHEDULES, *ABSOLUTE])
def test_schedules(name):
    make, want = {**SCHEDULES, **ABSOLUTE}[name]

    def fresh():
        optimizer = optim.SGD([{"params": parameter(), "lr": 1.0}, {"params": parameter()}], lr=0.5, momentum=0.9)
        return optimizer, make(optimizer)

    optimizer, schedule = fresh()
    found, saved = [], None
    for k in range(8):
        found.append([g["lr"] for g in optimizer.param_groups])
        assert schedule.get_last_lr() == found[-1]
        if k == 3:
            saved = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
        optimizer.step()
        schedule.step()
    if name in SCHEDULES:
        np.testing.assert_allclose(found, np.outer(want, [1, 0.5]), rtol=1e-8, atol=5e-10)
    else:
        np.testing.assert_allclose([first for first, _ in found], want, rtol=1e-8, atol=5e-10)
    optimizer, schedule = fresh()
    optimizer.load_state_dict(saved[0])
    schedule.load_state_dict(saved[1])
    for rates in found[3:]:
        assert [g["lr"] for g in optimizer.param_groups] == rates
        optimizer.step()
        schedule.step()


def test_schedules_chain_and_check(tmp_path):
    optimizer = optim.SGD([parameter()], lr=1.0)
    warm, decay = S.LinearLR(optimizer, 0.5, 1.0, 2), S.ExponentialLR(optimizer, 0.5)
    rates = []
    for _ in range(4):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        warm.step()
        decay.step()
    np.testing.assert_allclose(rates, [0.5, 0.375, 0.25, 0.125])
    optimizer.param_groups[0].update(lr=1.0, initial_lr=1.0)
    cosine = S.CosineAnnealingLR(optimizer, 3, eta_min=0.1)
    for want in (0.775, 0.325, 0.1, 0.325):
        cosine.step()
        assert optimizer.param_groups[0]["lr"] == pytest.approx(want)
    ag.save(warm.state_dict(), tmp_path / "s")
    assert ag.load(tmp_path / "s") == warm.state_dict()
    assert_raises(ValueError, "expected the entries", lambda: decay.load_state_dict(warm.state_dict()))
    assert_raises(TypeError, "an Optimizer", lambda: S.StepLR(parameter(), 2))
    assert_raises(ValueError, "step_size", lambda: S.StepLR(optimizer, 0))
    assert_raises(ValueError, "one a group", lambda: S.LambdaLR(optimizer, []))
    with pytest.warns(UserWarning, match="skips the first rate"):
        S.StepLR(optim.SGD([parameter()], lr=1.0), 2).step()
    going_on = optim.SGD([{"params": parameter(), "initial_lr": 1.0}], lr=0.25)
    assert S.StepLR(going_on, 2, 0.5, last_epoch=4).last_epoch == 5
    assert_raises(KeyError, "initial_lr", lambda: S.StepLR(optim.SGD([parameter()], lr=1.0), 2, last_epoch=4))


# PyTorch's rates from last_epoch=2 on, the first one that of the constructor; initial_lr is 0.2, lr 0.154
GOING_ON = [
    ("ExponentialLR", {"gamma": 0.9}, [0.154, 0.1386, 0.12474]),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9}, [0.154, 0.1386, 0.12474]),
    ("LinearLR", {"start_factor": 0.3, "total_iters": 9}, [0.154, 0.17645833333333338, 0.1989166666666667]),
    ("PolynomialLR", {"total_iters": 9}, [0.154, 0.12833333333333335, 0.10266666666666667]),
    ("CosineAnnealingLR", {"T_max": 9}, [0.154, 0.12049454624047155, 0.08483878709286184]),
    ("StepLR", {"step_size": 3}, [0.0154, 0.0154, 0.0154]),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}, [0.154, 0.308, 0.308]),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / epoch}, [0.2 / 3, 0.05, 0.04]),
]


@pytest.mark.parametrize(("name", "options", "want"), GOING_ON)
def test_going_on_from_an_epoch(name, options, want):
    optimizer = optim.SGD([{"params": parameter(), "initial_lr": 0.2}], lr=0.154)
    schedule = getattr(S, name)(optimizer, **options, last_epoch=2)
    rates = schedule.get_last_lr()
    for _ in range(2):
        schedule.step()
        rates += schedule.get_last_lr()
    np.testing.assert_allclose(rates, want, rtol=1e-12)
    assert schedule.last_epoch == 5


@pytest.mark.parametrize("make", [
    lambda o: S.StepLR(o, 1, 0.5), lambda o: S.LambdaLR(o, lambda epoch: 0.5**epoch), lambda o: S.CosineAnnealingLR(o, 9),
    lambda o: S.CosineAnnealingWarmRestarts(o, 3), lambda o: S.CyclicLR(o, 0.1, 0.2, 2, cycle_momentum=False),
])  # fmt: skip
def test_groups_that_were_added(make):
    """A group that comes later goes on as one of its rate would that was there from the start, or from then."""
    late, early = (optim.SGD([{"params": parameter(), "lr": lr} for lr in rates], lr=1.0) for rates in ([0.1], [0.1, 0.1]))
    schedules = make(late), make(early)
    late.add_param_group({"params": parameter(), "lr": late.param_groups[0]["lr"]})
    for _ in range(4):
        for schedule in schedules:
            schedule.optimizer.step()
            schedule.step()
        np.testing.assert_allclose(schedules[0].get_last_lr(), schedules[1].get_last_lr(), rtol=1e-12)


def test_groups_that_were_added_and_are_not_alike():
    optimizer = optim.SGD([{"params": parameter()}, {"params": parameter()}], lr=1.0)
    schedule, plateau = S.LambdaLR(optimizer, [lambda epoch: 1.0, lambda epoch: 0.5]), S.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    optimizer.add_param_group({"params": parameter(), "lr": 0.25})
    assert_raises(ValueError, "[LambdaLR] there is no function for group 2", schedule._advance)
    cycle = S.OneCycleLR(optim.SGD([parameter()], lr=1.0, momentum=0.9), 0.5, total_steps=9)
    cycle.optimizer.add_param_group({"params": parameter()})
    assert_raises(ValueError, "[OneCycleLR] there is no max_lr", cycle._advance)
    plateau.step(1.0)
    plateau.step(1.0)
    assert plateau.get_last_lr() == [0.5, 0.25, 0.125]


def test_a_skipped_step_is_no_wrong_order():
    p = parameter()
    optimizer, scaler = optim.SGD([p], lr=1.0), ag.amp.GradScaler("cpu", init_scale=4.0)
    schedule = S.StepLR(optimizer, 1)
    p.grad = ag.full_like(p, float("inf"))
    scaler.step(optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


MOMENTA = {
    "Cyclic": [0.9, 0.85, 0.8, 0.833333, 0.866667, 0.9, 0.85, 0.8],
    "CyclicTriangular2": [0.9, 0.85, 0.8, 0.85, 0.9, 0.875, 0.85, 0.875],
    "OneCycle": [0.95, 0.868826, 0.852806, 0.868826, 0.894402, 0.921694, 0.942336, 0.95],
    "OneCycleThree": [0.95, 0.925, 0.875, 0.85, 0.875, 0.925, 0.95, 0.95],
}


@pytest.mark.parametrize("name", MOMENTA)
def test_momentum_goes_the_other_way(name):
    for make, read in (
        (lambda p: optim.SGD(p, lr=1.0, momentum=0.9), lambda group: group["momentum"]),
        (lambda p: optim.Adam(p, lr=1.0), lambda group: group["betas"][0]),
    ):
        optimizer = make([parameter()])
        schedule, found = ABSOLUTE[name][0](optimizer), []
        for _ in range(8):
            found.append(read(optimizer.param_groups[0]))
            optimizer.step()
            schedule.step()
        np.testing.assert_allclose(found, MOMENTA[name], atol=1e-6)
    assert_raises(ValueError, "no momentum", lambda: ABSOLUTE[name][0](optim.Adagrad([parameter()])))


METRICS = [1, 0.9, 0.9, 0.95, 0.8999, 0.8, 0.81, 0.82, 0.83, 0.84, 0.7, 0.71, 0.72]
PLATEAUS = [
    ({"patience": 2}, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.1]),
    ({"patience": 1, "mode": "max", "threshold": 0.1}, [1.0, 1.0, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.0001, 0.0001, 1e-05, 1e-05, 1e-06]),
    ({"patience": 1, "cooldown": 2, "threshold_mode": "abs", "threshold": 0.05}, [1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.001]),
    ({"patience": 0, "factor": 0.5, "min_lr": 0.1}, [1.0, 1.0, 0.5, 0.25, 0.25, 0.25, 0.125, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
]


@pytest.mark.parametrize(("options", "want"), PLATEAUS)
def test_plateau(options, want, tmp_path):
    def fresh():
        optimizer = optim.SGD([parameter()], lr=1.0)
        return optimizer, S.ReduceLROnPlateau(optimizer, **options)

    optimizer, schedule = fresh()
    found = []
    for k, metric in enumerate(METRICS):
        schedule.step(ag.tensor(metric) if k % 2 else metric)
        found.append(optimizer.param_groups[0]["lr"])
        assert schedule.get_last_lr() == [found[-1]]
        if k == 5:
            ag.save([optimizer.state_dict(), schedule.state_dict()], tmp_path / "s")
    np.testing.assert_allclose(found, want, rtol=1e-6)
    again, resumed = fresh()
    saved = ag.load(tmp_path / "s")
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    for metric, rate in zip(METRICS[6:], found[6:], strict=True):
        resumed.step(metric)
        assert again.param_groups[0]["lr"] == rate


def test_warm_restarts_go_to_fractions():
    optimizer = optim.SGD([parameter()], lr=1.0)
    schedule = S.CosineAnnealingWarmRestarts(optimizer, 2, 2)
    for epoch, place, period in ((0.5, 0.5, 2), (1.75, 1.75, 2), (2.0, 0, 4), (5.0, 3, 4), (6.5, 0.5, 8)):
        schedule.step(epoch)
        assert (schedule.T_cur, schedule.T_i, schedule.last_epoch) == (place, period, int(epoch))
        assert optimizer.param_groups[0]["lr"] == pytest.approx((1 + math.cos(math.pi * place / period)) / 2)


def test_a_sequence_within_a_sequence():
    def make(o):
        return S.SequentialLR(o, [S.SequentialLR(o, [S.ConstantLR(o, 0.5, 9), S.ExponentialLR(o, 0.5)], [2]), S.StepLR(o, 1, 0.1)], [4])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(rates(make, 6), [0.5, 0.5, 1, 0.5, 1, 0.1])


def sgd():
    return optim.SGD([parameter()], lr=1.0, momentum=0.9)


REFUSED = [
    ("ChainedScheduler", "no schedules", lambda o: S.ChainedScheduler([])),
    ("ChainedScheduler", "same optimizer", lambda o: S.ChainedScheduler([S.StepLR(o, 1), S.StepLR(sgd(), 1)])),
    ("SequentialLR", "between schedules", lambda o: S.SequentialLR(o, [S.StepLR(o, 1)], [1])),
    ("SequentialLR", "metric", lambda o: S.SequentialLR(o, [S.StepLR(o, 1), S.ReduceLROnPlateau(o)], [1])),
    ("ReduceLROnPlateau", "below 1", lambda o: S.ReduceLROnPlateau(o, factor=1.0)),
    ("ReduceLROnPlateau", "min or max", lambda o: S.ReduceLROnPlateau(o, mode="low")),
    ("ReduceLROnPlateau", "one a group", lambda o: S.ReduceLROnPlateau(o, min_lr=[0.1, 0.2])),
    ("OneCycleLR", "total_steps", lambda o: S.OneCycleLR(o, 1.0, epochs=3)),
    ("OneCycleLR", "pct_start", lambda o: S.OneCycleLR(o, 1.0, 10, pct_start=1.5)),
    ("OneCycleLR", "cos or linear", lambda o: S.OneCycleLR(o, 1.0, 10, anneal_strategy="sin")),
    ("CyclicLR", "mode", lambda o: S.CyclicLR(o, 0.1, 1.0, mode="round")),
    ("CyclicLR", "scale_mode", lambda o: S.CyclicLR(o, 0.1, 1.0, scale_mode="steps")),
    ("CosineAnnealingWarmRestarts", "T_0", lambda o: S.CosineAnnealingWarmRestarts(o, 0)),
    ("ConstantLR", "factor", lambda o: S.ConstantLR(o, 2.0)),
    ("SWALR", "anneal_strategy", lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="sin")),
]


@pytest.mark.parametrize(("name", "text", "make"), REFUSED)
def test_refused(name, text, make):
    assert_raises(ValueError, text, lambda: make(sgd()))
    assert_raises(ValueError, f"[{name}]", lambda: make(sgd()))


def test_one_cycle_ends():
    optimizer = sgd()
    schedule = S.OneCycleLR(optimizer, 1.0, 3)
    for _ in range(3):
        optimizer.step()
        schedule.step()
    assert_raises(ValueError, "the cycle is over", schedule.step)
    for total, share in ((10, 0.1), (2, 0.5), (1, 1.0)):  # a rise of one step: it starts at the top
        optimizer = optim.SGD([parameter()], lr=1.0, momentum=0.9)
        schedule = S.OneCycleLR(optimizer, 0.5, total_steps=total, pct_start=share)
        assert schedule.get_last_lr() == [0.5] and optimizer.param_groups[0]["momentum"] == 0.85


# -- averaged models --------------------------------------------------------------------------------------

AVERAGES = {
    "get_swa_avg_fn": lambda w: sum(w) / len(w),
    "get_ema_avg_fn": lambda w: w[0] * 0.25 + w[1] * 0.25 + w[2] * 0.5,
}


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("name", AVERAGES)
def test_averaged_model(name, multi, device):
    weights = np.random.default_rng(0).standard_normal((3, 2, 4)).astype(np.float32)
    model = nn.Sequential(nn.Linear(4, 2, bias=False)).to(device)
    decay = () if "swa" in name else (0.5,)
    function = getattr(swa_utils, name.replace("avg", "multi_avg") if multi else name)(*decay)
    average = swa_utils.AveragedModel(model, **{"multi_avg_fn" if multi else "avg_fn": function})
    for w in weights:
        with ag.no_grad():
            model[0].weight.copy_(ag.tensor(w))
        average.update_parameters(model)
    assert_close(average.module[0].weight, AVERAGES[name](weights), 1e-6)
    assert int(average.n_averaged) == 3 and list(average.state_dict()) == ["n_averaged", "module.0.weight"]
    x = ag.ones(1, 4, device=device)
    assert_close(average(x), AVERAGES[name](weights).sum(1)[None], 2e-6)
    fresh = swa_utils.AveragedModel(model)
    fresh.load_state_dict(average.state_dict())
    assert_close(fresh(x), AVERAGES[name](weights).sum(1)[None], 2e-6)


def test_averaged_model_and_buffers():
    model = nn.BatchNorm1d(2)
    kept, averaged = swa_utils.AveragedModel(model), swa_utils.AveragedModel(model, use_buffers=True)
    for value in (0.0, 4.0):
        with ag.no_grad():
            model.running_mean.fill_(value)
        kept.update_parameters(model)
        averaged.update_parameters(model)
    assert_close(kept.module.running_mean, [4.0, 4.0])
    assert_close(averaged.module.running_mean, [2.0, 2.0])
    assert_raises(ValueError, "not both", lambda: swa_utils.AveragedModel(model, None, swa_utils.get_ema_avg_fn(), lambda *_: None))
    assert_raises(ValueError, "decay", lambda: swa_utils.get_ema_avg_fn(1.5))


def test_update_bn():
    batches = np.random.default_rng(0).standard_normal((4, 8, 3)).astype(np.float32) * 3 + 1
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    model.eval()
    swa_utils.update_bn([(ag.tensor(x), ag.zeros(8)) for x in batches], model)
    assert_close(model[0].running_mean, batches.mean((0, 1)), 1e-5)
    assert_close(model[0].running_var, batches.var(1, ddof=1).mean(0), 1e-5)
    assert not model.training and model[0].momentum == 0.1


def test_update_bn_leaves_modes():
    net = nn.Sequential(nn.BatchNorm1d(1), nn.Sequential(nn.Dropout()))
    net[1].eval()
    swa_utils.update_bn([ag.ones(2, 1)], net)
    assert [m.training for m in net.modules()] == [True, True, False, False]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_first_metric_is_an_improvement(mode):
    schedule = S.ReduceLROnPlateau(optim.SGD([parameter()], lr=1.0), mode, 0.5, patience=0, threshold=1.0)
    assert schedule.is_better(5.0)
    schedule.step(-1.0)
    assert schedule.is_better(-1.5 if mode == "min" else 0.5)


def test_a_sequence_without_warm_up():
    optimizer = optim.SGD([parameter()], lr=1.0)
    schedule = S.SequentialLR(optimizer, [S.LinearLR(optimizer, 0.1), S.ExponentialLR(optimizer, 0.5)], [0])
    rates = [schedule.get_last_lr()[0]]
    for _ in range(2):
        optimizer.step()
        schedule.step()
        rates += schedule.get_last_lr()
    np.testing.assert_allclose(rates, [1.0, 0.5, 0.25])
