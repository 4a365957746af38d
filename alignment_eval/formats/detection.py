"""Detects the format of an alignment file and parses its lines; the indices stay as they are in the file.

:mod:`alignment_eval.formats.reading` turns them into links that count from 0.  The name of a file is never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Callable

from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats.naacl import NAACL_LINE, parse_naacl
from alignment_eval.formats.parsing import (
    SCORED,
    RawLinks,
    parse_fairseq,
    parse_pairs,
    parse_scored,
)
from alignment_eval.formats.text import TextFile
from alignment_eval.links.table import GoldTable, LinkTable

_PARSERS: dict[str, Callable[[Iterable[bytes], str, bool], RawLinks]] = {
    "pharaoh": parse_pairs,
    "talp": parse_pairs,
    "scored": parse_scored,
    "naacl": parse_naacl,
    "fairseq": parse_fairseq,
}
HYPOTHESIS_FORMATS = ("pharaoh", "scored", "talp", "naacl", "fairseq")
GOLD_FORMATS = ("talp", "naacl", "pharaoh")
_LOOKS = {"fairseq": "output of fairseq-generate", "scored": "links with scores"}
_GENERATE_LINE = re.compile(rb"^[STHDPA]-[0-9]+(?:\t|$)", re.MULTILINE)


@dataclass(frozen=True)
class FileInfo:
    """A file that was read.

    Attributes:
        name: the file, for messages.
        format: one of :data:`HYPOTHESIS_FORMATS`.
        hash: short hash of the content.
        doubled: the number of duplicate links; each link counts once.
    """

    name: str
    format: str
    hash: str
    doubled: int

    def where(self, sentence: int) -> str:
        """The place of a sentence (counted from 0), for messages."""
        if self.format not in ("naacl", "fairseq"):
            return f"{self.name}:{sentence + 1}"
        return f"{self.name}: sentence {sentence + 1 if self.format == 'naacl' else sentence}"


@dataclass(frozen=True, eq=False)
class AlignmentFile(FileInfo):
    """The content of an alignment file.

    Attributes:
        links: the links with the indices of the file, whatever their base.  A link that is marked both sure and
            possible is sure.
    """

    links: GoldTable

    @property
    def info(self) -> FileInfo:
        """The file without its links."""
        return FileInfo(self.name, self.format, self.hash, self.doubled)


def parse_hypothesis_file(path: str | Path, format: str | None = None, allow_possible: bool = False) -> AlignmentFile:
    """Read word alignments to be scored.

    Args:
        path: a file, ``-`` for standard input.
        format: one of :data:`HYPOTHESIS_FORMATS`; None: detected from the content.
        allow_possible: accept possible links (``ipj``, ``P``) as links; otherwise they are an error.

    Raises:
        InputError: the file cannot be read or is empty, or a line is not in the format.
        UsageError: the format is unknown.
    """
    return _read(path, format, HYPOTHESIS_FORMATS, "pharaoh", allow_possible)


def parse_gold_file(path: str | Path, format: str | None = None) -> AlignmentFile:
    """Read gold alignments.

    Args:
        path: a file, ``-`` for standard input.
        format: one of :data:`GOLD_FORMATS`; None: ``naacl`` or ``talp``, detected from the content.

    Raises:
        InputError: the file cannot be read or is empty, or a line is not in the format.
        UsageError: the format is unknown.
    """
    return _read(path, format, GOLD_FORMATS, "talp", format != "pharaoh")


def _read(
    path: str | Path, format: str | None, known: Sequence[str], default: str, allow_possible: bool
) -> AlignmentFile:
    if format is not None and format not in known:
        raise UsageError(f"unknown alignment format {format!r}; choose one of {', '.join(known)}")
    text = TextFile(path)
    chunks = iter(text)
    first = next(chunks)
    format = format or detect_format(first) or default
    if format not in known:
        raise InputError(
            f"{text.name}: the file looks like {_LOOKS[format]}, but gold must be in one of the formats "
            f"{', '.join(known)}; check that gold and hypothesis are not exchanged"
        )
    raw = _PARSERS[format](chain([first], chunks), text.name, allow_possible)
    links = _table(raw)
    return AlignmentFile(text.name, format, text.hash.short, len(raw.keys) - len(links.possible), links)


def detect_format(text: bytes) -> str | None:
    """Detect ``naacl``, ``fairseq`` or ``scored`` from the first lines of a file; None: other lines of links."""
    if _GENERATE_LINE.search(text):
        return "fairseq"
    first = next((line for line in text.split(b"\n") if line.strip()), b"")
    if SCORED.match(first.lstrip()):
        return "scored"
    return "naacl" if NAACL_LINE.match(first) else None


def _table(raw: RawLinks) -> GoldTable:
    every = LinkTable.of_keys(raw.keys, raw.sentences, raw.confidence)
    if not raw.possible.any():
        return GoldTable(every, every)
    sure = ~raw.possible
    confidence = None if raw.confidence is None else raw.confidence[sure]
    return GoldTable.nested(LinkTable.of_keys(raw.keys[sure], raw.sentences, confidence), every)
