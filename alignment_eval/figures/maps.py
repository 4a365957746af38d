"""Draws the maps of a sentence with its links: a printed figure, a figure of a notebook, or on given Axes.

Matplotlib is imported only when needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, require_known, warn_user
from alignment_eval.extraction.extract import in_units, linked_cells, links_of, named_maps
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures import style
from alignment_eval.links.formats import GoldSentence, Link, Links
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

#: Series -> label, marker, its size as a share of the type, and colour; series differ in shape, too.
MARKS: dict[str, tuple[str, str, float, str]] = {
    "sure": ("gold, sure", "s", 1.0, "black"),
    "possible": ("gold, possible", "D", 0.7, "black"),
    "predicted": ("predicted", "o", 0.6, style.ACCENT),
}
#: The largest mark as a share of its cell, and the widths of outlines and of their white edges, as shares of a mark.
_OF_CELL, _OUTLINE, _EDGED = 0.8, 0.12, 0.2
#: The smallest type of words, in points.
SMALLEST_TYPE = 5.5
#: In sizes of type: the smallest cell whose words do not overlap, and the largest cell.
_PITCH, _LARGEST = 1.18, 3.1
#: Inches round the parts of a figure.
_EDGE = 0.03


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
    return Panel(title, in_units(values, sentence, options.setting, LEVELS[level]), predicted)


@style.styled()
def draw(picture: Picture, options: style.FigureOptions = style.DEFAULT) -> Figure:
    """Draw ``picture`` for print, with a legend of its marks: a column wide, or wider if its maps need that."""
    from matplotlib.figure import Figure

    figure = Figure()
    _compose(figure, picture, (options.width,) if options.width else (style.COLUMN, style.PAGE), legend=True)
    return figure


def draw_maps(picture: Picture, ax: Axes | None = None) -> list[list[Axes]]:
    """Draw ``picture`` in the type that ``rcParams`` say; the Axes of each line.

    It is drawn on a new figure of ``pyplot``, at most as wide as ``rcParams`` say; or its one map on Axes of the
    caller, whose figure gets Matplotlib's constrained layout if it has no layout, so that ``savefig`` does not crop it.
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
        mesh = _draw_panel(ax, picture, panel, columns, rows)
        ax.set_title(panel.title, parse_math=False, wrap=True)
        if picture.bar is not None:
            ax.figure.colorbar(mesh, ax=ax, label=picture.bar).outline.set_visible(False)
        cell = min(_room(ax, picture))
        ax.tick_params(labelsize=_type_of(cell))
        _mark_links(ax, picture, panel, min(_type_of(cell), _OF_CELL * 72 * cell), "0-0")
        if 72 * cell < SMALLEST_TYPE:
            warn_user("words overlap on these Axes: give them a larger figure")
    return [[ax]]


