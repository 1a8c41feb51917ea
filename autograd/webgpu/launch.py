"""Every launcher that an op can name as its `wgpu` attribute, in one place.

A launcher is made once, at import, and touches no GPU before it is called.
"""

from .elementwise import Binary, Cast, Copy, Ternary, Unary
from .index import Gather, IndexAdd, IndexSelect, PutAdd, ScatterAdd, Take, index_bounds
from .matmul import Matmul
from .movement import Arange, Cat, Pad, copy_into, full
from .optim import Adam, Sgd
from .reduce import Reduce
from .softmax import Softmax, SoftmaxBackward
from .window import AddWindows, MaxPool, Windows

__all__ = [
    "Adam",
    "AddWindows",
    "Arange",
    "Binary",
    "Cast",
    "Cat",
    "Copy",
    "Gather",
    "IndexAdd",
    "IndexSelect",
    "Matmul",
    "MaxPool",
    "Pad",
    "PutAdd",
    "Reduce",
    "ScatterAdd",
    "Sgd",
    "Softmax",
    "SoftmaxBackward",
    "Take",
    "Ternary",
    "Unary",
    "Windows",
    "copy_into",
    "full",
    "index_bounds",
]
