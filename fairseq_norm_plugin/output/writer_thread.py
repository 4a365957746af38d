"""A background thread for writing, whose errors re-raise in the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class BackgroundThread:
    """Runs jobs one after the other in a background thread; at most ``waiting`` of them are running or queued.

    An exception of a job re-raises in the next :meth:`put` and in every later call, including :meth:`finish`.  When the
    interpreter ends, it first runs the queued jobs; it does not hang.
    """

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._jobs: deque[Future[None]] = deque()

    def put(self, job: Callable[[], None]) -> None:
        """Queue ``job``; wait while the queue is full."""
        while self._jobs and (self._jobs[0].done() or len(self._jobs) >= self._waiting):
            self._jobs[0].result()  # a failed job stays the first, so that every later call raises its error again
            self._jobs.popleft()
        self._jobs.append(self._executor.submit(job))

    def finish(self) -> None:
        """Wait until all jobs are done, and end the thread."""
        for job in self._jobs:
            job.result()
        self._executor.shutdown()

    def abandon(self) -> None:
        """Drop the queued jobs, wait for the running one, and end the thread; raises nothing."""
        self._executor.shutdown(wait=True, cancel_futures=True)
