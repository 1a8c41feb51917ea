"""Tensors larger than one binding: elementwise ops, copies, reductions and products, piece by piece.

A buffer may hold more than a kernel may see of it (128 MiB by WebGPU's defaults). An Array on such a storage is cut
into boxes whose part of every operand fits; a kernel then binds a window of the buffer. Other kernels refuse it.
"""

from .buffers import STORED, Array, Window
from .elementwise import Binary
from .fuse import constant
from .layout import broadcast_shapes, broadcast_strides, contiguous_strides, element_count, extent
from .movement import Cat
from .packed import FLOAT32

add, cat = Binary("add"), Cat()
JOINS = {"sum": add, "prod": Binary("mul"), "any": Binary("maximum"), "all": Binary("minimum")}
JOINS |= {"max": JOINS["any"], "min": JOINS["all"]}
ALIGNMENT = 256  # of a binding's offset, in bytes; also more than the padding that wide stores may touch


def involved(operands):
    """Whether an operand, or what they make together, is too large for one binding."""
    arrays = [x for x in operands if isinstance(x, Array)]
    gpu = arrays[0].gpu
    if any(x._storage is not None and x._storage.large for x in arrays):
        return True
    return element_count(broadcast_shapes(*(x.shape for x in arrays))) * 4 > gpu.pool.max_binding


def excess(a, box):
    """(by how much a's part in a box is too large, the dimension whose halving helps most), of one operand.

    box: (start, length) for each dimension of a.
    """
    size = STORED[a.dtype].itemsize
    reach = [(length - 1) * abs(stride) for (_, length), stride in zip(box, a.strides)]
    over = (sum(reach) + 1) * size + 2 * ALIGNMENT - a.gpu.pool.max_binding
    return over, (max(range(len(reach)), key=reach.__getitem__) if reach else 0)


def boxes(arrays):
    """Parts of the shape that all these Arrays have, so small that each one's can be bound."""
    found, waiting = [], [tuple((0, n) for n in arrays[0].shape)]
    while waiting:
        box = waiting.pop()
        over, d = max((excess(a, box) for a in arrays), key=lambda pair: pair[0])
        if over <= 0:
            found.append(box)
            continue
        start, length = box[d]
        half = length // 8 * 4 or length // 2  # by fours: so kernels may read them
        if not half:
            raise ValueError(f"[wgpu] no part of shape {arrays[0].shape} is small enough for one binding")
        parts = (start, half), (start + half, length - half)
        waiting += [(*box[:d], part, *box[d + 1 :]) for part in reversed(parts)]
    return found


