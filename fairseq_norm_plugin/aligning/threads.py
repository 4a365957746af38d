"""The models of both directions at the same time, each in a thread of its own with its share of the processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import torch


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
