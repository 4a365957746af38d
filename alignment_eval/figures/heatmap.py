"""Draws tables of scores, such as the AER of every layer and head.  Matplotlib is imported only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alignment_eval.figures.style import (
    ACCENT,
    COLUMN,
    DEFAULT,
    PAGE,
    SCORE_COLOURS,
    FigureOptions,
    kind_name,
    new_figure,
    place_name,
    rule_name,
    save_figures,
    styled,
    text_width,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Columns of a sweep's table that identify a figure.
CONFIGURATION = ["kind", "setting", "rule", "null"]


def save_heatmaps(table: pd.DataFrame, directory: Path, options: FigureOptions, formats: Sequence[str]) -> None:
    """Draw the figures of a sweep's table into a directory.

    ``heads-<kind>-<setting>-<rule>-<null>`` has every head of a configuration; these share one colour scale, from the
    lowest to the highest AER of any head.  ``summary`` has every whole layer, under the rule with the lowest AER.
    """
    figures = {"summary": draw_heatmap(*summary(table), options=options)}
    heads = table[table["level"] == "head"]
    limits = (100 * float(heads["aer"].min()), 100 * float(heads["aer"].max()))
    for key, rows in heads.groupby(CONFIGURATION, sort=False):
        kind, setting, rule, null = map(str, key)
        values = 100 * rows.pivot(index="layer", columns="head", values="aer")
        values.index = values.index.map(place_name)
        heading = f"Heads: {kind_name(kind)}, {setting.upper()}; {rule_name(rule, null)}. {_lowest(rows)}"
        figures["-".join(("heads", kind, setting, rule, null))] = draw_heatmap(values, heading, limits, options=options)
    save_figures(figures, directory, formats)


def summary(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The AER of every whole layer by setting and kind, under the rule and null with the lowest one; and a heading."""
    layers = table[table["level"] == "layer"]
    best = layers.iloc[int(layers["aer"].argmin())]
    rows = layers[(layers["rule"] == best["rule"]) & (layers["null"] == best["null"])]
    values = 100 * rows.pivot(index=["setting", "kind"], columns="layer", values="aer")
    values = values.reindex([(setting, kind) for setting in rows["setting"].unique() for kind in rows["kind"].unique()])
    values.index = values.index.map(lambda of_row: f"{of_row[0].upper()}, {kind_name(of_row[1])}")
    what = f"{kind_name(best['kind'])}, {best['setting'].upper()}, "
    return values, f"Whole layers; {rule_name(best['rule'], best['null'])}. {_lowest(rows, what)}"


def _lowest(rows: pd.DataFrame, what: str = "") -> str:
    """The lowest AER of a sweep's rows, and its place."""
    best = rows.iloc[int(rows["aer"].argmin())]
    head = int(best["head"]) if best["level"] == "head" else None
    return f"Lowest: {100 * best['aer']:.1f}, {what}{place_name(int(best['layer']), head)}"


@styled()
def draw_heatmap(
    table: pd.DataFrame,
    heading: str,
    limits: tuple[float, float] | None = None,
    scale: str = "AER %",
    options: FigureOptions = DEFAULT,
    mark_lowest: bool = True,
) -> Figure:
    """A figure of a table of values in % with the number in each cell; NaN is left empty.

    The index names the rows, the columns and their name what stands below.  ``limits`` are the values of the first and
    the last colour of the ``scale``; None: the lowest and the highest.  ``mark_lowest``: the lowest value has a frame.
    """
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    values, rows = table.to_numpy(dtype=np.float64), [str(name) for name in table.index]
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    needed = 0.75 + text_width(rows, 7) + (text_width(["88.8"], 7) + 0.06) * values.shape[1]
    width = options.width or (COLUMN if needed <= COLUMN else PAGE)
    figure = new_figure(width, 0.85 + 0.19 * len(rows), options.heading_of(heading))
    axes = figure.add_subplot()
    edges = [np.arange(count + 1) - 0.5 for count in values.shape[::-1]]
    cells = axes.pcolormesh(*edges, values, cmap=SCORE_COLOURS, vmin=low, vmax=high)
    axes.invert_yaxis()
    axes.set_xticks(range(values.shape[1]), [str(name) for name in table.columns])
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    axes.set_xlabel(str(table.columns.name))
    for row, column in np.argwhere(np.isfinite(values)) if needed <= width else ():
        value = values[row, column]
        colour = "black" if value - low > 0.47 * (high - low) else "white"  # as the colour is light or dark
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour, in_layout=False)
    if mark_lowest:
        row, column = np.unravel_index(np.nanargmin(values), values.shape)
        edge: dict[str, Any] = {"path_effects": [withStroke(linewidth=3, foreground="white")], "clip_on": False}
        corner = float(column) - 0.5, float(row) - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=ACCENT, linewidth=1.6, **edge))
    figure.colorbar(cells, label=scale, aspect=25, pad=0.02).outline.set_visible(False)
    return figure
