"""The launcher of batched matrix products: picks accessors and tile by strides and shape."""

from struct import Struct

from . import fuse
from .elementwise import Binary
from .layout import (
    LONGEST_LOOP,
    Plans,
    broadcast_shapes,
    broadcast_strides,
    coalesce,
    contiguous_strides,
    dim_words,
    element_count,
    pack_words,
)
from .movement import Cat, Pad, copy_into, narrow
from .packed import FLOAT32
from .pieces import in_words
from .reduce import Fold
from .tune import choice

MAX_GROUPS = 65535
LARGE = 1 << 18
LONGEST_K = 4 * LONGEST_LOOP // 2
SPLIT_LENGTH = 128
FEW_TILES = 256
UNROLLED = 4  # blocks of an invocation whose epilogue software Vulkan compiles in reasonable time

MOST_WORK = 1 << 37  # products a dispatch: a second of a slow GPU, whose driver may end what takes longer

PLACE = Struct("<6I")
DIMS = 8  # the most dimensions of a batch

LAUNCHERS = []  # whose plans tune.py makes them forget
pad, cat = Pad(), Cat()
add = Binary("add")
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


def split_count(a, b):
    """Into how many pieces k is cut: long thin products have too few tiles otherwise."""
    if a.ndim > 2 or b.ndim > 2:
        return 1
    (m, k), n = a.shape, b.shape[-1]
    parts, tiles = 1, -(-m // 4) * -(-n // 4)
    while k % (8 * parts) == 0 and k // parts > SPLIT_LENGTH and tiles * parts < FEW_TILES:
        parts *= 2
    return parts


def partial_type(a):
    """The dtype of sums that are still to be added up: never one of 16 bits."""
    return FLOAT32 if a.dtype.itemsize == 2 else a.dtype


def queue_product(plan, a, b, y, more=None, turn=0):
    """Queue the dispatches of a plan: one, where it is not too long for one. more: a bias, or where row sums go."""
    _, kernel, rest, pieces = plan
    if y.dtype in y.gpu.packed:  # whole words are written
        y, more = in_words(y), more if more is None or more.dtype != y.dtype else in_words(more)
    arrays = (a, b, y) if more is None else (a, b, y, more)
    for place, groups in places(pieces, a, b, more, turn):
        y.gpu.run(kernel, arrays, place + rest, groups)


def places(pieces, a, b, more=None, turn=0):
    """(the parameters that say where it begins, workgroups) of each dispatch."""
    offsets = a.offset, b.offset, 0 if more is None else more.offset
    return [(PLACE.pack(*offsets, batch, row, turn), groups) for batch, row, groups in pieces]


def turned(a, turn):
    """a with its rows `turn` places further down, cyclically."""
    rest = a.shape[0] - turn
    return cat(narrow(a, 0, rest, turn), narrow(a, 0, 0, rest), axis=0) if turn else a


def pieces(groups, work):
    """(first matrix, first row's group, workgroups) of dispatches that together are `groups`; work: products a group."""
    x, y, z = groups
    rows = min(max(MOST_WORK // (work * x), 1), MAX_GROUPS)
    matrices = min(max(MOST_WORK // (work * x * min(rows, y)), 1), MAX_GROUPS)
    return tuple(
        (batch, row, (x, min(rows, y - row), min(matrices, z - batch)))
        for batch in range(0, z, matrices)
        for row in range(0, y, rows)
    )


class Matmul:
    """`Matmul()(a, b, bias=None)`: [..., M, K] @ [..., K, N] (+ bias[N]).

    Batch dimensions broadcast, strides are read in place, sums are f32. One dispatch of floating point waits for what
    is made of it (epilogue.py).
    """

    name, out = "product", None  # as an op of an expression
    places = staticmethod(places)

    def __init__(self):
        self.plans = Plans()
        LAUNCHERS.append(self)

    def __call__(self, a, b, bias=None):
        dtype = a.gpu.written(a.dtype)
        operands = (a, b) if bias is None else (a, b, bias)
        shape = self.may_wait(operands, dtype) if fuse.ENABLED else None
        y = fuse.wait_for_epilogue(self, operands, shape, dtype) if shape else self.product(a, b, bias, dtype)
        return y if y.dtype == a.dtype else a.gpu.cast(y, a.dtype)

    def key(self, a, b, bias=None):
        """What a plan depends on."""
        key = (a.shape, a.strides, a.offset % 4, b.shape, b.strides, b.offset % 4, a.dtype, b.dtype)
        return (*key, None if bias is None else bias.strides, a.gpu)

    def may_wait(self, operands, dtype):
        """The shape of a product that is one dispatch, with memory for all that it reads; None for others."""
        if any([x.storage.large for x in operands]):
            return None
        key = ("waits", *self.key(*operands))
        shape = self.plans.get(key)
        if shape is None:
            shape = self.plans.keep(key, self.shape_of_one(*operands) if dtype.kind == "f" else ())
        return shape

    def shape_of_one(self, a, b, bias=None):
        """The shape of a product that is one dispatch; () for others."""
        shape = (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        cells, k = element_count(shape), a.shape[-1]
        if not cells or not k or k > LONGEST_K or 4 * cells > a.gpu.pool.max_binding // 2 or shape[-1] > 32 * MAX_GROUPS:
            return ()
        a, b = self.operands(a, b)
        _, rows, cols = choice(a.gpu, a.shape[-2], shape[-1], element_count(a.shape[:-2]))
        if a.gpu.info["type"] == "CPU" and rows * cols > UNROLLED:
            return ()
        return shape if bias is not None or split_count(a, b) == 1 else ()

    def direct(self, a, b, bias=None, dtype=None):
        """Compute at once."""
        return self.product(a, b, bias, dtype)

    def product(self, a, b, bias, dtype):
        """The product written in `dtype`: an operand's or float32. b may be of another floating dtype than a (and bias)."""
        if dtype in a.gpu.packed and b.shape[-1] % 4:
            return a.gpu.rounded(self.product(a, b, bias, FLOAT32), dtype)
        cells = element_count(a.shape[:-1]) * element_count(b.shape[:-2]) * b.shape[-1]  # at least as many as there are
        if a.storage.large or b.storage.large or 4 * cells > a.gpu.pool.max_binding // 2:
            y = self.in_pieces(a, b, bias, dtype)
            if y is not None:
                return y
        key = (*self.key(a, b, bias), dtype)
        plan = self.plans.get(key)
        if plan is None:
            return self.first(key, a, b, bias, dtype)
        y = a.gpu.empty(plan[0], dtype)
        queue_product(plan, a, b, y, bias)
        return y

    def with_sums(self, a, b, turn=0, dtype=None):
        """(a @ b, the sums of a's rows) of two matrices, in one dispatch where that can be; both `turn` rows turned.

        dtype: theirs, by default a's.
        """
        (m, k), n, gpu, final = a.shape, b.shape[1], a.gpu, dtype or a.dtype
        dtype = gpu.written(final) if m % 4 or n % 4 or turn % 4 else final
        one = m * k * n and k <= LONGEST_K and split_count(a, b) == 1
        if not one or a.storage.large or b.storage.large or 8 * m * n > gpu.pool.max_binding:
            both = self.product(a, b, None, dtype), sum_over(a, (1,))
            return tuple([gpu.rounded(turned(y, turn), final) for y in both])
        y, sums = gpu.empty((m, n), dtype), gpu.empty((m,), dtype)
        key = ("sums", a.shape, a.strides, a.offset % 4, b.shape, b.strides, b.offset % 4, a.dtype, b.dtype, dtype, gpu)
        plan = self.plans.get(key)
        if plan is None:
            plan, a, b, lasting = self.planned(a, b, None, (m, n), dtype, sums=True)
            if lasting:
                self.plans.keep(key, plan)
        queue_product(plan, a, b, y, sums, turn)
        return gpu.rounded(y, final), gpu.rounded(sums, final)

    def in_pieces(self, a, b, bias, dtype):
        """The product where one kernel cannot see all of it; None where it can."""
        from .large import fits, product

        if fits(a, b):
            return None
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a.gpu.check((*batch, a.shape[-2], b.shape[-1]), dtype)  # before any piece is computed
        return product(self, a, b, bias, dtype)

    def first(self, key, a, b, bias, dtype):
        """A product not met before; kept as a plan where it is one plain dispatch."""
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*batch, a.shape[-2], b.shape[-1])
        y = a.gpu.empty(shape, dtype)
        if not y.size:
            return y
        if not a.shape[-1]:
            copy_into(y, 0 if bias is None else bias)
            return y
        if a.shape[-1] > LONGEST_K:
            return a.gpu.rounded(self.by_pieces(a, b, bias), dtype)
        a, b = self.operands(a, b)
        parts = 1 if bias is not None else split_count(a, b)
        if parts > 1:
            return self.split(a, b, parts, shape, dtype)
        plan, a, b, lasting = self.planned(a, b, bias, shape, dtype)
        if lasting:
            self.plans.keep(key, plan)
        queue_product(plan, a, b, y, bias)
        return y

    def operands(self, a, b):
        """The operands, as one product of a taller a where that can be."""
        return fold_batch(a, b) or (a, b)

    def planned(self, a, b, bias, shape, dtype, **options):
        """(plan, the operands that its kernel reads, whether these are a and b): a large one's may be padded copies."""
        m, n, given = a.shape[-2], b.shape[-1], (a, b)
        if element_count(shape) * a.shape[-1] >= LARGE:
            a, b = self.aligned(a, b)
        return (shape, *self.plan(a, b, bias, m, n, dtype, **options)), a, b, (a, b) == given

    def aligned(self, a, b):
        """The operands, one that only the slow accessor could read copied with padding."""
        slow_a = order(a, True, "along_k", "along_m") == "any"
        slow_b = order(b, False, "along_n", "along_k") == "any"
        if a.shape[-1] % 4:
            return padded(a), padded(b)
        return (padded(a) if slow_a else a), (padded(b) if slow_b else b)

    def by_pieces(self, a, b, bias):
        """A product whose k one invocation may not walk, as a sum of shorter ones."""
        k, y = a.shape[-1], None if bias is None else a.gpu.rounded(bias, partial_type(a))
        for start in range(0, k, LONGEST_K):
            count = min(LONGEST_K, k - start)
            operands = narrow(a, a.ndim - 1, start, count), narrow(b, b.ndim - 2, start, count)
            part = self.product(*operands, None, partial_type(a))
            y = part if y is None else add(part, y)
        return y

    def split(self, a, b, parts, shape, dtype):
        """The sum of `parts` products over shorter k, each a matrix of one batch."""
        (m, k), n = a.shape, b.shape[-1]
        piece = k // parts
        a = a.view((parts, m, piece), (piece * a.strides[1], *a.strides), a.offset)
        b = b.view((parts, piece, n), (piece * b.strides[0], *b.strides), b.offset)
        y = sum_over(self.product(a, b, None, partial_type(a)), (0,), dtype=a.gpu.written(dtype))
        return a.gpu.rounded(y.view(shape, contiguous_strides(shape), 0), dtype)

    def plan(self, a, b, bias, m, n, dtype, sums=False, tail=None):
        """(kernel, parameters after the place, pieces); operands may be padded. tail: what stores instead (epilogue.py)."""
        k = a.shape[-1]
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        count = element_count(batch)
        a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
        b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
        sizes, a_batch, b_batch = coalesce(batch, a_batch, b_batch)
        name, rows, cols = choice(a.gpu, m, n, count)
        groups = (-(-n // (32 * cols)), -(-m // (32 * rows)), count)
        if groups[0] > MAX_GROUPS:
            raise ValueError(
                f"[matmul] {n} columns are more than one dispatch holds; got ({m}, {k}) @ ({k}, {n}). "
                "Multiply in pieces."
            )
        finish = "sums" if sums else "plain" if bias is None else "bias"
        kernel = self.kernel(name, a, b, finish, n, (rows, cols), dtype, tail)
        words = [0 if bias is None else bias.strides[-1], m, n, k, len(sizes), 0]
        words += [*a.strides[-2:], *b.strides[-2:], *dim_words(sizes, a_batch, b_batch)]
        return kernel, pack_words(words), pieces(groups, 1024 * rows * cols * k)

    def kernel(self, name, a, b, finish, n, tile, dtype, tail=None):
        """The kernel for these strides, this n and this tile; `finish`: lib/matmul_<finish>.wgsl."""
        gpu, (_, element) = a.gpu, a.gpu.types[dtype]
        pairs = dtype in gpu.packed
        libs = (
            "matmul",
            f"matmul_a_{order(a, True, 'along_k', 'along_m')}",
            f"matmul_b_{order(b, False, 'along_n', 'along_k')}",
            f"matmul_{finish}_pairs" if pairs and finish == "sums" else f"matmul_{finish}",
        )
        constants = "const ROWS = {}u;\nconst COLS = {}u;\n".format(*tile)
        types = {**gpu.alias_types(a.dtype), "F": gpu.types[b.dtype][1]}
        if tail is not None:
            return tail.compiled(name, libs, constants, types)
        libs += ("matmul_store" if n % 4 else "matmul_store_pairs" if pairs else "matmul_store4",)
        constants += f"const DIMS = {DIMS}u;\n"
        if pairs:
            constants += f"fn words(v: vec4<f32>) -> vec2<u32> {{ return {element}_words(v); }}\n"
            libs += (element,) if dtype not in (a.dtype, b.dtype) else ()
        return gpu.kernel(name, libs, constants, O=element, **types)
