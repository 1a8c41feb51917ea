"""A GRU forecasts next year's sunspots from the years before: python examples/02_sunspots_forecast.py

The data are the yearly means from 1700 to 2008. The GRU reads 33 years, three cycles of the sun, and says how the
number will change in the following year. It learns from the years before 1950 and is tested on those after: each year
is forecast from what was known the year before, as the naive forecast is, which says that nothing changes.
"""

import argparse
import contextlib
import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import autograd as ag
from autograd import nn, optim

PAST = 33  # years it reads
FIRST_TEST = 1950
SCALE = 5.0  # of the square roots, in which a quiet sun and a busy one are as noisy


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(hidden, 1)

    def forward(self, past):  # (batch, years, 1)
        _, last = self.gru(past)
        return past[:, -1] + self.out(self.drop(last[0]))  # the last value, and how it will change


def data():
    """Windows (n, PAST, 1) of scaled square roots, what follows each (n, 1), and that one's year."""
    years, numbers = (x.numpy() for x in ag.data.sunspots())
    scaled = (np.sqrt(numbers) / SCALE).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(scaled, PAST)[:-1]
    return windows[..., None].copy(), scaled[PAST:, None], years[PAST:].astype(int)


def numbers(scaled):
    """Scaled square roots as numbers of sunspots."""
    return (scaled * SCALE) ** 2


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def train(device="cpu", epochs=50, seed=0, batch=32):
    """Returns the model and each epoch's mean loss. Ctrl-C ends it early, with what it has."""
    windows, following, years = data()
    known = years < FIRST_TEST
    pairs = ag.data.TensorDataset(ag.from_numpy(windows[known]), ag.from_numpy(following[known]))
    ag.manual_seed(seed)
    model = Forecaster().to(device)
    loader = ag.data.DataLoader(pairs, batch_size=batch, shuffle=True, drop_last=True, device=device)
    optimizer = optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.05)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=epochs * len(loader))
    losses = []
    with tqdm(total=epochs, unit="epoch") as bar, contextlib.suppress(KeyboardInterrupt):
        for _ in range(epochs):
            total = ag.zeros((), device=device)
            for past, target in loader:
                loss = nn.functional.mse_loss(model(past), target)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                total += loss.detach()
            losses.append(total.item() / len(loader))
            bar.update()
            bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return model.eval(), losses


def plot(losses, years, truth, forecast, naive, path):
    curve, series = Figure(figsize=(12, 4), layout="constrained").subplots(1, 2, width_ratios=(1, 2))
    curve.semilogy(range(1, len(losses) + 1), losses)
    curve.set(title="training loss", xlabel="epoch")
    series.plot(years, truth, color="black", marker=".", label="sunspots")
    series.plot(years, forecast, color="tab:red", label=f"GRU, RMSE {rmse(forecast, truth):.1f}")
    series.plot(years, naive, color="tab:gray", linestyle=":", label=f"naive, RMSE {rmse(naive, truth):.1f}")
    series.set(title="forecast one year ahead, for years it never saw", xlabel="year")
    series.legend()
    curve.figure.savefig(path)


def main(device, epochs, out):
    model, losses = train(device, epochs)
    windows, following, years = data()
    unseen = years >= FIRST_TEST
    with ag.no_grad():
        forecast = numbers(model(ag.from_numpy(windows[unseen]).to(device)).cpu().numpy()[:, 0])
    truth, naive = numbers(following[unseen, 0]), numbers(windows[unseen, -1, 0])
    ours, theirs = rmse(forecast, truth), rmse(naive, truth)
    print(f"one year ahead, {unseen.sum()} years from {FIRST_TEST}: RMSE {ours:.2f}; the last value again: {theirs:.2f}")
    print(f"{1 - ours / theirs:.1%} better than the naive forecast")
    out.mkdir(parents=True, exist_ok=True)
    plot(losses, years[unseen], truth, forecast, naive, out / "sunspots.png")
    print(f"wrote sunspots.png to {out}/")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("out"))
    main(**vars(parser.parse_args()))
