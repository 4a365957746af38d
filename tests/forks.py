"""A copy of this process that may die: without the seconds that a new one needs to import torch and fairseq."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

#: Seconds after which a copy that hangs is ended.
_LONGEST = 120


def die() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def forked(function: Callable[[], object]) -> int:
    """Call ``function`` in a copy of this process; its exit status, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(_LONGEST)
            function()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
