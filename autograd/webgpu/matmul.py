"""The launcher of batched matrix products: picks accessors and tile by strides and shape."""

from .layout import (
    broadcast_shapes,
    broadcast_strides,
    coalesce,
    contiguous_strides,
    dim_words,
    element_count,
)
from .movement import Pad, copy_into, full
from .reduce import Fold

MAX_GROUPS = 65535
LARGE = 1 << 18
SPLIT_LENGTH = 128
FEW_TILES = 256

pad = Pad()
sum_over = Fold("sum")


def fours(a, *strides):
    """True where every start in these strides is a multiple of four elements."""
    return not (a.offset % 4 or any(stride % 4 for stride in strides))


def order(a, contiguous_last, along_last, along_first):
    """Which accessor of lib/matmul_* reads this operand, four numbers at a time if it can."""
    *batch, row, col = a.strides
    depth = a.shape[-1] if contiguous_last else a.shape[-2]
    if depth % 4 == 0:
        if col == 1 and fours(a, row, *batch):
            return along_last
        if row == 1 and fours(a, col, *batch):
            return along_first
    return "any"


def fold_batch(a, b):
    """`a[..., M, K] @ b[K, N]` is one product of a taller a, where a's strides allow."""
    if any(b.strides[:-2]) and element_count(b.shape[:-2]) > 1:
        return None
    if a.ndim == 2 or not a.size or element_count(b.shape[:-2]) != 1:
        return None
    sizes, strides = coalesce(a.shape[:-1], a.strides[:-1])
    if len(sizes) != 1:
        return None
    tall = a.view((sizes[0], a.shape[-1]), (strides[0], a.strides[-1]), a.offset)
    return tall, b.view(b.shape[-2:], b.strides[-2:], b.offset)


def padded(a):
    """A copy whose matrices start and go on by multiples of four, zeros in between."""
    rows, cols = a.shape[-2:]
    pads = [(0, 0)] * (a.ndim - 2) + [(0, -rows % 4), (0, -cols % 4)]
    return pad(a, pads)


class Matmul:
    """`Matmul()(a, b, bias=None)`: [..., M, K] @ [..., K, N] (+ bias[N]).

    Batch dimensions broadcast, strides are read in place, sums are f32.
    """

    def __call__(self, a, b, bias=None):
        m, n = a.shape[-2], b.shape[-1]
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*batch, m, n)
        y = a.gpu.empty(shape, a.dtype)
        if not y.size:
            return y
        if not a.shape[-1]:
            y = full(shape, 0, a.dtype, a.gpu)
            if bias is not None:
                copy_into(y, bias)
            return y
        folded = fold_batch(a, b)
        if folded is not None:
            a, b = folded
            m = a.shape[0]
        matrices = 1 if folded is not None else element_count(batch)
        parts = self.parts(a, b, matrices)
        if parts > 1 and bias is None:
            return self.split(a, b, parts, shape)
        if m * n * a.shape[-1] * matrices >= LARGE:
            a, b = self.aligned(a, b)
        self.multiply(a, b, bias, y, m, n)
        return y

    def aligned(self, a, b):
        """The operands, one that only the slow accessor could read copied with padding."""
        slow_a = order(a, True, "along_k", "along_m") == "any"
        slow_b = order(b, False, "along_n", "along_k") == "any"
        if a.shape[-1] % 4:
            return padded(a), padded(b)
        return (padded(a) if slow_a else a), (padded(b) if slow_b else b)

    def parts(self, a, b, matrices):
        """Into how many pieces k is cut: long thin products have too few tiles otherwise."""
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        if matrices > 1 or a.ndim > 2 or b.ndim > 2:
            return 1
        parts = 1
        tiles = -(-m // 4) * -(-n // 4)
        while k % (8 * parts) == 0 and k // parts > SPLIT_LENGTH and tiles * parts < FEW_TILES:
            parts *= 2
        return parts

    def split(self, a, b, parts, shape):
        """The sum of `parts` products over shorter k, each a matrix of one batch."""
        (m, k), n = a.shape, b.shape[-1]
        piece = k // parts
        a = a.view((parts, m, piece), (piece * a.strides[1], *a.strides), a.offset)
        b = b.view((parts, piece, n), (piece * b.strides[0], *b.strides), b.offset)
        y = a.gpu.empty((parts, m, n), a.dtype)
        self.multiply(a, b, None, y, m, n)
        y = sum_over(y, (0,))
        return y.view(shape, contiguous_strides(shape), 0)

    def multiply(self, a, b, bias, y, m, n):
        """Queue the dispatches of one batched product into y."""
        gpu, k = y.gpu, a.shape[-1]
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        count = element_count(batch)
        a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
        b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
        sizes, a_batch, b_batch = coalesce(batch, a_batch, b_batch)
        rows, cols = self.tile(gpu, m, n, count)
        groups = (-(-n // (32 * cols)), -(-m // (32 * rows)), count)
        if max(groups) > MAX_GROUPS:
            raise ValueError(
                f"[matmul] {count} products of ({m}, {k}) @ ({k}, {n}) are more than one "
                "dispatch holds; multiply in pieces."
            )
        kernel = self.kernel(gpu, a, b, bias, n, rows, cols)
        words = [m, n, k, len(sizes), a.offset, b.offset]
        words += [0, 0] if bias is None else [bias.offset, bias.strides[-1]]
        words += [*a.strides[-2:], *b.strides[-2:]]
        words += dim_words(sizes, a_batch, b_batch)
        arrays = (a, b, y) if bias is None else (a, b, y, bias)
        gpu.run(kernel, arrays, words, groups)

    def tile(self, gpu, m, n, count):
        """Blocks of 4 x 4 an invocation: large where there are invocations enough."""
        if m * n * count >= 1 << 14 and min(m, n) >= 16:
            # Software Vulkan vectorises across invocations and likes long ones.
            return (4, 4) if gpu.info["type"] == "CPU" and m * n >= 1 << 18 else (2, 2)
        return 1, 1

    def kernel(self, gpu, a, b, bias, n, rows, cols):
        """The kernel for these strides, this n and this tile."""
        libs = (
            f"matmul_a_{order(a, True, 'along_k', 'along_m')}",
            f"matmul_b_{order(b, False, 'along_n', 'along_k')}",
            "matmul_store" if n % 4 else "matmul_store4",
            "matmul_plain" if bias is None else "matmul_bias",
        )
        tile = f"const ROWS = {rows}u;\nconst COLS = {cols}u;\n"
        return gpu.kernel("matmul", libs, tile, **gpu.alias_types(a.dtype))
