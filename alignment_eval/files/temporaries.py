"""Temporary names beside an output, and the leftovers of killed runs with such names.

A name is ``.NAME.RANDOM.align-eval-tmp``: hidden, recognisable, and impossible to guess.  Its owner holds a lock on it,
so that a later run can distinguish leftovers of killed runs from files that are being written.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from alignment_eval.files.locks import is_name_of, try_lock

ENDING = "align-eval-tmp"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def temporary_name(target: Path, ending: str = ENDING) -> Path:
    """An unused name beside ``target``."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.{ending}")


def left_over(directory: Path, names: str, ending: str = ENDING) -> list[Path]:
    """The entries of ``directory`` with temporary names of files whose names match the regular expression ``names``."""
    pattern = re.compile(rf"\.({names})\.[0-9a-f]{{16}}\.{re.escape(ending)}")
    return [path for path in directory.iterdir() if pattern.fullmatch(path.name)]


def new_temporary_file(target: Path) -> tuple[Path, int]:
    """Create an empty, locked file beside ``target``, with its mode if it exists; return its path and open descriptor.

    Raises:
        OSError: the file cannot be created.
    """
    while True:
        path = temporary_name(target)
        descriptor = os.open(path, _NEW, 0o666)
        if try_lock(descriptor) is not False and is_name_of(path, descriptor):
            break  # else another run has removed it as a leftover before it was locked
        os.close(descriptor)
    if target.is_file() and hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
    return path, descriptor


def remove_left_over_files(directory: Path, names: str) -> None:
    """Remove the temporary files of :func:`left_over` that no process is writing.

    Raises:
        OSError: the directory cannot be read or changed.
    """
    for path in left_over(directory, names):
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError:  # it is a link, belongs to another user, or is gone
            continue
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            if regular and try_lock(descriptor) and is_name_of(path, descriptor):
                path.unlink()
        finally:
            os.close(descriptor)
