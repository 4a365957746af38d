"""Files: hashes of content, checks before writing, and writing whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from alignment_eval.errors import InputError

#: Stands for standard input or output where a path is expected.
STANDARD = "-"


class ContentHash:
    """A running hash of content: blake2b, shown as its first 12 hexadecimal digits."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b()

    def update(self, data: bytes) -> None:
        """Add content."""
        self._hash.update(data)

    @property
    def short(self) -> str:
        """The hash of all content so far."""
        return self._hash.hexdigest()[:12]


def check_new(path: str | Path, overwrite: bool) -> None:
    """Check, before the work, that nothing is lost where :func:`write_lines` will write.

    Raises:
        InputError: there is a file, and ``overwrite`` is false.
    """
    if not overwrite and str(path) != STANDARD and Path(path).is_file():
        raise InputError(f"{path}: there is a file already: expected a new one; name another or give --overwrite")


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write ``lines`` (without line ends) to a file, whole or not at all, or to standard output (``-``).

    Raises:
        InputError: the file cannot be written.
    """
    ended = (f"{line}\n" for line in lines)
    if str(path) == STANDARD:
        sys.stdout.writelines(ended)
    else:
        _write_whole(Path(path), (line.encode() for line in ended))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content`` to a file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    _write_whole(Path(path), [content])


def _write_whole(path: Path, content: Iterable[bytes]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.exists() and not path.is_file():  # a pipe or /dev/null must not be replaced by a file
            with path.open("wb") as file:
                file.writelines(content)
            return
        try:
            with temporary.open("wb") as file:
                file.writelines(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}): expected a path in a directory") from error
