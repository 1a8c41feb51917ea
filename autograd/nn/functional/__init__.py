"""The layers and losses as functions. PyTorch's names, arguments and numbers."""

from ...ops.matmul import linear
from ...ops.softmax import log_softmax, softmax
from .activation import gelu, leaky_relu, logsigmoid, relu, sigmoid, silu, softplus, tanh
from .classification import binary_cross_entropy_with_logits, cross_entropy, nll_loss
from .common import check_reduction
from .convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    unfold,
)
from .embedding import check_padding, check_probability, dropout, embedding, one_hot
from .loss import l1_loss, mse_loss
from .normalisation import layer_norm, normalize

__all__ = [
    "binary_cross_entropy_with_logits", "check_padding", "check_probability", "check_reduction", "cross_entropy", "dropout",
    "embedding", "gelu", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "mse_loss", "nll_loss",
    "normalize", "one_hot", "relu", "sigmoid", "silu", "softmax", "softplus", "tanh",
]  # fmt: skip
