from alignment_eval.options.alignments import resampling_fields
from alignment_eval.scoring.significance import Resampling


def test_fields():
    assert resampling_fields(Resampling(700, 3), 100_000, interval="x") == {
        "level": 0.95,
        "interval": "x",
        "resamples": 700,
        "seed": 3,
    }
    assert resampling_fields(Resampling(), 2_000_000)["drawn_together"] == 20
