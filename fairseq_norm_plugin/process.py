"""Settings of the whole process that commands choose, for speed and memory; the library leaves them alone."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_COMMANDS = ("norm-align", "norm-analyze")
# parameters of glibc's mallopt, from malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
#: The largest block that glibc lets come from its heap.
_LARGEST_BLOCK = 2**25


def is_own_command(words: Sequence[str]) -> bool:
    """Whether ``sys.orig_argv`` runs this package: by a command's name, or as ``python -m fairseq_norm_plugin.…``."""
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1].partition(".")[0] == __package__
    return any(Path(word).name in _COMMANDS for word in words[:2])


def let_waiting_threads_sleep() -> None:
    """Let threads that wait for each other sleep, unless the environment says otherwise; call it before torch comes.

    OpenMP lets a waiting thread spin on its processor.  On a busy machine it holds up the very thread that it waits
    for: small models took 20 times as long with two threads as with one.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def keep_freed_memory() -> None:
    """Let glibc keep what the process frees, for all threads in one heap; call it once, before threads start.

    Each pass frees and takes the same blocks of megabytes.  Handing them back and faulting them in again takes time.
    Other C libraries have no such settings.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is not None:
        for name, value in ((_MMAP_THRESHOLD, _LARGEST_BLOCK), (_TRIM_THRESHOLD, 2**31 - 1), (_ARENA_MAX, 1)):
            mallopt(name, value)


def keep_few_programs() -> None:
    """Let oneDNN keep few programs, unless the environment says how many; call it before the first matrix product.

    It makes a program for each size of a product, and keeps the last 1,000 (500 MB).  Batches hardly ever have the same
    sizes, so more save no time.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "8")
