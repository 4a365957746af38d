"""Draws the maps of a sentence, at their printed width or on given Axes.  Matplotlib is imported only when needed.

All lengths are in inches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
#: The space between words and special tokens, in cells.
_APART = 0.4
#: Sides of a cell: the smallest one for a label of :data:`TYPE`, and the largest one.
SMALLEST, LARGEST = 1.18 * TYPE / POINTS, 0.3
#: The smallest type of words, in points: words that would not fit otherwise are set smaller than other text.
SMALLEST_TYPE = 5.0
#: A line of text, the spaces at the figure's edge, between panels, and next to a mark of the legend.
_LINE, _EDGE, _BETWEEN, _MARK = 1.35 * TYPE / POINTS, 0.03, 0.12, 0.35
#: Around a map on Axes of its own: for titles, axis labels, the colour bar and the figure's margin.
_BESIDE, _ABOVE = 0.75, 0.65


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the parts of a picture are.

    Attributes:
        width: of the figure.
        cell: the side of a cell.
        left: left of the panels, for words and their name.
        pitch: from a panel to the next one of its line.
        lines: the panels of each line; a row of the picture that does not fit has several lines.
        type: of the words, in points.
    """

    width: float
    cell: float
    left: float
    pitch: float
    lines: tuple[tuple[Panel, ...], ...]
    type: float


@styled
def layout(picture: Picture, options: FigureOptions = DEFAULT) -> Layout:
    """The layout of ``picture``: its rows are side by side in a column or page, or stacked where they do not fit.

    Words of a map that is too wide by itself are set smaller, down to :data:`SMALLEST_TYPE`.

    Raises:
        UsageError: the words do not fit at the width that the user gave, or on a page.
    """
    use_fonts_for(picture.texts)
    most = max(map(len, picture.panels))
    size = column_places(picture.source)[-1] + 1  # cells
    titles = text_width(line for row in picture.panels for panel in row for line in _title(panel))
    names = text_width(map(label_of, picture.target.tokens))

    def left_of(type_: float) -> float:
        return _EDGE + _LINE + names * type_ / TYPE + 0.05

    def needed(across: int, type_: float = TYPE) -> float:
        panel = max(size * SMALLEST * type_ / TYPE, titles) + _BETWEEN
        return float(max(left_of(type_) + across * panel + _EDGE, _legend_width(picture)))

    width = options.width or (COLUMN if needed(most) <= COLUMN else PAGE)
    types = np.arange(TYPE, SMALLEST_TYPE - 0.01, -0.1)
    type_ = next((float(points) for points in types if needed(1, points) <= width + 1e-6), None)
    if type_ is None:
        least = needed(1, SMALLEST_TYPE)
        given, wanted = (f"{np.ceil(10 * length / UNITS['cm'] - 1e-6) / 10:g}cm" for length in (width, least))
        raise UsageError(f"--width {given}: the words of a map need {wanted} or more; give that")
    across = max(n for n in range(1, most + 1) if n == 1 or needed(n) <= width + 1e-6)
    left = left_of(type_)
    room = (width - left - _EDGE) / across - _BETWEEN
    cell = min(room / size, LARGEST)
    lines = tuple(row[first : first + across] for row in picture.panels for first in range(0, len(row), across))
    return Layout(width, cell, left, max(cell * size, titles) + _BETWEEN, lines, type_)


def _title(panel: Panel) -> list[str]:
    """The lines above a panel; one of links alone has no values."""
    return [panel.title, f"max {panel.values.max():.3g}"][: 2 if panel.values.any() else 1]


