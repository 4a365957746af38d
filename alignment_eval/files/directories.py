"""Creates and replaces directories as a whole; it only deletes files that this project wrote."""

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
    """How to recognise a directory that a command wrote.

    Attributes:
        command: the name of the command, for messages.
        names: matches the names of all files in the directory.
        mark: a file that every such directory has.
    """

    command: str
    names: re.Pattern[str]
    mark: str

    def strange(self, directory: Path) -> str | None:
        """The name of an entry of ``directory`` that the command did not write, or the mark if it is missing."""
        found = sorted(directory.iterdir())
        for path in found:
            if not self._own(path):
                return path.name
        return self.mark if found and self.mark not in {path.name for path in found} else None

    def remove(self, directory: Path) -> None:
        """Remove ``directory`` and the command's own files in it.

        Raises:
            OSError: it holds something else, which is kept.
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
        InputError: ``out`` is a file, a link, the working directory or a directory above it; or it is not empty and
            ``overwrite`` is false; or it holds something that the command did not write.
    """
    path, text = Path(out), str(out)
    if text == "" or path.name in ("", ".."):
        raise InputError(f"{text!r} cannot be the name of a new directory; choose another path")
    if path.is_symlink():
        raise InputError(f"{out}: this is a symbolic link; give the directory that it points to")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{out}: this is a file, not a directory; choose another path")
    here, there = Path.cwd().resolve(), path.resolve()
    if there in (here, *here.parents):
        raise InputError(
            f"{out}: this is the working directory or above it, so it is not replaced; choose another path"
        )
    if any(path.iterdir()) and not overwrite:
        raise already_exists(out)
    strange = own.strange(path)
    if strange is not None:
        state = "has no" if strange == own.mark else "holds"
        raise InputError(
            f"{out}: the directory {state} {strange!r}, so it is not one that {own.command} wrote, and it is not "
            f"replaced; choose another path, or remove the directory yourself"
        )


@contextmanager
def new_directory(out: str | Path, overwrite: bool, own: OwnFiles) -> Iterator[Path]:
    """A temporary directory that becomes ``out`` if the block succeeds, and is removed if it fails.

    Only one process at a time writes ``out``.  Leftovers of killed processes are first removed, or put back.

    Raises:
        InputError: see :func:`check_directory`; or another process is writing ``out``; or it cannot be written.
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
        raise InputError(f"{out}: cannot write the directory ({error.strerror or error})") from error


def _clear(target: Path, own: OwnFiles) -> None:
    """Put back what a killed run had moved away, and remove its leftovers.  The caller holds the lock."""
    for old in left_over(target.parent, re.escape(target.name), _OLD):
        if not target.exists():
            old.rename(target)
    name = re.escape(target.name)
    for path in [*left_over(target.parent, name), *left_over(target.parent, name, _OLD)]:
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                own.remove(path)


def _swap(new: Path, target: Path, own: OwnFiles) -> None:
    """Rename ``new`` to ``target``, and remove the old directory."""
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
