"""Combines two directions: the maps or links of a source-target model and of a target-source model for one pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import PairMap, SentenceLinks
from alignment_eval.extraction.method import BidirectionalOptions
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import SentenceMaps

#: Two runs with a smaller share of equal words are runs on different texts.
SAME_TEXT = 0.5

#: The words of a sentence pair, source and target.
PairWords = tuple[Sequence[str], Sequence[str]]


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
    """Check that both directions of a sentence pair have the same number of words.

    Raises:
        InputError: the numbers differ.
    """
    sizes = forward.source.word_count, forward.target.word_count
    other = reverse.target.word_count, reverse.source.word_count
    if sizes != other:
        raise InputError(
            f"sentence {forward.id} (line {forward.id + 1}) has {sizes[0]} source and {sizes[1]} target words, but "
            f"{other[0]} and {other[1]} in the other direction; give records of the same sentence pairs with source "
            f"and target exchanged"
        )


def words_of(sentence: SentenceMaps) -> PairWords:
    """The words of a sentence pair, source and target."""
    return sentence.source.word_strings(), sentence.target.word_strings()


def check_same_text(pairs: Iterable[tuple[PairWords, PairWords]]) -> None:
    """Check that both directions have the same sentence pairs.

    Unknown words and normalisation may change some words, so only a share of :data:`SAME_TEXT` must be equal.

    Raises:
        InputError: a smaller share is equal.
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
