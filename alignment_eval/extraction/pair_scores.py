"""Scores of a sentence pair and of its words: what does one side say that the other does not?

A word of one side may be new to the other for two reasons: the model that reads the other side does not expect it, and
no word over there takes it.  Its *surprise* is s / (s + :data:`HALF`), where s is -log p (base e), the mean over its
subwords.  Its *support* is the largest value of its row or column of a map [target words, source words]: the row shares
F of the one model, or √(F ∘ Rᵀ) with the row shares R of the reverse model; null counts in rows.  The reverse model
knows the surprise of source words; without one it is 1/2.

    of a word:      new = surprise · (1 - support)
    of a pair:      x = mean of surprise · (1 - support / 2) over both sides; 0 if a side has no words
                    y = mean new of target words - mean new of source words
                    z = max(min(:data:`EXTRA` · r(extra), :data:`MOST_OF_EXTRA`), r(copied))
    unsupported:    answer(max(x - DOUBTFUL, y - MORE, z - DOUBTFUL)): neither side explains the other, the target says
                    more, or it repeats itself or the source
    omitted:        answer(-y - MORE): the source says more

answer(v) is 1 / (1 + exp(-:data:`SLOPE` v)).  r(v) is the sum of surprise² · v over the n target words, divided by √n.
Words are those with a letter or digit, or all if neither side has such; only words support words.  The mean over both
sides is that of two means.  In y, free words of both sides cancel out; without a reverse model, all surprises in it are
1/2, or its two means could not be compared.

A source word carries a target word as often as it occurs itself.  ``extra`` is the part of a target word beyond that:
of its row F, what no longer fits after the earlier copies of the target word, where c copies of a source word u have
room for c · the largest F(v, u) of the copies v.  ``copied`` is 1 for a target word of letters alone that is a word of
the source, too.  Names are, but the model expects them.  In the scores of target words support is less, multiplied by
1 - max(extra, copied).  docs/reproduction.md has the measurements.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.extract import LINK_DECIMALS, WordMap, WordMaps
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import PairWords, words_of
from alignment_eval.maps.words import Floats

#: -log p of a subword that surprises by half; the slope of answers; the x and the y from which they are over 1/2.  They
#: were chosen on every second translation of Guerreiro et al. (2022).
HALF, SLOPE, DOUBTFUL, MORE = 3.0, 20.0, 0.45, 0.25
#: What repetition weighs beside copies of the source, and the most that counts: a target about something else is worse.
#: They were chosen on altered pairs of cmu150 and on the same translations.
EXTRA, MOST_OF_EXTRA = 4.0, 0.5
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
    words = words_of(forward.sentence)
    content = _content_words(words)
    support = forward.shares[:, :-1]
    if reverse is not None:
        support = np.sqrt(support * reverse.shares[:, :-1].T)
    support = np.where(content[1][:, None] == content[0], support, 0)
    supports = support.max(axis=0), support.max(axis=1)
    known = [None if reverse is None else _surprise(reverse), _surprise(forward)]
    surprises = [np.full(len(own), 0.5) if surprise is None else surprise for own, surprise in zip(supports, known)]
    new = [surprise * (1 - own) for surprise, own in zip(surprises, supports)]
    missing = new if reverse is not None else [0.5 * (1 - own) for own in supports]
    weak = [surprise * (1 - own / 2) for surprise, own in zip(surprises, supports)]
    x = sum(map(_mean, weak, content)) / 2 if all(own.any() for own in content) else 0
    y = _mean(missing[1], content[1]) - _mean(missing[0], content[0])
    extra, copied = _extra(forward.shares[:, :-1] * content[0], words), _copied(words)
    weights = (surprises[1] ** 2)[content[1]] / math.sqrt(max(content[1].sum(), 1))
    repeated, again = ((weights * values[content[1]]).sum() for values in (extra, copied))
    z = max(min(EXTRA * repeated, MOST_OF_EXTRA), again)
    of_words = surprises[1] * (1 - supports[1] * (1 - np.maximum(extra, copied)))
    unlinked = [linked.sum(axis=axis) == 0 for axis in (1, 0)]
    confidences = None if sure is None else sure[:, :-1].T[linked]
    return PairScores(
        log_prob=_rounded(_log_probs(forward).mean()),
        reverse_log_prob=None if reverse is None else _rounded(_log_probs(reverse).mean()),
        confidence=None if confidences is None else _rounded(confidences.mean() if len(confidences) else 0.0),
        unlinked_source=_rounded(_mean(unlinked[0], content[0])),
        unlinked_target=_rounded(_mean(unlinked[1], content[1])),
        source_contribution=None if forward.contribution is None else _rounded(forward.contribution),
        unsupported=_answer(max(x - DOUBTFUL, y - MORE, z - DOUBTFUL)),
        omitted=_answer(-y - MORE),
        unsupported_words=of_words.round(LINK_DECIMALS).tolist(),
        omitted_words=new[0].round(LINK_DECIMALS).tolist(),
    )


def join_scores(
    scores: Sequence[PairScores],
    tokens: Sequence[Sequence[int]],
    words: PairWords,
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

    content = _content_words(words)

    def unlinked(which: int) -> float:
        linked = {link[which] for link in links}
        free = np.array([word not in linked for word in range(len(words[which]))])
        return _rounded(_mean(free, content[which]))

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


def _extra(shares: Floats, words: PairWords) -> Floats:
    """``extra`` of each target word, of ``shares`` [target words, source words] of its row."""
    (_, sources), (_, targets) = (np.unique([word.casefold() for word in side], return_inverse=True) for side in words)
    taken = np.zeros((len(targets), sources.max() + 1))
    np.add.at(taken.T, sources, shares.T)
    extra = np.zeros(len(targets))
    for word in np.flatnonzero(np.bincount(targets) > 1):
        own = taken[targets == word]
        carried = np.bincount(sources) * own.max(axis=0)
        extra[targets == word] = np.clip(own.cumsum(axis=0) - carried, 0, own).sum(axis=1)
    return extra


def _copied(words: PairWords) -> NDArray[np.bool_]:
    """Which target words, of letters only, are words of the source, too."""
    source = {word.casefold() for word in words[0]}
    return np.array([word.casefold() in source and _categories(word) <= {"L", "M"} for word in words[1]])


def _categories(word: str) -> set[str]:
    """The first letters of the Unicode categories of its characters: L for letters, M for marks, N for digits."""
    return {unicodedata.category(character)[0] for character in word}


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


def _content_words(words: PairWords) -> list[NDArray[np.bool_]]:
    """The words of both sides that means are over: those with a letter or digit, or all if neither side has such."""
    content = [np.array([not _categories(word).isdisjoint("LN") for word in side], dtype=np.bool_) for side in words]
    return content if any(own.any() for own in content) else [~own for own in content]


def _mean(values: NDArray[Any], words: NDArray[np.bool_]) -> float:
    """The mean over ``words``, 0 over none."""
    return float(values[words].mean()) if words.any() else 0.0


def _rounded(value: float) -> float:
    return round(float(value), DECIMALS)
