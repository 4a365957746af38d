"""Context for judging an AER: a diagonal alignment, links outside their sentences, and notes on the files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.misreadings import MARGIN, Reading, outside
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import score
from alignment_eval.scoring.direction import LOOKED_AT

IntArray = NDArray[np.int64]

#: An alignment is poor if its AER is more than this part of the diagonal's AER.
_POOR = 2 / 3
#: A hypothesis with a larger part of its links outside the sentence pairs cannot be judged.
_MAX_OUTSIDE = 0.05


@dataclass(frozen=True)
class Orientation:
    """AERs for comparison, the part of the hypothesis's links outside the sentence pairs, and notes on the files."""

    aers: dict[str, float]
    outside: float
    notes: tuple[str, ...]

    @classmethod
    def of(cls, reading: Reading, lengths: tuple[IntArray, IntArray] | None) -> Orientation:
        """The context of a reading; ``lengths`` are the words of each line, [sentences] for each side, if known."""
        gold, links = reading.gold, reading.hypothesis
        sides = lengths or linked_lengths(gold.possible.shifted(-MARGIN))
        first = (sides[0][: gold.sentences], sides[1][: gold.sentences])
        straight = diagonal(first).shifted(MARGIN).with_sentences(gold.sentences)
        aers = {
            "diagonal": score(straight, gold).aer,
            "empty": score(links.head(0).with_sentences(gold.sentences), gold).aer,
            "possible_as_sure": score(links, GoldTable(gold.possible, gold.possible)).aer,
            "possible_dropped": score(links, GoldTable(gold.sure, gold.sure)).aer,
        }
        beyond = outside(gold.possible, sides), outside(links, sides)
        turned = outside(gold.possible, sides[::-1]) + outside(links, sides[::-1])
        notes = _notes(gold, links, lengths is not None, beyond, not turned)
        return cls(aers, beyond[1] / max(len(links), 1), tuple(notes))

    def verdict(self, aer: float) -> str:
        """``outside`` (not links of these sentences), ``poor``, or ``sound``."""
        if self.outside > _MAX_OUTSIDE:
            return "outside"
        return "poor" if aer > _POOR * self.aers["diagonal"] else "sound"


def _notes(gold: GoldTable, links: LinkTable, texts: bool, outside: tuple[int, int], exchanged: bool) -> list[str]:
    notes = []
    if gold.sentences == LOOKED_AT:
        notes.append(f"only the first {LOOKED_AT} sentences are checked")
    notes += [
        f"the {name} has no links" for name, its in (("gold", gold.possible), ("hypothesis", links)) if not len(its)
    ]
    if texts and all(outside) and exchanged:
        return [*notes, "all links fit the texts if these are exchanged; exchange --source and --target"]
    if outside[0]:
        part = f"{outside[0]} of {len(gold.possible)} links of the gold lie outside the texts"
        notes.append(f"{part}; give the gold's own text, in its tokenisation")
    if outside[1] > (0 if texts else _MAX_OUTSIDE * len(links)):
        where = "outside the texts" if texts else "beyond all gold links of their sentence"
        notes.append(
            f"{outside[1]} of {len(links)} links of the hypothesis lie {where}; if it links subwords, or words of "
            f"another tokenisation, give its texts (--hyp-source, --hyp-target, with --source, --target)"
        )
    return notes


def diagonal(lengths: tuple[IntArray, IntArray]) -> LinkTable:
    """Link each target word to the source word at the same relative position; counts from 0."""
    source, target = lengths
    target = np.where(source > 0, target, 0)
    sentence = np.repeat(np.arange(len(target)), target)
    j = np.arange(len(sentence)) - np.repeat(np.cumsum(target) - target, target)
    i = (2 * j + 1) * source[sentence] // (2 * np.maximum(target[sentence], 1))
    return LinkTable.build(sentence, i, j, len(target))


def linked_lengths(links: LinkTable) -> tuple[IntArray, IntArray]:
    """The smallest lengths that hold all links, which count from 0; [sentences] for each side; used without texts."""
    lengths = np.zeros((2, links.sentences), dtype=np.int64)
    for side, index in enumerate((links.source, links.target)):
        np.maximum.at(lengths[side], links.sentence, index + 1)
    return lengths[0], lengths[1]
