"""Writes files atomically: with a temporary name that is changed at the end."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from alignment_eval.errors import InputError
from alignment_eval.files.temporaries import new_temporary_file, remove_left_over_files

#: Stands for standard input or output instead of a path.
STANDARD = "-"


def already_exists(path: str | Path, option: str | None = "--overwrite") -> InputError:
    """The error for an existing path; ``option`` is the option that allows to replace it, None if there is none."""
    return InputError(f"{path}: already exists; choose another path or {f'pass {option}' if option else 'remove it'}")


def is_stream(path: str | Path) -> bool:
    """Whether ``path`` is standard output, a pipe or a device, which is written to directly and never replaced.

    Raises:
        InputError: ``path`` cannot be the name of a file.
    """
    with writing_errors(path):
        return _to_replace(path) is None


def check_new(path: str | Path, overwrite: bool, option: str | None = "--overwrite", parents: bool = False) -> None:
    """Check, before the work, that a file can be written at ``path`` and that nothing is lost there.

    Standard output, pipes and devices pass; with ``parents``, so does a directory that does not exist yet.

    Raises:
        InputError: ``path`` exists and ``overwrite`` is false; or no file can be written there.
    """
    with writing_errors(path):
        target = _to_replace(path)
        if target is None:
            return
        if not overwrite and os.path.lexists(path):
            raise already_exists(path, option)
        _check_place(path, target, parents)


class NewFile:
    """A temporary file at :attr:`path` that is renamed to ``target`` (:meth:`keep`) or removed (:meth:`drop`).

    A replaced file keeps its mode.  A link is followed: the file that it points to is replaced.  Leftovers of killed
    runs of the same file are removed first.

    Raises:
        InputError: the file cannot be written there.
    """

    def __init__(self, target: str | Path) -> None:
        self._shown = target
        with writing_errors(target):
            found = _to_replace(target)
            if found is None:
                raise InputError(f"{target}: this is not a regular file; give the name of a file")
            _check_place(target, found)
            self._target = found
            remove_left_over_files(found.parent, re.escape(found.name))
            self.path, descriptor = new_temporary_file(found)
            self._descriptor: int | None = descriptor

    def keep(self) -> None:
        """Rename the file to its final name.

        Raises:
            InputError: this is not possible; the file is removed.
        """
        with writing_errors(self._shown):
            try:
                with self.path.open("r+b") as file:
                    os.fsync(file.fileno())  # some file systems report a full disk only now
                self.path.replace(self._target)
            finally:
                self.drop()

    def drop(self) -> None:
        """Remove the file, unless it has its final name."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes the file ``path`` if the block succeeds.

    If the block raises, ``path`` does not change.  If ``path`` is standard output, a pipe or a device, the content is
    copied there at the end.

    Raises:
        InputError: the file cannot be written there, or the block raises an OSError.
    """
    with writing_errors(path):
        if _to_replace(path) is None:
            with TemporaryDirectory(prefix="align-eval-") as directory:
                temporary = Path(directory) / "output"
                yield temporary
                with temporary.open("rb") as content:
                    _write_through(path, content)
            return
        file = NewFile(path)
        try:
            yield file.path
            file.keep()
        finally:
            file.drop()


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write ``lines`` (without line ends) as UTF-8, atomically to a file, or to standard output (``-``).

    Raises:
        InputError: the file cannot be written.
    """
    _write(path, (f"{line}\n".encode() for line in lines))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content`` to a file atomically.

    Raises:
        InputError: the file cannot be written.
    """
    _write(path, [content])


def _write(path: str | Path, content: Iterable[bytes]) -> None:
    with writing_errors(path):
        if _to_replace(path) is None:
            _write_through(path, content)
            return
    with new_file(path) as temporary, temporary.open("wb") as file:
        file.writelines(content)


def _write_through(path: str | Path, content: Iterable[bytes]) -> None:
    """Write directly to a path that is not a regular file, or that is another name of standard output."""
    if str(path) == STANDARD or _is_stdout(Path(path).stat()):
        sys.stdout.flush()
        sys.stdout.buffer.writelines(content)
        sys.stdout.buffer.flush()
    else:
        with Path(path).open("wb") as file:
            file.writelines(content)


def _to_replace(path: str | Path) -> Path | None:
    """The regular file, existing or not, that a write to ``path`` replaces; None if it must be written to directly.

    Raises:
        InputError: ``path`` cannot be the name of a file.
        OSError: the path cannot be examined.
    """
    if str(path) == STANDARD:
        return None
    if str(path) in ("", ".", "..") or str(path).endswith(os.sep) or Path(path).is_dir():
        raise InputError(f"{path or repr(path)}: this is a directory; give the name of a file")
    real = Path(os.path.realpath(path))
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return real
    if not stat.S_ISREG(found.st_mode) or _is_stdout(found):
        return None
    return real if not Path(path).is_symlink() or _leads_to(Path(path), real) else None


def _leads_to(link: Path, real: Path) -> bool:
    """Whether a link points to the file that it names; one in /proc/self/fd may point to a file without a name."""
    for _ in range(5):  # another process may be replacing the file now
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(link.stat(), real.stat()):
                return True
    return False


def _check_place(path: str | Path, target: Path, parents: bool = False) -> None:
    directory = target.parent
    while parents and not os.path.lexists(directory):
        directory = directory.parent
    if not directory.is_dir():
        raise InputError(f"{path}: the directory {directory} does not exist; create it, or choose another path")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: the directory {directory} is not writable; choose another path")
    if target.exists() and not (os.access(target, os.W_OK) and target.stat().st_mode & 0o222):
        raise InputError(f"{path}: the file is read-only; choose another path, or make it writable")


def _is_stdout(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(sys.stdout.fileno()))
    except (AttributeError, OSError, ValueError):  # there is no stdout, or it is a Python object
        return False


@contextlib.contextmanager
def writing_errors(path: str | Path) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file.  A closed pipe is not an error of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if str(path) == STANDARD else path
        raise InputError(f"{name}: cannot write the file ({error.strerror or error})") from error
