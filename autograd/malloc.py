"""Freed memory is kept for the next array, where the C library is glibc.

By default glibc gives a large block back to the system when it is freed, and the next array of that size is made of new
pages, each of which the system clears at its first use: at a million float32 that costs more than the arithmetic. So
blocks up to MAPPED bytes come from the heap, and the heap shrinks only when KEPT bytes at its end are free (mallopt(3)).
It holds for the whole process. AUTOGRAD_MALLOC=system leaves glibc as it is; any other C library is left alone.
"""

from __future__ import annotations

import ctypes
import os

MAPPED = 1 << 28
KEPT = 1 << 29
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed() -> bool:
    """Whether glibc was asked to keep freed memory. ValueError for an unknown AUTOGRAD_MALLOC."""
    wanted = os.environ.get("AUTOGRAD_MALLOC", "keep")
    if wanted not in ("keep", "system"):
        raise ValueError(f'[autograd] AUTOGRAD_MALLOC is "keep" or "system"; got {wanted!r}')
    if wanted == "system":
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  (only glibc has it; other mallopts have other numbers)
        mallopt = library.mallopt
    except (OSError, TypeError, AttributeError):  # no dynamic linking, Windows, musl or macOS
        return False
    return mallopt(_M_MMAP_THRESHOLD, MAPPED) == 1 and mallopt(_M_TRIM_THRESHOLD, KEPT) == 1


KEEPS = keep_freed()
