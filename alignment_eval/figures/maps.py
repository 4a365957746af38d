"""Draws the maps of a sentence with its links: a printed figure, a figure of a notebook, or on given Axes.

Matplotlib is imported only when needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, warn_user
from alignment_eval.extraction.extract import linked_cells, links_of, merged, named_maps
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures import style
from alignment_eval.links.formats import GoldSentence, Link, Links
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import LEVELS, require_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection, QuadMesh
    from matplotlib.figure import Figure

#: Series -> label, marker of the legend, corners, size as a share of a cell, and colour; series differ in shape, too.
MARKS: dict[str, tuple[str, str, int, float, str]] = {
    "sure": ("gold, sure", "s", 4, 0.86, "black"),
    "possible": ("gold, possible", "D", 4, 0.8, "black"),
    "predicted": ("predicted", "o", 32, 0.46, style.ACCENT),
}
#: The smallest type of words, in points.
SMALLEST_TYPE = 5.5
#: In sizes of type: the smallest cell whose words do not overlap, and the largest cell.
_PITCH, _LARGEST = 1.18, 3.1
#: Inches round the parts of a figure, and the least height of a map with its title.
_EDGE, _LOWEST = 0.03, 0.5


@dataclass(frozen=True, eq=False)
class Panel:
    """One map to draw: ``values`` [rows, columns] and the word links predicted from it."""

    title: str
    values: NDArray[np.float64]
    predicted: Links = frozenset()


@dataclass(frozen=True, eq=False)
class Picture:
    """Maps of one sentence pair as rows of panels, which have a row and a column for each token."""

    title: str  #: the heading; empty: none
    source: SentenceSide  #: the columns; a column of no word (-1) gets no marks
    target: SentenceSide
    panels: Sequence[Sequence[Panel]]
    gold: GoldSentence | None = None
    bar: str | None = None  #: what the values of one panel are; several share a bar, from 0 to the largest of each

    def __post_init__(self) -> None:
        shape = len(self.target.tokens), len(self.source.tokens)
        if not all(shape):
            raise InputError(f"cannot draw a map of {shape[0]}×{shape[1]} cells; both sides need at least one word")

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """What stands under the columns and beside the rows."""
        columns, rows = ([style.label_of(token) for token in side.tokens] for side in (self.source, self.target))
        return columns, rows


def sides_of(sentence: SentenceMaps, level: str) -> tuple[SentenceSide, SentenceSide]:
    """Columns and rows of a picture: words, with a column for null; or subwords, with special tokens of the source."""
    require_known("level", level, LEVELS)
    source, target = sentence.source, sentence.target
    if level == "token":
        ordinary = np.flatnonzero(~target.special)
        return source, SentenceSide(tuple(target.tokens[i] for i in ordinary), target.words[ordinary])
    numbers = np.append(np.arange(source.word_count, dtype=np.int32), np.int32(-1))
    return SentenceSide((*source.word_strings(), "(null)"), numbers), SentenceSide.of_words(target.word_strings())


def panel_of(
    sentence: SentenceMaps, options: ExtractionOptions, level: str, title: str, predicted: Links | None = None
) -> Panel:
    """The panel of the map that ``options`` name, with the links of their rule or those ``predicted``."""
    require_known("level", level, LEVELS)
    (values,) = named_maps(sentence, options)
    if predicted is None:
        predicted = links_of(linked_cells(values, sentence, options))
    return Panel(title, merged(values, sentence, options.setting, LEVELS[level]), predicted)


@style.styled()
def draw(picture: Picture, options: style.FigureOptions = style.DEFAULT) -> Figure:
    """Draw ``picture`` at its printed width, with a legend of its marks; its height is what the sentence needs."""
    from matplotlib.figure import Figure

    figure = Figure()
    _compose(figure, picture, (options.width,) if options.width else (style.COLUMN, style.PAGE), legend=True)
    return figure


def draw_maps(picture: Picture, ax: Axes | None = None) -> list[list[Axes]]:
    """Draw ``picture`` in the type that ``rcParams`` say; the Axes of each line.

    It is drawn on a new figure of ``pyplot``, as wide as ``rcParams`` say; or its one map on Axes of the caller.  Their
    figure gets Matplotlib's constrained layout if it has no layout, so that ``savefig`` does not crop it.
    """
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context():
        if ax is None:
            return _compose(pyplot.figure(), picture, matplotlib.rcParams["figure.figsize"][:1])
        figure = ax.figure.figure  # the whole one, also for Axes on a subfigure
        if figure.get_layout_engine() is None:
            figure.set_layout_engine("constrained")
        (panel,), (columns, rows) = picture.panels[0], picture.labels
        style.use_fonts_for([*columns, *rows])
        mesh, _ = _draw_panel(ax, picture, panel, columns, rows)
        ax.set_title(panel.title, parse_math=False, wrap=True)
        if picture.bar is not None:
            ax.figure.colorbar(mesh, ax=ax, label=picture.bar).outline.set_visible(False)
        figure.draw_without_rendering()
        cell = min(_cell(ax, picture))
        ax.tick_params(labelsize=_type_of(cell, float(ax.get_yticklabels()[0].get_fontsize())))
        if 72 * cell < SMALLEST_TYPE:
            warn_user("words overlap on these Axes: give them a larger figure")
    return [[ax]]


def _type_of(cell: float, largest: float) -> float:
    """The type, ``largest`` or smaller, whose words do not overlap in rows of ``cell`` inches."""
    return min(largest, max(72 * cell / _PITCH, SMALLEST_TYPE))


def _cell(axes: Axes, picture: Picture) -> tuple[float, float]:
    """Width and height in inches that a cell of the map on ``axes`` can have."""
    extent, dpi = axes.get_window_extent(), axes.figure.figure.dpi
    return extent.width / dpi / len(picture.source.tokens), extent.height / dpi / len(picture.target.tokens)


def _compose(figure: Figure, picture: Picture, widths: Sequence[float], legend: bool = False) -> list[list[Axes]]:
    """Draw ``picture``, and a ``legend`` of its marks, on an empty figure, which gets the size that it needs.

    It is as wide as the first of ``widths`` at which words do not overlap, and 24 cm high at most.
    """
    from matplotlib.lines import Line2D

    columns, rows = picture.labels
    style.use_fonts_for([picture.title, *columns, *rows])
    width, inner, places = _arranged(picture, widths)
    down, wide = (1 + max(of_axis) for of_axis in zip(*places))
    figure.set_size_inches(width, style.HEIGHT)
    figure.set_layout_engine("constrained", w_pad=_EDGE, h_pad=_EDGE, wspace=0, hspace=0)
    if picture.title:
        figure.suptitle(picture.title, x=_EDGE / width, ha="left", wrap=True, parse_math=False)
    grid = figure.subplots(down, wide, squeeze=False)
    drawn: list[list[Axes]] = [[] for _ in range(down)]
    marked: set[str] = set()
    for (r, c), axes in np.ndenumerate(grid):
        if (r, c) not in places:
            axes.remove()
            continue
        below = [] if any((under, c) in places for under in range(r + 1, down)) else columns
        mesh, series = _draw_panel(axes, picture, places[r, c], below, [] if c else rows, f"{r}-{c}", len(places) > 1)
        drawn[r].append(axes)
        marked |= series
    if legend and marked:
        marks = [MARKS[name] for name in MARKS if name in marked]
        handles = [
            Line2D([], [], linestyle="none", marker=marker, color=colour, fillstyle="full" if corners > 4 else "none")
            for _, marker, corners, _, colour in marks
        ]
        style.add_legend(figure, handles, [mark[0] for mark in marks])
    if picture.bar is not None:
        thick = 0.1 / inner  # of the map beside it, whose height the bar has
        bar = figure.colorbar(mesh, ax=drawn[0][-1], fraction=thick, aspect=1.1 * len(rows) / len(columns) / thick)
        bar.outline.set_visible(False)
        bar.set_label("relative value" if len(places) > 1 else picture.bar)

    size = float(grid[0, 0].get_yticklabels()[0].get_fontsize())
    laid_out: tuple[float, dict[tuple[int, int], str]] | None = None
    for _ in range(3):  # smaller type leaves more for the cells; smaller cells make narrower titles
        letters = max(8, int(130 * inner / size))
        titles = {place: "\n".join(textwrap.wrap(panel.title, letters)) for place, panel in places.items()}
        if laid_out == (size, titles):
            break
        laid_out = size, titles
        for place, title in titles.items():
            grid[place].set_title(title, fontsize=size, loc="left", parse_math=False)
        for axes in figure.axes:
            axes.tick_params(labelsize=size)
        figure.draw_without_rendering()
        across, high = _cell(grid[0, 0], picture)
        cell = min(across, high, _LARGEST * size / 72)
        size, inner = _type_of(cell, size), cell * len(columns)
    if 72 * cell < size:
        side = f"width of {2.54 * width:.1f}" if cell == across else f"height of {2.54 * style.HEIGHT:.0f}"
        warn_user(f"words overlap at a {side} cm: draw fewer maps or a wider figure")
    spare = wide * (across - cell) * len(columns), down * (high - cell) * len(rows)
    figure.get_layout_engine().set(rect=(0, 0, 1 - spare[0] / width, 1))  # type: ignore[union-attr, call-arg]
    figure.set_size_inches(width, style.HEIGHT - spare[1])
    return drawn


def _arranged(picture: Picture, widths: Sequence[float]) -> tuple[float, float, dict[tuple[int, int], Panel]]:
    """The width of a figure, about the width of each map, and the map at each line and place of it.

    Rows of maps that are too wide become columns; if these are too wide or too many, too, maps follow one another.
    """
    columns, rows = picture.labels
    cell = _PITCH * SMALLEST_TYPE / 72
    beside = style.text_width(rows, SMALLEST_TYPE) + 0.3 + (0.0 if picture.bar is None else 0.5)
    below = style.text_width(columns, SMALLEST_TYPE) + 0.8

    def most(width: float) -> int:
        """How many maps fit side by side whose words do not overlap in the smallest type."""
        return int((width - beside) / (cell * len(columns) + 2 * _EDGE))

    flat, grids = list(chain(*picture.panels)), [picture.panels]
    if len({*map(len, picture.panels)}) == 1:
        grids.append([*zip(*picture.panels)])
    ways = [(width, lines) for lines in grids for width in widths if max(map(len, lines)) <= most(width)]
    for width in widths:  # lines of similar length
        across = -(-len(flat) // -(-len(flat) // max(1, most(width))))
        flowing = [flat[start : start + across] for start in range(0, len(flat), across)]
        ways += [(width, flowing)] if most(width) or width == widths[-1] else []
    highest = max(1, int((style.HEIGHT - below) / (cell * len(rows) + 0.2)))
    width, found = next((way for way in ways if len(way[1]) <= highest), ways[-1])
    if (style.HEIGHT - below) / len(found) < _LOWEST:
        raise InputError(f"{len(found)} lines of maps do not fit in 24 cm: draw fewer maps or a wider figure")
    places = {(down, across): panel for down, line in enumerate(found) for across, panel in enumerate(line)}
    return width, (width - beside) / max(map(len, found)), places


def _draw_panel(
    axes: Axes,
    picture: Picture,
    panel: Panel,
    columns: Sequence[str],
    rows: Sequence[str],
    number: str = "0-0",
    relative: bool = False,
) -> tuple[QuadMesh, set[str]]:
    """Draw a panel of ``picture`` with the labels of its ``columns`` and ``rows``; its cells, and the series it has.

    ``number`` is the end of the ids of the marks in SVG.  ``relative``: values are shares of the largest.
    """
    height, width = panel.values.shape
    largest = panel.values.max() or 1.0  # a map of zeros is light, like zeros in other maps
    mesh = axes.pcolormesh(  # an image in a PDF has a grid of pixels, which does not meet the lines
        np.arange(-0.5, width),
        np.arange(-0.5, height),
        panel.values / largest if relative else panel.values,
        cmap=style.MAP_COLOURS,
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
    marked = {name for name, links in series.items() if links}
    for name in (name for name in MARKS if name in series):
        marks = _marks(name, cells(series[name], picture.source, picture.target))
        marks.set_gid(f"{name}-{number}")
        axes.add_collection(marks)
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), map(_downwards, columns), rotation=90, parse_math=False)
    for word, label in zip(columns, axes.get_xticklabels()):
        label.set_rotation(0 if _is_upright(word) else 90)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    axes.set_xlabel("source" if columns else "")
    axes.set_ylabel("target" if rows else "")
    return mesh, marked


def _is_upright(word: str) -> bool:
    """Whether a word is written downwards letter by letter, as Chinese, Japanese and Korean are, not turned."""
    return any(east_asian_width(letter) in "WF" for letter in word)


def _downwards(word: str) -> str:
    return "\n".join(word) if _is_upright(word) else word


def cells(links: Iterable[Link], source: SentenceSide, target: SentenceSide) -> list[tuple[int, int]]:
    """The cells (column, row) of word links: all pairs of tokens of each two linked words."""
    return [
        (column, row)
        for i, j in sorted(links)
        for column in np.flatnonzero(source.words == i).tolist()
        for row in np.flatnonzero(target.words == j).tolist()
    ]


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
