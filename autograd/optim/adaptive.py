"""Optimizers that scale each element's step by what its gradients have been."""

from __future__ import annotations

import math
from typing import Any

from .elementwise import Elementwise, average, check_betas, decayed, maximum, put, single, sqrt
from .optimizer import require


class Adagrad(Elementwise):
    """p = p - lr / (1 + (t - 1) * lr_decay) * g' / (sqrt(s) + eps), with g' = g + weight_decay * p and s = s + g'^2.

    s starts at initial_accumulator_value. Duchi, Hazan, Singer: Adaptive Subgradient Methods (JMLR 12, 2011).
    """

    def __init__(self, params: Any, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "initial_accumulator_value": initial_accumulator_value, "maximize": maximize}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        for name in ("lr_decay", "initial_accumulator_value", "eps"):
            require(self, group, name, 0)

    def slots(self, group: dict) -> dict[str, float]:
        """The sum of squares."""
        return {"sum": group["initial_accumulator_value"]}

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate at this step, eps and weight decay."""
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        return {"lr": rate, "eps": group["eps"], "weight_decay": group["weight_decay"]}

    @staticmethod
    def formula(p: Any, g: Any, s: Any, *, lr: float, eps: float, weight_decay: float) -> None:
        """One step, in place."""
        g = decayed(p, g, weight_decay)
        s += g * g
        p -= g / (sqrt(s) + eps) * lr


class Adadelta(Elementwise):
    """p = p - lr * d, with g' = g + weight_decay * p and

        v = rho * v + (1 - rho) * g'^2
        d = sqrt(u + eps) / sqrt(v + eps) * g'
        u = rho * u + (1 - rho) * d^2

    Zeiler: ADADELTA (arXiv 1212.5701).
    """

    def __init__(self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
                 maximize: bool = False, **how: Any):  # fmt: skip
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        require(self, group, "eps", 0)
        require(self, group, "rho", 0, math.nextafter(1, 2))

    def slots(self, group: dict) -> dict[str, float]:
        """Averages of the squares of gradients and of steps."""
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The options."""
        return {name: group[name] for name in ("lr", "rho", "eps", "weight_decay")}

    @staticmethod
    def formula(p: Any, g: Any, v: Any, u: Any, *, lr: float, rho: float, eps: float, weight_decay: float) -> None:
        """One step, in place."""
        g = decayed(p, g, weight_decay)
        average(v, g * g, rho)
        d = sqrt(u + eps) / sqrt(v + eps) * g
        average(u, d * d, rho)
        p -= d * lr


