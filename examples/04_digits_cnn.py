"""A convolutional network reads handwritten digits: python examples/04_digits_cnn.py

It sees every training image a pixel to the left, to the right, up or down as well, since a digit stays what it is; and
what is tested is the average of its weights over the last steps, which wanders less than they do.
"""

import argparse
import contextlib
import os
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import autograd as ag
from autograd import nn, optim


def network():
    """Images (n, 1, 8, 8) in, ten scores out: 74,000 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.4), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, 10),
    )  # fmt: skip


def data():
    """Images (n, 1, 8, 8) in 0..1 and labels, for training and for the test: always the same split."""
    images, labels = (x.numpy() for x in ag.data.digits().tensors)
    test, train = np.split(np.random.default_rng(0).permutation(len(images)), [len(images) // 5])
    return images[train], labels[train], images[test], labels[test]


def shifted(images, random):
    """Each image moved by up to one pixel, with an empty border."""
    wide = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    down, right = random.integers(0, 3, (2, len(images), 1, 1))
    rows, columns = np.arange(8)[:, None] + down, np.arange(8) + right
    return wide[np.arange(len(images))[:, None, None], 0, rows, columns][:, None]


def train(device="cpu", epochs=20, seed=0, batch=64):
    """Returns the averaged network and each epoch's mean loss. Ctrl-C ends it early, with what it has."""
    images, labels, _, _ = data()
    ag.manual_seed(seed)
    model = network().to(device)
    average = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.98), use_buffers=True)
    optimizer = optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
    random, steps, losses = np.random.default_rng(seed), len(images) // batch, []
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=epochs * steps)
    started = time.perf_counter()
    with tqdm(total=epochs * steps, unit="step") as bar, contextlib.suppress(KeyboardInterrupt):
        for epoch in range(epochs):
            total, moved = ag.zeros((), device=device), shifted(images, random)
            for pick in random.permutation(len(images))[: steps * batch].reshape(steps, batch):
                x, y = ag.from_numpy(moved[pick]).to(device), ag.from_numpy(labels[pick]).to(device)
                loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.05)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                average.update_parameters(model)
                total += loss.detach()
                bar.update()
            losses.append(total.item() / steps)
            bar.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.4f}")
    print(f"device {device}: {bar.n / (time.perf_counter() - started):.0f} steps per second")
    return average.eval(), losses


@ag.no_grad()
def read(model, images, device):
    return model(ag.from_numpy(images).to(device)).argmax(1).cpu().numpy()


def plot(losses, images, labels, guesses, path):
    curve, grid = Figure(figsize=(12, 4), layout="constrained").subplots(1, 2)
    curve.plot(range(1, len(losses) + 1), losses, marker=".")
    curve.set(title="training loss, with labels smoothed", xlabel="epoch")
    grid.set(title="the digits it misread: read as, is", xticks=[], yticks=[])
    for cell, i in enumerate(np.flatnonzero(guesses != labels)[:24]):
        small = grid.inset_axes((cell % 8 / 8 + 0.01, 0.68 - cell // 8 / 3, 0.1, 0.2), xticks=[], yticks=[])
        small.imshow(images[i, 0], cmap="gray_r")
        small.set_title(f"{guesses[i]}, {labels[i]}", fontsize=9, pad=2)
    curve.figure.savefig(path)


def main(device, epochs, seed, out):
    model, losses = train(device, epochs, seed)
    _, _, images, labels = data()
    guesses = read(model, images, device)
    wrong = int((guesses != labels).sum())
    print(f"test accuracy {np.mean(guesses == labels):.1%}: {wrong} of {len(labels)} images it never saw are misread")
    out.mkdir(parents=True, exist_ok=True)
    plot(losses, images, labels, guesses, out / "digits_cnn.png")
    print(f"wrote digits_cnn.png to {out}/")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    main(**vars(parser.parse_args()))
