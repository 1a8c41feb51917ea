"""Elementwise ops wait here, as expressions, and become one kernel when a value is needed.

An op on the GPU returns an Array whose `pending` says how to compute it. Whoever asks for its
`storage` (a matmul, a reduction, a download) has it computed, together with every other waiting
value of the same shape that somebody still holds, as outputs of one kernel. A product of matrices
waits too, and what is made of it element by element runs in its kernel: see epilogue.py. A write in
place first computes what still has to read the old values, so order is that of the program.
AUTOGRAD_FUSE=0 computes every op at once.
"""

from threading import get_ident
from weakref import ref

import numpy as np

from ..interrupts import held
from .buffers import FLOAT32, Array
from .epilogue import after_product, needs
from .fused_kernel import MAX_WORDS, Expression
from .layout import broadcast_shapes, contiguous_strides, element_count
from .switches import switched

ENABLED = switched("AUTOGRAD_FUSE", True)
MAX_OPS = 24      # of one value's expression: past it the operands are computed first
MAX_KERNEL_OPS = 64
MAX_BUFFERS = 8   # what WebGPU lets one kernel bind
MAX_READS = 6
MAX_WAITING = 64
MAX_AGE = 8       # dispatches that a value may wait for and be extended; later it is computed first
TOTAL_AGE = 3     # the same of a number, see is_total()
# What the host computes where all operands are constants: one operation, rounded as the kernel rounds it.
FOLDED = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "copy": np.positive}


class Pending:
    """A value that has not been computed: `launcher` of `args`, or a constant.

    args: Pendings of the same shape, constants, Arrays, and numbers as the kernel holds them.
    ops, leaves: how many ops the whole expression has, and which Arrays it reads. storage: once
    computed. owner: a weak reference to the Array that stands for it. late: None, or the options of a
    reduction of another Pending, which waits to see whether anybody else wants what it reduces.
    host: the product of matrices that it is made of; there is at most one. thread: whose it is: with other threads' values
    a kernel would be another one each time.
    """

    __slots__ = ("launcher", "args", "shape", "dtype", "main", "gpu", "ops", "leaves")
    __slots__ += ("storage", "owner", "late", "born", "host", "thread")
    product = False

    def __init__(self, launcher, args, shape, dtype, main, gpu, ops, leaves, host=None):
        self.launcher, self.args = launcher, args
        self.shape, self.dtype, self.main, self.gpu = shape, dtype, main, gpu
        self.ops, self.leaves, self.host = ops, leaves, host
        self.storage = self.late = None
        self.born, self.thread = moment(gpu), get_ident()

    def mentions(self, array):
        """How many references to `array` this expression holds."""
        count, seen, stack = 0, set(), [self]
        while stack:
            p = stack.pop()
            for part in (p.args, p.leaves):
                if id(part) not in seen:
                    seen.add(id(part))
                    count += sum(x is array for x in part)
            stack.extend(x for x in p.args if isinstance(x, Pending) and id(x.args) not in seen)
        return count

    def array(self):
        """The Array that stands for this value; only when computed."""
        size = element_count(self.shape)
        strides = contiguous_strides(self.shape)
        return Array(self.storage, self.shape, strides, 0, self.dtype, self.gpu, size)


class Product(Pending):
    """A product of matrices that has not been computed: a @ b, or a @ b + bias; `args` are the Arrays."""

    __slots__ = ()
    product = True


def host_of(p):
    """The product that has yet to be computed for this value, or None."""
    host = p if p.product else p.host
    return host if host is not None and host.args else None


def constant(shape, value, dtype, gpu):
    """An Array with one value everywhere, which costs nothing until it is needed."""
    return stand_for(Pending(None, (value,), shape, dtype, dtype, gpu, 0, ()))


def stand_for(p):
    """The lazy Array of a pending value."""
    array = Array(None, p.shape, contiguous_strides(p.shape), 0, p.dtype, p.gpu, element_count(p.shape))
    array.pending = p
    p.owner = ref(array)
    return array


def moment(gpu):
    """A number that grows with every dispatch, and by more than MAX_AGE with every batch."""
    return (gpu.pool.batch << 16) + len(gpu.queue.params)  # a batch holds fewer


