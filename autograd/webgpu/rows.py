"""Which kernels walk rows and outputs: an invocation each, or a workgroup each that joins its parts in a tree.

Barriers are what software Vulkan is slow at, and what a GPU needs to spread a long row over many invocations.
"""

import os

from .layout import LONGEST_LOOP
from .movement import copy

LANES = 256  # invocations of a workgroup: what WebGPU grants
SHORT = 64  # up to so many numbers a row is one invocation's on a GPU
ALONE = LONGEST_LOOP // 4  # the most that one invocation may walk: three times, as softmax does
LONGEST_ROW = LANES * LONGEST_LOOP // 4
KIND = os.environ.get("AUTOGRAD_WGPU_ROWS", "")  # "one" or "tree": that kind wherever it can walk the row


def kind():
    """The kind that the environment asks for, or ""."""
    if KIND not in ("", "one", "tree"):
        raise ValueError(f'[wgpu] AUTOGRAD_WGPU_ROWS is "one" or "tree" or not set; got {KIND!r}')
    return KIND


def trees(gpu, length):
    """Whether this adapter shares so many numbers between the invocations of a workgroup, where either can walk them."""
    return kind() == "tree" or (kind() == "" and length > SHORT and gpu.info["type"] != "CPU")


def lanes_of(gpu, length, unit=1, step=1):
    """How many invocations share a row of `length` units of `unit` numbers, `step` apart: 1, or a tree of up to 256.

    Rows that lie side by side are read together by an invocation each.
    """
    beside = step != 1 and kind() == ""
    if length <= ALONE and (beside or not trees(gpu, length * unit)):
        return 1
    return min(LANES, max(1 << (length - 1).bit_length(), 2))


def row_lib(lanes):
    """(lib, its constants, rows of a workgroup)."""
    return ("rows_one", "", 64) if lanes == 1 else ("rows_tree", f"const SIZE = {lanes}u;\n", 1)


def fits(length):
    """Whether the kernels can walk a row of so many numbers."""
    return 0 < length <= LONGEST_ROW


def dense(x):
    """x, or a copy whose elements lie in order."""
    return x if x.is_contiguous() else copy(x)
