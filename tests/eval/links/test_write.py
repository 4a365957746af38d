from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import LineStyle, SentenceLinks
from alignment_eval.links.read import Alignments, ReadOptions, read_hypothesis
from alignment_eval.links.sets import GoldSentence, Link
from alignment_eval.links.write import (
    format_fairseq_line,
    format_naacl_lines,
    format_pharaoh_line,
    format_scored_line,
    format_talp_line,
)
from tests.eval.links.samples import gold, written
from tests.facts import facts

LINKS = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)
GOLD = st.builds(GoldSentence, LINKS, LINKS)
PAIRS = st.tuples(st.integers(0, 30), st.integers(0, 30))
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(folder: Path, lines: Iterable[str], base: int, format_: str | None = None) -> Alignments:
    path = written(folder, "".join(f"{line}\n" for line in lines))
    options = ReadOptions(format_, base="1" if base else "0-unused", allow_possible=True)
    return read_hypothesis(path, options, warn=lambda message: None)


@pytest.mark.parametrize("base", [0, 1])
@given(corpus=st.lists(GOLD, min_size=1, max_size=5), random=st.randoms(use_true_random=False))
@SAME_FOLDER
def test_round_trips(tmp_path: Path, base: int, corpus: list[GoldSentence], random) -> None:
    sure, every = [sentence.sure for sentence in corpus], [sentence.possible for sentence in corpus]
    pharaoh = [format_pharaoh_line(links, base) for links in sure]
    assert list(read(tmp_path, pharaoh, base).each_links()) == sure
    assert list(read(tmp_path, [format_talp_line(sentence, base) for sentence in corpus], base)) == corpus
    fairseq = [format_fairseq_line(id_, links) for id_, links in enumerate(every)]
    assert list(read(tmp_path, random.sample(fairseq, len(fairseq)), 0).each_links()) == every
    naacl = [line for n, sentence in enumerate(corpus) for line in format_naacl_lines(n, sentence, base)]
    if every[-1]:
        assert list(read(tmp_path, naacl, base)) == corpus


def test_printed_lines() -> None:
    sentence = gold("2-0 0-1 0-0", "1-1 0-0")
    assert format_pharaoh_line(sentence.sure) == "0-0 0-1 2-0"
    assert format_talp_line(sentence) == "0-0 0-1 1p1 2-0"
    assert format_talp_line(sentence, base=1) == "1-1 1-2 2p2 3-1"
    assert list(format_naacl_lines(4, sentence)) == ["5 1 1 S", "5 1 2 S", "5 2 2 P", "5 3 1 S"]
    assert format_fairseq_line(7, sentence.sure) == "A-7\t0-0 0-1 2-0"
    assert format_pharaoh_line(frozenset()) == format_talp_line(gold()) == ""


@pytest.mark.parametrize("base", [0, 1])
@given(corpus=st.lists(st.dictionaries(PAIRS, FINITE, max_size=9), min_size=1, max_size=5))
@SAME_FOLDER
def test_scored_round_trip(tmp_path: Path, base: int, corpus: list[dict[Link, float]]) -> None:
    read_back = list(read(tmp_path, (format_scored_line(links, base) for links in corpus), base, "scored"))
    assert [sentence.possible for sentence in read_back] == [frozenset(links) for links in corpus]
    # repr distinguishes -0.0 from 0.0
    assert [repr(sentence.confidence) for sentence in read_back] == [
        repr(dict(sorted(links.items()))) for links in corpus
    ]


def test_scored_lines() -> None:
    assert format_scored_line({(2, 0): 0.1, (0, 1): 1e-05, (0, 0): 1}) == "0-0:1.0 0-1:1e-05 2-0:0.1"
    assert format_scored_line({(2, 0): 0.1}, base=1) == "3-1:0.1"
    assert format_scored_line({}) == ""
    with pytest.raises(InputError, match=facts("link 2-0 … nan … finite")):
        format_scored_line({(2, 0): float("nan")})


LINKED = np.array([[True, False], [True, True]])
WITH_SHARES = SentenceLinks(LINKED, np.array([[0.25, 0.5, 0.25], [0.0, 0.75, 0.25]]))


@pytest.mark.parametrize(
    ("style", "line"),
    [
        (LineStyle(), "0-0 1-0 1-1"),
        (LineStyle(min_confidence=0.5), "1-0 1-1"),
        (LineStyle(confidences=True), "0-0:0.25 1-0:0.5 1-1:0.75"),
        (LineStyle(True, 0.6), "1-1:0.75"),
    ],
    ids=str,
)
def test_lines_of_extracted_links(style: LineStyle, line: str) -> None:
    assert style.line(WITH_SHARES) == line
    assert style.line(None) == ""


def test_extracted_links_without_confidences() -> None:
    assert LineStyle().line(SentenceLinks(LINKED)) == "0-0 1-0 1-1"
    for style in (LineStyle(confidences=True), LineStyle(min_confidence=0.5)):
        with pytest.raises(UsageError, match="no confidences"):
            style.line(SentenceLinks(LINKED))
