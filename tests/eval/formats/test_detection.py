from __future__ import annotations

from pathlib import Path

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats import text as textfiles
from alignment_eval.formats.detection import detect_format, parse_gold_file, parse_hypothesis_file
from tests.eval.formats.samples import gold, written
from tests.facts import facts


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\t\r\n"])
def test_line_ends_trailing_and_doubled_blanks(tmp_path: Path, end: str) -> None:
    path = written(tmp_path, end.join(["0-0  1p2", "", " 3-3\t4-4", "", "5-6"]))
    links = parse_gold_file(path).links
    assert links.to_sentences() == [gold("0-0", "1-2"), gold(), gold("3-3 4-4"), gold(), gold("5-6")]


@pytest.mark.parametrize("text", ["\n", " \n\n", "\r\n"])
def test_blank_lines_alone_are_sentences_without_links(tmp_path: Path, text: str) -> None:
    assert parse_hypothesis_file(written(tmp_path, text)).links.to_sentences() == [gold()] * text.count("\n")


def test_doubled_links_count_once_and_sure_wins(tmp_path: Path) -> None:
    path = written(tmp_path, "0-0 0-0 1p1 1-1 1p1 2p2 2p2\n0p0\n")
    links = parse_gold_file(path).links
    assert (len(links.sure), len(links.possible)) == (2, 4)
    assert links.to_sentences() == [gold("0-0 1-1", "2-2"), gold("", "0-0")]


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("1 1 1 S\n", "naacl"),
        ("\n  1\t2 3\n", "naacl"),
        ("0001 1 2 P 0.75\n", "naacl"),
        ("1 2 3 .5\n", "naacl"),
        ("2 1 1 S 1e-3", "naacl"),
        ("1-1 2-2\n", None),
        ("\n\n", None),
        ("1 2\n", None),
        ("A-0\t0-0\n", "fairseq"),
        ("A-12\n", "fairseq"),
        ("2024-01-02 | INFO | loading\nS-0\ta b\nT-0\tc\nH-0\t-0.5\tc\n", "fairseq"),
        ("A-team\n", None),
        ("\n 0-0:0.5 1-1:1\n", "scored"),
    ],
)
def test_detected_format(text: str, format_: str | None) -> None:
    assert detect_format(text.encode()) == format_


def test_naacl(tmp_path: Path) -> None:
    path = written(tmp_path, "0001 1 2 S\n1 2 2 P 0.5\n\n3 4 5\n3 4 5 P\n 3\t1 1 0.25\r\n")
    file = parse_gold_file(path)
    assert file.format == "naacl"
    assert file.links.to_sentences() == [gold("1-2", "2-2"), gold(), gold("4-5 1-1")]


BAD = [
    ("talp", "0-0\n1-1 2-x\n", "x.talp:2: '2-x' … i-j … ipj … 1000000"),
    ("talp", "0-0 1 2-2-3\n", "x.talp:1: '1' … i-j"),
    ("talp", "1-2-3 4\n", "x.talp:1: '1-2-3' … i-j"),
    ("talp", "1- 2-3\n", "x.talp:1: '1-' … i-j"),
    ("talp", "1-1\n-1-2\n", "x.talp:2: '-1-2' … i-j"),
    ("talp", "1--2\n", "x.talp:1: '1--2' … i-j"),
    ("talp", "1-1\r2-2\n", "x.talp:1: '1-1\\r2-2' … i-j"),
    ("talp", "1\u00a02-2\n", "x.talp:1: … i-j"),
    ("talp", "1?1\n", "x.talp:1: '1?1' … i-j"),
    ("talp", "1-1000000\n", "x.talp:1: '1-1000000' … i-j … 1000000"),
    ("talp", "1-99999999999999999999999\n", "'1-99999999999999999999999' … below 1000000"),
    ("talp", f"{'x' * 99}\n", f"x.talp:1: '{'x' * 40}…' "),
    ("talp", "1 1 1 S\n", "x.talp:1: '1' … i-j"),
    ("pharaoh", "1-1:0.25\n", "x.talp:1: '1-1:0.25' … score … i-j … format scored"),
    ("scored", "\n1-1\n", "x.talp:2: '1-1' … no score … i-j:p"),
    ("scored", "0-0:1e-05 1-1:nan\n", "x.talp:1: '1-1:nan' … i-j:p"),
    ("scored", "0-0:.5 1-1:inf\n", "x.talp:1: '1-1:inf' … i-j:p"),
    ("scored", "0-0:1e999\n", "x.talp:1: '0-0:1e999' … i-j:p"),
    ("scored", "0-0:1.2.3 1-1:.\n", "x.talp:1: '0-0:1.2.3' … i-j:p"),
    ("scored", "0-0:1\n1-1:1:1\n", "x.talp:2: '1-1:1:1' … i-j:p"),
    ("scored", "0-0:1\n1-1:\n", "x.talp:2: '1-1:' … i-j:p"),
    ("scored", "0-0:1\n:1 1-1\n", "x.talp:2: ':1' … i-j:p"),
    ("scored", "0-0:1\n1-1000000:1\n", "x.talp:2: '1-1000000:1' … i-j:p"),
    ("scored", "0-0:1\n1p1:1\n", "x.talp:2: … possible link (p)"),
    ("naacl", "1 1 1 1\n1 1 1 1e999\n", "x.talp:2: … '1e999' … float64"),
    ("pharaoh", "1-1\n1-1 2p2\n", "x.talp:2: … possible link (p)"),
    ("naacl", "1 1 1\n\n1 1\n", "x.talp:3: … NAACL line 'sentence i j [S|P] [confidence]' … '1 1'"),
    ("naacl", "1 1 1\n1 1 1 X\n", "x.talp:2: … NAACL line … '1 1 1 X'"),
    ("naacl", "1 -1 1\n", "x.talp:1: … NAACL line … '1 -1 1'"),
    ("naacl", "1 1 1\n0 1 1\n", "x.talp:2: sentence number 0 … from 1"),
    ("naacl", "\n\n", "x.talp: … no links … NAACL"),
    ("fairseq", "1-1\n", "x.talp: … no A- lines … --print-alignment hard"),
    ("fairseq", "S-0\ta\nA-x\t0-0\n", "x.talp:2: … A-<id> … 'A-x\\t0-0'"),
    ("fairseq", "S-0\ta\nA-0\t0-0 1\n", "x.talp:2: '1' … i-j"),
    ("fairseq", "A-0\t0.25,0.75 0.5,0.5\n", "x.talp:1: '0.25,0.75' … weights … --print-alignment hard"),
    ("fairseq", "A-0\t0-0\nA-3\t0-0\nA-1\t\n", "x.talp: … id 2 … id 3 … --skip-invalid-size-inputs-valid-test"),
    ("fairseq", "A-1\t0-0\n", "x.talp: … id 0 … id 1"),
    ("fairseq", "A-0\t\nA-1\t\nlog\nA-0\t\n", "x.talp:4: … duplicate A-0"),
    ("fairseq", "A-0\t\nA-0\t\nA-1\t\n", "x.talp:3: id 1 has 1 A- lines … id 0 has 2"),
]


