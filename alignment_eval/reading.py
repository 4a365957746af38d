"""Reads text files, hashes content, and says when two files of one text have different numbers of sentences."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial, wraps
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from alignment_eval.errors import InputError
from alignment_eval.files import STANDARD

_CHUNK_BYTES = 2**20
Read = TypeVar("Read")
#: How compressed files begin.
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\0"
_SEPARATOR = re.compile(rb"(?<!\S)\|\|\|(?!\S)")
_TABBED = re.compile(r"\.tsv(\.(gz|xz))?$", re.IGNORECASE)


def blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The rest of a stream, block by block."""
    return iter(partial(stream.read, _CHUNK_BYTES), b"")


def content_hash(content: Iterable[bytes]) -> str:
    """Short hash of content that comes in pieces: the first 12 hexadecimal digits."""
    digest = hashlib.blake2b()
    for piece in content:
        digest.update(piece)
    return digest.hexdigest()[:12]


def file_hash(path: str | Path) -> str:
    """The :func:`content_hash` of a file."""
    try:
        with Path(path).open("rb") as stream:
            return content_hash(blocks(stream))
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror})") from error


def file_state(path: str | Path) -> tuple[int, ...] | None:
    """What changes when a regular file does; None for anything else."""
    if not Path(path).is_file():
        return None
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_once(read: Callable[..., Read]) -> Callable[..., Read]:
    """Let ``read(path, …)`` keep what it has read of the last files, as long as these do not change.

    Both directions of a pair share files, and single pairs are often aligned one by one.
    """
    kept = lru_cache(maxsize=4)(lambda state, *args: read(*args))

    @wraps(read)
    def reader(path: str | Path, *args: Any) -> Read:
        return kept(file_state(path), str(path), *args)

    return reader


def json_hash(value: Any) -> str:
    """Hash of a value's JSON form; the order of keys does not matter."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


class Size(NamedTuple):
    """How many sentences a file has, and whether its last line is blank, for messages."""

    name: str
    sentences: int
    unit: str = "sentences"
    blank_end: bool = False


def check_sizes(first: Size, second: Size) -> None:
    """Check that two files of one text have as many sentences."""
    if first.sentences != second.sentences:
        longer = max(first, second, key=lambda size: size.sentences)
        raise InputError(
            f"{first.name} has {first.sentences} {first.unit}, but {second.name} has {second.sentences} {second.unit}: "
            f"expected the same number, a line for each sentence; are both of the same text?"
            f"{f' (the last line of {longer.name} is blank: delete it)' if longer.blank_end else ''}"
        )


class TextFile:
    r"""A UTF-8 text file, or standard input (``-``).

    Iterating gives pieces of whole lines as bytes.  Every line ends with ``\n``: ``\r\n`` becomes ``\n``, a missing
    final ``\n`` is added, a byte order mark is dropped.  What gzip or xz compressed is decompressed.  ``name`` and
    ``expected`` (what the file should hold) are for messages.  ``keep`` keeps standard input and pipes in memory, to be
    read again as files can.
    """

    def __init__(self, path: str | Path, expected: str = "one line per sentence", keep: bool = False) -> None:
        self._path = path
        self._expected = expected
        self._keep = keep and not Path(path).is_file()
        self._kept: list[bytes] = []
        self.name = "<stdin>" if str(path) == STANDARD else str(path)
        self._digest = hashlib.blake2b()

    @property
    def hash(self) -> str:
        """The :func:`content_hash` of the decompressed content, complete after an iteration."""
        return self._digest.hexdigest()[:12]

    def __iter__(self) -> Iterator[bytes]:
        if self._kept:
            yield from self._kept
            return
        self._digest = hashlib.blake2b()
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
            self._digest.update(chunk)
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


def token_lines(path: str | Path) -> Iterator[list[str]]:
    """The tokens of each line of a tokenised text; only ASCII whitespace separates them, other spaces may be in one."""
    return ([token.decode() for token in line.split()] for _, line in TextFile(path).lines())


def is_tabbed(name: str, text: bytes) -> bool:
    """Whether a file of pairs that begins so is tab-separated: by its name, or by its first line."""
    first = text.lstrip(b"\n").partition(b"\n")[0]
    return _TABBED.search(name) is not None or (b"\t" in first and not _SEPARATOR.search(first))


def split_joined(line: bytes, where: str, tabbed: bool = False) -> tuple[bytes, bytes]:
    """Source and target of a line ``source ||| target``, or of the first columns of a ``tabbed`` one.

    A blank line is an empty pair.
    """
    parts = line.split(b"\t")[:2] if tabbed else _SEPARATOR.split(line)
    if len(parts) != 2 and line.strip():
        raise InputError(
            f"{where}: no tab: expected SOURCE, a tab, TARGET, as in the lines before"
            if tabbed
            else f"{where}: {len(parts) - 1} separators |||: expected one, SOURCE ||| TARGET; if ||| is part of the "
            f"text, give source and target as two files"
        )
    return parts[0].strip(), parts[-1].strip()
