"""Which misreading of the files, if any, explains a high AER.

All changes of :mod:`doctor.misreadings` and all pairs of them are tried; :data:`CRITERION` says when one of
them is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.misreadings import MARGIN, Change, Changed, Facts, Reading, families, gold_base, hyp_base
from alignment_eval.links.table import LinkTable
from alignment_eval.scoring.aer import Counts, aer

IntArray = NDArray[np.int64]

#: A change must lower AER by so much (a fraction) …
MIN_DROP = 0.1
#: … to at most this part of what it was, both over the sentences that it changes, …
MAX_RATIO = 0.75
#: … and be better in this part of the sentences whose AER it changes, …
MIN_BETTER_PART = 0.75
#: … and in so many more than it is worse in; …
MIN_BETTER = 10
#: … and every other change of as many parts must have an AER that is higher by so much.
MIN_LEAD = 0.05
CRITERION = (
    f"over the sentences that it changes, AER falls by {100 * MIN_DROP:.0f} points or more and to {MAX_RATIO:.0%} or "
    f"less; {MIN_BETTER_PART:.0%} of the sentences whose AER changes get better, {MIN_BETTER} more than get worse; no "
    f"other reading is within {100 * MIN_LEAD:.0f} points; or the indices themselves contradict the base"
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One change or more, and what they lead to.

    Attributes:
        changes: in the order in which they were made.
        counts: of each sentence.
        aer: of the corpus, a fraction.
        outside: links of gold and hypothesis outside the texts; 0 without texts.
    """

    changes: tuple[Changed, ...]
    counts: Counts
    aer: float
    outside: int

    @property
    def name(self) -> str:
        """The names of the changes."""
        return " + ".join(change.name for change in self.changes)

    @property
    def reading(self) -> Reading:
        """The files read anew."""
        return self.changes[-1].reading


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What explains an AER.

    Attributes:
        counts: of each sentence as read.
        aer: of the corpus as read, a fraction.
        explanation: None if nothing does.
        equal: changes that have the very same counts and cannot be told from the explanation by the links.
        tried: all candidates, lowest AER first.
    """

    counts: Counts
    aer: float
    explanation: Candidate | None
    equal: tuple[Candidate, ...]
    tried: tuple[Candidate, ...]


def diagnose(reading: Reading, facts: Facts) -> Diagnosis:
    """Try every change and every pair of changes, and name what explains the AER of ``reading``, if anything does.

    A base that the indices themselves contradict is put right beforehand.  A pair must explain more than the best
    single change that does, by the same criterion.
    """
    counts = reading.counts()
    found = contradicted(reading, facts)
    certain, start, reading = (found.changes, found.counts, found.reading) if found else ((), counts, reading)
    groups = [list(of_size(reading, facts, certain)) for of_size in (singles, pairs)]
    equal: tuple[Candidate, ...] = ()
    for group in groups:
        best, same = leading(group, start)
        if best is not None and explains(found.counts if found else counts, best.counts):
            found, equal = best, same
    tried = sorted(chain(*groups), key=lambda candidate: candidate.aer)
    return Diagnosis(counts, corpus_aer(counts), found, equal, tuple(tried))


def contradicted(reading: Reading, facts: Facts) -> Candidate | None:
    """The bases changed that the indices of the files contradict, if that lowers AER."""
    found: Candidate | None = None
    for change, base, bases in (
        (gold_base(facts), reading.gold_base, facts.gold_bases),
        (hyp_base(facts), reading.hyp_base, facts.hyp_bases),
    ):
        if base not in bases:
            before, made = (found.reading, found.changes) if found else (reading, ())
            for candidate in _candidate(made, change, before, facts):
                if candidate.aer < corpus_aer(before.counts()):
                    found = candidate
    return found


def singles(reading: Reading, facts: Facts, made: tuple[Changed, ...] = ()) -> Iterator[Candidate]:
    """Each change after those that have been ``made``."""
    for change in chain(*families(facts)):
        yield from _candidate(made, change, reading, facts)


def pairs(reading: Reading, facts: Facts, made: tuple[Changed, ...] = ()) -> Iterator[Candidate]:
    """Each two changes of different families after those that have been ``made``."""
    for first, second in combinations(families(facts), 2):
        for change in first:
            if (one := change(reading)) is not None:
                for then in second:
                    yield from _candidate((*made, one), then, one.reading, facts)


def _candidate(before: tuple[Changed, ...], change: Change, reading: Reading, facts: Facts) -> Iterator[Candidate]:
    if (made := change(reading)) is not None:
        counts = made.reading.counts()
        yield Candidate((*before, made), counts, corpus_aer(counts), outside(made.reading, facts.lengths))


def corpus_aer(counts: Counts, sentences: IntArray | None = None) -> float:
    """AER of a corpus, a fraction, from the counts of its sentences, or of some of them (their numbers)."""
    arrays = counts.arrays() if sentences is None else (values[sentences] for values in counts.arrays())
    return float(aer(Counts(*arrays).total()))


def outside(reading: Reading, lengths: tuple[IntArray, IntArray] | None) -> int:
    """How many links of gold and hypothesis lie outside their sentence pair."""
    if lengths is None:
        return 0
    return sum(int(outside_of(links.possible, lengths).sum()) for links in (reading.gold, reading.hypothesis))


def outside_of(links: LinkTable, lengths: tuple[IntArray, IntArray]) -> NDArray[np.bool_]:
    """Which links of a :class:`Reading` lie outside their sentence pair, or belong to none; [links]."""
    result = np.zeros(len(links), dtype=np.bool_)
    for index, words in zip((links.source, links.target), lengths):
        padded = np.zeros(max(links.sentences, len(words)), dtype=np.int64)
        padded[: len(words)] = words
        result |= (index < MARGIN) | (index - MARGIN >= padded[links.sentence])
    return result


def leading(group: Sequence[Candidate], before: Counts) -> tuple[Candidate | None, tuple[Candidate, ...]]:
    """The candidate of lowest AER, and those that equal it; None if another one comes close where it matters.

    Of equals the one that leaves the fewest links outside the texts leads, then the first; the others are given
    back if they leave as few.
    """
    if not group:
        return None, ()
    ranked = sorted(group, key=lambda candidate: (candidate.aer, candidate.outside))
    best = ranked[0]
    touched = changed_sentences(before, best.counts)
    same = [candidate for candidate in ranked if not changed_sentences(candidate.counts, best.counts).size]
    aers = [corpus_aer(candidate.counts, touched) for candidate in ranked if candidate not in same]
    if aers and min(aers) - corpus_aer(best.counts, touched) < MIN_LEAD:
        return None, ()
    return best, tuple(candidate for candidate in same[1:] if candidate.outside == best.outside)


def changed_sentences(before: Counts, after: Counts) -> IntArray:
    """The numbers of the sentences whose counts differ."""
    differ = np.any([one != other for one, other in zip(before.arrays(), after.arrays())], axis=0)
    return np.flatnonzero(differ)


def explains(before: Counts, after: Counts) -> bool:
    """Whether going from one reading to another is a gain by :data:`CRITERION` (rivals apart)."""
    touched = changed_sentences(before, after)
    if not touched.size:
        return False
    old, new = (corpus_aer(counts, touched) for counts in (before, after))
    gain = aer(before) - aer(after)
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    return (
        old - new >= MIN_DROP
        and new <= MAX_RATIO * old
        and better - worse >= MIN_BETTER
        and better >= MIN_BETTER_PART * (better + worse)
    )


def diagonal(lengths: tuple[IntArray, IntArray]) -> LinkTable:
    """Each target word linked to the source word at the same part of the sentence; counts from 0."""
    source, target = lengths
    target = np.where(source > 0, target, 0)
    sentence = np.repeat(np.arange(len(target)), target)
    j = np.arange(len(sentence)) - np.repeat(np.cumsum(target) - target, target)
    i = (2 * j + 1) * source[sentence] // (2 * np.maximum(target[sentence], 1))
    return LinkTable.build(sentence, i, j, len(target))


def linked_lengths(links: LinkTable) -> tuple[IntArray, IntArray]:
    """Lengths that just hold all links, which count from 0; [sentences] a side: what is known of them without texts."""
    lengths = np.zeros((2, links.sentences), dtype=np.int64)
    for side, index in enumerate((links.source, links.target)):
        np.maximum.at(lengths[side], links.sentence, index + 1)
    return lengths[0], lengths[1]
