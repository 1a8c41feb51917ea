"""Gradient formulas held against central differences, in float64: gradcheck for the first order, gradgradcheck for
the second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .grad_mode import enable_grad
from .tape import grad
from .tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """A gradient that is wrong; the message says where, and both values."""


def gradcheck(func: Callable, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, fast_mode: bool = False, nondet_tol: float = 0.0) -> bool:  # fmt: skip
    """Whether func's gradients agree with central differences: |analytic - numerical| <= atol + rtol * |numerical|.

    inputs: a tensor or a tuple of arguments. Those that require grad must be float64 on the CPU; each of their
    elements is moved by eps and put back bit for bit. What does not require grad is left alone.
    fast_mode: compare along one random direction for each input and output (drawn from a generator of its own);
    only where that differs look at every element.
    nondet_tol: by how much two runs of func and its gradient may differ.

    GradcheckError (or False without raise_exception) names the input, the output, the index and both values.
    TypeError for inputs of another dtype, ValueError for ones that cannot be moved one element at a time.
    """
    return _verdict(_Check(func, inputs, eps, atol, rtol, nondet_tol), fast_mode, raise_exception)


def gradgradcheck(func: Callable, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, raise_exception: bool = True, fast_mode: bool = False,
                  nondet_tol: float = 0.0) -> bool:  # fmt: skip
    """Whether the gradients of func's gradients agree with central differences, with respect to inputs and seeds.

    grad_outputs: the seeds, one for each output that requires grad; drawn from a generator of its own by default.
    The rest is as in gradcheck; in its report, `output k` is the first gradient of input k.
    """
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        random = np.random.default_rng(1)
        with enable_grad():
            outputs = [y for y in _tensors(func(*inputs)) if y.requires_grad]
        seeds = tuple(wrap(np.asarray(random.standard_normal(y.shape))).requires_grad_() for y in outputs)
    else:
        seeds = _as_tuple(grad_outputs)

    def gradients(*arguments: Any) -> tuple:
        given, dy = arguments[: len(inputs)], arguments[len(inputs) :]
        outputs = [y for y in _tensors(func(*given)) if y.requires_grad]
        wanted = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
        found = grad(outputs, wanted, dy, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    check = _Check(gradients, (*inputs, *seeds), eps, atol, rtol, nondet_tol, "gradgradcheck", len(inputs))
    return _verdict(check, fast_mode, raise_exception)


def _verdict(check: _Check, fast: bool, raise_exception: bool) -> bool:
    try:
        with enable_grad():
            check.run(fast)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _as_tuple(x: Any) -> tuple:
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def _tensors(outputs: Any) -> list[Tensor]:
    return [y for y in _as_tuple(outputs) if isinstance(y, Tensor)]


class _Check:
    """One function at one point. A Jacobian has a row for each element of an input, a column for each of an output."""

    def __init__(self, func: Callable, inputs: Any, eps: float, atol: float, rtol: float, nondet_tol: float,
                 name: str = "gradcheck", seeds_from: int | None = None):  # fmt: skip
        self.func, self.inputs, self.name, self.seeds_from = func, _as_tuple(inputs), name, seeds_from
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.moved = [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]
        self._refuse_unfit_inputs()
        self.random = np.random.default_rng(0)

    def _refuse_unfit_inputs(self) -> None:
        if not self.moved:
            raise ValueError(f"[{self.name}] at least one input must require grad; got none that does")
        for i in self.moved:
            x = self.inputs[i]
            if x.dtype is not dtypes.float64:
                raise TypeError(
                    f"[{self.name}] {self._input(i)} is {x.dtype.name}: its rounding drowns differences of {self.eps:g}. "
                    "Pass float64 on the CPU, as in x.cpu().double()"
                )
            if x.numel() and any(s == 0 and n > 1 for s, n in zip(x.array.strides, x.shape, strict=True)):
                raise ValueError(f"[{self.name}] elements of {self._input(i)} share memory (it was expanded); pass its clone()")
            if not x.array.flags.writeable:
                raise ValueError(f"[{self.name}] the memory of {self._input(i)} is read-only; pass its clone()")
            for j in self.moved[: self.moved.index(i)]:
                other = self.inputs[j]
                if other is not x and np.shares_memory(x.array, other.array):
                    raise ValueError(f"[{self.name}] {self._input(j)} and {self._input(i)} share memory; pass a clone()")

    def _input(self, i: int) -> str:
        return f"input {i}" if self.seeds_from is None or i < self.seeds_from else f"grad_output {i - self.seeds_from}"

    def _outputs(self) -> list[Tensor]:
        """func's floating point outputs at the inputs as they are now."""
        outputs = _tensors(self.func(*self.inputs))
        for k, y in enumerate(outputs):
            if y.dtype.is_floating_point and y.dtype is not dtypes.float64:
                raise TypeError(f"[{self.name}] output {k} is {y.dtype.name}; compute in float64 throughout")
        return [y for y in outputs if y.dtype.is_floating_point]

    def _values(self) -> list[np.ndarray]:
        return [y.array.reshape(-1).copy() for y in self._outputs()]

    def run(self, fast: bool) -> None:
        """Raise GradcheckError where the function is not deterministic or a gradient is wrong."""
        first, again = self._outputs(), self._outputs()
        for k, (y, z) in enumerate(zip(first, again, strict=True)):
            if not self._same(y.array, z.array):
                raise GradcheckError(f"[{self.name}] two runs of the function differ in output {k}; fix its randomness")
        if fast:
            self._run_fast(first, again)
        else:
            self._run_full(first, again)

    def _same(self, a: np.ndarray, b: np.ndarray) -> bool:
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=0, atol=self.nondet_tol, equal_nan=True))

    # -- every element ------------------------------------------------------------------------------

    def _run_full(self, first: list[Tensor], again: list[Tensor]) -> None:
        analytic = [self._analytic(k, y, z) for k, (y, z) in enumerate(zip(first, again, strict=True))]
        for at, i in enumerate(self.moved):
            for k, numerical in enumerate(self._numerical(self.inputs[i])):
                self._compare(i, k, first[k], analytic[k][at], numerical)

    def _analytic(self, k: int, y: Tensor, z: Tensor) -> list[np.ndarray]:
        """Output y's Jacobians, from one backward pass for each of its elements; z is the same from another run."""
        jacobians = [np.zeros((self.inputs[i].numel(), y.numel())) for i in self.moved]
        for column in range(y.numel() if y.requires_grad else 0):
            seed = np.zeros(y.numel())
            seed[column] = 1
            for jacobian, g in zip(jacobians, self._pull_back(k, y, z, seed), strict=True):
                jacobian[:, column] = g
        return jacobians

    def _pull_back(self, k: int, y: Tensor, z: Tensor, seed: np.ndarray) -> list[np.ndarray]:
        """seed · dy/dinput for each input that is moved."""
        wanted = [self.inputs[i] for i in self.moved]
        runs = []
        for out in (y, z):
            dy = wrap(seed.reshape(y.shape))
            grads = grad(out, wanted, dy, retain_graph=True, allow_unused=True)
            zeros = [np.zeros(x.numel()) for x in wanted]
            runs.append([o if g is None else g.array.reshape(-1) for o, g in zip(zeros, grads, strict=True)])
        for i, a, b in zip(self.moved, *runs, strict=True):
            if not self._same(a, b):
                raise GradcheckError(
                    f"[{self.name}] two runs of the gradient of output {k} with respect to {self._input(i)} differ"
                )
        return runs[0]

    def _numerical(self, x: Tensor) -> list[np.ndarray]:
        """All outputs' Jacobians with respect to x, from central differences."""
        rows = [self._difference(x, index, 1.0) for index in np.ndindex(x.shape)]
        return [np.stack(columns) for columns in zip(*rows, strict=True)]

    def _difference(self, x: Tensor, index: Any, direction: Any) -> list[np.ndarray]:
        """(f(x + h) - f(x - h)) / 2 eps for each output, where h is eps * direction at the index of x."""
        before = x.array.copy()
        try:
            x.array[index] = before[index] + self.eps * direction
            above = self._values()
            x.array[index] = before[index] - self.eps * direction
            below = self._values()
        finally:
            x.array[...] = before
        return [(a - b) / (2 * self.eps) for a, b in zip(above, below, strict=True)]

    def _compare(self, i: int, k: int, y: Tensor, analytic: np.ndarray, numerical: np.ndarray) -> None:
        """Raise, naming the worst element, unless output k's Jacobians with respect to input i agree."""
        excess = np.abs(analytic - numerical) - (self.atol + self.rtol * np.abs(numerical))
        wrong = ~(excess <= 0)  # NaN is wrong
        if not wrong.any():
            return
        row, column = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
        index = _index(row, self.inputs[i].shape)
        where = f"output {k} at {_index(column, y.shape)} with respect to {self._input(i)} at {index}"
        note = "" if y.requires_grad else " The output does not require grad although it depends on the input."
        raise GradcheckError(
            f"[{self.name}] the gradient of {where} is wrong: analytic {analytic[row, column]:.9g}, numerical "
            f"{numerical[row, column]:.9g}; {wrong.sum()} of {wrong.size} elements differ.{note}"
        )

    # -- one direction ------------------------------------------------------------------------------

    def _run_fast(self, first: list[Tensor], again: list[Tensor]) -> None:
        seeds = [self.random.standard_normal(y.numel()) for y in first]
        pulled = [
            self._pull_back(k, y, z, v) if y.requires_grad else None
            for k, (y, z, v) in enumerate(zip(first, again, seeds, strict=True))
        ]
        for at, i in enumerate(self.moved):
            x = self.inputs[i]
            u = self.random.standard_normal(x.shape)
            slopes = self._difference(x, ..., u)
            numerical: list[np.ndarray] | None = None
            for k, (v, slope) in enumerate(zip(seeds, slopes, strict=True)):
                found = pulled[k]
                analytic = 0.0 if found is None else float(found[at] @ u.reshape(-1))
                wanted = float(v @ slope)
                scale = float(np.abs(u).sum() * np.abs(v).sum())  # atol is meant for one element
                if not abs(analytic - wanted) <= self.atol * scale + self.rtol * abs(wanted):
                    numerical = self._numerical(x) if numerical is None else numerical
                    self._compare(i, k, first[k], self._analytic(k, first[k], again[k])[at], numerical[k])


def _index(flat: Any, shape: tuple) -> tuple:
    return tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()
