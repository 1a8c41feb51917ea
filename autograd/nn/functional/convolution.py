"""Convolutions of one, two and three dimensions, their transposes, and the windows they are made of.

A convolution is one matrix product of the weight with the windows of the input, laid out as columns.
"""

from __future__ import annotations

from typing import Any

from ...op import public
from ...ops.matmul import matmul
from ...ops.views import pad as constant_pad
from ...ops.window import add_windows, windows
from ...tensor import Tensor
from .common import spread


def _conv(op: str, n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
          groups: int) -> Tensor:  # fmt: skip
    _check_operands(op, n, x, weight, bias)
    step, hole = _positive(stride, n, "stride", op), _positive(dilation, n, "dilation", op)
    if groups < 1:
        raise ValueError(f"[{op}] groups must be positive; got {groups}")
    if weight.shape[0] % groups or weight.shape[0] < groups:
        raise ValueError(f"[{op}] the output channels must divide into {groups} groups; got weight {weight.shape}")
    batched = x if x.ndim == n + 2 else x.unsqueeze(0)
    if batched.shape[1] != weight.shape[1] * groups:
        raise ValueError(
            f"[{op}] the weight {weight.shape} with groups={groups} takes {weight.shape[1] * groups} channels; "
            f"got input {x.shape}"
        )
    _check_bias(op, bias, weight.shape[0])
    kernel = weight.shape[2:]
    batched = _padded(batched, _padding(padding, kernel, step, hole, op))
    count = tuple((size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(batched.shape[2:], kernel, step, hole, strict=True))
    if any(c < 1 for c in count):
        raise ValueError(f"[{op}] the kernel {kernel} with dilation {hole} is larger than the padded input {batched.shape[2:]}")
    y = _product(batched, weight, bias, count, step, hole, groups)
    return y if x.ndim == n + 2 else y.squeeze(0)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, count: tuple, stride: tuple, dilation: tuple, groups: int) -> Tensor:
    """The columns [C * kernel, N * places] of all samples side by side, so that one product serves the whole batch."""
    n, kernel = len(count), weight.shape[2:]
    samples, out = x.shape[0], weight.shape[0]
    seen = windows(x, count, kernel, stride, dilation).permute(1, *range(2 + n, 2 + 2 * n), 0, *range(2, 2 + n))
    places = samples
    for c in count:
        places *= c
    inner = weight.numel() // out
    if groups == 1:
        y = matmul(weight.reshape(out, inner), seen.reshape(inner, places))
    else:
        columns = seen.reshape(groups, inner, places)
        y = matmul(weight.reshape(groups, out // groups, inner), columns).reshape(out, places)
    if bias is not None:
        y = y + bias.reshape(out, 1)
    return y.reshape(out, samples, *count).permute(1, 0, *range(2, 2 + n)).contiguous()


def _check_operands(op: str, n: int, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if weight.ndim != n + 2 or x.ndim not in (n + 1, n + 2):
        raise ValueError(
            f"[{op}] expects an input of {n + 2} dimensions ({n + 1} for one sample) and a weight of {n + 2}; "
            f"got {x.shape} and {weight.shape}"
        )
    if x.dtype is not weight.dtype or (bias is not None and bias.dtype is not x.dtype):
        named = ", ".join(str(t.dtype) for t in (x, weight, bias) if t is not None)
        raise TypeError(f"[{op}] input, weight and bias must have one dtype; got {named}. Cast with .to(dtype)")
    if 0 in weight.shape:
        raise ValueError(f"[{op}] the weight must not be empty; got {weight.shape}")


def _check_bias(op: str, bias: Tensor | None, channels: int) -> None:
    """ValueError unless bias is None or holds one number a channel."""
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"[{op}] the bias has one number an output channel, ({channels},); got {bias.shape}")


def _positive(value: Any, n: int, name: str, op: str) -> tuple:
    values = spread(value, n, name, op)
    if any(v < 1 for v in values):
        raise ValueError(f"[{op}] {name} must be positive; got {value}")
    return values


def _padding(padding: Any, kernel: tuple, stride: tuple, dilation: tuple, op: str) -> list[tuple[int, int]]:
    """(before, after) of each dimension; of an odd "same" the larger part comes after, as in PyTorch."""
    if isinstance(padding, str):
        if padding == "valid":
            return [(0, 0)] * len(kernel)
        if padding != "same":
            raise ValueError(f'[{op}] padding is "same", "valid" or numbers; got {padding!r}')
        if any(s != 1 for s in stride):
            raise ValueError(f'[{op}] padding="same" needs a stride of 1; got {stride}')
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    values = spread(padding, len(kernel), "padding", op)
    if any(v < 0 for v in values):
        raise ValueError(f"[{op}] padding must not be negative; got {padding}")
    return [(v, v) for v in values]


def _padded(x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    flat = [v for pair in reversed(pairs) for v in pair]
    return constant_pad(x, flat) if any(flat) else x


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1) -> Tensor:  # fmt: skip
    """y[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] * x[n, c, i * stride + k * dilation], x padded with zeros.

    input [N, C, L] or [C, L], weight [O, C / groups, K], bias [O]; padding: numbers, "valid" or "same".
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1) -> Tensor:  # fmt: skip
    """As conv1d over two dimensions: input [N, C, H, W] or [C, H, W], weight [O, C / groups, KH, KW]."""
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1) -> Tensor:  # fmt: skip
    """As conv1d over three dimensions: input [N, C, D, H, W] or [C, D, H, W], weight [O, C / groups, KD, KH, KW]."""
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


# -- transposed -----------------------------------------------------------------------------------------


def _conv_transpose(op: str, n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                    output_padding: Any, groups: int, dilation: Any) -> Tensor:  # fmt: skip
    _check_operands(op, n, x, weight, bias)
    step, hole = _positive(stride, n, "stride", op), _positive(dilation, n, "dilation", op)
    cut, extra = spread(padding, n, "padding", op), spread(output_padding, n, "output_padding", op)
    if any(v < 0 for v in (*cut, *extra)):
        raise ValueError(f"[{op}] padding and output_padding must not be negative; got {padding} and {output_padding}")
    if any(e >= max(s, d) for e, s, d in zip(extra, step, hole, strict=True)):
        raise ValueError(f"[{op}] output_padding must be below stride or dilation; got {extra} for {step} and {hole}")
    batched = x if x.ndim == n + 2 else x.unsqueeze(0)
    if groups < 1 or weight.shape[0] % groups or batched.shape[1] != weight.shape[0]:
        raise ValueError(
            f"[{op}] the weight {weight.shape} takes {weight.shape[0]} channels in {groups} groups; got input {x.shape}"
        )
    _check_bias(op, bias, weight.shape[1] * groups)
    kernel, count = weight.shape[2:], batched.shape[2:]
    whole = [(c - 1) * s + d * (k - 1) + 1 + e for c, s, d, k, e in zip(count, step, hole, kernel, extra, strict=True)]
    sizes = [w - 2 * c for w, c in zip(whole, cut, strict=True)]
    if any(size < 1 for size in sizes):
        raise ValueError(f"[{op}] padding {cut} leaves nothing: the output would be {sizes}")
    y = _scattered(batched, weight, whole, step, hole, groups)
    if any(cut):
        y = y[(slice(None), slice(None), *(slice(c, c + size) for c, size in zip(cut, sizes, strict=True)))].contiguous()
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * n)
    return y if x.ndim == n + 2 else y.squeeze(0)


def _scattered(x: Tensor, weight: Tensor, sizes: list[int], stride: tuple, dilation: tuple, groups: int) -> Tensor:
    """weight^T @ x, each column added up where its window lies."""
    n, kernel, count = weight.ndim - 2, weight.shape[2:], x.shape[2:]
    samples, channels, out = x.shape[0], x.shape[1], weight.shape[1] * groups
    inner = weight.numel() // weight.shape[0]
    each = channels // groups
    rows = x.permute(1, 0, *range(2, 2 + n)).reshape(groups, each, x.numel() // channels)
    columns = matmul(weight.reshape(groups, each, inner).mT, rows).reshape(out, *kernel, samples, *count)
    seen = columns.permute(1 + n, 0, *range(2 + n, 2 + 2 * n), *range(1, 1 + n))
    return add_windows(seen, tuple(sizes), stride, dilation)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    """The transpose of conv1d: y[n, o, i * stride + k * dilation - padding] += weight[c, o, k] * x[n, c, i], + bias[o].

    input [N, C, L] or [C, L], weight [C, O / groups, K], bias [O]. output_padding lengthens the end.
    """
    return _conv_transpose("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    """As conv_transpose1d over two dimensions: input [N, C, H, W], weight [C, O / groups, KH, KW]."""
    return _conv_transpose("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    """As conv_transpose1d over three dimensions: input [N, C, D, H, W], weight [C, O / groups, KD, KH, KW]."""
    return _conv_transpose("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# -- windows as columns ---------------------------------------------------------------------------------


def _window(op: str, kernel_size: Any, dilation: Any, stride: Any) -> tuple[tuple, tuple, tuple]:
    given = {"kernel_size": kernel_size, "dilation": dilation, "stride": stride}
    kernel, hole, step = (_positive(value, 2, name, op) for name, value in given.items())
    return kernel, hole, step


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of input [N, C, H, W] (or [C, H, W]) as columns [N, C * kernel, places]; zeros around the input."""
    op = "unfold"
    kernel, hole, step = _window(op, kernel_size, dilation, stride)
    if input.ndim not in (3, 4):
        raise ValueError(f"[{op}] expects [N, C, H, W] or [C, H, W]; got {input.shape}")
    x = input if input.ndim == 4 else input.unsqueeze(0)
    x = _padded(x, _padding(padding, kernel, step, hole, op))
    count = tuple((size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], kernel, step, hole, strict=True))
    if any(c < 1 for c in count):
        raise ValueError(f"[{op}] the window {kernel} with dilation {hole} is larger than the padded input {x.shape[2:]}")
    y = windows(x, count, kernel, step, hole).permute(0, 1, 4, 5, 2, 3)
    y = y.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], count[0] * count[1])
    return y if input.ndim == 4 else y.squeeze(0)


