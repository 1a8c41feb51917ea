"""Products of vectors, matrices and tensors: sums of products, all by way of matmul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import shapes
from ..op import promoted, public
from ..tensor import Tensor
from .matmul import matmul
from .rounding import tensors

# -- a product added to something -------------------------------------------------------------------------


def _plus(x: Tensor, product: Tensor, beta: float, alpha: float, op: str) -> Tensor:
    """beta * x + alpha * product; x is not looked at when beta is 0, so that its NaN does not spread."""
    if x.dtype is not product.dtype:
        raise TypeError(f"[{op}] all must have one dtype; got {x.dtype} and {product.dtype}")
    if not shapes.expandable(x.shape, product.shape):
        raise ValueError(f"[{op}] the input must expand to {product.shape}; got {x.shape}")
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (x if beta == 1 else x * beta)


def _of_dims(op: str, *given: tuple[Tensor, int]) -> None:
    tensors(op, *(x for x, _ in given))
    if any(x.ndim != n for x, n in given):
        wanted = ", ".join(f"{n}-D" for _, n in given)
        raise ValueError(f"[{op}] expects {wanted} tensors; got {', '.join(str(x.shape) for x, _ in given)}")


def addmm(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * mat1 @ mat2"""
    _of_dims("addmm", (mat1, 2), (mat2, 2))
    return _plus(x, matmul(mat1, mat2), beta, alpha, "addmm")


def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * mat @ vec"""
    _of_dims("addmv", (mat, 2), (vec, 1))
    return _plus(x, matmul(mat, vec), beta, alpha, "addmv")


def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * vec1 (outer) vec2"""
    _of_dims("addr", (vec1, 1), (vec2, 1))
    x, vec1, vec2 = promoted(x, vec1, vec2)
    return _plus(x, vec1.unsqueeze(1) * vec2, beta, alpha, "addr")


def baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * batch1 @ batch2, matrix by matrix"""
    _of_dims("baddbmm", (batch1, 3), (batch2, 3))
    return _plus(x, _one_by_one(batch1, batch2, "baddbmm"), beta, alpha, "baddbmm")


def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * the sum of batch1 @ batch2 over the batch"""
    _of_dims("addbmm", (batch1, 3), (batch2, 3))
    return _plus(x, _one_by_one(batch1, batch2, "addbmm").sum(0), beta, alpha, "addbmm")


def _one_by_one(a: Tensor, b: Tensor, op: str) -> Tensor:
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"[{op}] the batches must have one size; got {a.shape} and {b.shape}")
    return matmul(a, b)


# -- products of vectors ----------------------------------------------------------------------------------


