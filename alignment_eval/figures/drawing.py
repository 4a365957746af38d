"""Draws the maps of a sentence with its links: a printed figure, a figure of a notebook, or on given Axes.

Matplotlib is imported only when needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.extraction.extract import choose, links_of, merged, named_maps
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures.names import label_of
from alignment_eval.figures.style import (
    ACCENT,
    COLUMN,
    DEFAULT,
    HEIGHT,
    MAP_COLOURS,
    PAGE,
    FigureOptions,
    add_legend,
    new_figure,
    styled,
    text_width,
    use_fonts_for,
)
from alignment_eval.links.sets import GoldSentence, Link, Links
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import LEVELS, require_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection, QuadMesh
    from matplotlib.figure import Figure

#: The label of the null column of a word map, which stands for the special source tokens.
NULL_LABEL = "(null)"
#: Series -> label, marker of the legend, corners, size as a share of a cell, and colour; series differ in shape, too.
MARKS: dict[str, tuple[str, str, int, float, str]] = {
    "sure": ("gold, sure", "s", 4, 0.86, "black"),
    "possible": ("gold, possible", "D", 4, 0.8, "black"),
    "predicted": ("predicted", "o", 32, 0.46, ACCENT),
}
#: The smallest type of words, in points.
SMALLEST_TYPE = 5.5
#: Sides of a cell by the size of its words: the smallest at which they do not overlap, and the largest one.
_PITCH, _LARGEST = 1.18, 3.1
#: What the axis label, a colour bar and the edges take of a figure's width, and titles and a legend of its height.
_BESIDE, _BETWEEN, _TITLE, _AROUND = 0.65, 0.08, 0.3, 0.8


@dataclass(frozen=True, eq=False)
class Panel:
    """One map to draw: ``values`` [rows, columns] and the word links predicted from it."""

    title: str
    values: NDArray[np.float64]
    predicted: Links = frozenset()


@dataclass(frozen=True, eq=False)
class Picture:
    """Maps of one sentence pair as a grid of panels.

    Attributes:
        title: the heading; empty: none.
        source: the columns; a column of no word (-1) gets no marks.
        target: the rows.
        panels: rows of panels; each panel has a row and a column for each token.
        gold: word links of the gold, or None.
        bar: what the values of one panel are; several share a colour bar, from 0 to the largest value of each.
    """

    title: str
    source: SentenceSide
    target: SentenceSide
    panels: tuple[tuple[Panel, ...], ...]
    gold: GoldSentence | None = None
    bar: str | None = None

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """What stands under the columns and beside the rows."""
        columns, rows = ([label_of(token) for token in side.tokens] for side in (self.source, self.target))
        return columns, rows

    @property
    def texts(self) -> list[str]:
        """All text from the data that is drawn."""
        return [self.title, *(label for of_side in self.labels for label in of_side)]

    def __post_init__(self) -> None:
        shape = (len(self.target.tokens), len(self.source.tokens))
        if not all(shape) or not any(self.panels):
            raise InputError(f"cannot draw a map of {shape[0]}×{shape[1]} cells; both sides need at least one word")
        for panel in (panel for row in self.panels for panel in row):
            if panel.values.shape != shape:
                raise InputError(f"panel {panel.title!r} has the shape {panel.values.shape} instead of {shape}")
            if not (np.isfinite(panel.values).all() and (panel.values >= 0).all()):
                raise InputError(f"panel {panel.title!r} has NaN, infinite or negative values; they must be 0 or more")


def sides_of(sentence: SentenceMaps, level: str) -> tuple[SentenceSide, SentenceSide]:
    """Columns and rows of a picture of ``sentence``.

    These are words, with a column for null; or subword tokens, with the special tokens of the source.
    """
    require_known("level", level, LEVELS)
    source, target = sentence.source, sentence.target
    if level == "token":
        ordinary = np.flatnonzero(~target.special)
        return source, SentenceSide(tuple(target.tokens[i] for i in ordinary), target.words[ordinary])
    numbers = np.append(np.arange(source.word_count, dtype=np.int32), np.int32(-1))
    return SentenceSide((*source.word_strings(), NULL_LABEL), numbers), SentenceSide.of_words(target.word_strings())


def panel_of(
    sentence: SentenceMaps, options: ExtractionOptions, level: str, title: str, predicted: Links | None = None
) -> Panel:
    """The panel of the map that ``options`` name.

    ``predicted`` are links to show instead of those of the rule.
    """
    require_known("level", level, LEVELS)
    (values,) = named_maps(sentence, options)
    if predicted is None:
        predicted = links_of(choose(values, sentence, options))
    return Panel(title, merged(values, sentence, options.setting, LEVELS[level]), predicted)


def cells(links: Iterable[Link], source: SentenceSide, target: SentenceSide) -> list[tuple[int, int]]:
    """The cells (column, row) of word links: all pairs of tokens of each two linked words."""
    return [
        (column, row)
        for i, j in sorted(links)
        for column in np.flatnonzero(source.words == i).tolist()
        for row in np.flatnonzero(target.words == j).tolist()
    ]


@styled()
def draw(picture: Picture, options: FigureOptions = DEFAULT) -> Figure:
    """Draw ``picture`` at its printed width, with a legend of its marks; its height is what the sentence needs."""
    from matplotlib.lines import Line2D

    use_fonts_for(picture.texts)
    widths = (options.width,) if options.width else (COLUMN, PAGE)
    lines, width = _arranged(picture, widths)
    figure = new_figure(width, HEIGHT, picture.title)
    names = [name for name in MARKS if name == "predicted" or picture.gold is not None]
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, fillstyle="full" if corners > 4 else "none")
        for _, marker, corners, _, colour in map(MARKS.__getitem__, names)
    ]
    add_legend(figure, handles, [MARKS[name][0] for name in names])
    _fill(figure, picture, lines)
    return figure


def draw_maps(picture: Picture) -> list[list[Axes]]:
    """Draw ``picture`` on a new figure of ``pyplot``, as wide and in the type that ``rcParams`` say; its Axes."""
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context():
        use_fonts_for(picture.texts)
        lines, width = _arranged(picture, matplotlib.rcParams["figure.figsize"][:1])
        return _fill(pyplot.figure(figsize=(width, HEIGHT), layout="constrained"), picture, lines)


def draw_map(
    panel: Panel, source: SentenceSide, target: SentenceSide, ax: Axes | None = None, colorbar: str | None = None
) -> Axes:
    """Draw one map with its words and links, on Axes of the caller or on a new figure (:func:`draw_maps`).

    A figure without a layout gets Matplotlib's constrained layout, so that ``savefig`` does not crop it.  ``colorbar``
    is the label of a colour bar; None: no colour bar.
    """
    import matplotlib

    picture = Picture("", source, target, ((panel,),), bar=colorbar)
    if ax is None:
        return draw_maps(picture)[0][0]
    figure = ax.figure.figure  # the whole one, also for Axes on a subfigure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    with matplotlib.rc_context():
        use_fonts_for(picture.texts)
        mesh = draw_panel(ax, picture, panel)
        label_axes(ax, *picture.labels)
        ax.set_title(panel.title, parse_math=False, wrap=True)
        if colorbar is not None:
            ax.figure.colorbar(mesh, ax=ax, label=colorbar).outline.set_visible(False)
        figure.draw_without_rendering()
        extent = ax.get_window_extent()
        pitch = min(extent.width / len(source.tokens), extent.height / len(target.tokens)) / figure.dpi
        _set_type([ax], pitch)
    return ax


def _arranged(picture: Picture, widths: Sequence[float]) -> tuple[list[list[Panel | None]], float]:
    """The panels of each line of a figure, and the first of the ``widths`` at which their words do not overlap.

    Rows that are too wide even at the last width continue below; rows that are too many for the height stand in
    several columns.
    """
    columns, rows = picture.labels
    beside = _BESIDE + text_width(rows, SMALLEST_TYPE)
    cell = _PITCH * SMALLEST_TYPE / 72

    def needed(across: int) -> float:
        return beside + across * (_BETWEEN + len(columns) * cell)

    most = max(map(len, picture.panels))
    width = next((width for width in widths if needed(most) <= width), widths[-1])
    across = max((n for n in range(1, most + 1) if needed(n) <= width), default=1)
    if needed(across) > width + 1e-6:
        warn_on_stderr(f"words overlap at a width of {2.54 * width:.1f} cm: they need {2.54 * needed(1):.1f} cm")
    across = -(-most // -(-most // across))  # lines of similar length
    lines: list[list[Panel | None]] = [
        list(row[first : first + across]) for row in picture.panels for first in range(0, len(row), across)
    ]
    high = _TITLE + len(rows) * cell
    fitting = max(1, int((HEIGHT - _AROUND - text_width(columns, SMALLEST_TYPE)) / high))
    beside_each_other = -(-len(lines) // fitting)
    width = next((width for width in widths if needed(across * beside_each_other) <= width), width)
    beside_each_other = max(1, min(beside_each_other, int((width - beside) / (needed(across) - beside))))
    count = -(-len(lines) // beside_each_other)
    lines += [[]] * (count * beside_each_other - len(lines))
    padded = [line + [None] * (across - len(line)) for line in lines]
    return [[panel for line in padded[n::count] for panel in line] for n in range(count)], width


def _fill(figure: Figure, picture: Picture, lines: Sequence[Sequence[Panel | None]]) -> list[list[Axes]]:
    """Draw the panels of ``lines`` and set the height of ``figure``, so that cells are squares of a sensible size."""
    columns, rows = picture.labels
    grid = figure.subplots(len(lines), len(lines[0]), squeeze=False)
    drawn: list[list[Axes]] = []
    several = sum(map(len, picture.panels)) > 1
    mesh = None
    for r, line in enumerate(lines):
        drawn.append([])
        for c, panel in enumerate(line):
            axes = grid[r, c]
            if panel is None:
                axes.remove()
                continue
            mesh = draw_panel(axes, picture, panel, f"{r}-{c}", several)
            lowest = r + 1 == len(lines) or lines[r + 1][c] is None
            label_axes(axes, columns if lowest else [], rows if c == 0 else [])
            drawn[-1].append(axes)
    every = [axes for line in drawn for axes in line]
    if picture.bar is not None and mesh is not None:
        label = "value / largest of its map" if several else picture.bar
        look: dict[str, Any] = {"shrink": 1 / len(lines), "anchor": (0, 1), "aspect": 20, "pad": 0.02}
        figure.colorbar(mesh, ax=every, label=label, **look).outline.set_visible(False)
    for _ in range(2):  # the size of type depends on that of cells, which depends on what type leaves
        figure.draw_without_rendering()
        inches = figure.dpi_scale_trans.inverted()
        box = every[0].get_window_extent().transformed(inches)
        around = figure.get_figheight() - len(lines) * box.height
        tallest = (HEIGHT - around) / (len(lines) * len(rows))
        size = _set_type(every, min(box.width / len(columns), tallest))
        cell = min(box.width / len(columns), tallest, _LARGEST * size / 72)
        for axes, panel in zip(every, (panel for line in lines for panel in line if panel is not None)):
            title = textwrap.fill(panel.title, max(8, int(72 * cell * len(columns) / (0.56 * size))))
            axes.set_title(title, fontsize=size, loc="left", parse_math=False)
    if 72 * tallest < SMALLEST_TYPE:
        warn_on_stderr(f"words overlap at a height of {2.54 * HEIGHT:.0f} cm: draw fewer maps")
    for axes in every:
        axes.set_aspect("equal")
    figure.set_layout_engine("compressed")
    figure.set_figheight(around + len(lines) * len(rows) * cell)
    return drawn


def _set_type(every: Sequence[Axes], pitch: float) -> float:
    """Set the words of maps, whose cells have a side of ``pitch``, in a type in which they do not overlap."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    usual = FontProperties(size=rcParams["ytick.labelsize"]).get_size_in_points()
    size = max(min(usual, 72 * pitch / _PITCH), SMALLEST_TYPE)
    for axes in every:
        axes.tick_params(labelsize=size)
    return size


