from __future__ import annotations

import argparse

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.options.alignments import add_resampling_arguments, resampling_fields, resampling_of, warn_of_few
from alignment_eval.scoring.significance import Resampling


def parsed(*words: str) -> Resampling:
    parser = argparse.ArgumentParser()
    add_resampling_arguments(parser)
    return resampling_of(parser.parse_args(words))


def test_what_is_not_given_has_its_default() -> None:
    assert parsed() == Resampling() == Resampling(10_000, 0)
    assert parsed("--resamples", "100").resamples == 100
    assert parsed("--resamples", "700") == Resampling(700)
    assert parsed("--seed", "3") == Resampling(seed=3)
    with pytest.raises(UsageError):
        parsed("--resamples", "0")


def test_fields() -> None:
    assert resampling_fields(Resampling(700, 3), 100_000, interval="x") == {
        "level": 0.95,
        "interval": "x",
        "resamples": 700,
        "seed": 3,
    }
    assert resampling_fields(Resampling(), 2_000_000)["drawn_together"] == 20


@pytest.mark.parametrize(("sentences", "warned"), [(19, True), (20, False)])
def test_few_sentences(capsys: pytest.CaptureFixture[str], sentences: int, warned: bool) -> None:
    warn_of_few(sentences)
    assert (f"only {sentences} sentences" in capsys.readouterr().err) == warned
