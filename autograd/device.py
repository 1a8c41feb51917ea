"""Devices: "cpu" (NumPy) and "wgpu" / "wgpu:N" (compute shaders)."""

from __future__ import annotations

import os
from functools import lru_cache


class Device:
    """Where a tensor lives. type: "cpu" or "wgpu"; index: the adapter's number on wgpu, None on the CPU.

    Compares equal to its own string, so `x.device == "cpu"` reads as one would expect.
    """

    __slots__ = ("index", "type")

    def __init__(self, type: str, index: int | None = None):
        self.type, self.index = type, index

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


CPU = Device("cpu")


@lru_cache(maxsize=64)
def _parse(text: str) -> Device:
    kind, _, index = text.partition(":")
    if kind == "cpu" and index in ("", "0"):
        return CPU
    if kind == "wgpu" and (index == "" or index.isdecimal()):
        return Device("wgpu", int(index or 0))
    hint = ' CUDA is not used here: try "wgpu".' if kind in ("cuda", "mps", "xpu", "vulkan") else ""
    raise ValueError(f'[device] a device is "cpu", "wgpu" or "wgpu:N"; got {text!r}.{hint}')


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