def pend(launcher, operands, main, dtype):
    """The lazy Array of launcher(*operands); `main` is the dtype the op computes in. A running total is computed at once."""
    shape = gpu = None
    for x in operands:
        if isinstance(x, Array):
            gpu = x.gpu
            shape = x.shape if shape is None or shape == x.shape else broadcast_shapes(shape, x.shape)
    gpu.check(shape, dtype)
    if gpu.has_large or element_count(shape) * 4 > gpu.pool.max_binding:
        from .large import elementwise, involved

        if involved(operands):
            return elementwise(launcher, operands, main, dtype)
    ops, leaves, args, host = 1, (), [], None
    oldest = moment(gpu) - (MAX_AGE if shape else TOTAL_AGE)
    total = not shape and is_total(operands, oldest, gpu.totals)
    for x in operands:
        p = x.pending if isinstance(x, Array) else None
        own = None if p is None else host_of(p)
        joins = p is not None and p.late is None and (p.launcher is None or (p.shape == shape and p.born >= oldest))
        if joins and (own is None or host is None or own is host):
            host = host or own
            args.append(p)
            ops += p.ops
            leaves = leaves + tuple([leaf for leaf in p.leaves if leaf not in leaves]) if leaves else p.leaves
        else:
            args.append(x)
            if isinstance(x, Array):
                if p is not None and p.late is None:
                    compute(p, alone=total)  # one of another shape, or an old one
                if x not in leaves:
                    leaves = (*leaves, x)
    if ops == 1 and not leaves and main == dtype == FLOAT32 and launcher.name in FOLDED:
        return constant(shape, folded(launcher.name, args), dtype, gpu)
    if ops > MAX_OPS:  # what is shared was counted more than once
        ops = 1 + distinct(args)
    if ops > MAX_OPS or len(leaves) > MAX_READS:
        args, ops, host = [cut(x) for x in operands], 1, None
        leaves = tuple([x for x in args if isinstance(x, Array)])
    array = wait(Pending(launcher, tuple(args), shape, dtype, main, gpu, ops, leaves, host))
    if total:
        gpu.totals.add(array)
        array.storage  # noqa: B018
    return array


def is_total(operands, oldest, totals):
    """Whether a number is one that a loop adds to: what it extends has waited for a while, or is such a total itself.

    So a loop's second step computes what every later one does, with the same kernels.
    """
    for x in operands:
        if isinstance(x, Array):
            p = x.pending
            if x in totals or (p is not None and p.launcher is not None and p.born < oldest):
                return True
    return False


def wait(p):
    """The lazy Array of a value that waits from now on."""
    array, gpu = stand_for(p), p.gpu
    with gpu.queue.lock:
        gpu.waiting.append(p.owner)
        if len(gpu.waiting) > MAX_WAITING:
            thin_out(gpu)
    return array


def wait_for_epilogue(launcher, operands, shape, dtype):
    """The lazy Array of a product of matrices. Products that have waited too long to be extended go first."""
    gpu = operands[0].gpu
    gpu.check(shape, dtype)
    oldest = moment(gpu) - MAX_AGE
    for reference in list(gpu.waiting):
        array = reference()
        p = array.pending if array is not None else None
        if p is not None and p.born < oldest and host_of(p) is not None:
            compute(p)  # so that what it was made of can go
    return wait(Product(launcher, operands, shape, dtype, dtype, gpu, 1, operands))


def wait_to_reduce(launcher, p, shape, dtype, options):
    """The lazy Array of a reduction of a pending value."""
    late = Pending(launcher, (p,), shape, dtype, p.dtype, p.gpu, 0, p.leaves, host_of(p))
    late.late = options
    return wait(late)


def folded(name, args):
    """The value of an op on constants and numbers, in float32."""
    with np.errstate(all="ignore"):
        return float(FOLDED[name](*[np.float32(x.args[0] if isinstance(x, Pending) else x) for x in args]))


def distinct(args):
    """How many ops have to be computed for these arguments."""
    seen, stack = set(), [*args]
    while stack:
        x = stack.pop()
        if isinstance(x, Pending) and x.launcher is not None and x.storage is None and id(x) not in seen:
            seen.add(id(x))
            stack.extend(x.args)
    return len(seen)


def cut(x):
    """An operand whose expression ends here: an Array that has its memory, a constant or a number."""
    if not isinstance(x, Array):
        return x
    if x.pending is not None and x.pending.launcher is None:
        return x.pending
    x.storage  # noqa: B018
    return x


def thin_out(gpu):
    """Forget values that nobody wants any more; when all are wanted, compute the oldest."""
    gpu.waiting = [r for r in gpu.waiting if is_waiting(r())]
    oldest = gpu.waiting[0]() if len(gpu.waiting) > MAX_WAITING else None
    if is_waiting(oldest):
        compute(oldest.pending)


def is_waiting(array):
    """Whether this Array (or None) still has to be computed."""
    return array is not None and array.pending is not None


def leaves_of(args):
    """The distinct Arrays that an expression reads, computed operands among them."""
    found, seen, stack = {}, set(), list(args)
    while stack:
        x = stack.pop()
        if isinstance(x, Array):
            found[id(x)] = x
        elif isinstance(x, Pending) and id(x) not in seen:
            seen.add(id(x))
            if x.storage is not None:
                found[id(x)] = x
            else:
                stack.extend(x.args)
    return found


def settle(gpu, storage):
    """Compute every waiting value that reads this storage: it is about to be overwritten."""
    with gpu.queue.lock:
        for reference in list(gpu.waiting):
            array = reference()
            if not is_waiting(array):
                continue
            if any(x._storage is storage if isinstance(x, Array) else x.storage is storage
                   for x in leaves_of(array.pending.args).values()):  # fmt: skip
                compute(array.pending)


