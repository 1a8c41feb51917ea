"""Launchers of elementwise kernels: `fn op` of one file, over any strides.

A launch is looked up by its operands' shapes and strides; what a miss works out (output
shape, kernel, parameter bytes, workgroups) is kept in a plan.
"""

import math
from struct import Struct
from struct import error as StructError

import numpy as np

from .buffers import Array, Storage, stored_dtype
from .layout import (
    MAX_RANK,
    Plans,
    broadcast_shapes,
    broadcast_strides,
    coalesce,
    contiguous_strides,
    dim_words,
    element_count,
    pack_words,
    workgroups,
)
from .shaders import SLOT_BYTES, WGSL_TYPES

WORKGROUP = 64
BOOL = np.dtype(np.bool_)
# lib/params.wgsl: offsets of a, b, c and y, then the values of scalar operands.
HEADS = {"f32": Struct("<4I4f"), "i32": Struct("<4I4i"), "u32": Struct("<4I4I")}
NO_HEAD = bytes(HEADS["u32"].size)
TYPE_LIBS = {"f32": ("math", "f32"), "i32": ("i32",), "u32": ("u32",)}
LANES = "xyzw"


def scalar_word(value, kind):
    """A Python number as the kernel's type holds it."""
    if kind == "f32":
        value = float(value)
        if math.isfinite(value) and abs(value) > 3.4028235677973366e38:
            return math.copysign(math.inf, value)
        return value
    return int(value) & 0xFFFFFFFF if kind == "u32" else int(value)


def pack_head(kind, offsets, scalars):
    """The variable 32 bytes of a parameter slot."""
    try:
        return HEADS[kind].pack(*offsets, *(scalar_word(s, kind) for s in scalars))
    except StructError:
        raise OverflowError(
            f"[wgpu] {scalars} has a number that 32 bits do not hold; integer kernels "
            "compute in 32 bits."
        ) from None


def pack_tail(n, sizes, walks, extra=(0, 0)):
    """The rest of a slot: count, rank, extra, dims."""
    words = [n, len(sizes), *extra, *dim_words(sizes, *walks)]
    return pack_words(words).ljust(SLOT_BYTES - len(NO_HEAD), b"\0")


def declare_operand(name, binding, types, reading):
    """WGSL that reads one operand from a buffer, from element i on.

    `reading` is "one" element, a "row" of four, or one element four times ("splat").
    """
    kind, element = types
    load, memory, at = {
        "one": (kind, element, "i"),
        "row": (f"vec4<{kind}>", f"vec4<{element}>", "i / 4u"),
        "splat": (f"vec4<{kind}>", element, "i"),
    }[reading]
    value = f"{kind}({name}[{at}])" if reading == "splat" else f"{name}[{at}]"
    return (
        f"@group(0) @binding({binding}) var<storage, read> {name}: array<{memory}>;\n"
        f"fn get_{name}(i: u32) -> {load} {{ return {load}({value}); }}\n"
    )


def readings(sizes, walks, aligned):
    """How each operand is read four elements at a time, or None where one cannot be."""
    if not aligned or (len(sizes) > 1 and sizes[-1] % 4):
        return None
    found = []
    for walk in walks:
        if walk[-1:] == [0]:
            found.append("splat")
        elif walk[-1:] in ([], [1]) and not any(stride % 4 for stride in walk[:-1]):
            found.append("row")
        else:
            return None
    return found


def declare_scalar(name, kind, lane, wide):
    """WGSL that reads one operand from the parameter slot."""
    load = f"vec4<{kind}>" if wide else kind
    return (
        f"fn get_{name}(i: u32) -> {load} "
        f"{{ return {load}(bitcast<{kind}>(p.scalar.{lane})); }}\n"
    )


def declare_output(binding, types, result, dtype, wide):
    """WGSL that stores a result of type R into y."""
    element = types[1]
    stored = f"{element}(v)" if dtype != np.uint8 else f"{element}(v) & 255u"
    put = f"fn narrow(v: R) -> {element} {{ return {stored}; }}\n"
    memory = f"vec4<{element}>" if wide else element
    return (
        f"alias R = {result};\nalias S = {element};\n"
        f"@group(0) @binding({binding}) var<storage, read_write> y: array<{memory}>;\n" + put
    )


class Plan:
    """What a launch needs once its operands' geometry is known."""

    __slots__ = ("kernel", "layout", "shape", "strides", "size", "dtype", "nbytes", "tail")
    __slots__ += ("params", "x", "y", "kind", "head", "main", "plain")


