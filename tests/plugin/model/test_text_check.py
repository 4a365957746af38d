"""The verdict on a sample of sentence pairs, from scores alone."""

from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.model import text_check
from fairseq_norm_plugin.model.text_check import (
    low_stretch,
)
from tests.plugin.model.conftest import pair_of

N = 60


@pytest.fixture
def gains():
    """Those of translations: 2.5 ± 1 nats a token."""
    return np.random.default_rng(0).normal(2.5, 1, N)


@pytest.mark.parametrize("kind", ["unrelated", "cut"])
def test_only_unrelated_lines_are_refused(make_direction, monkeypatch, capsys, kind):
    monkeypatch.setattr(text_check, "find_mismatch", lambda *_: (kind, "they differ"))
    if kind == "unrelated":
        with pytest.raises(InputError, match=r"they differ; with force"):
            text_check.check_parallel([], [make_direction(1)], force=False)
    else:
        text_check.check_parallel([], [make_direction(1)], force=False)
        assert "they differ" in capsys.readouterr().err
    text_check.check_parallel([], [make_direction(1)])
    assert "they differ" in capsys.readouterr().err


def test_a_target_ends_where_its_suffix_begins(make_direction, monkeypatch):
    """Such as ``</s> [de]``: the model always expects the tag after the end."""
    direction, judged = make_direction(1), []
    direction.special_tokens = replace(direction.special_tokens, target_suffix=(2, 5))
    monkeypatch.setattr(text_check, "judge", lambda scores, _: judged.append(scores))
    pairs = [pair_of(["w1", "w2"], ["w4", "w5"]), pair_of(["w3@@", "w1"], ["w7"])]
    text_check.judge_pairs(pairs, direction)
    encoded = dict(enumerate(map(direction.encode, pairs)))
    expected = [tokens[-2] for tokens in direction.scores(encoded).values()]
    assert sorted(judged[0].ends) == pytest.approx(sorted(expected), abs=1e-5)


def test_longest_stretch_against_all_stretches(gains):
    gains[10:25] -= 2.5
    low = gains < 0.2 * np.quantile(gains, 0.75)
    steps = np.where(low, 2.0, -0.9)
    sums = {(i, j): steps[i : j + 1].sum() for i in range(N) for j in range(i, N)}
    best = max(sums.values())
    assert sums[low_stretch(gains)] == pytest.approx(best)
