"""The verdict on a sample of sentence pairs, from scores alone."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import SentenceSide
from fairseq_norm_plugin.model import text_check
from fairseq_norm_plugin.model.text_check import judge, low_stretch, partners, sample_lines
from fairseq_norm_plugin.text.pair import Line, SentencePair
from tests.plugin.model.conftest import pair_of

N = 60
#: Gains of translations: 2.5 ± 1 nats a token; of which some belong to shifted lines.
GAINS = np.random.default_rng(0).normal(2.5, 1, N)
SHIFTED = GAINS - 2.5 * np.isin(np.arange(N), range(20, 36))
OTHERS = [1.0, 1.0, 1.0, 1.0, 30.0] * 4


def verdict(gains, exchanged=-4.0, split=(50, 0), copied=0.1):
    """Of pairs each of which gains so much when it is ``exchanged``; (neighbouring subwords, those that are one)."""
    split = np.arange(split[0]) < split[1]
    return judge(range(len(gains)), np.array(gains), np.full(10, exchanged), split, np.arange(10) < 10 * copied)


@pytest.mark.parametrize(
    ("gains", "options", "kind"),
    [
        (GAINS, {}, None),
        (GAINS, {"exchanged": 0.2}, None),
        (GAINS - 2.5, {}, "unrelated"),
        (GAINS - 2.5, {"exchanged": 4.0}, "exchanged"),
        (GAINS, {"copied": 0.9}, "copied"),
        (GAINS, {"split": (100, 40)}, "split"),
        (GAINS, {"split": (10, 4)}, None),
        (SHIFTED, {}, "partly"),
        # no stretch of lines is worse than the others, but the mean gain is far below its spread
        ([1.0, 1.0, 1.0, 1.0, -5.0] * 12, {}, "unrelated"),
        # the spread is that of a sample: the mean gain is 0.97 of it, and 1.04
        ([2.02, 0.02] * 5, {}, "unrelated"),
        ([2.1, 0.1] * 5, {}, None),
        # a stretch among lines that are no clear translations
        ([*OTHERS, *[0.0] * 16, *OTHERS], {}, "unrelated"),
    ],
)
def test_texts(gains, options, kind):
    found = verdict(gains, **options)
    assert (found and found[0]) == kind


def test_a_stretch_of_shifted_lines():
    """It is the one of the largest sum of all stretches, and its lines count from 1."""
    low = 0.2 * np.quantile(SHIFTED, 0.75) > SHIFTED
    steps = np.where(low, 2.0, -0.9)
    sums = {(i, j): steps[i : j + 1].sum() for i in range(N) for j in range(i, N)}
    first, last = low_stretch(SHIFTED)
    assert sums[first, last] == pytest.approx(max(sums.values()))
    assert (abs(first - 20) <= 3, abs(last - 35) <= 3) == (True, True)
    assert [*map(int, re.findall(r"\d+", verdict(SHIFTED)[1]))] == [first + 1, last + 1]


def test_exchanged_pairs_are_compared_by_token(make_direction, monkeypatch):
    """Their lengths differ; and special tokens belong to no word."""
    direction, judged = make_direction(1), []
    monkeypatch.setattr(text_check, "judge", lambda *of_sample: judged.append(of_sample))
    texts = [(["w1", "w2"], ["w4", "w5", "w6"]), (["w3@@", "w1"], ["w7"])]
    pairs = [pair_of([f"w{k + 8}", *texts[k % 2][0]], [f"w{k + 8}", *texts[k % 2][1]]) for k in range(10)]
    text_check.find_mismatch([*enumerate(pairs)], direction)
    (lines, _, exchanged, split, copied) = judged[0]
    means = [
        [direction.scores({0: direction.encode(each)})[0].mean() for each in (pair, pair.exchanged)] for pair in pairs
    ]
    assert exchanged == pytest.approx([after - before for before, after in means], abs=1e-5)
    assert (lines, len(split), sum(copied), len(copied)) == ([*range(10)], 5, 10, 30)  # the subwords of w3w1


def test_neighbouring_special_tokens_are_no_subwords_of_a_word():
    """mBART's lines end in two."""
    side = SentenceSide(("a@@", "b", "</s>", "de_DE"), np.array([0, 0, -1, -1]))
    line = Line("ab", ((0, 2),), "ab", side)
    model = SimpleNamespace(vocabularies=[SimpleNamespace(dictionary={"ab"})] * 2)
    assert text_check._split_subwords([SentencePair(line, line)], model) == [True, True]


@pytest.mark.parametrize("kind", ["unrelated", "partly", "exchanged", "copied"])
def test_which_verdicts_are_refused(make_direction, monkeypatch, kind):
    monkeypatch.setattr(text_check, "find_mismatch", lambda *_: (kind, "they differ"))
    refused = pytest.raises(InputError, match=r"they differ; .*--force")
    with refused if kind in ("exchanged", "partly", "unrelated") else pytest.warns(UserWarning, match="they differ"):
        text_check.check_parallel([], make_direction(1), text_check.REFUSED)
    with pytest.warns(UserWarning, match="they differ"):
        text_check.check_parallel([], make_direction(1))


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
    assert lines == sorted(set(lines)) == sample_lines(100_000, 100)
    assert [line // 1000 for line in lines] == list(range(100))
