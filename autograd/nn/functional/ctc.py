"""Connectionist temporal classification: the likelihood of a label sequence under all its alignments."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ... import create, dtypes
from ...function import Function
from ...grad_mode import is_grad_enabled
from ...op import public
from ...ops.select import where
from ...ops.views import cat, stack
from ...tape import grad
from ...tensor import Tensor, wrap
from .common import check_reduction, reduced


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """-log of the sum, over all alignments of the targets with the steps, of the product of their probabilities.

    log_probs [T, N, C] or [T, C]: logarithms of distributions over classes. targets: [N, S], or all labels one after
    the other. Lengths: a number for each sample, sequences or tensors. "mean" divides each loss by its target's
    length first. zero_infinity: targets that are too long for their steps give 0, not infinity.
    """
    op = "ctc_loss"
    check_reduction(reduction, op)
    if log_probs.ndim not in (2, 3) or not log_probs.dtype.is_floating_point:
        raise ValueError(f"[{op}] log_probs are floating point [T, N, C] or [T, C]; got {log_probs.dtype} {log_probs.shape}")
    batched = log_probs if log_probs.ndim == 3 else log_probs.unsqueeze(1)
    steps, samples, classes = batched.shape
    if not 0 <= blank < classes:
        raise ValueError(f"[{op}] blank must be a class, 0 … {classes - 1}; got {blank}")
    lengths = _numbers(input_lengths, samples, steps, "input_lengths")
    sizes = _numbers(target_lengths, samples, None, "target_lengths")
    labels = _labels(targets, sizes, classes, blank, batched=log_probs.ndim == 3)
    loss = _negative_log(batched, labels, lengths, sizes)
    if zero_infinity:
        loss = loss.masked_fill(loss.detach() == float("inf"), 0)
    if log_probs.ndim == 2:
        loss = loss.squeeze(0)
    if reduction == "mean":
        divisor = np.maximum(sizes, 1).astype(loss.dtype.numpy).reshape(loss.shape)
        loss = loss / create.place(divisor, loss.device)
    return reduced(loss, reduction)


def _numbers(lengths: Any, samples: int, most: int | None, name: str) -> np.ndarray:
    given = lengths.detach().cpu().numpy() if isinstance(lengths, Tensor) else np.asarray(lengths)
    numbers = given.reshape(-1).astype(np.int64)
    outside = (numbers < 0).any() or (most is not None and (numbers > most).any())
    if given.dtype.kind not in "iu" or len(numbers) != samples or outside:
        limit = "" if most is None else f" of at most {most}"
        raise ValueError(f"[ctc_loss] {name} holds {samples} whole numbers{limit}; got {given.tolist()}")
    return numbers


def _labels(targets: Tensor, sizes: np.ndarray, classes: int, blank: int, batched: bool) -> np.ndarray:
    """The targets with a blank before, between and after their labels: [N, 2 * longest + 1]."""
    given = targets.detach().cpu().numpy()
    if given.dtype.kind not in "iu":
        raise TypeError(f"[ctc_loss] targets are integers; got {targets.dtype}")
    longest = int(sizes.max()) if len(sizes) else 0
    if given.ndim == 2 or not batched:
        rows = given.reshape(len(sizes), -1)
        fits = rows.shape[1] >= longest
    else:
        starts, fits = np.concatenate([[0], np.cumsum(sizes)]), given.size >= sizes.sum()
        rows = [given[a:b] for a, b in pairwise(starts)]
    if not fits:
        raise ValueError(f"[ctc_loss] target_lengths {sizes.tolist()} ask for more labels than targets {targets.shape} have")
    labels = np.full((len(sizes), 2 * longest + 1), blank, np.int64)
    for row, found, size in zip(labels, rows, sizes, strict=True):
        row[1 : 2 * size : 2] = found[:size]
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
        raise IndexError(f"[ctc_loss] targets must lie in [0, {classes - 1}]; got {labels.min()} … {labels.max()}")
    return labels


def _negative_log(logp: Tensor, labels: np.ndarray, lengths: np.ndarray, sizes: np.ndarray) -> Tensor:
    """-log p(labels) of each sample, by the forward recursion over steps."""
    steps, samples, _ = logp.shape
    width, device = labels.shape[1], logp.device
    index = create.place(np.ascontiguousarray(labels), device)
    seen = logp.gather(2, index.unsqueeze(0).expand(steps, samples, width))
    # A blank between two labels may be skipped where they differ.
    skips = np.zeros(labels.shape, bool)
    skips[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    running = create.place(np.arange(steps)[:, None, None] < lengths[:, None], device)
    if steps and seen.array.__class__ is np.ndarray and seen.dtype in (dtypes.float32, dtypes.float64):
        alpha = _Paths.apply(seen, skips, running.array)
    else:
        alpha = _paths(seen, skips, running)
    last = create.place(np.maximum(2 * sizes[:, None] - [[0, 1]], 0), device)
    ends = alpha.gather(1, last)
    only_blanks = create.place(np.stack([np.zeros(samples, bool), sizes == 0], 1), device)
    loss = -ends.masked_fill(only_blanks, float("-inf")).logsumexp(1)
    if (lengths == 0).any():  # no step, no label: probability 1
        none = create.place(lengths == 0, device)
        empty = create.place(np.where(sizes == 0, 0.0, np.inf).astype(logp.dtype.numpy), device)
        loss = where(none, empty, loss)
    return loss + _of_distributions(logp, running)


def _paths(seen: Tensor, skips: np.ndarray, running: Tensor) -> Tensor:
    """The log-probability of all ways to each label at the last running step, [N, W], from those of its labels [T, N, W]."""
    (steps, samples, width), device = seen.shape, seen.device
    may_skip, start = create.place(skips, device), create.place(np.arange(width) < 2, device)
    nothing = seen.new_full((samples, 2), float("-inf"))
    alpha = where(start, seen[0], float("-inf")) if steps else seen.new_full((samples, width), float("-inf"))
    for t in range(1, steps):
        before = cat([nothing, alpha], 1)
        skipped = where(may_skip, before[:, :width], float("-inf"))
        total = stack([alpha, before[:, 1 : width + 1], skipped]).logsumexp(0)
        alpha = where(running[t], total + seen[t], alpha)
    return alpha


class _Paths(Function):
    """_paths() in NumPy, with its gradient; a graph of the gradient is made of _paths()'s own."""

    @staticmethod
    def forward(ctx: Any, seen: Tensor, skips: np.ndarray, running: np.ndarray) -> Tensor:
        ctx.save_for_backward(seen)
        x = seen.detach().array
        alpha = np.full((x.shape[1], x.shape[2]), -np.inf, x.dtype)
        totals, ways = np.zeros_like(x), []
        alpha[:, :2] = x[0, :, :2]
        with np.errstate(all="ignore"):
            for t in range(1, len(x)):
                ways.append(_ways(alpha, skips))
                top = ways[-1].max(0)
                top[np.isinf(top)] = 0
                totals[t] = np.log(np.exp(ways[-1] - top).sum(0)) + top
                alpha = np.where(running[t], totals[t] + x[t], alpha)
        ctx.steps = skips, running, totals, ways
        return wrap(alpha)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple:
        (seen,), (skips, running, totals, ways) = ctx.saved_tensors, ctx.steps
        if is_grad_enabled():
            return grad(_paths(seen, skips, create.place(running, seen.device)), seen, dy, create_graph=True)[0], None, None
        g, dx = dy.array, np.zeros_like(totals)
        with np.errstate(all="ignore"):
            for t in range(len(dx) - 1, 0, -1):
                dx[t] = np.where(running[t], g, 0)
                # Each way's share; none where there is no way at all.
                share = dx[t] * np.exp(ways[t - 1] - np.where(np.isneginf(totals[t]), 0, totals[t]))
                g = share[0] + np.where(running[t], 0, g)
                g[:, :-1] += share[1, :, 1:]
                g[:, :-2] += share[2, :, 2:]
        dx[0, :, :2] = g[:, :2]
        return wrap(dx), None, None


def _ways(alpha: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """What leads to each label: itself, the one before, and the one before that where it may be skipped."""
    ways = np.full((3, *alpha.shape), -np.inf, alpha.dtype)
    ways[0], ways[1, :, 1:] = alpha, alpha[:, :-1]
    ways[2, :, 2:] = np.where(skips[:, 2:], alpha[:, :-2], -np.inf)
    return ways


def _of_distributions(logp: Tensor, running: Tensor) -> Tensor:
    """0, with the gradient of sum(exp(log_probs)): that sum is constant for distributions, and PyTorch's gradient
    counts it in, so that it is the gradient of the logits in front of a log_softmax."""
    total = logp.exp().masked_fill(running.logical_not(), 0).sum((0, 2))
    return total - total.detach()


public(ctc_loss, method=False)
