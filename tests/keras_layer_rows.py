"""The Keras layers under test, one row each: read by test_keras_layers.py and, with Keras, by keras_layers_reference.py.

Inputs and weights are a formula's, so that the golden file holds results alone.
"""

from typing import NamedTuple

import numpy as np

PRIME = 10007  # cubing is a permutation modulo it: no two of the first 10007 values are equal


class Row(NamedTuple):
    """One call of one layer."""

    layer: str  # the class
    config: dict  # its arguments; a list of (layer, config) stands for wrapped layers
    shapes: list  # of its inputs: a tuple, or (high, tuple) for whole numbers below `high`
    call: dict = {}  # call()'s further arguments
    mask: str | None = None  # "right", "middle": the masked steps of the first input; "one", "second", "both": of these inputs
    listed: bool = False  # the inputs go in as one list
    checked: tuple = ()  # weights that Keras' call changes


def values(shape, start):
    """Distinct numbers in [-2, 2)."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64) + 1 + 1000 * start
    return ((i * i % PRIME) * i % PRIME / PRIME * 4 - 2).reshape(shape)


def inputs(row):
    """The arrays that go in."""
    made = []
    for k, shape in enumerate(row.shapes):
        if isinstance(shape[-1], tuple):
            high, shape = shape
            made.append((values(shape, k) * 1e4).astype(np.int64) % high)
        else:
            made.append(values(shape, k))
    if row.layer == "Masking":
        made[0][:, 1] = row.config.get("mask_value", 0.0)
        made[0][0, 0, 0] = row.config.get("mask_value", 0.0)  # one element alone masks nothing
    return made


def weight(name, shape, k):
    """The k-th weight."""
    w = values(shape, 3 + k) / 2
    return np.abs(w) + 0.5 if "variance" in name else w


def masks(row):
    """For each input, True where a step counts; None for an input without a mask."""
    kinds = {"both": ("right", "middle"), "one": ("right",), "second": (None, "middle")}.get(row.mask, (row.mask,))
    kinds += (None,) * (len(row.shapes) - len(kinds))
    return [kind and _mask(kind, *shape[:2]) for kind, shape in zip(kinds, row.shapes)]


def _mask(kind, batch, steps):
    keep = np.ones((batch, steps), bool)
    if kind == "right":
        for i in range(batch):
            keep[i, steps - 1 - i % (steps - 1) :] = False
    else:
        keep[0, 1:-1] = False
    return keep


def _named(prefix, layer, table):
    return {f"{prefix}_{name}" if name else prefix: Row(layer, *rest) for name, rest in table.items()}


LINE, PLANE, CHANNELS_FIRST = [(2, 7, 4)], [(2, 6, 5, 4)], {"data_format": "channels_first"}

DENSE = _named("dense", "Dense", {
    "": ({"units": 3}, [(4, 5)]),
    "relu": ({"units": 3, "activation": "relu"}, [(4, 5)]),
    "softmax": ({"units": 3, "activation": "softmax"}, [(4, 5)]),
    "no_bias": ({"units": 3, "use_bias": False}, [(4, 5)]),
    "steps": ({"units": 3, "activation": "tanh"}, [(2, 4, 5)], {}, "right"),
})  # fmt: skip

EMBEDDING = _named("embedding", "Embedding", {
    "": ({"input_dim": 7, "output_dim": 3}, [(7, (2, 5))]),
    "mask_zero": ({"input_dim": 4, "output_dim": 3, "mask_zero": True}, [(4, (3, 6))]),
})  # fmt: skip

CONVOLUTION = {
    **_named("conv1d", "Conv1D", {
        "": ({"filters": 3, "kernel_size": 3}, LINE),
        "same": ({"filters": 3, "kernel_size": 4, "padding": "same", "activation": "tanh"}, LINE),
        "same_strided": ({"filters": 3, "kernel_size": 4, "padding": "same", "strides": 2}, LINE),
        "same_dilated": ({"filters": 3, "kernel_size": 3, "padding": "same", "dilation_rate": 2}, LINE),
        "causal": ({"filters": 3, "kernel_size": 3, "padding": "causal"}, LINE),
        "causal_dilated": ({"filters": 3, "kernel_size": 2, "padding": "causal", "dilation_rate": 3}, LINE),
        "causal_strided": ({"filters": 3, "kernel_size": 3, "padding": "causal", "strides": 2}, LINE),
        "groups": ({"filters": 6, "kernel_size": 2, "groups": 2}, LINE),
        "no_bias": ({"filters": 3, "kernel_size": 1, "use_bias": False}, LINE),
        "channels_first": ({"filters": 3, "kernel_size": 3, "padding": "same", **CHANNELS_FIRST}, [(2, 4, 7)]),
    }),
    **_named("conv2d", "Conv2D", {
        "": ({"filters": 3, "kernel_size": 3}, PLANE),
        "same": ({"filters": 3, "kernel_size": [2, 3], "padding": "same"}, PLANE),
        "same_strided": ({"filters": 3, "kernel_size": 3, "padding": "same", "strides": 2, "activation": "relu"}, PLANE),
        "strides": ({"filters": 3, "kernel_size": 2, "strides": [2, 3]}, PLANE),
        "dilated": ({"filters": 3, "kernel_size": 2, "padding": "same", "dilation_rate": [2, 1]}, PLANE),
        "groups": ({"filters": 4, "kernel_size": 3, "groups": 4, "padding": "same"}, PLANE),
        "channels_first": ({"filters": 3, "kernel_size": 3, "padding": "same", "strides": 2, **CHANNELS_FIRST}, [(2, 4, 6, 5)]),
    }),
    **_named("conv1d_transpose", "Conv1DTranspose", {
        "": ({"filters": 3, "kernel_size": 3}, LINE),
        "strided": ({"filters": 3, "kernel_size": 3, "strides": 2}, LINE),
        "gaps": ({"filters": 3, "kernel_size": 2, "strides": 3}, LINE),
        "same": ({"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"}, LINE),
        "same_even": ({"filters": 3, "kernel_size": 4, "strides": 2, "padding": "same"}, LINE),
        "same_one": ({"filters": 3, "kernel_size": 3, "padding": "same"}, LINE),
    }),
    **_named("conv2d_transpose", "Conv2DTranspose", {
        "": ({"filters": 3, "kernel_size": 3}, PLANE),
        "same": ({"filters": 3, "kernel_size": [3, 2], "strides": 2, "padding": "same", "activation": "relu"}, PLANE),
        "output_padding": ({"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 1}, PLANE),
        "channels_first": ({"filters": 2, "kernel_size": 3, "strides": 2, "use_bias": False, **CHANNELS_FIRST}, [(2, 4, 3, 3)]),
    }),
    **_named("depthwise_conv1d", "DepthwiseConv1D", {
        "": ({"kernel_size": 3, "depth_multiplier": 2, "padding": "same"}, LINE),
    }),
    **_named("depthwise_conv2d", "DepthwiseConv2D", {
        "": ({"kernel_size": 3}, PLANE),
        "same": ({"kernel_size": 2, "strides": 2, "padding": "same", "depth_multiplier": 3, "activation": "tanh"}, PLANE),
        "channels_first": ({"kernel_size": 2, "depth_multiplier": 2, **CHANNELS_FIRST}, [(2, 4, 5, 5)]),
    }),
    **_named("separable_conv1d", "SeparableConv1D", {
        "": ({"filters": 3, "kernel_size": 3, "strides": 2}, LINE),
        "same": ({"filters": 3, "kernel_size": 2, "padding": "same", "depth_multiplier": 2, "activation": "relu"}, LINE),
    }),
    **_named("separable_conv2d", "SeparableConv2D", {
        "": ({"filters": 3, "kernel_size": 3, "depth_multiplier": 2}, PLANE),
        "same": ({"filters": 3, "kernel_size": 2, "padding": "same", "strides": 2, "use_bias": False}, PLANE),
    }),
}  # fmt: skip

POOLING = {
    key: row
    for kind in ("Max", "Average")
    for key, row in {
        **_named(f"{kind.lower()}_pooling1d", f"{kind}Pooling1D", {
            "": ({"pool_size": 2}, LINE),
            "same": ({"pool_size": 3, "strides": 2, "padding": "same"}, LINE),
            "same_even": ({"pool_size": 4, "strides": 3, "padding": "same"}, LINE),
            "channels_first": ({"pool_size": 2, "strides": 1, **CHANNELS_FIRST}, [(2, 4, 7)]),
        }),
        **_named(f"{kind.lower()}_pooling2d", f"{kind}Pooling2D", {
            "": ({"pool_size": 2}, PLANE),
            "same": ({"pool_size": [3, 2], "strides": [2, 1], "padding": "same"}, PLANE),
            "same_even": ({"pool_size": 4, "strides": 3, "padding": "same"}, PLANE),
            "channels_first": ({"pool_size": 2, "padding": "same", **CHANNELS_FIRST}, [(2, 4, 6, 5)]),
        }),
        **_named(f"global_{kind.lower()}_pooling1d", f"Global{kind}Pooling1D", {
            "": ({}, LINE),
            "keepdims": ({"keepdims": True}, LINE),
            "channels_first": (CHANNELS_FIRST, LINE),
        }),
        **_named(f"global_{kind.lower()}_pooling2d", f"Global{kind}Pooling2D", {
            "": ({}, PLANE),
            "keepdims": ({"keepdims": True, **CHANNELS_FIRST}, PLANE),
        }),
    }.items()
}  # fmt: skip
POOLING["global_average_pooling1d_mask"] = Row("GlobalAveragePooling1D", {}, LINE, {}, "right")
POOLING["global_average_pooling1d_mask_keepdims"] = Row("GlobalAveragePooling1D", {"keepdims": True}, LINE, {}, "middle")

MOVING = ("moving_mean", "moving_variance")
NORMALIZATION = {
    **_named("batch_normalization", "BatchNormalization", {
        "": ({}, [(6, 4)], {"training": True}, None, False, MOVING),
        "inference": ({}, [(6, 4)], {"training": False}, None, False, MOVING),
        "plane": ({"momentum": 0.9, "epsilon": 1e-2}, PLANE, {"training": True}, None, False, MOVING),
        "axis": ({"axis": 1}, [(2, 4, 3, 3)], {"training": True}, None, False, MOVING),
        "no_affine": ({"center": False, "scale": False}, [(6, 4)], {"training": True}, None, False, MOVING),
        "no_scale": ({"scale": False}, [(6, 4)], {"training": True}, None, False, MOVING),
        "mask": ({}, LINE, {"training": True}, "right", False, MOVING),
        "frozen": ({"trainable": False}, [(6, 4)], {"training": True}, None, False, MOVING),
    }),
    **_named("layer_normalization", "LayerNormalization", {
        "": ({}, [(3, 5)]),
        "two_axes": ({"axis": [1, 2]}, [(3, 4, 5)]),
        "no_affine": ({"center": False, "scale": False}, [(3, 5)]),
    }),
    **_named("group_normalization", "GroupNormalization", {
        "": ({"groups": 2}, PLANE),
        "instances": ({"groups": -1}, LINE),
        "axis": ({"groups": 2, "axis": 1, "scale": False}, [(2, 4, 3)]),
    }),
    **_named("rms_normalization", "RMSNormalization", {"": ({}, [(3, 5)])}),
    **_named("unit_normalization", "UnitNormalization", {"": ({}, [(3, 5)]), "axes": ({"axis": [1, 2]}, [(3, 4, 5)])}),
}  # fmt: skip

RESHAPING = {
    "flatten": Row("Flatten", {}, PLANE),
    "flatten_channels_first": Row("Flatten", CHANNELS_FIRST, PLANE),
    "flatten_vector": Row("Flatten", {}, [(4,)]),
    "reshape": Row("Reshape", {"target_shape": [2, 6]}, [(2, 3, 4)]),
    "reshape_unknown": Row("Reshape", {"target_shape": [-1, 2]}, [(2, 3, 4)]),
    "permute": Row("Permute", {"dims": [3, 1, 2]}, [(2, 3, 4, 5)]),
    "repeat_vector": Row("RepeatVector", {"n": 3}, [(2, 4)]),
    "zero_padding1d": Row("ZeroPadding1D", {"padding": [1, 2]}, LINE),
    "zero_padding1d_channels_first": Row("ZeroPadding1D", {"padding": 2, **CHANNELS_FIRST}, LINE),
    "zero_padding2d": Row("ZeroPadding2D", {"padding": [[1, 0], [2, 1]]}, PLANE),
    "zero_padding2d_channels_first": Row("ZeroPadding2D", {"padding": [1, 2], **CHANNELS_FIRST}, PLANE),
    "cropping1d": Row("Cropping1D", {"cropping": [1, 2]}, LINE),
    "cropping2d": Row("Cropping2D", {"cropping": [[1, 2], [0, 1]]}, PLANE),
    "cropping2d_channels_first": Row("Cropping2D", {"cropping": 1, **CHANNELS_FIRST}, PLANE),
    "up_sampling1d": Row("UpSampling1D", {"size": 3}, LINE),
    "up_sampling2d": Row("UpSampling2D", {"size": [2, 3]}, PLANE),
    "up_sampling2d_channels_first": Row("UpSampling2D", {**CHANNELS_FIRST}, PLANE),
    "up_sampling2d_bilinear": Row("UpSampling2D", {"size": 2, "interpolation": "bilinear"}, PLANE),
}

MERGING = {
    **{kind.lower(): Row(kind, {}, [(2, 3, 4)] * 3, {}, None, True) for kind in ("Add", "Multiply", "Average", "Maximum", "Minimum")},
    "add_broadcast": Row("Add", {}, [(2, 3, 4), (2, 4)], {}, None, True),
    "add_mask": Row("Add", {}, [(2, 5, 4)] * 2, {}, "both", True),
    "multiply_mask": Row("Multiply", {}, [(2, 5, 4)] * 2, {}, "one", True),
    "subtract": Row("Subtract", {}, [(2, 3, 4)] * 2, {}, None, True),
    "concatenate": Row("Concatenate", {}, [(2, 3, 4), (2, 3, 2)], {}, None, True),
    "concatenate_mask": Row("Concatenate", {"axis": 1}, [(2, 5, 4), (2, 3, 4)], {}, "both", True),
    "concatenate_last_mask": Row("Concatenate", {}, [(2, 5, 4), (2, 5, 3)], {}, "one", True),
    "dot": Row("Dot", {"axes": 1}, [(3, 4), (3, 4)], {}, None, True),
    "dot_matrices": Row("Dot", {"axes": [2, 1]}, [(3, 2, 4), (3, 4, 5)], {}, None, True),
    "dot_normalized": Row("Dot", {"axes": 2, "normalize": True}, [(3, 2, 4), (3, 5, 4)], {}, None, True),
}

SCORES = {"return_attention_scores": True}
ATTENTION = {
    **_named("attention", "Attention", {
        "": ({}, [(2, 3, 4), (2, 5, 4)], {}, None, True),
        "key": ({}, [(2, 3, 4), (2, 5, 6), (2, 5, 4)], {}, None, True),
        "scale": ({"use_scale": True}, [(2, 3, 4), (2, 5, 4)], {}, None, True),
        "concat": ({"score_mode": "concat"}, [(2, 3, 4), (2, 5, 4)], {}, None, True),
        "concat_scale": ({"score_mode": "concat", "use_scale": True}, [(2, 3, 4), (2, 5, 4)], {}, None, True),
        "causal": ({}, [(2, 5, 4), (2, 5, 4)], {"use_causal_mask": True}, None, True),
        "mask": ({}, [(2, 3, 4), (2, 5, 4)], {}, "both", True),
        "scores": ({}, [(2, 3, 4), (2, 5, 4)], SCORES, None, True),
    }),
    **_named("additive_attention", "AdditiveAttention", {
        "": ({}, [(2, 3, 4), (2, 5, 4)], {}, None, True),
        "mask": ({"use_scale": False}, [(2, 3, 4), (2, 5, 4)], {}, "both", True),
    }),
    **_named("multi_head_attention", "MultiHeadAttention", {
        "": ({"num_heads": 2, "key_dim": 3}, [(2, 3, 4), (2, 5, 4)]),
        "value_dim": ({"num_heads": 2, "key_dim": 3, "value_dim": 5, "output_shape": 6}, [(2, 3, 4), (2, 5, 4), (2, 5, 7)], SCORES),
        "no_bias": ({"num_heads": 2, "key_dim": 3, "use_bias": False}, [(2, 3, 4), (2, 5, 4)]),
        "causal": ({"num_heads": 2, "key_dim": 3}, [(2, 5, 4), (2, 5, 4)], {"use_causal_mask": True}),
        "mask": ({"num_heads": 2, "key_dim": 3}, [(2, 3, 4), (2, 5, 4)], {}, "second"),
        "masks": ({"num_heads": 2, "key_dim": 3}, [(2, 3, 4), (2, 5, 4)], SCORES, "both"),
        "causal_mask": ({"num_heads": 2, "key_dim": 3}, [(2, 5, 4), (2, 5, 4)], {"use_causal_mask": True, **SCORES}, "one"),
        "scores": ({"num_heads": 2, "key_dim": 3}, [(2, 3, 4), (2, 5, 4)], SCORES),
        "axes": ({"num_heads": 2, "key_dim": 3, "attention_axes": [2, 3]}, [(2, 2, 3, 2, 4), (2, 2, 3, 2, 4)]),
        "one_axis": ({"num_heads": 2, "key_dim": 3, "attention_axes": [1]}, [(2, 3, 2, 4), (2, 3, 2, 4)]),
    }),
}  # fmt: skip

ACTIVATION = {
    "activation": Row("Activation", {"activation": "gelu"}, [(3, 5)]),
    "relu": Row("ReLU", {}, [(3, 5)]),
    "relu_options": Row("ReLU", {"max_value": 1.0, "negative_slope": 0.1, "threshold": 0.2}, [(3, 5)]),
    "leaky_relu": Row("LeakyReLU", {}, [(3, 5)]),
    "leaky_relu_slope": Row("LeakyReLU", {"negative_slope": 0.1}, [(3, 5)]),
    "prelu": Row("PReLU", {}, [(3, 4, 5)]),
    "prelu_shared": Row("PReLU", {"shared_axes": [1]}, [(3, 4, 5)]),
    "elu": Row("ELU", {"alpha": 0.7}, [(3, 5)]),
    "softmax": Row("Softmax", {}, [(3, 5)]),
    "softmax_axis": Row("Softmax", {"axis": 1}, [(3, 5, 2)]),
    "softmax_mask": Row("Softmax", {}, [(3, 5)], {}, "right"),
}

REST = {
    "identity": Row("Identity", {}, LINE, {}, "right"),
    "masking": Row("Masking", {}, [(2, 4, 3)]),
    "masking_value": Row("Masking", {"mask_value": -1.0}, [(2, 4, 3)]),
    "activity_regularization": Row("ActivityRegularization", {"l1": 0.1, "l2": 0.2}, [(3, 4)]),
    "dropout_inference": Row("Dropout", {"rate": 0.5}, LINE, {"training": False}, "right"),
    "gaussian_noise_inference": Row("GaussianNoise", {"stddev": 0.5}, LINE, {"training": False}),
    "time_distributed": Row("TimeDistributed", {"layer": [("Dense", {"units": 3})]}, [(2, 4, 5)], {}, "right"),
    "time_distributed_conv": Row("TimeDistributed", {"layer": [("Conv1D", {"filters": 2, "kernel_size": 2})]}, [(2, 3, 5, 4)]),
}

ROWS = {**DENSE, **EMBEDDING, **CONVOLUTION, **POOLING, **NORMALIZATION, **RESHAPING, **MERGING, **ATTENTION, **ACTIVATION, **REST}