def inner(x: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dimension of each; a 0-d tensor multiplies everything."""
    tensors("inner", x, other)
    if not x.ndim or not other.ndim:
        return x * other
    if x.shape[-1] != other.shape[-1]:
        raise ValueError(f"[inner] the last sizes must agree; got {x.shape} and {other.shape}")
    return tensordot(x, other, ([-1], [-1]))


def vdot(x: Tensor, other: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    _of_dims("vdot", (x, 1), (other, 1))
    return matmul(x, other)


def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of products along `dim`, broadcast. ag.linalg.vecdot."""
    tensors("vecdot", x, y)
    shape = shapes.broadcast((x.shape, y.shape), "vecdot")
    shapes.axis_of(dim, len(shape), "vecdot")
    return (x * y).sum(dim) if shape else x * y


def cross(x: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along `dim`, by default the first dimension of size 3."""
    tensors("cross", x, other)
    if dim is None:
        if 3 not in x.shape:
            raise ValueError(f"[cross] expects a dimension of size 3; got {x.shape}")
        dim = x.shape.index(3)
    return linalg_cross(x, other, dim=dim)


def linalg_cross(x: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """x[k+1] other[k+2] - x[k+2] other[k+1] along `dim`, a dimension of size 3. ag.linalg.cross."""
    tensors("cross", x, other)
    if x.ndim != other.ndim:
        raise ValueError(f"[cross] both must have as many dimensions; got {x.shape} and {other.shape}")
    axis = shapes.axis_of(dim, x.ndim, "cross")
    if not x.ndim or x.shape[axis] != 3 or other.shape[axis] != 3:
        raise ValueError(f"[cross] the size along dim {axis} must be 3; got {x.shape} and {other.shape}")
    shapes.broadcast((x.shape, other.shape), "cross")
    return x.roll(-1, axis) * other.roll(-2, axis) - x.roll(-2, axis) * other.roll(-1, axis)


def kron(x: Tensor, other: Tensor) -> Tensor:
    """Every element of x times the whole of `other`, block by block."""
    tensors("kron", x, other)
    n = max(x.ndim, other.ndim)
    a, b = ((1,) * (n - v.ndim) + v.shape for v in (x, other))
    left = x.reshape([s for k in a for s in (k, 1)])
    right = other.reshape([s for k in b for s in (1, k)])
    return (left * right).reshape([i * j for i, j in zip(a, b, strict=True)])


# -- contractions ---------------------------------------------------------------------------------------


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: None = None) -> Tensor:
    """The sum of products over dims: the last of a with the first of b (a number), or two lists of dimensions."""
    tensors("tensordot", a, b)
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"[tensordot] dims must lie in [0, {min(a.ndim, b.ndim)}]; got {dims}")
        dims = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    left, right = ([shapes.axis_of(d, x.ndim, "tensordot") for d in ([given] if isinstance(given, int) else given)]
                   for x, given in zip((a, b), dims, strict=True))  # fmt: skip
    if len(left) != len(right):
        raise ValueError(f"[tensordot] both lists must be as long; got {list(dims[0])} and {list(dims[1])}")
    for x, axes, other, partners in ((a, left, b, right), (b, right, a, left)):
        for i, j in zip(axes, partners, strict=True):
            if x.shape[i] != other.shape[j] and x.shape[i] != 1 and other.shape[j] != 1:
                raise ValueError(f"[tensordot] contracted sizes must agree; got {a.shape} over {left} and {b.shape} over {right}")
    for i, j in zip(left, right, strict=True):  # a size of 1 stands for any: the other is summed
        if a.shape[i] != b.shape[j]:
            a, b = (a.sum(i, keepdim=True), b) if b.shape[j] == 1 else (a, b.sum(j, keepdim=True))
    free_a, free_b = ([i for i in range(x.ndim) if i not in axes] for x, axes in ((a, left), (b, right)))
    k = shapes.numel(a.shape[i] for i in left)
    rows, columns = tuple(a.shape[i] for i in free_a), tuple(b.shape[i] for i in free_b)
    a = a.permute([*free_a, *left]).reshape(shapes.numel(rows), k)
    b = b.permute([*right, *free_b]).reshape(k, shapes.numel(columns))
    return matmul(a, b).reshape(*rows, *columns)


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products by letters: einsum("ij,jk->ik", a, b); also einsum(a, [0, 1], b, [1, 2], [0, 2]).

    "..." stands for dimensions that broadcast. Without "->" the result has the letters that stand once, in order.
    Operands are contracted from left to right, each pair by one batched product.
    """
    if not isinstance(equation, str):
        equation, operands = _written_out(equation, *operands)
    elif len(operands) == 1 and isinstance(operands[0], Sequence):
        operands = tuple(operands[0])
    tensors("einsum", *operands)
    if not operands:
        raise ValueError("[einsum] expects at least one operand")
    terms, result = _parse(equation, operands)
    parts = [_diagonals(x, term) for x, term in zip(operands, terms, strict=True)]
    sizes: dict = {}
    for x, term in parts:
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) in (1, n):
                sizes[letter] = n
            elif n != 1:
                raise ValueError(f"[einsum] sizes of {letter!r} must agree; got {sizes[letter]} and {n} in {equation!r}")
    x, term = parts[0]
    for k in range(1, len(parts)):
        later = {*result, *(letter for _, rest in parts[k + 1 :] for letter in rest)}
        x, term = _contract(x, term, *parts[k], later)
    x, term = _summed(x, term, set(result))
    x = x.permute([term.index(letter) for letter in result]) if result else x
    return x.expand([sizes[letter] for letter in result]) if result else x


def _written_out(*given: Any) -> tuple[str, tuple]:
    """The sublist form as an equation; numbers become letters."""
    lists, operands = [], []
    for k in range(0, len(given) - 1, 2):
        operands.append(given[k])
        lists.append(given[k + 1])
    result = given[-1] if len(given) % 2 else None
    write = lambda numbers: "".join("..." if n is Ellipsis else _letter(n) for n in numbers)
    return ",".join(map(write, lists)) + ("" if result is None else "->" + write(result)), tuple(operands)


def _letter(n: int) -> str:
    if not 0 <= n < 52:
        raise ValueError(f"[einsum] subscripts must lie in [0, 51]; got {n}")
    return chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26)


