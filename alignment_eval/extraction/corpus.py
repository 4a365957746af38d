"""The pipeline from maps to word alignments, shared by recorded maps, raw text and the Python interface.

Each sentence pair enters as the links of one direction or of both (:func:`read_direction`) and leaves as its final
links, in the same order.  Only one pair is in memory at a time; while a lexicon is counted, also the word maps of the
pairs that it is counted on.
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
    """The links of a sentence pair in one direction.

    Attributes:
        sentence: the pair in this direction, without its maps.
        links: its links and their word map; None if the pair has no maps.
    """

    sentence: SentenceMaps
    links: WordLinks | None


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """The alignment of a sentence pair.

    Attributes:
        id: the pair's number in the corpus, from 0.
        links: its links; :class:`WordLinks`, with confidences, unless they were symmetrised.  None: not aligned.
        status: ``ok``, or the reason why the pair is not aligned.
    """

    id: int
    links: SentenceLinks | None
    status: str = "ok"


#: The forward and the reverse direction of a pair; None: there is no reverse direction.
DirectedPair = tuple[DirectedLinks, Union[DirectedLinks, None]]


@dataclass(frozen=True, eq=False)
class _Read:
    """A sentence pair and its links, before a lexicon reweights its word map."""

    sentence: SentenceMaps
    links: SentenceLinks | None
    status: str

    def aligned(self, reweighted: NDArray[np.float64] | None, method: AlignmentMethod) -> AlignedPair:
        """Its alignment, from the reweighted map [target words, source words] if there is one, else from its own."""
        links = self.links
        if reweighted is not None:
            links = word_map_links(np.pad(reweighted, ((0, 0), (0, 1))), self.sentence, method.forward)
        return AlignedPair(self.sentence.id, links, self.status)


def read_direction(sentence: SentenceMaps, options: ExtractionOptions) -> DirectedLinks:
    """Read the links of one direction and release the maps.

    Raises:
        InputError: as :func:`alignment_eval.extraction.extract.word_links`.
    """
    return DirectedLinks(replace(sentence, arrays={}), word_links(sentence, options) if sentence.ok else None)


def _ignore(lexicon: Lexicon) -> None:
    """Ignore the lexicon."""


def align_corpus(
    pairs: Iterable[DirectedPair],
    method: AlignmentMethod,
    lexicon: Lexicon | None = None,
    on_count: Callable[[Lexicon], object] = _ignore,
    check: bool = True,
) -> Iterator[AlignedPair]:
    """Align sentence pairs, in the order in which they arrive.

    If ``method`` counts a lexicon, it counts it on the first ``lexicon_pairs`` pairs that arrive.  These must be the
    first of the corpus, in any order.  The pairs after them are reweighted by that lexicon.

    Args:
        pairs: the forward and the reverse direction of each pair, read as ``method`` says; reverse is None if
            ``method`` has no reverse direction.
        method: how links are made.
        lexicon: a lexicon that reweights all pairs; then none is counted.
        on_count: called with the counted lexicon before the first alignment.
        check: check that ``lexicon`` matches the text of the first pairs.

    Raises:
        InputError: the directions of a pair differ in the number of words, or ``lexicon`` does not match the text
            (:func:`alignment_eval.extraction.lexicon_match.check_match`).
        UsageError: a lexicon is given, but ``method`` does not read word maps.
    """
    read: Iterator[_Read] = (
        _Read(forward.sentence, _links(forward, reverse, method), _status(forward, reverse))
        for forward, reverse in pairs
    )
    if lexicon is not None:
        method.check_lexicon()
        read = _matching(read, lexicon) if check else read
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
    """The same pairs, after a check that the lexicon matches the text of the first ones."""
    pairs = iter(pairs)
    first = list(itertools.islice(pairs, SAMPLE))
    check_match(lexicon, (words_of(pair.sentence) for pair in first if pair.links is not None))
    yield from first
    yield from pairs


def _counted(pairs: Sequence[_Read], method: AlignmentMethod) -> tuple[Lexicon, Iterator[AlignedPair]]:
    """The lexicon counted on pairs, and their alignments."""
    # the last digits of a sum depend on the order, so pairs are summed in corpus order, whatever order they arrive in
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
    """The links of the only direction, or of both combined; None if a direction has no maps."""
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
