"""Combines two directions: the maps of a source-target model and of a target-source model for the same pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from alignment_eval.errors import InputError
from alignment_eval.extraction.batch import choose_links, join_word_maps
from alignment_eval.extraction.extract import WordLinks
from alignment_eval.extraction.method import check_join
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps

#: Two runs with a smaller share of equal words are runs on different texts.
SAME_TEXT = 0.5

#: The words of a sentence pair, source and target.
Words = tuple[list[str], list[str]]


def join_all(
    how: str,
    sentences: Sequence[SentenceMaps],
    options: ExtractionOptions,
    forward: Sequence[WordLinks],
    reverse: Sequence[WordLinks],
) -> list[WordLinks]:
    """Combine the two directions of each of several sentence pairs into one alignment.

    ``mutual`` keeps the links of both directions; with a rule that makes one choice per word, this is the mutual
    argmax.  The share of a link is the smaller of its two shares.

    ``average`` and ``product`` make one word map of F and R, the ``shares`` of the two directions, and apply the rule
    to it.  Each row of F and R, null included, sums to 1.  ``average``: (F + Rᵀ) / 2.  R has no null column for
    *target* words, so it counts as 0 there and null gets half of F's share.  ``product``: F ∘ Rᵀ, cell by cell, without
    null.

    Args:
        how: one of :data:`JOINS`.
        sentences: the pairs in the forward direction.
        options: the rule for both directions.
        forward: links and shares of source → target, from :func:`alignment_eval.extraction.extract.word_links`.
        reverse: those of target → source; ``linked`` is [target words, source words].

    Raises:
        InputError: the directions of a pair differ in the number of words.
        UsageError: as :func:`check_join`.
    """
    check_join(how, options)
    for sentence, other in zip(sentences, reverse):
        check_same_size(sentence, (other.shares.shape[1] - 1, len(other.shares)))
    if how != "mutual":
        return join_word_maps(how, sentences, options, forward, reverse)
    choose_links([*forward, *reverse])
    return [_mutual(*each) for each in zip(forward, reverse)]


def join(
    how: str, sentence: SentenceMaps, options: ExtractionOptions, forward: WordLinks, reverse: WordLinks
) -> WordLinks:
    """:func:`join_all` of one sentence pair."""
    return join_all(how, [sentence], options, [forward], [reverse])[0]


def _mutual(forward: WordLinks, reverse: WordLinks) -> WordLinks:
    shares = forward.shares.copy()
    shares[:, :-1] = np.minimum(shares[:, :-1], reverse.shares[:, :-1].T)
    return WordLinks(forward.linked & reverse.linked.T, shares)


def check_same_size(sentence: SentenceMaps, reverse: tuple[int, ...]) -> None:
    """Check that both directions of a sentence pair have the same number of words.

    Args:
        sentence: the pair.
        reverse: the number of source words and of target words in the other direction.

    Raises:
        InputError: the numbers differ.
    """
    source, target = sentence.source.word_count, sentence.target.word_count
    if (target, source) != reverse:
        raise InputError(
            f"sentence {sentence.id} (line {sentence.id + 1}) has {source} source and {target} target words, but "
            f"{reverse[1]} and {reverse[0]} in the other direction; give records of the same sentence pairs with "
            f"source and target exchanged"
        )


def words_of(sentence: SentenceMaps) -> Words:
    """The words of a sentence pair, source and target."""
    return (
        sentence.source.word_strings(),
        sentence.target.word_strings(),
    )


def check_same_text(pairs: Iterable[tuple[Words, Words]]) -> None:
    """Check that both directions have the same sentence pairs.

    Unknown words and normalisation may change some words, so only a share of :data:`SAME_TEXT` must be equal.

    Args:
        pairs: the words of each sentence pair in the forward and in the reverse direction, the same number in both.

    Raises:
        InputError: a smaller share is equal.
    """
    equal = total = 0
    for forward, reverse in pairs:
        for mine, its in zip(forward, reversed(reverse)):
            total += len(mine)
            equal += sum(a.casefold() == b.casefold() for a, b in zip(mine, its))
    if equal < SAME_TEXT * total:
        raise InputError(
            f"only {equal} of {total} words are the same in both directions; give records of the same sentence pairs "
            f"with source and target exchanged"
        )
