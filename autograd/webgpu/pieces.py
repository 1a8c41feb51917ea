"""Kernels of rows, windows and indices where a tensor is larger than one binding: parts that fit, side by side.

large.py cuts what is elementwise, and what is summed; here a launcher is called on parts of what it is given, along
dimensions whose entries have nothing to do with one another.
"""

from .buffers import INT64, Array
from .elementwise import Binary, Ternary
from .fuse import constant
from .large import ALIGNMENT, boxes, excess, part, raw, spread, window
from .layout import element_count
from .movement import Cat, copy, narrow

add, sub, eq, where = Binary("add"), Binary("sub"), Binary("eq", out="bool"), Ternary("where")
lower, higher = Binary("minimum"), Binary("maximum")


def too_large(arrays, count):
    """Whether a kernel cannot see one of its operands (None: there is none), or an array of `count` elements that it makes."""
    gpu = (arrays[0] or arrays[1]).gpu
    if count * 4 > gpu.pool.max_binding:
        return True
    return gpu.has_large and any(a is not None and a._storage is not None and a._storage.large for a in arrays)


def room(gpu):
    """How many elements of four bytes a binding has room for, wherever they begin."""
    return (gpu.pool.max_binding - 2 * ALIGNMENT) // 4


def refuse(name, shape, count, gpu):
    """Say that what belongs together does not fit."""
    raise ValueError(
        f"[{name}] what it does at once of shape {tuple(shape)} takes {count * 4:,} bytes, and this adapter binds "
        f"{gpu.pool.max_binding:,}. Use it on parts, or move the tensor to the CPU."
    )


def shown(a):
    """a as a kernel can bind it: a window of its memory, or a copy where its elements lie too far apart."""
    if a is None or a._storage is None or not a.storage.large:
        return a
    fits = excess(a, [(0, n) for n in a.shape])[0] <= 0
    return window(a if fits else copy(a))


