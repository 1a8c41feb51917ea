"""Random numbers: one seeded stream for everything, the same on every device.

The stream is Philox, a counter-based generator; numbers are drawn on the host in float32 (float64 for float64
tensors) and uploaded, so that a seed gives the same numbers wherever the tensor lives.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import dtypes, shapes
from .create import place
from .device import as_device
from .tensor import Tensor

_lock = threading.Lock()
_generator = np.random.Generator(np.random.Philox(0))
_seed = 0


class _Own(threading.local):
    """The stream that this thread draws from instead of the common one, if any."""

    generator: np.random.Generator | None = None


_own = _Own()


class Generator:
    """A stream of its own, for what takes `generator=`: ag.Generator().manual_seed(0).

    device: where PyTorch would draw; here every stream is drawn on the CPU, and gives the same numbers for any device.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = as_device(device)
        self.manual_seed(0)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream anew; returns the generator itself."""
        self._seed = int(seed)
        self.stream = _seeded(self._seed)
        return self

    def initial_seed(self) -> int:
        """The seed last given."""
        return self._seed

    def seed(self) -> int:
        """Start the stream anew from a seed that the system draws, and return it."""
        self.manual_seed(secrets.randbits(63))
        return self._seed

    def get_state(self) -> dict:
        """The stream's position and the seed, as plain data that ag.save takes."""
        with _lock:
            return {"seed": self._seed, **_position(self.stream)}

    def set_state(self, state: dict) -> Generator:
        """Put the stream where get_state() found it; returns the generator itself."""
        position = {k: v for k, v in state.items() if k != "seed"}
        with _lock:
            _go_to(self.stream, position)
            self._seed = int(state["seed"])
        return self


def _seeded(*seeds: int) -> np.random.Generator:
    words = [seed & (2**64 - 1) for seed in seeds]
    return np.random.Generator(np.random.Philox(words[0] if len(words) == 1 else np.random.SeedSequence(words)))


@contextmanager
def drawing_from(generator: Generator | None) -> Iterator[None]:
    """Inside, this thread draws from `generator`; None changes nothing."""
    if not isinstance(generator, Generator | None):
        raise TypeError(f"[random] generator is an ag.Generator or None; got {type(generator).__name__}")
    before = _own.generator
    if generator is not None:
        _own.generator = generator.stream
    try:
        yield
    finally:
        _own.generator = before


@contextmanager
def drawing_apart(*seeds: int) -> Iterator[None]:
    """Inside, this thread draws from a stream made from several seeds: what is drawn depends on them alone."""
    before, _own.generator = _own.generator, _seeded(*seeds)
    try:
        yield
    finally:
        _own.generator = before


def _stream() -> np.random.Generator:
    return _generator if _own.generator is None else _own.generator


def manual_seed(seed: int) -> None:
    """Start the stream anew: the same seed gives the same numbers on both devices."""
    global _generator, _seed
    with _lock:
        _generator, _seed = _seeded(int(seed)), int(seed)


def initial_seed() -> int:
    """The seed last given to manual_seed, 0 at the start."""
    return _seed


def seed() -> int:
    """manual_seed with a seed that the system draws; returns it."""
    manual_seed(secrets.randbits(63))
    return _seed


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """PyTorch's switch, for programs that set it. There is nothing to switch: every result is deterministic."""
    if not isinstance(mode, bool):
        raise TypeError(f"[use_deterministic_algorithms] expects True or False; got {type(mode).__name__}")


def are_deterministic_algorithms_enabled() -> bool:
    """True: nothing here gives other bits in another run."""
    return True


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside does not move the common stream outside. devices: PyTorch's; there is one stream for all."""
    before, first = get_rng_state(), _seed
    try:
        yield
    finally:
        if enabled:
            _go_back(before, first)


def _go_back(state: dict, first: int) -> None:
    global _seed
    set_rng_state(state)
    _seed = first


def get_rng_state() -> dict:
    """The stream's position, as plain data (see set_rng_state)."""
    with _lock:
        return _position(_generator)


def _position(stream: np.random.Generator) -> dict:
    return {k: _plain(v) for k, v in stream.bit_generator.state.items()}


def _go_to(stream: np.random.Generator, state: dict) -> None:
    inner = {k: np.array(v, dtype=np.uint64) for k, v in state["state"].items()}
    stream.bit_generator.state = {**state, "state": inner, "buffer": np.array(state["buffer"], dtype=np.uint64)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def set_rng_state(state: dict) -> None:
    """Put the stream where get_rng_state found it."""
    with _lock:
        _go_to(_generator, state)


def drawn(method: str, size: tuple, dtype: Any, device: Any, requires_grad: bool, generator: Generator | None,
          *options: Any) -> Tensor:  # fmt: skip
    """What the stream's method of that name gives, in float32 or float64, as a tensor of `dtype` on `device`."""
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype()
    if not d.is_floating_point:
        raise TypeError(f"[{method}] draws floating point numbers; got dtype {d}. Use randint for integers")
    kind = np.float64 if d is dtypes.float64 else np.float32
    with drawing_from(generator), _lock:
        array = getattr(_stream(), method)(*options, size=size, **({} if options else {"dtype": kind}))
    return place(dtypes.converted(np.asarray(array), d.numpy, copy=False), device, requires_grad)


def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Uniform on [0, 1)."""
    return drawn("random", shapes.shape_args(size, "rand"), dtype, device, requires_grad, generator)


def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Standard normal."""
    return drawn("standard_normal", shapes.shape_args(size, "randn"), dtype, device, requires_grad, generator)


def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Uniform on [0, 1), in input's shape, dtype and device."""
    return drawn("random", input.shape, dtype or input.dtype, device or input.device, requires_grad, generator)


def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Standard normal, in input's shape, dtype and device."""
    return drawn("standard_normal", input.shape, dtype or input.dtype, device or input.device, requires_grad, generator)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
            device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Whole numbers on [low, high): randint(high, size) or randint(low, high, size). int64."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if high <= low:
        raise ValueError(f"[randint] high must be above low; got low={low}, high={high}")
    shape = shapes.shape_args((size,), "randint")
    with drawing_from(generator), _lock:
        array = _stream().integers(low, high, size=shape)
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.int64
    return place(dtypes.converted(np.asarray(array), d.numpy), device, requires_grad)


def randint_like(input: Tensor, low: int, high: Any = None, *, dtype: Any = None, device: Any = None,
                 requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Whole numbers on [low, high), or below `low`, in input's shape, dtype and device."""
    low, high = (0, low) if high is None else (low, high)
    where, d = device or input.device, dtype or input.dtype
    return randint(low, high, input.shape, dtype=d, device=where, requires_grad=requires_grad)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """0 … n-1 in random order. int64."""
    with drawing_from(generator), _lock:
        array = _stream().permutation(n)
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.int64
    return place(dtypes.converted(np.asarray(array, dtype=np.int64), d.numpy, copy=False), device)
