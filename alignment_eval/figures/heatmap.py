"""Draws grids of scores, such as the AER of every layer and head.  Matplotlib is imported only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from alignment_eval.figures.names import kind_name, place_name, rule_name
from alignment_eval.figures.style import (
    ACCENT,
    DEFAULT,
    SCORE_COLOURS,
    FigureOptions,
    add_heading,
    contrasting,
    new_figure,
    save_figure,
    styled,
    text_width,
    wrapped,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Columns of a sweep's table that identify a figure.
CONFIGURATION = ["kind", "setting", "rule", "null"]


@dataclass(frozen=True)
class Grid:
    """Values in a grid, as :func:`draw_heatmap` draws them.

    Attributes:
        values: in %, [rows, columns]; NaN is left empty.
        rows: the names of the rows.
        columns: the names of the columns.
        axis: what the columns are, below them.
        scale: what the colours are, next to them.
        limits: the values of the first and of the last colour.
    """

    values: NDArray[np.float64]
    rows: Sequence[str]
    columns: Sequence[str]
    axis: str
    scale: str
    limits: tuple[float, float]


def save_heatmaps(
    table: pd.DataFrame,
    directory: str | Path,
    options: FigureOptions = DEFAULT,
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Draw the figures of a sweep's table.

    ``heads-<kind>-<setting>-<rule>-<null>`` has every head of a configuration; these share one colour scale, from the
    lowest to the highest AER of any head.  ``summary`` has every whole layer, under the rule with the lowest AER.

    Returns:
        The paths written.
    """
    figures = {"summary": draw_heatmap(*summary(table), options)}
    heads = table[table["level"] == "head"]
    limits = (100 * float(heads["aer"].min()), 100 * float(heads["aer"].max()))
    for key, rows in heads.groupby(CONFIGURATION, sort=False):
        kind, setting, rule, null = (str(name) for name in key)
        grid = 100 * rows.pivot(index="layer", columns="head", values="aer")
        values = grid.to_numpy(dtype=np.float64)
        names = [f"layer {layer}" for layer in grid.index], [str(head) for head in grid.columns]
        heading = f"Heads: {kind_name(kind)}, {setting.upper()}; {rule_name(rule, null)}"
        row, column = _lowest(values)
        best = place_name(int(grid.index[row]), int(grid.columns[column]))
        heading += f". Lowest: {values[row, column]:.1f}, {best}"
        drawn = Grid(values, *names, "head", "AER %", limits)
        figures[f"heads-{kind}-{setting}-{rule}-{null}"] = draw_heatmap(drawn, heading, options)
    paths = [Path(directory) / f"{name}.{ending}" for name in figures for ending in formats]
    for path in paths:
        save_figure(figures[path.stem], path)
        figures[path.stem].set_layout_engine("none")  # laid out once for all formats
    return paths


def summary(table: pd.DataFrame) -> tuple[Grid, str]:
    """The AER of every whole layer by setting and kind, under the rule and null with the lowest one; and a heading."""
    layers = table[table["level"] == "layer"]
    best = layers.sort_values("aer", kind="stable").iloc[0]
    rows = layers[(layers["rule"] == best["rule"]) & (layers["null"] == best["null"])]
    numbers = sorted(rows["layer"].unique())
    kinds = [(setting, kind) for setting in rows["setting"].unique() for kind in rows["kind"].unique()]
    cells = {(row.setting, row.kind, row.layer): 100 * row.aer for row in rows.itertuples()}
    values = np.array([[cells.get((*kind, number), np.nan) for number in numbers] for kind in kinds])
    names = [f"{setting.upper()}, {kind_name(kind)}" for setting, kind in kinds]
    limits = float(np.nanmin(values)), float(np.nanmax(values))
    heading = (
        f"Whole layers; {rule_name(best['rule'], best['null'])}. Lowest: {limits[0]:.1f}, "
        f"{kind_name(best['kind'])}, {best['setting'].upper()}, {place_name(int(best['layer']))}"
    )
    return Grid(values, names, [str(number) for number in numbers], "layer", "AER %", limits), heading


def _lowest(values: NDArray[np.float64]) -> tuple[int, int]:
    row, column = np.unravel_index(np.nanargmin(values), values.shape)
    return int(row), int(column)


@styled
def draw_heatmap(grid: Grid, heading: str, options: FigureOptions = DEFAULT, *, mark_lowest: bool = True) -> Figure:
    """A figure of a grid with the number in each cell; a frame marks the lowest if ``mark_lowest``."""
    from matplotlib.patches import Rectangle

    values, (low, high) = grid.values, grid.limits
    beside = text_width(grid.rows) + 0.75  # names, colour bar
    cell = text_width(["88.8"]) + 0.06
    width = options.width_for(beside + cell * values.shape[1])
    numbered = width >= beside + cell * values.shape[1]  # else there is no room
    heading = wrapped(options.heading_of(heading), width - 0.1)
    figure = new_figure(width, 0.45 + 0.19 * values.shape[0] + (0.14 * (heading.count("\n") + 1) if heading else 0))
    add_heading(figure, heading)
    axes = figure.add_subplot()
    edges = [np.arange(count + 1) - 0.5 for count in values.shape[::-1]]
    cells = axes.pcolormesh(*edges, values, cmap=SCORE_COLOURS, vmin=low, vmax=high)
    axes.invert_yaxis()
    axes.set_xticks(range(len(grid.columns)), grid.columns)
    axes.set_yticks(range(len(grid.rows)), grid.rows)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    axes.set_xlabel(grid.axis)
    for row, column in np.argwhere(np.isfinite(values)) if numbered else ():
        value = values[row, column]
        colour = contrasting(cells.cmap, (value - low) / ((high - low) or 1))
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour, in_layout=False)
    if mark_lowest and np.isfinite(values).any():
        row, column = _lowest(values)
        for colour, thickness in (("white", 3.0), (ACCENT, 1.6)):
            frame = Rectangle(
                (column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=thickness, clip_on=False
            )
            axes.add_patch(frame)
    bar = figure.colorbar(cells, label=grid.scale, aspect=25, pad=0.02)
    bar.outline.set_visible(False)
    return figure