def compute(root, alone=False):
    """Give `root` its storage, and with it every waiting value that fits into the same kernel, unless alone."""
    gpu = root.gpu
    with held, gpu.queue.lock:  # Ctrl-C leaves a value waiting, or computed
        if root.storage is not None:
            return
        for leaf in root.leaves:
            leaf.storage  # noqa: B018  (a reduction that waits is computed first: it may compute this as well)
        if root.storage is not None:
            return
        if root.late is not None:
            (source,) = root.args
            finish(root, root.launcher.reduce(source, *root.late)._storage)
            gpu.waiting = [r for r in gpu.waiting if is_waiting(r())]
            return
        if root.launcher is None:
            finish(root, gpu.fill(root.shape, root.args[0], root.dtype)._storage)
            return
        host = host_of(root)
        group = [root] if alone and host is None else chosen(root, host)
        try:
            run(group, host)
        except RuntimeError:  # a kernel that does not compile: whose it is, a smaller one tells
            if len(group) == 1:
                raise
            run([root], host)
        finally:
            # One that failed is not tried again by itself: whoever holds it will hear of it.
            gpu.waiting = [r for r in gpu.waiting if is_waiting(a := r()) and a.pending is not root]


def at_once(launcher, operands, plan):
    """launcher(*operands), whose geometry is known, in an expression's kernel of its own: that of packed types."""
    args, gpu = tuple([cut(x) for x in operands]), None
    for x in operands:
        gpu = x.gpu if isinstance(x, Array) else gpu
    p = Pending(launcher, args, plan.shape, plan.dtype, plan.main, gpu, 1, ())
    (p.storage,) = Expression([p]).run(gpu)
    return p.array()


def run(group, host=None):
    """Compute values of one shape in one kernel; in one an op where there is only one, or too many numbers or buffers.

    What was one buffer to read may be many by now: operands that got memory of their own.
    host: the product that all are made of, whose kernel it is then; where that cannot be, the product goes first.
    """
    if host is not None:
        made = after_product(group, host) if group != [host] else None
        if made is not None:
            for p, storage in zip(group, made, strict=True):
                finish(p, storage)
            host.args = host.leaves = ()  # computed, or nobody needs it any more: chosen() saw to that
            return
        finish(host, host.launcher.direct(*host.args, dtype=host.dtype)._storage)
        group = [p for p in group if p is not host]
        if not group:
            return
    expression = Expression(group)
    too_many = expression.words > MAX_WORDS or len(expression.leaves) + len(group) > MAX_BUFFERS
    if too_many or (len(expression.nodes) == 1 and expression.leaves):
        for p in expression.nodes:
            finish(p, p.launcher.direct(*operands_of(p), dtype=p.main)._storage)
    else:
        for p, storage in zip(group, expression.run(group[0].gpu), strict=True):
            finish(p, storage)


def compute_all(gpu):
    """Compute every waiting value that somebody holds."""
    with gpu.queue.lock:
        for reference in list(gpu.waiting):
            array = reference()
            if is_waiting(array):
                compute(array.pending)


def chosen(root, host=None):
    """The root, and the waiting values of its shape that one kernel can also write; of a host only what is made of it.

    The host is among them where somebody holds it, or will need it for what is not.
    """
    group, leaves, ops = [root], leaves_of(root.args), root.ops
    if host is not None and host is not root and host.owner() is not None:
        group.append(host)
    most = MAX_BUFFERS - (host is not None and host not in group)
    others = []
    for reference in root.gpu.waiting:
        array = reference()
        p = array.pending if array is not None else None
        if p is None or p in group or p.launcher is None or host_of(p) is not host:
            continue
        others.append(p)
        if p.thread != root.thread or p.shape != root.shape or p.late is not None:
            continue
        if any([x._storage is None for x in p.leaves]):
            continue
        more = {**leaves, **leaves_of(p.args)}
        if len(more) + len(group) + 1 <= most and ops + p.ops <= MAX_KERNEL_OPS:
            group.append(p)
            leaves, ops = more, ops + p.ops
    if host is not None and host not in group and any(needs(p, host, group) for p in others):
        group.append(host)
    return group


def operands_of(p):
    """What a launcher takes for the arguments of a pending value: constants as numbers, where Arrays give the shape."""
    args = [x.array() if isinstance(x, Pending) and x.launcher is not None else x for x in p.args]
    if isinstance(args[0], Pending) and p.launcher.names == "abc":  # a condition is no number
        args[0] = p.gpu.fill(args[0].shape, args[0].args[0], args[0].dtype)
    arrays = [x for x in args if isinstance(x, Array)]
    if not arrays or broadcast_shapes(*(x.shape for x in arrays)) != p.shape:
        first = next(i for i, x in enumerate(args) if isinstance(x, Pending))
        args[first] = p.gpu.fill(p.shape, args[first].args[0], args[first].dtype)
    return [x.args[0] if isinstance(x, Pending) else x for x in args]


def finish(p, storage):
    """Record that p is computed: its Array has memory now, and what it was made of may go."""
    p.storage, p.host = storage, None
    if p.launcher is not None:
        p.args = ()
    if p.product:
        p.leaves = ()
    array = p.owner()
    if array is not None:
        array._storage, array.pending = storage, None
