"""Shapes, strides and dims: host arithmetic only, nothing here touches a GPU."""

import struct
from functools import lru_cache
from weakref import WeakValueDictionary

import numpy as np

MAX_PLANS = 8192
MAX_RANK = 8
# Software Vulkan (llvmpipe) ends an invocation's loops, without a word, after 65,535 passes of
# them all together. No kernel may come near that, whatever the tensor's size.
LONGEST_LOOP = 1 << 14
INDEX_LIMIT = 2**32


@lru_cache(maxsize=4096)
def contiguous_strides(shape):
    """Row-major strides, in elements."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(shape[d + 1], 1)
    return tuple(strides)


@lru_cache(maxsize=4096)
def element_count(shape):
    """The product of a shape."""
    n = 1
    for size in shape:
        n *= size
    return n


def is_contiguous(shape, strides):
    """True where elements follow one another in row-major order."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def broadcast_shapes(*shapes):
    """NumPy's rule; the op layer has already checked that it holds."""
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))


def broadcast_strides(shape, strides, out_shape):
    """Strides that read `shape` as `out_shape`: 0 where a dimension is repeated."""
    lead = len(out_shape) - len(shape)
    kept = (
        0 if size == 1 and out != 1 else stride
        for size, stride, out in zip(shape, strides, out_shape[lead:])
    )
    return (0,) * lead + tuple(kept)


def coalesce(shape, *strides):
    """Merge dimensions that every operand walks evenly.

    Returns `(sizes, strides of operand 0, strides of operand 1, ...)` as lists.
    """
    sizes, walks = [], [[] for _ in strides]
    for d, size in enumerate(shape):
        if size == 1:
            continue
        mergeable = sizes and all(
            walk[-1] == stride[d] * size for walk, stride in zip(walks, strides)
        )
        if mergeable:
            sizes[-1] *= size
            for walk, stride in zip(walks, strides):
                walk[-1] = stride[d]
        else:
            sizes.append(size)
            for walk, stride in zip(walks, strides):
                walk.append(stride[d])
    if len(sizes) > MAX_RANK:
        raise ValueError(
            f"[wgpu] a kernel walks at most {MAX_RANK} dimensions; shape {tuple(shape)} "
            "with these strides needs more. Call .contiguous() on the operands first."
        )
    return (sizes, *walks)


def dim_words(sizes, *walks):
    """The `dims` table of lib/params.wgsl: per dimension its size and up to 3 strides."""
    words = []
    for d, size in enumerate(sizes):
        row = [size] + [walk[d] for walk in walks]
        words += row + [0] * (4 - len(row))
    return words


def pack_words(words):
    """Integers as 32-bit words; negative strides wrap."""
    return struct.pack(f"<{len(words)}I", *[word & 0xFFFFFFFF for word in words])


def extent(shape, strides, offset):
    """(lowest, highest) element that a non-empty view touches."""
    low = high = offset
    for size, stride in zip(shape, strides):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high


def workgroups(count, limit=65535):
    """Split `count` workgroups over x and y: one dimension holds at most `limit`."""
    if count <= limit:
        return count, 1
    y = -(-count // limit)
    return -(-count // y), y


class Plans(dict):
    """What launches worked out, by geometry; forgets everything rather than grow on."""

    every = WeakValueDictionary()

    def __init__(self):
        super().__init__()
        self.every[id(self)] = self

    @classmethod
    def forget_all(cls):
        """Forget all plans of all launchers: they keep kernels, and these their devices."""
        for plans in list(cls.every.values()):
            plans.clear()

    def keep(self, key, plan):
        """Remember and return a plan."""
        if len(self) >= MAX_PLANS:
            self.clear()
        self[key] = plan
        return plan
