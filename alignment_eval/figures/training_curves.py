"""Draws training curves: metrics by update.  Matplotlib is imported only when needed.

If there are metrics of layers, each run and subset has a panel; colours show layers, lines show kind and setting.
Else all runs share a panel, and colours show runs.  Losses have their own panels below.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from alignment_eval.figures.fonts import POINTS, text_width, wrapped
from alignment_eval.figures.names import place_name
from alignment_eval.figures.style import (
    COLOURS,
    COLUMN,
    DEFAULT,
    PAGE,
    TYPE,
    FigureOptions,
    layer_colours,
    new_figure,
    styled,
)
from alignment_eval.figures.training_log import Metric, best

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Dashes = Union[str, tuple[int, tuple[float, ...]]]
Colour = Union[str, tuple[float, ...]]
#: Run, subset and metric.
Key = tuple[str, str, str]

_KINDS = {"n": "norms", "w": "weights"}
#: Kind and setting of a map -> line, in the order of the legend.
_MAP_LINES: dict[tuple[Optional[str], Optional[str]], Dashes] = {
    ("n", "awo"): "-",
    ("w", "awo"): (0, (1.0, 2.0)),
    ("n", "awi"): (0, (5.0, 1.5)),
    ("w", "awi"): (0, (9.0, 2.0, 1.0, 2.0, 1.0, 2.0)),
}
#: Names of metrics without a layer in the legend.
_OTHER_NAMES = {"aer": "aer: the chosen map"}
#: Lines for other names; they repeat if there are more names.
_LINES: tuple[Dashes, ...] = tuple(_MAP_LINES.values())
#: The least range of an axis, so that noise stays small: points of a percentage; else a share of the largest value.
LEAST_POINTS, LEAST_SHARE = 5.0, 0.05
#: A line with at most this number of points has a mark at each.
_MARKED = 40
#: Inches that a legend's column takes beside its names: the line, and the space between columns.
_LEGEND_BESIDE = (2.2 + 0.8 + 1.2) * TYPE / POINTS
_LONGEST_NAME = 36


@dataclass(frozen=True)
class CurveStyle:
    """How a line is drawn."""

    colour: Colour
    line: Dashes = "-"
    width: float = 1.0

    def options(self) -> dict[str, Any]:
        """Options for Matplotlib; thick lines are drawn below the others."""
        under = 1 if self.width > 3 else 2
        return {"color": self.colour, "linestyle": self.line, "linewidth": self.width, "zorder": under}


@dataclass(frozen=True)
class Style:
    """The style of the lines in a row of panels, and their legend: groups, each in columns of its own."""

    curves: dict[Key, CurveStyle]
    legend: tuple[dict[str, CurveStyle], ...]


@styled
def draw_curves(metrics: pd.DataFrame, losses: pd.DataFrame | None = None, options: FigureOptions = DEFAULT) -> Figure:
    """A figure of metrics by update, with panels of losses below.

    AER, its precision and recall are drawn in %, other metrics as logged.  Values that are not finite leave a gap.  An
    axis covers at least :data:`LEAST_POINTS` points of a percentage, or :data:`LEAST_SHARE` of its largest value.

    Args:
        metrics: columns of :data:`~alignment_eval.figures.training_log.COLUMNS`, at least one row.
        losses: the same for losses.
        options: what the user says of the figure; ``title`` replaces that of the whole figure.
    """
    from matplotlib.ticker import MaxNLocator

    layered = any(Metric.of(name).layer is not None for name in metrics["metric"].unique())
    style = layer_style(metrics, options.colormap) if layered else run_style(metrics, losses)
    rows = [(metrics, style)]
    if losses is not None:
        rows.append((losses, loss_style(losses, set(metrics["subset"])) if layered else style))
    pairs = metrics[["run", "subset"]].drop_duplicates()
    columns = [(str(run), str(subset)) for run, subset in zip(pairs["run"], pairs["subset"])] if layered else [None]

    width = options.width_for(COLUMN if len(columns) == 1 else PAGE)
    figure = new_figure(width, 2.4 if losses is None else 3.6)
    heights = [2, 1][: len(rows)]
    grid = figure.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    for axes_of_row, (table, drawn) in zip(grid, rows):
        for axes, column in zip(axes_of_row, columns):
            _draw(axes, _of_column(table, column, metrics), drawn)
        axes_of_row[0].set_ylabel(axis_label(table["metric"].unique()))
        _keep_range(axes_of_row[0], table)
    lowest = [_mark_lowest(axes, _of_column(metrics, column)) for axes, column in zip(grid[0], columns)]
    for axes, column, found in zip(grid[0], columns, lowest):
        if options.heading and column is not None:
            title = f"{shortened(column[0])}, subset {shortened(column[1])}{found}"
            axes.set_title(wrapped(title, (width - 0.5) / len(columns) - 0.1, TYPE), fontsize=TYPE)
    for axes in grid[-1]:
        axes.set_xlabel("update")
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    if heading := options.heading_of("" if layered else f"{_runs_named(metrics)}{lowest[0]}"):
        figure.suptitle(wrapped(heading, width - 0.1, TYPE), x=0.03 / width, ha="left", fontsize=TYPE)
    _draw_legend(figure, style.legend, width)
    for _, below in rows[1:] if layered else ():  # a line means a kind of map above, and a metric below
        names = below.legend[0]
        grid[1][-1].legend(_handles(names.values()), list(names), loc="best")
    return figure


def _of_column(
    table: pd.DataFrame, column: tuple[str, str] | None, metrics: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The rows of a run that belong to a subset, or to one that has no column in ``metrics``, such as ``train``."""
    if column is None:
        return table
    run, subset = column
    elsewhere = table["subset"].isin((table if metrics is None else metrics)["subset"]) & (table["subset"] != subset)
    return table[(table["run"] == run) & ~elsewhere]


