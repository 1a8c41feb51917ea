"""The formulas of losses: functions of y_true and y_pred that give a value a sample.

The formulas are Keras 3's (keras.io/api/losses): probabilities are divided by their sum and kept EPSILON away from 0
and 1, or logits go through one stable log-softmax; a softmax is never applied to what already is a probability.
A loss is computed in the dtype and on the device of y_pred.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import create, dtypes
from ..nn import functional as F
from ..ops.select import where
from ..tensor import Tensor
from .reductions import same_rank

EPSILON = 1e-7


def tensor_like(value: Any, like: Tensor | None = None) -> Tensor:
    """value as a Tensor; in the dtype and on the device of `like`, where that is given."""
    t = value if isinstance(value, Tensor) else create.as_tensor(np.asarray(value) if like is not None else value)
    return t if like is None or (t.dtype is like.dtype and t.device == like.device) else t.to(like.device, like.dtype)


def _pair(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Both in y_pred's dtype and in as many dimensions."""
    y_pred = tensor_like(y_pred)
    if not y_pred.dtype.is_floating_point:
        y_pred = y_pred.to(dtypes.get_default_dtype())
    return same_rank(tensor_like(y_true, y_pred), y_pred)


def _class_axis(axis: Any, y_pred: Tensor, where_: str) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int) or not -y_pred.ndim <= axis < y_pred.ndim:
        raise ValueError(f"[{where_}] axis is a dimension of y_pred, of shape {y_pred.shape}; got {axis!r}")
    return axis % y_pred.ndim


