"""Callbacks that write down or show what happens."""

from __future__ import annotations

import csv
import os
from typing import Any

from .callbacks_base import Callback
from .progress import Progbar


class CSVLogger(Callback):
    """A row an epoch, in a CSV file with the logs' names as header. append: go on in a file that is there."""

    def __init__(self, filename: Any, separator: str = ",", append: bool = False):
        super().__init__()
        self.filename, self.separator, self.append = os.fspath(filename), separator, append
        self._file: Any = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Open the file."""
        has_header = self.append and os.path.exists(self.filename) and os.path.getsize(self.filename) > 0
        self._file = open(self.filename, "a" if self.append else "w", newline="", encoding="utf-8")  # noqa: SIM115 (closed in on_train_end)
        self._writer: Any = None
        self._header = not has_header

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Write a row."""
        logs = logs or {}
        if self._writer is None:
            keys = sorted(logs)
            if not any(k.startswith("val_") for k in keys):
                keys += [f"val_{k}" for k in keys]  # validation may come later: validation_freq
            self._writer = csv.DictWriter(self._file, ["epoch", *keys], delimiter=self.separator)
            if self._header:
                self._writer.writeheader()
        row = {k: logs.get(k, "NA") for k in self._writer.fieldnames if k != "epoch"}
        self._writer.writerow({"epoch": epoch, **row})
        self._file.flush()

    def on_train_end(self, logs: dict | None = None) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class TensorBoard(Callback):
    """Write the logs for TensorBoard, through tensorboardX: training to log_dir/train, validation to log_dir/validation.

    update_freq: "epoch", "batch" or a number of batches. histogram_freq: every so many epochs the weights' histograms.
    ImportError where tensorboardX is not installed.
    """

    def __init__(self, log_dir: Any = "logs", histogram_freq: int = 0, update_freq: Any = "epoch"):
        super().__init__()
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ImportError("[TensorBoard] needs tensorboardX: pip install tensorboardX") from None
        if update_freq not in ("epoch", "batch") and not (isinstance(update_freq, int) and update_freq > 0):
            raise ValueError(f'[TensorBoard] update_freq is "epoch", "batch" or a number of batches; got {update_freq!r}')
        self._make, self.log_dir, self.histogram_freq = SummaryWriter, os.fspath(log_dir), histogram_freq
        self._every = 0 if update_freq == "epoch" else 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, Any] = {}
        self._batches = 0

    def _writer(self, part: str) -> Any:
        if part not in self._writers:
            self._writers[part] = self._make(os.path.join(self.log_dir, part))
        return self._writers[part]

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Count batches anew."""
        self._batches = 0

    def skip_batch(self, hook: str, batch: int) -> bool:
        """Whether nothing is written after this batch."""
        self._batches += 1
        return not self._every or self._batches % self._every != 0

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Write the logs so far."""
        for name, value in (logs or {}).items():
            self._writer("train").add_scalar(f"batch_{name}", value, self._batches - 1)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Write the epoch's logs."""
        for name, value in (logs or {}).items():
            part = "validation" if name.startswith("val_") else "train"
            self._writer(part).add_scalar(f"epoch_{name.removeprefix('val_')}", value, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for name, weight in self.model.state_dict().items():
                self._writer("train").add_histogram(name, weight.cpu().numpy(), epoch)

    def on_train_end(self, logs: dict | None = None) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()


class ProgbarLogger(Callback):
    """Keras' progress display; fit() adds one unless verbose is 0."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progbar | None = None
        self._seen = 0
        self._in_fit = False

    def _start(self) -> None:
        verbose = self.params.get("verbose", 1)
        self._bar, self._seen = Progbar(self.params.get("steps"), 1 if verbose in ("auto", True) else verbose), 0

    def skip_batch(self, hook: str, batch: int) -> bool:
        """Count the batch; whether it is too early to show something again."""
        if self._in_fit and hook == "on_test_batch_end":
            return True
        self._seen = batch + 1
        if self._seen == 1 and self._bar is not None:
            self._bar.update(1)
        return self._bar is None or not self._bar.due()

    def _update(self, logs: dict | None) -> None:
        if self._bar is not None:
            self._bar.update(self._seen, logs)

    def _finish(self, logs: dict | None) -> None:
        if self._bar is not None:
            if self._bar.target is None:
                self._bar.target = self._seen
            self._bar.update(self._seen, logs, finalize=True)

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Show training only, not the validation in it."""
        self._in_fit = True

    def on_train_end(self, logs: dict | None = None) -> None:
        """Training is over."""
        self._in_fit = False

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Say which epoch it is."""
        if self.params.get("epochs", 1) > 1:
            print(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self._start()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """The last line of the epoch."""
        self._finish(logs)

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Show how far it is."""
        self._update(logs)

    def on_test_begin(self, logs: dict | None = None) -> None:
        """Begin, if this is evaluate()."""
        if not self._in_fit:
            self._start()

    def on_test_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Show how far it is."""
        if not self._in_fit:
            self._update(logs)

    def on_test_end(self, logs: dict | None = None) -> None:
        """The last line."""
        if not self._in_fit:
            self._finish(logs)

    def on_predict_begin(self, logs: dict | None = None) -> None:
        """Begin."""
        self._start()

    def on_predict_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Show how far it is."""
        self._update(None)

    def on_predict_end(self, logs: dict | None = None) -> None:
        """The last line."""
        self._finish(None)
