"""Freed memory stays in the process: to hand blocks of megabytes back and fault them in again takes time.

Each pass frees and takes the same blocks, and threads have heaps of their own, which glibc gives back soonest.
"""

from __future__ import annotations

import ctypes
import sys

# parameters of glibc's mallopt, from malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
#: The largest block that glibc lets come from its heap.
_LARGEST_BLOCK = 2**25


def keep_freed_memory() -> bool:
    """Let glibc keep what the process frees, for all threads in one heap; call it once, before threads start.

    It is a setting of the whole process, so commands call it and the library does not.

    Returns:
        Whether it was done: no other C library has these settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_MMAP_THRESHOLD, _LARGEST_BLOCK), (_TRIM_THRESHOLD, 2**31 - 1), (_ARENA_MAX, 1))
    done = [mallopt(name, value) for name, value in settings]
    return all(done)