def cut(name, launch, arrays, dims, count, summed=(), in_order=False):
    """launch(*arrays), or of parts of them along the dimensions `dims`, joined; launch gives an Array or a tuple of them.

    arrays: Arrays (or None) of equal sizes in `dims`, as have the results. count: elements of the largest array that a
    launch sees. summed: numbers of the results that the parts add to; the others stand side by side. in_order: the parts
    follow one another as `dims` counts, the last one fastest; else those that lie together in memory are left together.
    """
    first = next(a for a in arrays if a is not None)
    parts = -(-count // room(first.gpu))
    if parts <= 1:
        return launch(*[shown(a) for a in arrays])
    long = [d for d in dims if first.shape[d] > 1]
    if not long:
        refuse(name, first.shape, count, first.gpu)
    d = long[0] if in_order else max(long, key=lambda d: max(abs(a.strides[d]) for a in arrays if a is not None))
    n, made, several = first.shape[d], [], False
    share = -(-n // min(parts, n))
    for start in range(0, n, share):
        length = min(share, n - start)
        taken = [a if a is None else along(a, d, start, length) for a in arrays]
        out = cut(name, launch, taken, dims, -(-count * length // n), summed, in_order)
        several = isinstance(out, tuple)
        made = joined(made, out if several else (out,), d, start, n, summed)
    return tuple(made) if several else made[0]


def joined(made, out, d, start, n, summed):
    """What the parts so far make, with the next one's results."""
    if not made:
        made = [o if o is None or i in summed else room_for(o, d, n) for i, o in enumerate(out)]
    elif summed:
        made = [add(y, o) if o is not None and i in summed else y for i, (y, o) in enumerate(zip(made, out))]
    for i, (y, o) in enumerate(zip(made, out)):
        if o is not None and i not in summed:
            y.gpu.copy_into(narrow(y, d, start, o.shape[d]), o)
    return made


def room_for(a, d, n):
    """An empty array like a, of n entries along d."""
    return a.gpu.empty((*a.shape[:d], n, *a.shape[d + 1 :]), a.dtype)


def along(a, d, start, length):
    """`length` entries of a along d; a constant stays one."""
    if a.pending is not None and a.pending.launcher is None:
        return constant((*a.shape[:d], length, *a.shape[d + 1 :]), a.pending.args[0], a.dtype, a.gpu)
    a.storage  # noqa: B018  (what waits is computed)
    return raw(a, [(start, length) if k == d else (0, n) for k, n in enumerate(a.shape)])


def rows(launcher, arrays, axis, *options, count=None, otherwise=None):
    """launcher(*arrays, axis, *options) on some of the rows along `axis` at a time; arrays of one shape, or None.

    count: elements of the largest array that it makes of them. otherwise: what to call where a single row is too long.
    """
    first = next(a for a in arrays if a is not None)
    count = count or first.size
    a_row = -(-count * first.shape[axis] // first.size)
    if otherwise is not None and a_row > room(first.gpu):
        return otherwise()
    dims = [d for d in range(first.ndim) if d != axis]
    return cut(launcher.name, lambda *some: launcher(*some, axis, *options), arrays, dims, count)


def halved(a, axis):
    """The two halves of a (or None) along an axis."""
    if a is None:
        return None, None
    half = a.shape[axis] // 2
    return along(a, axis, 0, half), along(a, axis, half, a.shape[axis] - half)


def extreme(launcher, x, axis):
    """argmax or argmin of a large x, the dimension kept: a row that no kernel can see by the extremes of its parts."""
    if x.size > x.shape[axis]:
        return rows(launcher, (x,), axis, True, otherwise=lambda: extremes(launcher, x, axis))
    from .index import Gather

    share, n, take, cat = room(x.gpu), x.shape[axis], Gather(), Cat()
    places, values = [], []
    for start in range(0, n, share):
        some = shown(along(x, axis, start, min(share, n - start)))
        place = launcher(some, axis, True)
        values.append(take(some, place, axis))
        places.append(add(place, start))
    best = launcher(cat(*values, axis=axis), axis, True)
    return take(cat(*places, axis=axis), best, axis)


def extremes(launcher, x, axis):
    """The same where not even one of several rows fits."""
    y = x.gpu.empty((*x.shape[:axis], 1, *x.shape[axis + 1 :]), INT64)
    return each(lambda row: extreme(launcher, row, axis), x, axis, y)


def each(launch, x, axis, y):
    """y, filled with what launch makes of x's rows along an axis, one (of the first dimension that is another) at a time."""
    d = next(d for d in range(x.ndim) if d != axis and x.shape[d] > 1)
    for i in range(x.shape[d]):
        x.gpu.copy_into(narrow(y, d, i, 1), launch(along(x, d, i, 1)))
    return y


def gathered(gather, x, index, shape, index_strides, x_strides, step, length):
    """index.queue_gather where x, the index or the result is too large; `length`: entries of x along the indexed axis."""
    gpu, whole = x.gpu, (*shape, length)
    y = gpu.empty(shape, x.dtype)
    source = over(x, whole, (*x_strides, step))
    places, target = over(index, whole, (*index_strides, 0)), over(y, whole, (*y.strides, 0))
    for box in boxes([in_words(a) for a in (target, places, source)]):
        *front, (start, n) = box
        some, at, into = part(source, box), part(over(places, shape), front), part(over(target, shape), front)
        if n == length:
            got = gather(some, at, into.shape, at.strides, some.strides[:-1], step, n)
        else:  # of those that lie elsewhere any is read, and not kept
            near = shifted(at, start)
            kept = higher(lower(near, n - 1), 0)
            got = where(eq(near, kept), gather(some, kept, into.shape, kept.strides, some.strides[:-1], step, n), into)
        gpu.copy_into(into, got)
    return y


def scattered(combine, x, index, src, axis):
    """combine(x, index, src, axis) of index.py where one of them is too large. What an index does not hit, it leaves."""
    y = copy(x)
    whole = (*index.shape[:axis], x.shape[axis], *index.shape[axis + 1 :], index.shape[axis])
    target = over(y, whole, (*y.strides, 0))
    places, values = (over(a, whole, (*a.strides[:axis], 0, *a.strides[axis + 1 :], a.strides[axis])) for a in (index, src))
    pairs = over(index, whole, room_to_sort(index, axis))
    for box in boxes([in_words(a) for a in (target, places, values, pairs)]):
        into = part(over(target, whole[:-1]), box[:-1])
        at, given = (turned(part(a, box), axis) for a in (places, values))
        y.gpu.copy_into(into, combine(into, shifted(at, box[axis][0]), given, axis))
    return y


def pairs_of(index):
    """How many numbers the sorted (key, place) pairs of an index are at most, in rows of a power of two."""
    return 4 * once(index).size


def room_to_sort(index, axis):
    """Strides that reach as far as those pairs, for boxes(); the axis comes last."""
    strides, step = [0] * index.ndim, 4
    for d in reversed(range(index.ndim)):
        if index.strides[d] or d == axis:
            strides[d], step = step, step * index.shape[d]
    return (*strides[:axis], 0, *strides[axis + 1 :], strides[axis])


def over(a, shape, strides=None):
    """a's memory in another shape, by other strides or the first of its own; host arithmetic only."""
    strides = a.strides[: len(shape)] if strides is None else strides
    return Array(a.storage, shape, strides, a.offset, a.dtype, a.gpu, element_count(shape))


def in_words(a):
    """a as if its elements took four bytes each, which they do where a kernel writes them: for boxes()."""
    return Array(a.storage, a.shape, a.strides, a.offset, INT64, a.gpu, a.size)


def turned(a, axis):
    """a's last dimension in the place of `axis`, along which it repeats."""
    shape, strides = list(a.shape[:-1]), list(a.strides[:-1])
    shape[axis], strides[axis] = a.shape[-1], a.strides[-1]
    return over(a, tuple(shape), tuple(strides))


def shifted(index, start):
    """index - start, as seldom as it repeats itself."""
    if not start:
        return index
    return spread(sub(once(index), start), index.shape)


def once(index):
    """An index without its repetitions: one entry along each dimension of stride 0."""
    return index.view([1 if s == 0 else n for n, s in zip(index.shape, index.strides)], index.strides, index.offset)