def draw_panel(
    axes: Axes, picture: Picture, panel: Panel, number: str | None = None, relative: bool = False
) -> QuadMesh:
    """Draw a panel of ``picture`` on ``axes``, without labels.

    ``number`` is the end of the ids of the marks in SVG; None: no ids.  ``relative``: values are shares of the largest.

    Returns:
        The cells, for a colour bar.
    """
    height, width = panel.values.shape
    largest = panel.values.max() or 1.0  # a map of zeros is light, like zeros in other maps
    mesh = axes.pcolormesh(  # an image in a PDF has a grid of pixels, which does not meet the lines
        np.arange(-0.5, width),
        np.arange(-0.5, height),
        panel.values / largest if relative else panel.values,
        cmap=MAP_COLOURS,
        vmin=0,
        vmax=1 if relative else largest,
        edgecolors="0.8",
        linewidth=0.4,
    )
    axes.tick_params(length=0, pad=2)
    axes.set_frame_on(False)
    series: dict[str, Links] = {"predicted": panel.predicted}
    if picture.gold is not None:
        series.update(sure=picture.gold.sure, possible=picture.gold.possible - picture.gold.sure)
    for name in (name for name in MARKS if name in series):
        marks = _marks(name, cells(series[name], picture.source, picture.target))
        if number is not None:
            marks.set_gid(f"{name}-{number}")  # the id of the group in SVG
        axes.add_collection(marks)
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    return mesh


def _marks(name: str, places: Sequence[tuple[int, int]]) -> PolyCollection:
    """The marks of a series at ``places`` (column, row), in cells, with a white edge that is visible on dark ones."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patheffects import withStroke

    label, _, corners, size, colour = MARKS[name]
    angles = 2 * np.pi * (np.arange(corners) / corners + (0.125 if name == "sure" else 0))
    radius = size / 2 * (np.sqrt(2) if name == "sure" else 1)  # of a square the side is the size, else the width
    shape = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    filled = name == "predicted"
    return PolyCollection(
        [shape + place for place in places],
        label=label,
        facecolors=colour if filled else "none",
        edgecolors="white" if filled else colour,
        linewidths=0.5 if filled else 0.9,
        path_effects=[] if filled else [withStroke(linewidth=1.9, foreground="white")],
        zorder=2,
    )


def label_axes(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    """Label the columns and rows of a map; a side without labels stays empty."""
    text: dict[str, Any] = {"parse_math": False}
    axes.set_xticks(range(len(columns)), columns, rotation=90, **text)
    axes.set_yticks(range(len(rows)), rows, **text)
    axes.set_xlabel("source" if columns else "")
    axes.set_ylabel("target" if rows else "")
