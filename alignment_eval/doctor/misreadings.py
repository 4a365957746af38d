"""Other readings of gold and hypothesis: another index base or direction, shifted lines, words instead of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.retokenise import TokenWords, words_of_tokens
from alignment_eval.formats.checks import CONTRADICTED, sentences_with_one
from alignment_eval.links.table import GoldTable, LinkTable, first_with
from alignment_eval.scoring.aer import Counts, aer, count
from alignment_eval.scoring.direction import LOOKED_AT

IntArray = NDArray[np.int64]
#: How two files are read: the options gold-base, hyp-base, gold-swap and hyp-swap of align-eval score, without ``--``.
Manner = Mapping[str, int]

#: Lines are shifted by at most this number, and by the difference of the files' numbers of lines.
MAX_MOVED = 3
#: Tables cannot hold -1, which index 0 becomes if it is read as 1-based; so all indices are stored increased by this.
MARGIN = 1
#: Name, fault and remedy of corrections.
_POSSIBLE = (
    "hyp-possible",
    "possible links (p, P) of the hypothesis were counted as links",
    "remove them from the hypothesis",
)
_TOKENS = (
    "tokens",
    "the hypothesis links the tokens of its texts (subwords, other tokens), not the gold's words",
    "score links between words, such as align-eval extract makes",
)


@dataclass(frozen=True)
class Correction:
    """A correction: what was misread (``fault``) and what to do (``remedy``), both in words."""

    name: str
    fault: str
    remedy: str

    @classmethod
    def of(cls, option: str, value: int) -> Correction:
        """The correction that sets one option of a manner."""
        role, what = option.split("-")
        file = {"gold": "gold", "hyp": "hypothesis"}[role]
        if what == "base":
            fault = f"the {file} counts words from {value}, but was read as counting from {1 - value}"
            return cls(option, fault, f"give --{option} {value}")
        fault = f"the {file} has its links in {'target-source' if value else 'source-target'} order"
        return cls(option, fault, f"give --{option}" if value else f"omit --{option}")


@dataclass(frozen=True, eq=False)
class Reading:
    """Gold and hypothesis, read in one manner: source-target links that count from :data:`MARGIN`.

    ``corrections`` are the differences from the files as the user reads them.
    """

    manner: Manner
    gold: GoldTable
    hypothesis: LinkTable
    corrections: tuple[Correction, ...] = ()

    @cached_property
    def counts(self) -> Counts:
        """The four counts of each sentence."""
        return count(self.hypothesis, self.gold)

    @property
    def aer(self) -> float:
        """AER of the corpus, a fraction."""
        return float(aer(self.counts.total()))

    @property
    def name(self) -> str:
        """The names of the corrections."""
        return " + ".join(correction.name for correction in self.corrections)

    def corrected(self, hypothesis: LinkTable, name: str, fault: str, remedy: str) -> Reading:
        """The same reading with other links of the hypothesis, and one more correction."""
        return replace(self, hypothesis=hypothesis, corrections=(*self.corrections, Correction(name, fault, remedy)))


@dataclass(frozen=True, eq=False)
class FileEvidence:
    """The evidence from the two files and the texts.

    Attributes:
        gold, hypothesis: the links with the indices of the files.
        gold_bases, hyp_bases: the index bases that they may have (:func:`plausible_bases`).
        lengths: number of words of each line, [sentences] for each side (source, target), if there are texts.
        words: for each side, the words of the tokens that the hypothesis may link, if tokens are not words.
    """

    gold: GoldTable
    hypothesis: GoldTable
    gold_bases: frozenset[int]
    hyp_bases: frozenset[int]
    lengths: tuple[IntArray, IntArray] | None = None
    words: tuple[TokenWords, TokenWords] | None = None

    def read(self, manner: Manner, first: Manner | None = None) -> Reading:
        """The files read in a manner; its differences from the manner ``first`` are corrections.

        Only the first ``LOOKED_AT`` sentences are read.  The shorter file is padded with sentences without links.
        """
        sentences = max(self.gold.sentences, self.hypothesis.sentences)
        files = []
        for role, links in (("gold", self.gold), ("hyp", self.hypothesis)):
            links = links.with_sentences(sentences).head(LOOKED_AT).shifted(MARGIN - manner[f"{role}-base"])
            files.append(links.transposed() if manner[f"{role}-swap"] else links)
        changed = [option for option in manner if first is not None and manner[option] != first[option]]
        corrections = tuple(Correction.of(option, manner[option]) for option in changed)
        return Reading(manner, files[0], files[1].possible, corrections)

    def without_contradictions(self, manner: Manner) -> Reading:
        """The files read in a manner, but with a base that the indices contradict corrected, if this lowers AER."""
        right = dict(manner)
        for option, bases in (("gold-base", self.gold_bases), ("hyp-base", self.hyp_bases)):
            right[option] = manner[option] if manner[option] in bases else 1 - manner[option]
        return min(self.read(manner), self.read(right, manner), key=lambda reading: reading.aer)

    def others(self, reading: Reading, first: Manner) -> Iterator[Reading]:
        """All other readings: each plausible base and direction, or ``reading`` with one other correction."""
        bases = product(sorted(self.gold_bases), sorted(self.hyp_bases))
        for (gold_base, hyp_base), swap in product(bases, (None, "hyp-swap", "gold-swap")):
            manner = {**first, "gold-base": gold_base, "hyp-base": hyp_base}
            if swap is not None:
                manner[swap] = not first[swap]
            if manner != reading.manner:
                yield self.read(manner, first)
        sure = self.hypothesis.sure
        if len(sure) < len(self.hypothesis.possible):
            links = replace(self, hypothesis=GoldTable(sure, sure)).read(reading.manner).hypothesis
            yield reading.corrected(links, *_POSSIBLE)
        if self.words is not None:
            yield reading.corrected(words_of_tokens(reading.hypothesis, *self.words, MARGIN), *_TOKENS)
        moves = {*range(-MAX_MOVED, MAX_MOVED + 1), self.gold.sentences - self.hypothesis.sentences}
        for by in sorted(moves - {0}):
            yield from _moved_lines(reading, by)


def plausible_bases(links: LinkTable) -> frozenset[int]:
    """The index bases that a file with these indices may have."""
    if first_with(links, 0) is not None:
        return frozenset({0})
    return frozenset({1} if sentences_with_one(links) >= CONTRADICTED else {0, 1})


def _moved_lines(reading: Reading, by: int) -> Iterator[Reading]:
    """The sentences of the hypothesis shifted by ``by`` lines, starting at the line where most links then agree."""
    hypothesis = reading.hypothesis
    start = best_start(reading.counts, count(move_lines(hypothesis, by, 0), reading.gold), by)
    if start + abs(by) >= hypothesis.sentences:
        return
    lines, are = (f"{abs(by)} lines", "are") if abs(by) > 1 else ("1 line", "is")
    fault, verb, sign = ("missing", "insert", "-") if by > 0 else ("too many", "remove", "+")
    yield reading.corrected(
        move_lines(hypothesis, by, start),
        "lines",
        f"{lines} {are} {fault} in the hypothesis at about line {start + 1}: from there on, line n of the gold belongs "
        f"to line n {sign} {abs(by)} of the hypothesis",
        f"{verb} {lines} there (or correct the gold, if the fault is in the gold)",
    )


def move_lines(links: LinkTable, by: int, start: int) -> LinkTable:
    """Shift the sentences from number ``start`` on by ``by``.

    ``by`` > 0 inserts sentences without links before sentence ``start``, ``by`` < 0 removes sentences from there.  The
    number of sentences stays the same; sentences beyond it are dropped.
    """
    sentence = links.sentence
    new = np.where(sentence < start, sentence, sentence + by)
    keep = (new < links.sentences) & ((sentence < start) | (new >= start))
    return LinkTable.build(new[keep], links.source[keep], links.target[keep], links.sentences)


def best_start(before: Counts, moved: Counts, by: int) -> int:
    """The first sentence to shift by ``by``, so that most links agree with the gold.

    ``before`` has the counts of each sentence as it is, ``moved`` the counts with all sentences shifted.
    """
    agreed = (counts.hypothesis_sure + counts.hypothesis_possible for counts in (before, moved))
    as_is, then = (np.concatenate([[0], np.cumsum(values)]) for values in agreed)
    rest = np.minimum(np.arange(len(as_is)) + max(by, 0), len(as_is) - 1)  # sentences that are inserted have no links
    return int((as_is - then[rest]).argmax())


def outside(links: LinkTable, lengths: tuple[IntArray, IntArray]) -> int:
    """The number of links of a :class:`Reading` that lie outside their sentence pair or belong to none."""
    found = np.zeros(len(links), dtype=np.bool_)
    for index, words in zip((links.source, links.target), lengths):
        padded = np.zeros(max(links.sentences, len(words)), dtype=np.int64)
        padded[: len(words)] = words
        found |= (index < MARGIN) | (index - MARGIN >= padded[links.sentence])
    return int(found.sum())
