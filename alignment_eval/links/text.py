"""Reads text files in large pieces of whole lines and checks that they are UTF-8."""

from __future__ import annotations

import codecs
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.files import STANDARD, ContentHash

_CHUNK_BYTES = 2**20
_SEPARATOR = re.compile(rb"(?<!\S)\|\|\|(?!\S)")


class TextFile:
    r"""A UTF-8 text file, or standard input (``-``), that is read once.

    Iterating gives pieces of whole lines as bytes.  Every line ends with ``\n``: ``\r\n`` becomes ``\n``, a missing
    final ``\n`` is added, a byte order mark is dropped.  ``name`` is for messages; ``hash`` is the hash of the content,
    complete after the iteration.

    Args:
        path: the file.
        expected: what the file should hold, for the error about an empty file.

    Raises:
        InputError: while iterating, if the file does not exist, cannot be read, is empty, or is not UTF-8.
    """

    def __init__(self, path: str | Path, expected: str = "one line per sentence (a blank line: no links)") -> None:
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
            raise InputError(f"{self.name}: no such file; check the path") from error
        except OSError as error:
            raise InputError(f"{self.name}: cannot read the file ({error.strerror})") from error

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        read, lines = 0, False
        while chunk := file.read(_CHUNK_BYTES):
            chunk += file.readline()
            self.hash.update(chunk)
            try:
                chunk.decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self.name}: the text is not UTF-8 (byte {read + error.start}); convert it with "
                    f"iconv -f ENCODING -t UTF-8, or give a text file"
                ) from error
            text = chunk if read else chunk.removeprefix(codecs.BOM_UTF8)
            read += len(chunk)
            if text:
                lines = True
                text = text if text.endswith(b"\n") else text + b"\n"
                yield text.replace(b"\r\n", b"\n") if b"\r" in text else text
        if not lines and Path(self._path).is_fifo():
            raise InputError(f"{self.name}: the pipe is empty; if it is read for the second time, give a file instead")
        if not lines:
            raise InputError(f"{self.name}: the file is empty; expected {self._expected}")


class RepeatedFile:
    """A :class:`TextFile` whose lines can be read several times; standard input and pipes are kept in memory."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._kept: list[bytes] | None = None
        self.text = TextFile(path)

    def chunks(self) -> Iterator[bytes]:
        """Pieces of whole lines; errors as for :class:`TextFile`."""
        if Path(self._path).is_file():
            self.text = TextFile(self._path)
            yield from self.text
            return
        if self._kept is None:
            self._kept = list(self.text)
        yield from self._kept

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The number of each line, from 1, and the line without its end."""
        number = 0
        for chunk in self.chunks():
            for line in chunk.split(b"\n")[:-1]:
                number += 1
                yield number, line


def token_lines(path: str | Path) -> Iterator[list[bytes]]:
    """The tokens of each line of a tokenised text, as UTF-8.

    Only ASCII blanks separate tokens; other Unicode spaces may be part of a token.

    Raises:
        InputError: as :class:`TextFile`.
    """
    for chunk in TextFile(path):
        yield from map(bytes.split, chunk.split(b"\n")[:-1])


def split_joined(line: bytes, where: str) -> tuple[bytes, bytes]:
    """Source and target of a line ``source ||| target``; a blank line is an empty pair.

    Raises:
        InputError: a line, read at ``where``, does not have exactly one separator.
    """
    parts = _SEPARATOR.split(line)
    if len(parts) != 2 and line.strip():
        raise InputError(
            f"{where}: {len(parts) - 1} separators |||: expected one, SOURCE ||| TARGET; if ||| is part of the text, "
            f"give source and target as two files"
        )
    return parts[0].strip(), parts[-1].strip()


def token_counts(path: str | Path) -> NDArray[np.int64]:
    """The number of tokens on each line of a tokenised text, [lines]; see :func:`token_lines`."""
    return np.fromiter(map(len, token_lines(path)), dtype=np.int64)
