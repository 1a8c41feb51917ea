"""A GRU reads handwritten digits, one row of pixels after the other: make run [DEVICE=wgpu]"""

import argparse
import contextlib
import os
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import autograd as ag
from autograd import nn, optim


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 64, batch_first=True)  # reads 8 rows of 8 pixels, top to bottom
        self.out = nn.Linear(64, 10)  # then says which digit it was

    def forward(self, images):
        _, last = self.gru(images)  # last: (layers, batch, hidden)
        return self.out(last[0])

    @ag.no_grad()
    def read(self, images, device):
        return self(ag.from_numpy(images).to(device)).argmax(1).cpu().numpy()


def data():
    """Images (n, 8, 8) in 0..1 and labels, for training and for the test: always the same split."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    test, train = np.split(np.random.default_rng(0).permutation(len(images)), [len(images) // 5])
    return images[train], digits.target[train], images[test], digits.target[test]


def train(device="cpu", epochs=15, seed=0, batch=32):
    """Returns the model and each epoch's mean loss. Ctrl-C ends it early, with what it has."""
    images, labels, _, _ = data()
    ag.manual_seed(seed)
    model = Reader().to(device)  # made on the CPU, so both devices start from the same weights
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    shuffle, steps, losses = np.random.default_rng(seed), len(images) // batch, []
    started = time.perf_counter()
    with tqdm(total=epochs * steps, unit="step") as bar, contextlib.suppress(KeyboardInterrupt):
        for epoch in range(epochs):
            optimizer.param_groups[0]["lr"] = 0.02 * (1 - epoch / epochs)  # smaller steps near the end
            total = ag.zeros((), device=device)
            for pick in shuffle.permutation(len(images))[: steps * batch].reshape(steps, batch):
                x, y = ag.from_numpy(images[pick]).to(device), ag.from_numpy(labels[pick]).to(device)
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                total += loss.detach()
                bar.update()
            losses.append(total.item() / steps)  # reading waits for the GPU: once an epoch, not every step
            bar.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.4f}")
    print(f"device {device}: {bar.n / (time.perf_counter() - started):.0f} steps per second")
    return model, losses


def plot(losses, images, labels, guesses, path):
    curve, grid = Figure(figsize=(12, 5)).subplots(1, 2)
    curve.semilogy(range(1, len(losses) + 1), losses, marker=".")
    curve.set(title="training loss", xlabel="epoch")
    grid.set(title="what the GRU read: the wrong ones first, in red", xticks=[], yticks=[])
    for cell, i in enumerate(np.argsort(guesses == labels, kind="stable")[:40]):
        small = grid.inset_axes((cell % 8 / 8 + 0.01, 0.81 - cell // 8 / 5, 0.1, 0.13), xticks=[], yticks=[])
        small.imshow(images[i], cmap="gray_r")
        small.set_title(guesses[i], color="black" if guesses[i] == labels[i] else "red", fontsize=9, pad=2)
    curve.figure.savefig(path, bbox_inches="tight")


def main(device, epochs, out):
    model, losses = train(device, epochs)
    _, _, images, labels = data()
    guesses = model.read(images, device)
    print(f"test accuracy {np.mean(guesses == labels):.1%}, on {len(labels)} images it never saw")
    out.mkdir(parents=True, exist_ok=True)
    ag.save(model.state_dict(), out / "digits.safetensors")
    plot(losses, images, labels, guesses, out / "digits.png")
    again = Reader().to(device)
    again.load_state_dict(ag.load(out / "digits.safetensors"))
    assert (again.read(images, device) == guesses).all(), "the weights loaded back read differently"
    print(f"wrote digits.png and digits.safetensors to {out}/; loaded back, the weights read the same")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("out"))
    main(**vars(parser.parse_args()))
