"""Stretches of a text that any process can read by itself, as long as it sees the files."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow.parquet as pq

from alignment_eval.errors import InputError

#: Separates source and target if both are in one file, as in fast_align's input.
SEPARATOR = b"|||"
_BLOCK_BYTES = 2**22
#: Rows that are decoded together.
_ROWS = 10_000


class Span(Protocol):
    """Some consecutive pairs of a text."""

    def read(self) -> list[tuple[str, str]]:
        """Source and target of each pair.

        Raises:
            InputError: a file cannot be read.
        """


@dataclass(frozen=True)
class LineSpan:
    """Lines of one joint file, or of the two files of source and target.

    Attributes:
        places: of each file its path, the byte that the lines begin at, and the byte after them.
    """

    places: tuple[tuple[str, int, int], ...]

    def read(self) -> list[tuple[str, str]]:
        """Source and target of each pair."""
        texts = [_lines(*place) for place in self.places]
        pairs = zip(*texts) if len(texts) == 2 else map(split_joined, texts[0])
        return [(source.decode(), target.decode()) for source, target in pairs]


def line_spans(paths: Sequence[str], ends: Sequence[int]) -> list[LineSpan]:
    """The spans of lines that end before each of ``ends``; the first begins with line 0.

    Raises:
        InputError: a file cannot be read.
    """
    bounds = [line_offsets(path, [0, *ends]) for path in paths]
    return [LineSpan(tuple((path, of[k], of[k + 1]) for path, of in zip(paths, bounds))) for k in range(len(ends))]


def line_offsets(path: str, lines: Sequence[int]) -> list[int]:
    """The byte at which each of ``lines``, counted from 0 and increasing, begins; at most the size of the file.

    Raises:
        InputError: the file cannot be read.
    """
    found: list[int] = []
    start = seen = 0
    try:
        with Path(path).open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
                while len(found) < len(lines) and lines[len(found)] <= seen + len(ends):
                    line = lines[len(found)] - seen
                    found.append(start + (int(ends[line - 1]) + 1 if line else 0))
                seen += len(ends)
                start += len(block)
    except OSError as error:
        raise _unreadable(path, error) from error
    return [*found, *[start] * (len(lines) - len(found))]


def split_joined(line: bytes) -> tuple[bytes, bytes]:
    """Source and target of a line ``source ||| target``."""
    tokens = line.split()
    if not tokens:
        return b"", b""
    middle = tokens.index(SEPARATOR)
    return b" ".join(tokens[:middle]), b" ".join(tokens[middle + 1 :])


def _lines(path: str, start: int, end: int) -> list[bytes]:
    try:
        with Path(path).open("rb") as file:
            file.seek(start)
            content = file.read(end - start)
    except OSError as error:
        raise _unreadable(path, error) from error
    if start == 0:
        content = content.removeprefix(codecs.BOM_UTF8)
    content = content if content.endswith(b"\n") or not content else content + b"\n"
    return content.replace(b"\r\n", b"\n").split(b"\n")[:-1]


@dataclass(frozen=True)
class RowSpan:
    """Rows of Parquet files.

    Attributes:
        places: the path of each file, its first row, and the row after the last.
    """

    places: tuple[tuple[str, int, int], ...]

    def read(self) -> list[tuple[str, str]]:
        """Source and target of each pair."""
        return [pair for place in self.places for pair in _rows(*place)]


def row_spans(files: Sequence[tuple[str, int]], ends: Sequence[int]) -> list[RowSpan]:
    """The spans of rows that end before each of ``ends``, over all ``files``, given with their numbers of rows."""
    spans, start = [], 0
    for end in ends:
        places, first = [], 0
        for path, rows in files:
            one, other = max(start - first, 0), min(end - first, rows)
            if one < other:
                places.append((path, one, other))
            first += rows
        spans.append(RowSpan(tuple(places)))
        start = end
    return spans


def _rows(path: str, start: int, end: int) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    try:
        with pq.ParquetFile(path) as file:
            first, groups = _groups(file, start, end)
            for batch in file.iter_batches(_ROWS, row_groups=groups, columns=["source", "target"]):
                part = batch[max(start - first, 0) : max(end - first, 0)]
                pairs += zip(part["source"].to_pylist(), part["target"].to_pylist())
                first += len(batch)
                if first >= end:
                    break
    except OSError as error:
        raise _unreadable(path, error) from error
    return pairs


def _groups(file: pq.ParquetFile, start: int, end: int) -> tuple[int, list[int]]:
    """The row groups that hold rows ``start`` to ``end``, and the first row of the first of them."""
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    bounds = np.cumsum([0, *sizes])
    groups = np.flatnonzero((bounds[1:] > start) & (bounds[:-1] < end))
    return int(bounds[groups[0]]) if len(groups) else 0, groups.tolist()


def _unreadable(path: str, error: OSError) -> InputError:
    return InputError(
        f"{path}: cannot read the file ({error.strerror or error}); every process that aligns must see it by this name"
    )
