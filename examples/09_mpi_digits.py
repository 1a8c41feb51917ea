"""Handwritten digits on as many processes as mpiexec starts: mpiexec -n 2 python examples/09_mpi_digits.py [--resume]

Each rank computes the gradients of its share of every batch; their average, and so the weights, are the same on all.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import autograd as ag
from autograd import distributed, nn, optim


def make_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def data():
    """Images (n, 8, 8) in 0..1 and labels, for training and for the test: the same split on every rank."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    test, train = np.split(np.random.default_rng(0).permutation(len(images)), [len(images) // 5])
    return images[train], digits.target[train], images[test], digits.target[test]


def train_epoch(model, optimizer, sampler, images, labels, device):
    """One pass over the rank's shares of all batches; the mean loss over all samples of all ranks."""
    loss_sum = ag.zeros((), device=device)
    for pick, total in zip(sampler, sampler.totals, strict=True):
        optimizer.zero_grad()
        with model.sync(samples=len(pick), total=total):  # averages the gradients, while backward still runs
            if pick:  # the last batch may have fewer samples than there are ranks
                x, y = ag.from_numpy(images[pick]).to(device), ag.from_numpy(labels[pick]).to(device)
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                loss_sum += loss.detach() * len(pick)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return distributed.all_reduce(loss_sum).item() / len(images)


@ag.no_grad()
def accuracy(model, images, labels, device):
    """Each rank reads its share of the images; the part of all that was read right."""
    mine = slice(distributed.rank(), None, distributed.size())
    guesses = model(ag.from_numpy(images[mine].copy()).to(device)).argmax(1).cpu().numpy()
    right = ag.tensor([int((guesses == labels[mine]).sum())])
    return distributed.all_reduce(right).item() / len(images)


def main(device, epochs, out, resume):
    distributed.init("mpi")
    first = distributed.rank() == 0
    checkpoint = out / "mpi_digits.safetensors"
    images, labels, unseen, answers = data()
    ag.manual_seed(0)
    model = distributed.DataParallel(make_model().to(device))  # rank 0's weights go to all
    optimizer = distributed.ShardedOptimizer(model.parameters(), optim.AdamW, lr=0.003)  # each rank keeps a share of its state
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    sampler = distributed.ShardedSampler(images, batch_size=32)
    start = 0
    if resume:  # whatever the number of ranks was; with the same number, the same weights follow to the bit
        saved = ag.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        start = saved["epoch"]
    elif first:
        out.mkdir(parents=True, exist_ok=True)
    with distributed.progress(range(start, epochs), initial=start, total=epochs, unit="epoch") as bar:
        for epoch in bar:
            sampler.set_epoch(epoch)  # another order each epoch, the same after --resume
            loss = train_epoch(model, optimizer, sampler, images, labels, device)
            schedule.step()
            bar.set_postfix(loss=f"{loss:.4f}")
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
            distributed.save({**state, "epoch": epoch + 1}, checkpoint)  # rank 0 writes, the others wait
    right = accuracy(model, unseen, answers, device)
    if first:
        ranks = distributed.size()
        print(f"{ranks} rank{'s' * (ranks > 1)}: test accuracy {right:.1%}, on {len(unseen)} images they never saw")
        print(f"wrote mpi_digits.safetensors to {out}/; --resume --epochs {epochs + 4} goes on from it")
    distributed.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    main(**vars(parser.parse_args()))