class Elementwise:
    """Base of the launchers below: `family` names the main of lib/<family>.wgsl."""

    family = ""
    names = ""

    def __init__(self, name, out=None):
        self.name = name
        self.out = out
        self.plans = Plans()

    def result_dtype(self, dtype):
        """The output's dtype for operands of this dtype."""
        if self.out is None:
            return dtype
        return BOOL if self.out == "bool" else np.dtype(self.out)

    def kernel(self, gpu, dtypes, main_dtype, out_dtype, wide):
        """Compile `fn op` with accessors for these operands (None: a scalar).

        `wide` lists their readings, or is None for one element at a time.
        """
        kind = WGSL_TYPES[main_dtype][0]
        result = "bool" if out_dtype == BOOL and self.out == "bool" else None
        text, binding = f"alias T = {kind};\n", 1
        reading = wide or ["one"] * len(dtypes)
        for name, dtype, lane, how in zip(self.names, dtypes, LANES, reading):
            if dtype is None:
                text += declare_scalar(name, kind, lane, wide)
            else:
                text += declare_operand(name, binding, gpu.types[dtype], how)
                binding += 1
        out_types = gpu.types[out_dtype]
        text += declare_output(binding, out_types, result or out_types[0], out_dtype, wide)
        main = f"{self.family}4" if wide else self.family
        libs = (*TYPE_LIBS[kind], "params", main)
        return gpu.pipelines.get(self.name, libs, text)

    def now(self, operands, dtype):
        """Compute at once, in pieces where operands or result are too large for one kernel."""
        from .large import elementwise, involved

        if involved(operands):
            return elementwise(self, operands, dtype, self.result_dtype(dtype))
        return self.direct(*operands, dtype=dtype)

    def plan(self, operands, dtype, aligned):
        """Work out a launch. `aligned`: every offset is a multiple of four elements."""
        arrays = [a for a in operands if isinstance(a, Array)]
        gpu = arrays[0].gpu
        plan = Plan()
        plan.shape = broadcast_shapes(*(a.shape for a in arrays))
        plan.strides = contiguous_strides(plan.shape)
        plan.size = element_count(plan.shape)
        plan.dtype = self.result_dtype(dtype)
        out = gpu.empty(plan.shape, plan.dtype)
        plan.nbytes = out.storage.buffer.size
        plan.kind, plan.main = WGSL_TYPES[dtype][0], dtype
        plan.kernel = plan.layout = None
        if not gpu.packed.isdisjoint([plan.dtype, *[a.dtype for a in arrays]]):
            plan.plain = False  # two elements a word: finish() leaves it to an expression's kernel
            return plan
        plan.plain = plan.size > 0
        walks = [
            broadcast_strides(a.shape, a.strides, plan.shape)
            if isinstance(a, Array)
            else (0,) * len(plan.shape)
            for a in operands
        ]
        sizes, *walks = coalesce(plan.shape, *walks)
        wide = readings(sizes, walks, aligned)
        dtypes = [a.dtype if isinstance(a, Array) else None for a in operands]
        plan.kernel = self.kernel(gpu, dtypes, dtype, plan.dtype, wide)
        plan.layout = plan.kernel.layout.id
        per_group = WORKGROUP * (4 if wide else 1)
        plan.x, plan.y = workgroups(-(-plan.size // per_group))
        plan.tail = pack_tail(plan.size, sizes, walks)
        plan.params = NO_HEAD + plan.tail
        return plan

    def lookup(self, key, operands, dtype, aligned):
        """The plan under this key, made if it is not there."""
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans.keep(key, self.plan(operands, dtype, aligned))
        return plan

    def finish(self, gpu, plan, operands):
        """Allocate the output, queue the dispatch: the general case."""
        if plan.kernel is None and plan.size:
            return fuse.at_once(self, operands, plan)
        storage = Storage(gpu.take(plan.nbytes), gpu.give)
        out = Array(storage, plan.shape, plan.strides, 0, plan.dtype, gpu, plan.size)
        if not plan.size:
            return out
        offsets, scalars, storages = [0, 0, 0, 0], [0, 0, 0, 0], []
        for i, operand in enumerate(operands):
            if isinstance(operand, Array):
                offsets[i] = operand.offset
                storages.append(operand.storage)
            else:
                scalars[i] = operand
        storages.append(storage)
        key = (plan.layout, *(s.id for s in storages))
        params = pack_head(plan.kind, offsets, scalars) + plan.tail
        gpu.record(plan.kernel, key, storages, params, plan.x, plan.y)
        return out


def worth_waiting(a, b, dtype):
    """Whether operands may wait in an expression: none that is empty or of too many dimensions to be one kernel's.

    Numbers are checked here, while the caller can be told.
    """
    for x in (a, b):
        if isinstance(x, Array):
            if not x.size or len(x.shape) > MAX_RANK:
                return False
        elif x.__class__ is not float:
            pack_head(WGSL_TYPES[dtype][0], (0, 0, 0, 0), (x, 0, 0, 0))
    return True


class Unary(Elementwise):
    """`Unary(name)(x)`: y = op(x). `out` names the result's dtype where it differs."""

    family = "unary"
    names = "a"

    def __call__(self, x):
        x.gpu.counters["ops"] += 1
        if fuse.ENABLED and worth_waiting(x, x, x.dtype):
            return fuse.pend(self, (x,), x.dtype, self.result_dtype(x.dtype))
        return self.now((x,), x.dtype)

    def direct(self, x, dtype=None):
        """Compute at once, in a kernel of this op alone; `dtype` is x's."""
        gpu, offset = x.gpu, x.offset
        aligned = not offset & 3
        key = (x.shape, x.strides, x.dtype, aligned, gpu)
        plan = self.plans.get(key) or self.lookup(key, (x,), x.dtype, aligned)
        if offset or not plan.plain:
            return self.finish(gpu, plan, (x,))
        storage = Storage(gpu.take(plan.nbytes), gpu.give)
        source = x.storage
        gpu.record(
            plan.kernel,
            (plan.layout, source.id, storage.id),
            (source, storage),
            plan.params,
            plan.x,
            plan.y,
        )
        return Array(storage, plan.shape, plan.strides, 0, plan.dtype, gpu, plan.size)


class Binary(Elementwise):
    """`Binary(name)(a, b)`: y = op(a, b), broadcast; either may be a Python number."""

    family = "binary"
    names = "ab"

    def __call__(self, a, b):
        first = a if isinstance(a, Array) else b
        dtype = first.dtype
        first.gpu.counters["ops"] += 1
        if fuse.ENABLED and worth_waiting(a, b, dtype):
            return fuse.pend(self, (a, b), dtype, self.result_dtype(dtype))
        return self.now((a, b), dtype)

    def direct(self, a, b, dtype=None):
        """Compute at once, in a kernel of this op alone; `dtype` is the operands'."""
        if not isinstance(a, Array) or not isinstance(b, Array):
            return self.with_scalar(a, b)
        gpu, offset = a.gpu, a.offset | b.offset
        aligned = not offset & 3
        key = (a.shape, a.strides, b.shape, b.strides, a.dtype, aligned, gpu)
        plan = self.plans.get(key) or self.lookup(key, (a, b), a.dtype, aligned)
        if offset or not plan.plain:
            return self.finish(gpu, plan, (a, b))
        storage = Storage(gpu.take(plan.nbytes), gpu.give)
        left, right = a.storage, b.storage
        gpu.record(
            plan.kernel,
            (plan.layout, left.id, right.id, storage.id),
            (left, right, storage),
            plan.params,
            plan.x,
            plan.y,
        )
        return Array(storage, plan.shape, plan.strides, 0, plan.dtype, gpu, plan.size)

    def with_scalar(self, a, b):
        """One operand is a Python number and travels in the parameter slot."""
        array, first = (a, True) if isinstance(a, Array) else (b, False)
        aligned = not array.offset & 3
        key = (array.shape, array.strides, array.dtype, aligned, first, array.gpu)
        plan = self.lookup(key, (a, b), array.dtype, aligned)
        return self.finish(array.gpu, plan, (a, b))


class Ternary(Elementwise):
    """`Ternary("where")(cond, a, b, dtype=None)`: cond is bool; a and b may be numbers.

    `dtype` is needed only where both are numbers.
    """

    family = "ternary"
    names = "abc"

    def __call__(self, cond, a, b, dtype=None):
        for value in (b, a):
            if isinstance(value, Array):
                dtype = value.dtype
        cond.gpu.counters["ops"] += 1
        if fuse.ENABLED and dtype is not None and worth_waiting(cond, a, dtype) and worth_waiting(cond, b, dtype):
            return fuse.pend(self, (cond, a, b), dtype, dtype)
        return self.now((cond, a, b), dtype)

    def direct(self, cond, a, b, dtype=None):
        """Compute at once, in a kernel of this op alone; `dtype` is that of a and b, needed when both are numbers."""
        operands = (cond, a, b)
        for value in (b, a):
            if isinstance(value, Array):
                dtype = value.dtype
        arrays = [v for v in operands if isinstance(v, Array)]
        aligned = not any(v.offset & 3 for v in arrays)
        geometry = tuple(
            (v.shape, v.strides) if isinstance(v, Array) else None for v in operands
        )
        key = (geometry, dtype, aligned, cond.gpu)
        plan = self.lookup(key, operands, dtype, aligned)
        return self.finish(cond.gpu, plan, operands)


class Cast:
    """`Cast()(x, dtype=...)`: a contiguous copy in another dtype."""

    def __init__(self):
        self.by_dtype = {}

    def __call__(self, x, dtype):
        dtype = np.dtype(dtype)
        launcher = self.by_dtype.get(dtype)
        if launcher is None:
            stored_dtype(dtype)  # refuses what the GPU has no type for
            name = "to_bool" if dtype == BOOL else f"to_{WGSL_TYPES[dtype][0]}"
            out = "bool" if dtype == BOOL else dtype
            launcher = self.by_dtype[dtype] = Unary(name, out=out)
        return launcher(x)


class Copy(Unary):
    """`Copy()(x)`: a contiguous copy of a strided Array."""

    def __init__(self):
        super().__init__("copy")


from . import fuse  # noqa: E402  (fuse calls the launchers above, and they call it)
