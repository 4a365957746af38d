"""Files are written whole or not at all: under a temporary name, then renamed."""

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

#: Stands for standard input or output where a path is expected.
STANDARD = "-"


def already_exists(path: str | Path, option: str | None = "--overwrite") -> InputError:
    """The error that says so; ``option`` is what replaces it, None where nothing does."""
    return InputError(f"{path}: already exists; choose another path or {f'pass {option}' if option else 'remove it'}")


def is_stream(path: str | Path) -> bool:
    """Whether ``path`` is standard output, a pipe or a device, which is written through and never replaced.

    Raises:
        InputError: ``path`` cannot be the name of a file.
    """
    with writing_errors(path):
        return _to_replace(path) is None


def check_new(path: str | Path, overwrite: bool, option: str | None = "--overwrite", parents: bool = False) -> None:
    """Check, before the work, that a file can be written at ``path`` and that nothing is lost there.

    Standard output, pipes and devices pass; with ``parents`` a directory that is yet to be made, too.

    Raises:
        InputError: there is something at ``path`` and ``overwrite`` is false; or no file can be written there.
    """
    with writing_errors(path):
        target = _to_replace(path)
        if target is None:
            return
        if not overwrite and os.path.lexists(path):
            raise already_exists(path, option)
        _check_place(path, target, parents)


class NewFile:
    """A file on its way: written at :attr:`path`, then renamed to ``target`` (:meth:`keep`) or removed (:meth:`drop`).

    The mode of a file that is replaced is kept.  A link is followed: the file that it leads to is replaced.  What
    killed runs left of the same file is removed first.

    Raises:
        InputError: the file cannot be written there.
    """

    def __init__(self, target: str | Path) -> None:
        self._shown = target
        with writing_errors(target):
            found = _to_replace(target)
            if found is None:
                raise InputError(f"{target}: is not a regular file: expected the name of a file")
            _check_place(target, found)
            self._target = found
            remove_left_over_files(found.parent, re.escape(found.name))
            self.path, descriptor = new_temporary_file(found)
            self._descriptor: int | None = descriptor

    def keep(self) -> None:
        """Give the file its name.

        Raises:
            InputError: that is not possible; the file is removed.
        """
        with writing_errors(self._shown):
            try:
                with self.path.open("r+b") as file:
                    os.fsync(file.fileno())  # some file systems say only now that the disk is full
                self.path.replace(self._target)
            finally:
                self.drop()

    def drop(self) -> None:
        """Remove the file, if it has not got its name."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; what is there when the block ends well becomes the file ``path``.

    If the block raises, ``path`` is as it was.  Where ``path`` is standard output, a pipe or a device, the content is
    copied there at the end.

    Raises:
        InputError: the file cannot be written there; errors of the system in the block count as such.
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
    """Write ``lines`` (without line ends) as UTF-8 to a file, whole or not at all, or to standard output (``-``).

    Raises:
        InputError: the file cannot be written.
    """
    _write(path, (f"{line}\n".encode() for line in lines))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content`` to a file, whole or not at all.

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
    """Write to what is no regular file, or is standard output by another name."""
    if str(path) == STANDARD or _is_stdout(Path(path).stat()):
        sys.stdout.flush()
        sys.stdout.buffer.writelines(content)
        sys.stdout.buffer.flush()
    else:
        with Path(path).open("wb") as file:
            file.writelines(content)


def _to_replace(path: str | Path) -> Path | None:
    """The regular file, there or not yet, that a write to ``path`` replaces; None where it is to be written through.

    Raises:
        InputError: ``path`` cannot be the name of a file.
        OSError: it cannot be looked at.
    """
    if str(path) == STANDARD:
        return None
    if str(path) in ("", ".", "..") or str(path).endswith(os.sep) or Path(path).is_dir():
        raise InputError(f"{path or repr(path)}: is a directory: expected the name of a file")
    real = Path(os.path.realpath(path))
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return real
    if not stat.S_ISREG(found.st_mode) or _is_stdout(found):
        return None
    return real if not Path(path).is_symlink() or _leads_to(Path(path), real) else None


def _leads_to(link: Path, real: Path) -> bool:
    """Whether a link leads to the file that it names: one of /proc/self/fd may lead to a file without a name."""
    for _ in range(5):  # another process may be replacing the file just now
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
    except (AttributeError, OSError, ValueError):  # no stdout, or one of Python's own
        return False


@contextlib.contextmanager
def writing_errors(path: str | Path) -> Iterator[None]:
    """Name the file in errors of the system.  A reader of standard output that has gone is no error of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if str(path) == STANDARD else path
        raise InputError(f"{name}: cannot be written ({error.strerror or error})") from error
