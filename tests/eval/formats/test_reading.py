from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats import text as textfiles
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.detection import detect_format, parse_gold_file, parse_hypothesis_file
from alignment_eval.formats.reading import (
    ReadOptions,
    format_fairseq_line,
    format_naacl_lines,
    format_pharaoh_line,
    format_scored_line,
    format_talp_line,
    read_gold,
    read_hypothesis,
    read_texts,
)
from alignment_eval.links.table import GoldSentence, Link, Links

LINKS = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)
GOLD = st.builds(GoldSentence, LINKS, LINKS)
PAIRS = st.tuples(st.integers(0, 30), st.integers(0, 30))
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def gold(sure: str = "", possible: str = "") -> GoldSentence:
    """``gold("0-1 2-2", "3-3")``."""
    sets = (frozenset(tuple(map(int, pair.split("-"))) for pair in text.split()) for text in (sure, possible))
    return GoldSentence(*sets)


def written(folder: Path, text: str | bytes, name: str = "x.talp") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def fail_on_warning(message: str) -> None:
    raise AssertionError(message)


# Printing and parsing back


@pytest.mark.parametrize("base", [0, 1])
@given(corpus=st.lists(LINKS, min_size=1, max_size=5))
@SAME_FOLDER
def test_pharaoh_round_trip(tmp_path: Path, base: int, corpus: list[Links]) -> None:
    path = written(tmp_path, "".join(f"{format_pharaoh_line(links, base)}\n" for links in corpus))
    options = ReadOptions(base=str(base), unused_zero=True)
    assert read_hypothesis(path, options).links.possible.to_sentences() == corpus


@pytest.mark.parametrize("base", [0, 1])
@given(corpus=st.lists(GOLD, min_size=1, max_size=5))
@SAME_FOLDER
def test_talp_round_trip(tmp_path: Path, base: int, corpus: list[GoldSentence]) -> None:
    path = written(tmp_path, "".join(f"{format_talp_line(sentence, base)}\n" for sentence in corpus))
    options = ReadOptions(base=str(base), unused_zero=True)
    assert read_gold(path, options).links.to_sentences() == corpus


@given(corpus=st.lists(GOLD, min_size=1, max_size=5).filter(lambda c: any(s.possible for s in c)))
@SAME_FOLDER
def test_naacl_round_trip(tmp_path: Path, corpus: list[GoldSentence]) -> None:
    lines = [line for n, sentence in enumerate(corpus) for line in format_naacl_lines(n, sentence)]
    path = written(tmp_path, "\n".join(lines))
    lengths = np.full(len(corpus), 100)
    texts = Texts("source", lengths, "target", lengths)
    result = read_gold(path, None, texts, warn=lambda message: None)
    assert (result.file.format, result.base) == ("naacl", 1)
    assert result.links.to_sentences() == corpus


@given(corpus=st.lists(LINKS, min_size=1, max_size=5), random=st.randoms(use_true_random=False))
@SAME_FOLDER
def test_fairseq_round_trip(tmp_path: Path, corpus: list[Links], random) -> None:
    lines = [format_fairseq_line(id_, links) for id_, links in enumerate(corpus)]
    path = written(tmp_path, "\n".join(random.sample(lines, len(lines))))
    result = read_hypothesis(path, ReadOptions(unused_zero=True), warn=lambda message: None)
    assert result.file.format == "fairseq"
    assert result.links.possible.to_sentences() == corpus


def test_printed_lines() -> None:
    sentence = gold("2-0 0-1 0-0", "1-1 0-0")
    assert format_pharaoh_line(sentence.sure) == "0-0 0-1 2-0"
    assert format_talp_line(sentence) == "0-0 0-1 1p1 2-0"
    assert format_talp_line(sentence, base=1) == "1-1 1-2 2p2 3-1"
    assert list(format_naacl_lines(4, sentence)) == ["5 1 1 S", "5 1 2 S", "5 2 2 P", "5 3 1 S"]
    assert format_fairseq_line(7, sentence.sure) == "A-7\t0-0 0-1 2-0"
    assert format_pharaoh_line(frozenset()) == format_talp_line(gold()) == ""


# Parsing


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


def test_naacl_sentences_without_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1 1\n4 1 1\n")
    warnings: list[str] = []
    texts = Texts("s", np.full(6, 9), "t", np.full(6, 9))
    result = read_gold(path, None, texts, warnings.append)
    assert result.links.to_sentences() == [gold("0-0"), gold(), gold(), gold("0-0"), gold(), gold()]
    assert warnings == [f"{path}: 4 of 6 sentences have no line, first sentence 2: taken for sentences without links"]


