"""Tells before the work starts if two texts do not look like translations of each other, by a model's own scores.

Each sampled target is scored twice, teacher-forced: with its own source, and with a source of about the same length
from another pair of the sample.  The gain of a pair is how much its own source adds, in nats per target token: 2 to 3
for translations, about 0 for unrelated pairs.  Some pairs are also scored with source and target exchanged.  One more
sign: the dictionary has subwords of a word as one, which the model's own BPE codes would have merged.

The thresholds were set on cmu150, vilar508 and held-out Europarl; docs/reproduction.md counts false alarms.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, warn_user
from fairseq_norm_plugin.model.model import Model, length_batches
from fairseq_norm_plugin.text.pair import SentencePair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many pairs are scored, at least and at most, how many of them exchanged as well, and how many it takes.
SAMPLE, REREAD, FEWEST = (20, 100), 10, 10
#: From this mean gain on, in standard deviations of the gains, pairs count as translations; those outside a shifted
#: stretch from the second on.
LEAST_EFFECT, CLEAR_EFFECT = 1.0, 1.5
#: Texts look exchanged if more than this share of the pairs scores better exchanged, and if the mean gain is at least
#: this many nats per token.
BETTER_SHARE, BETTER = 0.5, 0.3
#: Texts count as the same if more than this share of the target words occur in their source line.
COPIED_SHARE = 0.6
#: Words look cut by other codes if the dictionary has more than this share of neighbouring subwords as one, and so many
#: of them: none in a text that was cut by the model's own codes.
SPLIT_SHARE, FEWEST_SPLIT = 0.05, 10
#: A pair looks misaligned if its gain is below this share of the gain of good pairs (the upper quartile).
LOW_SHARE = 0.2
#: Verdicts after which nothing is aligned, unless forced: links of such pairs mean nothing.
REFUSED = ("exchanged", "partly", "unrelated")
#: Evidence for a shifted stretch of lines: added by a pair of low gain, by any other pair; the sum that is enough.
LOW_STEP, OTHER_STEP, ENOUGH = 2.0, -0.9, 9.0
#: Tokens of a batch, at most: each needs scores of the whole vocabulary, in several copies (a vocabulary of 10,000
#: words: 40 MB for 1,000 tokens, which the process keeps after the check).
_MAX_TOKENS = 250


def sample_lines(size: int, count: int | None = None) -> list[int]:
    """Sample lines of a text of ``size``, ascending: all, or a random one from each of ``count`` equal stretches.

    By default one of 25, but :data:`SAMPLE` at least and at most.
    """
    count = min(max(size // 25, SAMPLE[0]), SAMPLE[1]) if count is None else count
    if size <= count:
        return list(range(size))
    chance = random.Random(size)  # the same lines in every run
    bounds = [k * size // count for k in range(count + 1)]
    return [chance.randrange(start, end) for start, end in itertools.pairwise(bounds)]


def check_parallel(sample: Iterable[tuple[int, SentencePair]], model: Model, refused: Collection[str] = ()) -> None:
    """Warn of a text that does not look parallel (:func:`find_mismatch`), or refuse it by verdicts of ``refused``.

    ``sample`` are pairs with their lines, from 0 (:func:`sample_lines`).  Below :data:`FEWEST` of them nothing is
    scored.
    """
    sample = list(sample)
    for which, name in enumerate(("source", "target") if sample else ()):
        if found := model.pipelines[which].prepared([pair[which].text for _, pair in sample]):
            warn_user(f"the {name} text {found}")
    if mismatch := find_mismatch(sample, model):
        kind, message = mismatch
        if kind in refused:
            raise InputError(f"{message}; norm-align --force (in Python force=True) aligns them all the same")
        warn_user(message)


def find_mismatch(sample: Sequence[tuple[int, SentencePair]], model: Model) -> tuple[str, str] | None:
    """What shows that a text is not parallel, by a sample of its pairs: the verdict of :func:`judge`."""
    readings = _readings(sample, model) if len(sample) >= FEWEST else {}
    if len(readings) < FEWEST:
        return None
    pairs, size = [own for own, _ in readings.values()], len(readings)
    lengths = np.array([pair.lengths for pair in pairs])
    sources = partners(lengths[:, 0].tolist(), lengths[:, 1].tolist())
    own = _score(pairs, model)
    other = _score([SentencePair(pairs[k].source, pair.target) for k, pair in zip(sources, pairs)], model)
    some = [k * size // REREAD for k in range(REREAD)]
    exchanged = _score([[*readings.values()][k][1] for k in some], model)
    words = [[[word.casefold() for word in side] for side in pair.words] for pair in pairs]
    return judge(
        list(readings),
        np.array([(one.sum() - two.sum()) / len(one) for one, two in zip(own, other)]),
        np.array([tokens.mean() - own[k].mean() for k, tokens in zip(some, exchanged)]),
        _split_subwords(pairs, model),
        [word in source for source, target in words for word in target],
    )


def _readings(sample: Iterable[tuple[int, SentencePair]], model: Model) -> dict[int, tuple[SentencePair, SentencePair]]:
    """How the model reads the pairs of a sample, by line, as they are and exchanged; of lines in sentences, the first.

    Left out is what it cannot read, and what has the source or the target of another pair: each is compared with
    another one.
    """
    kept, sources, targets = {}, set(), set()
    for number, whole in sample:
        pair = whole.sentences[0]
        source, target = pair.words
        if source in sources or target in targets:
            continue
        read = model.encode(pair), model.encode(pair.exchanged)
        if not any(map(model.refusal, read)):
            kept[number] = read
            sources.add(source)
            targets.add(target)
    return kept


def partners(source_tokens: Sequence[int], target_tokens: Sequence[int]) -> Ints:
    """For each of two or more pairs, another pair whose source has about the same length, [N]."""
    order = np.lexsort((target_tokens, source_tokens))
    ranks = np.arange(len(order)) ^ 1
    ranks[ranks == len(order)] -= 2
    chosen = np.empty(len(order), dtype=np.int64)
    chosen[order] = order[ranks]
    return chosen


def judge(
    lines: Sequence[int], gains: Floats, exchanged: Floats, split: Sequence[bool], copied: Sequence[bool]
) -> tuple[str, str] | None:
    """Judge a sample of a text: ``copied``, ``exchanged``, ``split``, ``partly`` or ``unrelated``, and what that means.

    If the texts are exchanged, nothing else is judged, because the text was not scored as it should be.

    Args:
        lines: the numbers of its N lines, from 0.
        gains: what its own source adds to the score of each pair, in nats per target token, [N].
        exchanged: what the exchange adds to the score of some of them, in nats per token.
        split: of each two neighbouring subwords of a word, whether the dictionary has them as one.
        copied: of each target word, whether it occurs in its source line.

    Returns:
        The verdict, and a sentence for a user; None: the text looks parallel.
    """
    if (share := float(np.mean(copied))) > COPIED_SHARE:
        return "copied", (
            f"source and target look like the same text: {share:.0%} of the target words occur in their source line; "
            f"check that the two files differ, or, of translations, that the text is in the model's source language"
        )
    if exchanged.mean() >= BETTER and (share := float((exchanged > 0).mean())) > BETTER_SHARE:
        return "exchanged", (
            f"source and target look exchanged: {share:.0%} of {len(exchanged)} sampled pairs score better once this "
            f"is undone; exchange the two texts, or the two models and their languages; of a model of both directions, "
            f"such as demo, state the languages of source and target (-s, -t)"
        )
    if sum(split) >= FEWEST_SPLIT and (share := sum(split) / len(split)) > SPLIT_SHARE:
        return "split", (
            f"words look cut by other BPE codes than the model's: the dictionary has {share:.0%} of the neighbouring "
            f"subwords of words as one; cut the text with the codes of the model's training"
        )
    stretch = low_stretch(gains)
    if stretch is not None:
        first, last = stretch
        rest = np.delete(gains, range(first, last + 1))
        if len(rest) >= FEWEST / 2 and _effect(rest) >= CLEAR_EFFECT:
            return "partly", (
                f"lines {lines[first] + 1} to {lines[last] + 1}, approximately, do not look like translations of each "
                f"other, the others do: check for a missing or extra line there"
            )
    if stretch is not None or _effect(gains) < LEAST_EFFECT:
        return "unrelated", (
            f"the lines do not look like translations of each other: only {(gains > 0).mean():.0%} of {len(lines)} "
            f"sampled targets are likelier given their own source than given another one; check that both files are "
            f"complete, in the same order, and of the model's languages and case"
        )
    return None


def _effect(gains: Floats) -> float:
    """The mean gain divided by the standard deviation of the gains."""
    return float(gains.mean() / max(float(gains.std(ddof=1)), 1e-9))


def low_stretch(gains: Floats) -> tuple[int, int] | None:
    """Find the stretch of pairs with the lowest gains, if it is unlikely to be chance: first and last position.

    Each pair adds :data:`LOW_STEP` if its gain is below :data:`LOW_SHARE` of the upper quartile, else
    :data:`OTHER_STEP`; the stretch with the largest sum counts if the sum reaches :data:`ENOUGH`.
    """
    low = gains < LOW_SHARE * np.quantile(gains, 0.75)
    sums = np.concatenate([[0], np.cumsum(np.where(low, LOW_STEP, OTHER_STEP))])  # of the pairs before each position
    rises = sums - np.minimum.accumulate(sums)
    end = int(rises.argmax())
    return (int(sums[:end].argmin()), end - 1) if rises[end] >= ENOUGH else None


def _score(pairs: Sequence[SentencePair], model: Model) -> list[Floats]:
    """The log probability of each target token of the pairs, base e."""
    numbered = dict(enumerate(pairs))
    scores: dict[int, Floats] = {}
    for batch in length_batches(numbered, _MAX_TOKENS):
        scores.update(model.scores(batch))
    return [scores[id_] for id_ in numbered]


def _split_subwords(pairs: Iterable[SentencePair], model: Model) -> list[bool]:
    """Of each two neighbouring subwords of a word, whether the dictionary has them as one."""
    return [
        before.removesuffix("@@") + after.removeprefix("##") in model.vocabularies[which].dictionary
        for pair in pairs
        for which, side in enumerate(pair)
        for (before, word), (after, next_word) in itertools.pairwise(zip(side.side.tokens, side.side.words.tolist()))
        if word == next_word >= 0
    ]