class RMSprop(Elementwise):
    """p = p - lr * d, with g' = g + weight_decay * p and

        v = alpha * v + (1 - alpha) * g'^2
        s = sqrt(v) + eps; centered: sqrt(v - a^2) + eps, with a = alpha * a + (1 - alpha) * g'
        d = g' / s; with momentum d = b = momentum * b + g' / s

    Tieleman, Hinton: Lecture 6.5 (Coursera, 2012); centered: Graves (arXiv 1308.0850).
    """

    def __init__(self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
                 momentum: float = 0.0, centered: bool = False, *, maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        super().__init__(params, {**options, "weight_decay": weight_decay, "maximize": maximize}, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        for name in ("alpha", "momentum", "eps"):
            require(self, group, name, 0)

    def slots(self, group: dict) -> dict[str, float]:
        """The average of squares; the step with momentum; the average of gradients when centered."""
        names = ["square_avg"] + ["momentum_buffer"] * bool(group["momentum"]) + ["grad_avg"] * bool(group["centered"])
        return dict.fromkeys(names, 0.0)

    def numbers(self, group: dict, state: dict) -> dict:
        """The options."""
        return {name: group[name] for name in ("lr", "alpha", "eps", "weight_decay", "momentum")}

    @staticmethod
    def formula(p: Any, g: Any, v: Any, *rest: Any, lr: float, alpha: float, eps: float, weight_decay: float,
                momentum: float) -> None:  # fmt: skip
        """One step, in place."""
        g = decayed(p, g, weight_decay)
        average(v, g * g, alpha)
        if len(rest) > bool(momentum):
            mean = average(rest[-1], g, alpha)
            d = g / (sqrt(v - mean * mean) + eps)
        else:
            d = g / (sqrt(v) + eps)
        if momentum:
            b = rest[0]
            b *= momentum
            b += d
            d = b
        p -= d * lr


class Adamax(Elementwise):
    """p = p - lr / (1 - beta1^t) * m / u, with g' = g + weight_decay * p and

        m = beta1 * m + (1 - beta1) * g'
        u = max(beta2 * u, |g'| + eps)

    Kingma, Ba: Adam (arXiv 1412.6980), section 7.1.
    """

    def __init__(self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, *, maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        check_betas(self, group)

    def slots(self, group: dict) -> dict[str, float]:
        """The average of gradients and their largest size."""
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate, corrected for the zeros at the start, and the options."""
        beta1, beta2 = group["betas"]
        rate = group["lr"] / (1 - beta1 ** state["step"])
        return {"lr": rate, "beta1": beta1, "beta2": beta2, "eps": group["eps"], "weight_decay": group["weight_decay"]}

    @staticmethod
    def formula(p: Any, g: Any, m: Any, u: Any, *, lr: float, beta1: float, beta2: float, eps: float,
                weight_decay: float) -> None:  # fmt: skip
        """One step, in place."""
        g = decayed(p, g, weight_decay)
        average(m, g, beta1)
        u *= beta2
        put(u, maximum(u, abs(g) + eps))
        p -= m / u * lr


class _Decoupled(Elementwise):
    """What NAdam and RAdam share: Adam's two averages, and weight decay on g or on p itself."""

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        check_betas(self, group)

    def slots(self, group: dict) -> dict[str, float]:
        """The averages of gradients and of their squares."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    @staticmethod
    def averages(p: Any, g: Any, m: Any, v: Any, beta1: float, beta2: float, weight_decay: float, shrink: float) -> Any:
        """Decay p (by the factor `shrink`) or g, bring m and v up to date; the gradient as decayed."""
        if shrink != 1:
            p *= shrink
        g = decayed(p, g, weight_decay)
        average(m, g, beta1)
        average(v, g * g, beta2)
        return g

    @staticmethod
    def decay(group: dict) -> dict:
        """The numbers of averages()."""
        apart, decay = group["decoupled_weight_decay"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        shrink = 1 - group["lr"] * decay if apart else 1.0
        return {"beta1": beta1, "beta2": beta2, "weight_decay": 0.0 if apart else decay, "shrink": shrink}


class NAdam(_Decoupled):
    """p = p - (lr * (1 - mu_t) / (1 - M_t) * g' + lr * mu_{t+1} / (1 - M_{t+1}) * m) / (sqrt(v / (1 - beta2^t)) + eps)

    with g', m and v of Adam, mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2) and M_t = mu_1 * … * mu_t.
    decoupled_weight_decay: p = p * (1 - lr * weight_decay) before the step, g' = g.
    Dozat: Incorporating Nesterov Momentum into Adam (ICLR workshop, 2016).
    """

    def __init__(self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
                 maximize: bool = False, **how: Any):  # fmt: skip
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        options |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, options, how)

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        require(self, group, "momentum_decay", 0)

    plain = ("step", "mu_product")

    def start(self, group: dict) -> dict[str, Any]:
        """No steps, and an empty product."""
        return {"step": 0, "mu_product": 1.0}

    def numbers(self, group: dict, state: dict) -> dict:
        """The weights of g' and m in this step."""
        t, lr, beta1 = state["step"], group["lr"], group["betas"][0]
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (t, t + 1))
        state["mu_product"] = single(state["mu_product"] * single(now))  # the product of two float32 is exact
        product = state["mu_product"]
        weights = {"of_g": lr * (1 - now) / (1 - product), "of_m": lr * later / (1 - product * later)}
        return {**self.decay(group), **weights, "eps": group["eps"], "bias2": 1 - group["betas"][1] ** t}

    @staticmethod
    def formula(p: Any, g: Any, m: Any, v: Any, *, beta1: float, beta2: float, weight_decay: float, shrink: float, of_g: float,
                of_m: float, eps: float, bias2: float) -> None:  # fmt: skip
        """One step, in place."""
        g = _Decoupled.averages(p, g, m, v, beta1, beta2, weight_decay, shrink)
        p -= (g * of_g + m * of_m) / (sqrt(v * (1 / bias2)) + eps)


class RAdam(_Decoupled):
    """p = p - lr * m / (1 - beta1^t) * r * sqrt(1 - beta2^t) / (sqrt(v) + eps), with g', m and v of Adam,

        R = 2 / (1 - beta2) - 1      rho = R - 2 * t * beta2^t / (1 - beta2^t)
        r = sqrt((rho - 4) * (rho - 2) * R / ((R - 4) * (R - 2) * rho))

    and p = p - lr * m / (1 - beta1^t) while rho <= 5, when v says too little yet.
    decoupled_weight_decay: p = p * (1 - lr * weight_decay) before the step, g' = g.
    Liu et al.: On the Variance of the Adaptive Learning Rate (arXiv 1908.03265).
    """

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False,
                 **how: Any):  # fmt: skip
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay}, how)

    def numbers(self, group: dict, state: dict) -> dict:
        """The rate, and the factor of 1 / (sqrt(v) + eps): 0 while the plain step is taken."""
        t, (beta1, beta2) = state["step"], group["betas"]
        bias2 = 1 - beta2**t
        top = 2 / (1 - beta2) - 1
        rho = top - 2 * t * beta2**t / bias2
        factor = 0.0
        if rho > 5:
            factor = math.sqrt((rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho) * bias2)
        return {**self.decay(group), "lr": group["lr"] / (1 - beta1**t), "eps": group["eps"], "factor": factor}

    @staticmethod
    def formula(p: Any, g: Any, m: Any, v: Any, *, beta1: float, beta2: float, weight_decay: float, shrink: float, lr: float,
                eps: float, factor: float) -> None:  # fmt: skip
        """One step, in place."""
        _Decoupled.averages(p, g, m, v, beta1, beta2, weight_decay, shrink)
        p -= m / (sqrt(v) + eps) * (lr * factor) if factor else m * lr
