"""The links of a gold set: talp and NAACL files, their index base, and talp counted from 1."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from text_files import text_lines

from alignment_eval.errors import InputError

_TALP = re.compile(r"(\d+)([-p?])(\d+)")
_NAACL = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?(?:\s+\d*\.?\d+)?\s*")

#: (first index, second index) -> whether the link is sure; one such table per sentence.
Links = dict[tuple[int, int], bool]


def read_links(path: Path, numbers: Sequence[int], drop_null: bool) -> tuple[list[Links], int | None]:
    """Read a talp or NAACL file; the first line that is not blank shows the format.

    Args:
        path: talp (``1-1 2p3``, one line per sentence; ``2?3`` is a possible link too) or NAACL (``0001 1 1 S``, one
            line per link).
        numbers: the numbers of the sentences, which NAACL lines refer to.
        drop_null: drop NAACL links to NULL (index 0).

    Returns:
        One table per sentence, and the index base: 1 for NAACL, unknown (None) for talp.

    Raises:
        InputError: a line has neither format, a sentence is unknown, a link points to NULL, the number of lines is
            wrong, or there are no links.
    """
    rows = list(text_lines(path, "utf-8"))
    first = next((row for row in rows if row.strip()), None)
    if first is None:
        raise InputError(f"{path}: the file has no links; give a gold alignment in talp or NAACL format")
    if _NAACL.fullmatch(first):
        return _read_naacl(path, rows, numbers, drop_null), 1
    table = [_read_talp_line(path, number, row) for number, row in enumerate(rows, 1)]
    if len(table) != len(numbers):
        raise InputError(
            f"{path}: the file has {len(table)} lines, but the texts have {len(numbers)} sentences; check whether a "
            f"blank line is missing"
        )
    return table, None


def detect_base(path: Path, table: Sequence[Links], sizes: Sequence[tuple[int, int]]) -> int:
    """0 if an index is 0, 1 if one equals the length of its sentence.

    Raises:
        InputError: both or neither.
    """
    zero = any(0 in pair for links in table for pair in links)
    full = any(pair[0] == size[0] or pair[1] == size[1] for links, size in zip(table, sizes) for pair in links)
    if zero and full:
        raise InputError(
            f"{path}: some indices are 0 and some equal the length of their sentence, so the base can be neither 1 nor "
            f"0; check that texts and alignment belong together, in this direction"
        )
    if not zero and not full:
        raise InputError(
            f"{path}: cannot detect the index base, because no index is 0 and none equals the length of its sentence; "
            f"give --base"
        )
    base = 0 if zero else 1
    print(f"{path}: indices count from {base}, detected from their range (give --base to check it)", file=sys.stderr)
    return base


def count_from_one(path: Path, table: Sequence[Links], sizes: Sequence[tuple[int, int]], base: int) -> list[Links]:
    """The links counted from 1.

    Raises:
        InputError: a link points outside its sentence.
    """
    result = []
    for number, (links, (rows, columns)) in enumerate(zip(table, sizes), 1):
        for i, j in links:
            if not (base <= i < rows + base and base <= j < columns + base):
                raise InputError(
                    f"{path}: sentence {number}: the link of source word {i} and target word {j}, counted from {base}, "
                    f"is outside the pair of {rows} and {columns} words; give another --base, or --reversed if the "
                    f"file gives the target first"
                )
        result.append({(i + 1 - base, j + 1 - base): sure for (i, j), sure in links.items()})
    return result


def talp_line(links: Links) -> str:
    """The links of a sentence in talp format, in their order in the file."""
    return " ".join(f"{i}{'-' if sure else 'p'}{j}" for (i, j), sure in links.items())


def _read_talp_line(path: Path, number: int, row: str) -> Links:
    links: Links = {}
    for token in row.split():
        match = _TALP.fullmatch(token)
        if match is None:
            raise InputError(f"{path}:{number}: {token!r} is not a link i-j (sure) or ipj (possible); correct the line")
        _add(links, int(match[1]), int(match[3]), sure=match[2] == "-")
    return links


def _read_naacl(path: Path, rows: Sequence[str], numbers: Sequence[int], drop_null: bool) -> list[Links]:
    table: dict[int, Links] = {number: {} for number in numbers}
    dropped = 0
    for line, row in enumerate(rows, 1):
        if not row.strip():
            continue
        match = _NAACL.fullmatch(row)
        if match is None:
            raise InputError(
                f"{path}:{line}: expected SENTENCE I J [S|P] [CONFIDENCE], found {row.strip()[:40]!r}; correct the line"
            )
        sentence, i, j = (int(match[group]) for group in (1, 2, 3))
        if sentence not in table:
            raise InputError(
                f"{path}:{line}: sentence {sentence} is not one of the {len(table)} sentences of the texts; give the "
                f"alignment of these texts"
            )
        if 0 not in (i, j):
            _add(table[sentence], i, j, sure=match[4] != "P")
        elif drop_null:
            dropped += 1
        else:
            raise InputError(
                f"{path}:{line}: the link points to word 0, which is NULL in NAACL files; give the file without links "
                f"to NULL (nonullalign), or give --drop-null"
            )
    if dropped:
        print(f"{path}: {dropped} links to NULL dropped", file=sys.stderr)
    return list(table.values())


def _add(links: Links, i: int, j: int, sure: bool) -> None:
    """Add a link; a duplicate counts once, and sure wins."""
    links[i, j] = links.get((i, j), False) or sure
