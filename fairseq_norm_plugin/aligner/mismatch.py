"""Decide from a model's own scores of a sample whether two texts look like translations of each other.

Each sampled target is scored twice, teacher-forced: with its own source, and with a source of about the same length
from another pair of the sample.  The gain of a pair is how much its own source adds, in nats per target token: 2 to 3
for translations, about 0 for unrelated pairs.  Some pairs are also scored with source and target exchanged, which
detects exchanged files.

The thresholds were set on cmu150, vilar508 and held-out Europarl; docs/reproduction.md counts false alarms.
This module does not depend on a model: scores come as arrays.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class Verdict:
    """The verdict on a sample.

    Attributes:
        kind: ``fine``, ``few`` (too few pairs), ``exchanged``, ``copied``, ``unrelated`` or ``partly``.
        effect: mean gain divided by the standard deviation of the gains; NaN if there are too few pairs.
        helped: the share of pairs that score better with their own source than with the other.
        exchanged: the share of pairs that score better when exchanged.
        copied: the share of target words that occur in their source line.
        stretch: for ``partly``: the first and last pair of the stretch, as positions in the sample.
    """

    kind: str
    effect: float
    helped: float
    exchanged: float
    copied: float
    stretch: Optional[tuple[int, int]] = None


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
        return Verdict("few", np.nan, np.nan, np.nan, copied)
    gains = (own - other) / tokens
    effect = _effect(gains)
    helped = float((gains > 0).mean())
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
    return Verdict(kind, effect, helped, better, copied, stretch)


def _effect(gains: Floats) -> float:
    return float(gains.mean() / max(float(gains.std(ddof=1)), 1e-9))


def low_stretch(gains: Floats) -> Optional[tuple[int, int]]:
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
