"""The layers and losses as functions. PyTorch's names, arguments and numbers."""

from ...ops.matmul import linear
from ...ops.softmax import log_softmax, softmax
from .activation import (
    celu, elu, gelu, glu, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, logsigmoid, mish, prelu, relu, relu6, selu,
    sigmoid, silu, softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold,
)  # fmt: skip
from .classification import binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, multilabel_soft_margin_loss, nll_loss
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
from .distance import bilinear, cdist, cosine_similarity, pairwise_distance, pdist
from .ctc import ctc_loss
from .embedding import check_padding, check_probability, dropout, embedding, embedding_bag, one_hot
from .pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from .resampling import interpolate, upsample, upsample_bilinear, upsample_nearest
from .loss import gaussian_nll_loss, huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss, smooth_l1_loss
from .ranking import (
    cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    soft_margin_loss, triplet_margin_loss, triplet_margin_with_distance_loss,
)  # fmt: skip
from .normalisation import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, normalize, rms_norm
from .padding import constant_pad_nd, pad
from .vision import affine_grid, channel_shuffle, grid_sample, pixel_shuffle, pixel_unshuffle

__all__ = [
    "binary_cross_entropy_with_logits", "check_padding", "check_probability", "check_reduction", "cross_entropy", "dropout",
    "embedding", "gelu", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "mse_loss", "nll_loss",
    "normalize", "one_hot", "relu", "sigmoid", "silu", "softmax", "softplus", "tanh",
]  # fmt: skip
