"""Decides which misreading of the files, if any, explains a high AER, by :data:`CRITERION`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.misreadings import FileEvidence, Manner, Reading, outside
from alignment_eval.scoring.aer import Counts, aer

IntArray = NDArray[np.int64]

#: Over the sentences that it changes, a correction must lower AER by at least this fraction,
MIN_DROP = 0.1
#: and to at most this part of the AER before.
MAX_RATIO = 0.75
#: It must improve at least this part of the sentences whose AER changes,
MIN_BETTER_PART = 0.75
#: and at least this many more sentences than it makes worse.
MIN_BETTER = 10
#: Every other reading with the same number of corrections must have an AER that is higher by at least this much.
MIN_LEAD = 0.05
CRITERION = (
    f"over the sentences that it changes, AER falls by {100 * MIN_DROP:.0f} points or more and to {MAX_RATIO:.0%} or "
    f"less; {MIN_BETTER_PART:.0%} of the sentences whose AER changes get better, {MIN_BETTER} more than get worse; no "
    f"other reading is within {100 * MIN_LEAD:.0f} points; or the indices themselves contradict the base"
)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The explanation of an AER.

    Attributes:
        read: the files as the user reads them.
        explanation: the reading that explains the AER of ``read``; None if none does.
        equal: readings with exactly the same counts, which the links cannot distinguish from the explanation.
        tried: all other readings, lowest AER first.
    """

    read: Reading
    explanation: Reading | None
    equal: tuple[Reading, ...]
    tried: tuple[Reading, ...]


def diagnose(evidence: FileEvidence, manner: Manner) -> Diagnosis:
    """Try every other reading, and return the one that explains the AER of the files read in ``manner``, if any.

    A base that the indices themselves contradict is corrected first.  A reading with more corrections must improve on
    the best reading with fewer, by the same criterion.
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
    """The reading with the lowest AER, and its equals; None if another reading comes close over the changed sentences.

    Among equals, the one with the fewest links outside the texts leads, then the first.  The others are returned if
    they have the same number of links outside.
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
    """Whether the change from one reading to another meets :data:`CRITERION`, except for other readings."""
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
    """The number of links of gold and hypothesis outside the texts; 0 without texts."""
    if evidence.lengths is None:
        return 0
    return sum(outside(links, evidence.lengths) for links in (reading.gold.possible, reading.hypothesis))
