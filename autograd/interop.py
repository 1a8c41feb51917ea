"""Meeting other libraries: our functions and layers for theirs, and shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .create import from_numpy
from .tensor import Tensor


def twin_of(function: Callable) -> Callable:
    """Our function with the name of PyTorch's `function`: so that code written with torch.f takes our tensors too."""
    from . import linalg, nn, op, special

    name = getattr(function, "__name__", "")
    for place in (op.PUBLIC, vars(nn.functional), vars(linalg), vars(special)):
        if callable(place.get(name)):
            return place[name]
    raise TypeError(
        f"[{name or repr(function)}] PyTorch's function has no twin here; "
        "convert with torch.from_numpy(x.detach().numpy())"
    )


def twin_layer(layer: Any) -> Any:
    """Our transformer layer with the settings and weights of PyTorch's; what is no such layer comes back as it is."""
    from . import nn

    name = type(layer).__name__
    if isinstance(layer, nn.Module) or name not in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        return layer
    attention = layer.self_attn
    made = getattr(nn, name)(
        attention.embed_dim, attention.num_heads, layer.linear1.out_features, layer.dropout.p, twin_of(layer.activation),
        layer.norm1.eps, attention.batch_first, layer.norm_first, layer.linear1.bias is not None,
    )  # fmt: skip
    weights = {k: from_numpy(v.detach().cpu().numpy()) for k, v in layer.state_dict().items()}
    made.to(weights["linear1.weight"].dtype).load_state_dict(weights)
    return made.train(layer.training)


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A CPU tensor that shares the memory of another library's array, by the DLPack protocol.

    copy=True shares nothing; device, where given, is "cpu". TypeError for what has no __dlpack__, or a dtype that the
    engine has not; BufferError for memory that cannot be shared.
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"[from_dlpack] expected an array with __dlpack__; got {type(x).__name__}")
    if device is not None and str(device) != "cpu":
        raise ValueError(f"[from_dlpack] memory is shared on the CPU; got device {device!r}. Move the result with .to(device)")
    array = np.from_dlpack(x)
    return from_numpy(array.copy() if copy else array)
