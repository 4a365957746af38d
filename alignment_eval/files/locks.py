"""Locks that are released when their process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

from alignment_eval.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: no locks
    fcntl = None  # type: ignore[assignment]


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file or directory: True if it worked, False if another holds the lock, None without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def is_name_of(path: Path, descriptor: int) -> bool:
    """Whether ``path`` is a name of the open file or directory (not a link to it)."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class WriterLock:
    """A lock for writing the output ``path``, held from construction until :meth:`release` or the end of the process.

    The lock is on a file ``.NAME.align-eval-lock`` beside the output, which :meth:`release` removes.  If the system or
    the file system has no locks, every process gets it.

    Raises:
        InputError: another process holds the lock, or the lock file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.with_name(f".{path.name}.align-eval-lock")
        self._descriptor: int | None = None
        self._owner = os.getpid()
        while self._descriptor is None:
            try:
                descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            except OSError as error:
                raise InputError(f"{path}: cannot create the lock file {self._file} ({error.strerror})") from error
            if try_lock(descriptor) is False:
                os.close(descriptor)
                raise InputError(f"{path}: another process is writing it; wait until it ends, or choose another path")
            if is_name_of(self._file, descriptor):
                self._descriptor = descriptor
            else:  # the last owner has removed the file in between
                os.close(descriptor)

    def release(self) -> None:
        """Release the lock; a second call does nothing, nor does a call in a forked process."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                if os.getpid() == self._owner and is_name_of(self._file, self._descriptor):
                    self._file.unlink()
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> WriterLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