def layer_style(table: pd.DataFrame, colormap: str | None = None) -> Style:
    """Colours show layers, from dark to light; lines show kind and setting; ``aer`` is a thick band below the others.

    The legend lists layers and lines separately, so that it stays short.
    """
    metrics = [Metric.of(name) for name in table["metric"].unique()]
    of_layers = [metric for metric in metrics if metric.layer is not None]
    layers = sorted({metric.layer for metric in of_layers if metric.layer is not None})
    colours = layer_colours(layers, colormap)
    styles = {m.name: CurveStyle(colours[m.layer], _map_line(m)) for m in of_layers if m.layer is not None}
    others = [metric.name for metric in metrics if metric.layer is None]
    styles.update((name, CurveStyle("dimgrey", _LINES[n % len(_LINES)], 1)) for n, name in enumerate(others))
    if "aer" in styles:
        styles["aer"] = CurveStyle("lightgrey", "-", 4)

    lines = {(m.kind, m.setting): CurveStyle("black", _map_line(m)) for m in of_layers}
    order = [key for key in (*_MAP_LINES, *lines) if key in lines]
    legend = {place_name(layer): CurveStyle(colours[layer], "-", 2.5) for layer in layers}
    below = {_map_name(*key): lines[key] for key in order}
    below.update((_OTHER_NAMES.get(name, name), styles[name]) for name in others)
    return Style({key: styles[key[2]] for key in _keys(table)}, (legend, below))


def run_style(table: pd.DataFrame, losses: pd.DataFrame | None = None) -> Style:
    """Colours show runs; lines show subsets, or subset and metric if a panel has several metrics.

    The legend lists runs and lines separately, and each once for the panels of metrics and of ``losses``.
    """
    panels = [table] if losses is None else [table, losses]
    keys = [key for panel in panels for key in _keys(panel)]
    several = any(panel["metric"].nunique() > 1 for panel in panels)  # else the axes say which metric it is
    named = {key: f"{key[1]}_{key[2]}" if several else key[1] for key in keys}
    runs = dict.fromkeys(key[0] for key in keys)
    colours = dict(zip(runs, itertools.cycle(COLOURS)))
    lines = dict(zip(dict.fromkeys(named.values()), itertools.cycle(_LINES)))
    styles = {key: CurveStyle(colours[key[0]], lines[named[key]]) for key in keys}
    of_runs = {shortened(run): CurveStyle(colour, "-", 2.5) for run, colour in colours.items()}
    of_lines = {shortened(name): CurveStyle("black", line) for name, line in lines.items()}
    return Style(styles, (of_runs, of_lines))


def loss_style(table: pd.DataFrame, subsets: set[str]) -> Style:
    """Lines show metrics; those of ``subsets``, which have columns, are black and named without subset, others grey."""
    names = list(table["metric"].unique())
    styles, legend = {}, {}
    for run, subset, metric in _keys(table):
        line = _LINES[names.index(metric) % len(_LINES)]
        own = subset in subsets
        style = CurveStyle("black" if own else "darkgrey", line, 1.0)
        styles[run, subset, metric] = legend[metric if own else shortened(f"{subset}_{metric}")] = style
    return Style(styles, (legend,))


def axis_label(names: Iterable[str]) -> str:
    """The axis label for some metrics: ``AER %``, or their names."""
    metrics = [Metric.of(name) for name in names]
    if not all(metric.share for metric in metrics):
        return shortened(", ".join(metric.name for metric in metrics))
    shares = {"AER" if metric.better == "lower" else metric.name.removeprefix("aer_") for metric in metrics}
    return f"{', '.join(sorted(shares))} %"


