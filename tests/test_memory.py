"""Graphs of any depth, memory that falls without the collector, threads."""

import gc
import sys
import threading
import tracemalloc
import weakref

import pytest

import autograd as ag
from autograd import nn, optim


def leaf(*values):
    return ag.tensor(list(values), requires_grad=True)


def test_deep_graph_runs_forward_and_backward_and_is_dropped():
    limit = sys.getrecursionlimit()
    x, one = leaf(1.0), ag.ones(1)
    y = x
    for _ in range(100_000):
        y = y * one
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y
    z = x
    for _ in range(20_000):
        z = z.exp()
    del z  # never walked: what its nodes saved goes with them
    assert sys.getrecursionlimit() == limit


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


PROGRAMS = {
    "saved inputs": lambda x: (x * x).sum(),
    "saved output": lambda x: x.exp().tanh().softmax(0).sum(),
    "view": lambda x: x.reshape(2, 2).t()[0].sum(),
    "in place": lambda x: (x * 1).mul_(2).add_(x).sum(),
    "in place on a view": lambda x: written(x * 1),
    "retained": lambda x: retained(x * 2),
    "hooked": lambda x: hooked(x * 2),
    "reduction": lambda x: x.max() + x.max(0).values + x.logsumexp(0),
}


def written(y):
    y[:2].mul_(3)
    y[1] = y[2].exp()
    return y.sum()


def retained(y):
    y.retain_grad()
    return (y * y).sum()


def hooked(y):
    y.register_hook(lambda g: g * 2)
    return (y * y).sum()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("walk", ["dropped", "backward", "retain_graph", "create_graph"])
def test_memory_falls_by_reference_counts_alone(program, walk, no_collector):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = PROGRAMS[program](x)
    graph = [weakref.ref(y)]
    if walk == "create_graph":
        (g,) = ag.grad(y, x, create_graph=True)
        graph.append(weakref.ref(g))
        if g.requires_grad:
            g.sum().backward()
        del g
    elif walk != "dropped":
        y.backward(retain_graph=walk == "retain_graph")
    del y
    assert [r() for r in graph] == [None] * len(graph)
    x.grad = None
    alive = weakref.ref(x)
    del x
    assert alive() is None


def test_backward_frees_saved_values_at_once(no_collector):
    x = leaf(1.0, 2.0)
    h = x * 2
    y = (h * h).sum()
    inner = weakref.ref(h)
    del h
    assert inner() is not None
    y.backward()
    assert inner() is None


def test_threads_add_up_without_losing_updates():
    w = leaf(0.0, 0.0)
    errors = []

    def work():
        try:
            for _ in range(100):
                (w * 1.0).sum().backward()
                x = leaf(1.0)
                (x * 2 * 2).sum().backward()
                assert x.grad.tolist() == [4.0]
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join(60) for t in threads]
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert w.grad.tolist() == [400.0, 400.0]


# -- a long training ------------------------------------------------------------------------------------


def test_2000_steps_hold_memory_flat(device, no_collector):
    """Python's memory and the GPU's after 2,000 steps as after 200, and nothing for the collector to find."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2)).to(device)
    optimizer = optim.AdamW(model.parameters())
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
    x, y = ag.randn(4, 4, device=device), ag.tensor([0, 1, 1, 0], device=device)
    total = ag.zeros((), device=device)
    seen = []
    for step in range(1, 2001):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.detach()
        if step % 600 == 200:
            total.item()
            cycles = gc.collect()  # which also empties Python's lists of tuples to use again
            stats = ag.wgpu.stats()
            seen.append((cycles, sys.getallocatedblocks(), stats["bytes_live"], stats["bytes_live"] + stats["bytes_pooled"]))
    cycles, blocks, live, gpu = zip(*seen, strict=True)
    # One object kept a step would be 600 more at each look; a read leaves a handful in cycles, which are wgpu's own.
    assert max(cycles[1:]) < 20 and max(blocks[1:]) - blocks[1] < 300, seen
    assert len(set(live[1:])) == len(set(gpu[1:])) == 1, seen
    assert 0 < total.item() < 2000


def peak_of(function):
    """The bytes that NumPy and Python hold at most at once during a call, on top of what they held before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("batch, steps, inputs, units, limit", [(32, 64, 64, 128, 20e6), (64, 128, 128, 256, 120e6)])
def test_memory_of_a_recurrent_training_step(kind, batch, steps, inputs, units, limit):
    model, x = getattr(ag.nn, kind)(inputs, units), ag.randn(steps, batch, inputs)

    def step():
        model.zero_grad()
        model(x)[0].sum().backward()

    assert peak_of(step) < limit


def test_the_gradient_of_a_projection_needs_no_product_of_its_own_for_every_step():
    """They would be 256 of 128 KiB. Of one row a block is 256 steps."""
    model, x = ag.nn.LSTM(64, 256, proj_size=128), ag.randn(256, 1, 64)
    assert peak_of(lambda: model(x)[0].sum().backward()) < 16e6


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_without_gradients_a_recurrent_layer_holds_its_result_and_no_more_for_more_steps(kind):
    model = getattr(ag.nn, kind)(16, 64)
    short, long = (ag.randn(steps, 8, 16) for steps in (200, 500))  # a block of steps is 128 long here
    with ag.no_grad():
        model(short), model(long)  # what only a first call makes is not counted
        grown = peak_of(lambda: model(long)) - peak_of(lambda: model(short))
    results = 300 * 8 * 64 * 4
    assert grown < 1.25 * results
