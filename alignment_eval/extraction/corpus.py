"""From word maps to word alignments, shared by recorded maps, raw text and the Python interface.

A sentence pair enters as the word map of one direction, or as those of both (:func:`read_word_map`).  Both become one
map, a word table may reweight it, and a rule makes links of it (:func:`align_pair`).  Only one pair is in memory at a
time; while a word table is counted, also the word maps of the pairs that it is counted on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Union

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import PairMap, SentenceLinks, pair_map
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.extraction.pair_scores import PairScores, score_pair
from alignment_eval.extraction.word_table import SAMPLE, WordTable, check_match, count_word_table
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import PairWords, SentenceMaps, words_of

#: Two runs with a smaller share of equal words are runs on different texts.
SAME_TEXT = 0.5


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """The alignment of a sentence pair.

    Attributes:
        id: the pair's number in the corpus, from 0.
        links: its links; with confidences, unless they were symmetrised.  None: not aligned.
        status: ``ok``, or the reason why the pair is not aligned.
        scores: its scores, if the log probabilities of its target are known.
    """

    id: int
    links: SentenceLinks | None
    status: str = "ok"
    scores: PairScores | None = None


#: The forward and the reverse direction of a pair; None: there is no reverse direction.
DirectedPair = tuple[PairMap, Union[PairMap, None]]


def read_word_map(sentence: SentenceMaps, options: ExtractionOptions) -> PairMap:
    """The word map of a sentence pair in one direction, or only its status if it cannot be aligned."""
    return pair_map(sentence, options) if sentence.ok else PairMap(replace(sentence, arrays={}), None)


def align_pair(pair: DirectedPair, method: AlignmentMethod, word_table: WordTable | None = None) -> AlignedPair:
    """Align one sentence pair."""
    whole = one_map(pair, method)
    if word_table is not None and whole.scores is not None:
        shares = whole.shares[:, :-1]
        whole = _reweighted(whole, word_table.reweight(words_of(whole.sentence), shares, method.word_table_exponent))
    return _aligned(whole, pair, method)


def one_map(pair: DirectedPair, method: AlignmentMethod) -> PairMap:
    """The word map of a pair: of its only direction, or of both joined."""
    forward, reverse = pair
    if reverse is None or forward.scores is None:
        return forward
    if reverse.scores is None:
        status = f"{reverse.sentence.status} in the other direction"
        return PairMap(replace(forward.sentence, status=status), None)
    check_same_size(forward.sentence, reverse.sentence)
    assert method.both is not None
    return join_maps(str(method.both.join), forward, reverse) if method.both.joins_maps else forward


def join_maps(how: str, forward: PairMap, reverse: PairMap) -> PairMap:
    """Make one word map of those of both directions, to which the rule is applied.

    F and R are the ``shares`` of the two directions; each row, null included, sums to 1.  ``average``: (F + Rᵀ) / 2.  R
    has no null column for *target* words, so it counts as 0 there and null gets half of F's share.  ``product``:
    F ∘ Rᵀ, cell by cell, without null.
    """
    back = np.zeros(forward.shares.shape)
    back[:, :-1] = reverse.shares[:, :-1].T
    scores = (forward.shares + back) / 2 if how == "average" else forward.shares * back
    return PairMap(forward.sentence, scores)


def join_links(both: BidirectionalOptions, forward: SentenceLinks, reverse: SentenceLinks) -> SentenceLinks:
    """Join the links of both directions.

    ``mutual`` keeps the links of both directions; with a rule that makes one choice per word, this is the mutual
    argmax.  The share of a link is the smaller of its two shares.  Symmetrised links have no shares.
    """
    if both.join is not None:
        assert forward.shares is not None
        assert reverse.shares is not None
        shares = forward.shares.copy()
        shares[:, :-1] = np.minimum(shares[:, :-1], reverse.shares[:, :-1].T)
        return SentenceLinks(forward.linked & reverse.linked.T, shares)
    exchanged = frozenset((j, i) for i, j in reverse.links)
    linked = np.zeros(forward.linked.shape, dtype=np.bool_)
    for link in symmetrize(forward.links, exchanged, str(both.method), both.variant):
        linked[link] = True
    return SentenceLinks(linked)


def check_same_size(forward: SentenceMaps, reverse: SentenceMaps) -> None:
    """Check that both directions of a sentence pair have the same number of words; raises InputError if not."""
    sizes = forward.source.word_count, forward.target.word_count
    other = reverse.target.word_count, reverse.source.word_count
    if sizes != other:
        raise InputError(
            f"sentence {forward.id} (line {forward.id + 1}) has {sizes[0]} source and {sizes[1]} target words, but "
            f"{other[0]} and {other[1]} in the other direction; give records of the same sentence pairs with source "
            f"and target exchanged"
        )


def _reweighted(word_map: PairMap, scores: NDArray[np.float64]) -> PairMap:
    """The map with other scores [target words, source words], and none for null."""
    return replace(word_map, scores=np.pad(scores, ((0, 0), (0, 1))))


def _aligned(whole: PairMap, pair: DirectedPair, method: AlignmentMethod) -> AlignedPair:
    """The links of a pair by its one map, or those of each direction joined."""
    id_, status = whole.sentence.id, whole.sentence.status
    if whole.scores is None:
        return AlignedPair(id_, None, status)
    forward, reverse = pair
    if reverse is None or method.reverse is None or method.both is None or method.both.joins_maps:
        links = whole.links(method.forward)
    else:
        links = join_links(method.both, forward.links(method.forward), reverse.links(method.reverse))
    scores = None if forward.sentence.log_probs is None else score_pair(forward, reverse, links)
    return AlignedPair(id_, links, status, scores)


def align_corpus(
    pairs: Iterable[DirectedPair],
    method: AlignmentMethod,
    word_table: WordTable | None = None,
    on_count: Callable[[WordTable], object] = lambda _: None,
    check: bool = True,
) -> Iterator[AlignedPair]:
    """Align the sentence pairs of a corpus in the order in which they arrive.

    If ``method`` counts a word table, it is counted on the first ``word_table_pairs`` pairs that arrive.  These must be
    the first of the corpus, in any order, and are held back until then.  The pairs after them are reweighted by that
    word table.

    Args:
        pairs: the word maps of each pair.
        method: how links are made.
        word_table: a word table that reweights all pairs; then none is counted.
        on_count: called with the counted word table before the first alignment.
        check: check that ``word_table`` matches the text of the first pairs, which are held back for that.
    """
    pairs = iter(pairs)
    if word_table is not None:
        method.check_word_table()
        held = list(islice(pairs, SAMPLE * check))
        if check:
            check_match(word_table, (words_of(forward.sentence) for forward, _ in held if forward.scores is not None))
        pairs = chain(held, pairs)
    elif method.word_table_passes:
        word_table, aligned = _counted(list(islice(pairs, method.word_table_pairs)), method)
        on_count(word_table)
        yield from aligned
    for pair in pairs:
        yield align_pair(pair, method, word_table)


def _counted(pairs: Sequence[DirectedPair], method: AlignmentMethod) -> tuple[WordTable, Iterator[AlignedPair]]:
    """The word table of pairs, and the pairs aligned by their maps as counting has reweighted them."""
    whole = [one_map(pair, method) for pair in pairs]
    # the last digits of a sum depend on the order, so pairs are summed in the order of the corpus
    maps = sorted((pair for pair in whole if pair.scores is not None), key=lambda pair: pair.sentence.id)
    word_table, reweighted = count_word_table(
        [(words_of(pair.sentence), pair.shares[:, :-1]) for pair in maps],
        method.word_table_passes,
        method.word_table_exponent,
    )
    scores = {pair.sentence.id: _reweighted(pair, new) for pair, new in zip(maps, reweighted)}
    return word_table, (
        _aligned(scores.get(joined.sentence.id, joined), pair, method) for joined, pair in zip(whole, pairs)
    )


def check_same_text(pairs: Iterable[tuple[PairWords, PairWords]]) -> None:
    """Check that both directions have the same sentence pairs.

    Unknown words and normalisation may change some words, so only a share of :data:`SAME_TEXT` must be equal.
    """
    equal = total = 0
    for forward, reverse in pairs:
        for words, others in zip(forward, reversed(reverse)):
            total += len(words)
            equal += sum(word.casefold() == other.casefold() for word, other in zip(words, others))
    if equal < SAME_TEXT * total:
        raise InputError(
            f"only {equal} of {total} words are the same in both directions; give records of the same sentence pairs "
            f"with source and target exchanged"
        )
