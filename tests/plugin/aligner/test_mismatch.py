"""The verdict on a sample of sentence pairs, from scores alone."""

from __future__ import annotations

import numpy as np
import pytest

from fairseq_norm_plugin.aligner.mismatch import (
    FEWEST,
    copied_share,
    exchanged_pairs,
    judge,
    low_stretch,
    partners,
    sample_lines,
)

N = 60
TOKENS = np.full(N, 20)


def verdict(gains, exchanged=-100.0, copied=0.1, tokens=TOKENS):
    """Scores with these gains a token; the exchanged pairs score ``exchanged``."""
    tokens = tokens[: len(gains)]
    own = np.full(len(gains), -60.0)
    backwards = np.full(len(gains), np.nan)
    backwards[exchanged_pairs(len(gains))] = exchanged
    return judge(own, own - np.asarray(gains) * tokens, backwards, tokens, tokens, copied)


@pytest.fixture
def gains():
    """Those of translations: 2.5 ± 1 nats a token."""
    return np.random.default_rng(0).normal(2.5, 1, N)


def test_translations(gains):
    found = verdict(gains)
    assert (found.kind, found.stretch) == ("fine", None)
    assert found.effect == pytest.approx(gains.mean() / gains.std(ddof=1))


def test_other_texts(gains):
    assert verdict(gains - 2.5).kind == "unrelated"
    assert verdict(gains - 2.5, exchanged=-40.0).kind == "exchanged"
    assert verdict(gains, exchanged=-61.0).kind == "fine"
    assert verdict(gains, copied=0.9).kind == "copied"


@pytest.mark.parametrize(("source", "kind"), [(30, "exchanged"), (20, "fine"), (10, "fine")])
def test_exchanged_pairs_are_compared_per_token(gains, source, kind):
    """A longer text has a lower log probability in all: -65 of 30 tokens is better than -60 of 20."""
    own = np.full(N, -60.0)
    assert judge(own, own - gains * TOKENS, np.full(N, -65.0), TOKENS, np.full(N, source), 0.1).kind == kind


def test_a_stretch_of_shifted_lines(gains):
    gains[20:36] -= 2.5
    found = verdict(gains)
    assert found.kind == "partly"
    first, last = found.stretch
    assert abs(first - 20) <= 3
    assert abs(last - 35) <= 3


def test_too_few(gains):
    assert verdict(gains[: FEWEST - 1]).kind == "few"
    assert verdict(gains[:FEWEST]).kind == "fine"


def test_longest_stretch_against_all_stretches(gains):
    gains[10:25] -= 2.5
    low = gains < 0.2 * np.quantile(gains, 0.75)
    steps = np.where(low, 2.0, -0.9)
    sums = {(i, j): steps[i : j + 1].sum() for i in range(N) for j in range(i, N)}
    best = max(sums.values())
    assert sums[low_stretch(gains)] == pytest.approx(best)


def test_partners_are_about_as_long_and_never_the_same():
    rng = np.random.default_rng(1)
    for count in (2, 3, 10, 11):
        lengths = rng.integers(1, 50, count)
        found = partners(lengths.tolist(), lengths.tolist())
        assert (found != np.arange(count)).all()
        ranks = np.argsort(np.argsort(lengths, kind="stable"), kind="stable")
        assert np.abs(ranks[found] - ranks).max() <= 2


def test_sampled_lines():
    assert sample_lines(5) == list(range(5))
    lines = sample_lines(100_000, 100)
    assert lines == sorted(set(lines))
    assert len(lines) == 100
    assert lines == sample_lines(100_000, 100)
    assert [line // 1000 for line in lines] == list(range(100))


def test_copied_words():
    pairs = [(["a", "B"], ["b", "c"]), (["x"], ["x"])]
    assert copied_share(pairs) == 2 / 3
    assert copied_share([([], [])]) == 0


def test_gains_that_say_little_all_over_the_text():
    """No stretch of lines is worse than the others, but the mean gain is far below its spread."""
    found = verdict([1.0, 1.0, 1.0, 1.0, -5.0] * 12)
    assert found.effect < 0
    assert (found.kind, found.stretch) == ("unrelated", None)
