"""Finds a misreading of the files that explains a high AER: other indices, directions, or another order of lines.

All of this looks at the first :data:`LOOKED_AT` sentences only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, islice, product, repeat
from typing import TypeVar

import numpy as np

from alignment_eval.errors import InputError, shown
from alignment_eval.links.checks import swap_advice
from alignment_eval.links.read import AlignmentFile
from alignment_eval.links.sets import GoldSentence, Links, transpose
from alignment_eval.links.text import token_lines
from alignment_eval.scoring.aer import Counts, aer, count

T = TypeVar("T")
LOOKED_AT = 10_000
#: Another order of the lines is looked for in files of at most this many sentences: each is compared with each.
ORDERED = 1000
#: Lines count as a file in another order if at least this share of the sentences and lines choose each other.
_MUTUAL = 0.5
#: A warning is given if exchanging source and target lowers AER by more than this fraction.
SUSPICIOUS_GAIN = 0.2

#: A change explains an AER if it lowers AER, over the sentences that it changes, by at least this fraction
_MIN_DROP = 0.1
#: and to at most this part,
_MAX_RATIO = 0.75
#: and if it improves at least this part of the sentences whose AER changes,
_MIN_BETTER_PART = 0.75
#: and at least this many more than it makes worse.
_MIN_BETTER = 10

_NOTHING: Links = frozenset()


@dataclass(frozen=True, eq=False)
class Reading:
    """The files read in one way: what to change for it (nothing: as they were read), and the counts."""

    changes: tuple[str, ...]
    counts: Counts

    @cached_property
    def aer(self) -> float:
        """AER of the corpus, a fraction."""
        return float(aer(self.counts.total()))


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What explains an AER.

    Attributes:
        readings: the files as they were read, then all other readings, lowest AER first.
        explanation: the reading that explains the AER; None if none does.
        context: AERs for comparison: what they are of -> fraction.
    """

    readings: tuple[Reading, ...]
    explanation: Reading | None
    context: dict[str, float]


def diagnose(hypothesis: AlignmentFile, gold: AlignmentFile) -> Diagnosis:
    """Compare all readings of the files: index bases × directions × doubled indices × lines shifted or reordered.

    A reading with more changes must explain the AER of the best reading with fewer.  If the files have unequal
    numbers of sentences, the shorter one is filled up with sentences without links.
    """
    size = min(max(len(hypothesis), len(gold)), LOOKED_AT)
    links = _filled(islice(hypothesis.each_links(), size), size, _NOTHING)
    truth = _filled(islice(gold, size), size, GoldSentence(_NOTHING))
    difference = len(gold) - len(hypothesis)
    readings = sorted(_readings(hypothesis, gold, links, truth, difference), key=lambda reading: len(reading.changes))
    best = as_read = readings[0]
    for _, group in groupby(readings, key=lambda reading: len(reading.changes)):
        candidate = min(group, key=lambda reading: reading.aer)
        if explains(best.counts, candidate.counts):
            best = candidate
    context = {
        "diagonal": _aer(map(diagonal, truth), truth),
        "possible_as_sure": _aer(links, [GoldSentence(sentence.possible) for sentence in truth]),
        "possible_dropped": _aer(links, [GoldSentence(sentence.sure) for sentence in truth]),
    }
    others = sorted(readings[1:], key=lambda reading: reading.aer)
    return Diagnosis((as_read, *others), None if best is as_read else best, context)