def _type_of(cell: float = np.inf) -> float:
    """The type of words in points: that of ``rcParams``, smaller where words would overlap in cells of these inches."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    largest = FontProperties(size=matplotlib.rcParams["ytick.labelsize"]).get_size_in_points()
    return min(largest, max(72 * cell / _PITCH, SMALLEST_TYPE))


def _room(axes: Axes, picture: Picture) -> tuple[float, float]:
    """Width and height in inches that the layout leaves for a cell of the map on ``axes``."""
    axes.figure.figure.draw_without_rendering()
    extent = axes.get_window_extent().transformed(axes.figure.figure.dpi_scale_trans.inverted())
    return extent.width / len(picture.source.tokens), extent.height / len(picture.target.tokens)


def _compose(figure: Figure, picture: Picture, widths: Sequence[float], legend: bool = False) -> list[list[Axes]]:
    """Draw ``picture``, and a ``legend`` of its marks, on an empty figure, which gets the size that it needs.

    It is at most as wide as the first of ``widths`` at which words do not overlap, and 24 cm high at most.
    """
    columns, rows = picture.labels
    style.use_fonts_for([picture.title, *columns, *rows])
    largest = _LARGEST * _type_of() / 72
    width, lines, room = _arranged(picture, widths)
    down, wide, size = len(lines), len(lines[0]), _type_of(room)
    inner = min(room, largest) * len(columns)
    figure.set_size_inches(width, style.HEIGHT)
    figure.set_layout_engine("constrained", w_pad=_EDGE, h_pad=_EDGE, wspace=0, hspace=0)
    if picture.title:
        figure.suptitle(picture.title, x=_EDGE / width, ha="left", wrap=True, parse_math=False)
    grid, several = figure.add_gridspec(down, wide), down * wide > 1
    drawn: list[list[Axes]] = []
    for r, line in enumerate(lines):
        drawn.append([figure.add_subplot(grid[r, c]) for c in range(len(line))])
        for c, (axes, panel) in enumerate(zip(drawn[r], line)):
            below = [] if r + 1 < down and c < len(lines[r + 1]) else columns
            mesh = _draw_panel(axes, picture, panel, below, [] if c else rows, several)
            title = "\n".join(textwrap.wrap(panel.title, max(8, int(130 * inner / size))))
            axes.set_title(title, fontsize=size, loc="left", parse_math=False)
            axes.tick_params(labelsize=size)
            _mark_links(axes, picture, panel, min(size, _OF_CELL * 72 * room), f"{r}-{c}")
    marks = {str(line.get_label()): line for axes in figure.axes for line in axes.lines}
    if legend and marks:
        style.add_legend(figure, list(marks.values()), list(marks))
    if picture.bar is not None:
        thick = 0.1 / inner  # of the map beside it, whose height the bar has
        bar = figure.colorbar(mesh, ax=drawn[0][-1], fraction=thick, aspect=len(rows) / len(columns) / thick)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=size)
        bar.set_label("relative value" if several else picture.bar)

    across, high = _room(drawn[0][0], picture)
    cell = min(across, high, largest)
    if 72 * cell < size:
        warn_user(f"words overlap in {2.54 * width:.1f} × 24 cm: draw fewer maps or a wider figure")
    needed = width - wide * (across - cell) * len(columns)
    width = max(needed, min(width, style.COLUMN)) if legend else needed  # a heading and a legend need a column
    figure.get_layout_engine().set(rect=(0, 0, needed / width, 1))  # type: ignore[union-attr, call-arg]
    figure.set_size_inches(width, style.HEIGHT - down * (high - cell) * len(rows))
    return drawn


def _arranged(picture: Picture, widths: Sequence[float]) -> tuple[float, Sequence[Sequence[Panel]], float]:
    """The width of a figure, its lines of maps, and about the size of a cell.

    Maps whose words overlap in the smallest type where they stand follow one another in lines of similar length.
    """
    columns, rows = picture.labels
    beside = style.text_width(rows, SMALLEST_TYPE) + 0.3 + (0.0 if picture.bar is None else 0.5)
    below = style.text_width(columns, SMALLEST_TYPE) + 0.8
    flat = list(chain(*picture.panels))
    ways = []
    for width, down in chain(product(widths, [len(picture.panels)]), product(widths, range(1, len(flat) + 1))):
        across = -(-len(flat) // down)
        cell = ((width - beside) / across - 2 * _EDGE) / len(columns)
        ways.append((min(cell, ((style.HEIGHT - below) / down - 0.2) / len(rows)), width, across))
    cell, width, across = next((way for way in ways if 72 * way[0] >= _PITCH * SMALLEST_TYPE), max(ways))
    if 72 * cell < 1:
        raise InputError(f"{len(flat)} maps do not fit in {2.54 * width:.1f} × 24 cm: draw fewer or a wider figure")
    return width, [flat[start : start + across] for start in range(0, len(flat), across)], cell


def _draw_panel(
    axes: Axes, picture: Picture, panel: Panel, columns: Sequence[str], rows: Sequence[str], relative: bool = False
) -> QuadMesh:
    """Draw the cells of a panel with the labels of its ``columns`` and ``rows``, and return them.

    ``relative``: values are shares of the largest.
    """
    height, width = panel.values.shape
    largest = panel.values.max() or 1.0  # a map of zeros is light, like zeros in other maps
    mesh = axes.pcolormesh(  # an image in a PDF has a grid of pixels, which does not meet the lines
        np.arange(-0.5, width),
        np.arange(-0.5, height),
        panel.values / largest if relative else panel.values,
        cmap="Blues",  # its lightness falls steadily
        vmin=0,
        vmax=1 if relative else largest,
        edgecolors="0.8",
        linewidth=0.4,
    )
    axes.tick_params(length=0, pad=2)
    axes.set_frame_on(False)
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    downwards = ["\n".join(word) if _is_upright(word) else word for word in columns]
    axes.set_xticks(range(len(columns)), downwards, rotation=90, parse_math=False)
    for word, label in zip(columns, axes.get_xticklabels()):
        label.set_rotation(0 if _is_upright(word) else 90)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    axes.set_xlabel("source" if columns else "")
    axes.set_ylabel("target" if rows else "")
    return mesh


def _is_upright(word: str) -> bool:
    """Whether a word is written downwards letter by letter, as Chinese, Japanese and Korean are, not turned."""
    return any(east_asian_width(letter) in "WF" for letter in word)


def cells(links: Iterable[Link], source: SentenceSide, target: SentenceSide) -> list[tuple[int, int]]:
    """The cells (column, row) of word links: all pairs of tokens of each two linked words."""
    return [
        (column, row)
        for i, j in sorted(links)
        for column in np.flatnonzero(source.words == i).tolist()
        for row in np.flatnonzero(target.words == j).tolist()
    ]


def _mark_links(axes: Axes, picture: Picture, panel: Panel, size: float, number: str) -> None:
    """Mark the cells of links, in ``size`` points: outlines, which leave the shade of a cell visible.

    ``number`` is the end of the ids of the marks in SVG.
    """
    from matplotlib.patheffects import withStroke

    gold = GoldSentence(frozenset()) if picture.gold is None else picture.gold
    series = {"sure": gold.sure, "possible": gold.possible - gold.sure, "predicted": panel.predicted}
    look: dict[str, Any] = {"fillstyle": "none", "markeredgewidth": _OUTLINE * size}
    look["path_effects"] = [withStroke(linewidth=_EDGED * size, foreground="white")]
    for name, links in series.items():
        label, marker, share, colour = MARKS[name]
        if places := cells(links, picture.source, picture.target):
            look |= {"markersize": share * size, "color": colour, "label": label, "gid": f"{name}-{number}"}
            axes.plot(*zip(*places), marker, **look)
