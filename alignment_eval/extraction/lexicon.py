"""A lexicon that the maps of a text make by themselves: what two words are to each other elsewhere in it.

A map of one sentence is unsure; the same two words meet in other sentences, and what they take of each other there says
which of the cells here are right.  No gold and no other text is read: as for the statistical aligners, the text to be
aligned is what is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import Words
from alignment_eval.extraction.extract import WordLinks, word_map_links
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import two_way_shares

#: Added to each sum, so that words that meet nowhere else keep the order that their map gives them.
PRIOR = 0.1


class Lexicon:
    """The pairs of words that meet in a text.

    Its cells are those of all word maps one after the other, each map row by row: [target words, source words].

    Args:
        pairs: source and target words of each sentence pair.
    """

    def __init__(self, pairs: Sequence[Words]) -> None:
        source, source_counts = _numbered([words for words, _ in pairs])
        target, target_counts = _numbered([words for _, words in pairs])
        cells = [(v[:, None] * len(source_counts) + u).ravel() for u, v in zip(source, target)]
        numbers = np.concatenate([*cells, np.empty(0, dtype=np.int64)])
        met, self._entries = np.unique(numbers, return_inverse=True)
        counts = source_counts[met % max(1, len(source_counts))] + 1.0
        counts *= target_counts[met // max(1, len(source_counts))] + 1.0
        self._scale = 1 / np.sqrt(counts)

    def association(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the words of each cell are to each other in the rest of the text.

        (n(u, v) − q + ε) / √((c(u) + 1)(c(v) + 1)) for source word u and target word v: n the sum of the squares of
        the shares of all their cells, q that of this very cell, ε :data:`PRIOR`, c how often they stand in the text.

        Args:
            shares: two-way shares of all cells.
        """
        squares = shares * shares
        sums = np.bincount(self._entries, weights=squares, minlength=len(self._scale))
        # a difference of equal sums may fall below 0 by rounding
        rest = np.maximum(sums[self._entries] - squares, 0) + PRIOR
        found: NDArray[np.float64] = rest * self._scale[self._entries]
        return found


def _numbered(sides: Sequence[Sequence[str]]) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """The words of each side as numbers, and how often each number stands there."""
    numbers: dict[str, int] = {}
    found = [np.array([numbers.setdefault(w, len(numbers)) for w in side], dtype=np.int64) for side in sides]
    return found, np.bincount(np.concatenate([*found, np.empty(0, dtype=np.int64)]), minlength=len(numbers))


def with_lexicon(
    maps: Mapping[int, tuple[SentenceMaps, Words, NDArray[np.float64]]], options: ExtractionOptions, passes: int
) -> Iterator[tuple[int, WordLinks]]:
    """Links of a text from word maps that are multiplied by the association of their words.

    The first pass counts the two-way shares of the maps, each further one those of the maps that the pass before has
    weighed; it is always the maps themselves that are weighed.

    Args:
        maps: by id: the sentence, its words and its word map, [target words, source words + 1], null last.
        options: the rule.
        passes: how often the lexicon is counted, 1 or more.

    Raises:
        UsageError: ``passes`` is less.
    """
    if passes < 1:
        raise UsageError(f"{passes} passes over a lexicon: expected 1 or more")
    lexicon = Lexicon([words for _, words, _ in maps.values()])
    plain = [scores[:, :-1] for _, _, scores in maps.values()]
    ends = np.cumsum([scores.size for scores in plain])[:-1]
    weighed = plain
    for _ in range(passes):
        shares = np.concatenate([*(two_way_shares(scores).ravel() for scores in weighed), np.empty(0)])
        associations = np.split(lexicon.association(shares), ends)
        weighed = [scores * cells.reshape(scores.shape) for scores, cells in zip(plain, associations)]
    for (id_, (sentence, _, _)), scores in zip(maps.items(), weighed):
        yield id_, word_map_links(np.pad(scores, ((0, 0), (0, 1))), sentence, options)


def without_maps(sentence: SentenceMaps) -> SentenceMaps:
    """The sentence, its maps forgotten: what rules need of it besides a word map."""
    return replace(sentence, arrays={})
