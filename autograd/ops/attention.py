"""Scaled dot-product attention: a fused op that keeps no matrix of scores, and its composite twin.

    y = softmax(scale q k^T + mask) v

q [..., L, E], k [..., S, E], v [..., S, V] -> y [..., L, V]; the leading dimensions are equal. mask broadcasts to
[..., L, S]: bool, True where a query may see a key, or floating point, added. causal: query i sees keys 0 … i. A row
that may see nothing gives zeros, and no gradient. Dropout with probability p zeroes softmax's results, and divides the
rest by 1 - p.

What is kept for the gradient is lse [..., L], the logarithm of each row's sum of exponentials (+inf for a row that sees
nothing, so that its probabilities are 0): the probabilities are exp(scores - lse), and the gradients

    dv = P^T dy;  dS = P (dy v^T - D), D = sum(dy y) of each row;  dq = scale dS k;  dk = scale dS^T q

Source: Dao et al. 2022 (FlashAttention), algorithms 1 and 4; Milakov and Gimelshein 2018 for the running maximum.
What dropout keeps is a function of a seed and of the place (attention_numpy.kept), the same on both devices.
"""

from __future__ import annotations

from typing import Any

from ..create import place
from ..dtypes import bfloat16
from ..grad_mode import enable_grad
from ..op import Op, apply, register
from ..tape import Node, grad
from ..tensor import Tensor
from ..webgpu import attention as kernels
from . import attention_numpy
from .select import where

NEEDED = (0, 1, 2, 3)


@register
class Attention(Op):
    """y = softmax(scale q k^T + mask) v, and the logarithm of each row's sum
    dq, dk, dv: see attention_backward; through the composite when a graph of them is wanted
    """

    numpy = staticmethod(attention_numpy.forward)
    wgpu = kernels.Forward("attention")
    saves = (NEEDED,) * 4
    keeps = True
    outputs = 2

    @staticmethod
    def backward(ctx: Node, dy: Tensor, dlse: Any) -> tuple:
        q, k, v, mask = ctx.saved_inputs()
        with enable_grad():
            # New tensors on the old ones: the gradient is to stop here, not to run on into what they were made of.
            aliases = [x.reshape(*x.shape) for x in (q, k, v)]
            y = composite(aliases[0], aliases[1], aliases[2], mask, **ctx.attrs)
        wanted = [a for a, edge in zip(aliases, ctx.edges) if edge is not None]
        found = iter(grad(y, wanted, dy, create_graph=True))
        return (*(None if edge is None else next(found) for edge in ctx.edges[:3]), None)

    @staticmethod
    def fused_backward(ctx: Node, dy: Tensor, dlse: Any) -> tuple:
        q, k, v, mask = ctx.saved_inputs()
        y, lse = ctx.saved_outputs()
        return (*apply(AttentionBackward, dy, q, k, v, mask, y, lse, **ctx.attrs), None)


@register
class AttentionBackward(Op):
    """dv = P^T dy; dS = P (dy v^T - sum(dy y)); dq = scale dS k; dk = scale dS^T q, P = exp(scale q k^T + mask - lse)
    no gradient: the composite is what is differentiated
    """

    numpy = staticmethod(attention_numpy.backward)
    wgpu = kernels.Backward("attention_backward")
    outputs = 3
    differentiable = False


def scores_mask(mask: Tensor | None, shape: tuple, causal: bool, like: Tensor) -> Tensor | None:
    """The mask with the causal one in it, as bool or as numbers to add."""
    if not causal:
        return mask
    length, columns = shape[-2:]
    seen = like.new_ones(length, columns, dtype="bool").tril()
    if mask is None:
        return seen
    return mask & seen if mask.dtype.name == "bool" else where(seen, mask, float("-inf"))


def composite(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, causal: bool, p: float, seed: int) -> Tensor:
    """y in Tensor operations, differentiable any number of times, with respect to a floating point mask too."""
    return weighed(q, k, v, mask, scale, causal, p, seed)[0]


def weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, causal: bool, p: float,
            seed: int) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(y, the weights [..., L, S] that v was multiplied by)."""
    s = (q * scale) @ k.mT
    mask = scores_mask(mask, s.shape, causal, q)
    if mask is not None:
        s = where(mask, s, float("-inf")) if mask.dtype.name == "bool" else s + mask
        empty = (s == float("-inf")).all(-1, keepdim=True)
        s = where(empty, 0.0, s)  # softmax of such a row would be NaN, and so would the gradients of all that it meets
        weights = where(empty, 0.0, s.softmax(-1))
    else:
        weights = s.softmax(-1)
    if p:
        keep = place(attention_numpy.kept(s.shape, seed, p), q.device)
        weights = where(keep, weights * (1 / (1 - p) if p < 1 else 0.0), 0.0)
    return weights @ v, weights


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, causal: bool, p: float, seed: int) -> Tensor:
    """y by the fused op where it has a formula and a kernel, else by the composite. Shapes are checked by the caller."""
    if q.dtype is bfloat16:  # the sums of rows must not be rounded to 8 bits
        return attention(q.float(), k.float(), v.float(), mask, scale, causal, p, seed).to(bfloat16)
    unfit = q.device.type != "cpu" and not kernels.fits(q.array, k.array, v.array)
    if unfit or (mask is not None and mask._requires_grad) or not (q.numel() and k.numel() and v.numel()):
        return composite(q, k, v, mask, scale, causal, p, seed)
    return apply(Attention, q, k, v, mask, scale=scale, causal=causal, p=p, seed=seed)[0]
