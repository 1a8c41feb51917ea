"""History: what fit() returns."""

from __future__ import annotations

from typing import Any

from .callbacks_base import Callback


class History(Callback):
    """The logs of all epochs: history ({name: [value an epoch]}), epoch (their numbers), params; plot() draws them."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Begin anew with the numbers of epochs; the values go on, as in Keras."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Keep the epoch's logs."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)

    def add(self, **values: float) -> None:
        """One more epoch of a loop written by hand: history.add(loss=0.3, val_loss=0.4)."""
        self.on_epoch_end(len(self.epoch), values)

    def plot(self, path: Any = None) -> Any:
        """Draw each metric with its val_ counterpart, one axes each; the figure, which goes to `path` too if one is given.

        ImportError where matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("[History.plot] needs matplotlib: pip install matplotlib") from None
        names = [n for n in self.history if not (n.startswith("val_") and n[4:] in self.history)]
        figure = Figure(figsize=(4 * max(1, len(names)), 3), layout="constrained")
        for i, name in enumerate(names):
            axes = figure.add_subplot(1, len(names), i + 1)
            for key in (name, f"val_{name}"):
                if key in self.history:
                    epochs = self.epoch if len(self.epoch) == len(self.history[key]) else range(len(self.history[key]))
                    axes.plot([e + 1 for e in epochs], self.history[key], label=key)
            axes.set_xlabel("epoch")
            axes.set_title(name)
            axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        if not self.history:
            return "<History: no epochs>"
        rows: list[tuple[str, ...]] = [("", "first", "best", "last")]
        for name, values in self.history.items():
            shown = [v for v in values if isinstance(v, int | float)]
            if shown:
                up = not name.removeprefix("val_").endswith(("loss", "error", "mse", "mae", "mape", "msle", "crossentropy"))
                rows.append((name, *(f"{v:.6g}" for v in (shown[0], max(shown) if up else min(shown), shown[-1]))))
        widths = [max(len(r[c]) for r in rows) for c in range(4)]
        lines = ["  ".join([r[0].ljust(widths[0]), *(r[c].rjust(widths[c]) for c in (1, 2, 3))]) for r in rows]
        return "\n".join([f"<History: {len(self.epoch)} epochs", *lines]) + ">"
