"""The names that monitoring logs are those that ``align-eval curve`` takes apart."""

import pandas as pd

from alignment_eval.figures.curves import COLUMNS, draw_curves, is_share
from fairseq_norm_plugin.hooks.monitoring.counts import KIND_LETTERS, metric_name, mixing_name


def test_metrics_that_the_monitor_logs_are_drawn_by_layer():
    names = [metric_name(3, kind, "awi") for kind in KIND_LETTERS] + [mixing_name("decoder.cross", 3, "attnres_n")]
    assert all(map(is_share, names))
    figure = draw_curves(pd.DataFrame([("run", "test", 1, name, 0, 0.5) for name in names], columns=list(COLUMNS)))
    assert figure.legends[0].get_texts()[0].get_text() == "layer 3"
    assert [axes.get_ylabel() for axes in figure.axes] == ["AER %", "mixing_decoder_cross %"]