def shortened(name: str) -> str:
    """A name for a figure: only the end of a long one, escaped so that Matplotlib shows it literally and in legends."""
    name = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
    return f"{' ' * name.startswith('_')}{name}".replace("$", r"\$")


def _draw(axes: Axes, table: pd.DataFrame, style: Style) -> None:
    for key in _keys(table):
        rows = table[(table["run"] == key[0]) & (table["subset"] == key[1]) & (table["metric"] == key[2])]
        rows = rows.sort_values("update", kind="stable")
        values = rows["value"].to_numpy() * (100 if Metric.of(key[2]).share else 1)
        options = style.curves[key].options()
        axes.plot(rows["update"].to_numpy(), values, marker="." if len(rows) <= _MARKED else None, **options)
    axes.grid()


def _keep_range(axes: Axes, table: pd.DataFrame) -> None:
    """Widen the axis to the least range, its values in the middle."""
    scaled = [
        value * (100 if Metric.of(name).share else 1)
        for name, value in zip(table["metric"], table["value"])
        if value == value
    ]
    share = any(Metric.of(name).share for name in table["metric"].unique())
    least = LEAST_POINTS if share else LEAST_SHARE * max(map(abs, scaled), default=0)
    if scaled and max(scaled) - min(scaled) < least:
        middle = (max(scaled) + min(scaled)) / 2
        axes.set_ylim(middle - 0.55 * least, middle + 0.55 * least)


def _draw_legend(figure: Figure, groups: Sequence[dict[str, CurveStyle]], width: float) -> None:
    """Draw the legend under the panels, in the fewest lines at which its columns fit; no column has two groups."""
    columns = legend_columns([list(group) for group in groups], width - 0.1)
    styles = {name: curve for group in groups for name, curve in group.items()}
    names = [name for column in columns for name in column]
    handles = _handles(styles.get(name, CurveStyle("none")) for name in names)
    figure.legend(handles, names, loc="outside lower left", ncols=len(columns))


def legend_columns(groups: Sequence[Sequence[str]], width: float) -> list[list[str]]:
    """The names of a legend in columns of the same length, those of each group by themselves, filled up with blanks."""
    longest = max(map(len, groups))
    for lines in range(1, longest + 1):
        columns = [list(group[n : n + lines]) for group in groups for n in range(0, len(group), lines)]
        if lines == longest or sum(text_width(column, TYPE) + _LEGEND_BESIDE for column in columns) <= width:
            break
    return [column + [" "] * (lines - len(column)) for column in columns]


def _handles(styles: Iterable[CurveStyle]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], **style.options()) for style in styles]


def _runs_named(table: pd.DataFrame) -> str:
    runs, subsets = ([shortened(str(name)) for name in table[of].unique()] for of in ("run", "subset"))
    return f"{', '.join(runs)}; subset{'s' if len(subsets) > 1 else ''} {', '.join(subsets)}"


def _mark_lowest(axes: Axes, table: pd.DataFrame) -> str:
    """Mark the lowest AER with a ring, and return a line of the heading about it; empty if there is none."""
    aers = [metric for metric in map(Metric.of, table["metric"].unique()) if metric.share and metric.better == "lower"]
    found = best(table[table["metric"].isin([metric.name for metric in aers])]).dropna(subset="best")
    if not len(found):
        return ""
    # if the same AER is that of a layer and of aer, the layer is more informative
    named = found.assign(plain=found["metric"] == "aer").sort_values(["best", "plain"], kind="stable").iloc[0]
    metric, update = Metric.of(str(named["metric"])), int(named["best_update"])
    where = [shortened(str(named[name])) for name in ("run", "subset") if table[name].nunique() > 1]
    where += [] if metric.layer is None else [place_name(metric.layer), _map_name(metric.kind, metric.setting)]
    axes.plot([update], [100 * named["best"]], marker="o", ms=7, mfc="none", mec="black", mew=1.2, zorder=3)
    of = f" ({', '.join(where)})" if where else ""
    return f"\nLowest AER: {metric.shown(named['best'])} at update {update}{of}"


def _map_line(metric: Metric) -> Dashes:
    return _MAP_LINES.get((metric.kind, metric.setting), "-")


def _map_name(kind: str | None, setting: str | None) -> str:
    return f"{_KINDS.get(kind or '', kind)}, {(setting or '').upper()}"


def _keys(table: pd.DataFrame) -> Sequence[Key]:
    """Run, subset and metric of each line, in the order of the table."""
    keys = table[["run", "subset", "metric"]].drop_duplicates()
    return [(str(run), str(subset), str(metric)) for run, subset, metric in keys.itertuples(index=False, name=None)]
