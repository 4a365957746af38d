"""Directories are made and replaced as a whole; only what we wrote ourselves is ever deleted."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from alignment_eval.errors import InputError
from alignment_eval.files.locks import WriterLock
from alignment_eval.files.temporaries import ENDING, left_over, temporary_name
from alignment_eval.files.writing import already_exists

_OLD = "align-eval-old"
_TEMPORARY = re.compile(rf"\..+\.[0-9a-f]{{16}}\.{ENDING}")


@dataclass(frozen=True)
class OwnFiles:
    """How a directory that a command wrote is recognised.

    Attributes:
        command: its name, for messages.
        names: what all files in it are called.
        mark: the file that every such directory has.
    """

    command: str
    names: re.Pattern[str]
    mark: str

    def strange(self, directory: Path) -> str | None:
        """The name of something in ``directory`` that the command did not write, or of the mark if that is missing."""
        found = sorted(directory.iterdir())
        for path in found:
            if not self._own(path):
                return path.name
        return self.mark if found and self.mark not in {path.name for path in found} else None

    def remove(self, directory: Path) -> None:
        """Remove ``directory`` and the command's own files in it.

        Raises:
            OSError: it holds something else, which stays there.
        """
        for path in directory.iterdir():
            if self._own(path):
                path.unlink()
        directory.rmdir()

    def _own(self, path: Path) -> bool:
        named = self.names.fullmatch(path.name) or _TEMPORARY.fullmatch(path.name)
        return bool(named) and stat.S_ISREG(path.lstat().st_mode)


def check_directory(out: str | Path, overwrite: bool, own: OwnFiles) -> None:
    """Check, before the work, that a command may write the directory ``out``.

    Raises:
        InputError: ``out`` is a file, a link, the working directory or a directory above it; or it holds something and
            ``overwrite`` is false, or something that the command did not write.
    """
    path, text = Path(out), str(out)
    if text == "" or path.name in ("", ".."):
        raise InputError(f"{text!r}: expected the name of a directory to write; choose another path")
    if path.is_symlink():
        raise InputError(f"{out}: is a symbolic link: expected a directory; name the one that it leads to")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{out}: is a file: expected a directory; choose another path")
    here, there = Path.cwd().resolve(), path.resolve()
    if there in (here, *here.parents):
        raise InputError(f"{out}: is the working directory or above it: it is never replaced; choose another path")
    if any(path.iterdir()) and not overwrite:
        raise already_exists(out)
    strange = own.strange(path)
    if strange is not None:
        state = "is missing" if strange == own.mark else f"was not written by {own.command}"
        raise InputError(
            f"{out}: {strange!r} in it {state}: only a directory that {own.command} wrote is replaced; "
            f"choose another path, or remove it yourself"
        )


@contextmanager
def new_directory(out: str | Path, overwrite: bool, own: OwnFiles) -> Iterator[Path]:
    """A directory to fill, which becomes ``out`` when the block ends well and is removed when it does not.

    One process at a time writes ``out``; what killed ones left is removed, or put back, first.

    Raises:
        InputError: see :func:`check_directory`; another process is writing ``out``; or it cannot be written.
    """
    check_directory(out, overwrite, own)
    target = Path(os.path.realpath(Path(out).parent)) / Path(out).name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with WriterLock(target):
            _clear(target, own)
            temporary = temporary_name(target)
            temporary.mkdir()
            try:
                yield temporary
                check_directory(out, overwrite, own)
                _swap(temporary, target, own)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror or error})") from error


def _clear(target: Path, own: OwnFiles) -> None:
    """Put back what a killed run had moved away, and remove what it left.  The caller holds the lock."""
    for old in left_over(target.parent, re.escape(target.name), _OLD):
        if not target.exists():
            old.rename(target)
    name = re.escape(target.name)
    for path in [*left_over(target.parent, name), *left_over(target.parent, name, _OLD)]:
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                own.remove(path)


def _swap(new: Path, target: Path, own: OwnFiles) -> None:
    """Rename ``new`` to ``target``, and remove what was there."""
    if not target.exists():
        new.rename(target)
        return
    new.chmod(stat.S_IMODE(target.stat().st_mode))
    old = temporary_name(target, _OLD)
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    own.remove(old)
