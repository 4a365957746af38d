"""A warning before the work starts if the texts do not look like translations of each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

import numpy as np
from numpy.typing import NDArray

from fairseq_norm_plugin.aligner.aligner import length_batches
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.aligner.mismatch import Verdict, copied_share, exchanged_pairs, judge, partners, sample_lines
from fairseq_norm_plugin.text.ids import EncodedPair
from fairseq_norm_plugin.text.pairs import TokenPair

#: Tokens of a batch, at most: each needs scores of the whole vocabulary, in several copies (a vocabulary of 10,000
#: words: 40 MB for 1,000 tokens, which the process keeps after the check).
_MAX_TOKENS = 250


def sampled_pairs(text: Iterable[TokenPair], size: int, direction: Direction) -> dict[int, TokenPair]:
    """Sample pairs of a text, by line, counted from 0: those that have words on both sides and fit the model both ways.

    No two of them have the same source or the same target: each is compared with another one.

    Args:
        text: the sentence pairs, read up to the last of the sample.
        size: how many pairs there are.
        direction: the source-target model.
    """
    wanted = set(sample_lines(size))
    last = max(wanted, default=-1)
    sample = {}
    seen: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = set(), set()
    for number, pair in enumerate(text):
        if number in wanted and all(pair):
            sides = tuple(map(tuple, pair))
            is_new = not any(side in before for side, before in zip(sides, seen))
            if is_new and all(direction.fits(direction.encode(way)) for way in (pair, pair[::-1])):
                sample[number] = pair
                for side, before in zip(sides, seen):
                    before.add(side)
        if number == last:
            break
    return sample


def mismatch_warning(sample: Mapping[int, TokenPair], direction: Direction, max_tokens: int = 4000) -> Optional[str]:
    """Check whether a text looks parallel before it is aligned; None if it does, or is too short to tell.

    Args:
        sample: :func:`sampled_pairs` of the text.
        direction: the source-target model.
        max_tokens: tokens of a batch, pads included.
    """
    if len(sample) < 2:
        return None
    verdict = judge_pairs(list(sample.values()), direction, max_tokens)
    if verdict.kind == "exchanged" and direction.trained:
        return None  # the model is of the other direction, which was told when it was loaded
    lines = list(sample)
    stretch = verdict.stretch and (lines[verdict.stretch[0]] + 1, lines[verdict.stretch[1]] + 1)
    return _message(verdict, stretch, len(sample))


def judge_pairs(pairs: Sequence[TokenPair], direction: Direction, max_tokens: int = 4000) -> Verdict:
    """Judge two or more sentence pairs that fit the model, in the order of the text."""
    encoded = [direction.encode(pair) for pair in pairs]
    lengths = np.array([[len(side.ids) for side in pair] for pair in encoded], dtype=np.int64)
    other = partners(lengths[:, 0].tolist(), lengths[:, 1].tolist())
    backwards = exchanged_pairs(len(pairs))
    jobs: dict[int, EncodedPair] = dict(enumerate(encoded))
    jobs.update({len(pairs) + i: (encoded[int(j)][0], encoded[i][1]) for i, j in enumerate(other)})
    jobs.update({2 * len(pairs) + i: direction.encode((pairs[i][1], pairs[i][0])) for i in backwards})
    scores = _scores(direction, jobs, max_tokens)
    count = len(pairs)
    exchanged = np.full(count, np.nan)
    exchanged[backwards] = [scores[2 * count + i] for i in backwards]
    own, swapped = (np.array([scores[start + i] for i in range(count)]) for start in (0, count))
    return judge(own, swapped, exchanged, lengths[:, 1], lengths[:, 0], copied_share(pairs))


def _scores(direction: Direction, jobs: Mapping[int, EncodedPair], max_tokens: int) -> dict[int, float]:
    keys = list(jobs)
    lengths: NDArray[np.int64] = np.array([[len(side.ids) for side in jobs[key]] for key in keys], dtype=np.int64)
    scores: dict[int, float] = {}
    for rows in length_batches(lengths, min(max_tokens, _MAX_TOKENS)):
        scores.update(direction.scores({keys[row]: jobs[keys[row]] for row in rows}))
    return scores


def _message(verdict: Verdict, stretch: Optional[tuple[int, int]], count: int) -> Optional[str]:
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
