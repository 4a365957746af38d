from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.doctor.misreadings import (
    MARGIN,
    Facts,
    Reading,
    best_start,
    families,
    gold_base,
    gold_swap,
    hyp_base,
    hyp_swap,
    move_lines,
    moved_lines,
    plausible_bases,
    without_possible,
)
from alignment_eval.links.table import GoldSentence, GoldTable, Links, LinkTable
from alignment_eval.scoring.aer import count, score

links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6)
corpora = st.lists(st.tuples(links, links), min_size=1, max_size=8)


def plain(table: LinkTable) -> GoldTable:
    return GoldTable(table, table)


def reading_of(corpus: list[tuple[Links, Links]], bases: tuple[int, int] = (0, 0)) -> Reading:
    gold, hypothesis = (LinkTable.of(side) for side in zip(*corpus))
    return Reading.of(plain(gold), plain(hypothesis), bases)


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
    gold = [GoldSentence(sure) for sure, _ in corpus]
    hypotheses = [hypothesis for _, hypothesis in corpus]
    aers = [score(moved(hypotheses, by, start), gold).aer for start in range(len(gold) + 1)]
    table = LinkTable.of(hypotheses)
    start = best_start(count(table, gold), count(move_lines(table, by, 0), gold), by)
    # where a line has no place left, lines taken out count as those beyond the end
    assert aers[start] == pytest.approx(min(aers), abs=1e-12)


@given(corpora, st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]))
def test_a_reading_is_scored_as_it_was_read(corpus: list[tuple[Links, Links]], bases: tuple[int, int]) -> None:
    """Indices below 0 included, which a wrong base gives."""
    gold, hypotheses = zip(*corpus)
    expected = score(
        [{(i - bases[1] + 1, j - bases[1] + 1) for i, j in its} for its in hypotheses],
        [GoldSentence(frozenset((i - bases[0] + 1, j - bases[0] + 1) for i, j in its)) for its in gold],
    )
    found = reading_of(corpus, bases).counts()
    for ours, theirs in zip(found.arrays(), expected.per_sentence.arrays()):
        np.testing.assert_array_equal(ours, theirs)


@given(corpora)
def test_changes_take_each_other_back(corpus: list[tuple[Links, Links]]) -> None:
    reading, facts = reading_of(corpus, (1, 1)), Facts()
    for change in (gold_base(facts), hyp_base(facts), hyp_swap, gold_swap):
        once = change(reading)
        assert once is not None
        twice = change(once.reading)
        assert twice is not None
        assert once.name == twice.name
        assert once.remedy != twice.remedy
        assert twice.reading.options(reading) == {}
        for mine, its in ((twice.reading.gold, reading.gold), (twice.reading.hypothesis, reading.hypothesis)):
            assert np.array_equal(mine.possible.keys, its.possible.keys)


@given(corpora)
def test_either_swap_has_the_same_counts(corpus: list[tuple[Links, Links]]) -> None:
    reading = reading_of(corpus)
    for mine, its in zip(hyp_swap(reading).reading.counts().arrays(), gold_swap(reading).reading.counts().arrays()):
        np.testing.assert_array_equal(mine, its)


@given(corpora, st.integers(0, 3))
def test_no_change_makes_the_gold_smaller(corpus: list[tuple[Links, Links]], more: int) -> None:
    """A better AER never comes from gold links that were lost."""
    gold, hypothesis = (LinkTable.of(side) for side in zip(*corpus))
    facts = Facts.of(plain(gold), plain(hypothesis))
    reading = Reading.of(plain(gold), plain(LinkTable(hypothesis.keys, hypothesis.sentences + more)), (0, 0))
    for family in families(facts):
        for change in family:
            if (made := change(reading)) is not None:
                assert len(made.reading.gold.sure) == len(gold)
                assert made.reading.gold.sentences == reading.gold.sentences == len(corpus) + more


def test_options() -> None:
    reading = reading_of([(frozenset({(1, 2)}), frozenset({(2, 1)}))], (0, 1))
    changed = hyp_swap(reading).reading
    made = gold_base(Facts())(changed)
    assert made is not None
    assert made.reading.options(reading) == {"--gold-base": "1", "--hyp-swap": True}
    assert reading.options(made.reading) == {"--gold-base": "0", "--hyp-swap": False}
    assert made.fault == "the gold counts words from 1 and was read as if from 0"
    assert hyp_swap(changed).remedy == "leave --hyp-swap out"


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


def test_a_base_that_the_data_contradict_is_not_tried() -> None:
    reading = reading_of([(frozenset({(0, 0)}), frozenset({(0, 0)}))])
    facts = Facts.of(reading.gold.shifted(-MARGIN), reading.hypothesis.shifted(-MARGIN))
    assert gold_base(facts)(reading) is None
    assert hyp_base(facts)(reading) is None


def test_without_possible() -> None:
    sure, possible = LinkTable.of([{(0, 0)}]), LinkTable.of([{(1, 1)}])
    made = without_possible(Reading.of(plain(sure), GoldTable(sure, possible), (0, 0)))
    assert made is not None
    assert made.reading.hypothesis.possible.to_sentences() == [{(MARGIN, MARGIN)}]
    assert without_possible(Reading.of(plain(sure), plain(sure), (0, 0))) is None


def test_words_of_moved_lines() -> None:
    """Sentence k holds link k-k only."""
    gold = plain(LinkTable.of([{(k, k)} for k in range(9)]))
    for by, start, fault, remedy in (
        (1, 2, "1 line is missing in the hypothesis at about line 3: from there on, line n of the gold belongs to line "
         "n - 1 of the hypothesis", "insert 1 line there"),
        (-2, 4, "2 lines are too many in the hypothesis at about line 5: from there on, line n of the gold belongs to "
         "line n + 2 of the hypothesis", "remove 2 lines there"),
    ):  # fmt: skip
        shown = move_lines(gold.possible, -by, start)  # lines taken out where they are to be put in
        made = moved_lines(by)(Reading.of(gold, plain(shown), (0, 0)))
        assert made is not None
        assert made.fault == fault
        assert made.remedy == f"{remedy} (or mend the gold, if the fault is in it)"


def test_facts_know_by_how_many_lines_the_files_differ() -> None:
    long, short = (plain(LinkTable.of([set()] * n)) for n in (20, 9))
    assert set(Facts.of(long, short).moves) == {-3, -2, -1, 1, 2, 3, 11}
    assert set(Facts.of(short, long).moves) == {-3, -2, -1, 1, 2, 3, -11}
    assert set(Facts.of(long, long).moves) == {-3, -2, -1, 1, 2, 3}