# -- distances ------------------------------------------------------------------------------------------


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """mean((y_true - y_pred)^2) over the last axis."""
    y, p = _pair(y_true, y_pred)
    return (y - p).square().mean(-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """mean(|y_true - y_pred|) over the last axis."""
    y, p = _pair(y_true, y_pred)
    return (y - p).abs().mean(-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """100 mean(|(y_true - y_pred) / max(|y_true|, 1e-7)|) over the last axis."""
    y, p = _pair(y_true, y_pred)
    return ((y - p) / y.abs().clamp(min=EPSILON)).abs().mean(-1) * 100.0


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """mean((log(max(y_true, 1e-7) + 1) - log(max(y_pred, 1e-7) + 1))^2) over the last axis."""
    y, p = _pair(y_true, y_pred)
    return ((p.clamp(min=EPSILON) + 1.0).log() - (y.clamp(min=EPSILON) + 1.0).log()).square().mean(-1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """mean of e^2 / 2 where |e| <= delta, else delta |e| - delta^2 / 2, with e = y_pred - y_true."""
    y, p = _pair(y_true, y_pred)
    return F.huber_loss(p, y, "none", delta).mean(-1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """mean(log(cosh(y_pred - y_true))) over the last axis, as e + softplus(-2 e) - log 2."""
    y, p = _pair(y_true, y_pred)
    e = p - y
    return (e + F.softplus(e * -2.0) - math.log(2.0)).mean(-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """-sum(y_true y_pred) of both divided by their norms: -1 for the same direction."""
    y, p = _pair(y_true, y_pred)
    return -(normalized(y, axis) * normalized(p, axis)).sum(axis)


def normalized(x: Tensor, axis: int) -> Tensor:
    """x / sqrt(max(sum x^2, 1e-12)): Keras' normalize, whose value and gradient at 0 are finite."""
    return x * x.square().sum(axis, keepdim=True).clamp(min=1e-12).rsqrt()


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """mean(y_pred - y_true log(y_pred + 1e-7)) over the last axis."""
    y, p = _pair(y_true, y_pred)
    return (p - y * (p + EPSILON).log()).mean(-1)


def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """sum(y_true log(y_true / y_pred)) over the last axis, both clipped to [1e-7, 1]."""
    y, p = _pair(y_true, y_pred)
    y, p = y.clamp(EPSILON, 1.0), p.clamp(EPSILON, 1.0)
    return (y * (y / p).log()).sum(-1)


# -- hinges ---------------------------------------------------------------------------------------------


def _signs(y: Tensor) -> Tensor:
    """Labels as -1 and 1: labels that all are 0 or 1 are converted, others stay."""
    binary = ((y == 0) | (y == 1)).all()
    return where(binary, y * 2.0 - 1.0, y)


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """mean(max(1 - y_true y_pred, 0)) over the last axis; labels are -1 and 1, or 0 and 1."""
    y, p = _pair(y_true, y_pred)
    return (1.0 - _signs(y) * p).relu().mean(-1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """mean(max(1 - y_true y_pred, 0)^2) over the last axis; labels are -1 and 1, or 0 and 1."""
    y, p = _pair(y_true, y_pred)
    return (1.0 - _signs(y) * p).relu().square().mean(-1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """max(max((1 - y_true) y_pred) - sum(y_true y_pred) + 1, 0) over the last axis; y_true is one-hot."""
    y, p = _pair(y_true, y_pred)
    return (((1.0 - y) * p).amax(-1) - (y * p).sum(-1) + 1.0).relu()


# -- crossentropies -------------------------------------------------------------------------------------


def _binary(y: Tensor, p: Tensor, from_logits: bool) -> Tensor:
    if from_logits:
        return F.binary_cross_entropy_with_logits(p, y, reduction="none")
    p = p.clamp(EPSILON, 1.0 - EPSILON)
    return -(y * p.log() + (1.0 - y) * (1.0 - p).log())


def _log_probabilities(p: Tensor, axis: int, from_logits: bool) -> Tensor:
    if from_logits:
        return F.log_softmax(p, axis)
    return (p / p.sum(axis, keepdim=True)).clamp(EPSILON, 1.0 - EPSILON).log()


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
                        axis: int = -1) -> Tensor:  # fmt: skip
    """mean(-y log p - (1 - y) log(1 - p)) over `axis`, p clipped to [1e-7, 1 - 1e-7]; from_logits: p = sigmoid(y_pred).

    label_smoothing s: y becomes y (1 - s) + s / 2.
    """
    y, p = _pair(y_true, y_pred)
    if label_smoothing:
        y = y * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return _binary(y, p, from_logits).mean(_class_axis(axis, p, "binary_crossentropy"))


def binary_focal_crossentropy(y_true: Any, y_pred: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
                              gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0,
                              axis: int = -1) -> Tensor:  # fmt: skip
    """mean((1 - p_t)^gamma bce) over `axis`, p_t = y p + (1 - y)(1 - p); with balancing times y alpha + (1 - y)(1 - alpha).

    Lin et al.: Focal Loss (arXiv 1708.02002).
    """
    y, p = _pair(y_true, y_pred)
    if label_smoothing:
        y = y * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        p = p.sigmoid()
    loss = (1.0 - (y * p + (1.0 - y) * (1.0 - p))) ** gamma * _binary(y, p, False)
    if apply_class_balancing:
        loss = (y * alpha + (1.0 - y) * (1.0 - alpha)) * loss
    return loss.mean(_class_axis(axis, p, "binary_focal_crossentropy"))


def _smoothed(y: Tensor, smoothing: float) -> Tensor:
    return y * (1.0 - smoothing) + smoothing / y.shape[-1] if smoothing else y


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
                             axis: int = -1) -> Tensor:  # fmt: skip
    """-sum(y log p) over `axis`; y is one-hot. p = y_pred / sum(y_pred), clipped to [1e-7, 1 - 1e-7], or softmax(y_pred).

    label_smoothing s: y becomes y (1 - s) + s / classes. ValueError when the shapes differ.
    """
    y, p = _pair(y_true, y_pred)
    at = _class_axis(axis, p, "categorical_crossentropy")
    _same_shape(y, p, "categorical_crossentropy")
    return -(_smoothed(y, label_smoothing) * _log_probabilities(p, at, from_logits)).sum(at)


def _same_shape(y: Tensor, p: Tensor, name: str) -> None:
    if y.shape != p.shape:
        hint = "Labels that are class numbers go with sparse_categorical_crossentropy."
        raise ValueError(f"[{name}] y_true is one-hot, in the shape of y_pred, {p.shape}; got {y.shape}. {hint}")


def categorical_focal_crossentropy(y_true: Any, y_pred: Any, alpha: float = 0.25, gamma: float = 2.0,
                                   from_logits: bool = False, label_smoothing: float = 0.0,
                                   axis: int = -1) -> Tensor:  # fmt: skip
    """-sum(alpha (1 - p)^gamma y log p) over `axis`, with p as in categorical_crossentropy (arXiv 1708.02002)."""
    y, p = _pair(y_true, y_pred)
    at = _class_axis(axis, p, "categorical_focal_crossentropy")
    _same_shape(y, p, "categorical_focal_crossentropy")
    p = F.softmax(p, at) if from_logits else p
    p = (p / p.sum(at, keepdim=True)).clamp(EPSILON, 1.0 - EPSILON)
    return (_smoothed(y, label_smoothing) * -p.log() * (1.0 - p) ** gamma * alpha).sum(at)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None,
                                    axis: int = -1) -> Tensor:  # fmt: skip
    """-log p[y]; y are class numbers, p as in categorical_crossentropy.

    ignore_class: where y is this number the loss is 0, and what is averaged leaves the place out.
    ValueError when the shapes do not fit.
    """
    p = tensor_like(y_pred)
    at = _class_axis(axis, p, "sparse_categorical_crossentropy")
    y = tensor_like(y_true).to(p.device)
    y = y if y.dtype is dtypes.int64 else y.to(dtypes.int64)
    if y.ndim == p.ndim and y.shape[at] == 1:
        y = y.squeeze(at)
    expected = p.shape[:at] + p.shape[at + 1 :]
    if y.shape != expected:
        raise ValueError(
            f"[sparse_categorical_crossentropy] y_true holds a class number for each of {expected}; got {y.shape}. "
            "One-hot labels go with categorical_crossentropy."
        )
    valid = None
    if ignore_class is not None:
        valid = y != ignore_class
        y = where(valid, y, y.zeros_like())
    loss = -_log_probabilities(p, at, from_logits).gather(at, y.unsqueeze(at)).squeeze(at)
    if valid is not None:
        loss = where(valid, loss, loss.zeros_like())
        loss._keras_mask = valid
    return loss


def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float = 0.5) -> Tensor:
    """(1 - p[y]^q) / q; y are class numbers, y_pred probabilities. Zhang, Sabuncu (arXiv 1805.07836)."""
    p = tensor_like(y_pred)
    y = tensor_like(y_true).to(p.device, dtypes.int64)
    return (1.0 - p.gather(-1, y.unsqueeze(-1)).squeeze(-1) ** q) / q


# -- of whole sets --------------------------------------------------------------------------------------


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """1 - 2 sum(y p) / (sum(y) + sum(p) + 1e-7), over `axis` or all."""
    y, p = _pair(y_true, y_pred)
    return 1.0 - _total(y * p, axis) * 2.0 / (_total(y, axis) + _total(p, axis) + EPSILON)


def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Tensor:
    """1 - s / (s + alpha sum((1 - p) y) + beta sum(p (1 - y)) + 1e-7) with s = sum(y p). Salehi et al. (arXiv 1706.05721)."""
    y, p = _pair(y_true, y_pred)
    both = _total(y * p, axis)
    return 1.0 - both / (both + _total((1.0 - p) * y, axis) * alpha + _total(p * (1.0 - y), axis) * beta + EPSILON)


def _total(x: Tensor, axis: Any) -> Tensor:
    return x.sum() if axis is None else x.sum(axis)


def ctc(y_true: Any, y_pred: Any) -> Tensor:
    """Connectionist temporal classification of logits (batch, steps, classes); y_true (batch, labels), 0 is blank and padding.

    ValueError for other shapes.
    """
    p = tensor_like(y_pred)
    y = tensor_like(y_true).to(p.device, dtypes.int64)
    if y.ndim != 2 or p.ndim != 3:
        raise ValueError(f"[ctc] y_true is (batch, labels) and y_pred (batch, steps, classes); got {y.shape} and {p.shape}")
    steps = create.full((p.shape[0],), p.shape[1], dtypes.int64)
    return F.ctc_loss(F.log_softmax(p, -1).transpose(0, 1), y, steps, (y != 0).sum(-1), blank=0, reduction="none")


def circle(y_true: Any, y_pred: Any, gamma: float = 80.0, margin: float = 0.4, remove_diagonal: bool = True) -> Tensor:
    """softplus(logsumexp over positive pairs of -gamma a (margin - d) + logsumexp over negative of gamma b (1 - margin - d)),

    one value a sample: y_true are class numbers, y_pred embeddings of norm 1, d = max(1 - cosine, 0) of each pair,
    a = max(margin + d, 0), b = max(1 + margin - d, 0). Samples whose loss is 0 do not count.
    Sun et al.: Circle Loss (arXiv 2002.10857).
    """
    p = tensor_like(y_pred)
    y = tensor_like(y_true).to(p.device, dtypes.int64).reshape(-1, 1)
    d = (1.0 - p @ p.mT).relu()
    same = y == y.mT
    alike = same & (create.eye(len(p), device=p.device) == 0) if remove_diagonal else same
    far = d.full_like(-math.inf)
    near = where(alike, (d + margin).relu() * (margin - d) * -gamma, far).logsumexp(1)
    away = where(same, far, (1 + margin - d).relu() * (1 - margin - d) * gamma).logsumexp(1)
    loss: Any = F.softplus(near + away)
    loss._keras_mask = loss.detach() > 0
    return loss
