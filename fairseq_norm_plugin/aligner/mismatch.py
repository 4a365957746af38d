"""Warns before the work starts if two texts do not look like translations of each other, by a model's own scores.

Each sampled target is scored twice, teacher-forced: with its own source, and with a source of about the same length
from another pair of the sample.  The gain of a pair is how much its own source adds, in nats per target token: 2 to 3
for translations, about 0 for unrelated pairs.  Some pairs are also scored with source and target exchanged, which
detects exchanged files.

The thresholds were set on cmu150, vilar508 and held-out Europarl; docs/reproduction.md counts false alarms.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairseq_norm_plugin.aligner.aligner import length_batches
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.text.ids import EncodedPair, lengths_of
from fairseq_norm_plugin.text.tokenise import LinePair, words_of_pair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many pairs are scored, how many of them exchanged as well, and how many are needed for a verdict.
SAMPLE, EXCHANGED, FEWEST = 100, 30, 10
#: Below this mean gain, in standard deviations of the gains, pairs do not count as translations.
LEAST_EFFECT = 1.0
#: From this mean gain on, the pairs outside a shifted stretch count as translations.
CLEAR_EFFECT = 1.5
#: Texts count as exchanged if more than this share of the pairs has a better score per token when exchanged.
EXCHANGED_SHARE = 0.75
#: Texts count as the same if more than this share of the target words occur in their source line.
COPIED_SHARE = 0.6
#: A pair looks misaligned if its gain is below this share of the gain of good pairs (the upper quartile).
LOW_SHARE = 0.2
#: Evidence for a shifted stretch of lines: added by a pair of low gain, by any other pair; the sum that is enough.
LOW_STEP, OTHER_STEP, ENOUGH = 2.0, -0.9, 9.0
#: Tokens of a batch, at most: each needs scores of the whole vocabulary, in several copies (a vocabulary of 10,000
#: words: 40 MB for 1,000 tokens, which the process keeps after the check).
_MAX_TOKENS = 250


@dataclass(frozen=True)
class Verdict:
    """The verdict on a sample.

    Attributes:
        kind: ``fine``, ``few`` (too few pairs), ``exchanged``, ``copied``, ``unrelated`` or ``partly``.
        effect: mean gain divided by the standard deviation of the gains; NaN if there are too few pairs.
        exchanged: the share of pairs that score better when exchanged.
        copied: the share of target words that occur in their source line.
        stretch: for ``partly``: the first and last pair of the stretch, as positions in the sample.
    """

    kind: str
    effect: float
    exchanged: float
    copied: float
    stretch: tuple[int, int] | None = None


def sample_lines(size: int, count: int = SAMPLE) -> list[int]:
    """Sample lines of a text of ``size``, ascending: all, or a random one from each of ``count`` equal stretches."""
    if size <= count:
        return list(range(size))
    chance = random.Random(size)  # the same lines in every run
    bounds = [k * size // count for k in range(count + 1)]
    return [chance.randrange(start, end) for start, end in itertools.pairwise(bounds)]


def partners(source_tokens: Sequence[int], target_tokens: Sequence[int]) -> Ints:
    """For each of two or more pairs, choose another pair whose source has about the same length.

    Pairs are sorted by source length, then by target length, and neighbours are partners of each other; if their number
    is odd, the last takes the source of the one before.
    """
    order = np.lexsort((target_tokens, source_tokens))
    ranks = np.arange(len(order)) ^ 1
    ranks[ranks == len(order)] -= 2
    chosen = np.empty(len(order), dtype=np.int64)
    chosen[order] = order[ranks]
    return chosen


def exchanged_pairs(size: int) -> list[int]:
    """The pairs of a sample that are also scored exchanged: all, or :data:`EXCHANGED` evenly spread."""
    return list(range(size)) if size <= EXCHANGED else [k * size // EXCHANGED for k in range(EXCHANGED)]


def copied_share(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> float:
    """The share of target words that occur in their source line, ignoring case; 0 without words."""
    words = [[word.casefold() for word in target] for _, target in pairs]
    known = [{word.casefold() for word in source} for source, _ in pairs]
    total = sum(map(len, words))
    return sum(word in there for line, there in zip(words, known) for word in line) / max(1, total)


def judge(own: Floats, other: Floats, exchanged: Floats, tokens: Ints, source_tokens: Ints, copied: float) -> Verdict:
    """Judge a sample, its pairs in the order of the text.

    Args:
        own: log probability (base e, sum over tokens) of each target given its own source, [N].
        other: the same, given the source of its partner, [N].
        exchanged: the same, of each source given its target, [N]; NaN except for :func:`exchanged_pairs`.
        tokens: number of target tokens, ``</s>`` included, [N].
        source_tokens: number of source tokens, likewise.
        copied: :func:`copied_share` of the sample.
    """
    if len(own) < FEWEST:
        return Verdict("few", np.nan, np.nan, copied)
    gains = (own - other) / tokens
    effect = _effect(gains)
    scored = ~np.isnan(exchanged)
    better = float((exchanged / source_tokens > own / tokens)[scored].mean())
    kind, stretch = "fine", None
    if copied > COPIED_SHARE:
        kind = "copied"
    elif better > EXCHANGED_SHARE:
        kind = "exchanged"
    else:
        stretch = low_stretch(gains)
        if stretch is not None:
            rest = np.delete(gains, range(stretch[0], stretch[1] + 1))
            kind = "partly" if len(rest) >= FEWEST and _effect(rest) >= CLEAR_EFFECT else "unrelated"
        elif effect < LEAST_EFFECT:
            kind = "unrelated"
    if kind != "partly":
        stretch = None
    return Verdict(kind, effect, better, copied, stretch)


def _effect(gains: Floats) -> float:
    return float(gains.mean() / max(float(gains.std(ddof=1)), 1e-9))


def low_stretch(gains: Floats) -> tuple[int, int] | None:
    """Find the stretch of pairs with the lowest gains, if it is unlikely to be chance: first and last position.

    Each pair adds :data:`LOW_STEP` if its gain is below :data:`LOW_SHARE` of the upper quartile, else
    :data:`OTHER_STEP`; the stretch with the largest sum counts if the sum reaches :data:`ENOUGH`.
    """
    low = gains < LOW_SHARE * np.quantile(gains, 0.75)
    best, stretch, total, start = 0.0, (0, 0), 0.0, 0
    for i, step in enumerate(np.where(low, LOW_STEP, OTHER_STEP).tolist()):
        if total <= 0:
            total, start = 0.0, i
        total += step
        if total > best:
            best, stretch = total, (start, i)
    return stretch if best >= ENOUGH else None


def _sampled_pairs(text: Iterable[LinePair], size: int, direction: Direction) -> dict[int, LinePair]:
    """Sample pairs of a text, by line, counted from 0: those that have words on both sides and fit the model both ways.

    No two of them have the same source or the same target: each is compared with another one.
    """
    wanted = set(sample_lines(size))
    last = max(wanted, default=-1)
    sample = {}
    seen: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = set(), set()
    for number, pair in enumerate(text):
        if number in wanted and all(pair):
            sides = words_of_pair(pair)
            is_new = not any(side in before for side, before in zip(sides, seen))
            if is_new and all(direction.fits(direction.encode(way)) for way in (pair, pair[::-1])):
                sample[number] = pair
                for side, before in zip(sides, seen):
                    before.add(side)
        if number == last:
            break
    return sample


def mismatch_warning(text: Iterable[LinePair], size: int, direction: Direction, max_tokens: int = 4000) -> str | None:
    """Check whether a text looks parallel before it is aligned; None if it does, or is too short to tell.

    Args:
        text: the sentence pairs, read up to the last of the sample.
        size: how many pairs there are.
        direction: the source-target model.
        max_tokens: tokens of a batch, pads included.
    """
    sample = _sampled_pairs(text, size, direction)
    if len(sample) < 2:
        return None
    verdict = judge_pairs(list(sample.values()), direction, max_tokens)
    if verdict.kind == "exchanged" and direction.trained:
        return None  # the model is of the other direction, which was told when it was loaded
    lines = list(sample)
    stretch = verdict.stretch and (lines[verdict.stretch[0]] + 1, lines[verdict.stretch[1]] + 1)
    return _message(verdict, stretch, len(sample))


def judge_pairs(pairs: Sequence[LinePair], direction: Direction, max_tokens: int = 4000) -> Verdict:
    """Judge two or more sentence pairs that fit the model, in the order of the text."""
    encoded = [direction.encode(pair) for pair in pairs]
    lengths = np.array([[len(side.ids) for side in pair] for pair in encoded], dtype=np.int64)
    other = partners(lengths[:, 0].tolist(), lengths[:, 1].tolist())
    backwards = exchanged_pairs(len(pairs))
    jobs: dict[int, EncodedPair] = dict(enumerate(encoded))
    jobs.update({len(pairs) + i: (encoded[int(j)][0], encoded[i][1]) for i, j in enumerate(other)})
    jobs.update({2 * len(pairs) + i: direction.encode((pairs[i][1], pairs[i][0])) for i in backwards})
    scores: dict[int, float] = {}
    for ids in length_batches(lengths_of(jobs), min(max_tokens, _MAX_TOKENS)):
        scores.update(direction.scores({id_: jobs[id_] for id_ in ids}))
    count = len(pairs)
    exchanged = np.full(count, np.nan)
    exchanged[backwards] = [scores[2 * count + i] for i in backwards]
    own, swapped = (np.array([scores[start + i] for i in range(count)]) for start in (0, count))
    return judge(own, swapped, exchanged, lengths[:, 1], lengths[:, 0], copied_share(list(map(words_of_pair, pairs))))


def _message(verdict: Verdict, stretch: tuple[int, int] | None, count: int) -> str | None:
    if verdict.kind == "exchanged":
        return (
            f"source and target look exchanged: {100 * verdict.exchanged:.0f} % of {count} sampled pairs score "
            f"better with source and target exchanged; exchange the two texts, or the models with -s and -t"
        )
    if verdict.kind == "copied":
        return (
            f"source and target look like the same text: {100 * verdict.copied:.0f} % of the target words occur in "
            f"their source line; check that the two files differ"
        )
    if verdict.kind == "unrelated":
        return (
            f"the lines do not look like translations of each other: in {count} sampled pairs the model predicts a "
            f"target hardly better from its own source than from another one; check that both files are complete, in "
            f"the same order, and of the model's languages and case"
        )
    if verdict.kind == "partly" and stretch is not None:
        return (
            f"lines {stretch[0]} to {stretch[1]}, approximately, do not look like translations of each other, the "
            f"others do: check for a missing or extra line there"
        )
    return None
