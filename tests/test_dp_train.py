"""dp_train: a whole training on several devices, what it refuses, and how it goes on after a rank was killed."""

import os
import time
from functools import partial

import distributed_workers as workers
import numpy as np
import pytest
from distributed_leaks import nothing_stays  # noqa: F401  (a fixture of every test)

import autograd as ag
from autograd import distributed, nn, optim

SOON = 30  # seconds for a failure to end everything; starting processes is most of them on a busy machine


def train(**options):
    """dp_train of a small network; 21 samples in batches of 5."""
    settings = {"optimizer": partial(optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01), "batch_size": 5, "max_norm": 0.5,
                "progress": False}  # fmt: skip
    make, loss = options.pop("make_model", workers.Net), options.pop("loss_fn", workers.mse)
    return distributed.dp_train(make, options.pop("data", workers.numbers()), loss, **settings | options)


def bits(model):
    return {name: t.numpy().tobytes() for name, t in model.state_dict().items()}


def by_hand(make, data, epochs, seed=0, decay=1.0):
    """What train() should be: one process, whole batches, the loop written out."""
    ag.manual_seed(seed)
    net, losses = make(), []
    stepper = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    data = ag.data.TensorDataset(*(ag.from_numpy(a) for a in data))
    sampler = distributed.ShardedSampler(data, 5, seed=seed)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in ag.data.DataLoader(data, batch_sampler=sampler):
            stepper.zero_grad()
            loss = workers.mse(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            stepper.step()
            total += loss.item() * len(x)
        losses.append(total / len(data))
        stepper.param_groups[0]["lr"] *= decay
    return net, losses


def close(model, other, **tolerance):
    for (name, a), b in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(a, b, err_msg=name, **tolerance)


def test_dp_train_is_a_hand_written_loop_on_whole_batches(tmp_path, capsys):
    records = []
    model, history = train(epochs=3, seed=4, schedule=partial(optim.lr_scheduler.ExponentialLR, gamma=0.5), on_epoch=records.append,
                           progress=True, loss_fn=workers.NotingLoss(tmp_path))  # fmt: skip
    net, losses = by_hand(workers.Net, workers.numbers(), 3, 4, 0.5)
    close(model, net, atol=1e-10)
    np.testing.assert_allclose(history["loss"], losses, atol=1e-10)
    assert [r["loss"] for r in records] == history["loss"] and [r["epoch"] for r in records] == [1, 2, 3]
    assert capsys.readouterr().out.count(" samples/s on 2 devices\n") == 3
    # Really parallel, on whole shards: two processes, whose shares add up to every batch, the last short one too.
    noted = [[line.split() for line in (tmp_path / f"{r}.txt").read_text().splitlines()] for r in range(2)]
    (first,), (second,) = ({pid for pid, _ in lines} for lines in noted)
    assert len({first, second, str(os.getpid())}) == 3
    assert [int(n) for _, n in noted[0]] == [3, 3, 3, 3, 1] * 3 and [int(n) for _, n in noted[1]] == [2, 2, 2, 2] * 3
    assert [each["pid"] for each in history["ranks"]] == [int(first), int(second)]
    assert [each["samples"] for each in history["ranks"]] == [39, 24]


def test_a_killed_rank_ends_the_run_and_a_restart_goes_on_exactly(tmp_path):
    """With dropout and batch statistics. The data leave no shard of one sample, which has no statistics."""
    options = {"make_model": workers.Dropping, "data": workers.numbers(22, np.float32), "batch_size": 6, "epochs": 4}
    whole, history = train(checkpoint=tmp_path / "whole.safetensors", **options)
    fatal, path = tmp_path / "fatal", tmp_path / "killed.safetensors"
    fatal.touch()
    loss = workers.NotingLoss(tmp_path, fatal, after=10)  # in the third epoch of four steps
    records, started = [], time.monotonic()
    with pytest.raises(RuntimeError, match="rank 1 of 2 was ended by SIGKILL"):
        train(checkpoint=path, loss_fn=loss, on_epoch=records.append, **options)
    assert time.monotonic() - started < SOON
    saved = ag.load(path)
    assert saved["epoch"] == len(records) == 2 and saved["history"]["loss"] == history["loss"][:2]
    with pytest.raises(FileExistsError, match="resume=True goes on from it"):
        train(checkpoint=path, **options)
    resumed, after = train(checkpoint=path, resume=True, **options)
    assert after["loss"] == history["loss"] and bits(resumed) == bits(whole)
    with pytest.raises(ValueError, match="was made with batch_size=6; got 7"):
        train(checkpoint=path, resume=True, **options | {"batch_size": 7})
    ag.save({"epoch": 3}, path)
    with pytest.raises(ValueError, match="is not a checkpoint of dp_train"):
        train(checkpoint=path, resume=True, **options)


def test_synchronised_norm_takes_empty_shards_in_a_whole_training():
    """7 samples on 3 ranks in batches of 5 and 2: one process has the same statistics and weights."""
    several, history = train(make_model=workers.normed, data=workers.numbers(7), epochs=3, devices=["cpu"] * 3)
    one, losses = by_hand(workers.normed, workers.numbers(7), 3)
    close(several, one, atol=1e-10)
    np.testing.assert_allclose(history["loss"], losses, atol=1e-10)
    assert [each["samples"] for each in history["ranks"]] == [9, 9, 3]


def test_what_dp_train_cannot_use_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed.train, "spawn", None)
    with pytest.raises(TypeError, match=r"make_model is sent to other processes .* top of a module"):
        train(make_model=lambda: nn.Linear(6, 3))
    with pytest.raises(TypeError, match="loss_fn is sent to other processes"):
        train(loss_fn=lambda y, t: y.sum())
    with pytest.raises(TypeError, match=r"make_model\(\) makes a Module; got dict"):
        train(make_model=dict)
    with pytest.raises(TypeError, match=r"optimizer is called in each process; got SGD.* functools.partial"):
        train(optimizer=optim.SGD(nn.Linear(2, 2).parameters(), lr=1))
    for name, wrong in (("epochs", 0), ("epochs", 1.5), ("batch_size", 0), ("seed", -1), ("bucket_bytes", 0), ("max_norm", -1),
                        ("devices", ()), ("compress", "int8"), ("checkpoint", tmp_path), ("checkpoint", tmp_path / "no/file")):  # fmt: skip
        with pytest.raises(ValueError, match=rf"{name} (is|has) .*; (got|there)"):
            train(**{name: wrong})
    with pytest.raises(TypeError, match="devices is a list"):
        train(devices="cpu")
    with pytest.raises(ValueError, match="resume=True goes on from a checkpoint"):
        train(resume=True)
    with pytest.raises(ValueError, match="data has no samples"):
        train(data=workers.numbers(0))
    with pytest.raises(ValueError, match="tensors share their first size"):
        train(data=(np.ones((3, 6)), np.ones((4, 3))))
    with pytest.raises(TypeError, match="makes one; got int"):
        train(data=5)
    with pytest.raises(ValueError, match='try "wgpu"'):
        train(devices=("cuda:0",))
    with pytest.raises(ArithmeticError, match="no such network"):
        train(make_model=workers.Exploding)


def test_wgpu_replicas_keep_equal_weights_beside_the_cpu(wgpu):
    """dp_train compares the weights itself; the losses are the CPU's."""
    make, data = partial(workers.Net, ag.float32), workers.numbers(11, np.float32)
    model, mixed = train(make_model=make, data=data, epochs=2, devices=("cpu", wgpu))
    assert [each["device"] for each in mixed["ranks"]] == ["cpu", "wgpu:0"]
    net, losses = by_hand(make, data, 2)
    close(model, net, atol=1e-5)
    np.testing.assert_allclose(mixed["loss"], losses, rtol=1e-5)
