"""Draws figures of a sweep: the AER of every head, layer × head.  Matplotlib is imported only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from alignment_eval.figures.saving import save_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Columns of a sweep's table that identify a figure.
CONFIGURATION = ["kind", "setting", "rule", "null"]


def layer_label(layer: int) -> str:
    """``layer 1 (2nd)``: the number that fairseq counts from 0, and the place that papers count from 1."""
    place = layer + 1
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"layer {layer} ({place}{ending})"


def save_heatmaps(table: pd.DataFrame, directory: str | Path) -> list[Path]:
    """Draw ``heads-<kind>-<setting>-<rule>-<null>.png`` and ``.svg`` for each configuration of a sweep's table.

    All share one colour scale, from the lowest to the highest AER of any head.

    Args:
        table: from :func:`alignment_eval.scoring.sweep.sweep`.
        directory: an existing directory for the figures.

    Returns:
        The paths written.
    """
    heads = table[table["level"] == "head"]
    if not len(heads):  # kinds with maps of whole layers only
        return []
    limits = (100 * float(heads["aer"].min()), 100 * float(heads["aer"].max()))
    paths = []
    for key, rows in heads.groupby(CONFIGURATION, sort=False):
        names = [str(name) for name in key]
        grid = rows.pivot(index="layer", columns="head", values="aer")
        figure = draw_heatmap(100 * grid.to_numpy(dtype=np.float64), list(grid.index), heading(*names), limits)
        for ending in ("png", "svg"):
            paths.append(Path(directory) / f"heads-{'-'.join(names)}.{ending}")
            save_figure(figure, paths[-1])
    return paths


def heading(kind: str, setting: str, rule: str, null: str) -> str:
    """A configuration in words."""
    return f"{kind}, {setting.upper()}, {rule}, null {'allowed' if null == 'allow' else 'masked'}"


def draw_heatmap(values: NDArray[np.float64], layers: Sequence[int], title: str, limits: tuple[float, float]) -> Figure:
    """A figure of ``values`` [layers, heads] in %, with the number in each cell, coloured between ``limits``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows, columns = values.shape
    figure = Figure(figsize=(3.2 + 0.6 * columns, 1.6 + 0.4 * rows))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(values, cmap="viridis", vmin=limits[0], vmax=limits[1], aspect="auto")
    axes.set_xticks(range(columns), [str(head) for head in range(columns)])
    axes.set_yticks(range(rows), [layer_label(layer) for layer in layers])
    axes.set_xlabel("head")
    axes.set_title(f"AER %: {title}", fontsize="medium")
    middle = sum(limits) / 2
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        colour = "white" if value < middle else "black"  # dark cells are the low ones
        axes.text(
            column, row, f"{value:.1f}", ha="center", va="center", color=colour, fontsize="small", in_layout=False
        )
    figure.colorbar(image, label="AER %")
    return figure
