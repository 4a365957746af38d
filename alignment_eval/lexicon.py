"""A lexicon that the maps of a text make by themselves: what two words are to each other elsewhere in it.

A map of one sentence is unsure; the same two words meet in other sentences, and what they take of each other there says
which of the cells here are right.  No gold and no other text is read: as for the statistical aligners, the text to be
aligned is what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.directions import Words
from alignment_eval.errors import UsageError
from alignment_eval.extract import ExtractionOptions, WordLinks, word_map_links
from alignment_eval.maps import SentenceMaps
from alignment_eval.rules import rule_of
from alignment_eval.word_maps import two_way_shares

#: Added to each sum, so that words that meet nowhere else keep the order that their map gives them.
PRIOR = 0.1


def check_lexicon(options: ExtractionOptions, join: str | None) -> None:
    """Check that links can be read from word maps that a lexicon has weighed.

    Raises:
        UsageError: the rule does not read word maps, null may win, or ``join`` draws links before.
    """
    if rule_of(options.rule).units != "words" or options.null != "mask":
        raise UsageError(
            f"a lexicon with rule {options.rule!r} and null {options.null!r}: it weighs maps between words, and null "
            f"is none: expected a rule of words and null 'mask', such as rule two-way=0.3"
        )
    if join == "mutual":
        raise UsageError("a lexicon with join 'mutual': links are drawn before; expected join 'average' or 'product'")


class Lexicon:
    """Sums of squared two-way shares by pair of words, and how often each word stands in the text."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], float] = {}
        self._source: Counter[str] = Counter()
        self._target: Counter[str] = Counter()

    def add(self, words: Words, shares: NDArray[np.float64]) -> None:
        """Count a sentence pair.

        Args:
            words: source and target words.
            shares: their two-way shares, [target words, source words].
        """
        source, target = words
        self._source.update(source)
        self._target.update(target)
        for word, row in zip(target, (shares * shares).tolist()):
            for other, value in zip(source, row):
                self._sums[other, word] = self._sums.get((other, word), 0.0) + value

    def association(self, words: Words, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the words of a pair are to each other in the rest of the text: [target words, source words].

        (n(u, v) − q + ε) / √((c(u) + 1)(c(v) + 1)) for source word u and target word v: n their sum, q the part that
        this very cell has in it, ε :data:`PRIOR`, c how often they stand in the text.

        Args:
            words: source and target words, which have been added.
            shares: what they were added with.
        """
        source, target = words
        sums = np.array([[self._sums[other, word] for other in source] for word in target]).reshape(shares.shape)
        counts = [
            np.array([counter[word] for word in side], dtype=np.float64) + 1
            for counter, side in ((self._source, source), (self._target, target))
        ]
        # a difference of equal sums may fall below 0 by rounding
        rest = np.maximum(sums - shares * shares, 0) + PRIOR
        found: NDArray[np.float64] = rest / np.sqrt(counts[0] * counts[1][:, None])
        return found


def with_lexicon(
    maps: Mapping[int, tuple[SentenceMaps, Words, NDArray[np.float64]]], options: ExtractionOptions, passes: int
) -> Iterator[tuple[int, WordLinks]]:
    """Links of a text from word maps that are multiplied by the association of their words.

    The first pass counts the two-way shares of the maps, each further one those of the maps that the pass before has
    weighed; it is always the maps themselves that are weighed.

    Args:
        maps: by id: the sentence, its words and its word map, [target words, source words + 1], null last.
        options: the rule.
        passes: how often the lexicon is made, 1 or more.

    Raises:
        UsageError: ``passes`` is less.
    """
    if passes < 1:
        raise UsageError(f"{passes} passes over a lexicon: expected 1 or more")
    shares = {id_: two_way_shares(scores[:, :-1]) for id_, (_, _, scores) in maps.items()}
    weighed: dict[int, NDArray[np.float64]] = {}
    for _ in range(passes):
        lexicon = Lexicon()
        for id_, (_, words, _) in maps.items():
            lexicon.add(words, shares[id_])
        for id_, (_, words, scores) in maps.items():
            weighed[id_] = scores[:, :-1] * lexicon.association(words, shares[id_])
        shares = {id_: two_way_shares(scores) for id_, scores in weighed.items()}
    for id_, (sentence, _, _) in maps.items():
        without_null = np.pad(weighed[id_], ((0, 0), (0, 1)))
        yield id_, word_map_links(without_null, sentence, options)


def without_maps(sentence: SentenceMaps) -> SentenceMaps:
    """The sentence, its maps forgotten: what rules need of it besides a word map."""
    return replace(sentence, arrays={})
