"""Mixed precision: autocast runs products in a short dtype, GradScaler keeps small gradients from vanishing.

    scaler = ag.amp.GradScaler()
    with ag.amp.autocast("wgpu", dtype=ag.float16):
        loss = loss_function(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # only to look at the gradients or clip them
    scaler.step(optimizer)
    scaler.update()

Micikevicius et al.: Mixed Precision Training (arXiv 1710.03740).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import dtypes
from .cast import LISTS, Policy
from .dtypes import DType
from .grad_mode import no_grad, state
from .interrupts import held
from .ops.views import stack
from .optim.optimizer import Optimizer
from .tensor import Tensor

_DEFAULT = {"cpu": dtypes.bfloat16, "wgpu": dtypes.float16}


def _device_type(device_type: str, where: str) -> str:
    kind = device_type.partition(":")[0] if isinstance(device_type, str) else device_type
    if kind not in LISTS:
        raise ValueError(f"[{where}] device_type is one of {', '.join(LISTS)}; got {device_type!r}")
    return kind


class autocast:
    """Inside, the operations on a device type choose their dtype: products the short one, sums, powers and losses float32.

    dtype: float16 or bfloat16 (default: float16 on wgpu, bfloat16 on cpu). enabled=False turns it off inside a region
    that has it on. cache_enabled: a parameter is cast once a region, not once a use. As a context manager or a
    decorator; what is in which list: autograd/cast.py. backward() is not subject to it, wherever it is called.
    ValueError for another device type or dtype.
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool = True):
        self.device_type = _device_type(device_type, "autocast")
        self.dtype = _DEFAULT[self.device_type] if dtype is None else dtypes.as_dtype(dtype)
        if self.dtype not in dtypes.SHORT:
            raise ValueError(f"[autocast] dtype is float16 or bfloat16; got {self.dtype}")
        self.enabled, self.cache_enabled = bool(enabled), bool(cache_enabled)
        self._before: list[Policy | None] = []

    def __enter__(self) -> autocast:
        outer = state.autocast
        self._before.append(outer)
        short = {} if outer is None else dict(outer.short)
        short.pop(self.device_type, None)
        if self.enabled:
            short[self.device_type] = self.dtype
        casts = {} if outer is None else outer.casts
        state.autocast = Policy(short, self.cache_enabled, casts) if short else None
        return self

    def __exit__(self, *_: Any) -> None:
        state.autocast = self._before.pop()

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device_type, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **kwargs)

        return inside


def is_autocast_enabled(device_type: str = "wgpu") -> bool:
    """Whether autocast is on for a device type in this thread."""
    kind = _device_type(device_type, "is_autocast_enabled")
    return state.autocast is not None and kind in state.autocast.short


def get_autocast_dtype(device_type: str = "wgpu") -> DType:
    """The short dtype that autocast uses, or would use by default, for a device type."""
    kind = _device_type(device_type, "get_autocast_dtype")
    return state.autocast.short[kind] if is_autocast_enabled(kind) else _DEFAULT[kind]


