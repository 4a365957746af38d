"""The one way from maps to word alignments: recorded maps, raw text and the Python interface all take it.

A sentence pair comes as what its maps say in one direction or in two (:func:`read_direction`), in any order; it leaves
as its links, in the same order.  Without a lexicon one pair is held at a time, with one the word maps of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from alignment_eval.extraction.bidirectional import check_same_size, join, words_of
from alignment_eval.extraction.extract import SentenceLinks, WordLinks, word_links
from alignment_eval.extraction.lexicon import with_lexicon, without_maps
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


def read_direction(sentence: SentenceMaps, options: ExtractionOptions) -> DirectedLinks:
    """Read the links of one direction and let go of the maps.

    Raises:
        InputError: as :func:`alignment_eval.extraction.extract.word_links`.
    """
    return DirectedLinks(without_maps(sentence), word_links(sentence, options) if sentence.ok else None)


def align_corpus(
    pairs: Iterable[tuple[DirectedLinks, DirectedLinks | None]], method: AlignmentMethod
) -> Iterator[AlignedPair]:
    """The alignments of sentence pairs, in the order in which the pairs come.

    Args:
        pairs: forward and reverse direction of each, read as ``method`` says; the latter None if it has no reverse.
        method: how links are made of them.

    Raises:
        InputError: a pair has another number of words in the two directions.
    """
    if method.lexicon_passes:
        yield from _with_lexicon(pairs, method)
        return
    for forward, reverse in pairs:
        links = None
        if method.both is not None and method.both.method is not None and reverse is not None:
            links = _symmetrized(forward, reverse, method.both)
        else:
            links = _joined(forward, reverse, method)
        yield AlignedPair(forward.sentence.id, links, _status(forward, reverse))


def _with_lexicon(
    pairs: Iterable[tuple[DirectedLinks, DirectedLinks | None]], method: AlignmentMethod
) -> Iterator[AlignedPair]:
    """The same, when the word maps of all pairs are known."""
    statuses, maps = {}, {}
    for forward, reverse in pairs:
        sentence, links = forward.sentence, _joined(forward, reverse, method)
        statuses[sentence.id] = _status(forward, reverse)
        if links is not None:
            maps[sentence.id] = sentence, words_of(sentence), links.shares
    found = dict(with_lexicon(maps, method.forward, method.lexicon_passes))
    for id_, status in statuses.items():
        yield AlignedPair(id_, found.get(id_), status)


def _status(forward: DirectedLinks, reverse: DirectedLinks | None) -> str:
    if reverse is None or forward.links is None or reverse.links is not None:
        return forward.sentence.status
    return f"{reverse.sentence.status} in the other direction"


def _joined(forward: DirectedLinks, reverse: DirectedLinks | None, method: AlignmentMethod) -> WordLinks | None:
    """The links of the only direction, or of both joined; None if a direction has no maps."""
    if reverse is None or method.both is None or method.both.join is None:
        return forward.links
    if forward.links is None or reverse.links is None:
        return None
    return join(method.both.join, forward.sentence, method.forward, forward.links, reverse.links)


def _symmetrized(forward: DirectedLinks, reverse: DirectedLinks, both: BidirectionalOptions) -> SentenceLinks | None:
    if forward.links is None or reverse.links is None or both.method is None:
        return None
    check_same_size(forward.sentence, reverse.links.linked.shape)
    exchanged = frozenset((j, i) for i, j in reverse.links.links)
    linked = np.zeros_like(forward.links.linked)
    for link in symmetrize(forward.links.links, exchanged, both.method, both.variant):
        linked[link] = True
    return SentenceLinks(linked)
