from __future__ import annotations

import re
from pathlib import Path

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats import text as textfiles
from alignment_eval.formats.detection import detect_format, parse_gold_file, parse_hypothesis_file
from tests.eval.formats.samples import gold, written


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
    ("talp", "0-0\n1-1 2-x\n", "x.talp:2: '2-x': expected links i-j (sure) or ipj (possible) of numbers below 1000000"),
    ("talp", "0-0 1 2-2-3\n", "x.talp:1: '1': expected links i-j"),
    ("talp", "1-2-3 4\n", "x.talp:1: '1-2-3': expected links"),
    ("talp", "1- 2-3\n", "x.talp:1: '1-': expected links"),
    ("talp", "1-1\n-1-2\n", "x.talp:2: '-1-2': expected links"),
    ("talp", "1--2\n", "x.talp:1: '1--2': expected links"),
    ("talp", "1-1\r2-2\n", "x.talp:1: '1-1\\r2-2': expected links"),
    ("talp", "1\u00a02-2\n", "expected links"),
    ("talp", "1?1\n", "x.talp:1: '1?1': expected links"),
    ("talp", "1-1000000\n", "x.talp:1: '1-1000000': expected links i-j (sure) or ipj (possible) of numbers below"),
    ("talp", "1-99999999999999999999999\n", "of numbers below 1000000"),
    ("talp", f"{'x' * 99}\n", f"x.talp:1: '{'x' * 40}…': expected"),
    ("talp", "1 1 1 S\n", "x.talp:1: '1': expected links"),
    ("pharaoh", "1-1:0.25\n", "x.talp:1: '1-1:0.25': a link with a score: expected links i-j; state format scored"),
    ("scored", "\n1-1\n", "x.talp:2: '1-1': a link without a score: expected i-j:p for every link, or for none"),
    ("scored", "0-0:1e-05 1-1:nan\n", "x.talp:1: '1-1:nan': expected links with scores i-j:p"),
    ("scored", "0-0:.5 1-1:inf\n", "x.talp:1: '1-1:inf': expected links with scores i-j:p"),
    ("scored", "0-0:1e999\n", "x.talp:1: '0-0:1e999': expected links with scores i-j:p"),
    ("scored", "0-0:1.2.3 1-1:.\n", "x.talp:1: '0-0:1.2.3': expected links with scores i-j:p"),
    ("scored", "0-0:1\n1-1:1:1\n", "x.talp:2: '1-1:1:1': expected links with scores i-j:p"),
    ("scored", "0-0:1\n1-1:\n", "x.talp:2: '1-1:': expected links with scores i-j:p"),
    ("scored", "0-0:1\n:1 1-1\n", "x.talp:2: ':1': expected links with scores i-j:p"),
    ("scored", "0-0:1\n1-1000000:1\n", "x.talp:2: '1-1000000:1': expected links with scores i-j:p"),
    ("scored", "0-0:1\n1p1:1\n", "x.talp:2: a possible link (p): expected sure links only"),
    ("naacl", "1 1 1 1\n1 1 1 1e999\n", "x.talp:2: confidence '1e999': expected a number that float64 holds"),
    ("pharaoh", "1-1\n1-1 2p2\n", "x.talp:2: a possible link (p): expected sure links only, as in a hypothesis; "),
    ("naacl", "1 1 1\n\n1 1\n", "x.talp:3: '1 1': expected a NAACL line 'sentence i j [S|P] [confidence]'"),
    ("naacl", "1 1 1\n1 1 1 X\n", "x.talp:2: '1 1 1 X': expected a NAACL line"),
    ("naacl", "1 -1 1\n", "x.talp:1: '1 -1 1': expected a NAACL line"),
    ("naacl", "1 1 1\n0 1 1\n", "x.talp:2: sentence number 0: expected numbers from 1, as NAACL files have them"),
    ("naacl", "\n\n", "x.talp: no links in it: expected NAACL lines"),
    ("fairseq", "1-1\n", "x.talp: no A- lines in it: expected those of fairseq-generate --print-alignment hard"),
    ("fairseq", "S-0\ta\nA-x\t0-0\n", "x.talp:2: 'A-x\\t0-0': expected A-<id>, a tab and links i-j"),
    ("fairseq", "S-0\ta\nA-0\t0-0 1\n", "x.talp:2: '1': expected links i-j"),
    ("fairseq", "A-0\t0.25,0.75 0.5,0.5\n", "x.talp:1: '0.25,0.75': weights, not links: expected i-j; generate with"),
    (
        "fairseq",
        "A-0\t0-0\nA-3\t0-0\nA-1\t\n",
        "x.talp: no A- line for id 2, but one for id 3: expected every id from 0",
    ),
    ("fairseq", "A-1\t0-0\n", "x.talp: no A- line for id 0, but one for id 1"),
    ("fairseq", "A-0\t\nA-1\t\nlog\nA-0\t\n", "x.talp:4: A-0 is there a second time: expected each id once"),
    ("fairseq", "A-0\t\nA-0\t\nA-1\t\n", "x.talp:3: 1 A- lines for id 1, but 2 for id 0: expected as many for each"),
]


@pytest.mark.parametrize(("format_", "text", "message"), BAD)
def test_bad_lines(tmp_path: Path, format_: str, text: str, message: str) -> None:
    parse = parse_gold_file if format_ == "talp" else parse_hypothesis_file
    with pytest.raises(InputError, match=re.escape(message)):
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
        with pytest.raises(InputError, match=rf":2: a possible link \({mark}\): .*--hyp-allow-possible"):
            parse_hypothesis_file(path)
    assert parse_hypothesis_file(talp, "talp", allow_possible=True).links.possible.to_sentences() == [
        {(0, 0)},
        {(1, 1), (2, 2)},
    ]


def test_gold_is_no_fairseq_output_and_no_pharaoh_with_p(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"looks like output of fairseq-generate: expected gold .* exchanged"):
        parse_gold_file(written(tmp_path, "A-0\t0-0\n"))
    with pytest.raises(InputError, match="--gold-format talp"):
        parse_gold_file(written(tmp_path, "0p0\n"), "pharaoh")


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown alignment format 'giza': expected one of talp, naacl, pharaoh"):
        parse_gold_file(tmp_path / "x", "giza")


def test_confidences_of_naacl(tmp_path: Path) -> None:
    table = parse_gold_file(written(tmp_path, "1 1 1 S 0.5\n1 2 2\n2 1 1 P .25\n")).links
    assert table.possible.confidence is not None
    assert table.sure.confidence is not None
    assert table.possible.confidence.tolist() == [0.5, 1.0, 0.25]
    assert table.sure.confidence.tolist() == [0.5, 1.0]
    assert parse_gold_file(written(tmp_path, "1 1 1 S\n1 2 2\n")).links.possible.confidence is None


def test_gold_has_no_scores(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="looks like links with scores: expected gold in one of the formats talp"):
        parse_gold_file(written(tmp_path, "0-0:0.5\n"))
