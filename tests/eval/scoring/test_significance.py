from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from alignment_eval.errors import InputError, UsageError
from alignment_eval.scoring import significance
from alignment_eval.scoring.aer import METRICS, Counts
from alignment_eval.scoring.significance import Resampling, compare_all, confidence
from tests.facts import facts

FEW = Resampling(200, 3)


def synthetic(sentences, seed=0, better=0.05):
    """Two systems of which the second finds more of the sure links."""
    rng = np.random.default_rng(seed)
    sure = rng.integers(1, 30, sentences)
    systems = []
    for rate in (0.6, 0.6 + better):
        hits = rng.binomial(sure, rate)
        possible = hits + rng.binomial(3, 0.3, sentences)
        systems.append(Counts(possible + rng.binomial(sure, 0.2), sure, hits, possible))
    return systems[0], systems[1]


def statistic(name):
    """The metric of corpora of the sentences given by their counts, for scipy: four arrays [..., sentences]."""

    def value(*arrays, axis=-1):
        return METRICS[name](Counts(*(array.sum(axis=axis) for array in arrays)))

    return value


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("systems", [1, 2])
def test_intervals_are_those_of_scipy(name, systems):
    """Of one system, and of the difference of two."""
    first, second = synthetic(120)
    options = Resampling(2000, 11)

    def delta(*arrays, axis=-1):
        return statistic(name)(*arrays[4:], axis=axis) - statistic(name)(*arrays[:4], axis=axis)

    compared = compare_all([first, second], options)[0, 1][name].interval
    ours = confidence(first, options)[name] if systems == 1 else compared
    # scipy draws the same sentences from the same generator
    theirs = stats.bootstrap(
        first if systems == 1 else (*first, *second),
        statistic(name) if systems == 1 else delta,
        n_resamples=2000,
        batch=2000,
        paired=True,
        vectorized=True,
        method="percentile",
        random_state=np.random.default_rng(11),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def oracle_compare(name, first, second, options):
    """Both p-values, sentence by sentence and resample by resample, from the same draws."""
    a, b = np.stack(first, axis=-1), np.stack(second, axis=-1)
    size = len(a)

    def delta(rows_a, rows_b):
        values = [float(METRICS[name](Counts(*rows.sum(axis=0)))) for rows in (rows_a, rows_b)]
        return values[1] - values[0]

    observed = delta(a, b)
    bootstrap = exchanged = 1
    rng = np.random.default_rng(options.seed)
    for _ in range(options.resamples):
        draw = [rng.integers(0, size) for _ in range(size)]
        bootstrap += abs(delta(a[draw], b[draw]) - observed) >= abs(observed) - 1e-12
    rng = np.random.default_rng(options.seed)
    for _ in range(options.resamples):
        swap = np.array([rng.integers(0, 2) for _ in range(size)], dtype=bool)[:, np.newaxis]
        exchanged += abs(delta(np.where(swap, b, a), np.where(swap, a, b))) >= abs(observed) - 1e-12
    return bootstrap / (options.resamples + 1), exchanged / (options.resamples + 1)


@pytest.mark.parametrize("name", METRICS)
def test_p_values_are_those_of_a_slow_computation(name):
    first, second = synthetic(15, seed=4, better=0.03)
    result = compare_all([first, second], FEW)[0, 1][name]
    assert (result.p_bootstrap, result.p_randomisation) == oracle_compare(name, first, second, FEW)


def test_the_seed_decides_and_neither_other_systems_nor_portions(monkeypatch):
    first, second = synthetic(50)
    third = synthetic(50, better=0.1)[1]
    assert confidence(first, FEW) != confidence(first, Resampling(200, 4))
    systems = first, second, third
    pairs = {(i, j): compare_all([systems[i], systems[j]], FEW)[0, 1] for i, j in combinations(range(3), 2)}
    assert compare_all(systems, FEW) == pairs
    monkeypatch.setattr(significance, "_WEIGHTS", 50 * 7)
    assert compare_all(systems[:2], FEW) == {(0, 1): pairs[0, 1]}


def test_undefined_in_some_resample():
    """One of three sentences has hypothesis links: 8 of 27 resamples have none."""
    zero = np.zeros(3, dtype=np.int64)
    some = Counts(np.array([2, 0, 0]), np.array([2, 2, 2]), np.array([1, 0, 0]), np.array([1, 0, 0]))
    intervals = confidence(some, FEW)
    assert intervals["precision"] is None
    assert intervals["aer"] is not None
    result = compare_all([some, Counts(zero, some.sure, zero, zero)], FEW)[0, 1]
    assert asdict(result["precision"]) == {
        **{"baseline": 0.5, "system": None, "delta": None, "interval": None},
        **{"p_bootstrap": None, "p_randomisation": None},
    }
    assert result["recall"].delta == -1 / 6
    same = compare_all([some, some], FEW)[0, 1]
    assert (same["precision"].delta, same["precision"].interval, same["precision"].p_bootstrap) == (0, None, 1)
    assert (same["aer"].delta, same["aer"].p_bootstrap, same["aer"].p_randomisation) == (0, 1, 1)


def test_ties_that_rounding_parts():
    """A draw that gives the same difference by other sums is as extreme as what was observed."""
    # differences of the systems: +1, +1, -1 in three equal sentences; |delta| is 1/30, or 3/30 in 2 of 8 exchanges
    sure, first = np.full(3, 10), np.array([4, 4, 5])
    second = np.array([5, 5, 4])
    result = compare_all([Counts(sure, sure, first, first), Counts(sure, sure, second, second)], FEW)[0, 1]
    assert result["recall"].p_randomisation == 1
    # one of two sentences is better by 3: delta is 0, 3/20 or 6/20, and 6/20 - 3/20 rounds to less than 3/20
    sure, first, second = np.full(2, 10), np.array([1, 0]), np.array([1, 3])
    result = compare_all([Counts(sure, sure, first, first), Counts(sure, sure, second, second)], FEW)[0, 1]
    assert result["recall"].p_bootstrap == pytest.approx(1 / 2, abs=0.1)


def test_refused_counts():
    first, second = synthetic(5)
    with pytest.raises(InputError, match=facts("different sure links … against the same gold")):
        compare_all([first, Counts(second.hypothesis, second.sure + 1, *second[2:])], FEW)
    with pytest.raises(InputError, match="cannot resample without sentences"):
        confidence(synthetic(0)[0], FEW)


def test_fewer_than_100_resamples_are_refused():
    assert Resampling(100).resamples == 100
    with pytest.raises(UsageError, match="99"):
        Resampling(99)
