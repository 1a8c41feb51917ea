"""Optimizer: what Keras' optimizers share around a formula: rate, clipping, weight decay, accumulation, state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..grad_mode import enable_grad, no_grad
from ..optim.elementwise import average
from ..optim.optimizer import Optimizer as Engine
from ..optim.optimizer import state_dtype
from ..tensor import Tensor
from . import naming, schedules

COMMON: dict[str, Any] = {
    "weight_decay": None, "clipnorm": None, "clipvalue": None, "global_clipnorm": None, "use_ema": False, "ema_momentum": 0.99,
    "ema_overwrite_frequency": None, "loss_scale_factor": None, "gradient_accumulation_steps": None, "name": None,
}  # fmt: skip
CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")


class Optimizer(Engine):
    """Base of Keras' optimizers: an ag.optim.Optimizer that gets its parameters with build() or the first apply().

    learning_rate: a number, a schedule (keras.optimizers.schedules) or a function without arguments.
    weight_decay: p = p - p * weight_decay * lr before each step. One of clipnorm (the norm of each gradient), clipvalue
    (each element) and global_clipnorm (the norm of all). gradient_accumulation_steps: so many apply() calls make one
    step, with the mean of their gradients. Constraints are the layers': model.apply_constraints() after a step (fit() does).
    loss_scale_factor: gradients are those of scale_loss(loss), the loss times this (fit() takes it), and are divided by it.

    use_ema: after every apply() a = ema_momentum a + (1 - ema_momentum) p, which starts as p after the first step. The
    parameters become a every ema_overwrite_frequency steps, and with finalize_variable_values(), as at the end of fit().
    ValueError for unknown options, options out of range, and more than one of the three clips.
    """

    name: str
    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None

    def __init__(self, learning_rate: Any, options: dict, defaults: dict, **common: Any):
        name = type(self).__name__
        unknown = set(common) - set(COMMON)
        if unknown:
            there = sorted({"learning_rate", *options, *COMMON})
            raise ValueError(f"[{name}] unknown options {sorted(unknown)}; there are {there}")
        self.options = options
        for key, usual in COMMON.items():
            setattr(self, key, common.get(key, usual))
        self.name = self.name or naming.snake_case(name)
        self._check_common(name)
        if not callable(learning_rate) and not (isinstance(learning_rate, int | float) and learning_rate >= 0):
            raise ValueError(f"[{name}] learning_rate is a number from 0 on, a schedule or a function; got {learning_rate!r}")
        self._rate = learning_rate if callable(learning_rate) else float(learning_rate)
        self.defaults = {"lr": 0.0, **defaults}
        self.param_groups: list[dict] = []
        self.state: dict[Tensor, dict] = {}
        self.steps_taken = self._calls = 0
        self._gathered: dict[Tensor, Tensor] = {}
        self._averages: dict[Tensor, Tensor] = {}
        self._not_decayed: set[Tensor] = set()
        self.check({"params": [], **self.defaults})

    def _check_common(self, name: str) -> None:
        clips = {k: getattr(self, k) for k in CLIPS if getattr(self, k) is not None}
        if len(clips) > 1 or any(not _is_number(v) or not v > 0 for v in clips.values()):
            raise ValueError(f"[{name}] at most one of {', '.join(CLIPS)}, positive; got {clips}")
        for key, least in ("gradient_accumulation_steps", 2), ("ema_overwrite_frequency", 1):
            steps = getattr(self, key)
            if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool) or steps < least):
                raise ValueError(f"[{name}] {key} is an integer from {least} on; got {steps!r}")
        if self.weight_decay is not None and not _is_number(self.weight_decay):
            raise ValueError(f"[{name}] weight_decay is a number; got {self.weight_decay!r}")
        if self.loss_scale_factor is not None and not (_is_number(self.loss_scale_factor) and self.loss_scale_factor > 0):
            raise ValueError(f"[{name}] loss_scale_factor is a positive number; got {self.loss_scale_factor!r}")
        if not isinstance(self.use_ema, bool) or not (_is_number(self.ema_momentum) and 0 <= self.ema_momentum <= 1):
            raise ValueError(
                f"[{name}] use_ema is a bool and ema_momentum lies in [0, 1]; got {self.use_ema!r} and {self.ema_momentum!r}"
            )
        if self.ema_overwrite_frequency is not None and not self.use_ema:
            raise ValueError(f"[{name}] ema_overwrite_frequency={self.ema_overwrite_frequency} needs use_ema=True")

    # -- what training uses -------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """Whether it has parameters."""
        return bool(self.param_groups)

    @property
    def variables(self) -> list[Tensor]:
        """The tensors kept beside the parameters."""
        kept = [t for entry in self.state.values() for t in entry.values() if isinstance(t, Tensor)]
        return kept + list(self._averages.values())

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return self._calls // (self.gradient_accumulation_steps or 1)

    @property
    def learning_rate(self) -> float:
        """The rate of the next step; it can be set unless it is a schedule."""
        if isinstance(self._rate, float):
            return self._rate
        return float(self._rate(self._calls) if isinstance(self._rate, schedules.LearningRateSchedule) else self._rate())

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if isinstance(self._rate, schedules.LearningRateSchedule) and not callable(value):
            raise TypeError(f"[{type(self).__name__}] learning_rate is a schedule, which cannot be set to a number. "
                            "Make the optimizer with a number instead")  # fmt: skip
        self._rate = value if callable(value) else float(value)

    def build(self, variables: Iterable[Tensor]) -> None:
        """Take these parameters, once."""
        if not self.built:
            self.add_param_group({"params": list(variables)})

    def exclude_from_weight_decay(self, var_list: Iterable[Tensor]) -> None:
        """Do not decay these parameters."""
        self._not_decayed |= set(var_list)

    def apply(self, grads: Iterable[Tensor | None], trainable_variables: Iterable[Tensor] | None = None) -> None:
        """One step with these gradients; None leaves a parameter as it is.

        ValueError when there is no gradient at all, or one for a parameter it was not built with.
        """
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
            self.build(trainable_variables)
        mine = [p for group in self.param_groups for p in group["params"]]
        given = mine if trainable_variables is None else trainable_variables
        grads = list(grads)
        if not mine or len(grads) != len(given) or not set(given) <= set(mine):
            hint = "Did `trainable` change? Then compile() anew."
            raise ValueError(f"[{type(self).__name__}] a gradient for each of the {len(mine)} parameters it was built with; "
                             f"got {len(grads)} gradients for {len(given)} parameters. {hint}")  # fmt: skip
        rows = [(p, g) for p, g in zip(given, grads) if g is not None]
        if not rows:
            raise ValueError(f"[{type(self).__name__}] no parameter has a gradient; was backward() called?")
        with no_grad():
            before = self.iterations
            self._apply(rows if self.loss_scale_factor is None else [(p, g * (1 / self.loss_scale_factor)) for p, g in rows])
            if self.use_ema:
                self._average(before)

    def _average(self, before: int) -> None:
        """The moving averages after an apply(), before which there were so many steps; and the parameters from them, when due."""
        for p in self._all():
            if p not in self._averages or not before:
                self._averages[p] = p.detach().to(dtype=state_dtype(p)).clone()
            else:
                average(self._averages[p], p.detach().to(dtype=state_dtype(p)), self.ema_momentum)
        if self.ema_overwrite_frequency and not (before + 1) % self.ema_overwrite_frequency:
            self.finalize_variable_values(self._all())

    def finalize_variable_values(self, var_list: Iterable[Tensor]) -> None:
        """With use_ema: these parameters become their averages (where there are any: after the first apply())."""
        with no_grad():
            for p in var_list:
                if p in self._averages:
                    p.copy_(self._averages[p].to(p.device, p.dtype))

    def scale_loss(self, loss: Tensor) -> Tensor:
        """loss times loss_scale_factor, whose gradients apply() takes."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Tensor | None, Tensor]]) -> int:
        """apply() with (gradient, parameter) pairs; the number of steps taken."""
        pairs = list(grads_and_vars)
        self.apply([g for g, _ in pairs], [p for _, p in pairs])
        return self.iterations

    def step(self, closure: Callable | None = None) -> Any:
        """apply() with the gradients that backward() left, as ag.optim's optimizers do."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self.apply([p.grad for group in self.param_groups for p in group["params"]])
        return loss

    def _apply(self, rows: list[tuple[Tensor, Tensor]]) -> None:
        each, self._calls = self.gradient_accumulation_steps, self._calls + 1
        if each:
            for p, g in rows:
                self._gathered[p] = self._gathered[p].to(g.device) + g if p in self._gathered else g.detach().clone()
            if self._calls % each:
                return
            rows = [(p, g * (1 / each)) for p, g in self._gathered.items()]
            self._gathered.clear()
        self._calls -= 1  # the formulas and the schedule count the steps before this one
        rate, group = self.learning_rate, self.param_groups[0]
        rows = self._clipped(rows)
        self._follow([p for p, _ in rows])
        if self.weight_decay:
            for p, _ in rows:
                if p not in self._not_decayed:
                    p.mul_(1 - self.weight_decay * rate)
        group["lr"] = rate
        self.update_group([(p, g, self.state.setdefault(p, {})) for p, g in rows], group)
        self._calls += 1
        self.steps_taken += 1

    def _clipped(self, rows: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        if self.clipvalue is not None:
            return [(p, g.clamp(-self.clipvalue, self.clipvalue)) for p, g in rows]
        if self.clipnorm is not None:
            return [(p, g * self.clipnorm / g.square().sum().sqrt().clamp(min=self.clipnorm)) for p, g in rows]
        if self.global_clipnorm is None:
            return rows
        total = rows[0][1].square().sum()
        for _, g in rows[1:]:
            total = total + g.square().sum().to(total.dtype)
        scale = self.global_clipnorm / total.sqrt().clamp(min=self.global_clipnorm)
        return [(p, g * scale.to(g.dtype)) for p, g in rows]

    # -- saving -------------------------------------------------------------------------------------

    def get_config(self) -> dict:
        """What from_config makes an equal optimizer of (without its state)."""
        rate: Any = self._rate
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = schedules.serialize(rate)
        elif callable(rate):
            raise TypeError(f"[{type(self).__name__}] a learning_rate that is a function has no config; use a schedule")
        return {"learning_rate": rate, **self.options, **{key: getattr(self, key) for key in COMMON}}

    @classmethod
    def from_config(cls, config: dict, custom_objects: dict | None = None) -> Optimizer:
        """The optimizer that get_config() describes."""
        config = dict(config)
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = schedules.deserialize(config["learning_rate"], custom_objects)
        return cls(**config)

    def state_dict(self) -> dict:
        """As ag.optim's, with the number of apply() calls, the rate if it is a number, and gradients not yet applied."""
        number = {p: i for i, p in enumerate(self._all())}
        own = {"calls": self._calls, "learning_rate": self._rate if isinstance(self._rate, float) else None}
        kept = {"gathered": self._gathered, "averages": self._averages}
        return {**super().state_dict(), **own, **{k: {number[p]: t for p, t in v.items()} for k, v in kept.items()}}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where state_dict() was taken; it must be built. ValueError when groups, parameters or shapes differ."""
        super().load_state_dict({k: state_dict[k] for k in ("state", "param_groups")})
        self._calls = int(state_dict["calls"])
        if state_dict["learning_rate"] is not None:
            self._rate = float(state_dict["learning_rate"])
        mine = list(self._all())
        self._gathered, self._averages = (
            {mine[i]: t.to(mine[i].device) for i, t in state_dict.get(key, {}).items()} for key in ("gathered", "averages")
        )

    def __repr__(self) -> str:
        common = {k: v for k, usual in COMMON.items() if k != "name" and (v := getattr(self, k)) != usual}
        options = {"learning_rate": self._rate, **self.options, **common}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in options.items())})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
