"""The work that is measured: each function takes a library with PyTorch's names and gives one step to call.

The same lines run on PyTorch and on this project, so that the work is the same. `device` is where ours is made;
`finish` is called at the end of each step (on a GPU: wait for it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (32, 64, 64, 128), (64, 128, 128, 256), (1, 64, 64, 128), (1, 16, 64, 128), (32, 8, 64, 128)  # (B, T, I, H)


def array(library: Any, *shape: int, device: str = "cpu", grad: bool = False) -> Any:
    """The same normal numbers for every library."""
    values = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    return library.tensor(values, device=device, requires_grad=grad)


def small(library: Any, device: str = "cpu", finish: Callable = lambda: None) -> Callable:
    """(x*y+z).sum().backward() on 8 elements: what the tape itself costs."""
    x, y, z = (array(library, 8, device=device, grad=True) for _ in range(3))

    def step() -> None:
        x.grad = y.grad = z.grad = None
        (x * y + z).sum().backward()
        finish()

    return step


def chain(library: Any, device: str = "cpu", finish: Callable = lambda: None) -> Callable:
    """Five elementwise operations on 1 M elements, their sum, and backward."""
    x, y = array(library, 1 << 20, device=device, grad=True), array(library, 1 << 20, device=device)

    def step() -> None:
        x.grad = None
        (((x * y + 1).tanh() * y - x).relu()).sum().backward()
        finish()

    return step


def matmul(library: Any, device: str = "cpu", finish: Callable = lambda: None) -> Callable:
    """A product of two 1024 x 1024 matrices: 2.1 G operations."""
    a, b = array(library, 1024, 1024, device=device), array(library, 1024, 1024, device=device)

    def step() -> None:
        a @ b
        finish()

    return step


def mlp(library: Any, device: str = "cpu", finish: Callable = lambda: None) -> Callable:
    """A training step of 784-256-10 on a batch of 64, with cross entropy and AdamW."""
    nn = library.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    optimizer = library.optim.AdamW(model.parameters(), lr=1e-3)
    x = array(library, 64, 784, device=device)
    y = library.tensor(np.random.default_rng(0).integers(0, 10, 64), device=device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        finish()

    return step


def encoder(library: Any, device: str = "cpu", finish: Callable = lambda: None, train: bool = False) -> Callable:
    """Two transformer encoder layers, B=8 T=64 d=128, 4 heads: forward and backward; with AdamW where `train`."""
    nn = library.nn
    layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    optimizer = library.optim.AdamW(model.parameters(), lr=1e-3) if train else None
    x = array(library, 8, 64, 128, device=device)

    def step() -> None:
        model.zero_grad()
        (model(x) ** 2).mean().backward()
        if optimizer is not None:
            optimizer.step()
        finish()

    return step


def recurrent(library: Any, kind: str, size: tuple, device: str = "cpu", finish: Callable = lambda: None,
              train: bool = False) -> Callable:  # fmt: skip
    """Forward and backward of nn.GRU or nn.LSTM, size (B, T, I, H); with AdamW where `train`."""
    batch, steps, inputs, units = size
    model = getattr(library.nn, kind)(inputs, units).to(device)
    optimizer = library.optim.AdamW(model.parameters(), lr=1e-3) if train else None
    x = array(library, steps, batch, inputs, device=device)

    def step() -> None:
        model.zero_grad()
        model(x)[0].sum().backward()
        if optimizer is not None:
            optimizer.step()
        finish()

    return step
