"""Sentence pairs read from files."""

from __future__ import annotations

import copy
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Optional

import pyarrow as pa

from alignment_eval.errors import InputError
from alignment_eval.files import STANDARD, file_hash
from alignment_eval.formats.text import TextFile
from fairseq_norm_plugin.aligning.spans import SEPARATOR, LineSpan, line_spans, split_joined
from fairseq_norm_plugin.output.alignment_table import row_numbers
from fairseq_norm_plugin.pipeline.pieces import MarkedPieces
from fairseq_norm_plugin.pipeline.text import TextPipeline

Tokens = list[str]
#: A sentence pair's words, source and target.
TokenPair = tuple[Tokens, Tokens]


class ParallelText:
    """Sentence pairs of two files, or of one file of ``source ||| target`` lines; ``-`` is standard input.

    The pairs are tokens that blanks separate, or what the pipelines of a model read (:meth:`through`).

    The text is read once at the beginning (line counts, encoding, hashes; standard input and pipes are copied to a
    temporary file), and again line by line in each iteration.  Memory does not grow with the text.

    Attributes:
        size: the number of pairs.
        hashes: hashes of the files' content.

    Raises:
        InputError: a file cannot be read, is empty or not UTF-8, the two files differ in their number of lines, or a
            line of a joint file does not have exactly one separator (a blank line is an empty pair).
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths: list[str] = []
        self._copies: list[Any] = []
        self._states: list[Optional[tuple[int, ...]]] = []
        self._pipelines = (TextPipeline(MarkedPieces("none")),) * 2
        names, sizes, hashes = [], [], []
        for path in paths:
            file = TextFile(path)
            self._states.append(file_state(path))
            sizes.append(self._read_once(file, path, joined=len(paths) == 1))
            names.append(file.name)
            hashes.append(file.hash.short)
        if len(set(sizes)) > 1:
            raise InputError(
                f"{names[1]}: {sizes[1]} lines, but {names[0]} has {sizes[0]}: expected the same number, each line the "
                f"translation of the same line of the other file; check that both are complete"
            )
        self.size: int = sizes[0]
        self.hashes = tuple(hashes)

    def _read_once(self, file: TextFile, path: str, joined: bool) -> int:
        copy: Any = None
        if path == STANDARD or Path(path).is_fifo():  # which can be read only once
            copy = NamedTemporaryFile(prefix="align-")  # noqa: SIM115  # deleted with this object
            self._copies.append(copy)
        self._paths.append(path if copy is None else copy.name)
        lines = 0
        for chunk in file:
            if joined:
                _check_joined(chunk, file.name, lines)
            lines += chunk.count(b"\n")
            if copy is not None:
                copy.write(chunk)
        if copy is not None:
            copy.flush()
        return lines

    def through(self, pipelines: tuple[TextPipeline, TextPipeline]) -> ParallelText:
        """The same text, whose lines are read by the pipelines of source and target."""
        text = copy.copy(self)
        text._pipelines = pipelines
        return text

    def check_unchanged(self) -> None:
        """Check that the files still hold what their hashes say.

        Raises:
            InputError: one was changed since the beginning.
        """
        check_files(self._paths, self._states, self.hashes)

    def spans(self, ends: Sequence[int]) -> list[LineSpan]:
        """The stretches of lines that end before each of ``ends``, for other processes.

        Raises:
            InputError: a text is standard input or a pipe, which only this process can read.
        """
        if self._copies:
            raise InputError("the text is standard input or a pipe, which only one process can read; give a file")
        return line_spans(self._paths, ends)

    def ids(self) -> Iterator[pa.Array]:
        """The number of each pair, from 0, batch by batch."""
        return row_numbers(self.size)

    def __iter__(self) -> Iterator[TokenPair]:
        texts = [_lines(path) for path in self._paths]
        lines = zip(*texts) if len(texts) == 2 else map(split_joined, texts[0])
        for pair in lines:
            source, target = (pipeline.read(line.decode()) for pipeline, line in zip(self._pipelines, pair))
            yield source, target


def check_files(paths: Sequence[str], states: list[Any], hashes: Sequence[str]) -> None:
    """Check that files still hold what their hashes say; a file is read again only if its state is another.

    Args:
        paths: the files.
        states: what :func:`file_state` said of each, None for one that cannot change; brought up to date.
        hashes: hashes of their content.

    Raises:
        InputError: one was changed.
    """
    for number, (path, state) in enumerate(zip(paths, states)):
        if state is not None and (now := file_state(path)) != state:
            if file_hash(path) != hashes[number]:
                raise InputError(f"{path}: the text was changed while it was read; leave it, and start again")
            states[number] = now


def file_state(path: str) -> Optional[tuple[int, ...]]:
    """What changes when a regular file does; None for anything else."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _lines(path: str) -> Iterator[bytes]:
    for chunk in TextFile(path):
        yield from chunk.split(b"\n")[:-1]


def _check_joined(chunk: bytes, name: str, before: int) -> None:
    for number, line in enumerate(chunk.split(b"\n")[:-1], before + 1):
        count = line.split().count(SEPARATOR)
        if count != 1 and line.strip():
            raise InputError(
                f"{name}:{number}: {count} separators |||: expected one, SOURCE ||| TARGET; if ||| is part of the "
                f"text, give source and target as two files (--source-text, --target-text)"
            )
