"""What is drawn: values, styles, panels, legends."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from alignment_eval.figures.saving import save_figure
from alignment_eval.figures.style import COLUMN, PAGE, FigureOptions
from alignment_eval.figures.training_curves import (
    LEAST_POINTS,
    LEAST_SHARE,
    CurveStyle,
    axis_label,
    draw_curves,
    layer_style,
    legend_columns,
    loss_style,
    run_style,
    shortened,
)
from alignment_eval.figures.training_log import COLUMNS
from tests.eval.figures.printed import check_print

MAPS = [f"aer_l{layer}_{kind}_{setting}" for layer in range(6) for kind in "wn" for setting in ("awo", "awi")]
Row = tuple[str, str, int, str, float]


def table(*rows: Row) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS))


def runs(names: list[str], subsets: list[str], metrics: list[str]) -> pd.DataFrame:
    """Values that are all different, updates in no order."""
    rows = [
        (name, subset, update, metric, 0.1 + n / 1000)
        for n, (name, subset, metric, update) in enumerate(
            (name, subset, metric, update)
            for name in names
            for subset in subsets
            for metric in metrics
            for update in (300, 100, 200)
        )
    ]
    return table(*rows)


def drawn(axes: Axes) -> list[tuple[list[float], list[float]]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if line.get_markersize() < 5]


def legend(figure: Figure) -> list[str]:
    """Under the panels, column by column."""
    (found,) = figure.legends
    return [text.get_text() for text in found.get_texts() if text.get_text().strip()]


def test_a_panel_for_each_run_and_subset() -> None:
    metrics = runs(["a", "b"], ["test", "test1"], ["aer", *MAPS])
    losses = pd.concat([runs(["a", "b"], ["test", "test1", "train"], ["loss"])])
    figure = draw_curves(metrics, losses)
    assert len(figure.axes) == 8
    titles = [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes[:4]]
    assert titles == ["a, subset test", "a, subset test1", "b, subset test", "b, subset test1"]
    for axes, (run, subset) in zip(figure.axes, [("a", "test"), ("a", "test1"), ("b", "test"), ("b", "test1")]):
        rows = metrics[(metrics["run"] == run) & (metrics["subset"] == subset)]
        expected = [rows[rows["metric"] == name].sort_values("update") for name in ("aer", *MAPS)]
        for (x, y), values in zip(drawn(axes), expected):
            assert x == [100, 200, 300]
            np.testing.assert_allclose(y, 100 * values["value"].to_numpy())
        assert len(drawn(axes)) == len(expected)
    under = figure.axes[4:]
    assert [len(drawn(axes)) for axes in under] == 4 * [2]  # of its subset, and of training
    assert under[0].lines[0].get_ydata()[0] == losses["value"][1]  # not a percentage
    assert [axes.get_ylabel() for axes in figure.axes] == ["AER %", "", "", "", "loss", "", "", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == 4 * [""] + 4 * ["update"]


def test_the_legend_of_layers_is_short() -> None:
    figure = draw_curves(runs(["a"], ["test"], ["aer", *MAPS]))
    names = ["norms, AWO", "weights, AWO", "norms, AWI", "weights, AWI"]
    assert legend(figure) == [*(f"layer {n}" for n in range(6)), *names, "aer: the chosen map"]
    style = layer_style(runs(["a"], ["test"], ["aer", *MAPS]))
    styles = [curve for key, curve in style.curves.items() if key[2] != "aer"]
    assert len({(curve.colour, curve.line) for curve in styles}) == 24  # every line can be told from every other
    assert len({curve.colour for curve in styles}) == 6


def test_layers_look_the_same_in_all_runs() -> None:
    metrics = pd.concat([runs(["a"], ["test"], MAPS[8:]), runs(["b"], ["test"], MAPS)])
    styles = layer_style(metrics).curves
    assert all(styles["a", "test", name] == styles["b", "test", name] for name in MAPS[8:])


def test_the_lowest_aer_has_a_ring_and_is_named() -> None:
    values = {"aer": 0.3, "aer_l0_n_awo": 0.4, "aer_l1_w_awi": 0.3, "aer_precision": 0.1}
    figure = draw_curves(table(*(("a", "test", 100, name, value) for name, value in values.items())))
    (axes,) = figure.axes
    title = axes.get_title(loc="left").replace("\n", " ")
    assert title == "a, subset test Lowest AER: 30.00 % at update 100 (layer 1, weights, AWI)"
    ring = axes.lines[-1]
    assert (list(ring.get_xdata()), list(ring.get_ydata())) == ([100], [30.0])


def test_runs_share_a_panel_where_no_metric_has_a_layer() -> None:
    figure = draw_curves(runs(["a", "b"], ["test"], ["aer"]), runs(["a", "b"], ["test", "train"], ["loss"]))
    assert len(figure.axes) == 2
    assert legend(figure) == ["a", "b", "test", "train"]  # each once
    above, below = figure.axes
    assert [line.get_color() for line in above.lines[:2]] == [below.lines[0].get_color(), below.lines[2].get_color()]
    assert above.lines[0].get_color() != above.lines[1].get_color()
    assert below.lines[0].get_linestyle() != below.lines[1].get_linestyle()


def test_a_run_and_a_subset_look_the_same_in_both_panels() -> None:
    losses = pd.concat([runs(["b"], ["train", "test"], ["loss"])])
    styles = run_style(runs(["a", "b"], ["test"], ["aer"]), losses).curves
    assert styles["b", "test", "loss"] == styles["b", "test", "aer"]
    assert styles["b", "train", "loss"].line != styles["b", "test", "loss"].line


def test_lines_have_the_names_of_metrics_where_an_axis_has_several() -> None:
    style = run_style(runs(["a"], ["test"], ["aer", "aer_recall"]), runs(["a"], ["test"], ["loss"]))
    assert [list(group) for group in style.legend] == [["a"], ["test_aer", "test_aer_recall", "test_loss"]]
    assert len({curve.line for curve in style.curves.values()}) == 3


def test_columns_of_the_legend() -> None:
    """A group begins a column, and all columns have the same length."""
    layers, lines = [f"layer {n}" for n in range(5)], ["norms", "weights"]
    assert legend_columns([layers, lines], 100) == [[name] for name in [*layers, *lines]]
    two = [layers[:3], [*layers[3:], " "], ["norms", "weights", " "]]
    assert legend_columns([layers, lines], 2.9) == two
    assert legend_columns([layers, lines], 0.1) == [layers, [*lines, " ", " ", " "]]


def test_loss_style() -> None:
    style = loss_style(runs(["a"], ["test", "train"], ["loss", "nll_loss"]), {"test"})
    (names,) = style.legend
    assert list(names) == ["loss", "nll_loss", "train_loss", "train_nll_loss"]
    assert {curve.colour for curve in names.values()} == {"black", "darkgrey"}
    assert names["loss"].line == names["train_loss"].line != names["nll_loss"].line


def test_values_that_are_not_finite_leave_a_gap(tmp_path: Path) -> None:
    rows = [("a", "test", 100 * n, "aer_l0_n_awo", value) for n, value in enumerate((0.5, math.nan, 0.4))]
    ((_, y),) = drawn(draw_curves(table(*rows)).axes[0])
    np.testing.assert_array_equal(y, [50, np.nan, 40])
    only = [("a", "test", 100, "aer_l0_n_awo", math.nan)]
    figure = draw_curves(table(*only))
    assert figure.axes[0].get_title(loc="left") == "a, subset test"
    save_figure(figure, tmp_path / "empty.png")  # without a warning


def test_one_point_is_seen_and_many_are_not_marked() -> None:
    def marker(points: int) -> object:
        rows = [("a", "test", n, "aer", 0.5) for n in range(points)]
        return draw_curves(table(*rows)).axes[0].lines[0].get_marker()

    assert marker(1) == "."
    assert marker(100) == "None"


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["aer", "aer_l0_n_awo"], "AER %"),
        (["aer_precision", "aer"], "AER, precision %"),
        (["aer_recall", "aer_precision"], "precision, recall %"),
        (["loss", "nll_loss"], "loss, nll_loss"),
    ],
)
def test_axis_label(names: list[str], label: str) -> None:
    assert axis_label(names) == label


def test_odd_names(tmp_path: Path) -> None:
    assert shortened("a" * 50 + "end") == f"…{'a' * 32}end"
    assert len(shortened("a" * 50)) == 36
    odd = ["_hidden", "$x_{$", "名前"]
    figure = draw_curves(runs(odd, ["test"], ["aer"]))
    assert len(legend(figure)) == 4
    for metric in ("aer", "aer_l0_n_awo"):
        save_figure(draw_curves(runs(odd, ["te$t"], [metric])), tmp_path / "odd.png")


@pytest.mark.parametrize(("names", "width"), [(["a"], COLUMN), (["a", "b"], PAGE)])
def test_it_can_be_printed(names: list[str], width: float) -> None:
    losses = runs(names, ["test", "train"], ["nll_loss"])
    for metrics in (["aer"], ["aer", *MAPS]):
        figure = draw_curves(runs(names, ["test"], metrics), losses)
        assert figure.get_figwidth() == (COLUMN if metrics == ["aer"] else width)
        check_print(figure, apart=False)
        lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
        assert figure.legends[0].get_window_extent().y1 <= lowest + 1


def test_noise_is_no_drama() -> None:
    """The axis covers at least 5 points, however little differs."""
    rows = [("a", "test", update, "aer", 0.5 + 0.001 * (update % 2)) for update in range(6)]
    losses = [("a", "test", update, "loss", 3 + 0.001 * (update % 2)) for update in range(6)]
    above, below = draw_curves(table(*rows), table(*losses)).axes
    low, high = above.get_ylim()
    assert high - low == pytest.approx(1.1 * LEAST_POINTS)
    assert (low + high) / 2 == pytest.approx(50.05)
    assert np.ptp(below.get_ylim()) == pytest.approx(1.1 * LEAST_SHARE * 3.001)
    wide = draw_curves(table(("a", "test", 1, "aer", 0.9), ("a", "test", 2, "aer", 0.2))).axes[0]
    assert np.ptp(wide.get_ylim()) < 80  # as Matplotlib has it


def test_title() -> None:
    rows = runs(["a", "b"], ["test"], ["aer"])

    def headings(options: FigureOptions) -> list[str]:
        figure = draw_curves(rows, options=options)
        return [figure.get_suptitle(), *(axes.get_title(loc="left") for axes in figure.axes)]

    assert headings(FigureOptions()) == ["a, b; subset test\nLowest AER: 10.00 % at update 300 (a)", ""]
    assert headings(FigureOptions(title="Ours")) == ["Ours", ""]
    assert headings(FigureOptions(title="Ours", heading=False)) == ["", ""]


def test_broad_lines_lie_under_the_others() -> None:
    assert CurveStyle("red", width=6).options()["zorder"] < CurveStyle("red").options()["zorder"]


def test_updates_are_whole_numbers() -> None:
    """A short run has no update 1.5."""
    rows = [("a", "test", update, "aer", 0.5) for update in (1, 2, 3)]
    figure = draw_curves(pd.DataFrame(rows, columns=list(COLUMNS)))
    assert all(tick == int(tick) for tick in figure.axes[0].get_xticks())
