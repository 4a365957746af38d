"""Links from both directions: the maps of a source-target model and of a target-source model on the same pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import WordLinks, word_map_links
from alignment_eval.extraction.method import check_join
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.subwords import word_strings

#: Below this share of equal words two runs are said to be of different texts.
SAME_TEXT = 0.5

#: The words of a sentence pair, source and target.
Words = tuple[list[str], list[str]]


def join(
    how: str, sentence: SentenceMaps, options: ExtractionOptions, forward: WordLinks, reverse: WordLinks
) -> WordLinks:
    """One alignment of a sentence pair from its two directions.

    ``mutual``: the links that both have; with a rule of one choice a word, the mutual argmax.  A link's share is the
    smaller of its two.

    The others make one word map of F and R, the ``shares`` of the two, in which each row, null included, sums to 1, and
    apply the rule to it.  ``average``: (F + Rᵀ) / 2.  R has no null column for *target* words: there it counts as 0, so
    that null has half of F's share.  ``product``: F ∘ Rᵀ, cell by cell, without null.

    Args:
        how: one of :data:`JOINS`.
        sentence: the pair in the forward direction.
        options: the rule, of both directions.
        forward: links and shares of source → target, as :func:`alignment_eval.extraction.extract.word_links` has them.
        reverse: those of target → source: ``linked`` is [target words, source words].

    Raises:
        InputError: the two are not of as many words.
        UsageError: as :func:`check_join`.
    """
    check_join(how, options)
    check_same_size(sentence, reverse.linked.shape)
    words, null = forward.shares[:, :-1], forward.shares[:, -1:]
    back = reverse.shares[:, :-1].T
    if how == "mutual":
        shares = np.concatenate([np.minimum(words, back), null], axis=1)
        return WordLinks(forward.linked & reverse.linked.T, shares)
    both = ((words + back) / 2, null / 2) if how == "average" else (words * back, np.zeros_like(null))
    return word_map_links(np.concatenate(both, axis=1), sentence, options)


def check_same_size(sentence: SentenceMaps, reverse: tuple[int, ...]) -> None:
    """Check that a sentence pair is as long in both directions.

    Args:
        sentence: the pair.
        reverse: the number of source words and of target words in the other direction.

    Raises:
        InputError: it is not.
    """
    source, target = sentence.source.word_count, sentence.target.word_count
    if (target, source) != reverse:
        raise InputError(
            f"sentence {sentence.id} (line {sentence.id + 1}): {source} source and {target} target words, but the "
            f"other direction has {reverse[1]} and {reverse[0]} of them: expected records of the same sentence pairs, "
            f"source and target exchanged"
        )


def words_of(sentence: SentenceMaps) -> Words:
    """The words of a sentence pair, source and target."""
    return (
        word_strings(sentence.source.tokens, sentence.source.words),
        word_strings(sentence.target.tokens, sentence.target.words),
    )


def check_same_text(pairs: Iterable[tuple[Words, Words]]) -> None:
    """Check that the pairs of a corpus are the same in both directions.

    Unknown words and different normalisation may change some of them, so at least :data:`SAME_TEXT` must be equal.

    Args:
        pairs: the words of each sentence pair in the forward and in the reverse direction, of as many words.

    Raises:
        InputError: fewer are equal.
    """
    equal = total = 0
    for forward, reverse in pairs:
        for mine, its in zip(forward, reversed(reverse)):
            total += len(mine)
            equal += sum(a.casefold() == b.casefold() for a, b in zip(mine, its))
    if equal < SAME_TEXT * total:
        raise InputError(
            f"only {equal} of {total} words are the same in the two directions: expected records of the same sentence "
            f"pairs, source and target exchanged"
        )
