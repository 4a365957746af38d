"""A lexical table: how strongly two words are associated, estimated from the word maps of a text.

The map of one sentence pair is uncertain.  The same two words occur together in other pairs too, and their shares of
each other there show which cells are right here.  This needs no gold and no other resource: like a statistical aligner,
the lexical table learns from the text that is aligned, or from any other text in the two languages.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import two_way_shares

#: Two-way shares are raised to this power before they are summed, so that a few sure cells outweigh many unsure ones.
POWER = 1.5
#: Added to each sum, so that words that occur together nowhere else keep the order that their map gives them.
PRIOR = 0.03
#: Smaller sums are dropped: they are negligible beside :data:`PRIOR`, and most sums are that small.
LEAST_SUM = 0.001

#: The number of sentence pairs of a text that are checked.
SAMPLE = 1000
#: A side with fewer running words is not checked.
FEW_WORDS = 100
#: The largest share of running words that may be unknown.  Of other Europarl text a lexical table of 20,000 pairs does
#: not know 6 %, one of 100 pairs 40 %, and one with source and target exchanged 45 to 62 %.
MOST_UNKNOWN = 0.5
#: The largest share that may be known in another case only.  Of cased text it is 10 to 22 % for a lowercased table.
MOST_OTHER_CASE = 0.05


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of one side.

    Attributes:
        numbers: each word's number, from 0.
        counts: int64, how often each word occurs in the text, by number, and a final 0 for unknown words.
    """

    numbers: Mapping[str, int]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, sides: Iterable[Sequence[str]]) -> Vocabulary:
        """The words of a text, numbered in the order of their first occurrence."""
        numbers: dict[str, int] = {}
        found = [numbers.setdefault(word, len(numbers)) for side in sides for word in side]
        return cls(numbers, np.bincount(np.array(found, dtype=np.int64), minlength=len(numbers) + 1))

    def lookup(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The number of each word; unknown words get the number after the last."""
        unknown = len(self.numbers)
        return np.array([self.numbers.get(word, unknown) for word in words], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LexicalTable:
    """The two-way shares of each pair of words, summed over a text.

    Attributes:
        source: its source words.
        target: its target words.
        cells: int64, ascending: the pairs of words that occur together, numbered by :func:`cell_numbers`.
        sums: float32, for each of ``cells`` the sum of its two-way shares to the power of :data:`POWER`; the sums of
            other pairs of words are below :data:`LEAST_SUM` and count as 0.
        pairs: the number of sentence pairs that it was counted on.
        name: its name in messages.
    """

    source: Vocabulary
    target: Vocabulary
    cells: NDArray[np.int64]
    sums: NDArray[np.float32]
    pairs: int
    name: str = "the lexical table"

    def reweight(self, words: PairWords, scores: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
        """Multiply the word map of a sentence pair that was not counted by the association of its words.

        The association of source word u and target word v is (n(u, v) + ε) / √((c(u) + 1)(c(v) + 1)), where n is the
        sum of the two-way shares of u and v to the power of :data:`POWER`, ε is :data:`PRIOR`, and c is how often a
        word occurs in the text.  For unknown words n and c are 0.

        ``scores`` are [target words, source words]; they are multiplied by the association to the power ``exponent``.
        """
        source, target = self.source.lookup(words[0]), self.target.lookup(words[1])
        sums = self._sums_of(cell_numbers(source, target, self.source))
        scale = _scale(self.source.counts[source], self.target.counts[target][:, None])
        return scores * ((sums + PRIOR) * scale) ** exponent

    def _sums_of(self, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        if not len(self.cells):
            return np.zeros(wanted.shape)
        places = np.minimum(np.searchsorted(self.cells, wanted), len(self.cells) - 1)
        return np.where(self.cells[places] == wanted, self.sums[places], 0.0)


def cell_numbers(source: NDArray[np.int64], target: NDArray[np.int64], sources: Vocabulary) -> NDArray[np.int64]:
    """One number for each pair of words, [target words, source words], from their numbers; unknown words count too."""
    return target[:, None] * len(sources.counts) + source


def _scale(source_counts: NDArray[np.int64], target_counts: NDArray[np.int64]) -> NDArray[np.float64]:
    scale: NDArray[np.float64] = 1 / np.sqrt((source_counts + 1.0) * (target_counts + 1.0))
    return scale


def count_lexical_table(
    pairs: Sequence[tuple[PairWords, NDArray[np.float64]]], passes: int, exponent: float
) -> tuple[LexicalTable, list[NDArray[np.float64]]]:
    """Count the lexical table of sentence pairs, and reweight their word maps by it.

    The first pass counts the original maps, each further pass the maps that the pass before has reweighted.  Every
    pass reweights the original maps.  A cell does not support itself: its own contribution to n (see
    :meth:`LexicalTable.reweight`) is subtracted when it is reweighted.

    ``passes`` is 1 or more.  Word maps are [target words, source words]; they are multiplied by the association to the
    power ``exponent``.
    """
    words = [sides for sides, scores in pairs if scores.size]
    source, target = (Vocabulary.of(sides[which] for sides in words) for which in (0, 1))
    numbered = [cell_numbers(source.lookup(s), target.lookup(t), source).ravel() for s, t in words]
    cells, entries = np.unique(_joined(numbered), return_inverse=True)
    width = len(source.counts)
    scale = _scale(source.counts[cells % width], target.counts[cells // width])[entries]

    plain = [scores for _, scores in pairs]
    ends = np.cumsum([scores.size for scores in plain])[:-1]
    weighed = plain
    for _ in range(passes):
        added = _joined([two_way_shares(scores).ravel() for scores in weighed]) ** POWER
        sums = np.bincount(entries, weights=added, minlength=len(cells))
        # rounding may take a difference of equal sums below 0
        association = ((np.maximum(sums[entries] - added, 0) + PRIOR) * scale) ** exponent
        weighed = [scores * of.reshape(scores.shape) for scores, of in zip(plain, np.split(association, ends))]
    kept = sums >= LEAST_SUM
    return LexicalTable(source, target, cells[kept], sums[kept].astype(np.float32), len(words)), weighed


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def check_match(lexical_table: LexicalTable, pairs: Iterable[PairWords]) -> None:
    """Check that a lexical table has the languages and the preprocessing of a text; raises InputError if it has not.

    A side with fewer than :data:`FEW_WORDS` running words is not checked.
    """
    for name, known, words in zip(("source", "target"), (lexical_table.source, lexical_table.target), zip(*pairs)):
        counts = Counter(itertools.chain.from_iterable(words))
        total = sum(counts.values())
        if total >= FEW_WORDS and (problem := _problem(counts, known, total)):
            raise InputError(
                f"{lexical_table.name}: of the text's {total} {name} words, {problem}; give one that was counted on "
                f"text of the same languages, tokenisation and case"
            )


def _problem(words: Counter[str], known: Vocabulary, total: int) -> str | None:
    unknown = {word: count for word, count in words.items() if word not in known.numbers}
    if (count := sum(unknown.values())) > MOST_UNKNOWN * total:
        return f"{count} ({count / total:.0%}) are not in the lexical table"
    folded = {word.casefold() for word in known.numbers}
    if (count := sum(n for word, n in unknown.items() if word.casefold() in folded)) > MOST_OTHER_CASE * total:
        return f"{count} ({count / total:.0%}) are in the lexical table in another case only"
    return None
