"""Scores of a sentence pair and of its words: what does one side say that the other does not?

A word of one side may be new to the other for two reasons: the model that reads the other side does not expect it, and
no word over there takes it.  Its *surprise* is s / (s + :data:`HALF`), where s is -log p (base e), the mean over its
subwords.  Its *support* is the largest value of its row or column of a map [target words, source words]: the row shares
F of the one model, or √(F ∘ Rᵀ) with the row shares R of the reverse model; null counts in rows.  The reverse model
knows the surprise of source words; without one it is 1/2.

    of a word:      new = surprise · (1 - support)
    of a pair:      x = mean of surprise · (1 - support / 2) over both sides
                    y = mean new of target words - mean new of source words
    unsupported:    answer(max(x - DOUBTFUL, y - MORE)): neither side explains the other, or the target says more
    omitted:        answer(-y - MORE): the source says more

answer(z) is 1 / (1 + exp(-:data:`SLOPE` z)).  Means leave out punctuation; that over both sides is the mean of two
means.  In y, free words of both sides cancel out; without a reverse model, all surprises in it are 1/2, or its two
means could not be compared.  docs/reproduction.md has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import LINK_DECIMALS, WordMap, WordMaps
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceSide, is_punctuation
from alignment_eval.maps.words import Floats

#: -log p of a subword that surprises by half; the slope of answers; the x and the y from which they are over 1/2.  They
#: were chosen on every second translation of Guerreiro et al. (2022).
HALF, SLOPE, DOUBTFUL, MORE = 3.0, 20.0, 0.45, 0.25
#: Decimals of the scores of a pair; see :data:`~alignment_eval.extraction.extract.LINK_DECIMALS`.
DECIMALS = 3


@dataclass(frozen=True)
class PairScores:
    """The scores of a sentence pair; None: not known."""

    log_prob: float | None = None  #: mean log probability (base e) of a target token, ``</s>`` included
    reverse_log_prob: float | None = None  #: that of a source token, by the reverse model
    confidence: float | None = None  #: mean confidence of the links, 0 without links; None if links have none
    unlinked_source: float | None = None  #: the share of source words without a link, without punctuation
    unlinked_target: float | None = None  #: that of target words
    #: the share of the source in the prediction of the target (ALTI+), if it was computed
    source_contribution: float | None = None
    unsupported: float | None = None  #: how likely the target says what the source does not, from 0 to 1
    omitted: float | None = None  #: how likely the source says what the target does not
    unsupported_words: list[float] | None = None  #: how new each target word is to the source, from 0 to 1
    omitted_words: list[float] | None = None  #: how new each source word is to the target


#: The names of scores: those of a pair, one number each, and those of its words.
PAIR_SCORES = tuple(PairScores.__annotations__)[:-2]
WORD_SCORES = tuple(PairScores.__annotations__)[-2:]


def score_pair(pair: WordMaps, linked: NDArray[np.bool_], sure: Floats | None) -> PairScores:
    """The scores of a pair whose maps were read with the log probabilities of their targets.

    ``linked`` [source words, target words]: its links; ``sure`` [target words, source words + 1]: their confidences.
    """
    forward, reverse = pair
    source, target = forward.sentence.source, forward.sentence.target
    support = forward.shares[:, :-1]
    if reverse is not None:
        support = np.sqrt(support * reverse.shares[:, :-1].T)
    supports = support.max(axis=0), support.max(axis=1)
    content = _content_words(source), _content_words(target)
    known = [None if reverse is None else _surprise(reverse), _surprise(forward)]
    surprises = [np.full(len(own), 0.5) if surprise is None else surprise for own, surprise in zip(supports, known)]
    new = [surprise * (1 - own) for surprise, own in zip(surprises, supports)]
    missing = new if reverse is not None else [0.5 * (1 - own) for own in supports]
    weak = [surprise * (1 - own / 2) for surprise, own in zip(surprises, supports)]
    x = sum(_mean(values, words) for values, words in zip(weak, content)) / 2
    y = _mean(missing[1], content[1]) - _mean(missing[0], content[0])
    unlinked = [linked.sum(axis=axis) == 0 for axis in (1, 0)]
    confidences = None if sure is None else sure[:, :-1].T[linked]
    return PairScores(
        log_prob=_rounded(_log_probs(forward).mean()),
        reverse_log_prob=None if reverse is None else _rounded(_log_probs(reverse).mean()),
        confidence=None if confidences is None else _rounded(confidences.mean() if len(confidences) else 0.0),
        unlinked_source=_rounded(_mean(unlinked[0], content[0])),
        unlinked_target=_rounded(_mean(unlinked[1], content[1])),
        source_contribution=None if forward.contribution is None else _rounded(forward.contribution),
        unsupported=_answer(max(x - DOUBTFUL, y - MORE)),
        omitted=_answer(-y - MORE),
        unsupported_words=new[1].round(LINK_DECIMALS).tolist(),
        omitted_words=new[0].round(LINK_DECIMALS).tolist(),
    )


def join_scores(
    scores: Sequence[PairScores],
    tokens: Sequence[Sequence[int]],
    words: tuple[Sequence[str], Sequence[str]],
    links: Sequence[Link],
    confidences: Mapping[Link, float],
) -> PairScores:
    """The scores of a pair of lines, of those of its sentences: means over the lines.

    ``unsupported`` and ``omitted`` are those of the sentence where they are highest.  ``tokens`` are the numbers of
    target tokens and of source tokens of each sentence; ``words``, ``links`` and ``confidences`` are of the lines.
    """

    def mean(name: str, which: int = 0) -> float | None:
        values = [getattr(of_sentence, name) for of_sentence in scores]
        return None if None in values else _rounded(np.average(values, weights=[counts[which] for counts in tokens]))

    def unlinked(which: int) -> float:
        linked = {link[which] for link in links}
        free = np.array([word not in linked for word in range(len(words[which]))])
        return _rounded(_mean(free, _content_words(SentenceSide.of_words(words[which]))))

    shares = list(confidences.values())
    return PairScores(
        log_prob=mean("log_prob"),
        reverse_log_prob=mean("reverse_log_prob", which=1),
        confidence=None if scores[0].confidence is None else _rounded(sum(shares) / max(len(shares), 1)),
        unlinked_source=unlinked(0),
        unlinked_target=unlinked(1),
        source_contribution=mean("source_contribution"),
        unsupported=max(of_sentence.unsupported or 0.0 for of_sentence in scores),
        omitted=max(of_sentence.omitted or 0.0 for of_sentence in scores),
        unsupported_words=[new for of_sentence in scores for new in of_sentence.unsupported_words or ()],
        omitted_words=[new for of_sentence in scores for new in of_sentence.omitted_words or ()],
    )


def _answer(z: float) -> float:
    return _rounded(1 / (1 + math.exp(-SLOPE * z)))


def _surprise(word_map: WordMap) -> Floats:
    """The surprise of each target word of a map; words that share a subword share its surprise."""
    side = word_map.sentence.target
    words = side.words[~side.special]
    surprisal = np.bincount(words, -_log_probs(word_map)[~side.special]) / np.bincount(words)
    surprise: Floats = surprisal / (surprisal + HALF)
    return surprise if side.words_per_run is None else np.repeat(surprise, side.words_per_run)


def _log_probs(word_map: WordMap) -> Floats:
    assert word_map.sentence.log_probs is not None
    return word_map.sentence.log_probs


def _content_words(side: SentenceSide) -> NDArray[np.bool_]:
    """The words that means are over: those that are not punctuation, or all if there is no other."""
    words = np.array([not is_punctuation(word) for word in side.word_strings()], dtype=np.bool_)
    return words if words.any() else ~words


def _mean(values: NDArray[Any], words: NDArray[np.bool_]) -> float:
    return float(values[words].mean())


def _rounded(value: float) -> float:
    return round(float(value), DECIMALS)
