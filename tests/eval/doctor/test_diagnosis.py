from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from alignment_eval.doctor.diagnosis import Diagnosis, changed_sentences, diagnose, explains, leading
from alignment_eval.doctor.misreadings import Correction, FileEvidence, Reading, move_lines, plausible_bases
from alignment_eval.doctor.orientation import diagonal
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
        gold = self.gold
        keep = rng.random(len(gold)) < 0.75
        right = LinkTable.build(gold.sentence[keep], gold.source[keep], gold.target[keep], SENTENCES)
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
        return LinkTable.build(
            links.sentence, rng.integers(0, self.lengths[0][links.sentence]), links.target, SENTENCES
        )


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
    either = frozenset({0, 1})
    plausible = [either if unused_zero else plausible_bases(links) for links in (gold, hypothesis)]
    evidence = FileEvidence(plain(gold), plain(hypothesis), plausible[0], plausible[1], lengths)
    return diagnose(evidence, {"gold-base": bases[0], "hyp-base": bases[1], "gold-swap": False, "hyp-swap": False})


def name(diagnosis: Diagnosis) -> str | None:
    return diagnosis.explanation.name if diagnosis.explanation else None


Files = tuple[LinkTable, LinkTable]
#: Name of the corrections -> (what they take back, the bases that the files are then read with).
FAULTS: dict[str, tuple[Callable[[Files], Files], tuple[int, int]]] = {
    "gold-base": (lambda files: (files[0].shifted(1), files[1]), (0, 0)),
    "hyp-base": (lambda files: (files[0], files[1].shifted(1)), (0, 0)),
    "hyp-swap": (lambda files: (files[0], files[1].transposed()), (0, 0)),
    "gold-swap": (lambda files: (files[0].transposed(), files[1]), (0, 0)),
    "lines": (lambda files: (files[0], move_lines(files[1], 1, 20)), (0, 0)),
    "gold-base + hyp-base": (lambda files: (files[0].shifted(1), files[1]), (0, 1)),
    "hyp-base + hyp-swap": (lambda files: (files[0], files[1].transposed().shifted(1)), (0, 0)),
    "gold-base + lines": (lambda files: (files[0].shifted(1), move_lines(files[1], 2, 0)), (0, 0)),
}


@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("fault", FAULTS)
@given(st.integers(0, 10**6))
def test_each_fault_is_named(fault: str, seed: int) -> None:
    corpus = Corpus(seed)
    corrupt, bases = FAULTS[fault]
    right = score(corpus.hypothesis, plain(corpus.gold)).aer
    found = doctor(*corrupt((corpus.gold, corpus.hypothesis)), bases, corpus.lengths)
    assert name(found) == fault
    assert found.explanation is not None
    assert found.explanation.aer <= right + 0.05  # moved lines lose a sentence or two
    assert found.read.aer > found.explanation.aer + 0.1


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
        assert (found.explanation, found.equal) == (None, ())
        assert found.read.aer == score(hypothesis, plain(corpus.gold)).aer


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
    assert (name(found), [other.name for other in found.equal]) == ("hyp-swap", ["gold-swap"])
    assert doctor(corpus.gold, corpus.hypothesis.transposed(), lengths=corpus.lengths).equal == ()


def test_a_contradicted_base_is_named_however_little_it_changes() -> None:
    """Index 1 in every sentence, index 0 in none: AER falls by less than the criterion asks for."""
    corpus = Corpus(1)
    poor = corpus.random(np.random.default_rng(1)) | LinkTable(corpus.hypothesis.keys[::20], SENTENCES)
    found = doctor(corpus.gold, poor.shifted(1))
    assert name(found) == "hyp-base"
    assert found.explanation is not None
    assert found.explanation.aer < found.read.aer
    assert not explains(found.read.counts, found.explanation.counts)


@pytest.mark.parametrize("start", [0, 10, 45])
@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_the_line_is_found(by: int, start: int) -> None:
    corpus = Corpus(by + 5)
    found = doctor(corpus.gold, move_lines(corpus.hypothesis, by, start)).explanation
    assert found is not None
    fault = found.corrections[0].fault
    assert fault.startswith(f"{abs(by)} line{'s are' if abs(by) > 1 else ' is'} {'too many' if by > 0 else 'missing'} ")
    assert abs(int(fault.split("about line ")[1].split(":")[0]) - (start + 1)) <= 1


@pytest.mark.parametrize("missing", [1, 8])
def test_a_hypothesis_that_lacks_its_first_lines(missing: int) -> None:
    corpus = Corpus(missing)
    found = doctor(corpus.gold, LinkTable.of(corpus.hypothesis.to_sentences()[missing:])).explanation
    assert found is not None
    assert found.corrections[0].fault.startswith(f"{missing} line")


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
    assert explains(counts(*before), counts(*after)) == expected


EMPTY = LinkTable.of([()])
EVIDENCE = FileEvidence(plain(EMPTY), plain(EMPTY), frozenset({0}), frozenset({0}))


def reading(name: str, *rows: tuple[int, int, int, int]) -> Reading:
    made = Reading({}, plain(EMPTY), EMPTY, (Correction(name, "", ""),))
    vars(made)["counts"] = counts(*rows)
    return made


def test_the_leading_one_needs_a_lead_where_it_matters() -> None:
    before = counts(*[BAD] * 20, *[GOOD] * 80)
    best, close, far = (reading(n, *[r] * 20, *[GOOD] * 80) for n, r in zip("bcf", (GOOD, (10, 10, 8, 7), MIDDLE)))
    assert leading([far, best], before, EVIDENCE) == (best, ())
    # 2.5 points in a fifth of the sentences: AER of the corpus would differ by half a point
    assert leading([far, best, close], before, EVIDENCE) == (None, ())
    assert far.aer - best.aer < 0.1


def test_of_equals_the_one_that_fits_the_texts_leads() -> None:
    """Two sentences of two words: the first reading has a link outside."""
    first, second, third = (
        replace(reading(n, GOOD), hypothesis=LinkTable.of([{(i, 1)}])) for n, i in (("a", 3), ("b", 1), ("c", 2))
    )
    for one in (first, second, third):
        vars(one)["counts"] = counts(GOOD)
    evidence = replace(EVIDENCE, lengths=(np.array([2]), np.array([2])))
    assert leading([first, second, third], counts(BAD), evidence) == (second, (third,))


def test_changed_sentences() -> None:
    assert changed_sentences(counts(GOOD, BAD, GOOD), counts(GOOD, GOOD, BAD)).tolist() == [1, 2]
