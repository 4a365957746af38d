"""Whether two texts look like translations of each other, by a model's own scores of a sample.

Each sampled target is scored twice, teacher-forced: with its own source, and with the source of another pair of the
sample that is about as long.  What its own source adds, in nats a target token, is the gain of the pair: 2 to 3 for
translations, about 0 for other pairs.  Some pairs are scored exchanged as well, which shows exchanged files.

The thresholds were set on cmu150, vilar508 and held-out Europarl; docs/reproduction.md has false alarms and detections.
Nothing here knows a model: scores come as arrays.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pairs that are scored, those of them that are scored exchanged too, and the fewest that say anything.
SAMPLE, EXCHANGED, FEWEST = 100, 30, 10
#: Below this mean gain, in standard deviations of the gains, the pairs are not taken for translations.
LEAST_EFFECT = 1.0
#: From this mean gain on, the pairs outside of a shifted stretch are.
CLEAR_EFFECT = 1.5
#: Texts are taken for exchanged if more than this share of the pairs has a better score a token exchanged.
EXCHANGED_SHARE = 0.75
#: Texts are taken for the same if more than this share of the target's words stand in the source line.
COPIED_SHARE = 0.6
#: A pair whose gain is below this share of what good pairs of the sample gain looks misaligned.
LOW_SHARE = 0.2
#: What a pair of low gain, and any other, add to the evidence that a stretch of lines is shifted; how much is enough.
LOW_STEP, OTHER_STEP, ENOUGH = 2.0, -0.9, 9.0


@dataclass(frozen=True)
class Verdict:
    """What the sample says.

    Attributes:
        kind: ``fine``, ``few`` (too few pairs to say), ``exchanged``, ``copied``, ``unrelated`` or ``partly``.
        effect: mean gain divided by the standard deviation of the gains; NaN if there are too few pairs.
        helped: the share of pairs that their own source helps more than the other.
        exchanged: the share of pairs with a better score exchanged.
        copied: the share of target words that stand in the source line.
        stretch: of ``partly``: the first and the last sampled pair of the stretch, as positions in the sample.
    """

    kind: str
    effect: float
    helped: float
    exchanged: float
    copied: float
    stretch: Optional[tuple[int, int]] = None


def sample_lines(size: int, count: int = SAMPLE) -> list[int]:
    """The lines to be sampled of ``size``, ascending: all, or one by chance of each of ``count`` equal stretches."""
    if size <= count:
        return list(range(size))
    chance = random.Random(size)  # the same lines whenever the text is read again
    bounds = [k * size // count for k in range(count + 1)]
    return [chance.randrange(start, end) for start, end in zip(bounds, bounds[1:])]


def partners(source_tokens: Sequence[int], target_tokens: Sequence[int]) -> Ints:
    """For each of two or more pairs another one, whose source is about as long.

    The pairs are sorted by source length, then by target length; the first takes the source of the second and the
    second that of the first, and so on; with an odd number the last takes that of the one before.
    """
    order = np.lexsort((target_tokens, source_tokens))
    ranks = np.arange(len(order)) ^ 1
    ranks[ranks == len(order)] -= 2
    found = np.empty(len(order), dtype=np.int64)
    found[order] = order[ranks]
    return found


def exchanged_pairs(size: int) -> list[int]:
    """Which pairs of a sample are scored exchanged as well: all, or :data:`EXCHANGED` spread over it."""
    return list(range(size)) if size <= EXCHANGED else [k * size // EXCHANGED for k in range(EXCHANGED)]


def copied_share(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> float:
    """The share of the target words that stand in the source line, but for case; 0 without words."""
    words = [[word.casefold() for word in target] for _, target in pairs]
    known = [{word.casefold() for word in source} for source, _ in pairs]
    total = sum(map(len, words))
    return sum(word in there for line, there in zip(words, known) for word in line) / max(1, total)


def judge(own: Floats, other: Floats, exchanged: Floats, tokens: Ints, source_tokens: Ints, copied: float) -> Verdict:
    """The verdict on a sample, its pairs in the order of the text.

    Args:
        own: sum of the log probabilities (base e) of each target given its own source, [N].
        other: the same given the source of its partner, [N].
        exchanged: that of each source as a target given the target as a source, [N]; NaN for pairs other than
            those of :func:`exchanged_pairs`.
        tokens: target tokens, ``</s>`` included, [N].
        source_tokens: source tokens, likewise.
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
    """The stretch of pairs whose gains are lowest, if that is hardly chance: first and last position.

    Each pair is a step up if its gain is below :data:`LOW_SHARE` of the upper quartile and a step down if not; the
    stretch is the one with the largest sum.
    """
    low = gains < LOW_SHARE * np.quantile(gains, 0.75)
    best, found, total, start = 0.0, (0, 0), 0.0, 0
    for i, step in enumerate(np.where(low, LOW_STEP, OTHER_STEP).tolist()):
        if total <= 0:
            total, start = 0.0, i
        total += step
        if total > best:
            best, found = total, (start, i)
    return found if best >= ENOUGH else None
