from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.formats.writing import (
    format_fairseq_line,
    format_lines,
    format_naacl_lines,
    format_pharaoh_line,
    format_scored_line,
    format_talp_line,
)
from alignment_eval.links.table import GoldSentence, GoldTable, Link, Links
from tests.eval.formats.samples import gold, written
from tests.facts import facts

LINKS = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)
GOLD = st.builds(GoldSentence, LINKS, LINKS)
PAIRS = st.tuples(st.integers(0, 30), st.integers(0, 30))
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


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


def test_a_format_that_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="'json'"):
        format_lines(GoldTable.of([gold("0-0")]), "json", 0)


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
    with pytest.raises(InputError, match=facts("link 2-0 … nan … finite")):
        format_scored_line({(2, 0): float("nan")})
