"""Warns before the work starts if two texts do not look like translations of each other, by a model's own scores.

Each sampled target is scored twice, teacher-forced: with its own source, and with a source of about the same length
from another pair of the sample.  The gain of a pair is how much its own source adds, in nats per target token: 2 to 3
for translations, about 0 for unrelated pairs.  Some pairs are also scored with source and target exchanged.  One more
sign: the dictionary has subwords of a word as one, which the model's own BPE codes would have merged.

The thresholds were set on cmu150, vilar508 and held-out Europarl; docs/reproduction.md counts false alarms.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, warn_user
from fairseq_norm_plugin.model.model import Model, length_batches
from fairseq_norm_plugin.text.pair import SentencePair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many pairs are scored, at least and at most, how many of them exchanged as well, and how many it takes.
SAMPLE, REREAD, FEWEST = (20, 100), 10, 10
#: Below this mean gain, in standard deviations of the gains, pairs do not count as translations.
LEAST_EFFECT = 1.0
#: From this mean gain on, the pairs outside a shifted stretch count as translations.
CLEAR_EFFECT = 1.5
#: Texts look exchanged if more than this share of the pairs scores better exchanged,
BETTER_SHARE = 0.5
#: and if the mean gain is at least this many nats per token.
BETTER = 0.3
#: Texts count as the same if more than this share of the target words occur in their source line.
COPIED_SHARE = 0.6
#: Words look cut by other codes if the dictionary has more than this share of neighbouring subwords as one, and so many
#: of them: none in a text that was cut by the model's own codes.
SPLIT_SHARE, FEWEST_SPLIT = 0.05, 10
#: A pair looks misaligned if its gain is below this share of the gain of good pairs (the upper quartile).
LOW_SHARE = 0.2
#: Evidence for a shifted stretch of lines: added by a pair of low gain, by any other pair; the sum that is enough.
LOW_STEP, OTHER_STEP, ENOUGH = 2.0, -0.9, 9.0
#: Tokens of a batch, at most: each needs scores of the whole vocabulary, in several copies (a vocabulary of 10,000
#: words: 40 MB for 1,000 tokens, which the process keeps after the check).
_MAX_TOKENS = 250


@dataclass(frozen=True)
class Verdict:
    """The verdict: ``fine``, ``copied``, ``exchanged``, ``split``, ``unrelated`` or ``partly``.

    It rests on a ``share`` of the pairs (``copied``: of the target words; ``split``: of neighbouring subwords; in
    ``unrelated`` these pairs have a gain), or on a ``stretch`` of the sample, the positions of its first and last pair.
    """

    kind: str
    share: float = np.nan
    stretch: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """What a model says of a sample, its N pairs in the order of the text; log probabilities have base e."""

    own: Floats  # [N]: of each target given its own source, the sum over its tokens
    other: Floats  # [N]: given the source of its partner
    tokens: Ints  # [N]: of each target, with </s>
    exchanged: Floats  # of reread_pairs: what the exchange adds to their score, in nats per token
    #: How many neighbouring subwords of a word there are, and how many of them the dictionary has as one.
    split: tuple[int, int] = (0, 0)


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


def check_parallel(sample: Iterable[tuple[int, SentencePair]], models: Sequence[Model], force: bool = True) -> None:
    """Warn of a text that does not look parallel (:func:`find_mismatch`); refuse unrelated lines, unless ``force``.

    ``sample`` are pairs with their lines, from 0 (:func:`sample_lines`).  Below :data:`FEWEST` of them nothing is
    scored.
    """
    sample = list(sample)
    for which, name in enumerate(("source", "target") if sample else ()):
        if found := models[0].pipelines[which].prepared([pair[which].text for _, pair in sample]):
            warn_user(f"the {name} text {found}")
    if mismatch := find_mismatch(sample, models):
        kind, message = mismatch
        if kind == "unrelated" and not force:
            raise InputError(f"{message}; --force (in Python force=True) aligns them all the same")
        warn_user(message)


def find_mismatch(sample: Iterable[tuple[int, SentencePair]], models: Sequence[Model]) -> tuple[str, str] | None:
    """What shows that a text is not parallel, by a sample of its pairs: the kind of the verdict, and a message."""
    first, sample = models[0], list(sample)
    readings = _different(sample, first) if len(sample) >= FEWEST else {}
    lines, pairs = list(readings), list(readings.values())
    if len(pairs) < FEWEST:
        return None
    verdict = judge_pairs(pairs, first)
    wrong = _wrong_model(pairs, verdict, models) if verdict.kind in ("fine", "exchanged") else None
    if wrong is not None:
        return "exchanged", (
            f"{wrong.name}: looks like a model of the other direction, because it scores pairs better with source and "
            f"target exchanged, and the other model does not; give a model of each direction"
        )
    if verdict.kind == "fine" or (verdict.kind == "exchanged" and first.trained):
        return None  # a model that is known to be of the other direction was reported when it was loaded
    return verdict.kind, _message(verdict, lines)


class Readings(NamedTuple):
    """A sampled pair, and how a model reads it: as it is, and exchanged."""

    pair: SentencePair
    own: SentencePair
    exchanged: SentencePair

    @classmethod
    def by(cls, direction: Model, pair: SentencePair) -> Readings:
        """Read a pair."""
        return cls(pair, direction.encode(pair), direction.encode(pair.exchanged))


def _different(sample: Iterable[tuple[int, SentencePair]], direction: Model) -> dict[int, Readings]:
    """The pairs of a sample, by line, that the model can read in both directions; of lines in sentences, the first.

    No two of them have the same source or the same target: each is compared with another one.
    """
    kept = {}
    sources, targets = set(), set()
    for number, whole in sample:
        pair = whole.sentences[0]
        source, target = pair.words
        if source in sources or target in targets:
            continue
        read = Readings.by(direction, pair)
        if not (direction.refusal(read.own) or direction.refusal(read.exchanged)):
            kept[number] = read
            sources.add(source)
            targets.add(target)
    return kept


def _wrong_model(pairs: Sequence[Readings], verdict: Verdict, models: Sequence[Model]) -> Model | None:
    """The model of the other direction, if only one of two finds the sides exchanged, and no checkpoint tells."""
    if len(models) == 1 or any(each.trained for each in models) or all(each.named for each in models):
        return None
    few = [Readings.by(models[1], pairs[k].pair.exchanged) for k in reread_pairs(len(pairs))]
    own = _score([read.own for read in few], models[1])
    exchanged = _exchanged(_exchange_gains(few, own, models[1])) is not None
    return None if (verdict.kind == "exchanged") == exchanged else models[exchanged]


def judge_pairs(pairs: Sequence[Readings], direction: Model) -> Verdict:
    """Judge sentence pairs that fit the model, in the order of the text."""
    encoded = [read.own for read in pairs]
    lengths = np.array([[len(side.ids) for side in pair] for pair in encoded], dtype=np.int64)
    sources = partners(lengths[:, 0].tolist(), lengths[:, 1].tolist())
    own = _score(encoded, direction)
    other = _score([SentencePair(encoded[k].source, pair.target) for k, pair in zip(sources, encoded)], direction)
    scores = Scores(
        np.array([tokens.sum() for tokens in own]),
        np.array([tokens.sum() for tokens in other]),
        lengths[:, 1],
        _exchange_gains(pairs, own, direction),
        _split_subwords(encoded, direction),
    )
    words = [[[word.casefold() for word in side] for side in read.pair.words] for read in pairs]
    copied = [word in source for source, target in words for word in target]
    return judge(scores, sum(copied) / max(1, len(copied)))


def partners(source_tokens: Sequence[int], target_tokens: Sequence[int]) -> Ints:
    """For each of two or more pairs, another pair whose source has about the same length, [N]."""
    order = np.lexsort((target_tokens, source_tokens))
    ranks = np.arange(len(order)) ^ 1
    ranks[ranks == len(order)] -= 2
    chosen = np.empty(len(order), dtype=np.int64)
    chosen[order] = order[ranks]
    return chosen


def reread_pairs(size: int) -> list[int]:
    """The pairs of a sample that are scored exchanged as well: all, or :data:`REREAD` evenly spread."""
    return list(range(size)) if size <= REREAD else [k * size // REREAD for k in range(REREAD)]


def judge(scores: Scores, copied: float) -> Verdict:
    """Judge a sample by its scores and the share of target words that are ``copied``: they occur in their source line.

    If the texts are exchanged, nothing else is judged, because the text was not scored as it should be.
    """
    if copied > COPIED_SHARE:
        return Verdict("copied", share=copied)
    if (exchanged := _exchanged(scores.exchanged)) is not None:
        return exchanged
    neighbours, split = scores.split
    if split >= FEWEST_SPLIT and split > SPLIT_SHARE * neighbours:
        return Verdict("split", share=split / neighbours)
    gains = (scores.own - scores.other) / scores.tokens
    stretch = low_stretch(gains)
    if stretch is not None:
        rest = np.delete(gains, range(stretch[0], stretch[1] + 1))
        if len(rest) >= FEWEST / 2 and _effect(rest) >= CLEAR_EFFECT:
            return Verdict("partly", stretch=stretch)
    if stretch is not None or _effect(gains) < LEAST_EFFECT:
        return Verdict("unrelated", float((gains > 0).mean()))
    return Verdict("fine")


def _exchanged(gains: Floats) -> Verdict | None:
    """The verdict that most pairs score better exchanged, if they do."""
    share = float((gains > 0).mean())
    return Verdict("exchanged", share) if gains.mean() >= BETTER and share > BETTER_SHARE else None


def _effect(gains: Floats) -> float:
    """The mean gain divided by the standard deviation of the gains."""
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


def _score(pairs: Sequence[SentencePair], direction: Model) -> list[Floats]:
    """The log probability of each target token of the pairs."""
    numbered = dict(enumerate(pairs))
    scores: dict[int, Floats] = {}
    for batch in length_batches(numbered, _MAX_TOKENS):
        scores.update(direction.scores(batch))
    return [scores[id_] for id_ in numbered]


def _exchange_gains(pairs: Sequence[Readings], own: Sequence[Floats], direction: Model) -> Floats:
    """What the exchange adds to the scores of :func:`reread_pairs`, per token; ``own`` are the scores as they are."""
    chosen = reread_pairs(len(pairs))
    scored = _score([pairs[k].exchanged for k in chosen], direction)
    return np.array([tokens.mean() - own[k].mean() for k, tokens in zip(chosen, scored)])


def _split_subwords(pairs: Iterable[SentencePair], direction: Model) -> tuple[int, int]:
    """How many neighbouring subwords of a word there are, and how many of them the dictionary has as one."""
    known = [
        before.removesuffix("@@") + after.removeprefix("##") in direction.vocabularies[which].dictionary
        for pair in pairs
        for which, side in enumerate(pair)
        for (before, word), (after, next_word) in itertools.pairwise(zip(side.side.tokens, side.side.words.tolist()))
        if word == next_word >= 0
    ]
    return len(known), sum(known)


def _message(verdict: Verdict, lines: Sequence[int]) -> str:
    """What a verdict on a sample of ``lines``, counted from 0, says to a user."""
    share, count = f"{100 * verdict.share:.0f} %", len(lines)
    first, last = (lines[position] + 1 for position in verdict.stretch or (0, 0))
    return {
        "exchanged": f"source and target look exchanged: {share} of {len(reread_pairs(count))} sampled pairs score "
        f"better once this is undone; exchange the two texts, or the two models, or their languages",
        "copied": f"source and target look like the same text: {share} of the target words occur in their source line; "
        f"check that the two files differ",
        "split": f"words look cut by other BPE codes than the model's: the dictionary has {share} of the neighbouring "
        f"subwords of words as one; cut the text with the codes of the model's training",
        "unrelated": f"the lines do not look like translations of each other: only {share} of {count} sampled targets "
        f"are likelier given their own source than given another one; check that both files are complete, in the same "
        f"order, and of the model's languages and case",
        "partly": f"lines {first} to {last}, approximately, do not look like "
        f"translations of each other, the others do: check for a missing or extra line there",
    }[verdict.kind]
