"""L-BFGS: quasi-Newton steps from the last gradients, with an optional line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..grad_mode import enable_grad, no_grad
from ..interrupts import held
from ..ops.views import cat
from ..tensor import Tensor
from .line_search import Trial, strong_wolfe
from .optimizer import Optimizer, state_dtype, with_plain_rate

_MEMORY = ("old_dirs", "old_stps", "ro")
_VECTORS = ("d", "prev_flat_grad")


class LBFGS(Optimizer):
    """Up to max_iter steps x = x + t * d a call, d = -H g with H from the last history_size pairs of steps and changes of g.

    t = lr, at the very first step lr * min(1, 1 / |g|_1), with line_search_fn="strong_wolfe" where the line search ends.
    A call ends early where the largest |g| <= tolerance_grad, where step or loss change by less than
    tolerance_change, and after max_eval (1.25 * max_iter) calls of closure. All parameters in one group, on one device.
    step(closure) needs its closure: it clears the gradients, computes the loss, calls backward() and returns the loss.
    Nocedal: Updating Quasi-Newton Matrices with Limited Storage (Math. Comp. 35, 1980).
    """

    def __init__(self, params: Any, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None):  # fmt: skip
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        options |= {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        super().__init__(params, {**options, "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError(f"[LBFGS] all parameters are in one group; got {len(self.param_groups)} groups")

    def check(self, group: dict) -> None:
        """Raise for options out of range."""
        super().check(group)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(f'[LBFGS] line_search_fn is None or "strong_wolfe"; got {group["line_search_fn"]!r}')

    def step(self, closure: Callable | None = None) -> Any:
        """Up to max_iter steps; returns the loss before the first. ValueError without a closure."""
        closure = self._before_step(closure)
        if closure is None:
            raise ValueError("[LBFGS] step(closure) needs a closure, which it calls more than once")
        with held, no_grad():  # meanwhile the parameters are at points that are being tried
            first = self._steps(closure)
        self._after_step(closure)
        return first

    def _steps(self, closure: Callable) -> Any:
        group = with_plain_rate(self.param_groups[0])
        state = self.state.setdefault(group["params"][0], {})
        if not state:
            state.update({"func_evals": 0, "n_iter": 0, **{name: [] for name in _MEMORY}, "H_diag": 1.0})
        first = self._evaluate(closure)
        state["func_evals"] += 1
        loss, g = float(first), self._flat_gradient()
        calls = 1
        for i in range(group["max_iter"]):
            if _top(g) <= group["tolerance_grad"]:
                break
            slope = self._direct(state, g, group)
            if slope > -group["tolerance_change"]:
                break
            state["prev_loss"], before = loss, calls
            last = i + 1 == group["max_iter"]
            loss, g, calls = self._move(closure, state, Trial(0.0, loss, g, slope), calls, last)
            state["func_evals"] += calls - before
            change = _top(state["d"]) * abs(state["t"])
            small = change <= group["tolerance_change"] or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            if calls >= group["max_eval"] or small:
                break
        self.steps_taken += 1
        return first

    def _direct(self, state: dict, g: Tensor, group: dict) -> float:
        """Put the next direction and the first length to try into the state; the slope along it."""
        if state["n_iter"] == 0:
            d, t = -g, min(1.0, 1.0 / float(g.abs().sum())) * group["lr"]
        else:
            remember(state, g, group["history_size"])
            d, t = newton(state, g), group["lr"]
        state["n_iter"] += 1
        state.update({"d": d, "t": t, "prev_flat_grad": g})
        return _dot(g, d)

    def _move(self, closure: Callable, state: dict, here: Trial, calls: int, last: bool) -> tuple[float, Tensor, int]:
        """Go along the direction; the loss and gradient where that ends, and the calls of closure so far."""
        group, d = self.param_groups[0], state["d"]
        if group["line_search_fn"] is None:
            self._add(d, state["t"])
            if last:  # nobody will look at the loss there
                return here.loss, here.gradient, calls
            return float(self._evaluate(closure)), self._flat_gradient(), calls + 1
        start = [p.detach().clone() for p in group["params"]]

        def go(t: float) -> Trial:
            self._add(d, t)
            loss, g = float(self._evaluate(closure)), self._flat_gradient()
            for p, value in zip(group["params"], start, strict=True):
                p.copy_(value)
            return Trial(t, loss, g, _dot(g, d))

        found, tried = strong_wolfe(go, here, state["t"], _top(d), group["max_eval"] - calls)
        state["t"] = found.t
        self._add(d, found.t)
        return found.loss, found.gradient, calls + tried

    def _evaluate(self, closure: Callable) -> Any:
        with enable_grad():
            return closure()

    def _flat_gradient(self) -> Tensor:
        parts = []
        for p in self.param_groups[0]["params"]:
            g = p.detach().zeros_like() if p.grad is None else self._gradient(p, self.param_groups[0])
            parts.append(g.detach().to(state_dtype(p)).reshape(-1))
        return cat(parts) if len(parts) > 1 else parts[0].clone()

    def _add(self, d: Tensor, t: float) -> None:
        params = self.param_groups[0]["params"]
        for p, part in zip(params, d.split([p.numel() for p in params]), strict=True):
            p.add_((part.reshape(*p.shape) * t).to(p.dtype))

    def _loaded(self, p: Tensor, entry: dict) -> dict:
        """The saved state, copied to where the parameters are."""
        size = sum(q.numel() for q in self._all())

        def vector(value: Tensor) -> Tensor:
            if value.shape != (size,):
                raise ValueError(f"[LBFGS.load_state_dict] its vectors must have shape {(size,)}; got {value.shape}")
            return value.detach().to(p.device, state_dtype(p)).clone()

        found: dict = {}
        for key, value in entry.items():
            if key in _MEMORY:
                found[key] = [float(v) if key == "ro" else vector(v) for v in value]
            elif key in _VECTORS:
                found[key] = vector(value)
            elif key != "al":  # a place to work in, which PyTorch keeps
                found[key] = int(value) if key in ("func_evals", "n_iter") else float(value)
        return found


def remember(state: dict, g: Tensor, most: int) -> None:
    """Enter the last step and what it changed in the gradient, unless the curvature is not positive."""
    y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = _dot(y, s)
    if curvature <= 1e-10:
        return
    for name, value in zip(_MEMORY, (y, s, 1 / curvature), strict=True):
        state[name] = [*state[name], value][-most:]
    state["H_diag"] = curvature / _dot(y, y)


def newton(state: dict, g: Tensor) -> Tensor:
    """-H g by the two loops over the remembered pairs."""
    pairs = list(zip(*(state[name] for name in _MEMORY), strict=True))
    d, weights = -g, []
    for y, s, rho in reversed(pairs):
        weights.append(_dot(s, d) * rho)
        d = d - y * weights[-1]
    d = d * state["H_diag"]
    for (y, s, rho), weight in zip(pairs, reversed(weights), strict=True):
        d = d + s * (weight - _dot(y, d) * rho)
    return d


def _dot(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum())


def _top(x: Tensor) -> float:
    return float(x.abs().amax()) if x.numel() else -math.inf
