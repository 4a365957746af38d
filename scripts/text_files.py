"""Shared by the preparation scripts: strict decoding, and output files that are written atomically."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import sys
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import NewFile, check_new, writing_errors

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def check_encoding(name: str) -> str:
    """Return ``name`` if Python knows this encoding.

    Raises:
        UsageError: Python does not know it.
    """
    try:
        codecs.lookup(name)
    except LookupError:
        raise UsageError(
            f"--encoding {name}: unknown encoding; give utf-8, latin1, iso8859-2 or another that Python knows"
        ) from None
    return name


def raw_lines(path: Path) -> Iterator[bytes]:
    """Lines of a plain, .gz, .xz or .bz2 file, without their line ends.

    Only a line feed, with or without a carriage return before it, ends a line.  Readers that also end a line at
    U+0085 or U+2028 would shift the two sides of a corpus against each other.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with _OPENERS.get(path.suffix, Path.open)(path, "rb") as file:
            for line in file:
                yield line[:-1].removesuffix(b"\r") if line.endswith(b"\n") else line
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path}: cannot read the file ({reason}); give a text file, plain, .gz, .xz or .bz2"
        ) from error


def text_lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines of ``path`` as Unicode in NFC, without byte-order marks.

    Raises:
        InputError: the file cannot be read, or a line is not in ``encoding``.
    """
    for number, line in enumerate(raw_lines(path), 1):
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}:{number}: byte 0x{line[error.start]:02x} is not {encoding}; give --encoding, or convert the "
                f"file"
            ) from None
        yield unicodedata.normalize("NFC", text.replace("\ufeff", ""))


@contextmanager
def fresh_files(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary names beside ``paths``, which are renamed to ``paths`` if the block succeeds.

    Raises:
        InputError: one of ``paths`` already exists or cannot be written.
    """
    for path in paths:
        check_new(path, overwrite=False, option=None, parents=True)
    with ExitStack() as undo, writing_errors(paths[0].parent):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
        files = []
        for path in paths:
            files.append(NewFile(path))
            undo.callback(files[-1].drop)
        yield [file.path for file in files]
        for file in files:
            file.keep()


def exit_status(program: str, work: Callable[[], None]) -> int:
    """Run ``work`` and return 0 for success, 1 for bad data, 2 for bad usage; errors go to stderr."""
    try:
        work()
    except InputError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0
