"""Several processes train one network: python examples/08_data_parallel.py [--devices cpu,cpu,wgpu:0]

Each gets its share of every batch, and the gradients are averaged by sample count: the numbers are those of one process
with whole batches. The same twice: dp_train() does it all, and the loop written out shows what that is made of.
"""

import argparse
import os
from functools import partial
from pathlib import Path

import numpy as np

import autograd as ag
from autograd import distributed, nn, optim

BATCH = 128


# What other processes are to run stands at the top of the file, where they find it.
def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip


def data():
    """Images (1, 8, 8) with their labels, for training and for the test: always the same split."""
    digits = ag.data.digits()
    order = np.random.default_rng(0).permutation(len(digits)).tolist()
    test = len(digits) // 5
    return ag.data.Subset(digits, order[test:]), ag.data.Subset(digits, order[:test])


def training_data():
    return data()[0]


make_optimizer = partial(optim.SGD, lr=0.1, momentum=0.9)


def train(devices, epochs, checkpoint=None, resume=False):
    """Returns the network and the history of its training."""
    return distributed.dp_train(
        network, training_data, nn.functional.cross_entropy, optimizer=make_optimizer, devices=devices, epochs=epochs,
        batch_size=BATCH, checkpoint=checkpoint, resume=resume,
    )  # fmt: skip


def by_hand(devices, epochs):
    """The same, written out: what each process runs. Returns its weights."""
    device = devices[distributed.rank()]
    dataset = training_data()
    ag.manual_seed(0)
    model = distributed.DataParallel(network().to(device))  # gives rank 0's weights to all
    optimizer = make_optimizer(model.parameters())
    sampler = distributed.ShardedSampler(dataset, BATCH)  # this rank's share of every batch
    loader = ag.data.DataLoader(dataset, batch_sampler=sampler, device=device)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for (x, y), total in zip(loader, sampler.totals, strict=True):
            optimizer.zero_grad()
            with model.sync(samples=len(x), total=total):  # every .grad is the whole batch's when this ends
                if len(x):  # the last batch may be too short for all
                    nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return {name: t.cpu() for name, t in model.state_dict().items()}


def accuracy(model):
    _, test = data()
    images, labels = test.gather(range(len(test)))
    with ag.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item(), len(labels)


def distance(weights, others):
    """The largest difference between two sets of weights."""
    return max((a - others[name]).abs().max().item() for name, a in weights.items())


def main(devices, epochs, out, resume):
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / "data_parallel.safetensors"
    if not resume:
        checkpoint.unlink(missing_ok=True)
    try:
        model, history = train(devices, epochs, checkpoint, resume)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; --resume goes on from the last epoch in {checkpoint}") from None
    for rank, told in enumerate(history["ranks"]):
        print(f"rank {rank}: process {told['pid']} on {told['device']} saw {told['samples']} samples")
    right, count = accuracy(model)
    print(f"test accuracy {right:.1%}, on {count} images it never saw")

    weights = distributed.spawn(by_hand, len(devices), (devices, epochs))
    print(f"by hand: the weights differ by {distance(weights[0], model.state_dict()):.1e}, between ranks by "
          f"{max(distance(weights[0], w) for w in weights):.1e}")  # fmt: skip
    alone, history_alone = train(devices[:1], epochs)
    print(f"one process alone: by {distance(alone.state_dict(), model.state_dict()):.1e}, as sums are rounded in another order")
    several, one = (max(h["samples_per_second"]) for h in (history, history_alone))
    print(f"{len(devices)} processes are {several / one:.2f} times as fast as one, at their best")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=lambda text: text.split(","), default=[os.environ.get("DEVICE") or "cpu"] * 2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    main(**vars(parser.parse_args()))
