from __future__ import annotations

import pytest

from alignment_eval.options.alignments import resampling_fields, warn_of_few
from alignment_eval.scoring.significance import Resampling


def test_fields():
    assert resampling_fields(Resampling(700, 3), 100_000, interval="x") == {
        "level": 0.95,
        "interval": "x",
        "resamples": 700,
        "seed": 3,
    }
    assert resampling_fields(Resampling(), 2_000_000)["drawn_together"] == 20


@pytest.mark.parametrize(("sentences", "warned"), [(19, True), (20, False)])
def test_few_sentences(capsys, sentences, warned):
    warn_of_few(sentences)
    assert (f"only {sentences} sentences" in capsys.readouterr().err) == warned
