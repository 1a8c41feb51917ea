"""The layers and losses as functions, one family a file. PyTorch's names, arguments and numbers."""

from ...cast import listed
from ...errors import saying_what_came
from ...ops.matmul import linear
from .activation import (
    celu,
    elu,
    gelu,
    glu,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)  # fmt: skip
from .attention import scaled_dot_product_attention
from .classification import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    multilabel_soft_margin_loss,
    nll_loss,
)  # fmt: skip
from .common import check_reduction
from .convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold
from .ctc import ctc_loss
from .distance import bilinear, cdist, cosine_similarity, pairwise_distance, pdist
from .dropout import (
    alpha_dropout,
    check_probability,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)  # fmt: skip
from .embedding import check_padding, embedding, embedding_bag, one_hot
from .loss import gaussian_nll_loss, huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss, smooth_l1_loss
from .normalisation import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, normalize, rms_norm
from .padding import constant_pad_nd, pad
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
)  # fmt: skip
from .ranking import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)  # fmt: skip
from .resampling import interpolate, upsample, upsample_bilinear, upsample_nearest
from .unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from .vision import (
    affine_grid,
    channel_shuffle,
    grid_sample,
    grid_sampler_2d,
    grid_sampler_3d,
    pixel_shuffle,
    pixel_unshuffle,
)  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cdist", "celu", "channel_shuffle",
    "check_padding", "check_probability", "check_reduction", "constant_pad_nd", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "grid_sampler_2d",
    "grid_sampler_3d", "group_norm", "gumbel_softmax", "relu_",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss",
    "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss",
    "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot",
    "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu",
    "relu6", "rms_norm", "rrelu", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

for _name in __all__:
    _function = listed(globals()[_name], _name)  # what autocast has in its lists looks whether it is on
    if _function.__module__ != "autograd":  # what is public there says so already
        _function = saying_what_came(_function, _name)
        _function.__module__ = __name__  # where pickle finds it: a loss is sent to other processes
        globals()[_name] = _function
