"""A lexicon: how strongly words of two languages belong together, estimated from word maps of a text.

The map of one sentence pair is unsure.  The same two words meet in other pairs too, and the shares that they have of
each other there say which cells are right here.  No gold and no other resource is read: like the statistical aligners,
it learns from the text to be aligned, or from any other text of the two languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import Words
from alignment_eval.maps.words import two_way_shares

#: Two-way shares are raised to this power before they are summed, so that a few sure cells outweigh many unsure ones.
POWER = 1.5
#: Added to each sum, so that words that meet nowhere else keep the order that their map gives them.
PRIOR = 0.03
#: Smaller sums are left out of a lexicon: beside :data:`PRIOR` they say nothing, and most are so small.
LEAST_SUM = 0.001


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of one side.

    Attributes:
        numbers: each word's number, from 0.
        counts: int64, how often each stands in the text, by number, and a last 0 for unknown words.
    """

    numbers: Mapping[str, int]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, sides: Iterable[Sequence[str]]) -> Vocabulary:
        """The words of a text, numbered in the order in which they first stand there."""
        numbers: dict[str, int] = {}
        found = [numbers.setdefault(word, len(numbers)) for side in sides for word in side]
        return cls(numbers, np.bincount(np.array(found, dtype=np.int64), minlength=len(numbers) + 1))

    def lookup(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The number of each word; of unknown words one more than the largest."""
        unknown = len(self.numbers)
        return np.array([self.numbers.get(word, unknown) for word in words], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Sums over a text of the shares that words have of each other.

    Attributes:
        source: its source words.
        target: its target words.
        cells: int64, ascending: the pairs of words that meet in it, as :func:`cell_numbers` numbers them.
        sums: float32, for each of them the sum of its two-way shares to the power of :data:`POWER`; those of other
            pairs of words are below :data:`LEAST_SUM` and count as 0.
        pairs: how many sentence pairs it was counted on.
        name: what messages call it.
    """

    source: Vocabulary
    target: Vocabulary
    cells: NDArray[np.int64]
    sums: NDArray[np.float32]
    pairs: int
    name: str = "the lexicon"

    def reweight(self, words: Words, scores: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
        """The word map of a sentence pair that was not counted, multiplied by the association of its words.

        The association of source word u and target word v is (n(u, v) + ε) / √((c(u) + 1)(c(v) + 1)): n the sum of
        the two-way shares of u and v to the power of :data:`POWER`, ε :data:`PRIOR`, c how often a word stands in the
        text.  n and c of unknown words are 0.

        Args:
            words: source and target words.
            scores: [target words, source words].
            exponent: the power of the association that scores are multiplied by.
        """
        source, target = self.source.lookup(words[0]), self.target.lookup(words[1])
        sums = self._sums_of(cell_numbers(source, target, self.source))
        scale = _scale(self.source.counts[source], self.target.counts[target][:, None])
        return scores * _association(sums, scale) ** exponent

    def _sums_of(self, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        if not len(self.cells):
            return np.zeros(wanted.shape)
        places = np.minimum(np.searchsorted(self.cells, wanted), len(self.cells) - 1)
        return np.where(self.cells[places] == wanted, self.sums[places], 0.0)


def cell_numbers(source: NDArray[np.int64], target: NDArray[np.int64], sources: Vocabulary) -> NDArray[np.int64]:
    """One number for each pair of words, [target words, source words], made of theirs; unknown words count as words."""
    return target[:, None] * len(sources.counts) + source


def _scale(source_counts: NDArray[np.int64], target_counts: NDArray[np.int64]) -> NDArray[np.float64]:
    scale: NDArray[np.float64] = 1 / np.sqrt((source_counts + 1.0) * (target_counts + 1.0))
    return scale


def _association(sums: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    return (sums + PRIOR) * scale


def count_lexicon(
    pairs: Sequence[tuple[Words, NDArray[np.float64]]], passes: int, exponent: float
) -> tuple[Lexicon, list[NDArray[np.float64]]]:
    """The lexicon of sentence pairs, and their word maps reweighted by it.

    The first pass counts the maps, each further one the maps that the pass before has reweighted; it is always the
    maps themselves that are reweighted.  No cell of these pairs speaks for itself: what it has added to n (see
    :meth:`Lexicon.reweight`) is subtracted there.

    Args:
        pairs: words and word map, [target words, source words], of each.
        passes: how often the lexicon is counted, 1 or more.
        exponent: the power of the association that maps are multiplied by.

    Raises:
        UsageError: ``passes`` is less than 1.
    """
    if passes < 1:
        raise UsageError(f"{passes} passes over a lexicon: expected 1 or more")
    words = [sides for sides, scores in pairs if scores.size]
    source, target = (Vocabulary.of(sides[which] for sides in words) for which in (0, 1))
    cells, entries = np.unique(_joined([_numbered(sides, source, target) for sides in words]), return_inverse=True)
    width = len(source.counts)
    scale = _scale(source.counts[cells % width], target.counts[cells // width])[entries]

    plain = [scores for _, scores in pairs]
    ends = np.cumsum([scores.size for scores in plain])[:-1]
    weighed = plain
    for _ in range(passes):
        added = _joined([two_way_shares(scores).ravel() for scores in weighed]) ** POWER
        sums = np.bincount(entries, weights=added, minlength=len(cells))
        # a difference of equal sums may fall below 0 by rounding
        association = _association(np.maximum(sums[entries] - added, 0), scale) ** exponent
        weighed = [scores * of.reshape(scores.shape) for scores, of in zip(plain, np.split(association, ends))]
    kept = sums >= LEAST_SUM
    return Lexicon(source, target, cells[kept], sums[kept].astype(np.float32), len(words)), weighed


def _numbered(words: Words, source: Vocabulary, target: Vocabulary) -> NDArray[np.int64]:
    return cell_numbers(source.lookup(words[0]), target.lookup(words[1]), source).ravel()


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
