"""Devices: "cpu" (NumPy) and "wgpu" / "wgpu:N" (compute shaders)."""

from __future__ import annotations

import os
from functools import lru_cache


class Device:
    """Where a tensor lives: device("cpu"), device("wgpu") = device("wgpu:0") = device("wgpu", 0), device("wgpu:1").

    type: "cpu" or "wgpu"; index: the adapter's number on wgpu, None on the CPU. Compares equal to its own string, so
    `x.device == "cpu"` reads as one would expect. `with device("wgpu"):` makes new tensors there when none is named.
    ValueError for any other device.
    """

    __slots__ = ("_before", "index", "type")

    def __init__(self, type: str | Device, index: int | None = None):
        kind, _, number = str(type).partition(":")
        number = number if index is None else f"{index}{number and '!'}"  # not twice
        if (kind == "cpu" and number in ("", "0")) or (kind == "wgpu" and (not number or number.isdecimal())):
            self.type, self.index = kind, None if kind == "cpu" else int(number or 0)
            return
        hint = ' CUDA is not used here: try "wgpu".' if kind in ("cuda", "mps", "xpu", "vulkan") else ""
        given = f"{type}" if index is None else f"{type}, {index}"
        raise ValueError(f'[device] a device is "cpu", "wgpu" or "wgpu:N"; got {given!r}.{hint}')

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (")" if self.index is None else f", index={self.index})")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other == str(self) or (other == self.type and not self.index)
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple:
        return (_parse, (str(self),))

    def __enter__(self) -> Device:
        self._before = [*getattr(self, "_before", ()), _default]
        set_default_device(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_default_device(self._before.pop())


CPU = Device("cpu")


def closed(device: Device) -> Device:
    """What the device is after it was given back: equal to no other, and refused wherever it is asked for."""
    gone = object.__new__(Device)
    gone.type, gone.index = f"closed {device.type}", device.index
    return gone


@lru_cache(maxsize=64)
def _parse(text: str) -> Device:
    found = Device(text)
    return CPU if found == CPU else found


def as_device(what: object = None) -> Device:
    """The Device that `what` names: None (the default), a Device or a string. ValueError or TypeError otherwise."""
    if what is None:
        return _default
    if isinstance(what, Device):
        return what
    if isinstance(what, str):
        return _parse(what)
    raise TypeError(f"[device] a device is a string or a Device; got {type(what).__name__}")


def _at_start() -> Device:
    """The device that AUTOGRAD_DEVICE names, else the CPU: a script that names no device runs on a GPU unchanged."""
    wanted = os.environ.get("AUTOGRAD_DEVICE") or "cpu"
    try:
        return _parse(wanted)
    except ValueError as error:
        raise ValueError(f"[autograd] AUTOGRAD_DEVICE: {error}") from None


_default = _at_start()


def set_default_device(device: object) -> None:
    """Make new tensors on `device` when none is named: at the start on AUTOGRAD_DEVICE, or on "cpu" where it is not set."""
    global _default
    _default = as_device(device)


def get_default_device() -> Device:
    """The device of tensors made without a `device` argument."""
    return _default
