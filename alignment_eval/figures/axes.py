"""Draws one map on Matplotlib Axes: the caller's or new ones.  Matplotlib is imported only when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alignment_eval.figures.fonts import font_families, label_of
from alignment_eval.figures.sentence import (
    Panel,
    Picture,
    cell_size,
    draw_panel,
    font_size,
    label_axes,
    label_width,
)
from alignment_eval.maps.sentence import SentenceSide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches around a map for titles, axis labels and the figure's margin.
_AROUND = 0.9
#: Smallest width of a figure in inches, so that a title fits.
_NARROWEST = 3.0


def draw_map(panel: Panel, source: SentenceSide, target: SentenceSide, ax: Axes | None = None) -> Axes:
    """Draw one map with its words and links.

    A figure without a layout gets Matplotlib's constrained layout, so that ``savefig`` does not crop it.

    Args:
        panel: the map, its title and its links.
        source: the columns; a column of no word (-1) gets no marks.
        target: the rows.
        ax: the Axes to draw on; None: a new figure of ``matplotlib.pyplot``, as large as the sentence needs.

    Returns:
        The Axes.

    Raises:
        InputError: as for :class:`~alignment_eval.figures.sentence.Picture`.
    """
    picture = Picture(panel.title, source, target, ((panel,),))
    columns, rows = ([label_of(token) for token in side.tokens] for side in (source, target))
    families = font_families(picture.texts)
    axes = _new_axes(columns, rows) if ax is None else ax
    _keep_labels_inside(axes)
    cell = _cell_of(axes, len(rows), len(columns))
    draw_panel(axes, picture, panel, cell)
    label_axes(axes, columns, rows, font_size(cell), families)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    axes.set_title(panel.title, fontsize="medium", loc="left", parse_math=False, family=list(families), wrap=True)
    return axes


def _new_axes(columns: list[str], rows: list[str]) -> Axes:
    from matplotlib import pyplot

    cell = cell_size(len(rows), len(columns))
    size = font_size(cell)
    width = cell * len(columns) + label_width(rows, size) + _AROUND
    height = cell * len(rows) + label_width(columns, size) + _AROUND
    _, axes = pyplot.subplots(figsize=(max(width, _NARROWEST), height), layout="constrained")
    return axes


def _keep_labels_inside(axes: Axes) -> None:
    figure = _figure_of(axes)
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")


def _cell_of(axes: Axes, rows: int, columns: int) -> float:
    """The side of a cell in inches, for the current size of the Axes."""
    extent = axes.get_window_extent()
    return min(extent.width / columns, extent.height / rows) / _figure_of(axes).dpi


def _figure_of(axes: Axes) -> Figure:
    """The whole figure, also for Axes on a subfigure (Matplotlib 3.9 has no ``get_figure(root=True)``)."""
    return axes.figure.figure