def window(a):
    """The same elements, of which a kernel is shown no more than it needs."""
    if not a.storage.large:
        return a
    size = STORED[a.dtype].itemsize
    low, high = extent(a.shape, a.strides, a.offset)
    start = low * size // ALIGNMENT * ALIGNMENT
    stop = min(-(-(high + 1) * size // ALIGNMENT) * ALIGNMENT, a.storage.buffer.gpu_buffer.size)
    shown = Window(a.storage, start, stop - start)
    return Array(shown, a.shape, a.strides, a.offset - start // size, a.dtype, a.gpu, a.size)


def part(a, box):
    """An Array's elements in a box."""
    shape = tuple(length for _, length in box)
    if a.pending is not None and a.pending.launcher is None:
        return constant(shape, a.pending.args[0], a.dtype, a.gpu)
    offset = a.offset + sum(start * stride for (start, _), stride in zip(box, a.strides))
    return window(Array(a.storage, shape, a.strides, offset, a.dtype, a.gpu, element_count(shape)))


def spread(a, shape):
    """a broadcast to a shape; a constant stays one."""
    if a.pending is not None and a.pending.launcher is None:
        return constant(shape, a.pending.args[0], a.dtype, a.gpu)
    a.storage  # noqa: B018  (what waits is computed)
    return a.view(shape, broadcast_strides(a.shape, a.strides, shape), a.offset)


def elementwise(launcher, operands, main, dtype):
    """launcher(*operands) for operands of which one is large, or the result."""
    arrays = [x for x in operands if isinstance(x, Array)]
    gpu, shape = arrays[0].gpu, broadcast_shapes(*(x.shape for x in arrays))
    y = gpu.empty(shape, dtype)
    if not y.size:
        return y
    wide = [spread(x, shape) if isinstance(x, Array) else x for x in operands]
    for box in boxes([y, *[x for x in wide if isinstance(x, Array)]]):
        given = [part(x, box) if isinstance(x, Array) else x for x in wide]
        gpu.copy_into(part(y, box), launcher.direct(*given, dtype=main))
    return y


def copy_into(dst, src):
    """copy_into where one side is large; the two do not share memory."""
    both = isinstance(src, Array)
    if both:
        src = spread(src, dst.shape)
    for box in boxes([dst, src] if both else [dst]):
        dst.gpu.copy_into(part(dst, box), part(src, box) if both else src)


def stretches(arrays):
    """Dense arrays of one size, or 1-D stretches of them that can be bound, the same of each."""
    if not any(a.storage.large for a in arrays):
        return [arrays]
    flat = [a.view((a.size,), (1,), a.offset) for a in arrays]
    return [[part(a, box) for a in flat] for box in boxes(flat)]


def halves(a):
    """(dimension, two boxes) of an Array that is too large, or None where it can be bound."""
    box = tuple((0, n) for n in a.shape)
    over, d = excess(a, box)
    if over <= 0:
        return None
    half = a.shape[d] // 2
    return d, [(*box[:d], cut, *box[d + 1 :]) for cut in ((0, half), (half, a.shape[d] - half))]


def reduce(fold, x, axes, shape, dtype):
    """fold(x, axes, dtype=dtype) in its shape, of a large x."""
    kept = FLOAT32 if dtype.itemsize == 2 else dtype
    y = x.gpu.rounded(folded(fold, x, axes, kept), dtype)
    return y.view(shape, contiguous_strides(shape), y.offset)


def folded(fold, x, axes, dtype):
    """The folds of x's halves, joined, with all dimensions kept."""
    cut = halves(x)
    if cut is None:
        return fold(window(x), axes, True, dtype)
    d, both = cut
    parts = [folded(fold, raw(x, box), axes, dtype) for box in both]
    return JOINS[fold.name](*parts) if d in axes else cat(*parts, axis=d)


def raw(a, box):
    """As part(), on the whole storage."""
    offset = a.offset + sum(start * stride for (start, _), stride in zip(box, a.strides))
    shape = tuple(length for _, length in box)
    return Array(a.storage, shape, a.strides, offset, a.dtype, a.gpu, element_count(shape))


def cells(a, b):
    """How many elements a product has."""
    return element_count(broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-2] * b.shape[-1]


def fits(a, b):
    """Whether one kernel can see the operands and the result of a product."""
    return not (a.storage.large or b.storage.large) and cells(a, b) * 4 + 2 * ALIGNMENT <= a.gpu.pool.max_binding


def product(matmul, a, b, bias, dtype):
    """matmul.product where an operand or the result is large: of halves of rows, columns, the batch, or of k."""
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = spread(a, (*batch, *a.shape[-2:])), spread(b, (*batch, *b.shape[-2:]))
    cut_a, cut_b = halves(a), halves(b)
    shape = (*batch, a.shape[-2], b.shape[-1])
    if cut_a is None and cut_b is None and cells(a, b) * 4 + 2 * ALIGNMENT <= a.gpu.pool.max_binding:
        return matmul.product(window(a), window(b), bias, dtype)
    n = len(batch)
    if cut_a is not None:
        d = cut_a[0]
    elif cut_b is not None:
        d = cut_b[0] + (cut_b[0] >= n)
    else:
        d = max(range(n + 2), key=shape.__getitem__)
        d += d == n + 1
    return in_halves(matmul, a, b, bias, dtype, d, n)


def in_halves(matmul, a, b, bias, dtype, d, n):
    """The product with one dimension halved: below n of the batch, n the rows, n + 1 what is summed, n + 2 the columns."""
    if d < n:
        return cat(*[product(matmul, cut_at(a, d, k), cut_at(b, d, k), bias, dtype) for k in (0, 1)], axis=d)
    if d == n:
        return cat(*[product(matmul, cut_at(a, n, k), b, bias, dtype) for k in (0, 1)], axis=n)
    if d == n + 2:
        biases = [bias if bias is None else cut_at(bias, 0, k) for k in (0, 1)]
        return cat(*[product(matmul, a, cut_at(b, n + 1, k), biases[k], dtype) for k in (0, 1)], axis=n + 1)
    wide = FLOAT32 if a.dtype.itemsize == 2 else a.dtype
    total, second = (product(matmul, cut_at(a, n + 1, k), cut_at(b, n, k), None, wide) for k in (0, 1))
    total = add(total, second)
    if bias is not None:
        total = add(total, a.gpu.rounded(bias, wide))
    return a.gpu.rounded(total, dtype)


def cut_at(a, d, k):
    """Half number k of a along a dimension."""
    half = a.shape[d] // 2
    bounds = [(0, n) for n in a.shape]
    bounds[d] = ((0, half), (half, a.shape[d] - half))[k]
    return raw(a, bounds)
