"""The verdict on a sample of sentence pairs, from scores alone."""

import numpy as np
import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.model import text_check
from fairseq_norm_plugin.model.text_check import (
    Readings,
    Scores,
    judge,
    low_stretch,
    partners,
    reread_pairs,
    sample_lines,
)
from tests.plugin.model.conftest import pair_of

N = 60
TOKENS = np.full(N, 20)


def verdict(gains, exchanged=-4.0, split=(50, 0), copied=0.1):
    """Scores with these gains a token; each pair gains so much when it is ``exchanged``."""
    tokens = TOKENS[: len(gains)]
    own = np.full(len(gains), -60.0)
    reread = np.full(len(reread_pairs(len(gains))), exchanged)
    return judge(Scores(own, own - np.asarray(gains) * tokens, tokens, reread, split), copied)


@pytest.fixture
def gains():
    """Those of translations: 2.5 ± 1 nats a token."""
    return np.random.default_rng(0).normal(2.5, 1, N)


def test_texts(gains):
    assert verdict(gains).kind == verdict(gains, exchanged=0.2).kind == "fine"
    assert verdict(gains - 2.5).kind == "unrelated"
    assert verdict(gains - 2.5, exchanged=4.0).kind == "exchanged"
    assert verdict(gains, copied=0.9).kind == "copied"
    assert verdict(gains, split=(100, 40)).kind == "split"
    assert verdict(gains, split=(10, 4)).kind == "fine"
    # no stretch of lines is worse than the others, but the mean gain is far below its spread
    found = verdict([1.0, 1.0, 1.0, 1.0, -5.0] * 12)
    assert (found.kind, found.stretch) == ("unrelated", None)


def test_a_stretch_of_shifted_lines(gains):
    gains[20:36] -= 2.5
    found = verdict(gains)
    assert found.kind == "partly"
    first, last = found.stretch
    assert abs(first - 20) <= 3
    assert abs(last - 35) <= 3


def test_a_stretch_among_lines_that_are_no_clear_translations():
    others = [1.0, 1.0, 1.0, 1.0, 30.0] * 4
    assert verdict([*others, *[0.0] * 16, *others]).kind == "unrelated"


def test_exchanged_pairs_are_compared_by_token(make_direction, monkeypatch):
    """Their lengths differ; and special tokens belong to no word."""
    direction, judged = make_direction(1), []
    monkeypatch.setattr(text_check, "judge", lambda scores, _: judged.append(scores))
    pairs = [pair_of(["w1", "w2"], ["w4", "w5", "w6"]), pair_of(["w3@@", "w1"], ["w7"])]
    text_check.judge_pairs([Readings.by(direction, pair) for pair in pairs], direction)
    means = [
        [direction.scores({0: direction.encode(each)})[0].mean() for each in (pair, pair.exchanged)] for pair in pairs
    ]
    assert judged[0].exchanged == pytest.approx([after - before for before, after in means], abs=1e-5)
    assert judged[0].split == (1, 0)  # the subwords of w3w1


@pytest.mark.parametrize("kind", ["unrelated", "partly"])
def test_only_unrelated_lines_are_refused(make_direction, monkeypatch, kind):
    monkeypatch.setattr(text_check, "find_mismatch", lambda *_: (kind, "they differ"))
    if kind == "unrelated":
        with pytest.raises(InputError, match=r"they differ; --force"):
            text_check.check_parallel([], [make_direction(1)], force=False)
    else:
        with pytest.warns(UserWarning, match="they differ"):
            text_check.check_parallel([], [make_direction(1)], force=False)
    with pytest.warns(UserWarning, match="they differ"):
        text_check.check_parallel([], [make_direction(1)])


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
    assert sample_lines(20) == list(range(20))
    assert list(map(len, map(sample_lines, (21, 500, 750, 10**4)))) == [20, 20, 30, 100]
    lines = sample_lines(100_000, 100)
    assert lines == sorted(set(lines))
    assert len(lines) == 100
    assert lines == sample_lines(100_000, 100)
    assert [line // 1000 for line in lines] == list(range(100))
