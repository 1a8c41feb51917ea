"""The transformer of Vaswani et al. 2017: layers, stacks of them, and the whole. PyTorch's arguments and parameter names.

x [T, N, E], or [N, T, E] with batch_first. Masks are MultiheadAttention's: bool, True where a key may *not* be seen, or
floating point, added to the scores. norm_first normalises what enters a block, not what leaves it (Xiong et al. 2020).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .. import create
from ..interop import twin_layer
from ..tensor import Tensor
from . import functional as F
from . import init
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .layers import LayerNorm, Linear
from .module import Module

ACTIVATIONS: dict[str, Callable] = {"relu": F.relu, "gelu": F.gelu}


def _activation(given: str | Callable, op: str) -> Callable:
    if callable(given):
        return given
    if given not in ACTIVATIONS:
        raise ValueError(f'[{op}] activation is "relu", "gelu" or a function; got {given!r}')
    return ACTIVATIONS[given]


class _Layer(Module):
    """What encoder and decoder layers share: the attention blocks' names, the feed-forward block, the norms."""

    def _build(self, attentions: tuple, d_model: int, nhead: int, dim_feedforward: int, dropout: float,
               activation: str | Callable, layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool,
               device: Any, dtype: Any) -> None:  # fmt: skip
        place: dict = {"device": device, "dtype": dtype}
        for name in attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place)
            self.register_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            self.register_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for i in blocks:
            self.register_module(f"dropout{i}", Dropout(dropout))
        self.norm_first, self.activation = norm_first, _activation(activation, type(self).__name__)

    def _add(self, x: Tensor, block: Callable, norm: Module, dropout: Module) -> Tensor:
        """norm(x + block(x)), or x + block(norm(x)) with norm_first."""
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """x = norm1(x + self_attn(x)); y = norm2(x + linear2(activation(linear1(x)))), with dropout behind each block.

    linear1 is d_model -> dim_feedforward, linear2 goes back; activation: "relu", "gelu" or a function.
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        self._build(("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                    norm_first, bias, device, dtype)  # fmt: skip

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:  # fmt: skip
        """y in src's shape."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        x = self._add(src, attend, self.norm1, self.dropout1)
        return self._add(x, self._feed_forward, self.norm2, self.dropout2)


class TransformerDecoderLayer(_Layer):
    """x = norm1(x + self_attn(x)); x = norm2(x + multihead_attn(x, memory)); y = norm3(x + feed_forward(x))."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        self._build(("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                    batch_first, norm_first, bias, device, dtype)  # fmt: skip

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        """y in tgt's shape."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x: Tensor) -> Tensor:
            masks = memory_key_padding_mask, False, memory_mask
            return self.multihead_attn(x, memory, memory, *masks, is_causal=memory_is_causal)[0]

        x = self._add(tgt, attend, self.norm1, self.dropout1)
        x = self._add(x, look, self.norm2, self.dropout2)
        return self._add(x, self._feed_forward, self.norm3, self.dropout3)


def _copies(layer: Module, n: int) -> ModuleList:
    layer = twin_layer(layer)
    return ModuleList(copy.deepcopy(layer) for _ in range(n))


class TransformerEncoder(Module):
    """num_layers copies of encoder_layer (ours, or PyTorch's), one after the other, then norm, where there is one.

    enable_nested_tensor and mask_check choose between computations of the same numbers in PyTorch; here there is one.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
                 mask_check: bool = True):  # fmt: skip
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(encoder_layer, num_layers), num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:  # fmt: skip
        """y in src's shape. is_causal: see MultiheadAttention."""
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of decoder_layer, one after the other, then norm, where there is one."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(decoder_layer, num_layers), num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        """y in tgt's shape."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                        bool(tgt_is_causal), memory_is_causal)  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """decoder(tgt, encoder(src)): num_encoder_layers and num_decoder_layers, each stack with a LayerNorm at its end.

    custom_encoder, custom_decoder: modules in their place. Matrices start xavier uniform.
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable = F.relu,
                 custom_encoder: Module | None = None, custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        place: dict = {"device": device, "dtype": dtype}
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*options, **place), num_encoder_layers, norm)
        if custom_decoder is None:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*options, **place), num_decoder_layers, norm)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        """y in tgt's shape."""
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(f"[Transformer] the last size of src and tgt is {self.d_model}; got {src.shape} and {tgt.shape}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask to add, [sz, sz]: 0 on and below the diagonal, -inf above."""
        return create.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)