@styled
def draw(picture: Picture, options: FigureOptions = DEFAULT) -> Figure:
    """Draw ``picture`` at its printed width; its height is what the sentence needs.

    Raises:
        UsageError: as for :func:`layout`.
    """
    from matplotlib.figure import Figure

    placed = layout(picture, options)
    use_fonts_for(picture.texts)
    columns, rows = ([label_of(token) for token in side.tokens] for side in (picture.source, picture.target))
    heading = wrapped(picture.title, placed.width - 2 * _EDGE)
    panel_width = placed.cell * (column_places(picture.source)[-1] + 1)
    panel_height = placed.cell * len(rows)
    below = text_width(columns) * placed.type / TYPE + 0.05 + _LINE  # of panels that have none under them
    lowest = [len(line) > len(after) for line, after in zip(placed.lines, (*placed.lines[1:], ()))]
    above = _EDGE + _LINE * (heading.count("\n") + 1 if heading else 0) + 0.04
    titled = _LINE * max(len(_title(panel)) for line in placed.lines for panel in line)
    tops = [above + _LINE + 0.05]
    for ends in lowest:
        tops.append(tops[-1] + titled + panel_height + _BETWEEN + (below if ends else 0))
    height = tops[-1] + _EDGE
    figure = Figure(figsize=(placed.width, height))
    if heading:
        figure.text(_EDGE / placed.width, 1 - _EDGE / height, heading, va="top", fontsize=TYPE, parse_math=False)
    figure.legend(
        handles=[marks_of(name, [], 0.13) for name in _series(picture)],
        loc="upper left",
        bbox_to_anchor=(_EDGE / placed.width, 1 - above / height),
        ncols=len(MARKS),
        borderaxespad=0,
        borderpad=0,
        handlelength=1,
        handletextpad=0.4,
    )
    for r, line in enumerate(placed.lines):
        under = len(placed.lines[r + 1]) if r + 1 < len(placed.lines) else 0
        bottom = height - tops[r] - titled - panel_height
        for c, panel in enumerate(line):
            left = placed.left + c * placed.pitch
            share = (left / placed.width, bottom / height, panel_width / placed.width, panel_height / height)
            axes = figure.add_axes(share)
            draw_panel(axes, picture, panel, placed.cell, f"{r}-{c}")
            axes.set_title("\n".join(_title(panel)), fontsize=TYPE, pad=2, linespacing=1.1, parse_math=False)
            shown = columns if c >= under else [], rows if c == 0 else []
            label_axes(axes, picture.source, *shown, placed.type)
            axes.set_xlabel("source" if c >= under else "")
            axes.set_ylabel("target" if c == 0 else "")
    return figure


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

    Raises:
        InputError: as for :class:`~alignment_eval.figures.sentence.Picture`.
    """
    picture = Picture(panel.title, source, target, ((panel,),))
    use_fonts_for(picture.texts)
    columns, rows = ([label_of(token) for token in side.tokens] for side in (source, target))
    across = column_places(source)[-1] + 1
    axes = _new_axes(columns, rows, across) if ax is None else ax
    figure = axes.figure.figure  # the whole one, also for Axes on a subfigure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    extent = axes.get_window_extent()
    cell = min(LARGEST, min(extent.width / across, extent.height / len(rows)) / figure.dpi)  # for the marks
    image = draw_panel(axes, picture, panel, cell)
    label_axes(axes, source, columns, rows)
    axes.set_xlabel("source", fontsize=TYPE)
    axes.set_ylabel("target", fontsize=TYPE)
    axes.set_title(panel.title, fontsize=TYPE, loc="left", parse_math=False, wrap=True)
    if colorbar is not None:
        bar = axes.figure.colorbar(image, ax=axes, label=colorbar, aspect=30, pad=0.02)
        bar.outline.set_visible(False)
    return axes


def _new_axes(columns: Sequence[str], rows: Sequence[str], across: float) -> Axes:
    from matplotlib import pyplot

    beside = text_width(rows) + _BESIDE
    width = max(COLUMN, across * SMALLEST + beside)
    height = min(LARGEST, (width - beside) / across) * len(rows) + text_width(columns) + _ABOVE
    _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes


def column_places(source: SentenceSide) -> NDArray[np.float64]:
    """The middle of each column, counted in cells from the first; special tokens, null among them, are set apart."""
    special = source.words < 0
    places: NDArray[np.float64] = np.arange(len(special)) + _APART * np.cumsum(np.diff(special, prepend=special[:1]))
    return places


def draw_panel(axes: Axes, picture: Picture, panel: Panel, cell: float, number: str | None = None) -> QuadMesh:
    """Draw a panel of ``picture`` on ``axes``, without labels.

    ``cell`` is the side of a cell; ``number`` the end of the ids of the marks in SVG; None: no ids.

    Returns:
        The cells of the first columns, for a colour bar.
    """
    rows = len(panel.values)
    places = column_places(picture.source)
    meshes = []
    for first, last in _stretches(picture.source):
        sides = (places[first] - 0.5, places[last - 1] + 0.5)
        meshes.append(
            axes.pcolormesh(  # an image in a PDF has a grid of pixels, which does not meet the lines
                np.linspace(*sides, last - first + 1),
                np.arange(-0.5, rows),
                panel.values[:, first:last],
                cmap=MAP_COLOURS,
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
    return itertools.pairwise(bounds)


def label_axes(
    axes: Axes, source: SentenceSide, columns: Sequence[str], rows: Sequence[str], points: float = TYPE
) -> None:
    """Label the columns and rows of a map, in type of ``points``; a side without labels stays empty."""
    text: dict[str, Any] = {"fontsize": points, "parse_math": False}
    axes.set_xticks(column_places(source) if columns else [], columns, rotation=90, **text)
    axes.set_yticks(range(len(rows)), rows, **text)


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
