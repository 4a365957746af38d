"""Detects a hypothesis whose source and target look exchanged."""

from __future__ import annotations

import numpy as np

from alignment_eval.formats.checks import swap_advice
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import score

#: A warning is given if exchanging source and target lowers AER by more than this fraction.
SUSPICIOUS_GAIN = 0.2
#: Only this number of sentences, the first ones, is checked.
LOOKED_AT = 10_000


def direction_warning(name: str, hypothesis: LinkTable, gold: GoldTable, swap: bool = False) -> str | None:
    """A warning if ``hypothesis`` fits ``gold`` far better with source and target exchanged, else None.

    There are two signs: AER falls by more than :data:`SUSPICIOUS_GAIN`; or more than a few links go beyond all gold
    links of their sentence, and less than a quarter of them do when exchanged.  The second sign works for bad
    alignments too.  Only the first :data:`LOOKED_AT` sentences are checked.

    Args:
        name: the hypothesis, for the message.
        hypothesis: source-target links from 0.
        gold: gold of the same sentences.
        swap: whether ``--hyp-swap`` was given.
    """
    hypothesis, gold = hypothesis.head(LOOKED_AT), gold.head(LOOKED_AT)
    transposed = hypothesis.transposed()
    aers = [score(links, gold).aer for links in (hypothesis, transposed)]
    beyond = [_beyond(links, gold.possible) for links in (hypothesis, transposed)]
    if aers[0] - aers[1] <= SUSPICIOUS_GAIN and not beyond[0] > max(10, 4 * beyond[1]):
        return None
    return (
        f"{name}: AER of {gold.sentences} sentences is {100 * aers[0]:.2f} % with the links as they are and "
        f"{100 * aers[1]:.2f} % with source and target exchanged ({beyond[0]} and {beyond[1]} links go beyond the "
        f"gold's indices); if the direction is swapped, {swap_advice('hyp', swap)}"
    )


def _beyond(links: LinkTable, gold: LinkTable) -> int:
    """The number of links with a word beyond all words that ``gold`` links; 0 in sentences without gold links."""
    outside = np.zeros(len(links), dtype=np.bool_)
    for mine, its in ((links.source, gold.source), (links.target, gold.target)):
        largest = np.full(links.sentences, np.iinfo(np.int64).max)
        starts = np.flatnonzero(np.diff(gold.sentence, prepend=-1))
        if len(starts):
            largest[gold.sentence[starts]] = np.maximum.reduceat(its, starts)
        outside |= mine > largest[links.sentence]
    return int(outside.sum())
