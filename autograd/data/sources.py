"""Data that ships in Python packages, and text files. Nothing is downloaded."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

import numpy as np

from ..create import from_numpy
from ..tensor import Tensor
from .dataset import TensorDataset


class Series(NamedTuple):
    """A series in time: times in years and values, two tensors of one length."""

    times: Tensor
    values: Tensor


class Text(NamedTuple):
    """A text as numbers: ids (int64, one a character), and the characters they stand for, in order."""

    ids: Tensor
    symbols: str

    def encode(self, text: str) -> Tensor:
        """The numbers of a text. ValueError for a character that is not among the symbols."""
        number = {c: i for i, c in enumerate(self.symbols)}
        strange = sorted(set(text) - set(number))
        if strange:
            raise ValueError(f"[Text.encode] characters that the text has not: {strange}")
        return from_numpy(np.array([number[c] for c in text], dtype=np.int64))

    def decode(self, ids: Tensor | list[int]) -> str:
        """The text of numbers."""
        return "".join(self.symbols[int(i)] for i in (ids.tolist() if isinstance(ids, Tensor) else ids))


def _need(module: str, package: str, who: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"[{who}] needs a package that is not installed: pip install {package}") from error


def digits() -> TensorDataset:
    """1797 handwritten digits (UCI ML repository): images (1, 8, 8), float32 in [0, 1], and labels 0 … 9, int64.

    ImportError without scikit-learn.
    """
    bunch = _need("sklearn.datasets", "scikit-learn", "digits").load_digits()
    images = (bunch.images / 16).astype(np.float32)[:, None]
    return TensorDataset(from_numpy(images), from_numpy(bunch.target.astype(np.int64)))


def sunspots() -> Series:
    """The mean number of sunspots in each year from 1700 to 2008 (NOAA), float32. ImportError without statsmodels."""
    table = _need("statsmodels.datasets.sunspots", "statsmodels", "sunspots").load_pandas().data
    columns = (table[name].to_numpy(dtype=np.float32) for name in ("YEAR", "SUNACTIVITY"))
    return Series(*(from_numpy(c.copy()) for c in columns))


def co2() -> Series:
    """CO2 above Mauna Loa in ppm, each week from 1958 to 2001 (Scripps), float32; missing weeks on a line between neighbours.

    ImportError without statsmodels.
    """
    table = _need("statsmodels.datasets.co2", "statsmodels", "co2").load_pandas().data
    values = table["co2"].to_numpy(dtype=np.float64)
    known = ~np.isnan(values)
    places = np.arange(values.size)
    filled = np.interp(places, places[known], values[known])
    days = table.index.values.astype("datetime64[D]").astype(np.int64)
    times = 1970 + days / 365.2425
    return Series(from_numpy(times.astype(np.float32)), from_numpy(filled.astype(np.float32)))


def text(path: str | os.PathLike) -> Text:
    """A UTF-8 text file as numbers, one a character. FileNotFoundError, UnicodeDecodeError, ValueError for an empty one."""
    with open(path, encoding="utf-8") as file:
        content = file.read()
    if not content:
        raise ValueError(f"[text] {os.fspath(path)} is empty")
    points = np.frombuffer(content.encode("utf-32-le"), dtype=np.uint32)
    symbols, ids = np.unique(points, return_inverse=True)
    return Text(from_numpy(ids.reshape(-1).astype(np.int64)), "".join(map(chr, symbols.tolist())))
