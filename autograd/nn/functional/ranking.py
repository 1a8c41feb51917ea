"""Losses that compare: margins, hinges, triplets."""

from __future__ import annotations

from collections.abc import Callable

from ... import create
from ...op import public
from ...ops.index import checked_index
from ...tensor import Tensor
from .common import check_reduction, reduced, same_shape
from .distance import pairwise_distance


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-t * x)), reduced; t is 1 or -1."""
    same_shape(input, target, "soft_margin_loss")
    check_reduction(reduction, "soft_margin_loss")
    return reduced((-target * input).softplus(), reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """max(0, -t * (x1 - x2) + margin), reduced; t is 1 where x1 should be the larger, else -1."""
    op = "margin_ranking_loss"
    same_shape(input1, input2, op)
    same_shape(input1, target, op)
    check_reduction(reduction, op)
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """x where t is 1, max(0, margin - x) where t is -1, reduced."""
    op = "hinge_embedding_loss"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    apart = (-input + margin).clamp(min=0).masked_fill(target == 1, 0)
    return reduced(apart + input.masked_fill(target == -1, 0), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where t is -1, reduced.

    x1, x2: [N, D] with t [N], or [D] with t [].
    """
    op = "cosine_embedding_loss"
    same_shape(input1, input2, op)
    check_reduction(reduction, op)
    if input1.ndim not in (1, 2) or target.shape != input1.shape[:-1]:
        raise ValueError(f"[{op}] expects x [N, D] with a target [N], or [D] with []; got {input1.shape} and {target.shape}")
    square1, square2 = ((x * x).sum(-1) + 1e-12 for x in (input1, input2))
    cosine = (input1 * input2).sum(-1) / (square1 * square2).sqrt()
    together, apart = (1 - cosine).masked_fill(target != 1, 0), (cosine - margin).clamp(min=0).masked_fill(target != -1, 0)
    return reduced(together + apart, reduction)


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """sum over the classes j but the right one y of max(0, margin - x[y] + x[j])^p * weight[y] / C, reduced.

    input: [N, C] with classes [N], or [C] with one class.
    """
    op = "multi_margin_loss"
    check_reduction(reduction, op)
    if p not in (1, 2):
        raise ValueError(f"[{op}] p is 1 or 2; got {p}")
    x, y = _rows(op, input, target)
    if target.shape not in (input.shape[:-1], (x.shape[0],)):
        rule = "expects input [N, C] and target [N], or [C] and one class"
        raise ValueError(f"[{op}] {rule}; got {input.shape} and {target.shape}")
    classes = x.shape[1]
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"[{op}] weight has one number a class, ({classes},); got {weight.shape}")
    index = checked_index(y, classes, op).reshape(-1)
    right = x.gather(1, index.unsqueeze(1).long())
    loss = (x - right + margin).relu()  # at the margin the gradient is 0, as in PyTorch
    loss = loss if p == 1 else loss * loss
    if weight is not None:
        loss = loss * weight.index_select(0, index).unsqueeze(1)
    others = create.arange(classes, device=x.device) != index.unsqueeze(1)
    each = (loss * others.to(x.dtype)).sum(1) / classes
    return reduced(each if input.ndim == 2 and target.ndim else each.reshape(target.shape), reduction)


def _rows(op: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both as [N, C] and [N, ...], one sample as a batch of one."""
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise ValueError(f"[{op}] expects [N, C] or [C] with at least one class; got {input.shape}")
    if input.ndim == 2:
        return input, target
    return input.reshape(1, -1), target.reshape(1, -1)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """sum over labels y and other classes j of max(0, 1 - (x[y] - x[j])) / C, reduced.

    target has input's shape [N, C] or [C]: its labels, integers, end at the first -1.
    """
    op = "multilabel_margin_loss"
    same_shape(input, target, op)
    check_reduction(reduction, op)
    x, y = _rows(op, input, target)
    classes = x.shape[1]
    given = (y < 0).long()
    place = create.arange(classes, device=x.device)
    # A label counts when no -1 stands at or before it.
    before = (place.unsqueeze(1) <= place).to(given.dtype)
    valid = (given.unsqueeze(2) * before).sum(1) == 0
    index = checked_index(y.masked_fill(valid.logical_not(), 0), classes, op).long()
    is_label = ((index.unsqueeze(2) == place) & valid.unsqueeze(2)).any(1)
    gap = (x.unsqueeze(1) - x.gather(1, index).unsqueeze(2) + 1).relu()
    counted = (valid.unsqueeze(2) & is_label.logical_not().unsqueeze(1)).to(x.dtype)
    each = (gap * counted).sum((1, 2)) / classes
    return reduced(each if input.ndim == 2 else each.reshape(()), reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced; d is pairwise_distance with p and eps.

    With `swap` the negative counts by its distance to the positive where that is smaller.
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable | None = None, margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """triplet_margin_loss with a distance of your own (pairwise_distance)."""
    distance = distance_function or pairwise_distance
    return _triplet("triplet_margin_with_distance_loss", anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(op: str, anchor: Tensor, positive: Tensor, negative: Tensor, distance: Callable, margin: float, swap: bool,
             reduction: str) -> Tensor:  # fmt: skip
    check_reduction(reduction, op)
    if margin <= 0:
        raise ValueError(f"[{op}] margin must be positive; got {margin}")
    same_shape(anchor, positive, op)
    same_shape(anchor, negative, op)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), reduction)


for _function in (margin_ranking_loss, hinge_embedding_loss, cosine_embedding_loss, triplet_margin_loss):
    public(_function, method=False)
