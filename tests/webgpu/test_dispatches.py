"""What a training step costs the queue: dispatches, submits, compiled kernels and memory, none of which depend on a machine."""

import numpy as np
import pytest

import autograd as ag
from autograd import nn, optim
from autograd.webgpu import fuse
from autograd.webgpu.layout import Plans

F = nn.functional
pytestmark = pytest.mark.usefixtures("wgpu")


@pytest.fixture(autouse=True)
def fused(monkeypatch):
    """These counts are those of fusion, whatever the environment says."""
    monkeypatch.setattr(fuse, "ENABLED", True)


def classes(n):
    return ag.tensor(np.arange(n) % 10, device="wgpu")


def training(parameters, loss_of):
    """One step of AdamW; the loss is kept, and not read."""
    optimizer = optim.AdamW(parameters, lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp():
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to("wgpu")
    x, t = ag.randn(24, 784, device="wgpu"), classes(24)
    return training(model.parameters(), lambda: F.cross_entropy(model(x), t))


def gru(steps=10):
    layer, head = nn.GRU(64, 128).to("wgpu"), nn.Linear(128, 10).to("wgpu")
    x, t = ag.randn(steps, 4, 64, device="wgpu"), classes(4)  # a batch of four is one workgroup
    return training([*layer.parameters(), *head.parameters()], lambda: F.cross_entropy(head(layer(x)[1][0]), t))


def encoder():
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).to("wgpu")
    x, t = ag.randn(2, 16, 128, device="wgpu"), ag.randn(2, 16, 128, device="wgpu")
    return training(model.parameters(), lambda: F.mse_loss(model(x), t))


def small():
    x, y, z = (ag.randn(8, device="wgpu").requires_grad_() for _ in range(3))

    def step():
        x.grad = y.grad = z.grad = None
        (x * y + z).sum().backward()

    return step


def clipped():
    layer, head = nn.GRU(8, 64).to("wgpu"), nn.Linear(64, 10).to("wgpu")
    parameters = [*layer.parameters(), *head.parameters()]
    x, t = ag.randn(8, 4, 8, device="wgpu"), classes(4)
    optimizer = optim.AdamW(parameters)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(head(layer(x)[1][-1]), t).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


# The most dispatches of a step, as it is today.
MOST = {"mlp": (mlp, 11), "gru": (gru, 20), "gru, 24 steps": (lambda: gru(24), 20), "encoder": (encoder, 59), "small": (small, 1),
        "clipped": (clipped, 25)}  # fmt: skip


def costs(step):
    """What one step adds to the counters, all that waits at its end included, and the buffers ever made; its loss."""
    gpu = ag.wgpu.open_device()
    before = ag.wgpu.stats()
    loss = step()
    gpu.flush()
    after = ag.wgpu.stats()
    found = {key: after[key] - before[key] for key in ("dispatches", "submits", "pipelines", "bytes_downloaded", "host_ops")}
    return {**found, "buffers": gpu.pool.next_id}, loss


@pytest.mark.parametrize("name", MOST)
def test_a_training_step(name):
    make, most = MOST[name]
    ag.manual_seed(0)
    step = make()
    ag.wgpu.open_device().flush()
    steps, losses = [], []
    for _ in range(6):
        cost, loss = costs(step)
        steps.append(cost)
        losses.append(loss.item() if loss is not None else None)
    assert steps[-1]["dispatches"] <= most
    assert [s["dispatches"] for s in steps[1:]] == [steps[-1]["dispatches"]] * 5
    assert [s["submits"] for s in steps] == [1] * 6  # nothing is read
    assert all(s["bytes_downloaded"] == s["host_ops"] == 0 for s in steps)
    assert [s["pipelines"] for s in steps[2:]] == [0] * 4  # compiled in the first two
    assert [s["buffers"] for s in steps[3:]] == [steps[2]["buffers"]] * 3  # allocated in the first three
    assert losses[0] is None or losses[-1] < 0.95 * losses[0], losses


def after(total, loss, y, t):
    return total + loss


def in_place(total, loss, y, t):
    total += loss
    return total


def weighted(total, loss, y, t):
    return total + loss * len(y)


def right_ones(total, loss, y, t):
    return total + (y.argmax(1) == t).sum()


def composite(y, t):
    return (y * y).mean() + 0.1 * y.abs().mean()


def summed(loss_of, add, early, device):
    """(the total of five steps, the kernels compiled by the end of each and when it is read)."""
    ag.manual_seed(0)
    model, x, t = nn.Linear(13, 10).to(device), ag.randn(9, 13, device=device), classes(9).to(device)
    optimizer = optim.AdamW(model.parameters())
    total, compiled = ag.zeros((), device=device), []
    for _ in range(5):
        optimizer.zero_grad()
        y = model(x)
        loss = loss_of(y, t)
        if early:
            total = add(total, loss.detach(), y, t)
        loss.backward()
        optimizer.step()
        if not early:
            total = add(total, loss.detach(), y, t)
        compiled.append(ag.wgpu.stats()["pipelines"])
    return total.item(), [*compiled, ag.wgpu.stats()["pipelines"]]


@pytest.mark.parametrize("add", [after, in_place, weighted, right_ones])
@pytest.mark.parametrize("early", [False, True], ids=["after the step", "before the backward pass"])
@pytest.mark.parametrize("loss_of", [F.cross_entropy, composite])
def test_a_running_total_compiles_nothing_after_the_second_step(loss_of, early, add, monkeypatch):
    gpu = ag.wgpu.open_device()
    monkeypatch.setattr(gpu, "fused", Plans())  # what other tests compiled does not help
    monkeypatch.setattr(gpu.pipelines, "kernels", {})
    monkeypatch.setattr(gpu.pipelines, "compiled", 0)  # at every 256th, plans that hold other tests' kernels are forgotten
    total, compiled = summed(loss_of, add, early, "wgpu")
    assert compiled[2:] == [compiled[1]] * 4
    assert total == pytest.approx(summed(loss_of, add, early, "cpu")[0], rel=1e-4)
