"""What autocast does to an operation: lists of operations, and the wrapper that looks into them.

The lists are PyTorch's, by device: a GPU's is that of CUDA. An operation in none of them runs in the dtypes it is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import dtypes
from .dtypes import DType
from .grad_mode import state
from .tensor import Tensor

# Products, in the short dtype. "rnn" stands for the recurrent layers and cells, which PyTorch lists for GPUs only.
_PRODUCTS = (
    "matmul", "mm", "bmm", "inner", "addmm", "addbmm", "baddbmm", "einsum", "tensordot", "linear", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "rnn", "scaled_dot_product_attention", "attention_weights",
    "prelu", "linalg_matmul", "linalg_multi_dot", "linalg_vecdot",
)  # fmt: skip
# Losses, whose sums are long and whose logarithms and squares are large, in float32 on both devices.
_LOSSES = (
    "cosine_embedding_loss", "nll_loss", "hinge_embedding_loss", "poisson_nll_loss", "smooth_l1_loss", "cross_entropy",
    "l1_loss", "huber_loss", "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss", "ctc_loss",
    "kl_div", "multilabel_margin_loss", "binary_cross_entropy_with_logits", "mse_loss", "cdist",
)  # fmt: skip
_WIDE_ON_GPU = (
    "pow", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sinh", "cosh", "tan", "acos", "asin",
    "erfinv", "softplus", "softmin", "softmax", "log_softmax", "layer_norm", "group_norm", "rms_norm", "cosine_similarity",
    "norm", "dist", "pdist", "renorm", "logsumexp", "prod", "sum", "cumsum", "cumprod", "nansum", "float_power", "rtruediv",
    "linalg_norm", "linalg_vector_norm", "linalg_matrix_norm",
)  # fmt: skip
_WIDE_ON_CPU = (
    "avg_pool3d", "max_pool3d", "adaptive_avg_pool3d", "binary_cross_entropy", "grid_sample", "grid_sampler_2d",
    "grid_sampler_3d", "prod", "quantile", "nanquantile", "trace", "cholesky", "cholesky_inverse", "cholesky_solve", "inverse",
    "pinverse", "det", "logdet", "slogdet", "svd", "qr", "lu", "triangular_solve", "matrix_power", "matrix_exp",
    "linalg_cholesky", "linalg_cholesky_ex", "linalg_cond", "linalg_det", "linalg_eigh", "linalg_eigvalsh", "linalg_inv",
    "linalg_inv_ex", "linalg_lstsq", "linalg_lu", "linalg_matrix_exp", "linalg_matrix_norm", "linalg_matrix_power",
    "linalg_matrix_rank", "linalg_pinv", "linalg_qr", "linalg_slogdet", "linalg_solve", "linalg_solve_ex",
    "linalg_solve_triangular", "linalg_svd", "linalg_svdvals", "linalg_tensorinv", "linalg_tensorsolve",
)  # fmt: skip

# Single operations in PyTorch, made of listed ones here: they run in the dtype they are given.
_WHOLE = (
    "elu", "selu", "celu", "mish", "gelu", "silu", "logsigmoid", "batch_norm", "instance_norm", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "logaddexp", "logaddexp2",
)  # fmt: skip

LISTS: dict[str, dict[str, str]] = {
    "cpu": {
        **dict.fromkeys(_WHOLE, "whole"),
        **dict.fromkeys(_PRODUCTS, "low"),
        **dict.fromkeys([*_LOSSES, *_WIDE_ON_CPU], "wide"),
        **dict.fromkeys(("cat", "stack", "concat", "index_copy"), "promote"),
    },
    "wgpu": {
        **dict.fromkeys(_WHOLE, "whole"),
        **dict.fromkeys([*_PRODUCTS, "mv", "addmv", "addr"], "low"),
        **dict.fromkeys([*_LOSSES, *_WIDE_ON_GPU], "wide"),
        **dict.fromkeys(
            ("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "grid_sample", "grid_sampler_2d", "grid_sampler_3d",
             "index_put", "scatter_add", "cat", "stack", "concat"), "promote"),
        "binary_cross_entropy": "refuse",
    },
}  # fmt: skip
_LISTED = {name for table in LISTS.values() for name in table}


def listed(function: Callable, name: str) -> Callable:
    """`function` as autocast sees it: itself when it is in no list, else with a look at whether autocast is on."""
    if name not in _LISTED:
        return function

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        policy = state.autocast
        return function(*args, **kwargs) if policy is None else policy.run(function, name, args, kwargs)

    return watched


class Policy:
    """What one autocast region does: the short dtype of each device type where it is on, and the casts it remembers."""

    def __init__(self, short: dict[str, DType], remember: bool, casts: dict):
        self.short, self.remember, self.casts = short, remember, casts

    def run(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """function(*args, **kwargs) with its tensors cast as the list of their device says; nothing is cast within."""
        found: list[Tensor] = []
        _collect((*args, *kwargs.values()), found)
        kind = found[0].device.type if found else ""
        short, rule = self.short.get(kind), LISTS.get(kind, {}).get(name)
        if short is None or rule is None or kwargs.get("dtype") is not None:
            return function(*args, **kwargs)
        if rule == "refuse":
            raise RuntimeError(f"[{name}] is not safe in {short} under autocast; use the loss that takes logits instead")
        known = {t.dtype for t in found}
        stays_short = rule == "low" or (rule == "promote" and dtypes.float32 not in known)
        target: Any = None if rule == "whole" else short if stays_short else dtypes.float32
        before, state.autocast = state.autocast, None
        try:
            if target is None:
                return function(*args, **kwargs)
            args = tuple([self._cast(a, target) for a in args])
            return function(*args, **{k: self._cast(v, target) for k, v in kwargs.items()})
        finally:
            state.autocast = before

    def _cast(self, value: Any, target: DType) -> Any:
        """A tensor, or those in a list or tuple, in the target dtype; float64 and integers stay what they are."""
        if isinstance(value, Tensor):
            d = value.dtype
            if d is target or d is dtypes.float64 or not d.is_floating_point or value.device.type not in self.short:
                return value
            if not (self.remember and value._requires_grad and value.node is None and target in dtypes.SHORT and state.enabled):
                return value.to(target)
            entry = self.casts.get(value)
            if entry is None or entry[0] != value.version[0] or entry[1].dtype is not target:
                self.casts[value] = entry = (value.version[0], value.to(target))  # a weight that a loop uses again
            return entry[1]
        if value.__class__ is list or value.__class__ is tuple:
            return value.__class__([self._cast(v, target) for v in value])
        return value


def _collect(values: Any, found: list[Tensor]) -> None:
    for value in values:
        if isinstance(value, Tensor):
            if value.dtype.is_floating_point:
                found.append(value)
        elif value.__class__ is list or value.__class__ is tuple:
            _collect(value, found)
