"""Alignment error rate, precision and recall (Och and Ney 2003), from four counts per sentence.

With a hypothesis A, sure links S and possible links P ⊇ S, summed over the corpus (micro average)::

    AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|)    precision = |A∩P| / |A|    recall = |A∩S| / |S|

AER is 0 if neither side has links.  Precision is undefined without hypothesis links, recall without sure links: NaN in
arrays, None in a :class:`Score`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Union

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.table import GoldSentence, GoldTable, Link, LinkTable, blocks

IntArray = NDArray[np.int64]
Hypotheses = Union[LinkTable, Sequence[Iterable[Link]]]
Gold = Union[GoldTable, Sequence[GoldSentence]]


@dataclass(frozen=True, eq=False)
class Counts:
    """The four counts behind every score: int64 arrays of one shape, [sentences], or [] for a corpus."""

    hypothesis: IntArray
    sure: IntArray
    hypothesis_sure: IntArray
    hypothesis_possible: IntArray

    def total(self) -> Counts:
        """The counts summed over the last axis, for the whole corpus."""
        return Counts(*(np.asarray(values.sum(axis=-1)) for values in self.arrays()))

    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """|A|, |S|, |A∩S|, |A∩P|."""
        return self.hypothesis, self.sure, self.hypothesis_sure, self.hypothesis_possible


def aer(counts: Counts) -> NDArray[np.float64]:
    """Alignment error rate, a fraction; 0 where there are no links at all.  Shape of the counts."""
    size = counts.hypothesis + counts.sure
    agreed = counts.hypothesis_sure + counts.hypothesis_possible
    # (size - agreed) / size, not 1 - agreed / size: exactly 0 for a perfect hypothesis, and no rounding below 0
    return np.where(size == 0, 0.0, (size - agreed) / np.maximum(size, 1))


def precision(counts: Counts) -> NDArray[np.float64]:
    """|A∩P| / |A|; NaN without hypothesis links.  Shape of the counts."""
    return _ratio(counts.hypothesis_possible, counts.hypothesis)


def recall(counts: Counts) -> NDArray[np.float64]:
    """|A∩S| / |S|; NaN without sure links.  Shape of the counts."""
    return _ratio(counts.hypothesis_sure, counts.sure)


#: The metrics of counts, by name.
METRICS = {"aer": aer, "precision": precision, "recall": recall}
#: Their names in text output.
METRIC_LABELS = {"aer": "AER", "precision": "precision", "recall": "recall"}


def _ratio(part: IntArray, whole: IntArray) -> NDArray[np.float64]:
    return np.where(whole == 0, np.nan, part / np.maximum(whole, 1))


@dataclass(frozen=True, eq=False)
class Score:
    """Scores of a corpus (fractions; None: undefined), and the counts of each sentence they come from."""

    aer: float
    precision: float | None
    recall: float | None
    counts: Counts
    per_sentence: Counts

    @classmethod
    def of(cls, per_sentence: Counts) -> Score:
        """The score of a corpus whose sentences have these counts."""
        total = per_sentence.total()
        return cls(
            aer=float(aer(total)),
            precision=defined(float(precision(total))),
            recall=defined(float(recall(total))),
            counts=total,
            per_sentence=per_sentence,
        )


def defined(value: float) -> float | None:
    """None for NaN."""
    return None if math.isnan(value) else value


def count(hypotheses: Hypotheses, gold: Gold) -> Counts:
    """The counts of each sentence.

    Args:
        hypotheses: the links of each sentence.
        gold: the gold of the same sentences.

    Raises:
        InputError: the numbers of sentences differ.
    """
    table = hypotheses if isinstance(hypotheses, LinkTable) else LinkTable.of(hypotheses)
    gold_table = gold if isinstance(gold, GoldTable) else GoldTable.of(gold)
    if table.sentences != gold_table.sentences:
        raise InputError(
            f"{table.sentences} hypotheses do not match {gold_table.sentences} gold sentences; give one hypothesis for "
            f"each, an empty set for a sentence without links"
        )
    parts = (_count(*tables) for _, *tables in blocks(table, gold_table.sure, gold_table.possible))
    return Counts(*map(np.concatenate, zip(*parts)))


def _count(hypothesis: LinkTable, sure: LinkTable, possible: LinkTable) -> tuple[IntArray, ...]:
    """The arrays of :func:`count`."""
    found = hypothesis & possible
    tables = hypothesis, sure, found & sure, found  # S ⊆ P
    return tuple(table.per_sentence() for table in tables)


def score(hypotheses: Hypotheses, gold: Gold) -> Score:
    """Score ``hypotheses`` against ``gold``, sentence by sentence in the same order.

    Raises:
        InputError: the numbers of sentences differ.
    """
    return Score.of(count(hypotheses, gold))