def _readings(
    hypothesis: AlignmentFile,
    gold: AlignmentFile,
    links: Sequence[Links],
    truth: Sequence[GoldSentence],
    difference: int,
) -> Iterator[Reading]:
    swap = _exchange(hypothesis, gold)
    base = hypothesis.base
    doubled = any(links) and all((index + base) % 2 == 0 for index in chain.from_iterable(chain.from_iterable(links)))
    ways = product(_base_changes(hypothesis, gold).items(), (False, True), (False, True) if doubled else (False,))
    for (shift, of_base), turned, halved in ways:
        whole = (of_base, swap if turned else "", "halve the indices of the hypothesis" if halved else "")
        changes = tuple(filter(None, whole))
        own = [frozenset((i // 2, j // 2) for i, j in sentence) for sentence in links] if halved else links
        moved = [frozenset((i + shift, j + shift) for i, j in sentence) for sentence in own]
        moved = list(map(transpose, moved)) if turned else moved
        counts = count(moved, truth)
        yield Reading(changes, counts)
        for by in sorted({difference} if difference else {-1, 1}):
            start = best_start(counts, count(move_lines(moved, by, 0), truth), by)
            if start + abs(by) < len(moved):
                lines = "1 line" if abs(by) == 1 else f"{abs(by)} lines"
                what = f"insert {lines} into" if by > 0 else f"remove {lines} from"
                advice = f"{what} the hypothesis at about line {start + 1} (or correct the gold)"
                yield Reading((*changes, advice), count(move_lines(moved, by, start), truth))
        if not difference and len(truth) <= ORDERED and (order := best_order(moved, truth)):
            yield Reading((*changes, order[0]), count([moved[line] for line in order[1]], truth))


def best_order(links: Sequence[Links], gold: Sequence[GoldSentence]) -> tuple[str, list[int]] | None:
    """The order in which the lines fit the gold best: what to do for it, and the line of each sentence.

    Each sentence of the gold chooses the line of the lowest AER, each line the sentence; most choices must be mutual.
    If these are one rotation or reversal, it is the order.
    """
    size = len(gold)
    cells = {cell: n for n, cell in enumerate(set().union(*links, *(sentence.possible for sentence in gold)))}
    found, wanted = np.zeros((2, size, len(cells)), dtype=np.float32)
    for n, (sentence, truth) in enumerate(zip(links, gold)):
        found[n, [cells[cell] for cell in sentence]] = 1
        wanted[n, [cells[cell] for cell in truth.possible]] = 1
        wanted[n, [cells[cell] for cell in truth.sure]] += 1
    totals = np.array([len(truth.sure) for truth in gold])[:, None] + found.sum(axis=1)
    fits = np.divide(wanted @ found.T, totals, out=np.zeros((size, size)), where=totals > 0)
    lines = fits.argmax(axis=1)
    mutual = np.flatnonzero((fits.argmax(axis=0)[lines] == np.arange(size)) & (fits.max(axis=1) > 0))
    if len(mutual) < max(_MIN_BETTER, _MUTUAL * size) or (lines[mutual] == mutual).mean() > _MUTUAL:
        return None
    by = int(np.bincount((lines[mutual] - mutual) % size).argmax())
    ends = (
        f"first {by} lines of the hypothesis to its end" if 2 * by <= size else f"last {size - by} lines to its start"
    )
    orders = {
        f"move the {ends}": (np.arange(size) + by) % size,
        "reverse the lines of the hypothesis": np.arange(size)[::-1],
    }
    for what, order in orders.items():
        if (order[mutual] == lines[mutual]).mean() > _MUTUAL:
            return what, order.tolist()
    order = np.full(size, -1)
    order[mutual] = lines[mutual]
    order[order < 0] = np.setdiff1d(np.arange(size), lines[mutual])
    return "put the lines of the hypothesis into the order of the gold", order.tolist()


def _exchange(hypothesis: AlignmentFile, gold: AlignmentFile) -> str:
    """What to do about exchanged directions."""
    return " or ".join(swap_advice(role, file.swap) for role, file in (("hyp", hypothesis), ("gold", gold)))


def _base_changes(hypothesis: AlignmentFile, gold: AlignmentFile) -> dict[int, str]:
    """What other bases add to the hypothesis's indices, relative to the gold's -> the options that say so.

    Only bases that the indices of a file allow are considered.
    """
    ways: dict[int, list[tuple[str, ...]]] = {}
    bases = product(*(sorted(file.file.bases | {file.base}) for file in (hypothesis, gold)))
    for hyp_base, gold_base in bases:
        options = (("hyp", hyp_base, hypothesis.base), ("gold", gold_base, gold.base))
        way = tuple(f"give --{role}-base {base}" for role, base, read in options if base != read)
        ways.setdefault(hypothesis.base - hyp_base - (gold.base - gold_base), []).append(way)
    fewest = {shift: min(map(len, some)) for shift, some in ways.items()}
    return {
        shift: " or ".join(" and ".join(way) for way in some if len(way) == fewest[shift])
        for shift, some in ways.items()
    }


def move_lines(links: Sequence[Links], by: int, start: int) -> list[Links]:
    """Shift the sentences from number ``start`` on by ``by``; the number of sentences stays the same.

    ``by`` > 0 inserts sentences without links before sentence ``start``, ``by`` < 0 removes sentences from there.
    """
    inserted = [_NOTHING] * max(by, 0)
    moved = [*links[:start], *inserted, *links[start + max(-by, 0) :]]
    return _filled(moved, len(links), _NOTHING)


def best_start(before: Counts, moved: Counts, by: int) -> int:
    """The first sentence to shift by ``by``, so that most links agree with the gold.

    ``before`` has the counts of each sentence as it is, ``moved`` the counts with all sentences shifted.
    """
    agreed = (counts.hypothesis_sure + counts.hypothesis_possible for counts in (before, moved))
    as_is, then = (np.concatenate([[0], np.cumsum(values)]) for values in agreed)
    rest = np.minimum(np.arange(len(as_is)) + max(by, 0), len(as_is) - 1)  # sentences that are inserted have no links
    return int((as_is - then[rest]).argmax())


def explains(before: Counts, after: Counts) -> bool:
    """Whether the change from one reading to another explains the AER of the first."""
    changed = np.any([old != new for old, new in zip(before.arrays(), after.arrays())], axis=0)
    old, new = (float(aer(counts.map(lambda values: values[changed]).total())) for counts in (before, after))
    gain = aer(before) - aer(after)
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    return (
        old - new >= _MIN_DROP
        and new <= _MAX_RATIO * old
        and better - worse >= _MIN_BETTER
        and better >= _MIN_BETTER_PART * (better + worse)
    )


def diagonal(gold: GoldSentence) -> Links:
    """Link each target word to the source word at the same relative position, up to the last words of the gold."""
    if not gold.possible:
        return _NOTHING
    height, width = (max(link[side] for link in gold.possible) + 1 for side in (0, 1))
    return frozenset(((2 * j + 1) * height // (2 * width), j) for j in range(width))


def direction_warning(hypothesis: AlignmentFile, gold: AlignmentFile) -> str | None:
    """A warning if the hypothesis fits the gold far better with source and target exchanged, else None.

    There are two signs: AER falls by more than :data:`SUSPICIOUS_GAIN`; or more than a few links go beyond all gold
    links of their sentence, and less than a quarter of them do when exchanged.  The second sign works for bad
    alignments too.
    """
    truth = list(islice(gold, LOOKED_AT))
    links = list(islice(hypothesis.each_links(), LOOKED_AT))
    ways = links, list(map(transpose, links))
    aers = [_aer(way, truth) for way in ways]
    beyond = [_beyond(way, truth) for way in ways]
    if aers[0] - aers[1] <= SUSPICIOUS_GAIN and not beyond[0] > max(10, 4 * beyond[1]):
        return None
    return (
        f"{hypothesis.file.name}: AER of {len(truth)} sentences is {100 * aers[0]:.2f} % with the links as they are "
        f"and {100 * aers[1]:.2f} % with source and target exchanged ({beyond[0]} and {beyond[1]} links go beyond the "
        f"gold's indices); if the direction is swapped, {_exchange(hypothesis, gold)}"
    )


def doubtful_warning(hypothesis: AlignmentFile, gold: AlignmentFile) -> str | None:
    """A warning if the AER is above that of a diagonal, with what explains it, or if it is 0; else None.

    A few sentences, or gold without links, say nothing, unless gold and hypothesis are the same file.
    """
    name = hypothesis.file.name
    truth = list(islice(gold, LOOKED_AT))
    if not any(sentence.possible for sentence in truth):
        return None
    if hypothesis.file.hash == gold.file.hash:
        return f"{name}: gold and hypothesis have the same content; give the links that are to be scored"
    if len(truth) < _MIN_BETTER:
        return None
    own = _aer(islice(hypothesis.each_links(), LOOKED_AT), truth)
    straight = _aer(map(diagonal, truth), truth)
    if own == 0:
        return f"{name}: AER 0: all links are those of the gold; check that the hypothesis was not made from the gold"
    if own <= straight:
        return None
    if not hypothesis.file.possible:
        advice = "it has no links; check how it was made, and with which threshold for confidences"
    elif (explanation := diagnose(hypothesis, gold).explanation) is not None:
        advice = f"AER is {100 * explanation.aer:.2f} % if you {' and '.join(explanation.changes)}"
    else:
        advice = "no other reading of the files explains it; check that both are of the same sentences"
    return f"{name}: AER {100 * own:.2f} % is above the {100 * straight:.2f} % of a diagonal; {advice}"


def _filled(items: Iterable[T], size: int, filler: T) -> list[T]:
    """The first ``size`` items, filled up to as many."""
    return list(islice(chain(items, repeat(filler)), size))


def _aer(links: Iterable[Links], gold: Sequence[GoldSentence]) -> float:
    return float(aer(count(links, gold).total()))


def _beyond(links: Sequence[Links], gold: Sequence[GoldSentence]) -> int:
    """The number of links with a word beyond all words that the gold links; 0 in sentences without gold links."""
    total = 0
    for sentence, truth in zip(links, gold):
        if truth.possible:
            height, width = (max(link[side] for link in truth.possible) for side in (0, 1))
            total += sum(i > height or j > width for i, j in sentence)
    return total


def differing_words(gold_text: str, text: str) -> str | None:
    """What differs between the words of the gold's text and those of the text of the hypothesis, if anything."""
    lines, others = (list(islice(token_lines(path), LOOKED_AT)) for path in (gold_text, text))
    if len(lines) != len(others):
        raise InputError(f"{gold_text} and {text} have different numbers of lines; give texts of the same sentences")
    differ = [n for n, (words, tokens) in enumerate(zip(lines, others)) if words != tokens]
    if not differ:
        return None
    n = differ[0]
    words, tokens = b" ".join(lines[n]).decode(), b" ".join(others[n]).decode()
    return (
        f"{text} has other words than {gold_text} in {len(differ)} of {len(lines)} lines, the first is line {n + 1} "
        f"({shown(tokens)} for {shown(words)}); score links between the gold's words"
    )