def _parse(equation: str, operands: tuple) -> tuple[list, list]:
    """Each operand's letters, and the result's; the dimensions of "..." are numbers counted from the last."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"[einsum] {equation!r} names {len(terms)} operands; got {len(operands)}")
    lists, longest = [], 0
    for term, x in zip(terms, operands, strict=True):
        before, dots, after = term.partition("...")
        if not (before + after).replace("_", "?").isalpha() and before + after:
            raise ValueError(f"[einsum] subscripts are letters, one '...' an operand; got {term!r} in {equation!r}")
        hidden = x.ndim - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise ValueError(f"[einsum] {term!r} does not name the dimensions of shape {x.shape}")
        longest = max(longest, hidden)
        lists.append([*before, *range(-hidden, 0), *after])
    dots_range = list(range(-longest, 0))
    flat = [letter for term in lists for letter in term if isinstance(letter, str)]
    if not arrow:
        return lists, [*dots_range, *sorted(letter for letter in set(flat) if flat.count(letter) == 1)]
    before, dots, after = right.partition("...")
    if any((before + after).count(c) > 1 or c not in flat for c in before + after):
        raise ValueError(f"[einsum] the result's subscripts must each stand once, and in an operand; got {equation!r}")
    return lists, [*before, *(dots_range if dots else ()), *after]


def _diagonals(x: Tensor, term: list) -> tuple[Tensor, list]:
    """x with each letter once: a repeated one runs along the diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ValueError(f"[einsum] sizes of {letter!r} must agree; got {x.shape[i]} and {x.shape[j]}")
            x = x.diagonal(0, i, j)
            term = [*term[:i], *term[i + 1 : j], *term[j + 1 :], letter]
    return x, term


def _summed(x: Tensor, term: list, kept: set) -> tuple[Tensor, list]:
    """x summed over the letters that nobody needs any more."""
    gone = [i for i, letter in enumerate(term) if letter not in kept]
    return (x.sum(gone) if gone else x), [letter for letter in term if letter in kept]


def _contract(a: Tensor, left: list, b: Tensor, right: list, later: set) -> tuple[Tensor, list]:
    """The product of two, summed over the letters that only they have: one batched matrix product."""
    a, left = _summed(a, left, {*right, *later})
    b, right = _summed(b, right, {*left, *later})
    common = [letter for letter in left if letter in right]
    for letter in [c for c in common if c not in later]:  # a size of 1 stands for any: the other is summed
        i, j = left.index(letter), right.index(letter)
        if a.shape[i] != b.shape[j]:
            a, b = (a, b.sum(j, keepdim=True)) if a.shape[i] == 1 else (a.sum(i, keepdim=True), b)
    batch = [c for c in common if c in later]
    inside = [c for c in common if c not in later]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    a = a.permute([left.index(c) for c in (*batch, *rows, *inside)]) if left else a
    b = b.permute([right.index(c) for c in (*batch, *inside, *columns)]) if right else b
    n, k = len(batch), len(inside)
    row_sizes, column_sizes, inner_sizes = a.shape[n : n + len(rows)], b.shape[n + k :], b.shape[n : n + k]
    size = shapes.numel(inner_sizes)
    a = a.reshape(*a.shape[:n], shapes.numel(row_sizes), size)
    b = b.reshape(*b.shape[:n], size, shapes.numel(column_sizes))
    y = matmul(a, b) if size != 1 else a * b
    return y.reshape(*y.shape[:n], *row_sizes, *column_sizes), [*batch, *rows, *columns]


for _function in (addmm, addmv, addr, baddbmm, addbmm, inner, vdot, cross, kron):
    public(_function)
for _function in (tensordot, einsum):
    public(_function, method=False)
