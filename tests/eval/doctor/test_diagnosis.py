from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from alignment_eval.doctor.diagnosis import (
    Candidate,
    Diagnosis,
    changed_sentences,
    corpus_aer,
    diagnose,
    diagonal,
    explains,
    leading,
    linked_lengths,
    outside_of,
)
from alignment_eval.doctor.misreadings import MARGIN, Changed, Facts, Reading, move_lines
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import Counts, score

Lengths = tuple[NDArray[np.int64], NDArray[np.int64]]
SENTENCES = 60


class Corpus:
    """Gold and a hypothesis that has most of its links right, of random sentences; both count from 0."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        target = rng.integers(6, 20, SENTENCES)
        source = np.maximum(target + rng.integers(-3, 4, SENTENCES), 4)
        self.lengths: Lengths = source, target
        self.gold = self.near_the_diagonal(rng, 3.0)
        every = self.gold.sentence, self.gold.source, self.gold.target
        keep = rng.random(len(self.gold)) < 0.75
        right = LinkTable.build(*(values[keep] for values in every), SENTENCES)
        wrong = self.random(rng).keys
        self.hypothesis = right | LinkTable(np.sort(rng.choice(wrong, len(wrong) // 8, replace=False)), SENTENCES)

    def near_the_diagonal(self, rng: np.random.Generator, width: float) -> LinkTable:
        links = diagonal(self.lengths)
        source = np.rint(links.source + rng.normal(0, width, len(links))).astype(np.int64)
        source = np.clip(source, 0, self.lengths[0][links.sentence] - 1)
        # each file links a first word somewhere, as real ones do
        first = np.flatnonzero(np.diff(links.sentence, prepend=-1))
        source[first] = 0
        return LinkTable.build(links.sentence, source, links.target, SENTENCES)

    def random(self, rng: np.random.Generator) -> LinkTable:
        links = diagonal(self.lengths)
        source = rng.integers(0, self.lengths[0][links.sentence])
        return LinkTable.build(links.sentence, source, links.target, SENTENCES)


def plain(table: LinkTable) -> GoldTable:
    return GoldTable(table, table)


def doctor(
    gold: LinkTable,
    hypothesis: LinkTable,
    bases: tuple[int, int] = (0, 0),
    lengths: Lengths | None = None,
    unused_zero: bool = False,
) -> Diagnosis:
    """Diagnose links as they stand in two files, read with ``bases``."""
    facts = Facts.of(plain(gold), plain(hypothesis), lengths)
    if unused_zero:
        facts = replace(facts, gold_bases=frozenset({0, 1}), hyp_bases=frozenset({0, 1}))
    return diagnose(Reading.of(plain(gold), plain(hypothesis), bases), facts)


def name(diagnosis: Diagnosis) -> str | None:
    return diagnosis.explanation.name if diagnosis.explanation else None


Files = tuple[LinkTable, LinkTable]
#: Name of the changes that take a corruption back -> (the corruption, the bases that the files are then read with).
CORRUPTIONS: dict[str, tuple[Callable[[Files], Files], tuple[int, int]]] = {
    "gold-base": (lambda files: (files[0].shifted(1), files[1]), (0, 0)),
    "hyp-base": (lambda files: (files[0], files[1].shifted(1)), (0, 0)),
    "hyp-swap": (lambda files: (files[0], files[1].transposed()), (0, 0)),
    "gold-swap": (lambda files: (files[0].transposed(), files[1]), (0, 0)),
    "lines": (lambda files: (files[0], move_lines(files[1], 1, 20)), (0, 0)),
    "gold-base + hyp-base": (lambda files: (files[0].shifted(1), files[1]), (0, 1)),
    "hyp-base + hyp-swap": (lambda files: (files[0], files[1].transposed().shifted(1)), (0, 0)),
    "hyp-swap + lines": (lambda files: (files[0], move_lines(files[1].transposed(), -1, 20)), (0, 0)),
    "gold-base + lines": (lambda files: (files[0].shifted(1), move_lines(files[1], 2, 0)), (0, 0)),
}


@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("fault", CORRUPTIONS)
@given(st.integers(0, 10**6))
def test_each_corruption_is_named(fault: str, seed: int) -> None:
    corpus = Corpus(seed)
    corrupt, bases = CORRUPTIONS[fault]
    right = score(corpus.hypothesis, plain(corpus.gold)).aer
    found = doctor(*corrupt((corpus.gold, corpus.hypothesis)), bases, corpus.lengths)
    assert name(found) == fault
    assert found.explanation is not None
    assert found.explanation.aer <= right + 0.05  # moved lines lose a sentence or two
    assert found.aer > found.explanation.aer + 0.1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_nothing_is_named_where_nothing_is_wrong(seed: int, with_lengths: bool) -> None:
    corpus = Corpus(seed)
    rng = np.random.default_rng(seed)
    none = LinkTable.of([()] * SENTENCES)
    for hypothesis in (
        *(corpus.hypothesis, corpus.gold, corpus.random(rng), diagonal(corpus.lengths), none),
        corpus.near_the_diagonal(rng, 3.0),
    ):
        found = doctor(corpus.gold, hypothesis, (0, 0), corpus.lengths if with_lengths else None)
        assert found.explanation is None
        assert found.equal == ()
        assert found.aer == score(hypothesis, plain(corpus.gold)).aer


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_even_bases_that_the_data_leave_open_are_not_named_without_cause(seed: int) -> None:
    corpus = Corpus(seed)
    up = corpus.gold.shifted(1), corpus.hypothesis.shifted(1)
    assert name(doctor(*up, (1, 1), unused_zero=True)) is None
    assert name(doctor(*up, (1, 0), unused_zero=True)) in ("hyp-base", "gold-base")
    assert name(doctor(corpus.gold.shifted(1), corpus.random(np.random.default_rng(seed)), (1, 0))) is None


def test_direction_without_texts_is_an_open_question() -> None:
    corpus = Corpus(0)
    found = doctor(corpus.gold, corpus.hypothesis.transposed())
    assert name(found) == "hyp-swap"
    assert [candidate.name for candidate in found.equal] == ["gold-swap"]
    known = doctor(corpus.gold, corpus.hypothesis.transposed(), lengths=corpus.lengths)
    assert known.equal == ()


def test_a_contradicted_base_is_named_however_little_it_changes() -> None:
    """Index 1 in every sentence, index 0 in none: AER falls by less than the criterion asks for."""
    corpus = Corpus(1)
    rng = np.random.default_rng(1)
    poor = corpus.random(rng) | LinkTable(corpus.hypothesis.keys[::20], SENTENCES)
    found = doctor(corpus.gold, poor.shifted(1))
    assert name(found) == "hyp-base"
    assert found.explanation is not None
    assert found.explanation.aer < found.aer
    assert not explains(found.counts, found.explanation.counts)


@pytest.mark.parametrize("start", [0, 10, 30, 45])
@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_the_line_is_found(by: int, start: int) -> None:
    corpus = Corpus(by + 5)
    found = doctor(corpus.gold, move_lines(corpus.hypothesis, by, start))
    assert found.explanation is not None
    fault = found.explanation.changes[0].fault
    assert fault.startswith(f"{abs(by)} line{'s are' if abs(by) > 1 else ' is'} {'too many' if by > 0 else 'missing'} ")
    line = int(fault.split("about line ")[1].split(":")[0])
    assert abs(line - (start + 1)) <= 1


@pytest.mark.parametrize("missing", [1, 8])
def test_a_hypothesis_that_lacks_its_first_lines(missing: int) -> None:
    corpus = Corpus(missing)
    sentences = corpus.hypothesis.to_sentences()[missing:]
    found = doctor(corpus.gold, LinkTable.of(sentences))
    assert found.explanation is not None
    assert found.explanation.changes[0].fault.startswith(f"{missing} line")


def counts(*rows: tuple[int, int, int, int]) -> Counts:
    return Counts(*np.array(rows, dtype=np.int64).T)


GOOD, MIDDLE, BAD = (10, 10, 8, 8), (10, 10, 4, 4), (10, 10, 1, 1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([BAD] * 10, [GOOD] * 10, True),
        ([BAD] * 9, [GOOD] * 9, False),  # too few sentences
        ([BAD] * 10 + [GOOD] * 90, [GOOD] * 100, True),  # what is not changed does not count
        ([BAD] * 10, [BAD] * 10, False),
        ([(10, 10, 2, 2)] * 20, [(10, 10, 3, 4)] * 20, False),  # 80 -> 65: not to 75 %
        ([(10, 10, 9, 9)] * 20, [(10, 10, 10, 10)] * 20, True),  # 10 -> 0
        ([(20, 20, 19, 19)] * 20, [(20, 20, 20, 20)] * 20, False),  # 5 -> 0: less than 10 points
        ([BAD] * 30 + [MIDDLE] * 12, [GOOD] * 30 + [BAD] * 12, False),  # 30 better, 12 worse
        ([BAD] * 30 + [MIDDLE] * 10, [GOOD] * 30 + [BAD] * 10, True),  # three in four
    ],
)
def test_criterion(before: list[tuple[int, ...]], after: list[tuple[int, ...]], expected: bool) -> None:
    assert explains(counts(*before), counts(*after)) == expected  # type: ignore[arg-type]


def candidate(name: str, *rows: tuple[int, int, int, int], outside: int = 0) -> Candidate:
    reading = Reading(plain(LinkTable.of([()])), plain(LinkTable.of([()])), 0, 0)
    its = counts(*rows)
    return Candidate((Changed(name, "", "", reading),), its, corpus_aer(its), outside)


def test_the_leading_one_needs_a_lead_where_it_matters() -> None:
    before = counts(*[BAD] * 20, *[GOOD] * 80)
    best, close, far = (candidate(n, *[r] * 20, *[GOOD] * 80) for n, r in zip("bcf", (GOOD, (10, 10, 8, 7), MIDDLE)))
    assert leading([far, best], before) == (best, ())
    # 2.5 points in a fifth of the sentences: AER of the corpus would differ by half a point
    assert leading([far, best, close], before) == (None, ())
    assert far.aer - best.aer < 0.1
    assert leading([], before) == (None, ())


def test_of_equals_the_one_that_fits_the_texts_leads() -> None:
    first, second, third = (candidate(name, GOOD, outside=n) for name, n in (("a", 3), ("b", 1), ("c", 1)))
    assert leading([first, second, third], counts(BAD)) == (second, (third,))


def test_changed_sentences() -> None:
    assert changed_sentences(counts(GOOD, BAD, GOOD), counts(GOOD, GOOD, BAD)).tolist() == [1, 2]
    assert corpus_aer(counts(GOOD, BAD)) == 1 - 18 / 40


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (3, 3, [(0, 0), (1, 1), (2, 2)]),
        (2, 4, [(0, 0), (0, 1), (1, 2), (1, 3)]),
        (5, 1, [(2, 0)]),
        (0, 3, []),
        (3, 0, []),
    ],
)
def test_diagonal(source: int, target: int, expected: list[tuple[int, int]]) -> None:
    found = diagonal((np.array([1, source]), np.array([1, target])))
    assert found.to_sentences() == [{(0, 0)}, set(expected)]


def test_lengths_and_what_is_outside_them() -> None:
    links = LinkTable.of([{(0, 3), (2, 1)}, ()])
    source, target = linked_lengths(links)
    assert (source.tolist(), target.tolist()) == ([3, 0], [4, 0])
    reading = links.shifted(MARGIN)
    assert not outside_of(reading, (source, target)).any()
    assert outside_of(reading, (target, source)).tolist() == [True, False]
    assert outside_of(links, (source, target)).tolist() == [True, False]  # index 0 - MARGIN
    assert outside_of(reading, (source[:0], target[:0])).all()
