"""The same GRU trained in float32 and in float16, from the same start: python examples/05_mixed_precision.py

Inside autocast, matrix products and the GRU compute in float16 and what needs range stays in float32; parameters and
their updates are float32 all the time. Small float16 gradients would round to zero, so GradScaler multiplies the loss by
a large number and divides the gradients by it again; when one overflows, that step is left out and the number halved.
"""

import argparse
import contextlib
import os
import time

import numpy as np
from tqdm import tqdm

import autograd as ag
from autograd import amp, nn, optim


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 48, batch_first=True)  # reads 8 rows of 8 pixels, top to bottom
        self.out = nn.Linear(48, 10)

    def forward(self, images):
        _, last = self.gru(images)
        return self.out(last[0])


def data():
    """Images (n, 8, 8) and labels, for training and for the test: always the same split."""
    images, labels = (x.numpy() for x in ag.data.digits().tensors)
    test, train = np.split(np.random.default_rng(0).permutation(len(images)), [len(images) // 5])
    return images[train, 0], labels[train], images[test, 0], labels[test]


def train(device, epochs, short, limit=None, batch=32):
    """Train with short=None (float32) or a 16-bit dtype; the model, each epoch's mean loss, and the scaler at the end."""
    images, labels, _, _ = data()
    images, labels = images[:limit], labels[:limit]
    ag.manual_seed(0)
    model = Reader().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=0.005)
    scaler = amp.GradScaler(device, enabled=short is ag.float16)
    random, steps, losses = np.random.default_rng(0), len(images) // batch, []
    with tqdm(total=epochs * steps, unit="step", desc=str(short or "float32")) as bar:
        for _ in range(epochs):
            total = ag.zeros((), device=device)
            for pick in random.permutation(len(images))[: steps * batch].reshape(steps, batch):
                x, y = ag.from_numpy(images[pick]).to(device), ag.from_numpy(labels[pick]).to(device)
                with amp.autocast(device, short) if short else contextlib.nullcontext():
                    loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)  # so that clipping sees the gradients as they are
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                total += loss.detach()
                bar.update()
            losses.append(total.item() / steps)
            bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return model, losses, scaler


@ag.no_grad()
def accuracy(model, device):
    _, _, images, labels = data()
    return float(np.mean(model(ag.from_numpy(images).to(device)).argmax(1).cpu().numpy() == labels))


def main(device, epochs, limit):
    found = {}
    for short in (None, ag.float16):
        started = time.perf_counter()
        model, losses, scaler = train(device, epochs, short, limit)
        name = "float16" if short else "float32"
        found[name] = np.array(losses)
        seconds = time.perf_counter() - started
        print(f"{name}: loss {losses[-1]:.5f}, test accuracy {accuracy(model, device):.1%}, {seconds:.1f} s on {device}")
        assert all(p.dtype is ag.float32 for p in model.parameters())
    print(f"the scale at the end is {scaler.get_scale():.0f}")
    apart = np.abs(found["float16"] / found["float32"] - 1)
    print(f"the losses of the {epochs} epochs are at most {apart.max():.2%} apart, the last {apart[-1]:.2%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--limit", type=int, help="use no more training images than this")
    main(**vars(parser.parse_args()))
