"""Draws one map of a sentence on Matplotlib Axes, with its links as marks.  Matplotlib is imported only when needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from alignment_eval.figures.fonts import POINTS
from alignment_eval.figures.sentence import Panel, Picture, cells
from alignment_eval.figures.style import ACCENT, MAP_COLOURS, TYPE
from alignment_eval.links.table import Links
from alignment_eval.maps.sentence import SentenceSide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.lines import Line2D

#: Series -> label, marker, size as a share of a cell, whether it is filled; series differ in shape, not only in colour.
MARKS: dict[str, tuple[str, str, float, bool]] = {
    "sure": ("gold, sure", "s", 0.86, False),
    "possible": ("gold, possible only", "D", 0.62, False),
    "predicted": ("predicted", "o", 0.46, True),
}
_COLOURS = {"sure": "black", "possible": "black", "predicted": ACCENT}
#: The space between words and special tokens, in cells.
_APART = 0.4
#: Sides of a cell in inches: the smallest one whose label can be read, and the largest one.
SMALLEST, LARGEST = 1.18 * TYPE / POINTS, 0.3


def column_places(source: SentenceSide) -> NDArray[np.float64]:
    """The middle of each column, in cells from that of the first; special tokens, null among them, are set apart."""
    special = source.words < 0
    places: NDArray[np.float64] = np.arange(len(special)) + _APART * np.cumsum(np.diff(special, prepend=special[:1]))
    return places


def draw_panel(
    axes: Axes, picture: Picture, panel: Panel, cell: float, colormap: str | None = None, number: str | None = None
) -> QuadMesh:
    """Draw a panel of ``picture`` on ``axes``, without labels.

    Args:
        axes: the Axes to draw on.
        picture: gives the sides and the gold.
        panel: what to draw.
        cell: the side of a cell in inches.
        colormap: Matplotlib's name of the colours from 0 to the largest value; None: those of the style.
        number: the end of the ids of the marks in SVG; None: no ids.

    Returns:
        The cells of the first columns, for a colour bar.
    """
    rows = len(panel.values)
    places = column_places(picture.source)
    meshes = []
    for first, last in _stretches(picture.source):
        sides = (places[first] - 0.5, places[last - 1] + 0.5)
        meshes.append(
            axes.pcolormesh(  # an image in a PDF has a grid of pixels of its own, beside the lines
                np.linspace(*sides, last - first + 1),
                np.arange(-0.5, rows),
                panel.values[:, first:last],
                cmap=colormap or MAP_COLOURS,
                vmin=0,
                vmax=panel.values.max() or 1,  # a map of zeros is light, like zeros in other maps
            )
        )
        # Lines between and around cells; a grid of minor ticks would be many times slower.
        axes.vlines([sides[0], *(places[first:last] + 0.5)], -0.5, rows - 0.5, color="0.8", linewidth=0.4)
        axes.hlines(np.arange(-0.5, rows), *sides, color="0.8", linewidth=0.4)
    axes.tick_params(length=0, pad=2)
    axes.set_frame_on(False)
    series: dict[str, Links] = {"predicted": panel.predicted}
    if picture.gold is not None:
        series.update(sure=picture.gold.sure, possible=picture.gold.possible - picture.gold.sure)
    for name in (name for name in MARKS if name in series):
        points = [(places[column], row) for column, row in cells(series[name], picture.source, picture.target)]
        marks = marks_of(name, points, cell)
        if number is not None:
            marks.set_gid(f"{name}-{number}")  # the id of the group in SVG
        axes.add_line(marks)
    axes.set_xlim(-0.5, places[-1] + 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    return meshes[0]


def _stretches(source: SentenceSide) -> Iterator[tuple[int, int]]:
    """First and last column, the last one excluded, of each stretch of words or of special tokens."""
    ends = np.flatnonzero(np.diff(source.words < 0)) + 1
    bounds = [0, *ends.tolist(), len(source.words)]
    return zip(bounds, bounds[1:])


def label_axes(
    axes: Axes, source: SentenceSide, columns: Sequence[str], rows: Sequence[str], families: Sequence[str]
) -> None:
    """Label the columns and rows of a map with the fonts ``families``; a side without labels stays empty."""
    axes.set_xticks(column_places(source) if columns else [], columns, rotation=90, fontsize=TYPE)
    axes.set_yticks(range(len(rows)), rows, fontsize=TYPE)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set(parse_math=False, family=list(families))


def marks_of(name: str, points: Sequence[tuple[float, int]], cell: float) -> Line2D:
    """The marks of a series at ``points`` (column, row), with a white edge that is visible on dark cells."""
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    label, marker, share, filled = MARKS[name]
    thickness = 0.06 * cell * POINTS
    x, y = zip(*points) if points else ((), ())
    return Line2D(
        x,
        y,
        linestyle="none",
        label=label,
        marker=marker,
        markersize=share * cell * POINTS,
        markerfacecolor=_COLOURS[name] if filled else "none",
        markeredgecolor="white" if filled else _COLOURS[name],
        markeredgewidth=thickness,
        path_effects=[] if filled else [withStroke(linewidth=2.2 * thickness, foreground="white")],
    )
