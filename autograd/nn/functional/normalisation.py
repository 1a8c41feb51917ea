"""Normalisations: each takes off a mean, divides by a deviation, and scales and shifts the result."""

from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes
from ...grad_mode import no_grad
from ...op import public
from ...ops.layer_norm import standardised
from ...ops.views import pad as constant_pad
from ...ops.window import windows
from ...tensor import Tensor


def _wide(x: Tensor, op: str) -> Tensor:
    """float16 is normalised in float32: squares would overflow. TypeError for whole numbers."""
    if not x.dtype.is_floating_point:
        raise TypeError(f"[{op}] expects floating point; got {x.dtype}. Convert with .float() first")
    return x.float() if x.dtype in dtypes.SHORT else x


def _affine(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _along_channels(parameter: Tensor | None, x: Tensor, op: str, name: str) -> Tensor | None:
    """A parameter with one number a channel, in a shape that broadcasts to x [N, C, ...]."""
    if parameter is None:
        return None
    if parameter.shape != (x.shape[1],):
        raise ValueError(f"[{op}] {name} has one number a channel, ({x.shape[1]},); got {parameter.shape}")
    return parameter.reshape(-1, *(1,) * (x.ndim - 2))


def _check_normalized(op: str, x: Tensor, normalized_shape: Sequence[int], **parameters: Tensor | None) -> int:
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"[{op}] the input must end in normalized_shape {shape}; got {x.shape}")
    for name, parameter in parameters.items():
        if parameter is not None and parameter.shape != shape:
            raise ValueError(f"[{op}] {name} has normalized_shape {shape}; got {parameter.shape}")
    return len(shape)


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions; var is the biased one.

    weight, bias: of shape normalized_shape, which must be how input's shape ends. float16 is computed in float32.
    """
    n = _check_normalized("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return standardised(_wide(input, "layer_norm"), n, weight, bias, eps).to(input.dtype)


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps is the dtype's machine epsilon unless given."""
    n = _check_normalized("rms_norm", input, normalized_shape, weight=weight)
    x = _wide(input, "rms_norm")
    if eps is None:
        eps = 2.0**-52 if x.dtype is dtypes.float64 else 2.0**-23
    return standardised(x, n, weight, None, eps, centred=False).to(input.dtype)


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of input [N, C, ...].

    In training mean and biased var are those of the batch, and running_mean and running_var, if given, move towards
    them (var as the unbiased one) by `momentum`; else the running ones are used.
    """
    op = "batch_norm"
    if not input.numel():
        return input.clone()
    if input.ndim < 2:
        raise ValueError(f"[{op}] expects [N, C, ...]; got {input.shape}")
    mean, var = (_along_channels(p, input, op, n) for p, n in ((running_mean, "running_mean"), (running_var, "running_var")))
    scale, shift = _along_channels(weight, input, op, "weight"), _along_channels(bias, input, op, "bias")
    x = _wide(input, op)
    if not training:
        if mean is None or var is None:
            raise ValueError(f"[{op}] needs running_mean and running_var when not training")
        return _affine((x - mean) * (var + eps).rsqrt(), scale, shift).to(input.dtype)
    count = x.numel() // x.shape[1]
    if count == 1:
        raise ValueError(f"[{op}] training needs more than one value a channel; got {input.shape}")
    axes = (0, *range(2, x.ndim))
    centre = x.mean(axes, keepdim=True)
    centred = x - centre
    spread = (centred * centred).mean(axes, keepdim=True)
    with no_grad():
        for running, batch in ((running_mean, centre), (running_var, spread * (count / (count - 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_(batch.detach().reshape(-1).to(running.dtype) * momentum)
    return _affine(centred * (spread + eps).rsqrt(), scale, shift).to(input.dtype)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                  eps: float = 1e-5) -> Tensor:  # fmt: skip
    """batch_norm for each sample of input [N, C, ...] alone; running statistics move towards the samples' average."""
    op = "instance_norm"
    if input.ndim < 3:
        raise ValueError(f"[{op}] expects [N, C, ...] with at least one more dimension; got {input.shape}")
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    scale, shift = _along_channels(weight, input, op, "weight"), _along_channels(bias, input, op, "bias")
    x, axes = _wide(input, op), tuple(range(2, input.ndim))
    count = x.numel() // max(x.shape[0] * x.shape[1], 1)
    if count == 1:
        raise ValueError(f"[{op}] needs more than one value in each channel of a sample; got {input.shape}")
    if running_mean is not None or running_var is not None:
        with no_grad():
            now = x.detach()
            for running, batch in ((running_mean, now.mean(axes)), (running_var, now.var(axes))):
                if running is not None:
                    running.mul_(1 - momentum).add_(batch.mean(0).to(running.dtype) * momentum)
    return _affine(standardised(x, len(axes), None, None, eps), scale, shift).to(input.dtype)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) over groups of channels of input [N, C, ...], then * weight + bias a channel."""
    op = "group_norm"
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ValueError(f"[{op}] expects [N, C, ...] with C divisible by num_groups={num_groups}; got {input.shape}")
    scale, shift = _along_channels(weight, input, op, "weight"), _along_channels(bias, input, op, "bias")
    samples = input.shape[0]
    inner = input.numel() // (samples * num_groups) if samples else 1
    grouped = _wide(input, op).reshape(samples, num_groups, inner) if samples else _wide(input, op)
    y = standardised(grouped, 1, None, None, eps) if samples else grouped
    return _affine(y.reshape(*input.shape), scale, shift).to(input.dtype)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta, for input [N, C, ...] with ... not empty."""
    op = "local_response_norm"
    if input.ndim < 3 or size < 1:
        raise ValueError(f"[{op}] expects [N, C, ...] and a positive size; got {input.shape} and size={size}")
    if not input.numel():
        return input
    channels = input.shape[1]
    squares = (input * input).transpose(1, -1)
    padded = constant_pad(squares, (size // 2, (size - 1) // 2))
    mean = windows(padded, (channels,), (size,), (1,), (1,)).sum(-1).transpose(1, -1) / size
    return input / (mean * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm of x along dim, eps)."""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


for _function in (batch_norm, instance_norm, group_norm, layer_norm, rms_norm):
    public(_function, method=False)
