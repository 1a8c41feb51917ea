"""Launchers of reductions: chunks of each output in parallel, then chunks of the chunks.

An invocation folds a chunk, or a workgroup does in a tree (rows.py says which), in a fixed order without atomics.
An invocation makes a chain of at most 256 additions, which keeps the rounding error small.
"""

import numpy as np

from . import fuse
from .elementwise import TYPE_LIBS, WORKGROUP
from .fused_kernel import Expression
from .layout import LONGEST_LOOP, Plans, coalesce, contiguous_strides, dim_words, element_count, pack_words, workgroups
from .movement import copy, full
from .pieces import extreme, too_large
from .prologue import First, suits
from .rows import trees

SHORTEST, LONGEST = 64, 256
INVOCATIONS = 16384
ON_CPU = 256, 1024  # the same where cores are few
TREE = 256  # invocations of a workgroup of lib/fold_tree.wgsl
SIDE_BY_SIDE = 16  # outputs that it folds together where neighbours are read together
FLOAT32 = np.dtype(np.float32)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
IDENTITY = {"sum": 0, "prod": 1, "any": 0}


def chunk_count(gpu, n, length):
    """Into how many chunks an output is cut, an invocation each: enough to fill the device, none too long."""
    shortest, invocations = ON_CPU if gpu.info["type"] == "CPU" else (SHORTEST, INVOCATIONS)
    if length <= shortest:
        return 1
    filling = min(-(-length // shortest), -(-invocations // n))
    return max(filling, -(-length // LONGEST))


def tree_chunks(n, length, columns):
    """The same where a workgroup folds a chunk of `columns` outputs: fewer than 256, as of these a tree makes one."""
    lanes = TREE // columns
    filling = min(length // (32 * lanes), TREE // -(-n // columns))
    return max(filling, -(-length // (LONGEST * lanes)), 1)


def split_axes(shape, strides, axes):
    """Coalesced (keep sizes, keep strides, fold sizes, fold strides)."""
    kept = [d for d in range(len(shape)) if d not in axes]
    keep = coalesce([shape[d] for d in kept], [strides[d] for d in kept])
    fold = coalesce([shape[d] for d in axes], [strides[d] for d in axes])
    return (*keep, *fold)


def out_shape(shape, axes, keepdims):
    """The shape that is left."""
    if keepdims:
        return tuple(1 if d in axes else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in axes)


def by_fours(geometry, offset):
    """The geometry in groups of four elements: ('rows' | 'columns' | None, geometry)."""
    keep, keep_strides, fold, fold_strides = geometry
    if offset % 4:
        return None, geometry
    if fold_strides == [1] and not any(v % 4 for v in (*keep_strides, fold[0])):
        return "rows", (keep, [s // 4 for s in keep_strides], [fold[0] // 4], [1])
    if keep_strides[-1:] == [1]:
        if not any(v % 4 for v in (*keep_strides[:-1], *fold_strides, keep[-1])):
            strides = [s // 4 for s in keep_strides[:-1]] + [1]
            sizes = keep[:-1] + [keep[-1] // 4]
            return "columns", (sizes, strides, fold, [s // 4 for s in fold_strides])
    return None, geometry


class Pass:
    """One dispatch of a plan: its kernel, its parameters after the offset, its output."""

    __slots__ = ("main", "columns", "inner", "kernel", "tail", "groups", "unit", "shape", "dtype")


def pack_fold(geometry, n, chunks, length, fold_inner):
    """Parameters of lib/fold.wgsl after `offset`."""
    keep, keep_strides, fold, fold_strides = geometry
    dims = dim_words(keep, keep_strides) + dim_words(fold, fold_strides)
    words = [n * chunks, n, chunks, length, len(keep), len(fold), fold_inner, *dims]
    return pack_words(words)


def one_pass(gpu, geometry, offset):
    """A Pass without its kernel, its chunks, and the geometry of what it leaves behind."""
    step = Pass()
    n = element_count(tuple(geometry[0]))
    wide, geometry = by_fours(geometry, offset)
    length = element_count(tuple(geometry[2]))
    outputs = n // 4 if wide == "columns" else n
    # Neighbouring invocations read neighbours: along what is folded where that is contiguous, else across outputs.
    step.columns = 1 if geometry[3][-1:] == [1] else min(SIDE_BY_SIDE, 1 << (outputs - 1).bit_length())
    if not trees(gpu, length * (4 if wide == "rows" else 1)):
        step.columns = 0
        chunks = chunk_count(gpu, outputs, length)
    else:
        chunks = tree_chunks(outputs, length, step.columns)
    # Four columns a write: their chunks cannot lie between them.
    step.inner = fold_inner = int(wide != "columns" and geometry[3] == [1])
    step.main = f"reduce_{wide}4" if wide else "reduce"
    step.unit = 4 if wide else 1
    step.tail = pack_fold(geometry, outputs, chunks, length, fold_inner)
    step.groups = workgroups(-(-outputs // step.columns) * chunks if step.columns else -(-outputs * chunks // WORKGROUP))
    if fold_inner:
        step.shape, rest = (n, chunks), ([n], [chunks], [chunks], [1])
    else:
        step.shape, rest = (chunks, n), ([n], [1], [chunks], [n])
    return step, chunks, rest


class Fold:
    """`Fold(name)(x, axes, keepdims=False, dtype=None)`; wgsl/<name>.wgsl says how to join.

    `dtype` is the result's: by default int64 for sums and products of integers, bool for
    any and all, else the operand's.
    """

    def __init__(self, name):
        self.name = name
        self.plans = Plans()

    def result_dtype(self, dtype):
        """The dtype of the result where none is asked for."""
        if self.name == "any":
            return BOOL
        if self.name in ("sum", "prod") and dtype.kind in "iub":
            return INT64
        return dtype

    def __call__(self, x, axes, keepdims=False, dtype=None):
        p = x.pending
        if p is not None and p.launcher is not None and p.late is None and not p.product and fuse.ENABLED:
            final = np.dtype(dtype) if dtype is not None else self.result_dtype(x.dtype)
            if final not in x.gpu.packed:
                x.gpu.check(out_shape(x.shape, axes, keepdims), final)
                return fuse.wait_to_reduce(self, p, out_shape(x.shape, axes, keepdims), final, (axes, keepdims, final))
        return self.now(x, axes, keepdims, dtype)

    def reduce(self, p, axes, keepdims, dtype):
        """The reduction of a pending value: of its expression, where nobody else wants the value."""
        if p.storage is None and p.owner() is None and fuse.host_of(p) is None:
            expression = Expression([p])
            if suits(expression, p.gpu):
                return self.of_expression(expression, axes, keepdims, dtype)
        if p.storage is None:
            fuse.compute(p)
        return self.now(p.array(), axes, keepdims, dtype)

    def of_expression(self, expression, axes, keepdims, dtype):
        """The first pass computes the expression, the others are as always."""
        gpu, shape = expression.group[0].gpu, expression.shape
        ops, _, views, aligned = expression.signature()
        key = ("fold", self.name, axes, keepdims, dtype, ops, views, shape, aligned)
        first = gpu.fused.get(key)
        if first is None:
            geometry = split_axes(shape, contiguous_strides(shape), axes)
            partial = FLOAT32 if dtype == np.float16 else dtype
            first = First(self, expression, lambda: one_pass(gpu, geometry, 0), lambda chunks: dtype if chunks == 1 else partial)
            gpu.fused.keep(key, first)
        y, final = first.run(expression), out_shape(shape, axes, keepdims)
        if first.chunks > 1:
            y = self.now(y, (int(first.step.inner),), False, dtype)
        return y.view(final, contiguous_strides(final), 0)

    def now(self, x, axes, keepdims=False, dtype=None):
        """The same at once."""
        if x.storage.large:
            return self.of_large(x, axes, keepdims, dtype)
        key = (x.shape, x.strides, x.dtype, axes, keepdims, dtype, x.offset % 4, x.gpu)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans.keep(key, self.plan(x, axes, keepdims, dtype))
        shape, dtype, final, passes = plan
        if not passes:
            return full(shape, IDENTITY.get(self.name, 0), dtype, x.gpu)
        offset = x.offset
        for step in passes:
            y = x.gpu.empty(step.shape, step.dtype)
            head = (offset // step.unit).to_bytes(4, "little")
            x.gpu.run(step.kernel, (x, y), head + step.tail, step.groups)
            x, offset = y, 0
        return y if final == dtype else x.gpu.cast(y, final)

    def of_large(self, x, axes, keepdims, dtype):
        """The same of an operand that no one kernel can see."""
        from .large import reduce

        dtype = np.dtype(dtype) if dtype is not None else self.result_dtype(x.dtype)
        return reduce(self, x, axes, out_shape(x.shape, axes, keepdims), dtype)

    def plan(self, x, axes, keepdims, dtype):
        """(output shape, dtype written, output dtype, passes); no pass where there is nothing to fold."""
        final = np.dtype(dtype) if dtype is not None else self.result_dtype(x.dtype)
        shape, dtype = out_shape(x.shape, axes, keepdims), x.gpu.written(final)
        if not x.size:
            return shape, final, final, []
        geometry = split_axes(x.shape, x.strides, axes)
        partial = FLOAT32 if dtype == np.float16 else dtype
        passes, source, offset, chunks = [], x.dtype, x.offset, 0
        while chunks != 1:
            step, chunks, geometry = one_pass(x.gpu, geometry, offset)
            step.dtype = partial if chunks > 1 else dtype
            step.kernel = self.kernel(x.gpu, step, source, step.dtype)
            passes.append(step)
            source, offset = partial, 0
        step.shape = shape
        return shape, dtype, final, passes

    def kernel(self, gpu, step, source, target):
        """Compile a pass for these dtypes of the input and the output."""
        kind, element = gpu.types[source]
        result, stored = gpu.types[target]
        return gpu.kernel(self.name, *self.parts(kind, step), T=kind, E=element, A=result, S=stored)

    def parts(self, kind, step):
        """(libs, constants) of a pass that computes in this type."""
        libs = (*TYPE_LIBS[kind], "fold", step.main, "fold_tree" if step.columns else "fold_one")
        return libs, f"const COLUMNS = {step.columns}u;\n" if step.columns else ""


class Extreme:
    """`Extreme("argmax" | "argmin")(x, axis, keepdims=False)`: int64 positions.

    `axis=None` counts through the flattened operand. The first extreme wins, a NaN before all.
    """

    def __init__(self, name):
        self.name = name

    def __call__(self, x, axis, keepdims=False):
        gpu = x.gpu
        axes = tuple(range(x.ndim)) if axis is None else (axis,)
        shape = out_shape(x.shape, axes, keepdims)
        y = gpu.empty(shape, INT64)
        if not y.size:
            return y
        if too_large((x,), x.size):
            x = x if axis is not None else copy(x).view((x.size,), (1,), 0)
            return extreme(self, x, axis or 0).view(shape, contiguous_strides(shape), 0)
        geometry = split_axes(x.shape, x.strides, axes)
        length = element_count(tuple(geometry[2]))
        chunks = min(chunk_count(gpu, y.size, length), LONGEST_LOOP)
        fold_inner = int(geometry[3] == [1] or chunks > 1)
        head = x.offset.to_bytes(4, "little")
        params = head + pack_fold(geometry, y.size, chunks, length, fold_inner)
        types = gpu.alias_types(x.dtype)
        libs = (*TYPE_LIBS[types["T"]], "fold")
        found = y if chunks == 1 else gpu.empty((y.size, chunks), INT64)
        kernel = gpu.kernel(self.name, (*libs, "arg"), **types)
        gpu.run(kernel, (x, found), params, workgroups(-(-y.size * chunks // WORKGROUP)))
        if chunks > 1:
            kernel = gpu.kernel(self.name, (*libs, "arg_pick"), **types)
            gpu.run(kernel, (x, found, y), params, workgroups(-(-y.size // WORKGROUP)))
        return y


def Reduce(name):
    """The launcher of a reduction: a Fold, or an Extreme for argmax and argmin."""
    return Extreme(name) if name in ("argmax", "argmin") else Fold(name)
