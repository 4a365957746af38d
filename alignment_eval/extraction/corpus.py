"""The one way from maps to word alignments: recorded maps, raw text and the Python interface all take it.

A sentence pair comes as what its maps say in one direction or in two (:func:`read_direction`); it leaves as its links,
in the same order.  One pair is held at a time, and of the pairs that a lexicon is counted on, the first ones, the word
maps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Union

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.bidirectional import check_same_size, join, words_of
from alignment_eval.extraction.extract import SentenceLinks, WordLinks, word_links, word_map_links
from alignment_eval.extraction.lexicon import Lexicon, count_lexicon
from alignment_eval.extraction.lexicon_match import SAMPLE, check_match
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import SentenceMaps


@dataclass(frozen=True, eq=False)
class DirectedLinks:
    """What the maps of one direction say of a sentence pair.

    Attributes:
        sentence: the pair in this direction, without its maps.
        links: its links and their word map; None where there are no maps.
    """

    sentence: SentenceMaps
    links: WordLinks | None


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """The alignment of a sentence pair.

    Attributes:
        id: the pair's number in the corpus, from 0.
        links: its links; :class:`WordLinks`, with confidences, unless a symmetrisation made them.  None: not aligned.
        status: ``ok``, or why it is not aligned.
    """

    id: int
    links: SentenceLinks | None
    status: str = "ok"


#: What the maps of the forward and of the reverse direction say of a pair; None: there is no reverse.
DirectedPair = tuple[DirectedLinks, Union[DirectedLinks, None]]


@dataclass(frozen=True, eq=False)
class _Read:
    """A sentence pair, and its links before a lexicon reweights their map."""

    sentence: SentenceMaps
    links: SentenceLinks | None
    status: str

    def aligned(self, reweighted: NDArray[np.float64] | None, method: AlignmentMethod) -> AlignedPair:
        """Its alignment by a reweighted map, [target words, source words], if there is one, or by its own."""
        links = self.links
        if reweighted is not None:
            links = word_map_links(np.pad(reweighted, ((0, 0), (0, 1))), self.sentence, method.forward)
        return AlignedPair(self.sentence.id, links, self.status)


def read_direction(sentence: SentenceMaps, options: ExtractionOptions) -> DirectedLinks:
    """Read the links of one direction and let go of the maps.

    Raises:
        InputError: as :func:`alignment_eval.extraction.extract.word_links`.
    """
    return DirectedLinks(replace(sentence, arrays={}), word_links(sentence, options) if sentence.ok else None)


def _ignore(lexicon: Lexicon) -> None:
    """Take no notice of a lexicon that was counted."""


def align_corpus(
    pairs: Iterable[DirectedPair],
    method: AlignmentMethod,
    lexicon: Lexicon | None = None,
    on_count: Callable[[Lexicon], object] = _ignore,
) -> Iterator[AlignedPair]:
    """The alignments of sentence pairs, in the order in which the pairs come.

    If ``method`` counts a lexicon, it counts the first ``lexicon_pairs`` pairs that come, which are therefore to be the
    first of the corpus, in whatever order; those after them are reweighted by what was counted.

    Args:
        pairs: forward and reverse direction of each, read as ``method`` says; the latter None if it has no reverse.
        method: how links are made of them.
        lexicon: a lexicon that all pairs are reweighted by; none is counted then.
        on_count: called with the lexicon that was counted, before the first alignment comes.

    Raises:
        InputError: a pair has another number of words in the two directions, or ``lexicon`` is of other text
            (:func:`alignment_eval.extraction.lexicon_match.check_match`).
        UsageError: a lexicon is given, and ``method`` does not read word maps.
    """
    read: Iterator[_Read] = (
        _Read(forward.sentence, _links(forward, reverse, method), _status(forward, reverse))
        for forward, reverse in pairs
    )
    if lexicon is not None:
        method.check_lexicon()
        read = _matching(read, lexicon)
    elif method.lexicon_passes:
        lexicon, first = _counted(list(itertools.islice(read, method.lexicon_pairs)), method)
        on_count(lexicon)
        yield from first
    for pair in read:
        scores = None
        if lexicon is not None and isinstance(pair.links, WordLinks):
            words, shares = words_of(pair.sentence), pair.links.shares[:, :-1]
            scores = lexicon.reweight(words, shares, method.lexicon_exponent)
        yield pair.aligned(scores, method)


def _matching(pairs: Iterable[_Read], lexicon: Lexicon) -> Iterator[_Read]:
    """The same pairs, once the first ones are seen to be of text that a lexicon is for."""
    pairs = iter(pairs)
    first = list(itertools.islice(pairs, SAMPLE))
    check_match(lexicon, (words_of(pair.sentence) for pair in first if pair.links is not None))
    yield from first
    yield from pairs


def _counted(pairs: Sequence[_Read], method: AlignmentMethod) -> tuple[Lexicon, Iterator[AlignedPair]]:
    """The lexicon of pairs, and their alignments."""
    # sums depend on the order in the last digits: that of the corpus, whatever order the pairs come in
    maps = [
        (p, p.links.shares[:, :-1])
        for p in sorted(pairs, key=lambda read: read.sentence.id)
        if isinstance(p.links, WordLinks)
    ]
    lexicon, reweighted = count_lexicon(
        [(words_of(pair.sentence), shares) for pair, shares in maps], method.lexicon_passes, method.lexicon_exponent
    )
    scores = {pair.sentence.id: of_pair for (pair, _), of_pair in zip(maps, reweighted)}
    return lexicon, (pair.aligned(scores.get(pair.sentence.id), method) for pair in pairs)


def _status(forward: DirectedLinks, reverse: DirectedLinks | None) -> str:
    if reverse is None or forward.links is None or reverse.links is not None:
        return forward.sentence.status
    return f"{reverse.sentence.status} in the other direction"


def _links(forward: DirectedLinks, reverse: DirectedLinks | None, method: AlignmentMethod) -> SentenceLinks | None:
    """The links of the only direction, or of both brought together; None if a direction has no maps."""
    if reverse is None or method.both is None:
        return forward.links
    if forward.links is None or reverse.links is None:
        return None
    if method.both.join is None:
        return _symmetrized(forward.sentence, forward.links, reverse.links, method.both)
    return join(method.both.join, forward.sentence, method.forward, forward.links, reverse.links)


def _symmetrized(
    sentence: SentenceMaps, forward: WordLinks, reverse: WordLinks, both: BidirectionalOptions
) -> SentenceLinks:
    check_same_size(sentence, reverse.linked.shape)
    exchanged = frozenset((j, i) for i, j in reverse.links)
    linked = np.zeros_like(forward.linked)
    for link in symmetrize(forward.links, exchanged, str(both.method), both.variant):
        linked[link] = True
    return SentenceLinks(linked)
