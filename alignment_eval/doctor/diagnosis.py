"""Which misreading of the files, if any, explains a high AER; :data:`CRITERION` says when one is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.misreadings import FileEvidence, Manner, Reading, outside
from alignment_eval.scoring.aer import Counts, aer

IntArray = NDArray[np.int64]

#: A correction must lower AER by this much (a fraction) …
MIN_DROP = 0.1
#: … to at most this part of what it was, both over the sentences that it changes, …
MAX_RATIO = 0.75
#: … and be better in this part of the sentences whose AER it changes, …
MIN_BETTER_PART = 0.75
#: … and in this many more than it is worse in; …
MIN_BETTER = 10
#: … and every other reading of as many corrections must have an AER that is higher by this much.
MIN_LEAD = 0.05
CRITERION = (
    f"over the sentences that it changes, AER falls by {100 * MIN_DROP:.0f} points or more and to {MAX_RATIO:.0%} or "
    f"less; {MIN_BETTER_PART:.0%} of the sentences whose AER changes get better, {MIN_BETTER} more than get worse; no "
    f"other reading is within {100 * MIN_LEAD:.0f} points; or the indices themselves contradict the base"
)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What explains an AER.

    Attributes:
        read: the files as the user reads them.
        explanation: the reading that explains the AER of ``read``; None if none does.
        equal: readings that have the very same counts: the links cannot tell them from the explanation.
        tried: all other readings, lowest AER first.
    """

    read: Reading
    explanation: Reading | None
    equal: tuple[Reading, ...]
    tried: tuple[Reading, ...]


def diagnose(evidence: FileEvidence, manner: Manner) -> Diagnosis:
    """Try every other reading, and name the one that explains the AER of the files read in ``manner``, if any does.

    A base that the indices themselves contradict is put right beforehand.  A reading of more corrections must explain
    more than the best one of fewer does, by the same criterion.
    """
    read = evidence.read(manner)
    start = evidence.without_contradictions(manner)
    found = start if start.corrections else None
    equal: tuple[Reading, ...] = ()
    tried = sorted(evidence.others(start, manner), key=lambda other: len(other.corrections))
    for _, group in groupby(tried, key=lambda other: len(other.corrections)):
        best, same = leading(list(group), start.counts, evidence)
        if best is not None and explains((found or start).counts, best.counts):
            found, equal = best, same
    return Diagnosis(read, found, equal, tuple(sorted(tried, key=lambda other: other.aer)))


def leading(
    group: Sequence[Reading], before: Counts, evidence: FileEvidence
) -> tuple[Reading | None, tuple[Reading, ...]]:
    """The reading of lowest AER, and those that equal it; None if another one comes close where it matters.

    Of equals the one that leaves the fewest links outside the texts leads, then the first; the others are given
    back if they leave as few.
    """
    ranked = sorted(group, key=lambda other: (other.aer, _outside(other, evidence)))
    best = ranked[0]
    touched = changed_sentences(before, best.counts)
    same = [other for other in ranked if not changed_sentences(other.counts, best.counts).size]
    aers = [_aer(other.counts, touched) for other in ranked if other not in same]
    if aers and min(aers) - _aer(best.counts, touched) < MIN_LEAD:
        return None, ()
    return best, tuple(other for other in same[1:] if _outside(other, evidence) == _outside(best, evidence))


def explains(before: Counts, after: Counts) -> bool:
    """Whether going from one reading to another is a gain by :data:`CRITERION` (rivals apart)."""
    touched = changed_sentences(before, after)
    if not touched.size:
        return False
    old, new = _aer(before, touched), _aer(after, touched)
    gain = aer(before) - aer(after)
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    return (
        old - new >= MIN_DROP
        and new <= MAX_RATIO * old
        and better - worse >= MIN_BETTER
        and better >= MIN_BETTER_PART * (better + worse)
    )


def changed_sentences(before: Counts, after: Counts) -> IntArray:
    """The numbers of the sentences whose counts differ."""
    differ = np.any([one != other for one, other in zip(before.arrays(), after.arrays())], axis=0)
    return np.flatnonzero(differ)


def _aer(counts: Counts, sentences: IntArray) -> float:
    return float(aer(Counts(*(values[sentences] for values in counts.arrays())).total()))


def _outside(reading: Reading, evidence: FileEvidence) -> int:
    """How many links of gold and hypothesis lie outside the texts; 0 without texts."""
    if evidence.lengths is None:
        return 0
    return sum(outside(links, evidence.lengths) for links in (reading.gold.possible, reading.hypothesis))
