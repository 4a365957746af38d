"""Lays a sentence's maps out at the width of a printed column or page.  Matplotlib is imported only when needed.

All lengths are in inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alignment_eval.figures.fonts import FONT, POINTS, label_of, text_width, wrapped
from alignment_eval.figures.panel import LARGEST, MARKS, SMALLEST, column_places, draw_panel, label_axes, marks_of
from alignment_eval.figures.sentence import Panel, Picture
from alignment_eval.figures.style import COLUMN, DEFAULT, PAGE, TYPE, FigureOptions, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Left, bottom, width and height.
Place = tuple[float, float, float, float]
#: Up to this number, panels have colour bars; more panels show only their largest value.
_FEW = 4
#: A line of text, the space beside the figure's edge and between panels, a colour bar and its numbers.
_LINE, _EDGE, _BETWEEN, _BAR, _NUMBERS = 1.35 * TYPE / POINTS, 0.03, 0.1, 0.07, 0.28
#: Width of the text above a panel without a colour bar.
_LARGEST_VALUE = 0.6


@dataclass(frozen=True)
class Layout:
    """Where the parts of a picture are.

    Attributes:
        width: of the figure.
        cell: the side of a cell.
        labelled: whether there is room for the words.
        left: left of the panels, for words and names.
        pitch: from a panel to the next one.
        needed: the width at which there is room for the words.
    """

    width: float
    cell: float
    labelled: bool
    left: float
    pitch: float
    needed: float


@styled
def layout(picture: Picture, families: Sequence[str] = (FONT,), options: FigureOptions = DEFAULT) -> Layout:
    """The layout of ``picture``.

    Words are labelled if they fit at the width, without which a wider figure than a page is made.
    """
    across = max(map(len, picture.panels))
    size = column_places(picture.source)[-1] + 1  # cells
    beside = _BAR + 0.05 + _NUMBERS if _bars(picture) else 0.0  # right of each panel
    words = text_width(map(label_of, picture.target.tokens), TYPE, families) + 0.05
    names = _EDGE + _LINE  # "target", or the row's name
    least = max(size * SMALLEST, 0 if _bars(picture) else _LARGEST_VALUE)
    around = across * beside + (across - 1) * _BETWEEN + _EDGE
    needed = names + words + across * least + around
    width = options.width or (COLUMN if needed <= COLUMN else PAGE if needed <= PAGE else needed)
    labelled = width >= needed - 1e-6
    left = names + (words if labelled else 0)
    room = max((width - left - around) / across, 0.05)
    cell = min(room / size, LARGEST)
    pitch = max(cell * size, min(room, 0 if _bars(picture) else _LARGEST_VALUE)) + beside + _BETWEEN
    return Layout(width, cell, labelled, left, pitch, needed)


def _bars(picture: Picture) -> bool:
    return sum(map(len, picture.panels)) <= _FEW


@styled
def draw(picture: Picture, families: Sequence[str] = (FONT,), options: FigureOptions = DEFAULT) -> Figure:
    """Draw ``picture`` at its printed width; its height is what the sentence needs.

    Args:
        picture: what to draw.
        families: fonts; each character comes from the first that has it
            (:func:`~alignment_eval.figures.fonts.font_families`).
        options: width, colours; the heading is that of ``picture``.
    """
    from matplotlib.figure import Figure

    placed = layout(picture, families, options)
    heading = wrapped(picture.title, placed.width - 2 * _EDGE, TYPE, families) if picture.title else ""
    above = _EDGE + _LINE * (heading.count("\n") + 1 if heading else 0) + 0.04
    figure = Figure(figsize=(placed.width, 1))
    legend_lines = _legend(figure, picture, placed)
    above += legend_lines * _LINE + 0.05
    panel_height = placed.cell * len(picture.target.tokens)
    pitch = panel_height + (_BETWEEN if _bars(picture) else _LINE + 0.05)
    title = _LINE * (1 if _bars(picture) else 2)
    columns = [label_of(token) for token in picture.source.tokens] if placed.labelled else []
    below = (text_width(columns, TYPE, families) + 0.05) + _LINE + _EDGE
    height = above + title + pitch * (len(picture.panels) - 1) + panel_height + below
    figure.set_size_inches(placed.width, height)
    figure.legends[0].set_bbox_to_anchor((_EDGE / placed.width, 1 - (above - legend_lines * _LINE - 0.05) / height))
    font: dict[str, Any] = {"fontsize": TYPE, "parse_math": False, "family": list(families)}
    if heading:
        figure.text(_EDGE / placed.width, 1 - _EDGE / height, heading, va="top", **font)
    for r, line in enumerate(picture.panels):
        top = above + title + r * pitch
        name = picture.rows[r] if picture.rows else "target"
        middle = 1 - (top + panel_height / 2) / height
        figure.text(_EDGE / placed.width, middle, name, rotation=90, ha="left", va="center", **font)
        for c, panel in enumerate(line):
            place = (placed.left + c * placed.pitch, height - top - panel_height)
            width = placed.cell * (column_places(picture.source)[-1] + 1)
            axes = figure.add_axes(_share(figure, *place, width, panel_height))
            mesh = draw_panel(axes, picture, panel, placed.cell, options.colormap, f"{r}-{c}")
            _name(axes, panel, first=r == 0, bar=_bars(picture))
            last = r == len(picture.panels) - 1
            rows = [label_of(token) for token in picture.target.tokens] if placed.labelled and c == 0 else []
            label_axes(axes, picture.source, columns if last else [], rows, families)
            axes.set_xlabel("source" if last else "")
            if _bars(picture):
                bar = figure.add_axes(_share(figure, place[0] + width + 0.05, place[1], _BAR, panel_height))
                add_bar(figure, mesh, bar)
    return figure


def _share(
    figure: Figure, left: float, bottom: float, width: float, height: float
) -> tuple[float, float, float, float]:
    """A place in inches as shares of the figure."""
    across, up = figure.get_size_inches()
    return left / across, bottom / up, width / across, height / up


def _name(axes: Axes, panel: Panel, *, first: bool, bar: bool) -> None:
    """Write the panel's title above the first row, and the largest value where no colour bar has it."""
    lines = [panel.title] if first else []
    lines += [] if bar else [f"max {panel.values.max():.3g}"]
    axes.set_title("\n".join(lines), fontsize=TYPE, pad=2, linespacing=1.1)


def add_bar(figure: Figure, mesh: object, axes: Axes) -> None:
    """Draw the colour bar of ``mesh`` on ``axes``, with few numbers and from 0 on."""
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(mesh, cax=axes, ticks=MaxNLocator(3))  # type: ignore[arg-type]
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, pad=2)


def _legend(figure: Figure, picture: Picture, placed: Layout) -> int:
    """Draw the legend, and return the number of its lines."""
    names = [name for name in MARKS if name == "predicted" or picture.gold is not None]
    entries = [text_width([MARKS[name][0]], TYPE) + 0.35 for name in names]
    fits = [n for n in range(1, len(names) + 1) if n * max(entries) < placed.width or sum(entries) < placed.width]
    across = max(fits, default=1)
    figure.legend(
        handles=[marks_of(name, [], 0.13) for name in names],
        loc="upper left",
        ncols=across,
        borderaxespad=0,
        borderpad=0,
        handlelength=1,
        handletextpad=0.4,
        labelspacing=0.25,
    )
    return -(-len(names) // across)
