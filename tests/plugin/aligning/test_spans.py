"""Stretches of a text that other processes read."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.aligning import spans
from fairseq_norm_plugin.aligning.spans import LineSpan, line_offsets, row_spans
from fairseq_norm_plugin.aligning.text import ParallelText
from tests.facts import facts


def words(pairs):
    return [tuple(side.split() for side in pair) for pair in pairs]


@pytest.mark.parametrize("block", [1, 3, 2**22])
@pytest.mark.parametrize(
    "contents",
    [
        (b"a b\n\nc\nd\ne", b"A\nB\nC\r\n\nE\n"),
        ("\ufeffä b\r\n\r\nc\nd\ne\r".encode(), b"A\nB\nC\nD\n\n"),
        (b"a ||| A\n\nc ||| C\n||| D\ne |||",),
    ],
)
def test_lines_are_those_of_the_whole_text(tmp_path, contents, block, monkeypatch):
    monkeypatch.setattr(spans, "_BLOCK_BYTES", block)
    paths = []
    for number, content in enumerate(contents):
        paths.append(str(tmp_path / str(number)))
        (tmp_path / str(number)).write_bytes(content)
    text = ParallelText(paths)
    for ends in ([5], [2, 4, 5], [1, 2, 3, 4, 5]):
        read = [span.read() for span in text.spans(ends)]
        assert [len(window) for window in read] == [b - a for a, b in zip([0, *ends], ends)]
        assert words(pair for window in read for pair in window) == list(text)


def test_offsets(tmp_path, monkeypatch):
    monkeypatch.setattr(spans, "_BLOCK_BYTES", 7)
    rng = random.Random(1)
    lines = [b"x" * rng.randint(0, 9) + b"\n" for _ in range(200)]
    (tmp_path / "text").write_bytes(b"".join(lines))
    expected = [sum(map(len, lines[:number])) for number in range(201)]
    assert line_offsets(str(tmp_path / "text"), range(201)) == expected


def test_rows_are_those_of_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr(spans, "_ROWS", 3)
    schema = pa.schema([("source", "string"), ("target", "string")])
    rows, files = [], []
    for number, (size, group) in enumerate([(10, 4), (0, 1), (5, 100), (7, 2)]):
        mine = [{"source": f"s{number} {row}", "target": f"t{number} {row}"} for row in range(size)]
        pq.write_table(pa.Table.from_pylist(mine, schema), tmp_path / str(number), group)
        files.append((str(tmp_path / str(number)), size))
        rows += [tuple(row.values()) for row in mine]
    for window in (1, 3, 4, 9, 22):
        ends = [*range(window, 22, window), 22]
        starts = [0, *ends[:-1]]
        assert [span.read() for span in row_spans(files, ends)] == [rows[a:b] for a, b in zip(starts, ends)]


def test_a_file_that_a_process_does_not_see():
    with pytest.raises(InputError, match=facts("/nowhere/text: … No such file … every process")):
        LineSpan((("/nowhere/text", 0, 9),)).read()
    with pytest.raises(InputError, match=facts("/nowhere/rows: … No such file")):
        row_spans([("/nowhere/rows", 3)], [3])[0].read()
