"""Reads text files in large pieces of whole lines and checks that they are UTF-8."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedIOBase, BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.files import STANDARD, ContentHash

_CHUNK_BYTES = 2**20
#: How compressed files begin.
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\0"
#: Marks of subwords; what Moses escapes or marks.
_SUBWORD, _ESCAPE = re.compile(r"\S@@(?: |$)|(?:^| )▁\S"), re.compile(r"(?:^| )(?:&(?:apos|quot|#91|#93|#124);|@\W@ )")
#: Lines look prepared if more than this share of them have such marks.
_PREPARED = 0.1
_SEPARATOR = re.compile(rb"(?<!\S)\|\|\|(?!\S)")


class TextFile:
    r"""A UTF-8 text file, or standard input (``-``).

    Iterating gives pieces of whole lines as bytes.  Every line ends with ``\n``: ``\r\n`` becomes ``\n``, a missing
    final ``\n`` is added, a byte order mark is dropped.  What gzip or xz compressed is decompressed.  ``name`` and
    ``expected`` (what the file should hold) are for messages; ``hash`` is the hash of the decompressed content,
    complete after the iteration.  ``keep`` keeps standard input and pipes in memory, to be read again as files can.
    """

    def __init__(self, path: str | Path, expected: str = "one line per sentence", keep: bool = False) -> None:
        self._path = path
        self._expected = expected
        self._keep = keep and not Path(path).is_file()
        self._kept: list[bytes] = []
        self.name = "<stdin>" if str(path) == STANDARD else str(path)
        self.hash = ContentHash()

    def __iter__(self) -> Iterator[bytes]:
        if self._kept:
            yield from self._kept
            return
        self.hash = ContentHash()
        try:
            with contextlib.ExitStack() as stack:
                standard = str(self._path) == STANDARD
                opened = sys.stdin.buffer if standard else stack.enter_context(Path(self._path).open("rb"))
                file = self._decompressed(opened)  # type: ignore[arg-type]
                if self._keep:
                    self._kept = list(self._chunks(file))
                yield from self._kept or self._chunks(file)
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: no such file; check the path") from error
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.name}: cannot read the file ({reason})") from error

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The number of each line, from 1, and the line without its end."""
        return enumerate((line for chunk in self for line in chunk.split(b"\n")[:-1]), 1)

    def _decompressed(self, file: BufferedReader) -> BufferedIOBase:
        """The content of a file that gzip or xz may have compressed."""
        start = file.peek(len(_XZ))
        if start.startswith(_GZIP):
            return gzip.GzipFile(fileobj=file)
        return lzma.LZMAFile(file) if start.startswith(_XZ) else file

    def _chunks(self, file: BufferedIOBase) -> Iterator[bytes]:
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


def token_lines(path: str | Path) -> Iterator[list[bytes]]:
    """The tokens of each line of a tokenised text, as UTF-8.

    Only ASCII whitespace separates tokens; other Unicode spaces may be part of a token.
    """
    for chunk in TextFile(path):
        yield from map(bytes.split, chunk.split(b"\n")[:-1])


def marks_of_tools(lines: Sequence[str]) -> tuple[str, str]:
    """What shows that lines were cut into subwords, and that Moses escaped them; each empty if nothing does."""
    cut, escaped = (sum(mark.search(line) is not None for line in lines) for mark in (_SUBWORD, _ESCAPE))
    fewest, size = _PREPARED * len(lines), len(lines)
    return (
        f"in {cut} of {size} sampled lines words end in @@ or begin with ▁" if cut > fewest else "",
        f"{escaped} of {size} sampled lines have Moses' escapes, such as &apos; or @-@" if escaped > fewest else "",
    )


def split_joined(line: bytes, where: str) -> tuple[bytes, bytes]:
    """Source and target of a line ``source ||| target``; a blank line is an empty pair."""
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
