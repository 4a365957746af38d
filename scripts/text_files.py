"""Shared by the preparation scripts: texts read strictly, and output files that are complete or not there."""

from __future__ import annotations

import bz2
import gzip
import lzma
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import new_file

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def text_lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines of a plain, .gz, .xz or .bz2 file as Unicode in NFC, without line ends and byte-order marks.

    Only a line feed, with or without a carriage return before it, ends a line.  Readers that also end a line at
    U+0085 or U+2028 would shift the two sides of a corpus against each other.

    Raises:
        InputError: the file cannot be read, or a line is not in ``encoding``.
        UsageError: Python does not know the encoding.
    """
    number = 0  # of the line that is read
    try:
        with _OPENERS.get(path.suffix, Path.open)(path, "rb") as file:
            for line in file:
                number += 1
                text = line.removesuffix(b"\n").removesuffix(b"\r").decode(encoding)
                yield unicodedata.normalize("NFC", text.replace("\ufeff", ""))
    except LookupError:
        raise UsageError(f"--encoding {encoding}: unknown encoding; give utf-8, latin1 or another of Python") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}:{number}: byte 0x{error.object[error.start]:02x} is not {encoding}; give --encoding, or convert "
            f"the file"
        ) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read the file ({reason}); give a text, plain, .gz, .xz or .bz2") from error


@contextmanager
def fresh_files(paths: Sequence[Path], overwrite: bool = False) -> Iterator[list[Path]]:
    """Temporary names next to ``paths``, which are renamed to ``paths`` if the block succeeds; directories are made.

    Raises:
        InputError: one of ``paths`` exists, and ``overwrite`` is false.
    """
    for path in paths:
        if not overwrite and (path.exists() or path.is_symlink()):
            raise InputError(f"{path}: already exists; choose another path or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        yield [stack.enter_context(new_file(path)) for path in paths]
