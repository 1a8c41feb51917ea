"""torch.linalg's names: ag.linalg.solve, ag.linalg.svd, …"""

from .cast import listed
from .errors import LinAlgError
from .ops.diagonal import linalg_diagonal as diagonal
from .ops.grids import linalg_vander as vander
from .ops.least_squares import lstsq, tensorinv, tensorsolve
from .ops.linalg import (
    cholesky,
    cholesky_ex,
    det,
    eigh,
    eigvalsh,
    inv,
    inv_ex,
    lu_factor,
    lu_solve,
    matrix_exp,
    matrix_power,
    multi_dot,
    slogdet,
    solve_triangular,
    svdvals,
)
from .ops.linalg import linalg_lu as lu
from .ops.linalg import linalg_qr as qr
from .ops.linalg import linalg_solve as solve
from .ops.linalg import linalg_solve_ex as solve_ex
from .ops.linalg import linalg_svd as svd
from .ops.linalg import pinverse as pinv
from .ops.matmul import matmul
from .ops.matrix_norm import cond, matrix_norm, matrix_rank, vector_norm
from .ops.matrix_norm import linalg_norm as norm
from .ops.products import linalg_cross as cross
from .ops.products import linalg_vecdot as vecdot

__all__ = [
    "LinAlgError", "lstsq", "tensorinv", "tensorsolve",
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "inv_ex", "lu", "lu_factor",
    "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr",
    "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "vander", "vecdot", "vector_norm",
]  # fmt: skip

for _name in __all__[1:]:
    globals()[_name] = listed(globals()[_name], f"linalg_{_name}")  # what autocast has in its lists looks whether it is on
