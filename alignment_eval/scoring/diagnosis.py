"""Finds a misreading of the files that explains a high AER: another index base, the other direction, shifted lines.

All of this looks at the first :data:`LOOKED_AT` sentences only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product, repeat
from typing import NamedTuple

import numpy as np

from alignment_eval.links.files import AlignmentFile
from alignment_eval.links.formats import GoldSentence, Links, transpose
from alignment_eval.scoring.aer import Counts, aer, count, score

LOOKED_AT = 10_000
#: A warning is given if exchanging source and target lowers AER by more than this fraction.
_SUSPICIOUS_GAIN = 0.2

#: A change explains an AER if it lowers AER, over the sentences that it changes, by at least this fraction
_MIN_DROP = 0.1
#: and to at most this part,
_MAX_RATIO = 0.75
#: and if it improves at least this part of the sentences whose AER changes,
_MIN_BETTER_PART = 0.75
#: and at least this many more than it makes worse; of fewer sentences, at least half, and then it is only likely.
MIN_BETTER = 10

_NOTHING: Links = frozenset()


class Reading(NamedTuple):
    """The files read in one way: what to change for it (nothing: as they were read), and the counts."""

    changes: tuple[str, ...]
    counts: Counts

    @property
    def aer(self) -> float:
        """AER, a fraction."""
        return float(aer(self.counts.total()))


class Diagnosis(NamedTuple):
    """What explains an AER."""

    readings: tuple[Reading, ...]  #: the files as they were read, then all other readings, lowest AER first
    explanation: Reading | None  #: the reading that explains the AER; None if none does
    diagonal: float  #: AER of a diagonal alignment, a fraction, to compare with


def diagnose(hypothesis: AlignmentFile, gold: AlignmentFile) -> Diagnosis:
    """Compare all readings of the files: index bases × directions × shifted lines.

    A reading with more changes must explain the AER of the best reading with fewer.  If the files have unequal
    numbers of sentences, the shorter one is filled up with sentences without links.
    """
    size = min(max(len(hypothesis), len(gold)), LOOKED_AT)
    links = list(islice(chain(hypothesis.each_links(), repeat(_NOTHING)), size))
    truth = list(islice(chain(gold, repeat(GoldSentence(_NOTHING))), size))
    as_read, *others = _readings(hypothesis, gold, links, truth)
    others.sort(key=lambda reading: reading.aer)
    best, least = as_read, MIN_BETTER if size >= MIN_BETTER else (size + 1) // 2
    for changes in (1, 2, 3):
        candidate = next((reading for reading in others if len(reading.changes) == changes), best)
        if explains(best.counts, candidate.counts, least):
            best = candidate
    return Diagnosis((as_read, *others), None if best is as_read else best, score(map(diagonal, truth), truth).aer)


def _readings(
    hypothesis: AlignmentFile, gold: AlignmentFile, links: Sequence[Links], truth: Sequence[GoldSentence]
) -> Iterator[Reading]:
    """All readings; the first is the files as they were read."""
    difference = len(gold) - len(hypothesis)
    for (add, of_base), turned in product(_base_changes(hypothesis, gold).items(), (False, True)):
        changes = (*[of_base] * bool(of_base), *[_exchange(gold)] * turned)
        moved = [frozenset((i + add, j + add) for i, j in sentence) for sentence in links]
        moved = list(map(transpose, moved)) if turned else moved
        counts = count(moved, truth)
        yield Reading(changes, counts)
        for by in [difference] if difference else (-1, 1):
            start = _best_start(counts, count(_shift(moved, by, 0), truth), by)
            if start + abs(by) < len(moved):
                lines = "1 line" if abs(by) == 1 else f"{abs(by)} lines"
                what = f"insert {lines} into" if by > 0 else f"remove {lines} from"
                advice = f"{what} the hypothesis at about line {start + 1} (or correct the gold)"
                yield Reading((*changes, advice), count(_shift(moved, by, start), truth))


def _exchange(gold: AlignmentFile) -> str:
    """What to do about exchanged directions; no option exchanges hypotheses."""
    option = "omit --gold-swap" if gold.swap else "give --gold-swap"
    return f"exchange the hypothesis with align-eval convert --from-swap --to pharaoh or {option}"


def _base_changes(hypothesis: AlignmentFile, gold: AlignmentFile) -> dict[int, str]:
    """What other bases add to the hypothesis's indices, relative to the gold's -> the options that say so.

    Only bases that the indices of a file allow are considered; two that are changed alike change nothing.
    """
    changes: dict[int, list[str]] = {0: []}
    for file, sign in ((hypothesis, 1), (gold, -1)):
        for base in sorted(file.bases - {file.base}):
            changes.setdefault(sign * (file.base - base), []).append(file.advise("give", f"base {base}"))
    return {add: " or ".join(options) for add, options in changes.items()}


def _shift(links: Sequence[Links], by: int, start: int) -> list[Links]:
    """Insert ``by`` sentences without links before sentence ``start``, or remove -``by``; the number stays the same."""
    shifted = [*links[:start], *[_NOTHING] * by, *links[start + max(-by, 0) :], *[_NOTHING] * -by]
    return shifted[: len(links)]


def _best_start(before: Counts, shifted: Counts, by: int) -> int:
    """The first sentence to shift by ``by``, so that most links agree; ``shifted``: if all sentences are shifted."""
    agreed = (counts.hypothesis_sure + counts.hypothesis_possible for counts in (before, shifted))
    as_is, then = (np.concatenate([[0], np.cumsum(values)]) for values in agreed)
    rest = np.minimum(np.arange(len(as_is)) + max(by, 0), len(as_is) - 1)  # sentences that are inserted have no links
    return int((as_is - then[rest]).argmax())


def explains(before: Counts, after: Counts, least: int = MIN_BETTER) -> bool:
    """Whether the change from one reading to another, better in so many sentences, explains the AER of the first."""
    changed = np.any([old != new for old, new in zip(before, after)], axis=0)
    old, new = (float(aer(Counts(*(values[changed] for values in counts)).total())) for counts in (before, after))
    gain = aer(before) - aer(after)
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    return (
        old - new >= _MIN_DROP
        and new <= _MAX_RATIO * old
        and better - worse >= least
        and better >= _MIN_BETTER_PART * (better + worse)
    )


def diagonal(gold: GoldSentence) -> Links:
    """Link each target word to the source word at the same relative position, up to the last words of the gold."""
    height, width = (1 + max(words) for words in zip(*gold.possible)) if gold.possible else (0, 0)
    return frozenset(((2 * j + 1) * height // (2 * width), j) for j in range(width))


def doubts(hypothesis: AlignmentFile, gold: AlignmentFile) -> str | None:
    """What is doubtful about an AER, for a warning: the direction, the same file twice, 0, or worse than a diagonal.

    Two signs say that source and target are exchanged: it lowers AER by more than :data:`_SUSPICIOUS_GAIN`; or more
    than a few links go beyond all gold links of their sentence, and less than a quarter of them do when exchanged.  The
    second sign works for bad alignments too.  An AER of a few sentences is doubtful for no other reason.
    """
    name = hypothesis.name
    truth = list(islice(gold, LOOKED_AT))
    links = list(islice(hypothesis.each_links(), LOOKED_AT))
    if not any(sentence.possible for sentence in truth):
        return None
    if hypothesis.hash == gold.hash:
        return f"{name}: gold and hypothesis have the same content; give the links that are to be scored"
    directions = links, list(map(transpose, links))
    own, exchanged = (score(direction, truth).aer for direction in directions)
    beyond, beyond_exchanged = (sum(map(_beyond, direction, truth)) for direction in directions)
    if own - exchanged > _SUSPICIOUS_GAIN or beyond > max(10, 4 * beyond_exchanged):
        return (
            f"{name}: AER of {len(truth)} sentences is {100 * own:.2f} % with the links as they are and "
            f"{100 * exchanged:.2f} % with source and target exchanged ({beyond} and {beyond_exchanged} links go "
            f"beyond the gold's indices); if the direction is swapped, {_exchange(gold)}"
        )
    straight = score(map(diagonal, truth), truth).aer
    if len(truth) < MIN_BETTER or 0 < own <= straight:
        return None
    if own == 0:
        return f"{name}: AER 0: the links equal the gold; check that the hypothesis was not made from the gold"
    if not hypothesis.possible:
        advice = "it has no links; check how it was made, and with which threshold for confidences"
    elif (explanation := diagnose(hypothesis, gold).explanation) is not None:
        advice = f"AER is {100 * explanation.aer:.2f} % if you {' and '.join(explanation.changes)}"
    else:
        advice = "no other reading of the files explains it; check that both are of the same sentences"
    return f"{name}: AER {100 * own:.2f} % is above the {100 * straight:.2f} % of a diagonal; {advice}"


def _beyond(links: Links, gold: GoldSentence) -> int:
    """The number of links with a word beyond all words that the gold links; 0 without gold links."""
    if not gold.possible:
        return 0
    last_i, last_j = map(max, zip(*gold.possible))
    return sum(i > last_i or j > last_j for i, j in links)
