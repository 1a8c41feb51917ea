"""Keras layers: the names, arguments, defaults, weights and numbers of Keras 3; channels_last unless told otherwise."""

from .activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from .attention import AdditiveAttention, Attention, MultiHeadAttention
from .bidirectional import Bidirectional
from .convolution import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose
from .core import Dense, Embedding, Identity, Lambda, Masking
from .cudnn import CuDNNGRU, CuDNNLSTM
from .depthwise import DepthwiseConv1D, DepthwiseConv2D, SeparableConv1D, SeparableConv2D
from .merging import (
    Add,
    Average,
    Concatenate,
    Dot,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    add,
    average,
    concatenate,
    dot,
    maximum,
    minimum,
    multiply,
    subtract,
)  # fmt: skip
from .normalization import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    UnitNormalization,
)  # fmt: skip
from .pooling import (
    AveragePooling1D,
    AveragePooling2D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    MaxPooling1D,
    MaxPooling2D,
)  # fmt: skip
from .recurrent import GRU, LSTM, RNN, SimpleRNN
from .recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from .regularization import (
    ActivityRegularization,
    AlphaDropout,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
)  # fmt: skip
from .reshaping import (
    Cropping1D,
    Cropping2D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    UpSampling1D,
    UpSampling2D,
    ZeroPadding1D,
    ZeroPadding2D,
)  # fmt: skip
from .stacked_cells import StackedRNNCells
from .wrappers import TimeDistributed, Wrapper

# Keras' other names for them.
AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution1DTranspose = Conv1DTranspose
Convolution2DTranspose = Conv2DTranspose
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D

__all__ = [
    "Activation", "ActivityRegularization", "Add", "AdditiveAttention", "AlphaDropout", "Attention", "Average",
    "AveragePooling1D", "AveragePooling2D", "AvgPool1D", "AvgPool2D", "BatchNormalization", "Bidirectional",
    "Concatenate", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Convolution1D", "Convolution1DTranspose",
    "Convolution2D", "Convolution2DTranspose", "Cropping1D", "Cropping2D", "CuDNNGRU", "CuDNNLSTM", "Dense",
    "DepthwiseConv1D", "DepthwiseConv2D", "Dot", "Dropout", "ELU", "Embedding", "Flatten", "GaussianDropout",
    "GaussianNoise", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAvgPool1D", "GlobalAvgPool2D",
    "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GroupNormalization", "GRU",
    "GRUCell", "Identity", "Lambda", "LayerNormalization", "LeakyReLU", "LSTM", "LSTMCell", "Masking", "Maximum",
    "MaxPool1D", "MaxPool2D", "MaxPooling1D", "MaxPooling2D", "Minimum", "MultiHeadAttention", "Multiply", "Permute",
    "PReLU", "ReLU", "RepeatVector", "Reshape", "RMSNormalization", "RNN", "SeparableConv1D", "SeparableConv2D",
    "SeparableConvolution1D", "SeparableConvolution2D", "SimpleRNN", "SimpleRNNCell", "Softmax", "SpatialDropout1D",
    "SpatialDropout2D", "StackedRNNCells", "Subtract", "TimeDistributed", "UnitNormalization", "UpSampling1D",
    "UpSampling2D", "Wrapper", "ZeroPadding1D", "ZeroPadding2D", "add", "average", "concatenate", "dot", "maximum",
    "minimum", "multiply", "subtract",
]  # fmt: skip