@pytest.mark.parametrize(("format_", "text", "message"), BAD)
def test_bad_lines(tmp_path: Path, format_: str, text: str, message: str) -> None:
    parse = parse_gold_file if format_ == "talp" else parse_hypothesis_file
    with pytest.raises(InputError, match=facts(message)):
        parse(written(tmp_path, text), format_)


@pytest.mark.parametrize("size", [1, 8, 1000])
def test_line_numbers_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(textfiles, "_CHUNK_BYTES", size)
    for format_, good, bad in (("talp", "0-0", "0-"), ("naacl", "1 1 1", "1 1"), ("fairseq", "log", "A-")):
        path = written(tmp_path, f"{good}\n" * 5 + f"{bad}\n{good}\n")
        parse = parse_hypothesis_file if format_ == "fairseq" else parse_gold_file
        with pytest.raises(InputError, match=r"x\.talp:6: "):
            parse(path, format_)
    assert len(parse_gold_file(written(tmp_path, "0-0\n\n1p1\n" * 3)).links.to_sentences()) == 9


def test_possible_links_of_a_hypothesis(tmp_path: Path) -> None:
    talp, naacl = written(tmp_path, "0-0\n1p1 2-2\n", "a"), written(tmp_path, "1 1 1\n2 1 2 P\n", "b")
    for path, mark in ((talp, "p"), (naacl, "P")):
        with pytest.raises(InputError, match=facts(f":2: … possible link ({mark}) … --hyp-allow-possible")):
            parse_hypothesis_file(path)
    assert parse_hypothesis_file(talp, "talp", allow_possible=True).links.possible.to_sentences() == [
        {(0, 0)},
        {(1, 1), (2, 2)},
    ]


def test_gold_is_no_fairseq_output_and_no_pharaoh_with_p(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=facts("output of fairseq-generate … talp, naacl, pharaoh … exchanged")):
        parse_gold_file(written(tmp_path, "A-0\t0-0\n"))
    with pytest.raises(InputError, match="--gold-format talp"):
        parse_gold_file(written(tmp_path, "0p0\n"), "pharaoh")


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=facts("'giza' … talp, naacl, pharaoh")):
        parse_gold_file(tmp_path / "x", "giza")


def test_confidences_of_naacl(tmp_path: Path) -> None:
    table = parse_gold_file(written(tmp_path, "1 1 1 S 0.5\n1 2 2\n2 1 1 P .25\n")).links
    assert table.possible.confidence is not None
    assert table.sure.confidence is not None
    assert table.possible.confidence.tolist() == [0.5, 1.0, 0.25]
    assert table.sure.confidence.tolist() == [0.5, 1.0]
    assert parse_gold_file(written(tmp_path, "1 1 1 S\n1 2 2\n")).links.possible.confidence is None


def test_gold_has_no_scores(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=facts("links with scores … talp, naacl, pharaoh")):
        parse_gold_file(written(tmp_path, "0-0:0.5\n"))
