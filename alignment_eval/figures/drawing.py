"""Draws the maps of a sentence, at their printed width or on given Axes.  Matplotlib is imported only when needed.

All lengths are in inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alignment_eval.errors import UsageError
from alignment_eval.figures.names import label_of
from alignment_eval.figures.sentence import Panel, Picture, cells
from alignment_eval.figures.style import (
    ACCENT,
    COLUMN,
    DEFAULT,
    MAP_COLOURS,
    PAGE,
    POINTS,
    TYPE,
    UNITS,
    FigureOptions,
    styled,
    text_width,
    use_fonts_for,
    wrapped,
)
from alignment_eval.links.sets import Links
from alignment_eval.maps.sentence import SentenceSide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Series -> label, marker, size as a share of a cell, whether it is filled; series differ in shape, not only in colour.
MARKS: dict[str, tuple[str, str, float, bool]] = {
    "sure": ("gold, sure", "s", 0.86, False),
    "possible": ("gold, possible only", "D", 0.62, False),
    "predicted": ("predicted", "o", 0.46, True),
}
_COLOURS = {"sure": "black", "possible": "black", "predicted": ACCENT}
#: Sides of a cell: the smallest one for a label of :data:`TYPE`, and the largest one.
SMALLEST, LARGEST = 1.18 * TYPE / POINTS, 0.3
#: The smallest type of words, in points: words that would not fit otherwise are set smaller than other text.
SMALLEST_TYPE = 5.0
#: A line of text, the spaces at the figure's edge, between panels, and next to a mark of the legend.
_LINE, _EDGE, _BETWEEN, _MARK = 1.35 * TYPE / POINTS, 0.03, 0.12, 0.35
#: Around a map on Axes of its own: for titles, axis labels, the colour bar and the figure's margin.
_BESIDE, _ABOVE = 0.75, 0.65


@styled
def draw(picture: Picture, options: FigureOptions = DEFAULT) -> Figure:
    """Draw ``picture`` at its printed width; its height is what the sentence needs.

    Its rows are side by side in a column or page, or stacked where they do not fit.  Words of a map that is too wide by
    itself are set smaller, down to :data:`SMALLEST_TYPE`.
    """
    from matplotlib.figure import Figure

    use_fonts_for(picture.texts)
    columns, rows = ([label_of(token) for token in side.tokens] for side in (picture.source, picture.target))
    titles = text_width(line for row in picture.panels for panel in row for line in _title(panel))
    names = text_width(rows)

    def left_of(type_: float) -> float:
        return _EDGE + _LINE + names * type_ / TYPE + 0.05

    def needed(across: int, type_: float = TYPE) -> float:
        panel = max(len(columns) * SMALLEST * type_ / TYPE, titles) + _BETWEEN
        return float(max(left_of(type_) + across * panel + _EDGE, _legend_width(picture)))

    most = max(map(len, picture.panels))
    width = options.width or (COLUMN if needed(most) <= COLUMN else PAGE)
    types = np.arange(TYPE, SMALLEST_TYPE - 0.01, -0.1)
    type_ = next((float(points) for points in types if needed(1, points) <= width + 1e-6), None)
    if type_ is None:
        least = needed(1, SMALLEST_TYPE)
        given, wanted = (f"{np.ceil(10 * length / UNITS['cm'] - 1e-6) / 10:g}cm" for length in (width, least))
        raise UsageError(f"--width {given}: the words of a map need {wanted} or more; give that")
    across = max(n for n in range(1, most + 1) if n == 1 or needed(n) <= width + 1e-6)
    left = left_of(type_)
    cell = min(((width - left - _EDGE) / across - _BETWEEN) / len(columns), LARGEST)
    pitch = max(cell * len(columns), titles) + _BETWEEN  # from a panel to the next one
    lines = [row[first : first + across] for row in picture.panels for first in range(0, len(row), across)]

    heading = wrapped(picture.title, width - 2 * _EDGE)
    below = text_width(columns) * type_ / TYPE + 0.05 + _LINE  # of panels that have none under them
    above = _EDGE + _LINE * (heading.count("\n") + 1 if heading else 0) + 0.04
    titled = _LINE * max(len(_title(panel)) for line in lines for panel in line)
    under = [*map(len, lines[1:]), 0]  # how many panels stand under each line
    tops = [above + _LINE + 0.05]
    for line, after in zip(lines, under):
        tops.append(tops[-1] + titled + cell * len(rows) + _BETWEEN + (below if len(line) > after else 0))
    height = tops[-1] + _EDGE
    figure = Figure(figsize=(width, height))
    if heading:
        figure.text(_EDGE / width, 1 - _EDGE / height, heading, va="top", fontsize=TYPE, parse_math=False)
    figure.legend(
        handles=[marks_of(name, [], 0.13) for name in _series(picture)],
        loc="upper left",
        bbox_to_anchor=(_EDGE / width, 1 - above / height),
        ncols=len(MARKS),
        borderaxespad=0,
        borderpad=0,
        handlelength=1,
        handletextpad=0.4,
    )
    size = cell * len(columns) / width, cell * len(rows) / height
    for r, (line, after) in enumerate(zip(lines, under)):
        bottom = 1 - (tops[r] + titled) / height - size[1]
        for c, panel in enumerate(line):
            axes = figure.add_axes(((left + c * pitch) / width, bottom, *size))
            draw_panel(axes, picture, panel, cell, f"{r}-{c}")
            axes.set_title("\n".join(_title(panel)), fontsize=TYPE, pad=2, linespacing=1.1, parse_math=False)
            label_axes(axes, columns if c >= after else [], rows if c == 0 else [], type_)
    return figure


def _title(panel: Panel) -> list[str]:
    """The lines above a panel; one of links alone has no values."""
    return [panel.title, f"max {panel.values.max():.3g}"][: 2 if panel.values.any() else 1]


def _series(picture: Picture) -> list[str]:
    return [name for name in MARKS if name == "predicted" or picture.gold is not None]


def _legend_width(picture: Picture) -> float:
    return _EDGE + sum(text_width([MARKS[name][0]]) + _MARK for name in _series(picture))


@styled
def draw_map(
    panel: Panel, source: SentenceSide, target: SentenceSide, ax: Axes | None = None, colorbar: str | None = None
) -> Axes:
    """Draw one map with its words and links, on Axes of the caller or new ones.

    A figure without a layout gets Matplotlib's constrained layout, so that ``savefig`` does not crop it.

    A new figure of ``matplotlib.pyplot`` is one column of a paper wide, or as wide as the sentence needs.  ``colorbar``
    is the label of a colour bar; None: no colour bar.

    Returns:
        The Axes.
    """
    picture = Picture(panel.title, source, target, ((panel,),))
    use_fonts_for(picture.texts)
    columns, rows = ([label_of(token) for token in side.tokens] for side in (source, target))
    axes = _new_axes(columns, rows) if ax is None else ax
    figure = axes.figure.figure  # the whole one, also for Axes on a subfigure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    extent = axes.get_window_extent()
    cell = min(LARGEST, min(extent.width / len(columns), extent.height / len(rows)) / figure.dpi)  # for the marks
    image = draw_panel(axes, picture, panel, cell)
    label_axes(axes, columns, rows)
    axes.set_title(panel.title, fontsize=TYPE, loc="left", parse_math=False, wrap=True)
    if colorbar is not None:
        bar = axes.figure.colorbar(image, ax=axes, label=colorbar, aspect=30, pad=0.02)
        bar.outline.set_visible(False)
    return axes


def _new_axes(columns: Sequence[str], rows: Sequence[str]) -> Axes:
    from matplotlib import pyplot

    beside = text_width(rows) + _BESIDE
    width = max(COLUMN, len(columns) * SMALLEST + beside)
    height = min(LARGEST, (width - beside) / len(columns)) * len(rows) + text_width(columns) + _ABOVE
    _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes


def draw_panel(axes: Axes, picture: Picture, panel: Panel, cell: float, number: str | None = None) -> QuadMesh:
    """Draw a panel of ``picture`` on ``axes``, without labels.

    ``cell`` is the side of a cell; ``number`` the end of the ids of the marks in SVG; None: no ids.

    Returns:
        The cells, for a colour bar.
    """
    height, width = panel.values.shape
    mesh = axes.pcolormesh(  # an image in a PDF has a grid of pixels, which does not meet the lines
        np.arange(-0.5, width),
        np.arange(-0.5, height),
        panel.values,
        cmap=MAP_COLOURS,
        vmin=0,
        vmax=panel.values.max() or 1,  # a map of zeros is light, like zeros in other maps
        edgecolors="0.8",
        linewidth=0.4,
    )
    axes.tick_params(length=0, pad=2)
    axes.set_frame_on(False)
    series: dict[str, Links] = {"predicted": panel.predicted}
    if picture.gold is not None:
        series.update(sure=picture.gold.sure, possible=picture.gold.possible - picture.gold.sure)
    for name in (name for name in MARKS if name in series):
        marks = marks_of(name, cells(series[name], picture.source, picture.target), cell)
        if number is not None:
            marks.set_gid(f"{name}-{number}")  # the id of the group in SVG
        axes.add_line(marks)
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    return mesh


def label_axes(axes: Axes, columns: Sequence[str], rows: Sequence[str], points: float = TYPE) -> None:
    """Label the columns and rows of a map, in type of ``points``; a side without labels stays empty."""
    text: dict[str, Any] = {"fontsize": points, "parse_math": False}
    axes.set_xticks(range(len(columns)), columns, rotation=90, **text)
    axes.set_yticks(range(len(rows)), rows, **text)
    axes.set_xlabel("source" if columns else "", fontsize=TYPE)
    axes.set_ylabel("target" if rows else "", fontsize=TYPE)


def marks_of(name: str, points: Sequence[tuple[int, int]], cell: float) -> Line2D:
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
