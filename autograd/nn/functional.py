"""The layers and losses as functions. PyTorch's names, arguments and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import create, dtypes
from ..op import apply
from ..ops.index import Gather, checked_index, take_rows
from ..ops.matmul import linear
from ..ops.select import where
from ..ops.softmax import log_softmax, softmax
from ..random import rand
from ..tensor import Tensor

__all__ = [
    "binary_cross_entropy_with_logits", "cross_entropy", "dropout", "embedding", "gelu", "l1_loss", "layer_norm",
    "leaky_relu", "linear", "log_softmax", "logsigmoid", "mse_loss", "nll_loss", "normalize", "one_hot", "relu", "sigmoid",
    "silu", "softmax", "softplus", "tanh",
]  # fmt: skip


# -- activations ----------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), gradient 0 at 0."""
    return input.relu_() if inplace else input.relu()


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, else negative_slope * x."""
    return where(input > 0, input, input * negative_slope)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh": x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."""
    if approximate == "none":
        return input * ((input * math.sqrt(0.5)).erf() + 1) * 0.5
    if approximate == "tanh":
        inner = (input + input * input * input * 0.044715) * math.sqrt(2 / math.pi)
        return input * (inner.tanh() + 1) * 0.5
    raise ValueError(f'[gelu] approximate is "none" or "tanh"; got {approximate!r}')


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return input.silu()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""
    scaled = input if beta == 1 else input * beta
    y = scaled.softplus() if beta == 1 else scaled.softplus() / beta
    return where(scaled > threshold, input, y)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) = -log(1 + exp(-x))."""
    return -(-input).softplus()


def tanh(input: Tensor) -> Tensor:
    """tanh(x)."""
    return input.tanh()


# -- layers ---------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); x itself when not training.

    The mask is drawn from the one random stream, so a seed gives the same on both devices.
    """
    check_probability(p, "dropout")
    if not training or p == 0:
        return input
    kept = rand(input.shape, dtype=dtypes.float32, device="cpu").numpy() >= p
    scale = 1 / (1 - p) if p < 1 else 0.0
    mask = create.place(kept.astype(input.dtype.numpy) * input.dtype.numpy.type(scale), input.device)
    return input.mul_(mask) if inplace else input * mask


def check_probability(p: float, op: str) -> None:
    """ValueError unless 0 <= p <= 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"[{op}] p is a probability; got {p}")


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of weight [n, d] that input (integers of any shape) names -> [*input, d].

    Rows taken at padding_idx send no gradient back. IndexError for an index outside 0 … n-1.
    """
    if weight.ndim != 2:
        raise ValueError(f"[embedding] the weight is a matrix [n, d]; got shape {weight.shape}")
    rows = take_rows(weight, checked_index(input, weight.shape[0], "embedding"))
    if padding_idx is None or not weight.requires_grad:
        return rows
    padding = check_padding(padding_idx, weight.shape[0])
    return where((input == padding).unsqueeze(-1), rows.detach(), rows)


