"""What is drawn of a training log: values, panels, colours and lines."""

import numpy as np
import pandas as pd
import pytest

from alignment_eval.figures.style import COLUMN, PAGE, FigureOptions
from alignment_eval.figures.training_curves import draw_curves
from alignment_eval.figures.training_log import COLUMNS
from tests.eval.figures.printed import check_print

MAPS = [f"aer_l{layer}_{kind}_{setting}" for layer in range(6) for kind in "wn" for setting in ("awo", "awi")]


def runs(names, subsets, metrics):
    """Values that are all different."""
    rows = [
        (name, subset, update, metric)
        for name in names
        for subset in subsets
        for metric in metrics
        for update in (1, 2, 3)
    ]
    return pd.DataFrame([(*row, 0.1 + n / 1000) for n, row in enumerate(rows)], columns=list(COLUMNS))


def test_every_value_is_drawn_aer_in_percent():
    table = runs(["a", "b"], ["test"], ["aer", *MAPS, "nll_loss"])
    aer = table[table["metric"] != "nll_loss"]
    above, below = (draw_curves(part).axes for part in (aer, table[table["metric"] == "nll_loss"]))
    drawn = [list(line.get_ydata()) for axes in above for line in axes.lines]
    np.testing.assert_allclose(drawn, 100 * aer["value"].to_numpy().reshape(-1, 3))
    assert max(np.max(line.get_ydata()) for axes in below for line in axes.lines) < 1  # a loss is no percentage


@pytest.mark.parametrize(("names", "width"), [(["a"], COLUMN), (["a", "b"], PAGE)])
def test_it_can_be_printed(names, width):
    for metrics in (["aer", "nll_loss"], ["aer", *MAPS]):
        figure = draw_curves(runs(names, ["test", "train"], metrics), FigureOptions(title="Ours"))
        assert figure.get_figwidth() == (COLUMN if "nll_loss" in metrics else width)
        assert figure.get_suptitle() == "Ours"
        check_print(figure, apart=False)
        lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
        assert figure.legends[0].get_window_extent().y1 <= lowest + 1
