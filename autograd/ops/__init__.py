"""The operations, one family a module. Importing this package registers them all and gives Tensor its methods."""

from . import (  # noqa: F401
    binary,
    composite,
    copies,
    diagonal,
    getitem,
    hyperbolic,
    index,
    inplace,
    matmul,
    movement,
    rearrange,
    reduce,
    rounding,
    select,
    softmax,
    special,
    trigonometry,
    unary,
    views,
    window,
)
