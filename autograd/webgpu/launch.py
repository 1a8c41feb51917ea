"""Every launcher that an op can name as its `wgpu` attribute, in one place.

A launcher is made once, at import, and touches no GPU before it is called.
"""

from .elementwise import Binary, Cast, Copy, Ternary, Unary
from .index import Gather, IndexAdd, IndexSelect, Scatter, ScatterAdd, ScatterReduce, index_bounds
from .matmul import Matmul
from .movement import Cat, Pad, copy_into, full
from .optim import Adam, Sgd
from .reduce import Reduce
from .scan import LinearScan, RunningMax
from .softmax import Softmax, SoftmaxBackward
from .sort import Argsort
from .window import AddWindows, MaxPool, Windows

__all__ = [
    "Adam",
    "AddWindows",
    "Argsort",
    "Binary",
    "Cast",
    "Cat",
    "Copy",
    "Gather",
    "IndexAdd",
    "IndexSelect",
    "LinearScan",
    "Matmul",
    "MaxPool",
    "Pad",
    "Reduce",
    "RunningMax",
    "Scatter",
    "ScatterAdd",
    "ScatterReduce",
    "Sgd",
    "Softmax",
    "SoftmaxBackward",
    "Ternary",
    "Unary",
    "Windows",
    "copy_into",
    "full",
    "index_bounds",
]
