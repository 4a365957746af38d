"""Parses NAACL/WPT files: ``sentence i j [S|P] [confidence]``, one link per line (docs/formats.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from alignment_eval.errors import InputError
from alignment_eval.formats.parsing import NUMBER, Collector, RawLinks, possible_error, shown
from alignment_eval.links.table import packed

NAACL_LINE = re.compile(
    rb"^[ \t]*([0-9]{1,7})[ \t]+([0-9]{1,6})[ \t]+([0-9]{1,6})(?:[ \t]+([SP]))?"
    rb"(?:[ \t]+(" + NUMBER + rb"))?[ \t]*$",
    re.MULTILINE,
)


def parse_naacl(chunks: Iterable[bytes], name: str, allow_possible: bool) -> RawLinks:
    """Parse NAACL/WPT: ``sentence i j [S|P] [confidence]``, sentences from 1; one line per link, blank ones ignored.

    The highest sentence number is the number of sentences.  If any link has a confidence, links without one have 1.

    Args:
        chunks: pieces of whole lines.
        name: the file, for messages.
        allow_possible: whether ``P`` may occur.
    """
    links = Collector()
    lines = sentences = 0
    scored = False
    for chunk in chunks:
        rows = NAACL_LINE.findall(chunk)
        count = chunk.count(b"\n")
        # Only a piece with an error is checked line by line.
        possible = np.array([row[3] == b"P" for row in rows], dtype=np.bool_)
        columns = np.array([row[:3] for row in rows], dtype="S7").astype(np.int64).reshape(len(rows), 3).T
        # one by one: an array of texts takes for each row the room of the longest
        confidence = np.array([float(row[4] or 1) for row in rows], dtype=np.float64)
        scored = scored or any(row[4] for row in rows)
        wrong = (columns[0] < 1).any() or (possible.any() and not allow_possible) or not np.isfinite(confidence).all()
        if wrong or len(rows) != count:
            _check_naacl(chunk, name, lines, allow_possible)
        links.add(RawLinks(packed(columns[0] - 1, columns[1], columns[2]), possible, 0, confidence))
        sentences = max(sentences, int(columns[0].max(initial=0)))
        lines += count
    if not sentences:
        raise InputError(f"{name}: the file has no links; expected NAACL lines 'sentence i j [S|P] [confidence]'")
    every = links.links(sentences)
    return every if scored else replace(every, confidence=None)


def _check_naacl(chunk: bytes, name: str, start: int, allow_possible: bool) -> None:
    """Raise InputError for the first line of ``chunk`` that is neither blank nor a NAACL link."""
    for number, line in enumerate(chunk.split(b"\n")[:-1], start + 1):
        if not line.strip(b" \t"):
            continue
        match = NAACL_LINE.fullmatch(line)
        if not match:
            raise InputError(
                f"{name}:{number}: expected a NAACL line 'sentence i j [S|P] [confidence]', found {shown(line)}"
            )
        if int(match[1]) < 1:
            raise InputError(f"{name}:{number}: sentence number 0, but NAACL files count sentences from 1")
        if match[4] == b"P" and not allow_possible:
            raise possible_error(f"{name}:{number}", "P")
        if match[5] and not math.isfinite(float(match[5])):
            raise InputError(f"{name}:{number}: confidence {shown(match[5])} is too large for float64")
