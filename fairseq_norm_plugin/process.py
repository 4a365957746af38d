"""Threads and memory: what a command sets for its process, and how many threads a pass takes.

Nothing is imported here that a command line does not need to be parsed.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

#: Tokens times parameters that are worth a thread: some hundredths of a second of its time; and some tenths if threads
#: spin while they wait, because then a busy machine takes 50 ms for each product, however small.
_WORK, _WORK_SPINNING = 5e8, 1e10
#: torch's warning of the masks that fairseq passes to it.
_MASKS = "Support for mismatched key_padding_mask"
#: How many blocks hide it now, in all threads, and its filter.
_hiding = 0
_filters: list[Any] = []
_hiding_lock = threading.Lock()
_POLICY = "OMP_WAIT_POLICY"
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
    os.environ.setdefault(_POLICY, "passive")


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

    It makes a program for each size of a product, and keeps the last 1,000 (500 MB).  Batches rarely have the same
    sizes, so more save no time.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "8")


@contextmanager
def enough_threads(models: Sequence[Any], tokens: int) -> Iterator[None]:
    """Limit torch's threads in the block to those that a pass has work for; the number of before comes back.

    torch keeps the number for each thread of Python, so other threads are not affected.  A warning of torch that only
    fairseq could avoid is hidden.

    Args:
        models: the models that run.
        tokens: tokens of the batch, both sides.
    """
    import torch

    before = torch.get_num_threads()
    parameters = sum(map(_multiplied, models))
    asleep = os.environ.get(_POLICY, "").lower() == "passive"
    work = _WORK if asleep else _WORK_SPINNING
    torch.set_num_threads(max(1, min(before, int(tokens * parameters / work))))
    try:
        with _mask_warning_hidden():
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _mask_warning_hidden() -> Iterator[None]:
    """Hide a warning that users of Python can do nothing about; other filters stay, in all threads."""
    global _hiding
    with _hiding_lock:
        _hiding += 1
        if _hiding == 1:
            warnings.filterwarnings("ignore", message=_MASKS)
            _filters.append(warnings.filters[0])
    try:
        yield
    finally:
        with _hiding_lock:
            _hiding -= 1
            if not _hiding:
                with suppress(ValueError):  # someone has reset all filters
                    cast("list[Any]", warnings.filters).remove(_filters.pop())


def _multiplied(model: Any) -> int:
    """The parameters that each token is multiplied by: all but embeddings, where it only takes its row."""
    from torch import nn

    looked_up = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in looked_up)


class _Here(Executor):
    """Runs each job when it is submitted, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def executors(count: int, share: bool) -> Iterator[list[Executor]]:
    """Make ``count`` executors, each of which runs its jobs one after the other; jobs not begun are dropped at the end.

    torch's threads are divided among them.  Small products hardly gain by a second thread, so two models at once, and
    what Python does meanwhile, take less time than one model after the other with all threads.

    Args:
        count: how many.
        share: False: jobs run where they are submitted; so they do if torch has only one thread.
    """
    import torch

    threads = torch.get_num_threads()
    if not share or threads == 1:
        yield [_Here()] * count
        return
    each = max(1, threads // count)
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(ThreadPoolExecutor(1, "direction", torch.set_num_threads, (each,)))
            stack.callback(made[-1].shutdown, cancel_futures=True)
        yield [*made]
