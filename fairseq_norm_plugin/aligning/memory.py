"""The memory of a process that aligns.

Each pass frees and takes the same blocks of megabytes.  To hand them back and fault them in again takes time, and
threads have heaps of their own, which glibc gives back soonest.  Each batch has sizes of its own, and oneDNN makes a
program for each product of them.  It keeps the last 1,000 (500 MB), which are hardly ever used again.
"""

from __future__ import annotations

import ctypes
import os
import sys

# parameters of glibc's mallopt, from malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
#: The largest block that glibc lets come from its heap.
_LARGEST_BLOCK = 2**25
#: How many programs oneDNN and PyTorch's layer above it keep: more save no time, since sizes hardly ever come again.
_PROGRAMS = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8", "LRU_CACHE_CAPACITY": "8"}


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


def keep_few_programs() -> None:
    """Let oneDNN keep few programs, unless the environment says how many; call it before the first matrix product."""
    for name, number in _PROGRAMS.items():
        os.environ.setdefault(name, number)
