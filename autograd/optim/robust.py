"""Optimizers that look at signs (Rprop) and that average what they pass (ASGD)."""

from __future__ import annotations

from typing import Any

from .elementwise import Elementwise, decayed, put, single, where
from .optimizer import require


class Rprop(Elementwise):
    """p = p - sign(g) * s, each element with a step size s of its own, which starts at lr:

        s = s * etas[1] where g agrees in sign with the gradient before, s * etas[0] where it does not;
        there g counts as 0, in this step and as the gradient before of the next. s stays within step_sizes.

    Riedmiller, Braun: A Direct Adaptive Method for Faster Backpropagation Learning (ICNN, 1993).
    """

    def __init__(self, params: Any, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, maximize: bool = False, **how: Any):  # fmt: skip
        super().__init__(params, {"lr": lr, "etas": tuple(etas), "step_sizes": tuple(step_sizes), "maximize": maximize}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        require(self, group, "lr", 0)
        low, high = group["etas"]
        if not 0 < low < 1 < high:
            raise ValueError(f"[Rprop] etas are a number in (0, 1) and one above 1; got {group['etas']}")
        require(self, group, "step_sizes", 0)

    def slots(self, group: dict) -> dict[str, float]:
        """The gradient before, and the step sizes."""
        return {"prev": 0.0, "step_size": group["lr"]}

    def numbers(self, group: dict, state: dict) -> dict:
        """The options."""
        (low, high), (least, most) = group["etas"], group["step_sizes"]
        return {"low": low, "high": high, "least": least, "most": most}

    @staticmethod
    def formula(p: Any, g: Any, before: Any, s: Any, *, low: float, high: float, least: float, most: float) -> None:
        """One step, in place."""
        turned = g * before
        size = where(turned > 0, s * high, where(turned < 0, s * low, s))
        put(s, where(size < least, least, where(size > most, most, size)))
        g = where(turned < 0, 0.0, g)
        p -= where(g > 0, s, where(g < 0, -s, g))
        put(before, g)


class ASGD(Elementwise):
    """p = p * (1 - lambd * eta) - eta * g', with g' = g + weight_decay * p; state["ax"] averages p:

        ax = ax + mu * (p - ax)      eta = lr / (1 + lambd * lr * t)^alpha      mu = 1 / max(1, t - t0)

    Polyak, Juditsky: Acceleration of Stochastic Approximation by Averaging (SIAM J. Control 30, 1992).
    """

    def __init__(self, params: Any, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0.0, *, maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize}, how)

    def slots(self, group: dict) -> dict[str, float]:
        """The average."""
        return {"ax": 0.0}

    plain = ("step", "eta", "mu")

    def start(self, group: dict) -> dict[str, Any]:
        """No steps, the first rate, and an average that is p."""
        return {"step": 0, "eta": single(group["lr"]), "mu": 1.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate and the weight of this step; those of the next go into the state."""
        numbers = {"eta": state["eta"], "mu": state["mu"], "lambd": group["lambd"], "weight_decay": group["weight_decay"]}
        t, lr = state["step"], group["lr"]
        state["eta"] = single(lr / (1 + group["lambd"] * lr * t) ** group["alpha"])
        state["mu"] = single(1 / max(1, t - group["t0"]))
        return numbers

    @staticmethod
    def formula(p: Any, g: Any, ax: Any, *, eta: float, mu: float, lambd: float, weight_decay: float) -> None:
        """One step, in place."""
        g = decayed(p, g, weight_decay)
        p *= 1 - lambd * eta
        p -= g * eta
        if mu == 1:
            put(ax, p, fresh=False)
        else:
            ax += (p - ax) * mu
