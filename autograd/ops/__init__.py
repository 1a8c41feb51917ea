"""The operations, one family a module. Importing this package registers them all and gives Tensor its methods."""

from . import (  # noqa: F401
    binary,
    composite,
    getitem,
    index,
    inplace,
    matmul,
    movement,
    reduce,
    select,
    softmax,
    special,
    trigonometry,
    unary,
    views,
)
