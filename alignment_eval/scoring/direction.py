"""Does a hypothesis look as if its source and target were exchanged?"""

from __future__ import annotations

import numpy as np

from alignment_eval.formats.checks import swap_advice
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import score

#: The AER gained by exchanging source and target that gives a warning (a fraction).
SUSPICIOUS_GAIN = 0.2
#: So many sentences, the first ones, are enough to see it.
LOOKED_AT = 10_000


def direction_warning(name: str, hypothesis: LinkTable, gold: GoldTable, swap: bool = False) -> str | None:
    """A warning if ``hypothesis`` fits ``gold`` far better with source and target exchanged, else None.

    It does if that lowers AER by more than :data:`SUSPICIOUS_GAIN`, or if more than a few links go beyond all gold
    links of their sentence as they are, and less than a quarter of them when exchanged.  The second shows even the
    direction of a bad alignment.  Only the first :data:`LOOKED_AT` sentences are looked at.

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
        f"gold's indices): the direction looks swapped; if so, {swap_advice('hyp', swap)}"
    )


def _beyond(links: LinkTable, gold: LinkTable) -> int:
    """Number of links with a word beyond all those that ``gold`` links in the sentence; without gold links none."""
    outside = np.zeros(len(links), dtype=np.bool_)
    for mine, its in ((links.source, gold.source), (links.target, gold.target)):
        largest = np.full(links.sentences, np.iinfo(np.int64).max)
        starts = np.flatnonzero(np.diff(gold.sentence, prepend=-1))
        if len(starts):
            largest[gold.sentence[starts]] = np.maximum.reduceat(its, starts)
        outside |= mine > largest[links.sentence]
    return int(outside.sum())
