"""Losses of class predictions."""

from __future__ import annotations

from ...dtypes import SHORT, finfo
from ...op import apply
from ...ops.cross_entropy import of_rows
from ...ops.index import Gather, checked_index, index_bounds, take_rows, within
from ...ops.select import where
from ...ops.softmax import log_softmax
from ...tensor import Tensor
from .common import check_reduction, reduced, same_shape


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """-[pos_weight * t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))] * weight, reduced; exact for large |x|."""
    op = "binary_cross_entropy_with_logits"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    positive = (-input).softplus()
    if pos_weight is not None:
        positive = positive * (target * (pos_weight - 1) + 1)
    loss = (1 - target) * input + positive
    return reduced(loss if weight is None else loss * weight, reduction)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:  # fmt: skip
    """-weight[t] * input[t]: input holds log-probabilities [N, C, ...] or [C], target classes [N, ...] or [].

    mean divides by the sum of the weights used; it is NaN when every target is ignored. IndexError for a class
    outside 0 … C-1 that is not ignore_index.
    """
    check_reduction(reduction, "nll_loss")
    return _of_classes(input, target, weight, ignore_index, reduction, 0.0, "nll_loss")


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """-sum of q * log_softmax(input) over the classes: input [N, C, ...] or [C] holds logits.

    target: classes [N, ...] (int64 or int32), q being 1 - label_smoothing there plus label_smoothing / C everywhere;
    or q itself as floating point probabilities of input's shape. Ignored targets count neither above nor below.
    """
    check_reduction(reduction, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"[cross_entropy] label_smoothing must be in [0, 1]; got {label_smoothing}")
    class_axis(input, "cross_entropy")
    if weight is None and input.ndim < 3 and input.dtype not in SHORT and not target.dtype.is_floating_point and input.numel():
        index, ignored = _targets(input, target, ignore_index, "cross_entropy")
        return _finished(of_rows(input, index, label_smoothing), None, ignored, reduction)
    logp = log_softmax(input, min(1, input.ndim - 1))
    if target.dtype.is_floating_point:
        return _of_probabilities(logp, target, weight, reduction, label_smoothing)
    return _of_classes(logp, target, weight, ignore_index, reduction, label_smoothing, "cross_entropy")


def class_axis(logp: Tensor, op: str) -> int:
    if not logp.ndim or not logp.dtype.is_floating_point:
        raise ValueError(f"[{op}] the input is floating point of shape [N, C, ...] or [C]; got {logp.dtype} {logp.shape}")
    return min(1, logp.ndim - 1)


def _of_probabilities(logp: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float) -> Tensor:
    same_shape(logp, target, "cross_entropy")
    axis = class_axis(logp, "cross_entropy")
    classes = logp.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    if weight is not None:
        target = target * _along(weight, logp, axis)
    loss = -(logp * target).sum(axis)
    return reduced(loss, reduction)


def _along(weight: Tensor, logp: Tensor, axis: int) -> Tensor:
    """Class weights in a shape that broadcasts along the class axis."""
    if weight.shape != (logp.shape[axis],):
        raise ValueError(f"[cross_entropy] weight has one entry a class, ({logp.shape[axis]},); got {weight.shape}")
    return weight.reshape(-1, *(1,) * (logp.ndim - axis - 1))


def _of_classes(logp: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float,
                op: str) -> Tensor:  # fmt: skip
    """The loss of class targets given log-probabilities."""
    axis = class_axis(logp, op)
    classes = logp.shape[axis]
    index, ignored = _targets(logp, target, ignore, op)
    loss = -apply(Gather, logp, index.unsqueeze(axis), axis=axis).squeeze(axis)
    used = None
    if weight is not None:
        spread = _along(weight, logp, axis)
        used = take_rows(weight, index)
        loss = loss * used
    if smoothing:
        every = logp if weight is None else logp * spread
        loss = loss * (1 - smoothing) - every.sum(axis) * (smoothing / classes)
    return _finished(loss, used, ignored, reduction)


def _targets(x: Tensor, target: Tensor, ignore: int, op: str) -> tuple[Tensor, Tensor | None]:
    """Targets of the right shape, checked, ignored ones set to 0, and where those are; None when there are none."""
    axis = class_axis(x, op)
    if target.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        raise ValueError(f"[{op}] the target has the input's shape {x.shape} without its class dimension; got {target.shape}")
    return _classes_and_mask(target, x.shape[axis], ignore, op)


def _finished(loss: Tensor, used: Tensor | None, ignored: Tensor | None, reduction: str) -> Tensor:
    """The reduction over what is not ignored; used: the weight of each target, or None for 1."""
    if ignored is not None:
        loss = loss.masked_fill(ignored, 0)
        used = ignored.logical_not().to(loss.dtype) if used is None else used.masked_fill(ignored, 0)
    if reduction != "mean" or used is None:
        return reduced(loss, reduction)
    return loss.sum() / used.sum()


def _classes_and_mask(target: Tensor, classes: int, ignore: int, op: str) -> tuple[Tensor, Tensor | None]:
    """Checked targets, ignored ones set to 0, and where those are; None when there are none."""
    if ignore < 0 and target.dtype.rank == 1 and target.numel():
        low, high = index_bounds(target)
        if low >= 0:
            return within(target, low, high, classes, op), None
    ignored = target == ignore
    return checked_index(target.masked_fill(ignored, 0), classes, op), ignored


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-[t * log(x) + (1 - t) * log(1 - x)] * weight, reduced, for probabilities x; a logarithm is at least -100.

    Where a logarithm is held at -100 its gradient is 1e12 (float16: 65504), so that a wrong 0 or 1 is drawn away from
    there. ValueError for x outside [0, 1].
    """
    op = "binary_cross_entropy"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    seen = input.detach()
    if bool(((seen < 0) | (seen > 1)).any()):
        raise ValueError(f"[{op}] the input holds probabilities; got some outside [0, 1]. Use binary_cross_entropy_with_logits?")
    loss = -(target * _bounded_log(input) + (1 - target) * _bounded_log(1 - input))
    return reduced(loss if weight is None else loss * weight, reduction)


def _bounded_log(x: Tensor) -> Tensor:
    nothing = x.detach() <= 3.8e-44  # exp(-100), which is 0 in a short dtype
    steep = x * min(1e12, finfo(x.dtype).max) - 100
    return where(nothing, steep, x.masked_fill(nothing, 1).log())


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """The mean over the last dimension of binary_cross_entropy_with_logits, * weight, reduced."""
    op = "multilabel_soft_margin_loss"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    loss = target * (-input).softplus() + (1 - target) * input.softplus()
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)
