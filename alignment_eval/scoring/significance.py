"""Confidence intervals and significance tests of scores: bootstrap and approximate randomisation over sentences.

Every score comes from counts of sentences.  A resample is a row of weights, the number of times that each sentence is
in it, and one matrix product gives the exact counts of many resamples.  The draws depend only on the seed and the
number of sentences: a system gets the same numbers whatever other systems are compared with the baseline.

Sources: Efron and Tibshirani 1993 (percentile intervals, §13.3); Koehn 2004 (paired bootstrap); Hall and Wilson 1991
(the bootstrap test, with a null distribution centred on the observed value); Noreen 1989, Riezler and Maxwell 2005
(approximate randomisation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, Progress, UsageError, no_progress
from alignment_eval.scoring.aer import METRICS, Counts, IntArray, defined

#: Level of all intervals.
LEVEL = 0.95
#: Number of weights in memory at a time (8 MiB), so that memory does not grow with the number of resamples.
_WEIGHTS = 2**20
#: Differences within this distance are ties: equal fractions may differ by rounding.
_TIE = 1e-12


@dataclass(frozen=True)
class Resampling:
    """How resamples are drawn."""

    resamples: int = 10_000  #: their number; no p-value is below 1 / (resamples + 1)
    seed: int = 0  #: seed of numpy's default generator

    def __post_init__(self) -> None:
        if self.resamples < 100:
            raise UsageError(f"{self.resamples} resamples: give 100 or more")
        if self.seed < 0:
            raise UsageError(f"seed {self.seed}: the seed must be 0 or more")


@dataclass(frozen=True)
class Interval:
    """A two-sided interval of :data:`LEVEL`; fractions."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """One metric of a system, compared with a baseline.

    None stands for an undefined value: an undefined metric (:class:`~alignment_eval.scoring.aer.Score`), what follows
    from it, or an interval with undefined resamples.  Undefined resamples count as extreme in a p-value, so they can
    only raise it.

    Attributes:
        baseline: the metric of the baseline, a fraction.
        system: the metric of the system.
        delta: system - baseline.
        interval: of ``delta``, from the paired bootstrap.
        p_bootstrap: two-sided p-value of the paired bootstrap test.
        p_randomisation: two-sided p-value of the approximate randomisation test.
    """

    baseline: float | None
    system: float | None
    delta: float | None
    interval: Interval | None
    p_bootstrap: float | None
    p_randomisation: float | None


def confidence(
    per_sentence: Counts, options: Resampling, progress: Progress = no_progress
) -> dict[str, Interval | None]:
    """Percentile bootstrap intervals of a corpus's metrics.

    Args:
        per_sentence: the counts of each sentence, [sentences].
        options: how to draw.
        progress: goes through the draws.

    Returns:
        Metric (:data:`alignment_eval.scoring.aer.METRICS`) -> interval; None where a resample leaves it undefined.

    Raises:
        InputError: there are no sentences.
    """
    return confidence_each(np.stack(per_sentence)[:, np.newaxis], options, progress)[0]


def confidence_each(
    systems: IntArray, options: Resampling, progress: Progress = no_progress
) -> list[dict[str, Interval | None]]:
    """:func:`confidence` for several systems, [4, systems, sentences], with one set of draws."""
    samples = Counts(*_sums(systems, _bootstrap_weights, options, progress))
    values = {name: metric(samples) for name, metric in METRICS.items()}
    return [{name: _interval(rows[k]) for name, rows in values.items()} for k in range(systems.shape[1])]


def compare_all(
    systems: Sequence[Counts], options: Resampling, progress: Progress = no_progress
) -> dict[tuple[int, int], dict[str, Difference]]:
    """Compare all pairs of two or more systems, numbered (baseline, system), with one set of draws.

    The paired bootstrap draws whole sentences, the same ones for all systems.  Its p-value is the share of resamples
    whose delta is at least as far from the observed delta as the observed delta is from 0.  Approximate randomisation
    exchanges the outputs of baseline and system for each sentence with probability 1/2.  Its p-value is the share of
    draws whose delta is at least as large, in absolute value, as the observed one.  Both are
    (c + 1) / (resamples + 1), with ties counted in c, so systems with equal counts have p = 1.

    Counts are those of each sentence, against the same gold.  The result is, for each pair, metric
    (:data:`alignment_eval.scoring.aer.METRICS`) -> difference.
    """
    pairs = list(combinations(range(len(systems)), 2))
    if any(not np.array_equal(systems[0].sure, system.sure) for system in systems):
        raise InputError("baseline and systems have different sure links; score all of them against the same gold")
    table = np.stack(systems, axis=1)
    first, second = (list(side) for side in zip(*pairs))
    samples = Counts(*_sums(table, _bootstrap_weights, options, progress))
    totals = table.sum(axis=-1, keepdims=True)
    # what exchanging sentences adds to the baselines and takes from the systems
    moved = _sums(table[:, second] - table[:, first], _exchanges, options, progress)
    exchanged = Counts(*(totals[:, first] + moved)), Counts(*(totals[:, second] - moved))
    results: dict[tuple[int, int], dict[str, Difference]] = {pair: {} for pair in pairs}
    for name, metric in METRICS.items():
        values, drawn = metric(Counts(*totals))[:, 0].tolist(), metric(samples)
        null = metric(exchanged[1]) - metric(exchanged[0])
        for (i, j), of_null in zip(pairs, null):
            delta, deltas = values[j] - values[i], drawn[j] - drawn[i]
            results[i, j][name] = Difference(
                baseline=defined(values[i]),
                system=defined(values[j]),
                delta=defined(delta),
                interval=_interval(deltas),
                p_bootstrap=_p_value(delta, deltas - delta),
                p_randomisation=_p_value(delta, of_null),
            )
    return results


def _interval(samples: NDArray[np.float64]) -> Interval | None:
    if np.isnan(samples).any():
        return None
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def _p_value(observed: float, null: NDArray[np.float64]) -> float | None:
    """Two-sided p-value of ``observed`` under samples of the null distribution; never 0 (Davison and Hinkley 1997)."""
    if np.isnan(observed):
        return None
    extreme = int(np.count_nonzero(~(np.abs(null) < abs(observed) - _TIE)))  # NaN is extreme
    return (extreme + 1) / (len(null) + 1)


def _sums(
    table: IntArray, draw: Callable[[np.random.Generator, int, int], IntArray], options: Resampling, progress: Progress
) -> IntArray:
    """The counts [4, systems, sentences] summed with each row of weights: [4, systems, resamples].

    ``draw``: a random generator, resamples, sentences -> weights [resamples, sentences].
    """
    sentences = table.shape[-1]
    if not sentences:
        raise InputError("cannot resample without sentences; give at least one")
    values = table.astype(np.float64)  # a product in float64 is fast, and whole numbers below 2**53 stay exact
    rng = np.random.default_rng(options.seed)
    rows = max(1, _WEIGHTS // sentences)
    sums = np.empty((*table.shape[:-1], options.resamples), dtype=np.int64)
    starts = range(0, options.resamples, rows)
    for start in progress(starts, len(starts), f"times {rows} resamples"):
        weights = draw(rng, min(rows, options.resamples - start), sentences)
        sums[..., start : start + rows] = values @ weights.T
    return sums


def _bootstrap_weights(rng: np.random.Generator, resamples: int, sentences: int) -> IntArray:
    """How often each sentence is among ``sentences`` draws with replacement."""
    drawn = rng.integers(0, sentences, size=(resamples, sentences))
    drawn += np.arange(resamples)[:, np.newaxis] * sentences
    return np.bincount(drawn.ravel(), minlength=resamples * sentences).reshape(resamples, sentences)


def _exchanges(rng: np.random.Generator, resamples: int, sentences: int) -> IntArray:
    """1 where the outputs for a sentence are exchanged (with probability 1/2), else 0."""
    return rng.integers(0, 2, size=(resamples, sentences))
