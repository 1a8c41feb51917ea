"""Optimizers by Keras' names, with its defaults and formulas (keras.io/api/optimizers).

g is the gradient (clipped), lr the rate, t the number of the step from 1. Where a formula is ag.optim's, its code is;
the others are written for both devices as ag.optim's are: in place on NumPy arrays, one kernel a parameter on a GPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import optim
from ..optim.elementwise import Elementwise, average, maximum, put, sqrt
from . import naming, schedules
from .optimizer_base import Optimizer
from .optimizers_scaled import Adafactor, Lamb
from .schedules import LearningRateSchedule


class _Formula(Optimizer, Elementwise):
    """An optimizer whose formula() is elementwise: numbers() are its options and the rate."""

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate and the options, as formula() takes them."""
        return {"lr": group["lr"], **self.options}


class SGD(_Formula):
    """p = p + m with m = momentum * m - lr * g; nesterov: p = p + momentum * m - lr * g; without momentum p = p - lr * g."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **common: Any):
        if not 0 <= momentum <= 1:
            raise ValueError(f"[SGD] momentum must be in [0, 1]; got {momentum}")
        super().__init__(learning_rate, {"momentum": momentum, "nesterov": nesterov}, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The last step, with momentum."""
        return {"momentum": 0.0} if self.options["momentum"] else {}

    @staticmethod
    def formula(p: Any, g: Any, *m: Any, lr: float, momentum: float, nesterov: bool) -> None:
        """One step, in place."""
        if not m:
            p -= g * lr
            return
        step = m[0]
        step *= momentum
        step -= g * lr
        p += step * momentum - g * lr if nesterov else step