GENERATE_OUTPUT = """\
2024-01-02 10:00:00 | INFO | fairseq_cli.generate | loading model(s)
S-1\tein kleines haus
T-1\ta small house
H-1\t-0.25\ta small house
D-1\t-0.25\ta small house
P-1\t-0.2 -0.3 -0.1 -0.4
A-1\t0-0 1-1 2-2
H-1\t-0.75\tsmall house
A-1\t1-0 2-1
S-0\tja
H-0\t-0.1\tyes
A-0\t0-0
H-0\t-0.9\tno
A-0\t
Generate test with beam=5: BLEU4 = 12.3
"""


def test_output_of_fairseq_generate_with_nbest(tmp_path: Path) -> None:
    path = written(tmp_path, GENERATE_OUTPUT, "generate-test.txt")
    warnings: list[str] = []
    result = read_hypothesis(path, warn=warnings.append)
    assert result.file.format == "fairseq"
    assert result.links.possible.to_sentences() == [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert len(warnings) == 1
    assert "A- lines of fairseq link tokens, which are taken for words here" in warnings[0]
    lengths = np.array([3, 3])
    read_hypothesis(path, None, Texts("s", lengths, "t", lengths), fail_on_warning)


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


# Confidences


@pytest.mark.parametrize("base", [0, 1])
@given(corpus=st.lists(st.dictionaries(PAIRS, FINITE, max_size=9), min_size=1, max_size=5))
@SAME_FOLDER
def test_scored_round_trip(tmp_path: Path, base: int, corpus: list[dict[Link, float]]) -> None:
    path = written(tmp_path, "".join(f"{format_scored_line(links, base)}\n" for links in corpus))
    options = ReadOptions("scored", base=str(base), unused_zero=True)
    table = read_hypothesis(path, options).links.possible
    assert table.to_sentences() == [frozenset(links) for links in corpus]
    assert table.confidence is not None
    # repr tells -0.0 from 0.0
    assert list(map(repr, table.confidence.tolist())) == [repr(p) for links in corpus for _, p in sorted(links.items())]


def test_scored_lines() -> None:
    assert format_scored_line({(2, 0): 0.1, (0, 1): 1e-05, (0, 0): 1}) == "0-0:1.0 0-1:1e-05 2-0:0.1"
    assert format_scored_line({(2, 0): 0.1}, base=1) == "3-1:0.1"
    assert format_scored_line({}) == ""
    with pytest.raises(InputError, match="link 2-0: confidence nan: expected a finite number"):
        format_scored_line({(2, 0): float("nan")})


def test_smallest_confidence(tmp_path: Path) -> None:
    path = written(tmp_path, "0-0:0.5 1-1:0.25\n\n0-0:0.75 0-0:0.1\n")
    assert parse_hypothesis_file(path).format == "scored"
    result = read_hypothesis(path, ReadOptions(min_confidence=0.5))
    assert result.links.possible.to_sentences() == [{(0, 0)}, frozenset(), {(0, 0)}]
    plain = written(tmp_path, "0-0\n", "plain")
    with pytest.raises(InputError, match=r"plain: links without scores, but --hyp-min-confidence 0\.5 is asked for"):
        read_hypothesis(plain, ReadOptions(min_confidence=0.5))


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


# Texts


def test_texts_of_unequal_length(tmp_path: Path) -> None:
    source, target = written(tmp_path, "a\nb\n", "s"), written(tmp_path, "a\nb\nc\n", "t")
    message = f"{source} has 2 lines, {target} has 3: expected as many, one line a sentence"
    with pytest.raises(InputError, match=re.escape(message)):
        read_texts(source, target)


@pytest.mark.parametrize(("text", "sentences"), [("0-0\n", 1), ("0-0\n\n\n", 3), ("1 1 1\n3 1 1\n", 3)])
def test_as_many_lines_as_the_texts(tmp_path: Path, text: str, sentences: int) -> None:
    texts = Texts("test.de", np.array([5, 5]), "test.en", np.array([5, 5]))
    path = written(tmp_path, text)
    message = f"{path}: {sentences} sentences, but test.de has 2 lines: expected as many"
    with pytest.raises(InputError, match=re.escape(message)):
        read_gold(path, None, texts)
