"""Work that is done behind the main thread's back, but not behind its knowledge."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class BackgroundThread:
    """Does jobs one after the other in a thread of its own, at most ``waiting`` of them begun or to come.

    What a job raises is raised again by the next :meth:`put` and by every call after it, :meth:`finish` among them:
    no job's failure goes unnoticed.  An interpreter that ends does the jobs that wait first; it never hangs for them.
    """

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._jobs: deque[Future[None]] = deque()

    def put(self, job: Callable[[], None]) -> None:
        """Have ``job`` done; waits while as many as may wait do."""
        while self._jobs and (self._jobs[0].done() or len(self._jobs) >= self._waiting):
            self._jobs[0].result()  # one that failed stays the first, and every later call raises its error again
            self._jobs.popleft()
        self._jobs.append(self._executor.submit(job))

    def finish(self) -> None:
        """Wait until all jobs are done, and end the thread."""
        for job in self._jobs:
            job.result()
        self._executor.shutdown()

    def abandon(self) -> None:
        """Forget the jobs that were not begun, wait for the one that was, and end the thread; raises nothing."""
        self._executor.shutdown(wait=True, cancel_futures=True)