def check_padding(index: int, n: int) -> int:
    """padding_idx as a row number; a negative one counts from the end."""
    if not -n <= index < n:
        raise IndexError(f"[embedding] padding_idx must be in [{-n}, {n - 1}]; got {index}")
    return index % n


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions; var is the biased one.

    weight, bias: of shape normalized_shape, which must be how input's shape ends. float16 is computed in float32.
    """
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"[layer_norm] the input must end in normalized_shape {shape}; got {input.shape}")
    axes = tuple(range(-len(shape), 0))
    x = input.float() if input.dtype is dtypes.float16 else input
    centred = x - x.mean(axes, keepdim=True)
    y = centred * ((centred * centred).mean(axes, keepdim=True) + eps).rsqrt()
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y.to(input.dtype)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm of x along dim, eps)."""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 zeros with a one at each index, in a new last dimension of num_classes (-1: the largest index + 1)."""
    if num_classes == -1:
        if not tensor.numel():
            raise ValueError("[one_hot] num_classes cannot be read off an empty tensor; give it")
        num_classes = int(tensor.max().item()) + 1
    if num_classes < 1:
        raise ValueError(f"[one_hot] num_classes must be positive; got {num_classes}")
    index = checked_index(tensor, num_classes, "one_hot")
    return (index.unsqueeze(-1) == create.arange(num_classes, device=tensor.device)).long()


# -- losses ---------------------------------------------------------------------------------------------


def check_reduction(reduction: str, op: str) -> None:
    """ValueError unless "none", "mean" or "sum"."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'[{op}] reduction is "none", "mean" or "sum"; got {reduction!r}')


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _same_shape(input: Tensor, target: Tensor, op: str) -> None:
    if input.shape != target.shape:
        raise ValueError(
            f"[{op}] input and target must have one shape (they are not broadcast); got {input.shape} and {target.shape}. "
            "reshape or expand one of them"
        )


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)^2, reduced. ValueError for unequal shapes, which PyTorch would broadcast."""
    _same_shape(input, target, "mse_loss")
    check_reduction(reduction, "mse_loss")
    d = input - target
    return _reduced(d * d, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|, reduced. ValueError for unequal shapes."""
    _same_shape(input, target, "l1_loss")
    check_reduction(reduction, "l1_loss")
    return _reduced((input - target).abs(), reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """-[pos_weight * t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))] * weight, reduced; exact for large |x|."""
    op = "binary_cross_entropy_with_logits"
    _same_shape(input, target, op)
    check_reduction(reduction, op)
    positive = (-input).softplus()
    if pos_weight is not None:
        positive = positive * (target * (pos_weight - 1) + 1)
    loss = (1 - target) * input + positive
    return _reduced(loss if weight is None else loss * weight, reduction)


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
    _class_axis(input, "cross_entropy")
    logp = log_softmax(input, min(1, input.ndim - 1))
    if target.dtype.is_floating_point:
        return _of_probabilities(logp, target, weight, reduction, label_smoothing)
    return _of_classes(logp, target, weight, ignore_index, reduction, label_smoothing, "cross_entropy")


def _class_axis(logp: Tensor, op: str) -> int:
    if not logp.ndim or not logp.dtype.is_floating_point:
        raise ValueError(f"[{op}] the input is floating point of shape [N, C, ...] or [C]; got {logp.dtype} {logp.shape}")
    return min(1, logp.ndim - 1)


def _of_probabilities(logp: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float) -> Tensor:
    _same_shape(logp, target, "cross_entropy")
    axis = _class_axis(logp, "cross_entropy")
    classes = logp.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    if weight is not None:
        target = target * _along(weight, logp, axis)
    loss = -(logp * target).sum(axis)
    return _reduced(loss, reduction)


def _along(weight: Tensor, logp: Tensor, axis: int) -> Tensor:
    """Class weights in a shape that broadcasts along the class axis."""
    if weight.shape != (logp.shape[axis],):
        raise ValueError(f"[cross_entropy] weight has one entry a class, ({logp.shape[axis]},); got {weight.shape}")
    return weight.reshape(-1, *(1,) * (logp.ndim - axis - 1))


def _of_classes(logp: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float,
                op: str) -> Tensor:  # fmt: skip
    """The loss of class targets given log-probabilities."""
    axis = _class_axis(logp, op)
    classes = logp.shape[axis]
    if target.shape != logp.shape[:axis] + logp.shape[axis + 1 :]:
        raise ValueError(f"[{op}] the target has the input's shape {logp.shape} without its class dimension; got {target.shape}")
    index, ignored = _classes_and_mask(target, classes, ignore, op)
    loss = -apply(Gather, logp, index.unsqueeze(axis), axis=axis).squeeze(axis)
    used = None
    if weight is not None:
        spread = _along(weight, logp, axis)
        used = take_rows(weight, index)
        loss = loss * used
    if smoothing:
        every = logp if weight is None else logp * spread
        loss = loss * (1 - smoothing) - every.sum(axis) * (smoothing / classes)
    if ignored is not None:
        loss = loss.masked_fill(ignored, 0)
        used = ignored.logical_not().to(loss.dtype) if used is None else used.masked_fill(ignored, 0)
    if reduction != "mean" or used is None:
        return _reduced(loss, reduction)
    return loss.sum() / used.sum()


def _classes_and_mask(target: Tensor, classes: int, ignore: int, op: str) -> tuple[Tensor, Tensor | None]:
    """Checked targets, ignored ones set to 0, and where those are; None when there are none."""
    if ignore < 0 and target.dtype.rank == 1 and target.numel():
        data = target.data
        low = int(data.min()) if data.__class__ is np.ndarray else data.gpu.index_bounds(data)[0]
        if low >= 0:
            return checked_index(target, classes, op), None
    ignored = target == ignore
    return checked_index(target.masked_fill(ignored, 0), classes, op), ignored
