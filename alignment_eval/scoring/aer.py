"""Alignment error rate, precision and recall (Och and Ney 2003), from four counts per sentence.

With a hypothesis A, sure links S and possible links P ⊇ S, summed over the corpus (micro average)::

    AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|)    precision = |A∩P| / |A|    recall = |A∩S| / |S|

AER is 0 if neither side has links.  Precision is undefined without hypothesis links, recall without sure links: NaN in
arrays, None in a :class:`Score`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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


def _share(part: IntArray, whole: IntArray) -> NDArray[np.float64]:
    return np.where(whole == 0, np.nan, part / np.maximum(whole, 1))


#: What files and objects of JSON call the counts, in the order of :class:`Counts`.
COUNT_NAMES = ("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible")


class Metric(NamedTuple):
    """A metric of counts; it gives arrays of their shape, NaN where it is undefined."""

    label: str  #: in text output
    of: Callable[[Counts], NDArray[np.float64]]
    best: Callable[..., float] = max  #: the best of several values

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Its values for these counts."""
        return self.of(counts)


#: The metrics, by name: tables, JSON, intervals and tests of all commands read them here.
METRICS = {
    "aer": Metric("AER", aer, min),
    "precision": Metric("precision", lambda counts: _share(counts.hypothesis_possible, counts.hypothesis)),
    "recall": Metric("recall", lambda counts: _share(counts.hypothesis_sure, counts.sure)),
}


@dataclass(frozen=True, eq=False)
class Score:
    """Scores of a corpus, and the counts of each sentence they come from."""

    metrics: Mapping[str, float | None]  #: of :data:`METRICS`: fractions; None: undefined
    counts: Counts
    per_sentence: Counts

    def __repr__(self) -> str:
        shown = [f"{name}={value if value is None else format(value, '.4f')}" for name, value in self.metrics.items()]
        return f"Score({', '.join(shown)}, sentences={self.per_sentence.sure.size})"

    @classmethod
    def of(cls, per_sentence: Counts) -> Score:
        """The score of a corpus whose sentences have these counts."""
        total = per_sentence.total()
        return cls(metrics_of(total), total, per_sentence)

    @property
    def aer(self) -> float:
        """Alignment error rate, a fraction."""
        value = self.metrics["aer"]
        assert value is not None  # it is defined without links, too
        return value

    @property
    def precision(self) -> float | None:
        """Precision, a fraction; None without hypothesis links."""
        return self.metrics["precision"]

    @property
    def recall(self) -> float | None:
        """Recall, a fraction; None without sure links."""
        return self.metrics["recall"]


def metrics_of(total: Counts) -> dict[str, float | None]:
    """Metric -> fraction, None where it is undefined, for the counts of one corpus or class."""
    return {name: defined(float(metric(total))) for name, metric in METRICS.items()}


def defined(value: float) -> float | None:
    """None for NaN."""
    return None if math.isnan(value) else value


def count(hypotheses: Iterable[Iterable[Link]], gold: Iterable[GoldSentence]) -> Counts:
    """The counts of each sentence, from its links and its gold."""
    sentences, truths = [frozenset(links) for links in hypotheses], list(gold)
    if len(sentences) != len(truths):
        raise InputError(
            f"{len(sentences)} hypotheses for {len(truths)} gold sentences; give one for each, maybe an empty set"
        )
    counts = [
        (len(links), len(truth.sure), len(links & truth.sure), len(links & truth.possible))
        for links, truth in zip(sentences, truths)
    ]
    return Counts(*np.array(counts, dtype=np.int64).reshape(-1, 4).T)


def score(hypotheses: Iterable[Iterable[Link]], gold: Iterable[GoldSentence]) -> Score:
    """Score ``hypotheses`` against ``gold``, sentence by sentence in the same order."""
    return Score.of(count(hypotheses, gold))