_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Multiplies the loss, and so every gradient, by a scale; divides the gradients by it before the optimizer's step.

    A step whose gradients are not all finite is left out, parameters and optimizer state untouched, and the scale falls
    by backoff_factor at update(); after growth_interval good steps in a row it grows by growth_factor.
    enabled=False: scale() and step() pass on what they get.
    """

    def __init__(self, device: str = "wgpu", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
        self._device = _device_type(device, "GradScaler")
        self._enabled = bool(enabled)
        if growth_factor <= 1 or not 0 < backoff_factor < 1:
            raise ValueError(f"[GradScaler] growth is above 1, backoff in (0, 1); got {growth_factor} and {backoff_factor}")
        if init_scale <= 0 or growth_interval < 1:
            raise ValueError(f"[GradScaler] init_scale and growth_interval are positive; got {init_scale} and {growth_interval}")
        self._scale, self._growth_factor, self._backoff_factor = float(init_scale), growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._stages: dict[Optimizer, str] = {}
        self._broken: dict[Optimizer, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """A loss, or those in an iterable, times the scale: float32 for one element of a short dtype, which would overflow."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            short = outputs.ndim == 0 and outputs.dtype in dtypes.SHORT
            return (outputs.float() if short else outputs) * self._scale
        if isinstance(outputs, Iterable):
            scaled = (self.scale(y) for y in outputs)
            return list(scaled) if isinstance(outputs, list) else tuple(scaled)
        raise TypeError(f"[GradScaler.scale] outputs are tensors; got {type(outputs).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, once, and note whether all are finite.

        ValueError for gradients of a short dtype, which lose what the scale saved; RuntimeError out of turn.
        """
        if not self._enabled:
            return
        stage = self._stages.get(optimizer, _READY)
        if stage is not _READY:
            what = "was called already" if stage is _UNSCALED else "comes before step()"
            raise RuntimeError(f"[GradScaler.unscale_] {what} for this optimizer since the last update()")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        short = {g.dtype.name for g in grads if g.dtype in dtypes.SHORT}
        if short:
            raise ValueError(
                f"[GradScaler.unscale_] gradients must be float32 or wider; got {', '.join(sorted(short))}. "
                "Keep the parameters in float32 and let autocast shorten them"
            )
        self._broken[optimizer] = _unscale(grads, 1 / self._scale)
        self._stages[optimizer] = _UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), after unscale_() unless that was called, and not at all when a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or kwargs:
            raise TypeError("[GradScaler.step] step() takes no closure: it would compute gradients that nobody has unscaled")
        if self._stages.get(optimizer) is _STEPPED:
            raise RuntimeError("[GradScaler.step] was called already for this optimizer since the last update()")
        with held:  # gradients and stages are as before, or the step is done
            if self._stages.get(optimizer, _READY) is _READY:
                self.unscale_(optimizer)
            self._stages[optimizer] = _STEPPED
            if not self._broken[optimizer]:
                return optimizer.step()
            optimizer.steps_skipped += 1
            return None

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the scale by how the steps since the last update went, or set it. RuntimeError when there were none."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._broken:
            raise RuntimeError("[GradScaler.update] there was no step() or unscale_() since the last update()")
        elif any(self._broken.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown = self._scale * self._growth_factor
                self._scale = grown if grown <= _LARGEST else self._scale
                self._growth_tracker = 0
        self._stages.clear()
        self._broken.clear()

    def get_scale(self) -> float:
        """The scale; 1 when not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale falls by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale falls by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps in a row the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps in a row the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict:
        """The scale and how it changes: plain data; nothing when not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}  # fmt: skip

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken. ValueError for other entries, as those of a scaler that was not enabled."""
        if not self._enabled:
            return
        own = self.state_dict()
        if set(state_dict) != set(own):
            raise ValueError(f"[GradScaler.load_state_dict] expected the entries {sorted(own)}; got {sorted(state_dict)}")
        for name, value in state_dict.items():
            setattr(self, name if name.startswith("_") else f"_{name}", value)


_LARGEST = float(np.finfo(np.float32).max)


@no_grad()
def _unscale(grads: list[Tensor], factor: float) -> bool:
    """Multiply gradients in place; whether one of them is not finite. One value is read back from a GPU, for all."""
    broken = False
    flags = []
    for g in grads:
        if not g.numel():
            continue
        g.mul_(factor)
        if g.array.__class__ is np.ndarray:
            broken = broken or not _finite(g.array)
        else:
            flags.append(g.isfinite().all())
    return broken or (bool(flags) and not bool(stack(flags).all()))


def _finite(a: np.ndarray) -> bool:
    """Whether all elements are finite: by their sum of squares, unless that overflows."""
    flat = a.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(float(np.dot(flat, flat))) or bool(np.isfinite(flat).all())
