"""Alignment error rate, precision and recall (Och and Ney 2003), from four counts per sentence.

With a hypothesis A, sure links S and possible links P ⊇ S, summed over the corpus (micro average)::

    AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|)    precision = |A∩P| / |A|    recall = |A∩S| / |S|

AER is 0 if neither side has links.  Precision is undefined without hypothesis links, recall without sure links: NaN in
arrays, None in a :class:`Score`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence, Link

IntArray = NDArray[np.int64]


class Counts(NamedTuple):
    """|A|, |S|, |A∩S| and |A∩P|: int64 arrays of one shape, [sentences], or [] for a corpus."""

    hypothesis: IntArray
    sure: IntArray
    hypothesis_sure: IntArray
    hypothesis_possible: IntArray

    def total(self) -> Counts:
        """The counts summed over the last axis, for the whole corpus."""
        return Counts(*(np.asarray(values.sum(axis=-1)) for values in self))


def aer(counts: Counts) -> NDArray[np.float64]:
    """Alignment error rate, a fraction; 0 where there are no links at all.  Shape of the counts."""
    size = counts.hypothesis + counts.sure
    agreed = counts.hypothesis_sure + counts.hypothesis_possible
    # (size - agreed) / size, not 1 - agreed / size, which rounds twice
    return np.where(size == 0, 0.0, (size - agreed) / np.maximum(size, 1))


def precision(counts: Counts) -> NDArray[np.float64]:
    """|A∩P| / |A|; NaN without hypothesis links.  Shape of the counts."""
    return np.where(counts.hypothesis == 0, np.nan, counts.hypothesis_possible / np.maximum(counts.hypothesis, 1))


def recall(counts: Counts) -> NDArray[np.float64]:
    """|A∩S| / |S|; NaN without sure links.  Shape of the counts."""
    return np.where(counts.sure == 0, np.nan, counts.hypothesis_sure / np.maximum(counts.sure, 1))


#: What files and objects of JSON call the counts, in the order of :class:`Counts`.
COUNT_NAMES = ("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible")
#: The metrics of counts, by name.
METRICS = {"aer": aer, "precision": precision, "recall": recall}
#: Their names in text output.
METRIC_LABELS = {"aer": "AER", "precision": "precision", "recall": "recall"}


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


def count(hypotheses: Iterable[Iterable[Link]], gold: Iterable[GoldSentence]) -> Counts:
    """The counts of each sentence, from its links and its gold."""
    counts = array("q")
    pairs = zip_longest(hypotheses, gold)
    for links, truth in pairs:
        if links is None or truth is None:
            size, more = len(counts) // 4, 1 + sum(1 for _ in pairs)
            sizes = (size, size + more) if links is None else (size + more, size)
            raise InputError(
                f"{sizes[0]} hypotheses do not match {sizes[1]} gold sentences; give one hypothesis for each, an empty "
                f"set for a sentence without links"
            )
        links = frozenset(links)
        counts.extend((len(links), len(truth.sure), len(links & truth.sure), len(links & truth.possible)))
    return Counts(*np.asarray(counts, dtype=np.int64).reshape(-1, 4).T)


def score(hypotheses: Iterable[Iterable[Link]], gold: Iterable[GoldSentence]) -> Score:
    """Score ``hypotheses`` against ``gold``, sentence by sentence in the same order."""
    return Score.of(count(hypotheses, gold))
