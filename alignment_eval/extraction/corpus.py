"""The pipeline from maps to word alignments, shared by recorded maps, raw text and the Python interface.

Each sentence pair enters as the links of one direction or of both (:func:`read_direction`) and leaves as its final
links, in the same order.  Only one pair is in memory at a time; while a lexicon is counted, also the word maps of the
pairs that it is counted on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Union

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.batch import choose_links, grouped, read_batch, word_maps_links
from alignment_eval.extraction.bidirectional import check_same_size, join_all, words_of
from alignment_eval.extraction.extract import SentenceLinks, WordLinks, word_links
from alignment_eval.extraction.lexicon import Lexicon, count_lexicon
from alignment_eval.extraction.lexicon_match import SAMPLE, check_match
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.padded import PaddedMaps
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


def read_direction(sentence: SentenceMaps, options: ExtractionOptions) -> DirectedLinks:
    """Read the links of one direction and release the maps.

    Raises:
        InputError: as :func:`alignment_eval.extraction.extract.word_links`.
    """
    return DirectedLinks(replace(sentence, arrays={}), word_links(sentence, options) if sentence.ok else None)


def read_directions(batch: PaddedMaps, options: ExtractionOptions) -> dict[int, DirectedLinks]:
    """Read the links of one direction of a batch of pairs that all have maps, by id.

    Raises:
        InputError: as :func:`read_direction`.
    """
    found = zip(batch.sentences, read_batch(batch, options))
    return {sentence.id: DirectedLinks(sentence, links) for sentence, links in found}


def _ignore(lexicon: Lexicon) -> None:
    """Ignore the lexicon."""


def align_corpus(
    pairs: Iterable[DirectedPair],
    method: AlignmentMethod,
    lexicon: Lexicon | None = None,
    on_count: Callable[[Lexicon], object] = _ignore,
    check: bool = True,
) -> Iterator[AlignedPair]:
    """Align sentence pairs one by one; see :func:`align_batches`, which is faster."""
    return align_batches(([pair] for pair in pairs), method, lexicon, on_count, check)


def align_batches(
    batches: Iterable[Sequence[DirectedPair]],
    method: AlignmentMethod,
    lexicon: Lexicon | None = None,
    on_count: Callable[[Lexicon], object] = _ignore,
    check: bool = True,
) -> Iterator[AlignedPair]:
    """Align batches of sentence pairs, in the order in which they arrive.

    If ``method`` counts a lexicon, it counts it on the first ``lexicon_pairs`` pairs that arrive.  These must be the
    first of the corpus, in any order.  The pairs after them are reweighted by that lexicon.

    Args:
        batches: the forward and the reverse direction of each pair, read as ``method`` says; reverse is None if
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
    read: Iterator[list[_Read]] = (_read(group, method) for batch in batches for group in grouped(batch, _cells))
    if lexicon is not None:
        method.check_lexicon()
        read = _matching(read, lexicon) if check else read
    elif method.lexicon_passes:
        first, read = _first(read, method.lexicon_pairs)
        lexicon, scores = _counted(first, method)
        on_count(lexicon)
        for group in grouped(first, lambda pair: scores[pair.sentence.id].size if pair.sentence.id in scores else 0):
            yield from _aligned(group, scores, method)
    for group in read:
        yield from _aligned(group, _reweighted(group, lexicon, method), method)


def _cells(pair: DirectedPair) -> int:
    """The cells of a pair's word map."""
    links = pair[0].links
    return 0 if links is None else links.shares.size


def _first(read: Iterator[list[_Read]], count: int) -> tuple[list[_Read], Iterator[list[_Read]]]:
    """The first ``count`` pairs, and the batches of the others."""
    first: list[_Read] = []
    for group in read:
        first += group
        if len(first) >= count:
            break
    return first[:count], itertools.chain([first[count:]], read)


def _matching(read: Iterator[list[_Read]], lexicon: Lexicon) -> Iterator[list[_Read]]:
    """The same batches, after a check that the lexicon matches the text of the first pairs."""
    first, others = _first(read, SAMPLE)
    check_match(lexicon, (words_of(pair.sentence) for pair in first if pair.links is not None))
    return itertools.chain([first], others)


