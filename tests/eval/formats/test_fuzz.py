"""Any bytes, and valid files with damage: a reader gives links or raises the project's error, nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.detection import (
    GOLD_FORMATS,
    HYPOTHESIS_FORMATS,
    AlignmentFile,
    parse_gold_file,
    parse_hypothesis_file,
)
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.formats.writing import format_lines
from alignment_eval.links.table import GoldTable, LinkTable

SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
INDICES = st.integers(0, 30) | st.integers(0, 999_998)
#: Sentence number, source, target, possible only, confidence.
ROWS = st.lists(
    st.tuples(st.integers(0, 4), INDICES, INDICES, st.booleans(), st.floats(allow_nan=False, allow_infinity=False)),
    max_size=15,
    unique_by=lambda row: row[:3],
)
#: How formats differ in what they hold.
WITH_POSSIBLE, WITH_CONFIDENCES = ("talp", "naacl", "scored"), ("scored", "naacl")


def corpus(rows: Sequence[tuple[int, int, int, bool, float]], format_: str) -> GoldTable:
    """Links of five sentences, with what the format holds."""

    def table(chosen: Sequence[tuple[int, int, int, bool, float]]) -> LinkTable:
        ids, source, target = np.array([row[:3] for row in chosen], dtype=np.int64).reshape(len(chosen), 3).T
        confidences = np.array([row[4] for row in chosen], dtype=np.float64)
        return LinkTable.build(ids, source, target, 5, confidences if format_ in WITH_CONFIDENCES else None)

    sure = [row for row in rows if not row[3]] if format_ in WITH_POSSIBLE else rows
    return GoldTable(table(sure), table(rows))


def content(links: GoldTable, format_: str, base: int = 0) -> bytes:
    return "".join(f"{line}\n" for line in format_lines(links, format_, base)).encode()


def assert_equal(found: GoldTable, expected: GoldTable) -> None:
    for one, other in ((found.sure, expected.sure), (found.possible, expected.possible)):
        assert one.sentences == other.sentences
        assert one.keys.tolist() == other.keys.tolist()
        assert (one.confidence is None) == (other.confidence is None)
        if one.confidence is not None and other.confidence is not None:
            assert one.confidence.tolist() == other.confidence.tolist()


def assert_readable(error: InputError, path: Path) -> None:
    """One line that says where."""
    assert str(error).startswith(str(path))
    assert "\n" not in str(error)


def parsed(path: Path, format_: str | None, gold: bool = False) -> AlignmentFile | None:
    """What stands in the file, None if it is refused; a warning of Python or numpy is a failure (pyproject.toml)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy's deprecations too: half-read numbers are one
        try:
            return parse_gold_file(path, format_) if gold else parse_hypothesis_file(path, format_, True)
        except InputError as error:
            assert_readable(error, path)
            return None


@pytest.mark.parametrize("format_", HYPOTHESIS_FORMATS)
@pytest.mark.parametrize("base", [0, 1])
@given(rows=ROWS)
@SAME_FOLDER
def test_what_is_printed_is_parsed_as_it_was(
    tmp_path: Path, format_: str, base: int, rows: list[tuple[int, int, int, bool, float]]
) -> None:
    if format_ == "fairseq" and base:
        return  # counts from 0
    last = (4, 0, 0, False, 1.0)  # the last sentence of NAACL files has a link
    expected = corpus([*(row for row in rows if row[:3] != last[:3]), last], format_)
    path = tmp_path / "x"
    path.write_bytes(content(expected, format_, base))
    file = parsed(path, format_)
    assert file is not None
    assert_equal(file.links.shifted(-base), expected)
    assert file.doubled == 0


ODD = [
    b"\xff",
    b"\x00",
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\xef\xbb\xbf",
    b"\xc2\xa0",
    b"nan",
    b"inf",
    b"1e999",
    b"9" * 30,
]
ODD += [
    b"-",
    b"--",
    b"p",
    b":",
    b"::",
    b" ",
    b"\t",
    b"A-",
    b"A-1\t",
    b"S",
    b"P",
    b"0.5",
    b"e",
    b"+",
    b".",
    b"0",
    b"1 1 1",
]


@st.composite
def damaged(draw: st.DrawFn, format_: str) -> bytes:
    """A valid file of the format with one to four damages: parts cut out, doubled, or put in."""
    data = content(corpus(draw(ROWS), format_), format_)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        part = draw(st.sampled_from([b"", data[start:end] * 2, *ODD]) | st.binary(max_size=3))
        data = data[:start] + part + data[end:]
    return data


@pytest.mark.parametrize("format_", HYPOTHESIS_FORMATS)
@given(data=st.data())
@SAME_FOLDER
def test_damaged_files(tmp_path: Path, format_: str, data: st.DataObject) -> None:
    check(tmp_path / "x", data.draw(damaged(format_)), format_)


@pytest.mark.parametrize("format_", [*HYPOTHESIS_FORMATS, None])
@given(data=st.binary(max_size=60) | st.lists(st.sampled_from(ODD), max_size=12).map(b"".join))
@SAME_FOLDER
def test_any_bytes(tmp_path: Path, format_: str | None, data: bytes) -> None:
    check(tmp_path / "x", data, format_)


def check(path: Path, data: bytes, format_: str | None) -> None:
    """Each reader takes the file or refuses it; what it takes is the same when printed and parsed again."""
    path.write_bytes(data)
    for stated in (format_, None):
        file = parsed(path, stated)
        if file is not None:
            again = path.with_name("again")
            again.write_bytes(content(file.links, file.format if file.format != "pharaoh" else "talp"))
            if len(file.links.possible) and file.links.possible.sentences:
                reread = parsed(again, file.format)
                assert reread is not None
                assert_equal(reread.links, file.links)
        if stated in (*GOLD_FORMATS, None):
            gold = parsed(path, stated, gold=True)
            if file is not None and gold is not None and file.format == gold.format:
                assert_equal(gold.links, file.links)
    lengths = np.full(5, 20)
    for texts in (None, Texts("source", lengths, "target", lengths)):
        for base in (None, "0", "1", "auto"):
            options = ReadOptions(None, base, allow_possible=True)
            for read in (read_gold, read_hypothesis):
                try:
                    read(path, options, texts, warn=lambda message: None)
                except InputError as error:
                    assert_readable(error, path)
