"""Moves BIO labels from the words of a sentence to the words of its translation, along word links.

A *span* is a run of words with one label, ``B-PER I-PER``.  Each span goes to one run of target words or to none:

1. A target word counts for a span with the weight of its links to words of the span, minus :data:`OUTSIDE` times that
   of its links to words without a label: on a tie it keeps the label.  A link weighs its confidence, or 1.
2. The span takes the run of target words with the largest sum that begins and ends with words linked to the span.  A
   word between them that is not linked to the span costs the weight of its own links, at least :data:`GAP`.  So a gap
   is filled where the links on both sides outweigh it.  If the sum is not above 0, the span has no counterpart.
3. Spans take their words in the order of these sums; no word is taken twice, and a run never goes across a taken word.
   Spans of one type that touch stay apart, as each begins with ``B-``.
4. With the words of both sides, the borders are trimmed: of punctuation, where the source span has none at that border;
   and of uncapitalised words up to the first capitalised one (*of* in *of Austria*, for *Österreichs*), if each source
   word of the span keeps another link inside.  A word that the source span has too (*van* Gogh) stays.

Rule 2 is a maximum-sum interval (Kadane's algorithm; Bentley 1984).  Labels are projected since Yarowsky et al. (2001).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple, Union

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.links.formats import Link, check_inside
from alignment_eval.maps.sentence import is_punctuation

#: Links, with the confidence (0 to 1) of each if there are any.
WeightedLinks = Union[Collection[Link], Mapping[Link, float]]
Words = Sequence[str]

#: Schemes of labels: the marks of the first, inner and last word of a span, and of a single word.  In IOB1 a span that
#: touches one of its type before it begins with B.
SCHEMES = {"bio": "BIIB", "iob1": "IIII", "bioes": "BIES", "bilou": "BILU"}
_LABEL = re.compile(r"O|[BIESLU]-.+", re.DOTALL)
#: A link to a word without a label weighs this much of one to a word with a label: less than 1, so that ties keep it.
OUTSIDE = 0.9
#: What a word without links costs inside a run: three in a row outweigh a link.
GAP = 0.3
#: A share in float32 may be above 1 by so much.
_ROUNDING = 1e-6


class LabelSpan(NamedTuple):
    """Words ``start`` to ``end`` - 1 have one label of this type."""

    start: int
    end: int
    type: str


def project_labels(
    labels: Sequence[str], links: WeightedLinks, size: int, words: tuple[Words, Words] | None = None
) -> list[str]:
    """BIO labels of the target words of a sentence pair.

    Args:
        labels: of the source words: ``O``, ``B-TYPE``, ``I-TYPE``.
        links: source-target links from 0, from any aligner.
        size: the number of target words.
        words: source and target words, cased, to trim the borders of spans by; None: they are not trimmed.

    Returns:
        [size] labels.  Each source span becomes one span of its type or none.

    Raises:
        InputError: a label is not BIO; a link is outside the sentence pair; a confidence is not in 0 to 1; ``words``
            do not fit.
    """
    spans = spans_of(labels)
    return labels_of(project_spans(spans, links, (len(labels), size), words), size)


def spans_of(labels: Sequence[str], scheme: str = "bio") -> list[LabelSpan]:
    """The spans of labels in a scheme of :data:`SCHEMES`; raises InputError if they are not in it."""
    if (found := mismatch(labels, scheme)) is not None:
        n, expected = found
        raise InputError(
            f"label {shown(labels[n])} after {shown(labels[n - 1] if n else 'O')}: expected {printable(expected, 80)}; "
            f"convert the labels to {scheme.upper()}"
        )
    return _spans(labels)


def mismatch(labels: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """The first word whose label is not in a scheme, and the label that it should have; None: all are."""
    for n, label in enumerate(labels):
        if not _LABEL.fullmatch(label):
            return n, "O, B-TYPE or I-TYPE"
    expected = labels_of(_spans(labels), len(labels), scheme)
    return next(((n, wanted) for n, wanted in enumerate(expected) if wanted != labels[n]), None)


def _spans(labels: Sequence[str]) -> list[LabelSpan]:
    """The spans of labels in any scheme: one begins at B, S, U, behind E, L, S, U, and at another type."""
    spans: list[LabelSpan] = []
    before = "O"
    for n, label in enumerate(labels):
        if label != "O" and (label[0] in "BSU" or before[0] in "ELSU" or before[2:] != label[2:]):
            spans.append(LabelSpan(n, n + 1, label[2:]))
        elif label != "O":
            spans[-1] = spans[-1]._replace(end=n + 1)
        before = label
    return spans


def labels_of(spans: Iterable[LabelSpan | None], size: int, scheme: str = "bio") -> list[str]:
    """The labels of ``size`` words in a scheme of :data:`SCHEMES`; None is no span."""
    first, inner, last, single = iter(SCHEMES[scheme])
    labels = ["O"] * size
    for span in sorted(filter(None, spans)):
        marks = single if span.end - span.start == 1 else first + inner * (span.end - span.start - 2) + last
        if scheme == "iob1" and span.start and labels[span.start - 1][2:] == span.type:
            marks = "B" + marks[1:]
        labels[span.start : span.end] = [f"{mark}-{span.type}" for mark in marks]
    return labels


def project_spans(
    spans: Sequence[LabelSpan], links: WeightedLinks, sizes: tuple[int, int], words: tuple[Words, Words] | None = None
) -> list[LabelSpan | None]:
    """The counterpart of each source span, None for one without; links and words as for :func:`project_labels`.

    ``spans`` are disjoint, in any order; ``sizes`` are the numbers of source and target words.
    """
    weights = _checked(links, sizes)
    if words is not None and tuple(map(len, words)) != sizes:
        raise InputError(f"{len(words[0])} and {len(words[1])} words, but links of {sizes[0]} and {sizes[1]} words")
    target = _Target(spans, weights, sizes[1])
    first = {k: run for k in range(len(spans)) if (run := target.best_run(k)) is not None}
    linked = defaultdict[int, list[int]](list)  # source word -> its target words
    for i, j in weights:
        linked[i].append(j)
    counterparts: list[LabelSpan | None] = [None] * len(spans)
    for k in sorted(first, key=lambda k: -first[k].weight):
        run = target.best_run(k)  # of the words that are left
        if run is not None:
            start, end = run[1:] if words is None else _trimmed(spans[k], run.start, run.end, linked, words)
            target.taken[start:end] = bytes([1]) * (end - start)
            counterparts[k] = LabelSpan(start, end, spans[k].type)
    return counterparts


def _checked(links: WeightedLinks, sizes: tuple[int, int]) -> Mapping[Link, float]:
    """The weight of each link."""
    weights = links if isinstance(links, Mapping) else dict.fromkeys(links, 1.0)
    check_inside(weights, sizes)
    for (i, j), weight in weights.items():
        if not 0 <= weight <= 1 + _ROUNDING:  # nor is NaN
            raise InputError(
                f"link {i}-{j} has the confidence {weight}: expected 0 to 1; scale them, or drop them with align-eval "
                f"convert --to pharaoh"
            )
    return weights


class _Run(NamedTuple):
    """Target words ``start`` to ``end`` - 1, and how much speaks for them."""

    weight: float
    start: int
    end: int


class _Target:
    """The words of the target sentence: what speaks for each span, and which words are ``taken`` by one."""

    def __init__(self, spans: Sequence[LabelSpan], weights: Mapping[Link, float], size: int) -> None:
        self.taken = bytearray(size)
        #: for each span: target word -> weight of its links to the span
        self._inside = [defaultdict[int, float](float) for _ in spans]
        self._outside = [0.0] * size
        owners = {i: k for k, span in enumerate(spans) for i in range(span.start, span.end)}
        costs = [0.0] * size
        for (i, j), weight in sorted(weights.items()):  # sorted: sums do not depend on the order of the links
            owner = owners.get(i)
            if owner is None:
                weight *= OUTSIDE
                self._outside[j] += weight
            elif weight:
                self._inside[owner][j] += weight
            costs[j] += weight
        #: cost of the words before each word, of those not linked to the span
        self._costs = [0.0, *accumulate(max(cost, GAP) for cost in costs)]

    def best_run(self, k: int) -> _Run | None:
        """The run of free words of span ``k``, None if nothing speaks for one; of equal ones the first."""
        best = current = _Run(0.0, 0, 0)
        for j in sorted(j for j in self._inside[k] if not self.taken[j]):
            left = current.weight - (self._costs[j] - self._costs[current.end])
            if left <= 0 or self.taken.find(1, current.end, j) >= 0:  # a new run that begins here is better
                left, current = 0.0, _Run(0.0, j, j)
            current = _Run(left + (self._inside[k][j] - self._outside[j]), current.start, j + 1)
            best = max(best, current, key=lambda run: run.weight)
        return best if best.weight > 0 else None


def _trimmed(
    span: LabelSpan, start: int, end: int, linked: Mapping[int, Sequence[int]], words: tuple[Words, Words]
) -> tuple[int, int]:
    """The borders of a run after rule 4."""
    source, target = words
    sources = defaultdict[int, set[int]](set)  # target word -> linked source words of the span
    for i in range(span.start, span.end):
        for j in linked.get(i, ()):
            sources[j].add(i)
    own = set(source[span.start : span.end])
    run = list(range(start, end))
    for border in (span.start, span.end - 1):  # first from the left, then the run reversed
        if not is_punctuation(source[border]):
            marks = _leading(is_punctuation(target[j]) and target[j] not in own for j in run)
            run = run[marks:] or run
        small = _leading(target[j].islower() or is_punctuation(target[j]) for j in run)
        dropped, kept = run[:small], run[small:]
        covered = set().union(*(sources[j] for j in kept))
        if kept and all(target[j] not in own and sources[j] <= covered for j in dropped):
            run = kept
        run.reverse()
    return run[0], run[-1] + 1


def _leading(flags: Iterable[bool]) -> int:
    """How many are true before the first that is not."""
    return sum(1 for _ in takewhile(bool, flags))
