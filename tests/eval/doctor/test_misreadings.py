from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.doctor.misreadings import (
    MARGIN,
    Correction,
    FileEvidence,
    best_start,
    move_lines,
    plausible_bases,
)
from alignment_eval.links.table import GoldSentence, GoldTable, Links, LinkTable
from alignment_eval.scoring.aer import count, score

links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6)
corpora = st.lists(st.tuples(links, links), min_size=1, max_size=8)
EITHER = frozenset({0, 1})


def manner(gold_base: int = 0, hyp_base: int = 0, gold_swap: bool = False, hyp_swap: bool = False) -> dict[str, int]:
    return {"gold-base": gold_base, "hyp-base": hyp_base, "gold-swap": gold_swap, "hyp-swap": hyp_swap}


def evidence_of(corpus: list[tuple[Links, Links]], more: int = 0) -> FileEvidence:
    gold, hypothesis = (LinkTable.of(side) for side in zip(*corpus))
    hypothesis = hypothesis.with_sentences(len(corpus) + more)
    return FileEvidence(GoldTable(gold, gold), GoldTable(hypothesis, hypothesis), EITHER, EITHER)


def moved(sentences: list[Links], by: int, start: int) -> list[Links]:
    """The slow way: lines put in or taken out."""
    none: list[Links] = [frozenset()] * abs(by)
    rest = none + sentences[start:] if by > 0 else sentences[start - by :] + none
    return [*sentences[:start], *rest][: len(sentences)]


@given(st.lists(links, min_size=1, max_size=8), st.integers(-3, 3), st.integers(0, 8))
def test_lines_are_moved(sentences: list[Links], by: int, start: int) -> None:
    start = min(start, len(sentences))
    assert move_lines(LinkTable.of(sentences), by, start).to_sentences() == moved(sentences, by, start)


@given(corpora, st.sampled_from([-2, -1, 1, 2]))
def test_best_start(corpus: list[tuple[Links, Links]], by: int) -> None:
    hypotheses = [hypothesis for _, hypothesis in corpus]
    table, gold = LinkTable.of(hypotheses), [GoldSentence(sure) for sure, _ in corpus]
    start = best_start(count(table, gold), count(move_lines(table, by, 0), gold), by)
    agreed = [int(score(moved(hypotheses, by, start), gold).counts.hypothesis_sure) for start in range(len(corpus) + 1)]
    # where a line has no place left, lines taken out count as those beyond the end
    assert agreed[start] == max(agreed)


@given(corpora, st.integers(0, 1), st.integers(0, 1))
def test_a_reading_is_scored_as_it_was_read(corpus: list[tuple[Links, Links]], gold_base: int, hyp_base: int) -> None:
    """Indices below 0 included, which a wrong base gives."""
    gold, hypotheses = zip(*corpus)
    expected = score(
        [{(i - hyp_base + 1, j - hyp_base + 1) for i, j in its} for its in hypotheses],
        [GoldSentence(frozenset((i - gold_base + 1, j - gold_base + 1) for i, j in its)) for its in gold],
    )
    found = evidence_of(corpus).read(manner(gold_base, hyp_base)).counts
    for ours, theirs in zip(found.arrays(), expected.per_sentence.arrays()):
        np.testing.assert_array_equal(ours, theirs)


@given(corpora, st.integers(0, 3))
def test_other_readings(corpus: list[tuple[Links, Links]], more: int) -> None:
    """Every combination of bases and a direction once; a better AER never comes from gold links that were lost."""
    evidence, first = evidence_of(corpus, more), manner(1, 0)
    read = evidence.read(first)
    others = list(evidence.others(read, first))
    manners = [other.manner for other in others if other.manner != first]
    assert len(manners) == len({tuple(m.values()) for m in manners}) == 2 * 2 * 3 - 1
    for other in others:
        changed = [option for option, value in other.manner.items() if value != first[option]]
        assert [correction.name for correction in other.corrections] == (changed or ["lines"])
        assert len(other.gold.sure) == len(evidence.gold.sure)
        assert other.gold.sentences == len(corpus) + more
    for gold_swap, hyp_swap in ((True, False), (False, True)):
        either = next(o for o in others if o.manner == manner(1, 0, gold_swap, hyp_swap))
        assert either.counts.hypothesis_sure.sum() == len(
            read.hypothesis.transposed() & read.gold.sure
        )  # the same of both


def test_words_of_a_correction() -> None:
    assert Correction.of("gold-base", 1).fault == "the gold counts words from 1, but was read as counting from 0"
    assert Correction.of("hyp-base", 0).remedy == "give --hyp-base 0"
    assert Correction.of("hyp-swap", True).fault == "the hypothesis has its links in target-source order"
    assert Correction.of("hyp-swap", False).remedy == "omit --hyp-swap"


@pytest.mark.parametrize(
    ("sentences", "bases"),
    [
        ([{(0, 3)}, {(1, 1)}], {0}),
        ([{(1, 3)}] * 4 + [{(2, 2)}], {0, 1}),
        ([{(1, 3)}] * 5 + [{(2, 2)}], {1}),
        ([set()], {0, 1}),
    ],
)
def test_plausible_bases(sentences: list[set[tuple[int, int]]], bases: set[int]) -> None:
    assert plausible_bases(LinkTable.of(sentences)) == bases


def test_possible_links_dropped() -> None:
    sure, possible = LinkTable.of([{(0, 0)}]), LinkTable.of([{(1, 1)}])
    evidence = FileEvidence(GoldTable(sure, sure), GoldTable(sure, possible), frozenset({0}), frozenset({0}))
    others = {other.name: other for other in evidence.others(evidence.read(manner()), manner())}
    assert others["hyp-possible"].hypothesis.to_sentences() == [{(MARGIN, MARGIN)}]


@pytest.mark.parametrize(
    ("by", "start", "words"),
    [
        (1, 2, ("1 line is missing", "line 3", "line n - 1", "insert 1 line")),
        (-2, 4, ("2 lines are too many", "line 5", "line n + 2", "remove 2 lines")),
    ],
)
def test_words_of_moved_lines(by: int, start: int, words: tuple[str, ...]) -> None:
    """Sentence k holds link k-k only; lines are taken out where they are to be put in."""
    gold = LinkTable.of([{(k, k)} for k in range(9)])
    hypothesis = move_lines(gold, -by, start)
    evidence = FileEvidence(GoldTable(gold, gold), GoldTable(hypothesis, hypothesis), EITHER, EITHER)
    found = min(evidence.others(evidence.read(manner()), manner()), key=lambda other: other.aer).corrections[0]
    assert all(word in f"{found.fault}; {found.remedy}" for word in words)


@pytest.mark.parametrize(("missing", "moves"), [(0, 6), (11, 7), (-11, 7)])
def test_lines_are_moved_by_as_many_as_the_files_differ_by(missing: int, moves: int) -> None:
    gold, hypothesis = LinkTable.of([()] * 40), LinkTable.of([()] * (40 - missing))
    evidence = FileEvidence(GoldTable(gold, gold), GoldTable(hypothesis, hypothesis), frozenset({0}), frozenset({0}))
    others = [other.name for other in evidence.others(evidence.read(manner()), manner())]
    assert others.count("lines") == moves
