"""Reads files: text; JSON against types and Parquet tables against schemas; and hashes their content.

Whatever is wrong with a file becomes one sentence; so does a difference of two files of one text.
"""

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
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.files import STANDARD

_CHUNK_BYTES = 2**20
T = TypeVar("T")
#: A number of things, or one of them counted from 0.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
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


def read_once(read: Callable[..., T]) -> Callable[..., T]:
    """Let ``read(path, …)`` keep what it has read of the last files, as long as these do not change.

    Both directions of a pair share files, and single pairs are often aligned one by one.
    """
    kept = lru_cache(maxsize=4)(lambda state, *args: read(*args))

    @wraps(read)
    def reader(path: str | Path, *args: Any) -> T:
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
        except IsADirectoryError as error:
            raise InputError(f"{self.name}: this is a directory; expected a file, {self._expected}") from error
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
        read = lines = 0
        while chunk := file.read(_CHUNK_BYTES):
            chunk += file.readline()
            self._digest.update(chunk)
            try:
                chunk.decode()
            except UnicodeDecodeError as error:
                line = lines + chunk.count(b"\n", 0, error.start) + 1
                is_utf16 = not read and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                encoding = "UTF-16" if is_utf16 else "ENCODING"
                raise InputError(
                    f"{self.name}:{line}: not UTF-8; convert the file with iconv -f {encoding} -t UTF-8"
                ) from error
            text = chunk if read else chunk.removeprefix(codecs.BOM_UTF8)
            read += len(chunk)
            if text:
                text = text if text.endswith(b"\n") else text + b"\n"
                lines += text.count(b"\n")
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


# ---- JSON and Parquet


@dataclass(frozen=True)
class ForeignFile:
    """A file that anyone may have written: its name, what it should be, and what to do if it is something else."""

    name: str
    what: str
    advice: str

    def error(self, problem: str) -> InputError:
        """The error for this problem."""
        return InputError(f"{self.name}: damaged, or not {self.what} ({problem}); {self.advice}")

    @contextmanager
    def parquet(self) -> Iterator[pq.ParquetFile]:
        """The Parquet file, open; whatever is wrong with it becomes one sentence."""
        try:
            with pq.ParquetFile(self.name, page_checksum_verification=True) as opened:
                yield opened
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: cannot read the file (no such file); {self.advice}") from error
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise self.error(printable(str(error), 200)) from error

    def table(self, known: pa.Schema, signed: Collection[str] = ()) -> pa.Table:
        """The columns of the Parquet file that ``known`` has, checked; ``signed`` as for :func:`check_values`."""
        with self.parquet() as opened:
            table = opened.read(columns=known.names)
        check_columns(table.schema, known, self)
        for batch in table.to_batches():
            check_values(batch, known, self, signed)
        return table

    def decode(self, content: bytes | str, type_: type[T], **version: int) -> T:
        """The value of type ``type_`` that the JSON ``content`` holds.

        ``version``: the key that holds the version of the format, and the version that this program reads.
        """
        try:
            value = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:  # the last: nested too deeply
            raise self.error(str(error)) from error
        for key, known in version.items():
            if isinstance(value, dict) and type(value.get(key)) is int and value[key] != known:
                raise self.error(f"{key} is {shown(value[key])}: expected version {known}")
        return self.convert(value, type_)

    def convert(self, value: Any, type_: type[T], path: str = "") -> T:
        """The value of type ``type_`` that decoded JSON holds; ``path`` is its place in the content."""
        try:
            return msgspec.convert(value, type_, dec_hook=_from_text)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at `$")
            place = f"{path}{place.rstrip('`')}".lstrip(".") or "the content"
            raise self.error(f"{printable(place, 200)}: {printable(problem, 200)}") from error


def _from_text(type_: type[T], text: Any) -> T:
    """The value of a type that files hold as text."""
    if not isinstance(text, str):
        raise TypeError("Expected `str`")
    return type_(text)  # type: ignore[call-arg]


def check_columns(found: pa.Schema, expected: pa.Schema, file: ForeignFile) -> None:
    """Check the names and types of columns, in any order."""
    types = dict(zip(expected.names, expected.types))
    for name, type_ in zip(found.names, found.types):
        known = types.pop(name, None)
        if known != type_:
            wanted = "no such column, or only one" if known is None else known
            raise file.error(f"column {shown(name)} has type {type_}: expected {wanted}")
    for name, type_ in types.items():
        raise file.error(f"column {shown(name)} is missing: expected type {type_}")


def check_values(batch: pa.RecordBatch, expected: pa.Schema, file: ForeignFile, signed: Collection[str] = ()) -> None:
    """Check the values of columns of the right types; only floats of the columns ``signed`` may be below 0."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise file.error(printable(str(error), 200)) from error
    for name, column in zip(batch.schema.names, batch.columns):
        values = column.values if pa.types.is_list(column.type) else column
        nullable = expected.field(name).nullable
        if (column.null_count and not nullable) or (values is not column and values.null_count):
            raise file.error(f"column {name} has null values")
        if pa.types.is_floating(values.type):
            floats = np.from_dlpack(values.drop_null() if nullable else values)  # to_numpy would import pandas
            wrong = ~np.isfinite(floats) | (False if name in signed else floats < 0)
            if wrong.any():
                expected = "a finite number" if name in signed else "a finite number, 0 or more"
                raise file.error(f"column {name} has the value {floats[wrong][0]}: expected {expected}")