def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The transpose of unfold: columns [N, C * kernel, places] (or without N) added up into [N, C, *output_size]."""
    op = "fold"
    kernel, hole, step = _window(op, kernel_size, dilation, stride)
    sizes = _positive(output_size, 2, "output_size", op)
    around = _padding(padding, kernel, step, hole, op)
    if input.ndim not in (2, 3) or input.shape[-2] % (kernel[0] * kernel[1]):
        raise ValueError(f"[{op}] expects [N, C * {kernel[0] * kernel[1]}, places]; got {input.shape}")
    whole = [size + a + b for size, (a, b) in zip(sizes, around, strict=True)]
    count = tuple((size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(whole, kernel, step, hole, strict=True))
    if any(c < 1 for c in count) or input.shape[-1] != count[0] * count[1]:
        raise ValueError(f"[{op}] an output of {sizes} has {count[0]} x {count[1]} windows of {kernel}; got {input.shape}")
    x = input if input.ndim == 3 else input.unsqueeze(0)
    x = x.reshape(x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), *kernel, *count).permute(0, 1, 4, 5, 2, 3)
    y = add_windows(x, tuple(whole), step, hole)
    if any(a or b for a, b in around):
        y = y[(..., *(slice(a, a + size) for size, (a, _) in zip(sizes, around, strict=True)))].contiguous()
    return y if input.ndim == 3 else y.squeeze(0)


for _function in (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d):
    public(_function, method=False)
