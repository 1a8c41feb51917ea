"""Ctrl-C at any point: parameters are old or new, and training goes on as if nothing had been."""

import contextlib
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
from helpers import array

import autograd as ag
from autograd import amp, nn, optim
from autograd.interrupts import held


@pytest.fixture(autouse=True)
def ctrl_c():
    """A process started in the background may have it switched off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "a handler was left behind"
    signal.signal(signal.SIGINT, before)


def press():
    signal.raise_signal(signal.SIGINT)


# -- the block that holds it back -----------------------------------------------------------------------


def test_held_until_the_outermost_block_ends():
    done = []
    with pytest.raises(KeyboardInterrupt), held:
        with held:
            press()
        done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]
    with held:
        pass


def test_a_second_one_does_not_wait():
    reached = []
    with pytest.raises(KeyboardInterrupt), held:
        press()
        reached.append(1)
        press()
        reached.append(2)
    assert reached == [1]


def test_an_exception_of_the_block_is_not_lost():
    with pytest.raises(KeyboardInterrupt) as caught, held:
        press()
        raise ValueError("mine")
    assert isinstance(caught.value.__context__, ValueError)
    with pytest.raises(ValueError), held:
        raise ValueError


def test_the_users_handler_is_called_afterwards():
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with held:
        press()
        assert not seen
    assert seen == [signal.SIGINT]
    for fixed in (signal.SIG_IGN, signal.SIG_DFL):
        signal.signal(signal.SIGINT, fixed)
        with held:
            assert signal.getsignal(signal.SIGINT) is fixed
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_hold_nothing():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with held:
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(30)
    with pytest.raises(KeyboardInterrupt):
        press()
    leave.set()
    thread.join(30)
    assert held.depth == 0


# -- every line of a step -------------------------------------------------------------------------------

OPTIMIZERS = {
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
    "Adafactor": lambda p: optim.Adafactor(p, lr=0.1),
    "LBFGS": lambda p: optim.LBFGS(p, lr=0.1, max_iter=1, line_search_fn="strong_wolfe", history_size=2),
}


class Setting:
    """Three parameters after one step of training, and the optimizer."""

    def __init__(self, name, device):
        ag.manual_seed(0)
        self.params = [nn.Parameter(ag.randn(*shape, device=device)) for shape in ((3,), (2, 4), (5,))]
        self.optimizer = OPTIMIZERS[name](self.params)
        self.step()

    def loss(self):
        self.optimizer.zero_grad()
        loss = sum((p * p).sum() for p in self.params)
        loss.backward()
        return loss

    def step(self):
        if isinstance(self.optimizer, optim.LBFGS):
            self.optimizer.step(self.loss)
        else:
            self.loss()
            self.optimizer.step()

    def values(self):
        state = [v for s in self.optimizer.state.values() for v in s.values() if isinstance(v, ag.Tensor)]
        return [array(p).copy() for p in (*self.params, *state)]


def pressed_at(line, function):
    """Run function() with Ctrl-C at the line-th line of this package that it executes; how many there were."""
    count = 0

    def lines(frame, event, arg):
        nonlocal count
        if event == "line":
            count += 1
            if count == line:
                press()
        return lines

    def calls(frame, event, arg):
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        finalising = name in ("__del__", "give")  # Python drops what is raised there, a KeyboardInterrupt too
        return lines if "autograd" in path and "interrupts" not in path and not finalising else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_done_or_not_begun(name, device):
    def ready():
        setting = Setting(name, device)
        setting.loss()
        closure = [setting.loss] if name == "LBFGS" else []
        return setting, lambda: setting.optimizer.step(*closure)

    for _ in range(3):  # the first times there is more to do
        setting, step = ready()
        old = setting.values()
        total = pressed_at(0, step)
        new = setting.values()
    assert any((a != b).any() for a, b in zip(old, new, strict=True)) and total > 20
    places = random.Random(0).sample(range(1, total + 1), 12 if device == "cpu" else 4)
    for line in [1, *places, total]:
        setting, step = ready()
        try:
            assert pressed_at(line, step) < line, "a Ctrl-C was lost"
        except KeyboardInterrupt:
            pass
        got = setting.values()
        same_as_old, same_as_new = (all(map(np.array_equal, got, want)) for want in (old, new))
        assert same_as_old or same_as_new, f"half a step at line {line} of {total}"
        assert ag.is_grad_enabled()
        if same_as_old:
            step()
            assert all(map(np.array_equal, setting.values(), new))


def test_an_average_is_taken_or_not(device):
    def ready():
        ag.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to(device)
        average = optim.swa_utils.AveragedModel(model)
        average.update_parameters(model)
        with ag.no_grad():
            [t.add_(1) for t in (*model.parameters(), model[1].running_mean)]
        return average, lambda: average.update_parameters(model)

    def values(average):
        return [array(t).copy() for t in average.state_dict().values()]

    average, take = ready()
    old, total, new = values(average), pressed_at(0, take), values(average)
    for line in [1, *random.Random(0).sample(range(1, total + 1), 8 if device == "cpu" else 3), total]:
        average, take = ready()
        with contextlib.suppress(KeyboardInterrupt):
            assert pressed_at(line, take) < line, "a Ctrl-C was lost"
        got = values(average)
        assert any(all(map(np.array_equal, got, want)) for want in (old, new)), f"half an average at line {line} of {total}"


# -- any moment of a training loop ----------------------------------------------------------------------


class Loop:
    """A small training loop that keeps every parameter after each step, so that old and new are known."""

    def __init__(self, device):
        ag.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3)).to(device)
        self.x, self.y = ag.randn(8, 6, device=device), ag.randint(3, (8,)).to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.schedule = optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.x), self.y).backward()
        self.optimizer.step()

    def values(self):
        return [array(p).copy() for p in self.model.parameters()]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a signal that meets a finaliser is lost
def test_at_random_moments(device):
    """Whenever it comes, all parameters are those of one number of steps, and the steps that follow are the same."""
    steps, loop = 3, Loop(device)
    path = [loop.values()]
    for _ in range(steps + 30):
        loop.step()
        path.append(loop.values())
    moments, interrupted = random.Random(1), 0
    loop = Loop(device)
    [loop.step() for _ in range(steps)]
    ag.wgpu.synchronize()
    begun = time.perf_counter()
    loop.step()
    loop.values()
    took = time.perf_counter() - begun
    taken = steps + 1
    before = signal.signal(signal.SIGALRM, lambda *_: press())
    try:
        while taken < steps + 28:
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, took))
                loop.step()
                taken += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                interrupted += 1
                taken = loop.optimizer.steps_taken
            assert ag.is_grad_enabled()
            got = loop.values()
            assert all(map(np.array_equal, got, path[loop.optimizer.steps_taken])), f"after {interrupted} interrupts"
            if interrupted > 40:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted >= 5


def test_scaler_and_schedule(device):
    p = nn.Parameter(ag.ones(3, device=device))
    optimizer = optim.SGD([p], lr=1.0)
    scaler, schedule = amp.GradScaler(device, init_scale=4.0), optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    scaler.scale(p.sum()).backward()
    with pytest.raises(KeyboardInterrupt):
        pressed_at(12, lambda: scaler.step(optimizer))
    assert array(p).tolist() in ([1, 1, 1], [0, 0, 0])
    assert array(p.grad).tolist() in ([4, 4, 4], [1, 1, 1])
    with pytest.raises(KeyboardInterrupt):
        pressed_at(4, schedule.step)
    assert (schedule.last_epoch, optimizer.param_groups[0]["lr"]) in ((0, 1.0), (1, 0.5))