def _counted(pairs: Sequence[_Read], method: AlignmentMethod) -> tuple[Lexicon, dict[int, NDArray[np.float64]]]:
    """The lexicon counted on pairs, and their reweighted maps [target words, source words] by id."""
    # the last digits of a sum depend on the order, so pairs are summed in corpus order, whatever order they arrive in
    maps = [
        (p, p.links.shares[:, :-1])
        for p in sorted(pairs, key=lambda read: read.sentence.id)
        if isinstance(p.links, WordLinks)
    ]
    lexicon, reweighted = count_lexicon(
        [(words_of(pair.sentence), shares) for pair, shares in maps], method.lexicon_passes, method.lexicon_exponent
    )
    return lexicon, {pair.sentence.id: of_pair for (pair, _), of_pair in zip(maps, reweighted)}


def _reweighted(
    pairs: Sequence[_Read], lexicon: Lexicon | None, method: AlignmentMethod
) -> dict[int, NDArray[np.float64]]:
    """The maps [target words, source words] of pairs that were not counted, reweighted by a lexicon, by id."""
    if lexicon is None:
        return {}
    return {
        pair.sentence.id: lexicon.reweight(words_of(pair.sentence), pair.links.shares[:, :-1], method.lexicon_exponent)
        for pair in pairs
        if isinstance(pair.links, WordLinks)
    }


def _aligned(
    pairs: Sequence[_Read], scores: Mapping[int, NDArray[np.float64]], method: AlignmentMethod
) -> list[AlignedPair]:
    """The alignments of pairs, from reweighted ``scores`` where there are some, else from their own maps."""
    weighed = [pair.sentence for pair in pairs if pair.sentence.id in scores]
    maps = [np.pad(scores[sentence.id], ((0, 0), (0, 1))) for sentence in weighed]
    found = dict(zip((s.id for s in weighed), word_maps_links(maps, weighed, method.forward)))
    links = [found.get(pair.sentence.id, pair.links) for pair in pairs]
    choose_links(links)
    return [AlignedPair(pair.sentence.id, one, pair.status) for pair, one in zip(pairs, links)]


def _read(pairs: Sequence[DirectedPair], method: AlignmentMethod) -> list[_Read]:
    """Pairs with the links of their only direction, or of both combined; None if a direction has no maps."""
    links: list[SentenceLinks | None] = [forward.links for forward, _ in pairs]
    if method.both is not None:
        links = [forward.links if reverse is None else None for forward, reverse in pairs]
        whole = [k for k, pair in enumerate(pairs) if all(each is not None and each.links is not None for each in pair)]
        for k, joined in zip(whole, _combined([pairs[k] for k in whole], method)):
            links[k] = joined
    return [_Read(pair[0].sentence, one, _status(*pair)) for pair, one in zip(pairs, links)]


def _combined(pairs: Sequence[DirectedPair], method: AlignmentMethod) -> list[SentenceLinks]:
    """Both directions of pairs that have maps in both."""
    both = method.both
    assert both is not None
    sentences = [forward.sentence for forward, _ in pairs]
    directions = [[each.links for each in pair if each is not None and each.links is not None] for pair in pairs]
    forward, reverse = [one for one, _ in directions], [other for _, other in directions]
    if both.join is not None:
        return [*join_all(both.join, sentences, method.forward, forward, reverse)]
    choose_links([*forward, *reverse])
    return [_symmetrized(*each, both) for each in zip(sentences, forward, reverse)]


def _status(forward: DirectedLinks, reverse: DirectedLinks | None) -> str:
    if reverse is None or forward.links is None or reverse.links is not None:
        return forward.sentence.status
    return f"{reverse.sentence.status} in the other direction"


def _symmetrized(
    sentence: SentenceMaps, forward: WordLinks, reverse: WordLinks, both: BidirectionalOptions
) -> SentenceLinks:
    check_same_size(sentence, reverse.linked.shape)
    exchanged = frozenset((j, i) for i, j in reverse.links)
    linked = np.zeros(forward.linked.shape, dtype=np.bool_)
    for link in symmetrize(forward.links, exchanged, str(both.method), both.variant):
        linked[link] = True
    return SentenceLinks(linked)
