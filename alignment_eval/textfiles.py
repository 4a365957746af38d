"""Text files in and out: whole lines in large pieces, checked UTF-8, written whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError

#: Stands for standard input or output where a path is expected.
STANDARD = "-"
_CHUNK_BYTES = 4 * 2**20


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


class TextFile:
    r"""A UTF-8 text file to be read once, or standard input (``-``).

    Iterating gives pieces of whole lines as bytes, every line ended by ``\n`` alone (``\r\n`` is turned into
    it, a missing last one added, a byte order mark dropped).  ``name`` is for messages; ``hash`` is that of the
    content and whole after the iteration.

    Args:
        path: the file.
        expected: what is expected in it, for the error of an empty file.

    Raises:
        InputError: no such file, it cannot be read, is empty, or is not UTF-8; while iterating.
    """

    def __init__(self, path: str | Path, expected: str = "one line a sentence (a blank one: no links)") -> None:
        self._path = path
        self._expected = expected
        self.name = "<stdin>" if str(path) == STANDARD else str(path)
        self.hash = ContentHash()

    def __iter__(self) -> Iterator[bytes]:
        try:
            with contextlib.ExitStack() as stack:
                standard = str(self._path) == STANDARD
                file: BinaryIO = sys.stdin.buffer if standard else stack.enter_context(Path(self._path).open("rb"))
                yield from self._chunks(file)
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: no such file: expected a text file; check the path") from error
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror}): expected a text file") from error

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        read, lines = 0, False
        while chunk := file.read(_CHUNK_BYTES):
            chunk += file.readline()
            self.hash.update(chunk)
            self._check_utf8(chunk, read)
            text = chunk if read else chunk.removeprefix(codecs.BOM_UTF8)
            read += len(chunk)
            if text:
                lines = True
                text = text if text.endswith(b"\n") else text + b"\n"
                yield text.replace(b"\r\n", b"\n") if b"\r" in text else text
        if not lines:
            raise InputError(f"{self.name}: the file is empty: expected {self._expected}")

    def _check_utf8(self, chunk: bytes, read: int) -> None:
        if chunk.isascii():
            return
        try:
            chunk.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.name}: not UTF-8 (byte {read + error.start}): expected UTF-8 text; convert it (iconv -t UTF-8)"
            ) from error


def token_lines(path: str | Path) -> Iterator[list[bytes]]:
    """The tokens of each line of a tokenised text, as UTF-8.

    Tokens are separated by ASCII blanks alone: other spaces of Unicode may be part of a token.

    Raises:
        InputError: as :class:`TextFile`.
    """
    for chunk in TextFile(path):
        yield from map(bytes.split, chunk.split(b"\n")[:-1])


def token_counts(path: str | Path) -> NDArray[np.int64]:
    """The number of tokens on each line of a tokenised text, [lines]; see :func:`token_lines`."""
    return np.fromiter(map(len, token_lines(path)), dtype=np.int64)


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
