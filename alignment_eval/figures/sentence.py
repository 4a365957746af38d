"""Draws the maps of a sentence, with gold and predicted links as marks.  Matplotlib is imported only when needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import choose, links_of, named_maps, unit_maps
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.figures.fonts import FONT, label_of
from alignment_eval.links.table import GoldSentence, Link, Links
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import LEVELS, require_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: The label of the null column of a word map, which stands for the special source tokens.
NULL_LABEL = "(null)"

#: Series -> label, marker, size as a share of a cell, whether it is filled; series differ in shape, not only in colour.
_MARKS: dict[str, tuple[str, str, float, bool]] = {
    "sure": ("gold, sure", "s", 0.86, False),
    "possible": ("gold, possible only", "D", 0.62, False),
    "predicted": ("predicted", "o", 0.46, True),
}
_COLOURS = {"sure": "black", "possible": "black", "predicted": "#d1450b"}
#: Up to this number, panels are large and have a colour bar; more panels are small and show only their maximum.
_LARGE = 4
_POINTS = 72  # of an inch
#: Width of a character as a share of the font size, a generous estimate.
_CHARACTER = 0.75
_SMALLEST_FONT, _LARGEST_FONT = 6.0, 10.0


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
        title: the title, possibly of several lines.
        source: the columns; a column of no word (-1) gets no marks.
        target: the rows.
        panels: rows of panels; each panel has a row and a column for each token.
        gold: word links of the gold, None if there is none.

    Raises:
        InputError: a panel has another shape or a value that is NaN, infinite or negative; or there is nothing to draw.
    """

    title: str
    source: SentenceSide
    target: SentenceSide
    panels: tuple[tuple[Panel, ...], ...]
    gold: GoldSentence | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """All text from the data that :func:`draw` writes."""
        return (self.title, *map(label_of, (*self.source.tokens, *self.target.tokens)))

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

    Raises:
        UsageError: the level is unknown.
    """
    require_known("level", level, LEVELS)
    source, target = sentence.source, sentence.target
    if level == "token":
        ordinary = np.flatnonzero(~target.special)
        return source, SentenceSide(tuple(target.tokens[i] for i in ordinary), target.words[ordinary])
    columns = (*source.word_strings(), NULL_LABEL)
    numbers = np.append(np.arange(source.word_count, dtype=np.int32), np.int32(-1))
    rows = tuple(target.word_strings())
    return SentenceSide(columns, numbers), SentenceSide(rows, np.arange(target.word_count, dtype=np.int32))


def panel_of(
    sentence: SentenceMaps, options: ExtractionOptions, level: str, title: str, predicted: Links | None = None
) -> Panel:
    """The panel of the map that ``options`` name.

    Args:
        sentence: a sentence that has maps.
        options: kind, layer, head and setting of the map; the rule gives the links.
        level: one of :data:`~alignment_eval.maps.words.LEVELS`.
        title: the title of the panel.
        predicted: links to show instead of those of the rule.

    Raises:
        InputError: as for :func:`alignment_eval.extraction.extract.extract`.
        UsageError: the level is unknown.
    """
    require_known("level", level, LEVELS)
    (values,) = named_maps(sentence, options)
    if predicted is None:
        sizes = sentence.source.word_count, sentence.target.word_count
        predicted = links_of(choose(values, sentence, options).linked(*sizes))
    return Panel(title, unit_maps(values, sentence, options.setting, LEVELS[level]).scores, predicted)


def cells(links: Iterable[Link], source: SentenceSide, target: SentenceSide) -> list[tuple[int, int]]:
    """The cells (column, row) of word links: all pairs of tokens of each two linked words."""
    return [
        (column, row)
        for i, j in sorted(links)
        for column in np.flatnonzero(source.words == i).tolist()
        for row in np.flatnonzero(target.words == j).tolist()
    ]


def draw(picture: Picture, families: Sequence[str] = (FONT,)) -> Figure:
    """Draw ``picture``; the figure grows with the sentence, so that cells and text stay readable.

    Args:
        picture: what to draw.
        families: fonts; each character comes from the first that has it
            (:func:`~alignment_eval.figures.fonts.font_families`).
    """
    from matplotlib.figure import Figure

    small = sum(map(len, picture.panels)) > _LARGE
    rows, columns = len(picture.target.tokens), len(picture.source.tokens)
    cell = cell_size(rows, columns, small)  # inches, as all lengths here
    size = font_size(cell)
    width, height = cell * columns, cell * rows
    # A panel's title needs at least 1.2.  A large panel also has a colour bar and, from the second on, row labels.
    labels = [[label_of(token) for token in side.tokens] for side in (picture.source, picture.target)]
    labelled = 0.2 + label_width(labels[1], size)
    pitch_x = max(width, 1.2) + (0.25 if small else 1.0 + labelled)
    pitch_y = height + 0.5
    across = max(map(len, picture.panels))
    total = (pitch_x * across - (0 if small else 0.3 + labelled), pitch_y * len(picture.panels))
    figure = Figure(figsize=total)
    for r, line in enumerate(picture.panels):
        for c, panel in enumerate(line):
            bottom = total[1] - r * pitch_y - height
            place = (c * pitch_x / total[0], bottom / total[1], width / total[0], height / total[1])
            axes = figure.add_axes(place)
            draw_panel(axes, picture, panel, cell, f"{r}-{c}")
            axes.set_title(f"{panel.title}\nmax {panel.values.max():.3g}", fontsize=7 if small else 9, loc="left")
            last = r == len(picture.panels) - 1
            label_axes(axes, labels[0] if last else [], labels[1] if c == 0 or not small else [], size, families)
            axes.set_xlabel("source" if last else "", fontsize=8)
            axes.set_ylabel("target" if c == 0 else "", fontsize=8)
            if not small:
                bar = figure.add_axes((place[0] + (width + 0.1) / total[0], place[1], 0.12 / total[0], place[3]))
                figure.colorbar(axes.images[0], cax=bar).ax.tick_params(labelsize=7)
    figure.text(0, 1 + 0.5 / total[1], picture.title, fontsize=10, va="bottom", parse_math=False, family=list(families))
    names = [name for name in _MARKS if name == "predicted" or picture.gold is not None]
    figure.legend(
        handles=[_marks(name, [], 0.14) for name in names],
        loc="upper left",
        bbox_to_anchor=(1, 1),
        fontsize=8,
        frameon=False,
        borderaxespad=0,
    )
    return figure


def cell_size(rows: int, columns: int, small: bool = False) -> float:
    """The side of a cell in inches."""
    extent, smallest, largest = (2.5, 0.11, 0.2) if small else (12.0, 0.16, 0.28)
    return min(largest, max(smallest, extent / max(rows, columns)))


def font_size(cell: float) -> float:
    """The font size, in points, of the labels of cells of ``cell`` inches."""
    return min(_LARGEST_FONT, max(_SMALLEST_FONT, 0.7 * cell * _POINTS))


def label_width(labels: Sequence[str], size: float) -> float:
    """The width of the longest label in inches, a generous estimate."""
    return max(map(len, labels)) * _CHARACTER * size / _POINTS


def label_axes(axes: Axes, columns: Sequence[str], rows: Sequence[str], size: float, families: Sequence[str]) -> None:
    """Label the columns and rows of a map with the fonts ``families``; a side without labels stays empty."""
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=size)
    axes.set_yticks(range(len(rows)), rows, fontsize=size)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set(parse_math=False, family=list(families))


def draw_panel(axes: Axes, picture: Picture, panel: Panel, cell: float, number: str | None = None) -> None:
    """Draw a panel of ``picture`` on ``axes``, without labels.

    Args:
        axes: the Axes to draw on.
        picture: gives the sides and the gold.
        panel: what to draw.
        cell: the side of a cell in inches.
        number: the end of the ids of the marks in SVG; None: no ids.
    """
    rows, columns = panel.values.shape
    # A map of zeros is white, like zeros in other maps.
    axes.imshow(panel.values, cmap="Blues", vmin=0, vmax=panel.values.max() or 1, aspect="auto")
    # Lines between cells; a grid of minor ticks would be many times slower.
    axes.vlines(np.arange(0.5, columns - 1), -0.5, rows - 0.5, color="0.85", linewidth=0.4)
    axes.hlines(np.arange(0.5, rows - 1), -0.5, columns - 0.5, color="0.85", linewidth=0.4)
    axes.tick_params(length=0)
    series: dict[str, Links] = {"predicted": panel.predicted}
    if picture.gold is not None:
        series.update(sure=picture.gold.sure, possible=picture.gold.possible - picture.gold.sure)
    for name in (name for name in _MARKS if name in series):
        marks = _marks(name, cells(series[name], picture.source, picture.target), cell)
        if number is not None:
            marks.set_gid(f"{name}-{number}")  # the id of the group in SVG
        axes.add_line(marks)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)


def _marks(name: str, points: Sequence[tuple[int, int]], cell: float) -> Line2D:
    """The marks of a series at ``points`` (column, row), with a white edge that is visible on dark cells."""
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    label, marker, share, filled = _MARKS[name]
    thickness = 0.06 * cell * _POINTS
    x, y = zip(*points) if points else ((), ())
    return Line2D(
        x,
        y,
        linestyle="none",
        label=label,
        marker=marker,
        markersize=share * cell * _POINTS,
        markerfacecolor=_COLOURS[name] if filled else "none",
        markeredgecolor="white" if filled else _COLOURS[name],
        markeredgewidth=thickness,
        path_effects=[] if filled else [withStroke(linewidth=2.2 * thickness, foreground="white")],
    )