class RMSprop(_Formula):
    """p = p - b with v = rho v + (1 - rho) g^2 and d = lr g / sqrt(v + epsilon); b = d, or b = momentum b + d.

    centered: sqrt(v - a^2 + epsilon) with a = rho a + (1 - rho) g.
    """

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7,
                 centered: bool = False, **common: Any):  # fmt: skip
        options = {"rho": rho, "momentum": momentum, "epsilon": epsilon, "centered": centered}
        super().__init__(learning_rate, options, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The average of squares; the step with momentum; the average of gradients when centered."""
        o = self.options
        names = ["velocity"] + ["momentum"] * bool(o["momentum"]) + ["average_gradient"] * bool(o["centered"])
        return dict.fromkeys(names, 0.0)

    @staticmethod
    def formula(p: Any, g: Any, v: Any, *rest: Any, lr: float, rho: float, momentum: float, epsilon: float,
                centered: bool) -> None:  # fmt: skip
        """One step, in place."""
        average(v, g * g, rho)
        if centered:
            mean = average(rest[-1], g, rho)
            d = g * lr / sqrt(v - mean * mean + epsilon)
        else:
            d = g * lr / sqrt(v + epsilon)
        if momentum:
            b = rest[0]
            b *= momentum
            b += d
            d = b
        p -= d


class Adam(Optimizer, optim.Adam):
    """p = p - lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon), m = beta_1 m + (1 - beta_1) g, v of g^2 likewise.

    amsgrad: the largest v so far. (epsilon stands beside the uncorrected sqrt(v): "epsilon hat" of arXiv 1412.6980, section 2.)
    """

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 amsgrad: bool = False, **common: Any):  # fmt: skip
        options = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon, "amsgrad": amsgrad}
        engine = {"betas": (beta_1, beta_2), "eps": epsilon, "amsgrad": amsgrad, "weight_decay": 0.0}
        super().__init__(learning_rate, options, {**engine, "decoupled_weight_decay": False}, **common)

    def _numbers(self, t: int, group: dict) -> dict:
        """ag.optim.Adam's numbers with the epsilon that makes its formula Keras'."""
        numbers = super()._numbers(self.iterations + 1, group)
        return {**numbers, "eps": group["eps"] / math.sqrt(numbers["bias2"])}


class AdamW(Adam):
    """Adam with weight_decay 0.004: p = p - p * weight_decay * lr before each step."""

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float = 0.004, beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-7, amsgrad: bool = False, **common: Any):  # fmt: skip
        if weight_decay is None:
            raise ValueError("[AdamW] weight_decay is a number; got None")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **common)


class Adamax(_Formula):
    """p = p - lr / (1 - beta_1^t) m / (u + epsilon), m = beta_1 m + (1 - beta_1) g, u = max(beta_2 u, |g|)."""

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 **common: Any):  # fmt: skip
        super().__init__(learning_rate, {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The average of gradients and their largest size."""
        return {"momentum": 0.0, "norm": 0.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate corrected for the zeros at the start, and the options."""
        return {**self.options, "lr": group["lr"] / (1 - self.options["beta_1"] ** (self.iterations + 1))}

    @staticmethod
    def formula(p: Any, g: Any, m: Any, u: Any, *, lr: float, beta_1: float, beta_2: float, epsilon: float) -> None:
        """One step, in place."""
        average(m, g, beta_1)
        u *= beta_2
        put(u, maximum(u, abs(g)))
        p -= m / (u + epsilon) * lr


class Adagrad(_Formula):
    """p = p - lr g / sqrt(s + epsilon), s = s + g^2, which starts at initial_accumulator_value."""

    def __init__(self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7, **common: Any):
        options = {"initial_accumulator_value": initial_accumulator_value, "epsilon": epsilon}
        super().__init__(learning_rate, options, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The sum of squares."""
        return {"accumulator": self.options["initial_accumulator_value"]}

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate and epsilon."""
        return {"lr": group["lr"], "epsilon": self.options["epsilon"]}

    @staticmethod
    def formula(p: Any, g: Any, s: Any, *, lr: float, epsilon: float) -> None:
        """One step, in place."""
        s += g * g
        p -= g * lr / sqrt(s + epsilon)


class Adadelta(Optimizer, optim.Adadelta):
    """ag.optim.Adadelta's formula, with Keras' defaults."""

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **common: Any):
        engine = {"rho": rho, "eps": epsilon, "weight_decay": 0.0}
        super().__init__(learning_rate, {"rho": rho, "epsilon": epsilon}, engine, **common)


class Nadam(_Formula):
    """p = p - lr (u' m / (1 - U u') + (1 - u) g / (1 - U)) / (sqrt(v / (1 - beta_2^t)) + epsilon), m and v as in Adam,

    u = beta_1 (1 - 0.96^t / 2), u' the same of t + 1, U the product of all u so far. Dozat (ICLR workshop, 2016).
    """

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 **common: Any):  # fmt: skip
        self._product = (0, 1.0)
        super().__init__(learning_rate, {"beta_1": beta_1, "beta_2": beta_2, "epsilon": epsilon}, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The averages of gradients and of their squares."""
        return {"momentum": 0.0, "velocity": 0.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The weights of g and m in this step."""
        t, beta_1, lr = self.iterations + 1, self.options["beta_1"], group["lr"]
        now, later = (beta_1 * (1 - 0.5 * 0.96**k) for k in (t, t + 1))
        product = self._product_at(t)
        weights = {"of_m": lr * later / (1 - product * later), "of_g": lr * (1 - now) / (1 - product)}
        return {**self.options, **weights, "bias": 1 - self.options["beta_2"] ** t}

    def _product_at(self, t: int) -> float:
        """U at step t: of all steps, also those in which a parameter had no gradient."""
        at, product = self._product
        if at > t:
            at, product = 0, 1.0
        for k in range(at + 1, t + 1):
            if not product:  # after some thousand steps: so it stays
                break
            product *= self.options["beta_1"] * (1 - 0.5 * 0.96**k)
        self._product = (t, product)
        return product

    @staticmethod
    def formula(p: Any, g: Any, m: Any, v: Any, *, of_m: float, of_g: float, bias: float, beta_1: float, beta_2: float,
                epsilon: float) -> None:  # fmt: skip
        """One step, in place."""
        average(m, g, beta_1)
        average(v, g * g, beta_2)
        p -= (m * of_m + g * of_g) / (sqrt(v * (1 / bias)) + epsilon)


class Lion(_Formula):
    """p = p - lr sign(beta_1 m + (1 - beta_1) g), then m = beta_2 m + (1 - beta_2) g. Chen et al. (arXiv 2302.06675)."""

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **common: Any):
        if not 0 < beta_1 <= 1:
            raise ValueError(f"[Lion] beta_1 must be in (0, 1]; got {beta_1}")
        super().__init__(learning_rate, {"beta_1": beta_1, "beta_2": beta_2}, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The average of gradients."""
        return {"momentum": 0.0}

    @staticmethod
    def formula(p: Any, g: Any, m: Any, *, lr: float, beta_1: float, beta_2: float) -> None:
        """One step, in place."""
        direction = m * beta_1 + g * (1 - beta_1)
        p -= (np.sign(direction) if isinstance(direction, np.ndarray) else direction.sign()) * lr
        average(m, g, beta_2)


class Ftrl(_Formula):
    """Follow the regularised leader. With n' = n + g^2, q = -learning_rate_power and g' = g + 2 l2_shrinkage p,

        z = z + g' - (n'^q - n^q) / lr p      p = (clip(z, -l1, l1) - z) / (n'^q / lr + 2 (l2 + beta / (2 lr)))

    McMahan et al.: Ad Click Prediction (KDD 2013).
    """

    def __init__(self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5, initial_accumulator_value: float = 0.1,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
                 l2_shrinkage_regularization_strength: float = 0.0, beta: float = 0.0, **common: Any):  # fmt: skip
        options = {
            "learning_rate_power": learning_rate_power, "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength, "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength, "beta": beta,
        }  # fmt: skip
        if learning_rate_power > 0 or min(v for k, v in options.items() if k != "learning_rate_power") < 0:
            raise ValueError(f"[Ftrl] learning_rate_power must not be positive, the other options not negative; got {options}")
        super().__init__(learning_rate, options, {}, **common)

    def slots(self, group: dict) -> dict[str, float]:
        """The sum of squares n, and z."""
        return {"accumulator": self.options["initial_accumulator_value"], "linear": 0.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The letters of the formula."""
        o, lr = self.options, group["lr"]
        return {"lr": lr, "power": -o["learning_rate_power"], "l1": o["l1_regularization_strength"],
                "l2": o["l2_regularization_strength"] + (o["beta"] / (2 * lr) if o["beta"] else 0.0),
                "shrinkage": o["l2_shrinkage_regularization_strength"]}  # fmt: skip

    @staticmethod
    def formula(p: Any, g: Any, n: Any, z: Any, *, lr: float, power: float, l1: float, l2: float, shrinkage: float) -> None:
        """One step, in place."""
        before = n**power
        n += g * g
        after = n**power
        z += g + p * (2 * shrinkage) - (after - before) * (1 / lr) * p
        put(p, (z.clip(-l1, l1) - z) / (after * (1 / lr) + 2 * l2))


_CLASSES = (SGD, RMSprop, Adam, AdamW, Adamax, Adagrad, Adadelta, Adafactor, Nadam, Ftrl, Lion, Lamb)
TABLE: dict[str, Any] = {c.__name__.lower(): c for c in _CLASSES}


def get(identifier: Any) -> Optimizer:
    """The optimizer of a name ("adam") or a config, or what is one. ValueError: unknown; TypeError: something else."""
    if isinstance(identifier, dict):
        return deserialize(identifier)
    found = naming.get(identifier, TABLE, "optimizer") if isinstance(identifier, str | type) else identifier
    if not isinstance(found, Optimizer):
        hint = "keras.optimizers' get their weights from the model, when it is built; ag.optim's are for loops of your own."
        raise TypeError(f"[optimizer] a name, a config or a keras.optimizers object; got {type(found).__name__}. {hint}")
    return found


def serialize(optimizer: Optimizer) -> dict:
    """{"class_name", "config"}, from which deserialize makes it again, without its state."""
    return naming.serialize(optimizer, {})


def deserialize(config: Any, custom_objects: dict | None = None) -> Any:
    """The optimizer of a config."""
    return naming.deserialize(config, TABLE, "optimizer", custom_objects)


__all__ = [
    "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "LearningRateSchedule", "Lion",
    "Nadam", "Optimizer", "RMSprop", "deserialize", "get", "schedules", "serialize",
]  # fmt: skip
